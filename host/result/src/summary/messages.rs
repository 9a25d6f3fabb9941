//! The messages of failures of one class: how many failures there were, and the first few distinct
//! messages, in bounded memory.

use std::collections::BTreeMap;

use super::Failures;
use model::exchange::Reason;

/// How many distinct messages of a class are kept.
const KEPT: usize = 3;

/// The failures of one class seen so far.
#[derive(Default)]
pub(super) struct Messages {
    count: u64,
    reasons: BTreeMap<Reason, u64>,
    first: Option<u64>,
    /// The distinct messages that occurred first, with the lowest index at which each did, in the
    /// order of these. A message that was dropped had `KEPT` others before it, whatever came since.
    messages: Vec<(u64, String)>,
}

impl Messages {
    pub(super) fn add(&mut self, index: u64, reason: Option<Reason>, message: &str) {
        self.count += 1;
        if let Some(reason) = reason {
            *self.reasons.entry(reason).or_default() += 1;
        }
        self.first = Some(self.first.map_or(index, |first| first.min(index)));
        match self.messages.iter_mut().find(|(_, text)| text == message) {
            Some((first, _)) => *first = index.min(*first),
            None => self.messages.push((index, message.to_owned())),
        }
        self.messages.sort_unstable();
        self.messages.truncate(KEPT);
    }

    /// This many with the same message, of which the first has this index.
    pub(super) fn add_many(&mut self, index: u64, count: u64, message: &str) {
        self.add(index, None, message);
        self.count += count - 1;
    }

    pub(super) fn finish(self) -> Failures {
        Failures {
            count: self.count,
            reasons: self.reasons,
            first: self.first.unwrap_or_default(),
            messages: self.messages.into_iter().map(|(_, text)| text).collect(),
        }
    }
}
