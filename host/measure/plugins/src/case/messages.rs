//! The file of a reply over a WebSocket: a line for each message of the server, with the kind of
//! message first.
//!
//! | line | message |
//! | --- | --- |
//! | `text WORDS` | a text message; everything after the blank |
//! | `binary BASE64` | a binary message |
//! | `close` | the close, without a code |
//! | `close CODE REASON` | the close, with a code and a reason, which may be left out |
//!
//! A text message with a line break cannot be written.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use model::frame::{FRAME_BYTES, Frames};
use model::units::Nanos;

/// Reads lines as the frames of the messages in a run.
pub fn frames(lines: &[u8]) -> Result<Frames, String> {
    let mut frames = Frames::default();
    for (number, line) in (1..).zip(lines.split(|byte| *byte == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let Some((name, data)) = message(line) else {
            return Err(format!(
                "line {number} is not a message; expected `text WORDS`, `binary BASE64`, `close` or `close CODE REASON`"
            ));
        };
        if data.len() > FRAME_BYTES {
            return Err(format!("line {number} is larger than a run allows"));
        }
        frames.push(Nanos::ZERO, Some(name.to_owned()), &data);
    }
    Ok(frames)
}

/// The name and the bytes of a message's frame.
fn message(line: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let line = str::from_utf8(line).ok()?;
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    match kind {
        "text" => Some(("text", rest.as_bytes().to_vec())),
        "binary" => Some(("binary", BASE64_STANDARD.decode(rest).ok()?)),
        "close" if rest.is_empty() => Some(("close", Vec::new())),
        "close" => {
            let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let code: u16 = code.parse().ok()?;
            Some(("close", [&code.to_be_bytes(), reason.as_bytes()].concat()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages() {
        let read =
            frames(b"text {\"a\": 1}\r\nbinary AQI=\n\ntext \nclose 1011 no worker").unwrap();
        let read: Vec<(&str, &[u8])> =
            (read.iter()).map(|frame| (frame.name.unwrap(), frame.data)).collect();
        let expected: [(&str, &[u8]); 4] = [
            ("text", b"{\"a\": 1}"),
            ("binary", &[1, 2]),
            ("text", b""),
            ("close", b"\x03\xf3no worker"),
        ];
        assert_eq!(read, expected);
        assert_eq!(frames(b"close\n").unwrap().last().unwrap().data, b"");
        for wrong in ["test a", "binary ?", "close soon", "\u{e9}"] {
            let refused = frames(format!("text a\n{wrong}\n").as_bytes()).unwrap_err();
            assert!(refused.starts_with("line 2 is not a message"), "{refused}");
        }
    }
}
