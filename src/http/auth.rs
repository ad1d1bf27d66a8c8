//! Who a request comes from, and what it may: keys, sub-tenants, requests a minute.
//!
//! What is not let in is refused before anything of its body is read; the key is hashed and looked up
//! once, however many there are, and no time tells how much of a key is right.

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use actors::{Lane, TenantId};
use arc_swap::ArcSwap;
use axum::http::{HeaderMap, HeaderValue};

use crate::config::keys::{ApiKey, TENANT_DEFAULT};
use crate::dialect::problem::RequestFault;
use crate::error::DecideError;
use crate::service::ModelEntry;
use crate::tenants::{Found, KeyId, Keyring, Quota, Rates, Tenant, is_tenant_name, listed};

use super::headers::{API_KEY, FAIRNESS_ID};
use super::once::{self, AUTHORIZATION};
use super::respond::excerpt;

/// Most keys of the command line.
pub const KEYS_MAX: usize = 1_024;

/// Who is let in.
#[derive(Clone, Default)]
pub struct AuthConfig {
    /// Those with these keys, which may be replaced at any time; everybody where there are none.
    keys: Option<Arc<ArcSwap<Keyring>>>,
    /// Whether only requests for this machine are answered, by their `Host`: where nobody else is to reach
    /// the server, and nobody is asked for a key.
    local_only: bool,
    rates: Arc<Rates>,
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuthConfig").field("is_open", &self.is_open()).finish()
    }
}

/// What a request may, by its key.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    /// Who it is counted for and kept apart by.
    pub(super) tenant: TenantId,
    /// Whose key it is; none on a server without keys, where everybody may everything.
    holder: Option<Arc<Tenant>>,
}

impl AuthConfig {
    /// Lets in who has one of these keys, also when they are replaced.
    pub fn of(keys: Arc<ArcSwap<Keyring>>) -> Self {
        Self { keys: Some(keys), ..Self::default() }
    }

    /// Lets in whoever is on this machine.
    pub fn local() -> Self {
        Self { local_only: true, ..Self::default() }
    }

    /// Lets in who has one of these keys, each written `[TENANT=]KEY`.
    ///
    /// # Errors
    /// What is wrong with one of them; no key is shown.
    pub fn from_texts(texts: &[String]) -> Result<Self, String> {
        let keys: Vec<ApiKey> =
            texts.iter().map(|text| ApiKey::parse(text)).collect::<Result<_, _>>()?;
        let keyring = Keyring::from_api_keys(&keys).map_err(|faults| listed(&faults))?;
        Ok(Self::of(Arc::new(ArcSwap::from_pointee(keyring))))
    }

    /// Whether requests for another host than this machine are refused.
    pub(super) fn is_local_only(&self) -> bool {
        self.local_only
    }

    /// Whether no key is needed.
    pub fn is_open(&self) -> bool {
        self.keys.is_none()
    }

    /// Whose key a request with these headers has; `None` where that is missing, unknown or expired.
    ///
    /// # Errors
    /// [`RequestFault::Header`] where it says two keys, and so does not say who asks.
    pub(super) fn grant(&self, headers: &HeaderMap) -> Result<Option<Grant>, RequestFault> {
        let Some(keys) = &self.keys else {
            let tenant = TenantId(Arc::from(TENANT_DEFAULT));
            return Ok(Some(Grant { tenant, holder: None }));
        };
        once::check_credentials(headers)?;
        let keys = keys.load();
        let sent = |name| once::value(headers, name).map(|value| value.map(HeaderValue::as_bytes));
        let (bearer, api_key) = (sent(AUTHORIZATION)?.and_then(bearer), sent(API_KEY)?);
        let now = SystemTime::now();
        let [bearer, api_key] = [bearer, api_key].map(|key| holder(&keys, key?, now));
        // One of them may be for a proxy. Of two that are for us neither is the one that counts.
        if let (Some(one), Some(other)) = (&bearer, &api_key)
            && one.name != other.name
        {
            let message = format!("its key is of another tenant than that of {AUTHORIZATION}");
            return Err(RequestFault::Header { name: API_KEY, message });
        }
        let found = bearer.or(api_key);
        Ok(found.map(|holder| Grant { tenant: holder.name.clone(), holder: Some(holder) }))
    }

    /// Counts a request against its tenant's requests a minute; `None` where it has no such limit.
    pub(super) fn count(&self, grant: &Grant) -> Option<Quota> {
        let holder = grant.holder.as_ref()?;
        let limit = holder.settings.requests_per_minute?;
        Some(self.rates.take(&holder.name, limit, Instant::now()))
    }
}

impl Grant {
    /// The same for the sub-tenant that a request with these headers names, if it does.
    ///
    /// # Errors
    /// [`RequestFault::NotAllowed`], [`RequestFault::Header`].
    pub(super) fn acting(mut self, headers: &HeaderMap) -> Result<Self, RequestFault> {
        if let (Some(holder), Some(sub)) = (&self.holder, headers.get(FAIRNESS_ID)) {
            self.tenant = sub_tenant(holder, sub)?;
        }
        Ok(self)
    }

    /// Whether it may see what concerns all tenants.
    pub(super) fn is_operator(&self) -> bool {
        self.holder.as_ref().is_none_or(|holder| holder.settings.operator)
    }

    /// The lane of a request: the one asked for, or the highest that its tenant may use where that is
    /// lower.
    ///
    /// * `usual`: where none is asked for.
    pub(super) fn lane(&self, asked: Option<Lane>, usual: Lane) -> Option<Lane> {
        let highest = self.holder.as_ref().map_or(Lane::Urgent, |holder| holder.settings.lane);
        // A lane that is less urgent is the greater.
        if asked.unwrap_or(usual) < highest { Some(highest) } else { asked }
    }

    /// Refuses a model that its tenant may not ask for, as if it were not served.
    ///
    /// * `asked`: the name asked for, if any.
    /// * `served`: gives all names of the model; called only where they matter.
    ///
    /// # Errors
    /// [`DecideError::UnknownModel`] with the names that it may ask for.
    pub(super) fn check_model(
        &self,
        asked: Option<&str>,
        served: impl FnOnce() -> Vec<ModelEntry>,
    ) -> Result<(), DecideError> {
        if self.holder.as_ref().is_none_or(|holder| holder.settings.models.is_none()) {
            return Ok(());
        }
        let served = served();
        let available: Vec<String> = served
            .iter()
            .map(|entry| &entry.name)
            .filter(|name| self.sees(name))
            .cloned()
            .collect();
        // All names are of one model, so without a name any that is allowed will do.
        let is_allowed = |name: &String| asked.is_none_or(|asked| name == asked);
        if available.iter().any(is_allowed) {
            return Ok(());
        }
        let name = asked.map_or_else(|| "of any name".to_owned(), excerpt);
        Err(DecideError::UnknownModel { name, available })
    }

    /// Whether its tenant may ask for a model of this name.
    pub(super) fn sees(&self, model: &str) -> bool {
        let models = self.holder.as_ref().and_then(|holder| holder.settings.models.as_ref());
        models.is_none_or(|models| models.iter().any(|name| name == model))
    }
}

/// Whose key it is, if it is valid.
fn holder(keys: &Keyring, key: &[u8], now: SystemTime) -> Option<Arc<Tenant>> {
    match keys.find(key, now) {
        Found::Valid(tenant, _) => Some(Arc::clone(tenant)),
        Found::Expired(tenant, id) => {
            tell_expired(tenant, id);
            None
        }
        Found::Unknown => None,
    }
}

/// For the operator who is asked why a key no longer works; the caller hears only that it does not.
fn tell_expired(tenant: &Tenant, id: &KeyId) {
    tracing::debug!(tenant = %tenant.name.0, key = %id, "a key that has expired was sent");
}

/// The sub-tenant that a request names.
fn sub_tenant(holder: &Tenant, sub: &HeaderValue) -> Result<TenantId, RequestFault> {
    if !holder.settings.act_for {
        let message = format!("this key may not act for others, which {FAIRNESS_ID} asks for");
        return Err(RequestFault::NotAllowed { message });
    }
    let name = sub.to_str().ok().filter(|name| is_tenant_name(name));
    let Some(name) = name else {
        let message = format!(
            "must be 1 to {} letters, digits, `.`, `_` or `-`, found {:?}",
            crate::config::keys::TENANT_BYTES_MAX,
            excerpt(&String::from_utf8_lossy(sub.as_bytes()))
        );
        return Err(RequestFault::Header { name: FAIRNESS_ID, message });
    };
    Ok(TenantId(Arc::from(format!("{}/{name}", holder.name.0))))
}

/// The token of `Bearer TOKEN`; the scheme's case does not matter.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [tenants.acme]
        lane = "batch"
        models = ["small"]
        requests_per_minute = 2
        [[tenants.acme.keys]]
        id = "00000001"
        hash = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
        created = 2026-11-30T12:00:00Z
        [tenants.gateway]
        act_for = true
        operator = true
        [[tenants.gateway.keys]]
        id = "00000002"
        hash = "sha256:c0de2b2bb6dc5e1b1f6f0b5ac0e7b2c3d6fa5e94b2d8a1f2a3b4c5d6e7f80910"
        created = 2026-11-30T12:00:00Z
    "#;

    fn of_texts(texts: &[&str]) -> AuthConfig {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        AuthConfig::from_texts(&texts).unwrap()
    }

    /// The file's tenants; acme's key is `secret`.
    fn of_file() -> AuthConfig {
        AuthConfig::of(Arc::new(ArcSwap::from_pointee(Keyring::parse(FILE).unwrap())))
    }

    fn sent(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn tenant(auth: &AuthConfig, pairs: &[(&'static str, &str)]) -> Option<String> {
        auth.grant(&sent(pairs)).unwrap().map(|grant| grant.tenant.0.to_string())
    }

    fn acme() -> Grant {
        of_file().grant(&sent(&[("x-api-key", "secret")])).unwrap().unwrap()
    }

    #[test]
    fn a_key_belongs_to_its_tenant() {
        let auth = of_texts(&["secret", "acme=k1", "acme=k2", "b=k=3"]);
        for (name, value, whose) in [
            ("authorization", "Bearer secret", "default"),
            ("authorization", "bearer  k1", "acme"),
            ("x-api-key", "k2", "acme"),
            ("x-api-key", "k=3", "b"),
        ] {
            assert_eq!(tenant(&auth, &[(name, value)]).as_deref(), Some(whose));
        }
        for (name, value) in
            [("authorization", "Basic secret"), ("authorization", "secret"), ("x-api-key", "k")]
        {
            assert_eq!(tenant(&auth, &[(name, value)]), None);
        }
        assert_eq!(tenant(&auth, &[]), None);
    }

    #[test]
    fn two_keys_that_differ_are_nobodys() {
        let auth = of_texts(&["a=k1", "a=k2", "b=k3"]);
        let refused = |pairs: &[(&'static str, &str)]| {
            let fault = auth.grant(&sent(pairs)).err()?;
            let told = fault.to_string();
            assert!(matches!(fault, RequestFault::Header { .. }), "{told}");
            assert!(!told.contains("k1") && !told.contains("k3"), "{told}");
            Some(told)
        };
        let bearer = ["Bearer k1", "Bearer k3"].map(|value| (AUTHORIZATION, value));
        assert!(refused(&bearer).unwrap().starts_with("header authorization: "));
        assert!(refused(&[(API_KEY, "k1"), (API_KEY, "none")]).is_some(), "known or not");
        assert!(refused(&[(AUTHORIZATION, "Basic x"), (AUTHORIZATION, "Bearer k1")]).is_some());
        assert!(refused(&[(AUTHORIZATION, "Bearer k1"), (API_KEY, "k3")]).is_some());
        let whose = |pairs: &[(&'static str, &str)]| tenant(&auth, pairs).unwrap_or_default();
        assert_eq!(whose(&[(API_KEY, "k1"), (API_KEY, "k1")]), "a");
        assert_eq!(whose(&[(AUTHORIZATION, "Bearer k1"), (API_KEY, "k2")]), "a");
        assert_eq!(whose(&[(AUTHORIZATION, "Bearer of a proxy"), (API_KEY, "k3")]), "b");
        let open = AuthConfig::default();
        assert!(open.grant(&sent(&bearer)).is_ok(), "nobody reads them");
    }

    #[test]
    fn without_keys_everybody_is_the_default_tenant_and_may_everything() {
        let auth = AuthConfig::default();
        assert_eq!(tenant(&auth, &[("x-api-key", "anything")]).as_deref(), Some("default"));
        let grant = auth.grant(&HeaderMap::new()).unwrap().unwrap();
        assert!(grant.is_operator() && auth.count(&grant).is_none());
        assert_eq!(grant.lane(Some(Lane::Urgent), Lane::Normal), Some(Lane::Urgent));
        assert_eq!(grant.lane(None, Lane::Normal), None);
    }

    #[test]
    fn a_keyring_without_keys_lets_nobody_in() {
        let auth = AuthConfig::of(Arc::new(ArcSwap::from_pointee(Keyring::default())));
        assert_eq!(tenant(&auth, &[("x-api-key", "secret")]), None);
        assert_eq!(tenant(&auth, &[]), None);
    }

    #[test]
    fn a_keyring_is_replaced_while_it_is_in_use() {
        let ring = Arc::new(ArcSwap::from_pointee(Keyring::parse(FILE).unwrap()));
        let auth = AuthConfig::of(Arc::clone(&ring));
        assert_eq!(tenant(&auth, &[("x-api-key", "secret")]).as_deref(), Some("acme"));
        ring.store(Arc::new(Keyring::default()));
        assert_eq!(tenant(&auth, &[("x-api-key", "secret")]), None);
    }

    #[test]
    fn only_who_may_act_for_others_names_a_sub_tenant() {
        let auth = of_file();
        let as_acme = [("x-api-key", "secret"), (FAIRNESS_ID, "eve")];
        let headers = sent(&as_acme);
        let refused = auth.grant(&headers).unwrap().unwrap().acting(&headers).unwrap_err();
        assert!(matches!(refused, RequestFault::NotAllowed { .. }), "{refused}");
        let holder = auth.keys.as_ref().unwrap().load().tenant("gateway").cloned().unwrap();
        let sub = |name: &str| sub_tenant(&holder, &name.parse().unwrap());
        assert_eq!(&*sub("ann").unwrap().0, "gateway/ann");
        for name in ["a/b", "", "a b", &"x".repeat(65)] {
            assert!(matches!(sub(name), Err(RequestFault::Header { .. })), "{name}");
        }
    }

    #[test]
    fn a_lane_above_the_tenants_is_lowered_to_it() {
        let grant = acme();
        assert_eq!(grant.lane(Some(Lane::Urgent), Lane::Normal), Some(Lane::Batch));
        assert_eq!(grant.lane(None, Lane::Normal), Some(Lane::Batch));
        assert_eq!(grant.lane(None, Lane::Batch), None);
        assert_eq!(grant.lane(Some(Lane::Idle), Lane::Normal), Some(Lane::Idle));
    }

    #[test]
    fn a_model_that_a_tenant_may_not_ask_for_is_not_served() {
        let entry = |name: &str| ModelEntry { name: name.to_owned(), ..ModelEntry::default() };
        let served = [entry("large"), entry("small")];
        let grant = acme();
        for asked in [None, Some("small")] {
            assert_eq!(grant.check_model(asked, || served.to_vec()), Ok(()));
        }
        for asked in ["large", "other"] {
            let refused = grant.check_model(Some(asked), || served.to_vec()).unwrap_err();
            assert!(refused.to_string().ends_with("is served, there is small"), "{refused}");
        }
        assert!(grant.check_model(None, || served[..1].to_vec()).is_err());
        assert!(grant.sees("small") && !grant.sees("large"));
    }

    #[test]
    fn requests_beyond_the_tenants_are_not_allowed() {
        let (auth, grant) = (of_file(), acme());
        let allowed: Vec<bool> = (0..3).map(|_| auth.count(&grant).unwrap().allowed).collect();
        assert_eq!(allowed, [true, true, false]);
    }

    #[test]
    fn no_key_is_shown() {
        let faulty = AuthConfig::from_texts(&["a=hidden".to_owned(), "b=hidden".to_owned()]);
        assert!(!faulty.unwrap_err().contains("hidden"));
        assert!(!format!("{:?}", of_texts(&["hidden"])).contains("hidden"));
    }
}
