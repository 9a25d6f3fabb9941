//! The interface of all formats of traces: a row as one request, the detection of a file's format,
//! and a row's blocks, which follow from its hash ids. Leaves the choice of rows to `index`, and
//! their samples to `replay`.

mod bailian;
mod csv;
mod messages;
mod mooncake;
mod time;
mod timed;
mod tracelab;
pub(crate) mod weka;

use runner_plugin::{Error, Message};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::config::{Config, Labels, Name, WrongBlocks, invalid};
use crate::content::{self, Kind, Run, stream};

/// The most tokens that a row may ask for, of prompt and of answer.
pub(crate) const MOST_TOKENS: u64 = 4 << 20;

/// One request of a trace.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Time when it arrived, in nanoseconds of the trace's clock.
    pub(crate) time: Option<i64>,
    /// Duration of the reply, in nanoseconds.
    pub(crate) took: Option<i64>,
    /// Time that the client waited before it, in nanoseconds, if the trace says so itself.
    pub(crate) wait: Option<i64>,
    /// The session's name.
    pub(crate) session: Option<String>,
    /// Its own name and that of the request that it follows, in traces that link requests.
    pub(crate) link: Option<Link>,
    pub(crate) class: Option<String>,
    pub(crate) output: Option<u32>,
    pub(crate) content: Content,
    /// True if it holds only the messages that are new since the request before it in its session.
    pub(crate) delta: bool,
    /// The hash ids of its whole blocks, where it does not say itself whether it holds only what is
    /// new.
    pub(crate) ids: Vec<u64>,
    /// Further fields of the request.
    pub(crate) parameters: Map<String, Value>,
    /// The change that made the row usable.
    pub(crate) repaired: Option<&'static str>,
    /// The reason why the row is no request.
    pub(crate) unusable: Option<&'static str>,
    /// True if it had pictures, of which the trace says only the number.
    pub(crate) pictures: bool,
}

/// A request's place in a tree of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its name.
    pub(crate) name: i64,
    /// The name of the one that it follows.
    pub(crate) parent: Option<i64>,
}

/// A prompt.
#[derive(Debug)]
pub(crate) enum Content {
    /// Made up.
    Runs(Vec<Run>),
    /// Made up: the beginning of the session's prompt before it, and then new tokens.
    Split {
        /// Tokens from the prompt before.
        prefix: u32,
        /// New ones.
        fresh: u32,
    },
    /// Made up: as many tokens, which continue those of the session's shorter prompts, or are the
    /// row's own where it has no session.
    Tokens(u32),
    /// As recorded.
    Text(String),
    /// As recorded.
    Messages(Vec<Message>),
}

impl Default for Content {
    fn default() -> Self {
        Content::Tokens(1)
    }
}

impl Content {
    /// Tokens of a made-up prompt.
    pub(crate) fn tokens(&self) -> Option<u32> {
        match self {
            Content::Runs(runs) => Some(content::length(runs)),
            Content::Split { prefix, fresh } => Some(prefix.saturating_add(*fresh)),
            Content::Tokens(tokens) => Some(*tokens),
            Content::Text(_) | Content::Messages(_) => None,
        }
    }
}

/// The way in which a file is read.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) name: Name,
    /// Tokens of a block.
    block: u32,
    /// Seconds of one unit of time.
    unit: f64,
    lenient: bool,
    labels: Labels,
    /// The columns of a CSV file, in lower case.
    columns: Vec<String>,
    /// True if the first row has a `session_id`.
    named: bool,
}

/// Names, where to find them, and a row of each.
const EXAMPLES: [(&str, &str); 7] = [
    (
        "mooncake",
        r#"{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}"#,
    ),
    (
        "bailian",
        r#"{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.1, "input_length": 521, "output_length": 132, "type": "text", "turn": 1, "hash_ids": [1089]}"#,
    ),
    (
        "weka",
        r#"{"id": "a", "block_size": 64, "hash_id_scope": "local", "requests": [{"t": 0.0, "type": "n", "in": 130, "out": 9, "hash_ids": [1, 2]}]}"#,
    ),
    (
        "tracelab",
        r#"{"session_id": "a", "round_index": 0, "prefix_tokens": 0, "newly_append_tokens": 900, "output_tokens": 40, "timing_events": []}"#,
    ),
    (
        "burstgpt",
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type",
    ),
    ("azure", "TIMESTAMP,ContextTokens,GeneratedTokens"),
    (
        "vllm-timed",
        r#"{"timestamp": 0.5, "input_length": 40, "output_length": 9, "hash_ids": [7, 8, 9]} (only by `format`)"#,
    ),
];

impl Format {
    /// The format of a file with this first line.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the line is of no format, or not of the configured one.
    pub(crate) fn of(first: &[u8], config: &Config) -> Result<Self, Error> {
        let found = match found(first) {
            Ok(found) => found,
            Err(what) => return Err(Error::InvalidInput(what)),
        };
        let name = match (config.format, found) {
            (Some(name), _) => name,
            (None, Some(found)) => found,
            (None, None) => return Err(Error::InvalidInput(unknown(first))),
        };
        let block = match name {
            Name::Mooncake => Some(512),
            Name::Bailian | Name::VllmTimed => Some(16),
            Name::Weka | Name::Tracelab | Name::Burstgpt | Name::Azure => None,
        };
        if config.block_size.is_some() && block.is_none() {
            return Err(invalid(format!(
                "`block-size` has no meaning for the format {}: leave it out",
                label(name)
            )));
        }
        let csv = matches!(name, Name::Burstgpt | Name::Azure);
        let columns = if csv {
            csv::header(first, name).map_err(Error::InvalidInput)?
        } else {
            Vec::new()
        };
        Ok(Self {
            name,
            block: config.block_size.or(block).unwrap_or(1),
            unit: config
                .time_unit
                .unwrap_or(if name == Name::Mooncake { 0.001 } else { 1.0 }),
            lenient: config.on_wrong_blocks == WrongBlocks::Repair,
            labels: config.labels.clone().unwrap_or_default(),
            columns,
            named: keys(first).is_some_and(|keys| keys.contains_key("session_id")),
        })
    }

    /// True if the first line names columns.
    pub(crate) fn has_header(&self) -> bool {
        !self.columns.is_empty()
    }

    /// True if sessions are the usual way to replay it.
    pub(crate) fn in_sessions(&self) -> bool {
        match self.name {
            Name::Weka | Name::Tracelab => true,
            Name::Mooncake => self.named,
            _ => false,
        }
    }

    /// True if a session's rows are in the order of their times, rather than in that of the file.
    pub(crate) fn by_time(&self) -> bool {
        self.name != Name::Mooncake
    }

    /// A line as a request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn row(&self, line: &[u8], number: u32) -> Result<Row, String> {
        match self.name {
            Name::Mooncake => mooncake::row(self, line, number),
            Name::Bailian => bailian::row(self, line, number),
            Name::Tracelab => tracelab::row(line),
            Name::Burstgpt | Name::Azure => csv::row(self, line),
            Name::VllmTimed => timed::row(self, line, number),
            Name::Weka => Err("a session, not a request".to_owned()),
        }
    }

    /// Units of the trace's clock in nanoseconds.
    fn nanos(&self, units: f64) -> Result<i64, String> {
        nanos(units * self.unit).ok_or_else(|| {
            format!("the time {units:?} is beyond what a trace can hold: check `time-unit`")
        })
    }

    /// The blocks of a prompt; what has no id is content of its own.
    fn blocks(&self, rule: Rule, length: u32, ids: &[HashId], row: u64) -> Result<Blocks, String> {
        let layout = Layout {
            rule,
            size: self.block,
            scope: 0,
            session: 0,
            lenient: self.lenient,
        };
        layout.blocks(length, ids, row)
    }
}

/// The number of hash ids of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// One for every block, of which the last one may be partial.
    Ceil,
    /// One for every whole block.
    Floor,
    /// Either.
    Either,
}

/// The way in which hash ids stand for blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) rule: Rule,
    /// Tokens of a block.
    pub(crate) size: u32,
    /// The scope in which ids mean the same block.
    pub(crate) scope: u64,
    /// The session, if its rows are numbered within it.
    pub(crate) session: u64,
    /// True if a wrong number of ids is repaired.
    pub(crate) lenient: bool,
}

/// Runs, and what had to be repaired.
pub(crate) type Blocks = (Vec<Run>, Option<&'static str>);

impl Layout {
    /// The blocks of a prompt of this many tokens. Its tokens without an id are a stream of the row
    /// `own`.
    ///
    /// # Errors
    /// The number of ids that was expected.
    pub(crate) fn blocks(&self, length: u32, ids: &[HashId], own: u64) -> Result<Blocks, String> {
        let (whole, all) = (length / self.size, length.div_ceil(self.size));
        let count = ids.len() as u64;
        let fits = match self.rule {
            Rule::Ceil => count == u64::from(all),
            Rule::Floor => count == u64::from(whole),
            Rule::Either => count == u64::from(all) || count == u64::from(whole),
        };
        if !fits && !self.lenient {
            let expected = match self.rule {
                Rule::Floor => format!("{whole}, one for every whole block"),
                Rule::Ceil => format!("{all}, the last block being partial"),
                Rule::Either if whole == all => whole.to_string(),
                Rule::Either => format!("{whole} or {all}"),
            };
            // Weka's sessions state the size themselves.
            let advice = match self.rule {
                Rule::Floor => "correct the session's `block_size`, or set",
                Rule::Ceil | Rule::Either => "set `block-size` to the trace's, or",
            };
            return Err(format!(
                "{count} hash ids for a prompt of {length} tokens in blocks of {}; expected {expected}: {advice} \
                 `on-wrong-blocks = \"repair\"`",
                self.size
            ));
        }
        let mut runs = Vec::with_capacity(ids.len() + 1);
        let mut left = length;
        for id in ids {
            let taken = left.min(self.size);
            // Weka's ids stand for whole blocks only.
            if taken == 0 || (self.rule == Rule::Floor && taken < self.size) {
                break;
            }
            runs.push(Run {
                stream: stream(Kind::Block, &[self.scope, id.0, self.size.into()]),
                from: 0,
                length: taken,
            });
            left -= taken;
        }
        if left > 0 {
            runs.push(Run {
                stream: stream(Kind::Rest, &[self.session, own]),
                from: 0,
                length: left,
            });
        }
        let wrong = (!fits).then_some("a number of hash ids that does not fit the prompt's length");
        Ok((runs, wrong))
    }
}

/// A block's name in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HashId(pub(crate) u64);

impl<'de> Deserialize<'de> for HashId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Id;
        impl Visitor<'_> for Id {
            type Value = HashId;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a hash id: an integer or a text")
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<HashId, E> {
                Ok(HashId(id))
            }

            fn visit_i64<E: de::Error>(self, id: i64) -> Result<HashId, E> {
                Ok(HashId(id as u64))
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<HashId, E> {
                Ok(HashId(content::hash(id)))
            }
        }
        deserializer.deserialize_any(Id)
    }
}

/// Detects the format of a file with this first line, if it has one.
fn found(first: &[u8]) -> Result<Option<Name>, String> {
    for (magic, what, command) in [
        (&[0x1f, 0x8b][..], "gzip", "gunzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd][..], "zstd", "unzstd"),
    ] {
        if first.starts_with(magic) {
            return Err(format!(
                "the file is compressed with {what}: decompress it first, with `{command}`"
            ));
        }
    }
    if first.starts_with(b"PAR1") {
        return Err("the file is Parquet: convert it to JSON lines or CSV first".to_owned());
    }
    if first.trim_ascii_start().starts_with(b"[") {
        return Err(
            "the file is one JSON array; expected one JSON object a line: `jq -c '.[]' FILE` makes them so".to_owned(),
        );
    }
    if let Some(keys) = keys(first) {
        let has = |key: &str| keys.contains_key(key);
        return Ok(if has("requests") {
            Some(Name::Weka)
        } else if has("newly_append_tokens") {
            Some(Name::Tracelab)
        } else if has("chat_id") && has("parent_chat_id") {
            Some(Name::Bailian)
        } else if ["input_length", "text_input", "messages", "payload"]
            .iter()
            .any(|key| has(key))
        {
            Some(Name::Mooncake)
        } else {
            None
        });
    }
    if first.starts_with(b"{") && !first.trim_ascii_end().ends_with(b"}") {
        return Err(
            "line 1 ends within a JSON object; expected one object a line: `jq -c . FILE` makes them so".to_owned(),
        );
    }
    Ok([Name::Burstgpt, Name::Azure]
        .into_iter()
        .find(|name| csv::header(first, *name).is_ok()))
}

fn unknown(first: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(first).chars().take(120).collect();
    let mut known = String::new();
    for (name, example) in EXAMPLES {
        known.push_str(&format!("\n  {name}: {example}"));
    }
    format!(
        "line 1 is of no known format: `{shown}`. Set `format`, or use a file with rows like these:{known}"
    )
}

/// The name by which a user knows a format.
fn label(name: Name) -> &'static str {
    match name {
        Name::Mooncake => "mooncake",
        Name::Bailian => "bailian",
        Name::Weka => "weka",
        Name::Tracelab => "tracelab",
        Name::Burstgpt => "burstgpt",
        Name::Azure => "azure",
        Name::VllmTimed => "vllm-timed",
    }
}

/// The keys of a line that is a JSON object.
fn keys(line: &[u8]) -> Option<std::collections::BTreeMap<String, de::IgnoredAny>> {
    serde_json::from_slice(line).ok()
}

/// Reads a line of JSON.
///
/// # Errors
/// What is wrong with it; what it is, if it is no JSON object at all.
pub(crate) fn parsed<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    runner_plugin::json::parse(line).map_err(|said| match line.trim_ascii_start().first() {
        Some(b'{') => said,
        _ => {
            let line = String::from_utf8_lossy(line.trim_ascii());
            let shown: String = line.chars().take(60).collect();
            format!("expected a JSON object, found `{shown}`")
        }
    })
}

/// Seconds as nanoseconds.
pub(crate) fn nanos(seconds: f64) -> Option<i64> {
    let nanos = (seconds * 1e9).round();
    (nanos.abs() < 9e18).then_some(nanos as i64)
}

/// Tokens of a row, in bounds. None at all count as one, since a server refuses an empty prompt or
/// answer.
pub(crate) fn tokens(key: &str, tokens: u64) -> Result<(u32, bool), String> {
    if tokens > MOST_TOKENS {
        return Err(format!(
            "`{key}` asks for {tokens} tokens; at most {MOST_TOKENS} are possible"
        ));
    }
    Ok((tokens.max(1) as u32, tokens == 0))
}

/// The remark on rows with no tokens.
pub(crate) const NOTHING: &str = "a prompt or an answer of 0 tokens became one of 1";
