//! Messages of `application/vnd.amazon.eventstream`, the format in which AWS streams.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | 4 | length of the whole message, these bytes included |
//! | 4 | length of the headers |
//! | 4 | CRC-32 of the eight bytes before |
//! | … | headers: length of the name (1 byte), name, type of the value (1 byte), value |
//! | … | payload |
//! | 4 | CRC-32 of everything before |
//!
//! All numbers are big-endian. The host has taken the first four bytes off, to find where the
//! message ends.

use runner_plugin::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    headers: &'a [u8],
    pub payload: &'a [u8],
}

/// Headers' values that are not texts, by type, with their numbers of bytes: true, false, a byte,
/// numbers of two, four and eight bytes, an instant, and a UUID.
const WIDTHS: [(u8, usize); 8] = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)];

/// The types of bytes and of texts, which have their length in two bytes before them.
const BYTES: u8 = 6;
const TEXT: u8 = 7;

impl<'a> Message<'a> {
    pub fn read(rest: &'a [u8]) -> Result<Self, Error> {
        let damaged = |why: String| {
            Error::Protocol(format!("a message of the event stream is damaged: {why}"))
        };
        let length = rest.len() as u64 + 4;
        let short = || damaged(format!("it has only {length} bytes"));
        let total = u32::try_from(length).map_err(|_| short())?.to_be_bytes();
        let (checked, sum) = rest.split_last_chunk::<4>().ok_or_else(short)?;
        let (prelude, content) = checked.split_first_chunk::<8>().ok_or_else(short)?;
        let [a, b, c, d, prelude_sum @ ..] = *prelude;
        check(&[&total, &[a, b, c, d]], prelude_sum, "prelude").map_err(damaged)?;
        check(&[&total, checked], *sum, "message").map_err(damaged)?;
        let headers = u32::from_be_bytes([a, b, c, d]) as usize;
        let (headers, payload) = content.split_at_checked(headers).ok_or_else(|| {
            damaged(format!("its headers have {headers} bytes, and the message {length}"))
        })?;
        Ok(Message { headers, payload })
    }

    pub fn header(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.headers;
        loop {
            let (length, after) = rest.split_first()?;
            let (own, after) = after.split_at_checked(usize::from(*length))?;
            let (kind, after) = after.split_first()?;
            let width = WIDTHS.iter().find(|(of, _)| of == kind);
            let (value, after) = match (*kind, width) {
                (BYTES | TEXT, _) => {
                    let (length, after) = after.split_first_chunk::<2>()?;
                    after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?
                }
                (_, Some((_, width))) => after.split_at_checked(*width)?,
                (_, None) => return None,
            };
            if own == name.as_bytes() && *kind == TEXT {
                return str::from_utf8(value).ok();
            }
            rest = after;
        }
    }
}

/// Compares a checksum that was sent with the checksum of the bytes.
fn check(parts: &[&[u8]], sent: [u8; 4], of: &str) -> Result<(), String> {
    let mut sum = crc32fast::Hasher::new();
    for part in parts {
        sum.update(part);
    }
    let (found, sent) = (sum.finalize(), u32::from_be_bytes(sent));
    if found == sent {
        return Ok(());
    }
    Err(format!(
        "its {of} has the CRC {found:08x}, expected {sent:08x}; look for a proxy that changes replies"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message without payload and headers, from the AWS SDKs' tests (`empty_message`).
    const EMPTY: [u8; 16] = [
        0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8,
        0xff,
    ];

    /// The message of headers and a payload.
    pub fn written(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = (16 + headers.len() + payload.len()) as u32;
        let mut message = total.to_be_bytes().to_vec();
        message.extend((headers.len() as u32).to_be_bytes());
        message.extend(crc32fast::hash(&message).to_be_bytes());
        message.extend([headers, payload].concat());
        message.extend(crc32fast::hash(&message).to_be_bytes());
        message
    }

    #[test]
    fn an_empty_message_is_read() {
        let message = Message::read(&EMPTY[4..]).unwrap();
        assert_eq!((message.headers, message.payload), (&[][..], &[][..]));
        assert_eq!(message.header(":event-type"), None);
        assert_eq!(written(b"", b""), EMPTY);
    }

    #[test]
    fn headers_of_all_types_are_passed_over() {
        let mut headers = Vec::new();
        for (kind, width) in WIDTHS {
            headers.extend([1, b'a', kind]);
            headers.resize(headers.len() + width, 0xff);
        }
        headers.extend(b"\x01a\x06\x00\x02\xff\xff\x05:type\x07\x00\x04text");
        let message = written(&headers, b"{}");
        let message = Message::read(&message[4..]).unwrap();
        assert_eq!(message.header(":type"), Some("text"));
        assert_eq!(message.header("a"), None);
        assert_eq!(message.payload, b"{}");
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let message = written(b"\x02:x\x07\x00\x01y", b"{\"text\":\"Hi\"}");
        assert!(Message::read(&message[4..]).is_ok());
        for bit in 32..message.len() * 8 {
            let mut damaged = message.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Message::read(&damaged[4..]), Err(Error::Protocol(_))), "bit {bit}");
        }
        for cut in 4..message.len() {
            assert!(Message::read(&message[4..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn headers_that_reach_beyond_the_message_are_refused() {
        let mut message = 16_u32.to_be_bytes().to_vec();
        message.extend(9_u32.to_be_bytes());
        message.extend(crc32fast::hash(&message).to_be_bytes());
        message.extend(crc32fast::hash(&message).to_be_bytes());
        let Err(Error::Protocol(error)) = Message::read(&message[4..]) else {
            panic!("it must be refused");
        };
        assert!(error.contains("headers have 9 bytes"), "{error}");
        let broken = written(b"\x09:x", b"");
        assert_eq!(Message::read(&broken[4..]).unwrap().header(":x"), None);
    }
}
