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
//! Images that are somewhere else are fetched afterwards ([`Fetcher`]), once nothing can be refused
//! without that, and only for a model that sees images.

mod address;
mod fault;
mod fetch;
mod form;
mod header;
mod orientation;
mod remote;
mod resolver;
#[cfg(test)]
mod samples;
mod seen;
mod url;

use std::fmt::{self, Write as _};

use crate::dialect::ECHO_CHARS_MAX;
use crate::dialect::images::{ImageForms, ImageRules};
use crate::error::Step;
use crate::json::Json;
use crate::service::images::Image;

pub(crate) use fault::{BadImage, ImageFault};
pub(crate) use fetch::Fetcher;
pub use fetch::{IMAGE_FETCH_TIMEOUT, IMAGE_FETCHES_MAX, ImageFetching};
pub(crate) use form::multipart;
pub(crate) use remote::Remote;

/// Most images of one request.
pub const IMAGES_MAX: usize = 2;

/// Longest file of an image, decoded from base64: 20 MiB.
pub(crate) const IMAGE_BYTES_MAX: usize = 20 << 20;

/// Most names of unknown members that are noted.
const IGNORED_MAX: usize = 16;

/// On what terms images are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The dialect's.
    pub(crate) rules: ImageRules,
    /// The server's.
    pub(crate) fetching: ImageFetching,
    /// Most images of the request.
    pub(crate) count_max: usize,
}

/// An image of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The request has it.
    Here(Image),
    /// The request says where it is: element so much of `images`.
    There(usize, Remote),
}

/// `given`, then the images of the list `explicit`, then those inside strings of `state`, in reading
/// order; each of the last is replaced by `[image N]`, N being its place in what is returned.
///
/// `explicit` is what the request has under `images`: data URLs with base64, and where the dialect
/// takes them, URLs to be fetched and objects `{"url", "name", "description"}`; `null` stands for none.
/// Members of such an object that have another name are listed beside the images. Inside the state, an
/// image is `data:image/`, a type, `;base64,` and at least one character of data, with any text around
/// it, in a value at any depth; keys are left alone. A mention without data stays text. Base64 is strict
/// (RFC 4648, section 4, or 5 where the dialect takes that): padded, without white space or `%`. What
/// the file is, its first bytes say.
///
/// Takes time linear in the state, and no memory for strings without an image.
///
/// # Errors
/// The first fault found; the state may then have some of its images replaced.
pub(crate) fn found_after(
    given: Vec<Found>,
    state: &mut Json,
    explicit: Option<&Json>,
    terms: Terms,
) -> Result<(Vec<Found>, Vec<String>), ImageFault> {
    let mut gathered = Gathered::after(given, terms);
    match explicit {
        None | Some(Json::Null) => {}
        Some(Json::Array(urls)) => gathered.list(urls)?,
        Some(other) => return Err(ImageFault::NotAList { found: other.type_name() }),
    }
    if terms.rules.in_state {
        gathered.value(state).map_err(|fault| fault.under("state".into()))?;
    }
    Ok((gathered.images, gathered.ignored))
}

/// The images found so far.
struct Gathered {
    images: Vec<Found>,
    ignored: Vec<String>,
    terms: Terms,
}

impl Gathered {
    fn after(images: Vec<Found>, terms: Terms) -> Self {
        Self { images, ignored: Vec::new(), terms }
    }

    /// Takes what `read` gives and returns its number; `read` is not called when there are too many.
    fn add(&mut self, read: impl FnOnce() -> Result<Found, BadImage>) -> Result<usize, ImageFault> {
        let count_max = self.terms.count_max;
        if self.images.len() >= count_max {
            return Err(ImageFault::TooMany { count_max });
        }
        let number = self.images.len() + 1;
        let bad = |reason| ImageFault::Bad { number, path: Vec::new(), reason };
        self.images.push(read().map_err(bad)?);
        Ok(number)
    }

    fn list(&mut self, urls: &[Json]) -> Result<(), ImageFault> {
        for (index, url) in urls.iter().enumerate() {
            let terms = self.terms;
            self.add(|| listed(index, url, terms))
                .map_err(|fault| fault.under(index.into()).under("images".into()))?;
            self.note(index, url);
        }
        Ok(())
    }

    /// Notes members of an element that nobody knows.
    fn note(&mut self, index: usize, element: &Json) {
        let Json::Object(members) = element else { return };
        for (name, _) in members {
            if !MEMBERS.contains(&name.as_str()) && self.ignored.len() < IGNORED_MAX {
                self.ignored.push(format!("images.{index}.{name}"));
            }
        }
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
            let rules = self.terms.rules;
            let number = self.add(|| Ok(Found::Here(url::image(image.data?, rules)?)))?;
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

/// Members of an element that is an object.
const MEMBERS: [&str; 3] = ["url", "name", "description"];

/// Element `index` of the list.
fn listed(index: usize, element: &Json, terms: Terms) -> Result<Found, BadImage> {
    let found = element.type_name();
    match (element, terms.rules.forms) {
        (Json::String(url), ImageForms::DataUrls) => {
            Ok(Found::Here(url::image(url::whole(url)?, terms.rules)?))
        }
        (Json::String(url), ImageForms::All) => source(index, url, terms),
        (Json::Object(members), ImageForms::All) => {
            let unknown = members.iter().find(|(name, _)| !MEMBERS.contains(&name.as_str()));
            if let Some((name, _)) = unknown.filter(|_| terms.rules.is_strict) {
                return Err(BadImage::UnknownMember {
                    name: name.chars().take(ECHO_CHARS_MAX).collect(),
                });
            }
            let url = member(element, "url")?.ok_or(BadImage::NoUrl)?;
            let called = [member(element, "name")?, member(element, "description")?];
            Ok(source(index, url, terms)?.called(called.map(|text| text.map(str::to_owned))))
        }
        (_, ImageForms::DataUrls) => Err(BadImage::NotAString { found }),
        (_, ImageForms::All) => Err(BadImage::NotAUrlOrObject { found }),
    }
}

/// A member of an object, which may be absent or null.
fn member<'a>(element: &'a Json, name: &'static str) -> Result<Option<&'a str>, BadImage> {
    match element.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(other) => Err(BadImage::Member { name, found: other.type_name() }),
    }
}

/// What a URL of either kind stands for.
fn source(index: usize, url: &str, terms: Terms) -> Result<Found, BadImage> {
    if url::is_data_url(url) {
        return Ok(Found::Here(url::image(url::whole(url)?, terms.rules)?));
    }
    let url = remote::parse(url, terms.fetching)?;
    Ok(Found::There(index, Remote { url, name: None, description: None }))
}

impl Found {
    fn called(mut self, [called, told]: [Option<String>; 2]) -> Self {
        let (name, description) = match &mut self {
            Self::Here(image) => (&mut image.name, &mut image.description),
            Self::There(_, remote) => (&mut remote.name, &mut remote.description),
        };
        (*name, *description) = (called, told);
        self
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(image) => fmt::Display::fmt(&image.header, f),
            Self::There(_, remote) => write!(f, "one of {}", remote::origin(&remote.url)),
        }
    }
}

#[cfg(test)]
mod tests;
