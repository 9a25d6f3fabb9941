//! Replicate's predictions: the prediction as JSON, and its output as events.

use serde_json::{Value, json};

use super::bytes::put;
use super::{Head, Piece, Wire};
use crate::answer::Answer;
use crate::ask::types::{Job, Refusal};

pub(crate) struct Prediction {
    id: String,
    origin: String,
    streams: bool,
    model: String,
    prompt_tokens: u32,
}

impl Prediction {
    pub fn new(job: &Job, head: &Head<'_>) -> Self {
        Prediction {
            id: job.id.clone(),
            origin: job.origin.clone(),
            streams: job.ask.stream,
            model: job.ask.model.clone().unwrap_or_else(|| head.model.to_owned()),
            prompt_tokens: job.ask.prompt_tokens,
        }
    }

    pub fn state(&self, status: &str, output: Option<Value>, error: Option<&str>) -> Value {
        let (origin, id) = (&self.origin, &self.id);
        let mut urls = json!({
            "get": format!("{origin}/v1/predictions/{id}"),
            "cancel": format!("{origin}/v1/predictions/{id}/cancel"),
        });
        if self.streams {
            urls["stream"] = format!("{origin}/v1/streams/{id}").into();
        }
        json!({
            "id": id, "model": self.model, "version": "hidden", "logs": "", "output": output,
            "error": error, "status": status, "urls": urls, "data_removed": false,
        })
    }

    fn event(&self, name: &str, number: u32, data: &str, out: &mut Vec<u8>) {
        put!(out, "event: {name}\nid: {number}:0\n");
        for line in data.split('\n') {
            put!(out, "data: {line}\n");
        }
        out.push(b'\n');
    }
}

impl Wire for Prediction {
    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        self.event("output", piece.to, answer.piece(piece.from, piece.to), out);
    }

    fn done(&self, answer: &Answer, out: &mut Vec<u8>) {
        self.event("done", answer.tokens, "{}", out);
    }

    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>) {
        let tokens = (0..answer.tokens).map(|token| answer.piece(token, token + 1));
        let mut state = self.state("succeeded", Some(tokens.collect()), None);
        let mut metrics = json!({
            "predict_time": all.seconds,
            "input_token_count": self.prompt_tokens,
            "output_token_count": answer.tokens,
        });
        if let Some(timings) = all.timings {
            let first = timings.queue + timings.prefill;
            metrics["time_to_first_token"] = first.as_secs_f64().into();
        }
        state["metrics"] = metrics;
        out.extend(state.to_string().as_bytes());
    }

    fn failed(&self, refusal: &Refusal) -> Option<Vec<u8>> {
        let state = self.state("failed", None, Some(&refusal.message));
        Some(state.to_string().into_bytes())
    }
}

pub(super) fn error(refusal: &Refusal) -> Vec<u8> {
    let Refusal { status, message, .. } = refusal;
    let body = json!({ "detail": message, "status": status, "title": refusal.kind });
    body.to_string().into_bytes()
}
