//! The verdicts of a judging model on a run's answers, as a result (`runner schema judgement`):
//! grades, or which of two runs it prefers; how far it agrees with itself and with other scores;
//! and what it cost.
//!
//! `result::judged` and `result::summary` have the arithmetic.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use model::exchange::Class;
use result::judged::{Against, Preference, Repeated};
use result::summary::{Score, Summary};

/// A judgement of a run's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Judged {
    /// The time, in UTC.
    pub at: String,
    /// The folder of the run.
    pub run: String,
    /// The folder of the run that its answers were compared with; absent where answers were graded
    /// one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The model that judged, and what it judged by.
    pub judge: Judge,
    /// True if the judging was stopped before all verdicts were there.
    pub interrupted: bool,
    /// Cautions to read before the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<String>,
    /// The answers put before the judge, and those that were not.
    pub answers: Answers,
    /// The outcomes of the requests to the judge.
    pub requests: Requests,
    /// The grades; absent if none was given, and where two runs were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grades: Option<Grades>,
    /// The run that the judge prefers; absent where answers were graded one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<Preference>,
    /// The cost of the verdicts.
    pub cost: Cost,
}

/// A model that judges answers, and what it judges them by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Judge {
    /// The model's name, as its server knows it.
    pub model: String,
    /// The backend that asked it.
    pub backend: String,
    /// The sampling temperature; absent if the server's own was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The rubric's file, or the names of those that ship.
    pub rubric: String,
    /// SHA-256 of its text; where samples with a reference have a rubric of their own, of both
    /// digests.
    pub rubric_digest: String,
    /// The folder of the judging, which is a run with records of what was asked and answered.
    pub folder: String,
}

/// The answers put before the judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Answers {
    /// Answers of the run that could be judged; of two runs, samples that both answered.
    pub total: u64,
    /// Of these, those that were put before the judge.
    pub judged: u64,
    /// Those that were not drawn (`--sample`).
    pub left_out: u64,
    /// Those whose question is no text, such as tokens or texts to embed.
    pub without_text: u64,
    /// Those without a reference, which the rubric shows.
    pub without_reference: u64,
    /// Of two runs, samples that only one of them answered. `total` does not include them.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub answered_by_one: u64,
    /// Of those that were put before the judge, those whose question held images or audio, which a
    /// judge does not see.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub with_media: u64,
}

/// The outcomes of the requests to the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Requests {
    /// Those that were to be made.
    pub planned: u64,
    /// Those that were answered with a verdict.
    pub with_verdict: u64,
    /// Those that were answered without one.
    pub without_verdict: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that failed, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<Class, u64>,
    /// Those that were never made, because the judging was stopped.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub unsent: u64,
}

/// The grades of a run's answers. An answer that was judged several times has the mean of its
/// grades.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Grades {
    /// The worst grade that there is.
    pub lowest: f64,
    /// The best grade that there is.
    pub highest: f64,
    /// The name under which the run has them as a score; absent if they were not added to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Their mean, its interval, groups and the worst answers, as of any score.
    pub score: Score,
    /// The agreement of the judge with itself; absent without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeated>,
    /// Against the run's other scores that call answers right or wrong, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub against: BTreeMap<String, Against>,
}

/// The cost of the verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cost {
    /// Requests that were sent.
    pub requests: u64,
    /// Tokens of the prompts of answered requests; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of all answers, those that broke off included as far as they are known; absent if
    /// none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Requests of which one of both counts is not known, failed ones included: they may have cost
    /// something too.
    pub uncounted: u64,
    /// Seconds from the first request to the end of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// The price of tokens, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<TokenPrice>,
    /// The cost of the counted tokens; absent without a price, or where a count is not known at
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

/// The price of a million tokens, in any currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TokenPrice {
    /// The price of prompt tokens.
    pub input: f64,
    /// The price of answer tokens.
    pub output: f64,
}

impl std::str::FromStr for TokenPrice {
    type Err = String;

    /// `0.15,0.6`: input, then output.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let price = |text: &str| {
            let price: Option<f64> = text.trim().parse().ok();
            price.filter(|price| price.is_finite() && *price >= 0.0)
        };
        let both =
            text.split_once(',').and_then(|(input, output)| Some((price(input)?, price(output)?)));
        match both {
            Some((input, output)) => Ok(TokenPrice { input, output }),
            None => Err("expected the prices of a million input and output tokens, as in 0.15,0.6"
                .to_owned()),
        }
    }
}

impl Cost {
    /// Of a judging, by its summary.
    pub fn of(summary: &Summary, price: Option<TokenPrice>) -> Self {
        let tokens = &summary.tokens;
        let broken = tokens.left_out.unwrap_or_default();
        let input_tokens = tokens.input.total;
        let output_tokens = tokens.output.total;
        let output_tokens = match broken.output {
            0 => output_tokens,
            more => Some(output_tokens.unwrap_or(0) + more),
        };
        let counted = input_tokens.zip(output_tokens).zip(price);
        let total = counted.map(|((input, output), price)| {
            (input as f64 * price.input + output as f64 * price.output) / 1e6
        });
        let requests = &summary.requests;
        let unknown = tokens.input.unknown.max(tokens.output.unknown);
        Cost {
            requests: requests.sent,
            input_tokens,
            output_tokens,
            uncounted: unknown + requests.sent.saturating_sub(requests.successful),
            duration_s: summary.throughput.duration_s,
            price,
            total,
        }
    }
}
