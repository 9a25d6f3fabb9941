//! Processes that `--hosts` starts, with a stand-in for ssh that runs the machine's shell here; and
//! manifests.

use std::os::unix::fs::PermissionsExt;

use super::{Fleet, measured};
use crate::support::process::{run_patiently, runner, words};

/// A stand-in for `ssh`: its first argument is a machine, and the command after it runs here, and
/// is noted.
const SSH: &str = "#!/bin/sh\necho \"$@\" >> \"$NOTES\"\nshift\nexec \"$@\"\n";

#[test]
fn hosts_are_started_and_secrets_are_in_no_command_line() {
    let fleet = Fleet::new(3);
    let ssh = fleet.path().join("ssh");
    std::fs::write(&ssh, SSH).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let notes = fleet.path().join("notes");
    let mut command = fleet.command(0, "--hosts one,two");
    for own in ["RUNNER_FLEET_RANK", "RUNNER_FLEET_SIZE", "RUNNER_FLEET_TOKEN"] {
        command.env_remove(own);
    }
    command
        .arg("--ssh")
        .arg(&ssh)
        .args(["--remote-runner", env!("CARGO_BIN_EXE_runner")])
        .env("NOTES", &notes)
        .env("OPENAI_API_KEY", "secret-of-the-server");
    run_patiently(&mut command).with_code(0);
    let run = fleet.run();
    assert_eq!(measured(&run).len(), 200);
    assert_eq!(run.facts().unwrap().fleet.unwrap().agents.len(), 3);
    let noted = std::fs::read_to_string(notes).unwrap();
    let mut noted: Vec<&str> = noted.lines().collect();
    noted.sort_unstable();
    assert_eq!(noted, ["one sh -s", "two sh -s"]);
}

#[test]
fn manifests_name_secrets_and_all_mistakes() {
    let made = |flags: &str| {
        let mut command = runner();
        command.args(["fleet", "manifest"]).args(words(flags));
        run_patiently(&mut command)
    };
    let flags = "--for kubernetes --size 4 --image registry/runner:1 --scenario chat.toml \
         --secret OPENAI_API_KEY=engine/key -- --base-url http://engine:8000";
    let pods = made(flags).with_code(0).stdout;
    for part in ["completionMode: Indexed", "secretKeyRef", "http://engine:8000"] {
        assert!(pods.contains(part), "{part}\n{pods}");
    }
    let batch = made("--for slurm --size 4 --scenario chat.toml").with_code(0);
    assert!(batch.stdout.contains("srun"), "{batch:#?}");
    let wrong =
        made("--for kubernetes --size 4 --image x --scenario chat.toml --name Big --memory lots");
    let wrong = wrong.with_code(2).stderr;
    assert!(wrong.contains("`Big`") && wrong.contains("`lots`"), "{wrong}");
}
