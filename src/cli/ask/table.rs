//! An answer as text: a line for each question, and a bar for each probability.

use std::io::{self, Write};

use serde_json::Value;

/// Cells of a bar for probability 1.
const BAR_CELLS: usize = 30;

/// Most candidates of a number.
const CANDIDATES_MAX: usize = 5;

/// Most characters of a label.
const LABEL_CHARS_MAX: usize = 40;

/// Blocks that fill one to eight eighths of a cell.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A line of a distribution.
#[derive(Debug)]
struct Bar {
    label: String,
    probability: f64,
}

/// Writes a response.
///
/// # Errors
/// The writer's.
pub(super) fn write(response: &Value, facts: &[String], out: &mut impl Write) -> io::Result<()> {
    for (id, answer) in response["answers"].as_object().into_iter().flatten() {
        writeln!(out, "{}: {}", shown(id), headline(answer))?;
        write_bars(&bars(answer), out)?;
        writeln!(out)?;
    }
    let model = response["model"].as_str().unwrap_or("?");
    let tokens = shown(&response["usage"]["input_tokens"].to_string());
    writeln!(out, "model {}, {tokens} input tokens", shown(model))?;
    if !facts.is_empty() {
        writeln!(out, "{}", shown(&facts.join("  ")))?;
    }
    Ok(())
}

/// What a refusal says, a line for each fault; the body itself when it is of no known shape.
pub(super) fn refusal(body: &str) -> String {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let detail = &parsed["detail"];
    if let Some(faults) = detail.as_array() {
        return faults.iter().map(fault_line).collect::<Vec<_>>().join("\n");
    }
    let message = detail["message"].as_str().or(detail.as_str());
    let lines = message.unwrap_or(body.trim()).lines();
    lines.map(shown).collect::<Vec<_>>().join("\n")
}

fn fault_line(fault: &Value) -> String {
    let place: Vec<String> = fault["loc"]
        .as_array()
        .into_iter()
        .flatten()
        .skip(1)
        .map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned))
        .collect();
    let message = fault["msg"].as_str().unwrap_or("no reason given");
    let place = if place.is_empty() { "the body".to_owned() } else { place.join(".") };
    shown(&format!("{place}: {message}"))
}

/// The answer in a few words.
fn headline(answer: &Value) -> String {
    let confidence = number(&answer["confidence"])
        .map_or_else(String::new, |confidence| format!(" (confidence {confidence:.2})"));
    if let Some(yes) = number(&answer["noul"]) {
        return format!("{} {:.1} %", if yes >= 0.5 { "yes," } else { "no, yes at" }, yes * 100.0);
    }
    if let Some(chosen) = answer["choice"].as_str() {
        return format!("{}{confidence}", shown(chosen));
    }
    if let Some(score) = number(&answer["score"]) {
        let top = answer["probabilities"].as_object().map_or(0, serde_json::Map::len);
        return format!("{score:.2} on 0 to {}{confidence}", top.saturating_sub(1));
    }
    match answer["type"].as_str() {
        Some("number") if answer["value"].is_null() => "not stated".to_owned() + &confidence,
        Some("number") => format!("{}{confidence}", shown(&answer["value"].to_string())),
        Some("excerpt") => match answer["text"].as_str() {
            Some(text) => format!("\"{}\" ({} to {})", shown(text), answer["start"], answer["end"]),
            None => "not stated".to_owned(),
        },
        Some("skipped") => format!("skipped, because of {}", shown(&answer["because"].to_string())),
        _ => shown(&answer.to_string()),
    }
}

/// What was found in the state, against its not being stated.
fn found_bars(answer: &Value) -> Option<Vec<Bar>> {
    let not_stated = number(&answer["not_stated"])?;
    let candidates = answer["candidates"].as_array().into_iter().flatten();
    let bar = |candidate: &Value| Bar {
        label: clipped(&match candidate["context"].as_str() {
            Some(context) => format!("{} in: {context}", candidate["value"]),
            None => candidate["value"].to_string(),
        }),
        probability: number(&candidate["probability"]).unwrap_or(0.0),
    };
    let mut bars: Vec<Bar> = candidates.take(CANDIDATES_MAX).map(bar).collect();
    if let Some(probability) = number(&answer["probability"])
        && answer["text"].is_string()
    {
        bars.push(Bar { label: "the passage".to_owned(), probability });
    }
    bars.push(Bar { label: "not stated".to_owned(), probability: not_stated });
    Some(bars)
}

fn bars(answer: &Value) -> Vec<Bar> {
    if let Some(yes) = number(&answer["noul"]) {
        let bar = |label: &str, probability| Bar { label: label.to_owned(), probability };
        return vec![bar("yes", yes), bar("no", 1.0 - yes)];
    }
    if let Some(bars) = found_bars(answer) {
        return bars;
    }
    let legend = &answer["legend"];
    let probabilities = answer["probabilities"].as_object().into_iter().flatten();
    probabilities
        .map(|(key, probability)| Bar {
            label: match legend[key].as_str() {
                Some(text) => clipped(&format!("{key} {text}")),
                None => clipped(key),
            },
            probability: number(probability).unwrap_or(0.0),
        })
        .collect()
}

fn write_bars(bars: &[Bar], out: &mut impl Write) -> io::Result<()> {
    let width = bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    for bar in bars {
        let line =
            format!("  {:width$}  {:.3} {}", bar.label, bar.probability, blocks(bar.probability));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A bar of whole cells and one that is filled by eighths.
fn blocks(probability: f64) -> String {
    let eighths = (probability.clamp(0.0, 1.0) * (BAR_CELLS * 8) as f64).round();
    let mut left = eighths_of(eighths);
    let mut bar = String::new();
    while left > 0 {
        let filled = left.min(8);
        bar.push(EIGHTHS[filled - 1]);
        left -= filled;
    }
    bar
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rounded number between 0 and 240"
)]
fn eighths_of(rounded: f64) -> usize {
    rounded as usize
}

fn clipped(text: &str) -> String {
    let text = shown(text);
    if text.chars().count() <= LABEL_CHARS_MAX {
        return text;
    }
    text.chars().take(LABEL_CHARS_MAX - 1).chain(['…']).collect()
}

/// Text from the network on one line, without what a terminal would act upon.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || turns(c) { '·' } else { c }).collect()
}

/// Whether a character ends a line or changes the direction of what follows, so that a table would
/// show something else than it says.
fn turns(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}
