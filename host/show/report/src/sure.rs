//! The table *How sure*: figures of a run with their 95 % intervals, over repeats of the same seed
//! and over runs with a new seed. The text block and the page draw the same rows.

use result::metric;
use result::summary::{Bounds, Distribution, SteadyState, Summary};

pub(crate) const TITLE: &str = "How Sure (95 %)";

/// The headings of the columns after the figure's name.
pub(crate) const COLUMNS: [&str; 3] = ["this run", "same seed", "new seed"];

/// The meaning of the columns.
pub(crate) const NOTE: &str = "same seed: repeats of these requests; new seed: other requests of this kind; neither has what makes a whole run faster or slower, such as a restart";

/// Runs that are enough for an interval of every figure.
const ENOUGH: f64 = 3.0;

/// The metrics that have intervals, with their names in the table.
const METRICS: [(&str, &str); 3] =
    [(metric::TTFT, "TTFT"), (metric::TPOT, "TPOT"), (metric::E2E, "E2E")];

/// A figure, with its intervals or the way to them.
pub(crate) struct Row {
    pub(crate) name: String,
    /// The texts of [`COLUMNS`].
    pub(crate) cells: [String; 3],
    /// True if it stands in the short table too: the figures by which people decide.
    pub(crate) decides: bool,
}

/// Every figure that has intervals; those that decide come first.
pub(crate) fn rows(summary: &Summary) -> Vec<Row> {
    let throughput = &summary.throughput;
    let sure = throughput.confidence;
    let rates = [
        (
            "Output tokens/s",
            throughput.output_tokens_per_s,
            sure.and_then(|of| of.same_requests.output_tokens_per_s),
            sure.and_then(|of| of.other_requests.output_tokens_per_s),
        ),
        (
            "Requests/s",
            throughput.requests_per_s,
            sure.and_then(|of| of.same_requests.requests_per_s),
            sure.and_then(|of| of.other_requests.requests_per_s),
        ),
    ];
    let rates = rates.into_iter().filter_map(|(name, value, same, new)| {
        Some((name.to_owned(), value?, same, new.map_or_else(|| new_seeds(summary), between)))
    });
    let mut rows: Vec<Row> = (rates.enumerate())
        .map(|(place, (name, value, same, new))| row(name, value, same, new, place == 0))
        .collect();
    // Whole replies have no first token.
    let decides = METRICS.iter().find(|(name, _)| {
        [metric::TTFT, metric::E2E].contains(name) && summary.metric(name).is_some()
    });
    for (name, label) in METRICS {
        let Some(of) = summary.metric(name) else { continue };
        let sure = of.confidence;
        let same = sure.and_then(|of| of.same_requests);
        let of_start = sure.is_some_and(|of| of.p99_of_fill);
        let decides = decides.is_some_and(|(own, _)| *own == name);
        for (statistic, value, same, new) in [
            (
                "median",
                Some(of.median),
                same.and_then(|of| of.median),
                sure.and_then(|of| of.median),
            ),
            ("mean", Some(of.mean), same.and_then(|of| of.mean), sure.and_then(|of| of.mean)),
            ("P99", of.percentile(99.0), None, sure.and_then(|of| of.p99)),
        ] {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let is_p99 = statistic == "P99";
            let new = match new {
                Some(bounds) => between(bounds),
                None if is_p99 && of_start => start_only(summary, name),
                None => new_seeds(summary),
            };
            let decides = decides && statistic != "mean";
            rows.push(row(format!("{label}, {statistic} (ms)"), value, same, new, decides));
        }
    }
    rows.sort_by_key(|row| !row.decides);
    rows
}

fn row(name: String, value: f64, same: Option<Bounds>, new: String, decides: bool) -> Row {
    let same = same.map_or_else(|| format!("--repeat {ENOUGH}"), between);
    Row { name, cells: [shown(value), same, new], decides }
}

/// Words in place of the interval of a P99 whose samples are of the time in which the engine
/// filled.
fn start_only(summary: &Summary, metric: &str) -> String {
    let steady = match &summary.steady_state {
        Some(SteadyState::Window(window)) => window.metrics.get(metric),
        _ => None,
    };
    match steady.and_then(|of: &Distribution| of.percentile(99.0)) {
        Some(p99) => format!("start only; steady {}", shown(p99)),
        None => "start only".to_owned(),
    }
}

/// The runs that give an interval that one run does not show, and the time that they take.
fn new_seeds(summary: &Summary) -> String {
    let seconds = summary.throughput.duration_s.map(|seconds| ENOUGH * seconds);
    let time = seconds.map_or(String::new(), |seconds| format!(", {}", span(seconds)));
    format!("{ENOUGH} new seeds{time}")
}

fn between(bounds: Bounds) -> String {
    bounds.words(" – ", shown)
}

/// A figure with at least three digits.
fn shown(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A time that is worth planning for.
fn span(seconds: f64) -> String {
    match seconds {
        ..1.0 => "1 s".to_owned(),
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::fixture::{exchanges, run_of};

    #[test]
    fn times_have_the_unit_that_people_plan_in() {
        for (seconds, text) in
            [(0.2, "1 s"), (42.4, "42 s"), (120.0, "2 min"), (315.0, "5 min"), (9000.0, "2 h")]
        {
            assert_eq!(span(seconds), text);
        }
    }

    /// Output tokens, and the first token or, of whole replies, the whole.
    #[test]
    fn three_figures_decide() {
        let mut summary = run_of("one", &exchanges(60, 0)).reported.summary;
        let deciding = |summary: &Summary| {
            let rows = rows(summary).into_iter().filter(|row| row.decides);
            rows.map(|row| row.name).collect::<Vec<_>>()
        };
        let first = ["Output tokens/s", "TTFT, median (ms)", "TTFT, P99 (ms)"];
        assert_eq!(deciding(&summary), first);
        summary.metrics.remove(metric::TTFT);
        summary.metrics.remove(metric::TPOT);
        let first = ["Output tokens/s", "E2E, median (ms)", "E2E, P99 (ms)"];
        assert_eq!(deciding(&summary), first);
    }

    /// The page and both blocks have the same rows, and no cell is empty.
    #[test]
    fn the_page_says_what_the_block_says() {
        let mut run = run_of("one", &exchanges(60, 0));
        run.reported.summary.findings.clear();
        run.reported.summary.requests.failures.clear();
        let summary = &run.reported.summary;
        let (short, whole) = (crate::text::short(summary), crate::text::text(summary));
        let page = crate::page::page(std::slice::from_ref(&run), None).markdown();
        for Row { name, cells, decides } in rows(summary) {
            assert!(cells.iter().all(|cell| !cell.is_empty()), "{name}: {cells:?}");
            let row = format!("| {name} | {} |", cells.join(" | "));
            assert_eq!(page.matches(&row).count(), 1 + usize::from(decides), "{row} in\n{page}");
            let of = |block: &str| {
                block.lines().any(|line| line.starts_with(&name) && line.ends_with(&cells[2]))
            };
            assert_eq!((of(&short), of(&whole)), (decides, true), "{name}");
        }
    }
}
