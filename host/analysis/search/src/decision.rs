//! The decision of the runs at one load on a tier, with the figures it rests on.

use std::fmt;

use result::summary::Backlog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::slo::Limit;
use crate::watch::Alarm;

/// The decision on an objective, and the figures it rests on.
#[model::apply(model::document!)]
pub struct Stated {
    /// The objective.
    pub limit: Limit,
    /// The share of the requests that it allows to be bad.
    pub allowed: f64,
    /// Requests that were due.
    pub requests: u64,
    /// Those of them that were bad.
    pub bad: u64,
    /// Those of the bad ones that were answered, and whose metric is not known. They can fail no
    /// tier.
    pub unknown: u64,
    /// The factor by which dependence multiplies the variance of the number of bad requests.
    pub effect: f64,
    /// The lower bound of the share of bad requests.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The share in the long run, by these requests and a simulation of the engine; absent where
    /// the simulation does not explain the misses.
    pub long_run: Option<f64>,
}

impl Stated {
    /// The share of bad requests: in the long run where it is known, else among these requests
    /// without the unknown ones.
    pub fn share(&self) -> f64 {
        let known = self.bad.saturating_sub(self.unknown);
        // A single miss among so few that none may miss says nothing.
        let is_few = self.requests as f64 * self.allowed < 1.0;
        let seen = known.saturating_sub(u64::from(is_few)) as f64 / self.requests.max(1) as f64;
        self.long_run.unwrap_or(seen)
    }
}

/// The reason why a tier does not hold at a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// More requests are bad than the objective at this place of the tier allows.
    Misses(usize),
    /// The backlog grew while requests were due: the server does not keep up.
    Growth(Backlog),
    /// The run was stopped because the backlog grew.
    Stopped(Alarm),
    /// It lies above the interval that all runs together give.
    Above,
}

/// The reason why it is too early to say, or why it cannot be said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// No run counts yet.
    NoRun,
    /// The requests are worth fewer independent ones than a pass takes even if none is bad.
    TooFew,
    /// The runs hold so few independent loads that the queue may not have built up.
    FewLoads(f64),
    /// The share of bad requests is too close to the allowed share.
    Close,
    /// The load lies within the interval that all runs together give.
    Within,
    /// The metric is not known of some answered requests, and it depends on those.
    Unknown,
    /// The runs were not valid, twice in a row.
    Invalid(String),
}

/// The decision of the runs at one load on a tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It holds: its own requests show it.
    Pass,
    /// It holds: it lies below the interval that all runs together give.
    Below,
    /// It does not hold.
    Fail {
        /// The reason.
        why: Failure,
    },
    /// It is not shown either way.
    Undecided {
        /// The reason.
        why: Doubt,
        /// The number of further requests that would decide, if they are as those seen; absent if
        /// no number of them would.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<u64>,
    },
}

impl Decision {
    pub fn is_pass(&self) -> bool {
        matches!(self, Decision::Pass | Decision::Below)
    }

    pub fn is_fail(&self) -> bool {
        matches!(self, Decision::Fail { .. })
    }

    pub fn is_undecided(&self) -> bool {
        matches!(self, Decision::Undecided { .. })
    }
}

/// A decision with the figures it rests on.
#[model::apply(model::document!)]
pub struct Decided {
    /// The decision that is shown.
    pub decision: Decision,
    /// The decision on each objective of the tier.
    pub limits: Vec<Stated>,
}

impl Decided {
    /// True if a simulation corrected the share of an objective.
    pub fn is_simulated(&self) -> bool {
        self.limits.iter().any(|own| own.long_run.is_some())
    }
}

/// As text, with the figures:
/// `failed: ttft.p99 < 500 ms: 120 of 4000 requests are bad: at least 2.1 %, limit 1 %`.
impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.3} %", share * 100.0);
        let limit = |own: &Stated| format!("limit {} %", (own.allowed * 1e5).round() / 1e3);
        let seen = |own: &Stated| {
            format!("{}: {} of {} requests are bad", own.limit, own.bad, own.requests)
        };
        let long_run = |own: &Stated| {
            Some(format!("; a long run would have {} (simulated)", percent(own.long_run?)))
        };
        let missed = |own: &Stated| {
            let share = own.bad as f64 / own.requests.max(1) as f64;
            let share = long_run(own).unwrap_or_else(|| format!(": {}", percent(share)));
            format!("{}{share}, {}", seen(own), limit(own))
        };
        let all_missed = || self.limits.iter().map(missed).collect::<Vec<_>>().join("; ");
        match &self.decision {
            Decision::Pass => {
                let each = self.limits.iter().map(|own| {
                    format!("{}: at most {}, {}", seen(own), percent(own.high), limit(own))
                });
                write!(f, "passed: {}", each.collect::<Vec<_>>().join("; "))
            }
            Decision::Below => write!(f, "passed, judged from all runs together: {}", all_missed()),
            Decision::Fail { why } => match why {
                Failure::Misses(place) => {
                    let Some(own) = self.limits.get(*place) else { return f.write_str("failed") };
                    let low = percent(own.low);
                    write!(f, "failed: {}: at least {low}, {}", seen(own), limit(own))
                }
                Failure::Growth(backlog) => write!(
                    f,
                    "failed: unanswered requests grew from {:.1} to {:.1}, and chance explains at most {:.1}",
                    backlog.second_quarter, backlog.fourth_quarter, backlog.chance
                ),
                Failure::Stopped(alarm) => write!(
                    f,
                    "failed: stopped after {:.0} s, because unanswered requests grew from {:.1} to {:.1}, and chance explains at most {:.1}",
                    alarm.progress.at.as_secs_f64(),
                    alarm.second_quarter,
                    alarm.fourth_quarter,
                    alarm.chance
                ),
                Failure::Above => {
                    write!(f, "failed, judged from all runs together: {}", all_missed())
                }
            },
            Decision::Undecided { why, more } => {
                let few_loads = matches!(why, Doubt::FewLoads(_));
                let open = (self.limits.iter()).filter(|own| few_loads || own.high > own.allowed);
                let each: Vec<String> = open
                    .map(|own| {
                        let [low, high] = [own.low, own.high].map(percent);
                        let share = long_run(own).unwrap_or_else(|| format!(": {low} to {high}"));
                        format!("{}{share}, {}", seen(own), limit(own))
                    })
                    .collect();
                let because = match why {
                    Doubt::Within => {
                        return write!(
                            f,
                            "undecided, between a load that holds and a load that fails: {}",
                            all_missed()
                        );
                    }
                    Doubt::NoRun => return f.write_str("undecided: no run counts yet"),
                    Doubt::Invalid(why) => {
                        return write!(f, "undecided: its runs are not valid: {why}");
                    }
                    Doubt::FewLoads(_) => "the queue may not have built up yet",
                    Doubt::TooFew => "too few requests",
                    Doubt::Close => "too close",
                    Doubt::Unknown => "the metric is not known of all answers",
                };
                write!(f, "undecided, {because}: {}", each.join("; "))?;
                match more {
                    Some(more) => write!(f, "; about {more} more requests would decide"),
                    None => Ok(()),
                }
            }
        }
    }
}
