//! A key: its text, which is shown once, and the hash and id that stay.
//!
//! The text is `dk_`, the id, `_` and 43 characters of base64url: 256 random bits, so that a plain
//! hash of it is enough; nobody can try them all.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Digits of an id.
const ID_DIGITS: usize = 8;

/// Bytes of randomness in a key.
const RANDOM_BYTES: usize = 32;

/// Longest note in characters.
pub(super) const NOTE_CHARS_MAX: usize = 200;

/// What every key begins with, so that scanners of leaked secrets can know one.
const PREFIX: &str = "dk_";

/// What a hash begins with in the file.
const HASH_PREFIX: &str = "sha256:";

/// How often an id is drawn until it is a new one; each draw of a full file hits a known one once in
/// 65,000 times.
const DRAWS_MAX: usize = 64;

/// A key of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// By which it is named in lists, logs and when it is revoked.
    pub id: KeyId,
    /// Of its text.
    pub(super) hash: KeyHash,
    /// When it was made; `None` for one of the command line.
    pub created: Option<SystemTime>,
    /// From when on it is unknown; never without.
    pub expires: Option<SystemTime>,
    /// What it is for; at most 200 characters.
    pub note: Option<String>,
}

/// Name of a key: 8 lower-case hexadecimal digits; `flag-1`, `flag-2` and so on for those of
/// `--api-key`. No secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// Reads an id as the file has it.
    ///
    /// # Errors
    /// What an id is. The text is not repeated: it may be a whole key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == ID_DIGITS && text.bytes().all(is_digit) {
            return Ok(Self(Arc::from(text)));
        }
        let length = text.chars().count();
        Err(format!(
            "an id is the {ID_DIGITS} lower-case hexadecimal digits after `{PREFIX}`, this has \
             {length} characters or others"
        ))
    }

    pub(super) fn of_flag(place: usize) -> Self {
        Self(Arc::from(format!("flag-{place}")))
    }

    /// The text of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// SHA-256 of a whole key. Compared in constant time.
#[derive(Clone, Copy)]
pub(super) struct KeyHash([u8; 32]);

impl KeyHash {
    pub(super) fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// Its first bytes: where the keyring looks for it.
    pub(super) fn head(&self) -> u64 {
        self.0.iter().take(8).fold(0, |head, byte| head << 8 | u64::from(*byte))
    }

    /// Reads `sha256:` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// What a hash is; the text is not repeated.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let hash = text.strip_prefix(HASH_PREFIX).and_then(bytes_of_hex).map(Self);
        let hash = hash.ok_or_else(|| {
            format!("a hash is `{HASH_PREFIX}` and 64 lower-case hexadecimal digits; this is not")
        })?;
        if hash == Self::of(b"") {
            return Err("this is the hash of an empty text, which is no key".to_owned());
        }
        Ok(hash)
    }

    pub(super) fn written(&self) -> String {
        let digits =
            |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from(HEX[digit as usize]));
        HASH_PREFIX.chars().chain(self.0.iter().flat_map(digits)).collect()
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn bytes_of_hex(text: &str) -> Option<[u8; 32]> {
    let value = |digit: u8| HEX.iter().position(|known| *known == digit);
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let both = value(digits[0])? << 4 | value(digits[1])?;
        *byte = u8::try_from(both).ok()?;
    }
    Some(bytes)
}

impl PartialEq for KeyHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for KeyHash {}

impl fmt::Debug for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyHash(..)")
    }
}

/// A new key, to be shown once. No log and no message shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl KeyText {
    /// Draws a key whose id is not taken.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub(super) fn draw(is_taken: impl Fn(&KeyId) -> bool) -> Result<(KeyId, Self), String> {
        let fill = |bytes: &mut [u8]| {
            getrandom::fill(bytes)
                .map_err(|error| format!("the system gives no random bytes: {error}"))
        };
        for _ in 0..DRAWS_MAX {
            let (mut id, mut secret) = ([0; ID_DIGITS / 2], [0; RANDOM_BYTES]);
            fill(&mut id)?;
            fill(&mut secret)?;
            let id = KeyId(Arc::from(format!("{:08x}", u32::from_be_bytes(id))));
            if !is_taken(&id) {
                let text = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
                return Ok((id, Self(text)));
            }
        }
        Err(format!("{DRAWS_MAX} random ids were all taken"))
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyText(..)")
    }
}

/// Whether a key, or the beginning of one that has some of its secret, is in a text.
pub(super) fn holds_key(text: &str) -> bool {
    let is_key = |(at, _): (usize, &str)| {
        let rest = &text.as_bytes()[at + PREFIX.len()..];
        let (id, after) = rest.split_at_checked(ID_DIGITS).unwrap_or_default();
        id.iter().all(u8::is_ascii_hexdigit) && after.first() == Some(&b'_')
    };
    text.match_indices(PREFIX).any(is_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_id_and_256_random_bits() {
        let (id, key) = KeyText::draw(|_| false).unwrap();
        let (_, other) = KeyText::draw(|_| false).unwrap();
        let secret = key.reveal().strip_prefix(&format!("dk_{id}_")).unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(secret).unwrap().len(), 32);
        assert_eq!(secret.len(), 43);
        assert_eq!(KeyId::parse(id.as_str()), Ok(id));
        assert!(key != other, "random");
        assert!(!format!("{key:?}").contains(secret));
    }

    #[test]
    fn an_id_that_is_taken_is_not_given_again() {
        let drawn = std::cell::Cell::new(0);
        let taken = |_: &KeyId| drawn.replace(drawn.get() + 1) < 2;
        assert!(KeyText::draw(taken).is_ok());
        assert_eq!(drawn.get(), 3);
        assert!(KeyText::draw(|_| true).is_err(), "and the search ends");
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = KeyHash::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.written(), text);
        assert_eq!(KeyHash::parse(text), Ok(hash));
        assert_eq!(hash.head(), 0xba78_16bf_8f01_cfea);
        assert!(!format!("{hash:?}").contains("ba78"));
        let upper = text.to_uppercase();
        for text in ["", "sha256:", &text[7..], &text[..70], &upper, "sha256:zz", "md5:00"] {
            assert!(KeyHash::parse(text).is_err(), "{text}");
        }
        assert!(KeyHash::parse(&KeyHash::of(b"").written()).unwrap_err().contains("empty"));
    }

    #[test]
    fn a_text_with_a_key_in_it_is_known() {
        for text in ["dk_3f9c2a1b_x", "a dk_3F9C2A1B_abc", "dk_dk_00000000_"] {
            assert!(holds_key(text), "{text}");
        }
        for text in ["", "dk_", "dk_3f9c2a1b", "dk_department-of-statistics", "dk_3f9c2a1é_"] {
            assert!(!holds_key(text), "{text}");
        }
    }
}
