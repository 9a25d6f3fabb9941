//! Fuzzing: builds the binaries of `tests/fuzz` with libFuzzer's instrumentation, gives each target
//! an equal share of the time, and sums up the executed code.
//!
//! The compiler's flags are the flags of `cargo fuzz`, which runs the same targets but is not
//! needed. Without a sanitizer they are flags of a stable compiler: nothing here has `unsafe` code,
//! and the targets run several times as fast. AddressSanitizer watches the code of dependencies, in
//! builds of its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::steps::{self, cargo_command};

const HELP: &str = "\
cargo xtask fuzz [--minutes N] [--address] [TARGET...]

  --minutes N  time for all targets together; the default is one minute for each
  --address    build with AddressSanitizer
  TARGET       the targets to run; the default is all of them, tests/fuzz/fuzz_targets lists them

New inputs are added to target/fuzz/corpus. An input that breaks a target is kept in target/fuzz/findings.
";

/// libFuzzer's platform; build scripts are built without the flags if cargo is given it.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// libFuzzer's instrumentation: the code that ran, and the values that were compared.
const INSTRUMENTATION: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Limits for every execution: memory in MiB, seconds, and bytes of input where a target has no
/// limit of its own. No input of this size takes a second; the limit on time leaves room for a busy
/// machine.
const RSS_MIB: u64 = 2048;
const SECONDS: u64 = 30;
const INPUT_BYTES: i64 = 4096;

/// The arguments of the command line.
#[derive(Debug, PartialEq)]
struct Arguments {
    minutes: Option<f64>,
    address: bool,
    targets: Vec<String>,
}

/// A target, and most bytes of its inputs.
struct Target {
    name: String,
    input_bytes: i64,
}

/// The result of a target.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    executions: u64,
    per_second: u64,
    /// Places in the code that were reached.
    coverage: u64,
    finding: Option<Finding>,
}

#[derive(Debug, PartialEq)]
struct Finding {
    /// The message of libFuzzer or of a panic.
    message: String,
    input: Option<PathBuf>,
}

pub fn fuzz(root: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let Some(options) = read_arguments(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let manifest = fs::read_to_string(root.join("tests/fuzz/Cargo.toml"))?;
    let targets = chosen(targets(&manifest)?, &options.targets)?;
    let minutes = options.minutes.unwrap_or(targets.len() as f64);
    let share = Duration::from_secs_f64(60.0 * minutes / targets.len() as f64);
    let built = build(root, options.address, &targets)?;
    let mut outcomes = Vec::new();
    for target in &targets {
        eprintln!("==> {}: {:.0} s", target.name, share.as_secs_f64().ceil());
        let outcome = run(root, &built, target, share)?;
        if let Some(finding) = &outcome.finding {
            eprintln!("{}", advice(&target.name, finding, &built));
        }
        outcomes.push(outcome);
    }
    let rows = targets.iter().map(|target| target.name.as_str());
    print!("{}", table(rows.zip(&outcomes)));
    let found = outcomes.iter().any(|outcome| outcome.finding.is_some());
    Ok(ExitCode::from(u8::from(found)))
}

fn read_arguments(arguments: &[OsString]) -> Result<Option<Arguments>> {
    let mut options = Arguments { minutes: None, address: false, targets: Vec::new() };
    let mut arguments = arguments.iter().map(|argument| argument.to_str());
    while let Some(argument) = arguments.next() {
        match argument {
            Some("--help" | "-h") => return Ok(None),
            Some("--address") => options.address = true,
            Some("--minutes") => {
                let minutes = arguments.next().flatten().and_then(|text| text.parse().ok());
                options.minutes = minutes.filter(|minutes: &f64| *minutes > 0.0 && *minutes <= 1e6);
                if options.minutes.is_none() {
                    bail!("--minutes takes a number of minutes, such as 30 or 0.5");
                }
            }
            Some(target) if !target.starts_with('-') => options.targets.push(target.to_owned()),
            _ => bail!("unknown option {argument:?}; `cargo xtask fuzz --help` lists them"),
        }
    }
    Ok(Some(options))
}

/// The targets of the manifest, with the limits under `[package.metadata.input-bytes]`.
fn targets(manifest: &str) -> Result<Vec<Target>> {
    let manifest: Table = manifest.parse()?;
    let metadata = manifest["package"].get("metadata");
    let limits = metadata.and_then(|metadata| metadata.get("input-bytes"));
    let binaries = manifest["bin"].as_array().context("there are no [[bin]]")?;
    let names = binaries.iter().filter_map(|binary| binary["name"].as_str());
    Ok(names
        .map(|name| Target {
            name: name.to_owned(),
            input_bytes: limits
                .and_then(|limits| limits.get(name))
                .and_then(Value::as_integer)
                .unwrap_or(INPUT_BYTES),
        })
        .collect())
}

fn chosen(all: Vec<Target>, names: &[String]) -> Result<Vec<Target>> {
    let known = |name: &String| all.iter().any(|target| target.name == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let names: Vec<&str> = all.iter().map(|target| target.name.as_str()).collect();
        bail!("there is no target `{unknown}`; there are {}", names.join(", "));
    }
    let wanted = |target: &Target| names.is_empty() || names.contains(&target.name);
    Ok(all.into_iter().filter(wanted).collect())
}

fn build(root: &Path, address: bool, targets: &[Target]) -> Result<PathBuf> {
    let folder = root.join(if address { "target/fuzz/address" } else { "target/fuzz/build" });
    let mut flags = INSTRUMENTATION.to_vec();
    let mut cargo = cargo_command(root);
    if address {
        flags.push("-Zsanitizer=address");
        // A stable compiler has the sanitizer, but not the flag.
        cargo.env("RUSTC_BOOTSTRAP", "1");
    }
    cargo
        .args(["build", "--release", "--manifest-path", "tests/fuzz/Cargo.toml"])
        .args(["--target", PLATFORM, "--target-dir"])
        .arg(&folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    for target in targets {
        cargo.args(["--bin", &target.name]);
    }
    steps::run(&mut cargo).context("the targets are not built")?;
    Ok(folder.join(PLATFORM).join("release"))
}

fn run(root: &Path, built: &Path, target: &Target, share: Duration) -> Result<Outcome> {
    let name = &target.name;
    let of = |folder: &str| root.join(folder).join(name);
    let (corpus, findings) = (of("target/fuzz/corpus"), of("target/fuzz/findings"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&findings)?;
    let log_path = root.join("target/fuzz").join(format!("{name}.log"));
    let log = File::create(&log_path)?;
    let committed = [of("tests/fuzz/corpus"), of("tests/fuzz/cases")];
    let status = Command::new(built.join(name))
        .current_dir(root)
        // The first folder receives new findings.
        .arg(&corpus)
        .args(committed.iter().filter(|folder| folder.exists()))
        .arg(format!("-max_total_time={}", share.as_secs_f64().ceil()))
        .arg(format!("-max_len={}", target.input_bytes))
        .arg(format!("-rss_limit_mb={RSS_MIB}"))
        .arg(format!("-timeout={SECONDS}"))
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .arg("-print_final_stats=1")
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .with_context(|| format!("{name} does not start"))?;
    let log = fs::read(&log_path)?;
    let mut outcome = read_log(&String::from_utf8_lossy(&log));
    if !status.success() && outcome.finding.is_none() {
        outcome.finding = Some(Finding {
            message: format!("it ended with {status}; see {}", log_path.display()),
            input: None,
        });
    }
    Ok(outcome)
}

fn read_log(log: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut message = None;
    let mut panic = false;
    let mut input = None;
    for line in log.lines() {
        let statistic = |name: &str| line.strip_prefix(name)?.trim().parse().ok();
        if let Some(executions) = statistic("stat::number_of_executed_units:") {
            outcome.executions = executions;
        } else if let Some(per_second) = statistic("stat::average_exec_per_sec:") {
            outcome.per_second = per_second;
        } else if let Some((_, rest)) = line.split_once(" cov: ") {
            let reached = rest.split(' ').next().and_then(|number| number.parse().ok());
            outcome.coverage = reached.unwrap_or(outcome.coverage);
        } else if let Some((_, path)) = line.split_once("Test unit written to ") {
            input = Some(PathBuf::from(path));
        } else if line.contains("' panicked at ") || line.contains(") panicked at ") {
            panic = true;
            message = Some(line.to_owned());
        } else if std::mem::take(&mut panic)
            && let Some(message) = &mut message
        {
            // The line after a panic's place is its message.
            *message += " ";
            *message += line;
        } else if let Some((_, error)) = line.split_once(" ERROR: ") {
            message.get_or_insert_with(|| error.to_owned());
        }
    }
    // Inputs that are only slow are written too, and do not end the run.
    outcome.finding = message.map(|message| Finding { message, input });
    outcome
}

fn advice(name: &str, finding: &Finding, built: &Path) -> String {
    let Finding { message, input } = finding;
    let Some(input) = input else { return format!("{name}: {message}") };
    let (binary, input) = (built.join(name), input.display());
    let binary = binary.display();
    format!(
        "{name}: {message}\n  replay:  {binary} {input}\n  shorten: {binary} -minimize_crash=1 -max_total_time=60 {input}\n  keep:    copy the shortened input to tests/fuzz/cases/{name}, with the mistake as its name"
    )
}

fn table<'o>(rows: impl Iterator<Item = (&'o str, &'o Outcome)>) -> String {
    let mut text =
        format!("{:<12} {:>13} {:>9} {:>9}  result\n", "target", "executions", "per s", "coverage");
    let (mut executions, mut findings) = (0, 0);
    for (name, outcome) in rows {
        let result = match &outcome.finding {
            None => "ok",
            Some(finding) => &finding.message,
        };
        text += &format!(
            "{name:<12} {:>13} {:>9} {:>9}  {result}\n",
            outcome.executions, outcome.per_second, outcome.coverage
        );
        executions += outcome.executions;
        findings += u64::from(outcome.finding.is_some());
    }
    text + &format!("{:<12} {executions:>13} {:>20} findings: {findings}\n", "total", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_run_is_read() {
        let log = "INFO: seed corpus\n\
            #2097152\tpulse  cov: 371 ft: 1293 corp: 311/9Kb lim: 110 exec/s: 209715 rss: 42Mb\n\
            Slowest unit: 11 s:\n\
            artifact_prefix='x/'; Test unit written to x/slow-unit-1\n\
            Done 2500000 in 12 second(s)\n\
            stat::number_of_executed_units: 2500000\n\
            stat::average_exec_per_sec:     208333\n";
        let outcome = read_log(log);
        let expected =
            Outcome { executions: 2_500_000, per_second: 208_333, coverage: 371, finding: None };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn a_panic_and_a_hang_are_findings() {
        let log = "thread '<unnamed>' (7) panicked at targets/src/framer.rs:9:5:\n\
            more than there was\n\
            note: run with `RUST_BACKTRACE=1`\n\
            ==7== ERROR: libFuzzer: deadly signal\n\
            artifact_prefix='x/'; Test unit written to x/crash-1\n\
            stat::number_of_executed_units: 3\n";
        let outcome = read_log(log);
        let finding = outcome.finding.as_ref().unwrap();
        assert!(finding.message.ends_with("framer.rs:9:5: more than there was"));
        let text = advice("framer", finding, Path::new("b"));
        assert!(text.contains("replay:  b/framer x/crash-1"), "{text}");
        let rows = [("framer", &outcome)];
        assert!(table(rows.into_iter()).contains("findings: 1"));

        let hang = "==7== ERROR: libFuzzer: timeout after 31 seconds\n\
            artifact_prefix='x/'; Test unit written to x/timeout-1\n";
        let finding = read_log(hang).finding.unwrap();
        assert_eq!(finding.message, "libFuzzer: timeout after 31 seconds");
        assert_eq!(finding.input, Some(PathBuf::from("x/timeout-1")));
    }

    #[test]
    fn arguments_and_targets() {
        let read = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            read_arguments(&words)
        };
        let options = read(&["--minutes", "0.5", "framer", "--address"]).unwrap().unwrap();
        let expected =
            Arguments { minutes: Some(0.5), address: true, targets: vec!["framer".to_owned()] };
        assert_eq!(options, expected);
        assert!(read(&["--help"]).unwrap().is_none());
        for wrong in [&["--minutes"][..], &["--minutes", "-1"], &["--jobs"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        let manifest = include_str!("../../../../tests/fuzz/Cargo.toml");
        let all = targets(manifest).unwrap();
        assert!(all.iter().any(|target| target.input_bytes < INPUT_BYTES));
        let framer = chosen(all, &["framer".to_owned()]).unwrap();
        assert_eq!(framer.len(), 1);
        let unknown = chosen(framer, &["no".to_owned()]).err().unwrap();
        assert!(unknown.to_string().contains("there are framer"));
    }
}
