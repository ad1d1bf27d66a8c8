//! The key file as it is read: what it may say, every fault and its place, and whose a key is.

mod edits;
mod files;
mod rates;

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actors::Lane;

use super::key::KeyHash;
use super::*;
use crate::config::keys::ApiKey;

/// A key as `docket keys new` makes them.
const KEY: &str = "dk_3f9c2a1b_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// 2027-01-01T00:00:00Z.
const NEW_YEAR_S: u64 = 1_798_761_600;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn hash(key: &str) -> String {
    KeyHash::of(key.as_bytes()).written()
}

/// A file of one tenant with one key, and lines of the tenant's and of the key's.
fn file(tenant: &str, key: &str) -> String {
    let hash = hash(KEY);
    format!(
        "[tenants.acme]\n{tenant}\n[[tenants.acme.keys]]\nid = \"3f9c2a1b\"\nhash = \"{hash}\"\n\
         created = 2026-11-30T12:00:00Z\n{key}\n"
    )
}

fn settings(fields: &str) -> Settings {
    let ring = Keyring::parse(&file(fields, "")).unwrap();
    ring.tenant("acme").unwrap().settings.clone()
}

/// All faults of a file, as they are told.
fn faults(text: &str) -> Vec<String> {
    Keyring::parse(text).unwrap_err().iter().map(Fault::to_string).collect()
}

#[test]
fn every_field_is_read() {
    let fields = "weight = 2\nlane = \"batch\"\nrequests_per_minute = 600\n\
                  tokens_per_minute = 1_000_000\nreads_max = 256\nqueue_share = 0.5\n\
                  kv_bytes = \"2GiB\"\npin_bytes = 536_870_912\nmodels = [\"qwen2.5-coder:1.5b\"]\n\
                  act_for = true\noperator = true\nexpires = 2027-01-01T00:00:00Z";
    let expected = Settings {
        weight: 2,
        lane: Lane::Batch,
        requests_per_minute: Some(600),
        tokens_per_minute: Some(1_000_000),
        reads_max: Some(256),
        queue_share: 0.5,
        kv_bytes: Some(2 << 30),
        pin_bytes: Some(512 << 20),
        models: Some(vec!["qwen2.5-coder:1.5b".to_owned()]),
        act_for: true,
        operator: true,
        expires: Some(at(NEW_YEAR_S)),
    };
    assert_eq!(settings(fields), expected);
    let ring = Keyring::parse(&file("", "note = \"laptop\"\nexpires = 2027-01-01T00:00:00Z"));
    let (_, key) = ring.as_ref().unwrap().key(&KeyId::parse("3f9c2a1b").unwrap()).unwrap();
    assert_eq!(key.note.as_deref(), Some("laptop"));
    assert_eq!((key.created, key.expires), (Some(at(1_796_040_000)), Some(at(NEW_YEAR_S))));
}

/// The section of the operations page about the key file.
fn page() -> &'static str {
    let page = include_str!("../../docs/OPERATIONS.md");
    page.split("\n### The key file\n").nth(1).unwrap().split("\n## ").next().unwrap()
}

#[test]
fn the_example_in_the_operations_page_is_a_key_file() {
    let example = page().split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let ring = Keyring::parse(example).unwrap_or_else(|faults| panic!("{}", listed(&faults)));
    assert_eq!(ring.tenant("acme").unwrap().keys.len(), 1);
}

/// The page's row of a field.
fn row(field: &str) -> &'static str {
    let row = page().lines().find(|line| line.starts_with(&format!("| `{field}` |")));
    row.unwrap_or_else(|| panic!("{field} is not in the page"))
}

#[test]
fn the_operations_page_has_every_field_with_its_range() {
    for fault in faults(&file("unheard_of = 1", "unheard_of = 1")) {
        let known = fault.split("there are ").nth(1).unwrap().replace(" and ", ", ");
        let fields = known.split(", ").filter(|field| *field != "keys");
        assert!(fields.map(row).count() >= 5, "{known}");
    }
    for field in ["weight", "requests_per_minute", "tokens_per_minute", "reads_max"] {
        let told = faults(&file(&format!("{field} = 99_000_000_000"), ""));
        let (_, range) = told[0].split_once("within ").unwrap();
        assert!(row(field).contains(&format!("| {range} |")), "{field}: {range} in the code");
    }
}

#[test]
fn what_is_not_written_is_without_limit() {
    let plain = settings("");
    assert_eq!(plain, Settings::default());
    assert_eq!((plain.weight, plain.lane, plain.queue_share), (1, Lane::Urgent, 1.0));
    assert!(!plain.act_for && !plain.operator && plain.expires.is_none());
}

#[test]
fn the_ends_of_every_range_are_taken_and_what_is_beyond_is_a_fault() {
    let ranges = [
        ("weight", "1", "1000", "0", "1001"),
        ("requests_per_minute", "1", "1000000", "0", "1000001"),
        ("tokens_per_minute", "1", "60000000000", "0", "60000000001"),
        ("reads_max", "1", "1000000", "0", "1000001"),
        ("queue_share", "0.001", "1", "0", "1.01"),
        ("queue_share", "1e-9", "1.0", "-0.5", "nan"),
        ("kv_bytes", "0", "8796093022208", "-1", "8796093022209"),
        ("pin_bytes", "\"0\"", "\"8TiB\"", "-1", "\"9TiB\""),
        ("pin_bytes", "0x10", "1_0", "99999999999999999999999999", "\"many\""),
    ];
    for (field, least, most, below, above) in ranges {
        for value in [least, most] {
            settings(&format!("{field} = {value}"));
        }
        for value in [below, above] {
            let found = faults(&file(&format!("{field} = {value}"), ""));
            let [fault] = found.as_slice() else { panic!("{field} = {value}: {found:?}") };
            assert!(fault.starts_with(&format!("tenants.acme.{field}: ")), "{fault}");
        }
    }
}

#[test]
fn all_faults_are_told_at_once_each_with_its_place() {
    let text = "colour = 1\n[tenants.acme]\nweight = 0\nlane = \"fast\"\nqueue_share = \"half\"\n\
                models = []\nact_for = 1\nexpires = \"2027-01-01T00:00:00Z\"\nwieght = 2\n\
                [[tenants.acme.keys]]\nid = \"3F9C2A1B\"\nhash = \"sha256:00\"\nnote = 7\nuse = 1\n\
                [tenants.\"b c\"]\nexpires = 2027-01-01\n";
    let expected = [
        "colour: only `tenants` is known here",
        "tenants.acme.act_for: true or false is wanted, this is of type integer",
        "tenants.acme.expires: a date-time, without quotes, is wanted, this is of type string",
        "tenants.acme.keys[0].hash: a hash is `sha256:` and 64 lower-case hexadecimal digits",
        "tenants.acme.keys[0].id: an id is the 8 lower-case hexadecimal digits after `dk_`",
        "tenants.acme.keys[0].note: a text is wanted, this is of type integer",
        "tenants.acme.keys[0].use: there is no such field",
        "tenants.acme.keys[0].created: it is missing",
        "tenants.acme.lane: this is no lane; there are urgent, normal, batch, idle",
        "tenants.acme.models: 0 names are not within 1 to 64",
        "tenants.acme.queue_share: a number is wanted, this is of type string",
        "tenants.acme.weight: 0 is not within 1 to 1000",
        "tenants.acme.wieght: there is no such field; there are weight, lane",
        "tenants.b c: a name has 1 to 64 letters",
        "tenants.b c.expires: 2027-01-01 is no point in time; date, time and offset are wanted",
    ];
    let found = faults(text);
    for (fault, expected) in found.iter().zip(expected) {
        assert!(fault.starts_with(expected), "{fault}\nis not\n{expected}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn what_is_no_toml_is_told_with_its_lines() {
    let found = faults("[tenants.acme]\nweight = \nlane = urgent\n[tenants.acme]\n");
    assert!(found.len() >= 2, "{found:#?}");
    assert!(found[0].starts_with("line 2, byte ") && found[1].starts_with("line 3, byte "));
    let broken = "[tenants.acme\nweight = 1\n".repeat(FILE_BYTES_MAX / 25);
    assert_eq!(faults(&broken).len(), 1, "of a long file the first: {:?}", faults(&broken));
    assert!(faults(&broken)[0].starts_with("line 1, byte "));
    let deep = format!("tenants = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!faults(&deep).is_empty(), "and depth does no harm");
    assert_eq!(faults(&"= 1\n".repeat(1_000)).len(), 20, "nor do faults without end");
    for text in
        ["", " \n\t\n", "tenants = 1", "[[tenants]]", "tenants.a = 2", "[tenants.a]\nkeys = 1"]
    {
        assert_eq!(faults(text).len(), 1, "{text:?}");
    }
    for text in ["[tenants]", "# nobody yet"] {
        assert!(Keyring::parse(text).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn a_key_in_the_wrong_place_is_never_shown() {
    let texts = [
        format!("[tenants.{KEY}]\n"),
        format!("{KEY} = 1\n"),
        format!("[tenants.acme]\n{KEY} = 1\nlane = \"{KEY}\"\nkv_bytes = \"{KEY}\"\n"),
        format!("[[tenants.acme.keys]]\nid = \"{KEY}\"\nhash = \"{KEY}\"\n{KEY} = 2\n"),
        format!("[[tenants.acme.keys]]\nhash = {KEY}\nid = {KEY}\n"),
        format!("{KEY}\n"),
        format!("[tenants.{KEY}]\n[tenants.{KEY}]\n"),
        format!("[tenants.a]\nexpires = \"{KEY}\"\nmodels = [1, \"{KEY}\"]\nweight = \"{KEY}\""),
        file("", &format!("note = 1\ncreated2 = \"{KEY}\"")),
    ];
    for text in texts {
        let found = Keyring::parse(&text).unwrap_err();
        let told = format!("{} {found:?}", listed(&found));
        assert!(!told.contains("AAAA") && !told.contains("dk_3"), "{text}\n{told}");
    }
    let ring = Keyring::parse(&file("", "")).unwrap();
    let told = format!("{ring:?}");
    let digits = &hash(KEY)["sha256:".len()..][..8];
    assert!(!told.contains(digits) && !told.contains("AAAA"), "{told}");
}

#[test]
fn a_key_belongs_to_its_tenant_and_no_other_text_does() {
    let ring = Keyring::parse(&file("", "")).unwrap();
    let Found::Valid(tenant, id) = ring.find(KEY.as_bytes(), at(0)) else { panic!() };
    assert_eq!((&*tenant.name.0, id.as_str()), ("acme", "3f9c2a1b"));
    let hash = hash(KEY);
    let lower = KEY.to_lowercase();
    let longer = format!("{KEY}A");
    let many = "A".repeat(100_000);
    for text in ["", &KEY[..KEY.len() - 1], &longer, &lower, &hash, &hash[7..], "3f9c2a1b", &many] {
        assert_eq!(ring.find(text.as_bytes(), at(0)), Found::Unknown);
    }
    assert_eq!(Keyring::default().find(b"", at(0)), Found::Unknown);
}

#[test]
fn a_key_ends_at_the_second_and_with_its_tenant() {
    let end = "expires = 2027-01-01T00:00:00Z";
    for text in [file(end, ""), file("", end)] {
        let ring = Keyring::parse(&text).unwrap();
        let find = |now| ring.find(KEY.as_bytes(), now);
        let before = at(NEW_YEAR_S) - Duration::from_nanos(1);
        assert!(matches!(find(before), Found::Valid(..)), "{text}");
        let Found::Expired(tenant, id) = find(at(NEW_YEAR_S)) else { panic!("{text}") };
        assert_eq!((&*tenant.name.0, id.as_str()), ("acme", "3f9c2a1b"));
    }
}

#[test]
fn no_two_keys_have_one_id_or_one_hash() {
    let both = file("", "") + &file("", "").replace("acme", "beta");
    let found = faults(&both);
    let expected = ["tenants.beta.keys[0].id: ", "tenants.beta.keys[0].hash: "];
    assert_eq!(found.len(), 2);
    for (fault, expected) in found.iter().zip(expected) {
        let rest = fault.strip_prefix(expected).unwrap_or_else(|| panic!("{fault}"));
        assert_eq!(rest, "it is that of tenants.acme.keys[0] too; each key has its own");
    }
}

/// A file of so many tenants, each with so many keys.
fn many(tenants: usize, keys: usize) -> String {
    let mut text = String::new();
    for tenant in 0..tenants {
        let _ = writeln!(text, "[tenants.t{tenant}]");
        for key in 0..keys {
            let id = tenant * keys + key;
            let hash = hash(&format!("{tenant} {key}"));
            let created = "created=2026-11-30T12:00:00Z";
            let _ = writeln!(
                text,
                "[[tenants.t{tenant}.keys]]\nid=\"{id:08x}\"\nhash=\"{hash}\"\n{created}"
            );
        }
    }
    text
}

#[test]
fn a_full_file_is_taken_and_one_more_tenant_key_or_byte_is_a_fault() {
    let full = many(TENANTS_MAX, 1);
    let ring = Keyring::parse(&full).unwrap();
    assert_eq!(ring.tenants().count(), TENANTS_MAX);
    for tenant in [0, 1, 2_000, TENANTS_MAX - 1] {
        let Found::Valid(found, _) = ring.find(format!("{tenant} 0").as_bytes(), at(0)) else {
            panic!("{tenant}")
        };
        assert_eq!(*found.name.0, format!("t{tenant}"));
    }
    assert_eq!(ring.find(format!("{TENANTS_MAX} 0").as_bytes(), at(0)), Found::Unknown);
    let found = faults(&many(TENANTS_MAX + 1, 0));
    assert_eq!(found, ["tenants: 4097 tenants, at most 4096 are taken"]);

    assert!(Keyring::parse(&many(2, TENANT_KEYS_MAX)).is_ok());
    let found = faults(&many(1, TENANT_KEYS_MAX + 1));
    assert!(found[0].starts_with("tenants.t0.keys: 17 keys, at most 16 are taken"), "{found:?}");

    let fill = FILE_BYTES_MAX - "[tenants]\n#".len();
    let longest = format!("[tenants]\n#{}", "x".repeat(fill));
    assert!(Keyring::parse(&longest).is_ok());
    assert!(faults(&(longest + "x"))[0].contains("4194305 bytes, at most 4194304"));
}

#[test]
fn faults_without_end_are_told_up_to_a_hundred() {
    let mut text = String::new();
    for field in 0..500 {
        let _ = writeln!(text, "f{field} = 1");
    }
    let found = faults(&text);
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "and: 400 more faults");
}

#[test]
fn a_file_that_is_cut_off_anywhere_never_lets_in_more() {
    let whole = file("weight = 2", "note = \"é\"") + &file("", "").replace("acme", "b\u{65}ta");
    let whole = whole.replacen("3f9c2a1b", "00000001", 1).replacen(&hash(KEY), &hash("other"), 1);
    let full = Keyring::parse(&whole).unwrap();
    let mut taken = 0;
    for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        let Ok(cut) = Keyring::parse(&whole[..end]) else { continue };
        taken += 1;
        for tenant in cut.tenants() {
            let known = full.tenant(&tenant.name.0).unwrap_or_else(|| panic!("{end}"));
            assert!(tenant.keys.iter().all(|key| known.keys.iter().any(|k| k.id == key.id)));
        }
    }
    assert!(taken < 40, "{taken} beginnings are files of their own");
}

#[test]
fn keys_of_the_command_line_are_of_operators_without_limits() {
    let keys = ["acme=k1", "acme=k2", "s3cret", "acme=k1"].map(|text| ApiKey::parse(text).unwrap());
    let ring = Keyring::from_api_keys(&keys).unwrap();
    for (key, tenant, id) in
        [("k1", "acme", "flag-1"), ("k2", "acme", "flag-2"), ("s3cret", "default", "flag-3")]
    {
        let Found::Valid(found, found_id) = ring.find(key.as_bytes(), at(0)) else { panic!() };
        assert_eq!((&*found.name.0, found_id.as_str()), (tenant, id));
        assert_eq!(found.settings, Settings { operator: true, ..Settings::default() });
    }
    let shared = ["a=hidden", "b=hidden"].map(|text| ApiKey::parse(text).unwrap());
    let told = listed(&Keyring::from_api_keys(&shared).unwrap_err());
    assert!(told.contains("a and b have the same key") && !told.contains("hidden"), "{told}");
    assert!(Keyring::from_api_keys(&[]).unwrap().is_empty());
}

#[test]
fn a_file_and_a_command_line_are_one_ring_unless_they_name_the_same() {
    let flags = |text: &str| Keyring::from_api_keys(&[ApiKey::parse(text).unwrap()]).unwrap();
    let ring = Keyring::parse(&file("", "")).unwrap();
    let both = ring.clone().join(&flags("ops=k1")).unwrap();
    for (key, tenant) in [(KEY, "acme"), ("k1", "ops")] {
        let Found::Valid(found, _) = both.find(key.as_bytes(), at(0)) else { panic!() };
        assert_eq!(&*found.name.0, tenant);
    }
    let told = listed(&ring.clone().join(&flags("acme=k1")).unwrap_err());
    assert!(told.starts_with("tenants.acme: --api-key names this tenant too"), "{told}");
    let told = listed(&ring.join(&flags(&format!("ops={KEY}"))).unwrap_err());
    assert_eq!(told, "tenants.acme.keys: 3f9c2a1b is given as --api-key too");
}
