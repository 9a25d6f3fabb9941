//! The findings of a search, as text and as a page: the answer of each tier, and the loads that
//! were tried.

mod page;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use model::duration::roughly;
use model::number::percent;
use search::answer::{Again, EarlyStopping, Ended, Found};
use search::decision::{Decided, Decision};
use search::level::Level;
use search::{Answer, Load, Probe, Purpose, Search};

pub use page::page;

/// The meaning of a share in the long run.
const SIMULATED: &str = "simulated: calculated for a long run at this load, because a short run may be lucky or unlucky";

pub fn text(answer: &Answer) -> String {
    let mut text = String::new();
    for (number, found) in answer.tiers.iter().enumerate() {
        let _ = writeln!(text, "{}", found.tier);
        for line in conclusion(answer, found) {
            let _ = writeln!(text, "  {line}");
        }
        let _ =
            writeln!(text, "  {:>12} {:>9} {:>5}  result", unit(answer.load), "requests", "runs");
        for level in &answer.levels {
            if let Some(decided) = level.tiers.get(number) {
                let Level { requests, looks, .. } = level;
                let confirms = if level.confirms { " (confirming)" } else { "" };
                let at = short(level.at);
                let _ = writeln!(text, "  {at:>12} {requests:>9} {looks:>5}  {decided}{confirms}");
            }
        }
    }
    if is_simulated(answer) {
        let _ = writeln!(text, "{SIMULATED}");
    }
    let away = (answer.levels.iter())
        .flat_map(|level| level.little.iter().map(move |little| (level.at, little)))
        .filter(|(_, little)| !little.agrees());
    for (at, little) in away {
        let _ = writeln!(
            text,
            "note: at {}, {} requests were unanswered on average where their rate and latency imply {}: the load was not steady",
            amount(answer.load, at),
            short(little.unanswered),
            short(little.per_s * little.latency_s),
        );
    }
    let _ = writeln!(text, "{} runs, {} requests", answer.probes, answer.requests);
    text
}

/// True if a result is a simulated share, which [`SIMULATED`] explains.
fn is_simulated(answer: &Answer) -> bool {
    answer.levels.iter().flat_map(|level| &level.tiers).any(Decided::is_simulated)
}

fn conclusion(answer: &Answer, found: &Found) -> Vec<String> {
    let load = answer.load;
    let holds = |at: f64| amount(load, at);
    let mut lines = vec![match (found.passed, found.failed) {
        (Some(passed), Some(failed)) => {
            format!("surely holds at {}, surely fails at {}", holds(passed), holds(failed))
        }
        (Some(passed), None) => format!("surely holds at {}; no load surely fails", holds(passed)),
        (None, Some(failed)) => format!("no load surely holds; surely fails at {}", holds(failed)),
        (None, None) => "no load surely holds, and none surely fails".to_owned(),
    }];
    lines.push(best(load, found));
    if let (Some(passed), Some(again)) = (found.passed, found.again) {
        let at = holds(passed);
        lines.push(match again {
            Again::Shown => format!("a run of its own at {at} shows it again"),
            Again::Agrees => format!(
                "a run of its own at {at} agrees, and is too short to decide alone"
            ),
            Again::Doubtful => format!(
                "in a run of its own at {at}, more requests miss the objective than allowed, and chance explains it: measure {at} again before you rely on it"
            ),
            Again::NotMade => {
                format!("{at} was not measured again: the search had no valid run left for it")
            }
        });
    }
    lines.push(
        match found.ended {
            Ended::Narrow => "the interval has the requested width",
            Ended::Undecided => "loads in between could not be run, or used up the requests that a load may have (--requests-each)",
            Ended::Highest if found.passed.is_none() => {
                "no load up to the highest (--most) seems to miss the objectives, and none had requests enough to show it"
            }
            Ended::Highest => "the highest load to be tried holds: raise --most",
            Ended::Lowest => {
                "the lowest load (--least) failed; lower --least or relax the objectives"
            }
            Ended::Budget => "the search used up its loads (--loads) or requests (--requests-in-all)",
            Ended::Time => "the search used up its time (--within)",
            Ended::Open => "the search is not complete; if it was interrupted, --resume continues it",
        }
        .to_owned(),
    );
    if let Some(more) = found.more {
        let at = found.estimate.or(found.passed).or(found.failed);
        lines.push(format!(
            "to narrow the interval to the requested width takes about {}{}",
            rounded(more),
            at.map_or(String::new(), |at| time(answer, at, more))
        ));
    } else if found.passed.is_none() || found.failed.is_none() {
        lines.extend(missing(answer, found));
    }
    if let Some(EarlyStopping { at, requests, missing }) = found.early_stopping {
        let at = holds(at);
        lines.push(match missing {
            0 => format!("MLPerf's early stopping: {requests} requests at {at} show it"),
            _ => format!(
                "MLPerf's early stopping: {requests} requests at {at} do not show it; {missing} more would, if none misses a limit"
            ),
        });
    }
    if !found.undecided.is_empty() {
        let loads: Vec<String> = found.undecided.iter().map(|at| short(*at)).collect();
        lines.push(format!("could not be run: {}", loads.join(", ")));
    }
    for violation in &found.violations {
        lines.push(format!(
            "warning: {} failed although {} passed; an engine whose latency falls with load makes the interval doubtful",
            holds(violation.failed),
            holds(violation.passed)
        ));
    }
    lines
}

/// The best estimate of the highest load that holds, and its base.
pub(crate) fn best(load: Load, found: &Found) -> String {
    let at = |load_of: f64| amount(load, load_of);
    let curve = found.curves.iter().flatten().map(|curve| curve.loads).max();
    match (found.estimate, curve, found.seems_to_hold, found.seems_to_fail) {
        (Some(estimate), Some(loads), ..) => {
            format!("best estimate {}, by a regression over {loads} loads", at(estimate))
        }
        (Some(estimate), None, Some(below), Some(above)) => format!(
            "best estimate {}: {} seems to hold, {} seems to fail",
            at(estimate),
            short(below),
            short(above)
        ),
        (Some(estimate), None, ..) if found.failed.is_some() => {
            format!("best estimate {}, between the two", at(estimate))
        }
        (Some(estimate), None, ..) => {
            format!("best estimate at least {}: no load tried seems to fail", at(estimate))
        }
        (None, _, _, above) => match above.or(found.failed) {
            Some(above) => {
                format!("best estimate below {}: no load tried seems to hold", at(above))
            }
            None => "no estimate: no run was valid".to_owned(),
        },
    }
}

/// The load that is nearest to being decided where an end of the interval is missing, and the
/// requests to decide it.
fn missing(answer: &Answer, found: &Found) -> Option<String> {
    let number = answer.tiers.iter().position(|own| own == found)?;
    let open = answer.levels.iter().filter_map(|level| match &level.tiers.get(number)?.decision {
        Decision::Undecided { more: Some(more), .. } => Some((level.at, *more)),
        _ => None,
    });
    let (at, more) = open.min_by_key(|(_, more)| *more)?;
    Some(format!(
        "to decide {} takes about {}{}",
        amount(answer.load, at),
        rounded(more),
        time(answer, at, more)
    ))
}

/// `, some 12 min`: the time for these requests at a load, if a rate is known.
fn time(answer: &Answer, at: f64, requests: u64) -> String {
    let seen = || {
        let levels = answer.levels.iter().filter(|level| !level.little.is_empty());
        let nearest = levels.min_by(|a, b| (a.at - at).abs().total_cmp(&(b.at - at).abs()))?;
        nearest.little.first().map(|little| little.per_s)
    };
    let per_s = match answer.load {
        Load::Rate => Some(at),
        Load::Concurrency | Load::Sessions => seen(),
    };
    match per_s.filter(|per_s| *per_s > 0.0) {
        None => String::new(),
        Some(per_s) => format!(", {}", lasting(requests as f64 / per_s, "at this load")),
    }
}

/// `some 12 min at this load`.
fn lasting(seconds: f64, ends: &str) -> String {
    format!("some {} {ends}", roughly(seconds.max(2.0)))
}

/// The number of further requests, in two digits.
fn rounded(requests: u64) -> String {
    let unit = 10_u64.pow(requests.max(1).ilog10().saturating_sub(1));
    format!("{} more requests", requests.div_ceil(unit) * unit)
}

pub fn amount(load: Load, at: f64) -> String {
    format!("{} {}", short(at), unit(load))
}

pub fn unit(load: Load) -> &'static str {
    match load {
        Load::Rate => "req/s",
        Load::Concurrency => "in flight",
        Load::Sessions => "sessions",
    }
}

/// A number with four digits, without zeros at its end.
pub fn short(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let places = (3 - number.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{number:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The time that a search likely takes, and the most that it takes, before it sends anything.
pub fn forecast(search: &Search) -> Vec<String> {
    let config = search.config();
    let requests = config.likely_requests();
    let at = amount(config.load, config.start);
    let likely = match config.load {
        Load::Rate => format!(
            "{}, less at higher loads",
            lasting(requests as f64 / config.start, &format!("at {at}"))
        ),
        Load::Concurrency | Load::Sessions => "the first run shows how long they take".to_owned(),
    };
    let most = match (search.seconds_left(), config.requests_in_all) {
        (Some(seconds), _) => {
            format!("at most: {} (--within), with the best estimate by then", whole(seconds))
        }
        (None, Some(requests)) => format!("at most: {requests} requests (--requests-in-all)"),
        (None, None) => "at most: no limit of time; --within 10m sets one".to_owned(),
    };
    vec![
        format!(
            "likely: about {requests} requests for an interval of {}; {likely}",
            percent(config.width)
        ),
        most,
    ]
}

/// A time in whole seconds.
fn whole(seconds: f64) -> String {
    model::duration::format(Duration::from_secs(seconds as u64))
}

pub fn begins(probe: &Probe) -> String {
    let purpose = match probe.purpose {
        Purpose::Bracket => "to find bounds",
        Purpose::Narrow => "between the bounds",
        Purpose::Confirm => "to confirm",
    };
    let look = match (probe.look, probe.attempt) {
        (1, 1) => String::new(),
        (look, 1) => format!(", run {look} at this load"),
        (look, attempt) => format!(", run {look} at this load, attempt {attempt}"),
    };
    format!(
        "== run {}: {}, {} requests, {purpose}{look} ==",
        probe.number,
        amount(probe.load, probe.at),
        probe.requests
    )
}

/// Describes the state after a run: of its load, and of each tier.
pub fn ended(search: &Search, number: u32) -> Vec<String> {
    let answer = search.answer();
    let of_load =
        (answer.levels.iter()).filter(|level| level.probes.contains(&number)).map(|level| {
            let tiers = answer.tiers.iter().zip(&level.tiers);
            let tiers: Vec<String> =
                tiers.map(|(found, decided)| format!("{}: {decided}", found.tier.name)).collect();
            format!("{}: {}", amount(answer.load, level.at), tiers.join("; "))
        });
    let of_tiers = (answer.tiers.iter()).map(|found| {
        let mut line = format!("{}: {}", found.tier.name, best(answer.load, found));
        if let (Some(passed), Some(failed)) = (found.passed, found.failed) {
            let width = 100.0 * (failed / passed - 1.0);
            let _ = write!(
                line,
                "; surely between {} and {} (width {width:.1} %)",
                short(passed),
                amount(answer.load, failed)
            );
        }
        // A search with a limit of time plans its runs by the time that is left.
        let more = found.more.filter(|_| search.seconds_left().is_none());
        if let Some((more, at)) = more.zip(found.estimate) {
            let _ = write!(line, "; {}{}", rounded(more), time(&answer, at, more));
        }
        line
    });
    let left = search.seconds_left().map(|left| format!("left: {} (--within)", whole(left)));
    of_load.chain(of_tiers).chain(left).collect()
}

/// A file of a sweep or a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Saved<T> {
    /// SHA-256 of the scenario with its flags, as `runner scenario show` prints it.
    pub scenario: String,
    /// The name that people use, but for the load, which is varied.
    pub title: String,
    /// Its progress.
    pub state: T,
}

/// A search, as far as it is.
#[model::apply(model::document!)]
pub struct Searched {
    /// The folder of each run in the search's, by the number of its probe.
    pub runs: Vec<(u32, String)>,
    /// The search.
    pub search: Search,
    /// Its answer, when it has one.
    pub answer: Option<Answer>,
}

impl Searched {
    /// The folders of its runs, in the order in which they were made.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|(_, folder)| &**folder)
    }
}
