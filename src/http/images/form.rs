//! Multipart forms (RFC 7578): one JSON body in the field `request` and image files beside it.
//!
//! The form is read from a body that is there as a whole, so that its parts are slices of one copy.

use std::convert::Infallible;

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use futures_util::{future, stream};
use memchr::memmem::{self, Finder};
use multer::{Field, Multipart};

use crate::dialect::images::ImageForms;
use crate::error::Step;
use crate::http::respond::excerpt;
use crate::service::images::Image;

use super::fault::{BadImage, FormFault, ImageFault};
use super::{Found, Gathered, Terms, header};

/// Most parts of a form, those included that are ignored.
pub(crate) const PARTS_MAX: usize = 32;

/// Longest headers of a part in bytes, with the empty line after them: 8 KiB.
pub(crate) const PART_HEAD_BYTES_MAX: usize = 8 << 10;

/// Longest boundary in characters (RFC 2046, section 5.1.1).
pub(crate) const BOUNDARY_CHARS_MAX: usize = 70;

const REQUEST: &str = "request";

/// Names under which nothing but image files comes.
const IMAGES: [&str; 3] = ["image", "images", "image[]"];

/// What a form had in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    /// The JSON body, unparsed and of any length; keeps the memory of the whole form.
    pub(crate) request: Bytes,
    /// The files, in order; the images inside `request` are numbered after them.
    pub(crate) images: Vec<Found>,
}

/// Reads a form from its whole `body`.
///
/// `request` is text or a file, every other file is an image, whatever its name; `image`, `images` and
/// `image[]` must be files, and other text fields are ignored, up to [`PARTS_MAX`] parts in all. Never waits for anything, so that it can be polled once
/// (`now_or_never`) off the runtime's turn; takes one copy of the body, and time linear in it.
///
/// # Errors
/// The first fault found: of the form or of an image in it.
pub(crate) async fn multipart(
    content_type: &str,
    body: Bytes,
    terms: Terms,
) -> Result<Form, ImageFault> {
    let boundary = boundary(content_type)?;
    check_heads(&body, &boundary)?;
    let whole = stream::once(future::ready(Ok::<_, Infallible>(body)));
    let mut parts = Multipart::new(whole, boundary);
    let mut draft = Draft { request: None, gathered: Gathered::after(Vec::new(), terms) };
    for part in 1.. {
        let Some(field) = parts.next_field().await.map_err(|_| FormFault::Broken { part })? else {
            break;
        };
        draft.take(part, field).await?;
    }
    let request = draft.request.ok_or(FormFault::NoRequest)?;
    Ok(Form { request, images: draft.gathered.images })
}

fn boundary(content_type: &str) -> Result<String, FormFault> {
    let chars_max = BOUNDARY_CHARS_MAX;
    multer::parse_boundary(content_type)
        .ok()
        .filter(|boundary| (1..=chars_max).contains(&boundary.len()))
        .ok_or_else(|| FormFault::NoBoundary { found: excerpt(content_type), chars_max })
}

/// Counts parts and measures their headers where they are, before anything of them is copied.
///
/// Delimiters are found as `multer` finds them: the first one anywhere, the others after a line's
/// end, and none inside headers.
fn check_heads(body: &[u8], boundary: &str) -> Result<(), FormFault> {
    let delimiter = format!("\r\n--{boundary}");
    let delimiters = Finder::new(&delimiter);
    let first = memmem::find(body, &delimiter.as_bytes()[2..]);
    let start = first.ok_or(FormFault::Broken { part: 1 })?;
    let mut after = &body[start + delimiter.len() - 2..];
    for part in 1.. {
        if after.starts_with(b"--") {
            break;
        }
        if part > PARTS_MAX {
            return Err(FormFault::TooManyParts { count_max: PARTS_MAX });
        }
        let content = after_head(part, after)?;
        let end = delimiters.find(content).ok_or(FormFault::Broken { part })?;
        after = &content[end + delimiter.len()..];
    }
    Ok(())
}

/// What follows the headers of a part; `after` is what follows its boundary.
fn after_head(part: usize, after: &[u8]) -> Result<&[u8], FormFault> {
    let is_padding = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line_end = after.iter().position(|byte| !is_padding(byte)).unwrap_or(after.len());
    let head = after[line_end..].strip_prefix(b"\r\n").ok_or(FormFault::Broken { part })?;
    let bytes_max = PART_HEAD_BYTES_MAX;
    match memmem::find(&head[..head.len().min(bytes_max)], b"\r\n\r\n") {
        Some(end) => Ok(&head[end + 4..]),
        None if head.len() > bytes_max => Err(FormFault::HeadTooLarge { part, bytes_max }),
        None => Err(FormFault::Broken { part }),
    }
}

/// What was read of a form so far.
struct Draft {
    request: Option<Bytes>,
    gathered: Gathered,
}

impl Draft {
    async fn take(&mut self, part: usize, mut field: Field<'_>) -> Result<(), ImageFault> {
        let name = field.name().unwrap_or_default().to_owned();
        if name == REQUEST {
            if self.request.is_some() {
                return Err(FormFault::SecondRequest { part }.into());
            }
            self.request = Some(content(part, &mut field).await?);
            return Ok(());
        }
        let is_file = is_file(&field);
        if !is_file && !IMAGES.contains(&name.as_str()) {
            return Ok(());
        }
        let media = field.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = media.unwrap_or_default().to_owned();
        let file = content(part, &mut field).await?;
        let terms = self.gathered.terms;
        self.gathered
            .add(|| if is_file { image(file, &media, terms) } else { Err(BadImage::NotAFile) })
            .map_err(|fault| fault.under(Step::Key(name)))?;
        Ok(())
    }
}

fn image(file: Bytes, media: &str, terms: Terms) -> Result<Found, BadImage> {
    let header = header::read(&file, terms.rules)?;
    if terms.rules.forms == ImageForms::All {
        header::check_declared(media, header.format)?;
    }
    Ok(Found::Here(Image { header, file, name: None, description: None }))
}

/// Whether the part has a file name, also in the encoded form that RFC 7578 forbids and some clients
/// send.
fn is_file(field: &Field<'_>) -> bool {
    let disposition = field.headers().get(CONTENT_DISPOSITION);
    let text = disposition.map(HeaderValue::as_bytes).unwrap_or_default();
    field.file_name().is_some() || text.windows(10).any(|name| name == b"filename*=")
}

/// All of a part. Since the whole form is there, that is the first chunk, which is not copied.
async fn content(part: usize, field: &mut Field<'_>) -> Result<Bytes, FormFault> {
    let mut content = Bytes::new();
    while let Some(chunk) = field.chunk().await.map_err(|_| FormFault::Broken { part })? {
        content = if content.is_empty() { chunk } else { [content, chunk].concat().into() };
    }
    Ok(content)
}

#[cfg(test)]
mod tests;
