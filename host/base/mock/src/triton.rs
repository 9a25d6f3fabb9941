//! Triton's service over gRPC (`protobuf/grpc_service.proto` of Triton), for a client that streams
//! from a model whose backend is vLLM: `ModelStreamInfer`, and the health of the server.
//!
//! A call answers its first message; a client's later messages are not read. The messages here are
//! the mock's own: the runner's backend has others, so that one can check the other.

use prost::Message;

pub(super) const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";
/// The path of the service, before the names of its methods.
pub(super) const SERVICE: &str = "/inference.GRPCInferenceService/";

/// `ServerLiveResponse`, `ServerReadyResponse` or `ModelReadyResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Readiness {
    #[prost(bool, tag = "1")]
    pub ready: bool,
}

/// `ModelInferRequest`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InferRequest {
    #[prost(string, tag = "1")]
    pub model_name: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(message, repeated, tag = "5")]
    pub inputs: Vec<Tensor>,
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub raw_input_contents: Vec<Vec<u8>>,
}

/// `InferInputTensor` or `InferOutputTensor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    #[prost(message, optional, tag = "5")]
    pub contents: Option<Contents>,
}

/// `InferTensorContents`: contents within a tensor, in place of raw ones beside it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Contents {
    #[prost(bool, repeated, tag = "1")]
    pub bool_contents: Vec<bool>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub bytes_contents: Vec<Vec<u8>>,
}

/// `ModelInferResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InferResponse {
    #[prost(string, tag = "1")]
    pub model_name: String,
    #[prost(string, tag = "2")]
    pub model_version: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<Tensor>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub raw_output_contents: Vec<Vec<u8>>,
}

/// `ModelStreamInferResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StreamResponse {
    #[prost(string, tag = "1")]
    pub error_message: String,
    #[prost(message, optional, tag = "2")]
    pub infer_response: Option<InferResponse>,
}

impl InferRequest {
    fn input(&self, name: &str) -> Option<(&Tensor, &[u8])> {
        let at = self.inputs.iter().position(|input| input.name == name)?;
        let raw = self.raw_input_contents.get(at).map_or(&[][..], Vec::as_slice);
        Some((&self.inputs[at], raw))
    }

    /// The text of an input. In raw contents, the four bytes before it are its length.
    pub fn text(&self, name: &str) -> Option<&[u8]> {
        let (tensor, raw) = self.input(name)?;
        if let Some(contents) = &tensor.contents {
            return contents.bytes_contents.first().map(Vec::as_slice);
        }
        let (length, text) = raw.split_first_chunk()?;
        text.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        let (tensor, raw) = self.input(name)?;
        match &tensor.contents {
            Some(contents) => contents.bool_contents.first().copied(),
            None => raw.first().map(|byte| *byte != 0),
        }
    }
}

impl InferResponse {
    pub fn add(&mut self, name: &str, datatype: &str, raw: Vec<u8>) {
        self.outputs.push(Tensor {
            name: name.to_owned(),
            datatype: datatype.to_owned(),
            shape: vec![1],
            contents: None,
        });
        self.raw_output_contents.push(raw);
    }

    pub fn add_text(&mut self, name: &str, text: &[u8]) {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.add(name, "BYTES", [&length.to_le_bytes(), text].concat());
    }
}
