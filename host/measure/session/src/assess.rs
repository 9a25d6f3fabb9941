//! After the run, works on the records: the tokenizer counts the answers again, and scorers judge
//! them, each on its own thread. Answers are read once, a batch at a time, and a scorer sees them
//! in the order of the records. Answers that run as programs are independent, and run on all
//! threads. The result does not depend on the threads.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::lock;
use model::exchange::{Exchange, Phase};
use plugins::PluginError;
use plugins::scorer::{self, Judge, ProgramScores, RunsAnswers, Scorer};
use result::metric::count::{self, Source};
use result::summary::{Column, SilentScorer, Unjudged};
use runs::assessment::{Assessment, Mean, free_names};
use tokenizer::Tokenizer;

/// Most answers of a batch.
const BATCH: usize = 256;
/// Most bytes of a batch's texts, but for its last answer.
const BATCH_BYTES: usize = 8 << 20;

/// Assesses the measured exchanges of a run that were answered.
pub fn assess<E: Borrow<Exchange>>(
    exchanges: impl IntoIterator<Item = E>,
    tokenizer: &Tokenizer,
    scorers: &[Scorer],
) -> Assessment {
    let read = exchanges.into_iter().map(Ok::<E, Infallible>);
    let Ok(assessed) = assess_read(read, tokenizer, scorers, || false);
    assessed.unwrap_or_default()
}

/// The same for exchanges that are read. `None` if it is given up.
pub(crate) fn assess_read<E: Borrow<Exchange>, X>(
    exchanges: impl Iterator<Item = Result<E, X>>,
    tokenizer: &Tokenizer,
    scorers: &[Scorer],
    given_up: impl Fn() -> bool + Sync,
) -> Result<Option<Assessment>, X> {
    assess_with(Assessment::default(), exchanges, Some(tokenizer), scorers, given_up)
}

/// Has scorers judge the answered exchanges of a saved run. `counted` are the tokens of the answers
/// by this side's tokenizer. Scorers get them if the server does not report its own.
pub fn judge_again<E: Borrow<Exchange>, X>(
    exchanges: impl Iterator<Item = Result<E, X>>,
    counted: Column<u32>,
    scorers: &[Scorer],
) -> Result<Assessment, X> {
    let known = Assessment { retokenized: counted, ..Assessment::default() };
    let judged = assess_with(known, exchanges, None, scorers, || false)?;
    Ok(judged.unwrap_or_default())
}

fn assess_with<E: Borrow<Exchange>, X>(
    mut assessment: Assessment,
    exchanges: impl Iterator<Item = Result<E, X>>,
    tokenizer: Option<&Tokenizer>,
    scorers: &[Scorer],
    given_up: impl Fn() -> bool + Sync,
) -> Result<Option<Assessment>, X> {
    let mut judging: Vec<Judging> = scorers
        .iter()
        .filter_map(|scorer| match scorer.open() {
            Ok(judge) => Some(Judging::new(judge)),
            Err(error) => {
                assessment.failed(error.to_string());
                None
            }
        })
        .collect();
    let mut batch = Vec::with_capacity(BATCH);
    let mut bytes = 0;
    for exchange in exchanges {
        if given_up() {
            return Ok(None);
        }
        let exchange = exchange?;
        let answered = exchange.borrow();
        if answered.phase != Phase::Warmup && answered.is_ok() {
            bytes += text_bytes(answered);
            batch.push(exchange);
            if batch.len() == BATCH || bytes >= BATCH_BYTES {
                add(&mut assessment, &batch, tokenizer, &mut judging, &given_up);
                batch.clear();
                bytes = 0;
            }
        }
    }
    add(&mut assessment, &batch, tokenizer, &mut judging, &given_up);
    if given_up() {
        return Ok(None);
    }
    for scorer in judging {
        scorer.finish(&mut assessment);
    }
    assessment.means = means(&assessment.scores);
    Ok(Some(assessment))
}

/// Counts the tokens of a batch of answers, and has them judged.
fn add<E: Borrow<Exchange>>(
    assessment: &mut Assessment,
    batch: &[E],
    tokenizer: Option<&Tokenizer>,
    judging: &mut [Judging],
    given_up: &(impl Fn() -> bool + Sync),
) {
    if let Some(tokenizer) = tokenizer {
        count(assessment, batch, tokenizer);
    }
    if judging.is_empty() {
        return;
    }
    let answers = batch.iter().map(Borrow::borrow).map(|exchange: &Exchange| Answer {
        index: exchange.index,
        shown: shown(exchange, assessment.retokenized.get(exchange.index)),
    });
    judge(judging, &answers.collect::<Vec<_>>(), given_up);
}

/// An answer as scorers see it.
struct Answer {
    index: u64,
    shown: scorer::Exchange,
}

/// Counts the tokens of answers, except of sound: the tokens of its transcript are other tokens.
fn count<E: Borrow<Exchange>>(assessment: &mut Assessment, batch: &[E], tokenizer: &Tokenizer) {
    let answered: Vec<&Exchange> =
        batch.iter().map(Borrow::borrow).filter(|one: &&Exchange| !one.has_sound()).collect();
    let reasoned: Vec<&Exchange> =
        answered.iter().copied().filter(|one| !one.reasoning.is_empty()).collect();
    type Counts = fn(&mut Assessment) -> &mut Column<u32>;
    let mut count = |answers: &[&Exchange], text: fn(&Exchange) -> String, counts: Counts| {
        let texts: Vec<String> = answers.iter().copied().map(text).collect();
        match tokenizer.count(&texts, false) {
            Ok(counted) => {
                let indexes = answers.iter().map(|exchange| exchange.index);
                counts(assessment).extend(indexes.zip(counted));
            }
            Err(error) => assessment.failed(error),
        }
    };
    count(&answered, text_of, |assessment| &mut assessment.retokenized);
    count(&reasoned, |exchange| exchange.reasoning.clone(), |assessment| &mut assessment.reasoning);
}

/// All that came back, as the server's usage counts it.
fn text_of(exchange: &Exchange) -> String {
    let mut text = [&*exchange.reasoning, &exchange.output, &exchange.tool_calls].concat();
    // The server counts all answers to a request together.
    exchange.choices.iter().for_each(|choice| text.push_str(choice));
    text
}

fn text_bytes(exchange: &Exchange) -> usize {
    let further: usize = exchange.choices.iter().map(String::len).sum();
    exchange.reasoning.len() + exchange.output.len() + exchange.tool_calls.len() + further
}

/// Returns the part of an exchange that a scorer sees.
fn shown(exchange: &Exchange, retokenized: Option<u32>) -> scorer::Exchange {
    let counted = count::output(exchange, retokenized).map(|count| scorer::Count {
        tokens: count.tokens,
        source: match count.source {
            Source::Usage => scorer::CountSource::Usage,
            Source::Pieces => scorer::CountSource::Pieces,
            Source::Length => scorer::CountSource::Length,
            Source::Retokenized | Source::Dataset => scorer::CountSource::Retokenized,
        },
    });
    scorer::Exchange {
        id: exchange.sample.id.clone(),
        reference: exchange.sample.reference.as_ref().map(ToString::to_string),
        turn: (exchange.sample.turn.as_ref())
            .map(|turn| scorer::Turn { session: turn.session.clone(), index: turn.index }),
        class: exchange.sample.class.clone(),
        requested_tokens: exchange.sample.output_tokens,
        output: exchange.output.clone(),
        choices: exchange.choices.clone(),
        reasoning: exchange.reasoning.clone(),
        tool_calls: exchange.tool_calls.clone(),
        output_tokens: counted,
        finish: exchange.finish.clone(),
    }
}

/// The means, summed in the order of the indexes, which is the same in every run.
fn means(scores: &BTreeMap<String, Column<f64>>) -> BTreeMap<String, Mean> {
    let mean = |column: &Column<f64>| {
        let count = column.len() as u64;
        let sum: f64 = column.iter().map(|(_, value)| value).sum();
        Mean { mean: sum / count as f64, count }
    };
    scores.iter().map(|(name, column)| (name.clone(), mean(column))).collect()
}

/// Does all tasks in order, on a thread per processor, the caller's included. If no thread can be
/// started, the others do all the work.
fn share<T: Send>(tasks: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let tasks = Mutex::new(tasks);
    let next = || lock(&tasks).next();
    let run = || {
        while let Some(task) = next() {
            work(task);
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..processors {
            let started = thread::Builder::new().name("assess".to_owned()).spawn_scoped(scope, run);
            if started.is_err() {
                break;
            }
        }
        run();
    });
}

/// Failed calls of a scorer in a row after which it is left out.
const TOLERATED: u32 = 10;

struct Judging {
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

    /// Takes the results of answers in their order; `None` for an answer that did not run.
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
fn judge(scorers: &mut [Judging], answers: &[Answer], given_up: &(impl Fn() -> bool + Sync)) {
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn every_task_runs_once() {
        let done = Mutex::new(Vec::new());
        share(0..1_000, |task| done.lock().unwrap().push(task));
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert!(done.into_iter().eq(0..1_000));
    }

    #[test]
    fn one_task_runs_per_processor() {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        // Each of the first tasks waits for all others.
        let together = Barrier::new(processors);
        let threads = Mutex::new(BTreeSet::new());
        share(0..processors, |_| {
            together.wait();
            let own = format!("{:?}", thread::current().id());
            threads.lock().unwrap().insert(own);
        });
        assert_eq!(threads.into_inner().unwrap().len(), processors);
    }
}
