//! The results file goes on where it was, and the tables say what is in it.

use crate::computed::Computed;
use crate::record::{Record, Results};
use crate::table::{Group, cheapest, curve, quality, samples};

fn record(case: &str) -> Record {
    Record {
        model: "m".to_owned(),
        layout: "bare".to_owned(),
        case: case.to_owned(),
        kind: "noul".to_owned(),
        gold: 1,
        orders: vec![vec![-0.5, -1.0]],
        mass: vec![0.9],
        greedy: 1,
        tokens: 10,
        elapsed_ms: 1.5,
    }
}

#[test]
fn a_file_that_was_cut_off_goes_on_with_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    Results::open(&path).unwrap().add(record("a")).unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{}", &whole[..20])).unwrap();

    let mut results = Results::open(&path).unwrap();
    assert_eq!(results.find("m", "bare", "a"), Some(&record("a")));
    assert_eq!(results.find("m", "other", "a"), None);
    results.add(record("b")).unwrap();

    let again = Results::open(&path).unwrap();
    assert!(again.find("m", "bare", "a").is_some() && again.find("m", "bare", "b").is_some());
}

fn read(gold: usize, orders: &[[f64; 2]]) -> Record {
    Record {
        model: "m".to_owned(),
        layout: "l".to_owned(),
        case: "c".to_owned(),
        kind: "choice".to_owned(),
        gold,
        orders: orders.iter().map(|order| order.map(f64::ln).to_vec()).collect(),
        mass: vec![1.0; orders.len()],
        greedy: 0,
        tokens: 0,
        elapsed_ms: 0.0,
    }
}

#[test]
fn the_cheapest_number_of_orders_is_within_one_case_of_all() {
    assert_eq!(cheapest(&[10, 18, 20, 19]), 2);
    assert_eq!(cheapest(&[19, 18, 20]), 1);
    assert_eq!(cheapest(&[]), 1);
}

#[test]
fn a_curve_counts_what_the_first_orders_get_right() {
    let swayed = read(1, &[[0.6, 0.4], [0.1, 0.9]]);
    let firm = read(0, &[[0.8, 0.2]]);
    assert_eq!(curve(&[&swayed, &firm]), [1, 2]);
}

#[test]
fn the_tables_say_what_was_measured() {
    let records = [read(1, &[[0.6, 0.4], [0.1, 0.9]]), read(0, &[[0.8, 0.2], [0.8, 0.2]])];
    let group = Group {
        layout: "bare",
        computed: Computed::EXACT,
        set: "dev",
        records: records.iter().collect(),
    };
    let table = quality(std::slice::from_ref(&group));
    assert!(table.contains("| bare | dev | choice | 2 | 0.50 | **1.00** ("), "{table}");
    assert!(table.contains("| 1.00 | 0.75 |"), "{table}");
    assert!(samples(&[group]).contains("| 2 | **1**, 2 |"));
}
