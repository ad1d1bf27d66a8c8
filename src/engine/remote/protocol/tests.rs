//! The exact fields of each protocol, and answers that are not to be believed.

use serde_json::json;

use super::*;

const IDS: [u32; 4] = [1, 2, 3, 4];
const LABELS: [u32; 2] = [7, 8];

fn asking(labels: &[u32]) -> Ask<'_> {
    Ask { model: "m", ids: &IDS, labels, salt: "s", slot: Some(3), top: 9, bias: None }
}

fn body(call: &Call) -> Value {
    serde_json::from_slice(call.body.as_ref().unwrap()).unwrap()
}

fn reading(protocol: Protocol, answer: &Value) -> Result<Reading, Misread> {
    protocol.read(&asking(&LABELS), answer.to_string().as_bytes())
}

/// An answer that has these log-probabilities of the labels.
fn answer(protocol: Protocol, one: &Value, other: &Value) -> Value {
    match protocol {
        Protocol::Vllm => json!({
            "choices": [{"index": 0, "text": "x", "finish_reason": "length", "logprobs": {
                "text_offset": [0], "token_logprobs": [-0.1], "tokens": ["token_id:9"],
                "top_logprobs": [{"token_id:7": one, "token_id:8": other}],
            }}],
            "usage": {"prompt_tokens": 4, "completion_tokens": 1, "total_tokens": 5,
                      "prompt_tokens_details": {"cached_tokens": 3}},
        }),
        Protocol::Sglang => json!({
            "text": "x", "output_ids": [9],
            "meta_info": {
                "id": "1", "prompt_tokens": 4, "completion_tokens": 1, "cached_tokens": 3,
                "finish_reason": {"type": "length", "length": 1},
                "output_token_logprobs": [[-0.1, 9, null]],
                "output_token_ids_logprobs": [[[one, 7, null], [other, 8, null]]],
            },
        }),
        Protocol::LlamaServer => json!({
            "completion_probabilities": [{
                "id": 8, "token": "x", "bytes": [120], "logprob": other,
                "top_logprobs": [{"id": 9, "token": "y", "bytes": [121], "logprob": -1.0},
                                 {"id": 7, "token": "z", "bytes": [122], "logprob": one}],
            }],
            "tokens_evaluated": 4, "truncated": false,
            "timings/cache_n": 3, "timings/prompt_n": 1,
        }),
    }
}

const ALL: [Protocol; 3] = [Protocol::Vllm, Protocol::Sglang, Protocol::LlamaServer];

#[test]
fn vllm_is_asked_for_chosen_tokens_and_never_for_those_of_the_prompt() {
    let call = Protocol::Vllm.ask(&Ask { bias: Some((7, 2.0)), ..asking(&LABELS) });
    assert_eq!(call.path, "/v1/completions");
    let expected = json!({
        "model": "m", "prompt": IDS, "max_tokens": 1, "temperature": 0, "logprobs": 1,
        "logprob_token_ids": LABELS, "return_tokens_as_token_ids": true, "cache_salt": "s",
        "logit_bias": {"7": 2.0},
    });
    assert_eq!(body(&call), expected);
    let warm = Protocol::Vllm.ask(&Ask { model: "", salt: "", ..asking(&[]) });
    assert_eq!(body(&warm), json!({"prompt": IDS, "max_tokens": 1, "temperature": 0}));
}

#[test]
fn sglang_is_asked_for_chosen_tokens_of_what_it_generates() {
    let call = Protocol::Sglang.ask(&asking(&LABELS));
    assert_eq!(call.path, "/generate");
    let sampling = json!({"max_new_tokens": 1, "temperature": 0, "ignore_eos": true});
    let expected = json!({
        "input_ids": IDS, "sampling_params": sampling, "return_logprob": true,
        "token_ids_logprob": LABELS, "logprob_start_len": -1, "extra_key": "s",
    });
    assert_eq!(body(&call), expected);
    let warm = Protocol::Sglang.ask(&asking(&[]));
    let expected = json!({"input_ids": IDS, "sampling_params": sampling, "extra_key": "s"});
    assert_eq!(body(&warm), expected);
}

#[test]
fn llama_server_is_asked_for_the_most_probable_tokens_before_sampling() {
    let call = Protocol::LlamaServer.ask(&Ask { bias: Some((7, 100.0)), ..asking(&LABELS) });
    assert_eq!(call.path, "/completion");
    let fields = json!([
        "completion_probabilities",
        "tokens_evaluated",
        "truncated",
        "timings/cache_n",
        "timings/prompt_n"
    ]);
    let expected = json!({
        "prompt": IDS, "n_predict": 1, "n_probs": 9, "cache_prompt": true,
        "post_sampling_probs": false, "temperature": 0, "response_fields": fields, "id_slot": 3,
        "logit_bias": [[7, 100.0]],
    });
    assert_eq!(body(&call), expected);
    let warm = body(&Protocol::LlamaServer.ask(&Ask { slot: None, ..asking(&[]) }));
    assert_eq!((&warm["n_probs"], warm.get("id_slot")), (&json!(0), None));
}

#[test]
fn answers_are_understood() {
    for protocol in ALL {
        let reading = reading(protocol, &answer(protocol, &json!(-2.5), &json!(-3.5))).unwrap();
        assert_eq!(reading.logprobs.get(&7), Some(&-2.5), "{protocol:?}");
        assert_eq!(reading.logprobs.get(&8), Some(&-3.5), "{protocol:?}");
        assert_eq!((reading.best, reading.cached), (Some(9), Some(3)), "{protocol:?}");
    }
}

#[test]
fn what_is_no_log_probability_is_not_believed() {
    for protocol in ALL {
        for bad in [json!(0.5), Value::Null] {
            let misread = reading(protocol, &answer(protocol, &bad, &json!(-3.5))).unwrap_err();
            assert!(
                matches!(misread, Misread::NotFinite { token: 7, .. }),
                "{protocol:?}: {misread}"
            );
        }
        let both = reading(protocol, &answer(protocol, &json!(-0.1), &json!(-0.2))).unwrap_err();
        assert!(matches!(both, Misread::Form(_)), "together they are more than one: {both}");
    }
    let least = json!(-3.4e38);
    let floor = answer(Protocol::LlamaServer, &least, &json!(-3.5));
    assert_eq!(
        reading(Protocol::LlamaServer, &floor).unwrap().logprobs[&7].to_bits(),
        (-9_999.0_f64).to_bits()
    );
}

#[test]
fn another_prompt_or_other_tokens_are_not_believed() {
    for protocol in ALL {
        let text = answer(protocol, &json!(-2.5), &json!(-3.5)).to_string();
        let counts = ["\"prompt_tokens\":4", "\"tokens_evaluated\":4"];
        let longer = counts
            .iter()
            .fold(text.clone(), |text, count| text.replace(count, &count.replace('4', "5")));
        let misread = protocol.read(&asking(&LABELS), longer.as_bytes()).unwrap_err();
        assert_eq!(misread, Misread::Length { read: 5, sent: 4 }, "{protocol:?}");
        for garbage in ["", "{", "[]", "null", "<html>", &text[..text.len() / 2]] {
            let misread = protocol.read(&asking(&LABELS), garbage.as_bytes());
            assert!(misread.is_err(), "{protocol:?}: {garbage}");
        }
    }
}

#[test]
fn a_server_that_gives_no_chosen_tokens_is_told_from_one_that_does() {
    let mut old = answer(Protocol::Vllm, &json!(-2.5), &json!(-3.5));
    old["choices"][0]["logprobs"]["top_logprobs"] = json!([{"token_id:9": -0.1}]);
    assert_eq!(reading(Protocol::Vllm, &old), Err(Misread::Missing { token: 7 }));
    old["choices"][0]["logprobs"] = Value::Null;
    assert_eq!(reading(Protocol::Vllm, &old), Err(Misread::Missing { token: 7 }));
    let mut old = answer(Protocol::Sglang, &json!(-2.5), &json!(-3.5));
    old["meta_info"]["output_token_ids_logprobs"] = Value::Null;
    assert_eq!(reading(Protocol::Sglang, &old), Err(Misread::Missing { token: 7 }));
    let legacy = json!({"completion_probabilities": [], "tokens_evaluated": 4});
    assert_eq!(reading(Protocol::LlamaServer, &legacy), Err(Misread::Missing { token: 7 }));
    // What a llama-server leaves out is asked for again.
    let mut short = answer(Protocol::LlamaServer, &json!(-2.5), &json!(-3.5));
    short["completion_probabilities"][0]["top_logprobs"] = json!([{"id": 9, "logprob": -1.0}]);
    let reading = reading(Protocol::LlamaServer, &short).unwrap();
    assert_eq!(reading.logprobs.keys().copied().collect::<Vec<_>>(), [8, 9]);
}

#[test]
fn an_aborted_request_is_no_reading() {
    let mut aborted = answer(Protocol::Sglang, &json!(-2.5), &json!(-3.5));
    aborted["meta_info"]["finish_reason"] = json!({"type": "abort", "message": "x"});
    assert!(matches!(reading(Protocol::Sglang, &aborted), Err(Misread::Form(_))));
    let mut cut = answer(Protocol::LlamaServer, &json!(-2.5), &json!(-3.5));
    cut["truncated"] = true.into();
    assert!(matches!(reading(Protocol::LlamaServer, &cut), Err(Misread::Form(_))));
}

#[test]
fn servers_introduce_themselves() {
    let introduce = |protocol: Protocol, answers: &[(&str, &str)]| {
        let mut known = Introduction::default();
        for (path, answer) in answers {
            protocol.introduced(path, answer.as_bytes(), &mut known);
        }
        known
    };
    let models = r#"{"data": [{"id": "qwen", "max_model_len": 4096}]}"#;
    let metrics =
        "# HELP x\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1.0\n";
    let vllm = introduce(Protocol::Vllm, &[("/v1/models", models), ("/metrics", metrics)]);
    let model = Some("qwen".to_owned());
    let expected = Introduction {
        model: model.clone(),
        context_tokens: Some(4095),
        slots: None,
        kv_tokens: Some(16_000),
    };
    assert_eq!(vllm, expected);
    let info = r#"{"max_total_num_tokens": 20480, "max_req_input_len": 4000, "status": "ready"}"#;
    let sglang = introduce(Protocol::Sglang, &[("/v1/models", models), ("/get_server_info", info)]);
    let expected =
        Introduction { model, context_tokens: Some(3999), slots: None, kv_tokens: Some(20_480) };
    assert_eq!(sglang, expected);
    let props = r#"{"default_generation_settings": {"n_ctx": 2048}, "total_slots": 4,
                    "model_alias": "smol"}"#;
    let llama = introduce(Protocol::LlamaServer, &[("/props", props)]);
    assert_eq!(
        (llama.context_tokens, llama.slots, llama.kv_tokens),
        (Some(2047), Some(4), Some(8192))
    );
    assert_eq!(introduce(Protocol::Vllm, &[("/v1/models", "<html>")]), Introduction::default());
}

#[test]
fn texts_are_tokenised_as_plain_text_without_a_token_in_front() {
    let vllm = body(&Protocol::Vllm.tokenize("m", "a b"));
    assert_eq!(vllm, json!({"model": "m", "prompt": "a b", "add_special_tokens": false}));
    let llama = body(&Protocol::LlamaServer.tokenize("m", "a b"));
    assert_eq!(llama, json!({"content": "a b", "add_special": false, "parse_special": false}));
    assert_eq!(tokenized(br#"{"count": 2, "tokens": [5, 6]}"#), Ok(vec![5, 6]));
    assert!(tokenized(b"{}").is_err());
    assert_eq!(text_tokens(br#"{"meta_info": {"prompt_tokens": 3}}"#), Ok(3));
}
