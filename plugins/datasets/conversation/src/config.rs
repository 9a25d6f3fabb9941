//! The user's configuration, and which combinations are invalid.

use dialogue::turns::{Setting, SystemPrompt, check_wait};
use dialogue::{LONGEST, MOST_TURNS};
use runner_plugin::Error;
use runner_plugin::lengths::{Distribution, Lengths};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The format of the file `data`. If absent, it is recognised by the first line; without a
    /// file, conversations are `synthetic`.
    pub format: Option<Format>,
    /// Shuffle the conversations by the seed, as Python does. Only of a ShareGPT file that is one
    /// JSON array, where it is the default; other files are read in their order.
    pub shuffle: Option<bool>,
    /// True to begin again from the start of the file when it ends, with new ids. Otherwise the run
    /// ends with the file.
    pub repeat: bool,
    /// Drop conversations of fewer turns. A turn is a question with its answer.
    pub min_turns: u32,
    /// Keep at most this many turns of a conversation.
    pub max_turns: Option<u32>,
    /// The fewest tokens of a turn's new messages; 4 for ShareGPT, as vLLM and LMDeploy have it,
    /// and otherwise none.
    pub min_input_tokens: Option<u32>,
    /// The most tokens of a turn's new messages; 1024 for ShareGPT, as vLLM and LMDeploy have it,
    /// and otherwise none.
    pub max_input_tokens: Option<u32>,
    /// The fewest tokens of a recorded answer; 4 for ShareGPT, and otherwise none.
    pub min_output_tokens: Option<u32>,
    /// The most tokens of a recorded answer.
    pub max_output_tokens: Option<u32>,
    /// The most tokens of a conversation up to a turn, with its answer. Set it to fit into the
    /// model's context.
    pub max_context_tokens: Option<u32>,
    /// Treatment of a conversation in which a turn is outside of these bounds: `truncate` keeps the
    /// turns before it, `drop` leaves the conversation out. By default `truncate`.
    pub outside: Outside,
    /// Output tokens to request: the `recorded` answer's, the `run`'s, or drawn from a
    /// distribution. The default is `recorded` for files and 128 for synthetic conversations.
    pub output_len: Option<Setting<Length>>,
    /// Seconds between an answer and the next question: as `recorded` in the file, which is the
    /// default, `none`, or drawn from a distribution. Synthetic conversations have none unless a
    /// distribution is given.
    pub think_time: Option<Setting<Think>>,
    /// The number of turns of a synthetic conversation; 4 by default.
    pub turns: Option<Distribution>,
    /// Tokens of a synthetic question; 128 by default.
    pub input_len: Option<Distribution>,
    /// Tokens of the first question of a synthetic conversation; as `input-len` by default.
    pub first_input_len: Option<Distribution>,
    /// Tokens of a system prompt before synthetic conversations; there is none by default.
    pub system_len: Option<Distribution>,
    /// Number of system prompts. They are handed out to the conversations in turn; with 1, the
    /// default, all share one; with 0, each has its own.
    pub system_groups: Option<u32>,
    /// System prompts of synthetic conversations, in place of `system-len` and `system-groups`.
    /// Each conversation has one of these, by weight.
    pub system_prompts: Option<Vec<SystemPrompt>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            format: None,
            shuffle: None,
            repeat: false,
            min_turns: 1,
            max_turns: None,
            min_input_tokens: None,
            max_input_tokens: None,
            min_output_tokens: None,
            max_output_tokens: None,
            max_context_tokens: None,
            outside: Outside::Truncate,
            output_len: None,
            think_time: None,
            turns: None,
            input_len: None,
            first_input_len: None,
            system_len: None,
            system_groups: None,
            system_prompts: None,
        }
    }
}

/// Tokens of a synthetic answer without a configured number. Without a limit, an answer may fill
/// the model's context, and the next turn is refused.
const OUTPUT_LEN: u32 = 128;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `{"conversations": [{"from": "human", "value": "…"}, …]}`, as one JSON array or one a line.
    Sharegpt,
    /// A conversation a line: `{"messages": [{"role": "user", "content": "…"}, …], "tools": […]}`.
    Messages,
    /// A message a line: `{"conversation_id": "c1", "turn": 1, "role": "user", "content": "…",
    /// "delay_seconds": 0.4}`.
    Mlperf,
    /// A conversation a line: `{"session_id": "a", "turns": [{"text": "…", "delay": 500}]}`, or a
    /// turn a line with the same `session_id`, with its new content or, in `messages`, with the
    /// whole conversation so far. Delays are in milliseconds.
    Aiperf,
    /// Drawn from distributions.
    Synthetic,
}

/// The treatment of a conversation in which a turn is outside of the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outside {
    /// Keep the turns before.
    Truncate,
    /// Drop the conversation.
    Drop,
}

/// The source of the output tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// The length of the recorded answer.
    Recorded,
    /// The run's settings.
    Run,
}

/// The source of the think times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Think {
    /// The file.
    Recorded,
    /// There are none.
    None,
}

impl Config {
    /// Checks the keys that do not depend on the format.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let most = MOST_TURNS as u32;
        for (key, turns) in [("min-turns", Some(self.min_turns)), ("max-turns", self.max_turns)] {
            if let Some(turns) = turns.filter(|turns| !(1..=most).contains(turns)) {
                return Err(Error::config(format!(
                    "`{key}` is {turns}; expected from 1 to {most}"
                )));
            }
        }
        let pairs = [
            ("turns", Some(self.min_turns), self.max_turns),
            ("input-tokens", self.min_input_tokens, self.max_input_tokens),
            ("output-tokens", self.min_output_tokens, self.max_output_tokens),
        ];
        for (key, least, most) in pairs {
            if let (Some(least), Some(most)) = (least, most)
                && least > most
            {
                return Err(Error::config(format!(
                    "`min-{key}` is {least} and `max-{key}` is {most}; expected the minimum at or below the maximum"
                )));
            }
        }
        if let Some(Setting::Drawn(distribution)) = &self.think_time {
            check_wait("think-time", distribution)?;
        }
        let is_drawn = self.system_len.is_some() || self.system_groups.is_some();
        if self.system_prompts.is_some() && is_drawn {
            return Err(Error::config(
                "`system-prompts` replaces `system-len` and `system-groups`: set one or the others",
            ));
        }
        Ok(())
    }

    pub(crate) fn check_for(&self, format: Format) -> Result<(), Error> {
        let mut wrong = Vec::new();
        let mut refuse = |key: &str, given: bool| {
            if given {
                wrong.push(format!("`{key}`"));
            }
        };
        if format == Format::Synthetic {
            refuse("shuffle", self.shuffle.is_some());
            refuse("repeat", self.repeat);
            refuse(
                "output-len = \"recorded\"",
                self.output_len == Some(Setting::Word(Length::Recorded)),
            );
            refuse(
                "think-time = \"recorded\"",
                self.think_time == Some(Setting::Word(Think::Recorded)),
            );
        } else {
            refuse("turns", self.turns.is_some());
            refuse("input-len", self.input_len.is_some());
            refuse("first-input-len", self.first_input_len.is_some());
            refuse("system-len", self.system_len.is_some());
            refuse("system-groups", self.system_groups.is_some());
            refuse("system-prompts", self.system_prompts.is_some());
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let (is, not) = match format {
            Format::Synthetic => ("synthetic conversations", "conversations of a file"),
            _ => ("the conversations of a file", "synthetic ones"),
        };
        Err(Error::config(format!(
            "{} cannot be set for {is}, only for {not}: leave it out, or change `format`",
            wrong.join(", ")
        )))
    }

    pub(crate) fn drawn_outputs(&self, format: Format) -> Result<Option<Lengths>, Error> {
        match &self.output_len {
            None if format == Format::Synthetic => Ok(Some(Lengths::constant(OUTPUT_LEN))),
            Some(Setting::Drawn(distribution)) => {
                distribution.lengths("output-len", 1..=LONGEST).map(Some)
            }
            _ => Ok(None),
        }
    }
}
