//! The report: Markdown tables for docs/BENCHMARKS.md.

use std::fmt::Write as _;

use crate::computed::Computed;
use crate::fit::{self, Fit};
use crate::measures::{self, Labelled};
use crate::record::Record;

/// Kinds in the order of the tables.
const KINDS: [&str; 3] = ["noul", "choice", "score"];

/// What the layout of the `decisio` dialect is called here, as its default settings compose it.
pub(crate) const LETTERS: &str = "letters";

/// Records of one layout on one set of cases.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The layout's id.
    pub(crate) layout: &'a str,
    /// What the products were computed in.
    pub(crate) computed: Computed,
    /// Name of the set.
    pub(crate) set: &'a str,
    /// In the set's order.
    pub(crate) records: Vec<&'a Record>,
}

impl Group<'_> {
    /// Layout, with precision and device unless they are the exact ones.
    fn name(&self) -> String {
        let words = self.computed.words().map(|word| format!(" {word}"));
        std::iter::once(self.layout.to_owned()).chain(words).collect()
    }

    fn of_kind(&self, kind: &str) -> Vec<&Record> {
        self.records.iter().copied().filter(|record| record.kind == kind).collect()
    }
}

/// The quality of each group and kind, one row each.
pub(crate) fn quality(groups: &[Group<'_>]) -> String {
    let mut text = String::from(
        "| layout | cases | kind | n | one order | all orders (95 %) | log loss | Brier | ECE \
         | label mass | order consistency | also |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for group in groups {
        for kind in KINDS {
            let records = group.of_kind(kind);
            if !records.is_empty() {
                text += &quality_row(group, kind, &records);
            }
        }
    }
    text
}

fn quality_row(group: &Group<'_>, kind: &str, records: &[&Record]) -> String {
    let all = labelled(records, usize::MAX);
    let one = measures::accuracy(&labelled(records, 1));
    let (low, high) = measures::wilson(measures::right(&all), all.len());
    let Fit { before, after, .. } = fit::fit(&all);
    format!(
        "| {} | {} | {kind} | {} | {one:.2} | **{:.2}** ({low:.2}-{high:.2}) | {:.2} → {:.2} \
         | {:.2} → {:.2} | {:.2} → {:.2} | {:.2} | {:.2} | {} |\n",
        group.name(),
        group.set,
        all.len(),
        measures::accuracy(&all),
        before.log_loss,
        after.log_loss,
        before.brier,
        after.brier,
        before.calibration_error,
        after.calibration_error,
        measures::mean(records.iter().flat_map(|record| record.mass.iter().copied())),
        measures::mean(records.iter().map(|r| measures::order_consistency(&distributions(r)))),
        also(kind, &all),
    )
}

/// What only this kind has: area under the curve, or the error in levels.
fn also(kind: &str, cases: &[Labelled]) -> String {
    match kind {
        "noul" => measures::area_under_curve(cases)
            .map_or_else(String::new, |area| format!("AUC {area:.2}")),
        "score" => format!("error {:.2} levels", measures::level_error(cases)),
        _ => String::new(),
    }
}

/// Right answers with the first 1, 2, ... orders; the cheapest number within one case of the best
/// is in bold.
pub(crate) fn samples(groups: &[Group<'_>]) -> String {
    let mut text = String::from(
        "| layout | cases | kind | n | right with 1, 2, ... orders |\n|---|---|---|--:|---|\n",
    );
    for group in groups {
        for kind in KINDS {
            text += &samples_row(group, kind);
        }
    }
    text
}

fn samples_row(group: &Group<'_>, kind: &str) -> String {
    let records = group.of_kind(kind);
    if records.is_empty() {
        return String::new();
    }
    let curve = curve(&records);
    let cheapest = cheapest(&curve);
    let shown = curve.iter().zip(1..).map(|(right, orders)| {
        if orders == cheapest { format!("**{right}**") } else { right.to_string() }
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    format!("| {} | {} | {kind} | {} | {shown} |\n", group.name(), group.set, records.len())
}

/// What a profile should hold for this layout: orders and temperature a kind. Letters are read in one
/// order.
pub(crate) fn profile(group: &Group<'_>) -> String {
    let mut text = String::from(
        "| layout | kind | samples | temperature | log loss | Brier | ECE |\n|---|---|--:|--:|--:|--:|--:|\n",
    );
    for kind in KINDS {
        let records = group.of_kind(kind);
        if records.is_empty() {
            continue;
        }
        let orders = if group.layout == LETTERS { 1 } else { cheapest(&curve(&records)) };
        let Fit { temperature, before, after } = fit::fit(&labelled(&records, orders));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {kind} | {orders} | {temperature:.2} | {:.3} → {:.3} | {:.3} → {:.3} | {:.3} → {:.3} |",
            group.name(),
            before.log_loss,
            after.log_loss,
            before.brier,
            after.brier,
            before.calibration_error,
            after.calibration_error,
        );
    }
    text
}

/// How far rounded products are from exact ones on the same cases: difference of each probability
/// of the averaged distributions, and cases whose top answer is another.
pub(crate) fn drift(groups: &[Group<'_>]) -> String {
    let mut text = String::from(
        "| layout | cases | kind | n | mean dp | largest dp | other top answer |\n|---|---|---|--:|--:|--:|--:|\n",
    );
    for group in groups.iter().filter(|group| group.computed != Computed::EXACT) {
        let is_exact = |other: &&Group<'_>| {
            other.computed == Computed::EXACT
                && (other.layout, other.set) == (group.layout, group.set)
        };
        let Some(exact) = groups.iter().find(is_exact) else { continue };
        for kind in KINDS {
            text += &drift_row(group, exact, kind);
        }
    }
    text
}

fn drift_row(group: &Group<'_>, exact: &Group<'_>, kind: &str) -> String {
    let (mut differences, mut turned, mut count) = (Vec::new(), 0, 0);
    for record in group.of_kind(kind) {
        let same = |other: &&&Record| other.case == record.case;
        let Some(other) = exact.records.iter().find(same) else { continue };
        let (ours, theirs) = (average(record, usize::MAX), average(other, usize::MAX));
        count += 1;
        turned += usize::from(measures::top(&ours) != measures::top(&theirs));
        differences.extend(ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()));
    }
    let largest = differences.iter().copied().fold(0.0, f64::max);
    let mean = measures::mean(differences.into_iter());
    format!(
        "| {} | {} | {kind} | {count} | {mean:.4} | {largest:.3} | {turned} |\n",
        group.name(),
        group.set
    )
}

/// `[orders]`: right answers with the first 1, 2, ... orders.
pub(crate) fn curve(records: &[&Record]) -> Vec<usize> {
    let most = records.iter().map(|record| record.orders.len()).max().unwrap_or(0);
    (1..=most).map(|orders| measures::right(&labelled(records, orders))).collect()
}

/// The smallest number of orders that is within one case of all of them.
pub(crate) fn cheapest(curve: &[usize]) -> usize {
    let full = curve.last().copied().unwrap_or(0);
    curve.iter().position(|right| right + 1 >= full).map_or(1, |index| index + 1)
}

fn labelled(records: &[&Record], orders: usize) -> Vec<Labelled> {
    let one =
        |record: &&Record| Labelled { probabilities: average(record, orders), gold: record.gold };
    records.iter().map(one).collect()
}

/// The distribution that the first `orders` orders of a case give together.
pub(crate) fn average(record: &Record, orders: usize) -> Vec<f64> {
    measures::average(&distributions(record), orders)
}

fn distributions(record: &Record) -> Vec<Vec<f64>> {
    record.orders.iter().map(|order| measures::softmax(order)).collect()
}
