//! Rows that belong together: by the names of their sessions, or by the request that each follows.
//! Owns the share of sessions, and the choice of sessions that hold whole prompts.

use runner_plugin::report::Remarks;

use super::{NEVER, Pass, Scan};
use crate::config::Replay;
use crate::content::{hash, mixed};
use crate::formats::{Link, Row};

#[derive(Clone, Copy, Debug)]
pub(super) struct SessionEntry {
    /// The time when it is replayed at the earliest, on the trace's clock.
    time: i64,
    /// [`UNSHARED`] if it is not in the share.
    group: u32,
    /// The line on which its name occurs first.
    pub(super) line: u32,
}

/// The group of requests outside the share.
const UNSHARED: u32 = u32::MAX;

impl SessionEntry {
    pub(super) fn new(group: Option<u32>, line: u32, time: i64) -> Self {
        Self { time, group: group.unwrap_or(UNSHARED), line }
    }

    fn group(self) -> Option<u32> {
        (self.group != UNSHARED).then_some(self.group)
    }
}

impl Pass<'_> {
    /// The group of a request of a tree, `None` outside the share, and its earliest time of replay:
    /// not before its predecessor.
    pub(super) fn linked(
        &self,
        link: Link,
        time: Option<i64>,
        line: u32,
        seen: &mut Scan,
        notes: &mut Remarks,
    ) -> Result<(Option<u32>, Option<i64>), String> {
        let name = link.name as u64;
        if let Some(first) = seen.known.get(&name) {
            return Err(format!(
                "`chat_id` {} occurs again (first on line {}); ids must be unique",
                link.name, first.line
            ));
        }
        let parent = link.parent.and_then(|parent| seen.known.get(&(parent as u64)).copied());
        let (group, time) = match parent {
            Some(parent) => {
                let early = time.is_some_and(|time| time < parent.time);
                let late = early && self.replay == Replay::Sessions;
                if late && parent.group().is_some() {
                    let reason = "a request recorded before its predecessor; it is sent after it";
                    notes.repaired(reason, || format!("line {line}"));
                }
                (parent.group(), if late { Some(parent.time) } else { time })
            }
            None => {
                if link.parent.is_some() {
                    let reason = "its parent is missing or comes later; replayed as a new session";
                    notes.repaired(reason, || format!("line {line}"));
                }
                let group = self.shared(mixed(name)).then(|| seen.group());
                if group.is_some() {
                    seen.index.roots.push(link.name);
                }
                (group, time)
            }
        };
        let known = SessionEntry::new(group, line, time.unwrap_or(NEVER));
        seen.known.insert(name, known);
        Ok((group, time))
    }

    /// The group of a row that names its session or stands alone; `None` if it is not in the share.
    pub(super) fn group(
        &self,
        row: &Row,
        line: u32,
        seen: &mut Scan,
    ) -> Result<Option<u32>, String> {
        let Some(session) = &row.session else {
            return Ok(self.shared(mixed(line.into())).then(|| seen.group()));
        };
        let name = hash(session);
        seen.look_for_whole(name, row);
        if let Some(known) = seen.known.get(&name) {
            let only_new = row.delta && !seen.index.whole.contains(&name);
            if only_new && self.replay == Replay::Timestamps {
                return Err(format!(
                    "it continues the session `{session}`, with only its new content: set `replay = \"sessions\"`"
                ));
            }
            return Ok(known.group());
        }
        let group = self.shared(name).then(|| seen.group());
        seen.known.insert(name, SessionEntry::new(group, line, NEVER));
        Ok(group)
    }

    /// True if a session is in the share: a hash of its name and the seed is below it.
    pub(super) fn shared(&self, name: u64) -> bool {
        let drawn = mixed(name ^ mixed(self.seed)) as f64 / 2_f64.powi(64);
        self.config.share >= 1.0 || drawn < self.config.share
    }
}

impl Scan {
    /// Notes a session with whole prompts: a row has its previous row's blocks, and maybe more.
    fn look_for_whole(&mut self, name: u64, row: &Row) {
        if row.ids.is_empty() {
            return;
        }
        let hashed = |ids: &[u64]| ids.iter().fold(0, |hash, id| mixed(hash ^ mixed(*id)));
        let now = (row.ids.len(), hashed(&row.ids));
        if let Some((count, before)) = self.blocks.insert(name, now)
            && row.ids.get(..count).is_some_and(|ids| hashed(ids) == before)
        {
            self.index.whole.insert(name);
        }
    }
}
