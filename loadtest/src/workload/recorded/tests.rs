//! The user's own requests: what is sent of them, in which order, and what is said of their faults.

use super::super::Requests;
use super::*;
use crate::workload::decision::Kind;

const TICKET: &str = r#"{"state": {"b": 1.50, "a": "x y"}, "questions": {"team": {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "money", "shipping": null}}, "late": {"type": "noul", "criteria": {"true": "over a week"}}, "anger": {"type": "score", "criteria": ["calm", "cross"]}}, "x_samples": 1e0, "lane": "urgent", "tenant": "acme"}"#;
const NOTE: &str = r#"{"questions": {"q": {"type": "number", "instructions": "How many?"}}, "state": "\u00e9\n", "priority": "batch"}"#;

fn requests(text: &str, keys: &[&str]) -> Requests {
    let keys = keys.iter().map(|name| ((*name).to_owned(), format!("sk-{name}"))).collect();
    Requests::new(parse("r.jsonl", text).unwrap(), &keys, "test:80", 1).unwrap()
}

fn fault(text: &str) -> String {
    parse("r.jsonl", text).unwrap_err().to_string()
}

#[test]
fn bodies_keep_all_but_what_the_load_test_is_told() {
    let mut requests = requests(&format!("{TICKET}\n\n{NOTE}\n"), &[]);
    let mut write = || {
        let planned = requests.draw();
        requests.write(&planned)
    };
    let ticket = write();
    let body = String::from_utf8(ticket.body().to_vec()).unwrap();
    // Order and spelling of the state and of numbers are the user's.
    assert!(
        body.starts_with(r#"{"state":{"b": 1.50, "a": "x y"},"questions":{"team": {"#),
        "{body}"
    );
    assert!(body.ends_with(r#","x_samples":1e0}"#), "{body}");
    assert_eq!(ticket.headers["x-docket-priority"], "urgent");
    let note = write();
    assert_eq!((note.headers["x-docket-priority"].as_bytes(), note.questions), (&b"batch"[..], 1));
    assert!(note.body().ends_with(br#","priority":"batch"}"#));
    assert_eq!((write().number, requests.tenant_names().len()), (2, 2));
}

#[test]
fn states_and_questions_are_also_texts() {
    let mut requests = requests(&format!("{TICKET}\n{NOTE}"), &[]);
    let planned = requests.draw();
    let decision = requests.write(&planned).decision;
    assert_eq!(decision.state.text(), r#"{"b":1.50,"a":"x y"}"#);
    let show = |asked: &Rc<Question>| {
        let options = asked.options.iter().map(|option| {
            format!("{}={}", option.name, option.description.as_deref().unwrap_or(""))
        });
        let options: Vec<String> = options.collect();
        (asked.kind, asked.instructions.clone(), options.join(","))
    };
    let shown: Vec<_> = decision.questions.iter().map(show).collect();
    assert_eq!(
        shown[0],
        (Kind::Choice, "Which team?".to_owned(), "billing=money,shipping=".to_owned())
    );
    assert_eq!(shown[1], (Kind::Noul, "Is it so?".to_owned(), "Yes=over a week,No=".to_owned()));
    assert_eq!(shown[2].2, "calm=,cross=");
    let planned = requests.draw();
    let decision = requests.write(&planned).decision;
    assert_eq!((decision.state.text(), decision.questions[0].kind), ("\u{e9}\n", Kind::Other));
}

#[test]
fn lines_come_round_and_those_without_a_tenant_take_turns() {
    let line = |state: &str| {
        format!(r#"{{"state": "{state}", "questions": {{"q": {{"type": "noul"}}}}}}"#)
    };
    let text = ["a", "b", "c"].map(line).join("\n");
    let mut requests = requests(&text, &["x", "y"]);
    let seen: Vec<(String, usize)> = (0..6)
        .map(|_| {
            let planned = requests.draw();
            let request = requests.write(&planned);
            (request.decision.state.text().to_owned(), request.tenant)
        })
        .collect();
    let expected = [("a", 0), ("b", 1), ("c", 0), ("a", 1), ("b", 0), ("c", 1)];
    assert_eq!(seen, expected.map(|(state, tenant)| (state.to_owned(), tenant)));
}

#[test]
fn only_what_is_asked_must_be_answered() {
    let text = TICKET.replace("\"x_samples\": 1e0", "\"ask\": [\"late\"]");
    let mut requests = requests(&text, &[]);
    let planned = requests.draw();
    let request = requests.write(&planned);
    assert_eq!(request.questions, 1);
    assert!(request.body().ends_with(br#","ask":["late"]}"#));
}

#[test]
fn starts_are_those_of_the_lines_up_to_the_duration() {
    let at = |at: &str| NOTE.replacen('{', &format!("{{\"at\": {at}, "), 1);
    let text = [at("0"), at("0.25"), at("3")].join("\n");
    let recorded = parse("r.jsonl", &text).unwrap().recorded.unwrap();
    assert_eq!(recorded.starts_us(Duration::from_secs(3)), Some(vec![0, 250_000]));
    assert_eq!(recorded.starts_us(Duration::from_secs(4)).unwrap().len(), 3);
    let recorded = parse("r.jsonl", NOTE).unwrap().recorded.unwrap();
    assert_eq!(recorded.starts_us(Duration::from_secs(3)), None);
    assert!(fault(&format!("{}\n{NOTE}", at("1"))).contains("line 2: at is missing"));
    assert!(fault(&format!("{}\n{}", at("1"), at("0"))).contains("line 2: at must not be before"));
    assert!(fault(&at("-1")).contains("at is -1, must be from 0 to 86400 seconds"));
}

#[test]
fn faults_name_the_line_the_field_and_the_value() {
    let faulty = |find: &str, put: &str| {
        assert!(TICKET.contains(find), "{find}");
        fault(&format!("{NOTE}\n{}", TICKET.replace(find, put)))
    };
    for (find, put, expected) in [
        ("\"state\"", "\"stat\"", "r.jsonl line 2: state is missing"),
        ("\"questions\"", "\"question\"", "line 2: questions is missing"),
        ("\"noul\"", "\"nuol\"", "line 2: questions.late.type is \"nuol\", must be one of noul, "),
        ("[\"calm\", \"cross\"]", "3", "line 2: questions.anger.criteria is 3, must be a list"),
        ("[\"calm\", \"cross\"]", "[]", "line 2: questions.anger.criteria is empty"),
        ("\"urgent\"", "\"fast\"", "line 2: lane is \"fast\", must be one of urgent, "),
        ("\"acme\"", "7", "line 2: tenant is 7, must be a string"),
        ("\"x_samples\"", "\"lane\"", "line 2: lane is "),
        ("\"x_samples\": 1e0", "\"state\": 1", "line 2: state is given twice"),
        ("\"x_samples\": 1e0", "\"ask\": []", "line 2: questions must have one that is asked"),
        (", \"tenant\": \"acme\"}", "", "line 2: EOF while parsing an object at column "),
    ] {
        let fault = faulty(find, put);
        assert!(fault.contains(expected), "{fault}\nexpected {expected}");
    }
    assert!(fault("\n \n").contains("has no requests"));
    let several = fault("1\n2\n3");
    assert!(several.contains("line 1: ") && several.contains("line 3: "), "{several}");
}

#[test]
fn too_many_requests_and_tenants_are_refused() {
    let many = format!("{NOTE}\n").repeat(LINES_MAX + 1);
    assert!(fault(&many).contains("has 100001 requests, at most 100000"));
    let tenant = |number: usize| TICKET.replace("acme", &format!("t{number}"));
    let many: Vec<String> = (0..=TENANTS_MAX).map(tenant).collect();
    assert!(fault(&many.join("\n")).contains("line 65: tenant is the 65th"), "{}", TENANTS_MAX);
}
