//! After the run, works on the records: the tokenizer counts the answers again, and scorers judge
//! them. Nothing here can disturb a measurement.
//!
//! Answers are read once, a batch at a time. Scorers work at the same time, each on its own thread;
//! a scorer sees the answers in the order of the records. Answers that run as programs are
//! independent, and run on all threads. The result does not depend on the threads. Only the count
//! and the scores of a request are kept, 4 and 8 bytes each.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::convert::Infallible;

mod judging;
mod threads;

use judging::{Judging, judge};
use model::exchange::{Exchange, Phase};
use plugins::scorer::{self, Scorer};
use result::metric::count::{self, Source};
use result::summary::Column;
use runs::assessment::{Assessment, Mean};
use tokenizer::Tokenizer;

/// Most answers of a batch.
const BATCH: usize = 256;
/// Most bytes of a batch's texts, but for its last answer: answers have no common size, and scorers
/// get copies.
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

/// Has scorers judge the measured exchanges of a saved run that were answered. Nothing is counted
/// again: `counted` are the tokens of the answers by this side's tokenizer, which scorers are told
/// where the server does not say.
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

/// The size of all that came back.
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

/// The means, summed in the order of the indexes, so that they do not depend on the order in which
/// answers were scored.
fn means(scores: &BTreeMap<String, Column<f64>>) -> BTreeMap<String, Mean> {
    let mean = |column: &Column<f64>| {
        let count = column.len() as u64;
        let sum: f64 = column.iter().map(|(_, value)| value).sum();
        Mean { mean: sum / count as f64, count }
    };
    scores.iter().map(|(name, column)| (name.clone(), mean(column))).collect()
}
