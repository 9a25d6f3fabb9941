//! Lanes: each holds one session at a time, and takes the next one when it is over. Owns the
//! beginning of each lane inside its first session, and the salts of sessions; both are AIPerf's,
//! number for number (`timing/trajectory_source.py`, `timing/strategies/cache_bust.py` of 0.13).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use super::graph::{Entered, Graph, Primer};
use super::place::Place;
use crate::lock;
use crate::parts::RunError;
use crate::prepare::Feed;
use load::pace::Next;
use model::generator::Generator;
use model::hex;
use model::identity::RunId;
use model::units::Nanos;
use scenario::plan::{self, Plan, Salt};
use sha2::{Digest, Sha256};
use tokenizer::Tokenizer;

/// The lanes of a run: the sessions that follow, and the salts.
pub struct Lanes {
    /// The sessions to come; absent once the load is over.
    feed: Mutex<Option<Feed<Graph>>>,
    options: plan::Lanes,
    seed: u64,
    /// True if other machines have lanes of the same run, which may replay the same sessions.
    is_shared: bool,
    salts: Salts,
    /// The session in each lane.
    pub(super) places: Mutex<BTreeMap<u32, Place>>,
}

/// The texts that sessions begin with.
struct Salts {
    run: String,
    tokenizer: Arc<Tokenizer>,
    /// The replays so far, by session.
    passes: Mutex<HashMap<String, u64>>,
}

/// A session in its lane.
pub struct Tree {
    pub graph: Graph,
    pub salt: Option<Arc<Salt>>,
    pub entered: Entered,
}

/// The seed of the instant at which a lane begins inside its first session.
fn seed_of(seed: u64, trace: &str, lane: u32) -> u64 {
    let digest = Sha256::digest(format!("{seed}:{trace}:{lane}"));
    digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// The instant at which a lane begins inside a recording of this length.
pub(super) fn start(
    shares: [f64; 2],
    length: Nanos,
    (seed, trace, lane): (u64, &str, u32),
) -> Nanos {
    let [low, high] = shares.map(|share| share * length.as_millis_f64());
    // Without a range nothing is drawn.
    let drawn = if low == high {
        low
    } else {
        Generator::new(seed_of(seed, trace, lane)).uniform(low, high)
    };
    Nanos::from_secs_f64(drawn / 1e3)
}

/// The text in front of a session's prompts.
pub(super) fn salt(run: &str, pass: u64, lane: u32, trace: &str) -> String {
    let digest = Sha256::digest(format!("{run}:{pass}:{lane}:{trace}"));
    format!("[rid:{}]\n\n", hex(&digest[..6]))
}

impl Lanes {
    pub fn new(
        plan: &Plan,
        options: plan::Lanes,
        feed: Feed<Graph>,
        (run, tokenizer): (RunId, &Arc<Tokenizer>),
    ) -> Self {
        Lanes {
            feed: Mutex::new(Some(feed)),
            options,
            seed: plan.load.seed,
            is_shared: plan.slice.is_some(),
            salts: Salts {
                run: run.to_string(),
                tokenizer: Arc::clone(tokenizer),
                passes: Mutex::default(),
            },
            places: Mutex::default(),
        }
    }

    /// The first sessions of these lanes, each at its instant. Fewer if the dataset has none. Fails
    /// if a session cannot begin inside.
    pub fn begin(&self, lanes: impl Iterator<Item = u32>) -> Result<Vec<(u32, Tree)>, RunError> {
        let mut trees = Vec::new();
        for lane in lanes {
            let Some(mut graph) = self.draw() else { break };
            let recording = graph.recording();
            let from = (self.seed, graph.trace(), lane);
            let at = start(self.options.start_at, recording.length(), from);
            let entered = graph.enter(&recording, at).map_err(RunError::Lanes)?;
            graph.begin_sub_agents(&recording);
            trees.push((lane, Tree { graph, salt: None, entered }));
        }
        // Replays are counted in the order in which AIPerf meets the sessions: those to warm up
        // come first.
        for is_warm in [true, false] {
            let met = trees.iter_mut();
            let met = met.filter(|(_, tree)| tree.entered.primers.is_empty() != is_warm);
            met.for_each(|(lane, tree)| self.name(*lane, tree));
        }
        Ok(trees)
    }

    /// The next session for a lane, from its first request; nothing if there is none any more.
    pub fn next(&self, lane: u32) -> Option<Tree> {
        let mut graph = self.draw()?;
        let recording = graph.recording();
        graph.begin_sub_agents(&recording);
        let entered = Entered { open: vec![(0, Nanos::ZERO)], ..Entered::default() };
        let mut tree = Tree { graph, salt: None, entered };
        self.name(lane, &mut tree);
        Some(tree)
    }

    fn draw(&self) -> Option<Graph> {
        match lock(&self.feed).as_ref()?.next(true) {
            Next::Ready(graph) => Some(graph),
            Next::Later | Next::None => None,
        }
    }

    /// No lane needs a session any more.
    pub fn close(&self) {
        drop(lock(&self.feed).take());
    }

    /// Counts a replay of a session, and gives it the names and the salt of that replay.
    fn name(&self, lane: u32, tree: &mut Tree) {
        let trace = tree.graph.trace().to_owned();
        let pass = {
            let mut passes = lock(&self.salts.passes);
            let next = passes.entry(trace.clone()).or_default();
            std::mem::replace(next, *next + 1)
        };
        if self.options.salt {
            let text = salt(&self.salts.run, pass, lane, &trace);
            let encoded = self.salts.tokenizer.encode(std::slice::from_ref(&text), false);
            let tokens = encoded.unwrap_or_default().pop().unwrap_or_default();
            tree.salt = Some(Arc::new(Salt { text, tokens }));
        }
        let suffix = match (pass, self.is_shared) {
            (0, false) => return,
            (_, false) => format!("~{pass}"),
            (_, true) => format!("~{lane}.{pass}"),
        };
        tree.graph.rename(&suffix);
        for Primer { composed, .. } in &mut tree.entered.primers {
            let sample = &mut composed.sample;
            sample.id.push_str(&suffix);
            sample.turn.iter_mut().for_each(|turn| turn.session.push_str(&suffix));
        }
    }
}

#[cfg(test)]
mod tests;
