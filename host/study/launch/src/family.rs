//! The processes of an engine.

use std::collections::BTreeSet;

use crate::LAUNCH_ID;
use crate::process::{Id, Process, Table};

/// The marks of an engine's processes. They grow: a process that was seen to belong to the engine
/// belongs to it later, when its parent is gone.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// The launch's identifier, which is in the environment of its processes unless they remove it.
    pub launch: String,
    /// The process that was started; its identifier is the group's.
    pub leader: Id,
    /// The pipe to its log, which its processes have as their output unless they close it.
    pub pipe: Option<u64>,
    /// Processes that were seen.
    pub seen: BTreeSet<Id>,
}

impl Family {
    /// The living processes of the engine, which are remembered. None if the system does not show
    /// processes.
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

    /// The engine's processes among these, without ended ones. `evident` says of a process whether
    /// it has the launch's mark.
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
        // The system gives no new process the identifier of a group that has members. So a group
        // with a member of ours is ours. A group without one may belong to a stranger who got the
        // identifier later.
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
