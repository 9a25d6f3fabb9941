//! Engines that are real processes: shells, and this test program in the role of an engine.

mod lives;

use std::cell::Cell;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Id, Table};
use crate::{Check, Engine, Exit, Means, Memory, Spec, Value};

/// Longer than anything takes; a test that waits this long fails.
const LONG: Duration = Duration::from_secs(120);

/// A free port. Another test may get it before the engine does, so each has a range of its own.
fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    // Below the ports that the system gives to clients.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 100).unwrap() * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// An engine in a folder of its own.
fn spec(folder: &TempDir, command: Vec<String>) -> Spec {
    let log = folder.path().join("engine.log");
    let spec = Spec::new("e", command, ("127.0.0.1", free_port()), log);
    Spec { ready_timeout: LONG, stop_timeout: LONG, settle_timeout: LONG, ..spec }
}

/// This program as an engine that listens on its port, started by a script such as `exec "$@"`.
fn listening(folder: &TempDir, before: &str) -> Spec {
    let mut spec = spec(folder, shell(before));
    spec.command.push("sh".to_owned());
    spec.command.extend(command("engine"));
    let port = Value::Plain(spec.port.to_string());
    spec.environment.push((PORT.to_owned(), port));
    spec
}

/// Checks that a server answers on a port.
fn answers(port: u16) -> Check {
    match TcpStream::connect(("127.0.0.1", port)) {
        Ok(_) => Check::Ready,
        Err(error) => Check::NotYet(error.to_string()),
    }
}

/// An engine that runs a script in its folder.
fn scripted(folder: &TempDir, script: &str) -> Spec {
    Spec { directory: Some(folder.path().to_owned()), ..spec(folder, shell(script)) }
}

/// An engine that is ready when its folder has the file `ready`.
async fn ready(spec: Spec) -> Engine {
    let file = spec.directory.as_ref().unwrap().join("ready");
    let mut engine = Engine::start(spec).unwrap();
    let check = async || {
        if file.exists() { Check::Ready } else { Check::NotYet("the file is missing".to_owned()) }
    };
    engine.ready(check).await.unwrap();
    engine
}

/// The process whose identifier a file holds.
fn process_in(file: &Path) -> Id {
    let pid = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    Table::default().process(pid).unwrap().id
}

fn lives(process: Id) -> bool {
    Table::default().lives(process)
}

async fn no_device() -> Memory {
    Memory::Unknown
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_engine_of_a_killed_runner_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut owner = Ends(owner(&folder, port).spawn().unwrap());
    let ready = folder.path().join("ready");
    while !fs::read_to_string(&ready).is_ok_and(|pid| !pid.is_empty()) {
        assert_eq!(owner.0.try_wait().unwrap(), None, "it plays on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let engine = process_in(&ready);
    let worker = process_in(&folder.path().join("worker"));
    assert!(lives(engine) && lives(worker), "their runner lives");
    owner.0.kill().unwrap();
    owner.0.wait().unwrap();
    let clock = model::clock::Clock::start();
    while lives(engine) || lives(worker) {
        assert!(clock.now() < LONG.into(), "they go on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(crate::check_port("127.0.0.1", port).is_ok());
}

/// The variable with the port on which an engine listens.
const PORT: &str = "LAUNCH_TEST_PORT";

/// The variable with the folder of an owner.
const FOLDER: &str = "LAUNCH_TEST_FOLDER";

/// The way this program is started to play a part.
fn command(part: &str) -> Vec<String> {
    let own = std::env::current_exe().unwrap();
    let part = format!("tests::{part}");
    let options = ["--ignored", "--exact", "--nocapture", "--test-threads=1"];
    [own.to_str().unwrap(), &part].into_iter().chain(options).map(str::to_owned).collect()
}

/// The command of an owner: a runner that launches an engine and then waits.
fn owner(folder: &TempDir, port: u16) -> std::process::Command {
    let words = command("plays_a_runner");
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]).env(FOLDER, folder.path()).env(PORT, port.to_string());
    command
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("this test is a part that another one starts")
}

#[test]
#[ignore = "a part that other tests start"]
fn engine() {
    let port: u16 = variable(PORT).parse().unwrap();
    let server = TcpListener::bind(("127.0.0.1", port)).unwrap();
    for client in server.incoming() {
        drop(client);
    }
}

/// Launches an engine with a worker elsewhere, writes it into `ready`, and waits to be killed.
#[tokio::test]
#[ignore = "a part that other tests start"]
async fn plays_a_runner() {
    let port: u16 = variable(PORT).parse().unwrap();
    let folder = std::path::PathBuf::from(variable(FOLDER));
    let script = r#"(setsid sh -c 'echo $$ > worker; exec sleep 1000' &); exec "$@""#;
    let mut words = shell(script);
    words.push("sh".to_owned());
    words.extend(command("engine"));
    let mut spec = Spec::new("orphan", words, ("127.0.0.1", port), folder.join("engine.log"));
    spec.directory = Some(folder.clone());
    let worker = folder.join("worker");
    let mut engine = Engine::start(spec).unwrap();
    let check = async || match std::fs::read_to_string(&worker) {
        Ok(pid) if pid.ends_with('\n') => answers(port),
        _ => Check::NotYet("its worker does not run".to_owned()),
    };
    engine.ready(check).await.unwrap();
    std::fs::write(folder.join("ready"), engine.pid().to_string()).unwrap();
    std::future::pending::<()>().await;
}

/// An engine that ignores SIGTERM, with a worker that does too.
#[tokio::test]
async fn an_engine_that_ignores_sigterm_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"trap "" TERM; sleep 1000 & echo $! > worker; exec "$@""#;
    let mut spec = listening(&folder, script);
    spec.directory = Some(folder.path().to_owned());
    spec.stop_timeout = Duration::from_millis(200);
    let port = spec.port;
    let mut engine = Engine::start(spec).unwrap();
    engine.ready(async || answers(port)).await.unwrap();
    let worker = process_in(&folder.path().join("worker"));
    assert!(lives(worker));
    let stopped = engine.stop(no_device).await;
    assert_eq!(stopped.needed, Means::Kill);
    assert_eq!(stopped.exit, Some(Exit::Signal(9)));
    assert!(stopped.is_clean(), "{:?}", stopped.left());
    assert!(!lives(worker));
    assert!(crate::check_port("127.0.0.1", port).is_ok());
}

/// Workers that left the group, each by another way, and each with a mark: its environment, its
/// log, or that it was seen while its parent lived.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn workers_that_left_the_group_are_ended_too() {
    for (worker, go_on) in [
        ("setsid sh -c 'echo $$ > worker; exec sleep 1000' >/dev/null 2>&1", "sleep 1000"),
        ("env -i setsid sh -c 'echo $$ > worker; exec sleep 1000'", "sleep 1000"),
        ("env -i setsid sh -c 'echo $$ > worker; exec sleep 1000' >/dev/null 2>&1", "wait"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let start = if go_on == "wait" { format!("{worker} &") } else { format!("({worker} &);") };
        let script =
            format!("{start} while [ ! -s worker ]; do sleep 0.01; done; echo > ready; {go_on}");
        let engine = ready(scripted(&folder, &script)).await;
        let worker = process_in(&folder.path().join("worker"));
        if go_on == "wait" {
            // Its parent dies; it was seen before.
            let pid = crate::process::raw(engine.pid()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            engine.death().await;
        }
        assert!(lives(worker));
        let stopped = engine.stop(no_device).await;
        assert!(!lives(worker), "{script}");
        assert!(stopped.is_clean());
    }
}

#[tokio::test]
async fn a_dropped_engine_is_killed_with_all_its_workers() {
    for panics in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; (setsid sh -c 'echo $$ > worker; exec sleep 1000' &); while [ ! -s worker ]; do sleep 0.01; done; echo > ready; sleep 1000";
        let engine = ready(scripted(&folder, script)).await;
        let worker = process_in(&folder.path().join("worker"));
        let pid = engine.pid();
        if panics {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _engine = engine;
                std::panic::resume_unwind(Box::new("as if there were a bug"));
            }));
            assert!(caught.is_err());
        } else {
            drop(engine)
        }
        assert!(!lives(worker));
        assert_eq!(Table::default().process(pid), None, "it was reaped");
    }
}

/// As after a second interrupt: the stop itself is cancelled.
#[tokio::test]
async fn a_cancelled_stop_kills() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; echo > ready; while :; do sleep 1; done";
    let engine = ready(scripted(&folder, script)).await;
    let pid = engine.pid();
    let stop = engine.stop(no_device);
    let given_up = tokio::time::timeout(Duration::from_millis(50), stop).await;
    assert!(given_up.is_err(), "it ignores SIGTERM");
    assert_eq!(Table::default().process(pid), None);
}

/// As after a third interrupt: another thread kills the engine during its stop.
#[tokio::test]
async fn an_engine_is_killed_from_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; (setsid sh -c 'echo $$ > worker; exec sleep 1000' &); while [ ! -s worker ]; do sleep 0.01; done; echo > ready; while :; do sleep 1; done";
    let engine = ready(scripted(&folder, script)).await;
    let worker = process_in(&folder.path().join("worker"));
    let killer = engine.killer();
    let result = std::thread::spawn(move || killer.kill());
    let stopped = engine.stop(no_device).await;
    assert_eq!(result.join().unwrap(), "engine `e` was ended with SIGKILL");
    assert_eq!(stopped.exit, Some(Exit::Signal(9)));
    assert!(!lives(worker));
}

#[tokio::test]
async fn waits_for_the_memory_of_devices() {
    let held = || Memory::Held("device 0 has 3 GiB in use".to_owned());
    let start = |settle| {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = spec(&folder, shell("sleep 1000"));
        spec.settle_timeout = settle;
        (Engine::start(spec).unwrap(), folder)
    };
    let (engine, _folder) = start(LONG);
    let questions = Cell::new(0);
    let stopped = engine.stop(async || {
        questions.set(questions.get() + 1);
        match questions.get() {
            1..4 => held(),
            _ => Memory::Free,
        }
    });
    let stopped = stopped.await;
    assert_eq!((&stopped.memory, questions.get()), (&Memory::Free, 4));
    assert!(stopped.is_clean());

    let (engine, _folder) = start(Duration::ZERO);
    let stopped = engine.stop(async || held()).await;
    assert!(!stopped.is_clean());
    assert_eq!(stopped.left().unwrap(), "device 0 has 3 GiB in use");
}

/// Another process that takes the port while the engine runs is not touched, and is reported.
#[tokio::test]
async fn reports_a_port_that_does_not_become_free() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(&folder, shell("sleep 1000"));
    spec.settle_timeout = Duration::from_millis(50);
    let port = spec.port;
    let mut engine = Engine::start(spec).unwrap();
    let server = TcpListener::bind(("127.0.0.1", port)).unwrap();
    engine.ready(async || answers(port)).await.unwrap();
    let stopped = engine.stop(no_device).await;
    assert!(!stopped.is_clean());
    assert!(stopped.survivors.is_empty());
    let left = stopped.left().unwrap();
    assert!(left.starts_with(&format!("port {port} is not free")), "{left}");
    drop(server);
}
