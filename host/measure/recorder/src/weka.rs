//! The sessions of a recording in the format of `callanjfox/kv-cache-tester` (`weka`): one object a
//! line, with the requests of the main thread and its sub-agents. Rows stay in their files, of
//! which twenty-four bytes a row are kept.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::chain::BLOCK;
use crate::row::{self, Row, RowsError};

/// A request of a session. Times are in seconds; `t` is from the session's beginning.
#[derive(Serialize)]
struct Request<'r> {
    t: f64,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'r str>,
    #[serde(rename = "in")]
    input: u32,
    out: u32,
    hash_ids: &'r [u64],
    api_time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttft: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think_time: Option<f64>,
}

#[derive(Serialize)]
struct SubAgent<'r> {
    t: f64,
    #[serde(rename = "type")]
    kind: &'static str,
    agent_id: String,
    duration_ms: f64,
    status: &'static str,
    requests: Vec<Request<'r>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'r> {
    Request(Request<'r>),
    SubAgent(SubAgent<'r>),
}

#[derive(Serialize)]
struct Session<'r> {
    id: String,
    models: Vec<&'r str>,
    block_size: usize,
    /// Prompts of different sessions may share blocks.
    hash_id_scope: &'static str,
    requests: Vec<Item<'r>>,
}

/// The place of a row: its session, file, offset and length.
type Entry = (u64, u32, u64, u32);

/// Gives each session as a line, in the order in which they began. Returns their number.
pub fn sessions<E: From<RowsError>>(
    files: &[PathBuf],
    mut each: impl FnMut(&str) -> Result<(), E>,
) -> Result<u64, E> {
    let mut entries: Vec<Entry> = Vec::new();
    for (number, path) in files.iter().enumerate() {
        row::each(path, |row, (offset, length)| {
            let (session, _) = row.place().ok_or("no number as its session")?;
            entries.push((session, number as u32, offset, length));
            Ok(())
        })?;
    }
    // Sessions are numbered in the order in which they began.
    entries.sort_by_key(|entry| entry.0);
    let read = |path: &Path, cause| RowsError::Read { path: path.to_owned(), cause };
    let opened = files.iter().map(|path| File::open(path).map_err(|cause| read(path, cause)));
    let mut opened = opened.collect::<Result<Vec<_>, _>>()?;
    let mut count = 0;
    for group in entries.chunk_by(|one, other| one.0 == other.0) {
        let mut rows: Vec<Row> = Vec::with_capacity(group.len());
        for (_, file, offset, length) in group {
            let path = &files[*file as usize];
            let mut line = vec![0; *length as usize];
            let file = &mut opened[*file as usize];
            file.seek(SeekFrom::Start(*offset)).map_err(|cause| read(path, cause))?;
            file.read_exact(&mut line).map_err(|cause| read(path, cause))?;
            rows.extend(serde_json::from_slice::<Row>(&line));
        }
        rows.sort_by(|one, other| one.timestamp.total_cmp(&other.timestamp));
        let session = session(group[0].0, &rows);
        if let Some(line) = session.and_then(|session| serde_json::to_string(&session).ok()) {
            each(&format!("{line}\n"))?;
            count += 1;
        }
    }
    Ok(count)
}

fn session(number: u64, rows: &[Row]) -> Option<Session<'_>> {
    let start = rows.first()?.timestamp;
    let thread = |row: &Row| row.place().map_or(0, |(_, thread)| thread);
    let mut items: Vec<Item<'_>> = Vec::new();
    let mut places: Vec<(u32, usize)> = Vec::new();
    // The session's first thread is the main one, whatever its number after a cut of the file.
    let main = thread(rows.first()?);
    for row in rows {
        let request = request(row, start);
        let (own, ended) = (thread(row), request.t + request.api_time);
        if own == main {
            items.push(Item::Request(request));
            continue;
        }
        let known = places.iter().find(|(thread, _)| *thread == own).map(|(_, place)| *place);
        match known.and_then(|place| items.get_mut(place)) {
            Some(Item::SubAgent(agent)) => {
                agent.duration_ms = ((ended - agent.t) * 1e3).max(agent.duration_ms);
                agent.requests.push(request);
            }
            _ => {
                places.push((own, items.len()));
                items.push(Item::SubAgent(SubAgent {
                    t: request.t,
                    kind: "subagent",
                    agent_id: format!("agent-{own}"),
                    duration_ms: request.api_time * 1e3,
                    status: "completed",
                    requests: vec![request],
                }));
            }
        }
    }
    let mut models: Vec<&str> = rows.iter().filter_map(|row| row.model.as_deref()).collect();
    models.sort_unstable();
    models.dedup();
    Some(Session {
        id: format!("session-{number}"),
        models,
        block_size: BLOCK,
        hash_id_scope: "global",
        requests: items,
    })
}

fn request(row: &Row, start: f64) -> Request<'_> {
    Request {
        t: ((row.timestamp - start) * 1e3).round() / 1e6,
        kind: if row.stream { "s" } else { "n" },
        model: row.model.as_deref(),
        input: row.input_length,
        out: row.output_length,
        hash_ids: row.whole_blocks(),
        api_time: row.api_time,
        ttft: row.ttft,
        think_time: row.delay.map(|delay| delay / 1e3),
    }
}
