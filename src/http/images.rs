//! Images in requests: found, checked by their headers and taken out of the text.
//!
//! Whatever becomes of them later, an image must not reach the model as a megabyte of base64, and a
//! file of four kilobytes that claims 100,000 x 100,000 pixels must be refused before anything
//! decodes it. So all checks need the header only, and no pixel is decoded or kept here.
//!
//! A request has images in three places, numbered from 1 in this order: the files of a multipart
//! form ([`multipart`]), the list `images`, and data URLs inside strings of the state
//! ([`found_after`]).
//! All of it is work of the processor on bodies of many megabytes: call it off the runtime's turn.

mod fault;
mod form;
mod header;
#[cfg(test)]
mod samples;
mod url;

use std::fmt::Write as _;

use crate::error::Step;
use crate::json::Json;

pub(crate) use fault::{BadImage, ImageFault};
pub(crate) use form::multipart;
pub(crate) use header::Image;

/// Most images of one request.
pub(crate) const IMAGES_MAX: usize = 2;

/// Longest file of an image, decoded from base64: 20 MiB.
pub(crate) const IMAGE_BYTES_MAX: usize = 20 << 20;

/// Most pixels of an image, as its header says.
pub(crate) const IMAGE_PIXELS_MAX: u64 = 20_000_000;

/// `given`, then the images of the list `explicit`, then those inside strings of `state`, in reading
/// order; each of the last is replaced by `[image N]`, N being its place in what is returned.
///
/// `explicit` is what the request has under `images`: data URLs with base64, `null` standing for
/// none. Inside the state, an image is `data:image/`, a type, `;base64,` and at least one character
/// of data, with any text around it, in a value at any depth; keys are left alone. A mention without
/// data stays text. Base64 is strict (RFC 4648, section 4): padded, without white space, `%` or the
/// URL-safe letters. What the file is, its first bytes say; the type in the URL is not looked at.
///
/// Takes time linear in the state, and no memory for strings without an image.
///
/// # Errors
/// The first fault found; the state may then have some of its images replaced.
pub(crate) fn found_after(
    given: Vec<Image>,
    state: &mut Json,
    explicit: Option<&Json>,
) -> Result<Vec<Image>, ImageFault> {
    let mut gathered = Gathered { images: given };
    match explicit {
        None | Some(Json::Null) => {}
        Some(Json::Array(urls)) => gathered.list(urls)?,
        Some(other) => return Err(ImageFault::NotAList { found: other.type_name() }),
    }
    gathered.value(state).map_err(|fault| fault.under("state".into()))?;
    Ok(gathered.images)
}

/// The images found so far.
#[derive(Default)]
struct Gathered {
    images: Vec<Image>,
}

impl Gathered {
    /// Takes what `read` gives and returns its number; `read` is not called when there are too many.
    fn add(&mut self, read: impl FnOnce() -> Result<Image, BadImage>) -> Result<usize, ImageFault> {
        if self.images.len() >= IMAGES_MAX {
            return Err(ImageFault::TooMany { count_max: IMAGES_MAX });
        }
        let number = self.images.len() + 1;
        let bad = |reason| ImageFault::Bad { number, path: Vec::new(), reason };
        self.images.push(read().map_err(bad)?);
        Ok(number)
    }

    fn list(&mut self, urls: &[Json]) -> Result<(), ImageFault> {
        for (index, url) in urls.iter().enumerate() {
            self.add(|| listed(url))
                .map_err(|fault| fault.under(index.into()).under("images".into()))?;
        }
        Ok(())
    }

    /// Recursion is safe: the depth of what was parsed is limited.
    fn value(&mut self, value: &mut Json) -> Result<(), ImageFault> {
        match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
            Json::String(text) => self.text(text)?,
            Json::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item).map_err(|fault| fault.under(index.into()))?;
                }
            }
            Json::Object(members) => {
                for (key, member) in members {
                    self.value(member).map_err(|fault| fault.under(Step::Key(key.clone())))?;
                }
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &mut String) -> Result<(), ImageFault> {
        let mut rest = String::new();
        let mut copied = 0;
        for image in url::within(text) {
            let number = self.add(|| url::image(image.data?))?;
            rest.push_str(&text[copied..image.place.start]);
            // Writing to a string cannot fail.
            let _ = write!(rest, "[image {number}]");
            copied = image.place.end;
        }
        if copied > 0 {
            rest.push_str(&text[copied..]);
            *text = rest;
        }
        Ok(())
    }
}

fn listed(url: &Json) -> Result<Image, BadImage> {
    let Some(url) = url.as_str() else {
        return Err(BadImage::NotAString { found: url.type_name() });
    };
    url::image(url::whole(url)?)
}

#[cfg(test)]
mod tests;
