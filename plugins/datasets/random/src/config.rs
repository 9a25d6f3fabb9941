//! The user's configuration, and which combinations are invalid.

use runner_plugin::Error;
use runner_plugin::lengths::{Distribution, MOST_TOKENS};
use schemars::JsonSchema;
use serde::Deserialize;
use sharegpt_file::Like;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Prompt length in tokens: a number, or the table of a distribution.
    pub input_len: Distribution,
    /// Output tokens to request: a number, or the table of a distribution.
    pub output_len: Distribution,
    /// Kinds of prompts, each with its share and its lengths. Every sample carries the name of its
    /// class, by which results can be grouped.
    pub classes: Vec<Class>,
    /// The range of lengths, as defined by the tool in `like`. With `sglang`, `lmdeploy` and
    /// without `like`, lengths are drawn from (ratio × length) to (length); 1, the default, makes
    /// all exact. With `vllm`, they are drawn from (1 − ratio) × length to (1 + ratio) × length; 0,
    /// the default, makes all exact. A table `{ input = …, output = … }` sets the two separately.
    /// Not with distributions or classes, which set the range themselves.
    pub range_ratio: Option<Ratio>,
    /// The tool whose prompts to reproduce, character by character, for the same seed, number of
    /// prompts and tokenizer. Without it, prompts are drawn as with `sglang` and then adjusted
    /// until their text tokenizes to exactly the requested length. `sglang`: runs of consecutive
    /// token ids (its `random-ids`), or, with a ShareGPT file `data`, its texts cut and repeated to
    /// length (its `random`). The text of such prompts often has more or fewer tokens than drawn.
    /// `lmdeploy`: the latter, in LMDeploy's way. `vllm`: runs of consecutive token ids, adjusted
    /// until their text tokenizes to the requested length. With distributions or classes, prompts
    /// are made in the tool's way, but with other lengths. With a file `text`, prompts are pieces
    /// of that text, without `like`.
    pub like: Option<Like>,
    /// Send the prompt as `text` or as token ids (`tokens`). By default `text`.
    #[serde(rename = "as")]
    pub form: Form,
    /// Length in tokens of a prefix that all prompts share; it is drawn once. Only for `like =
    /// "vllm"`; it is added to `input-len`.
    pub prefix_len: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            input_len: Distribution::constant(1024.0),
            output_len: Distribution::constant(128.0),
            classes: Vec::new(),
            range_ratio: None,
            like: None,
            form: Form::Text,
            prefix_len: 0,
        }
    }
}

/// A kind of prompts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Class {
    /// Its name, which each of its samples carries.
    pub name: String,
    /// Frequency, in proportion to the weights of the other classes.
    #[serde(default = "one")]
    pub weight: f64,
    /// Prompt length in tokens, a number or a distribution; by default the dataset's.
    pub input_len: Option<Distribution>,
    /// Output tokens to request, a number or a distribution; by default the dataset's.
    pub output_len: Option<Distribution>,
}

fn one() -> f64 {
    1.0
}

const MOST_CLASSES: usize = 1000;

/// One ratio for prompts and answers, or one for each.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a number, or a table with the numbers `input` and `output`"
)]
pub enum Ratio {
    /// For both.
    Both(f64),
    /// For each.
    Each {
        /// For prompts.
        input: f64,
        /// For answers.
        output: f64,
    },
}

/// The form in which a prompt is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As text. The server may count a different number of tokens than were drawn.
    Text,
    /// As token ids, if the server accepts them.
    Tokens,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) form: Form,
    /// True if a text is adjusted until it has as many tokens as there are ids.
    pub(crate) exact: bool,
}

impl Config {
    /// The tool in whose way prompts are drawn, also if they are then adjusted.
    pub(crate) fn way(&self) -> Like {
        self.like.unwrap_or(Like::Sglang)
    }

    pub(crate) fn making(&self) -> Recipe {
        Recipe { form: self.form, exact: self.like.is_none() }
    }

    pub(crate) fn ratios(&self) -> (f64, f64) {
        match (self.range_ratio, self.way()) {
            (Some(Ratio::Both(both)), _) => (both, both),
            (Some(Ratio::Each { input, output }), _) => (input, output),
            (None, Like::Vllm) => (0.0, 0.0),
            (None, Like::Sglang | Like::Lmdeploy) => (1.0, 1.0),
        }
    }

    /// True if lengths are drawn from distributions, and not from the range of a tool.
    pub(crate) fn is_free(&self) -> bool {
        let constant = |length: &Distribution| length.as_constant().is_some();
        !(self.classes.is_empty() && constant(&self.input_len) && constant(&self.output_len))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_free() && self.range_ratio.is_some() {
            return Err(Error::config(
                "`range-ratio` does not go with a distribution of lengths or with `classes`: leave it out, and set the \
                 range of lengths there",
            ));
        }
        self.check_classes()?;
        let (input, output) = self.ratios();
        for ratio in [input, output] {
            let (holds, expected) = match self.way() {
                Like::Vllm => {
                    ((0.0..1.0).contains(&ratio), "from 0 (all lengths exact) to below 1")
                }
                Like::Sglang | Like::Lmdeploy => {
                    ((0.0..=1.0).contains(&ratio), "from 0 to 1 (all lengths exact)")
                }
            };
            if !holds {
                return Err(Error::config(format!(
                    "`range-ratio` is {ratio}; expected a number {expected}"
                )));
            }
        }
        if self.prefix_len > MOST_TOKENS {
            return Err(Error::config(format!(
                "`prefix-len` is {}; expected at most {MOST_TOKENS}",
                self.prefix_len
            )));
        }
        if self.prefix_len > 0 && self.way() != Like::Vllm {
            return Err(Error::config("`prefix-len` belongs to `like = \"vllm\"`: leave it out"));
        }
        Ok(())
    }
}

impl Config {
    fn check_classes(&self) -> Result<(), Error> {
        if self.classes.len() > MOST_CLASSES {
            return Err(Error::config(format!(
                "`classes` has {} entries; expected at most {MOST_CLASSES}",
                self.classes.len()
            )));
        }
        for (at, class) in self.classes.iter().enumerate() {
            if class.name.is_empty() {
                return Err(Error::config(format!(
                    "`name` of entry {} of `classes` is empty; expected a name",
                    at + 1
                )));
            }
            if self.classes[..at].iter().any(|other| other.name == class.name) {
                return Err(Error::config(format!(
                    "`classes` has two entries named `{}`; expected different names",
                    class.name
                )));
            }
        }
        Ok(())
    }
}
