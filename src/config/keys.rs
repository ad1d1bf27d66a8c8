//! API keys as they are configured: whose they are, and never shown.

use std::fmt;

/// The tenant of keys that name none.
pub const TENANT_DEFAULT: &str = "default";

/// Longest tenant name and longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

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
    /// What stands before the first `=` is the tenant if it looks like one (letters, digits, `.`,
    /// `_`, `-`) and something other than `=` follows, so that a bare key may end in `=`.
    ///
    /// # Errors
    /// What is wrong with it; the key is not repeated.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (tenant, key) = match text.split_once('=') {
            Some((tenant, key)) if is_tenant(tenant) && key.chars().any(|c| c != '=') => {
                (tenant, key)
            }
            _ => (TENANT_DEFAULT, text),
        };
        if key.is_empty() {
            return Err("a key must not be empty".to_owned());
        }
        if key.len() > KEY_BYTES_MAX || tenant.len() > KEY_BYTES_MAX {
            return Err(format!("a key and a tenant have at most {KEY_BYTES_MAX} bytes each"));
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a key has visible ASCII characters only".to_owned());
        }
        Ok(Self { tenant: tenant.to_owned(), secret: Secret(key.to_owned()) })
    }
}

fn is_tenant(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !text.is_empty() && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String) {
        let key = ApiKey::parse(text).unwrap();
        (key.tenant, key.secret.reveal().to_owned())
    }

    #[test]
    fn a_key_may_name_its_tenant() {
        assert_eq!(parts("acme=s3cret"), ("acme".into(), "s3cret".into()));
        assert_eq!(parts("s3cret"), ("default".into(), "s3cret".into()));
        assert_eq!(parts("c2VjcmV0=="), ("default".into(), "c2VjcmV0==".into()));
        assert_eq!(parts("acme=a=b="), ("acme".into(), "a=b=".into()));
        assert_eq!(parts("a/b=c"), ("default".into(), "a/b=c".into()));
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
