//! A reply's body cut into frames, all at once. The host does it as the bytes come in; this is enough to
//! read a case's file by.

use crate::{Frame, Framing};

/// Cuts a body.
pub fn cut(framing: Framing, body: &[u8]) -> Vec<Cut> {
    match framing {
        Framing::EventStream => events(body),
        Framing::Lines => lines(body)
            .filter(|line| !line.is_empty())
            .map(|line| frame(None, line.to_vec()))
            .collect(),
        Framing::Whole | Framing::LengthPrefixed(_) | Framing::Raw => {
            vec![frame(None, body.to_vec())]
        }
    }
}

/// A frame cut from a body.
pub struct Cut {
    name: Option<String>,
    data: Vec<u8>,
}

impl Cut {
    /// As a backend is given it.
    pub fn frame(&self) -> Frame<'_> {
        Frame {
            name: self.name.as_deref(),
            data: &self.data,
        }
    }
}

fn frame(name: Option<String>, data: Vec<u8>) -> Cut {
    Cut { name, data }
}

/// Lines end with LF, CRLF or CR.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let line = &rest[..end.unwrap_or(rest.len())];
        let after = &rest[line.len()..];
        rest = match after {
            [b'\r', b'\n', after @ ..] | [_, after @ ..] => after,
            [] => after,
        };
        Some(line)
    })
}

/// One frame an event: `data` fields joined by LF, comments left out. The last may lack its empty line.
fn events(body: &[u8]) -> Vec<Cut> {
    let mut frames = Vec::new();
    let mut name = None;
    let mut data: Option<Vec<u8>> = None;
    for line in lines(body).chain([&b""[..]]) {
        if line.is_empty() {
            if let Some(data) = data.take() {
                frames.push(frame(name.take(), data));
            }
            name = None;
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => name = Some(String::from_utf8_lossy(value).into_owned()),
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            _ => {}
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_cut_at_empty_lines_of_every_kind() {
        let body = b": ping\n\ndata: a\r\ndata:b\r\n\r\nevent: error\rdata:  c\r\rid: 1\n\ndata: d";
        let cut = cut(Framing::EventStream, body);
        let shown: Vec<_> = cut
            .iter()
            .map(|frame| (frame.name.as_deref(), String::from_utf8_lossy(&frame.data)))
            .collect();
        assert_eq!(
            shown,
            [
                (None, "a\nb".into()),
                (Some("error"), " c".into()),
                (None, "d".into())
            ]
        );
    }
}
