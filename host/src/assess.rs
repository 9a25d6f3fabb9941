//! After the run, over the records: the tokenizer counts the answers again, and scorers judge
//! them. Nothing here can disturb a measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::exchange::{Exchange, Phase};
use crate::metric::count::{self, Source};
use crate::plugin::PluginError;
use crate::plugin::scorer::{self, Judge, Scorer};
use crate::summary::Score;
use crate::tokenizer::Tokenizer;

/// Answers tokenized in one call.
const BATCH: usize = 256;
/// How many calls of a scorer may fail in a row before it is left out.
const TOLERATED: u32 = 10;

/// Scores of each measured exchange by its index.
pub type ScoresByIndex = BTreeMap<u64, BTreeMap<String, f64>>;

/// What tokenizer and scorers made of the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Assessment {
    /// Tokens of each measured answer, reasoning and tool calls included, by the exchange's index.
    pub retokenized: BTreeMap<u64, u32>,
    /// Scores of each measured answer by the exchange's index.
    pub scores: ScoresByIndex,
    /// The mean of each score.
    pub means: BTreeMap<String, Score>,
    /// Scores of the run as a whole.
    pub run_scores: BTreeMap<String, f64>,
    /// What scorers failed with; exchanges they failed on have no score of theirs.
    pub errors: Vec<String>,
}

/// Assesses the measured exchanges of a run that were answered.
pub fn assess(exchanges: &[Exchange], tokenizer: &Tokenizer, scorers: &[Scorer]) -> Assessment {
    let answered: Vec<&Exchange> = exchanges
        .iter()
        .filter(|exchange| exchange.phase == Phase::Measure && exchange.is_ok())
        .collect();
    let mut assessment = Assessment::default();
    for batch in answered.chunks(BATCH) {
        let texts: Vec<String> = batch.iter().map(|exchange| text_of(exchange)).collect();
        match tokenizer.count(&texts, false) {
            Ok(counts) => {
                let indexes = batch.iter().map(|exchange| exchange.index);
                assessment.retokenized.extend(indexes.zip(counts));
            }
            Err(error) => assessment.errors.push(error),
        }
    }
    for scorer in scorers {
        if let Err(error) = judge(scorer, &answered, &mut assessment) {
            assessment.errors.push(error.to_string());
        }
    }
    assessment.means = means(&assessment.scores);
    assessment
}

fn text_of(exchange: &Exchange) -> String {
    [&*exchange.reasoning, &exchange.output, &exchange.tool_calls].concat()
}

fn judge(
    scorer: &Scorer,
    answered: &[&Exchange],
    assessment: &mut Assessment,
) -> Result<(), PluginError> {
    let mut judge: Judge = scorer.open()?;
    let mut failures_in_a_row = 0;
    for exchange in answered {
        let retokenized = assessment.retokenized.get(&exchange.index).copied();
        match judge.score(&shown(exchange, retokenized)) {
            Ok(scores) => {
                failures_in_a_row = 0;
                if !scores.is_empty() {
                    let known = assessment.scores.entry(exchange.index).or_default();
                    known.extend(scores);
                }
            }
            Err(error) => {
                failures_in_a_row += 1;
                if failures_in_a_row == TOLERATED {
                    return Err(error);
                }
                let about = format!("{error} (judging `{}`)", exchange.sample.id);
                assessment.errors.push(about);
            }
        }
    }
    assessment.run_scores.extend(judge.finish()?);
    Ok(())
}

/// What a scorer sees of an exchange.
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
        requested_tokens: exchange.sample.output_tokens,
        output: exchange.output.clone(),
        reasoning: exchange.reasoning.clone(),
        output_tokens: counted,
        finish: exchange.finish.clone(),
    }
}

fn means(scores: &ScoresByIndex) -> BTreeMap<String, Score> {
    let mut sums: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    for (name, value) in scores.values().flatten() {
        let (sum, count) = sums.entry(name).or_default();
        *sum += value;
        *count += 1;
    }
    sums.into_iter()
        .map(|(name, (sum, count))| {
            let mean = sum / count as f64;
            (name.to_owned(), Score { mean, count })
        })
        .collect()
}
