//! Cases: an engine under a load, from which any number of runs can be drawn.

use model::exchange::Exchange;
use model::units::Nanos;

use crate::{
    Engine, Parameters, Random, ServedRequest, Workload, all_at_once, capacity, closed, exchanges,
    gamma, open_slowing,
};

#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// By chance, at a rate that is this share of the engine's capacity.
    Open(f64),
    /// By chance, at this rate per second.
    Rate(f64),
    /// In bursts, at a rate that is a share of the engine's capacity: the gaps have a gamma
    /// distribution.
    Gamma {
        share: f64,
        /// The gamma distribution's shape: 1 is by chance, and less comes in bursts.
        shape: f64,
    },
    /// From this number of users, each of whom waits for the answer.
    Closed(usize),
    AtOnce,
}

/// Differences between runs of one engine beside its pace in each run, [`Parameters::run`]:
/// standard deviations of the logarithms of factors by which all steps take longer. Their medians
/// are 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effects {
    /// Of a factor that all runs of one round share.
    pub round: f64,
    /// Of a factor that all runs of one start of the engine share.
    pub start: f64,
}

/// Numbers that runs share: runs with the same number share the draws that it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// Prompts, answers and arrivals.
    pub workload: u64,
    /// The engine's own randomness: its pace in this run, and its jitter.
    pub engine: u64,
    pub round: u64,
    pub start: u64,
}

#[derive(Clone)]
pub struct Case {
    pub name: String,
    pub engine: Parameters,
    pub workload: Workload,
    pub load: Load,
    pub requests: usize,
    /// Requests that the engine answers per second at most.
    pub capacity: f64,
    pub effects: Effects,
    /// Share by which its steps take longer at the end of the arrivals than at their beginning,
    /// growing evenly in between; only for arrivals that do not depend on the engine.
    pub slowing: f64,
}

impl Case {
    /// A case of an engine, with the engine's capacity for such requests.
    pub fn new(
        name: &str,
        engine: Parameters,
        workload: impl Into<Workload>,
        load: Load,
        requests: usize,
    ) -> Self {
        let workload = workload.into();
        // The batch must be filled several times.
        let several = (engine.slots as usize * 10).max(6000);
        Case {
            name: name.to_owned(),
            capacity: capacity(&engine, &workload.work(several, 99)),
            engine,
            workload,
            load,
            requests,
            effects: Effects::default(),
            slowing: 0.0,
        }
    }

    /// The usual engine under chats.
    pub fn usual(load: Load, requests: usize) -> Self {
        let engine = Parameters::default();
        Case::new(&label(load, requests), engine, crate::CHAT, load, requests)
    }

    /// A run: `workload` seeds prompts, answers and arrivals, and `engine` the engine.
    pub fn served(&self, workload: u64, engine: u64) -> Vec<ServedRequest> {
        self.drawn(Draw { workload, engine, ..Draw::default() })
    }

    /// A run that shares the seeds of `draw` with others.
    pub fn drawn(&self, draw: Draw) -> Vec<ServedRequest> {
        let seed = draw.workload;
        let work = self.workload.work(self.requests, 1_000_000 + seed);
        let engine = &mut Engine::new(self.engine.clone(), 2_000_000 + draw.engine);
        let factor = |deviation: f64, seed: u64| (deviation * Random::new(seed).normal()).exp();
        let pace = factor(self.effects.round, 4_000_000 + draw.round)
            * factor(self.effects.start, 5_000_000 + draw.start);
        engine.slow_down(pace);
        let arrive = |shape: f64| match self.rate() {
            Some(rate) => gamma(self.requests, rate, shape, 3_000_000 + seed),
            None => Vec::new(),
        };
        let due = match self.load {
            Load::Open(_) | Load::Rate(_) => arrive(1.0),
            Load::Gamma { shape, .. } => arrive(shape),
            Load::Closed(users) => return closed(engine, users, &work),
            Load::AtOnce => return all_at_once(engine, &work),
        };
        let last = due.last().map_or(1.0, |last| last.as_secs_f64());
        let slower = |now: Nanos| pace * (1.0 + self.slowing * (now.as_secs_f64() / last).min(1.0));
        open_slowing(engine, &due, &work, slower)
    }

    pub fn exchanges(&self, workload: u64, engine: u64) -> Vec<Exchange> {
        exchanges(&self.served(workload, engine))
    }

    /// Requests per second that the load offers; `None` if the engine decides the rate.
    pub fn rate(&self) -> Option<f64> {
        match self.load {
            Load::Open(share) | Load::Gamma { share, .. } => Some(share * self.capacity),
            Load::Rate(rate) => Some(rate),
            Load::Closed(_) | Load::AtOnce => None,
        }
    }
}

pub fn label(load: Load, requests: usize) -> String {
    match load {
        Load::Open(share) => format!("open loop, {share} of capacity, {requests} requests"),
        Load::Rate(rate) => format!("open loop, {rate} a second, {requests} requests"),
        Load::Gamma { share, shape } => {
            format!(
                "open loop, {share} of capacity in bursts of shape {shape}, {requests} requests"
            )
        }
        Load::Closed(users) => format!("closed loop, {users} users, {requests} requests"),
        Load::AtOnce => format!("all at once, {requests} requests"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_e2e(served: &[ServedRequest]) -> f64 {
        let took = served.iter().map(|own| own.tokens.last().unwrap().since(own.sent));
        took.map(Nanos::as_secs_f64).sum::<f64>() / served.len() as f64
    }

    fn without_jitter(load: Load) -> Case {
        let engine = Parameters { jitter: 0.0, ..Parameters::default() };
        Case::new("case", engine, crate::FIXED, load, 200)
    }

    #[test]
    fn runs_of_a_round_and_of_a_start_share_its_factor() {
        let case = Case {
            effects: Effects { round: 0.02, start: 0.05 },
            ..without_jitter(Load::Closed(8))
        };
        let at = |engine, round, start| {
            mean_e2e(&case.drawn(Draw { workload: 1, engine, round, start }))
        };
        assert_eq!(at(1, 1, 1), at(2, 1, 1));
        assert!((at(1, 2, 1) / at(1, 1, 1) - 1.0).abs() > 1e-4);
        assert!((at(1, 1, 2) / at(1, 1, 1) - 1.0).abs() > 1e-4);
        // The factors of two sorts multiply.
        let both = at(1, 2, 2) * at(1, 1, 1);
        assert!((both / (at(1, 2, 1) * at(1, 1, 2)) - 1.0).abs() < 1e-6);
        let many: Vec<f64> = (0..400).map(|start| at(1, 1, start).ln()).collect();
        let mean = many.iter().sum::<f64>() / 400.0;
        let deviation = (many.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 400.0).sqrt();
        assert!((deviation / 0.05 - 1.0).abs() < 0.15, "{deviation}");
    }

    #[test]
    fn a_slowing_engine_is_slower_at_the_end() {
        let even = without_jitter(Load::Open(0.01));
        let slowing = Case { slowing: 0.5, ..even.clone() };
        let [even, slowing] = [even, slowing].map(|case| case.served(3, 3));
        let ratio =
            |of: std::ops::Range<usize>| mean_e2e(&slowing[of.clone()]) / mean_e2e(&even[of]);
        assert!((ratio(0..5) - 1.0).abs() < 0.05, "{}", ratio(0..5));
        assert!((ratio(195..200) - 1.5).abs() < 0.05, "{}", ratio(195..200));
    }
}
