//! Data URLs (RFC 2397) of images: alone, or somewhere inside a text.
//!
//! A text is searched for its colons only, which is fast and finds a scheme in any case. Each URL
//! ends at the latest where the next one begins, so that two with nothing between them are two.

use std::ops::Range;

use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{DecodeError, Engine as _};
use memchr::memchr_iter;

use crate::dialect::images::{ImageForms, ImageRules};
use crate::http::respond::excerpt;
use crate::service::images::Image;

use super::fault::BadImage;
use super::header;

/// What every URL of an image begins with, in any case.
const PREFIX: &[u8] = b"data:image/";

/// Offset of the colon in it.
const COLON: usize = 4;

/// Longest beginning of a URL up to its comma: in a text, what is longer is no URL.
const HEAD_BYTES_MAX: usize = 256;

/// The URL-safe alphabet (RFC 4648, section 5), padded or not.
const SAFE: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a URL of an image says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data<'a> {
    /// The type that it declares, with parameters.
    kind: &'a str,
    /// The file.
    base64: &'a str,
}

/// The URL of an image inside a text.
pub(super) struct Within<'a> {
    /// Its bytes in the text.
    pub(super) place: Range<usize>,
    /// What it says.
    pub(super) data: Result<Data<'a>, BadImage>,
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

/// Whether a URL is that of data.
pub(super) fn is_data_url(url: &str) -> bool {
    url.get(..=COLON).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
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
        let data = Data { kind: &kind[COLON + 1..], base64: data };
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

/// What `url` says, all of which is to be the URL of an image.
pub(super) fn whole(url: &str) -> Result<Data<'_>, BadImage> {
    let parts = url.split_once(',').filter(|_| is_image(url.as_bytes()));
    let (head, base64) = parts.ok_or_else(|| BadImage::NotDataUrl { start: shown(url) })?;
    let kind = base64_kind(head).ok_or(BadImage::NotBase64)?;
    Ok(Data { kind: &kind[COLON + 1..], base64 })
}

/// How a text begins that is no data URL, without what could be a secret in a URL: user, password and
/// query.
fn shown(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let start = excerpt(&url[..end]);
    match (start.split_once("://"), start.contains('@')) {
        (Some((scheme, _)), true) => format!("{scheme}://"),
        (Some(_) | None, false) => start,
        (None, true) => String::new(),
    }
}

/// The image of a URL.
pub(super) fn image(data: Data<'_>, rules: ImageRules) -> Result<Image, BadImage> {
    let Data { kind, base64 } = data;
    let padding = base64.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
    header::check_bytes((base64.len().div_ceil(4) * 3).saturating_sub(padding))?;
    let takes_all = rules.forms == ImageForms::All;
    let is_safe = takes_all && base64.contains(['-', '_']);
    let decoded = if is_safe { SAFE.decode(base64) } else { STANDARD.decode(base64) };
    let file = decoded.map_err(|error| damaged(&error))?;
    let header = header::read(&file, rules)?;
    if takes_all {
        header::check_declared(kind, header.format)?;
    }
    Ok(Image { header, file: file.into(), name: None, description: None })
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
