//! Requests of Triton's call `ModelStreamInfer`, for a model whose backend is vLLM
//! (`src/utils/request.py` of Triton's `vllm_backend`).

use prost::Message as _;
use serde::Deserialize;

use super::PromptSummary;
use super::types::{Ask, Refusal, Route, TritonForm};
use crate::grpc;
use crate::triton::InferRequest;

/// The tokens of an answer without `max_tokens`: vLLM's default for its engine.
const DEFAULT_TOKENS: i64 = 16;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sampling {
    max_tokens: Option<i64>,
    min_tokens: Option<i64>,
    ignore_eos: bool,
    n: Option<u32>,
}

pub(super) fn read(body: &[u8]) -> Result<Ask, Refusal> {
    let infer = InferRequest::decode(grpc::message(body)?)
        .map_err(|error| Refusal::bad(format!("no ModelInferRequest: {error}"), None))?;
    let text = |name| {
        let text = infer.text(name).map(|text| text.to_vec());
        let text = text.map(String::from_utf8).transpose();
        text.map_err(|_| Refusal::bad(format!("the input '{name}' is not UTF-8"), Some(name)))
    };
    let Some(prompt) = text("text_input")? else {
        let message = format!("expected an input 'text_input' for model '{}'", infer.model_name);
        return Err(Refusal::bad(message, Some("text_input")));
    };
    let sampling: Sampling = match text("sampling_parameters")? {
        Some(json) => serde_json::from_str(&json)
            .map_err(|error| Refusal::bad(error.to_string(), Some("sampling_parameters")))?,
        None => Sampling::default(),
    };
    if sampling.n.is_some_and(|n| n != 1) {
        let message = "this engine gives one answer to a request: n must be 1";
        return Err(Refusal::bad(message, Some("n")));
    }
    let limit = sampling.max_tokens.unwrap_or(DEFAULT_TOKENS);
    if limit < 1 {
        let message = format!("max_tokens must be at least 1, got {limit}.");
        return Err(Refusal::bad(message, Some("max_tokens")));
    }
    let flag = |name| infer.flag(name);
    let stream = flag("stream").unwrap_or(false);
    let has_input = !flag("exclude_input_in_output").unwrap_or(stream);
    if stream && has_input {
        let message = "When streaming, `exclude_input_in_output` = False is not allowed.";
        return Err(Refusal::bad(message, Some("exclude_input_in_output")));
    }
    let wants = |name| flag(name).unwrap_or(false);
    let form = TritonForm {
        id: infer.id.clone(),
        has_input,
        has_finish: wants("return_finish_reason"),
        has_input_tokens: wants("return_num_input_tokens"),
        has_output_tokens: wants("return_num_output_tokens"),
    };
    let mut summary = PromptSummary::default();
    summary.add_text(prompt);
    Ok(Ask {
        stream,
        model: Some(infer.model_name),
        max_tokens: Some(u32::try_from(limit).unwrap_or(u32::MAX)),
        min_tokens: u32::try_from(sampling.min_tokens.unwrap_or(0).max(0)).unwrap_or(u32::MAX),
        ignore_eos: sampling.ignore_eos,
        ..Ask::new(Route::Triton(form), summary)
    })
}
