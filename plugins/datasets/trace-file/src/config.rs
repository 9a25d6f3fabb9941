//! The user's configuration, and its invalid combinations. Leaves the meaning of a format to
//! `formats`.

use runner_plugin::Error;
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The format of the file `data`; found from its first row if absent. `vllm-timed` must be
    /// named: its rows look like Mooncake's, whose times are milliseconds.
    pub format: Option<Name>,
    /// Arrival of requests: every request arrives at its time in the trace (`timestamps`), or each
    /// request of a session waits for the previous request's end and for the recorded pause
    /// (`sessions`). The default is `sessions` for Weka, TraceLab, and Mooncake rows with a
    /// `session_id`, and `timestamps` for all else. Arrival times take effect only with `--arrival
    /// dataset`.
    pub replay: Option<Replay>,
    /// Answers in the prompts of a session: `made-up` words, or the server's own answers (`live`).
    /// The server's cache has its own answers, as in the recorded traffic. `live` takes effect on
    /// rows with a `new_length`, which `runner record` writes. It needs a chat route. By default
    /// `made-up`.
    pub answers: Answers,
    /// Send made-up prompts as `text` or as token ids (`tokens`). By default `text`.
    #[serde(rename = "as")]
    pub form: Form,
    /// Tokens of a block; by default the number that the first row states as `block_size`, or else
    /// the format's: 512 for Mooncake, 16 for Bailian and vLLM's timed traces. Weka's traces state
    /// it themselves.
    pub block_size: Option<u32>,
    /// Seconds of one unit in the trace's time column; by default the format's: 0.001 for Mooncake,
    /// 1 for all else.
    pub time_unit: Option<f64>,
    /// Speed of the replay, as a multiple of the recorded one: 2 makes a minute of it 30 seconds,
    /// 0.5 makes it two minutes.
    pub time_scale: f64,
    /// The part of the trace to replay, in seconds from its first request. A session belongs to it
    /// with its first request.
    pub window: Option<Window>,
    /// The share of the sessions to replay, from 0 to 1; of the requests, if they have no sessions.
    /// A smaller share is a part of a larger one with the same seed.
    pub share: f64,
    /// The longest prompt, in tokens.
    pub max_input: Option<u32>,
    /// The longest answer, in tokens.
    pub max_output: Option<u32>,
    /// Treatment of requests beyond `max-input` and `max-output`. `drop` leaves out the request,
    /// and with it the rest of its session if sessions are replayed; `truncate` cuts its prompt's
    /// end off and requests fewer tokens; `error` ends the run. By default `drop`.
    pub on_too_long: TooLong,
    /// Treatment of rows whose number of hash ids does not fit their length. `repair` makes up
    /// missing ids, and ignores surplus ids; `error` ends the run. By default `error`.
    pub on_wrong_blocks: WrongBlocks,
    /// The longest pause in seconds of the run: between a request's end and the next request of its
    /// session, or between two arrivals with `replay = "timestamps"`. Longer pauses are shortened
    /// to it.
    pub max_idle: Option<f64>,
    /// For Weka's traces: wait for the recorded `think_time` before a request, as AIPerf's flag
    /// `--use-think-time-only` does. By default the pause is the recorded time from the previous
    /// request's end.
    pub use_think_time_only: bool,
    /// Other names of the columns, for `format = "vllm-timed"`.
    pub labels: Option<Labels>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            format: None,
            replay: None,
            answers: Answers::MadeUp,
            form: Form::Text,
            block_size: None,
            time_unit: None,
            time_scale: 1.0,
            window: None,
            share: 1.0,
            max_input: None,
            max_output: None,
            on_too_long: TooLong::Drop,
            on_wrong_blocks: WrongBlocks::Error,
            max_idle: None,
            use_think_time_only: false,
            labels: None,
        }
    }
}

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Mooncake's traces, with AIPerf's additions.
    Mooncake,
    /// Alibaba Bailian's traces of Qwen.
    Bailian,
    /// The agents' sessions of kv-cache-tester.
    Weka,
    /// TraceLab's rounds of coding agents.
    Tracelab,
    /// BurstGPT's CSV.
    Burstgpt,
    /// Azure's CSV of LLM inference, of 2023, 2024 and 2025.
    Azure,
    /// The format that `vllm bench serve --dataset-name timed_trace` reads.
    VllmTimed,
}

/// The source of the answers in a session's prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// Made-up words.
    MadeUp,
    /// The server.
    Live,
}

/// The event that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replay {
    /// The trace's clock.
    Timestamps,
    /// The end of the previous request of its session.
    Sessions,
}

/// The form in which a prompt is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As text.
    Text,
    /// As token ids, if the server accepts them.
    Tokens,
}

/// The treatment of a request that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TooLong {
    /// Leave it out.
    Drop,
    /// Cut it.
    Truncate,
    /// End the run.
    Error,
}

/// The treatment of a row whose number of hash ids does not fit its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WrongBlocks {
    /// End the run.
    Error,
    /// Make up missing ids, and ignore surplus ids.
    Repair,
}

/// A part of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Window {
    /// Its beginning, in seconds from the trace's first request.
    #[serde(default)]
    pub from: f64,
    /// Its end; a request at this time is no longer part of it. Absent: the end of the trace.
    pub to: Option<f64>,
}

/// Names of columns.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Labels {
    /// The arrival time.
    pub timestamp: String,
    /// Tokens of the prompt.
    pub input_length: String,
    /// Tokens of the answer.
    pub output_length: String,
    /// The hash ids of the prompt's blocks.
    pub hash_ids: String,
}

impl Default for Labels {
    fn default() -> Self {
        Self {
            timestamp: "timestamp".to_owned(),
            input_length: "input_length".to_owned(),
            output_length: "output_length".to_owned(),
            hash_ids: "hash_ids".to_owned(),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut wrong = Vec::new();
        let positive = |value: f64| value > 0.0 && value.is_finite();
        if !positive(self.time_scale) {
            wrong.push(format!("`time-scale` is {}; expected a number above 0", self.time_scale));
        }
        if let Some(unit) = self.time_unit.filter(|unit| !positive(*unit)) {
            wrong.push(format!(
                "`time-unit` is {unit}; expected the seconds of one unit, such as 0.001"
            ));
        }
        if !(self.share > 0.0 && self.share <= 1.0) {
            wrong.push(format!("`share` is {}; expected a number above 0, up to 1", self.share));
        }
        if let Some(idle) = self.max_idle.filter(|idle| !(*idle >= 0.0 && idle.is_finite())) {
            wrong.push(format!("`max-idle` is {idle}; expected seconds, 0 or more"));
        }
        if let Some(Window { from, to }) = self.window {
            let to = to.unwrap_or(f64::MAX);
            if !(from >= 0.0 && to > from && from.is_finite()) {
                wrong.push(format!(
                    "`window` is from {from} to {to}; expected `from` at 0 or more, and `to` after it"
                ));
            }
        }
        for (key, value) in [
            ("block-size", self.block_size),
            ("max-input", self.max_input),
            ("max-output", self.max_output),
        ] {
            if value == Some(0) {
                wrong.push(format!("`{key}` is 0; expected at least 1 token"));
            }
        }
        if self.labels.is_some() && self.format != Some(Name::VllmTimed) {
            wrong.push(
                "`labels` belongs to `format = \"vllm-timed\"`: leave it out, or set that format"
                    .to_owned(),
            );
        }
        if wrong.is_empty() { Ok(()) } else { Err(invalid(wrong.join("; "))) }
    }

    /// Nanoseconds of the trace as nanoseconds of the run.
    pub(crate) fn scaled(&self, nanos: i64) -> u64 {
        (nanos.max(0) as f64 / self.time_scale) as u64
    }

    pub(crate) fn longest_pause(&self) -> u64 {
        self.max_idle.map_or(u64::MAX, |seconds| (seconds * 1e9) as u64)
    }
}

pub(crate) fn invalid(message: String) -> Error {
    Error::InvalidConfig(message)
}
