//! The agents' sessions of kv-cache-tester (`callanjfox/kv-cache-tester`,
//! `docs/trace_replay_tester.md`): a session is one object on one line, with its requests and,
//! among them, sub-agents with requests of their own. Every request has its whole prompt. A hash id
//! stands for a whole block, so there are floor(`in` / `block_size`) of them, and the remaining
//! tokens are the request's own. With `hash_id_scope: "local"` ids mean the same block only within
//! their session, its sub-agents included; with `"global"` within the file.
//!
//! The rules are AIPerf's (`aiperf/dataset/loader/weka_trace.py`, 0.13). A request follows its
//! predecessor in its agent's list, after the recorded pause: from the predecessor's end,
//! `t + api_time`, to its own `t`. A sub-agent begins after the previous request of the list. A
//! later request waits for the sub-agent's end if the request was sent after that end; a sub-agent
//! that outlived all later requests runs in the background.
//!
//! With `use-think-time-only` the pause is the request's `think_time`. The recorder computes
//! `think_time` over all agents in order of time, so a sub-agent that overlaps its parent shortens
//! its parent's. Behind a sub-agent without recorded requests the pause is the recorded one.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{HashId, Layout, Rule};
use super::row::{Content, NOTHING, Row, nanos, parsed, tokens};
use crate::config::{Config, WrongBlocks};
use crate::content;

const DEEPEST: u32 = 8;

/// Nanoseconds before a sub-agent's end at which a request still waits for it: times are rounded.
const ROUNDING: i64 = 1_000;

const MOST_REQUESTS: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) layout: Layout,
    /// Names of the conversations: the agent's own, and its sub-agents'.
    pub(crate) threads: Vec<String>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) hollow: u64,
}

#[derive(Debug)]
pub(crate) struct Node {
    /// The place where it is in the line.
    pub(crate) range: Range<usize>,
    pub(crate) thread: usize,
    /// The request of its conversation that it is, from 0.
    pub(crate) index: u32,
    pub(crate) before: Option<usize>,
    /// The requests that it waits for, and the pause after each, in nanoseconds.
    pub(crate) after: Vec<(usize, i64)>,
    /// The time when it was sent, in nanoseconds from the session's beginning.
    pub(crate) time: i64,
    /// The time when its reply ended.
    ended: i64,
}

#[derive(Deserialize)]
struct Line<'a> {
    id: String,
    block_size: u32,
    hash_id_scope: Option<String>,
    #[serde(borrow)]
    requests: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    t: f64,
    #[serde(rename = "type")]
    kind: String,
    api_time: Option<f64>,
    think_time: Option<f64>,
    duration_ms: Option<f64>,
    agent_id: Option<String>,
    status: Option<String>,
    #[serde(borrow)]
    requests: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Request {
    model: Option<String>,
    #[serde(rename = "in")]
    input: u64,
    out: u64,
    #[serde(default)]
    hash_ids: Vec<HashId>,
    api_time: Option<f64>,
}

impl Session {
    /// The session of a line. Errors: the message, with the mistake.
    pub(crate) fn parse(line: &[u8], config: &Config) -> Result<Self, String> {
        let head: Line<'_> = parsed(line)?;
        if head.block_size == 0 {
            return Err("`block_size` is 0; expected the tokens of a block, such as 64".to_owned());
        }
        let scope = match head.hash_id_scope.as_deref() {
            // Traces from before the key was introduced are local.
            None | Some("local") => content::hash(&head.id),
            Some("global") => 0,
            Some(other) => {
                return Err(format!("`hash_id_scope` is `{other}`; expected `local` or `global`"));
            }
        };
        let mut walk = Walk {
            line,
            think: config.use_think_time_only,
            nodes: Vec::new(),
            threads: vec![head.id.clone()],
            names: BTreeSet::new(),
            hollow: 0,
        };
        walk.thread(&head.requests, 0, None, 0, 0)?;
        Ok(Self {
            id: head.id.clone(),
            layout: Layout {
                rule: Rule::Floor,
                size: head.block_size,
                scope,
                session: content::hash(&head.id),
                lenient: config.on_wrong_blocks == WrongBlocks::Repair,
            },
            threads: walk.threads,
            nodes: walk.nodes,
            hollow: walk.hollow,
        })
    }
}

/// A request of a session. `place` is its number among the session's requests.
pub(crate) fn row(bytes: &[u8], layout: &Layout, place: u32) -> Result<Row, String> {
    let request: Request = parsed(bytes)?;
    let (length, no_input) = tokens("in", request.input)?;
    let (output, no_output) = tokens("out", request.out)?;
    let (runs, repaired) = layout.blocks(length, &request.hash_ids, place.into())?;
    Ok(Row {
        took: request.api_time.and_then(nanos),
        class: request.model,
        output: Some(output),
        content: Content::Runs(runs),
        repaired: repaired.or((no_input || no_output).then_some(NOTHING)),
        ..Row::default()
    })
}

struct Walk<'a> {
    line: &'a [u8],
    /// True if pauses are the recorded `think_time`.
    think: bool,
    nodes: Vec<Node>,
    threads: Vec<String>,
    names: BTreeSet<String>,
    hollow: u64,
}

impl Walk<'_> {
    /// Adds the requests of a conversation, which begins after `spawner`; returns the last one.
    fn thread(
        &mut self,
        requests: &[&RawValue],
        thread: usize,
        spawner: Option<usize>,
        base: i64,
        depth: u32,
    ) -> Result<Option<usize>, String> {
        let mut before: Option<usize> = None;
        // The last requests of running sub-agents, with the sub-agents' recorded ends.
        let mut running: Vec<(usize, i64)> = Vec::new();
        // True if the next request waited for a sub-agent whose requests are unknown.
        let mut hollow = false;
        let mut index = 0;
        for (at, raw) in requests.iter().enumerate() {
            let place = |cause: String| format!("request {}: {cause}", at + 1);
            let item: Item<'_> = parsed(raw.get().as_bytes()).map_err(place)?;
            let time = nanos(item.t).ok_or_else(|| place(format!("`t` is {}", item.t)))?;
            let time = time.saturating_add(base);
            for (name, value) in [("t", item.t), ("api_time", item.api_time.unwrap_or_default())] {
                if value < 0.0 {
                    return Err(place(format!("`{name}` is {value}; expected at least 0")));
                }
            }
            match item.kind.as_str() {
                "subagent" => {
                    let inner = item.requests.unwrap_or_default();
                    if inner.is_empty() {
                        self.hollow += 1;
                        hollow |= item.status.as_deref() != Some("async_launched");
                        continue;
                    }
                    let anchor = before
                        .or_else(|| running.last().map(|(last, _)| *last))
                        .or(spawner)
                        .or_else(|| self.nodes.len().checked_sub(1));
                    let first = self.nodes.len();
                    let last = self
                        .sub_agent(&inner, (thread, item.agent_id), anchor, time, depth)
                        .map_err(|cause| place(format!("of the sub-agent: {cause}")))?;
                    let lasted = item.duration_ms.and_then(|lasted| nanos(lasted / 1e3));
                    let ended = match lasted {
                        Some(lasted) => Some(time.saturating_add(lasted.max(0))),
                        None => self.nodes[first..].iter().map(|node| node.ended).max(),
                    };
                    running.extend(last.zip(ended));
                }
                "n" | "s" => {
                    let think = item.think_time.filter(|_| self.think && !hollow);
                    let mut after = self.after(before, spawner, time, think.and_then(nanos));
                    running.retain(|(last, ended)| {
                        let joined = *ended <= time.saturating_add(ROUNDING);
                        after.extend(joined.then_some((*last, 0)));
                        !joined
                    });
                    hollow = false;
                    if self.nodes.len() == MOST_REQUESTS {
                        return Err(format!("a session of more than {MOST_REQUESTS} requests"));
                    }
                    let start = raw.get().as_ptr() as usize - self.line.as_ptr() as usize;
                    let took = item.api_time.and_then(nanos).unwrap_or_default();
                    self.nodes.push(Node {
                        range: start..start + raw.get().len(),
                        thread,
                        index,
                        before,
                        after,
                        time,
                        ended: time.saturating_add(took.max(0)),
                    });
                    index += 1;
                    before = Some(self.nodes.len() - 1);
                }
                other => {
                    return Err(place(format!(
                        "the type is `{other}`; expected `n`, `s` or `subagent`"
                    )));
                }
            }
        }
        Ok(before)
    }

    fn sub_agent(
        &mut self,
        requests: &[&RawValue],
        (thread, name): (usize, Option<String>),
        anchor: Option<usize>,
        time: i64,
        depth: u32,
    ) -> Result<Option<usize>, String> {
        #[derive(Deserialize)]
        struct Start {
            t: f64,
        }
        if depth == DEEPEST {
            return Err(format!("sub-agents are nested more than {DEEPEST} deep"));
        }
        let name = name.unwrap_or_else(|| "agent".to_owned());
        let mut full = format!("{}/{name}", self.threads[thread]);
        if !self.names.insert(full.clone()) {
            full = format!("{full}#{}", self.threads.len());
        }
        self.threads.push(full);
        // Some traces count a sub-agent's times from its own beginning.
        let first = requests
            .first()
            .map(|raw| parsed::<Start>(raw.get().as_bytes()))
            .transpose()?
            .and_then(|begun| nanos(begun.t));
        let base = if first.is_some_and(|first| first < time) { time } else { 0 };
        let own = self.threads.len() - 1;
        self.thread(requests, own, anchor, base, depth + 1)
    }

    /// The request before a request, with the pause after its end; `None` for a session's first.
    fn after(
        &self,
        before: Option<usize>,
        spawner: Option<usize>,
        time: i64,
        think: Option<i64>,
    ) -> Vec<(usize, i64)> {
        let on = before.or(spawner).or_else(|| self.nodes.len().checked_sub(1));
        let pause = |on: usize| match think {
            Some(think) if before.is_some() => think.max(0),
            _ => time.saturating_sub(self.nodes[on].ended).max(0),
        };
        on.map(|on| (on, pause(on))).into_iter().collect()
    }
}

/// True for each request that stays: others leave with all that continue them.
pub(crate) fn without(nodes: &mut [Node], out: &[bool]) -> Vec<bool> {
    let mut stays = vec![true; nodes.len()];
    for at in 0..nodes.len() {
        let node = &nodes[at];
        let on = node.before.or_else(|| {
            // A sub-agent's first request goes with its predecessor.
            (node.thread > 0).then(|| node.after.first().map(|after| after.0)).flatten()
        });
        stays[at] = !out[at] && on.is_none_or(|on| stays[on]);
    }
    for at in 0..nodes.len() {
        let mut after = std::mem::take(&mut nodes[at].after);
        for (on, _) in &mut after {
            while !stays[*on]
                && let Some(before) = nodes[*on].before
            {
                *on = before;
            }
        }
        after.retain(|(on, _)| stays[*on]);
        nodes[at].after = after;
    }
    stays
}
