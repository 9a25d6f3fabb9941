//! The dashboard and the progress line on a terminal, made by util-linux's `script`; and what is told where
//! there is none. Without `script` the tests of terminals say that they were passed over.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::process::{Mock, Process, run, runner, runner_behind, words};

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// The binary on a terminal of 100 by 30 characters; the terminal's settings are told before and after. Nothing
/// where there is no `script`.
fn on_a_terminal(folder: &Path, line: &str, variable: &str) -> Option<Command> {
    let version = Command::new("script").arg("--version").output();
    let is_known = |said: &[u8]| String::from_utf8_lossy(said).contains("util-linux");
    if !version.is_ok_and(|version| is_known(&version.stdout)) {
        eprintln!("skipped: there is no `script` of util-linux to make a terminal with");
        return None;
    }
    let shell = "inside=\"stty cols 100 rows 30; stty -g; env $VARIABLE '$1' $LINE; code=\\$?; stty -g; exit \\$code\"; \
                 exec script -qec \"$inside\" /dev/null";
    let mut command = runner_behind(shell);
    command
        .env("LINE", line)
        .env("VARIABLE", variable)
        .current_dir(folder)
        .stdin(Stdio::piped());
    Some(command)
}

/// [`Process::start`] leaves stdin as the command has it.
fn start(mut command: Command) -> Process {
    Process::start(&mut command)
}

fn load(mock: &Mock, requests: u32) -> String {
    format!(
        "--backend vllm --dataset-name random --concurrency 4 --random-output-len 20 --num-prompts {requests} --base-url {}",
        mock.url
    )
}

/// What was on the other screen, and what came after it.
#[track_caller]
fn screens(seen: &str) -> (&str, &str) {
    assert_eq!(
        (seen.matches(ENTER).count(), seen.matches(LEAVE).count()),
        (1, 1),
        "{seen:?}"
    );
    let (before, rest) = seen.split_once(ENTER).unwrap();
    assert!(!before.contains("measuring"), "{before:?}");
    rest.split_once(LEAVE).unwrap()
}

/// The terminal has the settings that it had.
#[track_caller]
fn assert_restored(seen: &str) {
    let is_settings = |line: &&str| line.matches(':').count() > 10;
    let settings: Vec<&str> = seen.lines().map(str::trim).filter(is_settings).collect();
    assert_eq!(settings.len(), 2, "{seen:?}");
    assert_eq!(settings[0], settings[1]);
}

#[test]
fn a_dashboard_is_drawn_and_the_result_printed_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "20ms"]);
    let line = format!("{} --dashboard", load(&mock, 20));
    for variable in ["TERM=xterm", "NO_COLOR=1"] {
        let Some(command) = on_a_terminal(folder.path(), &line, variable) else {
            return;
        };
        let ended = start(command).end().with_code(0);
        let (drawn, after) = screens(&ended.stdout);
        for part in ["measuring", "latency", "this client", "q stop"] {
            assert!(drawn.contains(part), "{part}: {drawn:?}");
        }
        assert!(
            after.contains("Successful requests:                     20"),
            "{after:?}"
        );
        // A colour of the foreground; crossterm writes it with the number of a palette.
        let coloured = drawn.contains("\u{1b}[38;5;");
        assert_eq!(coloured, variable.starts_with("TERM"), "{drawn:?}");
        assert_restored(&ended.stdout);
    }
}

#[test]
fn a_key_stops_the_run_as_an_interrupt_does() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "5ms"]);
    let line = format!("{} --dashboard", load(&mock, 1_000_000));
    for key in ["q", "\u{3}"] {
        let Some(command) = on_a_terminal(folder.path(), &line, "TERM=xterm") else {
            return;
        };
        let mut process = start(command);
        process.until("it measures", |process| {
            process.stdout().contains("measuring")
        });
        process.type_in("?");
        process.until("help is shown", |process| {
            process.stdout().contains("Esc closes it")
        });
        process.type_in("\u{1b}");
        process.type_in(key);
        let ended = process.end().with_code(130);
        let (drawn, after) = screens(&ended.stdout);
        assert!(!drawn.contains("interrupted: waiting"), "{drawn:?}");
        assert!(after.contains("suspect interrupted"), "{after:?}");
        assert_restored(&ended.stdout);
    }
}

#[test]
fn the_key_again_gives_replies_up() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "10m"]);
    let line = format!("{} --dashboard", load(&mock, 1_000));
    let Some(command) = on_a_terminal(folder.path(), &line, "TERM=xterm") else {
        return;
    };
    let mut process = start(command);
    process.until("four are in flight", |process| {
        process.stdout().contains("in flight 4 of 4")
            || mock
                .metrics()
                .contains("running{engine=\"0\",model_name=\"mock\"} 4")
    });
    process.type_in("q");
    process.until("the key is heard", |process| {
        process.stdout().contains("q stop at once")
    });
    process.type_in("q");
    let ended = process.end().with_code(130);
    let (_, after) = screens(&ended.stdout);
    assert!(
        after.contains("Failed requests (interrupted):           4"),
        "{after:?}"
    );
    assert_restored(&ended.stdout);
}

#[test]
fn without_a_terminal_a_dashboard_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(runner()
        .args(["demo", "--dashboard"])
        .current_dir(folder.path()))
    .with_code(2);
    assert!(
        ended.stderr.contains("--dashboard draws on the terminal"),
        "{ended:#?}"
    );
    assert!(!folder.path().join("runs").exists(), "nothing was measured");
    let mut both = runner();
    both.args(["demo", "--dashboard", "--no-progress"]);
    run(&mut both).with_code(2);
}

#[test]
fn without_a_terminal_lines_tell_of_progress_now_and_then() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "20ms"]);
    let lines = |flags: &str| {
        let mut command = runner();
        command.args(words(&load(&mock, 12))).args(words(flags));
        let ended = run(command.current_dir(folder.path())).with_code(0);
        assert!(!ended.stderr.contains('\u{1b}'), "{ended:#?}");
        assert!(ended.stdout.starts_with("===="), "{ended:#?}");
        let about = |line: &&str| line.contains(" in flight") || line.contains(" ready");
        let told: Vec<String> = ended
            .stderr
            .lines()
            .filter(about)
            .map(str::to_owned)
            .collect();
        told
    };
    let told = lines("--progress-every 50ms");
    assert!(
        told.iter()
            .any(|line| line.contains("/12 done, 4 in flight")),
        "{told:#?}"
    );
    let named = |line: &String| line.starts_with("vllm-random: 0s: ") || line.contains("s: ");
    assert!(told.iter().all(named), "{told:#?}");
    assert_eq!(lines(""), [""; 0], "it is over before it is time");
    assert_eq!(lines("--progress-every 50ms --no-progress"), [""; 0]);
    let mut command = runner();
    command.args(["demo", "--progress-every", "0s"]);
    let refused = run(&mut command).with_code(2);
    assert!(
        refused.stderr.contains("--no-progress has none"),
        "{refused:#?}"
    );
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "20ms"]);
    let line = format!("{} --progress-every 50ms", load(&mock, 12));
    let Some(command) = on_a_terminal(folder.path(), &line, "TERM=dumb") else {
        return;
    };
    let ended = start(command).end().with_code(0);
    assert!(ended.stdout.contains("/12 done, 4 in flight"), "{ended:#?}");
    assert!(!ended.stdout.contains('\u{1b}'), "{ended:#?}");
}
