//! The shape of a reply: pure, from its frames and the backend's meanings.

use std::collections::BTreeMap;

use serde_json::Value;

use model::frame::Frames;
use plugins::backend::Meaning;
use runs::probe::Shape;

/// The shape of a reply whose frames meant this.
pub(super) fn shape(streamed: bool, frames: &Frames, meanings: &[(usize, Meaning)]) -> Shape {
    let mut shape =
        Shape { streamed, frames: frames.len() as u64, end_marker: !streamed, ..Shape::default() };
    let mut text = String::new();
    let mut stated = Some(0_u64);
    let mut last = None;
    for (frame, meaning) in meanings {
        match meaning {
            Meaning::Text(piece) | Meaning::Reasoning(piece) | Meaning::ToolCall(piece) => {
                stated = stated.zip(piece.tokens).map(|(sum, tokens)| sum + u64::from(tokens));
                if piece.text.is_empty() {
                    continue;
                }
                let is_reasoning = matches!(meaning, Meaning::Reasoning(_));
                // A frame may hold several pieces.
                if last.replace(*frame) != Some(*frame) {
                    shape.opens_empty |= shape.chunks == 0 && *frame > 0;
                    shape.chunks += 1;
                    shape.reasoning_chunks += u64::from(is_reasoning);
                }
                if piece.choice == 0 && matches!(meaning, Meaning::Text(_)) {
                    text.push_str(&piece.text);
                }
            }
            Meaning::Usage(usage) => {
                shape.usage = Some((*usage).into());
            }
            Meaning::Finish(word) => shape.finish = Some(word.clone()),
            Meaning::End => shape.end_marker = true,
            _ => {}
        }
    }
    let stated = stated.filter(|_| streamed && shape.chunks > 0);
    shape.states_chunk_tokens = stated.is_some();
    let of_usage = shape.usage.and_then(|usage| usage.output_tokens).map(u64::from);
    shape.tokens = of_usage.or(stated).filter(|_| shape.chunks > 0);
    shape.tokens_per_chunk = shape.tokens.map(|tokens| tokens as f64 / shape.chunks as f64);
    shape.cumulative = streamed && is_cumulative(frames, &text);
    shape
}

/// True if some field of the frames holds all of the text so far: it grows from frame to frame, up
/// to the whole text.
fn is_cumulative(frames: &Frames, text: &str) -> bool {
    let mut fields: BTreeMap<String, (String, u32)> = BTreeMap::new();
    for frame in frames.iter() {
        let Ok(value) = serde_json::from_slice::<Value>(frame.data) else { continue };
        let mut found = Vec::new();
        texts(&value, &mut String::new(), &mut found);
        for (path, now) in found {
            let (before, grown) = fields.entry(path).or_default();
            *grown = match now.strip_prefix(before.as_str()) {
                Some("") => *grown,
                Some(_) => *grown + 1,
                None => 0,
            };
            *before = now.to_owned();
        }
    }
    // Two frames that hold the text so far grow twice: from nothing to the first, and on to the
    // second.
    (fields.values()).any(|(last, grown)| *grown > 1 && last.trim() == text.trim())
}

fn texts<'v>(value: &'v Value, path: &mut String, found: &mut Vec<(String, &'v str)>) {
    let length = path.len();
    match value {
        Value::String(text) => found.push((path.clone(), text)),
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                path.push_str(&format!("/{number}"));
                texts(item, path, found);
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                path.push('/');
                path.push_str(name);
                texts(field, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;
    use plugins::backend::{self, Output};

    fn frames(data: &[&str]) -> Frames {
        let mut frames = Frames::default();
        for data in data {
            frames.push(Nanos::ZERO, None, data.as_bytes());
        }
        frames
    }

    fn piece(text: &str, tokens: Option<u32>) -> Output {
        Output { text: text.to_owned(), tokens, choice: 0 }
    }

    fn usage(output: u32) -> Meaning {
        Meaning::Usage(backend::Usage {
            input_tokens: Some(5),
            output_tokens: Some(output),
            ..backend::Usage::default()
        })
    }

    #[test]
    fn shape_of_a_chat_stream() {
        let frames = frames(&[
            r#"{"delta":{"role":"assistant","content":""}}"#,
            r#"{"delta":{"reasoning":"hm"}}"#,
            r#"{"delta":{"content":"one"}}"#,
            r#"{"delta":{"content":" two"}}"#,
            r#"{"usage":{}}"#,
            "[DONE]",
        ]);
        let meanings = [
            (0, Meaning::Opened),
            (1, Meaning::Reasoning(piece("hm", None))),
            (2, Meaning::Text(piece("one", None))),
            (3, Meaning::Text(piece(" two", None))),
            (3, Meaning::Finish("length".into())),
            (4, usage(6)),
            (5, Meaning::End),
        ];
        let shape = shape(true, &frames, &meanings);
        assert_eq!((shape.frames, shape.chunks, shape.reasoning_chunks), (6, 3, 1));
        assert_eq!((shape.tokens, shape.tokens_per_chunk), (Some(6), Some(2.0)));
        assert!(shape.opens_empty && shape.end_marker && !shape.cumulative);
        assert!(!shape.states_chunk_tokens);
        assert_eq!(shape.finish.as_deref(), Some("length"));
    }

    #[test]
    fn repeated_text_in_chunks_is_found() {
        let texts = ["a", "a b", "a b c"];
        let data = texts.map(|text| format!(r#"{{"text":"{text}","id":"{}"}}"#, "x"));
        let frames = frames(&data.each_ref().map(String::as_str));
        let meanings = [
            (0, Meaning::Text(piece("a", Some(1)))),
            (1, Meaning::Text(piece(" b", Some(1)))),
            (2, Meaning::Text(piece(" c", Some(1)))),
        ];
        let shape = shape(true, &frames, &meanings);
        assert!(shape.cumulative && shape.states_chunk_tokens && !shape.end_marker);
        assert_eq!((shape.tokens, shape.usage), (Some(3), None));
        assert!(!shape.opens_empty);
    }

    /// Pieces that happen to begin alike are not the text so far.
    #[test]
    fn similar_pieces_are_not_a_repetition() {
        let frames = frames(&[r#"{"text":"a"}"#, r#"{"text":"ab"}"#, r#"{"text":"abc"}"#]);
        let meanings = ["a", "ab", "abc"].map(|text| Meaning::Text(piece(text, None)));
        let meanings: Vec<_> = meanings.into_iter().enumerate().collect();
        assert!(!shape(true, &frames, &meanings).cumulative);
    }

    #[test]
    fn shape_of_a_document_and_of_an_empty_stream() {
        let one = frames(&[r#"{"text":"a b c"}"#]);
        let meanings = [(0, Meaning::Text(piece("a b c", None))), (0, usage(3))];
        let whole = shape(false, &one, &meanings);
        assert!(whole.end_marker && !whole.streamed && !whole.cumulative);
        assert_eq!((whole.chunks, whole.tokens_per_chunk), (1, Some(3.0)));

        let nothing = shape(true, &frames(&["[DONE]"]), &[(0, Meaning::End), (0, usage(4))]);
        assert_eq!((nothing.chunks, nothing.tokens, nothing.tokens_per_chunk), (0, None, None));
    }
}
