//! Cases: an engine under a load, of which any number of runs can be drawn.

use model::exchange::Exchange;

use crate::{
    Engine, Lengths, Parameters, Served, all_at_once, capacity, closed, exchanges, open, poisson,
};

/// Prompts and answers of chats: they vary much.
pub const CHAT: [Lengths; 2] = [
    Lengths {
        mean: 500.0,
        spread: 0.8,
    },
    Lengths {
        mean: 100.0,
        spread: 0.6,
    },
];

/// Prompts and answers of one length.
pub const FIXED: [Lengths; 2] = [
    Lengths {
        mean: 500.0,
        spread: 0.0,
    },
    Lengths {
        mean: 100.0,
        spread: 0.0,
    },
];

/// How requests come.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// By chance, at a rate that is this share of the engine's capacity.
    Open(f64),
    /// From so many users, who each wait for their answer.
    Closed(usize),
    /// All at the beginning.
    AtOnce,
}

/// A case: an engine under a load.
#[derive(Clone)]
pub struct Case {
    /// What it is, in the table.
    pub name: String,
    /// The engine.
    pub engine: Parameters,
    /// How long prompts and answers are.
    pub lengths: [Lengths; 2],
    /// How requests come.
    pub load: Load,
    /// How many there are.
    pub requests: usize,
    /// Requests that the engine answers per second at most.
    pub capacity: f64,
}

impl Case {
    /// A case of an engine, with the engine's capacity for such requests.
    pub fn of(
        name: &str,
        engine: Parameters,
        lengths: [Lengths; 2],
        load: Load,
        requests: usize,
    ) -> Self {
        let work = Lengths::work(lengths[0], lengths[1], 6000, 99);
        Case {
            name: name.to_owned(),
            capacity: capacity(&engine, &work),
            engine,
            lengths,
            load,
            requests,
        }
    }

    /// The usual engine under chats.
    pub fn usual(load: Load, requests: usize) -> Self {
        let name = match load {
            Load::Open(share) => format!("open loop, {share} of capacity, {requests} requests"),
            Load::Closed(users) => format!("closed loop, {users} users, {requests} requests"),
            Load::AtOnce => format!("all at once, {requests} requests"),
        };
        Case::of(&name, Parameters::default(), CHAT, load, requests)
    }

    /// A run: its seed decides prompts, answers and arrivals, and the other one what the engine does.
    pub fn served(&self, workload: u64, engine: u64) -> Vec<Served> {
        let [prompts, answers] = self.lengths;
        let work = Lengths::work(prompts, answers, self.requests, 1_000_000 + workload);
        let engine = &mut Engine::new(self.engine.clone(), 2_000_000 + engine);
        match self.load {
            Load::Open(share) => {
                let rate = share * self.capacity;
                open(
                    engine,
                    &poisson(self.requests, rate, 3_000_000 + workload),
                    &work,
                )
            }
            Load::Closed(users) => closed(engine, users, &work),
            Load::AtOnce => all_at_once(engine, &work),
        }
    }

    /// What a client records of a run.
    pub fn exchanges(&self, workload: u64, engine: u64) -> Vec<Exchange> {
        exchanges(&self.served(workload, engine))
    }

    /// Requests per second that the load offers; `None` where the engine decides that.
    pub fn rate(&self) -> Option<f64> {
        match self.load {
            Load::Open(share) => Some(share * self.capacity),
            Load::Closed(_) | Load::AtOnce => None,
        }
    }
}
