//! A load laid over a scenario, for the runs of sweeps and searches.

use model::session::Users;
use reader::Located;
use scenario::{Arrival, Scenario};
use search::Load;
use search::sweep::At;
use serde::{Deserialize, Serialize};
use session::Source;

/// The source of these values, for messages and records.
const SETTER: &str = "the load that is varied";

/// The size of a load, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Amount {
    pub load: Load,
    pub at: At,
    /// Requests to measure; the scenario's own number or duration if absent.
    pub requests: Option<u64>,
    /// The run's random seed; the scenario's own if absent.
    pub seed: Option<u64>,
}

fn set<T>(value: T) -> Option<Located<T>> {
    Some(Located::flag(SETTER, value))
}

pub fn with(source: &Source, amount: Amount) -> Source {
    let mut source = source.clone();
    lay(&mut source.scenario, amount);
    source
}

fn lay(scenario: &mut Scenario, amount: Amount) {
    let (load, at) = (&mut scenario.load, amount.at.number());
    load.stages = None;
    load.ramp = Default::default();
    match amount.load {
        Load::Rate => {
            load.concurrency = None;
            load.think_time = None;
            load.think_spread = None;
            load.trace = Default::default();
            let keeps = load.arrival.as_ref().is_some_and(|arrival| arrival.value.has_rate());
            if !keeps || at.is_infinite() {
                load.arrival = None;
            }
            if at.is_infinite() {
                load.burstiness = None;
                load.normalise = None;
            }
            load.rate = set(at);
        }
        Load::Concurrency | Load::Sessions => {
            load.rate = None;
            load.burstiness = None;
            load.normalise = None;
            load.trace = Default::default();
            load.arrival = set(Arrival::Closed);
            load.concurrency = set(at as u64);
            let users = match amount.load {
                Load::Sessions => Users::Sessions,
                _ => Users::Requests,
            };
            load.users = set(users);
        }
    }
    if let Some(requests) = amount.requests {
        load.duration = None;
        (load.requests, load.sessions) = match amount.load {
            Load::Sessions => (None, set(requests)),
            _ => (set(requests), None),
        };
    }
    if let Some(seed) = amount.seed {
        load.seed = set(seed);
    }
}
