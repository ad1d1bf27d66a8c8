//! The quality bench: labelled cases through a real model, in all orders of their options.
//!
//! It ranks layouts, finds how many orders are worth reading, and fits the temperatures that a
//! model's profile holds. Every case is saved as soon as it is read, and a run that is started again
//! goes on. Example:
//! `cargo bench --bench quality -- --layouts bare,headers --cases all --limit 60`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a report is its output")]

mod cases;
mod computed;
mod devset;
mod fit;
mod forms;
mod measures;
mod model;
mod random;
mod reading;
mod record;
mod slots;
mod table;
mod themes;
mod tokens;

use std::path::{Path, PathBuf};

use actors::Engine;
use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use docket::config::DeviceChoice;
use docket::engine::kernels::Precision;
use docket::prompt::layout::named::LAYOUTS;

use cases::Case;
use computed::Computed;
use model::{LoadedModel, Model, ModelLayout};
use record::Results;
use table::{Group, LETTERS};

/// What was typed.
#[derive(Debug, Parser)]
struct Arguments {
    /// Catalogue name, or path of a GGUF file or safetensors folder
    #[arg(long, default_value = "qwen2.5-coder:1.5b")]
    model: String,
    /// Ids of the layouts to compare, or `all`; `letters` is the decisio dialect's [default: the one of
    /// the model's profile]
    #[arg(long, value_delimiter = ',')]
    layouts: Vec<String>,
    /// Which cases
    #[arg(long, value_enum, default_value = "all")]
    cases: Sets,
    /// Only the first N generated cases
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Only cases of these kinds: noul, choice, score
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// Precisions to compare: f32, bf16, int8
    #[arg(long, value_delimiter = ',', default_value = "f32", value_parser = precision)]
    precision: Vec<Precision>,
    /// Compute with the cuda engine on this device: cuda[:N], or cpu (slowly) [default: the cpu engine]
    #[arg(long)]
    device: Option<DeviceChoice>,
    /// Threads of the cpu engine
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Where readings are kept [default: quality.jsonl in the build's folder]
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Print the generated cases as JSON lines, and stop
    #[arg(long)]
    print_cases: bool,
    /// Print the tokens that each layout takes, and stop: nothing is computed
    #[arg(long)]
    tokens: bool,
    /// What `cargo bench` passes to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    /// Everything that is compared; on a device, with f32 of the `cpu` engine.
    fn computed(&self) -> impl Iterator<Item = Computed> {
        let device = self.device;
        let asked =
            self.precision.iter().map(move |precision| Computed { precision: *precision, device });
        device.map(|_| Computed::EXACT).into_iter().chain(asked)
    }
}

fn precision(name: &str) -> Result<Precision, String> {
    let known = Precision::ALL.into_iter().find(|precision| precision.name() == name);
    known.ok_or_else(|| format!("{name:?} is none of f32, bf16, int8"))
}

/// Which cases are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sets {
    /// The 60 published ones.
    Devset,
    /// Our generated ones.
    Generated,
    /// Both.
    All,
}

/// Cases under one heading of the report.
#[derive(Debug)]
struct CaseSet {
    name: String,
    cases: Vec<Case>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.print_cases {
        for case in cases::generated() {
            println!("{}", record::line(&case));
        }
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let sets = case_sets(&arguments, folder)?;
    let path = arguments.results.clone().unwrap_or_else(|| folder.join("quality.jsonl"));
    let model = Model::open(&arguments.model)?;
    let layouts = layouts(&arguments, &model);
    if arguments.tokens {
        println!("{}", token_table(&model, &layouts, &sets)?);
        return Ok(());
    }
    let mut results = Results::open(&path).with_context(|| path.display().to_string())?;
    let missing = read_missing(&model, &arguments, &layouts, &sets, &mut results)?;
    eprintln!("{missing} readings added to {}", path.display());
    report(&model, &arguments, &layouts, &sets, &results)
}

fn layouts(arguments: &Arguments, model: &Model) -> Vec<String> {
    match &arguments.layouts[..] {
        [] => vec![model.default_layout().to_owned()],
        [all] if all == "all" => LAYOUTS.map(|layout| layout.id.to_owned()).to_vec(),
        named => named.to_vec(),
    }
}

/// Tokens do not depend on the precision.
fn token_table(model: &Model, layouts: &[String], sets: &[CaseSet]) -> anyhow::Result<String> {
    let made = |id: &String| Ok((id.clone(), model.layout(id, Computed::EXACT)?));
    let made = layouts.iter().map(made).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(tokens::table(&made, sets))
}

fn case_sets(arguments: &Arguments, folder: &Path) -> anyhow::Result<Vec<CaseSet>> {
    let mut sets = Vec::new();
    if arguments.cases != Sets::Generated {
        let cases = devset::load(&folder.join("devset")).context("the published cases")?;
        sets.push(CaseSet { name: "devset".to_owned(), cases });
    }
    if arguments.cases != Sets::Devset {
        let mut cases = cases::generated();
        let all = cases.len();
        cases.truncate(arguments.limit.unwrap_or(all));
        let first = if cases.len() < all { ", first " } else { "" };
        let count = if cases.len() < all { cases.len().to_string() } else { String::new() };
        sets.push(CaseSet { name: format!("generated{first}{count}"), cases });
    }
    for set in &mut sets {
        let kinds = &arguments.kinds;
        let is_wanted = |kind: &str| kinds.is_empty() || kinds.iter().any(|wanted| wanted == kind);
        set.cases.retain(|case| is_wanted(case.question.kind.name()));
    }
    Ok(sets)
}

/// Reads every case that the results do not have; loads the weights only if there is one.
fn read_missing(
    model: &Model,
    arguments: &Arguments,
    layouts: &[String],
    sets: &[CaseSet],
    results: &mut Results,
) -> anyhow::Result<usize> {
    let mut count = 0;
    for computed in arguments.computed() {
        let mut wanted = Vec::new();
        for id in layouts {
            let layout = model.layout(id, computed)?;
            let cases = cases_to_read(model, &layout.identity, sets, results);
            count += cases.len();
            wanted.push(Wanted { id, layout, cases });
        }
        wanted.retain(|wanted| !wanted.cases.is_empty());
        if wanted.is_empty() {
            continue;
        }
        let precision = computed.precision;
        match computed.device {
            None => read(&model.load(precision, arguments.threads)?, &wanted, precision, results)?,
            Some(device) => read(&model.load_on(device, precision)?, &wanted, precision, results)?,
        }
    }
    Ok(count)
}

/// Cases to be read in a layout.
struct Wanted<'a> {
    id: &'a str,
    layout: ModelLayout,
    cases: Vec<&'a Case>,
}

fn read<E: Engine>(
    model: &LoadedModel<'_, E>,
    wanted: &[Wanted<'_>],
    precision: Precision,
    results: &mut Results,
) -> anyhow::Result<()> {
    for Wanted { id, layout, cases } in wanted {
        let mut reader = model.reader(layout);
        for (number, case) in cases.iter().enumerate() {
            results.add(reader.record(case).with_context(|| case.id.clone())?)?;
            eprintln!("{id} {precision}: {} of {} ({})", number + 1, cases.len(), case.id);
        }
    }
    Ok(())
}

/// Cases that the results do not have.
fn cases_to_read<'a>(
    model: &Model,
    identity: &str,
    sets: &'a [CaseSet],
    results: &Results,
) -> Vec<&'a Case> {
    let cases = sets.iter().flat_map(|set| &set.cases);
    let is_new = |case: &&Case| results.find(model.fingerprint(), identity, &case.id).is_none();
    cases.filter(is_new).collect()
}

fn report(
    model: &Model,
    arguments: &Arguments,
    layouts: &[String],
    sets: &[CaseSet],
    results: &Results,
) -> anyhow::Result<()> {
    let mut groups = Vec::new();
    for computed in arguments.computed() {
        for id in layouts {
            let identity = model.layout(id, computed)?.identity;
            let find = |case: &Case| results.find(model.fingerprint(), &identity, &case.id);
            for set in sets {
                let records = set.cases.iter().filter_map(find).collect();
                groups.push(Group { layout: id, computed, set: &set.name, records });
            }
            // A dialect's temperatures are fitted on all that is read in it.
            if id == LETTERS && sets.len() > 1 {
                let records = sets.iter().flat_map(|set| &set.cases).filter_map(find).collect();
                groups.push(Group { layout: id, computed, set: "all", records });
            }
        }
    }
    println!("{}\n{}", table::quality(&groups), table::samples(&groups));
    println!("{}", token_table(model, layouts, sets)?);
    if groups.iter().any(|group| group.computed != Computed::EXACT) {
        println!("{}", table::drift(&groups));
    }
    let is_fitted =
        |group: &&Group<'_>| group.set.starts_with("generated") || group.layout == LETTERS;
    for group in groups.iter().filter(is_fitted) {
        println!("{}", table::profile(group));
    }
    Ok(())
}
