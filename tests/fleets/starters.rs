//! Fleets under real starters, Open MPI and Slurm; and processes whose clocks differ.
//!
//! They need their packages (`openmpi-bin`, `slurm-wlm`, `munge`) and root.

use std::process::Command;
use std::time::Duration;

use super::{FLAGS, Fleet, alone, behind, digests, due, measured, only_run};
use crate::support::lacking::{self, may_set_clocks};
use crate::support::process::{Exit, Process, inherit, run_patiently, runner};
use crate::support::proxy::{Network, Proxy};

/// The script that sets up Slurm for as long as a command runs.
const SLURM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fleets/slurm.sh");

/// Runs a command behind Slurm, which is set up again if it does not come up.
fn under_slurm(command: &mut Command) -> Exit {
    /// The script's exit code if Slurm did not come up.
    const NO_SLURM: i32 = 75;
    let mut ended = run_patiently(command);
    for _ in 0..2 {
        if ended.code == Some(NO_SLURM) {
            ended = run_patiently(command);
        }
    }
    ended.with_code(0)
}

/// A fleet of four that something else starts: the words before the program.
fn started_by(fleet: &Fleet, starter: &[&str], coordinator: Option<&str>) {
    let mut command = behind(starter, &fleet.command(0, ""));
    for variable in ["RUNNER_FLEET_RANK", "RUNNER_FLEET_SIZE", "RUNNER_FLEET_COORDINATOR"] {
        command.env_remove(variable);
    }
    if let Some(coordinator) = coordinator {
        command.env("RUNNER_FLEET_COORDINATOR", coordinator);
    }
    let ended = if starter.contains(&SLURM) {
        under_slurm(&mut command)
    } else {
        run_patiently(&mut command).with_code(0)
    };
    let run = fleet.run();
    assert_eq!(measured(&run).len(), 200, "{ended:#?}");
    let agents = run.facts().unwrap().fleet.unwrap().agents;
    assert_eq!(agents.len(), 4);
    assert!(agents.iter().all(|agent| agent.records == 50), "{ended:#?}");
}

#[test]
fn open_mpi_starts_a_fleet() {
    if !lacking::has("mpirun", &lacking::OPEN_MPI) {
        return;
    }
    let fleet = Fleet::new(4);
    let mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"];
    started_by(&fleet, &mpirun, Some(&format!("127.0.0.1:{}", fleet.port)));
}

#[test]
fn slurm_starts_a_fleet() {
    if !lacking::has("srun", &lacking::SLURM) {
        return;
    }
    let fleet = Fleet::new(4);
    let srun = [SLURM, "srun", "--nodes", "4", "--ntasks-per-node", "1"];
    // The nodes are all this machine, which does not know their names.
    started_by(&fleet, &srun, Some(&format!("127.0.0.1:{}", fleet.port)));
}

/// The guide's batch script, as Slurm runs it.
#[test]
fn slurm_runs_the_batch_script() {
    if !lacking::has("sbatch", &lacking::SLURM) {
        return;
    }
    let fleet = Fleet::new(4);
    let guide = include_str!("../../host/guide/src/fleets.md");
    let begin = guide.find("#!/bin/bash").unwrap();
    let script = &guide[begin..begin + guide[begin..].find("```").unwrap()];
    let ours = format!("together.toml {FLAGS} --host 127.0.0.1 --port {}", fleet.mock.port());
    let script = script
        .replace("chat.toml --base-url http://engine:8000", &ours)
        .replace("--cpus-per-task=8", "--cpus-per-task=1");
    assert!(script.contains(&ours), "{script}");
    std::fs::write(fleet.path().join("batch.sh"), script).unwrap();
    std::fs::write(fleet.path().join("run.token"), &fleet.token).unwrap();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_runner"));
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new(SLURM);
    command.args(["sbatch", "--wait", "batch.sh"]).current_dir(fleet.path());
    inherit(&mut command, &runner());
    command
        .env("HOME", fleet.path())
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .env("RUNNER_FLEET_COORDINATOR", format!("127.0.0.1:{}", fleet.port));
    under_slurm(&mut command);
    assert_eq!(measured(&only_run(&fleet.path().join("runs"))).len(), 200);
}

/// The variables that an Indexed Job and the guide's template set.
#[test]
fn the_pods_of_an_indexed_job_are_a_fleet() {
    let fleet = Fleet::new(3);
    let template = include_str!("../../host/guide/src/fleets.md");
    assert!(template.contains("{ name: RUNNER_FLEET_SIZE, value:"));
    assert!(template.contains("{ name: RUNNER_FLEET_COORDINATOR, value:"));
    let pods = (0..3_u32).map(|rank| {
        let mut command = fleet.command(rank, "");
        command.env_remove("RUNNER_FLEET_RANK").env("JOB_COMPLETION_INDEX", rank.to_string());
        Process::start(&mut command)
    });
    for pod in pods.collect::<Vec<_>>() {
        pod.end().with_code(0);
    }
    assert_eq!(measured(&fleet.run()).len(), 200);
}

/// A machine with another uptime: requests have the same due times, to the nanosecond.
#[test]
fn a_clock_that_shows_other_numbers_changes_nothing() {
    if !may_set_clocks() {
        return;
    }
    let fleet = Fleet::new(2);
    let ours = fleet.command(1, "");
    let apart = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", "1000"];
    let mut other = behind(&apart, &ours);
    let processes = [Process::start(&mut fleet.command(0, "")), Process::start(&mut other)];
    for process in processes {
        process.end().with_code(0);
    }
    let together = measured(&fleet.run());
    let single = alone(&fleet, &[]);
    assert_eq!(due(&together), due(&single));
    assert_eq!(digests(&together), digests(&single));
}

/// Packets that take 5 ms make clocks too uncertain: no run begins, unless it is allowed.
#[test]
fn a_clock_that_cannot_be_known_is_refused_by_name() {
    let fleet = Fleet::new(2);
    let slow = Network { delay: Duration::from_millis(5), ..Network::PLAIN };
    let proxy = Proxy::before(&format!("http://127.0.0.1:{}", fleet.port), slow);
    let far = proxy.url.trim_start_matches("http://").to_owned();
    let both = |flags: &str| {
        let mut other = fleet.command(1, flags);
        other.env("RUNNER_FLEET_COORDINATOR", &far);
        [Process::start(&mut fleet.command(0, flags)), Process::start(&mut other)].map(Process::end)
    };
    let [coordinator, other] = both("");
    let (coordinator, _) = (coordinator.with_code(5), other.with_code(5));
    assert!(coordinator.stderr.contains("rank 1"), "{coordinator:#?}");
    assert!(coordinator.stderr.contains("clock"), "{coordinator:#?}");
    for ended in both("--clock-error 50ms") {
        ended.with_code(0);
    }
}
