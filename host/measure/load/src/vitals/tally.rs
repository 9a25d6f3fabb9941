//! Turns samples of the time of threads and cores into figures. Pure.

use super::system::{Cores, ThreadTimes, seconds};
use model::client::{Client, Machine, Thread};
use model::units::Nanos;

/// Share of a second on a core beyond which a thread has nothing left to give.
pub(super) const SATURATED: f64 = 0.9;
/// The shortest time that is looked at by itself.
pub(super) const SECOND: Nanos = Nanos(1_000_000_000);
/// Pauses no longer than this are a busy machine's everyday life.
const PAUSE: Nanos = Nanos(50_000_000);

/// The state of the threads and the machine at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub at: Nanos,
    /// Time that each of the threads had spent, in their order.
    pub threads: Vec<Option<ThreadTimes>>,
}

pub(super) struct Tally {
    names: Vec<String>,
    first: Sample,
    last: Sample,
    seconds: Vec<Seconds>,
    backlog: usize,
    longest_pause: Nanos,
    paused: Nanos,
    /// The system clock's last lead over the run's clock in nanoseconds, and its largest step.
    ahead: Option<i128>,
    clock_step: Option<u64>,
}

/// The work of the whole machine and the process's group up to one instant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whole {
    /// The cores; absent where the system does not say.
    pub cores: Option<Cores>,
    /// Time for which the process was kept from running; absent if the system does not say.
    pub throttled: Option<Nanos>,
}

/// The share of a core that a thread used in a second. Shares are between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Busy {
    pub name: String,
    pub cpu: f64,
    pub waiting: f64,
}

/// Of one thread's seconds, the worst.
#[derive(Clone, Copy, Default)]
struct Seconds {
    cpu: Option<f64>,
    waiting: Option<f64>,
    saturated: Nanos,
    last: Option<(f64, f64)>,
}

impl Tally {
    pub(super) fn new(names: Vec<String>, first: Sample) -> Self {
        Tally {
            seconds: vec![Seconds::default(); names.len()],
            names,
            last: first.clone(),
            first,
            backlog: 0,
            longest_pause: Nanos::ZERO,
            paused: Nanos::ZERO,
            ahead: None,
            clock_step: None,
        }
    }

    /// Records the lead of the system's clock over the run's, in nanoseconds.
    pub(super) fn ahead(&mut self, ahead: i128) {
        if let Some(before) = self.ahead.replace(ahead) {
            let step = u64::try_from(before.abs_diff(ahead)).unwrap_or(u64::MAX);
            self.clock_step = self.clock_step.max(Some(step));
        }
    }

    /// True if a second has passed since the last sample.
    pub(super) fn is_second_over(&self, now: Nanos) -> bool {
        now.since(self.last.at) >= SECOND
    }

    /// The watch was late by this much; the longest decode queue held this many reports.
    pub(super) fn tick(&mut self, late: Nanos, backlog: usize) {
        self.backlog = self.backlog.max(backlog);
        self.longest_pause = self.longest_pause.max(late);
        if late > PAUSE {
            self.paused = self.paused + late;
        }
    }

    /// A sample a second or more after the last one.
    pub(super) fn second(&mut self, sample: Sample) {
        let span = sample.at.since(self.last.at);
        let spans = self.last.threads.iter().zip(&sample.threads);
        for ((before, after), worst) in spans.zip(&mut self.seconds) {
            worst.last = None;
            let (Some(before), Some(after)) = (before, after) else { continue };
            let (cpu, waiting) = shares(before, after, span);
            worst.last = Some((cpu, waiting));
            worst.cpu = Some(worst.cpu.map_or(cpu, |most| most.max(cpu)));
            worst.waiting = Some(worst.waiting.map_or(waiting, |most| most.max(waiting)));
            if cpu > SATURATED {
                worst.saturated = worst.saturated + span;
            }
        }
        self.last = sample;
    }

    /// Returns the work of each thread in the last second that is over.
    pub(super) fn busy(&self) -> impl Iterator<Item = Busy> + '_ {
        self.names.iter().zip(&self.seconds).filter_map(|(name, seconds)| {
            let (cpu, waiting) = seconds.last?;
            Some(Busy { name: name.clone(), cpu, waiting })
        })
    }

    /// The figures, from a last sample, the longest decode delay, and the machine's counters.
    pub(super) fn finish(
        self,
        end: &Sample,
        decode_behind: Nanos,
        (before, after): (Whole, Whole),
    ) -> Client {
        let span = end.at.since(self.first.at);
        let mut threads = std::collections::BTreeMap::new();
        // A thread that has ended meanwhile is told of as long as it was seen.
        for (number, name) in self.names.iter().enumerate() {
            let at = |sample: &Sample| sample.threads.get(number).copied().flatten();
            let known = at(end)
                .map(|spent| (spent, span))
                .or_else(|| at(&self.last).map(|spent| (spent, self.last.at.since(self.first.at))));
            let (Some(before), Some((after, span))) = (at(&self.first), known) else { continue };
            let (cpu, waiting) = shares(&before, &after, span);
            let seconds = self.seconds[number];
            let thread = Thread {
                cpu,
                cpu_most: seconds.cpu,
                waiting,
                waiting_most: seconds.waiting,
                saturated_s: seconds.saturated.as_secs_f64(),
            };
            threads.insert(name.clone(), thread);
        }
        Client {
            watched_s: span.as_secs_f64(),
            threads,
            decode_backlog: self.backlog as u64,
            decode_behind_ms: decode_behind.as_millis_f64(),
            longest_pause_ms: self.longest_pause.as_millis_f64(),
            paused_s: self.paused.as_secs_f64(),
            throttled_s: (before.throttled.zip(after.throttled))
                .map(|(before, after)| after.since(before).as_secs_f64()),
            clock_step_ms: self.clock_step.map(|step| Nanos(step).as_millis_f64()),
            machine: (before.cores.zip(after.cores))
                .and_then(|(before, after)| machine(&before, &after)),
            ..Client::default()
        }
    }
}

/// The shares of a span on a core and waiting for one. The kernel's sums may be a tick ahead.
fn shares(before: &ThreadTimes, after: &ThreadTimes, span: Nanos) -> (f64, f64) {
    let share = |spent: Nanos| match span {
        Nanos::ZERO => 0.0,
        span => (spent.0 as f64 / span.0 as f64).min(1.0),
    };
    (share(after.on_cpu.since(before.on_cpu)), share(after.waiting.since(before.waiting)))
}

/// The shares of the cores' time; absent where no tick passed.
fn machine(before: &Cores, after: &Cores) -> Option<Machine> {
    let spent = |of: fn(&Cores) -> u64| of(after).saturating_sub(of(before));
    let all = spent(|cores| cores.all);
    let share = |ticks: u64| (ticks as f64 / all as f64).min(1.0);
    let stolen = spent(|cores| cores.stolen);
    (all > 0).then(|| Machine {
        busy: share(spent(|cores| cores.busy)),
        own: share(spent(|cores| cores.own)),
        stolen: share(stolen),
        stolen_s: seconds(stolen),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// A system that says nothing of the whole machine.
    const NOTHING: (Whole, Whole) =
        (Whole { cores: None, throttled: None }, Whole { cores: None, throttled: None });

    /// At this millisecond, the milliseconds of each thread on a core and waiting for one.
    fn sample(at: u64, threads: &[Option<(u64, u64)>]) -> Sample {
        let spent = |(on_cpu, waiting): (u64, u64)| ThreadTimes {
            on_cpu: Nanos(on_cpu * MS),
            waiting: Nanos(waiting * MS),
        };
        Sample {
            at: Nanos(at * MS),
            threads: threads.iter().map(|thread| thread.map(spent)).collect(),
        }
    }

    fn tally(names: &[&str], first: Sample) -> Tally {
        Tally::new(names.iter().map(|name| (*name).to_owned()).collect(), first)
    }

    #[test]
    fn shares_cover_the_run_and_its_worst_second() {
        let mut tally = tally(&["read-0"], sample(1000, &[Some((500, 0))]));
        tally.second(sample(2000, &[Some((1450, 0))]));
        tally.second(sample(3000, &[Some((1550, 300))]));
        let client = tally.finish(&sample(3500, &[Some((1550, 400))]), Nanos::ZERO, NOTHING);
        assert_eq!(client.watched_s, 2.5);
        let read = client.threads["read-0"];
        assert_eq!((read.cpu, read.cpu_most), (1050.0 / 2500.0, Some(0.95)));
        assert_eq!((read.waiting, read.waiting_most), (0.16, Some(0.3)));
        assert_eq!(read.saturated_s, 1.0);
        assert_eq!(client.machine, None);
    }

    #[test]
    fn late_second_is_longer() {
        let mut tally = tally(&["read-0"], sample(0, &[Some((0, 0))]));
        assert!(!tally.is_second_over(Nanos(999 * MS)));
        assert!(tally.is_second_over(Nanos(1000 * MS)));
        tally.second(sample(4000, &[Some((3800, 0))]));
        let client = tally.finish(&sample(4000, &[Some((3800, 0))]), Nanos::ZERO, NOTHING);
        let read = client.threads["read-0"];
        assert_eq!((read.cpu_most, read.saturated_s), (Some(0.95), 4.0));
    }

    #[test]
    fn short_run_has_no_worst_second() {
        let tally = tally(&["pace"], sample(0, &[Some((0, 0))]));
        let client = tally.finish(&sample(500, &[Some((100, 0))]), Nanos::ZERO, NOTHING);
        let pace = client.threads["pace"];
        assert_eq!((pace.cpu, pace.cpu_most, pace.waiting_most), (0.2, None, None));
    }

    #[test]
    fn unknown_thread_is_not_listed() {
        let start = sample(0, &[Some((0, 0)), None, Some((0, 0))]);
        let mut tally = tally(&["read-0", "read-1", "read-2"], start);
        tally.second(sample(1000, &[Some((100, 0)), None, Some((200, 0))]));
        let busy: Vec<Busy> = tally.busy().collect();
        let names: Vec<&str> = busy.iter().map(|thread| thread.name.as_str()).collect();
        assert_eq!((names, busy[1].cpu), (vec!["read-0", "read-2"], 0.2));
        let end = sample(2000, &[None, None, Some((200, 0))]);
        let client = tally.finish(&end, Nanos::ZERO, NOTHING);
        let shares: Vec<(&str, f64)> =
            (client.threads.iter()).map(|(name, thread)| (name.as_str(), thread.cpu)).collect();
        // The first has ended after a second; the middle one is unknown.
        assert_eq!(shares, [("read-0", 0.1), ("read-2", 0.1)]);
    }

    #[test]
    fn pauses_and_backlog() {
        let mut tally = tally(&[], sample(0, &[]));
        for (late, backlog) in [(1, 3), (50, 120), (60, 0), (140, 5)] {
            tally.tick(Nanos(late * MS), backlog);
        }
        let client = tally.finish(&sample(1000, &[]), Nanos(7 * MS), NOTHING);
        assert_eq!((client.longest_pause_ms, client.paused_s), (140.0, 0.2));
        assert_eq!((client.decode_backlog, client.decode_behind_ms), (120, 7.0));
    }

    #[test]
    fn steps_of_the_clock_and_time_kept_from_running() {
        let mut tally = tally(&[], sample(0, &[]));
        // A clock that is slewed gains microseconds; one that is set steps.
        for ahead in [5_000_000_000, 5_000_002_000, 4_991_002_000, 4_991_003_000] {
            tally.ahead(ahead);
        }
        let at = |throttled| Whole { cores: None, throttled: Some(Nanos(throttled * MS)) };
        let client = tally.finish(&sample(1000, &[]), Nanos::ZERO, (at(100), at(350)));
        assert_eq!(client.clock_step_ms, Some(9.0));
        assert_eq!(client.throttled_s, Some(0.25));
    }

    #[test]
    fn machine_figures_between_two_instants() {
        let at = |all, busy, stolen, own| Cores { all, busy, stolen, own };
        let between = machine(&at(1000, 500, 10, 100), &at(1400, 800, 20, 180));
        let expected = Machine { busy: 0.75, own: 0.2, stolen: 0.025, stolen_s: 0.1 };
        assert_eq!(between, Some(expected));
        assert_eq!(machine(&at(1, 1, 0, 0), &at(1, 1, 0, 0)), None);
    }
}
