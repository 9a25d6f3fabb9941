//! One session: a request that depends on no other, and all that depend on it. Finds the due
//! requests at first outputs and ends. Pure: instants go in, due times come out.

use std::collections::{HashMap, HashSet};

use super::Beginnings;
use super::history::{
    Conversation, ReplyContent, call_ids, first_messages, keep_calls, result_count,
};
use crate::pending::{ComposedSample, Lineage, prompt_bytes};
use model::session::{AfterFailure, History};
use model::units::Nanos;
use plugins::backend::{Message, Part, Point, Prompt, Sample};
use std::sync::Arc;

pub use lane::{Entered, Primer, Recording, trace};

mod lane;

pub const MOST: usize = 100_000;

#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub history: History,
    pub after_failure: AfterFailure,
    /// True if the dependency met last decides: a lane's join begins with the last sub-agent's end.
    pub by_last: bool,
}

pub struct Graph {
    policy: Policy,
    /// The number of the session's earlier replays in all slices of the plan.
    pub pass: u64,
    nodes: Vec<Node>,
    pub beginnings: Beginnings,
    /// The time from when its lane is free to its first request.
    pub delay: Nanos,
    open: usize,
}

struct Node {
    index: u64,
    sample: Sample,
    /// Its dependencies, by position.
    parents: Vec<usize>,
    /// The position of the request whose conversation it continues.
    continues: Option<usize>,
    /// The position of a request of the parent conversation, as of a sub-agent's.
    begun_by: Option<usize>,
    /// Number of dependencies that have not reached the required point.
    waits_for: usize,
    /// The latest of the instants at which dependencies released it.
    due: Nanos,
    /// The earliest of them.
    released: Option<Nanos>,
    followers: Vec<Edge>,
    state: State,
    /// Number of requests that still need its answer.
    needed: usize,
    /// Its own messages, from when it is composed until it is over.
    messages: Vec<Message>,
    before: Option<Arc<Conversation>>,
    conversation: Option<Arc<Conversation>>,
}

/// Another request that depends on this one.
#[derive(Clone, Copy)]
struct Edge {
    to: usize,
    point: Point,
    delay: Nanos,
    is_met: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Sent,
    Over,
    Dropped,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Requests that have a due time now, by position.
    pub ready: Vec<usize>,
    /// Requests that will never be sent, because one that they depend on failed.
    pub dropped: Vec<usize>,
}

impl Graph {
    /// A session of samples, the root first, each with its request's number.
    pub fn new(samples: Vec<(u64, Sample)>, policy: Policy) -> Result<Self, String> {
        if samples.len() > MOST {
            let root = &samples[0].1.id;
            return Err(format!(
                "the session that begins with sample `{root}` has more than {MOST} samples"
            ));
        }
        let delay = samples.first().map_or(Ok(Nanos::ZERO), |(_, root)| delay(root))?;
        let mut positions: HashMap<String, usize> = HashMap::new();
        let mut nodes: Vec<Node> = Vec::with_capacity(samples.len());
        let mut conversations: HashMap<String, Option<usize>> = HashMap::new();
        for (position, (index, sample)) in samples.into_iter().enumerate() {
            let mut parents = Vec::new();
            for dependency in &sample.after {
                let Some(&parent) = positions.get(&dependency.sample) else {
                    return Err(format!(
                        "sample `{}` depends on `{}`, which did not come before it in its session",
                        sample.id, dependency.sample
                    ));
                };
                parents.push(parent);
                nodes[parent].followers.push(Edge {
                    to: position,
                    point: dependency.point,
                    delay: Nanos(dependency.delay),
                    is_met: false,
                });
            }
            let continues = match &sample.prompt {
                Prompt::Continuation(next) => {
                    let at_end = sample.after.iter().zip(&parents).find(|(dependency, _)| {
                        dependency.sample == next.parent && dependency.point == Point::End
                    });
                    let Some((_, &parent)) = at_end else {
                        return Err(format!(
                            "sample `{}` continues `{}` without depending on its end",
                            sample.id, next.parent
                        ));
                    };
                    if !matches!(
                        nodes[parent].sample.prompt,
                        Prompt::Text(_) | Prompt::Messages(_) | Prompt::Continuation(_)
                    ) {
                        return Err(format!(
                            "sample `{}` continues `{}`, whose prompt is not a conversation",
                            sample.id, next.parent
                        ));
                    }
                    nodes[parent].needed += 1;
                    Some(parent)
                }
                _ => None,
            };
            for quoted in sample.prompt.quotes() {
                let Some(&parent) = positions.get(quoted) else {
                    return Err(format!(
                        "sample `{}` holds the answer to `{quoted}`, which did not come before it in its session",
                        sample.id
                    ));
                };
                if !is_over_before(&nodes, &sample, &parents, parent) {
                    return Err(format!(
                        "sample `{}` holds the answer to `{quoted}` without depending on its end",
                        sample.id
                    ));
                }
                nodes[parent].needed += 1;
            }
            let begun_by = sample.turn.as_ref().and_then(|turn| {
                let begun_by = conversations.get(&turn.session).copied();
                begun_by.unwrap_or_else(|| {
                    // The first turn depends on the conversation that it comes from.
                    let parent = parents.first().copied();
                    conversations.insert(turn.session.clone(), parent);
                    parent
                })
            });
            positions.insert(sample.id.clone(), position);
            nodes.push(Node {
                index,
                waits_for: parents.len(),
                parents,
                continues,
                begun_by,
                sample,
                due: Nanos::ZERO,
                released: None,
                followers: Vec::new(),
                state: State::Waiting,
                needed: 0,
                messages: Vec::new(),
                before: None,
                conversation: None,
            });
        }
        let open = nodes.len();
        Ok(Graph { policy, pass: 0, nodes, beginnings: Beginnings::default(), delay, open })
    }

    /// True if every request is over, or will never be sent.
    pub fn is_over(&self) -> bool {
        self.open == 0
    }

    /// The size of the texts that are still to be sent, more or less.
    pub fn bytes(&self) -> usize {
        let prompts = self.nodes.iter().map(|node| prompt_bytes(&node.sample.prompt));
        prompts.sum::<usize>() + self.nodes.len() * size_of::<Node>()
    }

    /// The number of requests that depend on the first, directly or through others.
    pub fn followers_of_root(&self) -> u32 {
        u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
    }

    pub fn due(&self, node: usize) -> Nanos {
        self.nodes[node].due
    }

    pub fn index(&self, node: usize) -> u64 {
        self.nodes[node].index
    }

    /// True if something is due a while after the first output of a request.
    pub fn watches_first_output(&self, node: usize) -> bool {
        let mut edges = self.nodes[node].followers.iter();
        edges.any(|edge| edge.point == Point::FirstOutput && !edge.is_met)
    }

    /// The first output of a request's reply came.
    pub fn first_output(&mut self, node: usize, at: Nanos) -> Vec<usize> {
        self.meet(node, at, |edge| edge.point == Point::FirstOutput)
    }

    /// A request is over: with an answer, or without one.
    pub fn over(&mut self, node: usize, at: Nanos, given: Option<ReplyContent>) -> Steps {
        if self.nodes[node].state != State::Sent {
            return Steps::default();
        }
        self.nodes[node].state = State::Over;
        self.open -= 1;
        let has_failed = given.is_none();
        self.answer(node, given);
        let mut steps = Steps::default();
        if has_failed && self.policy.after_failure == AfterFailure::Drop {
            let followers = self.followers(node);
            self.drop_all(followers, &mut steps.dropped);
            return steps;
        }
        if has_failed && self.nodes[node].conversation.is_none() {
            // Without an answer, requests that need one cannot continue.
            let id = self.nodes[node].sample.id.clone();
            let needing = (0..self.nodes.len()).filter(|other| {
                let other = &self.nodes[*other];
                other.continues == Some(node) || other.sample.prompt.quotes().contains(&id.as_str())
            });
            let needing = needing.collect();
            self.drop_all(needing, &mut steps.dropped);
        }
        steps.ready = self.meet(node, at, |_| true);
        steps
    }

    fn followers(&self, node: usize) -> Vec<usize> {
        let followers = self.nodes[node].followers.iter();
        followers.map(|edge| edge.to).collect()
    }

    /// Gives up requests that were not sent, and all that depend on them.
    fn drop_all(&mut self, mut these: Vec<usize>, dropped: &mut Vec<usize>) {
        while let Some(node) = these.pop() {
            if self.nodes[node].state == State::Waiting {
                self.nodes[node].state = State::Dropped;
                self.open -= 1;
                dropped.push(node);
                these.extend(self.followers(node));
            }
        }
        dropped.sort_unstable();
    }

    /// Those that depend on a request in one of these ways are let go by it.
    fn meet(&mut self, node: usize, at: Nanos, which: impl Fn(&Edge) -> bool) -> Vec<usize> {
        let mut ready = Vec::new();
        for place in 0..self.nodes[node].followers.len() {
            let edge = &mut self.nodes[node].followers[place];
            if edge.is_met || !which(edge) {
                continue;
            }
            edge.is_met = true;
            let (to, due) = (edge.to, at + edge.delay);
            ready.extend(self.release(to, due));
        }
        ready
    }

    /// Lets a request go by one of its dependencies; returns it if that was the last.
    fn release(&mut self, node: usize, due: Nanos) -> Option<usize> {
        let follower = &mut self.nodes[node];
        follower.due = if self.policy.by_last { due } else { follower.due.max(due) };
        follower.released = Some(follower.released.map_or(due, |first| first.min(due)));
        follower.waits_for -= 1;
        (follower.waits_for == 0 && follower.state == State::Waiting).then_some(node)
    }

    /// Keeps the answer to a request for the requests that need it.
    fn answer(&mut self, node: usize, given: Option<ReplyContent>) {
        // A request that continues it depends on its end, so it is among its followers.
        let followers = self.nodes[node].followers.iter();
        let results = followers
            .map(|edge| &self.nodes[edge.to])
            .filter(|other| other.continues == Some(node))
            .map(|other| match &other.sample.prompt {
                Prompt::Continuation(next) => result_count(&next.messages),
                _ => 0,
            });
        let results = results.max().unwrap_or(0);
        let node = &mut self.nodes[node];
        let messages = std::mem::take(&mut node.messages);
        let before = node.before.take();
        if node.needed == 0 {
            return;
        }
        let recorded = node.sample.recorded_answer.take();
        let (given, carry) = match given {
            None => (None, None),
            Some(given) => (Some(given.answer), given.carry),
        };
        // Results of tools must follow the calls that they answer.
        let fits = |answer: &Message| call_ids(answer).len() == results;
        let (answer, is_recorded) = match (self.policy.history, given, recorded) {
            (History::Recorded, _, Some(recorded)) => (recorded, true),
            (_, Some(given), Some(recorded)) if !fits(&given) && fits(&recorded) => {
                (recorded, true)
            }
            (_, Some(mut given), _) => {
                // A call without a result is an error to most servers.
                keep_calls(&mut given, results);
                (given, false)
            }
            (_, None, Some(recorded)) => (recorded, true),
            (_, None, None) => return,
        };
        let (answers, stand_ins) =
            before.as_ref().map_or((0, 0), |before| (before.answers, before.recorded));
        node.conversation = Some(Arc::new(Conversation {
            before,
            messages,
            answer,
            is_recorded,
            index: node.index,
            answers: answers + 1,
            recorded: stand_ins + u32::from(is_recorded),
            // A server that remembers the conversation remembers its own answer.
            carry: carry.filter(|_| !is_recorded),
        }));
    }

    fn placed(&self, node: usize, composed: ComposedSample) -> ComposedSample {
        let Node { parents, begun_by, released, .. } = &self.nodes[node];
        let turn = begun_by.and_then(|other| self.nodes[other].sample.turn.as_ref());
        let parent = turn.map(|turn| turn.session.clone());
        let lineage = Some(Lineage { root: self.nodes[0].index, parent });
        let parents = parents.iter().map(|parent| self.nodes[*parent].index).collect();
        ComposedSample { parents, released: *released, lineage, ..composed }
    }

    /// The sample of a due request, with its history. Fails without an answer that it holds.
    pub fn compose(&mut self, node: usize) -> Result<ComposedSample, String> {
        let continues = self.nodes[node].continues;
        let before = continues.and_then(|parent| self.nodes[parent].conversation.clone());
        let mut sample = self.nodes[node].sample.clone();
        sample.prompt = self.beginnings.whole(node, |at| &self.nodes[at].sample.prompt);
        let quoted: Vec<String> =
            sample.prompt.quotes().iter().map(|id| (*id).to_owned()).collect();
        self.nodes[node].state = State::Sent;
        let mut answers = HashMap::new();
        // Those whose answers this one needs, once for each need.
        let mut used: Vec<usize> = continues.into_iter().collect();
        for id in &quoted {
            let known = self.nodes.iter().position(|other| other.sample.id == *id);
            used.extend(known);
            let Some(conversation) =
                known.and_then(|other| self.nodes[other].conversation.as_ref())
            else {
                return Err(format!(
                    "sample `{}` holds the answer to `{id}`, which is not there; it must depend on the end of `{id}`",
                    sample.id
                ));
            };
            answers.insert(id.clone(), conversation.text());
        }
        fill(&mut sample.prompt, &answers);
        let own = first_messages(&sample.prompt, before.as_deref());
        let is_needed = self.nodes[node].needed > 0;
        let composed = ComposedSample::new(sample, own.clone(), before.as_deref());
        let composed = self.placed(node, composed);
        let done = &mut self.nodes[node];
        if is_needed {
            done.messages = own;
            done.before = before;
        }
        // The conversation holds the rest.
        self.give_up_prompt(node);
        for parent in used {
            let parent = &mut self.nodes[parent];
            parent.needed = parent.needed.saturating_sub(1);
            if parent.needed == 0 {
                parent.conversation = None;
            }
        }
        Ok(composed)
    }

    /// Frees the prompt of a request that was sent, unless a later one begins like it.
    fn give_up_prompt(&mut self, node: usize) {
        if !self.beginnings.is_base(node) {
            self.nodes[node].sample.prompt = Prompt::Tokens(Vec::new());
        }
    }

    /// The sample of a request that will never be sent, for its record.
    pub fn unsent(&mut self, node: usize) -> ComposedSample {
        let mut sample = self.nodes[node].sample.clone();
        sample.prompt = Prompt::Tokens(Vec::new());
        self.placed(node, ComposedSample::new(sample, Vec::new(), None))
    }
}

/// The time that a root waits in its lane.
fn delay(root: &Sample) -> Result<Nanos, String> {
    #[derive(serde::Deserialize)]
    struct Further {
        #[serde(default)]
        delay: u64,
    }
    let Some(further) = &root.further else { return Ok(Nanos::ZERO) };
    let read: Result<Further, _> = serde_json::from_str(further);
    read.map(|further| Nanos(further.delay)).map_err(|error| {
        format!(
            "sample `{}`: `further` is {further:?}; expected an object whose `delay` is nanoseconds: {error}",
            root.id
        )
    })
}

/// True if a request is over before the next one can be due.
fn is_over_before(nodes: &[Node], sample: &Sample, parents: &[usize], which: usize) -> bool {
    let mut pairs = sample.after.iter().zip(parents);
    if pairs.any(|(dependency, parent)| *parent == which && dependency.point == Point::End) {
        return true;
    }
    let mut looked_at = HashSet::new();
    let mut left = parents.to_vec();
    while let Some(node) = left.pop() {
        // Earlier samples of the session cannot depend on it.
        if node <= which || !looked_at.insert(node) {
            continue;
        }
        let after = &nodes[node].sample.after;
        for (dependency, parent) in after.iter().zip(&nodes[node].parents) {
            if *parent == which && dependency.point == Point::End {
                return true;
            }
            left.push(*parent);
        }
    }
    false
}

fn fill(prompt: &mut Prompt, answers: &HashMap<String, String>) {
    each_part(prompt, |part| {
        if let Part::Answer(of) = part {
            let text = answers.get(of).cloned().unwrap_or_default();
            *part = Part::Text(text);
        }
    });
}

/// Changes every part of a prompt's own messages.
fn each_part(prompt: &mut Prompt, change: impl FnMut(&mut Part)) {
    let messages = match prompt {
        Prompt::Messages(messages) => messages,
        Prompt::Continuation(next) => &mut next.messages,
        _ => return,
    };
    messages.iter_mut().flat_map(|message| &mut message.parts).for_each(change);
}

#[cfg(test)]
mod tests;
