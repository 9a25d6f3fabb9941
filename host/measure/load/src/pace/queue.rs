//! Requests that follow from others, by due time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Follower;
use model::units::Nanos;

/// Unsent followers, the earliest first; followers of one instant in the order of their news.
pub(super) struct Queue<Item> {
    waiting: BinaryHeap<Reverse<Entry<Item>>>,
    pushed: u64,
}

struct Entry<Item> {
    due: Nanos,
    number: u64,
    item: Item,
}

impl<Item> Queue<Item> {
    pub(super) fn new() -> Self {
        Queue { waiting: BinaryHeap::new(), pushed: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, follower: Follower<Item>) {
        self.pushed += 1;
        self.waiting.push(Reverse(Entry {
            due: follower.due,
            number: self.pushed,
            item: follower.item,
        }));
    }

    /// Has every follower due this much earlier.
    pub(super) fn advance(&mut self, span: Nanos) {
        if span > Nanos::ZERO {
            let waiting = std::mem::take(&mut self.waiting).into_iter();
            let earlier = waiting
                .map(|Reverse(entry)| Reverse(Entry { due: entry.due.since(span), ..entry }));
            self.waiting = earlier.collect();
        }
    }

    pub(super) fn due(&self) -> Option<Nanos> {
        self.waiting.peek().map(|Reverse(waiting)| waiting.due)
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        self.waiting.pop().map(|Reverse(waiting)| waiting.item)
    }
}

impl<Item> PartialEq for Entry<Item> {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl<Item> Eq for Entry<Item> {}

impl<Item> PartialOrd for Entry<Item> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<Item> Ord for Entry<Item> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}
