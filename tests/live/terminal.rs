//! The dashboard and the progress line on a terminal, made by util-linux's `script`; and the output
//! without a terminal. Without `script`, the tests of terminals are left out.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::lacking;
use crate::support::process::{Mock, Process, run, runner, runner_behind, words};

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// The binary on a terminal of 100 by 30 characters; prints the terminal's settings before and
/// after. Nothing if there is no `script`.
pub fn on_a_terminal(folder: &Path, line: &str, variable: &str) -> Option<Command> {
    if !lacking::has_terminals() {
        return None;
    }
    let shell = "inside=\"stty cols 100 rows 30; stty -g; env $VARIABLE '$1' $LINE; code=\\$?; stty -g; exit \\$code\"; \
                 exec script -qec \"$inside\" /dev/null";
    let mut command = runner_behind(shell);
    command.env("LINE", line).env("VARIABLE", variable).current_dir(folder).stdin(Stdio::piped());
    Some(command)
}

/// [`Process::start`] leaves stdin as the command set it.
fn start(mut command: Command) -> Process {
    Process::start(&mut command)
}

fn load(mock: &Mock, requests: u32) -> String {
    format!(
        "--backend vllm --dataset-name random --concurrency 4 --random-output-len 20 --warmup-requests 0 --num-prompts {requests} --base-url {}",
        mock.url
    )
}

const SIZE: (usize, usize) = (30, 100);

/// Returns the alternate screen, as a terminal renders it: only changes are written.
fn screen(written: &str) -> String {
    let (_, after) = written.split_once(ENTER).unwrap_or_default();
    let (drawn, _) = after.split_once(LEAVE).unwrap_or((after, ""));
    let mut cells = vec![vec![' '; SIZE.1]; SIZE.0];
    let (mut row, mut column) = (0, 0);
    for piece in drawn.split("\u{1b}[") {
        // A piece that is still being written has no end.
        let Some(end) = piece.find(|c: char| c.is_ascii_alphabetic()) else { continue };
        let (arguments, text) = piece.split_at(end);
        if let (true, Some(to)) = (text.starts_with('H'), arguments.split_once(';')) {
            row = to.0.parse::<usize>().unwrap() - 1;
            column = to.1.parse::<usize>().unwrap() - 1;
        }
        for character in text.chars().skip(1) {
            cells[row][column] = character;
            column = (column + 1).min(SIZE.1 - 1);
        }
    }
    let lines: Vec<String> = cells.iter().map(|row| row.iter().collect()).collect();
    lines.join("\n")
}

/// Returns the last content of the alternate screen, the bytes written to it, and the bytes after
/// it.
#[track_caller]
pub fn screens(seen: &str) -> (String, &str, &str) {
    let times = (seen.matches(ENTER).count(), seen.matches(LEAVE).count());
    assert_eq!(times, (1, 1), "{seen:?}");
    let (_, rest) = seen.split_once(ENTER).unwrap();
    let (written, after) = rest.split_once(LEAVE).unwrap();
    (screen(seen), written, after)
}

/// True if the alternate screen shows this.
pub fn shows(what: &str) -> impl Fn(&Process) -> bool {
    move |process| screen(&process.stdout()).contains(what)
}

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
        let Some(command) = on_a_terminal(folder.path(), &line, variable) else { return };
        let ended = start(command).end().with_code(0);
        let (shown, written, after) = screens(&ended.stdout);
        for part in ["latency", "this client", "q stop", "/20 done"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(after.contains("Successful requests:                     20"), "{after:?}");
        // A colour of the foreground; crossterm writes it with the number of a palette.
        let coloured = written.contains("\u{1b}[38;5;");
        assert_eq!(coloured, variable.starts_with("TERM"), "{written:?}");
        assert_restored(&ended.stdout);
    }
}

#[test]
fn a_key_stops_the_run_as_an_interrupt_does() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "5ms"]);
    let line = format!("{} --dashboard", load(&mock, 1_000_000));
    for key in ["q", "\u{3}"] {
        let Some(command) = on_a_terminal(folder.path(), &line, "TERM=xterm") else { return };
        let mut process = start(command);
        process.until("it measures", shows("measuring"));
        process.type_in("?");
        process.until("help is shown", shows("Esc closes it"));
        process.type_in("p");
        process.until("it pauses", shows("drawing paused"));
        process.type_in("p");
        process.type_in(key);
        let ended = process.end().with_code(130);
        let (shown, _, after) = screens(&ended.stdout);
        assert!(!shown.contains("interrupted: waiting"), "{shown}");
        assert!(after.contains("suspect interrupted"), "{after:?}");
        assert_restored(&ended.stdout);
    }
}

#[test]
fn the_key_again_gives_replies_up() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "10m"]);
    let line = format!("{} --dashboard", load(&mock, 1_000));
    let Some(command) = on_a_terminal(folder.path(), &line, "TERM=xterm") else { return };
    let mut process = start(command);
    process.until("four are in flight", shows("in flight 4 of 4"));
    process.type_in("q");
    process.until("the key is received", shows("q stop at once"));
    process.type_in("q");
    let ended = process.end().with_code(130);
    let (_, _, after) = screens(&ended.stdout);
    assert!(after.contains("Failed requests (interrupted):           4"), "{after:?}");
    assert_restored(&ended.stdout);
}

#[test]
fn without_a_terminal_a_dashboard_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    run(runner().args(["demo", "--dashboard"]).current_dir(folder.path()))
        .with_stderr(2, "--dashboard draws on stderr");
    assert!(!folder.path().join("runs").exists(), "nothing was measured");
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
        ended.stderr.lines().filter(about).map(str::to_owned).collect::<Vec<String>>()
    };
    let shown = lines("--progress-every 50ms");
    assert!(shown.iter().any(|line| line.contains("/12 done, 4 in flight")), "{shown:#?}");
    let named = |line: &String| line.starts_with("vllm-random: 0s: ") || line.contains("s: ");
    assert!(shown.iter().all(named), "{shown:#?}");
    assert_eq!(lines(""), [""; 0], "it is over before it is time");
    assert_eq!(lines("--progress-every 50ms --no-progress"), [""; 0]);
    run(runner().args(["demo", "--progress-every", "0s"]))
        .with_stderr(2, "use --no-progress instead");
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "20ms"]);
    let line = format!("{} --progress-every 50ms", load(&mock, 12));
    let Some(command) = on_a_terminal(folder.path(), &line, "TERM=dumb") else { return };
    let ended = start(command).end().with_stdout(0, "/12 done, 4 in flight");
    assert!(!ended.stdout.contains('\u{1b}'), "{ended:#?}");
}
