//! A lab whose engine is the mock: a queue whose options set its capacity.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::port;
use crate::support::process::{Exit, Process, processes_with, run_patiently, runner, signal};
use crate::support::results::{follows, schema};

/// A closed loop of 8 users, 2 ms a token: one slot has an eighth of the throughput of 8.
const SCENARIO: &str = r#"
name = "short"
[dataset]
plugin = "datasets/random.wasm"
config = { input-len = 20, output-len = 11 }
[load]
requests = 40
concurrency = 8
warmup = 1
"#;

/// Files that are written from a lab's journal.
const DRAWN: [&str; 3] = ["lab.md", "lab.html", "lab-report.json"];

/// A folder with a lab file and its scenario.
pub(super) struct Files {
    folder: TempDir,
    port: u16,
}

impl Files {
    /// With these lines at the top, and these options.
    pub(super) fn new(top: &str, options: &str) -> Self {
        let (folder, port) = (TempDir::new().unwrap(), port::free());
        std::fs::write(folder.path().join("short.toml"), SCENARIO).unwrap();
        let lab = format!(
            "name = \"mock\"\nscenarios = [\"short.toml\"]\n{top}\n\
             [objective]\nmaximize = \"throughput.output-tokens-per-s\"\n\
             [[engines]]\nname = \"mock\"\nbackend = \"vllm\"\n\
             launch = [\"{}\", \"mock\", \"--port\", \"{{port}}\", \"--ttft\", \"2ms\", \"--itl\", \"2ms\"]\n\
             port = {port}\nready-timeout = \"60s\"\nstop-timeout = \"20s\"\n\
             [engines.options]\n{options}\n",
            env!("CARGO_BIN_EXE_runner"),
        );
        std::fs::write(folder.path().join("lab.toml"), lab).unwrap();
        Files { folder, port }
    }

    /// Changes the text of the lab file.
    fn change(&self, changed: impl FnOnce(String) -> String) {
        let lab = self.path().join("lab.toml");
        let text = std::fs::read_to_string(&lab).unwrap();
        std::fs::write(&lab, changed(text)).unwrap();
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, flags: &[&str]) -> std::process::Command {
        let mut command = runner();
        command
            .args(["lab", "lab.toml", "--folder", "out", "--no-progress"])
            .args(flags)
            .current_dir(self.path());
        command
    }

    pub(super) fn made(&self) -> Exit {
        run_patiently(&mut self.command(&[]))
    }

    fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path().join("out/journal.jsonl"));
        let text = text.unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The number of events of a kind the journal that has.
    fn events(&self, kind: &str) -> usize {
        let of = |event: &&Value| event["event"] == kind;
        self.journal().iter().filter(of).count()
    }

    fn report(&self) -> Value {
        let text = std::fs::read_to_string(self.path().join("out/lab-report.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn page(&self) -> String {
        std::fs::read_to_string(self.path().join("out/lab.md")).unwrap()
    }

    /// Reads the files that are written from the journal: the page in both forms, and its content.
    fn drawn(&self) -> Vec<Vec<u8>> {
        let files = DRAWN.map(|name| self.path().join("out").join(name));
        files.map(|path| std::fs::read(path).unwrap()).to_vec()
    }

    /// Draws it again, of nothing but the journal and `lab.json`.
    fn drawn_again(&self) -> Vec<Vec<u8>> {
        for name in DRAWN {
            std::fs::remove_file(self.path().join("out").join(name)).unwrap();
        }
        run_patiently(&mut self.command(&["--page-only"])).with_code(0);
        self.drawn()
    }

    /// Checks that every file of the lab follows its schema.
    fn follow_their_schemas(&self) {
        let read =
            |name: &str| std::fs::read_to_string(self.path().join("out").join(name)).unwrap();
        let json = |text: &str| serde_json::from_str(text).unwrap();
        follows("lab", &json(&read("lab.json")));
        follows("lab-report", &json(&read("lab-report.json")));
        let schema = schema("lab-event");
        for event in self.journal() {
            assert!(schema.is_valid(&event), "{event:#}");
        }
    }

    /// True if nothing listens on the engine's port.
    fn is_free(&self) -> bool {
        TcpListener::bind(("127.0.0.1", self.port)).is_ok()
    }
}

#[test]
fn the_best_option_wins_and_a_crashing_option_does_not() {
    let files = Files::new(
        "repeats = 2",
        "max-concurrency = [1, 8]\nbatching = { values = [\"none\", \"bogus=1\"], omit = \"none\" }",
    );
    run_patiently(&mut files.command(&["--dry-run"])).with_stdout(0, "max-concurrency 8");
    assert_eq!(files.journal(), Vec::<Value>::new());
    files.made().with_stdout(0, "`max-concurrency 8` is better than the baseline");
    let page = files.page();
    for part in ["--max-concurrency 8", "## Failures", "there is no parameter `bogus`"] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert!(files.is_free());
    // Nothing is left to do; the page is drawn again from the journal.
    let (runs, report, drawn) = (files.events("finished"), files.report(), files.drawn());
    assert!(drawn == files.drawn_again());
    files.follow_their_schemas();
    files.made().with_code(0);
    assert_eq!(files.events("finished"), runs);
    assert_eq!(files.report()["studies"], report["studies"]);
}

/// An engine that loads for two seconds, and 300 ms to a first token: two figures, one judged.
#[test]
fn the_time_from_the_start_of_an_engine_is_a_figure() {
    let files = Files::new("strategy = \"matrix\"\nrepeats = 1", "");
    let mock = format!("launch = [\"{}\", \"mock\"", env!("CARGO_BIN_EXE_runner"));
    let slow = format!(
        "launch = [\"sh\", \"-c\", \"sleep 2; exec \\\"$0\\\" \\\"$@\\\"\", \"{}\", \"mock\"",
        env!("CARGO_BIN_EXE_runner")
    );
    let objective = "[objective]\nmaximize = \"throughput.output-tokens-per-s\"";
    let start = "[objective]\nminimize = \"engine.first-token-after-s\"\n\
                 subject-to = [\"engine.ready-after-s < 1s\"]";
    files.change(|text| {
        let text = text.replace(objective, start).replace(&mock, &slow);
        let text = text.replace("\"2ms\", \"--itl\"", "\"300ms\", \"--itl\"");
        text.split("[engines.options]").next().unwrap().to_owned()
    });
    let made = files.made();
    let report = files.report();
    let start = &report["starts"][0];
    let [ready, token] =
        ["ready-after-s", "first-token-after-s"].map(|name| start[name].as_f64().unwrap());
    assert!(ready >= 2.0, "{ready} {}", made.stderr);
    assert!(token >= ready + 0.29, "{ready} {token}");
    let run = &report["studies"][0]["trials"][0]["runs"][0];
    assert_eq!(run["figure"].as_f64(), Some(token), "{run}");
    let broken = run["findings"].to_string();
    assert!(broken.contains("engine.ready-after-s < 1s"), "{broken}");
    assert!(files.page().contains("First token after, median (s)"));
    files.follow_their_schemas();
}

#[test]
fn an_option_that_loses_requests_never_wins() {
    // Errors come at once, so that the other requests are answered faster.
    let files = Files::new(
        "repeats = 2",
        "fault = { values = [\"none\", \"kind = 'http-error', status = 503, every = 2\"], omit = \"none\" }",
    );
    let ended = files.made();
    let page = files.page();
    assert!(!ended.stdout.contains("is better than the baseline"), "{ended:#?}\n{page}");
    assert!(page.contains("success-share"), "{page}");
}

#[test]
fn a_lab_that_is_killed_goes_on_and_leaves_no_engine() {
    let files = Files::new("strategy = \"matrix\"\nrepeats = 2", "max-concurrency = [1, 8]");
    let mut process = Process::start(&mut files.command(&[]));
    process.until("a run has ended", |_| files.events("finished") > 0);
    process.signal("KILL");
    process.until_gone();
    let before = files.events("finished");
    let ended = files.made().with_code(0);
    assert!(files.events("finished") > before, "{ended:#?}");
    // Two options, twice, and whatever confirms the choice: no run is made twice.
    let finished: Vec<String> = (files.journal().iter())
        .filter(|event| event["event"] == "finished" && event["outcome"]["measured"].is_object())
        .map(|event| event["run"].to_string())
        .collect();
    let mut once = finished.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), finished.len(), "{finished:#?}");
    assert!(files.is_free());
}

#[test]
fn an_interrupt_stops_the_engine_and_the_lab_goes_on_later() {
    let files = Files::new("strategy = \"matrix\"\nrepeats = 2", "max-concurrency = [1, 8]");
    let mut process = Process::start(&mut files.command(&[]));
    process.until("an engine answers", |_| files.events("ready") > 0);
    process.signal("INT");
    process.end().with_stderr(130, "resume with `runner lab --resume out");
    assert!(files.is_free());
    // The folder is all that is needed, in any working directory.
    let elsewhere = TempDir::new().unwrap();
    let mut again = runner();
    again.args(["lab", "--no-progress", "--resume"]);
    again.arg(files.path().join("out"));
    again.current_dir(elsewhere.path());
    run_patiently(&mut again).with_code(0);
    assert!(files.page().contains("max-concurrency 8"));
}

/// A full disk or a loss of power cuts a journal anywhere: the lab loses no measurement.
#[test]
fn resumes_a_cut_journal() {
    let files = Files::new("strategy = \"matrix\"\nrepeats = 1", "max-concurrency = [8]");
    files.change(|text| text.replacen("\"mock\"", "\"möck\"", 1));
    files.made().with_code(0);
    let runs = files.events("finished");
    let path = files.path().join("out/journal.jsonl");
    let whole = std::fs::read(&path).unwrap();
    let letter = whole.windows(2).position(|two| two == "ö".as_bytes());
    let newline = whole.strip_suffix(b"\n").unwrap().to_vec();
    let in_a_letter = [&whole[..], &whole[..=letter.unwrap()]].concat();
    let zeros = [&whole[..], &[0; 4096]].concat();
    for (cut, damaged) in [("newline", newline), ("letter", in_a_letter), ("zeros", zeros)] {
        std::fs::write(&path, damaged).unwrap();
        run_patiently(&mut files.command(&["--page-only"])).with_code(0);
        // The second time, it reads the appended line of the first.
        for _ in 0..2 {
            files.made().with_code(0);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let is_event = |line: &str| serde_json::from_str::<Value>(line).is_ok();
        assert!(text.lines().all(is_event), "{cut}: {text}");
        assert_eq!(files.events("finished"), runs, "{cut}");
    }
}

/// An engine takes no notice of SIGTERM, and the user does not wait: it does not outlive the lab.
#[test]
fn a_second_interrupt_kills_the_engine_and_says_so() {
    let files = Files::new("", "max-concurrency = [8]");
    let deaf = "trap '' TERM; touch deaf; while :; do sleep 1; done; : deaf on {port}";
    files.change(|text| {
        let lines = text.lines().map(|line| {
            if line.starts_with("launch") {
                format!("launch = [\"sh\", \"-c\", \"{deaf}\"]")
            } else {
                line.to_owned()
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    let engine = format!("deaf on {}", files.port);
    let mut process = Process::start(&mut files.command(&[]));
    process.until("the engine is deaf", |_| files.path().join("deaf").exists());
    process.signal("TERM");
    process.until("the lab stops it", |process| process.stderr().contains("stopping the engine"));
    process.signal("TERM");
    let ended = process.end().with_stderr(130, "leaving at once: engine `mock`");
    assert!(processes_with(&engine).is_empty(), "{ended:#?}");
}

/// The engine is killed in a run: that run is made again, and the page has no figure of it.
#[test]
fn an_engine_that_dies_in_a_run_is_started_again() {
    let files =
        Files::new("strategy = \"matrix\"\nrepeats = 1\nretries = 1", "max-concurrency = [1, 8]");
    let mut process = Process::start(&mut files.command(&[]));
    process.until("a run begins", |_| files.events("running") > 0);
    let engines = processes_with(&format!("mock --port {}", files.port));
    assert!(!engines.is_empty());
    for engine in engines {
        signal(engine, "KILL");
    }
    process.end().with_code(0);
    let died = |event: &&Value| event["outcome"]["died"].is_object();
    assert_eq!(files.events("finished"), 3);
    assert_eq!(files.journal().iter().filter(died).count(), 1);
    assert!(files.is_free());
}

#[test]
fn an_occupied_port_is_refused_and_its_holder_lives() {
    let files = Files::new("", "max-concurrency = [1, 8]");
    let _holder = TcpListener::bind(("127.0.0.1", files.port)).unwrap();
    let ended = files.made().with_code(3);
    assert!(
        ended.stderr.contains(&files.port.to_string()) && ended.stderr.contains("port is taken"),
        "{ended:#?}"
    );
    assert_eq!(files.events("finished"), 0);
}

#[test]
fn mistakes_of_a_lab_file_are_reported_at_once() {
    let ended = Files::new("repeets = 2", "max-concurrency = []").made().with_code(3);
    for part in ["repeets", "repeats", "max-concurrency", "lab.toml"] {
        assert!(ended.stderr.contains(part), "{part}\n{ended:#?}");
    }
}

/// Scenarios that differ in their load alone are a curve.
#[test]
fn a_lab_over_loads_is_drawn() {
    let files = Files::new("strategy = \"matrix\"\nrepeats = 1", "max-concurrency = [8]");
    let at = |load: u32| {
        let text = SCENARIO.replace("concurrency = 8", &format!("concurrency = {load}"));
        let text = text.replace("\"short\"", &format!("\"short at {load}\""));
        std::fs::write(files.path().join(format!("short-{load}.toml")), text).unwrap();
    };
    at(1);
    at(4);
    let lab = std::fs::read_to_string(files.path().join("lab.toml")).unwrap();
    let lab = lab.replace("[\"short.toml\"]", "[\"short-1.toml\", \"short-4.toml\"]");
    std::fs::write(files.path().join("lab.toml"), &lab).unwrap();
    files.made().with_code(0);
    let report = files.report();
    let curves = &report["studies"][0]["curves"];
    assert_eq!(curves[0]["load"], "concurrency", "{report:#}");
    let places = curves[0]["lines"][0]["curve"]["places"].as_array().unwrap();
    let loads: Vec<f64> = places.iter().map(|of| of["at"].as_f64().unwrap()).collect();
    assert_eq!(loads, [1.0, 4.0]);
    let html = std::fs::read_to_string(files.path().join("out/lab.html")).unwrap();
    for part in ["<svg", "id=\"curve-1-1\""] {
        assert!(html.contains(part), "{part}");
    }
    assert!(files.drawn() == files.drawn_again());
    files.follow_their_schemas();
}

/// Only its launch's identifier connects an engine's session with its lab: it ends with the lab.
#[test]
fn an_engine_ends_with_a_lab_that_is_killed() {
    let files = Files::new("", "max-concurrency = [8]");
    files.change(|text| text.replacen("launch = [", "launch = [\"setsid\", \"--wait\", ", 1));
    let mut process = Process::start(&mut files.command(&[]));
    process.until("an engine answers", |_| files.events("ready") > 0);
    process.signal("KILL");
    process.until_gone();
    let engine = format!("mock --port {}", files.port);
    for _ in 0..600 {
        if processes_with(&engine).is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{:?} go on", processes_with(&engine));
}

/// The labs that ship expand, with scenarios that ship.
#[test]
fn labs_that_ship_can_be_planned() {
    for lab in ["scenarios/labs/gpustack.toml", "scenarios/labs/lmdeploy.toml"] {
        let folder = TempDir::new().unwrap();
        let mut command = runner();
        command.args(["lab", lab, "--dry-run", "--folder", "out"]).current_dir(folder.path());
        let ended = run_patiently(&mut command).with_code(0);
        assert!(
            ended.stdout.contains("port 23333") || ended.stdout.contains("--port=8000"),
            "{lab}: {ended:#?}"
        );
    }
}
