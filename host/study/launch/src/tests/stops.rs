//! The ways to stop engines, whatever they do.

use std::cell::Cell;

use super::*;
use crate::{Exit, Means};

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

/// Another process that takes the port while the engine runs elsewhere is not touched, and is
/// reported.
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
