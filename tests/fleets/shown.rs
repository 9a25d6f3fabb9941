//! Display of a fleet on rank 0: the page for Prometheus, the dashboard, devices, notes on flags.

use std::process::Command;

use devices::nvml::VARIABLE;
use runs::telemetry;

use super::{Fleet, measured};
use crate::devices::exporter::Exporter;
use crate::devices::stand_in;
use crate::live::exposition::Page;
use crate::live::listening::{address, page_until};
use crate::live::terminal::{on_a_terminal, screens};
use crate::support::process::{Process, runner};

/// The number of processes that have this standing.
fn standing(page: &Page, standing: &str) -> f64 {
    page.series("runner_fleet_agents", &[("standing", standing)]).map(|sample| sample.value).sum()
}

/// Requests that ended, of the whole and of each process.
fn ended(page: &Page, outcome: &str) -> (f64, Vec<f64>) {
    let labels = [("outcome", outcome)];
    let sum = page.series("runner_requests_total", &labels).map(|sample| sample.value).sum();
    let each = page.series("runner_agent_requests_total", &labels);
    (sum, each.map(|sample| sample.value).collect())
}

/// The page has all processes together, and whether each is silent. A killed process falls silent
/// and is lost; its requests stay on the page, and the others go on.
#[test]
fn the_page_is_of_the_whole_fleet() {
    let fleet = Fleet::new(3);
    let flags = "--request-rate 20 --fleet-grace 3s --metrics-listen 127.0.0.1:0";
    let mut processes = fleet.start(flags);
    let mut killed = processes.pop().unwrap();
    let address = address(&mut processes[0]);
    let page = page_until(&mut processes[0], &address, |page| {
        let (answered, each) = ended(page, "ok");
        answered > 12.0 && each.iter().all(|answered| *answered > 0.0)
    });
    // Rank 0 keeps a folder of its own part until the end; the page names the folder of all.
    let together = fleet.path().join("rank0/runs").join(page.label("run"));
    assert!(together.join("agents").is_dir(), "{together:?}");
    assert_eq!((standing(&page, "reporting"), standing(&page, "lost")), (3.0, 0.0));
    let (answered, each) = ended(&page, "ok");
    assert_eq!((each.len(), each.iter().sum::<f64>()), (3, answered));
    // Cells and buckets are of all processes too.
    assert_eq!(page.value("runner_time_to_first_token_seconds_count", &[]), answered);
    for rank in ["0", "1", "2"] {
        let agent = [("agent", rank)];
        assert_eq!(page.value("runner_agent_up", &agent), 1.0);
        let age = page.value("runner_agent_figures_age_seconds", &agent);
        assert!((0.0..5.0).contains(&age), "{age}");
        let pacer = [("agent", rank), ("thread", "pace")];
        assert_eq!(page.series("runner_client_cpu_ratio", &pacer).count(), 1);
    }
    let due = page.value("runner_requests_due_total", &[]);
    assert!(due >= answered && due <= 200.0, "{due} due, {answered} answered");

    killed.signal("KILL");
    killed.until_gone();
    let lost = page_until(&mut processes[0], &address, |page| standing(page, "lost") == 1.0);
    let gone = [("agent", "2")];
    assert_eq!(lost.value("runner_agent_up", &gone), 0.0);
    assert_eq!(lost.series("runner_agent_requests_in_flight", &gone).count(), 0);
    let (later, each_later) = ended(&lost, "ok");
    assert!(each_later[2] >= each[2] && later > answered, "{each_later:?}");
    assert_eq!(each_later.iter().sum::<f64>(), later);
    let before = each_later[0] + each_later[1];
    page_until(&mut processes[0], &address, |page| {
        let (_, each) = ended(page, "ok");
        each[0] + each[1] > before
    });
    for process in processes {
        process.end().with_code(0);
    }
    assert_eq!(
        measured(&fleet.run()).iter().filter(|exchange| exchange.index % 3 != 2).count(),
        134
    );
}

#[test]
fn the_dashboard_is_of_the_whole_fleet() {
    let fleet = Fleet::new(2);
    let ours = loud(&fleet, 0, "--dashboard");
    let line: Vec<_> = ours.get_args().map(|word| word.to_string_lossy()).collect();
    let folder = ours.get_current_dir().unwrap();
    let Some(mut command) = on_a_terminal(folder, &line.join(" "), "TERM=xterm") else { return };
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // The others have the same words, and no terminal.
    let other = Process::start(&mut fleet.command(1, "--dashboard"));
    let coordinator = Process::start(&mut command).end().with_code(0);
    other.end().with_code(0);
    let (shown, _, after) = screens(&coordinator.stdout);
    for part in ["2 of 2 agents report", "the busiest client", "/200 done"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(after.contains("Successful requests:                     200"), "{after:?}");
}

/// The command of a rank without `--no-progress`.
fn loud(fleet: &Fleet, rank: u32, flags: &str) -> Command {
    let ours = fleet.command(rank, flags);
    let mut command = runner();
    command
        .args(ours.get_args().filter(|word| *word != "--no-progress"))
        .current_dir(ours.get_current_dir().unwrap());
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn lines_of_progress_are_of_the_whole_fleet() {
    let fleet = Fleet::new(2);
    let processes =
        [0, 1].map(|rank| Process::start(&mut loud(&fleet, rank, "--progress-every 1s")));
    let [coordinator, other] = processes.map(|process| process.end().with_code(0));
    let line = "(2 of 2 agents report)";
    assert!(coordinator.stderr.contains(line), "{coordinator:#?}");
    assert!(!other.stderr.contains("agents report"), "{other:#?}");
}

/// Rank 0 alone reads the devices, once for all.
#[test]
fn rank_0_reads_the_devices_for_all() {
    let exporter = Exporter::start(|page| {
        let energy = 1_000_000 * (page + 1);
        Some(format!(
            "DCGM_FI_DEV_POWER_USAGE{{gpu=\"0\",UUID=\"GPU-x\"}} 250\n\
             DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu=\"0\",UUID=\"GPU-x\"}} {energy}\n"
        ))
    });
    let fleet = Fleet::new(2);
    let flags = format!("--device-interval 50ms --device-metrics {}", exporter.url);
    fleet.succeeds(&flags);
    let run = fleet.run();
    let recording = telemetry::read(run.path()).unwrap().unwrap();
    // The first page is read to see which devices there are, and each further one is a sample.
    assert_eq!(recording.samples.len() as u64, exporter.pages() - 1);
    let devices = run.summarize(&run.facts().unwrap()).unwrap().devices.unwrap();
    assert_eq!(devices.source.as_deref(), Some("dcgm"));
    assert_eq!(devices.max_power_w, Some(250.0));
    // The samples are by the records' clock: the counter grew while requests were answered.
    assert!(devices.energy_j.is_some_and(|energy| energy > 0.0), "{devices:?}");
}

/// NVML is read on the machine of rank 0 alone: the others need none.
#[test]
fn nvml_is_that_of_rank_0() {
    let fleet = Fleet::new(2);
    let flags = "--device-interval 50ms --device-metrics nvml";
    let mut coordinator = fleet.command(0, flags);
    coordinator.env(VARIABLE, stand_in());
    let mut other = fleet.command(1, flags);
    other.env(VARIABLE, "/nonexistent/libnvidia-ml.so.1");
    let processes = [Process::start(&mut coordinator), Process::start(&mut other)];
    for process in processes {
        process.end().with_code(0);
    }
    let run = fleet.run();
    assert_eq!(run.summarize(&run.facts().unwrap()).unwrap().devices.unwrap().each.len(), 2);

    // Where rank 0 has none, there is no run.
    let fleet = Fleet::new(2);
    let mut coordinator = fleet.command(0, flags);
    coordinator.env(VARIABLE, "/nonexistent/libnvidia-ml.so.1");
    Process::start(&mut coordinator).end().with_stderr(3, "--device-metrics none");
}

/// Notes of `runner run` on flags that other tools have are printed once, by rank 0.
#[test]
fn notes_on_flags_are_printed_once() {
    let fleet = Fleet::new(2);
    let note = "note: no dataset is named, so the dataset is `random`";
    let scenario = "name = \"bare\"\n[load]\nrequests = 20\narrival = \"constant\"\nrate = 20.0\n";
    std::fs::write(fleet.path().join("together.toml"), scenario).unwrap();
    let processes = fleet.start("--random-input-len 8 --random-output-len 4");
    let ended: Vec<_> = processes.into_iter().map(Process::end).collect();
    let counts = ended.iter().map(|ended| ended.stderr.matches(note).count());
    assert_eq!(counts.collect::<Vec<_>>(), [1, 0], "{ended:#?}");
}
