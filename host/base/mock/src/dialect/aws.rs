//! Events as AWS streams them: messages of `application/vnd.amazon.eventstream`.
//!
//! A message has its length, the length of its headers, a CRC-32 of both, the headers, the payload,
//! and a CRC-32 of everything before; all numbers are big-endian.

/// The end of the names of events that report an error.
const EXCEPTION: &str = "Exception";

/// Appends an event: each line is a message, its name before the first space, then its payload.
pub(super) fn put(event: &[u8], out: &mut Vec<u8>) {
    for line in event.split(|byte| *byte == b'\n') {
        if let Some((name, payload)) = parts(line) {
            message(name, payload, out);
        }
    }
}

pub(super) fn is_event(event: &[u8]) -> bool {
    event.split(|byte| *byte == b'\n').all(|line| line.is_empty() || parts(line).is_some())
}

fn parts(line: &[u8]) -> Option<(&str, &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let name = str::from_utf8(&line[..space]).ok()?;
    let plain = (1..=100).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric());
    plain.then_some((name, &line[space + 1..]))
}

fn message(name: &str, payload: &[u8], out: &mut Vec<u8>) {
    let (kind, of) = if name.ends_with(EXCEPTION) {
        ("exception", ":exception-type")
    } else {
        ("event", ":event-type")
    };
    let mut headers = Vec::with_capacity(96);
    header(of, name, &mut headers);
    header(":content-type", "application/json", &mut headers);
    header(":message-type", kind, &mut headers);
    let start = out.len();
    let total = 16 + headers.len() + payload.len();
    // Answers are far shorter than four gibibytes.
    for length in [total, headers.len()] {
        out.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }
    out.extend(crc32fast::hash(&out[start..]).to_be_bytes());
    out.extend(headers);
    out.extend(payload);
    out.extend(crc32fast::hash(&out[start..]).to_be_bytes());
}

/// Appends a header whose value is text, which is of the type 7.
fn header(name: &str, value: &str, out: &mut Vec<u8>) {
    out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    out.extend(name.as_bytes());
    out.push(7);
    out.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_message_with_its_sums() {
        let mut out = Vec::new();
        put(b"messageStop {\"a\": 1}\n\nthrottlingException {}", &mut out);
        let mut rest = &out[..];
        for (headers, payload) in [
            (
                &b"\x0b:event-type\x07\x00\x0bmessageStop\x0d:content-type\x07\x00\x10application/json\x0d:message-type\x07\x00\x05event"[..],
                &b"{\"a\": 1}"[..],
            ),
            (
                b"\x0f:exception-type\x07\x00\x13throttlingException\x0d:content-type\x07\x00\x10application/json\x0d:message-type\x07\x00\x09exception",
                b"{}",
            ),
        ] {
            let length = 16 + headers.len() + payload.len();
            let (message, after) = rest.split_at(length);
            assert_eq!(message[..4], (length as u32).to_be_bytes());
            assert_eq!(message[4..8], (headers.len() as u32).to_be_bytes());
            assert_eq!(message[8..12], crc32fast::hash(&message[..8]).to_be_bytes());
            assert_eq!(message[12..length - 4], [headers, payload].concat());
            assert_eq!(message[length - 4..], crc32fast::hash(&message[..length - 4]).to_be_bytes());
            rest = after;
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_line_without_a_name_is_no_message() {
        assert!(is_event(b"a {}\nb {}\n"));
        for event in ["{}", " {}", "a", "a-b {}"] {
            assert!(!is_event(event.as_bytes()), "{event}");
        }
    }
}
