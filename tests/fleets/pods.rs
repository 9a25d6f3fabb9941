//! Containers of a manifest, run as processes: their commands and variables are read from the
//! manifest, and the rest is as an Indexed Job adds it.
//!
//! Each has a file system in which the paths of the manifest are, and where the service's name is
//! this machine. That takes a namespace of mounts, and so root; where the kernel makes none, the
//! tests are left out.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Fleet, measured, only_run};
use crate::support::lacking::may_mount;
use crate::support::process::{Process, run_patiently, runner, words};

#[path = "../../host/around/fleet/src/manifest/tests/reader.rs"]
mod reader;

/// Makes a container's file system of this machine's and runs the rest of the words in it. `/etc`
/// is `$ETC`, and `/results` is `$RESULTS`.
const CONTAINER: &str = r#"set -e
mount --make-rprivate /
mount -t tmpfs none /mnt
for entry in /*; do
    case $entry in /etc | /results | /mnt) continue ;; esac
    if [ -L "$entry" ]; then ln -s "$(readlink "$entry")" "/mnt$entry"
    elif [ -d "$entry" ]; then mkdir "/mnt$entry"; mount --rbind "$entry" "/mnt$entry"
    fi
done
mkdir /mnt/etc /mnt/results
mount --bind "$ETC" /mnt/etc
mount --bind "$RESULTS" /mnt/results
exec chroot /mnt "$@"
"#;

/// The template of the pods, wherever the object has it.
fn pods(document: &Value) -> Option<(&Value, &Value)> {
    let job = match document["kind"].as_str() {
        Some("Job") => &document["spec"],
        Some("JobSet") => &document["spec"]["replicatedJobs"][0]["template"]["spec"],
        _ => return None,
    };
    Some((job, &job["template"]["spec"]["containers"][0]))
}

/// A word as Kubernetes hands it on, where it names no variable.
fn word(value: &Value) -> String {
    value.as_str().unwrap().replace("$$", "$")
}

/// The pod with this index.
fn pod(
    container: &Value,
    index: u64,
    secrets: &BTreeMap<(&str, &str), &str>,
    etc: &Path,
    results: &Path,
) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", CONTAINER, "sh"]);
    command.args(container["command"].as_array().unwrap().iter().map(word));
    let program = Path::new(env!("CARGO_BIN_EXE_runner")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    command
        .env_clear()
        .env("PATH", format!("{}:{path}", program.display()))
        .env("HOME", "/")
        // Whether a run is valid depends on how busy the machine is too.
        .env("RUNNER_ALLOW_INVALID", "1")
        .env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"))
        .env("ETC", etc)
        .env("RESULTS", results)
        // What an Indexed Job adds.
        .env("JOB_COMPLETION_INDEX", index.to_string());
    for variable in container["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap();
        let value = match &variable["value"] {
            Value::Null => {
                let secret = &variable["valueFrom"]["secretKeyRef"];
                let [of, key] = ["name", "key"].map(|part| secret[part].as_str().unwrap());
                secrets[&(of, key)].to_owned()
            }
            value => word(value),
        };
        command.env(name, value);
    }
    command
}

/// Makes a manifest, and runs all its pods at the same time.
#[track_caller]
fn run_pods(flags: &str) {
    if !may_mount() {
        return;
    }
    let fleet = Fleet::new(3);
    let mut manifest = runner();
    manifest
        .args(words(
            "fleet manifest --for kubernetes --size 3 --name chat-load --image registry/runner:1",
        ))
        .args(words("--secret OPENAI_API_KEY=engine/key --config-map scenarios/together.toml"))
        .args(["--port", &fleet.port.to_string()])
        .args(words(flags))
        .arg("--")
        .args(words("--backend vllm --no-progress --header"))
        .arg("x-price: $5 $(HOME)")
        .args(["--base-url", &fleet.mock.url]);
    let text = run_patiently(&mut manifest).with_code(0).stdout;
    let documents = reader::documents(&text);
    let (job, container) = documents.iter().find_map(pods).unwrap();

    // The ConfigMap is mounted where the container says.
    let mount = &container["volumeMounts"][1]["mountPath"];
    let etc = fleet.path().join("etc");
    let folder = etc.join(Path::new(mount.as_str().unwrap()).strip_prefix("/etc").unwrap());
    std::fs::create_dir_all(&folder).unwrap();
    let items = &job["template"]["spec"]["volumes"][1]["configMap"]["items"][0];
    std::fs::copy(fleet.path().join("together.toml"), folder.join(items["path"].as_str().unwrap()))
        .unwrap();
    // The service's name for the first pod is this machine, as in the cluster it is that pod's.
    let variables = container["env"].as_array().unwrap();
    let coordinator =
        variables.iter().find(|variable| variable["name"] == "RUNNER_FLEET_COORDINATOR");
    let coordinator = coordinator.unwrap()["value"].as_str().unwrap();
    let (host, port) = coordinator.rsplit_once(':').unwrap();
    assert_eq!(port, fleet.port.to_string());
    std::fs::write(etc.join("hosts"), format!("127.0.0.1 localhost\n127.0.0.1 {host}\n")).unwrap();
    std::fs::write(etc.join("nsswitch.conf"), "hosts: files\n").unwrap();

    let secrets = [
        (("runner-fleet", "token"), fleet.token.as_str()),
        (("engine", "key"), "sk-of-the-engine"),
    ];
    let completions = job["completions"].as_u64().unwrap();
    let processes: Vec<Process> = (0..completions)
        .map(|index| {
            let results = fleet.path().join(format!("results{index}"));
            std::fs::create_dir(&results).unwrap();
            Process::start(&mut pod(container, index, &secrets.into(), &etc, &results))
        })
        .collect();
    for process in processes {
        let ended = process.end().with_code(0);
        assert!(!ended.stderr.contains("sk-of-the-engine"), "{ended:#?}");
    }
    // Results are where the container says, on the pod that coordinates.
    let run = only_run(&fleet.path().join("results0"));
    assert_eq!(measured(&run).len(), 200);
    let agents = run.facts().unwrap().fleet.unwrap().agents;
    assert_eq!(agents.len(), 3);
    let plan = std::fs::read_to_string(run.path().join("plan.json")).unwrap();
    assert!(!plan.contains("sk-of-the-engine"));
}

#[test]
fn the_pods_of_a_job_are_a_fleet() {
    run_pods("");
}

#[test]
fn the_pods_of_a_jobset_are_a_fleet() {
    run_pods("--jobset");
}
