//! Three desks on one store: whatever they do, and in whatever order they hear of it, they end alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::store::memory::Memory;
use crate::store::{Follower as _, Seen, Version};

/// A desk, how far it has seen the store, and what it works on: a task and what it is based on.
struct Server {
    desk: Desk,
    seen: Seen,
    work: Option<(usize, Option<Version>)>,
}

impl Server {
    fn of(store: &Arc<Memory>) -> Self {
        let desk = Desk::shared(config(), Arc::clone(store) as _, (Vec::new(), Version::default()));
        Self { desk, seen: Seen::default(), work: None }
    }

    /// Hears of so many changes, or of none where the store is lost.
    fn hear(&mut self, store: &Memory, most: usize) {
        if let Ok(seen) = store.tell(&self.seen, (most, &self.desk)) {
            self.seen = seen;
        }
    }

    /// What a change that is begun now is based on.
    fn base(&self) -> Result<Option<Version>, Refused> {
        self.desk.base().now_or_never().unwrap()
    }

    /// Ids of its tasks in their order, and what each says.
    fn tasks(&self) -> Vec<(String, String)> {
        let told = |task: Arc<Task>| (task.id.clone(), task.shown(true).to_string());
        self.desk.tasks(&tenant("one")).into_iter().map(told).collect()
    }
}

/// A task of one of a few names, told apart from others of it by a number.
fn numbered(id: usize, number: usize) -> Task {
    let record = json!({
        "format": "decisio-task/1", "id": format!("t{id}"), "type": "noul", "task_key": "k",
        "fingerprint": "letters", "options": ["yes", "no"], "applied_to": "each order",
        "calibration": {"applied": true, "bias": [0.1 + 0.2, -0.5]}, "head": null,
        "certificate": null, "examples": {"counts": [1, 1], "confidences": [0.9]},
        "created_at": number,
    });
    Task::read(&record).unwrap()
}

/// What one of three servers does.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// Begins to work on a task.
    Begin(usize),
    /// Ends what it works on: the task is registered, or refused.
    End,
    /// Removes a task.
    Remove(usize),
    /// Takes a task in.
    Import(usize),
    /// Hears of some changes.
    Hear(usize),
    /// Starts again without anything.
    Restart,
    /// The store is lost, or there again, for all.
    Lose(bool),
}

fn deed() -> impl Strategy<Value = (usize, Deed)> {
    let deed = prop_oneof![
        4 => (0..3_usize).prop_map(Deed::Begin),
        4 => Just(Deed::End),
        2 => (0..3_usize).prop_map(Deed::Remove),
        2 => (0..3_usize).prop_map(Deed::Import),
        4 => (1..4_usize).prop_map(Deed::Hear),
        1 => Just(Deed::Restart),
        1 => any::<bool>().prop_map(Deed::Lose),
    ];
    (0..3_usize, deed)
}

/// What was told to have been done: the number of the task of each name that there must be.
#[derive(Default)]
struct Told(BTreeMap<usize, usize>);

impl Told {
    fn kept(&mut self, id: usize, number: usize, result: &Result<(), Refused>) {
        match result {
            Ok(()) => {
                self.0.insert(id, number);
            }
            Err(Refused::Conflict(conflict)) => assert!(conflict.current > conflict.based_on),
            Err(Refused::Unavailable(_)) => {}
            Err(other @ (Refused::Full(_) | Refused::Disk(_))) => panic!("{other:?}"),
        }
    }
}

fn perform(
    server: &mut Server,
    store: &Arc<Memory>,
    (deed, number): (Deed, usize),
    told: &mut Told,
) {
    let one = tenant("one");
    match deed {
        Deed::Begin(id) => {
            server.work = server.base().ok().map(|base| (id, base));
        }
        Deed::End => {
            let Some((id, base)) = server.work.take() else { return };
            let kept = server.desk.keep_based(&one, numbered(id, number), base);
            told.kept(id, number, &kept.now_or_never().unwrap());
        }
        Deed::Remove(id) => {
            if server.desk.remove_now(&one, &format!("t{id}")) == Ok(true) {
                told.0.remove(&id);
            }
        }
        Deed::Import(id) => {
            let kept = server.desk.keep_now(&one, vec![numbered(id, number)]);
            told.kept(id, number, &kept);
        }
        Deed::Hear(most) => server.hear(store, most),
        Deed::Restart => *server = Server::of(store),
        Deed::Lose(is_lost) => store.lose(is_lost),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn three_servers_end_alike_with_nothing_lost_and_nothing_back(
        deeds in prop::collection::vec(deed(), 0..80),
        kept in prop_oneof![Just(2_u64), Just(5), Just(1_000)],
    ) {
        let store = Arc::new(Memory::remembering(kept));
        let mut servers = [Server::of(&store), Server::of(&store), Server::of(&store)];
        let mut told = Told::default();
        for (number, (at, deed)) in deeds.into_iter().enumerate() {
            perform(&mut servers[at], &store, (deed, number), &mut told);
        }
        store.lose(false);
        for server in &mut servers {
            server.hear(&store, usize::MAX);
        }
        let expected: BTreeMap<String, String> = told.0.iter()
            .map(|(id, number)| (format!("t{id}"), numbered(*id, *number).shown(true).to_string()))
            .collect();
        for server in &servers {
            let tasks = server.tasks();
            prop_assert_eq!(&tasks, &servers[0].tasks(), "in one order too");
            prop_assert_eq!(&tasks.into_iter().collect::<BTreeMap<_, _>>(), &expected);
        }
    }
}

fn two() -> (Arc<Memory>, Server, Server) {
    let store = Arc::new(Memory::remembering(1_000));
    let (a, b) = (Server::of(&store), Server::of(&store));
    (store, a, b)
}

#[test]
fn of_two_servers_that_register_one_task_at_one_moment_one_is_told_that_it_came_second() {
    let (store, mut a, mut b) = two();
    let one = tenant("one");
    let base = |server: &Server| server.base().unwrap();
    let (of_a, of_b) = (base(&a), base(&b));
    let keep = |server: &Server, number, base| {
        server.desk.keep_based(&one, numbered(1, number), base).now_or_never().unwrap()
    };
    keep(&a, 1, of_a).unwrap();
    let Err(Refused::Conflict(conflict)) = keep(&b, 2, of_b) else { panic!("both won") };
    assert_eq!((conflict.based_on, conflict.current), (0, 1));
    assert!(conflict.to_string().starts_with("task t1 was changed meanwhile"), "{conflict}");
    a.hear(&store, 9);
    b.hear(&store, 9);
    assert_eq!(a.tasks(), b.tasks());
    keep(&b, 3, base(&b)).expect("it is seen now");
}

#[test]
fn a_removal_wins_over_a_registration_that_began_before_it() {
    let (store, mut a, mut b) = two();
    let one = tenant("one");
    a.desk.keep_now(&one, vec![numbered(1, 1)]).unwrap();
    a.hear(&store, 9);
    b.hear(&store, 9);
    let base = a.base().unwrap();
    assert_eq!(b.desk.remove_now(&one, "t1"), Ok(true));
    let late = a.desk.keep_based(&one, numbered(1, 2), base).now_or_never().unwrap();
    assert!(matches!(late, Err(Refused::Conflict(_))), "{late:?}");
    a.hear(&store, 9);
    assert!(a.tasks().is_empty() && b.tasks().is_empty());
    assert!(store.records().is_empty());
}

#[test]
fn what_is_heard_late_undoes_nothing_that_was_done_here() {
    let (_, server, other) = two();
    let one = tenant("one");
    server.desk.keep_now(&one, vec![numbered(1, 1)]).unwrap();
    assert_eq!(server.desk.remove_now(&one, "t1"), Ok(true));
    let record = |version| crate::store::Record {
        key: crate::store::Key {
            kind: crate::store::Kind::Task,
            tenant: one.clone(),
            id: "t1".to_owned(),
        },
        version: Version(version),
        body: Some(numbered(1, 1).shown(true).to_string().into()),
    };
    server.desk.take(record(1));
    assert!(server.tasks().is_empty(), "the removal was change 2");
    other.desk.take(record(1));
    assert_eq!(other.tasks().len(), 1);
}

#[test]
fn a_lost_store_refuses_changes_at_once_and_what_is_known_stays() {
    let (store, mut server, _) = two();
    let one = tenant("one");
    server.desk.keep_now(&one, vec![numbered(1, 1)]).unwrap();
    server.hear(&store, 9);
    store.lose(true);
    let lost = |result: Result<(), Refused>| matches!(result, Err(Refused::Unavailable(_)));
    assert!(lost(server.base().map(|_| ())), "before examples are read");
    assert!(lost(server.desk.keep_now(&one, vec![numbered(2, 2)])));
    assert!(matches!(server.desk.remove_now(&one, "t1"), Err(Refused::Unavailable(_))));
    assert_eq!(server.tasks().len(), 1);
    let (reach, version) = server.desk.reach().unwrap();
    assert_eq!((reach.lost.is_some(), version), (true, Version(1)));
}

#[test]
fn a_task_is_the_same_bytes_on_every_server() {
    let (store, mut a, mut b) = two();
    a.desk.keep_now(&tenant("one"), vec![numbered(1, 1)]).unwrap();
    a.hear(&store, 9);
    b.hear(&store, 9);
    assert_eq!(a.tasks(), b.tasks());
    let [a, b] = [&a, &b].map(|server| server.desk.tasks(&tenant("one"))[0].correction.clone());
    assert_eq!(a.unwrap().form, b.unwrap().form);
}

#[test]
fn a_store_with_another_history_is_taken_as_it_is() {
    let (store, mut server, _) = two();
    let one = tenant("one");
    server.desk.keep_now(&one, vec![numbered(1, 1), numbered(2, 2)]).unwrap();
    server.hear(&store, 9);
    let restored = Arc::new(Memory::remembering(1_000));
    let other = Server::of(&restored);
    other.desk.keep_now(&one, vec![numbered(2, 7), numbered(3, 8), numbered(0, 9)]).unwrap();
    server.hear(&restored, 9);
    let mut heard = Server::of(&restored);
    heard.hear(&restored, 9);
    assert_eq!(server.tasks(), heard.tasks());
    assert_eq!(server.tasks().len(), 3);
}
