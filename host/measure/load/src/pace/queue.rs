//! Requests that follow from others, by due time.

use std::collections::BTreeMap;

use super::Follower;
use model::units::Nanos;

/// Unsent followers, the earliest first; followers of one instant in the order of their news.
pub(super) struct Queue<Item> {
    waiting: BTreeMap<(Nanos, u64), Item>,
    pushed: u64,
}

impl<Item> Queue<Item> {
    pub(super) fn new() -> Self {
        Queue { waiting: BTreeMap::new(), pushed: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, follower: Follower<Item>) {
        self.pushed += 1;
        self.waiting.insert((follower.due, self.pushed), follower.item);
    }

    /// Has every follower due this much earlier.
    pub(super) fn advance(&mut self, span: Nanos) {
        if span > Nanos::ZERO {
            let waiting = std::mem::take(&mut self.waiting).into_iter();
            let earlier = waiting.map(|((due, place), item)| ((due.since(span), place), item));
            self.waiting = earlier.collect();
        }
    }

    pub(super) fn due(&self) -> Option<Nanos> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        self.waiting.pop_first().map(|(_, item)| item)
    }
}
