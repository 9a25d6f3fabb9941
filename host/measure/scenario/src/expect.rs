//! `[expect]`: figures that the run should have; `session` reads files, `result` compares.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::Fate::May;
use crate::field::{self, Maybe};
use crate::key::{heading::RESULT, plan};
use crate::table::table;
use reader::{Reader, toml_text};

table! {
    /// `[expect]`: the figures that the run is expected to have.
    pub struct Expect {
        /// Acceptance length of speculative decoding, in tokens per step: a number such as 2.73, or
        /// FILE#NAME for a number in a file, such as golden.yaml#qwen3.5/thinking_on/2.
        ///
        /// The file is JSON, or YAML of indented names with a number each. The name has the parts
        /// of its path in the file, with `/` between them. A run whose acceptance length differs
        /// has the finding `acceptance-differs`.
        acceptance_length: Maybe<AcceptanceLength> => plan("expect.acceptance-length", May)
            .flag("expect-acceptance-length", "LENGTH", RESULT)
            .otherwise("any");
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum AcceptanceLength {
    /// In tokens per step.
    Tokens(f64),
    Listed {
        file: PathBuf,
        name: String,
    },
}

impl fmt::Display for AcceptanceLength {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcceptanceLength::Tokens(tokens) => tokens.fmt(out),
            AcceptanceLength::Listed { file, name } => write!(out, "{}#{name}", file.display()),
        }
    }
}

impl Serialize for AcceptanceLength {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AcceptanceLength::Tokens(tokens) => field::Value::write(tokens, serializer),
            AcceptanceLength::Listed { .. } => serializer.collect_str(self),
        }
    }
}

impl field::Value for AcceptanceLength {
    fn expected() -> String {
        "a number of at least 1, or FILE#NAME such as \"golden.yaml#qwen3.5/thinking_on/2\""
            .to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        let parse = |text: &str| Self::parse(text).map_err(|_| format!("found {text:?}"));
        t.number_or(key, &Self::expected(), AcceptanceLength::Tokens, parse)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let listed = || {
            let (file, name) = text.rsplit_once('#')?;
            let is_whole = !file.is_empty() && !name.is_empty();
            is_whole.then(|| AcceptanceLength::Listed { file: file.into(), name: name.to_owned() })
        };
        let number = text.parse().ok().map(AcceptanceLength::Tokens);
        number.or_else(listed).ok_or_else(|| format!("expected {}", Self::expected()))
    }

    fn toml(&self) -> String {
        match self {
            AcceptanceLength::Tokens(tokens) => field::Value::toml(tokens),
            AcceptanceLength::Listed { .. } => toml_text::string(&self.to_string()),
        }
    }
}

impl AcceptanceLength {
    /// True for every length that steps can have: each gives the model's own token.
    pub fn is_possible(tokens: f64) -> bool {
        (1.0..=MOST).contains(&tokens)
    }
}

/// No draft is as long.
const MOST: f64 = 1000.0;
