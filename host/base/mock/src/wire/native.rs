//! The `/generate` routes: SGLang's, whose events repeat all text so far unless the server streams
//! incrementally, and LMDeploy's, which share the path and little else.

use super::bytes::{put, put_string};
use super::{Head, Piece, Wire};
use crate::answer::{Answer, Finish};
use crate::ask::types::Ask;
use crate::script::{Counts, Script};

/// The id that stands for the end of a text.
const END_OF_TEXT: u32 = 2;

pub(super) struct Sglang {
    id: String,
    prompt_tokens: u32,
    cached_tokens: u32,
    incremental: bool,
    counts: Counts,
    /// True if the engine reports its own timings, as SGLang does with `--enable-metrics`.
    timed: bool,
    created: u64,
}

impl Sglang {
    pub fn new(script: &Script, ask: &Ask, head: &Head<'_>) -> Self {
        let incremental = script.incremental;
        Sglang {
            id: head.id(),
            prompt_tokens: ask.prompt_tokens,
            cached_tokens: head.cached_tokens,
            incremental,
            counts: script.counts.clone(),
            timed: script.server_timings.is_some(),
            created: head.created,
        }
    }

    fn object(&self, answer: &Answer, from: u32, piece: Piece, out: &mut Vec<u8>) {
        put_text_and_ids(answer, from, piece.to, out);
        put!(out, r#","meta_info":{{"id":"{}","finish_reason":"#, self.id);
        match (piece.last, answer.finish) {
            (false, _) => out.extend(b"null"),
            (true, Finish::Stop) => {
                put!(out, r#"{{"type":"stop","matched":{END_OF_TEXT}}}"#)
            }
            (true, Finish::Length) => {
                put!(out, r#"{{"type":"length","length":{}}}"#, answer.tokens);
            }
        }
        let (prompt, completion) = (self.prompt_tokens, piece.to);
        put!(out, r#","prompt_tokens":{prompt},"completion_tokens":{completion}"#);
        put!(out, r#","cached_tokens":{}"#, self.cached_tokens);
        out.extend(br#","reasoning_tokens":0,"num_retractions":0"#);
        out.extend(br#","weight_version":"default""#);
        if piece.last {
            self.timings(piece, out);
            let counts = &self.counts;
            for (name, count) in [
                ("spec_num_proposed_drafts", counts.draft_tokens),
                ("spec_num_correct_drafts", counts.accepted_draft_tokens),
                ("image_tokens", counts.input_image_tokens),
                ("video_tokens", counts.input_video_tokens),
                ("audio_tokens", counts.input_audio_tokens),
            ] {
                if let Some(count) = count {
                    put!(out, r#","{name}":{count}"#);
                }
            }
            if let Some(steps) = counts.steps() {
                let (steps, list) = (steps.steps, &counts.steps_by_accepted);
                put!(out, r#","spec_verify_ct":{steps}"#);
                put!(out, r#","spec_correct_drafts_histogram":{list:?}"#);
            }
        }
        out.extend(b"}}");
    }

    /// The times, in seconds. The engine's instants are made up: they are as far apart as its
    /// durations say.
    fn timings(&self, piece: Piece, out: &mut Vec<u8>) {
        let Some(timings) = piece.timings.filter(|_| self.timed) else {
            put!(out, r#","e2e_latency":{}"#, piece.seconds);
            return;
        };
        let queue = timings.queue.as_secs_f64();
        let first = (timings.queue + timings.prefill).as_secs_f64();
        let all = (timings.queue + timings.prefill + timings.decode).as_secs_f64();
        let received = self.created as f64;
        for (name, seconds) in [
            ("forward_entry_time", received + queue),
            ("prefill_finished_time", received + first),
            ("queue_time", queue),
            ("e2e_latency", all),
            ("request_received_ts", received),
            ("first_token_latency", first),
        ] {
            put!(out, r#","{name}":{seconds}"#);
        }
    }
}

impl Wire for Sglang {
    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        out.extend(b"data: ");
        self.object(answer, if self.incremental { piece.from } else { 0 }, piece, out);
        out.extend(b"\n\n");
    }

    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>) {
        self.object(answer, 0, all, out);
    }
}

pub(super) struct Lmdeploy {
    prompt_tokens: u32,
}

impl Lmdeploy {
    pub fn new(ask: &Ask) -> Self {
        Lmdeploy { prompt_tokens: ask.prompt_tokens }
    }

    fn object(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        put_text_and_ids(answer, piece.from, piece.to, out);
        out.extend(br#","meta_info":{"finish_reason":"#);
        if piece.last {
            put!(out, r#"{{"type":"{}"}}"#, answer.finish.name());
        } else {
            out.extend(b"null");
        }
        let (prompt, completion) = (self.prompt_tokens, piece.to);
        put!(out, r#","prompt_tokens":{prompt},"completion_tokens":{completion}"#);
        out.extend(br#","output_token_logprobs":null}}"#);
    }
}

impl Wire for Lmdeploy {
    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        out.extend(b"data: ");
        self.object(answer, piece, out);
        out.extend(b"\n\n");
    }

    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>) {
        self.object(answer, all, out);
    }
}

/// `{"text":…,"output_ids":[…]` of tokens `from..to`.
fn put_text_and_ids(answer: &Answer, from: u32, to: u32, out: &mut Vec<u8>) {
    out.extend(br#"{"text":"#);
    put_string(out, answer.piece(from, to));
    out.extend(br#","output_ids":"#);
    // Lists of numbers and memory have no way to fail.
    let _ = serde_json::to_writer(out, answer.ids(from, to));
}
