//! API keys as they are configured: whose they are, and never shown.

use std::fmt;

use sha2::{Digest, Sha256};

/// The tenant of keys that name none.
pub const TENANT_DEFAULT: &str = "default";

/// Longest tenant name in bytes.
pub const TENANT_BYTES_MAX: usize = 64;

/// Longest key in bytes.
pub const KEY_BYTES_MAX: usize = 256;

/// A tenant as logs and traces show it: 8 hexadecimal digits of the SHA-256 of its name, `PARENT/SUB`
/// for a sub-tenant. The same in every process, so that it can be looked up; whoever guesses a name
/// can check the guess by it.
pub fn tenant_hash(name: &str) -> String {
    let hash = Sha256::new().chain_update(b"docket tenant\0").chain_update(name).finalize();
    let [a, b, c, d, ..] = <[u8; 32]>::from(hash);
    format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
}

/// A key and its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Whom requests with this key are counted for.
    pub tenant: String,
    /// The key.
    pub secret: Secret,
}

/// A text that no log and no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A text that is not to be shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, to compare with.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl ApiKey {
    /// Understands `[TENANT=]KEY`.
    ///
    /// What stands before the first `=` is the tenant where it has only what names have (letters,
    /// digits, `.`, `_`, `-`). Then a key must follow: in `acme=$SECRET` with an empty `SECRET`, or in
    /// a bare key that ends in `=`, the name would else become a key that nobody chose. Any other
    /// text is a key as it is.
    ///
    /// # Errors
    /// What is wrong with it; the key is not repeated.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (tenant, key) = match text.split_once('=') {
            Some((tenant, key)) if tenant.chars().all(is_of_a_name) => (tenant, key),
            _ => (TENANT_DEFAULT, text),
        };
        if text.is_empty() || tenant.is_empty() {
            let what = if text.is_empty() { "a key" } else { "the tenant before the `=`" };
            return Err(format!("{what} must not be empty, expected [TENANT=]KEY"));
        }
        if key.chars().all(|c| c == '=') {
            return Err("no key follows `TENANT=`; for a key that itself ends in `=` write \
                        `default=KEY`"
                .to_owned());
        }
        if tenant.len() > TENANT_BYTES_MAX {
            return Err(format!(
                "the tenant before the `=` has {} bytes, at most {TENANT_BYTES_MAX} are allowed; \
                 for a key that itself contains `=` write `default=KEY`",
                tenant.len()
            ));
        }
        if key.len() > KEY_BYTES_MAX {
            let length = key.len();
            return Err(format!("a key of {length} bytes, at most {KEY_BYTES_MAX} are allowed"));
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a key has visible ASCII characters only".to_owned());
        }
        Ok(Self { tenant: tenant.to_owned(), secret: Secret(key.to_owned()) })
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String) {
        let key = ApiKey::parse(text).unwrap();
        (key.tenant, key.secret.reveal().to_owned())
    }

    #[test]
    fn a_tenants_hash_is_the_same_everywhere_and_not_its_name() {
        assert_eq!(tenant_hash("acme"), "c0a41909");
        assert_ne!(tenant_hash("acme"), tenant_hash("acme/eve"));
    }

    #[test]
    fn a_key_may_name_its_tenant() {
        assert_eq!(parts("acme=s3cret"), ("acme".into(), "s3cret".into()));
        assert_eq!(parts("s3cret"), ("default".into(), "s3cret".into()));
        assert_eq!(parts("c2Vj+mV0=="), ("default".into(), "c2Vj+mV0==".into()));
        assert_eq!(parts("default=c2VjcmV0=="), ("default".into(), "c2VjcmV0==".into()));
        assert_eq!(parts("acme=a=b="), ("acme".into(), "a=b=".into()));
        assert_eq!(parts("acme==k"), ("acme".into(), "=k".into()));
        assert_eq!(parts("a/b=c"), ("default".into(), "a/b=c".into()));
    }

    #[test]
    fn a_name_without_a_key_is_no_key() {
        for text in ["acme=", "a=", "acme==", "acme===", "c2VjcmV0==", "default="] {
            let message = ApiKey::parse(text).unwrap_err();
            assert!(
                message.contains("write `default=KEY`") && !message.contains("c2Vj"),
                "{message}"
            );
        }
        for text in ["=", "=s3cret", "==", "==s3cret"] {
            let message = ApiKey::parse(text).unwrap_err();
            assert!(message.contains("not be empty") && !message.contains("s3cret"), "{message}");
        }
        let long = format!("{}=k", "t".repeat(TENANT_BYTES_MAX + 1));
        let message = ApiKey::parse(&long).unwrap_err();
        assert!(message.contains("65 bytes") && !message.contains("ttt"), "{message}");
        assert!(ApiKey::parse(&long[1..]).is_ok());
    }

    #[test]
    fn a_bad_key_is_refused_and_no_key_is_shown() {
        for text in ["", "acme=two words", "tenant=schlüssel"] {
            let message = ApiKey::parse(text).unwrap_err();
            assert!(text.is_empty() || !message.contains(text), "{message}");
        }
        assert!(ApiKey::parse(&"x".repeat(257)).is_err());
        let key = ApiKey::parse("acme=s3cret").unwrap();
        assert!(!format!("{key:?}").contains("s3cret"));
    }
}
