//! Formats of an answer in each dialect: the bytes of its events and of its whole replies.
//!
//! Responsible for the formats alone, byte for byte as the engines write them; `reply` decides on
//! the events and their due times. The parts that do not change within a reply are rendered once,
//! so an event costs a few copies.

pub(super) mod bytes;
mod native;
mod openai;
pub(super) mod prediction;
mod speech;
mod transcription;
mod triton;

use super::ask::types::{Ask, Refusal, Route};
use super::dialect::ScriptedWriter;
use super::script::{Generate, Script, Transcriptions};
use crate::answer::Answer;
use crate::truth::Timings;
use bytes::{PING, json, put};

pub(super) fn wire(script: &Script, ask: &Ask, head: &Head<'_>) -> Box<dyn Wire> {
    match &ask.route {
        Route::Completions | Route::Chat => Box::new(openai::OpenAi::new(script, ask, head)),
        Route::Transcriptions => match (&ask.sound, script.transcriptions) {
            (Some(sound), Transcriptions::Vllm) => {
                Box::new(transcription::Vllm::new(script, ask, sound, head))
            }
            (Some(sound), Transcriptions::Openai) => {
                Box::new(transcription::OpenAi::new(script, ask, sound))
            }
            // A request for a transcription has a sound.
            (None, _) => Box::new(openai::OpenAi::new(script, ask, head)),
        },
        Route::Speech(form) => Box::new(speech::Speech::new(script, ask, *form)),
        Route::Triton(form) => Box::new(triton::Triton::new(script, ask, form)),
        Route::Generate(Generate::Sglang) => Box::new(native::Sglang::new(script, ask, head)),
        Route::Generate(Generate::Lmdeploy) => Box::new(native::Lmdeploy::new(ask)),
        Route::Prediction(prediction) => match prediction.job() {
            Some(job) => Box::new(prediction::Prediction::new(job, head)),
            // A prediction that does not exist has no answer.
            None => Box::new(openai::OpenAi::new(script, ask, head)),
        },
        Route::Scripted(dialect) => Box::new(ScriptedWriter::new(dialect, ask, head)),
    }
}

pub(super) fn error_body(route: &Route, refusal: &Refusal) -> Vec<u8> {
    let mut out = Vec::new();
    let Refusal { status, kind, message, param } = refusal;
    match route {
        Route::Completions | Route::Chat | Route::Transcriptions | Route::Speech(_) => {
            put!(&mut out, r#"{{"error":{{"message":{},"type":{}"#, json(message), json(kind));
            put!(&mut out, r#","param":{},"code":{status}}}}}"#, json(param));
        }
        Route::Generate(Generate::Sglang) => {
            put!(&mut out, r#"{{"error":{{"message":{}}}}}"#, json(message));
        }
        Route::Generate(Generate::Lmdeploy) => flat_error(&mut out, refusal),
        Route::Triton(_) => triton::error(refusal, &mut out),
        Route::Prediction(_) => return prediction::error(refusal),
        Route::Scripted(dialect) => return dialect.error_body(*status, message),
    }
    out
}

pub(super) fn error_event(route: &Route, refusal: &Refusal, out: &mut Vec<u8>) {
    let Refusal { status, kind, message, param } = refusal;
    if let Route::Scripted(dialect) = route {
        return dialect.error_event(*status, message, out);
    }
    if let Route::Triton(_) = route {
        return triton::error(refusal, out);
    }
    if let Route::Prediction(_) = route {
        out.extend(b"event: error\n");
    }
    out.extend(b"data: ");
    match route {
        Route::Scripted(_) | Route::Triton(_) => {}
        Route::Prediction(_) => out.extend(&prediction::error(refusal)),
        // As Python's `json.dumps`, hence the spaces, which events of success do not have.
        Route::Completions | Route::Chat | Route::Transcriptions | Route::Speech(_) => {
            put!(out, r#"{{"error": {{"message": {}, "type": {}"#, json(message), json(kind));
            put!(out, r#", "param": {}, "code": {status}}}}}"#, json(param));
        }
        Route::Generate(Generate::Sglang) => {
            put!(out, r#"{{"error":{{"message":{},"type":"{}""#, json(message), "internal_error");
            put!(out, r#","code":{status},"retryable":false}}}}"#);
        }
        Route::Generate(Generate::Lmdeploy) => {
            out.extend(br#"{"error":"#);
            flat_error(out, refusal);
            out.push(b'}');
        }
    }
    out.extend(b"\n\n");
}

/// Bytes sent before an event, without a meaning.
pub(super) fn ping(route: &Route) -> &'static [u8] {
    match route {
        Route::Scripted(dialect) => dialect.ping(),
        Route::Speech(form) if form.is_raw => b"",
        // A message has a meaning, and between messages there is nothing.
        Route::Triton(_) => b"",
        _ => PING,
    }
}

pub(super) fn has_lines(route: &Route) -> bool {
    match route {
        Route::Scripted(dialect) => dialect.has_lines(),
        Route::Speech(form) => !form.is_raw,
        Route::Triton(_) => false,
        _ => true,
    }
}

fn flat_error(out: &mut Vec<u8>, Refusal { status, kind, message, param }: &Refusal) {
    put!(out, r#"{{"message":{},"type":{}"#, json(message), json(kind));
    put!(out, r#","code":{status},"param":{},"object":"error"}}"#, json(param));
}

/// The end marker of every built-in dialect.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Tokens `from..to` of an answer, to be sent as one event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    pub from: u32,
    pub to: u32,
    /// True if it carries the finish reason.
    pub last: bool,
    /// Since the engine began to process the request; some dialects report it at the end.
    pub seconds: f64,
    /// The engine's own timings, which some dialects report at the end.
    pub timings: Option<Timings>,
}

pub(super) trait Wire: Send {
    /// The event that has a role but no text; empty in dialects without one.
    fn role(&self, _: &mut Vec<u8>) {}
    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>);
    /// The event that holds usage and no choice; empty if there is none.
    fn usage(&self, _: &Answer, _: &mut Vec<u8>) {}
    fn done(&self, _: &Answer, out: &mut Vec<u8>) {
        out.extend(DONE);
    }
    /// The whole reply to a request that does not stream: all tokens as one piece.
    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>);
    /// The whole reply without an answer, where that is none of the route's errors.
    fn failed(&self, _: &Refusal) -> Option<Vec<u8>> {
        None
    }
}

pub(super) struct Head<'a> {
    /// The request's number, from which its id is made.
    pub number: u64,
    /// Seconds since 1970.
    pub created: u64,
    /// The default model, if the request names none.
    pub model: &'a str,
    pub cached_tokens: u32,
}

impl Head<'_> {
    /// An id of 16 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:016x}", model::random::mix(self.number))
    }
}
