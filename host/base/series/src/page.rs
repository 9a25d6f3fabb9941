//! One page of metrics: each sample with its labels and the kind of its family.
//!
//! It reads Prometheus' text format and OpenMetrics' alike
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>,
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>): lines are `exposition`'s, kinds come
//! from the comments `# TYPE`. Values that are no finite number, such as NaN, are no samples.

use std::collections::{BTreeMap, HashMap};

use exposition::lines;

/// The most samples that are read of one page. vLLM's page has some 500 for each model.
pub const MOST_SAMPLES: usize = 20_000;

/// The most bytes that a sample's name and labels may take together.
pub const MOST_LABEL_BYTES: usize = 4_096;

const MOST_FAMILIES: usize = 5_000;

/// Suffixes of a family's name in the names of its samples.
const SUFFIXES: [&str; 6] = ["_bucket", "_sum", "_count", "_total", "_created", "_info"];

model::words! {
    /// The kind of a family of metrics, as its page states it.
    pub enum Kind {
        /// A number that only grows while the server runs.
        Counter = "counter",
        /// A number that rises and falls.
        Gauge = "gauge",
        /// Counters of observations up to a bound each, with their sum and their number.
        Histogram = "histogram",
        /// Quantiles that the server computed, with a sum and a number.
        Summary = "summary",
        /// Not stated by the page.
        Unknown = "unknown",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct PageSample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub kind: Kind,
    pub value: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub samples: Vec<PageSample>,
    pub left_out: u64,
}

/// Reads a page. Lines outside of the format are passed over.
pub fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut kinds: HashMap<&str, Kind> = HashMap::new();
    for line in text.lines() {
        if let Some((family, kind)) = stated(line) {
            if kinds.len() < MOST_FAMILIES {
                kinds.insert(family, kind);
            }
            continue;
        }
        let Some(found) = lines(line).next() else { continue };
        let labels = found.labels.iter();
        let bytes: usize = labels.map(|(name, value)| name.len() + value.len()).sum();
        if page.samples.len() >= MOST_SAMPLES || bytes + found.name.len() > MOST_LABEL_BYTES {
            page.left_out += 1;
            continue;
        }
        let clean = |text: &str| model::clean::line(text).into_owned();
        page.samples.push(PageSample {
            kind: kind_of(&kinds, found.name),
            name: clean(found.name),
            labels: found.labels.iter().map(|(name, value)| (clean(name), clean(value))).collect(),
            value: found.value,
        });
    }
    page
}

/// The family and its kind that a comment states.
fn stated(line: &str) -> Option<(&str, Kind)> {
    let rest = line.trim().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("TYPE")?;
    let mut words = rest.split_whitespace();
    let (family, kind) = (words.next()?, words.next()?);
    let kind = match kind {
        "counter" => Kind::Counter,
        "gauge" | "info" | "stateset" => Kind::Gauge,
        "histogram" => Kind::Histogram,
        "summary" => Kind::Summary,
        _ => Kind::Unknown,
    };
    Some((family, kind))
}

fn kind_of(kinds: &HashMap<&str, Kind>, name: &str) -> Kind {
    let families = [""].into_iter().chain(SUFFIXES);
    let mut kinds =
        families.filter_map(|suffix| Some((suffix, *kinds.get(name.strip_suffix(suffix)?)?)));
    match kinds.next() {
        // The time at which a counter began is no count.
        Some(("_created", _)) => Kind::Gauge,
        Some((_, kind)) => kind,
        None => Kind::Unknown,
    }
}
