//! Count of the processes that the kernel has killed because memory was not enough: on this
//! machine, and in this process' control group, which an engine inherits.

use std::fs;
use std::path::Path;

/// The kernel's counts at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    machine: Option<u64>,
    group: Option<u64>,
}

/// The number of processes that were killed between two instants, as far as the kernel tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Killed {
    /// In this process' control group.
    pub in_group: u64,
    /// On the machine, control groups included.
    pub on_machine: u64,
}

impl Counts {
    /// The counts now. `root` is `/`, and another folder in tests.
    pub fn read(root: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        let group = text("proc/self/cgroup").and_then(|groups| {
            let files = files_of(&groups);
            let mut counts = files.iter().filter_map(|file| text(file));
            counts.find_map(|counts| count(&counts))
        });
        Counts { machine: text("proc/vmstat").and_then(|counts| count(&counts)), group }
    }

    /// Returns the kills since then.
    pub fn until(self, later: Counts) -> Killed {
        let grown = |before: Option<u64>, after: Option<u64>| match (before, after) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => 0,
        };
        Killed {
            in_group: grown(self.group, later.group),
            on_machine: grown(self.machine, later.machine),
        }
    }
}

/// The place where the kernel counts for the control groups that `/proc/self/cgroup` lists: one
/// line of `0::PATH` for version 2, one that names the controller `memory` for version 1.
fn files_of(groups: &str) -> Vec<String> {
    let file = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        match controllers {
            "" => Some(format!("sys/fs/cgroup{path}/memory.events")),
            _ if controllers.split(',').any(|name| name == "memory") => {
                Some(format!("sys/fs/cgroup/memory{path}/memory.oom_control"))
            }
            _ => None,
        }
    };
    groups.lines().filter_map(file).collect()
}

/// The line `oom_kill N`.
fn count(counts: &str) -> Option<u64> {
    let line = counts.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_both_versions_of_control_groups() {
        for (groups, file) in [
            ("0::/user/a\n", "sys/fs/cgroup/user/a/memory.events"),
            (
                "9:name=systemd:/\n4:cpu,memory:/b\n0::/\n",
                "sys/fs/cgroup/memory/b/memory.oom_control",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            assert_eq!(Counts::read(root.path()), Counts::default());
            write("proc/self/cgroup", groups);
            write("proc/vmstat", "nr_free_pages 5\noom_kill 7\n");
            let before = Counts::read(root.path());
            write(file, "oom 3\noom_kill 1\noom_group_kill 9\n");
            let first = Counts::read(root.path());
            write(file, "oom 3\noom_kill 3\noom_group_kill 9\n");
            write("proc/vmstat", "nr_free_pages 5\noom_kill 10\n");
            let second = Counts::read(root.path());
            let killed = |in_group, on_machine| Killed { in_group, on_machine };
            assert_eq!(before.until(first), killed(0, 0), "not known before");
            assert_eq!(first.until(second), killed(2, 3), "{groups}");
            assert_eq!(second.until(first), killed(0, 0), "the group is another");
        }
    }
}
