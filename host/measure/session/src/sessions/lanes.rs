//! Lanes: each holds one session at a time, and takes the next one when it is over.
//!
//! | rule | source |
//! | --- | --- |
//! | beginning | AIPerf 0.13, `timing/trajectory_source.py` |
//! | salt `session` | AIPerf 0.13, `timing/strategies/cache_bust.py` |
//! | salt `pass`, names of repeats | MLCommons endpoints, lines 213 and 380 |
//! | end of the measurement | MLCommons endpoints, line 443 |
//!
//! The lines are of `load_generator/agentic_inference_strategy.py` at `ea33275`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::Place;
use super::graph::{Entered, Graph, Primer};
use crate::lock;
use crate::parts::RunError;
use crate::pending::SessionSalt;
use crate::prepare::Feed;
use load::pace::Next;
use model::generator::Generator;
use model::hex;
use model::identity::RunId;
use model::session::LaneSalt;
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
    /// True if other machines have lanes: the session's place in the dataset counts its replays.
    is_shared: bool,
    is_instructed: bool,
    /// True once a lane found no further session.
    is_short: AtomicBool,
    salts: Salts,
    pub(super) places: Mutex<BTreeMap<u32, Place>>,
}

/// The texts that sessions begin with.
struct Salts {
    run: String,
    tokenizer: Arc<Tokenizer>,
    passes: Mutex<Passes>,
}

#[derive(Default)]
pub(crate) struct Passes(HashMap<String, u64>);

impl Passes {
    /// Counts a replay; returns the number of earlier ones.
    pub(crate) fn next(&mut self, trace: &str) -> u64 {
        let next = self.0.entry(trace.to_owned()).or_default();
        std::mem::replace(next, *next + 1)
    }
}

pub struct Tree {
    pub graph: Graph,
    pub salt: Option<Arc<SessionSalt>>,
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

/// The texts before a session's prompts and behind its system prompt; `pass` counts replays.
pub(super) fn salt(
    way: LaneSalt,
    run: &str,
    (pass, lane, trace): (u64, u32, &str),
) -> Option<(String, Option<String>)> {
    let of = |text: &str| {
        let digest = blake2b_simd::Params::new().hash_length(2).hash(text.as_bytes());
        format!("[salt: {}]", hex(digest.as_bytes()))
    };
    match way {
        LaneSalt::None => None,
        LaneSalt::Session => {
            let digest = Sha256::digest(format!("{run}:{pass}:{lane}:{trace}"));
            Some((format!("[rid:{}]\n\n", hex(&digest[..6])), None))
        }
        LaneSalt::Pass => {
            let before = of(&(pass + 1).to_string());
            Some((format!("{before}\n\n"), Some(format!("\n\n{}", of(trace)))))
        }
    }
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
            is_instructed: plan.request.system_prompt.is_some(),
            is_short: AtomicBool::new(false),
            salts: Salts {
                run: run.to_string(),
                tokenizer: Arc::clone(tokenizer),
                passes: Mutex::default(),
            },
            places: Mutex::default(),
        }
    }

    /// The first sessions of these lanes, each at its instant. Fewer if the dataset has none.
    pub fn begin(&self, lanes: impl Iterator<Item = u32>) -> Result<Vec<(u32, Tree)>, RunError> {
        let mut trees = Vec::new();
        for lane in lanes {
            let Some(mut graph) = self.draw()? else { break };
            let recording = graph.recording();
            let from = (self.seed, graph.trace(), lane);
            let at = start(self.options.start_at, recording.length(), from);
            let entered = graph.enter(&recording, at).map_err(RunError::Lanes)?;
            graph.begin_sub_agents(&recording);
            trees.push((lane, Tree { graph, salt: None, entered }));
        }
        // AIPerf's order, in which replays are counted: sessions to warm up come first.
        for is_warm in [true, false] {
            let met = trees.iter_mut();
            let met = met.filter(|(_, tree)| tree.entered.primers.is_empty() != is_warm);
            met.for_each(|(lane, tree)| self.name(*lane, tree));
        }
        Ok(trees)
    }

    /// The next session for a lane, from its first request; without one, the measurement ends.
    pub fn next(&self, lane: u32) -> Result<Option<Tree>, RunError> {
        let Some(mut graph) = self.draw()? else {
            self.is_short.store(true, Ordering::Release);
            return Ok(None);
        };
        let recording = graph.recording();
        graph.begin_sub_agents(&recording);
        let entered = Entered { open: vec![(0, graph.delay)], ..Entered::default() };
        let mut tree = Tree { graph, salt: None, entered };
        self.name(lane, &mut tree);
        Ok(Some(tree))
    }

    fn draw(&self) -> Result<Option<Graph>, RunError> {
        let next = lock(&self.feed).as_ref().map(|feed| feed.next(true));
        let Some(Next::Ready(graph)) = next else { return Ok(None) };
        if self.options.salt == LaneSalt::Pass && !self.is_instructed && !graph.is_instructed() {
            let trace = graph.trace();
            return Err(RunError::Lanes(format!(
                "the session `{trace}` has no system prompt, which `salt = \"pass\"` in [load.lanes] needs: add one, or set another salt"
            )));
        }
        Ok(Some(graph))
    }

    /// True once no session is left for a lane: requests that are sent from now on do not count.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire)
    }

    /// No lane needs a session any more.
    pub fn close(&self) {
        drop(lock(&self.feed).take());
    }

    /// Counts a replay of a session, and gives it the names and the salt of that replay.
    fn name(&self, lane: u32, tree: &mut Tree) {
        let trace = tree.graph.trace().to_owned();
        let pass =
            if self.is_shared { tree.graph.pass } else { lock(&self.salts.passes).next(&trace) };
        let salt = salt(self.options.salt, &self.salts.run, (pass, lane, &trace));
        tree.salt = salt.map(|(text, behind)| {
            let encoded = self.salts.tokenizer.encode(std::slice::from_ref(&text), false);
            let tokens = encoded.unwrap_or_default().pop().unwrap_or_default();
            Arc::new(SessionSalt { before: Salt { text, tokens }, behind })
        });
        let suffix = match pass {
            0 => return,
            _ if self.options.salt == LaneSalt::Pass => format!("__repeat_{}", pass + 1),
            _ => format!("~{pass}"),
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
