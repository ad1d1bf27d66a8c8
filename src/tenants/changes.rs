//! What has changed between two readings of a key file, for the log: names of tenants and counts of
//! their keys. Neither a key nor a hash is in it.

use std::fmt;

use actors::TenantId;

use super::key::Key;
use super::ring::Keyring;

/// Most tenants that are named of each kind of change; the rest is counted.
const NAMED_MAX: usize = 16;

/// How a keyring differs from the one before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    came: Vec<TenantId>,
    went: Vec<TenantId>,
    limited: Vec<TenantId>,
    keyed: Vec<(TenantId, KeyCounts)>,
}

/// Keys of a tenant that was there before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct KeyCounts {
    came: usize,
    went: usize,
    /// With another end or note.
    changed: usize,
}

impl Changes {
    /// What `new` has otherwise than `old`.
    pub fn between(old: &Keyring, new: &Keyring) -> Self {
        let mut changes = Self::default();
        for tenant in new.tenants() {
            let Some(before) = old.tenant(&tenant.name.0) else {
                changes.came.push(tenant.name.clone());
                continue;
            };
            if before.settings != tenant.settings {
                changes.limited.push(tenant.name.clone());
            }
            let counts = KeyCounts::between(&before.keys, &tenant.keys);
            if counts != KeyCounts::default() {
                changes.keyed.push((tenant.name.clone(), counts));
            }
        }
        let went = old.tenants().filter(|tenant| new.tenant(&tenant.name.0).is_none());
        changes.went = went.map(|tenant| tenant.name.clone()).collect();
        changes
    }
}

impl KeyCounts {
    fn between(old: &[Key], new: &[Key]) -> Self {
        // Most files are large and change in a few places.
        if old == new {
            return Self::default();
        }
        let is_same = |a: &Key, b: &Key| a.id == b.id && a.hash == b.hash;
        let is_in = |keys: &[Key], key: &Key| keys.iter().any(|other| is_same(key, other));
        let changed = |key: &&Key| old.iter().any(|other| is_same(key, other) && other != *key);
        Self {
            came: new.iter().filter(|key| !is_in(old, key)).count(),
            went: old.iter().filter(|key| !is_in(new, key)).count(),
            changed: new.iter().filter(changed).count(),
        }
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |names: &[TenantId]| named(names.iter().map(|name| name.0.to_string()));
        let keyed = self.keyed.iter().map(|(name, counts)| format!("{} ({counts})", name.0));
        let kinds = [
            ("tenants that came", names(&self.came)),
            ("tenants that went", names(&self.went)),
            ("other limits", names(&self.limited)),
            ("other keys", named(keyed)),
        ];
        let told = kinds.into_iter().filter_map(|(kind, told)| Some(format!("{kind}: {}", told?)));
        let told: Vec<String> = told.collect();
        if told.is_empty() {
            return formatter.write_str("nothing changed");
        }
        formatter.write_str(&told.join("; "))
    }
}

impl fmt::Display for KeyCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { came, went, changed } = *self;
        let kinds = [(came, "came"), (went, "went"), (changed, "changed")];
        let told = kinds.into_iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, kind)| format!("{count} {kind}")).collect();
        formatter.write_str(&told.join(", "))
    }
}

/// The first names, and how many more there are; nothing where there is none.
fn named(names: impl ExactSizeIterator<Item = String>) -> Option<String> {
    let more = names.len().saturating_sub(NAMED_MAX);
    let mut told: Vec<String> = names.take(NAMED_MAX).collect();
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    (!told.is_empty()).then(|| told.join(", "))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::tenants::key::KeyHash;

    /// A name, a line of settings, and a text and a note of each key.
    type Described<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    /// A file with these tenants.
    fn ring(tenants: &[Described<'_>]) -> Keyring {
        let mut text = "[tenants]\n".to_owned();
        for (name, settings, keys) in tenants {
            write!(text, "[tenants.{name}]\n{settings}\n").unwrap();
            for (key, note) in *keys {
                let hash = KeyHash::of(format!("{name}/{key}").as_bytes()).written();
                let id = &hash["sha256:".len()..][..8];
                write!(text, "[[tenants.{name}.keys]]\nid = \"{id}\"\nhash = \"{hash}\"\n")
                    .unwrap();
                write!(text, "created = 2026-11-30T12:00:00Z\nnote = \"{note}\"\n").unwrap();
            }
        }
        Keyring::parse(&text).unwrap()
    }

    #[test]
    fn what_came_went_and_changed_is_told_by_the_names_of_tenants() {
        let old = ring(&[
            ("acme", "weight = 1", &[("k1", ""), ("k2", ""), ("k3", "")]),
            ("bolt", "", &[("k", "")]),
            ("gone", "", &[("k", "")]),
        ]);
        let new = ring(&[
            ("acme", "weight = 2", &[("k2", ""), ("k3", "of Ann"), ("k4", ""), ("k5", "")]),
            ("bolt", "", &[("k", "")]),
            ("new", "", &[("k", "")]),
        ]);
        let told = Changes::between(&old, &new).to_string();
        let expected = "tenants that came: new; tenants that went: gone; other limits: acme; \
                        other keys: acme (2 came, 1 went, 1 changed)";
        assert_eq!(told, expected);
        assert!(!told.contains("sha256"));
    }

    #[test]
    fn that_nothing_changed_is_said() {
        let keys: &[(&str, &str)] = &[("k1", ""), ("k2", "")];
        let turned: &[(&str, &str)] = &[("k2", ""), ("k1", "")];
        let (old, new) = (ring(&[("acme", "", keys)]), ring(&[("acme", "", turned)]));
        assert_eq!(Changes::between(&old, &old).to_string(), "nothing changed");
        assert_eq!(Changes::between(&old, &new).to_string(), "nothing changed");
    }

    #[test]
    fn many_tenants_are_counted() {
        let names: Vec<String> = (10..30).map(|n| format!("t{n}")).collect();
        let tenants: Vec<_> = names.iter().map(|name| (name.as_str(), "", &[][..])).collect();
        let told = Changes::between(&Keyring::default(), &ring(&tenants)).to_string();
        assert!(told.starts_with("tenants that came: t10, t11, "), "{told}");
        assert!(told.ends_with(", t25, and 4 more"), "{told}");
    }
}
