//! The drivers that ask for letters: prompts, fan-out, and the shapes of likeliest tokens.

use super::*;
use crate::drivers::settings::TemplateName;
use crate::exchange::Stages;

/// llama-server's answers: the noul's letters weigh 3 to 1, the choice's 9 to 1, and the score's
/// first letter is not among the likeliest.
fn llama(seen: &Seen) -> (u16, String) {
    if seen.path == "/apply-template" {
        let text = seen.body["messages"][0]["content"].as_str().unwrap();
        return (200, json!({ "prompt": format!("<|user|>{text}<|assistant|>") }).to_string());
    }
    let tokens = |tokens: &[(&str, f64)]| -> Value {
        let token = |(token, p): &(&str, f64)| json!({ "id": 1, "token": token, "bytes": token.as_bytes(), "logprob": p.ln() });
        tokens.iter().map(token).collect()
    };
    let prompt = seen.body["prompt"].as_str().unwrap();
    let likeliest = if prompt.contains("refund") {
        tokens(&[("A", 0.5), ("B", 0.2), ("The", 0.1), (" A", 0.1)])
    } else if prompt.contains("team") {
        tokens(&[("A", 0.9), ("B", 0.1)])
    } else {
        tokens(&[("B", 0.7), ("x", 0.3)])
    };
    let body = json!({
        "index": 0,
        "content": "A",
        "tokens": [],
        "id_slot": 0,
        "stop": true,
        "tokens_predicted": 1,
        "tokens_evaluated": 100,
        "truncated": false,
        "stop_type": "limit",
        "tokens_cached": 100,
        "timings": { "cache_n": 60, "prompt_n": 40, "prompt_ms": 10.0, "predicted_n": 1, "predicted_ms": 2.5 },
        "completion_probabilities": [{ "id": 1, "token": "A", "bytes": [65], "logprob": -0.1, "top_logprobs": likeliest }],
    });
    (200, body.to_string())
}

fn near(answers: Option<&Vec<Vec<f64>>>, expected: &[&[f64]]) {
    let flat = answers.unwrap().concat();
    let is_near = flat.iter().zip(expected.concat()).all(|(a, b)| (a - b).abs() < 1e-9);
    assert!(is_near && flat.len() == expected.concat().len(), "{answers:?}");
}

#[tokio::test]
async fn llama_server_gets_a_prompt_a_question_that_begins_with_the_state() {
    let asked = vec![request(&mut recorded(""))];
    let (ends, seen) = exchanges(&settings(Driver::LlamaServer), llama, asked).await;
    let end = &ends[0];
    assert_eq!((end.outcome, end.parts, &end.fault), (Outcome::Answered, 3, &None));
    near(end.answers.as_ref(), &[&[0.75], &[0.9, 0.1], &[0.3, 0.7]]);
    let reply = end.reply.as_ref().unwrap();
    assert_eq!((reply.computed_tokens, reply.cached_tokens, reply.options_unseen), (120, 180, 1));
    assert!((reply.label_mass.unwrap() - (0.8 + 1.0 + 0.7) / 3.0).abs() < 1e-9);
    // The first, and the longest of those that came after it.
    let stages = Stages { engine_us: Some(25_000), total_us: 25_000, ..Stages::default() };
    assert_eq!(reply.stages, Some(stages));

    let (template, parts) = seen.split_first().unwrap();
    assert_eq!(template.path, "/apply-template");
    assert_eq!(template.body["chat_template_kwargs"], json!({ "enable_thinking": false }));
    let body = &parts[0].body;
    assert_eq!(
        body["prompt"],
        "<|user|>I was charged \"twice\".\n\nQuestion: Is a refund due?\nA) Yes\nB) No\n\
         Reply with the letter of one option, nothing else.<|assistant|>"
    );
    let of_team = parts.iter().find_map(|part| {
        let prompt = part.body["prompt"].as_str().unwrap();
        prompt.contains("team").then(|| prompt.to_owned())
    });
    assert!(of_team.unwrap().contains("Which team?\nA) billing: charges\nB) shipping\nReply"));
    for (member, value) in [
        ("n_predict", json!(1)),
        ("n_probs", json!(64)),
        ("post_sampling_probs", json!(false)),
        ("cache_prompt", json!(true)),
        ("stream", json!(false)),
    ] {
        assert_eq!(body[member], value, "{member}");
    }
    assert!(parts[0].head.contains("authorization: bearer sk-1"));
    assert!(!parts[0].head.contains("x-docket"), "{}", parts[0].head);
}

#[tokio::test]
async fn llama_server_is_prewarmed_by_the_state_alone() {
    let settings =
        Settings { template: TemplateName::Chatml, top: Some(7), ..settings(Driver::LlamaServer) };
    let mut requests = recorded("");
    let asked = vec![prewarm(&mut requests), request(&mut requests)];
    let (ends, seen) = exchanges(&settings, llama, asked).await;
    assert_eq!((ends[0].outcome, ends[0].parts), (Outcome::Answered, 1));
    assert_eq!(ends[0].reply.as_ref().unwrap().computed_tokens, 40);
    let state = "<|im_start|>user\nI was charged \"twice\".\n\n";
    assert_eq!((&seen[0].body["prompt"], &seen[0].body["n_predict"]), (&json!(state), &json!(0)));
    assert!(seen[1].body["prompt"].as_str().unwrap().starts_with(state));
    assert_eq!(seen[1].body["n_probs"], 7);
}

#[tokio::test]
async fn a_server_without_a_template_gets_chatml_and_older_tokens_are_read() {
    let older: Rule = |seen| {
        if seen.path == "/apply-template" {
            return (404, "{}".to_owned());
        }
        let probs = json!([{ "tok_str": " A", "prob": 0.6 }, { "tok_str": "B", "prob": 0.2 }]);
        let body = json!({
            "tokens_evaluated": 9, "tokens_cached": 4,
            "completion_probabilities": [{ "content": "A", "probs": probs }],
        });
        (200, body.to_string())
    };
    let asked = vec![request(&mut recorded(""))];
    let (ends, seen) = exchanges(&settings(Driver::LlamaServer), older, asked).await;
    near(ends[0].answers.as_ref(), &[&[0.75], &[0.75, 0.25], &[0.75, 0.25]]);
    let reply = ends[0].reply.as_ref().unwrap();
    assert_eq!((reply.computed_tokens, reply.cached_tokens, reply.stages), (15, 12, None));
    let prompt = seen[1].body["prompt"].as_str().unwrap();
    assert!(
        prompt.starts_with("<|im_start|>user\n") && prompt.ends_with("<|im_start|>assistant\n")
    );
}

/// vLLM's answers, with the part of a prompt that it found in its cache.
fn vllm(seen: &Seen) -> (u16, String) {
    if seen.path == "/v1/models" {
        let list = json!({ "object": "list", "data": [{ "id": "HuggingFaceTB/SmolLM2", "object": "model" }] });
        return (200, list.to_string());
    }
    let body = json!({
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "HuggingFaceTB/SmolLM2",
        "choices": [{
            "index": 0,
            "text": " A",
            "logprobs": {
                "text_offset": [0],
                "token_logprobs": [0.5_f64.ln()],
                "tokens": [" A"],
                "top_logprobs": [{ " A": 0.5_f64.ln(), "A": 0.1_f64.ln(), " B": 0.2_f64.ln(), " Yes": 0.05_f64.ln() }],
            },
            "finish_reason": "length",
            "stop_reason": null,
            "prompt_logprobs": null,
        }],
        "usage": {
            "prompt_tokens": 50, "total_tokens": 51, "completion_tokens": 1,
            "prompt_tokens_details": { "cached_tokens": 32 },
        },
    });
    (200, body.to_string())
}

#[tokio::test]
async fn completions_ask_for_the_first_model_and_read_its_likeliest_tokens() {
    let settings = Settings { template: TemplateName::Plain, ..settings(Driver::Completions) };
    let mut requests = recorded("");
    let asked = vec![prewarm(&mut requests), request(&mut requests)];
    let (ends, seen) = exchanges(&settings, vllm, asked).await;
    assert_eq!((ends[0].outcome, ends[0].parts), (Outcome::Answered, 0));
    assert_eq!((ends[1].outcome, ends[1].parts), (Outcome::Answered, 3));
    near(ends[1].answers.as_ref(), &[&[0.75], &[0.75, 0.25], &[0.75, 0.25]]);
    let reply = ends[1].reply.as_ref().unwrap();
    assert_eq!((reply.computed_tokens, reply.cached_tokens, reply.stages), (54, 96, None));
    assert!(seen[0].head.starts_with("get /v1/models "));
    let body = &seen[1].body;
    assert_eq!(
        (seen[1].path.as_str(), body["model"].as_str()),
        ("/v1/completions", Some("HuggingFaceTB/SmolLM2"))
    );
    assert_eq!([&body["max_tokens"], &body["logprobs"], &body["temperature"]], [1, 20, 0]);
    let prompt = body["prompt"].as_str().unwrap();
    assert!(
        prompt.starts_with("I was charged") && prompt.ends_with("nothing else.\nAnswer:"),
        "{prompt}"
    );
}

#[tokio::test]
async fn completions_without_the_cached_part_tell_no_tokens() {
    let plain: Rule = |_| {
        let tokens = json!([{ "token": "B", "logprob": 0.0 }, { "token": "A", "logprob": -1e9 }]);
        let body = json!({
            "choices": [{ "text": "B", "logprobs": { "content": [{ "token": "B", "top_logprobs": tokens }] } }],
            "usage": { "prompt_tokens": 50, "prompt_tokens_details": null },
        });
        (200, body.to_string())
    };
    let settings = Settings { model: Some("m".to_owned()), ..settings(Driver::Completions) };
    let (ends, seen) = exchanges(&settings, plain, vec![request(&mut recorded(""))]).await;
    near(ends[0].answers.as_ref(), &[&[0.0], &[0.0, 1.0], &[0.0, 1.0]]);
    let reply = ends[0].reply.as_ref().unwrap();
    assert_eq!((reply.computed_tokens, reply.cached_tokens, seen.len()), (0, 0, 3));
}

#[tokio::test]
async fn a_server_that_lists_no_model_needs_its_name() {
    let run = async {
        let rule: Rule = |_| (401, "who?".to_owned());
        let (target, _) = serve(rule).await;
        Client::connect(target, &settings(Driver::Completions), None).await.unwrap_err().to_string()
    };
    let fault = LocalSet::new().run_until(run).await;
    assert_eq!(fault, "/v1/models lists no model, so --model must name it: who?");
}

#[tokio::test]
async fn tokens_that_are_missing_are_a_fault() {
    let none: Rule = |_| (200, r#"{"choices": [{"text": "A", "logprobs": null}]}"#.to_owned());
    let settings = Settings { model: Some("m".to_owned()), ..settings(Driver::Completions) };
    let (ends, _) = exchanges(&settings, none, vec![request(&mut recorded(""))]).await;
    assert_eq!(ends[0].outcome, Outcome::Failed);
    assert!(
        ends[0]
            .fault
            .as_ref()
            .unwrap()
            .starts_with("decision 0: 200 OK without logprobs: {\"choices\"")
    );
}

#[tokio::test]
async fn the_fan_out_says_what_is_under_way_together() {
    for (fan_out, expected) in [
        (FanOut::FirstAlone, [1, 1, 2]),
        (FanOut::Parallel, [1, 2, 3]),
        (FanOut::Serial, [1, 1, 1]),
    ] {
        let settings =
            Settings { fan_out, model: Some("m".to_owned()), ..settings(Driver::Completions) };
        let (ends, seen) = exchanges(&settings, vllm, vec![request(&mut recorded(""))]).await;
        let mut under_way: Vec<u32> = seen.iter().map(|seen| seen.under_way).collect();
        under_way.sort_unstable();
        assert_eq!((under_way.as_slice(), ends[0].parts), (&expected[..], 3), "{fan_out:?}");
        let engine = ends[0].reply.as_ref().unwrap().stages;
        assert_eq!(engine, None);
    }
}

#[tokio::test]
async fn any_part_that_fails_fails_the_decision() {
    /// The question about a team is refused, or its connection closed; the first one is answered.
    fn refuses(seen: &Seen) -> (u16, String) {
        let is_team = seen.body["prompt"].as_str().is_some_and(|prompt| prompt.contains("team"));
        if is_team { (503, "busy".to_owned()) } else { vllm(seen) }
    }
    fn closes(seen: &Seen) -> (u16, String) {
        let is_team = seen.body["prompt"].as_str().is_some_and(|prompt| prompt.contains("team"));
        if is_team { (0, String::new()) } else { vllm(seen) }
    }
    fn refuses_all(_: &Seen) -> (u16, String) {
        (429, String::new())
    }
    for (fan_out, rule, outcome, parts) in [
        (FanOut::FirstAlone, refuses as Rule, Outcome::Refused, 3),
        (FanOut::Parallel, refuses, Outcome::Refused, 3),
        (FanOut::Serial, refuses, Outcome::Refused, 2),
        (FanOut::FirstAlone, closes, Outcome::ConnectionError, 3),
        (FanOut::Serial, closes, Outcome::ConnectionError, 2),
        (FanOut::FirstAlone, refuses_all, Outcome::Refused, 1),
        (FanOut::Parallel, refuses_all, Outcome::Refused, 3),
    ] {
        let settings =
            Settings { fan_out, model: Some("m".to_owned()), ..settings(Driver::Completions) };
        let (ends, seen) = exchanges(&settings, rule, vec![request(&mut recorded(""))]).await;
        let end = &ends[0];
        assert_eq!((end.outcome, end.parts, seen.len()), (outcome, parts, parts as usize));
        assert_eq!(end.answers, None);
        if outcome == Outcome::Refused {
            assert_eq!(end.reply.as_ref().unwrap().retry_after_ms, Some(3_000));
        }
    }
}
