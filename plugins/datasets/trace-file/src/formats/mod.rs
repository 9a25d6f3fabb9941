//! The interface of all formats of traces: the detection of a file's format, and a line as a row of
//! it. Leaves the choice of rows to `index`, and their samples to `replay`.

mod bailian;
mod blocks;
mod csv;
mod mooncake;
mod row;
mod timed;
mod tracelab;
pub(crate) mod weka;

pub(crate) use blocks::Layout;
pub(crate) use row::{Content, Link, Row};

use runner_plugin::Error;
use serde::de::IgnoredAny;

use crate::config::{Answers, Config, Labels, Name, WrongBlocks, invalid};
use blocks::{Blocks, HashId, Rule};
use row::nanos;

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

/// The way in which a file is read.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) name: Name,
    block: u32,
    unit: f64,
    lenient: bool,
    labels: Labels,
    /// The columns of a CSV file, in lower case.
    columns: Vec<String>,
    /// True if the first row has a `session_id`.
    named: bool,
    /// True if answers in prompts are the server's.
    live: bool,
}

impl Format {
    pub(crate) fn detect(first: &[u8], config: &Config) -> Result<Self, Error> {
        let found = match found(first) {
            Ok(found) => found,
            Err(cause) => return Err(Error::InvalidInput(cause)),
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
        let columns =
            if csv { csv::header(first, name).map_err(Error::InvalidInput)? } else { Vec::new() };
        Ok(Self {
            name,
            block: config.block_size.or(block.and_then(|_| stated(first))).or(block).unwrap_or(1),
            unit: config.time_unit.unwrap_or(if name == Name::Mooncake { 0.001 } else { 1.0 }),
            lenient: config.on_wrong_blocks == WrongBlocks::Repair,
            labels: config.labels.clone().unwrap_or_default(),
            columns,
            live: config.answers == Answers::Live,
            named: keys(first).is_some_and(|keys| keys.contains_key("session_id")),
        })
    }

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

    /// True if a session's rows are in the order of their times, rather than in the file's order.
    pub(crate) fn by_time(&self) -> bool {
        self.name != Name::Mooncake
    }

    /// Units of the trace's clock in nanoseconds.
    fn nanos(&self, units: f64) -> Result<i64, String> {
        nanos(units * self.unit)
            .ok_or_else(|| format!("the time {units:?} is too large: check `time-unit`"))
    }

    /// The blocks of a prompt; tokens without an id are content of its own.
    fn blocks(&self, rule: Rule, length: u32, ids: &[HashId], row: u64) -> Result<Blocks, String> {
        let layout = Layout { rule, size: self.block, scope: 0, session: 0, lenient: self.lenient };
        layout.blocks(length, ids, row)
    }
}

/// The tokens of a block that the first row states, as `runner record` writes it.
fn stated(first: &[u8]) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Head {
        block_size: u32,
    }
    serde_json::from_slice::<Head>(first).ok().map(|head| head.block_size).filter(|size| *size > 0)
}

fn found(first: &[u8]) -> Result<Option<Name>, String> {
    for (magic, packing, command) in
        [(&[0x1f, 0x8b][..], "gzip", "gunzip"), (&[0x28, 0xb5, 0x2f, 0xfd][..], "zstd", "unzstd")]
    {
        if first.starts_with(magic) {
            return Err(format!(
                "the file is compressed with {packing}: decompress it first, with `{command}`"
            ));
        }
    }
    if first.starts_with(b"PAR1") {
        return Err("the file is Parquet: convert it to JSON lines or CSV first".to_owned());
    }
    if first.trim_ascii_start().starts_with(b"[") {
        return Err(
            "the file is one JSON array; expected one JSON object a line: convert it with `jq -c '.[]' FILE`".to_owned(),
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
        } else if ["input_length", "text_input", "messages", "payload"].iter().any(|key| has(key)) {
            Some(Name::Mooncake)
        } else {
            None
        });
    }
    if first.starts_with(b"{") && !first.trim_ascii_end().ends_with(b"}") {
        return Err(
            "line 1 ends within a JSON object; expected one object a line: convert the file with `jq -c . FILE`".to_owned(),
        );
    }
    Ok([Name::Burstgpt, Name::Azure].into_iter().find(|name| csv::header(first, *name).is_ok()))
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
fn keys(line: &[u8]) -> Option<std::collections::BTreeMap<String, IgnoredAny>> {
    serde_json::from_slice(line).ok()
}
