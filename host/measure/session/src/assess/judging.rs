//! A scorer at work: its scores, its failures, and its threads. Reading answers, counting their
//! tokens and adding up are left to `assess`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use plugins::PluginError;
use plugins::scorer::{Judge, ProgramScores, RunsAnswers};
use result::summary::{Column, SilentScorer, Unjudged};
use runs::assessment::{Assessment, free_names};

use super::Answer;
use super::threads::share;
use crate::lock;

/// Failed calls of a scorer in a row after which it is left out.
const TOLERATED: u32 = 10;

/// A scorer at work.
pub(super) struct Judging {
    judge: Judge,
    failures_in_a_row: u32,
    /// Each score that it gave, by its name.
    scores: BTreeMap<String, Column<f64>>,
    /// Answers that it failed on, or was not asked about any more.
    failed: Vec<u64>,
    /// Answers that it gave no score, by why.
    passed_over: Unjudged,
    /// The errors: all are counted, the first few are kept.
    errors: Assessment,
}

impl Judging {
    pub fn new(judge: Judge) -> Self {
        Judging {
            judge,
            failures_in_a_row: 0,
            scores: BTreeMap::new(),
            failed: Vec::new(),
            passed_over: Unjudged::default(),
            errors: Assessment::default(),
        }
    }

    fn is_left_out(&self) -> bool {
        self.failures_in_a_row >= TOLERATED
    }

    fn judge_in_order(&mut self, answers: &[Answer], given_up: impl Fn() -> bool) {
        for answer in answers.iter().take_while(|_| !given_up()) {
            if self.is_left_out() {
                self.failed.push(answer.index)
            } else {
                let scores = self.judge.score(&answer.shown);
                self.take(answer, scores);
            }
        }
    }

    /// Takes the results of answers that ran, in the order of the answers; `None` for an answer
    /// that did not run.
    fn take_runs(
        &mut self,
        answers: &[Answer],
        runs: Vec<Option<Result<ProgramScores, PluginError>>>,
    ) {
        for (answer, ran) in answers.iter().zip(runs) {
            match ran {
                None => {}
                // The choice to leave the scorer out must not depend on the speed of threads.
                Some(_) if self.is_left_out() => self.failed.push(answer.index),
                Some(ran) => {
                    let scores = ran.map(|ran| self.judge.count(&answer.shown.id, &ran));
                    self.take(answer, scores);
                }
            }
        }
    }

    fn take(&mut self, answer: &Answer, scores: Result<Vec<(String, f64)>, PluginError>) {
        match scores {
            Ok(scores) => {
                self.failures_in_a_row = 0;
                if scores.is_empty() {
                    match answer.shown.reference {
                        None => self.passed_over.without_reference += 1,
                        Some(_) => self.passed_over.passed_over += 1,
                    }
                }
                for (name, value) in scores {
                    let column = self.scores.entry(name).or_default();
                    column.insert(answer.index, value);
                }
            }
            Err(error) => {
                self.failures_in_a_row += 1;
                self.failed.push(answer.index);
                self.errors.failed(if self.is_left_out() {
                    error.to_string()
                } else {
                    format!("{error} (scoring `{}`)", answer.shown.id)
                });
            }
        }
    }

    /// Adds its scores and its failures, and has it score the run as a whole.
    pub fn finish(mut self, assessment: &mut Assessment) {
        self.failed.sort_unstable();
        let run_scores = if self.is_left_out() {
            Vec::new()
        } else {
            self.judge.finish().unwrap_or_else(|error| {
                self.errors.failed(error.to_string());
                Vec::new()
            })
        };
        if self.scores.is_empty() && run_scores.is_empty() {
            assessment.silent.push(SilentScorer {
                name: self.judge.name().to_owned(),
                unjudged: Unjudged { failed: self.failed.len() as u64, ..self.passed_over },
            });
        }
        // Scorers may give scores of one name: each keeps its own.
        let taken = assessment.scores.keys().chain(assessment.run_scores.keys());
        let taken: BTreeSet<String> = taken.cloned().collect();
        let names = run_scores.iter().map(|(name, _)| name);
        let named = free_names(self.scores.keys().chain(names), &taken);
        for (name, column) in std::mem::take(&mut self.scores) {
            let name = &named[&name];
            if !self.failed.is_empty() {
                (assessment.unscored).insert(name.clone(), self.failed.clone());
            }
            assessment.scores.insert(name.clone(), column);
        }
        for (name, value) in run_scores {
            assessment.run_scores.insert(named[&name].clone(), value);
        }
        let Assessment { errors, further_errors, .. } = std::mem::take(&mut self.errors);
        errors.into_iter().for_each(|error| assessment.failed(error));
        assessment.further_errors += further_errors;
    }
}

enum Task<'a> {
    /// All answers by a scorer that sees them in order.
    InOrder(&'a mut Judging),
    /// One answer that is run as a program.
    Run {
        runs: &'a RunsAnswers,
        answer: &'a Answer,
        ran: &'a Mutex<Option<Result<ProgramScores, PluginError>>>,
    },
}

/// Has scorers judge a batch of answers, at the same time.
pub(super) fn judge(
    scorers: &mut [Judging],
    answers: &[Answer],
    given_up: &(impl Fn() -> bool + Sync),
) {
    let (mut in_order, mut running, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for scorer in scorers {
        match scorer.judge.runs_answers() {
            Some(answers) if !scorer.is_left_out() => {
                runs.push(answers);
                running.push(scorer);
            }
            _ => in_order.push(scorer),
        }
    }
    let ran: Vec<Vec<Mutex<_>>> =
        runs.iter().map(|_| answers.iter().map(|_| Mutex::new(None)).collect()).collect();
    let each = runs.iter().zip(&ran).flat_map(|(runs, ran)| {
        let task = move |(answer, ran)| Task::Run { runs, answer, ran };
        answers.iter().zip(ran).map(task)
    });
    let tasks = in_order.into_iter().map(Task::InOrder).chain(each);
    share(tasks, |task| match task {
        Task::InOrder(scorer) => scorer.judge_in_order(answers, given_up),
        Task::Run { runs, answer, ran } => {
            if !given_up() {
                let result = runs.run(&answer.shown);
                *lock(ran) = Some(result);
            }
        }
    });
    for (scorer, ran) in running.into_iter().zip(ran) {
        let ran =
            ran.into_iter().map(|ran| ran.into_inner().unwrap_or_else(PoisonError::into_inner));
        scorer.take_runs(answers, ran.collect());
    }
}
