//! One load of a search: its runs, pooled, and their evidence on each tier.
//!
//! **Runs at one load are pooled.** Each has a fresh seed, and its counts are added to those before
//! it. A load is decided by its own requests where it is far from the highest that holds
//! ([`decide`](crate::decide)); close to that, all loads together say more
//! ([`crossing`](statistics::crossing)). The side of the crossing on which a load seems to lie
//! gives the next load.

use result::summary::Backlog;

use crate::answer::EarlyStopping;
use crate::config::{Config, Load};
use crate::decide::{LOADS, Pooled, decide};
use crate::decision::{Decided, Decision, Doubt, Failure};
use crate::gather::Little;
use crate::probe::{Outcome, Probe};
use crate::slo::{Limit, Tier};
use crate::watch::Alarm;
use statistics::bounds::fewest;
use statistics::crossing::{Control, Point, STEADY};
use statistics::early_stopping;

/// Runs in a row that are not valid, after which a load is given up.
const INVALID: u32 = 2;

/// Requests of the first run at a load, at least: fewer hardly show whether the backlog grows.
const FIRST: u64 = 400;

/// The length of a run from which on it has [`LOADS`] independent loads at most, as a multiple of
/// its mean answer. They grow with the square of the length: an engine whose slots still fill shows
/// nothing, though nobody waits for a place.
const FILLED: f64 = 4.0;
/// The length of a run that is to be as long, where the number in flight is known of a lower load.
const FILLS: f64 = 5.0;

/// Seconds of a run that looks for the side of the answer on which a load lies, as long as no load
/// is known on one of the sides. Such a run decides nothing that another does not show again.
pub(crate) const GLANCE: f64 = 45.0;

/// One load, or the confirmation of one.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Level {
    /// The load.
    pub at: f64,
    /// True if its runs confirm that a tier holds, apart from the runs that showed it first.
    pub confirms: bool,
    /// The numbers of its probes, valid or not.
    pub probes: Vec<u32>,
    /// Requests that were due in its valid runs, stopped runs included.
    pub requests: u64,
    /// Its runs that count.
    pub looks: u32,
    /// The decision on each tier.
    pub tiers: Vec<Decided>,
    /// The number of independent loads that its runs hold together. The largest design effect of
    /// any of them counts: a short run does not show how slowly the load changes.
    pub loads: f64,
    /// The check by Little's law of each valid run that has one.
    pub little: Vec<Little>,
    /// The reasons why runs were not valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
    /// True if no further run is made at this load.
    pub closed: bool,
    invalid_in_a_row: u32,
    /// Requests for each independent load.
    pace: f64,
    /// The length of the longest run, as a multiple of its mean answer, and requests in flight.
    #[serde(default)]
    length: f64,
    #[serde(default)]
    in_flight: f64,
    stopped: Option<Alarm>,
    grown: Option<Backlog>,
    pooled: Vec<Vec<Pooled>>,
}

/// On which side of the highest load that holds a load seems to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Below it, or at it.
    Below,
    Above,
    /// It takes another run to say.
    Open,
    /// It cannot be said, and no further run is made.
    Unknown,
}

impl Level {
    pub(crate) fn new(config: &Config, at: f64, confirms: bool) -> Self {
        let pooled: Vec<Vec<Pooled>> =
            (config.tiers.iter()).map(|tier| vec![Pooled::default(); tier.limits.len()]).collect();
        let mut level = Level { at, confirms, pace: 1.0, pooled, ..Level::default() };
        level.tiers = level.decide(config);
        level
    }

    /// Takes the outcome of a probe at this load.
    pub(crate) fn take(&mut self, config: &Config, probe: &Probe, outcome: &Outcome) {
        self.probes.push(probe.number);
        let invalid = match outcome {
            Outcome::Invalid { why } => Some(why.clone()),
            Outcome::Stopped(alarm) if alarm.is_held_back() => {
                Some("most of its backlog had not been sent by this client".to_owned())
            }
            Outcome::Measured(measured)
                if config.load == Load::Rate && measured.backlog.is_none() =>
            {
                Some("its backlog was not measured, so it may have grown".to_owned())
            }
            Outcome::Measured(measured) if measured.requests == 0 => {
                Some("no request was due".to_owned())
            }
            Outcome::Measured(_) | Outcome::Stopped(_) => None,
        };
        if let Some(why) = invalid {
            self.invalid_in_a_row += 1;
            self.closed |= self.is_given_up();
            self.invalid.push(why);
        } else {
            self.invalid_in_a_row = 0;
            self.looks += 1;
            match outcome {
                Outcome::Measured(measured) => {
                    self.requests += measured.requests;
                    self.pace = self.pace.max(measured.requests as f64 / measured.loads.max(1.0));
                    self.in_flight = measured.little.map_or(0.0, |own| own.in_flight());
                    let length = measured.requests as f64 / self.in_flight.max(0.01);
                    self.length = self.length.max(length);
                    let filled = LOADS * (self.length / FILLED).powi(2);
                    self.loads = (self.requests as f64 / self.pace).min(filled);
                    self.little.extend(measured.little);
                    if let Some(backlog) = measured.backlog.filter(Backlog::grew) {
                        self.grown.get_or_insert(backlog);
                    }
                    for (all, own) in self.pooled.iter_mut().zip(&measured.tiers) {
                        all.iter_mut().zip(own).for_each(|(all, own)| all.add(own));
                    }
                }
                Outcome::Stopped(alarm) => {
                    self.requests += alarm.progress.due;
                    self.stopped = Some(*alarm);
                }
                Outcome::Invalid { .. } => {}
            }
        }
        let decided = self.decide(config);
        for (before, now) in self.tiers.iter_mut().zip(decided) {
            // An earlier look's decision stands, unless now it is the opposite.
            if before.decision.is_undecided() || !now.decision.is_undecided() {
                *before = now;
            }
        }
        self.closed |= self.requests * 5 / 4 >= config.requests_at(self.at);
    }

    /// MLPerf's judgement of a tier at this load, by each of its limits.
    pub(crate) fn early_stopping(&self, config: &Config, tier: usize) -> EarlyStopping {
        let limits = config.tiers[tier].limits.iter().zip(&self.pooled[tier]);
        let missing = limits.map(|(limit, Pooled { requests, bad, .. })| {
            early_stopping::least_requests(limit.allowed(), *bad).saturating_sub(*requests)
        });
        let missing = missing.max().unwrap_or_default();
        EarlyStopping { at: self.at, requests: self.requests, missing }
    }

    fn decide(&self, config: &Config) -> Vec<Decided> {
        let decided = |(tier, pooled): (&Tier, &Vec<Pooled>)| {
            let limits: Vec<(Limit, Pooled)> =
                (tier.limits.iter().cloned()).zip(pooled.iter().copied()).collect();
            let loads = (config.load == Load::Rate).then_some(self.loads);
            let mut decided = decide(&limits, self.grown, loads, config.alpha_each());
            if let Some(alarm) = self.stopped {
                decided.decision = Decision::Fail { why: Failure::Stopped(alarm) };
            } else if self.is_given_up() && decided.decision.is_undecided() {
                let why = Doubt::Invalid(self.invalid.last().cloned().unwrap_or_default());
                decided.decision = Decision::Undecided { why, more: None };
            }
            decided
        };
        config.tiers.iter().zip(&self.pooled).map(decided).collect()
    }

    /// True if it was given up because its runs were not valid.
    pub(crate) fn is_given_up(&self) -> bool {
        self.invalid_in_a_row >= INVALID
    }

    /// The side on which a tier's highest load seems to lie: by the decision here, or by the shares
    /// seen.
    pub(crate) fn side(&self, config: &Config, tier: usize) -> Side {
        let own = &self.tiers[tier];
        let share = |bad: u64, requests: u64| bad as f64 / requests.max(1) as f64;
        let is_above = self.seems_to_miss(tier);
        let is_unclear = (own.limits.iter())
            .any(|own| own.unknown > 0 && share(own.bad, own.requests) > own.allowed);
        let is_short = config.load == Load::Rate
            && self.loads < STEADY
            && own.limits.iter().any(|own| own.long_run.is_none());
        match &own.decision {
            Decision::Pass | Decision::Below => Side::Below,
            Decision::Fail { .. } => Side::Above,
            Decision::Undecided { .. } if self.requests == 0 && self.closed => Side::Unknown,
            Decision::Undecided { .. } if self.requests == 0 => Side::Open,
            Decision::Undecided { .. } if is_above || self.is_overloaded() => Side::Above,
            Decision::Undecided { .. } if is_unclear => Side::Unknown,
            Decision::Undecided { .. } if is_short && !self.closed => Side::Open,
            Decision::Undecided { .. } => Side::Below,
        }
    }

    /// True if more requests miss one of the tier's objectives than it allows, by the best
    /// estimate.
    pub(crate) fn seems_to_miss(&self, tier: usize) -> bool {
        self.tiers[tier].limits.iter().any(|own| own.share() > own.allowed)
    }

    /// True if the backlog grew, so that there is no steady state.
    pub(crate) fn grew(&self) -> bool {
        self.grown.is_some() || self.stopped.is_some()
    }

    /// True if the backlog grew, or the simulated engine is overloaded. A simulation of a run that
    /// does not fill the engine has too few slots.
    pub(crate) fn is_overloaded(&self) -> bool {
        let simulated = self.pooled.iter().flatten().any(|own| own.overloads);
        self.grew() || simulated && self.length >= FILLED
    }

    /// Requests for each independent load; absent where the backlog grew.
    pub(crate) fn pace(&self) -> Option<f64> {
        (self.requests > 0 && !self.grew()).then_some(self.pace)
    }

    /// The part of the misses' variance that controls leave; absent if they leave most of it.
    pub(crate) fn unexplained(&self) -> Option<f64> {
        let all = self.pooled.iter().flatten();
        let left = all.map(|own| Some(own.control?.helps()?.unexplained));
        left.reduce(|a, b| Some(a?.max(b?)))?
    }

    /// Requests of a run at another rate that is long enough for the answers to fill the engine.
    pub(crate) fn filling(&self, at: f64) -> u64 {
        (FILLS * self.in_flight * at / self.at).ceil() as u64
    }

    /// Number of the attempt at the next run, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.invalid_in_a_row + 1
    }

    /// Returns the result of its runs for an objective, for the place of the next run. In the long
    /// run an overloaded engine misses half of the requests or more.
    pub(crate) fn seen(&self, config: &Config, tier: usize, limit: usize) -> Option<Point> {
        let mut own = self.any_point(config, tier, limit)?;
        own.control = own.control.and_then(Control::helps);
        if self.is_overloaded() {
            own.bad = own.bad.max(own.requests / 2.0);
        }
        Some(own)
    }

    /// Returns the result of its runs for an objective; absent where the backlog grew, and where
    /// the metric is not known of all answers.
    pub(crate) fn point(&self, config: &Config, tier: usize, limit: usize) -> Option<Point> {
        self.any_point(config, tier, limit).filter(|_| !self.grew())
    }

    fn any_point(&self, config: &Config, tier: usize, limit: usize) -> Option<Point> {
        let pooled = self.pooled.get(tier)?.get(limit)?;
        let counts = pooled.requests > 0 && pooled.unknown == 0;
        let [effect, tail_effect] = pooled.seen();
        counts.then_some(Point {
            at: self.at,
            requests: pooled.requests as f64,
            bad: pooled.bad as f64,
            effect,
            tail_effect,
            loads: match config.load {
                Load::Rate => self.loads,
                Load::Concurrency | Load::Sessions => f64::INFINITY,
            },
            control: pooled.control,
        })
    }

    /// The pooled results of its runs for an objective.
    pub(crate) fn pooled(&self, tier: usize, limit: usize) -> Option<&Pooled> {
        self.pooled.get(tier)?.get(limit)
    }

    /// True if an objective is shown to hold here, by the requests of this load alone.
    pub(crate) fn shows(&self, config: &Config, tier: usize, limit: usize) -> bool {
        let has_built_up = config.load != Load::Rate || self.loads >= LOADS;
        let own = self.tiers.get(tier).and_then(|own| own.limits.get(limit));
        has_built_up && !self.grew() && own.is_some_and(|own| own.high <= own.allowed)
    }

    /// Chooses the number of requests of the next run, where there are too few so far for a steady
    /// state, or to decide.
    pub(crate) fn next_requests(&self, config: &Config, tier: usize) -> u64 {
        let decision = &self.tiers[tier].decision;
        let few = matches!(decision, Decision::Undecided { why: Doubt::FewLoads(_), .. });
        let steady = (1.5 * STEADY * self.pace) as u64;
        let decides = match decision {
            Decision::Undecided { more: Some(more), .. } => {
                self.requests.saturating_add(more + more / 5)
            }
            _ => 0,
        };
        // A run of its own has to be long enough, whatever the others were.
        if few && self.length < FILLED {
            let most = config.requests_at(self.at).saturating_sub(self.requests);
            let fills = (FILLS * self.in_flight).ceil() as u64;
            return fills.min(most).max(config.requests_least_at(self.at));
        }
        let wanted = if self.side(config, tier) == Side::Open { steady } else { decides };
        let first = first_requests(config, self.at, 1.0);
        // A number of loads is no doubt that another look may settle by chance.
        let least = if few { 1 } else { 2 };
        let total = wanted
            .clamp(least * self.requests, self.requests.saturating_mul(4).max(first))
            .min(config.requests_at(self.at));
        (total.saturating_sub(self.requests)).max(config.requests_least_at(self.at))
    }
}

/// Chooses the number of requests of a run that looks for the side on which a load lies: as many as
/// are due in a short time, if these are fewer than decide.
pub(crate) fn glance_requests(config: &Config, at: f64) -> u64 {
    let first = first_requests(config, at, 1.0);
    if config.load != Load::Rate {
        return first;
    }
    let due = (at * config.glance_seconds()).ceil() as u64;
    first.min(due.max(config.requests_least_at(at)))
}

/// Chooses the number of requests of the first run at a load, where requests are worth one in
/// `effect`.
pub(crate) fn first_requests(config: &Config, at: f64, effect: f64) -> u64 {
    let level = config.alpha_each();
    let limits = config.tiers.iter().flat_map(|tier| &tier.limits);
    let clean = limits.map(|limit| fewest(limit.allowed(), level)).fold(1.0, f64::max);
    // A few bad requests are to be expected even where a tier holds.
    let wanted = (1.2 * clean * effect).min(config.requests_at(at) as f64 / 4.0);
    let wanted = (wanted.max(clean).ceil() as u64).max(FIRST);
    (wanted.max(config.requests_least_at(at)).max(1)).min(config.requests_at(at))
}
