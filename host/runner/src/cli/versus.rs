//! `runner run --versus` and `[[sides]]`: the same requests to several servers, and the
//! differences.
//!
//! Each side and turn is a run with a folder of its own, below a folder of the paired run.
//! `paired.json` there lists the runs measured so far. `runner compare FOLDER` compares them again,
//! also after a crash. `session::paired` owns the order, `compare` the differences.

use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::compare::{conclude as conclude_comparison, sides};
use super::destination::replace;
use super::failure::{Exit, Failure};
use super::interrupt::Interrupt;
use super::measure::{Place, measured, measured_together};
use super::output::Output;
use super::print::{json, tell, write_stdout};
use super::round::{conclude, failed};
use super::watch::{Displays, Watch};
use compare::{Choice, Compared, Kind, Options, Variation, compare, limits};
use model::connection::PairOrder;
use reader::Located;
use report::compared;
use result::figure::Figure;
use result::threshold::Threshold;
use runs::folder::RunFolder;
use scenario::Side;
use scenario::plan::Plan;
use session::paired::{ChosenOrder, MeasuredSide, Pairing, Servers};
use session::{Faults, MeasuredRun, Source, resolve};

/// The file that lists the runs of a paired run.
pub(super) const FILE: &str = "paired.json";

/// The content of that file.
#[derive(Serialize, Deserialize)]
struct Paired {
    chosen: ChosenOrder,
    /// The limits of the differences.
    limits: Vec<Threshold>,
    sides: Vec<MeasuredSide>,
}

/// A further side from the command line: `URL`, or `NAME=URL`.
pub(super) fn further(texts: &[String]) -> Vec<Located<Side>> {
    let side = |text: &String| {
        let flag = |text: &str| Located::flag("--versus", text.to_owned());
        let named = text.split_once('=').filter(|(name, _)| !name.contains([':', '/']));
        let (name, url) = named.map_or((None, text.as_str()), |(name, url)| (Some(name), url));
        let urls = url.split(',').map(flag).collect();
        let side = Side {
            name: name.map(flag),
            base_url: Some(Located::flag("--versus", urls)),
            ..Side::default()
        };
        Located::flag("--versus", side)
    };
    texts.iter().map(side).collect()
}

/// The servers of a scenario and of `further` sides.
pub(super) fn servers(source: Source, further: &[Located<Side>]) -> Result<Servers, Failure> {
    let failure = |problems| Failure::from(Faults { scenario: problems, plugins: Vec::new() });
    Pairing::of(source, further).map_err(failure)
}

/// The order of a paired run, and the plan of its first side.
pub(super) fn chosen(pairing: &Pairing) -> Result<(ChosenOrder, Plan), Failure> {
    let mut plans = Vec::new();
    // All sides are resolved, to find the mistakes in each before anything is measured.
    for (name, source) in &pairing.sides {
        let resolved = resolve(source)?;
        resolved.remarks.iter().for_each(|remark| tell(format_args!("{name}: {remark}")));
        plans.push(resolved.draft);
    }
    let plan = plans.swap_remove(0);
    let chosen = pairing.order(&plan).map_err(|why| {
        Failure::input(format!(
            "`paired.order`: turns are not possible: {why}; write \"together\", or change the load"
        ))
    })?;
    Ok((chosen, plan))
}

pub(super) fn described(chosen: &ChosenOrder) -> String {
    let ChosenOrder { order, turns, because } = chosen;
    match order {
        PairOrder::Turns => format!("sides take {turns} turns each, because {because}"),
        PairOrder::Together => format!("all sides are measured together, because {because}"),
    }
}

/// Measures and compares all sides. The exit code is the first failure's, else the comparison's.
pub(super) fn exec(
    pairing: &Pairing,
    output: &Output,
    watch: &Watch,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let (chosen, plan) = chosen(pairing)?;
    tell(format_args!("note: {}", described(&chosen)));
    let displays = watch.begin()?;
    let name = format!("{} paired", plan.name);
    let parent = &output.within.output_dir;
    let folder = RunFolder::create(parent, &name, &jiff::Timestamp::now())?.path().to_owned();
    let sides = pairing.sides.iter().map(|(name, _)| name.clone());
    let sides = sides.map(|name| MeasuredSide { name, runs: Vec::new() }).collect();
    let mut paired = Paired { chosen, limits: pairing.limits.clone(), sides };
    paired.write(&folder)?;
    interrupt.between_runs(Some("comparing the turns so far"));
    let mut first_failure = None;
    for turn in 0..paired.chosen.turns {
        if interrupt.came() {
            break;
        }
        let (runs, failure) = paired.turn(pairing, (turn, &plan), &folder, (&displays, interrupt));
        interrupt.done();
        for (side, run) in runs {
            let own = &mut paired.sides[side];
            let path = run.folder.path().strip_prefix(&folder).unwrap_or(run.folder.path());
            own.runs.push(path.display().to_string());
            tell(format_args!("{} {}: {}", own.name, turn + 1, line(&run)));
            let failed = failed(conclude(run, interrupt, output));
            first_failure = first_failure.or(failed);
        }
        paired.write(&folder)?;
        if let Some(failure) = failure {
            first_failure = first_failure.or(Some(failure.report()));
            break;
        }
    }
    interrupt.between_runs(None);
    let compared = paired.compare(&folder, &Choice::Headline, output.allows_invalid());
    let compared = match (compared, first_failure) {
        (Ok(compared), _) => compared,
        (Err(failure), None) => return Err(failure),
        (Err(failure), Some(first)) => {
            failure.report();
            return Ok(first);
        }
    };
    let page = compared::page(&compared);
    replace(&folder.join("comparison.json"), json(&compared)?.as_bytes())?;
    replace(&folder.join("comparison.html"), page.html().as_bytes())?;
    write_stdout(&if output.json { json(&compared)? } else { page.text() })?;
    tell(format_args!("result: {}", folder.display()));
    match first_failure {
        _ if interrupt.came() => Ok(Exit::Interrupted.into()),
        Some(failure) => Ok(failure),
        None => conclude_comparison(&compared),
    }
}

/// The runs of a paired run's folder, compared again; `None` for another folder.
pub(super) fn compare_again(
    folder: &Path,
    choice: &Choice,
    allows_invalid: bool,
) -> Option<Result<Compared, Failure>> {
    let path = folder.join(FILE);
    let text = std::fs::read(&path).ok()?;
    let paired: Result<Paired, _> = serde_json::from_slice(&text);
    Some(match paired {
        Ok(paired) => paired.compare(folder, choice, allows_invalid),
        Err(cause) => Err(Failure::read("", &path)(cause)),
    })
}

/// The first figures of a run, in a line.
fn line(run: &MeasuredRun) -> String {
    let summary = &run.summary;
    let figure = |name: &str| {
        let figure: Figure = name.parse().ok()?;
        Some(format!("{name} {:.2} {}", figure.read(summary)?, figure.unit()))
    };
    let figures = ["ttft.median", "tpot.median", "throughput.output-tokens-per-s"];
    let figures: Vec<String> = figures.into_iter().filter_map(figure).collect();
    let requests = &summary.requests;
    format!("{} of {} answered, {}", requests.successful, requests.total, figures.join(", "))
}

impl Paired {
    fn write(&self, folder: &Path) -> Result<(), Failure> {
        replace(&folder.join(FILE), json(self)?.as_bytes())
    }

    /// Measures a turn of every side, up to the first failure. Sides take turns at being first.
    fn turn(
        &self,
        pairing: &Pairing,
        (turn, plan): (u64, &Plan),
        folder: &Path,
        (displays, interrupt): (&Displays, &Interrupt),
    ) -> (Vec<(usize, MeasuredRun)>, Option<Failure>) {
        let many = self.sides.len();
        let run = |side: usize| {
            resolve(&pairing.run(side, turn, plan, &self.chosen)).map_err(Failure::from)
        };
        if self.chosen.order == PairOrder::Together {
            let resolved: Result<Vec<_>, Failure> = (0..many).map(run).collect();
            let measured = resolved
                .and_then(|resolved| measured_together(resolved, folder, displays, interrupt));
            return match measured {
                Ok(measured) => (measured.into_iter().enumerate().collect(), None),
                Err(failure) => (Vec::new(), Some(failure)),
            };
        }
        let mut runs = Vec::new();
        for place in 0..many {
            let side = (place + turn as usize) % many;
            if interrupt.came() {
                break;
            }
            let within = folder.join(&self.sides[side].name);
            let place = Place { within: &within, repeat: None, overseer: None };
            let made =
                run(side).and_then(|resolved| measured(resolved, place, displays, interrupt));
            interrupt.done();
            match made {
                Ok(made) => runs.push((side, made)),
                Err(failure) => return (runs, Some(failure)),
            }
        }
        (runs, None)
    }

    /// Compares the turns that every side has finished.
    fn compare(
        &self,
        folder: &Path,
        choice: &Choice,
        allows_invalid: bool,
    ) -> Result<Compared, Failure> {
        let turns = self.sides.iter().map(|side| side.runs.len()).min().unwrap_or_default();
        if turns == 0 {
            return Err(Failure::input(
                "no turn of all sides was measured, so nothing is compared",
            ));
        }
        let side = |side: &MeasuredSide| {
            side.runs.iter().take(turns).map(|run| RunFolder::at(&folder.join(run))).collect()
        };
        let read = sides::paired(self.sides.iter().map(side).collect(), choice, &self.limits)?;
        let options = Options {
            names: self.sides.iter().map(|side| side.name.clone()).collect(),
            allowed: allows_invalid.then_some(Kind::Verdict).into_iter().collect(),
            variation: Some(Variation::Shared),
            ..Options::new(read.figures, read.blocks)
        };
        let mut compared = compare(&read.sides, &options)
            .map_err(|obstacles| Failure::several(Exit::Input, compared::refusal(&obstacles)))?;
        compared.conditions = limits::outcomes(&compared, &self.limits);
        Ok(compared)
    }
}
