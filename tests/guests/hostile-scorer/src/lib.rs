//! A scorer that misbehaves as its configuration says; by default it scores every answer's length
//! in bytes.

use misdeeds::{Deed, commit};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer, log};
use schemars::JsonSchema;
use serde::Deserialize;

/// The behaviour that is configured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
// With `nothing` patched to `answers`, it is a scorer that runs answers as programs.
#[schemars(extend("x-runs-nothing" = {"passed": "length", "killed": "stopped"}))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The misdeed.
    misbehave: Option<Deed>,
    /// An invalid answer to give.
    answer: Option<Answer>,
    /// The call for it; if absent, none.
    call: Option<Call>,
    /// Only if the answer contains this.
    only_on: Option<String>,
    /// Log all inputs.
    spill: bool,
}

/// A call of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Call {
    /// `open`.
    Open,
    /// `score`.
    Score,
    /// `finish`.
    Finish,
}

/// An answer that breaks the contract, or is very large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// An error of the user's configuration.
    Refuse,
    /// An error of the sample's reference.
    Fault,
    /// Not a number.
    Nan,
    /// Infinity.
    Infinite,
    /// A score without a name.
    Nameless,
    /// A name of 100 MB.
    Huge,
    /// A million scores without names.
    Million,
    /// The tokens of a text of nine million bytes.
    Tokens,
    /// The tokens of texts, again and again.
    TokensForEver,
    /// The text of millions of tokens.
    Text,
}

pub struct Hostile(Config, Box<dyn Tokenizer>);

runner_plugin::export_scorer!(Hostile);

impl Scorer for Hostile {
    type Config = Config;

    fn open(config: Config, tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        let hostile = Hostile(config, tokenizer);
        hostile.judge(Call::Open, "")?;
        Ok(hostile)
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        if self.0.spill {
            log::info(&format!("{exchange:?}"));
        }
        self.judge(Call::Score, &exchange.output)
    }

    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        self.judge(Call::Finish, "")
    }
}

impl Hostile {
    fn judge(&self, call: Call, output: &str) -> Result<Vec<Score>, Error> {
        let Hostile(config, tokenizer) = self;
        let mut score = Score { name: "length".to_owned(), value: output.len() as f64 };
        let is_there = output.contains(config.only_on.as_deref().unwrap_or_default());
        if config.call != Some(call) || !is_there {
            return Ok(vec![score]);
        }
        if let Some(deed) = config.misbehave {
            commit(deed);
        }
        match config.answer {
            None => {}
            Some(Answer::Refuse) => {
                return Err(Error::InvalidConfig("key `call`: refused on purpose".to_owned()));
            }
            Some(Answer::Fault) => {
                return Err(Error::InvalidInput("the reference is a list".to_owned()));
            }
            Some(Answer::Tokens) => {
                score.value = tokenizer.count(&["x".repeat(9 << 20)], false)[0].into();
            }
            Some(Answer::TokensForEver) => loop {
                tokenizer.count(&["x".repeat(1 << 20)], false);
            },
            Some(Answer::Text) => {
                let texts = tokenizer.decode(&[vec![120; 3 << 20]]);
                score.value = texts[0].len() as f64;
            }
            Some(Answer::Nan) => score.value = f64::NAN,
            Some(Answer::Infinite) => score.value = f64::INFINITY,
            Some(Answer::Nameless) => score.name.clear(),
            Some(Answer::Huge) => score.name = "x".repeat(100 << 20),
            Some(Answer::Million) => {
                score.name.clear();
                return Ok(vec![score; 1_000_000]);
            }
        }
        Ok(vec![score])
    }
}
