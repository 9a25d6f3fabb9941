//! Which trials of a stage are better than its first one, beyond chance.
//!
//! A trial is better, or worse, where the test of [`stat`](crate::stat) shows it among all comparisons of the stage.
//! Otherwise they tie, however far apart their means are. A trial that is ruled out is never better.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::expand::{Trial, TrialId};
use crate::file::Lab;
use crate::journal::{Cell, Results};
use crate::stat::{self, Gain, Spread};
use crate::walk::{Asked, Scenario, key};

model::words! {
    /// How a trial stands against the first one of its stage.
    pub enum Judgement {
        /// It is the first one.
        Reference = "reference",
        /// It is better, beyond chance.
        Better = "better",
        /// It is worse, beyond chance.
        Worse = "worse",
        /// No difference is shown. That does not mean that there is none.
        NoDifference = "no-difference",
        /// There is nothing to judge by: too few repeats, or the first one was not measured.
        NotJudged = "not-judged",
        /// It failed, or breaks a constraint.
        RuledOut = "ruled-out",
    }
}

impl Judgement {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Judgement::Reference => "reference",
            Judgement::Better => "better",
            Judgement::Worse => "worse",
            Judgement::NoDifference => "no difference shown",
            Judgement::NotJudged => "not judged",
            Judgement::RuledOut => "ruled out",
        }
    }
}

/// A stage, as far as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StageReport {
    /// Its heading.
    pub title: String,
    /// Its first round and its last one.
    pub rounds: [u32; 2],
    /// The share of each scenario's requests, in thousandths.
    pub share: u32,
    /// Whether all its runs were made.
    pub is_complete: bool,
    /// Its trials; the first is what the others are held against.
    pub rows: Vec<Row>,
}

/// A trial of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Row {
    /// The trial.
    pub trial: TrialId,
    /// What it is called.
    pub label: String,
    /// How it stands against the first one.
    pub judgement: Judgement,
    /// How much better it is, over all scenarios: the geometric mean of the ratios of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
    /// The geometric mean of the objective's figure over scenarios and repeats; of complete rounds alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
    /// The objective's figure by scenario.
    pub scenarios: Vec<ScenarioRow>,
    /// Why it is ruled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The objective's figure of a trial on a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScenarioRow {
    /// The scenario.
    pub scenario: String,
    /// The figure over repeats, in its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<Spread>,
    /// How much better it is than the first trial of the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
}

/// Where figures of trials come from.
pub(crate) struct Sides<'a> {
    /// The lab.
    pub lab: &'a Lab,
    /// Its scenarios.
    pub scenarios: &'a [Scenario],
    /// What was measured.
    pub results: &'a Results,
    /// The share of requests that counts, in thousandths.
    pub share: u32,
}

impl Sides<'_> {
    /// The logarithm of the objective's figure on a scenario, by round, greater the better.
    pub fn logs(&self, trial: &TrialId, scenario: &Scenario, rounds: &[u32]) -> Vec<(u32, f64)> {
        let Some(objective) = &self.lab.objective else {
            return Vec::new();
        };
        let log = |round: &u32| {
            let key = key(trial, scenario, *round, self.share);
            match self.results.cell(&key, self.lab.retries) {
                Cell::Counted(_, measured) => Some((*round, objective.score(measured)?)),
                _ => None,
            }
        };
        rounds.iter().filter_map(log).collect()
    }

    /// The mean over all scenarios, by round; of those rounds in which every scenario was measured.
    pub fn starts(&self, trial: &TrialId, rounds: &[u32]) -> Vec<(u32, f64)> {
        let each: Vec<Vec<(u32, f64)>> = self
            .scenarios
            .iter()
            .map(|scenario| self.logs(trial, scenario, rounds))
            .collect();
        let of = |round: u32| {
            let found = each.iter().map(|logs| {
                logs.iter()
                    .find(|(own, _)| *own == round)
                    .map(|(_, log)| *log)
            });
            let found: Option<Vec<f64>> = found.collect();
            Some((round, stat::mean(&found?)?))
        };
        rounds.iter().filter_map(|round| of(*round)).collect()
    }

    /// A trial against another, in the rounds that both have; not judged yet.
    pub fn row(&self, trial: &Trial, reference: &Trial, rounds: &[u32]) -> Row {
        let is_reference = trial.id == reference.id;
        let pair = |of: &dyn Fn(&TrialId) -> Vec<(u32, f64)>| {
            let [own, theirs] = [of(&trial.id), of(&reference.id)].map(values);
            let gain = if is_reference {
                None
            } else {
                stat::gain(&theirs, &own)
            };
            (own, gain)
        };
        let (starts, gain) = pair(&|id| self.starts(id, rounds));
        let scenarios = self.scenarios.iter().map(|scenario| {
            let (own, gain) = pair(&|id| self.logs(id, scenario, rounds));
            let figures: Vec<f64> = own.iter().map(|log| self.figure(*log)).collect();
            ScenarioRow {
                scenario: scenario.name.clone(),
                figure: stat::spread(&figures),
                gain,
            }
        });
        Row {
            trial: trial.id.clone(),
            label: self.lab.label(trial),
            judgement: if is_reference {
                Judgement::Reference
            } else {
                Judgement::NotJudged
            },
            gain,
            level: stat::mean(&starts).map(|log| self.figure(log)),
            scenarios: scenarios.collect(),
            why: None,
        }
    }

    /// The objective's figure of its logarithm.
    fn figure(&self, log: f64) -> f64 {
        let is_maximized = self
            .lab
            .objective
            .as_ref()
            .is_none_or(|objective| objective.is_maximized);
        if is_maximized {
            log.exp()
        } else {
            (-log).exp()
        }
    }
}

pub(crate) fn values(logs: Vec<(u32, f64)>) -> Vec<f64> {
    logs.into_iter().map(|(_, log)| log).collect()
}

/// Judges rows against the reference, all together.
pub(crate) fn judge(rows: &mut [Row]) {
    let is_judged = |row: &Row| row.judgement == Judgement::NotJudged && row.why.is_none();
    let probabilities: Vec<Option<f64>> = (rows.iter())
        .map(|row| row.gain.filter(|_| is_judged(row))?.probability)
        .collect();
    for (row, shown) in rows.iter_mut().zip(stat::shown(&probabilities)) {
        let Some(gain) = row
            .gain
            .filter(|gain| is_judged(row) && gain.probability.is_some())
        else {
            continue;
        };
        row.judgement = match shown {
            false => Judgement::NoDifference,
            true if gain.percent > 0.0 => Judgement::Better,
            true => Judgement::Worse,
        };
    }
}

/// What a stage shows. `ruled` says of each trial why it is ruled out.
pub(crate) fn stage(
    sides: &Sides<'_>,
    asked: &Asked,
    rounds: RangeInclusive<u32>,
    ruled: &[Option<String>],
    is_complete: bool,
) -> StageReport {
    let all: Vec<u32> = rounds.clone().collect();
    let rows = asked.trials.iter().zip(ruled).map(|(trial, why)| {
        let mut row = sides.row(trial, &asked.trials[0], &all);
        row.why.clone_from(why);
        if why.is_some() && row.judgement != Judgement::Reference {
            row.judgement = Judgement::RuledOut;
        }
        row
    });
    let mut rows: Vec<Row> = rows.collect();
    judge(&mut rows);
    StageReport {
        title: asked.title.clone(),
        rounds: [*rounds.start(), *rounds.end()],
        share: asked.share,
        is_complete,
        rows,
    }
}

impl Row {
    /// Whether it was measured and meets the constraints.
    pub fn is_eligible(&self) -> bool {
        self.why.is_none() && self.level.is_some()
    }
}

impl StageReport {
    /// The row of a trial.
    pub fn row(&self, trial: &TrialId) -> Option<&Row> {
        self.rows.iter().find(|row| row.trial == *trial)
    }

    /// The best of these trials, if one is better than the first beyond chance. If the first is ruled out itself, the
    /// best that is not, whether it is better or not.
    pub fn best_of(&self, among: impl Fn(&TrialId) -> bool, is_maximized: bool) -> Option<&Row> {
        let reference = self.rows.first()?;
        let is_free = !reference.is_eligible();
        let may_win = |row: &&Row| {
            let is_shown = row.judgement == Judgement::Better || is_free;
            row.judgement != Judgement::Reference
                && row.is_eligible()
                && is_shown
                && among(&row.trial)
        };
        let level = |row: &Row| {
            let level = row.level.unwrap_or_default();
            if is_maximized { level } else { -level }
        };
        // Of equal ones the first in the order of the file.
        self.rows
            .iter()
            .rev()
            .filter(may_win)
            .max_by(|a, b| level(a).total_cmp(&level(b)))
    }

    /// The trials that may be as good as that one: no difference between them is shown.
    pub(crate) fn ties(&self, sides: &Sides<'_>, best: &TrialId) -> Vec<TrialId> {
        let rounds: Vec<u32> = (self.rounds[0]..=self.rounds[1]).collect();
        let own = values(sides.starts(best, &rounds));
        let others = self
            .rows
            .iter()
            .filter(|row| row.trial != *best && row.is_eligible());
        let others: Vec<&Row> = others
            .filter(|row| row.judgement != Judgement::Reference)
            .collect();
        let probabilities: Vec<Option<f64>> = (others.iter())
            .map(|row| stat::gain(&own, &values(sides.starts(&row.trial, &rounds)))?.probability)
            .collect();
        let shown = stat::shown(&probabilities);
        let tied = others.iter().zip(shown).filter(|(_, shown)| !shown);
        tied.map(|(row, _)| row.trial.clone()).collect()
    }
}
