//! Samples in their order, as sessions: a request that depends on no other, and all that depend on
//! it.

use std::collections::HashMap;

use super::Item;
use super::writer::Writer;
use crate::pending::{PendingRequest, prompt_bytes};
use crate::sessions::graph::{Graph, MOST, Policy, trace};
use crate::sessions::lanes::Passes;
use crate::sessions::{Beginnings, Entry};
use model::exchange::Phase;
use plugins::backend::Sample;
use scenario::plan::{Amount, Plan};

pub(crate) struct Gathering {
    /// Number of sessions wanted.
    sessions: u64,
    index: u64,
    roots: u64,
    session: Vec<(u64, Sample)>,
    bytes: usize,
    /// The beginnings that the session's prompts share, unless they are kept whole.
    beginnings: Option<Beginnings>,
    /// The last sample of each conversation of the session, by position.
    last: HashMap<String, usize>,
    /// The replays in all slices, if the load has lanes.
    passes: Option<Passes>,
}

/// The most bytes of prompts of one session.
const MOST_BYTES: usize = 1 << 30;

/// The rules by which a plan's sessions continue.
pub(crate) fn policy(plan: &Plan) -> Policy {
    Policy {
        history: plan.request.history,
        after_failure: plan.request.after_failure,
        by_last: plan.load.lanes.is_some(),
    }
}

/// A session with all its samples.
pub(crate) struct Whole {
    number: u64,
    /// The number of its earlier replays in all slices.
    pass: u64,
    pub(crate) samples: Vec<(u64, Sample)>,
    beginnings: Beginnings,
}

impl Gathering {
    pub(crate) fn new(plan: &Plan) -> Self {
        Gathering {
            sessions: match plan.load.amount {
                Amount::Sessions(_) => plan.load.roots().unwrap_or(u64::MAX),
                Amount::Requests(_) | Amount::Duration(_) => u64::MAX,
            },
            index: 0,
            roots: 0,
            session: Vec::new(),
            bytes: 0,
            beginnings: None,
            last: HashMap::new(),
            passes: plan.load.lanes.map(|_| Passes::default()),
        }
    }

    /// With the beginnings that a session's prompts share held once.
    pub(crate) fn sharing(plan: &Plan) -> Self {
        Gathering { beginnings: Some(Beginnings::default()), ..Gathering::new(plan) }
    }

    /// Cuts off the beginning that a prompt shares with the one before it in its conversation, or
    /// with the first that it depends on.
    fn cut(&mut self, sample: &mut Sample) {
        let Some(beginnings) = &mut self.beginnings else { return };
        let position = self.session.len();
        let conversation = sample.turn.as_ref().map(|turn| turn.session.clone());
        let before = conversation.and_then(|name| self.last.insert(name, position));
        let base = before.or_else(|| {
            let parent = &sample.after.first()?.sample;
            self.session.iter().rposition(|(_, other)| other.id == *parent)
        });
        beginnings.cut(&mut sample.prompt, base, |at| &self.session[at].1.prompt);
    }

    /// Takes the next sample; gives the session before, if this one begins another. Fails without a
    /// root, or if the session is too large.
    pub(crate) fn add(&mut self, mut sample: Sample) -> Result<Option<Whole>, String> {
        let is_root = sample.after.is_empty();
        if !is_root && self.session.is_empty() {
            return Err(format!(
                "sample `{}` depends on others, but no independent sample came before it",
                sample.id
            ));
        }
        let before = if is_root { self.finish() } else { None };
        self.cut(&mut sample);
        self.bytes += prompt_bytes(&sample.prompt);
        if self.session.len() >= MOST || self.bytes > MOST_BYTES {
            let root = self.session.first().map_or(&sample, |(_, root)| root);
            return Err(format!(
                "the session that begins with sample `{}` has more than {MOST} samples or {} MiB of prompts",
                root.id,
                MOST_BYTES >> 20
            ));
        }
        self.session.push((self.index, sample));
        self.index += 1;
        self.roots += u64::from(is_root);
        Ok(before)
    }

    /// True if all wanted sessions are complete, so that the next sample is of no use.
    pub(crate) fn is_over(&self) -> bool {
        self.roots > self.sessions
    }

    /// The last session.
    pub(crate) fn finish(&mut self) -> Option<Whole> {
        let samples = std::mem::take(&mut self.session);
        let beginnings = self.beginnings.as_mut().map(std::mem::take).unwrap_or_default();
        (self.bytes, self.last) = (0, HashMap::new());
        let number = self.roots.checked_sub(1)?;
        let (_, root) = samples.first().filter(|_| number < self.sessions)?;
        let pass = self.passes.as_mut().map_or(0, |passes| passes.next(trace(root)));
        Some(Whole { number, pass, samples, beginnings })
    }
}

impl Whole {
    /// The session with its first request written, if this slice of the plan holds it.
    pub(crate) fn item(mut self, plan: &Plan, writer: &mut Writer) -> Result<Option<Item>, String> {
        if !plan.holds(self.number) {
            return Ok(None);
        }
        if self.samples.len() == 1
            && let Some((index, sample)) = self.samples.pop()
        {
            return Ok(Some(writer.write(PendingRequest::alone(index, Phase::Measure, sample))));
        }
        let mut graph = Graph::new(self.samples, policy(plan))?;
        graph.beginnings = self.beginnings;
        let root = graph.compose(0)?;
        let item = writer.write(PendingRequest {
            descendants: graph.followers_of_root(),
            ..PendingRequest::of_session(graph.index(0), root)
        });
        Ok(Some(Item { entry: Some(Entry::Root(Box::new(graph))), ..item }))
    }

    /// The session for a lane, if this slice of the plan holds it.
    pub(crate) fn tree(self, plan: &Plan) -> Result<Option<Graph>, String> {
        if !plan.holds(self.number) {
            return Ok(None);
        }
        let mut graph = Graph::new(self.samples, policy(plan))?;
        (graph.pass, graph.beginnings) = (self.pass, self.beginnings);
        Ok(Some(graph))
    }
}
