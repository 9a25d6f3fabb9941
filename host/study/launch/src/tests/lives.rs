//! The ways that engines start, become ready, and die.

use std::fs;

use super::*;
use crate::{Class, Exit, NotReady, StartError, version};

#[tokio::test]
async fn an_engine_that_becomes_ready_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = listening(&folder, r#"echo "key is $KEY"; echo loading >&2; exec "$@""#);
    let secret = Value::Secret("opensesame".to_owned());
    spec.environment.push(("KEY".to_owned(), secret));
    let (port, log) = (spec.port, spec.log.clone());
    let mut engine = Engine::start(spec).unwrap();
    let mut questions = 0;
    let ready = engine.ready(async || {
        questions += 1;
        answers(port)
    });
    ready.await.unwrap();
    assert!(questions >= 1);
    assert!(engine.ready_after_s().unwrap() > 0.0);
    let stopped = engine.stop(no_device).await;
    assert_eq!(stopped.exit, Some(Exit::Signal(15)));
    assert_eq!(stopped.needed, crate::Means::Terminate);
    assert!(stopped.is_clean(), "{:?}", stopped.left());
    let log = fs::read_to_string(log).unwrap();
    assert!(log.starts_with("key is [redacted]\n"), "{log}");
    assert!(log.contains("\nloading\n"), "{log}");
}

#[tokio::test]
async fn refuses_an_occupied_port_and_leaves_its_holder_alone() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(&folder, shell("sleep 1000"));
    let server = TcpListener::bind(("127.0.0.1", spec.port)).unwrap();
    let error = Engine::start(spec.clone()).err().unwrap();
    assert!(matches!(error, StartError::Occupied { .. }));
    let message = error.to_string();
    let begin = format!("engine `e` cannot be started: port {} is not free: ", spec.port);
    assert!(message.starts_with(&begin), "{message}");
    assert!(!spec.log.exists());
    assert_eq!(answers(spec.port), Check::Ready);
    drop(server);
    let engine = Engine::start(spec).unwrap();
    assert!(engine.stop(no_device).await.is_clean());
}

#[test]
fn a_failed_start_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let none = spec(&folder, Vec::new());
    let missing = spec(&folder, vec!["no-such-engine-at-all".to_owned()]);
    let mut elsewhere = spec(&folder, shell("true"));
    elsewhere.directory = Some(folder.path().join("none"));
    let mut unwritable = spec(&folder, shell("true"));
    unwritable.log = folder.path().to_owned();
    for (spec, words) in [
        (none, "engine `e` has no launch command"),
        (
            missing,
            "engine `e` cannot be started: `no-such-engine-at-all`: No such file or directory (os error 2); is it installed, and in a folder of PATH?",
        ),
        (elsewhere, "none: no such folder"),
        (unwritable, "Is a directory"),
    ] {
        let error = Engine::start(spec).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_death_ends_the_wait_with_its_reason() {
    let refuses = r#"echo up; echo "usage: serve" >&2; echo "serve: error: unrecognized arguments: $0" >&2; exit 2"#;
    for (script, exit, class, last) in [
        (refuses, Exit::Code(2), Class::WrongOptions, "serve: error: unrecognized arguments: sh"),
        ("echo bye; exit 0", Exit::Code(0), Class::Exited, "bye"),
        ("echo fault; kill -SEGV $$", Exit::Signal(11), Class::Signalled, "fault"),
        ("echo big; exit 137", Exit::Code(137), Class::OutOfMemory, "big"),
        (
            "echo 'torch.OutOfMemoryError: CUDA out of memory.'; echo trace; exit 1",
            Exit::Code(1),
            Class::OutOfDeviceMemory,
            "trace",
        ),
        ("printf 'no end'; exit 3", Exit::Code(3), Class::Exited, "no end"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut engine = Engine::start(spec(&folder, shell(script))).unwrap();
        let never = async || Check::NotYet("refused".to_owned());
        let error = engine.ready(never).await.unwrap_err();
        let NotReady::Died(death) = error else {
            panic!("{script}: {error}");
        };
        assert_eq!((death.exit, death.class), (exit, class), "{script}");
        assert!(death.before_ready);
        assert_eq!(death.last_lines.last().unwrap(), last);
        let stopped = engine.stop(no_device).await;
        assert_eq!(stopped.needed, crate::Means::Nothing);
        assert_eq!(stopped.exit, Some(exit));
        assert!(stopped.is_clean());
    }
}

/// A check that never returns is given up when the engine dies.
#[tokio::test]
async fn a_hanging_check_hides_no_death() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = Engine::start(spec(&folder, shell("exit 4"))).unwrap();
    let hangs = async || std::future::pending::<Check>().await;
    let error = engine.ready(hangs).await.unwrap_err();
    assert!(matches!(error, NotReady::Died(death) if death.exit == Exit::Code(4)));
}

/// Another server's answer makes nothing ready, also if the engine dies during the question.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn ignores_an_answer_after_the_death() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = Engine::start(spec(&folder, shell("sleep 1000"))).unwrap();
    let id = Table::default().process(engine.pid()).unwrap().id;
    let answered = engine.ready(async || {
        Table::default().signal(id, rustix::process::Signal::KILL);
        while lives(id) {
            std::thread::yield_now();
        }
        Check::Ready
    });
    let error = answered.await.unwrap_err();
    assert!(matches!(error, NotReady::Died(_)), "{error}");
}

#[tokio::test]
async fn an_engine_that_never_becomes_ready() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(&folder, shell("echo loading; sleep 1000"));
    spec.ready_timeout = Duration::from_millis(300);
    let log = spec.log.clone();
    let mut engine = Engine::start(spec).unwrap();
    let check = async || Check::NotYet("503 of /health".to_owned());
    let error = engine.ready(check).await.unwrap_err();
    assert_eq!(error.to_string(), "the engine was not ready within 0.3 s: 503 of /health");
    assert_eq!(engine.ready_after_s(), None);
    assert!(engine.stop(no_device).await.is_clean());
    assert_eq!(fs::read_to_string(log).unwrap(), "loading\n");
}

#[tokio::test]
async fn does_not_wait_for_an_engine_that_never_becomes_ready() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = Engine::start(spec(&folder, shell("sleep 1000"))).unwrap();
    let refused = engine.ready(async || Check::Never("no such model".to_owned()));
    let error = refused.await.unwrap_err();
    assert_eq!(error.to_string(), "the engine will not become ready: no such model");
    assert!(engine.stop(no_device).await.is_clean());
}

#[tokio::test]
async fn a_death_during_a_run_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = ready(scripted(&folder, "echo > ready; sleep 1000 & wait; exit 9")).await;
    let run = tokio::spawn(engine.death());
    assert!(!run.is_finished());
    let pid = crate::process::raw(engine.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
    let death = run.await.unwrap();
    assert_eq!((death.exit, death.class), (Exit::Signal(6), Class::Signalled));
    assert!(!death.before_ready);
    assert_eq!(death.to_string(), "the engine died while it was measured, with signal 6 (SIGABRT)");
    // Its worker is ended after it.
    let stopped = engine.stop(no_device).await;
    assert_eq!(stopped.needed, crate::Means::Terminate);
    assert!(stopped.is_clean());
}

#[tokio::test]
async fn the_log_has_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo > ready; sleep 1000";
    let spec = Spec { log_limit: 10_000, ..scripted(&folder, script) };
    let log = spec.log.clone();
    let engine = ready(spec).await;
    engine.stop(no_device).await;
    let earlier = fs::read_to_string(log.with_extension("log.earlier")).unwrap();
    let kept = earlier + &fs::read_to_string(log).unwrap();
    assert!(kept.len() <= 10_000 && kept.len() >= 5_000, "{}", kept.len());
    assert!(kept.ends_with("line 19998\nline 19999\n"), "{kept}");
}

#[tokio::test]
async fn versions_of_programs() {
    let ask = async |script: &str, within| {
        let environment = [("V".to_owned(), Value::Plain("0.11.0".to_owned()))];
        version(&shell(script), &environment, &[], None, within).await
    };
    let version = ask("echo warning >&2; echo loading; echo $V; echo", LONG).await;
    assert_eq!(version.unwrap(), "0.11.0");
    let version = ask("echo version: 7 >&2; echo built with cc >&2", LONG).await;
    assert_eq!(version.unwrap(), "version: 7");
    let error = ask("echo no such option >&2; exit 2", LONG).await.unwrap_err();
    assert_eq!(error, "`sh` printed no version: it ended with exit code 2: no such option");
    let error = ask("exit 0", LONG).await.unwrap_err();
    assert_eq!(error, "`sh` printed no version: it ended with exit code 0");
    let error = ask("sleep 1000", Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error, "`sh` did not print its version within 0.05 s");
    let error = super::super::version(&["none-such".to_owned()], &[], &[], None, LONG).await;
    let error = error.unwrap_err();
    assert!(error.starts_with("`none-such` does not run: "), "{error}");
    assert!(super::super::version(&[], &[], &[], None, LONG).await.is_err());
}
