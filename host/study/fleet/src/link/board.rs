//! The latest news of each agent, for displays of the run. It decides nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use model::units::Nanos;
use serde_json::Value;

use super::lock;
use crate::rendezvous::Who;

/// The last figures of all agents. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<BTreeMap<u32, Latest>>>);

/// The latest news of one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    pub who: Who,
    /// Its figures, opaque here; absent before the first.
    pub figures: Option<Arc<Value>>,
    /// The number of figures that came: the same number stands for the same figures.
    pub number: u64,
    /// The time when the last figures came, by the coordinator's clock.
    pub at: Nanos,
    /// True if its part of the run has ended and is complete here.
    pub finished: bool,
    /// True if it is gone for good.
    pub lost: bool,
}

impl Board {
    /// Returns the latest news of each agent that has sent any, by rank.
    pub fn read(&self) -> BTreeMap<u32, Latest> {
        lock(&self.0).clone()
    }

    pub(super) fn figures(&self, who: &Who, figures: Value, at: Nanos) {
        self.change(who, |latest| {
            latest.figures = Some(Arc::new(figures));
            latest.number += 1;
            latest.at = at;
        });
    }

    pub(super) fn finished(&self, who: &Who) {
        self.change(who, |latest| latest.finished = true);
    }

    pub(super) fn lost(&self, who: &Who) {
        self.change(who, |latest| latest.lost = true);
    }

    fn change(&self, who: &Who, change: impl FnOnce(&mut Latest)) {
        let mut board = lock(&self.0);
        let latest = board.entry(who.rank).or_insert_with(|| Latest {
            who: who.clone(),
            figures: None,
            number: 0,
            at: Nanos::ZERO,
            finished: false,
            lost: false,
        });
        change(latest);
        // A process that was started again may be on another machine.
        latest.who.clone_from(who);
    }
}
