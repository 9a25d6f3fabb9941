//! Calls of gRPC: a request with its message, and how a call ended.
//!
//! The host cuts the reply into messages ([`Framing::Grpc`](crate::Framing::Grpc)); the backend
//! reads a message's content by itself, with `prost` for example. Calls have the form of gRPC over
//! HTTP/2 (`doc/PROTOCOL-HTTP2.md` of gRPC).

use super::explain;
use crate::{Frame, Meaning, Reason, Refusal, Request};

/// The name of the frame with the trailer fields.
const TRAILERS: &str = "trailers";
/// Bytes before each message: a flag, and the length.
const PREFIX_BYTES: usize = 5;

/// A call of this method, such as `/inference.GRPCInferenceService/ModelStreamInfer`, with a single
/// message, which is all that its client sends.
pub fn call(method: &str, message: &[u8]) -> Request {
    let mut body = Vec::with_capacity(PREFIX_BYTES + message.len());
    body.push(0);
    // A request of 4 GiB would not fit into a plugin's memory.
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend_from_slice(message);
    Request {
        headers: vec![("content-type".to_owned(), "application/grpc".to_owned())],
        body,
        ..Request::post(method)
    }
}

/// The meaning of a call's last frame: the end of the answer, or a failure. `None` for a message.
pub fn ended(frame: &Frame<'_>) -> Option<Meaning> {
    if frame.name != Some(TRAILERS) {
        return None;
    }
    let fields = String::from_utf8_lossy(frame.data);
    let field = |wanted: &str| {
        let mut named = fields.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = named.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        Some(value.trim())
    };
    let code = field("grpc-status").and_then(|code| code.parse().ok());
    let message = field("grpc-message").map(decoded).unwrap_or_default();
    Some(match code {
        Some(0) => Meaning::End,
        Some(code) => Meaning::Failure(refusal(code, &message)),
        None => Meaning::Failure(Refusal {
            reason: Reason::Other,
            message: "the call ended without `grpc-status`".to_owned(),
        }),
    })
}

/// The error of a call that ended with this status, in gRPC's words (`doc/statuscodes.md`).
fn refusal(code: u32, message: &str) -> Refusal {
    let (name, reason) = match code {
        1 => ("CANCELLED", Reason::Other),
        3 => ("INVALID_ARGUMENT", Reason::Invalid),
        4 => ("DEADLINE_EXCEEDED", Reason::Overloaded),
        5 => ("NOT_FOUND", Reason::UnknownModel),
        7 => ("PERMISSION_DENIED", Reason::Unauthorised),
        8 => ("RESOURCE_EXHAUSTED", Reason::Overloaded),
        9 => ("FAILED_PRECONDITION", Reason::Invalid),
        11 => ("OUT_OF_RANGE", Reason::Invalid),
        12 => ("UNIMPLEMENTED", Reason::Invalid),
        13 => ("INTERNAL", Reason::Internal),
        14 => ("UNAVAILABLE", Reason::Unavailable),
        15 => ("DATA_LOSS", Reason::Internal),
        16 => ("UNAUTHENTICATED", Reason::Unauthorised),
        _ => ("UNKNOWN", Reason::Other),
    };
    let guess = explain::in_band(message.as_bytes());
    let reason = match (reason, guess.reason) {
        // The words say more than a code that has many uses.
        (Reason::Invalid | Reason::Internal | Reason::Other, words) if words != Reason::Other => {
            words
        }
        (reason, _) => reason,
    };
    let message = if message.is_empty() {
        format!("{name} ({code})")
    } else {
        format!("{name} ({code}): {}", guess.message)
    };
    Refusal { reason, message }
}

/// A status message, whose bytes outside of printable ASCII are percent-encoded.
fn decoded(value: &str) -> String {
    let bytes = value.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                text.push(escaped);
                at += 3;
            }
            None => {
                text.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailers(fields: &str) -> Meaning {
        let frame = Frame { name: Some("trailers"), data: fields.as_bytes() };
        ended(&frame).unwrap()
    }

    #[test]
    fn a_call_has_its_message_after_a_flag_and_its_length() {
        let call = call("/a.B/C", b"xyz");
        assert_eq!(call.body, b"\0\0\0\0\x03xyz");
        assert_eq!(call.path, "/a.B/C");
    }

    #[test]
    fn statuses_are_ends_or_failures() {
        assert!(matches!(trailers("grpc-status: 0\r\n"), Meaning::End));
        let failures = [
            (
                "grpc-status: 8\r\ngrpc-message: queue%20full\r\n",
                Reason::Overloaded,
                "RESOURCE_EXHAUSTED (8): queue full",
            ),
            (
                "grpc-status: 3\r\ngrpc-message: prompt is longer than max_model_len\r\n",
                Reason::TooLong,
                "INVALID_ARGUMENT (3): prompt is longer than max_model_len",
            ),
            ("Grpc-Status: 14\r\n", Reason::Unavailable, "UNAVAILABLE (14)"),
            ("grpc-status: 2\r\ngrpc-message: 100%\r\n", Reason::Other, "UNKNOWN (2): 100%"),
            ("x: y\r\n", Reason::Other, "the call ended without `grpc-status`"),
        ];
        for (fields, reason, message) in failures {
            let Meaning::Failure(refusal) = trailers(fields) else {
                panic!("{fields} is a failure")
            };
            assert_eq!((refusal.reason, &*refusal.message), (reason, message));
        }
    }
}
