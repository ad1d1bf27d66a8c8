//! The headers by which a caller says what its request is part of: W3C Trace Context.
//!
//! Source: <https://www.w3.org/TR/trace-context-2/>, sections 3.2 and 3.3.

use super::ids::{SpanId, TraceId};

/// Bytes of a `traceparent` of version 00; later versions may add to it.
const LENGTH: usize = 55;

/// Most bytes of `tracestate`, all its headers together: as many as the specification wants to be passed
/// on. What is longer is left out whole.
pub const STATE_BYTES_MAX: usize = 512;

/// A caller's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The trace.
    pub trace: TraceId,
    /// The span in it.
    pub span: SpanId,
    /// Whether the caller traces it.
    pub sampled: bool,
}

/// Reads a `traceparent`; `None` where it is not valid, as if none had been sent.
pub fn parse(sent: &[u8]) -> Option<Parent> {
    let (known, rest) = sent.split_at_checked(LENGTH)?;
    let [version, trace, span, flags] = fields(known)?;
    let [version] = hex(version)?;
    // Version 00 ends here; of a later one, more fields may follow behind a dash.
    let ends_well = if version == 0 { rest.is_empty() } else { matches!(rest, [] | [b'-', ..]) };
    if version == 0xff || !ends_well {
        return None;
    }
    let (trace, span) = (TraceId(hex(trace)?), SpanId(hex(span)?));
    let [flags] = hex(flags)?;
    let is_valid = trace.0 != [0; 16] && span.0 != [0; 8];
    is_valid.then_some(Parent { trace, span, sampled: flags & 1 == 1 })
}

/// `tracestate`, joined of its headers; empty where it is too long or no text.
pub fn state<'a>(sent: impl Iterator<Item = &'a [u8]>) -> String {
    let mut joined = Vec::new();
    for value in sent {
        if !joined.is_empty() {
            joined.push(b',');
        }
        joined.extend_from_slice(value);
        if joined.len() > STATE_BYTES_MAX {
            return String::new();
        }
    }
    String::from_utf8(joined).unwrap_or_default()
}

/// The four fields of version 00.
fn fields(known: &[u8]) -> Option<[&[u8]; 4]> {
    let mut fields = known.split(|byte| *byte == b'-');
    let four = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
    fields.next().is_none().then_some(four)
}

/// Bytes written as lower-case hexadecimal digits.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn sent(version: &str, trace: &str, span: &str, rest: &str) -> Option<Parent> {
        parse(format!("{version}-{trace}-{span}-{rest}").as_bytes())
    }

    #[test]
    fn the_bit_of_the_flags_says_whether_the_caller_traces() {
        for (flags, sampled) in [("00", false), ("01", true), ("02", false), ("03", true)] {
            let parent = sent("00", TRACE, SPAN, flags).unwrap();
            assert_eq!(parent.sampled, sampled, "{flags}");
            assert_eq!(
                (parent.trace.to_string(), parent.span.to_string()),
                (TRACE.into(), SPAN.into())
            );
        }
        assert!(sent("00", TRACE, SPAN, "ff").unwrap().sampled);
    }

    #[test]
    fn what_the_specification_calls_invalid_is_no_parent() {
        let (zeros, upper) = ("0".repeat(32), TRACE.to_uppercase());
        for (version, trace, span, rest) in [
            ("ff", TRACE, SPAN, "01"),
            ("00", &*zeros, SPAN, "01"),
            ("00", TRACE, "0000000000000000", "01"),
            ("00", &upper, SPAN, "01"),
            ("00", TRACE, "00F067AA0BA902B7", "01"),
            ("0A", TRACE, SPAN, "01"),
            ("00", TRACE, SPAN, "0G"),
            ("00", TRACE, SPAN, "1"),
            ("00", TRACE, SPAN, "01-"),
            ("00", TRACE, SPAN, "01-what"),
            ("00", TRACE, SPAN, "01 "),
            ("0", TRACE, SPAN, "001"),
            ("000", TRACE, SPAN, "1"),
            ("00", &TRACE[1..], SPAN, "011"),
            ("00", &TRACE[1..], "00f067aa0ba902b70", "01"),
            ("00", TRACE, "0af067aa0ba90-b7", "01"),
            ("01", TRACE, SPAN, "01what"),
            ("cc", TRACE, SPAN, "01."),
            ("..", TRACE, SPAN, "01"),
            ("00", TRACE, "é0f067aa0ba902", "01"),
        ] {
            assert_eq!(sent(version, trace, span, rest), None, "{version}-{trace}-{span}-{rest}");
        }
        for text in
            ["", "00", TRACE, &format!("00_{TRACE}_{SPAN}_01"), &format!(" 00-{TRACE}-{SPAN}-1")]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        for rest in ["01", "01-", "01-what-the-future-will-be", "01-é"] {
            assert!(sent("cc", TRACE, SPAN, rest).unwrap().sampled, "{rest}");
        }
    }

    #[test]
    fn a_trace_state_is_joined_or_left_out_whole() {
        let of = |values: &[&str]| state(values.iter().map(|value| value.as_bytes()));
        assert_eq!(of(&["a=1", "b=2,c=3"]), "a=1,b=2,c=3");
        assert_eq!(of(&[]), "");
        let half = "x".repeat(STATE_BYTES_MAX / 2);
        assert_eq!(of(&[&half, &half]), "");
        assert_eq!(of(&[&half, &half[1..]]).len(), STATE_BYTES_MAX);
        assert_eq!(state([&b"a=\xff"[..]].into_iter()), "");
    }
}
