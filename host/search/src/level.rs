//! One load of a search: its runs, pooled, and what they show of each tier.
//!
//! **A look is a run, and runs are pooled.** When a load is not decided, the next look is a further run at the same
//! load, with a fresh seed, as long as all runs there before it together or longer. Its counts are added to theirs. The
//! level of each look is that of the whole search divided by the number of looks and loads, so the looks may depend on
//! each other as they do; that the runs are independent makes their variances add up, and that they grow makes the
//! beginnings, in which a queue is not yet what it will be, a share that shrinks.

use result::summary::Backlog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Seen;
use crate::bounds::fewest;
use crate::config::{Config, Load};
use crate::decide::{Pooled, decide};
use crate::decision::{Decided, Decision, Doubt, Failure};
use crate::gather::Little;
use crate::machine::{Outcome, Probe};
use crate::slo::Limit;
use crate::watch::Alarm;

/// Runs in a row that are not valid, after which a load is given up.
const INVALID: u32 = 2;

/// By how much the number of requests that would decide may be above what a load may have, because it is an estimate.
const HOPE: u64 = 2;

/// One load, or the confirmation of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Level {
    /// The load.
    pub at: f64,
    /// Whether its runs confirm that a tier holds, apart from those that showed it first.
    pub confirms: bool,
    /// The numbers of its probes, valid or not.
    pub probes: Vec<u32>,
    /// Requests that were due in its valid runs, those of a stopped one included.
    pub requests: u64,
    /// How often it was looked at: its runs that count.
    pub looks: u32,
    /// What is decided of each tier.
    pub tiers: Vec<Decided>,
    /// How many independent loads its runs hold together. The largest design effect of any of them counts: a short run
    /// does not show how slowly the load changes.
    pub loads: f64,
    /// The check by Little's law of each valid run that has one.
    pub little: Vec<Little>,
    /// Why runs were not valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
    /// Whether no further run is made at this load.
    pub closed: bool,
    invalid_in_a_row: u32,
    /// Requests for each independent load.
    pace: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<Alarm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grown: Option<Backlog>,
    pooled: Vec<Vec<Pooled>>,
}

/// What is known of a tier at a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Pass,
    Fail,
    /// Another run may decide.
    Open,
    /// No further run is made.
    Undecided,
}

impl Level {
    pub(crate) fn new(config: &Config, at: f64, confirms: bool) -> Self {
        let pooled: Vec<Vec<Pooled>> = (config.tiers.iter())
            .map(|tier| vec![Pooled::default(); tier.limits.len()])
            .collect();
        let mut level = Level {
            at,
            confirms,
            probes: Vec::new(),
            requests: 0,
            looks: 0,
            tiers: Vec::new(),
            loads: 0.0,
            pace: 1.0,
            little: Vec::new(),
            invalid: Vec::new(),
            closed: false,
            invalid_in_a_row: 0,
            stopped: None,
            grown: None,
            pooled,
        };
        level.tiers = level.decide(config);
        level
    }

    /// Takes what a probe at this load came to.
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
                    self.pace = self
                        .pace
                        .max(measured.requests as f64 / measured.loads.max(1.0));
                    self.loads = self.requests as f64 / self.pace;
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
            // What was decided at an earlier look stands, unless now it is the opposite.
            if before.decision.is_undecided() || !now.decision.is_undecided() {
                *before = now;
            }
        }
        self.closed |=
            self.looks >= config.looks || self.requests * 5 / 4 >= config.requests_at(self.at);
        self.closed |= self.requests >= config.requests_at(self.at) / 2 && self.is_hopeless(config);
    }

    /// Whether no tier that is undecided here can be expected to be decided with the requests that a load may have.
    fn is_hopeless(&self, config: &Config) -> bool {
        let most = HOPE * config.requests_at(self.at);
        self.tiers.iter().all(|own| match &own.decision {
            Decision::Undecided { more, .. } => more.is_none_or(|more| self.requests + more > most),
            Decision::Pass | Decision::Fail { .. } => true,
        })
    }

    fn decide(&self, config: &Config) -> Vec<Decided> {
        let of = |(tier, pooled): (&crate::slo::Tier, &Vec<Pooled>)| {
            let limits: Vec<(Limit, Pooled)> = (tier.limits.iter().cloned())
                .zip(pooled.iter().copied())
                .collect();
            let loads = (config.load == Load::Rate).then_some(self.loads);
            let mut decided = decide(&limits, self.grown, loads, config.alpha_each());
            if let Some(alarm) = self.stopped {
                let why = Failure::Stopped(alarm);
                decided.decision = Decision::Fail { why };
            } else if self.is_given_up() && decided.decision.is_undecided() {
                let why = Doubt::Invalid(self.invalid.last().cloned().unwrap_or_default());
                decided.decision = Decision::Undecided { why, more: None };
            }
            decided
        };
        config.tiers.iter().zip(&self.pooled).map(of).collect()
    }

    /// Whether it was given up because its runs were not valid.
    pub(crate) fn is_given_up(&self) -> bool {
        self.invalid_in_a_row >= INVALID
    }

    pub(crate) fn standing(&self, tier: usize) -> Standing {
        match &self.tiers[tier].decision {
            Decision::Pass => Standing::Pass,
            Decision::Fail { .. } => Standing::Fail,
            Decision::Undecided { .. } if self.closed => Standing::Undecided,
            Decision::Undecided { .. } => Standing::Open,
        }
    }

    /// Which attempt at the next look comes now, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.invalid_in_a_row + 1
    }

    /// The largest design effect of its objectives; absent where the backlog grew, because there is no steady state to
    /// have one.
    pub(crate) fn effect(&self, level: f64) -> Option<f64> {
        let is_steady = self.requests > 0 && self.grown.is_none() && self.stopped.is_none();
        let effects = self
            .pooled
            .iter()
            .flatten()
            .map(|pooled| pooled.effect(level));
        is_steady.then(|| effects.fold(1.0, f64::max))
    }

    /// What was seen of an objective; absent where the backlog grew.
    pub(crate) fn seen(&self, tier: usize, limit: usize) -> Option<Seen> {
        let own = &self.tiers.get(tier)?.limits.get(limit)?;
        let pooled = self.pooled.get(tier)?.get(limit)?;
        let is_steady = pooled.requests > 0 && self.grown.is_none() && self.stopped.is_none();
        is_steady.then(|| Seen {
            at: self.at,
            bad: pooled.bad as f64 / own.effect,
            requests: pooled.requests as f64 / own.effect,
        })
    }

    /// How many requests the next look takes, for a tier that is open here.
    pub(crate) fn next_requests(&self, config: &Config, tier: usize) -> u64 {
        let more = match &self.tiers[tier].decision {
            Decision::Undecided { more, .. } => *more,
            _ => None,
        };
        // Somewhat more than would do, because the share and the design effect are estimates.
        let wanted = more.map_or(u64::MAX, |more| {
            self.requests.saturating_add(more + more / 5)
        });
        let total = wanted
            .clamp(
                self.requests.saturating_mul(2),
                self.requests.saturating_mul(4),
            )
            .min(config.requests_at(self.at));
        (total - self.requests).max(config.requests_least_at(self.at))
    }
}

/// How many requests the first look at a load takes, where requests are worth one in `effect`.
pub(crate) fn first_requests(config: &Config, at: f64, effect: f64) -> u64 {
    let level = config.alpha_each();
    let limits = config.tiers.iter().flat_map(|tier| &tier.limits);
    let clean = limits
        .map(|limit| fewest(limit.allowed(), level))
        .fold(1.0, f64::max);
    // A few bad requests are to be expected even where a tier holds.
    let wanted = (1.2 * clean * effect).min(config.requests_at(at) as f64 / 4.0);
    let wanted = wanted.max(clean).ceil() as u64;
    (wanted.max(config.requests_least_at(at)).max(1)).min(config.requests_at(at))
}
