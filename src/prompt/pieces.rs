//! Template text to tokens: control strings become control tokens here and nowhere else.

use super::tokens::TextTokenizer;

/// A run of template text, or a control token in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Plain text; never empty.
    Text(&'a str),
    /// A control token's id.
    Control(u32),
}

/// Splits template text at the tokenizer's control strings; of two that begin at one place the
/// longer counts.
pub fn pieces<'a>(tokenizer: &dyn TextTokenizer, text: &'a str) -> Vec<Piece<'a>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((at, control, id)) = first_control(tokenizer, rest) {
        push_text(&mut found, &rest[..at]);
        found.push(Piece::Control(id));
        rest = &rest[at + control.len()..];
        if tokenizer.strips_after(id) {
            rest = rest.trim_ascii_start();
        }
    }
    push_text(&mut found, rest);
    found
}

/// Tokens of pieces, each run of text tokenised by itself.
pub fn encode(tokenizer: &dyn TextTokenizer, pieces: &[Piece<'_>]) -> Vec<u32> {
    let mut ids = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => ids.extend(tokenizer.encode(text)),
            Piece::Control(id) => ids.push(*id),
        }
    }
    ids
}

fn push_text<'a>(found: &mut Vec<Piece<'a>>, text: &'a str) {
    if !text.is_empty() {
        found.push(Piece::Text(text));
    }
}

fn first_control<'t>(
    tokenizer: &'t dyn TextTokenizer,
    text: &str,
) -> Option<(usize, &'t str, u32)> {
    let controls = tokenizer.controls().iter().filter(|(control, _)| !control.is_empty());
    let places = controls.filter_map(|(control, id)| {
        text.find(control.as_str()).map(|at| (at, control.as_str(), *id))
    });
    // The first among equals is the longest: controls come longest first.
    places.min_by_key(|(at, _, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tokens::bytes::ByteTokenizer;

    #[test]
    fn template_text_is_split_at_control_strings() {
        let found = pieces(&ByteTokenizer::new(), "<|im_start|>user\n<|im_end|><|im_start|>");
        let expected =
            [Piece::Control(256), Piece::Text("user\n"), Piece::Control(257), Piece::Control(256)];
        assert_eq!(found, expected);
        assert_eq!(pieces(&ByteTokenizer::new(), "plain <|im|>"), [Piece::Text("plain <|im|>")]);
        assert_eq!(pieces(&ByteTokenizer::new(), ""), []);
    }

    #[test]
    fn each_piece_gives_its_tokens() {
        let tokenizer = ByteTokenizer::new();
        let ids = encode(&tokenizer, &pieces(&tokenizer, "a<|im_end|>b"));
        assert_eq!(ids, [97, 257, 98]);
    }
}
