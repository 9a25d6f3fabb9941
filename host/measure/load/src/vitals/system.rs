//! The system's reports about threads and cores, from `/proc`; without it there are no figures.

use std::fs;

use model::units::Nanos;

/// Ticks a second of processor time: 100 on every architecture, whatever the kernel's timer.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(u32);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTimes {
    pub on_cpu: Nanos,
    pub waiting: Nanos,
}

/// The work that all cores have done so far, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cores {
    /// Anything.
    pub all: u64,
    /// Work.
    pub busy: u64,
    /// Nothing, because a hypervisor ran something else.
    pub stolen: u64,
    /// Work of this process.
    pub own: u64,
}

pub(super) fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_PER_SECOND
}

pub(super) fn this_thread() -> Option<Id> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok().map(Id)
}

pub(super) fn spent(id: Id) -> Option<ThreadTimes> {
    parse_spent(&fs::read_to_string(format!("/proc/self/task/{}/schedstat", id.0)).ok()?)
}

pub(super) fn cores() -> Option<Cores> {
    let machine = fs::read_to_string("/proc/stat").ok()?;
    parse_cores(&machine, &fs::read_to_string("/proc/self/stat").ok()?)
}

/// Returns the longest time for which limits stopped this process's group or a parent, if counted.
pub(super) fn throttled() -> Option<Nanos> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let groups = groups(&own)?;
    let times = groups.filter_map(|group| {
        parse_throttled(&fs::read_to_string(format!("/sys/fs/cgroup{group}/cpu.stat")).ok()?)
    });
    times.max()
}

/// The process's group of version 2 in `/proc/self/cgroup`, and all its parents.
fn groups(text: &str) -> Option<impl Iterator<Item = &str>> {
    let own = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let own = own.trim_end_matches('/');
    Some(own.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| &own[..at]).chain([own]))
}

/// Reads the throttled time in a group's `cpu.stat`.
fn parse_throttled(text: &str) -> Option<Nanos> {
    let line = text.lines().find_map(|line| line.strip_prefix("throttled_usec "))?;
    Some(Nanos(line.trim().parse::<u64>().ok()?.saturating_mul(1000)))
}

/// Of a thread's `schedstat`: time on a core, time waiting for one, and how often it had one.
fn parse_spent(text: &str) -> Option<ThreadTimes> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    Some(ThreadTimes { on_cpu: Nanos(fields.next()?.ok()?), waiting: Nanos(fields.next()?.ok()?) })
}

/// The line of all cores in `/proc/stat` (user, nice, system, idle, iowait, irq, softirq, steal),
/// and the 14th and 15th field of the process's `stat` (user, system).
fn parse_cores(machine: &str, own: &str) -> Option<Cores> {
    let line = machine.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> =
        (line.split_ascii_whitespace().take(8)).map_while(|field| field.parse().ok()).collect();
    let &[user, nice, system, idle, iowait, irq, softirq, stolen] = fields.as_slice() else {
        return None;
    };
    let busy = user + nice + system + irq + softirq;
    // The second field is a name in parentheses, which may hold spaces and parentheses itself.
    let (_, after_name) = own.rsplit_once(')')?;
    let mut times = after_name.split_ascii_whitespace().skip(11).take(2);
    let mut time = || times.next()?.parse::<u64>().ok();
    Some(Cores { all: busy + idle + iowait + stolen, busy, stolen, own: time()? + time()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_time() {
        let spent =
            |on_cpu, waiting| Some(ThreadTimes { on_cpu: Nanos(on_cpu), waiting: Nanos(waiting) });
        assert_eq!(parse_spent("69604 2131942 2\n"), spent(69_604, 2_131_942));
        // A kernel that does not count says so as text, or not at all.
        assert_eq!(parse_spent(""), None);
        assert_eq!(parse_spent("12 x 1"), None);
    }

    #[test]
    fn throttled_time_of_a_group() {
        let stat = "usage_usec 5\nnr_periods 4\nnr_throttled 2\nthrottled_usec 1500\n";
        assert_eq!(parse_throttled(stat), Some(Nanos(1_500_000)));
        assert_eq!(parse_throttled("usage_usec 5\n"), None, "the root has no limit");
        let all = |text| groups(text).map(Iterator::collect::<Vec<_>>);
        assert_eq!(
            all("1:cpu:/x\n0::/a.slice/b.scope\n"),
            Some(vec!["", "/a.slice", "/a.slice/b.scope"])
        );
        assert_eq!(all("0::/\n"), Some(vec![""]));
        assert_eq!(all("4:cpu:/x\n"), None);
    }

    #[test]
    fn the_cores_time() {
        let machine = "cpu  100 20 30 400 5 6 7 8 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let own = "77 (a) b) S 1 77 77 0 -1 4194560 10 0 0 0 41 12 0 0 20 0 9 0 55 1 1\n";
        let cores = Cores { all: 576, busy: 163, stolen: 8, own: 53 };
        assert_eq!(parse_cores(machine, own), Some(cores));
        assert_eq!(parse_cores("intr 1 2 3\n", own), None);
        // Kernels that do not know stolen time have fewer fields.
        assert_eq!(parse_cores("cpu  1 2 3 4\n", own), None);
        assert_eq!(parse_cores(machine, ""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn files_of_this_system_are_parsed() {
        let id = this_thread().unwrap();
        assert!(spent(id).is_some());
        assert!(cores().unwrap().all > 0);
        assert_eq!(spent(Id(u32::MAX)), None);
        assert_ne!(std::thread::spawn(this_thread).join().unwrap().unwrap(), id);
    }
}
