//! Tenants: their shares from the workload, their keys from the command line.

use std::collections::BTreeMap;

use anyhow::ensure;

use super::Workload;

/// Name of the only tenant where neither the workload nor a key names one.
const UNNAMED: &str = "default";

/// The tenants of a run, in the order of their numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tenants {
    pub(crate) names: Vec<String>,
    pub(super) shares: Vec<f64>,
    /// `None` sends no key.
    pub(super) keys: Vec<Option<String>>,
}

impl Tenants {
    /// Joins the workload's tenants with `keys`, name to key. A workload without tenants spreads its
    /// requests evenly over the keys; without any key no request carries one.
    ///
    /// # Errors
    /// When only some of the workload's tenants have a key.
    pub(crate) fn new(
        workload: &Workload,
        keys: &BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        if !workload.tenants.is_empty() {
            let names: Vec<String> = workload.tenants.keys().cloned().collect();
            let bare = names.iter().find(|name| !keys.contains_key(*name));
            ensure!(
                keys.is_empty() || bare.is_none(),
                "the workload's tenant {:?} has no key, its tenants are {}",
                bare.map_or("", String::as_str),
                names.join(", ")
            );
            let shares = workload.tenants.values().copied().collect();
            let keys = names.iter().map(|name| keys.get(name).cloned()).collect();
            return Ok(Self { names, shares, keys });
        }
        if keys.is_empty() {
            return Ok(Self {
                names: vec![UNNAMED.to_owned()],
                shares: vec![1.0],
                keys: vec![None],
            });
        }
        let names = keys.keys().cloned().collect();
        let shares = vec![1.0; keys.len()];
        Ok(Self { names, shares, keys: keys.values().cloned().map(Some).collect() })
    }

    /// The number of a tenant.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), format!("sk-{name}"))).collect()
    }

    #[test]
    fn a_workload_without_tenants_is_spread_over_the_keys() {
        let workload = Workload::load("tiny").unwrap();
        let tenants = Tenants::new(&workload, &keys(&["b", "a"])).unwrap();
        assert_eq!(tenants.names, ["a", "b"]);
        assert_eq!(tenants.keys, [Some("sk-a".to_owned()), Some("sk-b".to_owned())]);
        assert_eq!(Tenants::new(&workload, &keys(&[])).unwrap().keys, [None]);
    }

    #[test]
    fn a_tenant_of_the_workload_without_a_key_is_named() {
        let workload = Workload::load("hog-tenant").unwrap();
        let fault = Tenants::new(&workload, &keys(&["hog"])).unwrap_err().to_string();
        assert!(fault.contains("tenant \"acme\" has no key"), "{fault}");
        let keyless = Tenants::new(&workload, &keys(&[])).unwrap();
        assert!(keyless.keys.iter().all(Option::is_none) && keyless.names.len() > 1);
    }
}
