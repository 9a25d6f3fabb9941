//! Answers of Triton's call `ModelStreamInfer`, from a model whose backend is vLLM
//! (`src/utils/request.py` of Triton's `vllm_backend`): a message for each piece.

use super::{Piece, Wire};
use crate::answer::Answer;
use crate::ask::types::{Ask, Refusal, TritonForm};
use crate::grpc;
use crate::script::Script;
use crate::triton::{InferResponse, StreamResponse};

pub(super) struct Triton {
    form: TritonForm,
    model: String,
    prompt: String,
    prompt_tokens: u32,
}

impl Triton {
    pub fn new(script: &Script, ask: &Ask, form: &TritonForm) -> Self {
        let model = ask.model.as_deref().unwrap_or(script.listed_models()[0]);
        Triton {
            form: form.clone(),
            model: model.to_owned(),
            prompt: if form.has_input { ask.echo.clone() } else { String::new() },
            prompt_tokens: ask.prompt_tokens,
        }
    }
}

impl Wire for Triton {
    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        let mut response = InferResponse {
            model_name: self.model.clone(),
            model_version: "1".to_owned(),
            id: self.form.id.clone(),
            ..InferResponse::default()
        };
        let text = [&*self.prompt, answer.piece(piece.from, piece.to)].concat();
        response.add_text("text_output", text.as_bytes());
        if self.form.has_finish {
            // As Python writes that there is no reason yet.
            let reason = if piece.last { answer.finish.name() } else { "None" };
            response.add_text("finish_reason", reason.as_bytes());
        }
        let counts = [
            ("num_input_tokens", self.form.has_input_tokens, self.prompt_tokens),
            ("num_output_tokens", self.form.has_output_tokens, piece.to - piece.from),
        ];
        for (name, is_wanted, count) in counts {
            if is_wanted {
                response.add(name, "UINT32", count.to_le_bytes().to_vec());
            }
        }
        let message =
            StreamResponse { infer_response: Some(response), ..StreamResponse::default() };
        grpc::put(&message, out);
    }

    fn done(&self, _: &Answer, _: &mut Vec<u8>) {}

    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>) {
        self.piece(answer, all, out);
    }
}

pub(super) fn error(refusal: &Refusal, out: &mut Vec<u8>) {
    let message =
        StreamResponse { error_message: refusal.message.clone(), ..StreamResponse::default() };
    grpc::put(&message, out);
}
