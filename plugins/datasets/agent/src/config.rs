//! The user's configuration, and which combinations are invalid.

use dialogue::MOST_TURNS;
use dialogue::turns::check_wait;
use runner_plugin::Error;
use runner_plugin::lengths::{Distribution, Lengths};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const WIDEST: u32 = 1000;

pub(crate) const DEEPEST: u32 = 16;

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The format of the file `data`. If absent, it is recognised by the first line; without a
    /// file, agents are `synthetic`.
    pub format: Option<Format>,
    /// True to begin again from the start of the file when it ends, with new ids. Otherwise the run
    /// ends with the file.
    pub repeat: bool,
    /// The time from a reply to its dependents, such as a tool's run time: as `recorded` in the
    /// file, or `none`. By default `recorded`.
    pub delays: Delays,
    /// The longest delay of a file, in seconds; longer ones are shortened to it.
    pub max_delay: Option<f64>,
    /// Treatment of a trace of OpenTelemetry in which the model called a tool with arguments that
    /// are not a JSON object: `keep` it, or `drop` it, since some servers refuse such a history. By
    /// default `keep`.
    pub bad_tool_calls: BadToolCalls,
    /// Number of tools that a synthetic agent calls, one after the other; 5 by default. It makes
    /// one request more.
    pub tool_calls: Option<Distribution>,
    /// Tokens of a synthetic agent's task; 512 by default.
    pub prompt_len: Option<Distribution>,
    /// Tokens of an answer that calls a tool; 64 by default.
    pub output_len: Option<Distribution>,
    /// Tokens of the last answer of an agent; 256 by default.
    pub final_output_len: Option<Distribution>,
    /// Tokens of a tool's result; 256 by default.
    pub tool_result_len: Option<Distribution>,
    /// Seconds that a tool takes; 0 by default.
    pub tool_latency: Option<Distribution>,
    /// The role in which a synthetic tool's result is sent, by default `user`. `user` works with
    /// the model's real answers. `tool` belongs to recorded histories, in which every answer calls
    /// the tool; many servers refuse it after an answer that calls none.
    pub tool_role: ToolRole,
    /// Tokens of a system prompt before synthetic agents; there is none by default. Sub-agents have
    /// it too.
    pub system_len: Option<Distribution>,
    /// Number of system prompts. They are handed out to the agents in turn; with 1, the default,
    /// all share one; with 0, each has its own.
    pub system_groups: Option<u32>,
    /// Sub-agents of synthetic agents; there are none by default.
    pub sub_agents: Option<SubAgents>,
    /// Point at which synthetic agents replace their history by a summary; never by default.
    pub compaction: Option<Compaction>,
}

/// Sub-agents: fresh conversations that start after an answer of an agent, all at once. The agent
/// continues with their last answers when all have ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SubAgents {
    /// Number of an agent's tool calls in whose place it starts sub-agents.
    pub fan_outs: Distribution,
    /// Number of sub-agents that start at once.
    pub count: Distribution,
    /// Number of tools that a sub-agent calls.
    pub tool_calls: Distribution,
    /// Tokens of a sub-agent's task.
    pub prompt_len: Distribution,
    /// Tokens of a sub-agent's last answer, which goes into the history of its agent.
    pub final_output_len: Distribution,
    /// Depth of nesting: with 2, sub-agents start sub-agents.
    pub depth: u32,
}

impl Default for SubAgents {
    fn default() -> Self {
        Self {
            fan_outs: Distribution::constant(1.0),
            count: Distribution::constant(2.0),
            tool_calls: Distribution::constant(3.0),
            prompt_len: Distribution::constant(256.0),
            final_output_len: Distribution::constant(128.0),
            depth: 1,
        }
    }
}

/// Point at which an agent replaces its history by a summary. It asks the model for one, and
/// continues in a fresh conversation that begins with it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Compaction {
    /// The planned tokens of prompt and next message, above which the history is replaced.
    pub trigger_tokens: u32,
    /// Tokens of the summary.
    pub target_tokens: u32,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Drawn from distributions.
    Synthetic,
    /// AIPerf's `dag_jsonl`: a conversation a line, with `forks` and `spawns`.
    Dag,
    /// Spans of OpenTelemetry with the attributes `gen_ai.…`: a trace or a span a line, or OTLP in
    /// JSON.
    Otel,
    /// An agent a line, by its lengths: `{"input_prompt_length": 32, "num_turns": 2, …}`.
    Trie,
}

/// The use of recorded delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delays {
    /// As recorded.
    #[default]
    Recorded,
    /// None: dependents of a reply are due at its end.
    None,
}

/// The treatment of a trace that has a bad tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BadToolCalls {
    /// Keep it.
    #[default]
    Keep,
    /// Drop it.
    Drop,
}

/// The role of a synthetic tool's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolRole {
    /// The user's.
    #[default]
    User,
    /// A tool's.
    Tool,
}

impl Config {
    /// Checks the keys that do not depend on the format.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(seconds) = self.max_delay
            && !(0.0..=dialogue::LONGEST_WAIT).contains(&seconds)
        {
            return Err(Error::config(format!(
                "`max-delay` is {seconds}; expected from 0 to {} seconds",
                dialogue::LONGEST_WAIT
            )));
        }
        if let Some(latency) = &self.tool_latency {
            check_wait("tool-latency", latency)?;
        }
        if let Some(compaction) = &self.compaction
            && !(1..compaction.trigger_tokens).contains(&compaction.target_tokens)
        {
            return Err(Error::config(format!(
                "`compaction`: `target-tokens` is {} and `trigger-tokens` is {}; expected `target-tokens` \
                 from 1 to below `trigger-tokens`",
                compaction.target_tokens, compaction.trigger_tokens
            )));
        }
        if let Some(agents) = &self.sub_agents
            && !(1..=DEEPEST).contains(&agents.depth)
        {
            return Err(Error::config(format!(
                "`sub-agents.depth` is {}; expected from 1 to {DEEPEST}",
                agents.depth
            )));
        }
        Ok(())
    }

    pub(crate) fn check_for(&self, format: Format) -> Result<(), Error> {
        let synthetic = format == Format::Synthetic;
        let drawn = [
            ("tool-calls", self.tool_calls.is_some()),
            ("prompt-len", self.prompt_len.is_some()),
            ("output-len", self.output_len.is_some()),
            ("final-output-len", self.final_output_len.is_some()),
            ("tool-result-len", self.tool_result_len.is_some()),
            ("tool-latency", self.tool_latency.is_some()),
            ("tool-role", self.tool_role != ToolRole::User),
            ("system-len", self.system_len.is_some()),
            ("system-groups", self.system_groups.is_some()),
            ("sub-agents", self.sub_agents.is_some()),
            ("compaction", self.compaction.is_some()),
        ];
        let read = [
            ("repeat", self.repeat),
            ("delays", self.delays != Delays::Recorded),
            ("max-delay", self.max_delay.is_some()),
        ];
        let drops = self.bad_tool_calls == BadToolCalls::Drop && format != Format::Otel;
        let wrong: Vec<String> = drawn
            .iter()
            .filter(|(_, given)| *given && !synthetic)
            .chain(read.iter().filter(|(_, given)| *given && synthetic))
            .chain(drops.then_some(&("bad-tool-calls", true)))
            .map(|(key, _)| format!("`{key}`"))
            .collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let format = format!("{format:?}").to_lowercase();
        Err(Error::config(format!(
            "{} cannot be set for the format `{format}`: leave it out, or change `format`",
            wrong.join(", ")
        )))
    }

    /// The time of a recorded delay, in nanoseconds.
    pub(crate) fn delay(&self, recorded: u64) -> u64 {
        match self.delays {
            Delays::None => 0,
            Delays::Recorded => {
                self.max_delay.map_or(recorded, |most| recorded.min((most * 1e9) as u64))
            }
        }
    }
}

pub(crate) fn calls(key: &str, given: Option<&Distribution>) -> Result<Lengths, Error> {
    given.unwrap_or(&Distribution::constant(5.0)).lengths(key, 0..=MOST_TURNS as u32 - 1)
}
