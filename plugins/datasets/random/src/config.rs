//! The user's configuration, and which combinations are invalid.

use runner_plugin::Error;
use schemars::JsonSchema;
use serde::Deserialize;
use sharegpt_file::Like;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Prompt length in tokens.
    pub input_len: u32,
    /// Output tokens to request.
    pub output_len: u32,
    /// The range of lengths, as defined by the tool in `like`. With `sglang` and `lmdeploy`, lengths are drawn
    /// from (ratio × length) to (length), and 1, the default, makes all exact; with `vllm`, from (1 − ratio) ×
    /// length to (1 + ratio) × length, and 0, the default, makes all exact. A table `{ input = …, output = … }`
    /// sets the two separately.
    pub range_ratio: Option<Ratio>,
    /// The tool whose prompts to reproduce, character by character, for the same seed, number of prompts and
    /// tokenizer. `sglang`: runs of consecutive token ids (its `random-ids`), or, with a ShareGPT file `data`,
    /// its texts cut and repeated to length (its `random`). `lmdeploy`: the latter, in LMDeploy's way. `vllm`:
    /// runs of consecutive token ids, adjusted until their text tokenizes to the requested length.
    pub like: Like,
    /// Send the prompt as text or as token ids.
    #[serde(rename = "as")]
    pub form: Form,
    /// Length in tokens of a prefix that all prompts share; it is drawn once. Only for `like = "vllm"`; it is
    /// added to `input-len`.
    pub prefix_len: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            input_len: 1024,
            output_len: 128,
            range_ratio: None,
            like: Like::Sglang,
            form: Form::Text,
            prefix_len: 0,
        }
    }
}

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

/// How a prompt is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As text. The server may count a different number of tokens than were drawn.
    Text,
    /// As token ids, if the server accepts them.
    Tokens,
}

impl Config {
    /// The ratios for prompts and answers.
    pub(crate) fn ratios(&self) -> (f64, f64) {
        match (self.range_ratio, self.like) {
            (Some(Ratio::Both(both)), _) => (both, both),
            (Some(Ratio::Each { input, output }), _) => (input, output),
            (None, Like::Vllm) => (0.0, 0.0),
            (None, Like::Sglang | Like::Lmdeploy) => (1.0, 1.0),
        }
    }

    /// Checks everything that does not depend on files and tokenizer.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] that names the key.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (key, length) in [
            ("input-len", self.input_len),
            ("output-len", self.output_len),
        ] {
            if length == 0 {
                return Err(invalid(format!("`{key}` is 0; expected at least 1 token")));
            }
        }
        let (input, output) = self.ratios();
        for ratio in [input, output] {
            let (holds, expected) = match self.like {
                Like::Vllm => (
                    (0.0..1.0).contains(&ratio),
                    "from 0 (all lengths exact) to below 1",
                ),
                Like::Sglang | Like::Lmdeploy => (
                    (0.0..=1.0).contains(&ratio),
                    "from 0 to 1 (all lengths exact)",
                ),
            };
            if !holds {
                return Err(invalid(format!(
                    "`range-ratio` is {ratio}; expected a number {expected}"
                )));
            }
        }
        if self.prefix_len > 0 && self.like != Like::Vllm {
            return Err(invalid(
                "`prefix-len` belongs to `like = \"vllm\"`: leave it out".to_owned(),
            ));
        }
        Ok(())
    }
}

pub(crate) fn invalid(message: String) -> Error {
    Error::InvalidConfig(message)
}
