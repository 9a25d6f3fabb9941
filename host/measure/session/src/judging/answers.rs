//! The answers of saved runs that are put before a judge: which there are, which of them are drawn,
//! and their texts.
//!
//! Records are read twice, so that the texts of answers that are not drawn are never held: first to
//! see what there is, then for the texts. Which are drawn depends on the seed and on what the
//! samples are called, so two runs of the same samples are judged on the same ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use model::exchange::{Exchange, Phase, SampleFacts};
use result::agreement::{conversation_digest, sample_digest};
use runs::folder::{FolderError, RunFolder};
use sha2::{Digest, Sha256};

/// An answer that is put before the judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The number of its request.
    pub index: u64,
    /// Facts about its sample, from the dataset.
    pub sample: SampleFacts,
    /// The digest of its conversation, if it is a turn of one.
    pub conversation: Option<u64>,
    pub text: String,
    /// The baseline's answer to the same sample, if there is a baseline.
    pub baseline: Option<String>,
}

/// The answers that were drawn.
#[derive(Debug, Default)]
pub struct Answers {
    /// Those that were drawn, in the order of their numbers.
    pub drawn: Vec<Answer>,
    /// The numbers of those that were not, in order.
    pub left_out: Vec<u64>,
    /// Samples that only one of two runs answered.
    pub answered_by_one: u64,
    /// Text and tool calls of answers that may stand in the history of a drawn one.
    said: HashMap<u64, (String, String)>,
}

impl Answers {
    /// Those of a run; with a baseline, those to samples that both answered. At most `most` of
    /// them, as the seed decides.
    ///
    /// # Errors
    /// If records cannot be read.
    pub fn read(
        run: &RunFolder,
        baseline: Option<&RunFolder>,
        most: Option<u64>,
        seed: u64,
    ) -> Result<Self, FolderError> {
        let others = baseline.map(answered).transpose()?;
        let mut answered_by_one = 0;
        let mut there: Vec<(u64, u64)> = Vec::new();
        let mut shared = 0;
        for exchange in run.read()? {
            let exchange = exchange?;
            if !has_text(&exchange) {
                continue;
            }
            let is_shared = others
                .as_ref()
                .is_none_or(|others| others.contains(&sample_digest(&exchange.sample)));
            if is_shared {
                there.push((lot(seed, &exchange.sample), exchange.index))
            } else {
                answered_by_one += 1
            }
            shared += u64::from(is_shared);
        }
        if let Some(others) = &others {
            answered_by_one += (others.len() as u64).saturating_sub(shared);
        }
        there.sort_unstable();
        let drawn = most.map_or(there.len(), |most| {
            usize::try_from(most).map_or(there.len(), |most| most.min(there.len()))
        });
        let (drawn, left_out) = there.split_at(drawn);
        let wanted: BTreeSet<u64> = drawn.iter().map(|(_, index)| *index).collect();
        let left_out: BTreeSet<u64> = left_out.iter().map(|(_, index)| *index).collect();
        let mut answers = Answers {
            left_out: left_out.into_iter().collect(),
            answered_by_one,
            ..Answers::default()
        };
        let mut drawn = BTreeMap::new();
        for exchange in run.read()? {
            let exchange = exchange?;
            if exchange.phase == Phase::Measure && exchange.has_answer() && is_linked(&exchange) {
                let said = (exchange.output.clone(), exchange.tool_calls.clone());
                answers.said.insert(exchange.index, said);
            }
            if has_text(&exchange) && wanted.contains(&exchange.index) {
                let answer = Answer {
                    index: exchange.index,
                    conversation: conversation_digest(&exchange.sample),
                    text: text(&exchange),
                    baseline: None,
                    sample: exchange.sample,
                };
                drawn.insert(answer.index, answer);
            }
        }
        answers.drawn = drawn.into_values().collect();
        if let Some(baseline) = baseline {
            answers.beside(baseline)?;
        }
        Ok(answers)
    }

    /// Adds the baseline's answers to the same samples.
    fn beside(&mut self, baseline: &RunFolder) -> Result<(), FolderError> {
        let places: HashMap<u64, usize> = self
            .drawn
            .iter()
            .enumerate()
            .map(|(place, answer)| (sample_digest(&answer.sample), place))
            .collect();
        for exchange in baseline.read()? {
            let exchange = exchange?;
            let place = places.get(&sample_digest(&exchange.sample));
            if let Some(place) = place.filter(|_| has_text(&exchange)) {
                self.drawn[*place].baseline.get_or_insert(text(&exchange));
            }
        }
        Ok(())
    }

    /// Returns the answer to a request, if it is part of a conversation.
    pub fn said(&self, index: u64) -> Option<(String, String)> {
        self.said.get(&index).cloned()
    }
}

/// The samples that a run answered with text.
fn answered(run: &RunFolder) -> Result<HashSet<u64>, FolderError> {
    let mut samples = HashSet::new();
    for exchange in run.read()? {
        let exchange = exchange?;
        if has_text(&exchange) {
            samples.insert(sample_digest(&exchange.sample));
        }
    }
    Ok(samples)
}

/// True if it was measured and answered in full, and not with vectors or an order.
fn has_text(exchange: &Exchange) -> bool {
    let texts = [&exchange.output, &exchange.tool_calls, &exchange.reasoning];
    exchange.phase == Phase::Measure
        && exchange.is_ok()
        && texts.iter().any(|text| !text.is_empty())
}

/// True if others may depend on it, or it on others.
fn is_linked(exchange: &Exchange) -> bool {
    let sample = &exchange.sample;
    sample.descendants > 0 || !sample.parents.is_empty() || sample.history.is_some()
}

/// Returns the user's answer, without the reasoning before it.
fn text(exchange: &Exchange) -> String {
    match (exchange.output.is_empty(), exchange.tool_calls.is_empty()) {
        (_, true) => exchange.output.clone(),
        (true, false) => exchange.tool_calls.clone(),
        (false, false) => format!("{}\n{}", exchange.output, exchange.tool_calls),
    }
}

/// A number that the seed and the sample's name decide.
fn lot(seed: u64, sample: &SampleFacts) -> u64 {
    let turn = sample.turn.as_ref().map_or(0, |turn| turn.index);
    let digest = Sha256::digest(format!("{seed} {turn} {}", sample.id));
    digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A reference as text.
pub fn reference(sample: &SampleFacts) -> Option<String> {
    sample.reference.as_ref().map(|reference| match reference {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::reply;
    use model::exchange::Kind::{End, Text};

    #[test]
    fn the_same_samples_are_drawn_of_every_run() {
        let sample = |id: &str| {
            let mut exchange = reply(0, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
            exchange.sample.id = id.to_owned();
            exchange.sample
        };
        let drawn = |seed: u64| {
            let mut lots: Vec<(u64, u32)> =
                (0..100).map(|number| (lot(seed, &sample(&number.to_string())), number)).collect();
            lots.sort_unstable();
            lots.iter().map(|(_, number)| *number).take(10).collect()
        };
        let (first, again, other): (Vec<u32>, Vec<u32>, Vec<u32>) = (drawn(1), drawn(1), drawn(2));
        assert_eq!(first, again);
        assert_ne!(first, other);
    }

    #[test]
    fn an_answer_is_what_the_user_got() {
        let mut exchange = reply(0, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
        exchange.output = "4".into();
        exchange.reasoning = "2 + 2".into();
        assert_eq!(text(&exchange), "4");
        exchange.tool_calls = "{}".into();
        assert_eq!(text(&exchange), "4\n{}");
        exchange.output.clear();
        assert_eq!(text(&exchange), "{}");
        exchange.tool_calls.clear();
        assert!(has_text(&exchange), "it has reasoning alone");
        exchange.reasoning.clear();
        assert!(!has_text(&exchange), "it has vectors, say");
        exchange.sample.reference = Some(serde_json::json!(["a", 1]));
        assert_eq!(reference(&exchange.sample).as_deref(), Some("[\"a\",1]"));
    }
}
