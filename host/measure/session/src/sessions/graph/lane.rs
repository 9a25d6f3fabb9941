//! A session in a lane: its recorded times, its start inside the recording, and its early end, by
//! the rules of AIPerf 0.13 (`timing/trajectory_source.py`). A stream is a conversation, of the
//! session's agent or of a sub-agent.

use std::collections::HashMap;

use super::{Graph, State, Steps, each_part};
use crate::pending::ComposedSample;
use model::units::Nanos;
use plugins::backend::{Part, Point, Prompt, Role, Sample};

/// The recording of a session: its requests' streams, and their starts from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    streams: Vec<usize>,
    starts: Vec<Nanos>,
}

/// A session at an instant of its recording.
#[derive(Default)]
pub struct Entered {
    /// The last request of each live stream before the instant.
    pub primers: Vec<Primer>,
    /// The requests that wait for no other, with their times after the instant.
    pub open: Vec<(usize, Nanos)>,
}

/// A request that fills the server's cache with a stream's state.
pub struct Primer {
    pub index: u64,
    /// Its time before the instant.
    pub lead: Nanos,
    pub composed: ComposedSample,
}

impl Recording {
    /// The time from the first request's start to the last one's.
    pub fn length(&self) -> Nanos {
        self.starts.iter().copied().max().unwrap_or_default()
    }
}

/// The conversation of a session's first request, or that request's id.
pub fn trace(root: &Sample) -> &str {
    root.turn.as_ref().map_or(&root.id, |turn| &turn.session)
}

impl Graph {
    pub fn trace(&self) -> &str {
        trace(&self.nodes[0].sample)
    }

    /// True if the session begins with a conversation that has a system prompt.
    pub fn is_instructed(&self) -> bool {
        let Prompt::Messages(messages) = &self.nodes[0].sample.prompt else { return false };
        messages.iter().any(|message| message.role == Role::System)
    }

    /// Gives the ids of requests and conversations a suffix, so that a repeated session differs.
    pub fn rename(&mut self, suffix: &str) {
        for node in &mut self.nodes {
            let sample = &mut node.sample;
            sample.id.push_str(suffix);
            sample.turn.iter_mut().for_each(|turn| turn.session.push_str(suffix));
            each_part(&mut sample.prompt, |part| {
                if let Part::Answer(of) = part {
                    of.push_str(suffix);
                }
            });
        }
    }

    /// Reads the recorded times off the pauses and durations. A request that began before the end
    /// of its predecessor counts as begun at that end.
    pub fn recording(&self) -> Recording {
        let mut names: HashMap<&str, usize> = HashMap::new();
        let (mut streams, mut starts) = (Vec::new(), Vec::new());
        for (position, node) in self.nodes.iter().enumerate() {
            let own = names.len();
            let stream = match &node.sample.turn {
                Some(turn) => *names.entry(&turn.session).or_insert(own),
                None => node.parents.first().map_or(0, |parent| streams[*parent]),
            };
            let released = node.parents.iter().flat_map(|parent| {
                let took = Nanos(self.nodes[*parent].sample.recorded_duration.unwrap_or(0));
                let start: Nanos = starts[*parent];
                let edges = self.nodes[*parent].followers.iter();
                edges.filter(|edge| edge.to == position).map(move |edge| {
                    let took = if edge.point == Point::End { took } else { Nanos::ZERO };
                    start + took + edge.delay
                })
            });
            starts.push(released.max().unwrap_or(self.delay));
            streams.push(stream);
        }
        Recording { streams, starts }
    }

    /// Makes each sub-agent begin as AIPerf does: after its agent's request, by as much as it began
    /// after the first sub-agent that the same request waits for.
    pub fn begin_sub_agents(&mut self, recording: &Recording) {
        let Recording { streams, starts } = recording;
        let last: HashMap<usize, usize> = streams.iter().copied().zip(0..).collect();
        let join = |stream: usize| {
            let followers = last.get(&stream).map(|last| self.nodes[*last].followers.iter());
            let joins = followers.into_iter().flatten().map(|edge| edge.to);
            joins.filter(|to| streams[*to] != stream).min()
        };
        let begun: Vec<(usize, usize, Option<usize>)> = (self.nodes.iter().enumerate())
            .filter_map(|(position, node)| {
                let spawner = *node.parents.first()?;
                let stream = streams[position];
                (streams[spawner] != stream).then(|| (position, spawner, join(stream)))
            })
            .collect();
        let mut first: HashMap<(usize, Option<usize>), Nanos> = HashMap::new();
        for (position, spawner, join) in &begun {
            let start = first.entry((*spawner, *join)).or_insert(starts[*position]);
            *start = (*start).min(starts[*position]);
        }
        for (position, spawner, join) in begun {
            let delay = starts[position].since(first[&(spawner, join)]);
            let edges = self.nodes[spawner].followers.iter_mut();
            edges.filter(|edge| edge.to == position).for_each(|edge| edge.delay = delay);
        }
    }

    /// Begins the session at an instant of its recording: everything before counts as answered.
    pub fn enter(&mut self, recording: &Recording, at: Nanos) -> Result<Entered, String> {
        let Recording { streams, starts } = recording;
        let mut next: HashMap<usize, usize> = HashMap::new();
        for (position, stream) in streams.iter().enumerate() {
            if starts[position] >= at {
                next.entry(*stream).or_insert(position);
            }
        }
        let is_past =
            |position: usize| next.get(&streams[position]).is_none_or(|next| position < *next);
        let last: HashMap<usize, usize> = (0..streams.len())
            .filter(|position| is_past(*position))
            .map(|position| (streams[position], position))
            .collect();
        let mut entered = Entered::default();
        for position in (0..self.nodes.len()).filter(|position| is_past(*position)) {
            let stream = streams[position];
            let is_primer = next.contains_key(&stream) && last.get(&stream) == Some(&position);
            let node = &mut self.nodes[position];
            if node.state != State::Waiting {
                continue;
            }
            let has_history = node.continues.is_some() || !node.sample.prompt.quotes().is_empty();
            if is_primer || has_history || node.needed > 0 {
                let composed = self.compose(position)?;
                if is_primer {
                    let lead = at.since(starts[position]);
                    entered.primers.push(Primer { index: self.index(position), lead, composed });
                }
            } else {
                node.state = State::Sent;
                self.give_up_prompt(position);
            }
            let dropped = self.over(position, Nanos::ZERO, None).dropped;
            if let Some(first) = dropped.first() {
                return Err(format!(
                    "sample `{}` cannot begin inside its session: the answer to `{}` is not recorded; set `start-at` to [0, 0] in [load.lanes], or use a dataset with recorded answers",
                    self.nodes[*first].sample.id, self.nodes[position].sample.id
                ));
            }
        }
        let open = self.nodes.iter().enumerate();
        let open = open.filter(|(_, node)| node.state == State::Waiting && node.waits_for == 0);
        entered.open = open.map(|(position, _)| (position, starts[position].since(at))).collect();
        entered.open.sort_by_key(|(_, after)| *after);
        Ok(entered)
    }

    /// Ends the stream of a request whose context was too long, and the waits for the stream's end.
    pub fn cut(&mut self, node: usize, at: Nanos) -> Steps {
        if self.nodes[node].state != State::Sent {
            return Steps::default();
        }
        self.nodes[node].state = State::Over;
        self.open -= 1;
        self.answer(node, None);
        let mut steps = Steps::default();
        let (mut ended, mut place) = (vec![node], 0);
        while let Some(node) = ended.get(place).copied() {
            place += 1;
            for edge in 0..self.nodes[node].followers.len() {
                let to = self.nodes[node].followers[edge].to;
                if self.nodes[to].state != State::Waiting {
                    continue;
                }
                if self.nodes[to].parents.first() == Some(&node) {
                    self.nodes[to].state = State::Dropped;
                    self.open -= 1;
                    ended.push(to);
                } else if !std::mem::replace(&mut self.nodes[node].followers[edge].is_met, true) {
                    steps.ready.extend(self.release(to, at));
                }
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests;
