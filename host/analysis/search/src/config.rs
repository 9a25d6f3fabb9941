//! The question of a search, and its bounds.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::level::GLANCE;
use crate::slo::Tier;

/// The load that a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Requests that are due per second, whatever the server does: an open loop.
    Rate,
    /// Requests that are in flight at any time: a closed loop.
    Concurrency,
    /// Sessions that are under way at any time: a closed loop of conversations.
    Sessions,
}

impl Load {
    /// True if only whole numbers make sense.
    pub fn is_whole(self) -> bool {
        self != Load::Rate
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Load::Rate => "req/s",
            Load::Concurrency => "requests in flight",
            Load::Sessions => "sessions",
        })
    }
}

/// A search: its variable, its objectives, its certainty and its cost.
#[model::apply(model::document!)]
pub struct Config {
    /// The load that is varied.
    pub load: Load,
    /// The objectives that must hold. Each tier has an answer of its own.
    pub tiers: Vec<Tier>,
    /// The first load.
    pub start: f64,
    /// The lowest load to try.
    pub least: f64,
    /// The highest load to try.
    pub most: f64,
    /// The factor by which the load is raised or lowered until one holds and one does not.
    pub factor: f64,
    /// The most by which the lowest failed load may be above the highest passed one, as a share of
    /// it.
    pub width: f64,
    /// The probability that an interval misses the highest load that holds: half of it that the
    /// lower end lies above that load, and half that the upper end lies below it.
    pub alpha: f64,
    /// The most loads that are tried, confirmations included.
    pub loads: u32,
    /// Requests of one load, at most; see also [`Config::requests_at`].
    pub requests_each: u64,
    /// Requests of the whole search, at most; absent for no limit.
    pub requests_in_all: Option<u64>,
    /// Seconds of the whole search, at most; absent for no limit.
    pub seconds_in_all: Option<f64>,
    /// Requests of each run, at least.
    pub requests_least: u64,
    /// Seconds for which each run at a rate sends requests, at least.
    pub seconds_least: f64,
    /// True if the highest passed load is tried again with requests of its own.
    pub confirm: bool,
    /// True if the answer has MLPerf's judgement beside the search's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early_stopping: bool,
    /// The seed that the seeds of the runs follow from.
    pub seed: u64,
}

/// Requests of a search 20 % wide, in the median, and the power of the width with which they grow:
/// with controls, and without.
const CONTROLLED: (f64, f64) = (15_000.0, 0.2);
const PLAIN: (f64, f64) = (50_000.0, 1.35);
/// Such looks that a search with a limit of its time has room for, at least.
const GLANCES: f64 = 12.0;
/// The bounds of a load, far from any server.
const HIGHEST: f64 = 1e9;

impl Config {
    /// A search of the usual kind.
    pub fn new(load: Load, tiers: Vec<Tier>, start: f64) -> Self {
        let least = if load.is_whole() { 1.0 } else { start / 1024.0 };
        Config {
            load,
            tiers,
            start,
            least,
            most: start * 1024.0,
            factor: 2.0,
            width: 0.02,
            alpha: 0.05,
            loads: 40,
            requests_each: 100_000,
            requests_in_all: None,
            seconds_in_all: None,
            requests_least: 40,
            seconds_least: 0.0,
            confirm: true,
            early_stopping: false,
            seed: 0,
        }
    }

    /// The probability that a load that does not hold passes, or a load that holds fails, by its
    /// own requests alone. It is the error probability of one end of the interval, divided over all
    /// loads (Bonferroni), however they depend on each other.
    pub fn alpha_each(&self) -> f64 {
        self.alpha / 2.0 / f64::from(self.loads.max(1))
    }

    /// Requests of one load, at most: more than `requests_each` where that many are due before a
    /// run may end, so that a load can be looked at several times.
    pub fn requests_at(&self, at: f64) -> u64 {
        self.requests_each.max(4 * self.requests_least_at(at))
    }

    /// Requests of one run, at least, by its length: the requests due in `seconds_least` at a rate,
    /// and twenty batches of the number in flight in a closed loop.
    pub(crate) fn requests_least_at(&self, at: f64) -> u64 {
        let steady = match self.load {
            Load::Rate => at * self.seconds_least,
            Load::Concurrency | Load::Sessions => 20.0 * at,
        };
        (steady.ceil() as u64).max(self.requests_least)
    }

    /// Requests that a search of this width likely takes, and no more than it may take: the median
    /// of simulated searches (`host/benches/search`). Runs at a rate have controls where their
    /// answers are streamed.
    pub fn likely_requests(&self) -> u64 {
        let (usual, power) = if self.load == Load::Rate { CONTROLLED } else { PLAIN };
        let likely = usual * (0.2_f64.ln_1p() / self.width.ln_1p()).powf(power);
        (likely as u64).min(self.requests_in_all.unwrap_or(u64::MAX))
    }

    /// Seconds of a run that looks for the side of the answer on which a load lies.
    pub(crate) fn glance_seconds(&self) -> f64 {
        GLANCE.min(self.seconds_in_all.unwrap_or(f64::INFINITY) / GLANCES).max(self.seconds_least)
    }

    /// Lists its mistakes, as text; none if a search can begin.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let mut unless = |holds: bool, mistake: String| {
            if !holds {
                mistakes.push(mistake);
            }
        };
        let own = self;
        unless(
            own.tiers.iter().all(|tier| !tier.limits.is_empty()) && !own.tiers.is_empty(),
            "a search needs an objective, such as `ttft.p99 < 500ms`".into(),
        );
        for (name, load) in [("start", own.start), ("least", own.least), ("most", own.most)] {
            unless(
                load > 0.0 && load <= HIGHEST,
                format!("`{name}`: expected a load above 0 and at most {HIGHEST:e}, found {load}"),
            );
            unless(
                !own.load.is_whole() || load.fract() == 0.0,
                format!("`{name}`: expected a whole number of {}, found {load}", own.load),
            );
        }
        let starts = format!("a load from {} to {}", own.least, own.most);
        for (name, holds, expected, value) in [
            ("start", own.least <= own.start && own.start <= own.most, starts.as_str(), own.start),
            ("factor", (1.1..=100.0).contains(&own.factor), "1.1 to 100", own.factor),
            ("width", (0.001..=1.0).contains(&own.width), "0.1% to 100%", own.width),
            ("alpha", own.alpha > 0.0 && own.alpha < 0.5, "a probability below 0.5", own.alpha),
            ("loads", (1..=1000).contains(&own.loads), "1 to 1000", own.loads.into()),
            (
                "seconds-least",
                (0.0..=1e6).contains(&own.seconds_least),
                "0 to 1e6",
                own.seconds_least,
            ),
        ] {
            unless(holds, format!("`{name}`: expected {expected}, found {value}"));
        }
        let least = own.requests_least.max(1);
        unless(
            own.requests_each >= least,
            format!("`requests-each`: expected at least {least}, found {}", own.requests_each),
        );
        let first = own.requests_least_at(own.start);
        unless(
            own.requests_in_all.is_none_or(|most| most >= first),
            format!(
                "`requests-in-all`: the first run alone, at {}, takes at least {first} requests, found {}",
                own.start,
                own.requests_in_all.unwrap_or_default()
            ),
        );
        let seconds = if own.load == Load::Rate { first as f64 / own.start } else { 0.0 };
        unless(
            own.seconds_in_all.is_none_or(|most| most > 0.0 && most >= seconds),
            format!(
                "`within`: the first run alone, at {}, takes at least {seconds:.0} s, found {} s",
                own.start,
                own.seconds_in_all.unwrap_or_default()
            ),
        );
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::tiers;

    #[test]
    fn mistakes_of_a_search_are_listed_at_once() {
        let good = Config::new(Load::Rate, tiers(["ttft.p99 < 1s"]).unwrap(), 4.0);
        assert_eq!(good.mistakes(), [""; 0]);
        assert!((good.alpha_each() - 0.000_625).abs() < 1e-12);
        let json = serde_json::to_string(&good).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), good);
        let bad = Config {
            load: Load::Concurrency,
            tiers: Vec::new(),
            start: 2.5,
            most: f64::NAN,
            factor: 1.0,
            alpha: 0.5,
            requests_each: 0,
            ..good
        };
        let mistakes = bad.mistakes();
        for wanted in [
            "needs an objective",
            "`start`: expected a whole number of requests in flight, found 2.5",
            "`most`: expected a load above 0",
            "`factor`",
            "`alpha`",
            "`requests-each`",
        ] {
            assert!(mistakes.iter().any(|own| own.contains(wanted)), "{wanted}: {mistakes:?}");
        }
    }
}
