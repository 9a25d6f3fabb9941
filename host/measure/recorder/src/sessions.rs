//! The session and the thread of each request. Owns the rules; keeps digests only.
//!
//! A session is known, in this order, by the header field that names it, by the reply that a
//! request names as its predecessor, or by a prompt that begins with all messages of an earlier
//! request. Within a session, a request continues the thread whose last prompt shares all its whole
//! blocks, the longest first, once its last request is over; else it begins one.

use std::collections::HashMap;

use model::units::Nanos;

use crate::chain::Digest;

/// Sessions that are remembered; the longest idle session is forgotten first.
const MOST: usize = 65_536;
const MOST_THREADS: usize = 256;
/// Ends of prompts, and ids of replies, that are remembered.
const MOST_ENDS: usize = 1 << 20;
/// Time without a request after which a session is over.
const IDLE: Nanos = Nanos(3_600_000_000_000);

/// The facts of a request by which its session is found; digests under the recording's key.
#[derive(Debug, Default)]
pub(crate) struct Signs<'r> {
    pub(crate) header: Option<Digest>,
    pub(crate) parent: Option<Digest>,
    pub(crate) previous: Option<Digest>,
    /// The ends of the prompt's messages: digests of all messages up to each.
    pub(crate) ends: &'r [Digest],
    pub(crate) blocks: &'r [u64],
    pub(crate) at: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) session: u64,
    pub(crate) thread: u32,
    /// The end of the thread's request before, if it has one that has ended.
    pub(crate) after: Option<Nanos>,
    /// The exchange before, unless its answer is not one that clients repeat.
    pub(crate) before: Option<Repeated>,
}

/// An exchange that the next request may repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeated {
    /// Tokens of the prompt and of the answer.
    pub(crate) tokens: u32,
    pub(crate) answer: Digest,
}

#[derive(Debug, Default)]
struct Session {
    threads: Vec<Thread>,
    used: Nanos,
}

/// A block's id says which blocks stand before it, so the last id stands for all.
#[derive(Debug, Default)]
struct Thread {
    /// The whole blocks of its last prompt, and the id of the last one.
    blocks: usize,
    last: Option<u64>,
    /// The end of its last request; absent while that runs.
    ended: Option<Nanos>,
    before: Option<Repeated>,
}

impl Thread {
    /// True if its last prompt begins this one, and its last request is over.
    fn is_before(&self, blocks: &[u64]) -> bool {
        let last = self.blocks.checked_sub(1).map(|place| blocks.get(place).copied());
        self.ended.is_some() && last.is_none_or(|last| last == self.last)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    next: u64,
    open: HashMap<u64, Session>,
    by_header: HashMap<Digest, u64>,
    by_reply: HashMap<Digest, u64>,
    by_end: HashMap<Digest, u64>,
}

impl Sessions {
    pub(crate) fn place(&mut self, signs: &Signs<'_>) -> Place {
        self.forget(signs.at);
        let known = self.known(signs);
        let number = known.unwrap_or(self.next);
        if known.is_none() {
            self.next += 1;
        }
        if let Some(header) = signs.header {
            self.by_header.insert(header, number);
        }
        if let Some(end) = signs.ends.last() {
            self.by_end.insert(*end, number);
        }
        let session = self.open.entry(number).or_default();
        session.used = signs.at;
        let continued = (session.threads.iter().enumerate())
            .filter(|(_, thread)| thread.is_before(signs.blocks))
            .max_by_key(|(_, thread)| thread.blocks)
            .map(|(place, _)| place);
        let place = continued.unwrap_or_else(|| {
            if session.threads.len() == MOST_THREADS {
                return MOST_THREADS - 1;
            }
            session.threads.push(Thread::default());
            session.threads.len() - 1
        });
        let thread = &mut session.threads[place];
        (thread.blocks, thread.last) = (signs.blocks.len(), signs.blocks.last().copied());
        let after = thread.ended.take();
        let before = thread.before.take();
        Place { session: number, thread: place as u32, after, before }
    }

    /// Notes the end of a request, the digest of its reply's id, and the exchange for the next one.
    pub(crate) fn ended(
        &mut self,
        place: Place,
        at: Nanos,
        reply: Option<Digest>,
        before: Option<Repeated>,
    ) {
        let session = self.open.get_mut(&place.session);
        let thread = session.and_then(|session| session.threads.get_mut(place.thread as usize));
        if let Some(thread) = thread {
            (thread.ended, thread.before) = (Some(at), before);
        }
        if let Some(reply) = reply {
            self.by_reply.insert(reply, place.session);
        }
    }

    fn known(&self, signs: &Signs<'_>) -> Option<u64> {
        let by = |map: &HashMap<Digest, u64>, sign: Option<Digest>| map.get(&sign?).copied();
        if signs.header.is_some() {
            // A name that is new begins a session, unless its parent is known.
            return by(&self.by_header, signs.header).or(by(&self.by_header, signs.parent));
        }
        let before = signs.ends.iter().rev().skip(1);
        by(&self.by_reply, signs.previous)
            .or_else(|| before.filter_map(|end| self.by_end.get(end)).next().copied())
            .filter(|session| self.open.contains_key(session))
    }

    /// Forgets sessions that are over; in portions, so that a request seldom waits for it.
    fn forget(&mut self, now: Nanos) {
        let is_full = self.open.len() >= MOST
            || self.by_end.len().max(self.by_reply.len()).max(self.by_header.len()) >= MOST_ENDS;
        if !is_full {
            return;
        }
        let mut used: Vec<Nanos> = self.open.values().map(|session| session.used).collect();
        used.sort_unstable();
        let middle = used.get(used.len() / 2).copied().unwrap_or_default();
        let oldest = middle.max(Nanos(now.0.saturating_sub(IDLE.0)));
        self.open.retain(|_, session| session.used > oldest);
        for map in [&mut self.by_header, &mut self.by_reply, &mut self.by_end] {
            map.retain(|_, session| self.open.contains_key(session));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        let mut digest = Digest::default();
        digest[..text.len()].copy_from_slice(text.as_bytes());
        digest
    }

    /// Requests in the order of arrival, as `name: header parent previous; messages; blocks`, and
    /// the place of each. `-` is absent. `end NAME` ends a request.
    #[test]
    fn requests_find_their_sessions() {
        let script = "
            a: - - -; s u; 1 2 -> 0.0
            end a
            b: - - -; s u a v; 1 2 3 -> 0.0
            c: - - -; s w; 1 4 -> 1.0
            end b
            a fork that begins with the first request: - - -; s u a x; 1 2 5 -> 0.1
            a copy of the first: - - -; s u; 1 2 -> 2.0
            d: h - -; s u a v; 1 2 3 -> 3.0
            a sub-agent beside d: h - -; t; 7 -> 3.1
            end d
            d goes on: h - -; s; 1 2 3 9 -> 3.0
            a child: k h -; t; 8 -> 3.2
            e: - - -; q; 1 -> 4.0
            end e reply
            f: - - reply; r; 1 2 -> 4.0";
        let mut sessions = Sessions::default();
        let mut places: HashMap<&str, Place> = HashMap::new();
        for (at, line) in script.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate()
        {
            let at = Nanos(at as u64);
            if let Some(ended) = line.strip_prefix("end ") {
                let (name, reply) = ended.split_once(' ').unwrap_or((ended, ""));
                let reply = (!reply.is_empty()).then(|| digest(reply));
                sessions.ended(places[name], at, reply, None);
                continue;
            }
            let (name, rest) = line.split_once(": ").unwrap();
            let (signs, expected) = rest.split_once(" -> ").unwrap();
            let mut parts = signs.split("; ");
            let mut names = parts.next().unwrap().split(' ');
            let mut sign = || names.next().filter(|name| *name != "-").map(digest);
            let (header, parent, previous) = (sign(), sign(), sign());
            let messages: Vec<&str> = parts.next().unwrap().split(' ').collect();
            let ends: Vec<Digest> =
                (1..=messages.len()).map(|end| digest(&messages[..end].concat())).collect();
            let blocks = parts.next().unwrap().split(' ').map(|block| block.parse().unwrap());
            let blocks: Vec<u64> = blocks.collect();
            let signs = Signs { header, parent, previous, ends: &ends, blocks: &blocks, at };
            let place = sessions.place(&signs);
            assert_eq!(format!("{}.{}", place.session, place.thread), expected, "{line}");
            places.insert(name, place);
        }
    }
}
