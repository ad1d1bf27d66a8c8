//! Keys of states: by what a router sends requests on one state to one server.
//!
//! A key is an HMAC, so that it tells nothing of the text and cannot be guessed from it; and it is a hint:
//! a request with a wrong one is answered like any other, by a server that may not hold its state. Two
//! kinds are in use, of the same form. A server's own is made from what a state was tokenised for: its
//! text as the model reads it, under its tenant's salt. A gateway, which has neither tenant nor layout,
//! makes one from the state as it was sent and the key it came with. Whoever makes keys that another
//! process shall make too is given the same secret.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use thiserror::Error;

/// The header that has a state's key, in answers and in requests.
pub const HEADER: &str = "x-docket-state-key";

/// Digits of a key.
pub const DIGITS: usize = 16;

/// Least bytes of a secret in a file.
const SECRET_BYTES_MIN: usize = 16;

/// Most bytes of the file.
const SECRET_BYTES_MAX: u64 = 4 << 10;

/// The key of a state: 64 bits, written as 16 digits in lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey(pub u64);

/// What is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be {digits} digits in lower-case hex", digits = DIGITS)]
pub struct NoStateKey;

impl fmt::Display for StateKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for StateKey {
    type Err = NoStateKey;

    fn from_str(text: &str) -> Result<Self, NoStateKey> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != DIGITS || !text.bytes().all(is_digit) {
            return Err(NoStateKey);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| NoStateKey)
    }
}

/// Why a file has no secret.
#[derive(Debug, Error)]
pub enum SecretError {
    /// It cannot be read, or the system gives no random numbers.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is too short to be one, or too long.
    #[error(
        "it has {bytes} bytes; a secret has {least} to {most}",
        least = SECRET_BYTES_MIN,
        most = SECRET_BYTES_MAX
    )]
    Length {
        /// What it has, line breaks at the end not counted.
        bytes: usize,
    },
}

/// What keys of states, and the salts of tenants that are in them, are made with.
///
/// Each use has a secret of its own, drawn from the one that an operator gives: a key that is known
/// tells nothing of a salt.
#[derive(Clone)]
pub struct Secret {
    salts: [u8; 32],
    keys: [u8; 32],
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

impl Secret {
    /// From bytes that nobody else knows.
    pub fn of(bytes: &[u8]) -> Self {
        Self { salts: mac(bytes, &[b"docket salts"]), keys: mac(bytes, &[b"docket state keys"]) }
    }

    /// That of a file, or a random one where no file is named: its keys end with the process.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn load(path: Option<&Path>) -> Result<Self, SecretError> {
        let Some(path) = path else {
            let mut bytes = [0_u8; 32];
            getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
            return Ok(Self::of(&bytes));
        };
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(SECRET_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let end = bytes.iter().rposition(|byte| !is_break(byte)).map_or(0, |last| last + 1);
        let secret = &bytes[..end];
        if secret.len() < SECRET_BYTES_MIN || secret.len() as u64 > SECRET_BYTES_MAX {
            return Err(SecretError::Length { bytes: secret.len() });
        }
        Ok(Self::of(secret))
    }

    /// What tenants' salts are keyed with.
    pub fn salts(&self) -> &[u8; 32] {
        &self.salts
    }

    /// The key of what `parts` are, in this order; none can be shifted into its neighbour.
    pub fn key(&self, parts: &[&[u8]]) -> StateKey {
        let mac = mac(&self.keys, parts);
        let mut first = [0_u8; 8];
        first.copy_from_slice(&mac[..8]);
        StateKey(u64::from_be_bytes(first))
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key length");
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written_and_nothing_else_is_one() {
        for key in [StateKey(0), StateKey(0x00ab_cdef), StateKey(u64::MAX)] {
            assert_eq!(key.to_string().len(), DIGITS);
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for text in ["", "0", "00000000000000000", "00000000000ABCDE", "+000000000000001", "é"] {
            assert_eq!(text.parse::<StateKey>(), Err(NoStateKey), "{text}");
        }
    }

    #[test]
    fn a_key_depends_on_secret_and_on_each_part() {
        let (one, other) = (Secret::of(b"one secret"), Secret::of(b"another secret"));
        let key = one.key(&[b"salt", b"state"]);
        assert_eq!(key, Secret::of(b"one secret").key(&[b"salt", b"state"]), "stable");
        for different in [
            other.key(&[b"salt", b"state"]),
            one.key(&[b"tlas", b"state"]),
            one.key(&[b"salt", b"State"]),
            one.key(&[b"salts", b"tate"]),
            one.key(&[b"saltstate"]),
        ] {
            assert_ne!(key, different);
        }
    }

    #[test]
    fn salts_and_keys_have_secrets_of_their_own() {
        let secret = Secret::of(b"one secret");
        assert_ne!(secret.salts, secret.keys);
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn a_file_has_one_secret_whatever_line_break_ends_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("secret");
        let load = |text: &str| {
            fs::write(&path, text).unwrap();
            Secret::load(Some(&path)).map(|secret| secret.key(&[b"x"]))
        };
        let text = "0123456789abcdef";
        let key = load(text).unwrap();
        assert_eq!(load("0123456789abcdef\r\n\n").unwrap(), key);
        assert_eq!(key, Secret::of(text.as_bytes()).key(&[b"x"]));
        assert_ne!(load(" 0123456789abcdef").unwrap(), key);
        for text in ["", "\n", "0123456789abcde\n", &"x".repeat(5_000)] {
            assert!(matches!(load(text), Err(SecretError::Length { .. })), "{}", text.len());
        }
        let absent = Secret::load(Some(&folder.path().join("absent")));
        assert!(matches!(absent, Err(SecretError::Io(_))));
        let drawn = [Secret::load(None), Secret::load(None)].map(|drawn| drawn.unwrap());
        assert_ne!(drawn[0].key(&[b"x"]), drawn[1].key(&[b"x"]), "random");
    }
}
