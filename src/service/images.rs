//! Images beside a state: how many a model sees, and what it is given of each.
//!
//! No engine of today sees images; this is where one that does is told of them, so that what checks
//! and fetches them is written and tested before it.

use std::fmt;

use bytes::Bytes;

/// What of images the served model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// Most images of one request, at least 1; the server takes no more than
    /// [`IMAGES_MAX`](crate::http::IMAGES_MAX) in any case.
    pub count_max: usize,
}

/// A format of image files that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP, of all three kinds.
    WebP,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::WebP => "WebP",
        })
    }
}

/// What the header of an image file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageHeader {
    /// As the first bytes say, whatever the sender called it.
    pub format: Format,
    /// In pixels, as it is to be looked at: after `orientation`; at least 1.
    pub width: u32,
    /// Likewise.
    pub height: u32,
    /// How the stored pixels are to be turned: 1 to 8, as EXIF counts; 1 leaves them.
    pub orientation: u8,
    /// Length of the file.
    pub bytes: usize,
}

impl fmt::Display for ImageHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, width, height, bytes, .. } = self;
        write!(f, "a {format} of {width} x {height} pixels, {bytes} bytes")
    }
}

/// An image of a request: its header is checked, nothing of it is decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What its header says.
    pub header: ImageHeader,
    /// The whole file.
    pub file: Bytes,
    /// What the request calls it.
    pub name: Option<String>,
    /// What the request says of it.
    pub description: Option<String>,
}
