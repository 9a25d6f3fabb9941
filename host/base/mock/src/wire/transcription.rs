//! Transcriptions: vLLM's chunks, as its 0.32 writes them, and OpenAI's events
//! (<https://platform.openai.com/docs/api-reference/audio>).

use super::bytes::{json, put, put_string};
use super::{Head, Piece, Wire};
use crate::answer::Answer;
use crate::ask::types::{Ask, ReplyForm, Sound};
use crate::script::{Script, UsageIn};

pub(super) struct Vllm {
    sound: Sound,
    prompt_tokens: u32,
    /// From `data: {` to the opening of `choices`.
    event_head: String,
    /// Usage in every event that has a choice.
    in_every: bool,
    /// An event of its own for usage.
    own_event: bool,
}

impl Vllm {
    pub fn new(script: &Script, ask: &Ask, sound: &Sound, head: &Head<'_>) -> Self {
        let model = json(&ask.model.as_deref().unwrap_or(head.model));
        let (id, created) = (head.id(), head.created);
        let usage = script.usage;
        let requested = ask.include_usage && usage == UsageIn::Final;
        Vllm {
            sound: sound.clone(),
            prompt_tokens: ask.prompt_tokens,
            event_head: format!(
                r#"data: {{"id":"transcribe-{id}","object":"transcription.chunk","created":{created},"model":{model},"choices":["#
            ),
            in_every: usage == UsageIn::Continuous || (requested && ask.continuous_usage),
            own_event: requested || matches!(usage, UsageIn::Always | UsageIn::Continuous),
        }
    }

    fn counts(&self, tokens: u32, out: &mut Vec<u8>) {
        let prompt = self.prompt_tokens;
        let total = u64::from(prompt) + u64::from(tokens);
        put!(
            out,
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{tokens}}}"#
        );
    }
}

impl Wire for Vllm {
    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        out.extend(self.event_head.as_bytes());
        out.extend(br#"{"delta":{"content":"#);
        put_string(out, answer.piece(piece.from, piece.to));
        out.push(b'}');
        if piece.last {
            let finish = answer.finish.name();
            put!(out, r#","finish_reason":"{finish}","stop_reason":null"#);
        }
        out.extend(b"}]");
        if self.in_every {
            self.counts(piece.to, out);
        }
        out.extend(b"}\n\n");
    }

    fn usage(&self, answer: &Answer, out: &mut Vec<u8>) {
        if self.own_event {
            out.extend(self.event_head.as_bytes());
            out.push(b']');
            self.counts(answer.tokens, out);
            out.extend(b"}\n\n");
        }
    }

    fn whole(&self, answer: &Answer, _: Piece, out: &mut Vec<u8>) {
        let seconds = self.sound.seconds;
        if self.sound.form == ReplyForm::VerboseJson {
            return verbose(answer, seconds, out);
        }
        out.extend(br#"{"text":"#);
        put_string(out, answer.content());
        let seconds = seconds.ceil();
        put!(out, r#","usage":{{"type":"duration","seconds":{seconds}}}}}"#);
    }
}

pub(super) struct OpenAi {
    sound: Sound,
    prompt_tokens: u32,
    usage: bool,
}

impl OpenAi {
    pub fn new(script: &Script, ask: &Ask, sound: &Sound) -> Self {
        OpenAi {
            sound: sound.clone(),
            prompt_tokens: ask.prompt_tokens,
            usage: script.usage != UsageIn::None,
        }
    }

    fn counts(&self, answer: &Answer, out: &mut Vec<u8>) {
        if !self.usage {
            return;
        }
        let (input, audio, output) = (self.prompt_tokens, self.sound.tokens, answer.tokens);
        let (text, total) = (input - audio, u64::from(input) + u64::from(output));
        put!(out, r#","usage":{{"type":"tokens","input_tokens":{input}"#);
        put!(out, r#","input_token_details":{{"text_tokens":{text},"audio_tokens":{audio}}}"#);
        put!(out, r#","output_tokens":{output},"total_tokens":{total}}}"#);
    }
}

impl Wire for OpenAi {
    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        out.extend(br#"data: {"type":"transcript.text.delta","delta":"#);
        put_string(out, answer.piece(piece.from, piece.to));
        out.extend(b"}\n\n");
    }

    fn done(&self, answer: &Answer, out: &mut Vec<u8>) {
        out.extend(br#"data: {"type":"transcript.text.done","text":"#);
        put_string(out, answer.content());
        self.counts(answer, out);
        out.extend(b"}\n\n");
    }

    fn whole(&self, answer: &Answer, _: Piece, out: &mut Vec<u8>) {
        match self.sound.form {
            ReplyForm::Text => {
                out.extend(answer.content().as_bytes());
                out.push(b'\n');
            }
            ReplyForm::VerboseJson => verbose(answer, self.sound.seconds, out),
            ReplyForm::Json => {
                out.extend(br#"{"text":"#);
                put_string(out, answer.content());
                self.counts(answer, out);
                out.push(b'}');
            }
        }
    }
}

fn verbose(answer: &Answer, seconds: f64, out: &mut Vec<u8>) {
    let text = json(&answer.content());
    put!(
        out,
        r#"{{"duration":{seconds:?},"language":"en","text":{text},"segments":[{{"id":0,"avg_logprob":-0.1"#
    );
    put!(
        out,
        r#","compression_ratio":1.0,"end":{seconds:?},"no_speech_prob":null,"seek":0,"start":0.0,"temperature":0.0,"text":{text},"tokens":[]}}],"words":null}}"#
    );
}
