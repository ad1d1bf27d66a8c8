//! What a prompt says ahead of its question: the state, and what stands before it.

use std::borrow::Cow;

use actors::Prefix;
use sha2::{Digest as _, Sha256};

use super::state;
use super::tokenised::StateId;
use crate::json::Json;

/// What a prompt says ahead of its question.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Context ahead of the state, where there is some; part of the state's segment.
    pub context: Option<String>,
    /// The state.
    pub state: Json,
    /// SHA-256 of the files of its images, in the order in which they stand in it: no key of a state is
    /// that of the same text with other images. Empty for all that docket's engines read today.
    pub images: Vec<[u8; 32]>,
}

impl Told {
    /// A state without context.
    pub fn of(state: Json) -> Self {
        Self { context: None, state, images: Vec::new() }
    }

    /// A tenant's salt, with the images hashed in where there are some.
    pub(super) fn salted<'s>(&self, salt: &'s [u8]) -> Cow<'s, [u8]> {
        if self.images.is_empty() {
            return Cow::Borrowed(salt);
        }
        let mut hash = Sha256::new();
        hash.update((salt.len() as u64).to_le_bytes());
        hash.update(salt);
        for image in &self.images {
            hash.update(image);
        }
        Cow::Owned(hash.finalize().to_vec())
    }

    /// Most bytes of its text; of a string exactly its bytes.
    pub fn bytes(&self) -> usize {
        state::state_bytes(&self.state) + self.context.as_ref().map_or(0, |text| text.len() + 2)
    }
}

/// A state's prefix, ready for reads.
#[derive(Debug, Clone)]
pub struct StatePrefix {
    /// Head and state.
    pub prefix: Prefix,
    /// Which text under which salt it is, whatever model and layout read it.
    pub id: StateId,
    /// Tokens of the state's text alone, for usage.
    pub state_tokens: u32,
    /// Whether the state was tokenised for this call, and not found tokenised.
    pub tokenised: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_with_other_images_has_another_key() {
        let told = |images: &[u8]| Told {
            images: images.iter().map(|image| [*image; 32]).collect(),
            ..Told::of(Json::Null)
        };
        assert_eq!(&*told(&[]).salted(b"salt"), b"salt");
        let all = [&[1][..], &[2], &[1, 2], &[2, 1], &[1, 1]]
            .map(|images| told(images).salted(b"salt").into_owned());
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one) && **one != *b"salt");
            assert_ne!(*one, told(&[1]).salted(b"other").into_owned());
        }
    }
}
