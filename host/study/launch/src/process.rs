//! Facts about processes: reads and parses `/proc`. Without it, only the life of a process is
//! known.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal};

use crate::LAUNCH_ID;
use crate::end::EngineProcess;

/// The part of a command to show.
const SHOWN: usize = 120;

/// A process, even if the system uses its identifier again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub pid: u32,
    /// The time when it started, in ticks since the system's start.
    pub start: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub id: Id,
    /// The process that started it, or took it over.
    pub parent: u32,
    pub group: u32,
    /// True if it has ended, and its parent has not waited for it.
    pub ended: bool,
}

/// The processor time of the children that this process has waited for, and of their children.
pub(crate) fn children_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name may hold anything. The fields after the name begin with the third, the state.
    // `cutime` and `cstime` are the sixteenth and the seventeenth (proc_pid_stat(5)).
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(13).take(2);
    let ticks: u64 = times.map(|ticks| ticks.parse::<u64>().ok()).sum::<Option<u64>>()?;
    let a_second = clock_ticks_per_second();
    Some(Duration::from_secs_f64(ticks as f64 / a_second as f64))
}

/// The folder in which the system shows its processes.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    root: PathBuf,
}

impl Default for Table {
    fn default() -> Self {
        Table::at("/proc")
    }
}

impl Table {
    /// Reads processes in this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Table { root: root.into() }
    }

    /// All processes but this one. None if the system does not show them.
    pub fn processes(&self) -> Option<Vec<Process>> {
        let own = std::process::id();
        let entries = fs::read_dir(&self.root).ok()?;
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let found: Vec<Process> = pids.filter_map(|pid| self.process(pid)).collect();
        // Without this process in it, it is no such folder.
        let seen = found.iter().any(|process| process.id.pid == own);
        let others = found.into_iter().filter(|process| process.id.pid != own);
        seen.then(|| others.collect())
    }

    /// The process with this identifier, if it exists.
    pub fn process(&self, pid: u32) -> Option<Process> {
        let stat = fs::read(self.root.join(format!("{pid}/stat"))).ok()?;
        parse(pid, &String::from_utf8_lossy(&stat))
    }

    /// True if a process still has its identifier, and has not ended.
    pub fn lives(&self, id: Id) -> bool {
        let process = self.process(id.pid);
        process.is_some_and(|process| process.id == id && !process.ended)
    }

    /// True if a process was started with this variable, written as `NAME=value`.
    pub fn has_variable(&self, pid: u32, variable: &str) -> bool {
        let variables = fs::read(self.root.join(format!("{pid}/environ"))).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    }

    /// True if a process has this pipe as its standard output or standard error.
    pub fn writes_to(&self, pid: u32, pipe: u64) -> bool {
        let expected = format!("pipe:[{pipe}]");
        [1, 2].iter().any(|file| {
            let link = fs::read_link(self.root.join(format!("{pid}/fd/{file}")));
            link.is_ok_and(|link| link.as_os_str().as_bytes() == expected.as_bytes())
        })
    }

    /// The processes that hold a socket open, if this user may see them.
    pub fn holders(&self, socket: u64) -> Vec<u32> {
        let expected = PathBuf::from(format!("socket:[{socket}]"));
        let entries = fs::read_dir(&self.root).into_iter().flatten();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let holds = |pid: &u32| {
            let files = fs::read_dir(self.root.join(format!("{pid}/fd")));
            let mut links = (files.into_iter().flatten())
                .filter_map(|file| fs::read_link(file.ok()?.path()).ok());
            links.any(|link| link == expected)
        };
        let mut pids: Vec<u32> = pids.filter(holds).collect();
        pids.sort_unstable();
        pids
    }

    /// A file of this process' view of the network, such as `tcp6`.
    pub fn network(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.root.join("net").join(file)).ok()
    }

    pub fn describe(&self, pid: u32) -> EngineProcess {
        EngineProcess { pid, command: self.command(pid) }
    }

    /// Returns the command line of a process, without anything like a secret, and safe to show.
    fn command(&self, pid: u32) -> Option<String> {
        let words = fs::read(self.root.join(format!("{pid}/cmdline"))).ok()?;
        let words = String::from_utf8_lossy(&words);
        let words: Vec<&str> = words.split('\0').filter(|word| !word.is_empty()).collect();
        let command = if words.is_empty() {
            // An ended process, or the kernel's, has only a name.
            fs::read_to_string(self.root.join(format!("{pid}/comm"))).ok()?
        } else {
            model::redact::command(&words.join(" "))
        };
        Some(cut(&model::clean::line(command.trim()), SHOWN))
    }

    #[cfg(test)]
    pub fn own(&self) -> Id {
        let pid = std::process::id();
        let start = self.process(pid).map_or(0, |process| process.id.start);
        Id { pid, start }
    }

    /// Sends a signal to a process, and to no other that may have its identifier now.
    pub fn signal(&self, id: Id, signal: Signal) {
        let Some(pid) = raw(id.pid) else { return };
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
            // The descriptor stays with the process that had the identifier when it was opened.
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(process) => {
                    if self.lives(id) {
                        let _ = pidfd_send_signal(process, signal);
                    }
                    return;
                }
                Err(rustix::io::Errno::SRCH) => return,
                // An old kernel.
                Err(_) => {}
            }
        }
        if self.lives(id) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// The beginning of a text, with a mark where more follows.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A process identifier as the system calls want it.
pub(crate) fn raw(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// The file `stat` of a process: its name, in parentheses, may hold anything.
fn parse(pid: u32, stat: &str) -> Option<Process> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // proc(5) counts from 1, and the state is its third.
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Process {
        id: Id { pid, start: field(22)?.parse().ok()? },
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        ended: matches!(field(3)?, "Z" | "X" | "x"),
    })
}

/// An engine's marks. They grow: a process once seen stays, also when its parent is gone.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// The launch's identifier, which is in the environment of its processes unless they remove it.
    pub launch: String,
    /// The process that was started; its identifier is the group's.
    pub leader: Id,
    /// The pipe to its log, which its processes have as their output unless they close it.
    pub pipe: Option<u64>,
    pub seen: BTreeSet<Id>,
}

impl Family {
    /// The engine's living processes, which are remembered. None if the system shows none.
    pub fn look(&mut self, table: &Table) -> Option<Vec<Process>> {
        let all = table.processes()?;
        let variable = format!("{LAUNCH_ID}={}", self.launch);
        let members = self.members(&all, |process| {
            let pid = process.id.pid;
            let writes = self.pipe.is_some_and(|pipe| table.writes_to(pid, pipe));
            writes || table.has_variable(pid, &variable)
        });
        self.seen.extend(members.iter().map(|process| process.id));
        Some(members)
    }

    /// The engine's living processes among these. `evident` tells who has the launch's mark.
    fn members(&self, all: &[Process], evident: impl Fn(&Process) -> bool) -> Vec<Process> {
        // A process older than the engine is none of its processes, whatever its marks.
        let Id { pid: group, start: first } = self.leader;
        let own: Vec<bool> = (all.iter())
            .map(|process| {
                (process.id == self.leader && process.group == group)
                    || self.seen.contains(&process.id)
                    || (process.id.start >= first && evident(process))
            })
            .collect();
        // The system gives no new process the identifier of a group with members, so a group with
        // a member of ours is ours. Without one, a stranger may have got the identifier later.
        let in_group = |process: &Process| process.group == group;
        let group_is_ours = all.iter().zip(&own).any(|(process, own)| *own && in_group(process));
        let own = all.iter().zip(own);
        let mut found: BTreeSet<Id> = own
            .filter(|(process, own)| *own || (group_is_ours && in_group(process)))
            .map(|(process, _)| process.id)
            .collect();
        loop {
            let parents: BTreeSet<u32> = found.iter().map(|id| id.pid).collect();
            let children = all.iter().filter(|process| parents.contains(&process.parent));
            let before = found.len();
            found.extend(children.map(|process| process.id).collect::<Vec<_>>());
            if found.len() == before {
                break;
            }
        }
        let alive = all.iter().filter(|process| !process.ended && found.contains(&process.id));
        alive.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) Z 1 (b) S 5 6 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7272209 4595712";
        let process = parse(7, stat).unwrap();
        let expected =
            Process { id: Id { pid: 7, start: 7_272_209 }, parent: 5, group: 6, ended: false };
        assert_eq!(process, expected);
        assert!(parse(7, &stat.replace(") S", ") Z")).unwrap().ended);
        for torn in ["", "7 (a", "7 (a) S 5 6"] {
            assert_eq!(parse(7, torn), None, "{torn}");
        }
    }

    #[test]
    fn knows_nothing_without_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for root in [folder.path(), &folder.path().join("none")] {
            let table = Table::at(root);
            assert_eq!(table.processes(), None);
            assert_eq!(table.command(1), None);
            assert_eq!(table.own().start, 0);
            assert!(!table.lives(Table::default().own()));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_lives() {
        let table = Table::default();
        let own = table.own();
        assert!(own.start > 0);
        assert!(table.lives(own));
        let other = Id { start: own.start + 1, ..own };
        assert!(!table.lives(other), "its identifier was reused");
        let own = table.command(own.pid).unwrap();
        assert!(own.contains("launch"), "{own}");
    }

    #[test]
    fn commands_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let table = Table::at(folder.path());
        fs::create_dir(folder.path().join("7")).unwrap();
        let write = |file: &str, text: &str| {
            fs::write(folder.path().join("7").join(file), text).unwrap();
        };
        write("comm", "kworker\n");
        write("cmdline", "");
        assert_eq!(table.command(7).unwrap(), "kworker");
        write("cmdline", "vllm\0serve\0--api-key\0opensesame\0--port\x0080\0");
        assert_eq!(table.command(7).unwrap(), "vllm serve --api-key [redacted] --port 80");
        write("cmdline", &"x".repeat(500));
        assert_eq!(table.command(7).unwrap().chars().count(), SHOWN + 1);
        write("environ", "A=1\0RUNNER=x1\0");
        assert!(table.has_variable(7, "RUNNER=x1"));
        assert!(!table.has_variable(7, "RUNNER=x"));
        assert!(!table.has_variable(8, "RUNNER=x1"));
    }

    fn process(pid: u32, start: u64, parent: u32, group: u32) -> Process {
        Process { id: Id { pid, start }, parent, group, ended: false }
    }

    fn family() -> Family {
        Family {
            launch: "l".to_owned(),
            leader: Id { pid: 50, start: 500 },
            pipe: None,
            seen: BTreeSet::new(),
        }
    }

    fn found(family: &Family, all: &[Process], evident: &[u32]) -> Vec<u32> {
        let members = family.members(all, |process| evident.contains(&process.id.pid));
        members.iter().map(|process| process.id.pid).collect()
    }

    #[test]
    fn the_group_and_all_descendants() {
        let all = [
            process(1, 1, 0, 1),
            process(40, 400, 1, 40),
            process(50, 500, 40, 50),
            process(51, 510, 50, 50),
            // A worker with a group of its own, and its child.
            process(52, 520, 50, 52),
            process(53, 530, 52, 53),
            // A process whose parent has ended.
            process(54, 540, 1, 50),
            process(60, 600, 40, 60),
        ];
        assert_eq!(found(&family(), &all, &[]), [50, 51, 52, 53, 54]);
    }

    #[test]
    fn knows_a_process_outside_the_group_by_mark_or_memory() {
        let escaped = process(70, 700, 1, 70);
        let all = [process(50, 500, 40, 50), escaped.clone()];
        assert_eq!(found(&family(), &all, &[]), [50]);
        assert_eq!(found(&family(), &all, &[70]), [50, 70]);
        let mut seen = family();
        seen.seen.insert(escaped.id);
        assert_eq!(found(&seen, &all, &[]), [50, 70]);
        let reused = [process(70, 701, 1, 70)];
        assert_eq!(found(&seen, &reused, &[]), [0; 0]);
    }

    #[test]
    fn a_reused_identifier_is_a_stranger() {
        // The leader's identifier, its group, and a child there.
        let all = [process(50, 900, 1, 50), process(51, 910, 50, 50)];
        assert_eq!(found(&family(), &all, &[]), [0; 0]);
        // A group whose leader has ended shows nothing by itself.
        assert_eq!(found(&family(), &all[1..], &[]), [0; 0]);
        // One marked member shows that the group was never empty.
        let all = [process(51, 510, 1, 50), process(52, 520, 1, 50)];
        assert_eq!(found(&family(), &all, &[52]), [51, 52]);
        // A mark on a process older than the engine counts for nothing.
        assert_eq!(found(&family(), &[process(30, 300, 1, 30)], &[30]), [0; 0]);
    }

    #[test]
    fn an_ended_member_shows_that_the_group_is_ours() {
        let mut leader = process(50, 500, 40, 50);
        leader.ended = true;
        let all = [leader, process(51, 510, 1, 50)];
        assert_eq!(found(&family(), &all, &[]), [51]);
        assert_eq!(found(&family(), &all[..1], &[]), [0; 0]);
    }
}
