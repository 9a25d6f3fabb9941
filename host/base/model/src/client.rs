//! Figures on the client while it measured, not on the server: observed (`vitals`), not computed
//! from exchanges, and copied into the summary as they are.

use std::collections::BTreeMap;

/// The performance of this client during the measurement. If the records of several load generators
/// are merged, each figure is the worst of theirs (see [`Client::worst`]).
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Client {
    /// Seconds that were monitored: from the start of the measurement until the last reply ended.
    pub watched_s: f64,
    /// Its threads by name: `pace`, `read-0`, `decode-0`, `record`. The threads `progress`,
    /// `dashboard` and `metrics` only observe. A thread without data from the system is not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: BTreeMap<String, Thread>,
    /// Most replies that waited to be decoded, each with one or more frames.
    pub decode_backlog: u64,
    /// The longest time that frames waited from their reader to their decoding, in milliseconds.
    pub decode_behind_ms: f64,
    /// The longest time that the whole process stood still, or that no core was free for it, in
    /// milliseconds. It is the lateness of a thread that wakes every ten milliseconds.
    pub longest_pause_ms: f64,
    /// Sum of such pauses longer than 50 ms, in seconds.
    pub paused_s: f64,
    /// Seconds that a CPU quota kept this process from running (its cgroup's quota); absent if the
    /// system does not report it.
    pub throttled_s: Option<f64>,
    /// The largest step of the system clock, forward or back, in milliseconds; absent if it could
    /// not be monitored.
    pub clock_step_ms: Option<f64>,
    /// Bytes held between the sockets and the disk; absent in runs that were recorded before this
    /// was counted.
    pub backlog: Option<Backlog>,
    /// Memory of the sessions under way; absent if no request depended on another.
    pub sessions: Option<SessionMemory>,
    /// Calls to plugins during the load that were stopped because they ran too long, by plugin.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugin_overruns: BTreeMap<String, Overruns>,
    /// The requests that were sent after their exchanges, such as to delete a job; absent if the
    /// backend wanted none.
    pub cleaning: Option<Errands>,
    /// The requests that renewed tokens and prepared values; absent if there were none.
    pub renewals: Option<Errands>,
    /// The whole machine; absent if the system does not report it.
    pub machine: Option<Machine>,
}

/// Requests beside the exchanges that a backend wants sent during a run. Of several load
/// generators, all together.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Errands {
    /// Requests that the server accepted.
    pub done: u64,
    /// Requests that it did not accept, or that could not be sent.
    pub failed: u64,
    /// The reason of the first failure.
    pub error: Option<String>,
}

/// The bytes of replies that this process held: read, and not yet decoded and recorded.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Backlog {
    /// The bound at which this client stops reading.
    pub bound_bytes: u64,
    /// The most that was held. Single reads may exceed the bound.
    pub peak_bytes: u64,
    /// Periods in which this client stopped reading because the bound was reached; absent if it
    /// never did.
    pub held_back: Option<HeldBack>,
}

/// The memory of sessions under way: their unsent prompts, and the answers in their histories.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct SessionMemory {
    /// The bound at which no new session begins.
    pub bound_bytes: u64,
    /// The most that was held. Sessions that have begun may exceed the bound.
    pub peak_bytes: u64,
    /// Seconds in which no session began because the bound was reached; absent if it never was.
    pub waited_s: Option<f64>,
}

/// The periods in which replies were not read, because decoding or recording was behind.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct HeldBack {
    /// Number of periods.
    pub periods: u64,
    /// Seconds in which some reply was not read.
    pub seconds: f64,
    /// The first of the periods, each from and to, in seconds since the measurement began.
    pub from_to_s: Vec<(f64, f64)>,
    /// The time from which the engine may have had to wait, in seconds since the measurement began:
    /// more had come in the meantime than the smallest receive buffer takes. Absent if all of it
    /// fit.
    pub throttled_from_s: Option<f64>,
    /// The maximum lateness of the time stamps in such a period, in seconds. Bytes that were read
    /// together have the time of their last packet. Absent if nothing came.
    pub late_s: Option<f64>,
}

/// Calls to a plugin that were stopped.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Overruns {
    /// Number of calls.
    pub calls: u64,
    /// Time that they ran until they were stopped, all together, in seconds.
    pub seconds: f64,
}

/// Processor use of a thread. Shares are between 0 and 1.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Thread {
    /// Share of the time that it ran on a core.
    pub cpu: f64,
    /// The largest such share of any second; absent in measurements shorter than a second.
    pub cpu_most: Option<f64>,
    /// Share of the time that it was ready to run but waited for a core.
    pub waiting: f64,
    /// The largest such share of any second; absent in measurements shorter than a second.
    pub waiting_most: Option<f64>,
    /// Number of seconds in which it ran on a core for more than nine tenths.
    pub saturated_s: f64,
}

/// Processor use of the machine. Shares are of all its cores.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Machine {
    /// Share of the time that cores were busy with anything.
    pub busy: f64,
    /// Share of the time that cores were busy with this process.
    pub own: f64,
    /// Share of the time that a hypervisor gave to other machines while there was work here.
    pub stolen: f64,
    /// The stolen time in seconds, summed over the cores.
    pub stolen_s: f64,
}

/// Returns a thread's role, by its name: `read` of `read-3`.
pub fn role(thread: &str) -> &str {
    thread.split('-').next().unwrap_or(thread)
}

impl Client {
    /// The figures of several load generators in one: the worst of each, by the threads' names.
    pub fn worst(of: impl IntoIterator<Item = Client>) -> Option<Client> {
        of.into_iter().reduce(|one, other| {
            let mut threads = one.threads;
            for (name, thread) in other.threads {
                let known = threads.entry(name).or_default();
                *known = known.worst(thread);
            }
            let mut plugin_overruns = one.plugin_overruns;
            for (name, overruns) in other.plugin_overruns {
                let known = plugin_overruns.entry(name).or_default();
                known.calls = known.calls.max(overruns.calls);
                known.seconds = known.seconds.max(overruns.seconds);
            }
            Client {
                plugin_overruns,
                watched_s: one.watched_s.max(other.watched_s),
                threads,
                decode_backlog: one.decode_backlog.max(other.decode_backlog),
                decode_behind_ms: one.decode_behind_ms.max(other.decode_behind_ms),
                longest_pause_ms: one.longest_pause_ms.max(other.longest_pause_ms),
                paused_s: one.paused_s.max(other.paused_s),
                throttled_s: merge(one.throttled_s, other.throttled_s, f64::max),
                clock_step_ms: merge(one.clock_step_ms, other.clock_step_ms, f64::max),
                backlog: merge(one.backlog, other.backlog, Backlog::worst),
                sessions: merge(one.sessions, other.sessions, SessionMemory::worst),
                cleaning: merge(one.cleaning, other.cleaning, Errands::sum),
                renewals: merge(one.renewals, other.renewals, Errands::sum),
                machine: merge(one.machine, other.machine, Machine::worst),
            }
        })
    }

    /// The busiest thread of a role: by its busiest second, or over the whole time if the
    /// measurement had no whole second.
    pub fn busiest(&self, of: &str) -> Option<(&str, &Thread)> {
        let most = |thread: &Thread| thread.cpu_most.unwrap_or(thread.cpu);
        (self.threads.iter())
            .filter(|(name, _)| role(name) == of)
            .map(|(name, thread)| (name.as_str(), thread))
            .max_by(|(_, one), (_, other)| most(one).total_cmp(&most(other)))
    }
}

impl Thread {
    fn worst(self, other: Thread) -> Thread {
        Thread {
            cpu: self.cpu.max(other.cpu),
            cpu_most: merge(self.cpu_most, other.cpu_most, f64::max),
            waiting: self.waiting.max(other.waiting),
            waiting_most: merge(self.waiting_most, other.waiting_most, f64::max),
            saturated_s: self.saturated_s.max(other.saturated_s),
        }
    }
}

fn merge<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

impl Errands {
    fn sum(self, other: Errands) -> Errands {
        Errands {
            done: self.done + other.done,
            failed: self.failed + other.failed,
            error: self.error.or(other.error),
        }
    }
}

impl SessionMemory {
    fn worst(self, other: SessionMemory) -> SessionMemory {
        SessionMemory {
            bound_bytes: self.bound_bytes.min(other.bound_bytes),
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
            waited_s: merge(self.waited_s, other.waited_s, f64::max),
        }
    }
}

impl Backlog {
    fn worst(self, other: Backlog) -> Backlog {
        // A period in which an engine had to wait is worse than any other.
        let badness = |held_back: &Option<HeldBack>| {
            held_back.as_ref().map(|it| (it.throttled_from_s.is_some(), it.seconds))
        };
        let is_worse = badness(&other.held_back) > badness(&self.held_back);
        Backlog {
            bound_bytes: self.bound_bytes.max(other.bound_bytes),
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
            held_back: if is_worse { other.held_back } else { self.held_back },
        }
    }
}

impl Machine {
    fn worst(self, other: Machine) -> Machine {
        Machine {
            busy: self.busy.max(other.busy),
            own: self.own.max(other.own),
            stolen: self.stolen.max(other.stolen),
            stolen_s: self.stolen_s.max(other.stolen_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(threads: &[(&str, f64)]) -> Client {
        let thread = |cpu| Thread { cpu, ..Thread::default() };
        Client {
            threads: threads.iter().map(|(name, cpu)| ((*name).to_owned(), thread(*cpu))).collect(),
            ..Client::default()
        }
    }

    #[test]
    fn several_clients_are_as_good_as_the_worst() {
        let mut one = client(&[("read-0", 0.5), ("pace", 0.1)]);
        (one.decode_backlog, one.watched_s) = (7, 10.0);
        one.threads.get_mut("read-0").unwrap().cpu_most = Some(0.6);
        let mut other = client(&[("read-0", 0.4), ("read-1", 0.9)]);
        (other.longest_pause_ms, other.watched_s) = (120.0, 9.0);
        other.machine = Some(Machine { busy: 0.8, ..Machine::default() });
        let both = Client::worst([one.clone(), other.clone()]).unwrap();
        assert_eq!(Client::worst([other.clone(), one]).unwrap(), both);
        assert_eq!((both.decode_backlog, both.longest_pause_ms), (7, 120.0));
        assert_eq!(both.watched_s, 10.0);
        assert_eq!(both.machine, other.machine);
        let names: Vec<&str> = both.threads.keys().map(String::as_str).collect();
        assert_eq!(names, ["pace", "read-0", "read-1"]);
        let read = both.threads["read-0"];
        assert_eq!((read.cpu, read.cpu_most), (0.5, Some(0.6)));
        assert_eq!(Client::worst([]), None);
    }

    #[test]
    fn the_busiest_thread_of_a_role() {
        let seen = client(&[("read-0", 0.5), ("read-1", 0.7), ("record", 0.9)]);
        assert_eq!(seen.busiest("read").unwrap().0, "read-1");
        assert_eq!(seen.busiest("record").unwrap().0, "record");
        assert_eq!(seen.busiest("pace"), None);
    }
}
