//! Edits of a file's text: what is not changed stays, and what is written is read back.

use proptest::prelude::*;

use super::super::edit::{self, Hindrance};
use super::super::key::Key;
use super::*;

/// A file with everything that a person may write around what is read.
const BY_HAND: &str = r#"# Keys of the house.

# -- who pays --
[tenants.acme]        # the first one
weight = 2            # twice
# lane = "urgent"
queue_share = 0.50

# -- keys of acme --

# laptop of Ann
[[tenants.acme.keys]]
id = "00000001"
hash = "HASH1"
created = 2026-11-30T12:00:00Z  # by hand
note = 'laptop'

[[tenants.acme.keys]]
id = "00000002"
hash = "HASH2"
created = 2026-11-30T13:00:00+01:00

# -- who does not --

[tenants."beta"]
models = [
  "one", # small
  "two",
]
# the end
"#;

fn by_hand() -> String {
    BY_HAND.replace("HASH1", &hash("k1")).replace("HASH2", &hash("k2"))
}

fn key(id: &str, text: &str) -> Key {
    let hash = KeyHash::of(text.as_bytes());
    let created = Some(at(1_000));
    Key { id: KeyId::parse(id).unwrap(), hash, created, expires: None, note: None }
}

fn id(id: &str) -> KeyId {
    KeyId::parse(id).unwrap()
}

/// Lines of `old` that are not in `new`, and those of `new` that were not in `old`.
fn differences(old: &str, new: &str) -> (Vec<String>, Vec<String>) {
    let without = |text: &str, other: &str| {
        let mut others: Vec<&str> = other.lines().collect();
        let mut left = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match others.iter().position(|other| *other == line) {
                Some(place) => drop(others.remove(place)),
                None => left.push(line.to_owned()),
            }
        }
        left
    };
    (without(old, new), without(new, old))
}

#[test]
fn a_new_key_adds_its_lines_and_changes_no_other() {
    let old = by_hand();
    let (new, ring) = edit::add(&old, "acme", &[], &key("00000003", "k3")).unwrap();
    let (lost, won) = differences(&old, &new);
    assert_eq!(lost, Vec::<String>::new(), "{new}");
    let hash = hash("k3");
    let expected = [
        "[[tenants.acme.keys]]",
        "id = \"00000003\"",
        &format!("hash = \"{hash}\""),
        "created = 1970-01-01T00:16:40Z",
    ];
    assert_eq!(won, expected, "{new}");
    let place = |text: &str| new.find(text).unwrap();
    assert!(place("00000002") < place("00000003") && place("00000003") < place("who does not"));
    assert!(matches!(ring.find(b"k3", at(0)), Found::Valid(..)));
}

#[test]
fn a_field_that_is_set_keeps_the_comment_behind_it() {
    let old = by_hand();
    let changes = [("weight", 5.into()), ("lane", "batch".into())];
    let (new, ring) = edit::add(&old, "acme", &changes, &key("00000003", "k3")).unwrap();
    assert!(new.contains("weight = 5            # twice\n# lane = \"urgent\"\n"), "{new}");
    let (lost, _) = differences(&old, &new);
    assert_eq!(lost, ["weight = 2            # twice"]);
    let settings = &ring.tenant("acme").unwrap().settings;
    assert_eq!((settings.weight, settings.lane, settings.queue_share), (5, Lane::Batch, 0.5));
}

#[test]
fn a_new_tenant_comes_last_and_an_old_one_gets_its_first_key() {
    let old = by_hand();
    for tenant in ["beta", "gamma"] {
        let (new, ring) = edit::add(&old, tenant, &[("weight", 3.into())], &key("00000003", "k3"))
            .unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(differences(&old, &new).0, Vec::<String>::new(), "{new}");
        assert_eq!(ring.tenant(tenant).unwrap().settings.weight, 3);
        assert!(new.find("[tenants.\"beta\"]") < new.find("00000003"), "{new}");
    }
}

#[test]
fn a_revoked_key_goes_with_what_is_about_it_alone() {
    let old = by_hand();
    let (new, ring) = edit::remove(&old, "acme", &id("00000001")).unwrap();
    let (lost, won) = differences(&old, &new);
    let expected = [
        "# laptop of Ann",
        "id = \"00000001\"",
        &format!("hash = \"{}\"", hash("k1")),
        "created = 2026-11-30T12:00:00Z  # by hand",
        "note = 'laptop'",
        "[[tenants.acme.keys]]",
    ];
    assert_eq!((lost, won), (expected.map(str::to_owned).to_vec(), Vec::new()), "{new}");
    let place = |text: &str| new.find(text).unwrap();
    assert!(place("0.50") < place("keys of acme") && place("keys of acme") < place("00000002"));
    assert_eq!(ring.find(b"k1", at(0)), Found::Unknown);
    assert!(matches!(ring.find(b"k2", at(0)), Found::Valid(..)));
}

#[test]
fn what_stands_above_the_last_key_of_a_file_stays_too() {
    let old = format!("{}# end\n", file("", "").replace("[[", "\n# all keys\n\n# hers\n[["));
    let (new, ring) = edit::remove(&old, "acme", &id("3f9c2a1b")).unwrap();
    assert!(new.contains("# all keys") && new.ends_with("# end\n"), "{new}");
    assert!(!new.contains("# hers") && !new.contains("keys]]"), "{new}");
    assert!(ring.is_empty() && ring.tenant("acme").is_some());
}

#[test]
fn a_tenant_without_lines_of_its_own_outlives_its_keys() {
    let old = file("", "").replace("[tenants.acme]\n", "");
    assert!(!old.contains("[tenants.acme]"));
    let (new, ring) = edit::remove(&old, "acme", &id("3f9c2a1b")).unwrap();
    assert!(ring.tenant("acme").is_some(), "{new}");
    let (new, ring) = edit::add(&new, "acme", &[], &key("00000003", "k3")).unwrap();
    assert!(matches!(ring.find(b"k3", at(0)), Found::Valid(..)), "{new}");
    let (new, ring) =
        edit::add(&old, "acme", &[("weight", 2.into())], &key("00000003", "k3")).unwrap();
    assert_eq!(
        (ring.tenant("acme").unwrap().settings.weight, ring.tenants().count()),
        (2, 1),
        "{new}"
    );
}

#[test]
fn comments_alone_stay_above_the_first_tenant() {
    let (new, _) = edit::add("# mine\n", "acme", &[], &key("00000003", "k3")).unwrap();
    assert!(new.starts_with("# mine\n\n[tenants.acme]\n\n[[tenants.acme.keys]]\nid = "), "{new}");
}

#[test]
fn comments_at_the_end_of_a_file_stay_with_what_they_are_about() {
    let old = "[tenants.acme]\nweight = 2\n# lane = \"urgent\"\n\n# the end";
    for tenant in ["acme", "beta"] {
        let (new, _) = edit::add(old, tenant, &[], &key("00000003", "k3")).unwrap();
        assert!(new.starts_with(&format!("{old}\n\n[")), "{new}");
    }
}

#[test]
fn what_is_written_inline_is_read_but_not_edited() {
    let hash = hash("k1");
    let record = format!("{{id=\"00000001\", hash=\"{hash}\", created=2026-11-30T12:00:00Z}}");
    let texts = [
        (format!("tenants = {{ acme = {{ keys = [{record}] }} }}\n"), "tenants"),
        (format!("[tenants]\nacme = {{ keys = [{record}] }}\n"), "tenants.acme"),
        (format!("[tenants.acme]\nkeys = [{record}]\n"), "tenants.acme.keys"),
    ];
    for (text, place) in texts {
        assert!(matches!(Keyring::parse(&text).unwrap().find(b"k1", at(0)), Found::Valid(..)));
        let inline = Hindrance::Inline(place.to_owned());
        let added = edit::add(&text, "acme", &[], &key("00000003", "k3"));
        assert_eq!(added.map(|(new, _)| new), Err(inline), "{text}");
        assert!(edit::remove(&text, "acme", &id("00000001")).is_err(), "{text}");
    }
    let dotted = "[tenants]\nacme.weight = 2 # twice\n";
    let (new, ring) = edit::add(dotted, "acme", &[], &key("00000003", "k3")).unwrap();
    assert!(new.starts_with(dotted) && ring.key(&id("00000003")).is_some(), "{new}");
}

/// One edit of a generated history.
#[derive(Debug, Clone)]
enum Step {
    Add { tenant: u8, weight: Option<u32>, note: Option<String>, end: Option<u64> },
    Revoke(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let note = prop::option::of("[ -~é\u{1f600}\"\\\\]{0,12}");
    let fields = (0..4_u8, prop::option::of(1..=1_000_u32), note, prop::option::of(0..1_u64 << 37));
    let add =
        fields.prop_map(|(tenant, weight, note, end)| Step::Add { tenant, weight, note, end });
    let step = prop_oneof![3 => add, 1 => any::<prop::sample::Index>().prop_map(|at| Step::Revoke(at.index(64)))];
    prop::collection::vec(step, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(
        begin in prop_oneof![Just(String::new()), Just(by_hand())],
        steps in steps(),
    ) {
        let comments: Vec<&str> = begin.lines().filter(|line| line.starts_with("# --")).collect();
        let mut text = begin.clone();
        let mut there: Vec<(String, Key)> = Vec::new();
        let mut weights = std::collections::BTreeMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Add { tenant, weight, note, end } => {
                    let tenant = ["acme", "beta", "c.d", "E-f_1"][usize::from(tenant)].to_owned();
                    if there.iter().filter(|(other, _)| *other == tenant).count() >= 14 {
                        continue;
                    }
                    let changes: Vec<Change> =
                        weight.map(|weight| ("weight", i64::from(weight).into())).into_iter().collect();
                    let plain = key(&format!("1{number:07x}"), &format!("secret {number}"));
                    let key = Key { note, expires: end.map(at), ..plain };
                    text = edit::add(&text, &tenant, &changes, &key).unwrap().0;
                    weights.extend(weight.map(|weight| (tenant.clone(), weight)));
                    there.push((tenant, key));
                }
                Step::Revoke(place) if place < there.len() => {
                    let (tenant, key) = there.remove(place);
                    text = edit::remove(&text, &tenant, &key.id).unwrap().0;
                }
                Step::Revoke(_) => {}
            }
            let ring = Keyring::parse(&text.clone()).unwrap_or_default();
            for (tenant, key) in &there {
                let (found, read) = ring.key(&key.id).unwrap();
                prop_assert_eq!((&*found.name.0, read), (tenant.as_str(), key));
            }
            for (tenant, weight) in &weights {
                prop_assert_eq!(ring.tenant(tenant).unwrap().settings.weight, *weight);
            }
            let by_hand = if begin.is_empty() { 0 } else { 2 };
            let all: usize = ring.tenants().map(|tenant| tenant.keys.len()).sum();
            prop_assert_eq!(all, there.len() + by_hand);
            for comment in &comments {
                prop_assert!(text.contains(comment), "{} is lost:\n{}", comment, text);
            }
        }
    }
}
