//! Messages of KServe's inference protocol, as far as this backend needs them
//! (`protobuf/grpc_service.proto` of Triton), and tensors as bytes ("raw" contents: strings have
//! four bytes of length before them, and all numbers their lowest byte first).

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Infer {
    #[prost(string, tag = "1")]
    pub model: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(message, repeated, tag = "5")]
    pub inputs: Vec<Tensor>,
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub contents: Vec<Vec<u8>>,
}

/// `InferInputTensor` or `InferOutputTensor`, whose contents stand beside it.
#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    #[prost(message, optional, tag = "5")]
    pub contents: Option<Contents>,
}

/// `InferTensorContents`: contents that a server put into the tensor.
#[derive(Clone, PartialEq, Message)]
pub struct Contents {
    #[prost(uint32, repeated, tag = "4")]
    pub unsigned: Vec<u32>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub bytes: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InferReply {
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<Tensor>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub contents: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StreamReply {
    #[prost(string, tag = "1")]
    pub error: String,
    #[prost(message, optional, tag = "2")]
    pub inferred: Option<InferReply>,
}

impl Infer {
    pub fn text(&mut self, name: &str, text: &[u8]) {
        let mut content = (text.len() as u32).to_le_bytes().to_vec();
        content.extend_from_slice(text);
        self.add(name, "BYTES", content);
    }

    pub fn flag(&mut self, name: &str, value: bool) {
        self.add(name, "BOOL", vec![value.into()]);
    }

    fn add(&mut self, name: &str, datatype: &str, content: Vec<u8>) {
        self.inputs.push(Tensor {
            name: name.to_owned(),
            datatype: datatype.to_owned(),
            shape: vec![1],
            contents: None,
        });
        self.contents.push(content);
    }
}

impl InferReply {
    /// The texts in the output of this name; none if there is no such output.
    pub fn texts(&self, name: &str) -> Result<Vec<&[u8]>, String> {
        let Some((tensor, raw)) = self.output(name) else { return Ok(Vec::new()) };
        if let Some(contents) = &tensor.contents {
            return Ok(contents.bytes.iter().map(Vec::as_slice).collect());
        }
        let mut texts = Vec::new();
        let mut rest = raw;
        while let Some((length, after)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            let (text, after) = after
                .split_at_checked(length)
                .ok_or_else(|| format!("the output `{name}` ends within a text"))?;
            texts.push(text);
            rest = after;
        }
        match rest {
            [] => Ok(texts),
            _ => Err(format!("the output `{name}` ends within a length")),
        }
    }

    /// The numbers in the output of this name; none if there is no such output.
    pub fn numbers(&self, name: &str) -> Result<Vec<u32>, String> {
        let Some((tensor, raw)) = self.output(name) else { return Ok(Vec::new()) };
        if let Some(contents) = &tensor.contents {
            return Ok(contents.unsigned.clone());
        }
        let (numbers, rest) = raw.as_chunks();
        match rest {
            [] => Ok(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()),
            _ => Err(format!(
                "the output `{name}` has {} bytes; expected numbers of 4 bytes each",
                raw.len()
            )),
        }
    }

    fn output(&self, name: &str) -> Option<(&Tensor, &[u8])> {
        let at = self.outputs.iter().position(|tensor| tensor.name == name)?;
        let raw = self.contents.get(at).map_or(&[][..], Vec::as_slice);
        Some((&self.outputs[at], raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_from_raw_bytes_and_from_the_tensor() {
        let named =
            |name: &str, contents| Tensor { name: name.to_owned(), contents, ..Tensor::default() };
        let inside = Contents { unsigned: vec![7], bytes: vec![b"in".to_vec()] };
        let reply = InferReply {
            outputs: vec![
                named("a", None),
                named("n", None),
                named("inside", Some(inside)),
                named("short", None),
            ],
            contents: vec![
                b"\x02\0\0\0hi\0\0\0\0".to_vec(),
                b"\x05\0\0\0".to_vec(),
                Vec::new(),
                b"\x09\0\0\0x".to_vec(),
            ],
        };
        assert_eq!(reply.texts("a").unwrap(), [&b"hi"[..], b""]);
        assert_eq!(reply.numbers("n").unwrap(), [5]);
        assert_eq!(reply.texts("inside").unwrap(), [b"in"]);
        assert_eq!(reply.numbers("inside").unwrap(), [7]);
        assert_eq!(reply.texts("missing"), Ok(Vec::new()));
        assert!(reply.texts("short").is_err() && reply.numbers("short").is_err());
    }
}
