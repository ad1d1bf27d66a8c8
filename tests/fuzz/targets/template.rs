//! Chat templates, of the manners of the families that are served, around what an operator's turns and
//! a request's values say: a frame or a refusal, of bounded size, and no control token out of a value.

use docket::files::PromptFacts;
use docket::json::{Json, Limits};
use docket::prompt::template::{RESERVED, Turn, control_in, frame, plain_frame};

const TEMPLATES: [&str; 5] = [
    include_str!("../templates/chatml.jinja"),
    include_str!("../templates/tools.jinja"),
    include_str!("../templates/llama.jinja"),
    include_str!("../templates/gemma.jinja"),
    include_str!("../templates/mistral.jinja"),
];

/// Control tokens of these templates.
const CONTROLS: [&str; 12] = [
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<start_of_turn>",
    "<|im_start|>",
    "<end_of_turn>",
    "<|im_end|>",
    "<|eot_id|>",
    "[/INST]",
    "[INST]",
    "<bos>",
    "</s>",
    "<s>",
];

/// Bytes of a prompt for each byte of template, turns and values: some stand in it twice, with escapes.
const BYTES_PER_BYTE: usize = 32;

/// Stands where a control token could begin.
const MASK: &str = "\u{e000}";

/// The first byte is the template; then comes JSON: a list of texts, turns from the system's on, and an
/// object, the values. Anything else is the text of a system turn.
pub fn run(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let template = TEMPLATES[usize::from(*first) % TEMPLATES.len()];
    let (texts, values) = parts(rest);
    let turns = turns(texts, (usize::from(*first) / TEMPLATES.len()).is_multiple_of(2));
    let bos = if template.contains("start_of_turn") { "<bos>" } else { "<s>" };
    let (bos, eos) = (Some(bos.to_owned()), Some("</s>".to_owned()));
    let facts = PromptFacts { bos, eos, ..PromptFacts::default() };
    let size_max = BYTES_PER_BYTE * (template.len() + input.len());
    assert!(plain_frame(&facts, &turns).before.len() <= size_max);
    let framed = match frame(template, &facts, (&turns, &values)) {
        Ok(framed) => framed,
        Err(error) => {
            let message = error.to_string();
            return assert!(message.len() <= size_max && !message.is_empty(), "{message}");
        }
    };
    let size = framed.before.len() + framed.after.len();
    assert!(size <= size_max, "{size} bytes of {}", input.len());
    let free: Vec<_> =
        values.iter().filter(|(name, _)| !RESERVED.contains(&name.as_str())).cloned().collect();
    assert_eq!(frame(template, &facts, (&turns, &free)).as_ref(), Ok(&framed));
    let controls: Vec<_> = CONTROLS.iter().map(|text| ((*text).to_owned(), 0)).collect();
    if control_in(&values, &controls).is_some() {
        return;
    }
    let masked: Vec<_> = free.into_iter().map(|(name, value)| (name, masked(value))).collect();
    if let Ok(other) = frame(template, &facts, (&turns, &masked)) {
        let own = found(&framed.before).chain(found(&framed.after));
        let others = found(&other.before).chain(found(&other.after));
        assert!(own.eq(others), "a control token out of {values:?}");
    }
}

fn parts(rest: &[u8]) -> (Vec<String>, Vec<(String, Json)>) {
    let text = |bytes| vec![String::from_utf8_lossy(bytes).into_owned()];
    let Ok(Json::Array(items)) = Json::parse(rest, Limits::default()) else {
        return (text(rest), Vec::new());
    };
    let (mut texts, mut values) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Json::String(text) => texts.push(text),
            Json::Object(members) => values = members,
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) => {}
        }
    }
    (texts, values)
}

fn turns(texts: Vec<String>, has_system: bool) -> Vec<Turn> {
    let roles = if has_system { &["system"][..] } else { &[] };
    let roles = roles.iter().chain(["user", "assistant"].iter().cycle());
    texts.into_iter().zip(roles).map(|(text, role)| Turn { role, text }).collect()
}

/// The value with no text in it that a control token could begin in.
fn masked(value: Json) -> Json {
    let text = |text: String| text.replace(['<', '['], MASK);
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => value,
        Json::String(own) => Json::String(text(own)),
        Json::Array(items) => Json::Array(items.into_iter().map(masked).collect()),
        Json::Object(members) => {
            let masked = |(key, member)| (text(key), masked(member));
            Json::Object(members.into_iter().map(masked).collect())
        }
    }
}

/// The control tokens of a text, in their order.
fn found(text: &str) -> impl Iterator<Item = &'static str> {
    let mut places: Vec<(usize, &'static str)> = CONTROLS
        .iter()
        .flat_map(|control| text.match_indices(control).map(|(at, _)| (at, *control)))
        .collect();
    places.sort_unstable();
    places.into_iter().map(|(_, control)| control)
}
