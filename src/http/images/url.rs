//! Data URLs (RFC 2397) of images: alone, or somewhere inside a text.
//!
//! A text is searched for its colons only, which is fast and finds a scheme in any case. Each URL
//! ends at the latest where the next one begins, so that two with nothing between them are two.

use std::ops::Range;

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use memchr::memchr_iter;

use crate::http::respond::excerpt;

use super::fault::BadImage;
use super::header::{Image, check_bytes};

/// What every URL of an image begins with, in any case.
const PREFIX: &[u8] = b"data:image/";

/// Offset of the colon in it.
const COLON: usize = 4;

/// Longest beginning of a URL up to its comma: in a text, what is longer is no URL.
const HEAD_BYTES_MAX: usize = 256;

/// The URL of an image inside a text.
pub(super) struct Within<'a> {
    /// Its bytes in the text.
    pub(super) place: Range<usize>,
    /// Its base64.
    pub(super) data: Result<&'a str, BadImage>,
}

/// The URLs of images in `text`, in order.
pub(super) fn within(text: &str) -> impl Iterator<Item = Within<'_>> {
    let mut starts = starts(text).peekable();
    let places = std::iter::from_fn(move || {
        let start = starts.next()?;
        Some(start..starts.peek().copied().unwrap_or(text.len()))
    });
    places.filter_map(|place| opening(text, place))
}

/// Offsets of all [`PREFIX`]es.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    memchr_iter(b':', text.as_bytes()).filter_map(|colon| {
        let start = colon.checked_sub(COLON)?;
        is_image(&text.as_bytes()[start..]).then_some(start)
    })
}

fn is_image(url: &[u8]) -> bool {
    url.get(..PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

/// The URL that `text[place]` begins with, if it is one and has data: a text may mention one.
fn opening(text: &str, place: Range<usize>) -> Option<Within<'_>> {
    let url = &text[place.clone()];
    let comma = url.bytes().take(HEAD_BYTES_MAX).position(|byte| byte == b',')?;
    let (head, rest) = (&url[..comma], &url[comma + 1..]);
    if let Some(kind) = base64_kind(head) {
        let data = &rest[..data_bytes(rest)];
        let is_url = kind.bytes().all(is_kind) && !data.is_empty();
        let end = place.start + comma + 1 + data.len();
        return is_url.then_some(Within { place: place.start..end, data: Ok(data) });
    }
    let has_data = rest.bytes().next().is_some_and(|byte| is_data(byte) || byte == b'<');
    let is_url = head.bytes().all(is_kind) && has_data;
    is_url.then_some(Within { place, data: Err(BadImage::NotBase64) })
}

/// What stands before `;base64` at the end of `head`.
fn base64_kind(head: &str) -> Option<&str> {
    let (kind, last) = head.rsplit_once(';')?;
    last.trim_matches(' ').eq_ignore_ascii_case("base64").then_some(kind)
}

/// Whether a type and its parameters may contain this.
fn is_kind(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$&'*+-./:;=^_`|~".contains(&byte)
}

/// How much of `rest` belongs to a URL: up to what cannot be data, or just past the padding.
fn data_bytes(rest: &str) -> usize {
    let letters = rest.bytes().position(|byte| !is_data(byte)).unwrap_or(rest.len());
    letters + rest[letters..].bytes().take_while(|byte| *byte == b'=').count()
}

/// Whether this continues the data of a URL. `%`, `-` and `_` do, although they are not base64: half
/// of such data must not pass for an image with text behind it.
fn is_data(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'%' | b'-' | b'_')
}

/// The base64 of `url`, all of which is to be the URL of an image.
pub(super) fn whole(url: &str) -> Result<&str, BadImage> {
    let parts = url.split_once(',').filter(|_| is_image(url.as_bytes()));
    let (head, data) = parts.ok_or_else(|| BadImage::NotDataUrl { start: excerpt(url) })?;
    base64_kind(head).map(|_| data).ok_or(BadImage::NotBase64)
}

/// The image whose file is `data` in base64.
pub(super) fn image(data: &str) -> Result<Image, BadImage> {
    let padding = data.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
    check_bytes((data.len().div_ceil(4) * 3).saturating_sub(padding))?;
    let file = STANDARD.decode(data).map_err(|error| damaged(&error))?;
    Image::of(&file)
}

fn damaged(error: &DecodeError) -> BadImage {
    let what = match error {
        DecodeError::InvalidByte(at, byte) => {
            format!("'{}' at byte {at} of its data", byte.escape_ascii())
        }
        DecodeError::InvalidLastSymbol { .. } => {
            "the last character has bits that belong to no byte".to_owned()
        }
        DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => {
            "the data are cut off or not padded with =".to_owned()
        }
    };
    BadImage::Damaged { what }
}
