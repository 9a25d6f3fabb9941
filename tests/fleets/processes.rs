//! Processes that are started by hand, as any starter would.

use model::exchange::Class;
use result::finding::{Id, Verdict};

use super::{ENGINE, Fleet, alone, behind, digests, due, measured, records_of};
use crate::support::lacking::may_mount;
use crate::support::process::{Exit, Mock, Process, run_patiently, runner, words};

fn all(processes: Vec<Process>) -> Vec<Exit> {
    processes.into_iter().map(Process::end).collect()
}

/// Four processes send the requests of one at the same due times, to the nanosecond.
#[test]
fn four_processes_send_the_requests_of_one() {
    let fleet = Fleet::new(4);
    fleet.succeeds("");
    let run = fleet.run();
    let together = measured(&run);

    let single = alone(&fleet, &[]);
    assert_eq!(together.len(), 200);
    assert_eq!(due(&together), due(&single));
    assert_eq!(digests(&together), digests(&single));
    assert!(together.iter().all(|exchange| exchange.is_ok()));

    let facts = run.facts().unwrap();
    let agents = facts.fleet.as_ref().unwrap().agents.clone();
    assert_eq!(agents.iter().map(|agent| agent.records).collect::<Vec<_>>(), [50; 4]);
    for agent in &agents {
        assert!(agent.clock_bound_us.is_some_and(|bound| bound < 1000.0));
        assert!(agent.client.is_some() && agent.lost.is_none());
    }
    let summary = run.summarize(&facts).unwrap();
    assert_eq!(summary.requests.successful, 200);
    assert_eq!(summary.run.damage, None);
    // Nothing is left of the processes' own folders.
    for rank in 0..4 {
        let scratch = fleet.path().join(format!("rank{rank}/runs/.fleet"));
        assert_eq!(std::fs::read_dir(scratch).unwrap().count(), 0);
    }
}

/// Users, slots and processes in numbers that do not divide: each process has the same share of the
/// requests as of the users. A process without users takes part and sends nothing.
#[test]
fn users_that_do_not_divide_are_shared_out_with_their_requests() {
    for (size, load, records) in [
        (4, "--concurrency 7", &[57_u64, 57, 57, 29][..]),
        (2, "--concurrency 1 --num-prompts 20", &[20, 0]),
        (4, "--request-rate inf --max-concurrency 3 --num-prompts 60", &[20, 20, 20, 0]),
        (3, "--concurrency 2 --duration 2s", &[]),
    ] {
        let fleet = Fleet::against(size, Mock::logging(&ENGINE));
        // Warm-up requests are fewer than processes.
        fleet.succeeds(&format!("{load} --warmup-requests 1"));
        let run = fleet.run();
        let facts = run.facts().unwrap();
        let agents = facts.fleet.as_ref().unwrap().agents.clone();
        let counted: Vec<u64> = agents.iter().map(|agent| agent.records).collect();
        let together = measured(&run);
        match records {
            [] => assert!(counted[0] > 0 && counted[1] > 0 && counted[2] == 0, "{counted:?}"),
            records => assert_eq!(counted, records, "{load}"),
        }
        assert!(together.iter().all(|exchange| exchange.is_ok()), "{load}");
        assert!(agents.iter().all(|agent| agent.lost.is_none()), "{load}");
        // The engine saw all of them, and one warm-up request.
        let seen = fleet.mock.end().len();
        let count = |more| together.len() + more;
        assert!((count(1)..=count(1 + size as usize)).contains(&seen), "{load}: {seen}");
    }
}

/// A process refused while it warms up against a silent engine ends, as do the others.
#[test]
fn who_is_refused_in_the_warm_up_ends() {
    let fleet = Fleet::against(2, Mock::start(&["--ttft", "1h"]));
    let processes = vec![
        Process::start(&mut fleet.command(0, "--warmup-requests 2")),
        Process::start(&mut fleet.command(1, "--warmup-requests 2 --num-prompts 300")),
    ];
    for ended in all(processes) {
        ended.with_stderr(5, "rank 1");
    }
}

/// A rank whose plugin, dataset or tokenizer is another than rank 0's is refused by name, with both
/// digests. The paths are the same everywhere, as on machines of their own.
#[test]
fn whose_files_differ_is_refused_by_name() {
    let row = |words: &str| format!("{{\"prompt\": \"{words}\", \"output_tokens\": 5}}\n");
    let rows: String = ["one", "two three", "three", "four five"].map(row).concat();
    let plugin = shipped::plugin("datasets/custom.wasm").unwrap();
    // An empty section of its own, which no program reads.
    let other_plugin = [&plugin[..], &[0, 2, 1, b'x']].concat();
    let tokenizer = r#"{"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel",
        "vocab": {"one": 0, "two": 1, "[UNK]": 2}, "unk_token": "[UNK]"},
        "pre_tokenizer": {"type": "Whitespace"}}"#;
    let other_rows = rows.replacen("one", "six", 1);
    let other_tokenizer = tokenizer.replace("two", "six");
    let scenario =
        "name = \"mine\"\n[load]\nrequests = 4\narrival = \"constant\"\nrate = 10.0\nwarmup = 0\n";
    for (differs, content, part) in [
        ("none", &b""[..], ""),
        ("data.jsonl", other_rows.as_bytes(), "dataset.files."),
        ("mine.wasm", &other_plugin, "dataset.digest is "),
        ("tokenizer.json", other_tokenizer.as_bytes(), "tokenizer.digest is "),
    ] {
        let fleet = Fleet::new(2);
        std::fs::write(fleet.path().join("together.toml"), scenario).unwrap();
        for rank in 0..2 {
            let own = fleet.path().join(format!("rank{rank}"));
            std::fs::create_dir(&own).unwrap();
            std::fs::write(own.join("data.jsonl"), &rows).unwrap();
            std::fs::write(own.join("mine.wasm"), &plugin).unwrap();
            std::fs::write(own.join("tokenizer.json"), tokenizer).unwrap();
        }
        let flags = "--plugin mine.wasm --dataset-path data.jsonl --tokenizer tokenizer.json";
        if part.is_empty() {
            fleet.succeeds(flags);
            let run = fleet.run();
            assert_eq!(measured(&run).len(), 4);
            let agents = run.facts().unwrap().fleet.unwrap().agents;
            assert_eq!(agents.iter().map(|agent| agent.records).collect::<Vec<_>>(), [2, 2]);
            continue;
        }
        std::fs::write(fleet.path().join("rank1").join(differs), content).unwrap();
        let ended = all(fleet.start(flags));
        for ended in &ended {
            assert_eq!(ended.code, Some(5), "{ended:#?}");
            let line = ended.stderr.lines().find(|line| line.contains(part));
            let line = line.unwrap_or_else(|| panic!("{part}: {ended:#?}"));
            assert!(line.contains("rank 1 (") && line.contains(", on rank 0 "), "{ended:#?}");
        }
    }
}

#[test]
fn who_does_not_fit_is_refused_by_name() {
    let fleet = Fleet::new(3);
    let other = fleet.command(1, "--num-prompts 300");
    let stranger = {
        let mut command = fleet.command(2, "--fleet-wait 5s");
        command.env("RUNNER_FLEET_TOKEN", "f".repeat(64));
        command
    };
    let processes = vec![
        Process::start(&mut fleet.command(0, "--fleet-wait 10s")),
        Process::start(&mut { other }),
        Process::start(&mut { stranger }),
    ];
    let ended = all(processes);
    let [coordinator, other, stranger] = &ended[..] else { panic!("{ended:#?}") };
    assert_eq!(coordinator.code, Some(5), "{coordinator:#?}");
    assert!(coordinator.stderr.contains("rank 1"), "{coordinator:#?}");
    let differs = "load.amount.requests is 300, on rank 0 200";
    assert!(coordinator.stderr.contains(differs), "{coordinator:#?}");
    assert!(coordinator.stderr.contains("tokens differ"), "{coordinator:#?}");
    assert_eq!(other.code, Some(5), "{other:#?}");
    assert!(stranger.stderr.contains("token"), "{stranger:#?}");
    assert_eq!(stranger.code, Some(5), "{stranger:#?}");
    for ended in &ended {
        assert!(!ended.stderr.contains(&fleet.token), "{ended:#?}");
    }
    // There is no run, and no folder of one.
    let runs = std::fs::read_dir(fleet.path().join("rank0/runs")).unwrap();
    let runs: Vec<_> = runs.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(runs, [".fleet"]);
}

/// The fate of a killed agent's part is unknown from an instant on, which the verdict names.
#[test]
fn an_agent_that_is_killed_is_lost() {
    let fleet = Fleet::new(2);
    let mut processes = fleet.start("--fleet-grace 2s");
    processes[1].until("it measures", |_| records_of(&fleet, 1) > 2_000);
    processes[1].signal("KILL");
    let mut ended = all(processes);
    ended.remove(0).with_stderr(0, "lost rank 1");
    let run = fleet.run();
    let facts = run.facts().unwrap();
    let lost = facts.fleet.as_ref().unwrap().agents[1].lost.clone().unwrap();
    assert!(lost.from_s > 0.0, "{lost:?}");
    let exchanges = measured(&run);
    let of_lost = exchanges.iter().filter(|exchange| exchange.index % 2 == 1).count() as u64;
    assert!(of_lost > 0);
    assert_eq!(lost.unknown, Some(100 - of_lost));
    let summary = run.summarize(&facts).unwrap();
    assert_eq!(summary.verdict, Verdict::Invalid);
    // Some of them may have reached the engine: nobody says that they were never sent.
    assert_eq!(summary.requests.failures.get(&Class::NotSent), None);
    let unknown = &summary.requests.failures[&Class::LostWithAgent];
    assert_eq!(unknown.count, 100 - of_lost);
    assert!(summary.findings.iter().all(|finding| finding.id != Id::NotSent));
    let found = summary.findings.iter().find(|finding| finding.id == Id::AgentLost);
    assert!(found.unwrap().seen.contains("agent 1"), "{found:?}");
    // The other process's requests are all there.
    assert_eq!(exchanges.len() as u64 - of_lost, 100);

    // What lies on its own disk comes in afterwards, by the same clock, and once.
    let own = fleet.path().join("rank1/runs/.fleet");
    let own = std::fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
    let own = own.collect::<Vec<_>>().remove(0);
    let merge = |folder: &std::path::Path, code| {
        run_patiently(runner().args(["fleet", "merge"]).args([run.path(), folder])).with_code(code)
    };
    let whole = merge(run.path(), 3);
    assert!(whole.stderr.contains("is a whole run"), "{whole:#?}");
    let first = merge(&own, 0);
    assert!(first.stderr.contains("further records"), "{first:#?}");
    let facts = run.facts().unwrap();
    let agent = facts.fleet.as_ref().unwrap().agents[1].clone();
    assert!(agent.merged && agent.records >= of_lost, "{agent:?}");
    // It was killed, so its last requests are still unknown.
    assert_eq!(agent.lost.unwrap().unknown, Some(100 - agent.records));
    let merged = measured(&run);
    assert_eq!(merged.len() as u64, 100 + agent.records);
    let numbers: std::collections::BTreeSet<u64> = merged.iter().map(|e| e.index).collect();
    assert_eq!(numbers.len(), merged.len(), "each is there once");
    for exchange in &exchanges {
        assert!(merged.contains(exchange), "{exchange:?}");
    }
    let summary = run.summarize(&facts).unwrap();
    assert_eq!((summary.verdict, summary.run.damage), (Verdict::Invalid, None));
    let again = merge(&own, 3);
    assert!(again.stderr.contains("already"), "{again:#?}");
}

/// A process whose disk is full says so in code and text; the other side ends without waiting.
#[test]
fn a_full_disk_is_reported_on_both_sides() {
    if !may_mount() {
        return;
    }
    for (full, size, other) in
        [(1, "100k", "agent 1 on "), (0, "140k", "rank 0 takes no more records")]
    {
        let fleet = Fleet::new(2);
        let flags = "--num-prompts 1500 --request-rate 300 --random-output-len 40";
        let mount = format!("mkdir runs && mount -t tmpfs -o size={size} none runs && exec \"$@\"");
        let processes = (0..2).map(|rank| {
            let command = fleet.command(rank, flags);
            if rank == full {
                Process::start(&mut behind(&["unshare", "-m", "sh", "-c", &mount, "sh"], &command))
            } else {
                Process::start(&mut { command })
            }
        });
        let mut ended = all(processes.collect());
        ended.remove(full as usize).with_stderr(3, "No space left on device");
        ended.remove(0).with_stderr(5, other);
    }
}

/// An interrupt of one process ends all, and the run keeps its measurements, as a single run does.
#[test]
fn an_interrupt_ends_all() {
    for interrupted in [0, 1] {
        let fleet = Fleet::new(2);
        let mut processes = fleet.start("");
        processes[0].until("all are ready", |process| {
            process.stderr().contains("rank 1 (") && process.stderr().contains("ready")
        });
        // The start instant is two seconds ahead; some of the load is to be made.
        processes[0].until("records come", |_| records_of(&fleet, 1) > 1_000);
        processes[interrupted].signal("INT");
        for ended in all(processes) {
            ended.with_code(130);
        }
        let summary = {
            let run = fleet.run();
            run.summarize(&run.facts().unwrap()).unwrap()
        };
        assert!(summary.run.interrupted);
        let answered = summary.requests.successful;
        assert!(answered > 0 && answered < 200, "{answered}");
    }
}

/// Each agent agrees with the engine's log: its time to first token adds almost nothing.
#[test]
fn each_agent_agrees_with_the_engines_log() {
    let fleet = Fleet::against(4, Mock::logging(&ENGINE));
    fleet.succeeds("");
    let exchanges = measured(&fleet.run());
    let mut log = fleet.mock.end();
    log.retain(|truth| truth.first_token().is_some());
    log.sort_by_key(|truth| truth.received);
    // Before the measurement each agent warms up with its own.
    let warmup = log.len() - exchanges.len();
    assert!((1..=2 * 4).contains(&warmup), "{warmup}");
    let mut beside = [const { Vec::new() }; 4];
    for (exchange, truth) in exchanges.iter().zip(&log[warmup..]) {
        let sent = exchange.sent.unwrap();
        let first = (exchange.events.iter()).find(|event| event.kind.is_output());
        let seen = first.unwrap().at.since(sent).as_millis_f64();
        let engine = truth.first_token().unwrap().since(truth.received);
        beside[exchange.index as usize % 4].push(seen - engine.as_millis_f64());
    }
    for (rank, beside) in beside.into_iter().enumerate() {
        assert_eq!(beside.len(), 50);
        // On a busy machine most replies may wait for a core; an agent's own delay holds them all.
        let close = beside.iter().filter(|ms| (0.0..1.0).contains(*ms)).count();
        assert!(close >= 10, "rank {rank}: {beside:?}");
    }
}

#[test]
fn half_a_place_is_no_place() {
    let mut command = runner();
    command.args(["fleet", "chat.toml"]).env("RUNNER_FLEET_RANK", "1");
    run_patiently(&mut command).with_stderr(2, "RUNNER_FLEET_SIZE");
    run_patiently(runner().args(words("fleet chat.toml"))).with_stderr(2, "srun");
}
