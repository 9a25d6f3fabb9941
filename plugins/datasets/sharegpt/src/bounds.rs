//! Bounds on the length of a conversation's prompt and answer, for each of the tools in `like`.

use std::fmt;

use runner_plugin::Error;
use sharegpt_file::Like;

use crate::Config;

/// Bounds in tokens, each inclusive; an absent one does not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    least_prompt: u32,
    least_answer: u32,
    most_prompt: Option<u32>,
    most_together: Option<u32>,
}

impl Bounds {
    /// The bounds of a configuration. Errors: [`Error::InvalidConfig`] if the tool in `like` would
    /// reject it too.
    pub(crate) fn from_config(config: &Config) -> Result<Self, Error> {
        let fixed = config.output_len;
        let least = if config.like == Like::Vllm { 1 } else { 4 };
        if let Some(length) = fixed.filter(|length| *length < least) {
            return Err(Error::InvalidConfig(format!(
                "`output-len` is {length}; expected at least {least}: set a larger one, or leave it out to request \
                 the lengths of the conversations"
            )));
        }
        if config.context_len.is_some() && config.like != Like::Sglang {
            return Err(Error::config(
                "`context-len` belongs to `like = \"sglang\"`; the other tools have their own bounds: leave it out",
            ));
        }
        Ok(match config.like {
            Like::Lmdeploy => Self {
                least_prompt: 4,
                least_answer: 4,
                most_prompt: Some(1024),
                most_together: if fixed.is_some() { None } else { Some(2048) },
            },
            Like::Vllm => Self {
                least_prompt: 4,
                least_answer: if fixed.is_some() { 0 } else { 4 },
                most_prompt: Some(1024),
                most_together: Some(2048),
            },
            Like::Sglang => Self {
                least_prompt: 2,
                least_answer: 2,
                most_prompt: None,
                most_together: config.context_len,
            },
        })
    }

    /// Returns the reason why a conversation is not within the bounds; none if it is.
    pub(crate) fn broken(&self, prompt: u32, answer: u32) -> Option<String> {
        let together = u64::from(prompt) + u64::from(answer);
        if prompt < self.least_prompt {
            return Some(format!("prompt of fewer than {} tokens", self.least_prompt));
        }
        if answer < self.least_answer {
            return Some(format!("answer of fewer than {} tokens", self.least_answer));
        }
        if let Some(most) = self.most_prompt.filter(|most| prompt > *most) {
            return Some(format!("prompt of more than {most} tokens"));
        }
        let most = self.most_together;
        most.filter(|most| together > u64::from(*most))
            .map(|most| format!("prompt and answer of more than {most} tokens"))
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} or more tokens in the prompt", self.least_prompt)?;
        if let Some(most) = self.most_prompt {
            write!(formatter, " (at most {most})")?;
        }
        write!(formatter, " and {} or more in the answer", self.least_answer)?;
        if let Some(most) = self.most_together {
            write!(formatter, " (at most {most} together)")?;
        }
        Ok(())
    }
}
