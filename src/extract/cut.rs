//! Texts made short enough to be shown as an option: one line, and cut in the middle.

/// The text in one line: each run of white space is one space.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(1024));
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// At most `chars_max` characters of a line: what is too much is left out of its middle.
pub(super) fn cut_in_the_middle(line: &str, chars_max: usize) -> String {
    if line.chars().count() <= chars_max {
        return line.to_owned();
    }
    let kept = chars_max.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let head = line.char_indices().nth(head).map_or(line.len(), |(at, _)| at);
    let tail = tail.checked_sub(1).and_then(|back| line.char_indices().nth_back(back));
    let tail = tail.map_or(line.len(), |(at, _)| at);
    format!("{}…{}", line[..head].trim_end(), line[tail..].trim_start())
}

/// At most `bytes_max` bytes of the beginning and the end of a text, so that a long one is not copied
/// to be cut.
pub(super) fn ends(text: &str, bytes_max: usize) -> (&str, &str) {
    if text.len() <= bytes_max {
        return (text, "");
    }
    let half = bytes_max / 2;
    let head = (0..=half).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let from = text.len() - half;
    let tail = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    (&text[..head], &text[tail..])
}

/// A text as shown: one line of at most `chars_max` characters.
pub(super) fn shown(text: &str, chars_max: usize) -> String {
    // Four bytes are the longest character; the rest is room for white space that is dropped.
    let (head, tail) = ends(text, chars_max * 8);
    let line = one_line(head);
    if tail.is_empty() {
        return cut_in_the_middle(&line, chars_max);
    }
    cut_in_the_middle(&format!("{line} … {}", one_line(tail)), chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_loses_its_middle() {
        assert_eq!(shown(" a\r\n  b\tc ", 10), "a b c");
        assert_eq!(shown("abcdefghij", 5), "ab…ij");
        assert_eq!(shown("абвгдежзик", 6), "абв…ик");
        assert_eq!(shown("abcdef", 1), "…");
        let long = format!("start {} end", "x ".repeat(100_000));
        let cut = shown(&long, 20);
        assert!(
            cut.starts_with("start") && cut.ends_with("end") && cut.chars().count() <= 20,
            "{cut}"
        );
    }
}
