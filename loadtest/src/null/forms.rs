//! The null server's answers in the forms of the drivers: as much of each as its driver reads.

use serde_json::{Value, json};

/// What every question of System One's forms has once.
const QUESTION_MARK: &[u8] = b"\"type\":";

/// The body of an answer to `body` at `path`.
pub(super) fn answer(path: &str, body: &[u8]) -> String {
    match path.rsplit('/').next().unwrap_or_default() {
        "completion" => completion(body).to_string(),
        "completions" => completions().to_string(),
        "apply-template" => template(body).to_string(),
        "models" => {
            json!({ "object": "list", "data": [{ "id": "null", "object": "model" }] }).to_string()
        }
        "decisions" => {
            let answers = vec!["{\"type\":\"predicate\",\"probability\":0.5}"; questions(body)];
            format!("{{\"answers\":[{}]}}", answers.join(","))
        }
        _ => {
            let answer = |index| format!("\"q{index}\":{{\"noul\":0.5}}");
            let answers: Vec<String> = (0..questions(body)).map(answer).collect();
            format!("{{\"answers\":{{{}}}}}", answers.join(","))
        }
    }
}

fn questions(body: &[u8]) -> usize {
    body.windows(QUESTION_MARK.len()).filter(|seen| *seen == QUESTION_MARK).count()
}

/// All letters, equally probable.
fn letters() -> impl Iterator<Item = String> {
    (b'A'..=b'Z').map(|letter| char::from(letter).to_string())
}

fn uniform() -> f64 {
    -26_f64.ln()
}

/// llama-server's; a prewarm's has no tokens.
fn completion(body: &[u8]) -> Value {
    let timings = json!({ "cache_n": 0, "prompt_n": 0, "prompt_ms": 0.0, "predicted_ms": 0.0 });
    let mut answer = json!({ "content": "", "tokens_evaluated": 0, "timings": timings });
    let wants_tokens = body.windows(9).any(|seen| seen == b"\"n_probs\"");
    if wants_tokens {
        let token = |letter| json!({ "token": letter, "logprob": uniform() });
        let likeliest: Vec<Value> = letters().map(token).collect();
        answer["content"] = json!("A");
        answer["completion_probabilities"] = json!([{ "token": "A", "top_logprobs": likeliest }]);
    }
    answer
}

fn completions() -> Value {
    let by_letter: Value = letters()
        .map(|letter| (letter, json!(uniform())))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let logprobs = json!({ "tokens": ["A"], "top_logprobs": [by_letter] });
    let usage = json!({
        "prompt_tokens": 0, "completion_tokens": 1, "prompt_tokens_details": { "cached_tokens": 0 },
    });
    json!({
        "object": "text_completion",
        "choices": [{ "index": 0, "text": "A", "logprobs": logprobs }],
        "usage": usage,
    })
}

/// The text of the first message between two marks.
fn template(body: &[u8]) -> Value {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = body["messages"][0]["content"].as_str().unwrap_or_default();
    json!({ "prompt": format!("<user>{text}</user>") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_answered() {
        let body = br#"{"state":"s","questions":{"q0":{"type":"noul"},"q1":{"type":"noul"}}}"#;
        let answers = r#"{"answers":{"q0":{"noul":0.5},"q1":{"noul":0.5}}}"#;
        assert_eq!(answer("/v1/systemone", body), answers);
        let listed: Value = serde_json::from_str(&answer("/openai/v1/decisions", body)).unwrap();
        assert_eq!(listed["answers"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn tokens_are_given_where_they_are_wanted() {
        let of = |body: &[u8]| serde_json::from_str::<Value>(&answer("/completion", body)).unwrap();
        let asked = of(br#"{"prompt":"p","n_probs":64}"#);
        assert_eq!(asked["completion_probabilities"][0]["top_logprobs"][25]["token"], "Z");
        assert!(of(br#"{"prompt":"p"}"#).get("completion_probabilities").is_none());
    }
}
