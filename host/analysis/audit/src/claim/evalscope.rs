//! The JSON of `evalscope perf`: the summary of a run, and the table of its percentiles, which it
//! writes into a file of its own.

use serde_json::Value;

use super::json::{Lookup, Object};
use super::{Claim, ReadError, Source, Stated, Tool};

/// Its figures' names by ours, with the factor from its unit. -1 stands for a failed division.
const FIGURES: [(&str, &str, f64); 8] = [
    ("Test Duration (s)", "throughput.duration-s", 1.0),
    ("Req Throughput (req/s)", "throughput.requests-per-s", 1.0),
    ("Output Throughput (tok/s)", "throughput.output-tokens-per-s", 1.0),
    ("Total Throughput (tok/s)", "throughput.total-tokens-per-s", 1.0),
    ("Avg Latency (s)", "e2e.mean", 1e3),
    ("Avg TTFT (ms)", "ttft.mean", 1.0),
    ("Avg TPOT (ms)", "tpot.mean", 1.0),
    ("Avg ITL (ms)", "itl.mean", 1.0),
];

/// The columns of its percentiles that are latencies.
const COLUMNS: [(&str, &str, f64); 4] = [
    ("Latency (s)", "e2e", 1e3),
    ("TTFT (ms)", "ttft", 1.0),
    ("TPOT (ms)", "tpot", 1.0),
    ("ITL (ms)", "itl", 1.0),
];

/// Half of the last digit: evalscope rounds every figure to four decimals.
const ROUNDING: f64 = 0.5e-4;

pub(super) fn is_summary(object: &Object) -> bool {
    ["Test Duration (s)", "Total Requests", "Success Requests"]
        .iter()
        .all(|key| object.contains_key(*key))
}

pub(super) fn is_percentiles(list: &[Value]) -> bool {
    list.first().is_some_and(|first| {
        first.get("Percentiles").is_some() && first.get("Latency (s)").is_some()
    })
}

pub(super) fn read(object: &Object, source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(Tool::Evalscope, source);
    for (key, name) in [
        ("Total Requests", "requests.total"),
        ("Success Requests", "requests.successful"),
        ("Failed Requests", "requests.failed"),
    ] {
        lookup.state_count(&mut claim, (object, key), name);
    }
    for (key, name, factor) in FIGURES {
        if let Some(stated) = figure(object, key, &mut lookup) {
            claim.state(name, stated.value * factor, ROUNDING * factor);
        }
    }
    let answered = claim.value("requests.successful");
    for (key, name) in
        [("Avg Input Tokens", "tokens.input"), ("Avg Output Tokens", "tokens.output")]
    {
        // A mean in four decimals gives the sum where it is below ten thousand requests.
        if let Some(mean) = figure(object, key, &mut lookup)
            && let Some(answered) = answered.filter(|answered| answered * ROUNDING < 0.5)
        {
            claim.state(name, (mean.value * answered).round(), 0.0);
        }
    }
    let settings = &mut claim.asked;
    settings.max_concurrency = lookup.count(object, "Concurrency").filter(|cap| *cap > 0);
    settings.request_rate = lookup
        .rate(object, "Request Rate (req/s)")
        .map(|rate| if rate < 0.0 { f64::INFINITY } else { rate });
    let streamed = lookup.count(object, "Stream Requests");
    let whole = lookup.count(object, "Non-Stream Requests");
    settings.stream = match (streamed, whole) {
        (Some(1..), Some(0)) => Some(true),
        (Some(0), Some(1..)) => Some(false),
        _ => None,
    };
    lookup.finish(claim)
}

fn figure(object: &Object, key: &str, lookup: &mut Lookup) -> Option<Stated> {
    lookup.number(object, key).filter(|stated| stated.value >= 0.0)
}

/// Reads a table of percentiles, which states nothing else.
pub(super) fn read_percentiles(rows: &[Value], source: Source) -> Result<Claim, Vec<ReadError>> {
    let mut lookup = Lookup::new(&source);
    let mut claim = Claim::new(Tool::Evalscope, source);
    lookup.each(rows, "an object for each percentile", |lookup, row| {
        let errors = lookup.errors.len();
        let label = lookup.text(row, "Percentiles").unwrap_or_default();
        let named = label.strip_suffix('%').map(|percent| format!("p{percent}"));
        let named = named.unwrap_or_else(|| label.to_owned());
        match super::statistic(&named) {
            Some(statistic) => {
                for (key, name, factor) in COLUMNS {
                    if let Some(stated) = figure(row, key, lookup) {
                        let figure = format!("{name}.{statistic}");
                        claim.state(figure, stated.value * factor, ROUNDING * factor);
                    }
                }
            }
            None if lookup.errors.len() == errors => {
                let found = row.get("Percentiles").unwrap_or(&Value::Null);
                lookup.unlike("Percentiles", found, "`min`, `max` or a percentage: `99%`");
            }
            None => {}
        }
    });
    lookup.finish(claim)
}
