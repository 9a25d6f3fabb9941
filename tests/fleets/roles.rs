//! Limits on a process of a fleet: tokens of both kinds, and the processes that may use keys and
//! files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{Fleet, measured};
use crate::support::authority::Authority;
use crate::support::process::{Ended, Mock, Process, run, runner};

/// A scenario that names a variable, which every machine has.
const PRIVATE: &str = "name = \"private\"\n[target]\napi-key-env = \"PRIVATE_THING\"\n[dataset]\n\
    plugin = \"datasets/random.wasm\"\nconfig = { input-len = 8, output-len = 4 }\n\
    [load]\nrequests = 6\narrival = \"constant\"\nrate = 20.0\nwarmup = 0\n";

fn agents_token(token: &str) -> String {
    let mut command = runner();
    command.args(["fleet", "token"]).env("RUNNER_FLEET_TOKEN", token);
    let printed = run(&mut command).with_code(0).stdout;
    printed.trim().to_owned()
}

fn both(commands: [Command; 2]) -> [Ended; 2] {
    commands.map(|mut command| Process::start(&mut command)).map(Process::end)
}

/// Load machines that have the agents' token make the run, and none of them can be rank 0.
#[test]
fn agents_need_the_agents_token_alone() {
    let fleet = Fleet::new(2);
    let agents = agents_token(&fleet.token);
    assert!(!agents.contains(&fleet.token));
    let mut other = fleet.command(1, "");
    other.env("RUNNER_FLEET_TOKEN", &agents);
    for ended in both([fleet.command(0, ""), other]) {
        assert!(!ended.stderr.contains(&agents), "{ended:#?}");
        ended.with_code(0);
    }
    assert_eq!(measured(&fleet.run()).len(), 200);

    let mut rogue = fleet.command(0, "");
    rogue.env("RUNNER_FLEET_TOKEN", &agents);
    let rogue = run(&mut rogue).with_code(2);
    assert!(rogue.stderr.contains("cannot coordinate"), "{rogue:#?}");
}

/// Rank 0's scenario names a variable: another machine sends its own value only if its own command
/// line names it too.
#[test]
fn a_variable_that_rank_0_alone_names_stays_here() {
    let scene = |flags: &str| {
        let fleet = Fleet::against(2, Mock::logging(&["--api-key", "agents-own-secret-42"]));
        std::fs::write(fleet.path().join("together.toml"), PRIVATE).unwrap();
        let commands = [0, 1].map(|rank| {
            let mut command = fleet.command(rank, flags);
            command.env("PRIVATE_THING", "agents-own-secret-42");
            command
        });
        both(commands)
    };
    let [coordinator, other] = scene("");
    assert_eq!(other.code, Some(2), "{other:#?}");
    let words = "this machine's variable PRIVATE_THING";
    assert!(other.stderr.contains(words), "{other:#?}");
    assert_eq!(coordinator.code, Some(5), "{coordinator:#?}");
    assert!(coordinator.stderr.contains(words), "{coordinator:#?}");

    for allowed in ["--api-key-env PRIVATE_THING", "--trust-rank-0"] {
        for ended in scene(allowed) {
            let said = "the API key from PRIVATE_THING goes to http://127.0.0.1:";
            assert_eq!(ended.stderr.matches(said).count(), 1, "{ended:#?}");
            ended.with_code(0);
        }
    }
}

/// The usual variable goes to no server that rank 0 alone names, and neither does a header.
#[test]
fn keys_go_to_targets_that_the_machine_itself_names() {
    let fleet = Fleet::new(2);
    let url = format!("http://127.0.0.1:{}", fleet.mock.port());
    let text = PRIVATE.replace("api-key-env = \"PRIVATE_THING\"", &format!("base-url = \"{url}\""));
    std::fs::write(fleet.path().join("together.toml"), &text).unwrap();
    let command = |rank: u32, scenario: &str| {
        let named = fleet.command(rank, "");
        let mut command = runner();
        command
            .args(["fleet", scenario, "--backend", "vllm", "--no-progress"])
            .current_dir(named.get_current_dir().unwrap())
            .envs(named.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    for (name, value, what) in [
        ("OPENAI_API_KEY", "its-own-key", "the API key from its variable OPENAI_API_KEY"),
        ("RUNNER_HEADER", "x-gateway: its-own-pass", "its header x-gateway"),
    ] {
        let mut other = command(1, "not-here.toml");
        other.env(name, value);
        let mut first = command(0, "../together.toml");
        first.env(name, value);
        let [coordinator, other] = both([first, other]);
        assert_eq!(other.code, Some(2), "{other:#?}");
        assert!(other.stderr.contains(what), "{other:#?}");
        assert!(!other.stderr.contains(value), "{other:#?}");
        assert_eq!(coordinator.code, Some(5), "{coordinator:#?}");
    }
    // A machine that has the scenario too has named them.
    let commands = [0, 1].map(|rank| {
        let mut command = command(rank, "../together.toml");
        command.env("OPENAI_API_KEY", "its-own-key");
        command
    });
    for ended in both(commands) {
        ended.with_code(0);
    }
}

/// The process of a rank, with nothing but these words on its command line.
fn bare(fleet: &Fleet, rank: u32, words: &[&str]) -> Command {
    let named = fleet.command(rank, "");
    let variables = named.get_envs();
    let mut command = runner();
    command
        .args(["fleet", "--no-progress"])
        .args(words)
        .current_dir(named.get_current_dir().unwrap())
        .envs(variables.filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Rank 0's scenario gives up the look at certificates: the header of a machine that does not say
/// so itself stays there.
#[test]
fn secrets_are_as_safe_on_the_way_as_the_machine_itself_says() {
    let authority = Authority::new();
    let certified = authority.certify("127.0.0.1");
    let fleet = Fleet::against(2, Mock::start(&certified.flags()));
    let url = fleet.mock.url.clone();
    let text = PRIVATE.replace(
        "[target]\napi-key-env = \"PRIVATE_THING\"",
        &format!("[connection]\ninsecure = true\n[target]\nbase-url = \"{url}\""),
    );
    std::fs::write(fleet.path().join("together.toml"), text).unwrap();
    let scene = |flags: &[&str]| {
        both([0, 1].map(|rank| {
            let scenario = ["../together.toml", "not-here.toml"][rank as usize];
            let words = [&[scenario, "--backend", "vllm", "--base-url", &url][..], flags].concat();
            let mut command = bare(&fleet, rank, &words);
            command.env("RUNNER_HEADER", "x-gateway: its-own-pass");
            command
        }))
    };
    let [coordinator, other] = scene(&[]);
    let words = "its header x-gateway to https://127.0.0.1";
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains(words), "{other:#?}");
    assert!(other.stderr.contains("without a look at its certificate"), "{other:#?}");
    assert_eq!(coordinator.code, Some(5), "{coordinator:#?}");
    for ended in scene(&["--insecure"]) {
        ended.with_code(0);
    }
}

/// A backend that rank 0 alone names chooses no variable of another machine.
#[test]
fn a_backend_of_rank_0_chooses_no_variable() {
    let fleet = Fleet::new(2);
    let url = format!("http://127.0.0.1:{}", fleet.mock.port());
    let text = PRIVATE.replace(
        "[target]\napi-key-env = \"PRIVATE_THING\"",
        "[backend]\nplugin = \"backends/anthropic.wasm\"\n[target]\nmodel = \"mock\"",
    );
    std::fs::write(fleet.path().join("together.toml"), text).unwrap();
    let scene = |flags: &[&str]| {
        both([0, 1].map(|rank| {
            let scenario = ["../together.toml", "not-here.toml"][rank as usize];
            let words = [&[scenario, "--base-url", &url][..], flags].concat();
            let mut command = bare(&fleet, rank, &words);
            command.env("ANTHROPIC_API_KEY", "of-another-service");
            command
        }))
    };
    let [coordinator, other] = scene(&[]);
    let words = "rank 0's backend wants the value of this machine's variable ANTHROPIC_API_KEY";
    assert_eq!(other.code, Some(2), "{other:#?}");
    assert!(other.stderr.contains(words), "{other:#?}");
    assert_eq!(coordinator.code, Some(5), "{coordinator:#?}");
    for allowed in [&["--api-key-env", "ANTHROPIC_API_KEY"][..], &["--backend", "anthropic"]] {
        // The mock has no such route, so no request is answered; the run was made.
        let [_, other] = scene(allowed);
        let said = "the API key from ANTHROPIC_API_KEY goes to";
        assert!(other.stderr.contains(said), "{other:#?}");
        other.with_code(0);
    }
}

/// A file that only its owner may read on rank 0 is read by nobody else on the other machines.
#[test]
fn files_of_rank_0_stay_private() {
    let fleet = Fleet::new(2);
    let text =
        "name = \"mine\"\n[load]\nrequests = 2\narrival = \"constant\"\nrate = 10.0\nwarmup = 0\n";
    std::fs::write(fleet.path().join("together.toml"), text).unwrap();
    let own = fleet.path().join("rank0");
    std::fs::create_dir(&own).unwrap();
    let data = own.join("data.jsonl");
    let row = "{\"prompt\": \"of a customer\", \"output_tokens\": 5}\n";
    std::fs::write(&data, row.repeat(2)).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o600)).unwrap();
    let flags = "--dataset-name custom --dataset-path data.jsonl";
    let [coordinator, other] = both([fleet.command(0, flags), fleet.command(1, flags)]);
    coordinator.with_code(0);
    let other = other.with_code(0);
    let words = "that rank 0 sent stay in runs/.fleet/files";
    assert!(other.stderr.contains(words), "{other:#?}");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let scratch = fleet.path().join("rank1/runs/.fleet");
    assert_eq!((mode(&scratch), mode(&scratch.join("files"))), (0o700, 0o700));
    let kept = std::fs::read_dir(scratch.join("files")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().path()).collect();
    assert!(!kept.is_empty());
    assert!(kept.iter().all(|path| mode(path) == 0o600), "{kept:?}");
}
