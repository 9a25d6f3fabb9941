//! Stops a run that cannot become valid: one whose backlog grows because requests come faster than
//! they are answered.
//!
//! [`Watch`] takes the numbers of requests due, sent and ended as the run goes on. At instants that
//! are a quarter further apart each time, it compares mean numbers of unanswered requests: in the
//! fourth quarter of the time so far, and in the second, as `result` does for a whole run. It
//! raises an alarm where the growth is beyond chance at two such instants in a row, so that one
//! long burst is no reason to stop.
//!
//! Growth alone is no overload. Two rules hold an alarm back: [`filling`], while answers end ever
//! faster, and [`queue`], where no requests wait for their first token.
//!
//! **False alarms** are measured on healthy queues of several kinds (`host/benches/search`): a
//! detector that fires on them would fail loads that hold. In exchange it is slow close to
//! capacity; the test at the end of the run judges the runs that it does not stop.

mod filling;
mod queue;

use model::units::Nanos;

use filling::{First, end_ever_faster};
use queue::Queue;

/// Standard deviations of the number of arrivals that chance may explain. More than for a whole
/// run, because there are many looks.
const CHANCE: f64 = 4.0;
/// A growth by this share of the arrivals is small, however certain it is.
const SMALL: f64 = 0.05;
/// Requests due before the first look.
const FIRST: u64 = 200;
/// The factor by which each look is later than the last.
const LATER: f64 = 1.25;
/// Looks in a row that must show growth.
const ROW: u32 = 2;
/// Samples at most; every other one is dropped when there are more.
const KEPT: usize = 1024;

/// The progress of a run so far.
#[model::apply(model::document!)]
#[derive(Copy, Eq)]
pub struct Progress {
    /// Time since the first request was due.
    pub at: Nanos,
    /// Requests that were due.
    pub due: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that ended, well or badly; those that were not sent because the client gave them up
    /// count as ended.
    pub ended: u64,
}

/// The alarm that a run is over-saturated.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Alarm {
    /// The time, and the progress of the run by then.
    pub progress: Progress,
    /// Unanswered requests in the second quarter of the time so far, on average.
    pub second_quarter: f64,
    /// The same in the fourth quarter.
    pub fourth_quarter: f64,
    /// The growth from one to the other that chance explains.
    pub chance: f64,
}

impl Alarm {
    /// True if most of the backlog had not been sent: then this client or a cap on requests in
    /// flight held it back, and the server may not be overloaded.
    pub fn is_held_back(&self) -> bool {
        let Progress { due, sent, ended, .. } = self.progress;
        let unsent = due.saturating_sub(sent);
        2 * unsent > due.saturating_sub(ended)
    }
}

/// The state at an instant.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Seconds since the first request was due.
    at: f64,
    /// The unanswered requests summed over the time until then.
    area: f64,
    /// Requests that had ended.
    ended: f64,
}

/// Watches a run at one rate.
#[derive(Clone, Debug)]
pub struct Watch {
    burstiness: f64,
    /// The states at some instants of the run.
    samples: Vec<Sample>,
    /// Seconds between two samples, at least.
    apart: f64,
    /// The latest sample: its time, and the number of unanswered requests.
    latest: (f64, f64),
    /// The sum until then, and the number of requests that had ended.
    area: f64,
    ended: f64,
    first: First,
    next: f64,
    row: u32,
    queue: Queue,
}

impl Watch {
    /// A watch of a run whose gaps between due times have this coefficient of variation: 1 for a
    /// Poisson process, 0 where they are even.
    pub fn new(burstiness: f64) -> Self {
        Watch {
            burstiness: burstiness.max(1.0),
            samples: vec![Sample { at: 0.0, area: 0.0, ended: 0.0 }],
            apart: 0.0,
            latest: (0.0, 0.0),
            area: 0.0,
            ended: 0.0,
            first: First::default(),
            next: 0.0,
            row: 0,
            queue: Queue::default(),
        }
    }

    /// Takes the median time from sending to the first token of the requests that ended lately. It
    /// holds until the next call; without a call, nothing tells waiting requests from answers under
    /// way.
    pub fn waits(&mut self, usual: Nanos) {
        self.queue.waits(usual);
    }

    /// Takes the run's progress so far, several times a second or at least a few hundred times over
    /// the run, while requests are due. `Some` says to stop it.
    pub fn sample(&mut self, progress: Progress) -> Option<Alarm> {
        let at = progress.at.as_secs_f64();
        let unanswered = progress.due.saturating_sub(progress.ended) as f64;
        let (before, was) = self.latest;
        if at <= before {
            return None;
        }
        self.area += (was + unanswered) / 2.0 * (at - before);
        self.latest = (at, unanswered);
        self.ended = progress.ended as f64;
        if at - self.samples.last().map_or(0.0, |sample| sample.at) >= self.apart {
            self.keep(at);
        }
        self.first.sample(progress, before, at);
        self.look(progress, at)
    }

    fn keep(&mut self, at: f64) {
        self.samples.push(Sample { at, area: self.area, ended: self.ended });
        if self.samples.len() > KEPT {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.apart = 1.5 * at / KEPT as f64;
        }
    }

    fn look(&mut self, progress: Progress, at: f64) -> Option<Alarm> {
        if progress.due < FIRST || at < self.next || !self.first.is_past(at) {
            return None;
        }
        self.next = at * LATER;
        let [second, fourth] = [0.25, 0.75].map(|from| {
            let ([area, ended], [area_before, ended_before]) =
                (self.until(at * (from + 0.25)), self.until(at * from));
            ((area - area_before) / (at / 4.0), ended - ended_before)
        });
        let (second_quarter, fourth_quarter) = (second.0, fourth.0);
        let is_filling = end_ever_faster(second.1, fourth.1);
        let half = progress.due as f64 / 2.0;
        let chance = (CHANCE * self.burstiness * half.sqrt()).max(SMALL * half);
        let grew = fourth_quarter - second_quarter > chance;
        if is_filling || !grew || self.queue.is_short(progress, at, chance) {
            self.row = 0;
            return None;
        }
        self.row += 1;
        (self.row >= ROW).then_some(Alarm { progress, second_quarter, fourth_quarter, chance })
    }

    /// The unanswered requests summed over the time until an instant, and the number of requests
    /// that had ended by then.
    fn until(&self, at: f64) -> [f64; 2] {
        let latest = Sample { at: self.latest.0, area: self.area, ended: self.ended };
        let after = self.samples.partition_point(|sample| sample.at < at);
        let to = self.samples.get(after).unwrap_or(&latest);
        let from = &self.samples[after.saturating_sub(1)];
        let part = if to.at > from.at { (at - from.at) / (to.at - from.at) } else { 1.0 };
        [(from.area, to.area), (from.ended, to.ended)].map(|(from, to)| from + (to - from) * part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::{Queue, Service, alarm, alarms, engine_run};
    use simulator::{Case, REASONING, SHAREGPT, ServedRequest, Workload};

    #[test]
    fn healthy_queues_raise_no_alarm() {
        let raised = alarms(200, [0.5, 0.95], 3000);
        assert!(raised <= 4, "{raised} of 200");
    }

    #[test]
    fn overload_is_stopped() {
        let far = alarms(50, [2.0, 4.0], 3000);
        assert!(far >= 45, "{far} of 50");
        let stopped = alarm(
            &Queue { servers: 8, service: Service::Exponential, load: 2.0 }.run(4000, 3),
            400,
        );
        let stopped = stopped.unwrap();
        assert!(stopped.progress.due < 1500, "{stopped:?}");
        assert!(!stopped.is_held_back());
    }

    /// Of 1,000 healthy runs at most one in a hundred is stopped; `cargo bench --bench search` has
    /// the rates.
    #[test]
    #[ignore = "takes half a minute"]
    fn at_most_one_in_a_hundred_healthy_runs_is_stopped() {
        for requests in [1000, 3000, 20_000] {
            for loads in [[0.5, 0.95], [0.9, 0.95]] {
                let raised = alarms(1000, loads, requests);
                assert!(raised <= 10, "{raised} of 1000, {requests} requests, {loads:?}");
            }
        }
        let engines = (0..1000).filter(|run| {
            let load = 0.5 + 0.45 * *run as f64 / 1000.0;
            alarm(&engine_run(load, 1000, *run), 400).is_some()
        });
        let raised = engines.count();
        assert!(raised <= 10, "{raised} of 1000 engines");
    }

    #[test]
    fn engines_of_the_simulator_that_keep_up_raise_no_alarm() {
        for (run, load) in [0.5, 0.7, 0.8, 0.9, 0.95].into_iter().enumerate() {
            assert_eq!(alarm(&engine_run(load, 600, run as u64), 300), None, "{load}");
        }
        assert!(alarm(&engine_run(2.0, 1500, 1), 300).is_some());
    }

    /// Answers of twenty seconds: the backlog grows until twenty seconds' requests are under way,
    /// and then stays.
    #[test]
    fn an_engine_that_fills_raises_no_alarm() {
        let run: Vec<(f64, f64)> = (0..5000)
            .map(|place| {
                let due = f64::from(place) / 10.0;
                (due, due + 16.0 + f64::from(place * 7 % 9))
            })
            .collect();
        assert_eq!(alarm(&run, 5000), None);
    }

    /// Alarms of an engine's runs at `rate` requests a second, looked at 400 times each. They are
    /// counted with and without the first tokens of requests that ended in the five seconds before
    /// each look.
    fn alarms_of(parameters: &str, workload: Workload, rate: f64, requests: usize) -> [usize; 2] {
        let case = Case::new(
            "case",
            parameters.parse().unwrap(),
            workload,
            simulator::Load::Rate(rate),
            requests,
        );
        let looked = |seed: u64, knows: bool| {
            let served = case.served(seed, seed);
            let end = |own: &ServedRequest| *own.tokens.last().unwrap();
            let last = served.last().unwrap().sent.0;
            let mut watch = Watch::new(1.0);
            (1..=400).any(|look| {
                let now = Nanos(last * look / 400);
                let due = served.partition_point(|own| own.sent <= now) as u64;
                let ended = served.iter().filter(|own| end(own) <= now);
                let mut waits: Vec<u64> = (ended.clone())
                    .filter(|own| now.since(end(own)).0 < 5_000_000_000)
                    .map(|own| own.tokens[0].since(own.sent).0)
                    .collect();
                waits.sort_unstable();
                if let Some(median) = waits.get(waits.len() / 2).filter(|_| knows) {
                    watch.waits(Nanos(*median));
                }
                let progress = Progress { at: now, due, sent: due, ended: ended.count() as u64 };
                watch.sample(progress).is_some()
            })
        };
        [false, true].map(|knows| (0..6).filter(|seed| looked(*seed, knows)).count())
    }

    #[test]
    fn an_engine_that_never_queues_raises_no_alarm_and_one_that_does_is_stopped() {
        let free = "slots=10000,step=8ms,request=0,prompt-token=0";
        assert_eq!(alarms_of(free, SHAREGPT, 500.0, 5000), [0, 0]);
        // 32 slots of 1,500 tokens at 16 ms answer 1.3 a second.
        assert_eq!(alarms_of("", REASONING, 2.6, 1500), [6, 6]);
    }

    /// Answers whose lengths are lognormal, one minute on average, on an engine that never queues:
    /// the first to end are the shortest, and the backlog grows for minutes.
    #[test]
    fn an_engine_that_fills_with_answers_of_many_lengths_raises_no_alarm() {
        let raised = (0..100).filter(|seed| {
            let mut random = simulator::Random::new(*seed);
            let mut due = 0.0;
            let run: Vec<(f64, f64)> = (0..3000)
                .map(|_| {
                    due += random.exponential() / 10.0;
                    (due, due + 60.0 * (random.normal() - 0.5).exp())
                })
                .collect();
            alarm(&run, 400).is_some()
        });
        let raised = raised.count();
        assert!(raised <= 1, "{raised} of 100");
    }

    #[test]
    fn a_backlog_that_the_client_holds_back_is_no_overload() {
        let mut watch = Watch::new(1.0);
        let alarm = (1..10_000_u64).find_map(|second| {
            watch.sample(Progress {
                at: Nanos(second * 1_000_000_000),
                due: second * 10,
                sent: second * 5 + 8,
                ended: second * 5,
            })
        });
        assert!(alarm.unwrap().is_held_back());
        assert!(watch.samples.len() <= KEPT);
    }
}
