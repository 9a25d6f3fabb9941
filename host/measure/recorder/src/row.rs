//! A row of a recording: a request in Mooncake's format, with a few fields more, all of them
//! numbers or fixed words. No field can hold a text of the traffic.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The longest row: a prompt of ten million tokens.
const LONGEST: u64 = 8 << 20;
/// Tokens of a block where a row does not state them: Mooncake's.
const USUAL_BLOCK: usize = 512;

#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    #[error("`{path}` cannot be read: {cause}")]
    Read { path: PathBuf, cause: io::Error },
    #[error(
        "`{path}`, line {line}, is no row of a recording: {cause}; give the files that `runner record` wrote"
    )]
    NoRow { path: PathBuf, line: u64, cause: String },
}

/// Gives each row with its offset and length, except a cut last line; `each` may name a fault.
pub(crate) fn each(
    path: &Path,
    mut each: impl FnMut(Row, (u64, u32)) -> Result<(), String>,
) -> Result<(), RowsError> {
    let read = |cause| RowsError::Read { path: path.to_owned(), cause };
    let mut file = BufReader::new(File::open(path).map_err(read)?);
    let (mut text, mut offset) = (Vec::new(), 0);
    for line in 1.. {
        text.clear();
        let length = (&mut file).take(LONGEST).read_until(b'\n', &mut text).map_err(read)?;
        if length == 0 || (text.last() != Some(&b'\n') && length as u64 != LONGEST) {
            break;
        }
        let row = serde_json::from_slice::<Row>(&text).map_err(|cause| cause.to_string());
        row.and_then(|row| each(row, (offset, length as u32)))
            .map_err(|cause| RowsError::NoRow { path: path.to_owned(), line, cause })?;
        offset += length as u64;
    }
    Ok(())
}

/// A request. Times are from the beginning of the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Arrival, in milliseconds.
    pub(crate) timestamp: f64,
    /// The session's number; for a sub-agent `SESSION.THREAD`.
    #[serde(default)]
    pub(crate) session_id: String,
    /// Each row has its whole prompt.
    #[serde(default)]
    pub(crate) context_mode: String,
    pub(crate) input_length: u32,
    pub(crate) output_length: u32,
    /// Tokens after the thread's previous prompt and its answer, if the prompt begins with both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) new_length: Option<u32>,
    #[serde(default)]
    pub(crate) hash_ids: Vec<u64>,
    #[serde(default = "usual_block")]
    pub(crate) block_size: usize,
    /// Time from the end of the thread's previous request, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay: Option<f64>,
    /// Time from arrival to the end of the reply, in seconds.
    #[serde(default)]
    pub(crate) api_time: f64,
    /// Time from arrival to the first output, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttft: Option<f64>,
    /// Tokens of the prompt that the server found in its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached: Option<u32>,
    /// The model, numbered in the order of appearance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) stream: bool,
    /// The reply's status; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// True if the reply ended before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) broken: bool,
    /// Images and sound, by kind and size.
    #[serde(default, skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<crate::form::Media>,
    /// Sampling options by value, which a replay sends again.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) extra: serde_json::Map<String, serde_json::Value>,
}

pub(crate) const WHOLE_PROMPTS: &str = "message_array_with_responses";

fn usual_block() -> usize {
    USUAL_BLOCK
}

impl Row {
    pub(crate) fn place(&self) -> Option<(u64, u32)> {
        match self.session_id.split_once('.') {
            None => Some((self.session_id.parse().ok()?, 0)),
            Some((session, thread)) => Some((session.parse().ok()?, thread.parse().ok()?)),
        }
    }

    pub(crate) fn whole_blocks(&self) -> &[u64] {
        let whole = self.input_length as usize / self.block_size.max(1);
        &self.hash_ids[..whole.min(self.hash_ids.len())]
    }
}
