//! What a request wants to know of usage: the parameters behind the `?`.

use super::{DAYS_DEFAULT, DAYS_MAX};
use crate::config::keys::TENANT_BYTES_MAX;

/// What `GET /v1/usage` is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// How many days are shown, today among them; 0 to [`DAYS_MAX`].
    pub days: u32,
    /// Whose usage; the caller's own where nobody is named.
    pub tenant: Option<String>,
    /// Whether that of all tenants is wanted.
    pub all: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { days: DAYS_DEFAULT, tenant: None, all: false }
    }
}

impl Wanted {
    /// Reads the part of a URL behind its `?`.
    ///
    /// # Errors
    /// The first parameter that is unknown, named twice or cannot be, and what it may be.
    pub fn parse(query: &str) -> Result<Self, String> {
        let (mut days, mut tenant, mut all) = (None, None, None);
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let is_twice = match &*name {
                "days" => days.replace(parse_days(&value)?).is_some(),
                "tenant" => tenant.replace(parse_tenant(&value)?).is_some(),
                "all" => all.replace(parse_all(&value)?).is_some(),
                _ => return Err("only `days`, `tenant` and `all` can be asked for".to_owned()),
            };
            if is_twice {
                return Err(format!("`{name}` is there twice"));
            }
        }
        // Who names one wants that one.
        let all = all.unwrap_or(false) && tenant.is_none();
        Ok(Self { days: days.unwrap_or(DAYS_DEFAULT), tenant, all })
    }

    /// The part behind the `?` that says this.
    pub fn query(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("days", &self.days.to_string());
        if let Some(tenant) = &self.tenant {
            query.append_pair("tenant", tenant);
        }
        if self.all {
            query.append_pair("all", "true");
        }
        query.finish()
    }
}

/// A number of days.
///
/// # Errors
/// What it may be.
pub(crate) fn parse_days(text: &str) -> Result<u32, String> {
    let days = text.parse().ok().filter(|days| usize::try_from(*days).is_ok_and(|n| n <= DAYS_MAX));
    days.ok_or_else(|| format!("`days` must be a whole number within 0 to {DAYS_MAX}"))
}

/// The name of a tenant or sub-tenant, or of those that are counted together.
///
/// # Errors
/// What it may be.
pub(crate) fn parse_tenant(text: &str) -> Result<String, String> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let is_name = |part: &str| {
        part == super::OTHERS
            || (1..=TENANT_BYTES_MAX).contains(&part.len()) && part.bytes().all(is_plain)
    };
    let (parent, sub) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    if is_name(parent) && sub.is_none_or(is_name) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`tenant` must be NAME or PARENT/SUB, each of 1 to {TENANT_BYTES_MAX} letters, digits, `.`, \
         `_` or `-`"
    ))
}

fn parse_all(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("`all` must be `true` or `false`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_as_it_was_written() {
        assert_eq!(Wanted::parse("").unwrap(), Wanted::default());
        for wanted in [
            Wanted { days: 0, tenant: Some("acme/x-1".to_owned()), all: false },
            Wanted { days: 400, tenant: None, all: true },
            Wanted { days: 7, tenant: Some("acme/(others)".to_owned()), all: false },
        ] {
            assert_eq!(Wanted::parse(&wanted.query()).unwrap(), wanted, "{}", wanted.query());
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused_and_not_repeated() {
        for (query, part) in [
            ("days=401", "within 0 to 400"),
            ("days=-1", "within 0 to 400"),
            ("days=", "within 0 to 400"),
            ("days=1&days=2", "twice"),
            ("all=maybe", "`true` or `false`"),
            ("all=1", "`true` or `false`"),
            ("tenant=", "PARENT/SUB"),
            ("tenant=a/b/c", "PARENT/SUB"),
            ("tenant=a%0ab", "PARENT/SUB"),
            ("secret=1", "only `days`"),
        ] {
            let message = Wanted::parse(query).unwrap_err();
            assert!(message.contains(part) && !message.contains("secret"), "{query}: {message}");
        }
        assert!(Wanted::parse(&format!("tenant={}", "t".repeat(65))).is_err());
    }
}
