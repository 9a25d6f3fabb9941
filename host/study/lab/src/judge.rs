//! The judgement of a stage: which of its trials are better than its first trial, beyond chance.
//!
//! A trial is better, or worse, where Dunnett's test shows it among all comparisons of the stage,
//! and so its interval does not hold zero. Otherwise they tie, however far apart their means are. A
//! trial that is ruled out is never better, nor is a trial whose mean lies beyond a constraint's
//! limit, shown or not.
//!
//! The error comes from [`Fit`]s: the variation that trials and rounds leave unexplained, in this
//! stage and in earlier stages ([`Errors`]). Trials that are ruled out have no part in it, because
//! their figures often vary much.

use std::ops::RangeInclusive;

use crate::expand::{Trial, TrialId};
use crate::file::Lab;
use crate::journal::{Cell, Results};
use crate::measured::Measured;
use crate::objective::Standing;
use crate::stat::{self, Family, Gain, Noise, Spread};
use crate::study::{PlannedStage, Scenario, key};
use statistics::mean_if_any;
use statistics::twoway::{Fit, Residual};

model::words! {
    /// The standing of a trial against the first one of its stage.
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
    pub fn label(self) -> &'static str {
        match self {
            Judgement::NoDifference => "no difference shown",
            Judgement::NotJudged => "not judged",
            Judgement::RuledOut => "ruled out",
            other => other.name(),
        }
    }
}

/// A stage, as far as it was measured.
#[model::apply(model::document!)]
pub struct StageReport {
    /// Its heading.
    pub title: String,
    /// Its first round and its last one.
    pub rounds: [u32; 2],
    /// True if all its runs were made.
    pub is_complete: bool,
    /// The variation of starts, by this stage and earlier ones; absent where nothing is left to
    /// estimate it from.
    pub noise: Option<Noise>,
    /// The true gain, in percent, that the stage shows in nine of ten cases.
    pub detectable: Option<f64>,
    /// Its trials; the others are compared with the first.
    pub rows: Vec<Row>,
}

/// A trial of a stage.
#[model::apply(model::document!)]
pub struct Row {
    /// The trial.
    pub trial: TrialId,
    /// The trial's name in tables.
    pub label: String,
    /// Its standing against the first one.
    pub judgement: Judgement,
    /// Its gain over all scenarios: the geometric mean of the ratios of each.
    pub gain: Option<Gain>,
    /// The geometric mean of the objective's figure over scenarios and rounds; only of complete
    /// rounds, and as if the trial had been in each round of its stage.
    pub level: Option<f64>,
    /// The objective's figure by scenario.
    pub scenarios: Vec<ScenarioRow>,
    /// The reason why it is ruled out.
    pub why: Option<String>,
    /// Constraints that it is not shown to meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<HeldRow>,
    /// Rounds that would show the difference, if it is as large as was measured; absent where it is
    /// shown, and where that takes more than a hundred rounds.
    pub to_show: Option<ToShow>,
}

/// The standing of a trial to a constraint on a scenario.
#[model::apply(model::document!)]
pub struct HeldRow {
    /// The scenario.
    pub scenario: String,
    /// The constraint.
    pub constraint: String,
    /// The constraint's standing: shown to hold, shown to be broken, or neither.
    pub standing: Standing,
    /// True if the mean over rounds meets it.
    pub is_within: bool,
    /// The figure over all rounds so far, where requests that failed or were not sent count as the
    /// worst; absent for a verdict, and where it is infinite or was not measured.
    pub figure: Option<Spread>,
    /// The standing as text.
    pub words: String,
    /// Rounds that would show it, if the mean is the truth; absent where it is shown, and where
    /// that takes more than a hundred rounds.
    pub to_show: Option<ToShow>,
}

/// Rounds that would show a difference in nine of ten cases.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct ToShow {
    /// Rounds in total: `repeats` in the lab file.
    pub rounds: u32,
    /// The time of the rounds that were not made yet, in seconds, with all trials of the stage;
    /// absent if that is not known.
    pub seconds: Option<f64>,
}

/// The objective's figure of a trial on a scenario.
#[model::apply(model::document!)]
pub struct ScenarioRow {
    /// The scenario.
    pub scenario: String,
    /// The figure over repeats, in its unit.
    pub figure: Option<Spread>,
    /// The gain over the first trial of the stage.
    pub gain: Option<Gain>,
}

/// The source of the figures of trials.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub lab: &'a Lab,
    pub scenarios: &'a [Scenario],
    pub results: &'a Results,
}

impl<'a> Sides<'a> {
    /// The counted run of a trial on a scenario in a round.
    fn run(&self, trial: &TrialId, scenario: &Scenario, round: u32) -> Option<&'a Measured> {
        match self.results.cell(&key(trial, scenario, round), self.lab.retries) {
            Cell::Counted(_, measured) => Some(measured),
            _ => None,
        }
    }

    /// The logarithm of the objective's figure on a scenario, by round, greater the better.
    pub fn logs(&self, trial: &TrialId, scenario: &Scenario, rounds: &[u32]) -> Vec<(u32, f64)> {
        let log = |round: &u32| {
            let run = self.run(trial, scenario, *round)?;
            Some((*round, self.lab.objective.as_ref()?.score(run)?))
        };
        rounds.iter().filter_map(log).collect()
    }

    /// The mean over all scenarios, by round; only for rounds in which every scenario was measured.
    pub fn starts(&self, trial: &TrialId, rounds: &[u32]) -> Vec<(u32, f64)> {
        let each: Vec<Vec<(u32, f64)>> =
            self.scenarios.iter().map(|scenario| self.logs(trial, scenario, rounds)).collect();
        let mean = |round: u32| {
            let logs: Option<Vec<f64>> = (each.iter())
                .map(|logs| logs.iter().find(|(own, _)| *own == round).map(|(_, log)| *log))
                .collect();
            Some((round, mean_if_any(&logs?)?))
        };
        rounds.iter().filter_map(|round| mean(*round)).collect()
    }

    /// A trial's row without a comparison.
    pub fn row(&self, trial: &Trial, rounds: &[u32]) -> Row {
        let scenarios = self.scenarios.iter().map(|scenario| {
            let own = values(self.logs(&trial.id, scenario, rounds));
            let figures: Vec<f64> = own.iter().map(|log| self.figure(*log)).collect();
            ScenarioRow {
                scenario: scenario.name.clone(),
                figure: stat::spread(&figures),
                gain: None,
            }
        });
        let starts = values(self.starts(&trial.id, rounds));
        Row {
            trial: trial.id.clone(),
            label: self.lab.label(trial),
            judgement: Judgement::NotJudged,
            gain: None,
            level: mean_if_any(&starts).map(|log| self.figure(log)),
            scenarios: scenarios.collect(),
            why: None,
            constraints: Vec::new(),
            to_show: None,
        }
    }

    /// The counted runs of a trial on a scenario in these rounds.
    pub fn runs(&self, trial: &TrialId, scenario: &Scenario, rounds: &[u32]) -> Vec<&'a Measured> {
        rounds.iter().filter_map(|round| self.run(trial, scenario, *round)).collect()
    }

    /// The constraints that a trial is not shown to meet by the runs of each scenario.
    pub fn held(&self, runs: &[Vec<&Measured>]) -> Vec<HeldRow> {
        let constraints: Vec<_> =
            self.lab.objective.iter().flat_map(|objective| &objective.constraints).collect();
        let pairs = self.scenarios.iter().zip(runs).filter(|(_, runs)| !runs.is_empty());
        let each = pairs.flat_map(|(scenario, runs)| {
            constraints.iter().map(move |constraint| {
                let compliance = constraint.compliance(runs);
                HeldRow {
                    scenario: scenario.name.clone(),
                    constraint: constraint.to_string(),
                    standing: compliance.standing,
                    is_within: compliance.is_within,
                    figure: compliance.figure,
                    words: format!("{}: {}", scenario.name, compliance.words),
                    to_show: compliance.rounds.map(|rounds| ToShow { rounds, seconds: None }),
                }
            })
        });
        each.filter(|row| row.standing != Standing::Meets).collect()
    }

    /// The objective's figure for its logarithm.
    fn figure(&self, log: f64) -> f64 {
        if self.lab.is_maximized() { log.exp() } else { (-log).exp() }
    }
}

pub(crate) fn values(logs: Vec<(u32, f64)>) -> Vec<f64> {
    logs.into_iter().map(|(_, log)| log).collect()
}

/// The fits of a stage: of starts, the mean over all scenarios, and of each scenario.
pub(crate) struct Fits {
    pub starts: Fit,
    pub scenarios: Vec<Fit>,
}

impl Fits {
    /// The fits of these trials, by their places, without the trials that are left out.
    pub fn new(
        sides: &Sides<'_>,
        trials: &[&TrialId],
        rounds: &[u32],
        is_out: impl Fn(usize) -> bool,
    ) -> Self {
        let fit = |logs: &dyn Fn(&TrialId) -> Vec<(u32, f64)>| {
            let each: Vec<_> = (trials.iter().enumerate())
                .map(|(place, trial)| if is_out(place) { Vec::new() } else { logs(trial) })
                .collect();
            Fit::new(&each)
        };
        Fits {
            starts: fit(&|trial| sides.starts(trial, rounds)),
            scenarios: (sides.scenarios.iter())
                .map(|scenario| fit(&|trial| sides.logs(trial, scenario, rounds)))
                .collect(),
        }
    }
}

/// The variation that stages leave unexplained, of starts and of each scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Errors {
    starts: Residual,
    scenarios: Vec<Residual>,
}

impl Errors {
    /// The errors, with a further stage's.
    pub fn and(&self, fits: &Fits) -> Errors {
        let own = fits.scenarios.iter().enumerate();
        let own = own.map(|(place, fit)| {
            let before = self.scenarios.get(place).copied();
            before.unwrap_or_default().and(fit.residual())
        });
        Errors { starts: self.starts.and(fits.starts.residual()), scenarios: own.collect() }
    }
}

/// A difference of two trials, by their places: the stage's fits, the reference, the trial.
pub(crate) type Pair<'f> = (&'f Fits, usize, usize);

/// Judges rows by their differences, all together; rows without a difference stay unchanged.
/// `correlation` is the least correlation of any two differences.
pub(crate) fn judge(
    rows: &mut [Row],
    pairs: &[Option<Pair<'_>>],
    correlation: f64,
    errors: &Errors,
) -> Option<Noise> {
    let apart = |pick: &dyn Fn(&Fits) -> &Fit| -> Vec<_> {
        let one = |(fits, base, trial): Pair<'_>| pick(fits).apart(base, trial);
        pairs.iter().map(|pair| pair.and_then(one)).collect()
    };
    let starts = apart(&|fits| &fits.starts);
    let many = starts.iter().flatten().count();
    let family = Family::new(many, correlation, errors.starts);
    for (row, apart) in rows.iter_mut().zip(&starts) {
        let Some(apart) = apart else { continue };
        let gain = family.gain(apart);
        row.gain = Some(gain);
        row.judgement = match gain.probability {
            None => Judgement::NotJudged,
            Some(p) if p > stat::OUTSIDE => Judgement::NoDifference,
            Some(_) if gain.percent > 0.0 => Judgement::Better,
            Some(_) => Judgement::Worse,
        };
    }
    for (place, residual) in errors.scenarios.iter().enumerate() {
        let apart = apart(&|fits| &fits.scenarios[place]);
        let family = family.with(*residual, apart.iter().flatten().count(), correlation);
        for (row, apart) in rows.iter_mut().zip(&apart) {
            row.scenarios[place].gain = apart.as_ref().map(|apart| family.gain(apart));
        }
    }
    family.noise()
}

/// A trial that is ruled out against the reference, in the rounds that both have, by these alone.
fn pair(sides: &Sides<'_>, row: &mut Row, reference: &TrialId, rounds: &[u32]) {
    let trial = row.trial.clone();
    let fits = Fits::new(sides, &[reference, &trial], rounds, |_| false);
    let errors = Errors::default().and(&fits);
    judge(std::slice::from_mut(row), &[Some((&fits, 0, 1))], 0.0, &errors);
    row.judgement = Judgement::RuledOut;
}

/// Writes the report of a stage, and the errors with this stage's. `ruled` has, for each trial, the
/// reason why it is ruled out and the constraints that it is not shown to meet. `before` has the
/// errors of earlier stages.
pub(crate) fn stage(
    sides: &Sides<'_>,
    planned: &PlannedStage,
    rounds: RangeInclusive<u32>,
    ruled: &[Ruling],
    before: &Errors,
    is_complete: bool,
) -> (StageReport, Errors) {
    let all: Vec<u32> = rounds.clone().collect();
    let trials: Vec<&TrialId> = planned.trials.iter().map(|trial| &trial.id).collect();
    // The reference of the comparisons is never left out.
    let is_out = |place: usize| place > 0 && ruled[place].why.is_some();
    let fits = Fits::new(sides, &trials, &all, is_out);
    let errors = before.and(&fits);
    let each = planned.trials.iter().zip(ruled).enumerate();
    let rows = each.map(|(place, (trial, ruled))| {
        let row = sides.row(trial, &all);
        let level = fits.starts.level(place).map(|log| sides.figure(log)).or(row.level);
        Row { why: ruled.why.clone(), constraints: ruled.held.clone(), level, ..row }
    });
    let mut rows: Vec<Row> = rows.collect();
    let compared: Vec<usize> = (1..rows.len()).filter(|place| !is_out(*place)).collect();
    let pairs: Vec<Option<Pair<'_>>> = (0..rows.len())
        .map(|place| compared.contains(&place).then_some((&fits, 0, place)))
        .collect();
    let noise = judge(&mut rows, &pairs, fits.starts.correlation(0, &compared), &errors);
    for (place, row) in rows.iter_mut().enumerate() {
        match place {
            0 => row.judgement = Judgement::Reference,
            _ if is_out(place) => pair(sides, row, trials[0], &all),
            _ => {}
        }
    }
    let report = StageReport {
        title: planned.title.clone(),
        rounds: [*rounds.start(), *rounds.end()],
        is_complete,
        detectable: noise.map(|noise| noise.detectable(planned.rounds)),
        noise,
        rows,
    };
    (report, errors)
}

/// The standing of a trial to all reasons that rule trials out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ruling {
    /// The reason why it is ruled out.
    pub why: Option<String>,
    /// The constraints that it is not shown to meet.
    pub held: Vec<HeldRow>,
}

impl Row {
    /// True if it was measured and is not ruled out.
    pub fn is_eligible(&self) -> bool {
        self.why.is_none() && self.level.is_some()
    }

    /// True if it can be recommended: its mean meets every constraint, shown or not.
    pub fn may_win(&self) -> bool {
        self.is_eligible() && self.constraints.iter().all(|held| held.is_within)
    }

    /// True if fresh runs are likely to show that it is better: by a test of one side at 5 %.
    fn is_promising(&self) -> bool {
        let gain = self.gain.filter(|gain| gain.percent > 0.0);
        let probability = gain.and_then(|gain| gain.probability);
        probability.is_some_and(|p| p <= 2.0 * stat::OUTSIDE)
    }
}

impl StageReport {
    pub fn row(&self, trial: &TrialId) -> Option<&Row> {
        self.rows.iter().find(|row| row.trial == *trial)
    }

    /// The best of these trials, if one is better than the first beyond chance. If the first is
    /// ruled out itself, the best trial that is not ruled out, whether it is better or not.
    pub fn best_of(&self, among: impl Fn(&TrialId) -> bool, is_maximized: bool) -> Option<&Row> {
        let reference = self.rows.first()?;
        let is_free = !reference.is_eligible();
        let may_win = |row: &&Row| {
            let is_shown = row.judgement == Judgement::Better || is_free;
            row.judgement != Judgement::Reference && row.may_win() && is_shown && among(&row.trial)
        };
        let level = |row: &Row| {
            let level = row.level.unwrap_or_default();
            if is_maximized { level } else { -level }
        };
        // Of equal trials, the first in the order of the file.
        self.rows.iter().rev().filter(may_win).max_by(|a, b| level(a).total_cmp(&level(b)))
    }

    /// The trial that is most probably better than the first; fresh runs may show that it is.
    pub fn most_promising(&self) -> Option<&Row> {
        let likely = |row: &&Row| {
            let is_shown = matches!(row.judgement, Judgement::NoDifference | Judgement::Better);
            is_shown && row.may_win() && row.is_promising()
        };
        let p = |row: &Row| row.gain.and_then(|gain| gain.probability).unwrap_or(1.0);
        self.rows.iter().filter(likely).min_by(|a, b| p(a).total_cmp(&p(b)))
    }

    /// The trials that may be as good as this one: no difference between them is shown.
    pub(crate) fn ties(
        &self,
        sides: &Sides<'_>,
        errors: Option<&Errors>,
        best: &TrialId,
    ) -> Vec<TrialId> {
        let rounds: Vec<u32> = (self.rounds[0]..=self.rounds[1]).collect();
        let kept: Vec<&Row> = self.rows.iter().filter(|row| row.is_eligible()).collect();
        let trials: Vec<&TrialId> = kept.iter().map(|row| &row.trial).collect();
        let Some(base) = trials.iter().position(|trial| *trial == best) else { return Vec::new() };
        let fits = Fits::new(sides, &trials, &rounds, |_| false);
        let others: Vec<usize> = (0..trials.len())
            .filter(|place| *place != base && kept[*place].judgement != Judgement::Reference)
            .collect();
        let residual = errors.map_or(fits.starts.residual(), |errors| errors.starts);
        let correlation = fits.starts.correlation(base, &others);
        let family = Family::new(others.len(), correlation, residual);
        let is_shown = |place: &usize| {
            let apart = fits.starts.apart(base, *place);
            let p = apart.and_then(|apart| family.gain(&apart).probability);
            p.is_some_and(|p| p <= stat::OUTSIDE)
        };
        let tied = others.iter().filter(|place| !is_shown(place));
        tied.map(|place| trials[*place].clone()).collect()
    }
}
