//! Records: what makes one, and how they are kept.

use super::*;
use crate::tasks::TASKS_MAX;

#[test]
fn records_that_contradict_themselves_are_refused() {
    let sound = json!({
        "format": "rlcd-task/1", "id": "t", "type": "noul", "task_key": "k", "fingerprint": "f",
        "options": ["yes", "no"], "applied_to": "each order",
        "calibration": {"applied": true, "bias": [0.5, -0.5]}, "head": null, "certificate": null,
        "examples": {"counts": [1, 1], "confidences": [0.9]},
    });
    let task = Task::read(&sound).unwrap();
    let correction = task.correction.unwrap();
    assert_eq!(correction.form, Form::Bias(vec![-0.5, 0.5]), "no first, as it is read");
    let array = |shape: Wire, b64: &str| json!({"dtype": "float32", "shape": shape, "b64": b64});
    let head = |t: f64, a: Wire| json!({"applied": true, "T": t, "A": a, "c": array(json!([2]), "AAAAAAAAAAA=")});
    for (field, value) in [
        ("format", json!("decisio-task/2")),
        ("options", json!("yes")),
        ("id", json!(3)),
        ("calibration", json!({"applied": true, "bias": [0.5]})),
        ("calibration", json!({"applied": true, "bias": [0.5, null]})),
        ("head", head(0.0, array(json!([1, 2]), "AAAAAAAAAAA="))),
        ("head", head(1.0, array(json!([2, 2]), "AAAAAAAAAAA="))),
        ("head", head(1.0, array(json!([1, 2]), "not base64"))),
        ("head", head(1.0, array(json!([1, 2]), "AADAfwAAwH8="))),
        ("head", head(1.0, json!({"shape": [1, 2]}))),
    ] {
        let mut record = sound.clone();
        record[field] = value;
        assert!(Task::read(&record).is_err(), "{record}");
    }
}

#[tokio::test]
async fn tasks_are_kept_on_disk_and_damaged_files_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let config = DeskConfig { folder: Some(folder.path().join("tasks")), ..config() };
    let desk = Desk::open(config.clone()).unwrap();
    registered(&desk, "one").await;
    std::fs::write(folder.path().join("tasks/task-bad.json"), "{").unwrap();
    std::fs::write(folder.path().join("tasks/task-odd.json"), "{\"kind\":\"task\"}").unwrap();
    let again = Desk::open(config.clone()).unwrap();
    assert_eq!(again.tasks(&tenant("one")).len(), 1);
    assert_eq!(again.tasks(&tenant("two")).len(), 0);
    assert_eq!(again.remove_now(&tenant("two"), "t"), Ok(false));
    assert_eq!(again.remove_now(&tenant("one"), "t"), Ok(true));
    assert_eq!(Desk::open(config).unwrap().tasks(&tenant("one")).len(), 0);
}

#[tokio::test]
async fn one_tenant_has_so_many_tasks_and_no_more() {
    let desk = desk();
    let record = registered(&desk, "one").await;
    let named = |id: usize| {
        let mut record = record.clone();
        record["id"] = json!(format!("t{id}"));
        Task::read(&record).unwrap()
    };
    for id in 1..TASKS_MAX {
        desk.keep_now(&tenant("one"), vec![named(id)]).unwrap();
    }
    let refused = desk.keep_now(&tenant("one"), vec![named(TASKS_MAX)]).unwrap_err();
    assert!(matches!(refused, Refused::Full(_)), "{refused:?}");
    desk.keep_now(&tenant("one"), vec![named(1)]).expect("in the place of one of the same id");
    desk.keep_now(&tenant("one/sub"), vec![named(1)])
        .expect_err("a sub-tenant's room is its tenant's");
    desk.keep_now(&tenant("two"), vec![named(1)]).expect("another tenant's room");
    assert!(
        desk.remove_now(&tenant("one"), "t1").unwrap()
            && !desk.remove_now(&tenant("one"), "t1").unwrap()
    );
    desk.keep_now(&tenant("one/sub"), vec![named(1)]).expect("there is room now");
}

#[tokio::test]
async fn what_is_imported_is_held_to_what_is_registered() {
    let desk = desk();
    let record = registered(&desk, "one").await;
    let with = |field: &str, value: Wire| {
        let mut record = record.clone();
        record[field] = value;
        Task::read(&record)
    };
    for id in ["a\r\nx-evil: 1", "a,b", "é", "", "import", &"a".repeat(70_000)] {
        assert!(with("id", json!(id)).is_err(), "{id:?}");
    }
    let junk = with("junk", json!("x".repeat(3 << 20))).unwrap();
    assert!(junk.shown(true).get("junk").is_none(), "unknown fields are left out");
    assert!(with("fingerprint", json!("x".repeat(3 << 20))).is_err(), "a record has its limit");
    assert!(with("calibration", json!("s")).is_err());
    assert!(with("options", json!([])).is_err());
    assert!(with("certificate", json!({"threshold": -5})).is_err());
    let unused = json!({"applied": false, "A": {"shape": [1, 3], "b64": "AAAAAAAAAAAAAAAA"}});
    let unused = with("head", unused).unwrap();
    assert!(unused.shown(true)["head"].get("A").is_none(), "arrays that nothing uses");
}

#[tokio::test]
async fn tasks_are_taken_in_all_or_none() {
    let desk = desk();
    let record = registered(&desk, "one").await;
    let named = |id: usize| {
        let mut record = record.clone();
        record["id"] = json!(format!("t{id}"));
        Task::read(&record).unwrap()
    };
    desk.keep_now(&tenant("one"), (0..TASKS_MAX - 6).map(named).collect()).unwrap();
    let held = desk.tasks(&tenant("one")).len();
    let refused = desk.keep_now(&tenant("one"), (TASKS_MAX..TASKS_MAX + 10).map(named).collect());
    assert!(matches!(refused, Err(Refused::Full(_))));
    assert_eq!(desk.tasks(&tenant("one")).len(), held);
}

#[tokio::test]
async fn of_two_tasks_of_one_question_the_newest_holds_after_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let config = DeskConfig { folder: Some(folder.path().to_owned()), ..config() };
    let desk = Desk::open(config.clone()).unwrap();
    let record = registered(&desk, "one").await;
    for id in ["b", "a", "d", "c"] {
        let mut record = record.clone();
        record["id"] = json!(id);
        desk.keep_now(&tenant("one"), vec![Task::read(&record).unwrap()]).unwrap();
        let again = Desk::open(config.clone()).unwrap();
        let question = &decision(&routing("x")).questions[0];
        let matching = again.tasks_of(&tenant("one"), Manner::Letters, question);
        assert_eq!(matching.last().map(|task| task.id.as_str()), Some(id));
    }
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("task-zero.json")).unwrap();
    std::fs::create_dir(folder.path().join("task-folder.json")).unwrap();
    std::fs::write(folder.path().join(".tmpAbCdEf"), "half").unwrap();
    let config = DeskConfig { folder: Some(folder.path().to_owned()), ..config() };
    assert!(Desk::open(config).unwrap().all().is_empty());
    assert!(!folder.path().join(".tmpAbCdEf").exists(), "what a killed process left");
}
