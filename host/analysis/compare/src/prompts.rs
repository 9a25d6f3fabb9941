//! The prompts, request by request, as far as records show: 16 bytes per request.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use model::exchange::{Exchange, Phase};
use result::summary::Column;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompts {
    /// The digest of each request as it went over the wire.
    pub(crate) requests: Column<u64>,
    /// A digest of the dataset's statements about each: name, lengths, conversation, adapter. It
    /// does not depend on the backend's dialect.
    pub(crate) samples: Column<u64>,
}

impl Prompts {
    pub fn add(&mut self, exchange: &Exchange) {
        if exchange.phase != Phase::Measure {
            return;
        }
        let sample = &exchange.sample;
        // Written by us; one that is not would differ from all others, as it should.
        let request = u64::from_str_radix(&sample.request_digest, 16).unwrap_or_default();
        self.requests.insert(exchange.index, request);
        let mut hasher = DefaultHasher::new();
        sample.id.hash(&mut hasher);
        (sample.input_tokens, sample.output_tokens).hash(&mut hasher);
        sample.adapter.hash(&mut hasher);
        if let Some(turn) = &sample.turn {
            (&turn.session, turn.index).hash(&mut hasher);
        }
        self.samples.insert(exchange.index, hasher.finish());
    }

    pub fn count(&self) -> usize {
        self.requests.len()
    }
}

/// The place of each request in a run, by the digest of its bytes. A request that was sent twice
/// has none: its repeats would all stand at the first's, and leave their blocks empty.
#[derive(Clone, Debug, Default)]
pub struct Places {
    places: HashMap<u64, Option<u64>>,
    pub(super) requests: u64,
}

impl Places {
    /// The places of these requests in a run with this number of slices.
    pub fn new(prompts: &Prompts, slices: u32) -> Self {
        let mut places = HashMap::new();
        for (index, digest) in prompts.requests.iter() {
            let place = index / u64::from(slices.max(1));
            places.entry(digest).and_modify(|place| *place = None).or_insert(Some(place));
        }
        Places { places, requests: prompts.count() as u64 }
    }

    /// The place of a request among how many; `None` if the run has no such request, or several.
    pub(super) fn of_request(&self, digest: &str) -> Option<(u64, u64)> {
        let digest = u64::from_str_radix(digest, 16).ok()?;
        Some(((*self.places.get(&digest)?)?, self.requests))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Same {
    /// Requests that both have.
    pub common: u64,
    /// Common requests that differ.
    pub different: u64,
    /// The number of the first different request.
    pub first: Option<u64>,
}

impl Same {
    /// True if none differs.
    pub(crate) fn is_all(self) -> bool {
        self.different == 0
    }
}

/// Compares the digests of two runs, for the requests that both have.
pub(crate) fn same(a: &Column<u64>, b: &Column<u64>) -> Same {
    let mut found = Same { common: 0, different: 0, first: None };
    for (index, ours) in a.iter() {
        let Some(theirs) = b.get(index) else { continue };
        found.common += 1;
        if ours != theirs {
            found.different += 1;
            found.first.get_or_insert(index);
        }
    }
    found
}
