//! Faults of images and of the forms they come in, in words for whoever sent them.
//!
//! Every text names the image, its place and the limit. What was sent is repeated in part only, so
//! that no message grows with it.

use thiserror::Error;

use crate::dialect::ECHO_CHARS_MAX;
use crate::dialect::problem::{ImageRefusal, ImageRefusalKind};
use crate::error::Step;
use crate::service::images::Format;

use super::fetch::FetchFault;
use super::remote::UrlFault;

/// Why the images of a request were refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ImageFault {
    /// One image is not accepted.
    #[error("bad image: image {number} ({}) {reason}", place(.path))]
    Bad {
        /// Its number, from 1.
        number: usize,
        /// Where it is, from the body's root.
        path: Vec<Step>,
        /// What is wrong with it.
        reason: BadImage,
    },
    /// One image could not be had from where it is.
    #[error("bad image: image {number} ({}) of {origin} {reason}", place(.path))]
    Fetch {
        /// Its number, from 1.
        number: usize,
        /// Where its URL is, from the body's root.
        path: Vec<Step>,
        /// Scheme, host and port of its URL.
        origin: String,
        /// What went wrong.
        reason: FetchFault,
    },
    /// There are more than the limit.
    #[error("too many images: more than {count_max} in the request")]
    TooMany {
        /// The limit.
        count_max: usize,
    },
    /// `images` is something else.
    #[error("images must be a list of images, found {found}")]
    NotAList {
        /// Its JSON type.
        found: &'static str,
    },
    /// The form around them is not accepted.
    #[error("bad form: {0}")]
    Form(#[from] FormFault),
}

impl ImageFault {
    /// Where the fault is, from the body's root; empty where it has no place of its own.
    pub(crate) fn path(&self) -> &[Step] {
        match self {
            Self::Bad { path, .. } | Self::Fetch { path, .. } => path,
            Self::TooMany { .. } | Self::NotAList { .. } | Self::Form(_) => &[],
        }
    }

    /// The same for dialects.
    pub(crate) fn refusal(&self) -> ImageRefusal {
        let kind = match self {
            Self::Bad { reason, .. } | Self::Fetch { reason: FetchFault::Bad(reason), .. } => {
                reason.kind()
            }
            Self::Fetch { .. } => ImageRefusalKind::Fetch,
            Self::TooMany { .. } => ImageRefusalKind::Count,
            Self::NotAList { .. } | Self::Form(_) => ImageRefusalKind::Form,
        };
        ImageRefusal { kind, path: self.path().to_vec(), message: self.to_string() }
    }

    /// The same fault, found below `step`.
    pub(super) fn under(mut self, step: Step) -> Self {
        if let Self::Bad { path, .. } = &mut self {
            path.insert(0, step);
        }
        self
    }
}

/// `path` as `state.pages[3]`, cut.
fn place(path: &[Step]) -> String {
    let mut place = String::new();
    for step in path {
        match step {
            Step::Key(key) if place.is_empty() => place.extend(key.chars().take(ECHO_CHARS_MAX)),
            Step::Key(key) => place.extend(".".chars().chain(key.chars().take(ECHO_CHARS_MAX))),
            Step::Index(index) => place.extend(["[", &index.to_string(), "]"]),
        }
        if let Some((end, _)) = place.char_indices().nth(ECHO_CHARS_MAX) {
            place.replace_range(end.., "...");
            break;
        }
    }
    place
}

/// What is wrong with one image.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum BadImage {
    /// An element of `images` is no string.
    #[error("must be a data URL, found {found}")]
    NotAString {
        /// Its JSON type.
        found: &'static str,
    },
    /// The same where other forms are taken too.
    #[error("must be a URL or an object that has one, found {found}")]
    NotAUrlOrObject {
        /// Its JSON type.
        found: &'static str,
    },
    /// An object without a URL.
    #[error("has no url, which is required")]
    NoUrl,
    /// A member of an object that nobody knows, where that is a fault.
    #[error("has an unknown field {name:?}, expected url, name or description")]
    UnknownMember {
        /// Of the member, cut.
        name: String,
    },
    /// A member of an object is no string.
    #[error("has a {name} that is {found}, expected a string")]
    Member {
        /// Of the member.
        name: &'static str,
        /// Its JSON type.
        found: &'static str,
    },
    /// A URL that is not fetched.
    #[error("is {0}")]
    Url(#[from] UrlFault),
    /// A string that is another URL, or none.
    #[error("must be a URL data:image/TYPE;base64,DATA, found one that begins with {start:?}")]
    NotDataUrl {
        /// How it begins.
        start: String,
    },
    /// A data URL whose data are percent-encoded.
    #[error("is a data URL without base64, expected data:image/TYPE;base64,DATA")]
    NotBase64,
    /// The data are damaged.
    #[error("is not valid base64: {what}")]
    Damaged {
        /// Which rule is broken, and where.
        what: String,
    },
    /// A text field of a form where a file should be.
    #[error("is a text field, expected a file (with a filename)")]
    NotAFile,
    /// There is nothing in it.
    #[error("is empty")]
    Empty,
    /// The file is longer than the limit.
    #[error("is {bytes} bytes, at most {bytes_max} are accepted")]
    TooLarge {
        /// Of the file, decoded from base64.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Another kind of file.
    #[error("is not a PNG, JPEG or WebP file, its first bytes are {start}")]
    UnknownFormat {
        /// Hexadecimal.
        start: String,
    },
    /// A file that was called something else.
    #[error("is declared as {declared}, but its first bytes are those of a {format} file")]
    OtherType {
        /// The media type, cut.
        declared: String,
        /// As its first bytes say.
        format: Format,
    },
    /// The header is cut off or contradicts itself.
    #[error("is a {format} file whose header gives no width and height")]
    NoSize {
        /// As its first bytes say.
        format: Format,
    },
    /// The header announces more than the limit.
    #[error("is {width} x {height} pixels, at most {pixels_max} in all are accepted")]
    TooManyPixels {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
        /// The limit.
        pixels_max: u64,
    },
    /// One side is longer than the limit.
    #[error("is {width} x {height} pixels, at most {side_max} on a side are accepted")]
    TooLong {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
        /// The limit.
        side_max: u32,
    },
}

impl BadImage {
    fn kind(&self) -> ImageRefusalKind {
        match self {
            Self::NotAString { .. }
            | Self::NotAUrlOrObject { .. }
            | Self::NoUrl
            | Self::UnknownMember { .. }
            | Self::Member { .. }
            | Self::NotAFile => ImageRefusalKind::Form,
            Self::TooLarge { .. } | Self::TooManyPixels { .. } | Self::TooLong { .. } => {
                ImageRefusalKind::TooLarge
            }
            Self::Url(_)
            | Self::NotDataUrl { .. }
            | Self::NotBase64
            | Self::Damaged { .. }
            | Self::Empty
            | Self::UnknownFormat { .. }
            | Self::OtherType { .. }
            | Self::NoSize { .. } => ImageRefusalKind::Unsupported,
        }
    }
}

/// What is wrong with a multipart form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum FormFault {
    /// Another type, or one without a usable boundary.
    #[error(
        "content type {found} is not multipart/form-data with a boundary of 1 to {chars_max} \
         characters"
    )]
    NoBoundary {
        /// As sent, cut.
        found: String,
        /// The limit.
        chars_max: usize,
    },
    /// The parts cannot be told apart.
    #[error("part {part} is broken or the closing boundary is missing")]
    Broken {
        /// The part, from 1.
        part: usize,
    },
    /// There are more parts than the limit.
    #[error("more than {count_max} parts")]
    TooManyParts {
        /// The limit.
        count_max: usize,
    },
    /// The headers of a part are longer than the limit.
    #[error("the headers of part {part} are longer than {bytes_max} bytes")]
    HeadTooLarge {
        /// The part, from 1.
        part: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// There is no field `request`.
    #[error("the field request is missing, expected the JSON body there")]
    NoRequest,
    /// There are several.
    #[error("part {part} is a second field request")]
    SecondRequest {
        /// The part, from 1.
        part: usize,
    },
}
