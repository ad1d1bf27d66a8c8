//! What is known of a store: the rules by which a newer state stays.

use actors::TenantId;

use super::*;

fn tenant(name: &str) -> TenantId {
    TenantId(name.into())
}

#[test]
fn the_newest_state_stays_in_whatever_order_they_are_told() {
    let one = tenant("one");
    let mut known = Replica::default();
    assert!(known.take((&one, "a"), Version(2), Some(("second", 6))));
    assert!(!known.take((&one, "a"), Version(1), Some(("first", 5))));
    assert!(!known.take((&one, "a"), Version(2), Some(("again", 5))));
    assert_eq!(known.of(&one), [&"second"]);
    assert!(known.take((&one, "a"), Version(3), None));
    assert!(!known.take((&one, "a"), Version(2), Some(("second", 6))), "it was removed");
    assert_eq!(known.find(&one, "a"), None);
}

#[test]
fn a_removal_is_forgotten_once_all_before_it_was_told() {
    let one = tenant("one");
    let mut known: Replica<&str> = Replica::default();
    known.take((&one, "a"), Version(3), None);
    known.seen(Version(2));
    assert!(known.knows((&one, "a"), Version(1)));
    known.seen(Version(3));
    assert!(!known.knows((&one, "a"), Version(1)));
    assert_eq!(known.version(), Version(3));
}

#[test]
fn a_new_history_takes_the_place_of_the_old_one() {
    let one = tenant("one");
    let mut known = Replica::default();
    known.take((&one, "gone"), Version(8), Some(("old", 3)));
    known.take((&one, "stays"), Version(9), Some(("old", 3)));
    known.seen(Version(9));
    known.anew();
    assert_eq!(known.of(&one).len(), 2, "both are served meanwhile");
    known.take((&one, "stays"), Version(1), Some(("new", 3)));
    known.take((&one, "own"), Version(2), Some(("own", 3)));
    known.seen(Version(1));
    assert_eq!(known.of(&one), [&"new", &"own"]);
    assert_eq!(known.next(), Version(10), "larger than all that ever were");
}

#[test]
fn sizes_are_those_of_a_tenant_with_its_subs() {
    let mut known = Replica::default();
    known.take((&tenant("one"), "a"), Version(1), Some(("x", 10)));
    known.take((&tenant("one/sub"), "a"), Version(2), Some(("x", 5)));
    known.take((&tenant("two"), "a"), Version(3), Some(("x", 1)));
    known.take((&tenant("two"), "b"), Version(4), None);
    let sizes = known.sizes();
    assert_eq!((sizes["one"], sizes["two"]), ((2, 15), (1, 1)));
    assert_eq!(known.paid_by("one").count(), 2);
}

#[test]
fn a_change_is_refused_where_its_record_is_younger_than_what_it_is_based_on() {
    let key = Key { kind: Kind::Abstention, tenant: tenant("one"), id: "a".to_owned() };
    let check =
        |base: Option<u64>, current: u64| check_base(&key, base.map(Version), Version(current));
    assert_eq!(check(Some(4), 4), Ok(()));
    assert_eq!(check(Some(4), 0), Ok(()));
    assert_eq!(check(None, 9), Ok(()), "a removal holds whatever there is");
    let told = check(Some(4), 5).unwrap_err().to_string();
    assert!(
        told.contains("abstention task a") && told.contains("version 4, and version 5"),
        "{told}"
    );
}

#[test]
fn kinds_are_named_as_they_are_read() {
    for kind in Kind::ALL {
        assert_eq!(Kind::named(kind.as_str()), Some(kind));
    }
    assert_eq!(Kind::named("other"), None);
}
