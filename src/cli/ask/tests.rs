//! Requests from flags, answers as tables, and servers that refuse or are not there.

use std::net::TcpListener;
use std::thread::JoinHandle;

use clap::Parser;
use serde_json::json;

use super::*;
use crate::cli::vouched::{answer, http, serve_tls};
use crate::cli::{Cli, Command};

fn arguments(flags: &[&str]) -> AskArgs {
    let typed = Cli::parse_from(["docket", "ask"].iter().chain(flags));
    let Command::Ask(arguments) = typed.command else { panic!("not ask") };
    *arguments
}

fn body(flags: &[&str], input: &str) -> Result<String, AskError> {
    let body = request::body(&arguments(flags).decision, input.as_bytes())?;
    Ok(String::from_utf8(body).unwrap())
}

/// Answers one request with `response`; gives back what was asked.
fn serve(response: String) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || answer(listener.accept().unwrap().0, &response));
    (url, server)
}

#[test]
fn flags_make_up_a_request_in_the_order_of_their_kinds() {
    let flags = [
        "--state",
        "I was charged twice",
        "--choice",
        "team=Which team?",
        "--options",
        "billing=Payments, technical",
        "--noul",
        "Is it urgent?",
        "--score",
        "How angry?",
        "--levels",
        "calm, angry",
        "--number",
        "total=What does it cost?",
        "--excerpt",
        "Why?",
        "--samples",
        "2",
    ];
    let expected = json!({
        "state": "I was charged twice",
        "questions": {
            "q1": {"type": "noul", "instructions": "Is it urgent?"},
            "team": {"type": "choice", "instructions": "Which team?",
                     "criteria": {"billing": "Payments", "technical": null}},
            "q3": {"type": "score", "instructions": "How angry?", "criteria": ["calm", "angry"]},
            "total": {"type": "number", "instructions": "What does it cost?"},
            "q5": {"type": "excerpt", "instructions": "Why?"},
        },
        "samples": 2,
    });
    assert_eq!(body(&flags, "").unwrap(), expected.to_string());
}

#[test]
fn a_state_comes_from_the_flag_a_file_or_standard_input() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("state.txt");
    std::fs::write(&path, "from a file").unwrap();
    let at = format!("@{}", path.display());
    assert!(body(&["--state", &at, "--noul", "?"], "").unwrap().contains("from a file"));
    assert!(body(&["--state", "-", "--noul", "?"], "from a pipe").unwrap().contains("from a pipe"));
    assert!(matches!(
        body(&["--state", "@/no/such", "--noul", "?"], ""),
        Err(AskError::File { .. })
    ));
}

#[test]
fn a_file_is_sent_as_it_is() {
    let request = r#"{"state": 1.50, "state": 2}"#;
    assert_eq!(body(&["--file", "-"], request).unwrap(), request);
}

#[test]
fn what_makes_no_request_is_explained() {
    let explained = |flags: &[&str]| body(flags, "").unwrap_err().to_string();
    assert!(explained(&["--noul", "?"]).contains("--state"));
    assert!(explained(&["--state", "x"]).contains("--noul"));
    assert!(
        explained(&["--state", "x", "--choice", "?"]).contains("1 of --choice and 0 of --options")
    );
    assert!(explained(&["--state", "x", "--noul", "a=?", "--noul", "a=!"]).contains("\"a\""));
    assert!(
        explained(&["--state", "x", "--choice", "?", "--options", "a,a"]).contains("\"a\" twice")
    );
}

#[test]
fn an_answer_is_a_table_with_bars() {
    let response = json!({
        "model": "m",
        "answers": {
            "team": {"type": "choice", "choice": "billing", "confidence": 0.5,
                     "probabilities": {"billing": 0.75, "\u{1b}[31mred": 0.25}},
            "refund": {"type": "noul", "noul": 0.125},
            "urgency": {"type": "score", "score": 1.25, "confidence": 0.4,
                        "legend": {"0": "low", "1": "high"}, "probabilities": {"0": 0.0, "1": 1.0}},
        },
        "usage": {"input_tokens": 42, "output_tokens": 3},
    });
    let mut out = Vec::new();
    table::write(&response, &["total-ms=12.5".to_owned()], &mut out).unwrap();
    let expected = "\
team: billing (confidence 0.50)
  billing   0.750 ██████████████████████▌
  ·[31mred  0.250 ███████▌

refund: no, yes at 12.5 %
  yes  0.125 ███▊
  no   0.875 ██████████████████████████▎

urgency: 1.25 on 0 to 1 (confidence 0.40)
  0 low   0.000
  1 high  1.000 ██████████████████████████████

model m, 42 input tokens
total-ms=12.5
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn what_was_found_in_the_state_is_a_table_too() {
    let response = json!({
        "model": "m",
        "answers": {
            "total": {"type": "number", "value": 45, "probability": 0.75, "not_stated": 0.125, "confidence": 0.5,
                      "candidates": [{"value": 45, "probability": 0.75, "context": "costs 45 euros"},
                                     {"value": 3, "probability": 0.125, "context": "weighs 3 kilograms"}]},
            "tax": {"type": "number", "value": null, "probability": 1.0, "not_stated": 1.0, "confidence": null,
                    "candidates": []},
            "why": {"type": "excerpt", "text": "It\nbroke.", "start": 3, "end": 12, "probability": 0.5,
                    "not_stated": 0.25, "parts": []},
            "who": {"type": "excerpt", "text": null, "probability": 0.5, "not_stated": 0.5, "parts": []},
            "late": {"type": "skipped", "because": "who", "was": null, "wanted": "Ann"},
        },
        "usage": {"input_tokens": 42},
    });
    let mut out = Vec::new();
    table::write(&response, &[], &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for line in [
        "total: 45 (confidence 0.50)",
        "  45 in: costs 45 euros     0.750 ██████████████████████▌",
        "  not stated                0.125 ███▊",
        "tax: not stated",
        "why: \"It·broke.\" (3 to 12)",
        "  the passage  0.500 ███████████████",
        "who: not stated",
        "late: skipped, because of \"who\"",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line:?} in\n{text}");
    }
}

#[test]
fn no_text_of_an_answer_breaks_out_of_its_line() {
    let odd = "a\nb\r\tc\u{85}d\u{202e}e\u{2066}f\u{2028}g\u{7f}\u{200f}";
    let response = json!({
        "model": odd,
        "answers": {odd: {"type": "choice", "choice": odd, "confidence": 0.5,
                          "probabilities": {odd: 1.0}}},
        "usage": {"input_tokens": odd},
    });
    let mut out = Vec::new();
    table::write(&response, &[], &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 4, "{text:?}");
    assert_eq!(text.matches("a·b··c·d·e·f·g··").count(), 4, "{text:?}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    for direction in ['\u{202e}', '\u{2066}', '\u{2028}', '\u{200f}'] {
        assert!(!text.contains(direction), "{text:?}");
    }
    let fault = json!({"detail": [{"loc": ["body", "a\nb"], "msg": "c\nd", "type": "x"}]});
    assert_eq!(table::refusal(&fault.to_string()), "a·b: c·d");
    assert_eq!(table::refusal("<html>\n\u{1b}[2J"), "<html>\n·[2J");
}

#[test]
fn the_lanes_of_the_help_are_the_lanes_there_are() {
    let mut command = <Cli as clap::CommandFactory>::command();
    let help = command.find_subcommand_mut("ask").unwrap().render_help().to_string();
    for lane in actors::Lane::ALL {
        assert!(help.contains(lane.as_str()), "{lane}: {help}");
    }
}

#[test]
fn an_exchange_carries_the_key_and_shows_the_servers_times() {
    let answer =
        r#"{"model":"m","answers":{"q1":{"type":"noul","noul":0.9}},"usage":{"input_tokens":5}}"#;
    let (url, server) = serve(http("200 OK", "x-docket-total-ms: 3.5\r\n", answer));
    let flags = ["--url", &url, "--key", "k1", "--state", "x", "--noul", "ok?"];
    let mut out = Vec::new();
    run(&arguments(&flags), &mut out).unwrap();
    let asked = server.join().unwrap();
    assert!(asked.starts_with("POST /v1/systemone HTTP/1.1"), "{asked}");
    assert!(asked.contains("authorization: Bearer k1") && asked.contains("\"ok?\""), "{asked}");
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("q1: yes, 90.0 %") && text.contains("total-ms=3.5"), "{text}");
}

#[test]
fn json_prints_the_response_as_it_came() {
    let (url, server) = serve(http("200 OK", "", "{\"a\":1.50}\n"));
    let mut out = Vec::new();
    run(&arguments(&["--url", &url, "--json", "--state", "x", "--noul", "?"]), &mut out).unwrap();
    server.join().unwrap();
    assert_eq!(out, b"{\"a\":1.50}\n");
}

#[test]
fn a_refusal_is_readable_in_every_shape() {
    let faults = r#"{"detail":[{"loc":["body","questions","q",0],"msg":"too many","type":"x"},
        {"loc":["body"],"msg":"not JSON","type":"y"}]}"#;
    assert_eq!(table::refusal(faults), "questions.q.0: too many\nthe body: not JSON");
    let one = r#"{"detail":{"error_type":"authentication_error","message":"the key is unknown"}}"#;
    assert_eq!(table::refusal(one), "the key is unknown");
    assert_eq!(table::refusal("<html>Bad gateway</html>"), "<html>Bad gateway</html>");
    let (url, server) = serve(http("401 Unauthorized", "", one));
    let flags = ["--url", &url, "--state", "x", "--noul", "?"];
    let error = run(&arguments(&flags), &mut Vec::new()).unwrap_err().to_string();
    server.join().unwrap();
    assert!(error.contains("401") && error.contains("the key is unknown"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_answered_with_how_to_start_one() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{unused}");
    let flags = ["--url", &url, "--state", "x", "--noul", "?"];
    let error = run(&arguments(&flags), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, AskError::NoServer { .. }), "{error}");
    assert!(error.to_string().contains("docket serve"));
}

#[test]
fn a_server_that_does_not_answer_is_told_with_the_time_it_had() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let flags = ["--url", &url, "--timeout", "20ms", "--state", "x", "--noul", "?"];
    let error = run(&arguments(&flags), &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, format!("{url}: no answer within 20ms (--timeout)"));
}

#[test]
fn an_address_without_its_scheme_is_told_what_is_missing() {
    let told = |url: &str| {
        let flags = ["--url", url, "--state", "x", "--noul", "?"];
        run(&arguments(&flags), &mut Vec::new()).unwrap_err().to_string()
    };
    let missing = "http:// or https:// is missing; write http://127.0.0.1:8358";
    assert_eq!(told("127.0.0.1:8358"), format!("--url 127.0.0.1:8358: {missing}"));
    assert_eq!(told("ftp://127.0.0.1:8358"), format!("--url ftp://127.0.0.1:8358: {missing}"));
}

#[test]
fn a_private_certificate_vouches_where_it_is_named() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("ca.pem");
    let path = path.to_str().unwrap();
    let ask = |url: &str, ca: &[&str]| {
        let flags = [&["--url", url, "--json", "--state", "s", "--noul", "x"], ca].concat();
        let mut out = Vec::new();
        run(&arguments(&flags), &mut out).map(|()| String::from_utf8(out).unwrap())
    };
    let (url, certificate, server) = serve_tls(http("200 OK", "", "{\"a\":1}"));
    std::fs::write(path, certificate).unwrap();
    assert_eq!(ask(&url, &["--ca", path]).unwrap(), "{\"a\":1}\n");
    assert!(server.join().unwrap().starts_with("POST /v1/systemone"));
    let (url, _, server) = serve_tls(String::new());
    let told = ask(&url, &[]).unwrap_err().to_string();
    assert!(told.contains("nobody who is trusted here vouches for its certificate"), "{told}");
    server.join().unwrap();
    std::fs::write(path, "none").unwrap();
    let told = ask(&url, &["--ca", path]).unwrap_err().to_string();
    assert!(told.contains("ca.pem: it has no certificate in PEM"), "{told}");
}
