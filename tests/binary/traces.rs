//! Traces and the access log, through the running binary.
//!
//! Goal: a collector gets what docs/OPERATIONS.md promises, and one that is gone harms nobody. Method: a
//! collector of a few lines on a port of its own, which decodes what is posted.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};

use crate::server::{Reply, Sending, Server, decision};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// How long a batch of spans may take; a second passes before it is sent, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// A collector, and what was posted to it.
#[derive(Debug)]
struct Collector {
    url: String,
    got: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let posted = Arc::clone(&got);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                collect(&stream, &posted);
            }
        });
        Self { url, got }
    }

    /// All spans so far.
    fn spans(&self) -> Vec<Span> {
        let got = self.got.lock().expect("no panic");
        let scopes = got.iter().flat_map(|request| &request.resource_spans);
        scopes.flat_map(|resource| &resource.scope_spans).flat_map(|s| s.spans.clone()).collect()
    }

    /// Waits for so many spans of this name in this trace; all spans then. Those of a request come in
    /// order, but not at once.
    fn until(&self, count: usize, name: &str, trace: &str) -> Vec<Span> {
        let began = Instant::now();
        loop {
            let spans = self.spans();
            let is_it = |span: &&Span| span.name == name && hex(&span.trace_id) == trace;
            if spans.iter().filter(is_it).count() >= count {
                return spans;
            }
            assert!(began.elapsed() < PATIENCE, "no {name} of {trace} in {spans:?}");
            thread::park_timeout(Duration::from_millis(20));
        }
    }
}

/// Takes what is posted on a connection until it ends.
fn collect(stream: &TcpStream, posted: &Mutex<Vec<ExportTraceServiceRequest>>) {
    while let Some(body) = take(stream) {
        let request = ExportTraceServiceRequest::decode(&body[..]).expect("protobuf");
        posted.lock().expect("no panic").push(request);
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let mut stream = stream;
        stream.write_all(answer).expect("it is read");
    }
}

/// The body of the next request on a connection; none where it has ended.
fn take(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push(line.to_lowercase());
    }
    assert!(head[0].starts_with("post /v1/traces "), "{head:?}");
    assert!(head.contains(&"content-type: application/x-protobuf\r\n".to_owned()), "{head:?}");
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.expect("a length").trim().parse().expect("a number")];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn attributes(span: &Span) -> BTreeMap<&str, Value> {
    let value = |any: &Any| match any {
        Any::StringValue(text) => json!(text),
        Any::IntValue(count) => json!(count),
        Any::BoolValue(flag) => json!(flag),
        Any::DoubleValue(number) => json!(number),
        Any::ArrayValue(_)
        | Any::KvlistValue(_)
        | Any::BytesValue(_)
        | Any::StringValueStrindex(_) => panic!("{any:?}"),
    };
    let pairs = span.attributes.iter();
    pairs
        .map(|pair| (&*pair.key, value(pair.value.as_ref().unwrap().value.as_ref().unwrap())))
        .collect()
}

/// A server on the fake engine whose traces go to this address.
fn traced(url: &str, more: &[&str]) -> Server {
    Server::start(&[&["--engine", "fake", "--otlp-endpoint", url], more].concat())
}

fn send(server: &Server, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let headers = headers.iter().map(|(name, value)| (*name, Some(*value))).collect();
    server.send(&Sending { method: "POST", path, headers, text: Some(body.to_string()) })
}

/// The lines of the access log; written with `--log json`.
fn access(server: &Server) -> Vec<Value> {
    let lines = server.log();
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|line| line["target"] == "docket::access")
        .map(|line| line["fields"].clone())
        .collect()
}

#[test]
fn a_request_is_a_tree_of_spans_under_its_callers() {
    let collector = Collector::start();
    let server = traced(&collector.url, &["--access-log", "--log", "json"]);
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let headers = [("traceparent", &*parent), ("tracestate", "a=1"), ("x-request-id", "ticket-7")];
    let state = "Ticket 12: the parcel was a week late.";
    let reply = send(&server, "/v1/systemone", &headers, &decision(state, "Is it late?"));
    assert_eq!((reply.status, reply.text("traceresponse")), (200, None));
    let spans = collector.until(1, "readout", TRACE);
    let own = spans.iter().find(|span| span.name == "request").expect("its own");
    assert_eq!((hex(&own.parent_span_id), hex(&own.trace_id)), (SPAN.to_owned(), TRACE.to_owned()));
    assert_eq!((own.kind, own.trace_state.as_str()), (2, "a=1"));
    let known = attributes(own);
    for (name, value) in [
        ("http.request.method", json!("POST")),
        ("http.route", json!("/v1/systemone")),
        ("http.response.status_code", json!(200)),
        ("url.scheme", json!("http")),
        ("docket.dialect", json!("systemone")),
        ("docket.lane", json!("normal")),
        ("docket.request_id", json!("ticket-7")),
        ("docket.questions", json!(1)),
        ("docket.tokens.computed", json!(reply.number("x-docket-computed-tokens"))),
        ("docket.tokens.cached", json!(reply.number("x-docket-cached-tokens"))),
    ] {
        assert_eq!(known[name], value, "{name}");
    }
    let parts: Vec<&Span> =
        spans.iter().filter(|span| span.parent_span_id == own.span_id).collect();
    assert_eq!(parts.len() + 1, spans.len());
    let names: Vec<&str> = parts.iter().map(|span| &*span.name).collect();
    for name in ["render", "step", "readout"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert_eq!(parts[0].start_time_unix_nano, own.start_time_unix_nano);
    for pair in parts.windows(2) {
        assert_eq!(pair[0].end_time_unix_nano, pair[1].start_time_unix_nano);
    }
    assert_eq!(parts.last().unwrap().end_time_unix_nano, own.end_time_unix_nano);
    let got = format!("{:?}", collector.got.lock().unwrap());
    assert!(!got.contains("parcel") && !got.contains("Is it late"), "a text of a request");
    assert!(got.contains("service.name") && got.contains("\"docket\""), "{got}");
    let line = access(&server).into_iter().find(|line| line["route"] == "/v1/systemone").unwrap();
    assert_eq!((&line["request_id"], &line["trace_id"]), (&json!("ticket-7"), &json!(TRACE)));
    assert_eq!(
        (&line["status"], &line["lane"], &line["method"]),
        (&json!(200), &json!("normal"), &json!("POST"))
    );
    assert_eq!(line["tenant"], known["docket.tenant"]);
    assert_eq!(line["computed_tokens"], known["docket.tokens.computed"]);
    assert!(line["ms"].as_f64().unwrap() > 0.0, "{line}");
    assert!(!server.log().concat().contains("parcel"));
}

#[test]
fn a_caller_decides_whether_it_is_traced_and_a_share_decides_for_the_others() {
    let collector = Collector::start();
    let server = traced(&collector.url, &["--trace-sample", "0"]);
    let [not, yes] = ["00", "01"].map(|flags| format!("00-{TRACE}-{SPAN}-{flags}"));
    let body = decision("Ticket 12: late.", "Is it late?");
    send(&server, "/v1/systemone", &[], &body);
    send(&server, "/v1/systemone", &[("traceparent", &not)], &body);
    send(&server, "/v1/systemone", &[("traceparent", &not.replace("-00", "-zz"))], &body);
    let refused = json!({ "state": "x", "questions": {} });
    assert_eq!(
        send(&server, "/decisio/v1/systemone", &[("traceparent", &yes)], &refused).status,
        422
    );
    let spans = collector.until(1, "request", TRACE);
    assert_eq!(spans.len(), 1, "{spans:?}");
    let known = attributes(&spans[0]);
    assert_eq!(
        (&known["http.response.status_code"], &known["docket.dialect"]),
        (&json!(422), &json!("decisio"))
    );
    assert!(known.contains_key("docket.reason") && !known.contains_key("docket.questions"));
    assert_eq!(server.metric("docket_traces_dropped_total"), 0);
}

#[test]
fn each_state_of_a_batch_has_a_span_also_where_it_is_answered_in_lines() {
    let collector = Collector::start();
    let server = traced(&collector.url, &["--access-log", "--log", "json"]);
    let states = ["Ticket 1: late.", "Ticket 2: not late.", "Ticket 3: lost."];
    let question = json!({ "q": { "type": "noul", "instructions": "Is it late?" } });
    let body = json!({ "states": states, "samples": 1, "questions": question });
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let other = "a".repeat(32);
    let others = parent.replace(TRACE, &other);
    send(&server, "/v1/systemone/batch", &[("traceparent", &parent)], &body);
    let lines = [("traceparent", &*others), ("accept", "application/x-ndjson")];
    send(&server, "/v1/systemone/batch", &lines, &body);
    let spans = collector.until(states.len(), "readout", &other);
    for trace in [TRACE, &other] {
        let of: Vec<&Span> = spans.iter().filter(|span| hex(&span.trace_id) == trace).collect();
        let own = of.iter().find(|span| span.name == "request").expect("its own");
        let decisions: Vec<&&Span> = of.iter().filter(|span| span.name == "decision").collect();
        assert_eq!(decisions.len(), states.len(), "{trace}");
        assert_eq!(attributes(own)["docket.questions"], json!(3));
        for decision in decisions {
            assert_eq!(decision.parent_span_id, own.span_id);
            assert!(decision.end_time_unix_nano <= own.end_time_unix_nano);
            let steps = of.iter().filter(|span| span.parent_span_id == decision.span_id);
            assert_eq!(steps.filter(|span| span.name == "step").count(), 1);
        }
    }
    let lines = access(&server);
    assert_eq!(lines.iter().filter(|line| line["questions"] == json!(3)).count(), 2, "{lines:?}");
}

#[test]
fn a_failure_of_ours_is_an_error_in_the_trace_and_names_it_in_the_log() {
    let collector = Collector::start();
    let server = traced(&collector.url, &["--fake-fault", "error@1+", "--log", "json"]);
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let body = decision("Ticket 12: late.", "Is it late?");
    assert_eq!(send(&server, "/v1/systemone", &[("traceparent", &parent)], &body).status, 500);
    let spans = collector.until(1, "request", TRACE);
    assert_eq!(spans[0].status.as_ref().unwrap().code, 2);
    assert!(attributes(&spans[0]).contains_key("error.type"));
    let line = server.log().into_iter().find(|line| line.contains("request failed")).unwrap();
    assert!(line.contains(&format!("\"trace_id\":\"{TRACE}\"")), "{line}");
}

/// A server whose collector is at this address: its requests are answered, and it stops in time.
fn is_unaffected(url: &str) {
    let server = traced(url, &["--log-level", "warn"]);
    for number in 0..20 {
        let reply = server.ask(&format!("Ticket {number}: late."), "Is it late?");
        assert_eq!(reply.status, 200);
    }
    server.terminate();
    let began = Instant::now();
    let (status, log) = server.end();
    assert!(status.success(), "{status}");
    // The flush has 2 s, the runtime one.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let told = log.iter().filter(|line| line.contains("traces")).count();
    assert!((1..=2).contains(&told), "{log:?}");
}

#[test]
fn a_collector_that_is_not_there_harms_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    is_unaffected(&url);
    let server = traced(&url, &[]);
    server.ask("Ticket 12: late.", "Is it late?");
    let began = Instant::now();
    while server.metric("docket_traces_dropped_total") == 0 {
        assert!(began.elapsed() < PATIENCE, "nothing is dropped");
        thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn a_collector_that_never_answers_harms_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    is_unaffected(&format!("http://{}", listener.local_addr().expect("an address")));
}

#[test]
fn an_access_log_as_text_is_a_line_a_request_whatever_the_level() {
    let server = Server::start(&["--engine", "fake", "--access-log", "--log-level", "error"]);
    let id = [("x-request-id", "ticket-8")];
    send(&server, "/v1/systemone", &id, &decision("Ticket 12: the parcel.", "Is it late?"));
    server.page("/health");
    server.terminate();
    let (_, log) = server.end();
    let lines: Vec<&String> = log.iter().filter(|line| line.contains("answered method=")).collect();
    assert_eq!(lines.len(), 2, "{log:?}");
    for part in
        ["method=\"POST\"", "route=\"/v1/systemone\"", "status=200", "request_id=\"ticket-8\""]
    {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
    assert!(
        lines[1].contains("route=\"/health\"") && !lines[1].contains("tenant="),
        "{}",
        lines[1]
    );
    assert!(!log.concat().contains("parcel") && !log.concat().contains("trace_id"));
}
