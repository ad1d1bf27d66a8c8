//! Images that were refused, told apart as dialects tell them.

use thiserror::Error;

use super::{Refusal, internal, invalid, usage};
use crate::error::{Problem, Step};

/// Why the images of a request were refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ImageRefusal {
    /// Which kind of reason.
    pub kind: ImageRefusalKind,
    /// Where in the body, from its root; empty where it has no place.
    pub path: Vec<Step>,
    /// What is wrong, with the image and the limit; nothing of a URL but scheme, host and port.
    pub message: String,
}

/// Kinds of reasons for which images are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRefusalKind {
    /// `images`, an element of it or the form around it is not what it must be.
    Form,
    /// A URL that is not taken, or a file that is no image or another than declared.
    Unsupported,
    /// More bytes or pixels than the limit.
    TooLarge,
    /// More images than the limit.
    Count,
    /// The served model sees none.
    Capability,
    /// An image could not be fetched.
    Fetch,
}

impl ImageRefusal {
    /// The fault of the body that it is.
    pub(super) fn problem(&self) -> Problem {
        Problem::new(self.path.clone(), "image_invalid", self.message.clone())
    }
}

/// In the `systemone` shape.
pub(super) fn of_images(refusal: &ImageRefusal) -> Refusal {
    match refusal.kind {
        ImageRefusalKind::Form
        | ImageRefusalKind::Unsupported
        | ImageRefusalKind::TooLarge
        | ImageRefusalKind::Count => invalid(&[refusal.problem()]),
        ImageRefusalKind::Capability => usage(400, "unsupported", &refusal.message),
        ImageRefusalKind::Fetch => internal(502, "image_fetch_failed", &refusal.message),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fault, FullStatus, decisio, systemone};
    use super::*;

    #[test]
    fn every_kind_has_its_status_in_both_shapes() {
        let of = |kind| {
            let message = "image 1 (images[0]) is bad".to_owned();
            let path = vec!["images".into(), 0.into()];
            let fault = Fault::Image(ImageRefusal { kind, path, message });
            [systemone(&fault, FullStatus::default()), decisio(&fault, FullStatus::default())]
        };
        for (kind, status, reason) in [
            (ImageRefusalKind::Form, 422, "invalid"),
            (ImageRefusalKind::Unsupported, 422, "invalid"),
            (ImageRefusalKind::TooLarge, 422, "invalid"),
            (ImageRefusalKind::Count, 422, "invalid"),
            (ImageRefusalKind::Capability, 400, "unsupported"),
            (ImageRefusalKind::Fetch, 502, "image_fetch_failed"),
        ] {
            for refusal in of(kind) {
                assert_eq!((refusal.status, refusal.reason), (status, reason), "{kind:?}");
                assert!(refusal.body.contains("image 1 (images[0]) is bad"), "{refusal:?}");
            }
        }
        let [ours, theirs] = of(ImageRefusalKind::Unsupported);
        assert!(ours.body.contains(r#""loc":["body","images",0]"#), "{ours:?}");
        assert_eq!(theirs.body, r#"{"detail":"image 1 (images[0]) is bad (at \"images\".0)"}"#);
    }
}
