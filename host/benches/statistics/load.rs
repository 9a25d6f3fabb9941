//! The drawn runs, and their records.

use model::exchange::Exchange;
use result::summary::{Loop, Run, RunFacts, Summary};
use simulator::{Case, Load};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    Streamed,
    Whole,
}

/// Returns the facts beside its exchanges that the summary of a case's run needs.
pub fn facts(case: &Case) -> RunFacts {
    facts_of(case, Replies::Streamed)
}

fn facts_of(case: &Case, replies: Replies) -> RunFacts {
    let rate = case.rate();
    let (cap, r#loop) = match case.load {
        Load::Closed(users) => (Some(users as u64), Loop::Closed),
        _ => (None, Loop::Open),
    };
    RunFacts::from(Run {
        request_rate: rate,
        even_rate: rate.is_some(),
        max_in_flight: cap,
        planned: Some(case.requests as u64),
        r#loop,
        streamed: replies == Replies::Streamed,
        ..run()
    })
}

pub fn summary(case: &Case, exchanges: &[Exchange]) -> Summary {
    Summary::new(&facts(case), exchanges)
}

/// The summary of a case's run whose replies come in some way.
pub fn summary_of(case: &Case, replies: Replies, exchanges: &[Exchange]) -> Summary {
    Summary::new(&facts_of(case, replies), exchanges)
}

fn run() -> Run {
    Run {
        backend: "simulator".into(),
        arrival: "simulated".into(),
        streamed: true,
        percentiles: vec![50.0, 99.0],
        ..Run::default()
    }
}

/// Returns the results of `runs` runs, drawn on all cores.
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
