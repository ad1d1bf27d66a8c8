//! API keys: who a request comes from.
//!
//! Keys are kept and compared as SHA-256 hashes, all of them for each request and each in constant
//! time, so that the time of a refusal says nothing about a key.

use std::fmt;
use std::sync::Arc;

use actors::TenantId;
use axum::http::{HeaderMap, HeaderValue, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::config::keys::{TENANT_BYTES_MAX, TENANT_DEFAULT};

use super::headers::API_KEY;

/// Most keys of one server: each request is compared with all of them.
pub const KEYS_MAX: usize = 1_024;

/// The keys of a server; without any, everybody is the tenant `default`.
#[derive(Clone, Default)]
pub struct AuthConfig {
    keys: Vec<(TenantId, [u8; 32])>,
}

/// Why an `--api-key` cannot be used. The key itself is never shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApiKeyError {
    /// Nothing before or after the `=`.
    #[error("an API key is empty, expected [TENANT=]KEY")]
    Empty,
    /// A tenant's name that is not one.
    #[error("tenant {0:?} must be 1 to {TENANT_BYTES_MAX} letters, digits, `.`, `_` or `-`")]
    Tenant(String),
    /// One key for two tenants.
    #[error("tenants {0:?} and {1:?} have the same API key")]
    Shared(String, String),
    /// More than [`KEYS_MAX`].
    #[error("{0} API keys, at most {KEYS_MAX} are allowed")]
    TooMany(usize),
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuthConfig").field("keys", &self.keys.len()).finish()
    }
}

impl AuthConfig {
    /// Reads `[TENANT=]KEY` texts; a key that contains `=` must name its tenant.
    ///
    /// # Errors
    /// [`ApiKeyError`] for the first text that cannot be used.
    pub fn from_texts(texts: &[String]) -> Result<Self, ApiKeyError> {
        if texts.len() > KEYS_MAX {
            return Err(ApiKeyError::TooMany(texts.len()));
        }
        let mut config = Self::default();
        for text in texts {
            let (tenant, key) = text.split_once('=').unwrap_or((TENANT_DEFAULT, text));
            config.add(tenant, key)?;
        }
        Ok(config)
    }

    fn add(&mut self, tenant: &str, key: &str) -> Result<(), ApiKeyError> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if key.is_empty() || tenant.is_empty() {
            return Err(ApiKeyError::Empty);
        }
        if tenant.len() > TENANT_BYTES_MAX || !tenant.bytes().all(is_plain) {
            return Err(ApiKeyError::Tenant(tenant.to_owned()));
        }
        let hash: [u8; 32] = Sha256::digest(key).into();
        match self.keys.iter().find(|(_, known)| *known == hash) {
            Some((other, _)) if &*other.0 != tenant => {
                return Err(ApiKeyError::Shared(other.0.to_string(), tenant.to_owned()));
            }
            _ => self.keys.push((TenantId(Arc::from(tenant)), hash)),
        }
        Ok(())
    }

    /// Whether no key is needed.
    pub fn is_open(&self) -> bool {
        self.keys.is_empty()
    }

    /// The tenant of a request with these headers; `None` where its key is missing or unknown.
    pub(super) fn tenant(&self, headers: &HeaderMap) -> Option<TenantId> {
        if self.is_open() {
            return Some(TenantId(Arc::from(TENANT_DEFAULT)));
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        let api_key = headers.get(API_KEY).map(HeaderValue::as_bytes);
        bearer.into_iter().chain(api_key).find_map(|key| self.find(key))
    }

    fn find(&self, key: &[u8]) -> Option<TenantId> {
        let hash = Sha256::digest(key);
        let mut found = None;
        for (tenant, known) in &self.keys {
            if bool::from(known.as_slice().ct_eq(hash.as_slice())) {
                found = Some(tenant);
            }
        }
        found.cloned()
    }
}

/// The token of `Bearer TOKEN`; the scheme's case does not matter.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(texts: &[&str]) -> Result<AuthConfig, ApiKeyError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        AuthConfig::from_texts(&texts)
    }

    fn tenant(config: &AuthConfig, name: &'static str, value: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        config.tenant(&headers).map(|tenant| tenant.0.to_string())
    }

    #[test]
    fn a_key_belongs_to_its_tenant() {
        let config = config(&["secret", "acme=k1", "acme=k2", "b=k=3"]).unwrap();
        assert_eq!(tenant(&config, "authorization", "Bearer secret").as_deref(), Some("default"));
        assert_eq!(tenant(&config, "authorization", "bearer  k1").as_deref(), Some("acme"));
        assert_eq!(tenant(&config, "x-api-key", "k2").as_deref(), Some("acme"));
        assert_eq!(tenant(&config, "x-api-key", "k=3").as_deref(), Some("b"));
        for (name, value) in
            [("authorization", "Basic secret"), ("authorization", "secret"), ("x-api-key", "k")]
        {
            assert_eq!(tenant(&config, name, value), None);
        }
        assert_eq!(config.tenant(&HeaderMap::new()), None);
    }

    #[test]
    fn without_keys_everybody_is_the_default_tenant() {
        let config = AuthConfig::default();
        assert_eq!(tenant(&config, "x-api-key", "anything").as_deref(), Some("default"));
    }

    #[test]
    fn unusable_keys_are_refused_and_not_shown() {
        assert_eq!(config(&[""]).unwrap_err(), ApiKeyError::Empty);
        assert_eq!(config(&["a="]).unwrap_err(), ApiKeyError::Empty);
        assert_eq!(config(&["a b=k"]).unwrap_err(), ApiKeyError::Tenant("a b".to_owned()));
        let shared = config(&["a=hidden", "b=hidden"]).unwrap_err();
        assert!(!shared.to_string().contains("hidden"));
        let many = vec!["k"; KEYS_MAX + 1];
        assert_eq!(config(&many).unwrap_err(), ApiKeyError::TooMany(KEYS_MAX + 1));
        assert!(!format!("{:?}", config(&["hidden"]).unwrap()).contains("hidden"));
    }
}
