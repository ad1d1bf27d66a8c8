//! `docket keys` as it is typed, on files of its own.

use std::time::{Duration, UNIX_EPOCH};

use clap::Parser;
use tempfile::TempDir;

use super::*;
use crate::tenants::{Found, Keyring};

#[derive(Debug, Parser)]
struct Typed {
    #[command(flatten)]
    keys: KeysArgs,
}

/// What was printed, what was told, and how it ended.
struct Ran {
    out: String,
    told: String,
    outcome: Result<(), KeysError>,
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(498_900)
}

fn run_at(folder: &TempDir, typed: &[&str], now: SystemTime) -> Ran {
    let path = folder.path().join("keys.toml");
    let path = path.to_str().unwrap();
    let typed =
        Typed::try_parse_from(["keys"].iter().chain(typed).chain(&["--file", path])).unwrap();
    let (mut out, mut told) = (Vec::new(), Vec::new());
    let outcome = run(&typed.keys, now, (&mut out, &mut told));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { out: text(out), told: text(told), outcome }
}

fn run_in(folder: &TempDir, typed: &[&str]) -> Ran {
    run_at(folder, typed, now())
}

fn of_file(file: Option<PathBuf>, command: KeysCommand) -> KeysArgs {
    KeysArgs { file, store: None, store_password_file: None, store_ca: None, command }
}

fn ring(folder: &TempDir) -> Keyring {
    KeyFile::new(folder.path().join("keys.toml")).load().unwrap().0
}

#[test]
fn a_new_key_is_all_that_is_printed() {
    let folder = TempDir::new().unwrap();
    let ran = run_in(&folder, &["new", "acme", "--note", "laptop", "--expires", "90d"]);
    ran.outcome.unwrap();
    let key = ran.out.strip_suffix('\n').unwrap();
    assert!(key.starts_with("dk_") && key.len() == 55 && !key.contains(char::is_whitespace));
    assert!(ran.told.contains("made tenant acme") && ran.told.contains("2027-02-28T12:00:00Z"));
    assert!(!ran.told.contains(&key[12..]), "{}", ran.told);
    let ring = ring(&folder);
    assert!(matches!(ring.find(key.as_bytes(), now()), Found::Valid(..)));
    let end = now() + Duration::from_hours(24 * 90);
    assert!(matches!(ring.find(key.as_bytes(), end), Found::Expired(..)));
}

#[test]
fn every_setting_can_be_typed_and_is_checked_as_in_the_file() {
    let folder = TempDir::new().unwrap();
    let typed = "new acme --weight 2 --lane batch --requests-per-minute 600 --tokens-per-minute \
                 1000000 --reads-max 256 --queue-share 0.5 --kv-bytes 2GiB --pin-bytes 0 --models \
                 a,b:1 --act-for --operator=true --tenant-expires 2027-01-01T00:00:00Z";
    run_in(&folder, &typed.split_whitespace().collect::<Vec<_>>()).outcome.unwrap();
    let text = std::fs::read_to_string(folder.path().join("keys.toml")).unwrap();
    let fields = "weight = 2\nlane = \"batch\"\nrequests_per_minute = 600\ntokens_per_minute = \
                  1000000\nreads_max = 256\nqueue_share = 0.5\nkv_bytes = \"2GiB\"\npin_bytes = \
                  \"0\"\nmodels = [\"a\", \"b:1\"]\nact_for = true\noperator = true\nexpires = \
                  2027-01-01T00:00:00Z\n";
    assert!(text.contains(&format!("[tenants.acme]\n{fields}")), "{text}");

    let ran = run_in(&folder, &["new", "acme", "--act-for=false", "--weight", "3"]);
    ran.outcome.unwrap();
    assert!(ran.told.starts_with("set weight, act_for of tenant acme\nmade key"), "{}", ran.told);
    let settings = ring(&folder).tenant("acme").unwrap().settings.clone();
    assert_eq!((settings.act_for, settings.operator, settings.weight), (false, true, 3));

    for (typed, told) in [
        (["--weight", "-1"], "tenants.acme.weight: -1 is not within 1 to 1000"),
        (["--queue-share", "1.5"], "tenants.acme.queue_share: 1.5 is not above 0"),
        (["--kv-bytes", "much"], "tenants.acme.kv_bytes: this text is no size"),
        (["--expires", "90"], "--expires: \"90\" is no time"),
        (["--tenant-expires", "1970-01-01T00:00:00Z"], "--tenant-expires: 1970-01-01T00:00:00Z is"),
    ] {
        let ran = run_in(&folder, &["new", "acme", typed[0], typed[1]]);
        let error = ran.outcome.unwrap_err().to_string();
        assert!(error.contains(told) && ran.out.is_empty(), "{error}");
        assert!(error.starts_with("--") || error.contains("keys.toml is not changed"), "{error}");
    }
    assert_eq!(ring(&folder).tenant("acme").unwrap().keys.len(), 2, "and nothing was made");
    for (flag, value, told) in [
        ("--lane", "fast", "[possible values: urgent, normal, batch, idle]"),
        ("--weight", "many", "a whole number is wanted"),
        ("--queue-share", "half", "a number is wanted"),
    ] {
        let refused = Typed::try_parse_from(["keys", "new", "acme", flag, value]).unwrap_err();
        assert!(refused.to_string().contains(told), "{refused}");
    }
}

#[test]
fn the_list_has_every_key_and_no_hash() {
    let folder = TempDir::new().unwrap();
    for typed in [
        ["new", "acme", "--note", "laptop"],
        ["new", "acme", "--expires", "1h"],
        ["new", "zeta", "--tenant-expires", "2h"],
        ["new", "mid", "--weight", "2"],
    ] {
        run_in(&folder, &typed).outcome.unwrap();
    }
    let id = ring(&folder).tenant("mid").unwrap().keys[0].id.clone();
    let ran = run_in(&folder, &["revoke", id.as_str()]);
    ran.outcome.unwrap();
    assert_eq!(ran.out, format!("key {id} of tenant mid is revoked\n"));

    let ran = run_at(&folder, &["list"], now() + Duration::from_hours(2));
    ran.outcome.unwrap();
    let (keys, limits) = ran.out.split_once("\n\n").unwrap();
    let columns: Vec<String> = keys
        .lines()
        .map(|line| {
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            cells
                .enumerate()
                .filter(|(at, _)| *at != 1)
                .map(|(_, cell)| cell)
                .collect::<Vec<_>>()
                .join("|")
        })
        .collect();
    let expected = [
        "TENANT|STATE|CREATED|EXPIRES|NOTE",
        "acme|valid|2026-11-30T12:00:00Z|never|laptop",
        "acme|expired|2026-11-30T12:00:00Z|2026-11-30T13:00:00Z",
        "mid|no key|-|-",
        "zeta|tenant expired|2026-11-30T12:00:00Z|never",
    ];
    assert_eq!(columns, expected, "{}", ran.out);
    assert!(!ran.out.contains("sha256") && ran.told.is_empty());
    let names: Vec<&str> =
        limits.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["TENANT", "acme", "mid", "zeta"], "a line of limits for each tenant");
}

#[test]
fn the_list_has_every_limit_of_a_tenant() {
    let folder = TempDir::new().unwrap();
    let typed = "new acme --weight 2 --lane batch --requests-per-minute 600 --tokens-per-minute \
                 1000000 --reads-max 256 --queue-share 0.5 --kv-bytes 2GiB --pin-bytes 0 --models \
                 a,b:1 --act-for --operator --tenant-expires 2027-01-01T00:00:00Z --note laptop";
    run_in(&folder, &typed.split_whitespace().collect::<Vec<_>>()).outcome.unwrap();
    run_in(&folder, &["new", "plain", "--expires", "1h"]).outcome.unwrap();
    let ran = run_in(&folder, &["list"]);
    ran.outcome.unwrap();
    let row = |name: &str| {
        let limits = ran.out.split_once("\n\n").unwrap().1;
        let row = limits.lines().find(|line| line.starts_with(name)).unwrap();
        row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    let heads = "WEIGHT LANE REQUESTS/MIN TOKENS/MIN READS QUEUE KV PINS EXPIRES MAY MODELS";
    assert_eq!(row("TENANT"), heads);
    let acme = "2 batch 600 1000000 256 0.5 2GiB 0 2027-01-01T00:00:00Z operator,act_for a,b:1";
    assert_eq!(row("acme"), acme);
    assert_eq!(row("plain"), "1 urgent - - - 1 - - never - all");

    let ran = run_in(&folder, &["list", "--json"]);
    ran.outcome.unwrap();
    assert!(!ran.out.contains("sha256"), "{}", ran.out);
    let ring = ring(&folder);
    let id = |tenant: &str| ring.tenant(tenant).unwrap().keys[0].id.to_string();
    let list: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let expected = serde_json::json!({ "tenants": [
        { "tenant": "acme", "weight": 2, "lane": "batch", "requests_per_minute": 600,
          "tokens_per_minute": 1_000_000, "reads_max": 256, "queue_share": 0.5,
          "kv_bytes": 2_147_483_648_u64, "pin_bytes": 0, "models": ["a", "b:1"], "act_for": true,
          "operator": true, "expires": "2027-01-01T00:00:00Z",
          "keys": [{ "id": id("acme"), "state": "valid", "created": "2026-11-30T12:00:00Z",
                     "expires": null, "note": "laptop" }] },
        { "tenant": "plain", "weight": 1, "lane": "urgent", "requests_per_minute": null,
          "tokens_per_minute": null, "reads_max": null, "queue_share": 1.0, "kv_bytes": null,
          "pin_bytes": null, "models": null, "act_for": false, "operator": false, "expires": null,
          "keys": [{ "id": id("plain"), "state": "valid", "created": "2026-11-30T12:00:00Z",
                     "expires": "2026-11-30T13:00:00Z", "note": null }] },
    ] });
    assert_eq!(list, expected);
}

#[test]
fn what_is_not_there_is_told_by_name() {
    let folder = TempDir::new().unwrap();
    let error = |typed: &[&str]| run_in(&folder, typed).outcome.unwrap_err().to_string();
    assert!(error(&["list"]).contains("keys.toml: No such file"));
    assert!(error(&["revoke", "00000000"]).contains("keys.toml"));
    let key = run_in(&folder, &["new", "acme"]).out;
    assert!(error(&["revoke", "zzzzzzzz"]).starts_with("ID: an id is the 8 lower-case"));
    let whole = error(&["revoke", key.trim()]);
    assert!(!whole.contains(&key[12..30]), "{whole}");
    let ids = ring(&folder).tenant("acme").unwrap().keys[0].id.clone();
    let other = if ids.as_str() == "00000000" { "00000001" } else { "00000000" };
    assert!(error(&["revoke", other]).ends_with(&format!("keys.toml has no key {other}")));
}

#[test]
fn without_a_file_both_ways_to_name_one_are_told() {
    for file in [None, Some(PathBuf::new())] {
        let arguments = of_file(file, KeysCommand::List(ListArgs::default()));
        let outcome = run(&arguments, now(), (&mut Vec::new(), &mut Vec::new()));
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("--file") && error.contains("DOCKET_KEYS"), "{error}");
    }
}

#[test]
fn a_key_that_could_not_be_printed_is_to_be_revoked() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::BrokenPipe))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = TempDir::new().unwrap();
    let file = Some(folder.path().join("keys.toml"));
    let new = NewArgs { tenant: "acme".to_owned(), ..NewArgs::default() };
    let arguments = of_file(file, KeysCommand::New(Box::new(new)));
    let error = run(&arguments, now(), (&mut Closed, &mut Vec::new())).unwrap_err().to_string();
    let id = ring(&folder).tenant("acme").unwrap().keys[0].id.clone();
    assert!(error.contains(&format!("revoke key {id}")), "{error}");
}

#[test]
fn a_file_and_a_store_are_not_both_edited() {
    let (mut out, mut told) = (Vec::new(), Vec::new());
    let mut refused = |file: Option<&str>, store: Option<&str>| {
        let command = KeysCommand::List(ListArgs::default());
        let mut arguments = of_file(file.map(PathBuf::from), command);
        arguments.store = store.map(Secret::new);
        run(&arguments, now(), (&mut out, &mut told)).unwrap_err().to_string()
    };
    let address = "postgres://ann:hunter2@nowhere/docket";
    let both = refused(Some("keys.toml"), Some(address));
    assert!(both.contains("keys.toml and a store are both named"), "{both}");
    assert!(refused(Some("store"), None).contains("give --store"));
    assert!(refused(None, None).contains("no key file is named"));
    let faulty = refused(Some("store"), Some("mysql://ann:hunter2@nowhere"));
    assert!(faulty.starts_with("--store: ") && !faulty.contains("hunter2"), "{faulty}");
}
