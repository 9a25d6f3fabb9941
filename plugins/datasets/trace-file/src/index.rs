//! One pass over a trace: checks every row, and keeps place and due time of each replayed row, in
//! order. Twenty-four bytes a row; prompts are made later, by `replay`.

use std::collections::{BTreeMap, BTreeSet};

use runner_plugin::report::Remarks;
use runner_plugin::{Error, Tokenizer, Treatment};

use crate::config::{Config, Replay, TooLong, invalid};
use crate::content::{hash, mixed};
use crate::formats::weka::{self, Session};
use crate::formats::{Content, Format, Layout, Link, Row};
use crate::source::{Place, Source};

const MOST_MISTAKES: usize = 8;

/// Lengths to keep for prompts that are not measured.
const MOST_SIZES: usize = 64;

/// Lines by which the number of all lines is estimated.
const SAMPLED: u32 = 1000;

/// Rows to reserve memory for, at most: 144 MiB.
const MOST_RESERVED: usize = 6 << 20;

/// The time of a row without one.
pub(crate) const NEVER: i64 = i64::MIN;

pub(crate) const REASONS: [&str; 4] = [
    "",
    "a prompt longer than `max-input`",
    "an answer longer than `max-output`",
    "a conversation longer than `max-input`, which cannot be cut",
];
/// The reason why the rest of a session is left out.
pub(crate) const AFTER: &str = "a request after a dropped request of its session";

/// A row that is replayed: a line, or a request within a session's line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Position in the file, and above bit 62 the reason why it is too long.
    at: u64,
    pub(crate) time: i64,
    /// The session: rows with the same number belong together.
    pub(crate) group: u32,
    /// The line's number; for a request within a line, its index in [`Index::requests`].
    number: u32,
}

impl Entry {
    fn new(offset: u64, reason: usize, time: i64, group: u32, number: u32) -> Self {
        Self { at: offset | (reason as u64) << 62, time, group, number }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.at & (u64::MAX >> 2)
    }

    fn reason(&self) -> usize {
        (self.at >> 62) as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    line: u32,
    pub(crate) place: u32,
    pub(crate) length: u32,
}

/// A conversation of a session in one line.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) layout: Layout,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) entries: Vec<Entry>,
    /// Requests within lines, if they are replayed by their times.
    requests: Vec<Request>,
    /// The conversations, by group, if requests of one line are replayed by their times.
    pub(crate) threads: Vec<Thread>,
    /// The names of the first requests, by group, in traces that link requests.
    pub(crate) roots: Vec<i64>,
    /// Hashes of the names of sessions whose rows hold whole prompts without saying so.
    pub(crate) whole: BTreeSet<u64>,
    /// Time at which the run's clock begins, on the trace's clock.
    pub(crate) base: i64,
    pub(crate) sizes: Vec<(u32, u32)>,
}

impl Index {
    pub(crate) fn line(&self, entry: &Entry) -> u32 {
        self.request(entry).map_or(entry.number, |request| request.line)
    }

    /// The request within a line that an entry is.
    pub(crate) fn request(&self, entry: &Entry) -> Option<&Request> {
        self.requests.get(entry.number as usize)
    }
}

/// Inputs of the pass beside the file.
pub(crate) struct Pass<'a> {
    pub(crate) format: &'a Format,
    pub(crate) config: &'a Config,
    pub(crate) replay: Replay,
    pub(crate) seed: u64,
    pub(crate) tokenizer: &'a dyn Tokenizer,
}

#[derive(Default)]
struct Scan {
    index: Index,
    groups: u32,
    /// Requests, or sessions of one line, in the file.
    all: u64,
    /// By the hash of a session's name, or by a request's name.
    known: BTreeMap<u64, SessionEntry>,
    /// By the hash of a session's name: the number of whole blocks in the last row with hash ids,
    /// and a hash of those ids.
    blocks: BTreeMap<u64, (usize, u64)>,
    origin: Option<i64>,
    untimed: Option<u32>,
    mistakes: Vec<String>,
}

impl Pass<'_> {
    pub(crate) fn index(&self, source: &mut Source, notes: &mut Remarks) -> Result<Index, Error> {
        let mut seen = Scan::default();
        let mut place = source.beginning()?;
        let mut header = self.format.has_header();
        while let Some((line, next)) = source.line(place)? {
            if !std::mem::take(&mut header) && !line.trim_ascii().is_empty() {
                seen.all += 1;
                let outcome = if self.format.name == crate::config::Name::Weka {
                    self.session(&line, place, &mut seen, notes)
                } else {
                    self.row(&line, place, &mut seen, notes)
                };
                if let Err(cause) = outcome {
                    seen.mistakes.push(format!("line {}: {cause}", place.line));
                }
                if seen.mistakes.len() == MOST_MISTAKES {
                    break;
                }
            }
            place = next;
            if place.line == SAMPLED {
                // Growing step by step would take twice the memory in the end.
                let lines = source.size() / (place.offset / u64::from(SAMPLED)).max(1);
                let likely = lines as f64 * self.config.share * 1.05;
                seen.index.entries.reserve_exact((likely as usize).min(MOST_RESERVED));
            }
        }
        self.arranged(seen, notes)
    }

    fn row(
        &self,
        line: &[u8],
        place: Place,
        seen: &mut Scan,
        notes: &mut Remarks,
    ) -> Result<(), String> {
        let row = self.format.row(line, place.line)?;
        if let Some(reason) = row.unusable {
            notes.dropped(reason, || format!("line {}", place.line));
            return Ok(());
        }
        let (group, time) = match row.link {
            Some(link) => self.linked(link, row.time, place.line, seen, notes)?,
            None => (self.group(&row, place.line, seen)?, row.time),
        };
        match row.time {
            Some(time) => seen.origin = Some(seen.origin.map_or(time, |origin| origin.min(time))),
            None => {
                seen.untimed.get_or_insert(place.line);
            }
        }
        let reason = self.reason(&row)?;
        if let Some(group) = group {
            let time = time.unwrap_or(NEVER);
            let entry = Entry::new(place.offset, reason, time, group, place.line);
            seen.entry(&row, reason, entry);
        }
        Ok(())
    }

    /// Returns the reason why a row is left out, as an index into [`REASONS`].
    fn reason(&self, row: &Row) -> Result<usize, String> {
        let over = |most: Option<u32>, tokens: Option<u32>| {
            most.zip(tokens).filter(|(most, tokens)| tokens > most)
        };
        let input = over(self.config.max_input, self.input(row));
        let output = over(self.config.max_output, row.output);
        let whole = matches!(row.content, Content::Messages(_));
        match self.config.on_too_long {
            TooLong::Drop if input.is_some() => Ok(1),
            TooLong::Drop if output.is_some() => Ok(2),
            TooLong::Truncate if input.is_some() && whole => Ok(3),
            TooLong::Error => {
                if let Some((most, tokens)) = input {
                    return Err(format!("a prompt of {tokens} tokens; `max-input` is {most}"));
                }
                match output {
                    Some((most, tokens)) => {
                        Err(format!("an answer of {tokens} tokens; `max-output` is {most}"))
                    }
                    None => Ok(0),
                }
            }
            _ => Ok(0),
        }
    }

    /// Tokens of a prompt; of recorded ones only if it matters, since counting them takes time.
    fn input(&self, row: &Row) -> Option<u32> {
        let most = self.config.max_input?;
        match &row.content {
            // No text has more tokens than bytes.
            Content::Text(text) if text.len() <= most as usize => None,
            Content::Text(text) => {
                self.tokenizer.count(std::slice::from_ref(text), true).first().copied()
            }
            Content::Messages(messages) => {
                let counted = self.tokenizer.count_chat(std::slice::from_ref(messages), None);
                counted.first().copied().flatten().or_else(|| {
                    let texts: Vec<String> = messages
                        .iter()
                        .flat_map(|message| &message.parts)
                        .filter_map(|part| match part {
                            runner_plugin::Part::Text(text) => Some(text.clone()),
                            _ => None,
                        })
                        .collect();
                    Some(self.tokenizer.count(&texts, false).iter().sum())
                })
            }
            content => content.tokens(),
        }
    }

    fn session(
        &self,
        line: &[u8],
        place: Place,
        seen: &mut Scan,
        notes: &mut Remarks,
    ) -> Result<(), String> {
        let session = Session::parse(line, self.config)?;
        if self.replay == Replay::Timestamps {
            seen.all += session.nodes.len().saturating_sub(1) as u64;
        }
        let name = hash(&session.id);
        let shared = self.shared(name);
        let known = SessionEntry::new(None, place.line, NEVER);
        if let Some(first) = seen.known.insert(name, known) {
            return Err(format!(
                "the session `{}` occurs again (first on line {}); ids must be unique",
                session.id, first.line
            ));
        }
        if session.nodes.is_empty() {
            notes.dropped("a session without requests", || format!("line {}", place.line));
            return Ok(());
        }
        if shared {
            notes.count(
                Treatment::Repaired,
                "a sub-agent without requests; the next request waits as long as recorded",
                session.hollow,
                || format!("line {}", place.line),
            );
        }
        let first = seen.groups;
        for (at, node) in session.nodes.iter().enumerate() {
            let row = weka::row(&line[node.range.clone()], &session.layout, at as u32)
                .map_err(|cause| format!("request {} of the session: {cause}", at + 1))?;
            let reason = self.reason(&row)?;
            seen.origin = Some(seen.origin.map_or(node.time, |origin| origin.min(node.time)));
            if !shared {
                continue;
            }
            match self.replay {
                Replay::Timestamps => {
                    let offset = place.offset + node.range.start as u64;
                    let (group, number) = (first + node.thread as u32, seen.index.requests.len());
                    seen.index.requests.push(Request {
                        line: place.line,
                        place: at as u32,
                        length: node.range.len() as u32,
                    });
                    let entry = Entry::new(offset, reason, node.time, group, number as u32);
                    seen.entry(&row, reason, entry);
                }
                Replay::Sessions if at == 0 => {
                    let entry = Entry::new(place.offset, 0, NEVER, first, place.line);
                    seen.entry(&row, 0, entry);
                }
                Replay::Sessions => {}
            }
        }
        if !shared {
            return Ok(());
        }
        if self.replay == Replay::Sessions {
            seen.groups += 1;
            return Ok(());
        }
        seen.groups += session.threads.len() as u32;
        seen.index.threads.extend(
            session.threads.into_iter().map(|name| Thread { name, layout: session.layout }),
        );
        Ok(())
    }

    /// Puts the rows in order, and leaves out rows that are too long or outside the window.
    fn arranged(&self, seen: Scan, notes: &mut Remarks) -> Result<Index, Error> {
        if !seen.mistakes.is_empty() {
            return Err(Error::InvalidInput(seen.mistakes.join("\n")));
        }
        let in_sessions = self.replay == Replay::Sessions;
        if let (false, Some(line), Some(_)) = (in_sessions, seen.untimed, seen.origin) {
            return Err(Error::InvalidInput(format!(
                "line {line} has no time, unlike other lines: add its `timestamp`, or set `replay = \"sessions\"`"
            )));
        }
        let mut index = seen.index;
        let origin = seen.origin.unwrap_or_default();
        let shared = index.entries.len();
        // The beginning of each session: it orders the rows, and places them in the window.
        let mut begins = vec![NEVER; if in_sessions { seen.groups as usize } else { 0 }];
        if in_sessions {
            for entry in index.entries.iter().rev() {
                let begin = &mut begins[entry.group as usize];
                *begin = if self.format.by_time() && *begin != NEVER {
                    entry.time.min(*begin)
                } else {
                    entry.time
                };
            }
        }
        let due = |entry: &Entry| {
            if in_sessions { begins[entry.group as usize] } else { entry.time }
        };
        index.base = origin;
        if let Some(window) = self.config.window {
            if seen.origin.is_none()
                || (in_sessions && self.format.name == crate::config::Name::Weka)
            {
                return Err(invalid(
                    "`window` needs the trace's times, and its sessions have none: leave it out"
                        .to_owned(),
                ));
            }
            let nanos = |seconds: f64| origin.saturating_add((seconds * 1e9) as i64);
            let to = window.to.map_or(i64::MAX, nanos);
            index.base = nanos(window.from);
            index.entries.retain(|entry| (index.base..to).contains(&due(entry)));
        }
        let inside = index.entries.len();
        let by_time = self.format.by_time();
        // Offsets differ, so that the order is complete, and nothing need be copied.
        index.entries.sort_unstable_by_key(|entry| {
            let within = if by_time { entry.time } else { 0 };
            let group = if in_sessions { entry.group } else { 0 };
            (due(entry), group, within, entry.offset())
        });
        let mut cut = None;
        let mut entries = std::mem::take(&mut index.entries);
        entries.retain(|entry| {
            if in_sessions && cut == Some(entry.group) {
                notes.dropped(AFTER, || format!("line {}", index.line(entry)));
                return false;
            }
            if entry.reason() > 0 {
                let line = index.line(entry);
                notes.dropped(REASONS[entry.reason()], || format!("line {line}"));
                cut = Some(entry.group);
                return false;
            }
            true
        });
        index.entries = entries;
        if index.entries.is_empty() {
            return Err(Error::InvalidInput(self.nothing(seen.all, shared, inside)));
        }
        Ok(index)
    }

    /// Returns the message if nothing is left: the numbers of requests after each step.
    fn nothing(&self, all: u64, shared: usize, inside: usize) -> String {
        if all == 0 {
            return "the file has no requests: only line 1, which names the columns".to_owned();
        }
        let weka = self.format.name == crate::config::Name::Weka;
        let unit = if weka && self.replay == Replay::Sessions { "session" } else { "request" };
        let mut message = format!("no {unit} is left: {all} in the file");
        if self.config.share < 1.0 {
            message.push_str(&format!(", {shared} after `share`"));
        } else if (shared as u64) < all {
            message.push_str(&format!(", {shared} that can be used"));
        }
        if self.config.window.is_some() {
            message.push_str(&format!(", {inside} in `window`"));
        }
        if inside > 0 {
            message.push_str(", 0 within `max-input` and `max-output`");
        }
        message
    }
}

impl Scan {
    fn group(&mut self) -> u32 {
        self.groups += 1;
        self.groups - 1
    }

    fn entry(&mut self, row: &Row, reason: usize, entry: Entry) {
        if self.index.sizes.len() < MOST_SIZES && reason == 0 {
            let input = row.content.tokens().unwrap_or(16);
            self.index.sizes.push((input, row.output.unwrap_or(16)));
        }
        self.index.entries.push(entry);
    }
}

// Rows that belong together: by the names of their sessions, or by the request that each follows.
// Owns the share of sessions, and the choice of sessions that hold whole prompts.

#[derive(Clone, Copy, Debug)]
struct SessionEntry {
    /// The time when it is replayed at the earliest, on the trace's clock.
    time: i64,
    /// [`UNSHARED`] if it is not in the share.
    group: u32,
    /// The line on which its name occurs first.
    line: u32,
}

/// The group of requests outside the share.
const UNSHARED: u32 = u32::MAX;

impl SessionEntry {
    fn new(group: Option<u32>, line: u32, time: i64) -> Self {
        Self { time, group: group.unwrap_or(UNSHARED), line }
    }

    fn group(self) -> Option<u32> {
        (self.group != UNSHARED).then_some(self.group)
    }
}

impl Pass<'_> {
    /// The group of a tree's request, `None` outside the share, and its earliest time of replay.
    fn linked(
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
    fn group(&self, row: &Row, line: u32, seen: &mut Scan) -> Result<Option<u32>, String> {
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
    fn shared(&self, name: u64) -> bool {
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
