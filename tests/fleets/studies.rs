//! Sweeps, searches and labs on a fleet: every run is made by all processes, and equals the run of
//! one machine.

use runs::folder::{RunFolder, runs};

use super::{Fleet, digests, due, measured};
use crate::support::process::{Exit, Mock, Process, run_patiently};

/// Runs a command on all processes, and returns the end of rank 0. The others must end well.
#[track_caller]
fn conducted(fleet: &Fleet, line: &str, flags: &str) -> Exit {
    let flags = format!("{flags} --fleet");
    let ranks = 0..fleet.size;
    let started: Vec<Process> =
        ranks.map(|rank| Process::start(&mut fleet.process(rank, line, &flags))).collect();
    let mut ended: Vec<Exit> = started.into_iter().map(Process::end).collect();
    for other in ended.drain(1..) {
        other.with_code(0);
    }
    ended.remove(0)
}

/// The runs on a rank, in their order, with the requests of each process.
fn made(fleet: &Fleet, rank: &str) -> Vec<(RunFolder, Vec<u64>)> {
    let mut found = runs(&fleet.path().join(rank).join("runs")).unwrap();
    found.sort_by_key(|run| run.status().unwrap().unwrap().started);
    let shares = |run: &RunFolder| {
        let agents = run.facts().unwrap().fleet.map(|fleet| fleet.agents).unwrap_or_default();
        agents.iter().map(|agent| agent.records).collect()
    };
    found.into_iter().map(|run| (run.clone(), shares(&run))).collect()
}

#[test]
fn a_sweep_on_four_processes_is_the_sweep_of_one() {
    let fleet = Fleet::new(4);
    // Seven users on four processes.
    let flags = "--concurrencies 7,2 --num-prompts 56";
    conducted(&fleet, "sweep ../together.toml", flags).with_code(0);
    let shares: Vec<Vec<u64>> = made(&fleet, "rank0").into_iter().map(|(_, own)| own).collect();
    assert_eq!(shares, [vec![28, 28, 0, 0], vec![16, 16, 16, 8]]);

    let fleet = Fleet::new(3);
    let flags = "--rates 40,90 --num-prompts 41";
    conducted(&fleet, "sweep ../together.toml", flags);
    let alone = format!("{flags} --seed 7");
    let mut command = fleet.process(9, "sweep ../together.toml", &alone);
    run_patiently(command.env_remove("RUNNER_FLEET_RANK"));
    assert_eq!(made(&fleet, "rank9").len(), 2);
    for ((one, _), (many, shares)) in made(&fleet, "rank9").iter().zip(made(&fleet, "rank0")) {
        let [one, many] = [measured(one), measured(&many)];
        assert_eq!((due(&one), digests(&one)), (due(&many), digests(&many)));
        assert_eq!(shares, [14, 14, 13]);
    }
}

/// The engine answers some 20 requests per second. Rank 0 sees that the backlog of all processes
/// grows, and stops the run on each process. All processes make the next run.
#[test]
fn a_search_stops_a_run_on_every_process_and_goes_on() {
    let mock = Mock::start(&["--batching", "slots=2,step=8ms"]);
    let fleet = Fleet::against(3, mock);
    let flags =
        "--slo ttft.p90<1s --start 120 --least 100 --most 120 --loads 2 --no-confirm --run-for 25s";
    let ended = conducted(&fleet, "search ../together.toml", flags).with_code(6);
    assert!(ended.stdout.contains("surely fails at 100 req/s"), "{ended:#?}");
    let runs = made(&fleet, "rank0");
    assert!(runs.len() > 1 && runs.iter().all(|(_, shares)| shares.len() == 3), "{runs:?}");
    let is_stopped = |run: &RunFolder| run.status().unwrap().unwrap().interrupted;
    assert!(is_stopped(&runs[0].0) && is_stopped(&runs[1].0), "{ended:#?}");
}

#[test]
fn a_lab_on_two_processes_measures_running_engines() {
    let fleet = Fleet::new(2);
    let lab = format!(
        "name = 'two'\nstrategy = 'matrix'\nrepeats = 2\nscenarios = ['together.toml']\n\
        set = {{ load.requests = 30 }}\n\
        [[engines]]\nname = 'one'\nbackend = 'vllm'\nbase-url = 'http://127.0.0.1:{}'\n",
        fleet.mock.port()
    );
    std::fs::write(fleet.path().join("lab.toml"), lab).unwrap();
    conducted(&fleet, "lab ../lab.toml", "").with_code(0);
    let shares: Vec<Vec<u64>> = made(&fleet, "rank0").into_iter().map(|(_, own)| own).collect();
    assert_eq!(shares, [[15, 15], [15, 15]]);
}

/// A process that another file sends elsewhere is refused by name, and every process ends.
#[test]
fn a_process_with_another_command_line_ends_the_study() {
    let fleet = Fleet::new(2);
    let sweep = |rank, flags: &str| {
        let flags = format!("--rates 40 --num-prompts 20 --fleet {flags}");
        Process::start(&mut fleet.process(rank, "sweep ../together.toml", &flags))
    };
    let (first, second) = (sweep(0, ""), sweep(1, "--random-input-len 41"));
    let (first, second) = (first.end(), second.end());
    first.with_stderr(5, "rank 1");
    second.with_stderr(5, "made another plan");
}
