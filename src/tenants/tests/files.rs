//! The file on disk: rights, locks, what replaces what, and how a change is seen.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;
use crate::watched::Watched;

fn place() -> (TempDir, KeyFile) {
    let folder = TempDir::new().unwrap();
    let file = KeyFile::new(folder.path().join("keys.toml"));
    (folder, file)
}

fn add(file: &KeyFile, tenant: &str) -> Result<Added, EditError> {
    file.add(tenant, &[], (None, None), at(1_000))
}

fn mode(file: &KeyFile) -> u32 {
    fs::metadata(&file.path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(file: &KeyFile, mode: u32) {
    fs::set_permissions(&file.path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_new_file_is_its_owners_alone_and_lets_its_key_in() {
    let (folder, file) = place();
    let added = add(&file, "acme").unwrap();
    assert!(added.new_file && added.new_tenant);
    assert_eq!(mode(&file), 0o600);
    let (ring, stamp) = file.load().unwrap();
    assert!(matches!(ring.find(added.text.reveal().as_bytes(), at(1_000)), Found::Valid(..)));
    assert_eq!(stamp.warning(), None);
    let text = fs::read_to_string(&file.path).unwrap();
    assert!(!text.contains(added.text.reveal()) && text.starts_with("# Tenants"), "{text}");
    assert!(!format!("{added:?}").contains(added.text.reveal()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    assert!(!add(&file, "acme").unwrap().new_tenant);
}

#[test]
fn others_rights_are_warned_of_and_taken_away_by_an_edit() {
    let (_folder, file) = place();
    add(&file, "acme").unwrap();
    for (before, warned, after) in [
        (0o644, true, 0o640),
        (0o640, false, 0o640),
        (0o660, true, 0o640),
        (0o602, true, 0o600),
        (0o400, false, 0o600),
    ] {
        set_mode(&file, before);
        let warning = file.load().unwrap().1.warning();
        assert_eq!(warning.is_some(), warned, "{before:o}");
        add(&file, &format!("t{before:o}")).unwrap();
        assert_eq!(mode(&file), after, "{before:o}");
    }
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let (folder, file) = place();
    let target = KeyFile::new(folder.path().join("real.toml"));
    add(&target, "acme").unwrap();
    symlink("real.toml", &file.path).unwrap();
    let added = add(&file, "beta").unwrap();
    assert!(fs::symlink_metadata(&file.path).unwrap().is_symlink());
    assert!(target.load().unwrap().0.key(&added.id).is_some());
}

#[test]
fn a_link_that_leads_nowhere_is_told_of_and_stays() {
    let (folder, file) = place();
    for target in ["absent.toml", "keys.toml"] {
        symlink(target, &file.path).unwrap();
        let id = KeyId::parse("3f9c2a1b").unwrap();
        for told in [add(&file, "acme").unwrap_err(), file.revoke(&id).unwrap_err()] {
            let expected =
                format!("keys.toml: it is a link to {target}, which cannot be followed: ");
            assert!(told.to_string().contains(&expected), "{told}");
        }
        assert_eq!(fs::read_link(&file.path).unwrap().to_str(), Some(target));
        fs::remove_file(&file.path).unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is made");
}

#[test]
fn what_a_killed_edit_left_goes_with_the_next() {
    let (folder, file) = place();
    let names = || {
        let entries = fs::read_dir(folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let other = folder.path().join("other.toml");
    fs::write(&other, "another's").unwrap();
    let left = folder.path().join(".keys.toml.docket-new");
    fs::write(&left, "half a fi").unwrap();
    add(&file, "acme").unwrap();
    assert_eq!(names(), ["keys.toml", "other.toml"]);
    symlink("other.toml", &left).unwrap();
    add(&file, "acme").unwrap();
    assert_eq!(names(), ["keys.toml", "other.toml"]);
    assert_eq!(fs::read_to_string(&other).unwrap(), "another's", "nothing is written by a link");
    // The name of a file that is being written is this one and no other.
    fs::create_dir(&left).unwrap();
    let told = add(&file, "acme").unwrap_err().to_string();
    assert!(told.contains(".keys.toml.docket-new: "), "{told}");
    assert_eq!(names(), [".keys.toml.docket-new", "keys.toml", "other.toml"]);
}

#[test]
fn what_cannot_be_read_is_a_fault_that_names_the_file() {
    let (folder, file) = place();
    let told = |file: &KeyFile| listed(&file.load().unwrap_err());
    assert!(told(&file).contains("keys.toml: No such file"), "{}", told(&file));
    assert_eq!(file.stamp(), None);
    assert!(told(&KeyFile::new(folder.path())).contains("not a regular file"));
    fs::write(&file.path, b"[tenants]\n# \xff").unwrap();
    assert!(told(&file).contains("byte 12 is not UTF-8"), "{}", told(&file));
    fs::write(&file.path, vec![b'#'; FILE_BYTES_MAX + 1]).unwrap();
    assert!(told(&file).contains("more than 4194304 bytes"), "{}", told(&file));
    let absent = KeyFile::new(folder.path().join("no/keys.toml"));
    assert!(matches!(add(&absent, "acme"), Err(EditError::Io { .. })));
    let id = KeyId::parse("3f9c2a1b").unwrap();
    assert!(matches!(absent.revoke(&id), Err(EditError::Io { .. })));
}

#[test]
fn a_file_with_faults_is_not_edited() {
    let (_folder, file) = place();
    let bad = "[tenants.acme]\nweight = 0\n";
    fs::write(&file.path, bad).unwrap();
    let told = add(&file, "acme").unwrap_err().to_string();
    assert!(told.contains("keys.toml cannot be used:\ntenants.acme.weight: 0 is not"), "{told}");
    let id = KeyId::parse("3f9c2a1b").unwrap();
    assert!(matches!(file.revoke(&id), Err(EditError::Faults { .. })));
    assert_eq!(fs::read_to_string(&file.path).unwrap(), bad);
}

#[test]
fn a_change_that_would_be_a_fault_leaves_the_file_as_it_was() {
    let (_folder, file) = place();
    add(&file, "acme").unwrap();
    let before = fs::read_to_string(&file.path).unwrap();
    let change = |tenant, change: Change| file.add(tenant, &[change], (None, None), at(0));
    let long = "n".repeat(201);
    let told = [
        change("acme", ("weight", 1_001.into())).unwrap_err(),
        change("b c", ("weight", 1.into())).unwrap_err(),
        change("acme", ("lane", "fast".into())).unwrap_err(),
        file.add("acme", &[], (Some(long), None), at(0)).unwrap_err(),
        change(KEY, ("weight", 1.into())).unwrap_err(),
    ]
    .map(|error| error.to_string());
    assert!(told[0].contains("tenants.acme.weight: 1001 is not within 1 to 1000"), "{told:?}");
    assert!(told[1].contains("tenants.b c: a name has"), "{told:?}");
    assert!(told[3].contains("keys[1].note: 201 characters"), "{told:?}");
    assert!(!told[4].contains("AAAA"), "{told:?}");
    assert_eq!(fs::read_to_string(&file.path).unwrap(), before);
}

#[test]
fn edits_at_the_same_time_lose_nothing() {
    let (_folder, file) = place();
    let edit = |thread: usize| {
        let ids = (0..4).map(|_| add(&file, &format!("t{thread}")).unwrap().id);
        let ids: Vec<KeyId> = ids.collect();
        file.revoke(&ids[0]).unwrap();
        ids
    };
    let all: Vec<Vec<KeyId>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || edit(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (ring, _) = file.load().unwrap();
    for ids in all {
        assert!(ring.key(&ids[0]).is_none(), "revoked");
        assert!(ids[1..].iter().all(|id| ring.key(id).is_some()), "all others are there");
    }
}

#[test]
fn a_change_is_seen_once_whatever_it_is() {
    let (_folder, file) = place();
    add(&file, "acme").unwrap();
    let mut watched = Watched::new(Some(file.load().unwrap().1));
    assert!(!watched.changed(file.stamp()));

    add(&file, "acme").unwrap();
    assert!(watched.changed(file.stamp()) && !watched.changed(file.stamp()), "replaced");

    let (text, modified) = {
        let found = fs::metadata(&file.path).unwrap();
        (fs::read(&file.path).unwrap(), found.modified().unwrap())
    };
    fs::write(&file.path, &text).unwrap();
    fs::File::options().append(true).open(&file.path).unwrap().set_modified(modified).unwrap();
    assert!(watched.changed(file.stamp()), "written in place, same size, time set back");

    fs::remove_file(&file.path).unwrap();
    assert!(watched.changed(file.stamp()) && !watched.changed(file.stamp()), "gone");
    fs::write(&file.path, &text).unwrap();
    assert!(watched.changed(file.stamp()) && !watched.changed(file.stamp()), "back");
    assert!(Watched::new(None).changed(file.stamp()));
}
