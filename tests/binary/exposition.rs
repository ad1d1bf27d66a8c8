//! Prometheus text format 0.0.4, read strictly: what a scraper could take offence at is an error.

use std::collections::{BTreeMap, BTreeSet};

/// Labels of a series.
pub(crate) type Labels = BTreeMap<String, String>;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// The family's name, for a histogram with `_bucket`, `_sum` or `_count`.
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) value: f64,
}

/// All series of one name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) samples: Vec<Sample>,
}

/// A page of metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exposition(pub(crate) BTreeMap<String, Family>);

/// A page as far as it was read.
#[derive(Default)]
struct Page {
    families: BTreeMap<String, Family>,
    helped: BTreeSet<String>,
    /// The family whose samples come now.
    current: String,
}

impl Page {
    fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let name = help.split(' ').next().unwrap_or_default();
            let is_new = self.helped.insert(name.to_owned()) && !self.families.contains_key(name);
            return if is_new { Ok(()) } else { Err("a second or late HELP".to_owned()) };
        }
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').ok_or("no kind")?;
            check_family(name, kind)?;
            name.clone_into(&mut self.current);
            let family = Family { kind: kind.to_owned(), samples: Vec::new() };
            let before = self.families.insert(name.to_owned(), family);
            return if before.is_none() { Ok(()) } else { Err("a second TYPE".to_owned()) };
        }
        let sample = sample(line)?;
        let family = self.families.get_mut(&self.current).ok_or("no TYPE")?;
        if !belongs(&sample.name, &self.current, &family.kind) {
            return Err("a sample outside its family".to_owned());
        }
        family.samples.push(sample);
        Ok(())
    }
}

impl Exposition {
    /// Reads and checks a page.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut page = Page::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            page.take(line).map_err(|what| format!("{what}: {line}"))?;
        }
        let families = page.families;
        for (name, family) in &families {
            check_samples(name, family).map_err(|what| format!("{name}: {what}"))?;
        }
        Ok(Self(families))
    }

    /// The samples of a family, which must be there.
    pub(crate) fn samples(&self, family: &str) -> &[Sample] {
        let found = self.0.get(family).unwrap_or_else(|| panic!("no {family}"));
        &found.samples
    }

    /// The sum of a family's plain samples that have these labels.
    pub(crate) fn sum(&self, family: &str, labels: &[(&str, &str)]) -> f64 {
        self.sum_of(family, family, labels)
    }

    /// The same of what is counted in whole numbers.
    pub(crate) fn whole(&self, family: &str, labels: &[(&str, &str)]) -> u64 {
        whole(self.sum(family, labels))
    }

    /// The number of values in a histogram.
    pub(crate) fn count(&self, family: &str) -> u64 {
        whole(self.sum_of(family, &format!("{family}_count"), &[]))
    }

    fn sum_of(&self, family: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&Sample| {
            let mut wanted = labels.iter();
            sample.name == name
                && wanted.all(|(key, value)| sample.labels.get(*key).is_some_and(|v| v == value))
        };
        self.samples(family).iter().filter(has).map(|sample| sample.value).sum()
    }
}

/// A whole number that is written as one.
pub(crate) fn whole(value: f64) -> u64 {
    value.to_string().parse().unwrap_or_else(|_| panic!("{value} is no count"))
}

fn belongs(sample: &str, family: &str, kind: &str) -> bool {
    let suffix = sample.strip_prefix(family);
    match kind {
        "histogram" => matches!(suffix, Some("_bucket" | "_sum" | "_count")),
        _ => suffix == Some(""),
    }
}

fn check_family(name: &str, kind: &str) -> Result<(), String> {
    if !is_name(name, true) {
        return Err("no metric name".to_owned());
    }
    match kind {
        "counter" if !name.ends_with("_total") => Err("a counter without _total".to_owned()),
        "gauge" if name.ends_with("_total") => Err("a gauge with _total".to_owned()),
        "counter" | "gauge" | "histogram" => Ok(()),
        _ => Err(format!("the kind {kind}")),
    }
}

fn is_name(name: &str, may_have_colon: bool) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || (may_have_colon && c == ':');
    let mut characters = name.chars();
    characters.next().is_some_and(is_first) && characters.all(|c| is_first(c) || c.is_ascii_digit())
}

/// Reads `name{key="value",...} number`.
fn sample(line: &str) -> Result<Sample, String> {
    let fault = |what: &str| format!("{what}: {line}");
    let end = line.find(['{', ' ']).ok_or_else(|| fault("no value"))?;
    let (name, rest) = line.split_at(end);
    if !is_name(name, true) {
        return Err(fault("no metric name"));
    }
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest).ok_or_else(|| fault("bad labels"))?,
        None => (Labels::new(), rest),
    };
    let value = value.strip_prefix(' ').ok_or_else(|| fault("no space before the value"))?;
    let value = value.parse().map_err(|_| fault("no number"))?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// Labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        let (key, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        let is_new = labels.insert(key.to_owned(), value).is_none();
        if !is_name(key, false) || !is_new {
            return None;
        }
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Some((labels, after.strip_prefix('}')?)),
        }
    }
}

/// A label's value up to its closing quote, and what follows that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                _ => return None,
            }),
            plain => value.push(plain),
        }
    }
    None
}

fn check_samples(name: &str, family: &Family) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let keys = |sample: &Sample| {
        sample.labels.keys().filter(|key| *key != "le").cloned().collect::<Vec<_>>()
    };
    for sample in &family.samples {
        if !seen.insert((sample.name.clone(), sample.labels.clone())) {
            return Err(format!("{sample:?} comes twice"));
        }
        if keys(sample) != keys(&family.samples[0]) {
            return Err(format!("{sample:?} has other labels than the first"));
        }
        if family.kind == "counter" && !(sample.value >= 0.0 && sample.value.is_finite()) {
            return Err(format!("{sample:?} is no count"));
        }
    }
    if family.samples.is_empty() {
        return Err("no samples".to_owned());
    }
    if family.kind == "histogram" { check_histogram(name, &family.samples) } else { Ok(()) }
}

/// Buckets rise to the count, and each series has sum and count.
fn check_histogram(name: &str, samples: &[Sample]) -> Result<(), String> {
    let mut series: BTreeMap<Labels, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let mut labels = sample.labels.clone();
        let has_bound = labels.remove("le").is_some();
        if has_bound != sample.name.ends_with("_bucket") {
            return Err(format!("{sample:?} has a bound and is no bucket, or the reverse"));
        }
        series.entry(labels).or_default().push(sample);
    }
    for samples in series.values() {
        let one = |suffix: &str| samples.iter().find(|s| s.name == format!("{name}{suffix}"));
        let (Some(count), Some(_)) = (one("_count"), one("_sum")) else {
            return Err(format!("no sum or count beside {:?}", samples[0]));
        };
        let buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|sample| Some((sample.labels.get("le")?.parse().ok()?, sample.value)))
            .collect();
        let rise = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let is_whole = buckets.last() == Some(&(f64::INFINITY, count.value));
        if buckets.len() < 2 || !rise || !is_whole {
            return Err(format!("the buckets {buckets:?} do not rise to {}", count.value));
        }
    }
    Ok(())
}

#[test]
fn faults_of_a_page_are_found() {
    let histogram = |buckets: &str| format!("# TYPE h histogram\n{buckets}h_sum 1\nh_count 2\n");
    let sound = histogram("h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n");
    for page in [
        sound.as_str(),
        "# HELP a_total x\n# TYPE a_total counter\na_total{k=\"v,}\\\"\\\\\"} 1\n",
        "# TYPE vllm:g gauge\nvllm:g -1.5\n",
    ] {
        assert!(Exposition::parse(page).is_ok(), "{page}: {:?}", Exposition::parse(page));
    }
    for page in [
        "a 1\n",
        "# TYPE a counter\na 1\n",
        "# TYPE a_total gauge\na_total 1\n",
        "# TYPE a_total counter\na_total -1\n",
        "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\na{x=\"y\"} 2\n",
        "# TYPE a gauge\na 1\na 1\n",
        "# TYPE a gauge\na 1\n# TYPE a gauge\na{x=\"y\"} 1\n",
        "# TYPE a gauge\na{x=\"y\"} 1\na{z=\"y\"} 1\n",
        "# TYPE a gauge\na{x=\"y} 1\n",
        "# TYPE a gauge\na one\n",
        "# TYPE a gauge\n",
        &histogram("h_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 2\n"),
        &histogram("h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 3\n"),
        &histogram("h_bucket{le=\"1\"} 1\n"),
        &histogram("h_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n"),
    ] {
        assert!(Exposition::parse(page).is_err(), "{page}");
    }
}
