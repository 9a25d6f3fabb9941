//! A scripted LLM server: it speaks the protocols of engines, and its script decides the times of
//! its answers and its faults. `runner mock` serves it over TCP. Whole-run tests serve it over an
//! in-memory pipe on tokio's paused clock, where a TTFT of 120 ms is 120 ms exactly.
//!
//! Routes: OpenAI's `/v1/completions`, `/v1/chat/completions` and `/v1/audio/transcriptions`,
//! `/generate` of SGLang or LMDeploy, `/v1/models`, `/health`, `/version`, `/metrics`, vLLM's
//! `/reset_prefix_cache` and SGLang's `/flush_cache`; Replicate's `/v1/predictions`, with
//! `/v1/models/OWNER/NAME/predictions` and `/v1/streams/ID`; vLLM's and OpenAI's `/v1/realtime`, a
//! WebSocket; `ModelStreamInfer` of Triton over gRPC; and routes that the script defines, for
//! engines that are not built in. A token is one byte of text. Every route is served over HTTP/1.1
//! and over HTTP/2, with TLS or without, but a WebSocket needs the former and gRPC the latter.
//!
//! This crate owns the server and its scripts. It leaves measuring to others. It shares no code
//! with the runner's own parsing of replies, so that each can check the other; its knowledge of
//! formats comes from captured replies of engines.
//!
//! Deadlines are absolute, so delays do not add up: token `k` is due at `start + ttft + k * itl`,
//! or at the end of a step if the script has a batch. Tokio's timers fire on whole milliseconds;
//! shorter inter-token times come in bursts.

#![allow(clippy::disallowed_methods, reason = "a server of its own, with its own clock")]
// A number that the user wrote must not change on its way.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod answer;
mod ask;
mod batch;
mod control;
mod dialect;
mod engine;
mod fault;
mod grpc;
mod metrics;
mod pace;
mod prediction;
mod prefix;
mod realtime;
mod record;
mod reply;
mod response;
mod script;
mod serve;
mod stream;
#[cfg(test)]
mod tests;
mod transcript;
mod triton;
mod truth;
mod wire;

pub use ask::understand;
pub use control::{Mounts, Page, Pages, log};
pub use dialect::ScriptedRoute;
pub use engine::Engine;
pub use fault::{Breakdown, Fault, FaultKind, Selection};
pub use script::{
    AnswerText, Counts, Generate, Headers, ReasoningField, RoleChunk, Script, ScriptError,
    Transcriptions, UsageIn,
};
pub use serve::{Tls, TlsError, listen, serve, serve_connection, serve_mounts, serve_tls};
pub use simulator::Parameters;
pub use simulator::parameters::NAMES as PARAMETERS;
pub use transcript::{Breaks, Moment, Pause, Transcript};
pub use truth::{BatchRecord, End, SentPiece, Truth, WrittenBytes};
