//! Measures prefix reuse across a run's prompts. While they are sent, prompts go to an unnamed file
//! in the run's folder, and 24 bytes per request are held. After the load they are read back in the
//! order in which they were sent, and counted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::lock;
use crate::prompts::{self, Form};
use model::exchange::{Exchange, Phase};
use model::units::Nanos;
use plugins::backend::Sample;
use result::prefix::Pages;
use result::summary::cache::Cache;
use scenario::plan::Plan;
use tokenizer::Tokenizer;

/// The prompts of a run, in the order in which they were written.
pub struct SentPrompts(Mutex<State>);

struct State {
    file: File,
    end: u64,
    places: Vec<Extent>,
    failed: Option<io::Error>,
}

/// The place of a prompt: the number of its request, its position and its length.
#[derive(Clone, Copy)]
struct Extent {
    request: u64,
    at: u64,
    length: u32,
    is_measured: bool,
}

impl Extent {
    fn key(&self) -> (bool, u64) {
        (self.is_measured, self.request)
    }
}

/// A sent request: its instant, true if it is measured, its number, and the server's count of the
/// prompt's tokens and cached tokens.
type SentRequest = (Nanos, bool, u64, Option<(u32, u32)>);

#[derive(Serialize, Deserialize)]
struct Line {
    adapter: Option<String>,
    form: Form,
}

impl SentPrompts {
    /// None yet, in a file in this folder.
    pub fn within(folder: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(SentPrompts(Mutex::new(State { file, end: 0, places: Vec::new(), failed: None })))
    }

    /// Keeps the prompt of a request that goes to a path. One that cannot be tokenized is left out.
    pub(crate) fn keep(&self, phase: Phase, index: u64, sample: &Sample, path: &str) {
        let Some(form) = Form::new(sample, path) else { return };
        let line = Line { adapter: sample.adapter.clone(), form };
        let Ok(bytes) = serde_json::to_vec(&line) else { return };
        let Ok(length) = u32::try_from(bytes.len()) else { return };
        let mut state = lock(&self.0);
        let at = state.end;
        if state.failed.is_none()
            && let Err(cause) = state.file.write_all_at(&bytes, at)
        {
            state.failed = Some(cause);
        }
        if state.failed.is_none() {
            state.end += u64::from(length);
            let is_measured = phase == Phase::Measure;
            state.places.push(Extent { request: index, at, length, is_measured });
        }
    }

    /// Counts the repeated parts of the sent prompts, and the server's cache hits. `None` if it is
    /// given up, or if a prompt could not be written or read: sums over a part mislead.
    pub(crate) fn count<X>(
        &self,
        plan: &Plan,
        tokenizer: &Tokenizer,
        exchanges: impl Iterator<Item = Result<Exchange, X>>,
        given_up: impl Fn() -> bool,
    ) -> Result<Option<Cache>, X> {
        let mut sent: Vec<SentRequest> = Vec::new();
        for exchange in exchanges {
            let exchange = exchange?;
            if let Some(at) = exchange.sent {
                let usage = (exchange.usage)
                    .and_then(|usage| usage.input_tokens.zip(usage.cached_input_tokens));
                let measured = exchange.phase == Phase::Measure;
                sent.push((at, measured, exchange.index, usage));
            }
        }
        sent.sort_unstable();
        let mut state = lock(&self.0);
        if state.failed.is_some() {
            return Ok(None);
        }
        state.places.sort_unstable_by_key(Extent::key);
        let mut pages = Pages::new(plan.control.page());
        let mut cache = Cache {
            policy: match (plan.control.flush_cache, plan.load.salted) {
                (true, _) => model::session::Cache::Flush,
                (false, true) => model::session::Cache::Salt,
                (false, false) => model::session::Cache::Keep,
            },
            page: plan.control.page().get(),
            ..Cache::default()
        };
        for (_, measured, index, usage) in sent {
            if given_up() {
                return Ok(None);
            }
            let place = (state.places).binary_search_by_key(&(measured, index), Extent::key);
            let Ok(Extent { at, length, .. }) = place.map(|found| state.places[found]) else {
                continue;
            };
            // The flush removed the warm-up's prompts.
            if !measured && plan.control.flush_cache {
                continue;
            }
            let mut bytes = vec![0; length as usize];
            if state.file.read_exact_at(&mut bytes, at).is_err() {
                return Ok(None);
            }
            let Ok(line) = serde_json::from_slice::<Line>(&bytes) else { return Ok(None) };
            let Some(made) = prompts::encode_form(tokenizer, line.form) else { continue };
            let reuse = pages.take(line.adapter.as_deref(), &made.tokens);
            if measured {
                cache.add(reuse.tokens, reuse.cached, usage);
            }
        }
        cache.is_bounded = pages.is_full();
        Ok((cache.requests > 0).then_some(cache))
    }
}
