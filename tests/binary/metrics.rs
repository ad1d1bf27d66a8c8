//! Metrics, `/health` and the times of responses, on the running server over the fake engine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::exposition::{Exposition, whole};
use crate::server::{Reply, Server, decision, try_post};

/// Longest time for something to happen that must.
const PATIENCE: Duration = Duration::from_secs(30);

/// Gauges that must be 0 when nothing is under way.
const AT_REST: [&str; 21] = [
    "docket_queue_reads",
    "docket_queue_tokens",
    "docket_entering_reads",
    "docket_oldest_wait_seconds",
    "docket_predicted_wait_seconds",
    "docket_tenant_reads",
    "docket_states",
    "docket_wants_waiting",
    "docket_fairness_gap_tokens",
    "docket_reads_in_flight",
    "docket_decisions_open",
    "docket_residency_leases",
    "docket_registrations_pending",
    "docket_registrations_deferred",
    "docket_prewarms_waiting",
    "docket_http_body_bytes",
    "docket_task_registration_bytes",
    "docket_http_parsers_busy",
    "docket_tokenisers_busy",
    "docket_texts_waiting",
    "vllm:num_requests_waiting",
];

fn scrape(server: &Server) -> Exposition {
    let page = server.page("/metrics");
    Exposition::parse(&page).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Scrapes until `is_so`.
fn until(server: &Server, what: &str, is_so: impl Fn(&Exposition) -> bool) -> Exposition {
    let began = Instant::now();
    loop {
        let found = scrape(server);
        if is_so(&found) {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}: {found:?}");
        thread::yield_now();
    }
}

/// Posts each body on a thread of its own.
fn post_all(server: &Server, bodies: Vec<Value>) -> Vec<Reply> {
    let posted = bodies.into_iter().map(|body| {
        let base = server.base().to_owned();
        thread::spawn(move || try_post(&base, "/v1/systemone", &body).expect("an answer"))
    });
    let posted: Vec<_> = posted.collect();
    posted.into_iter().map(|reply| reply.join().expect("no panic")).collect()
}

fn in_lane(lane: &str, state: &str) -> Value {
    let mut body = decision(state, "Is it late?");
    body["priority"] = lane.into();
    body
}

/// Sends a decision; whoever drops the stream goes away without its answer.
fn ask_to_leave(server: &Server, state: &str) -> TcpStream {
    let address = server.base().trim_start_matches("http://");
    let body = decision(state, "Is it late?").to_string();
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "POST /v1/systemone HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("a head");
    stream.write_all(body.as_bytes()).expect("a body");
    stream
}

/// All that a client may do, wanted or not; the statuses of its answers.
fn traffic(server: &Server) -> BTreeSet<u16> {
    let story = "A long story. ".repeat(50);
    let leaving = (0..20).map(|number| ask_to_leave(server, &format!("Left {number}. {story}")));
    let leaving: Vec<_> = leaving.collect();
    until(server, "reads that wait", |found| found.whole("docket_queue_reads", &[]) > 5);
    drop(leaving);
    let mut bodies = Vec::new();
    for number in 0..40 {
        let lane = ["urgent", "normal", "batch", "idle"][number % 4];
        let state =
            format!("Ticket {number}. {}", "The parcel is late. ".repeat(20 * (number % 5)));
        bodies.push(in_lane(lane, &state));
    }
    for number in 0..8 {
        let mut hurried = in_lane("normal", &format!("Hurried {number}."));
        hurried["timeout_ms"] = (1 + number).into();
        bodies.push(hurried);
    }
    bodies.push(json!({ "state": "A parcel.", "questions": {} }));
    bodies.push(in_lane("batch", &"word ".repeat(60_000)));
    let statuses = post_all(server, bodies).iter().map(|reply| reply.status).collect();
    assert_eq!(server.delete("/v1/prewarm/nothing"), 404);
    let prewarm = |wait: bool| json!({ "state": "Ahead of time.", "wait": wait });
    server.post("/v1/prewarm", &prewarm(false));
    let pinned = server.post("/v1/prewarm", &prewarm(true));
    let handle = pinned.body["handle"].as_str().expect("a handle");
    assert_eq!(server.delete(&format!("/v1/prewarm/{handle}")), 200);
    statuses
}

#[test]
fn the_metrics_are_valid_text_and_all_are_listed() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "0"]);
    for number in 0..3 {
        assert_eq!(server.ask(&format!("Ticket {number}."), "Is it late?").status, 200);
    }
    let found = scrape(&server);
    let listed: BTreeSet<_> = docket::telemetry::metric_names().map(str::to_owned).collect();
    let own = found.0.keys().filter(|name| !name.starts_with("vllm:"));
    assert_eq!(own.cloned().collect::<BTreeSet<_>>(), listed);
    for (name, _) in docket::telemetry::buckets() {
        assert_eq!(found.0[name].kind, "histogram", "{name}");
    }
    let limited = found.samples("docket_limit").iter().map(|sample| &sample.labels["metric"]);
    for metric in limited {
        assert!(listed.contains(metric), "the limit of {metric}, which is no metric");
    }
    for histogram in ["queue_wait_seconds", "decision_other_seconds", "label_mass"] {
        assert_eq!(found.count(&format!("docket_{histogram}")), 3, "{histogram}");
    }
}

#[test]
fn a_gateway_finds_the_gauges_of_a_model_server() {
    let arguments = ["--engine", "fake", "--fake-step-ms", "0", "--kv-bytes", "1MiB"];
    let server = Server::start(&arguments);
    assert_eq!(server.ask("A ticket.", "Is it late?").status, 200);
    let found = scrape(&server);
    for name in ["num_requests_waiting", "num_requests_running", "kv_cache_usage_perc"] {
        let name = format!("vllm:{name}");
        assert_eq!((found.0[&name].kind.as_str(), found.samples(&name).len()), ("gauge", 1));
        assert!((0.0..1.0).contains(&found.sum(&name, &[])), "{name}");
    }
    assert!(found.sum("vllm:kv_cache_usage_perc", &[]) > 0.0);
    let adapters = &found.samples("vllm:lora_requests_info")[0];
    assert_eq!(
        (adapters.labels["max_lora"].as_str(), adapters.labels["running_lora_adapters"].as_str()),
        ("0", "")
    );
    let info = &found.samples("vllm:cache_config_info")[0];
    // 64 bytes a token are what the fake engine says.
    assert_eq!(
        (info.labels["block_size"].as_str(), info.labels["num_gpu_blocks"].as_str()),
        ("64", "256")
    );
    assert_eq!(whole(info.value), 1);
    let served = server.get("/v1/models")["models"][0]["name"].clone();
    assert_eq!(info.labels["model_name"], served.as_str().expect("a name"));
}

#[test]
fn the_aliases_say_what_docket_says() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "1"]);
    for lane in ["urgent", "normal", "normal", "batch"] {
        assert_eq!(server.post("/v1/systemone", &in_lane(lane, "A ticket.")).status, 200);
    }
    let found = scrape(&server);
    for (alias, own) in [
        ("request_queue_time_seconds", "queue_wait_seconds"),
        ("request_inference_time_seconds", "read_run_seconds"),
        ("e2e_request_latency_seconds", "read_duration_seconds"),
    ] {
        let (alias, own) = (format!("vllm:{alias}"), format!("docket_{own}"));
        assert_eq!((found.count(&alias), found.count(&own)), (4, 4), "{alias}");
    }
    let stopped = found.whole("vllm:request_success_total", &[("finished_reason", "stop")]);
    assert_eq!(stopped, 4);
    let tokens = |name: &str| found.whole(name, &[]);
    assert_eq!(tokens("vllm:prompt_tokens_total"), tokens("docket_prompt_tokens_total"));
    assert_eq!(tokens("vllm:prefix_cache_hits_total"), tokens("docket_cached_tokens_total"));
    assert!(tokens("vllm:prefix_cache_hits_total") > 0, "three found the state");
}

#[test]
fn tokens_of_responses_and_metrics_are_the_same() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "1"]);
    let story = "The parcel is late. ".repeat(30);
    let bodies = (0..30).map(|number| decision(&format!("{story}{}", number % 7), "Is it late?"));
    let (mut computed, mut cached) = (0, 0);
    for reply in post_all(&server, bodies.collect()) {
        assert_eq!(reply.status, 200, "{reply:?}");
        computed += reply.number("x-docket-computed-tokens");
        cached += reply.number("x-docket-cached-tokens");
    }
    let found = scrape(&server);
    let tokens = |name: &str| found.whole(&format!("docket_{name}_tokens_total"), &[]);
    assert_eq!((tokens("computed"), tokens("cached")), (computed, cached));
    assert_eq!(tokens("prompt"), computed + cached);
    assert_eq!(tokens("tenant_served"), computed, "one tenant has all");
    let (looked_up, hit) = (tokens("prefix_lookup"), tokens("prefix_hit"));
    assert!(hit > 0, "{looked_up}");
    assert_eq!(looked_up - hit, tokens("state_prefill"), "what was not found was computed");
    assert!(tokens("state_prefill") < computed);
    assert_eq!(tokens("state_duplicate_prefill"), 0);
    let buckets = found.samples("docket_tenant_served_tokens_total");
    assert_eq!(buckets.len(), 16);
    assert_eq!(buckets.iter().filter(|bucket| bucket.value > 0.0).count(), 1);
}

#[test]
fn after_mixed_traffic_all_gauges_return_and_every_read_has_one_end() {
    let server = Server::start(&[
        "--engine",
        "fake",
        "--fake-step-ms",
        "10",
        "--max-questions",
        "4",
        "--reads-max",
        "24",
        "--kv-bytes",
        "256KiB",
    ]);
    let statuses = traffic(&server);
    for expected in [200, 422, 429] {
        assert!(statuses.contains(&expected), "no {expected} among {statuses:?}");
    }
    let found = until(&server, "all gauges at 0", |found| {
        let is_alone = found.whole("docket_http_connections", &[]) == 1;
        is_alone && AT_REST.iter().all(|name| found.sum(name, &[]) <= 0.0)
    });
    for kind in ["reserved", "partial", "overflow", "pinned"] {
        assert_eq!(found.whole("docket_residency_bytes", &[("kind", kind)]), 0, "{kind}");
    }
    assert_eq!(found.whole("vllm:num_requests_running", &[]), 0);
    let ended = |outcome: &str| found.whole("docket_reads_total", &[("outcome", outcome)]);
    let admitted = found.whole("docket_reads_admitted_total", &[]);
    assert_eq!(admitted, found.whole("docket_reads_total", &[]), "each read ends once");
    for family in ["docket_queue_wait_seconds", "docket_read_duration_seconds"] {
        assert_eq!(found.count(family), ended("done"), "{family}");
    }
    assert_eq!(found.whole("docket_reads_cancelled_total", &[]), ended("cancelled"));
    assert_eq!(found.whole("docket_reads_expired_total", &[]), ended("expired"));
    assert!(ended("cancelled") > 0);
    let refused = found.whole("docket_admission_rejections_total", &[]);
    assert!(refused > 0);
    let told = &server.get("/health")["details"]["queue"];
    let refusals = told["refusals"].as_object().expect("by reason");
    assert_eq!(refusals.values().filter_map(Value::as_u64).sum::<u64>(), refused);
    assert_eq!(told["reads"]["admitted"].as_u64(), Some(admitted));
}

#[test]
fn responses_are_counted_by_route_status_reason_and_lane() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "0"]);
    assert_eq!(server.post("/v1/systemone", &in_lane("urgent", "A ticket.")).status, 200);
    assert_eq!(server.post("/v1/systemone", &json!({})).status, 422);
    assert_eq!(server.delete("/v1/prewarm/nothing"), 404);
    let found = scrape(&server);
    for (route, status, reason) in [
        ("/v1/systemone", "200", "none"),
        ("/v1/systemone", "422", "invalid"),
        ("/v1/prewarm/{handle}", "404", "not_found"),
    ] {
        let labels = [("route", route), ("status", status), ("reason", reason)];
        assert_eq!(found.whole("docket_http_requests_total", &labels), 1, "{labels:?}");
    }
    let timed = found.samples("docket_http_request_duration_seconds");
    let urgent = timed.iter().find(|s| s.name.ends_with("_count") && s.labels["lane"] == "urgent");
    assert_eq!(urgent.map(|sample| whole(sample.value)), Some(1));
}

#[test]
fn a_panic_in_the_forward_pass_is_counted_and_restarts_nothing() {
    let server = Server::start(&["--engine", "fake", "--fake-fault", "panic@1"]);
    assert_eq!(server.ask("A ticket.", "Is it late?").status, 200);
    let found = scrape(&server);
    let counted = |name: &str| found.whole(&format!("docket_{name}_total"), &[]);
    assert_eq!((counted("engine_panics"), counted("engine_failures")), (1, 1));
    assert_eq!((counted("actor_restarts"), counted("reads")), (0, 1));
}

/// The entries of `Server-Timing`, in milliseconds.
fn timing(reply: &Reply) -> BTreeMap<String, f64> {
    let entries = reply.text("server-timing").expect("times").split(", ");
    entries
        .map(|entry| entry.split_once(";dur=").expect("a duration"))
        .map(|(name, ms)| (name.to_owned(), ms.parse().expect("a number")))
        .collect()
}

#[test]
fn the_times_of_every_response_add_up() {
    // Six numbers of one decimal, each rounded.
    const ROUNDING_MS: f64 = 0.31;
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "4", "--reads-max", "4096"]);
    let began = Instant::now();
    let mut bodies = Vec::new();
    for number in 0..120 {
        let lane = ["urgent", "normal", "batch", "idle"][number % 4];
        let story = "The parcel is late. ".repeat(40 * (number % 3));
        let mut body = in_lane(lane, &format!("{story}{}", number % 30));
        if number % 5 == 0 {
            body["questions"]["team"] = json!({"type": "choice", "criteria": ["a", "b", "c"]});
            body["samples"] = 3.into();
        }
        bodies.push(body);
    }
    let replies = post_all(&server, bodies);
    let all_ms = began.elapsed().as_secs_f64() * 1e3;
    let (mut queued, mut on_state) = (0, 0);
    for reply in &replies {
        assert_eq!(reply.status, 200, "{reply:?}");
        let ms = timing(reply);
        let [queue, state, ready, engine, other, total] =
            ["queue", "state", "engine-wait", "engine", "other", "total"].map(|name| ms[name]);
        let waits = queue + state + ready + engine;
        assert!((waits + other - total).abs() <= ROUNDING_MS, "{ms:?}");
        assert!(waits <= total + ROUNDING_MS && total <= all_ms, "{ms:?}");
        assert!(engine >= 4.0 - ROUNDING_MS, "a step takes 4 ms: {ms:?}");
        let header = |name: &str| -> f64 {
            reply.text(&format!("x-docket-{name}-ms")).expect(name).parse().expect("a number")
        };
        assert!((header("queue") - queue - ready).abs() <= ROUNDING_MS, "{ms:?}");
        for (name, value) in [("state", state), ("engine", engine), ("total", total)] {
            assert!((header(name) - value).abs() <= ROUNDING_MS, "{name}: {ms:?}");
        }
        queued += usize::from(queue > 4.0);
        on_state += usize::from(state > 0.0);
    }
    assert!(queued > 10 && on_state > 0, "{queued} waited in the queue, {on_state} for a state");
}

#[test]
fn the_oldest_wait_rises_while_nothing_happens_and_falls_to_0() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "1500"]);
    let asked = ["docket_reads_in_flight", "docket_queue_reads"].map(|gauge| {
        let (base, body) = (server.base().to_owned(), in_lane("normal", gauge));
        let asked = thread::spawn(move || try_post(&base, "/v1/systemone", &body));
        until(&server, gauge, |found| found.whole(gauge, &[]) == 1);
        asked
    });
    let oldest =
        |found: &Exposition| found.sum("docket_oldest_wait_seconds", &[("lane", "normal")]);
    let (mut last, mut rises) = (0.0, 0);
    let began = Instant::now();
    while rises < 3 && began.elapsed() < PATIENCE {
        let now = oldest(&scrape(&server));
        rises = if now > last { rises + 1 } else { 0 };
        last = now;
    }
    assert_eq!(rises, 3, "the wait did not rise");
    for reply in asked {
        assert_eq!(reply.join().expect("no panic").expect("an answer").status, 200);
    }
    until(&server, "no wait", |found| oldest(found) <= 0.0);
}

/// Members that the schema has and the value lacks, with their paths.
fn missing(schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let Some(properties) = schema["properties"].as_object().filter(|_| !value.is_null()) else {
        return Vec::new();
    };
    let each = properties.iter().map(|(name, schema)| {
        let path = format!("{path}.{name}");
        value.get(name).map_or(vec![path.clone()], |value| missing(schema, value, &path))
    });
    each.flatten().collect()
}

#[test]
fn health_has_what_its_schema_says_while_a_step_runs() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "700"]);
    let (base, body) = (server.base().to_owned(), in_lane("urgent", "A ticket."));
    let asked = thread::spawn(move || try_post(&base, "/v1/systemone", &body));
    until(&server, "a step", |found| found.whole("docket_reads_in_flight", &[]) == 1);
    let details = server.get("/health")["details"].clone();
    let schema = server.get("/openapi.json")["components"]["schemas"]["HealthDetails"].clone();
    assert_eq!(missing(&schema, &details, "details"), Vec::<String>::new());
    assert!(details["engine"]["step"]["chunks"].as_u64() > Some(0), "{details}");
    assert!(details["engine"]["step"]["tokens"].as_u64() > Some(0), "{details}");
    assert_eq!(details["limits"]["reads"], 1024);
    assert_eq!(details["queue"]["lanes"]["urgent"]["predicted_wait_max_s"], 1.0);
    assert_eq!(details["queue"]["lanes"]["idle"]["predicted_wait_max_s"], Value::Null);
    assert_eq!(asked.join().expect("no panic").expect("an answer").status, 200);
}
