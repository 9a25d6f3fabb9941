//! The table *How sure*: figures of a run with their 95 % intervals, over repeats of the same seed
//! and over runs with a new seed. The text block and the page draw the same rows.

use compare::variation::USUAL;
use model::duration::roughly;
use model::number::significant;
use result::metric;
use result::summary::{Bounds, Distribution, Rates, SteadyState, Summary};

pub(crate) const TITLE: &str = "How Sure: Average of Many Runs (95 %)";

/// The headings of the columns after the figure's name.
pub(crate) const COLUMNS: [&str; 3] = ["this run", "same seed", "new seed"];

/// The meaning of the columns.
pub(crate) const LEGEND: &str = "one run may lie outside; same seed: these requests again; new seed: other requests; assumed: not measured on this server";

/// The rest of their meaning.
pub(crate) const NOTE: &str = "a server's pace is assumed to differ by ± 3.9 % from run to run; near capacity, latency differs by more; unknown: repeats show it (--repeat 3 --same-requests); one further run may lie outside a range";

/// Runs that are enough for an interval of every figure.
const ENOUGH: f64 = 3.0;

/// Half of a 95 % interval, as a multiple of the standard deviation.
const HALF: f64 = 1.96;

/// The metrics that have intervals, with their names in the table.
const METRICS: [(&str, &str); 3] =
    [(metric::TTFT, "TTFT"), (metric::TPOT, "TPOT"), (metric::E2E, "E2E")];

/// A figure, with its intervals or the way to them.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cells: [String; 3],
    /// True if it stands in the short table too: the figures by which people decide.
    pub(crate) decides: bool,
}

/// Every figure that has intervals; the deciding figures come first.
pub(crate) fn rows(summary: &Summary) -> Vec<Row> {
    let throughput = &summary.throughput;
    let sure = throughput.confidence;
    type Rate = fn(Rates) -> Option<Bounds>;
    let (tokens, requests): (Rate, Rate) =
        (|rates| rates.output_tokens_per_s, |rates| rates.requests_per_s);
    let rates = [
        ("Output tokens/s", throughput.output_tokens_per_s, tokens),
        ("Requests/s", throughput.requests_per_s, requests),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for (name, value, bounds) in rates {
        let Some(value) = value else { continue };
        let same = sure.and_then(|of| bounds(of.same_requests));
        let new = sure.and_then(|of| bounds(of.other_requests));
        let varies = Variation { value, half: HALF * USUAL * value };
        let new = new.map_or_else(|| new_seeds(summary), |own| between(varies.with(own)));
        rows.push(Row {
            name: name.to_owned(),
            cells: [shown(value), varies.same_seed(same), new],
            decides: rows.is_empty(),
        });
    }
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
        let follows = sure.map_or([1.0; 2], |of| [of.mean_follows_pace, of.median_follows_pace]);
        let median = [same.and_then(|of| of.median), sure.and_then(|of| of.median)];
        let mean = [same.and_then(|of| of.mean), sure.and_then(|of| of.mean)];
        let p99 = [None, sure.and_then(|of| of.p99)];
        for (statistic, value, [same, new], follows) in [
            ("median", Some(of.median), median, follows[1]),
            ("mean", Some(of.mean), mean, follows[0]),
            ("P99", of.percentile(99.0), p99, follows[0]),
        ] {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let varies = Variation { value, half: HALF * USUAL * follows * value };
            let calm = sure.and_then(|of| of.mean_unless_full).filter(|_| statistic == "mean");
            let new = match calm.or(new) {
                Some(bounds) if calm.is_some() => unless_full(summary, varies.with(bounds)),
                Some(bounds) if varies.with(bounds).states_anything() => {
                    between(varies.with(bounds))
                }
                None if statistic == "P99" && of_start => start_only(summary, name),
                _ => new_seeds(summary),
            };
            rows.push(Row {
                name: format!("{label}, {statistic} (ms)"),
                cells: [shown(value), varies.same_seed(same), new],
                decides: decides && statistic != "mean",
            });
        }
    }
    rows.sort_by_key(|row| !row.decides);
    rows
}

/// A figure, and half the interval that the assumed variation from run to run gives it.
#[derive(Clone, Copy)]
struct Variation {
    value: f64,
    half: f64,
}

impl Variation {
    /// An interval from within the run, with this variation.
    fn with(self, bounds: Bounds) -> Bounds {
        let Variation { value, half } = self;
        Bounds {
            low: bounds.low.map(|low| (value - half.hypot(value - low)).max(0.0)),
            high: bounds.high.map(|high| value + half.hypot(high - value)),
        }
    }

    /// The cell of *same seed*. Where the run shows little noise, the interval is the assumption.
    fn same_seed(self, noise: Option<Bounds>) -> String {
        let Some((low, high)) = noise.and_then(|of| of.low.zip(of.high)) else {
            return "unknown".to_owned();
        };
        let noise = (self.value - low).max(high - self.value);
        if self.half > 2.0 * noise {
            let share = self.half.hypot(noise) / self.value;
            return format!("± {} % (assumed)", significant(100.0 * share, 2));
        }
        between(self.with(Bounds { low: Some(low), high: Some(high) }))
    }
}

/// Words in place of the interval of a P99 whose samples are from before the engine was full.
fn start_only(summary: &Summary, metric: &str) -> String {
    let steady = match &summary.steady_state {
        Some(SteadyState::Window(window)) => window.metrics.get(metric),
        _ => None,
    };
    match steady.and_then(|of: &Distribution| of.percentile(99.0)) {
        Some(p99) => format!("the first requests set it; {} after them", shown(p99)),
        None => "the first requests set it".to_owned(),
    }
}

/// An interval that holds as long as no request waits for a place in the engine's batch.
fn unless_full(summary: &Summary, bounds: Bounds) -> String {
    let peak = summary.concurrency.peak;
    let limit = peak.map_or("all requests".to_owned(), |peak| peak.to_string());
    format!("{} if the server's batch limit is above {limit}", between(bounds))
}

/// The runs that give an interval that one run does not show, and the time that they take.
fn new_seeds(summary: &Summary) -> String {
    let seconds = summary.throughput.duration_s.map(|seconds| ENOUGH * seconds);
    let time = seconds.map_or(String::new(), |seconds| {
        format!(" ({ENOUGH} new runs, {})", roughly(seconds.max(1.0)))
    });
    format!("needs --repeat {ENOUGH}{time}")
}

fn between(bounds: Bounds) -> String {
    bounds.label(" – ", shown)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::fixture::{exchanges, run_of};

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

    /// The assumption of 2 % is ± 3.9 %, and stands alone where it is more than twice the noise.
    #[test]
    fn run_to_run_variation_is_in_every_interval() {
        let bounds = |low, high| Bounds { low: Some(low), high: Some(high) };
        let varies = Variation { value: 50.0, half: HALF * USUAL * 50.0 };
        assert_eq!(varies.same_seed(Some(bounds(49.5, 50.5))), "± 4.0 % (assumed)");
        assert_eq!(varies.same_seed(Some(bounds(48.0, 52.0))), "47.2 – 52.8");
        assert_eq!(varies.same_seed(None), "unknown");
        assert_eq!(between(varies.with(Bounds { low: Some(47.0), high: None })), "at least 46.4");
    }

    /// Near capacity the median of one run is no bound of other runs' medians.
    #[test]
    fn an_interval_that_excludes_nothing_names_the_repeats() {
        let mut summary = run_of("one", &exchanges(60, 0)).reported.summary;
        let ttft = summary.metrics.get_mut(metric::TTFT).unwrap();
        let of = serde_json::json!({ "level": 95.0, "median": { "low": 0.0 } });
        ttft.confidence = serde_json::from_value(of).unwrap();
        let median = rows(&summary).into_iter().find(|row| row.name == "TTFT, median (ms)");
        assert!(median.unwrap().cells[2].starts_with("needs --repeat 3"));
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
