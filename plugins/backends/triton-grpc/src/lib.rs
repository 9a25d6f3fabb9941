//! Triton Inference Server over gRPC: its call `ModelStreamInfer`, with a model whose backend is
//! vLLM (`src/utils/request.py` of Triton's `vllm_backend`). The backend defines the names of its
//! tensors.
#![deny(unsafe_code)]

mod wire;

use prost::Message as _;
use runner_plugin::dialect::{explain, grpc, openai};
use runner_plugin::{Backend, Body, Control, Credentials, Error, Frame, Framing, Meaning};
use runner_plugin::{Output, Prompt, Request, Sample, Settings, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use wire::{Infer, InferReply, StreamReply};

const SERVICE: &str = "/inference.GRPCInferenceService";
/// The finish reason of Triton's vLLM backend for an unfinished answer: Python's `None` as a text.
const GOES_ON: &[u8] = b"None";

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {}

/// State of decoding a reply.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
}

pub struct Triton;

impl Backend for Triton {
    type Config = Config;
    type State = State;

    fn open(Config {}: Config) -> Result<Self, Error> {
        Ok(Triton)
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8001".to_owned()
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::Health => Some(grpc::call(&format!("{SERVICE}/ServerReady"), &[])),
            // Its metrics are a page of HTTP/1.1 on another port, and only callers who may change
            // models can list them.
            Control::ListModels | Control::FlushCache | Control::Metrics => None,
        }
    }

    fn credentials(&self) -> Credentials {
        Credentials::none()
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let text = match &sample.prompt {
            Prompt::Text(text) => text,
            Prompt::Tokens(_) => {
                return Err(Error::config(
                    "the dataset gives token ids, which Triton's vLLM backend does not accept; have \
                     the dataset give text",
                ));
            }
            other => return Err(openai::not_taken(other, "ModelStreamInfer", "chat")),
        };
        let mut parameters = Body::new();
        parameters
            .set_some("max_tokens", settings.output_tokens_for(sample))
            .set_some("min_tokens", settings.min_output_tokens)
            .set_some("ignore_eos", settings.ignore_eos.then_some(true))
            .set_some("lora_name", sample.adapter.as_deref());
        openai::set_sampling(&mut parameters, &settings.sampling);
        settings.lay_over(&mut parameters, sample)?;
        let mut infer =
            Infer { model: settings.model.clone(), id: sample.id.clone(), ..Infer::default() };
        infer.text("text_input", text.as_bytes());
        infer.flag("stream", settings.streaming);
        infer.flag("exclude_input_in_output", true);
        infer.text("sampling_parameters", &parameters.to_bytes());
        for wanted in ["finish_reason", "num_input_tokens", "num_output_tokens"] {
            infer.flag(&format!("return_{wanted}"), true);
        }
        let method = format!("{SERVICE}/ModelStreamInfer");
        Ok(grpc::call(&method, &infer.encode_to_vec()))
    }

    fn framing(&self, _: bool) -> Framing {
        Framing::Grpc
    }

    fn decode(
        &self,
        state: &mut State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        if let Some(ended) = grpc::ended(frame) {
            if matches!(ended, Meaning::End) {
                events.extend(Usage::counted(state.input_tokens, state.output_tokens));
            }
            events.push(ended);
            return Ok(());
        }
        let streamed = StreamReply::decode(frame.data).map_err(|error| {
            Error::Protocol(format!("expected a ModelStreamInferResponse: {error}"))
        })?;
        if !streamed.error.is_empty() {
            let refusal = explain::in_band(streamed.error.as_bytes());
            events.push(Meaning::Failure(refusal));
            return Ok(());
        }
        match streamed.inferred {
            Some(inferred) => read(state, &inferred, events).map_err(Error::Protocol),
            None => Ok(()),
        }
    }
}

/// Reads one response: a piece of each answer.
fn read(state: &mut State, inferred: &InferReply, events: &mut Vec<Meaning>) -> Result<(), String> {
    let texts = inferred.texts("text_output")?;
    let tokens = inferred.numbers("num_output_tokens")?;
    if let Some(count) = inferred.numbers("num_input_tokens")?.first() {
        state.input_tokens = Some(*count);
    }
    for (choice, text) in texts.into_iter().enumerate() {
        let tokens = tokens.get(choice).copied();
        if let Some(tokens) = tokens {
            let so_far = state.output_tokens.get_or_insert_default();
            *so_far = so_far.saturating_add(tokens);
        }
        if !text.is_empty() || tokens.is_some_and(|tokens| tokens > 0) {
            events.push(Meaning::Text(Output {
                text: String::from_utf8_lossy(text).into_owned(),
                tokens,
                choice: choice as u32,
            }));
        }
    }
    let finished = inferred.texts("finish_reason")?;
    if let Some(reason) = finished.first().filter(|reason| **reason != GOES_ON) {
        events.push(Meaning::Finish(explain::excerpt(reason, 100)));
    }
    Ok(())
}

runner_plugin::export_backend!(Triton);
