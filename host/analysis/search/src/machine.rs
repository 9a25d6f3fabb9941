//! The search: chooses the next probe from the results of earlier ones.
//!
//! The load is raised or lowered by a factor until one seems to hold and one does not, and halved
//! on a logarithmic scale until they are close. From there on loads are placed at the estimated
//! crossing, below it and above it in turn. Each run is longer than the last, until the interval
//! is as narrow as requested. Its lower end is tried with a run of its own. Tiers are searched for
//! one after another, and each uses all runs that were made before.
//!
//! A search is its configuration and the reports, in order: everything else follows from these. The
//! journal has these, so an interrupted search goes on where it was.

use model::random::mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::config::{Config, Load};
use crate::level::{Level, first_requests};
use crate::probe::{Outcome, Probe, Purpose};

mod bracket;
mod found;
mod interval;

use bracket::Goal;

/// Requests of a run that is made long enough for the answers to fill the engine, at most.
const MOST_FILLING: u64 = 10_000;
/// Seconds that a run takes beyond its requests' due times, before any was made.
const SHORT: f64 = 3.0;

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make a run, and report it.
    Probe(Probe),
    /// Nothing: this is the answer.
    Done(Box<Answer>),
}

/// A probe and its outcome: an entry of the journal.
#[model::apply(model::document!)]
pub struct Report {
    /// The run that was made.
    pub probe: Probe,
    /// Its outcome.
    pub outcome: Outcome,
    /// Seconds that it took, with its beginning and its end; 0 if not known.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub seconds: f64,
}

/// A report that the search did not ask for: of another probe, of another search, or of other
/// tiers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unexpected(String);

impl Report {
    /// Requests that the run took: the planned ones, where the number due is not known.
    fn sent(&self) -> u64 {
        match &self.outcome {
            Outcome::Measured(measured) => measured.requests,
            Outcome::Stopped(alarm) => alarm.progress.due,
            Outcome::Invalid { .. } => self.probe.requests,
        }
    }
}

/// A search on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Journal", try_from = "Journal")]
pub struct Search {
    config: Config,
    reports: Vec<Report>,
    levels: Vec<Level>,
}

/// The form in which a search is written.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Journal {
    config: Config,
    reports: Vec<Report>,
}

impl From<Search> for Journal {
    fn from(search: Search) -> Self {
        Journal { config: search.config, reports: search.reports }
    }
}

impl TryFrom<Journal> for Search {
    type Error = String;

    fn try_from(journal: Journal) -> Result<Self, String> {
        Search::resume(journal.config, journal.reports)
    }
}

impl Search {
    /// A search that has not begun. Errors: the mistakes in the configuration, a line for each.
    pub fn new(config: Config) -> Result<Self, String> {
        let mistakes = config.mistakes();
        if mistakes.is_empty() {
            Ok(Search { config, reports: Vec::new(), levels: Vec::new() })
        } else {
            Err(mistakes.join("\n"))
        }
    }

    /// A search that has come so far. Errors: the mistakes in the configuration, or the report that
    /// is not of this search.
    pub fn resume(config: Config, reports: Vec<Report>) -> Result<Self, String> {
        let mut search = Search::new(config)?;
        for report in reports {
            search.report(report).map_err(|error| error.to_string())?;
        }
        Ok(search)
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Decides the next thing to do. It stays the same until something is reported.
    pub fn next(&self) -> Step {
        let first = (0..self.config.tiers.len()).find_map(|tier| match self.goal(tier) {
            Goal::Run { at, purpose, requests } => self.probe(tier, at, purpose, requests),
            _ => None,
        });
        match first {
            Some(probe) => Step::Probe(probe),
            None => Step::Done(Box::new(self.answer())),
        }
    }

    /// Takes the outcome of the next probe. Errors: that it is not the next probe's, or shows other
    /// tiers.
    pub fn report(&mut self, report: Report) -> Result<(), Unexpected> {
        let unexpected = |why: String| {
            Err(Unexpected(format!("the report of probe {} {why}", report.probe.number)))
        };
        match self.next() {
            Step::Probe(probe) if probe == report.probe => {}
            Step::Probe(probe) => {
                return unexpected(format!(
                    "at {} is not of the probe that comes next, {} at {}; the search has changed since it was written",
                    report.probe.at, probe.number, probe.at
                ));
            }
            Step::Done(_) => return unexpected("comes after the search has ended".to_owned()),
        }
        if let Outcome::Measured(measured) = &report.outcome {
            let shown = measured.tiers.iter().map(Vec::len);
            if !shown.eq(self.config.tiers.iter().map(|tier| tier.limits.len())) {
                return unexpected("has other objectives than the search".to_owned());
            }
        }
        let Probe { at, purpose, .. } = report.probe;
        let confirms = purpose == Purpose::Confirm;
        let place = self.place(at, confirms).unwrap_or_else(|| {
            self.levels.push(Level::new(&self.config, at, confirms));
            self.levels.len() - 1
        });
        self.levels[place].take(&self.config, &report.probe, &report.outcome);
        self.reports.push(report);
        Ok(())
    }

    /// Requests that runs have taken so far, valid or not.
    fn spent(&self) -> u64 {
        self.reports.iter().map(Report::sent).sum()
    }

    /// Seconds that the search has left; absent for no limit.
    pub fn seconds_left(&self) -> Option<f64> {
        let spent: f64 = self.reports.iter().map(|own| own.seconds).sum();
        self.config.seconds_in_all.map(|most| (most - spent).max(0.0))
    }

    /// Requests per second at a load; absent where no run shows it. In a closed loop it is the
    /// nearest load's, and in proportion to the load below that.
    fn per_s(&self, at: f64) -> Option<f64> {
        if self.config.load == Load::Rate {
            return Some(at);
        }
        let known = self.reports.iter().filter(|own| own.seconds > 0.0 && own.sent() > 0);
        let nearest = nearest(known, at, |own| own.probe.at)?;
        Some(nearest.sent() as f64 / nearest.seconds * (at / nearest.probe.at).min(1.0))
    }

    /// Requests of a run at a rate that is long enough for the answers to fill the engine, by the
    /// nearest load below.
    fn filling(&self, at: f64) -> u64 {
        let lower = self.levels.iter().filter(|own| own.at < at && !own.grew());
        let nearest = lower.max_by(|a, b| a.at.total_cmp(&b.at));
        match self.config.load {
            Load::Rate => nearest.map_or(0, |own| own.filling(at)).min(MOST_FILLING),
            Load::Concurrency | Load::Sessions => 0,
        }
    }

    /// Seconds that runs at a rate take beyond the time in which their requests are due.
    fn beyond(&self) -> f64 {
        if self.config.load != Load::Rate {
            return 0.0;
        }
        let beyond = |own: &Report| own.seconds - own.sent() as f64 / own.probe.at;
        self.reports.iter().map(beyond).fold(SHORT, f64::max)
    }

    /// Computes the number of requests of a run that the whole search can still afford, by their
    /// number and by the time; `None` if they are too few for any run.
    fn affordable(&self, at: f64, requests: u64) -> Option<u64> {
        let of_time = self.seconds_left().map(|left| match self.per_s(at) {
            Some(per_s) => ((left - self.beyond()) * per_s).max(0.0) as u64,
            None => u64::MAX,
        });
        // No run takes most of the time that is left, but for a glance.
        let glance = self.glance(at);
        let requests = match of_time {
            Some(all) if requests > all / 3 => requests.min((all / 3).max(glance)),
            _ => requests,
        };
        let of_number = self.config.requests_in_all.map(|most| most.saturating_sub(self.spent()));
        let left = of_time.into_iter().chain(of_number).min().unwrap_or(u64::MAX);
        (left >= self.config.requests_least_at(at)).then_some(requests.min(left))
    }

    fn place(&self, at: f64, confirms: bool) -> Option<usize> {
        let same = |level: &Level| level.at == at && level.confirms == confirms;
        self.levels.iter().position(same)
    }

    fn level(&self, at: f64, confirms: bool) -> Option<&Level> {
        self.place(at, confirms).map(|place| &self.levels[place])
    }

    /// Seconds after which a run sends no more: the time that is left, and less where the pace of a
    /// closed loop is not known.
    fn seconds(&self, at: f64, purpose: Purpose) -> Option<f64> {
        let left = self.seconds_left().map(|left| (left - self.beyond()).max(1.0));
        let is_first = self.config.load != Load::Rate
            && purpose == Purpose::Bracket
            && self.place(at, false).is_none();
        let glance = is_first.then(|| self.config.glance_seconds());
        left.into_iter().chain(glance).min_by(f64::total_cmp)
    }

    /// The run that a tier needs; `None` if it takes a new load and there may be no more of them,
    /// or more requests than the search has left.
    fn probe(
        &self,
        tier: usize,
        at: f64,
        purpose: Purpose,
        requests: Option<u64>,
    ) -> Option<Probe> {
        let known = self.level(at, purpose == Purpose::Confirm);
        let wanted = match (requests, known) {
            (Some(requests), _) => requests.max(self.config.requests_least_at(at)),
            (None, Some(level)) if level.requests > 0 => level.next_requests(&self.config, tier),
            (None, _) => first_requests(&self.config, at, 1.0).max(self.filling(at)),
        };
        let left =
            self.config.requests_at(at).saturating_sub(known.map_or(0, |level| level.requests));
        let requests = wanted.min(left.max(self.config.requests_least_at(at)));
        if known.is_none() && self.levels.len() >= self.config.loads as usize {
            return None;
        }
        let requests = self.affordable(at, requests)?;
        let number = self.reports.len() as u32 + 1;
        Some(Probe {
            number,
            load: self.config.load,
            at,
            requests,
            seconds: self.seconds(at, purpose),
            seed: mix(mix(self.config.seed) ^ u64::from(number)),
            look: known.map_or(1, |level| level.looks + 1),
            attempt: known.map_or(1, Level::attempt),
            purpose,
        })
    }
}

/// The item whose load is nearest to one, on a logarithmic scale.
fn nearest<T>(items: impl Iterator<Item = T>, at: f64, load: impl Fn(&T) -> f64) -> Option<T> {
    let distance = |item: &T| (load(item) / at).ln().abs();
    items.min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

#[cfg(test)]
mod tests;
