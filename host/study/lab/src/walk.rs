//! Stages: trials that are run in interleaved rounds, and judged together.
//!
//! **The order.** A round runs each trial of the stage once: one start of its engine, and one run
//! of each scenario while it is up. Rounds follow one another, so the order is A B C, A B C, never
//! A A A: a machine that gets warmer or slower over hours does so for all. Each round begins at
//! another trial, so that none is always the first. The first trial of a stage is the reference of
//! the others, and the baseline is part of every stage. Starting an engine takes minutes, so a
//! start serves all scenarios. But no start serves two rounds, because the variation from start to
//! start would then look like a difference between trials.
//!
//! **Left out.** A trial whose engine does not start, whose run cannot be made, or that is shown to
//! break a constraint is not run in further rounds: it cannot win. Constraints are judged by all
//! rounds of a trial so far, also in earlier stages. The first trial of a stage is run on though it
//! breaks constraints, because the others need it.
//!
//! **No memory.** The next starts are computed from the results every time. Strategies are written
//! as straight lines of stages and stop at the first unfinished one.

use std::collections::BTreeSet;

use crate::estimate::Timing;
use crate::expand::{Trial, TrialId, merged};
use crate::journal::{Cell, RunKey};
use crate::judge::{self, Errors, HeldRow, Ruling, Sides, StageReport};
use crate::measured::Measured;
use crate::objective::Standing;
use crate::study::{PlannedStage, Scenario, Start, key};

/// The contents of `lab.json`, which a lab's folder holds beside its journal. With it, the page can
/// be drawn again and the lab can continue wherever the folder is.
#[model::apply(model::document!)]
pub struct SavedLab {
    /// The format's version.
    pub version: u32,
    /// The lab file's path, as it was given.
    pub path: String,
    /// The lab file's text.
    pub text: String,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
}

/// A study of one model, as far as its results go.
pub(crate) struct Walk<'a> {
    pub sides: Sides<'a>,
    /// Index into `lab.models`.
    pub model: usize,
    pub stages: Vec<StageReport>,
    /// Every trial that any stage has.
    pub trials: Vec<Trial>,
    /// The starts that the first unfinished stage still needs.
    pub pending: Vec<Start>,
    /// The unexplained variation of the stages so far.
    pub errors: Option<Errors>,
    /// The first rounds of the stages that led to a choice.
    pub choices: BTreeSet<u32>,
    /// Rounds of the stages so far.
    round: u32,
}

impl<'a> Walk<'a> {
    /// Before the first stage.
    pub fn new(sides: Sides<'a>, model: usize) -> Self {
        Walk {
            sides,
            model,
            stages: Vec::new(),
            trials: Vec::new(),
            pending: Vec::new(),
            errors: None,
            choices: BTreeSet::new(),
            round: 0,
        }
    }

    /// The stage's report once all its runs have ended; until then [`Walk::pending`] has the rest.
    pub fn stage(&mut self, title: &str, trials: Vec<Trial>, rounds: u32) -> Option<StageReport> {
        let planned = PlannedStage { title: title.to_owned(), trials: merged(trials), rounds };
        let rounds = self.round + 1..=self.round + planned.rounds;
        self.round += planned.rounds;
        for trial in &planned.trials {
            if !self.trials.iter().any(|known| known.id == trial.id) {
                self.trials.push(trial.clone());
            }
        }
        let out: Vec<Out> =
            planned.trials.iter().map(|trial| self.out(trial, rounds.clone())).collect();
        let mut pending = Vec::new();
        for round in rounds.clone() {
            for place in order(planned.trials.len(), planned.rounds, round - rounds.start()) {
                let trial = &planned.trials[place];
                let since = match place {
                    // The first trial is run on though it breaks constraints, but it is ruled out
                    // like the others.
                    0 => out[place].failed,
                    _ => out[place].since,
                };
                let runs = self.missing(&trial.id, round, since);
                if !runs.is_empty() {
                    pending.push(Start { trial: trial.clone(), round, runs });
                }
            }
        }
        let is_complete = pending.is_empty();
        let ruled: Vec<Ruling> = out.into_iter().map(|out| out.ruled).collect();
        let before = self.errors.clone().unwrap_or_default();
        let (report, errors) =
            judge::stage(&self.sides, &planned, rounds, &ruled, &before, is_complete);
        self.errors = Some(errors);
        self.stages.push(report.clone());
        self.pending = pending;
        is_complete.then_some(report)
    }

    /// The rounds after which a trial is out of a stage, if it is, and its constraints' standing.
    fn out(&self, trial: &Trial, rounds: std::ops::RangeInclusive<u32>) -> Out {
        let Sides { lab, scenarios, results } = self.sides;
        if let Some(why) = results.does_not_start(&trial.id, lab.retries) {
            return Out::failed(0, why, Vec::new());
        }
        let held = |runs: &[Vec<&Measured>]| self.sides.held(runs);
        let before: Vec<u32> = (1..*rounds.start()).collect();
        let counted = |scenario| self.sides.runs(&trial.id, scenario, &before);
        let mut runs: Vec<Vec<&Measured>> = scenarios.iter().map(counted).collect();
        let mut out = Out::default();
        for round in rounds {
            let mut is_measured = false;
            for (place, scenario) in scenarios.iter().enumerate() {
                match results.cell(&key(&trial.id, scenario, round), lab.retries) {
                    Cell::Bad(why) => {
                        let why = format!("{}: {why}", scenario.name);
                        return Out::failed(round, why, held(&runs));
                    }
                    Cell::Counted(_, measured) => {
                        runs[place].push(measured);
                        is_measured = true;
                    }
                    Cell::Missing(_) => {}
                }
            }
            if is_measured && out.since.is_none() {
                out.ruled.held = held(&runs);
                out.ruled.why = broken(&out.ruled.held, lab.repeats);
                out.since = out.ruled.why.as_ref().map(|_| round);
            }
        }
        // The first trial of a stage is run on, and judged by all its rounds.
        if out.since.is_some() {
            out.ruled.held = held(&runs);
            out.ruled.why = broken(&out.ruled.held, lab.repeats);
        }
        out
    }

    /// The runs that one start of a trial's engine serves in a round, given the round since which
    /// it is ruled out. They do not depend on where a start is cut off: the first attempts at all
    /// scenarios are made, whatever the first of them shows. Then failed ones are repeated, one in
    /// a start, as long as nothing rules the trial out.
    fn missing(&self, trial: &TrialId, round: u32, since: Option<u32>) -> Vec<RunKey> {
        if since.is_some_and(|since| since < round) {
            return Vec::new();
        }
        let Sides { lab, scenarios, results } = self.sides;
        let missing = scenarios.iter().filter_map(|scenario| {
            match results.cell(&key(trial, scenario, round), lab.retries) {
                Cell::Missing(key) => Some(key),
                _ => None,
            }
        });
        let (first, again): (Vec<RunKey>, Vec<RunKey>) = missing.partition(|run| run.attempt == 1);
        if first.is_empty() {
            again.into_iter().take(usize::from(since.is_none())).collect()
        } else {
            first
        }
    }

    /// True if the next starts would exceed the budget.
    pub fn is_spent(&self, timing: &Timing) -> bool {
        let Some(start) = self.pending.first() else { return false };
        let Sides { lab, results, .. } = self.sides;
        let time = results.seconds + timing.start(start).unwrap_or(0.0);
        let is_late = lab.budget.time.is_some_and(|most| time > most.as_secs_f64());
        let cost = lab.per_hour.map(|price| price * (time / 3600.0));
        is_late || lab.budget.cost.zip(cost).is_some_and(|(most, cost)| cost > most)
    }
}

/// The rounds after which a trial is out of a stage, if it is.
#[derive(Default)]
struct Out {
    /// The round after which it has failed, if it has: 0 if its engine does not start.
    failed: Option<u32>,
    /// The round after which it is out, because it failed or breaks a constraint.
    since: Option<u32>,
    ruled: Ruling,
}

impl Out {
    fn failed(round: u32, why: String, held: Vec<HeldRow>) -> Out {
        Out { failed: Some(round), since: Some(round), ruled: Ruling { why: Some(why), held } }
    }
}

/// The constraint that rules a trial out, as text: one that it is shown to break. One round shows
/// nothing, but in a lab of one repeat it decides.
fn broken(held: &[HeldRow], repeats: u32) -> Option<String> {
    let breaks = |held: &&HeldRow| {
        let is_one_round = repeats == 1 && held.figure.is_some_and(|figure| figure.repeats == 1);
        held.standing == Standing::Breaks || is_one_round && !held.is_within
    };
    held.iter().find(breaks).map(|held| held.words.clone())
}

/// The order of trials in a round: each round begins as far from the previous one as possible.
fn order(trials: usize, rounds: u32, round: u32) -> impl Iterator<Item = usize> {
    let first = trials * round as usize / (rounds.max(1) as usize);
    (0..trials).map(move |place| (first + place) % trials)
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn rounds_begin_at_different_trials() {
        let rounds = |trials, rounds| -> Vec<Vec<usize>> {
            (0..rounds).map(|round| order(trials, rounds, round).collect()).collect()
        };
        assert_eq!(rounds(3, 3), [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
        assert_eq!(rounds(2, 3), [[0, 1], [0, 1], [1, 0]]);
        assert_eq!(rounds(1, 2), [[0], [0]]);
    }
}
