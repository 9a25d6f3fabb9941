//! gRPC over HTTP/2 (`doc/PROTOCOL-HTTP2.md` of gRPC), a server's side: messages, and the end of a
//! call. `triton` has the service.

use hyper::header::{CONTENT_TYPE as CONTENT_TYPE_FIELD, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Version};
use prost::Message;

use super::ask::types::Refusal;

pub(super) const CONTENT_TYPE: &str = "application/grpc";
pub(super) const OK: u32 = 0;
pub(super) const UNIMPLEMENTED: u32 = 12;

/// Bytes before each message: a flag that says whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

pub(super) fn is_call<B>(request: &Request<B>) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE_FIELD);
    request.method() == Method::POST
        && request.version() == Version::HTTP_2
        && content_type.is_some_and(|own| own.as_bytes().starts_with(CONTENT_TYPE.as_bytes()))
}

fn prefix(body: &[u8]) -> Option<(u8, usize)> {
    let (flag, rest) = body.split_first()?;
    let length = u32::from_be_bytes(*rest.first_chunk()?);
    Some((*flag, usize::try_from(length).ok()?))
}

/// True if a body has its first message whole.
pub(super) fn has_message(body: &[u8]) -> bool {
    prefix(body).is_some_and(|(_, length)| body.len() - PREFIX_BYTES >= length)
}

pub(super) fn message(body: &[u8]) -> Result<&[u8], Refusal> {
    let none = || Refusal::bad("the call has no whole message", None);
    let (flag, length) = prefix(body).ok_or_else(none)?;
    if flag != 0 {
        let what = "compressed messages are not understood";
        return Err(Refusal::bad(what, None));
    }
    body[PREFIX_BYTES..].get(..length).ok_or_else(none)
}

pub(super) fn put(message: &impl Message, out: &mut Vec<u8>) {
    out.push(0);
    // No message here comes near 4 GiB.
    let length = u32::try_from(message.encoded_len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes());
    message.encode_raw(out);
}

/// The fields that end a call.
pub(super) fn status(code: u32, message: &str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(HeaderName::from_static("grpc-status"), code.into());
    if !message.is_empty()
        && let Ok(message) = HeaderValue::try_from(encoded(message))
    {
        fields.insert(HeaderName::from_static("grpc-message"), message);
    }
    fields
}

/// A message of a status: bytes outside of printable ASCII, and percent signs, are percent-encoded.
fn encoded(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' | ..=0x1f | 0x7f.. => text.push_str(&format!("%{byte:02X}")),
            plain => text.push(plain.into()),
        }
    }
    text
}

/// The status of gRPC for this status of HTTP (`google/rpc/code.proto`).
pub(super) fn code(status: u16) -> u32 {
    match status {
        400 => 3,
        401 => 16,
        403 => 7,
        404 => 5,
        409 => 10,
        429 => 8,
        499 => 1,
        500 => 13,
        501 => UNIMPLEMENTED,
        503 => 14,
        504 => 4,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_once_it_is_whole() {
        let body = b"\0\0\0\0\x02hi\0\0\0";
        for end in 0..7 {
            assert!(!has_message(&body[..end]), "{end}");
            assert!(message(&body[..end]).is_err(), "{end}");
        }
        for end in 7..=body.len() {
            assert!(has_message(&body[..end]), "{end}");
            assert_eq!(message(&body[..end]), Ok(&b"hi"[..]), "{end}");
        }
        assert!(message(b"\x01\0\0\0\0").is_err(), "compressed");
    }

    #[test]
    fn messages_of_a_status_are_ascii() {
        let fields = status(14, "größer als 100%\n");
        assert_eq!(fields["grpc-status"], "14");
        assert_eq!(fields["grpc-message"], "gr%C3%B6%C3%9Fer als 100%25%0A");
    }
}
