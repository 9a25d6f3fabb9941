//! Scorer that measures the overlap of an answer with the reference. Of several references each
//! measure takes the best.
//!
//! - `rouge-l`: F1 of the longest common subsequence of words, from 0 to 1 (google-research's
//!   `rouge_score` 0.1.2, `rougeL`, `use_stemmer=False`)
//! - `chrf`: chrF2: F-score with β = 2 of character n-grams up to 6, from 0 to 100 (sacreBLEU
//!   2.6.0, `CHRF()` for one sentence)
//! - `squad-exact`: 1 if the normalized texts are equal (SQuAD's `evaluate-v1.1.py`,
//!   `exact_match_score`)
//! - `squad-f1`: F1 of the normalized words, from 0 to 1 (the same, `f1_score`;
//!   lm-evaluation-harness 0.4.13, `longbench`, `qa_f1_score`)
//!
//! ROUGE's words are runs of `a` to `z` and `0` to `9` in lower case, so texts in other scripts
//! have none and score 0. SQuAD's normalization makes lower case, deletes ASCII punctuation, then
//! the words `a`, `an` and `the`. Porter's stemmer is not offered.
//!
//! A sample without a reference is not judged. Texts with more than 50 000 words have no `rouge-l`,
//! because its time grows with the product of the lengths. Nothing is extracted, so there is no
//! `-unparsed`.
#![deny(unsafe_code)]

mod chrf;
mod rouge;
mod squad;
#[cfg(test)]
mod tests;

use judging::{Part, reference, score, texts};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

/// A measure of overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// F1 of the longest common subsequence of words.
    RougeL,
    /// F-score of character n-grams, which weighs recall twice.
    Chrf,
    /// Equality after SQuAD's normalization.
    SquadExact,
    /// F1 of words after SQuAD's normalization.
    SquadF1,
}

impl Measure {
    const ALL: [Measure; 4] =
        [Measure::RougeL, Measure::Chrf, Measure::SquadExact, Measure::SquadF1];

    fn name(self) -> &'static str {
        match self {
            Measure::RougeL => "rouge-l",
            Measure::Chrf => "chrf",
            Measure::SquadExact => "squad-exact",
            Measure::SquadF1 => "squad-f1",
        }
    }

    /// The measure of an answer with one reference; `None` if it is not computed.
    fn compute(self, answer: &str, reference: &str) -> Option<f64> {
        match self {
            Measure::RougeL => rouge::l(answer, reference),
            Measure::Chrf => Some(chrf::score(answer, reference)),
            Measure::SquadExact => Some(squad::exact(answer, reference)),
            Measure::SquadF1 => Some(squad::f1(answer, reference)),
        }
    }
}

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The measures to compute.
    pub measures: Vec<Measure>,
    /// The part of the reply that is compared.
    pub part: Part,
    /// The key of the text if a reference is a table.
    pub reference_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            measures: Measure::ALL.to_vec(),
            part: Part::Answer,
            reference_key: "answer".to_owned(),
        }
    }
}

pub struct Overlap {
    config: Config,
}

runner_plugin::export_scorer!(Overlap);

impl Scorer for Overlap {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        let twice = Measure::ALL
            .iter()
            .any(|measure| config.measures.iter().filter(|m| *m == measure).count() > 1);
        if config.measures.is_empty() || twice {
            return Err(Error::config(
                "key `measures`: expected some of rouge-l, chrf, squad-exact and squad-f1, each once",
            ));
        }
        Ok(Self { config })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let references = texts(exchange, &reference, &self.config.reference_key)?;
        let answer = self.config.part.text(exchange);
        let best = |measure: &Measure| {
            let values: Option<Vec<f64>> =
                (references.iter()).map(|reference| measure.compute(&answer, reference)).collect();
            let best = values?.into_iter().reduce(f64::max)?;
            Some(score(measure.name(), best))
        };
        Ok(self.config.measures.iter().filter_map(best).collect())
    }
}
