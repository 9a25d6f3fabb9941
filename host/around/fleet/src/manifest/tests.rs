//! Golden files (`BLESS=1` writes them anew), Kubernetes' schemas, and processes that find their
//! places.

mod reader;

use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::place::{self, Environment};

fn pods() -> Pods {
    let secret = |name: &str, key: &str| SecretKey { name: name.to_owned(), key: key.to_owned() };
    Pods {
        name: "chat-load".to_owned(),
        namespace: Some("bench".to_owned()),
        image: "registry.example/runner:0.1.0".to_owned(),
        size: 8,
        port: 7433,
        scenario: Scenario::ConfigMap { name: "scenarios".to_owned(), key: "chat.toml".to_owned() },
        arguments: vec!["--header".to_owned(), "x-path: $(HOME)".to_owned()],
        cpu: "8".to_owned(),
        memory: "16Gi".to_owned(),
        token: secret("fleet", "token"),
        variables: vec![("OPENAI_API_KEY".to_owned(), secret("engine.keys", "api_key"))],
        results: Some("results".to_owned()),
        jobset: false,
    }
}

fn batch() -> Batch {
    Batch {
        name: "chat-load".to_owned(),
        size: 8,
        cpus: 16,
        memory: None,
        time: "00:30:00".to_owned(),
        partition: None,
        account: None,
        image: None,
        port: place::PORT,
        scenario: "chat.toml".to_owned(),
        arguments: Vec::new(),
        token_file: None,
        results: "runs".to_owned(),
    }
}

fn full_batch() -> Batch {
    Batch {
        memory: Some("64G".to_owned()),
        partition: Some("cpu".to_owned()),
        account: Some("bench".to_owned()),
        image: Some("registry.example#runner:0.1.0".to_owned()),
        port: 9000,
        scenario: "/shared/it's mine/chat.toml".to_owned(),
        arguments: vec!["--header".to_owned(), "x: $HOME `id`".to_owned()],
        token_file: Some("/shared/token".to_owned()),
        ..batch()
    }
}

fn small_pods() -> Pods {
    Pods {
        namespace: None,
        size: 2,
        scenario: Scenario::Path("/scenarios/chat.toml".to_owned()),
        arguments: Vec::new(),
        variables: Vec::new(),
        results: None,
        jobset: true,
        ..pods()
    }
}

#[test]
fn manifests_are_the_golden_files() {
    let files = [
        ("job.yaml", kubernetes(&pods())),
        ("jobset.yaml", kubernetes(&small_pods())),
        ("small.sh", slurm(&batch())),
        ("full.sh", slurm(&full_batch())),
    ];
    for (name, now) in files {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/manifest/golden");
        let path: PathBuf = folder.join(name);
        let now = now.unwrap();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        let wanted = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(wanted == now, "{name} differs; BLESS=1 writes it anew. Now:\n{now}");
    }
}

/// The schema of a kind.
fn schema(kind: &str) -> jsonschema::Validator {
    let mut schemas: Value = serde_json::from_str(include_str!("schemas/kubernetes.json")).unwrap();
    schemas["$ref"] = json!(format!("#/$defs/{kind}"));
    jsonschema::validator_for(&schemas).unwrap()
}

fn all_pods() -> Vec<Pods> {
    [pods(), small_pods()]
        .into_iter()
        .flat_map(|pods| [false, true].map(|jobset| Pods { jobset, ..pods.clone() }))
        .collect()
}

#[test]
fn objects_are_valid_by_kubernetes_schemas() {
    for pods in all_pods() {
        for object in kubernetes::documents(&pods) {
            let kind = object["kind"].as_str().unwrap();
            let errors: Vec<String> = schema(kind)
                .iter_errors(&object)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert_eq!(errors, [""; 0], "{kind}");
        }
    }
    // The schemas refuse what the API refuses: an unknown field, a wrong type, a missing field.
    let job = kubernetes::documents(&pods()).remove(1);
    for (pointer, value) in [
        ("/spec/template/spec/containers/0/envs", json!([])),
        ("/spec/completions", json!("8")),
        ("/spec/template/spec/containers/0/name", Value::Null),
    ] {
        let mut broken = job.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        broken.pointer_mut(parent).unwrap()[name] = value;
        assert!(!schema("Job").is_valid(&broken), "{pointer}");
    }
}

/// The YAML that is written reads as the objects that were validated.
#[test]
fn the_yaml_is_the_objects() {
    for pods in all_pods() {
        let read = reader::documents(&kubernetes(&pods).unwrap());
        assert_eq!(read, kubernetes::documents(&pods));
    }
}

/// Every pod's environment, as the manifest and the controllers make it, is a place.
#[test]
fn pods_find_their_places() {
    for pods in all_pods() {
        let objects = kubernetes::documents(&pods);
        let job = if pods.jobset {
            &objects[0]["spec"]["replicatedJobs"][0]["template"]["spec"]
        } else {
            &objects[1]["spec"]
        };
        let pod = &job["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["command"][0], "runner");
        assert_eq!(container["command"][1], "fleet");
        if let Some(last) = pods.arguments.last() {
            // The controller takes one of two dollars, and puts in no variable then.
            let word = &container["command"][6];
            assert_eq!(word.as_str().unwrap().replace("$$", "$"), *last);
        }
        for index in 0..pods.size {
            let mut environment = Environment::new();
            for variable in container["env"].as_array().unwrap() {
                let name = variable["name"].as_str().unwrap().to_owned();
                // By reference: the value is not in the manifest.
                let value = variable["value"].as_str().unwrap_or("secret").to_owned();
                environment.insert(name, value);
            }
            assert_eq!(environment[crate::token::VARIABLE], "secret");
            environment.insert("JOB_COMPLETION_INDEX".to_owned(), index.to_string());
            let place = place::read(&environment).unwrap();
            assert_eq!((place.rank, place.size), (index, pods.size));
            assert_eq!(place.starter, place::Starter::Kubernetes);
            assert_eq!(place.port, pods.port);
            // The name that the pod with index 0 has: by the Job's name, or by JobSet's.
            let expected =
                if pods.jobset { "chat-load-load-0-0.chat-load" } else { "chat-load-0.chat-load" };
            assert_eq!(place.host, expected);
        }
        if !pods.jobset {
            assert_eq!(pod["subdomain"], objects[0]["metadata"]["name"]);
            let selector = &objects[0]["spec"]["selector"]["batch.kubernetes.io/job-name"];
            assert_eq!(*selector, objects[1]["metadata"]["name"]);
        }
    }
}

/// The script runs, with stand-ins for Slurm's programs: the token reaches `srun`, and the words
/// arrive as they were.
#[test]
fn scripts_run_the_command_that_was_asked_for() {
    for batch in [batch(), full_batch()] {
        let folder = tempfile::tempdir().unwrap();
        let tool = |name: &str, body: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        tool("scontrol", "echo node01; echo node02");
        tool(
            "srun",
            "printf '%s\\n' \"$@\"; echo \"token ${#RUNNER_FLEET_TOKEN} ${RUNNER_FLEET_TOKEN_FILE-}\"; \
             echo \"at ${RUNNER_FLEET_COORDINATOR-}\"",
        );
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let output = Command::new("bash")
            .arg("-c")
            .arg(slurm(&batch).unwrap())
            .env("PATH", path)
            .env("SLURM_JOB_NODELIST", "node[01-02]")
            .env_remove("RUNNER_FLEET_TOKEN")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let words = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = words.lines().collect();
        let fleet = words.iter().position(|word| *word == "fleet").unwrap();
        assert_eq!(words[fleet - 1], "runner");
        let mut expected = vec![&*batch.scenario, "--output-dir", &batch.results];
        expected.extend(batch.arguments.iter().map(String::as_str));
        let token = match &batch.token_file {
            Some(file) => format!("token 0 {file}"),
            None => "token 64 ".to_owned(),
        };
        expected.push(&token);
        expected.push(if batch.port == place::PORT { "at " } else { "at node01:9000" });
        assert_eq!(words[fleet + 1..], expected);
    }
}

#[test]
fn mistakes_are_reported_at_once() {
    let wrong = Pods {
        name: "Chat".to_owned(),
        namespace: Some("a_b".to_owned()),
        image: "two words".to_owned(),
        size: 0,
        port: 0,
        scenario: Scenario::ConfigMap { name: "-a".to_owned(), key: "a/b".to_owned() },
        arguments: vec!["line\nbreak".to_owned()],
        cpu: "0".to_owned(),
        memory: "16 GB".to_owned(),
        token: SecretKey { name: "A".to_owned(), key: String::new() },
        variables: vec![
            ("RUNNER_FLEET_RANK".to_owned(), pods().token),
            ("1A".to_owned(), pods().token),
        ],
        results: Some(".".to_owned()),
        jobset: false,
    };
    let errors = kubernetes(&wrong).unwrap_err().0;
    assert_eq!(errors.len(), 15, "{errors:#?}");
    assert!(errors[0].starts_with("the name is `Chat`; expected at most 50 lower-case letters"));
    let wrong = Batch {
        name: "a b".to_owned(),
        cpus: 0,
        time: "1; rm".to_owned(),
        partition: Some("a\nb".to_owned()),
        scenario: String::new(),
        ..batch()
    };
    assert_eq!(slurm(&wrong).unwrap_err().0.len(), 5);
}

proptest! {
    /// Any texts, numbers and nesting come back as they were.
    #[test]
    fn yaml_reads_back(value in json_value()) {
        let object = json!({"a": value});
        prop_assert_eq!(reader::documents(&yaml::documents(std::slice::from_ref(&object))), [object]);
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9 :#'\"\\[{}>|*&!%@`~-]{0,12}",
        "(yes|No|TRUE|null|~|1e3|0x1|-|\\?|a: b|a #b|a/b.c-d_e)",
    ];
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z:# ]{1,8}", inner, 1..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
