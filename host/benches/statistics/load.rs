//! The runs that are drawn: which engine, which load, and what is recorded of it.

use model::exchange::Exchange;
use result::summary::{Loop, Run, RunFacts, Summary};
use simulator::{
    Engine, Lengths, Parameters, Served, all_at_once, capacity, closed, open, poisson,
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
    pub engine: Parameters,
    pub lengths: [Lengths; 2],
    pub load: Load,
    pub requests: usize,
    /// Requests that the engine answers per second at most.
    pub capacity: f64,
}

impl Case {
    /// A case of an engine, with the engine's capacity for such requests.
    pub fn of(
        name: &str,
        engine: &str,
        lengths: [Lengths; 2],
        load: Load,
        requests: usize,
    ) -> Self {
        let engine: Parameters = engine.parse().unwrap_or_else(|error| panic!("{error}"));
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
        Case::of(&name, "", CHAT, load, requests)
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

    /// What its summary needs to know beside its exchanges.
    pub fn facts(&self) -> RunFacts {
        let (rate, cap) = match self.load {
            Load::Open(share) => (Some(share * self.capacity), None),
            Load::Closed(users) => (None, Some(users as u64)),
            Load::AtOnce => (None, None),
        };
        RunFacts::from(Run {
            request_rate: rate,
            even_rate: rate.is_some(),
            max_in_flight: cap,
            planned: Some(self.requests as u64),
            r#loop: match self.load {
                Load::Closed(_) => Loop::Closed,
                Load::Open(_) | Load::AtOnce => Loop::Open,
            },
            ..run()
        })
    }

    /// The summary of a run.
    pub fn summary(&self, exchanges: &[Exchange]) -> Summary {
        Summary::of(&self.facts(), exchanges)
    }
}

fn run() -> Run {
    Run {
        backend: "simulator".into(),
        arrival: "simulated".into(),
        r#loop: Loop::Open,
        request_rate: None,
        even_rate: false,
        max_in_flight: None,
        planned: None,
        streamed: true,
        ignore_eos: false,
        percentiles: vec![50.0, 99.0],
        measure_start: None,
        first_due: Default::default(),
        goodput: Vec::new(),
        thresholds: Vec::new(),
        tokenizer: None,
        insecure: false,
        plugins: Vec::new(),
        sandbox: None,
        interrupted: false,
        damage: None,
    }
}

/// What each of so many runs gives, drawn on all cores.
pub fn each<T: Send>(runs: u64, draw: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let draw = &draw;
    std::thread::scope(|scope| {
        let drawn: Vec<_> = (0..threads)
            .map(|own| {
                let runs = (own..runs).step_by(threads as usize);
                scope.spawn(move || runs.map(|run| (run, draw(run))).collect::<Vec<_>>())
            })
            .collect();
        let mut all: Vec<(u64, T)> = drawn
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|_| panic!("a run failed")))
            .collect();
        all.sort_by_key(|(run, _)| *run);
        all.into_iter().map(|(_, drawn)| drawn).collect()
    })
}
