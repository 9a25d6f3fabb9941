//! `runner run --preset mlperf-accuracy`: the whole dataset once, judged, and then the speed of the
//! same plan.
//!
//! A submission to MLPerf Inference needs two modes. AccuracyOnly issues every sample of the
//! dataset once and keeps the answers; PerformanceOnly measures (`TestMode` in
//! `loadgen/test_settings.h` of mlcommons/inference at `b66003e`). Its compliance test TEST01 asks
//! whether the second mode's answers equal the first's; here the answers of both runs are compared.
//! `session` owns the run, `report` the meaning of the agreement.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use load::pace::Signal;
use model::exchange::Phase;
use reader::{Located, Problem};
use session::resolve::{Extent, MOST};
use session::{Faults, ResolvedRun, Source, resolve};

use crate::cli::agreement::agreed;
use crate::cli::failure::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::print::{tell, write_stdout};
use crate::cli::round::{Round, failed, measure};
use crate::cli::rules::preset_of;
use crate::cli::watch::Watch;
use runs::folder::RunFolder;
use search::preset::Preset;

pub(in crate::cli) const NAME: &str = "mlperf-accuracy";
/// The source of the first run's length, for messages and records.
const SETTER: &str = "--preset";
const SOURCE: &str =
    "https://github.com/mlcommons/inference/blob/master/loadgen/test_settings.h, TestMode";

struct Modes {
    samples: u64,
    accuracy: ResolvedRun,
    speed: ResolvedRun,
}

/// Measures every scenario in both modes. The exit code is the first failed run's.
pub(super) fn exec(
    sources: Vec<Source>,
    output: &Output,
    watch: &Watch,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    let mut faults = Faults::default();
    for source in sources {
        all.extend(modes(source, interrupt, &mut faults)?);
    }
    if interrupt.came() {
        return Ok(Exit::Interrupted.into());
    }
    Failure::of_faults(faults)?;
    tell(format_args!(
        "note: MLPerf's accuracy mode: every sample once, judged, then the speed of the same plan ({SOURCE})"
    ));
    let displays = watch.begin()?;
    let mut first_failure = None;
    for Modes { samples, accuracy, speed } in all {
        let name = accuracy.draft.name.clone();
        accuracy.remarks.iter().for_each(tell);
        let mut judged = Round::default();
        tell(format_args!("== {name}, accuracy: {samples} samples once =="));
        let code = measure(accuracy, output, &displays, interrupt, &mut judged);
        first_failure = first_failure.or(failed(code));
        if interrupt.came() {
            break;
        }
        if let Some(code) = is_whole(&judged, samples, output.allows_invalid()) {
            first_failure.get_or_insert(code);
        }
        let mut timed = Round::default();
        tell(format_args!("== {name}, speed =="));
        let code = measure(speed, output, &displays, interrupt, &mut timed);
        first_failure = first_failure.or(failed(code));
        if interrupt.came() {
            break;
        }
        if let (Some(judged), Some(timed)) = (judged.folder, timed.folder) {
            compare(&judged, &timed, output)?;
        }
    }
    Ok(first_failure.unwrap_or(ExitCode::SUCCESS))
}

pub(super) fn known(preset: &str) -> Result<(), Failure> {
    if preset == NAME {
        return Ok(());
    }
    Err(match Preset::find(preset) {
        Ok(known) if known.tiers.is_empty() => preset_of("sweep", preset),
        Ok(_) => preset_of("search", preset),
        Err(_) => Failure::command_line(format!(
            "there is no preset `{preset}` of a run; there is `{NAME}`"
        )),
    })
}

/// Resolves a scenario for both modes; `None` if it cannot, with the reason among the faults.
fn modes(
    mut source: Source,
    interrupt: &Interrupt,
    faults: &mut Faults,
) -> Result<Option<Modes>, Failure> {
    let speed = resolve(&source)?;
    if speed.scorers.is_empty() {
        let problem = Problem::new(format!(
            "{}: the accuracy mode needs a scorer, and the scenario has none",
            speed.draft.name
        ));
        faults.scenario.push(problem.help(
            "name one under [[scorers]], or with --plugin; `runner plugin list` shows the shipped ones",
        ));
        return Ok(None);
    }
    let signal = Signal::for_thread();
    interrupt.drawing(&signal);
    let extent = speed.extent(&signal);
    interrupt.done();
    let samples = match extent? {
        Extent::Stopped => return Ok(None),
        Extent::Samples(samples) if samples > 0 => samples,
        extent => {
            let reason = match extent {
                Extent::Endless => format!("gives more than {MOST} samples, so it has no whole"),
                _ => "has no sample".to_owned(),
            };
            let name = &speed.draft.name;
            let problem = Problem::new(format!("{name}: the dataset {reason}"));
            faults.scenario.push(problem.help(
                "the accuracy mode sends a whole dataset: use one of questions with references, such as qa",
            ));
            return Ok(None);
        }
    };
    let load = &mut source.scenario.load;
    load.requests = Some(Located::flag(SETTER, samples));
    load.sessions = None;
    load.duration = None;
    // A dataset that is read once gives up samples for requests that are not measured.
    load.warmup = Some(Located::flag(SETTER, 0));
    let accuracy = resolve(&source)?;
    Ok(Some(Modes { samples, accuracy, speed }))
}

/// Warns if the accuracy covers a part of the dataset; returns the code unless that is allowed.
fn is_whole(judged: &Round, samples: u64, allowed: bool) -> Option<ExitCode> {
    let answered = (judged.summary.as_ref()).map_or(0, |summary| summary.requests.successful);
    if answered == samples {
        return None;
    }
    tell(format_args!(
        "warning: {answered} of {samples} samples were answered, so the scores do not cover the whole dataset"
    ));
    (!allowed).then(|| Exit::Invalid.into())
}

/// True if samples of one name were the same requests in both runs. A dataset that numbers its
/// samples as it draws them gives them other names where a warm-up took some first.
fn are_named_alike(judged: &RunFolder, timed: &RunFolder) -> Result<bool, Failure> {
    let mut sent = HashMap::new();
    for exchange in judged.read()? {
        let exchange = exchange?;
        if exchange.phase == Phase::Measure {
            let sample = exchange.sample;
            sent.insert(sample.id, sample.request_digest);
        }
    }
    for exchange in timed.read()? {
        let exchange = exchange?;
        let other = sent.get(&exchange.sample.id);
        if exchange.phase == Phase::Measure
            && other.is_some_and(|other| *other != exchange.sample.request_digest)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares the answers of both modes, and saves the agreement with the run that measured speed.
fn compare(judged: &Path, timed: &Path, output: &Output) -> Result<(), Failure> {
    if !are_named_alike(&RunFolder::at(judged), &RunFolder::at(timed))? {
        tell(
            "note: the answers of both runs are not compared, because samples with the same name were different requests; where the warm-up takes samples of the dataset, name them by a column (for `custom`: columns.id), or set load.warmup = 0",
        );
        return Ok(());
    }
    let agreed = match agreed(timed, judged, &[], None) {
        Ok(agreed) => agreed,
        Err(failure) => {
            failure.report();
            return Ok(());
        }
    };
    RunFolder::at(timed).write_agreement(&agreed)?;
    if output.json { Ok(()) } else { write_stdout(&report::agreed::text(&agreed)) }
}
