//! The script of a mock engine: its speed, its answers and its faults.
//!
//! Responsible for the contents of a script and for reporting faults in it; `read` handles TOML.
//! The effect of the script on a request is decided in `answer`, `reply` and `serve`.

mod read;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::dialect::ScriptedRoute;
use super::fault::Fault;
use super::serve::{possible_number, possible_span};
use super::transcript::{Pause, Transcript};
use model::duration::Span;
use reader::ScenarioError;
use simulator::Parameters;

/// The most tokens a prompt and its answer may have together; an answer's text is held in memory.
const CONTEXT_LIMIT: NonZeroU32 = NonZeroU32::new(1 << 24).expect("not zero");

/// The way a mock engine behaves. Written as TOML with the field names in kebab case, `[[fault]]`
/// and `[[route]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Time from the complete request (or from the free slot, see `max_concurrency`) to the first
    /// token.
    pub ttft: Span,
    /// Time from each token to the next.
    pub itl: Span,
    /// The number of first requests that `cold_delay` delays, as while an engine compiles.
    pub cold_requests: u32,
    /// The time by which their first token is later.
    pub cold_delay: Span,
    /// Variation of both from request to request: the standard deviation of their logarithms, which
    /// is about a share of them. 0 turns it off.
    pub spread: f64,
    /// Random seed: the same seed gives the same times each time, and `batching` the same steps.
    pub seed: u64,
    /// Answers many requests in one batch, whose steps decide when tokens come: see [`simulator`].
    /// It contradicts `ttft`, `itl`, `spread` and `max_concurrency`.
    pub batching: Option<Parameters>,
    /// Tokens per event after the first token, as with vLLM's `--stream-interval`. An event is sent
    /// when its last token is due, so TTFT and the time of the last token do not depend on this.
    pub tokens_per_chunk: NonZeroU32,
    /// Tokens in an answer if its request sets no limit and its text has no end of its own.
    pub output_tokens: u32,
    /// The answer ends by itself after this many tokens, unless the request sets `ignore_eos`
    /// or asks for more with `min_tokens`.
    pub stop_after: Option<u32>,
    pub answer: AnswerText,
    /// The number of tokens at the start of a chat's answer that are reasoning.
    pub reasoning_tokens: u32,
    pub reasoning_field: ReasoningField,
    pub role_chunk: RoleChunk,
    /// The place where the OpenAI routes report token counts.
    pub usage: UsageIn,
    /// Further token counts, which every answer reports.
    pub counts: Counts,
    /// The share of the time to first token that counts as queueing in the engine's own timings;
    /// replies have these only with this key. The wait for a slot counts as queueing as well.
    pub server_timings: Option<f64>,
    pub generate: Generate,
    pub transcriptions: Transcriptions,
    /// True if SGLang's `/generate` streams only new text instead of all text so far.
    pub incremental: bool,
    /// The API key that requests must send as `Authorization: Bearer`.
    pub api_key: Option<String>,
    /// The models to serve; requests for others are refused. Empty: every name is accepted.
    pub models: Vec<String>,
    /// Maximum number of requests processed at a time; further ones wait in order of arrival.
    pub max_concurrency: Option<NonZeroUsize>,
    /// Maximum number of tokens in a prompt and its answer together.
    pub context_limit: NonZeroU32,
    pub headers: Headers,
    /// The faults. Of several that end a reply, the first in the script counts.
    pub faults: Vec<Fault>,
    /// True if prompt prefixes are cached: cached tokens are counted and reported.
    pub prefix_cache: bool,
    /// Routes of other engines. They take precedence over the built-in ones.
    pub routes: Vec<ScriptedRoute>,
    /// The events of streamed replies of OpenAI's routes, instead of generated answers.
    pub transcript: Option<Transcript>,
    pub pause: Option<Pause>,
}

/// The text of answers. A token is one byte of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerText {
    /// English words, the same for the same prompt, in the requested number.
    #[default]
    Words,
    /// The prompt, or the last message of a chat.
    Echo,
    /// Always this text.
    Text(String),
}

model::names! {
    /// The name of the field that holds reasoning.
    pub enum ReasoningField {
        /// `reasoning`, as in vLLM.
        Reasoning = "reasoning",
        /// `reasoning_content`, as in SGLang, LMDeploy and llama.cpp.
        ReasoningContent = "reasoning_content",
    }
    default Reasoning
}

model::names! {
    /// The time when the chunk that has a role but no text is sent.
    pub enum RoleChunk {
        /// Just before the first token, as vLLM and SGLang do.
        FirstToken = "first-token",
        /// As soon as the request is complete, long before the first token.
        AtOnce = "at-once",
        /// Never.
        None = "none",
    }
    default FirstToken
}

model::names! {
    /// The place where the OpenAI routes report token counts.
    pub enum UsageIn {
        /// In an event after the last choice if the request sets `stream_options.include_usage`, as
        /// vLLM does; whole replies always include it.
        Final = "final",
        /// The same, whether requested or not.
        Always = "always",
        /// In the last event that holds a choice, whether requested or not.
        LastChunk = "last-chunk",
        /// In every event, whether requested or not.
        Continuous = "continuous",
        /// Nowhere, not even in whole replies.
        None = "none",
    }
    default Final
}

model::names! {
    /// The engine whose `/generate` is served.
    pub enum Generate {
        /// SGLang's.
        Sglang = "sglang",
        /// LMDeploy's.
        Lmdeploy = "lmdeploy",
    }
    default Sglang
}

model::names! {
    /// The server whose `/v1/audio/transcriptions` is served.
    pub enum Transcriptions {
        /// vLLM's: chunks as of a chat.
        Vllm = "vllm",
        /// OpenAI's: events of their own.
        Openai = "openai",
    }
    default Vllm
}

model::names! {
    /// The time when a stream's HTTP headers are sent.
    pub enum Headers {
        /// As soon as the request is complete, as vLLM does.
        AtOnce = "at-once",
        /// With the first token.
        FirstToken = "first-token",
    }
    default AtOnce
}

/// Token counts that only some engines report. An absent count is not reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub draft_tokens: Option<u32>,
    pub accepted_draft_tokens: Option<u32>,
    pub input_image_tokens: Option<u32>,
    pub input_video_tokens: Option<u32>,
    pub input_audio_tokens: Option<u32>,
    pub output_audio_tokens: Option<u32>,
    /// Number of steps that accepted 0, 1, 2, … drafted tokens; empty if steps are not reported.
    pub steps_by_accepted: Vec<u32>,
}

impl Counts {
    /// The steps of speculative decoding; proposed and accepted tokens have defaults.
    pub(super) fn steps(&self) -> Option<Steps> {
        let list = &self.steps_by_accepted;
        let most = u64::try_from(list.len()).ok()?.checked_sub(1)?;
        let steps: u64 = list.iter().map(|steps| u64::from(*steps)).sum();
        let by_list: u64 =
            (0..).zip(list).map(|(tokens, steps): (u64, _)| tokens * u64::from(*steps)).sum();
        Some(Steps {
            steps,
            most,
            drafted: self.draft_tokens.map_or(steps * most, u64::from),
            accepted: self.accepted_draft_tokens.map_or(by_list, u64::from),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    pub steps: u64,
    /// Most tokens that a step proposes.
    pub most: u64,
    pub drafted: u64,
    pub accepted: u64,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            ttft: Span(Duration::from_millis(100)),
            itl: Span(Duration::from_millis(10)),
            cold_requests: 0,
            cold_delay: Span(Duration::ZERO),
            spread: 0.0,
            seed: 0,
            batching: None,
            tokens_per_chunk: NonZeroU32::MIN,
            output_tokens: 128,
            stop_after: None,
            answer: AnswerText::Words,
            reasoning_tokens: 0,
            reasoning_field: ReasoningField::default(),
            role_chunk: RoleChunk::default(),
            usage: UsageIn::default(),
            counts: Counts::default(),
            server_timings: None,
            generate: Generate::default(),
            transcriptions: Transcriptions::default(),
            incremental: false,
            api_key: None,
            models: Vec::new(),
            max_concurrency: None,
            context_limit: CONTEXT_LIMIT,
            headers: Headers::default(),
            faults: Vec::new(),
            prefix_cache: false,
            routes: Vec::new(),
            transcript: None,
            pause: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the script {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Wrong(#[from] ScenarioError),
    #[error("the script's `{key}` is wrong: {message}")]
    Value { key: &'static str, message: String },
}

impl Script {
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = reader::read_text(path)
            .map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
        Ok(Script::parse(&path.to_string_lossy(), &text)?)
    }

    /// Reads a script from TOML; `name` is its name in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        read::read(name, text)
    }

    /// Checks that every value can be played. A time that contradicts `batching` is found if it
    /// differs from the default. A file's reader and the command line find equal times, except a
    /// file's default time beside a flag's batch.
    pub fn check(&self) -> Result<(), ScriptError> {
        let wrong = |key, message: String| Err(ScriptError::Value { key, message });
        let spans = [
            ("ttft", Some(self.ttft)),
            ("itl", Some(self.itl)),
            ("cold-delay", Some(self.cold_delay)),
        ];
        let lasting = self.faults.iter().map(|fault| ("fault.for", fault.kind.lasting()));
        for (key, span) in spans.into_iter().chain(lasting) {
            if let Some(span) = span
                && let Err(message) = possible_span(span)
            {
                return wrong(key, message);
            }
        }
        if let Err(message) = possible_number(self.spread, 2.0) {
            return wrong("spread", message);
        }
        let usual = Script::default();
        if let Some(share) = self.server_timings
            && let Err(message) = possible_number(share, 1.0)
        {
            return wrong("server-timings", message);
        }
        let timed = [
            ("ttft", self.ttft != usual.ttft),
            ("itl", self.itl != usual.itl),
            ("cold-delay", self.cold_delay != usual.cold_delay),
            ("spread", self.spread != usual.spread),
            ("max-concurrency", self.max_concurrency.is_some()),
        ];
        if self.batching.is_some()
            && let Some((key, _)) = timed.into_iter().find(|(_, is_set)| *is_set)
        {
            return wrong(key, CONTRADICTS_BATCHING.to_owned());
        }
        if self.context_limit > CONTEXT_LIMIT {
            return wrong("context-limit", format!("at most {CONTEXT_LIMIT} tokens are possible"));
        }
        Ok(())
    }

    pub(super) fn serves(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|served| served == model)
    }

    pub(super) fn listed_models(&self) -> Vec<&str> {
        if self.models.is_empty() {
            return vec!["mock"];
        }
        self.models.iter().map(String::as_str).collect()
    }
}

const CONTRADICTS_BATCHING: &str = "it contradicts `batching`, whose steps decide when tokens come";

impl FromStr for Script {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        Script::parse("script", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Breakdown, FaultKind, Selection};

    #[test]
    fn a_script_is_read_from_toml() {
        let script: Script = r#"
            ttft = "120ms"
            itl = "20ms"
            tokens-per-chunk = 4
            answer = { text = "42" }
            usage = "last-chunk"
            reasoning-field = "reasoning_content"
            [[fault]]
            kind = "cut"
            after-tokens = 3
            every = 2
            "#
        .parse()
        .unwrap();
        assert_eq!(script.ttft, Span(Duration::from_millis(120)));
        assert_eq!(script.tokens_per_chunk.get(), 4);
        assert_eq!(script.answer, AnswerText::Text("42".to_owned()));
        assert_eq!(script.usage, UsageIn::LastChunk);
        assert_eq!(script.reasoning_field, ReasoningField::ReasoningContent);
        let cut = FaultKind::Break { after_tokens: 3, how: Breakdown::Cut { reset: false } };
        let every = Selection::Every(2.try_into().unwrap());
        assert_eq!(script.faults, [Fault { kind: cut, on: every }]);
        assert_eq!(script.output_tokens, Script::default().output_tokens);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("tftt = '1s'", "script:1:1: unknown key `tftt`; did you mean `ttft`?"),
            ("ttft = '1'", "a unit is missing"),
            ("ttft = 1", "expected a time such as \"120ms\", found the integer 1"),
            ("ttft = '9000h'", "at most"),
            ("tokens-per-chunk = 0", "expected a whole number from 1 to 4294967295, found 0"),
            ("answer = 'ecco'", "unknown variant `ecco`"),
            ("usage = 'sometimes'", "expected one of `final`, `always`"),
            ("models = 5", "`models`: expected a string"),
            ("server-timings = 1.5", "`server-timings`: expected a number from 0 to 1, found 1.5"),
            (
                "[counts]\nsteps-by-accepted = []",
                "`counts.steps-by-accepted`: expected 1 to 256 numbers, found 0",
            ),
            (
                "[[fault]]\nkind = 'cut'",
                "script:1:1: `fault`: a fault of kind `cut` needs `after-tokens`",
            ),
            (
                "context-limit = 99999999",
                "expected a whole number from 1 to 16777216, found 99999999",
            ),
        ] {
            let error = text.parse::<Script>().expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        let all = "ttft = 1\nitl = 2\n[[fault]]\nkind = 'cutt'";
        assert_eq!(all.parse::<Script>().unwrap_err().problems().len(), 3);
        let error = Script { ttft: Span(Duration::MAX), ..Script::default() }.check();
        assert!(error.unwrap_err().to_string().contains("`ttft`"));
        let error = Script::read(Path::new("no-such-script.toml")).unwrap_err().to_string();
        assert!(error.contains("no-such-script.toml"), "{error}");
    }

    #[test]
    fn every_number_is_played_or_refused() {
        const ABSURD: &str = "0 1 -1 4294967295 4294967296 18446744073709551615 \
            18446744073709551616 1e300 1e-300 nan inf -inf 1e15 '8760h' '9999999999h' \
            '18446744073709551615h' '1ns' [18446744073709551615]";
        const KEYS: &str = "ttft itl spread seed tokens-per-chunk output-tokens stop-after \
            reasoning-tokens max-concurrency context-limit server-timings";
        let faults = [
            "kind = 'cut', after-tokens = X",
            "kind = 'no-done', after-tokens = X",
            "kind = 'in-band-error', after-tokens = X",
            "kind = 'stop-early', after-tokens = X",
            "kind = 'stall', after-tokens = X",
            "kind = 'stall', after-tokens = 1, for = X",
            "kind = 'slow-headers', for = X",
            "kind = 'http-error', status = X",
            "kind = 'http-error', retry-after = X",
            "kind = 'html', status = X",
            "kind = 'split', bytes = X",
            "kind = 'merge', events = X",
            "kind = 'crlf', every = X",
            "kind = 'crlf', share = X",
            "kind = 'crlf', requests = X",
        ];
        let slow = "spread = 2\nttft = '8760h'\nitl = '8760h'";
        let mut played = 0;
        for value in ABSURD.split(' ') {
            let keys = KEYS.split(' ').map(|key| format!("{key} = {value}"));
            let faults =
                faults.iter().map(|fault| format!("fault = [{{ {} }}]", fault.replace('X', value)));
            for text in keys.chain(faults).flat_map(|text| [format!("{slow}\n{text}"), text]) {
                let Ok(script) = text.parse::<Script>() else { continue };
                if script.check().is_err() {
                    continue;
                }
                played += 1;
                for number in [0, 1, u64::MAX] {
                    let pace = crate::pace::Pace::new(&script, number);
                    let last = pace.ttft + pace.itl * CONTEXT_LIMIT.get();
                    let _ = tokio::time::Instant::now() + last;
                    let _ = crate::fault::Mishaps::new(&script.faults, number);
                }
            }
        }
        assert!(played > 50, "{played}");
    }
}
