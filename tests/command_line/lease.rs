//! Tokens for a key, and workspaces that a backend prepares, both for a time. The server demands
//! both, lets both expire, and refuses to give new ones.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::authentication::{assert_kept, planned, several};
use crate::hostile_guests::fixture::components;
use crate::support::port;
use crate::support::process::{Process, run, runner};
use crate::support::results::run_file;
use crate::support::server::{EVENTS, JSON, completion, field, models, read_request, reply, serve};

const ID: &str = "client-0123456789";
const SECRET: &str = "s3\"cret\\0123456789abcdef";
const TOKEN: &str = "scheme=token name=authorization variable=ENGINE_API_KEY";
const PREPARE: &str = "scheme=none prepare=/workspaces";

#[derive(Clone, Copy)]
struct Rules {
    /// The time for which the server accepts a lease.
    valid: Duration,
    /// The lifetime that the server states.
    stated: Option<Duration>,
    /// The number of leases it gives, and the status of every later demand.
    refuses: Option<(usize, u16)>,
    /// The number of answers after which the leases so far end.
    revokes: Option<usize>,
}

const RULES: Rules = Rules { valid: Duration::MAX, stated: None, refuses: None, revokes: None };

/// A server that gives leases, and takes no request without one.
struct Server {
    rules: Rules,
    leases: Mutex<Vec<(String, Instant)>>,
    demands: Mutex<usize>,
    requests: Mutex<Vec<String>>,
}

fn server(rules: Rules) -> (String, Arc<Server>) {
    let server = Arc::new(Server {
        rules,
        leases: Mutex::default(),
        demands: Mutex::default(),
        requests: Mutex::default(),
    });
    let own = Arc::clone(&server);
    let url = serve(move |stream| {
        let (status, kind, body) = own.answer(&read_request(stream)?);
        reply(stream, &format!("{status} X"), "", kind, &body)
    });
    (url, server)
}

impl Server {
    fn answer(&self, request: &str) -> (u16, &'static str, String) {
        let json = |status: u16, body: Value| (status, JSON, body.to_string());
        let path = request.split(' ').nth(1).unwrap();
        if let "/login" | "/workspaces" = path {
            let key: Value = json!({ "id": ID, "secret": SECRET });
            let body = request.split("\r\n\r\n").nth(1).unwrap();
            if path == "/login" && serde_json::from_str::<Value>(body).ok() != Some(key) {
                return json(401, json!({ "error": { "message": format!("who is {body}?") } }));
            }
            let mut demands = self.demands.lock().unwrap();
            *demands += 1;
            if let Some((most, status)) = self.rules.refuses
                && *demands > most
            {
                return json(status, json!({ "error": { "message": "no lease is left" } }));
            }
            let lease = format!("lease-0123456789abcdef-{}", *demands);
            self.leases.lock().unwrap().push((lease.clone(), Instant::now()));
            let stated = self.rules.stated;
            return json(
                200,
                json!({
                    "access": { "token": &lease },
                    "expires_in": stated.map(|it| it.as_secs()),
                    "name": &lease,
                    "lifetime_ms": stated.map(|it| it.as_millis() as u64),
                }),
            );
        }
        let given = field(request, "x-workspace").or(field(request, "authorization"));
        let given = given.unwrap_or("none").trim_start_matches("Token ").to_owned();
        if path == "/v1/models" && given == "none" {
            return (200, JSON, models());
        }
        if path != "/v1/models" {
            std::thread::sleep(Duration::from_millis(100));
        }
        let now = Instant::now();
        let is_valid = |(lease, since): &(String, Instant)| {
            *lease == given && now.duration_since(*since) < self.rules.valid
        };
        if !self.leases.lock().unwrap().iter().any(is_valid) {
            return json(401, json!({ "error": { "message": format!("{given} has ended") } }));
        }
        if path == "/v1/models" {
            return (200, JSON, models());
        }
        let mut kept = self.requests.lock().unwrap();
        kept.push(request.to_owned());
        if self.rules.revokes == Some(kept.len()) {
            self.leases.lock().unwrap().clear();
        }
        (200, EVENTS, completion(request, "stop"))
    }

    fn demands(&self) -> usize {
        *self.demands.lock().unwrap()
    }
}

/// A run of three seconds at least: an answer takes a tenth of one.
fn long(url: &str, folder: &Path, config: &str) -> Command {
    let mut command = several(30, url, folder, config);
    command.args(["--max-concurrency", "1", "--warmup-requests", "0"]);
    command.env("ENGINE_API_KEY", format!("{ID}:{SECRET}"));
    command
}

fn note(summary: &Value) -> Option<&Value> {
    let mut findings = summary["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["id"] == "renewals-failed")
}

const SECRETS: [&str; 3] = [ID, SECRET, "lease-0123456789abcdef"];

#[test]
fn leases_are_renewed_before_they_end() {
    for config in [TOKEN, PREPARE] {
        let folder = tempfile::tempdir().unwrap();
        let rules = Rules {
            valid: Duration::from_millis(1800),
            stated: Some(Duration::from_secs(1)),
            ..RULES
        };
        let (url, server) = server(rules);
        let ended = run(&mut long(&url, folder.path(), config)).with_code(0);
        let summary = run_file(folder.path(), "summary.json");
        assert_eq!(summary["requests"]["successful"], 30, "{config}: {summary:#}");
        assert!(server.demands() >= 3, "{config}: {}", server.demands());
        let renewals = &summary["client"]["renewals"];
        assert_eq!(renewals["failed"], 0, "{renewals}");
        assert!(renewals["done"].as_u64().unwrap() >= 2, "{renewals}");
        assert_eq!(note(&summary), None);
        for request in &*server.requests.lock().unwrap() {
            assert!(!request.contains(ID) && !request.contains("s3\\\"cret"), "{request}");
        }
        assert_kept(folder.path(), &ended, &SECRETS);
        if config == TOKEN {
            let expected = json!({ "variable": "ENGINE_API_KEY", "scheme": "token" });
            assert_eq!(planned(folder.path()), expected);
        }
    }
}

#[test]
fn a_renewal_that_fails_leaves_the_lease_before_and_is_a_note() {
    for config in [TOKEN, PREPARE] {
        let folder = tempfile::tempdir().unwrap();
        let stated = Some(Duration::from_secs(1));
        let (url, _) = server(Rules { stated, refuses: Some((1, 500)), ..RULES });
        let ended = run(&mut long(&url, folder.path(), config)).with_code(0);
        let summary = run_file(folder.path(), "summary.json");
        assert_eq!(summary["requests"]["successful"], 30, "{config}: {summary:#}");
        let note = note(&summary).unwrap();
        assert_eq!(note["severity"], "note");
        assert!(note["seen"].as_str().unwrap().contains("HTTP 500: no lease is left"), "{note}");
        assert_kept(folder.path(), &ended, &SECRETS);
    }
}

#[test]
fn without_the_first_lease_no_run_begins() {
    for (config, key, refuses, says) in [
        (TOKEN, "client-0123456789:wrong-0123456789", None, "cannot log in at"),
        (TOKEN, "client-0123456789:wrong-0123456789", None, "POST /login: HTTP 401"),
        (PREPARE, "", Some((0, 503)), "POST /workspaces: HTTP 503: no lease is left"),
        (PREPARE, "", Some((0, 503)), "cannot prepare the run at"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (url, server) = server(Rules { refuses, ..RULES });
        let mut command = several(3, &url, folder.path(), config);
        let ended = run(command.env("ENGINE_API_KEY", key)).with_code(5);
        let message = ended.message();
        assert!(message.contains(says), "{message}");
        assert!(!message.contains("0123456789"), "{message}");
        assert_eq!(*server.requests.lock().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_refused_token_is_renewed_once_and_its_exchange_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let (url, server) = server(Rules { revokes: Some(8), ..RULES });
    let ended = run(&mut long(&url, folder.path(), TOKEN)).with_code(0);
    let summary = run_file(folder.path(), "summary.json");
    let failed = summary["requests"]["failed"].as_u64().unwrap();
    assert!((1..=10).contains(&failed), "{summary:#}");
    assert_eq!(summary["requests"]["successful"], 30 - failed);
    assert_eq!(server.demands(), 2);
    assert_eq!(summary["client"]["renewals"]["done"], 1);
    assert_kept(folder.path(), &ended, &SECRETS);
}

#[test]
fn a_key_without_the_part_that_a_login_needs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _) = server(RULES);
    let mut command = several(3, &url, folder.path(), TOKEN);
    let ended = run(command.env("ENGINE_API_KEY", "alone-0123456789")).with_code(3);
    let message = ended.message();
    assert!(message.contains("is not a key for the login of this backend"), "{message}");
}

/// The server takes no request without the token of the login.
#[test]
fn record_logs_in_first() {
    let folder = tempfile::tempdir().unwrap();
    let (url, server) = server(RULES);
    let case = folder.path().join("cases/recorded");
    std::fs::create_dir_all(&case).unwrap();
    let config = "scheme = \"token\"\nname = \"authorization\"\nvariable = \"ENGINE_API_KEY\"\n";
    std::fs::write(case.join("config.toml"), config).unwrap();
    let mut command = runner();
    command.args(["plugin", "record", &url, "--api-key-env", "ENGINE_API_KEY", "--plugin"]);
    command.arg(components().join("guests/keyed-backend.wasm")).current_dir(folder.path());
    let ended = run(command.env("ENGINE_API_KEY", format!("{ID}:{SECRET}"))).with_code(0);
    assert_eq!(server.requests.lock().unwrap().len(), 1, "{ended:#?}");
    for file in std::fs::read_dir(&case).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
    }
}

#[test]
fn each_process_of_a_fleet_has_its_own_leases() {
    for config in [TOKEN, PREPARE] {
        let folder = tempfile::tempdir().unwrap();
        let (url, server) = server(RULES);
        let coordinator = format!("127.0.0.1:{}", port::free());
        let start = |rank: u32| {
            let own = folder.path().join(format!("rank{rank}"));
            std::fs::create_dir(&own).unwrap();
            let mut command = runner();
            command.arg("fleet").args(several(7, &url, &own, config).get_args());
            command.args(["--max-concurrency", "4", "--warmup-requests", "0", "--no-progress"]);
            command.current_dir(own).env("ENGINE_API_KEY", format!("{ID}:{SECRET}"));
            command.env("RUNNER_FLEET_TOKEN", "0123456789abcdef".repeat(4));
            command.env("RUNNER_FLEET_SIZE", "3").env("RUNNER_FLEET_RANK", rank.to_string());
            Process::start(command.env("RUNNER_FLEET_COORDINATOR", &coordinator))
        };
        let ended = [0, 1, 2].map(start).map(|process| process.end().with_code(0));
        let rank0 = folder.path().join("rank0");
        std::fs::remove_dir(rank0.join("runs/.fleet")).unwrap();
        let summary = run_file(&rank0, "summary.json");
        assert_eq!(summary["requests"]["successful"], 7, "{config}: {summary:#}");
        // Rank 0 asks for the model too, before its own agent starts.
        assert!((3..=4).contains(&server.demands()), "{config}: {}", server.demands());
        for ended in &ended {
            assert_kept(&rank0, ended, &SECRETS);
        }
    }
}
