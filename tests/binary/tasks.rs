//! Learning from labelled examples, and decisio's routes, through the running binary.

use serde_json::{Value, json};

use crate::server::{Reply, Server};

fn ticket(number: usize) -> String {
    format!("Ticket {number}: the customer writes about matter {}.", number * 7 % 13)
}

fn routing(state: &str) -> Value {
    json!({
        "state": state,
        "questions": {"team": {
            "type": "choice",
            "instructions": "Which team?",
            "criteria": {"billing": null, "access": null, "bug": null},
        }},
    })
}

/// A task from examples that are all answered the same way but for every fourth.
fn order(id: &str, count: usize) -> Value {
    let examples: Vec<Value> = (0..count)
        .map(|n| {
            let answer = if n % 4 == 0 { "access" } else { "bug" };
            json!({"request": routing(&ticket(n)), "answer": answer})
        })
        .collect();
    json!({"id": id, "examples": examples})
}

fn fake(more: &[&str]) -> Server {
    Server::start(&[&["--engine", "fake", "--dialect", "decisio"], more].concat())
}

fn probabilities(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.body["answers"]["team"]["probabilities"].clone()
}

#[test]
fn a_task_is_registered_applied_kept_over_a_restart_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path");
    let server = fake(&["--tasks-dir", path]);
    let before = server.post("/v1/systemone", &routing("Something new."));
    assert_eq!(before.text("x-decisio-tasks"), None);
    let record = server.post("/v1/tasks", &order("routing", 60));
    assert_eq!(record.status, 200, "{record:?}");
    let calibration = &record.body["calibration"];
    assert_eq!(record.body["n_examples"], 60);
    assert_eq!(calibration["applied"], true, "an answer that is always the same is learned");
    let after = server.post("/v1/systemone", &routing("Something new."));
    assert_eq!(after.text("x-decisio-tasks"), Some("routing"));
    assert_ne!(probabilities(&before), probabilities(&after));
    assert!(probabilities(&after)["bug"].as_f64() > probabilities(&before)["bug"].as_f64());
    let stages = after.text("x-decisio-stages").expect("stages");
    let names: Vec<&str> =
        stages.split(';').map(|stage| stage.split('=').next().unwrap()).collect();
    assert_eq!(names, ["prepare", "warm", "questions", "readout", "engine", "wait"]);
    assert!(server.page("/metrics").contains("docket_task_answers_total{"));
    drop(server);

    // A damaged file does not stop the start.
    std::fs::write(folder.path().join("task-damaged.json"), "{\"kind\": \"ta").expect("written");
    let server = fake(&["--tasks-dir", path]);
    let again = server.post("/v1/systemone", &routing("Something new."));
    assert_eq!(probabilities(&again), probabilities(&after), "the same bytes after a restart");
    let exported = server.get("/v1/tasks?full=1");
    assert_eq!((&exported["enabled"], &exported["head_engine"]), (&json!(true), &json!(true)));
    assert_eq!(server.delete("/v1/tasks/routing"), 200);
    assert_eq!(server.delete("/v1/tasks/routing"), 404);
    let without = server.post("/v1/systemone", &routing("Something new."));
    assert_eq!(probabilities(&without), probabilities(&before));
    let imported = server.post("/v1/tasks/import", &json!({"tasks": exported["tasks"]}));
    assert_eq!((imported.status, &imported.body["loaded"]), (200, &json!(["routing"])));
    let back = server.post("/v1/systemone", &routing("Something new."));
    assert_eq!(probabilities(&back), probabilities(&after));
    drop(server);

    // Under another rendering the same task is listed and not applied, and not taken in.
    let other = fake(&["--tasks-dir", path, "--prompt-tail", "compact"]);
    assert_eq!(other.get("/v1/tasks")["tasks"].as_array().map(Vec::len), Some(1));
    let asked = other.post("/v1/systemone", &routing("Something new."));
    assert_eq!(asked.text("x-decisio-tasks"), None);
    let refused = other.post("/v1/tasks/import", &json!({"tasks": exported["tasks"]}));
    assert_eq!(refused.status, 422, "{refused:?}");
}

#[test]
fn usage_has_every_token_that_was_run_those_of_examples_too() {
    let server = fake(&[]);
    assert_eq!(server.post("/v1/tasks", &order("routing", 20)).status, 200);
    assert_eq!(server.post("/v1/systemone", &routing("Something new.")).status, 200);
    let counted = &server.get("/v1/usage")["total"];
    let run = server.metric("docket_computed_tokens_total");
    assert_eq!(counted["computed_tokens"].as_u64(), Some(run), "{counted}");
    assert!(counted["reads"].as_u64() > Some(20), "{counted}");
    assert_eq!(counted["questions"], 1, "of requests only: {counted}");
}

#[test]
fn tasks_belong_to_their_key_and_can_be_switched_off() {
    let server = fake(&["--tasks", "off"]);
    assert_eq!(server.post("/v1/tasks", &order("routing", 20)).status, 200);
    let asked = server.post("/v1/systemone", &routing("Something new."));
    assert_eq!(asked.text("x-decisio-tasks"), None);
    assert_eq!(server.get("/v1/tasks")["enabled"], false);
}

#[test]
fn a_registration_may_run_in_the_background() {
    let server = fake(&["--fake-step-ms", "20"]);
    let agent = ureq::agent();
    let reply = agent
        .post(format!("{}/v1/tasks", server.base()))
        .header("prefer", "respond-async")
        .send_json(order("later", 40))
        .expect("an answer");
    assert_eq!(reply.status().as_u16(), 202);
    assert_eq!(reply.headers()["location"], "/v1/tasks/later/status");
    let ended = loop {
        let status = server.get("/v1/tasks/later/status");
        if status["state"] != "running" {
            break status;
        }
        // Urgent work goes on meanwhile.
        let asked = server.post("/v1/systemone", &routing("Something urgent."));
        assert_eq!(asked.status, 200);
    };
    assert_eq!((&ended["state"], &ended["done"]), (&json!("done"), &json!(40)));
    assert_eq!(ended["record"]["id"], "later");
    assert_eq!(server.try_get("/v1/tasks/none/status").expect("an answer").status, 404);
}

#[test]
fn each_kind_of_registration_has_a_status_of_its_own() {
    let server = Server::start(&["--engine", "fake"]);
    let agent = ureq::agent();
    let route = "/decisio/v1/abstention/tasks";
    let reply = agent
        .post(format!("{}{route}", server.base()))
        .header("prefer", "respond-async")
        .send_json(unanswerable(12, "not known"))
        .expect("an answer");
    assert_eq!(reply.status().as_u16(), 202);
    let place = reply.headers()["location"].to_str().expect("a text").to_owned();
    assert_eq!(place, "/decisio/v1/abstention/tasks/not%20known/status");
    let ended = loop {
        let status = server.get(&place);
        if status["state"] != "running" {
            break status;
        }
    };
    assert_eq!((&ended["state"], &ended["record"]["n"]), (&json!("done"), &json!(12)));
    let elsewhere = server.try_get("/v1/tasks/not%20known/status").expect("an answer");
    assert_eq!(elsewhere.status, 404, "that is the status of no task that corrects");
    assert_eq!(server.get("/v1/abstention/tasks/not%20known/status")["id"], "not known");
}

#[test]
fn orders_that_cannot_be_followed_name_their_place() {
    let server = Server::start(&["--engine", "fake"]);
    let example = |request: Value, answer: Value| json!({"request": request, "answer": answer});
    let good = || example(routing("a"), json!("bug"));
    let mut two = routing("a");
    two["questions"]["other"] = json!({"type": "noul"});
    let mut other = routing("b");
    other["questions"]["team"]["criteria"] = json!({"x": null, "y": null});
    for (body, loc) in [
        (json!({"examples": [good()]}), json!(["body", "id"])),
        (json!({"id": "t"}), json!(["body", "examples"])),
        (json!({"id": "t", "examples": []}), json!(["body", "examples"])),
        (
            json!({"id": "t", "examples": [good(), example(routing("a"), json!("nobody"))]}),
            json!(["body", "examples", 1, "answer"]),
        ),
        (
            json!({"id": "t", "examples": [example(two, json!("bug"))]}),
            json!(["body", "examples", 0, "request"]),
        ),
        (
            json!({"id": "t", "examples": [good(), example(other, json!("x"))]}),
            json!(["body", "examples", 1, "request"]),
        ),
        (
            json!({"id": "t", "examples": [example(json!({"state": "s"}), json!("x"))]}),
            json!(["body", "examples", 0, "request", "questions"]),
        ),
    ] {
        let refused = server.post("/v1/tasks", &body);
        assert_eq!((refused.status, &refused.body["detail"][0]["loc"]), (422, &loc), "{body}");
    }
}

/// Tickets of which every third says that nothing is known.
fn unanswerable(count: usize, id: &str) -> Value {
    let mut question = routing("x");
    question["questions"]["team"]["criteria"]["none"] = json!("nothing of this can be told");
    let examples: Vec<Value> = (0..count)
        .map(|n| {
            let mut request = question.clone();
            request["state"] = json!(ticket(n));
            let answer = if n % 3 == 0 { Value::Null } else { json!("bug") };
            json!({"request": request, "answer": answer})
        })
        .collect();
    json!({"id": id, "option": {"key": "none"}, "examples": examples})
}

#[test]
fn an_abstention_task_is_recorded_listed_and_removed() {
    let server = fake(&[]);
    let record = server.post("/v1/abstention/tasks", &unanswerable(24, "unknown"));
    assert_eq!(record.status, 200, "{record:?}");
    assert_eq!((&record.body["n"], &record.body["n_unanswerable"]), (&json!(24), &json!(8)));
    assert!(record.body["reason"].is_string() && record.body["fitted_threshold"].is_number());
    let listed = server.get("/v1/abstention/tasks");
    assert_eq!((&listed["enabled"], &listed["tasks"][0]["id"]), (&json!(true), &json!("unknown")));
    assert_eq!(server.delete("/v1/abstention/tasks/unknown"), 200);
    assert_eq!(server.delete("/v1/abstention/tasks/unknown"), 404);
}

#[test]
fn an_option_for_not_knowing_is_offered_in_the_form_of_images() {
    let server = fake(&["--abstain-option", "It cannot be told."]);
    let mut with_form = routing("Something new.");
    let plain = server.post("/v1/systemone", &with_form);
    assert_eq!(plain.body["answers"]["team"].get("abstained"), None);
    with_form["images"] = json!([]);
    with_form["questions"]["late"] = json!({"type": "noul"});
    let reply = server.post("/v1/systemone", &with_form);
    let team = &reply.body["answers"]["team"];
    assert!(team["unknown_probability"].as_f64().expect("a number") > 0.0, "{team}");
    assert!(team["abstained"].is_boolean());
    let real = team["probabilities"].as_object().expect("three of them");
    assert!(real.len() == 3 && !real.contains_key("__unknown__"));
    let sum: f64 = real.values().filter_map(Value::as_f64).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{team}");
    assert_eq!(reply.body["answers"]["late"]["type"], "noul");
    assert_eq!(reply.body["usage"]["output_tokens"], 2);
}

/// What stands for no images in a dialect's decisions stands for none in examples too.
#[test]
fn examples_of_gmlx_may_have_what_it_takes_for_no_images() {
    let (server, mut order) = (fake(&[]), order("routing", 1));
    for (images, status) in [(json!(""), 200), (json!([]), 200), (json!(["x"]), 400)] {
        order["examples"][0]["request"]["images"] = images;
        let reply = server.post("/gmlx/v1/tasks", &order);
        assert_eq!(reply.status, status, "{reply:?}");
    }
}

#[test]
fn images_are_recognised_and_refused_by_a_model_that_reads_text() {
    // One pixel: signature, length, IHDR, 1 x 1.
    let png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk\
               +M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let server = Server::start(&["--engine", "fake"]);
    for dialect in ["systemone", "decisio"] {
        let route = format!("/{dialect}/v1/systemone");
        let mut listed = routing("Look.");
        listed["images"] = json!([png]);
        let inside = routing(&format!("Look at {png} here."));
        for body in [listed, inside] {
            let refused = server.post(&route, &body);
            assert_eq!(refused.status, 400, "{refused:?}");
            assert!(refused.body["detail"].to_string().contains("1 x 1"), "{refused:?}");
        }
        let broken = routing("data:image/png;base64,AAAA and more");
        assert_eq!(server.post(&route, &broken).status, 422);
    }
}

#[test]
fn a_form_is_read_with_its_files() {
    let server = Server::start(&["--engine", "fake"]);
    let form = |file: &str| {
        let request = routing("Something new.");
        format!(
            "--x\r\ncontent-disposition: form-data; name=\"request\"\r\n\r\n{request}\r\n{file}--x--\r\n"
        )
    };
    let post = |route: &str, body: &str| {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut reply = agent
            .post(format!("{}{route}", server.base()))
            .header("content-type", "multipart/form-data; boundary=x")
            .send(body)
            .expect("an answer");
        let body: Value = reply.body_mut().read_json().expect("JSON");
        (reply.status().as_u16(), body)
    };
    let (status, body) = post("/decisio/v1/systemone", &form(""));
    assert_eq!((status, &body["answers"]["team"]["abstained"]), (200, &json!(false)));
    let file = "--x\r\ncontent-disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\n\
                no image\r\n";
    let (status, body) = post("/decisio/v1/systemone", &form(file));
    let detail = body["detail"].as_str().expect("a text");
    assert!(status == 422 && detail.starts_with("bad image"), "{status} {detail}");
    assert_eq!(post("/v1/systemone", &form("")).0, 200);
    let (status, body) = post("/v1/systemone", &form(file));
    assert_eq!((status, &body["detail"][0]["type"]), (422, &json!("image_invalid")), "{body}");
    assert_eq!(post("/v1/answer", &form("")).0, 415);
}

#[test]
fn answers_are_certified_where_a_task_says_so() {
    let server = fake(&[]);
    let mut certified = order("sure", 200);
    certified["certify"] = json!({"alpha": 0.3, "delta": 0.2});
    let record = server.post("/v1/tasks", &certified);
    assert_eq!(record.status, 200, "{record:?}");
    assert!(record.body["certificate"]["certified"].is_boolean(), "{record:?}");
    let asked = server.post("/v1/systemone", &routing("Something new."));
    let answer = &asked.body["answers"]["team"];
    assert!(answer["certified"].is_boolean(), "{answer}");
    assert_eq!(answer["certified"] == json!(false), answer["certified_reason"].is_string());
}

#[test]
fn the_letters_route_and_health_speak_decisio() {
    let server = Server::start(&["--engine", "fake", "--debug-readout"]);
    let body = json!({"state": "s", "questions": [
        {"kind": "choice", "instructions": "Which?", "options": ["red", "blue"]},
        {"kind": "noul", "instructions": "Late?"},
    ]});
    let reply = server.post("/v1/answer", &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    let probs = |at: usize| reply.body["answers"][at]["probs"].as_array().unwrap().clone();
    assert_eq!((probs(0).len(), probs(1).len()), (2, 2));
    assert_eq!(reply.body["answers"][1]["options"], json!(["yes", "no"]));
    assert!(reply.body["timing"]["server_ms"].as_f64() > Some(0.0));
    let metrics = server.page("/metrics");
    assert!(metrics.contains("docket_decision_other_seconds_count 1\n"), "it is a decision");
    let health = server.get("/decisio/health");
    assert_eq!((&health["ok"], &health["engine_process"]), (&json!(true), &json!("in")));
    assert_eq!(health["systemone"]["noul_rendering"], "letters");
    assert!(health.get("vllm").is_some_and(Value::is_null), "present and null");
    assert_eq!(health["state_boundary"]["failed"], 0);
    assert_eq!(server.get("/health").get("systemone"), None);
    // The same probabilities by both routes, bit for bit.
    let asked = json!({"state": "s", "questions": {"q": {
        "type": "choice", "instructions": "Which?", "criteria": {"red": null, "blue": null},
    }}});
    let systemone = server.post("/decisio/v1/systemone", &asked);
    let shown = &systemone.body["answers"]["q"]["probabilities"];
    assert_eq!(json!([shown["red"], shown["blue"]]), json!(probs(0)));
}
