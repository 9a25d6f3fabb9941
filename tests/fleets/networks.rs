//! Machines of their own: namespaces of the kernel's network, with links that break.
//!
//! Each machine has two links, as load machines often have: one between the processes, and one to
//! the engine. The first breaks, so that requests are sent and answered as before. The tests need
//! `ip` (iproute2) and root; where the kernel makes no namespaces, they are left out.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use result::finding::{Id, Verdict};
use runs::folder::RunFolder;

use super::{ENGINE, Fleet, alone, behind, digests, due, measured, records_of};
use crate::support::lacking;
use crate::support::process::{Mock, Process};

/// The place where the engine is, and rank 0.
const ENGINE_AT: &str = "10.78.0.100";
const COORDINATOR_AT: &str = "10.77.0.1";

/// Machines with their links, until dropped.
struct Machines {
    prefix: String,
    made: Vec<String>,
}

fn ip(words: &str) -> Result<(), String> {
    let done = Command::new("ip").args(words.split_whitespace()).output();
    let done = done.map_err(|cause| cause.to_string())?;
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("ip {words}: {}", String::from_utf8_lossy(&done.stderr)))
    }
}

impl Machines {
    /// Makes `size` machines for load and one for the engine; none where the kernel forbids it.
    fn make(size: u32) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        if !lacking::has("ip", &lacking::IP) {
            return None;
        }
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let mut machines =
            Machines { prefix: format!("rf{}x{number}", std::process::id()), made: Vec::new() };
        if machines.add("hub").is_err() {
            lacking::leave_out(&lacking::NETWORKS);
            return None;
        }
        let hub = machines.name("hub");
        for bridge in ["control", "engine"] {
            ip(&format!("-n {hub} link add {bridge} type bridge")).unwrap();
            ip(&format!("-n {hub} link set {bridge} up")).unwrap();
        }
        for rank in 0..size {
            let name = rank.to_string();
            machines.add(&name).unwrap();
            machines.link(&name, "control", &format!("10.77.0.{}", rank + 1));
            machines.link(&name, "engine", &format!("10.78.0.{}", rank + 1));
        }
        machines.add("e").unwrap();
        machines.link("e", "engine", ENGINE_AT);
        Some(machines)
    }

    fn name(&self, machine: &str) -> String {
        format!("{}-{machine}", self.prefix)
    }

    fn add(&mut self, machine: &str) -> Result<(), String> {
        let name = self.name(machine);
        ip(&format!("netns add {name}"))?;
        self.made.push(name.clone());
        ip(&format!("-n {name} link set lo up"))
    }

    /// A machine's link to one of the two networks, with an address.
    fn link(&self, machine: &str, network: &str, address: &str) {
        let (hub, own) = (self.name("hub"), self.name(machine));
        let port = format!("{network}{machine}");
        for words in [
            format!("-n {hub} link add {port} type veth peer name {network} netns {own}"),
            format!("-n {hub} link set {port} master {network}"),
            format!("-n {hub} link set {port} up"),
            format!("-n {own} address add {address}/24 dev {network}"),
            format!("-n {own} link set {network} up"),
        ] {
            ip(&words).unwrap();
        }
    }

    /// Takes the link down, or up again, by which a rank tells and hears.
    fn control(&self, rank: u32, state: &str) {
        let hub = self.name("hub");
        ip(&format!("-n {hub} link set control{rank} {state}")).unwrap();
    }

    /// The words before a command that runs on a machine.
    fn on(&self, machine: &str) -> [String; 4] {
        ["ip", "netns", "exec", &self.name(machine)].map(str::to_owned)
    }

    /// An engine, and a fleet of one process on each machine.
    fn fleet(&self, size: u32) -> Fleet {
        let shell = format!("exec {} \"$@\"", self.on("e").join(" "));
        let flags = [&ENGINE[..], &["--host", ENGINE_AT]].concat();
        let mut fleet = Fleet::against(size, Mock::logging_behind(&shell, &flags));
        fleet.engine = ENGINE_AT.to_owned();
        fleet.coordinator = COORDINATOR_AT.to_owned();
        fleet
    }

    /// Starts all processes, each on its machine.
    fn start(&self, fleet: &Fleet, flags: &str) -> Vec<Process> {
        let one = |rank: u32| {
            let words = self.on(&rank.to_string());
            let words = words.each_ref().map(String::as_str);
            Process::start(&mut behind(&words, &fleet.command(rank, flags)))
        };
        (0..fleet.size).map(one).collect()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.made {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// Four machines send the requests of a single machine, at the same times.
#[test]
fn four_machines_are_one_run() {
    let Some(machines) = Machines::make(4) else { return };
    let fleet = machines.fleet(4);
    for process in machines.start(&fleet, "") {
        process.end().with_code(0);
    }
    let single = alone(&fleet, &machines.on("0").each_ref().map(String::as_str));
    let run = fleet.run();
    let together = measured(&run);
    assert_eq!(together.len(), 200);
    assert_eq!(due(&together), due(&single));
    assert_eq!(digests(&together), digests(&single));
    assert!(together.iter().all(|exchange| exchange.is_ok()));
    let agents = run.facts().unwrap().fleet.unwrap().agents;
    assert!(agents.iter().all(|agent| agent.records == 50 && agent.lost.is_none()));
}

/// Rank 0 cannot be reached for two seconds: records wait on the agents' disks, and all come.
#[test]
fn a_link_that_comes_back_loses_nothing() {
    let Some(machines) = Machines::make(3) else { return };
    let fleet = machines.fleet(3);
    let mut processes = machines.start(&fleet, "");
    processes[0].until("records come", |_| records_of(&fleet, 1) > 500);
    machines.control(0, "down");
    // Messages under way may still arrive.
    std::thread::sleep(Duration::from_millis(500));
    let before = records_of(&fleet, 1);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(records_of(&fleet, 1), before, "the link is broken");
    machines.control(0, "up");
    for process in processes {
        let ended = process.end().with_code(0);
        assert!(!ended.stderr.contains("lost rank"), "{ended:#?}");
    }
    let single = alone(&fleet, &machines.on("0").each_ref().map(String::as_str));
    let run = fleet.run();
    let together = measured(&run);
    assert_eq!(due(&together), due(&single));
    assert_eq!(digests(&together), digests(&single));
    assert!(together.iter().all(|exchange| exchange.is_ok()));
    let summary = run.summarize(&run.facts().unwrap()).unwrap();
    assert_eq!((summary.requests.successful, &summary.run.damage), (200, &None));
    assert!(!summary.findings.iter().any(|finding| finding.id == Id::AgentLost));
}

/// An agent that cannot reach rank 0 any more stops sending, ends with the code of a target that is
/// gone, and prints the path of its records. Rank 0 reports the records that came, and the run is
/// invalid.
#[test]
fn a_link_that_stays_down_ends_both_sides() {
    let Some(machines) = Machines::make(2) else { return };
    let fleet = machines.fleet(2);
    let mut processes = machines.start(&fleet, "--fleet-grace 1s --request-rate 10");
    processes[0].until("records come", |_| records_of(&fleet, 1) > 500);
    machines.control(1, "down");
    let agent = processes.pop().unwrap().end().with_code(5);
    let gone = "the coordinator has been gone for 11 s";
    assert!(agent.stderr.contains(gone), "{agent:#?}");
    assert!(agent.stderr.contains("stopped by the fleet"), "{agent:#?}");
    let line = (agent.stderr.lines())
        .find_map(|line| line.strip_prefix("the records of this process are in "));
    let folder = fleet.path().join("rank1").join(line.unwrap());
    let kept = measured(&RunFolder::at(&folder));
    assert!(!kept.is_empty() && kept.len() < 100, "{}", kept.len());

    processes.pop().unwrap().end().with_stderr(0, "lost rank 1");
    let run = fleet.run();
    let facts = run.facts().unwrap();
    let exchanges = measured(&run);
    let of_lost = exchanges.iter().filter(|exchange| exchange.index % 2 == 1).count();
    assert!(of_lost > 0 && of_lost <= kept.len(), "{of_lost} of {}", kept.len());
    assert_eq!(exchanges.len() - of_lost, 100);
    let lost = facts.fleet.as_ref().unwrap().agents[1].lost.clone().unwrap();
    assert_eq!(lost.unknown, Some(100 - of_lost as u64));
    assert_eq!(run.summarize(&facts).unwrap().verdict, Verdict::Invalid);
}
