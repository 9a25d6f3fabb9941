//! The server's log of a run: the requests, the bytes written, and their times.
//!
//! It is read from the JSON lines that `runner mock --conformance` gives at `/CASE/truth`, so a log
//! can also be judged later, on another machine.

use serde::Deserialize;
use serde_json::Value;

use crate::stream::{Chunk, Event, Kind, events};

/// The requests of a run, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    pub requests: Vec<Request>,
}

/// A request and everything that was sent for it. Times are milliseconds of the log's clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The time when it had arrived as a whole.
    pub received: f64,
    /// The HTTP status of the reply; absent if there was none.
    pub status: Option<u16>,
    /// The body as JSON; null if it is not JSON.
    pub body: Value,
    /// The time of the first byte of the reply's body.
    pub first_byte: Option<f64>,
    pub events: Vec<Event>,
    /// Tokens that were sent, as the engine counts them.
    pub tokens: u64,
    /// True if the engine sent the whole reply.
    pub whole: bool,
    /// The time when the engine was done with it.
    pub ended: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Line {
    received: u64,
    status: Option<u16>,
    #[serde(default)]
    chunks: Vec<SentPiece>,
    ended: Option<u64>,
    end: String,
    asked: Option<String>,
    #[serde(default)]
    written: Vec<Piece>,
}

#[derive(Deserialize)]
struct SentPiece {
    at: u64,
    tokens: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Piece {
    Text(String),
    Hex(String),
}

impl Piece {
    fn bytes(self) -> Result<Vec<u8>, String> {
        match self {
            Piece::Text(text) => Ok(text.into_bytes()),
            Piece::Hex(digits) => {
                let bytes = model::unhex(&digits);
                bytes.ok_or_else(|| format!("`{digits}` is not hexadecimal"))
            }
        }
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl Log {
    /// Reads a log, a line of JSON for each request. Errors: the line that is no request, as text.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut requests = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |why: String| format!("line {} of the log: {why}", index + 1);
            let line: Line = serde_json::from_str(line).map_err(|why| wrong(why.to_string()))?;
            requests.push(Request::new(line).map_err(wrong)?);
        }
        requests.sort_by(|a: &Request, b| a.received.total_cmp(&b.received));
        Ok(Log { requests })
    }

    /// The most requests that were under way at the same time.
    pub fn peak(&self) -> usize {
        let mut edges: Vec<(f64, i32)> = Vec::new();
        for request in &self.requests {
            edges.push((request.received, 1));
            edges.push((request.end(), -1));
        }
        // An end at the time of a start comes first: the place was free.
        edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut under_way = 0_i32;
        let mut peak = 0;
        for (_, step) in edges {
            under_way += step;
            peak = peak.max(under_way);
        }
        usize::try_from(peak).unwrap_or(0)
    }
}

impl Request {
    fn new(line: Line) -> Result<Self, String> {
        let written: Vec<Vec<u8>> =
            (line.written.into_iter()).map(Piece::bytes).collect::<Result<_, _>>()?;
        if written.len() != line.chunks.len() {
            return Err("expected the bytes of every write; is it a log with bytes?".into());
        }
        let received = millis(line.received);
        let times = line.chunks.iter().map(|sent| millis(sent.at));
        let writes: Vec<(f64, Vec<u8>)> = times.zip(written).collect();
        let last = writes.last().map(|(at, _)| *at);
        let body = line.asked.as_deref().map(serde_json::from_str);
        Ok(Request {
            received,
            status: line.status,
            body: body.and_then(Result::ok).unwrap_or_default(),
            first_byte: writes.first().map(|(at, _)| *at),
            events: events(&writes),
            tokens: line.chunks.iter().map(|sent| sent.tokens).sum(),
            whole: line.end == "whole",
            ended: line.ended.map(millis).or(last).unwrap_or(received),
        })
    }

    /// The end of the reply: its end marker, or where there is none when the engine was done with
    /// it. A client goes on at the marker, before the engine has closed the reply.
    pub fn end(&self) -> f64 {
        let mut backwards = self.events.iter().rev();
        let marker = backwards.find(|event| event.kind == Kind::Done);
        marker.map_or(self.ended, |event| event.at)
    }

    /// The chunks, each with its time.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = (f64, &Chunk)> {
        self.events.iter().filter_map(|event| match &event.kind {
            Kind::Chunk(chunk) => Some((event.at, chunk)),
            _ => None,
        })
    }

    /// The chunks that bring text, each with its time.
    pub fn texts(&self) -> impl DoubleEndedIterator<Item = (f64, &Chunk)> {
        self.chunks().filter(|(_, chunk)| chunk.has_text())
    }

    pub fn has(&self, kind: &Kind) -> bool {
        self.events.iter().any(|event| event.kind == *kind)
    }

    /// The text of the prompt: a completion's prompt, or all messages of a chat.
    pub fn prompt(&self) -> String {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts
                .iter()
                .filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()))
                .collect(),
            _ => String::new(),
        };
        if let Some(prompt) = self.body.get("prompt") {
            return text(prompt);
        }
        let messages = self.body.get("messages").and_then(Value::as_array);
        let messages = messages.into_iter().flatten();
        let contents = messages.filter_map(|message| message.get("content"));
        contents.map(text).collect::<Vec<_>>().join("\n")
    }

    /// The ids of the prompt's tokens, if it was sent as tokens.
    pub fn prompt_ids(&self) -> Option<usize> {
        let ids = self.body.get("prompt")?.as_array()?;
        ids.iter().all(Value::is_number).then_some(ids.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read() {
        let text = concat!(
            r#"{"number":1,"path":"/v1/chat/completions","status":200,"received":2000000,"#,
            r#""chunks":[{"at":3000000,"tokens":0,"bytes":9},{"at":5000000,"tokens":2,"bytes":9}],"#,
            r#""ended":6000000,"end":"whole","asked":"{\"messages\":[{\"content\":\"a\"},"#,
            r#"{\"content\":[{\"text\":\"b\"}]}]}","written":[{"hex":"3ac3"},{"text":"\n\n"}]}"#,
            "\n\n",
            r#"{"number":0,"path":"/v1/completions","status":null,"received":1000000,"chunks":[],"#,
            r#""ended":4000000,"end":"refused","asked":"{\"prompt\":[5,6]}"}"#,
        );
        let log = Log::read(text).unwrap();
        let [first, second] = &log.requests[..] else { panic!() };
        assert_eq!((first.received, first.prompt_ids()), (1.0, Some(2)));
        assert_eq!((second.first_byte, second.tokens), (Some(3.0), 2));
        assert_eq!((second.prompt().as_str(), second.whole), ("a\nb", true));
        assert_eq!(log.peak(), 2);
        let error = Log::read("{}").unwrap_err();
        assert!(error.contains("line 1"), "{error}");
        let torn = text.replace(r#"{"hex":"3ac3"},"#, "");
        assert!(Log::read(&torn).unwrap_err().contains("every write"));
    }
}
