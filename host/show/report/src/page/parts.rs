//! Sections of a few figures each: goodput, sessions, steady state, tokens, the dataset's changes,
//! the server's own metrics, devices, cost, scores.

use crate::document::Pair;
use crate::sections::{self, Row};
use model::number::{count, fixed, significant};
use result::summary::{Score, SteadyState, Summary};

/// The most devices that a page shows one by one.
const DEVICES: usize = 64;

/// A section: its title, words above its figures, and the figures.
pub(super) type Part = (&'static str, Option<String>, Vec<Pair>);

pub(super) fn parts(summary: &Summary) -> Vec<Part> {
    let (steady_words, steady) = match &summary.steady_state {
        None => (None, Vec::new()),
        Some(SteadyState::Absent(why)) => (Some(format!("None: {why}.")), Vec::new()),
        Some(SteadyState::Window(window)) => {
            let words = format!(
                "From {} to {} s, while at least {} of {} requests were in flight.",
                significant(window.from_s, 4),
                significant(window.to_s, 4),
                count(window.at_least),
                count(window.plateau)
            );
            (Some(words), sections::steady(window))
        }
    };
    let cache = summary.cache.as_ref().map(|cache| {
        format!(
            "A cache without limits is counted in pages of {} tokens, over the prompts in the order in which they were sent.",
            cache.page
        )
    });
    let server = summary.server.as_ref();
    let lost: Vec<String> =
        server.map(|server| sections::lost(server).collect()).unwrap_or_default();
    let (notes, host_note) = sections::device_notes(summary);
    let notes: Vec<String> = notes.into_iter().take(DEVICES).chain(host_note).collect();
    let scored = (!summary.scores.is_empty())
        .then(|| "Means over the judged answers, with 95 % intervals.".to_owned());
    let server_rows = server.map(sections::server).unwrap_or_default();
    let devices = pairs(sections::devices(summary)).into_iter().chain(each_device(summary));
    let mut parts = vec![
        ("Goodput", None, pairs(sections::goodput(summary))),
        ("Sessions", None, pairs(sections::sessions(summary))),
        ("Steady state", steady_words, pairs(steady)),
        ("Tokens", None, pairs(sections::tokens(summary))),
        ("Prefix cache", cache, pairs(sections::cache(summary))),
        ("Changes by the dataset", None, dataset(summary)),
        ("Server counts", joined(&lost), pairs(server_rows)),
        ("Server metrics over time", series(summary), pairs(sections::series(summary))),
        ("Devices", joined(&notes), devices.collect()),
        ("Cost", None, pairs(sections::cost(summary))),
        ("Scores", scored, scores(summary)),
    ];
    parts.retain(|(_, words, pairs)| !pairs.is_empty() || words.is_some());
    parts
}

fn pairs(rows: Vec<Row>) -> Vec<Pair> {
    rows.into_iter().filter_map(Row::pair).collect()
}

fn joined(sentences: &[String]) -> Option<String> {
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

fn dataset(summary: &Summary) -> Vec<Pair> {
    let pairs = summary.dataset.iter().flat_map(|dataset| &dataset.remarks).map(|remark| {
        let first = remark.first.as_ref().map(|first| format!(", first {first}"));
        Pair {
            name: format!("{}: {}", remark.what.name(), remark.reason),
            value: format!("{}{}", count(remark.count), first.unwrap_or_default()),
        }
    });
    pairs.collect()
}

fn series(summary: &Summary) -> Option<String> {
    let series = summary.server_series.as_ref()?;
    let failed = series.failed.zip(series.last_error.as_ref());
    let failed = failed.map_or(String::new(), |(count, error)| {
        format!(" {count} pages did not come, the last because: {error}.")
    });
    let (number, every) = (count(series.series), significant(series.every_s, 3));
    Some(format!("From {number} series of its metrics page, read every {every} s.{failed}"))
}

fn each_device(summary: &Summary) -> impl Iterator<Item = Pair> {
    let with = |value: Option<f64>, unit: &str| {
        value.map(|value| format!("{} {unit}", significant(value, 4)))
    };
    let devices = summary.devices.iter().flat_map(|devices| &devices.each);
    devices.enumerate().take(DEVICES).map(move |(place, figures)| {
        let known = [
            figures.device.name.clone(),
            with(figures.mean_power_w, "W"),
            with(figures.power_limit_w, "W at most"),
            with(figures.mean_sm_clock_mhz, "MHz"),
            with(figures.max_temperature_c, "°C"),
            with(figures.peak_memory.map(|bytes| bytes as f64 / sections::GIB), "GiB"),
        ];
        let known: Vec<String> = known.into_iter().flatten().collect();
        Pair {
            name: format!("Device {}", figures.device.label(place)),
            value: if known.is_empty() { "no values".to_owned() } else { known.join(", ") },
        }
    })
}

/// A score's mean, its certainty, and its number of answers.
fn scored(score: &Score) -> String {
    let bounds = score.confidence;
    let bounds = bounds.map(|bounds| format!(" ({})", bounds.label(" to ", |end| fixed(end, 4))));
    let unjudged = score.unjudged.label().map(|words| format!("; not judged: {words}"));
    format!(
        "{}{}, mean of {}{}",
        fixed(score.mean, 4),
        bounds.unwrap_or_default(),
        count(score.count),
        unjudged.unwrap_or_default()
    )
}

fn scores(summary: &Summary) -> Vec<Pair> {
    let means = summary.scores.iter().map(|(name, score)| (name, scored(score)));
    let whole = summary.run_scores.iter().map(|(name, value)| (name, fixed(*value, 4)));
    let silent = summary.silent_scorers.iter().map(|scorer| {
        let why = scorer.unjudged.label().unwrap_or_default();
        (&scorer.name, format!("no score: {why}"))
    });
    let pairs = means.chain(whole).chain(silent);
    pairs.map(|(name, value)| Pair { name: name.clone(), value }).collect()
}
