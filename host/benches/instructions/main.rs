//! Instructions that a unit of work takes: `host/benches/instructions.sh`, or
//! `cargo bench --bench instructions [WORKLOAD...] [--bless]`. It needs valgrind.
//!
//! Time on a shared machine tells a change of a tenth at best; instructions are the same on every
//! run, so a change of a twentieth shows. Each workload runs under callgrind in a process of its
//! own, with some units and with twice their number; the difference is the cost of the units,
//! without the start. Counts are compared with `instructions.toml`, which holds the counts of each
//! build by its name: another profile or architecture has other counts.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// The file of the counts to compare with.
const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/instructions.toml");

const PREAMBLE: &str = "\
# Instructions a unit, by build. `host/benches/instructions.sh --bless` writes the counts of its build.
# A count that is higher by more than the tolerance, as a share, is a failure.

";

/// The counts to compare with.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Baseline {
    tolerance: f64,
    #[serde(default)]
    builds: BTreeMap<String, BTreeMap<String, u64>>,
}

fn main() -> ExitCode {
    match exec() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the stack that anyhow adds: the words say it.
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn exec() -> Result<()> {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work", name, units, artifacts] => {
            return workloads::work(name, units.parse()?, Path::new(artifacts));
        }
        // What `cargo test` does with benches: see that they start.
        ["--test"] => return Ok(()),
        _ => {}
    }
    let (flags, wanted): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|word| word.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| *flag != "--bless") {
        bail!("`{unknown}` is no flag; there is --bless");
    }
    let known = |name: &String| workloads::ALL.iter().any(|workload| workload.name == name);
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        let names: Vec<&str> = workloads::ALL.iter().map(|workload| workload.name).collect();
        bail!("`{unknown}` is no workload; there are {}", names.join(", "));
    }
    compare(&wanted, !flags.is_empty())
}

/// Counts and compares; writes the counts instead where they are to be blessed.
fn compare(wanted: &[String], bless: bool) -> Result<()> {
    let build = build()?;
    let text = std::fs::read_to_string(BASELINE).with_context(|| BASELINE.to_owned())?;
    let mut baseline: Baseline = toml::from_str(&text).with_context(|| BASELINE.to_owned())?;
    let artifacts = tempfile::tempdir()?;
    println!("instructions a unit, build `{build}`");
    let mut counted = BTreeMap::new();
    for workload in workloads::ALL {
        if wanted.is_empty() || wanted.iter().any(|name| name == workload.name) {
            let count = workload.count(artifacts.path())?;
            let before = baseline.builds.get(&build).and_then(|counts| counts.get(workload.name));
            let change = before.map(|before| {
                let change = count as f64 / *before as f64 - 1.0;
                format!("  {:+.1} % of {before}", change * 100.0)
            });
            println!(
                "{:12} {count:8}  {}{}",
                workload.name,
                workload.unit,
                change.unwrap_or_default()
            );
            counted.insert(workload.name.to_owned(), count);
        }
    }
    if bless {
        baseline.builds.entry(build).or_default().extend(counted);
        let text = PREAMBLE.to_owned() + &toml::to_string(&baseline)?;
        return std::fs::write(BASELINE, text).with_context(|| BASELINE.to_owned());
    }
    let Some(before) = baseline.builds.get(&build) else {
        bail!(
            "nothing to compare with: {BASELINE} has no counts of build `{build}`; --bless writes them"
        );
    };
    let limit = |before: u64| before as f64 * (1.0 + baseline.tolerance);
    let worse: Vec<String> = counted
        .iter()
        .filter_map(|(name, count)| match before.get(name) {
            None => Some(format!("{name}: nothing to compare with")),
            Some(before) if *count as f64 > limit(*before) => {
                Some(format!("{name}: {count} instead of {before}"))
            }
            Some(_) => None,
        })
        .collect();
    ensure!(
        worse.is_empty(),
        "more instructions than before, by more than {} %: {}. Where that is meant to be, --bless writes the counts anew",
        baseline.tolerance * 100.0,
        worse.join("; ")
    );
    Ok(())
}

/// The build's name: `INSTRUCTIONS_BUILD` or cargo's folder (`release`), and the architecture.
fn build() -> Result<String> {
    let folder = || {
        let program = std::env::current_exe()?;
        let folder = program.ancestors().find(|path| !path.ends_with("deps") && path.is_dir());
        let name = folder.and_then(Path::file_name).context("no folder")?;
        Ok::<_, anyhow::Error>(name.to_string_lossy().into_owned())
    };
    let profile = std::env::var("INSTRUCTIONS_BUILD").or_else(|_| folder())?;
    Ok(format!("{profile}-{}", std::env::consts::ARCH))
}

impl workloads::Workload {
    /// Instructions a unit.
    fn count(&self, artifacts: &Path) -> Result<u64> {
        // The first use compiles a plugin, the second finds it compiled.
        self.instructions(self.units, artifacts)?;
        let once = self.instructions(self.units, artifacts)?;
        let twice = self.instructions(2 * self.units, artifacts)?;
        Ok(twice.saturating_sub(once) / self.units)
    }

    /// Instructions of a process that does this number of units.
    fn instructions(&self, units: u64, artifacts: &Path) -> Result<u64> {
        let program: PathBuf = std::env::current_exe()?;
        let mut command = Command::new("valgrind");
        command
            // Plugins are compiled to code that is written into memory.
            .args(["--tool=callgrind", "--smc-check=all-non-file"])
            .arg("--callgrind-out-file=/dev/null")
            .arg(program)
            .args(["work", self.name, &units.to_string()])
            .arg(artifacts);
        let done = command.output().context("cannot start valgrind; is it installed?")?;
        let stderr = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{command:?}: {}\n{stderr}", done.status);
        stderr
            .lines()
            .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
            .with_context(|| format!("{command:?} printed no count:\n{stderr}"))
    }
}
