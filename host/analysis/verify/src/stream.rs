//! The meaning of a stream of bytes: the events of a reply, each with the time of the bytes that
//! completed it.
//!
//! It shares no code with the runner's reader of replies, because it is part of the truth that the
//! runner is compared with. It follows the standard of server-sent events: lines end in LF, CR or
//! CR LF and nowhere else, and an empty line ends an event.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The time of its last byte, in milliseconds of the log's clock.
    pub at: f64,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// JSON with choices or usage.
    Chunk(Chunk),
    Error,
    /// The end marker.
    Done,
    /// Data that is no JSON.
    Other,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    pub answer: String,
    pub reasoning: String,
    /// Names and arguments of tool calls.
    pub tool: String,
    /// Output tokens that its usage states.
    pub usage: Option<u64>,
    /// Prompt tokens that its usage states.
    pub prompt_usage: Option<u64>,
    /// True if a choice ends.
    pub finish: bool,
    pub has_choice: bool,
}

impl Chunk {
    /// True if it brings text of any kind.
    pub fn has_text(&self) -> bool {
        !(self.answer.is_empty() && self.reasoning.is_empty() && self.tool.is_empty())
    }

    fn read(value: &Value) -> Self {
        let mut chunk = Chunk::default();
        let counts = value.get("usage").filter(|usage| usage.is_object());
        let count = |name: &str| counts.and_then(|usage| usage.get(name)?.as_u64());
        chunk.usage = count("completion_tokens");
        chunk.prompt_usage = count("prompt_tokens");
        let choices = value.get("choices").and_then(Value::as_array);
        for choice in choices.into_iter().flatten() {
            chunk.has_choice = true;
            let delta = choice.get("delta").or_else(|| choice.get("message"));
            let text = |name: &str| delta.and_then(|delta| delta.get(name)?.as_str());
            chunk.answer += text("content").unwrap_or_default();
            chunk.answer += choice.get("text").and_then(Value::as_str).unwrap_or_default();
            let reasoning = text("reasoning").or_else(|| text("reasoning_content"));
            chunk.reasoning += reasoning.unwrap_or_default();
            let calls = delta.and_then(|delta| delta.get("tool_calls")?.as_array());
            for call in calls.into_iter().flatten() {
                for part in ["/function/name", "/function/arguments"] {
                    chunk.tool += call.pointer(part).and_then(Value::as_str).unwrap_or_default();
                }
            }
            chunk.finish |= choice.get("finish_reason").is_some_and(|why| !why.is_null());
        }
        chunk
    }
}

/// The events of these writes, each with its time.
pub fn events(writes: &[(f64, Vec<u8>)]) -> Vec<Event> {
    let mut reader = Reader::default();
    for (at, bytes) in writes {
        for byte in bytes {
            reader.take(*at, *byte);
        }
    }
    // A client that reads line by line has seen the last data even where no empty line follows.
    if let Some((at, _)) = writes.last() {
        reader.end_of_line(*at);
        reader.end_of_event(*at);
    }
    reader.events
}

#[derive(Default)]
struct Reader {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    after_return: bool,
    events: Vec<Event>,
}

impl Reader {
    fn take(&mut self, at: f64, byte: u8) {
        let is_second = std::mem::take(&mut self.after_return) && byte == b'\n';
        match byte {
            b'\n' if is_second => {}
            b'\n' | b'\r' => {
                self.after_return = byte == b'\r';
                if self.line.is_empty() { self.end_of_event(at) } else { self.end_of_line(at) }
            }
            byte => self.line.push(byte),
        }
    }

    fn end_of_line(&mut self, _: f64) {
        let line = std::mem::take(&mut self.line);
        // A line that begins with a colon is a comment.
        let Some(data) = line.strip_prefix(b"data:") else { return };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        match &mut self.data {
            Some(lines) => {
                lines.push(b'\n');
                lines.extend_from_slice(data);
            }
            None => self.data = Some(data.to_vec()),
        }
    }

    fn end_of_event(&mut self, at: f64) {
        let Some(data) = self.data.take() else { return };
        let kind = match serde_json::from_slice::<Value>(&data) {
            _ if data == b"[DONE]" => Kind::Done,
            Ok(value) if value.get("error").is_some_and(|error| !error.is_null()) => Kind::Error,
            Ok(value) if value.is_object() => Kind::Chunk(Chunk::read(&value)),
            _ => Kind::Other,
        };
        self.events.push(Event { at, kind });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(at: f64, text: &str) -> (f64, Vec<u8>) {
        (at, text.as_bytes().to_vec())
    }

    fn content(text: &str) -> String {
        format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#)
    }

    #[test]
    fn an_event_has_the_time_of_its_last_byte() {
        for end in ["\n", "\r\n", "\r"] {
            let text =
                format!(": hello{end}{end}data: {}{end}{end}data: [DONE]{end}{end}", content("é"));
            for cut in 0..text.len() {
                let (first, second) = text.as_bytes().split_at(cut);
                let events = events(&[(1.0, first.to_vec()), (2.0, second.to_vec())]);
                assert_eq!(events.len(), 2, "{cut}: {events:?}");
                let Kind::Chunk(chunk) = &events[0].kind else { panic!() };
                assert_eq!(chunk.answer, "é");
                assert_eq!(events[1].kind, Kind::Done);
                // With CR LF the CR ends the line, so its LF may come later.
                let complete = cut > text.len() - end.len();
                assert_eq!(events[1].at >= 2.0, !complete, "{cut}");
            }
        }
    }

    #[test]
    fn other_separators_end_no_line() {
        let text = format!("data: {}\n\n", content("a\u{2028}b\u{85}c"));
        let events = events(&[write(3.0, &text)]);
        let Kind::Chunk(chunk) = &events[0].kind else { panic!() };
        assert_eq!((chunk.answer.as_str(), events.len()), ("a\u{2028}b\u{85}c", 1));
    }

    #[test]
    fn reads_the_parts_of_a_chunk() {
        let text = r#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}

data: {"choices":[{"delta":{"reasoning_content":"hm"}},
data: {"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},
data: "finish_reason":"stop"}],"usage":{"completion_tokens":3,"prompt_tokens":2}}

data: {"error":{"message":"no"}}

data: nothing

data: {"choices":[],"usage":null}"#;
        let events = events(&[write(1.0, text)]);
        let chunk = |index: usize| match &events[index].kind {
            Kind::Chunk(chunk) => chunk.clone(),
            other => panic!("{other:?}"),
        };
        assert!(!chunk(0).has_text() && !chunk(0).finish);
        let second = chunk(1);
        assert_eq!((second.reasoning.as_str(), second.tool.as_str()), ("hm", "f{}"));
        assert_eq!((second.usage, second.prompt_usage, second.finish), (Some(3), Some(2), true));
        assert_eq!(events[2].kind, Kind::Error);
        assert_eq!(events[3].kind, Kind::Other);
        assert_eq!(chunk(4), Chunk::default());
    }
}
