//! From the sides named on the command line to a comparison: finds and reads folders of runs,
//! groups repeats, and reads and audits other tools' results.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::audit::documents;
use super::super::failure::Failure;
use super::super::print::tell;

use audit::claim::Claim;
use audit::published;
use compare::explain::Account;
use compare::variation::FEWEST;
use compare::{
    Choice, Condition, Measured, Side, Stated, Turns, Variation, blocks, figures, percentiles,
};
use result::figure::{Figure, Statistic};
use result::finding::{Severity, Verdict};
use result::summary::{RunFacts, Summary};
use result::threshold::Threshold;
use runs::Reported;
use runs::folder::{self, RunFolder};

/// The sides of a comparison, as read.
pub(in super::super) struct ReadSides {
    pub sides: Vec<Side>,
    pub figures: Vec<Figure>,
    pub blocks: Option<usize>,
}

/// A side before its records are read.
enum PendingSide {
    Runs(Vec<Run>),
    Claim(Box<Claim>, Vec<String>),
}

struct Run {
    folder: RunFolder,
    facts: RunFacts,
    reported: Reported,
}

/// Reads every side. Fails if something cannot be read, or is not a side.
pub(super) fn read(
    named: &[String],
    choice: &Choice,
    conditions: &[Condition],
    each: bool,
) -> Result<ReadSides, Failure> {
    let percentiles = wanted(choice, conditions);
    let mut found: Vec<PendingSide> = Vec::new();
    let mut groups: HashMap<String, usize> = HashMap::new();
    for name in named {
        for part in parts(name)? {
            let (runs, is_listed) = match part {
                Part::Claim(claim, doubts) => {
                    found.push(PendingSide::Claim(claim, doubts));
                    continue;
                }
                Part::Run(folder) => (vec![folder], false),
                Part::Listed(folders) => (folders, true),
            };
            // Who lists runs has grouped them, even if they are repeats of others.
            let first = runs.first().filter(|_| !each && !is_listed);
            let group = first.map(RunFolder::repeat).transpose()?.flatten();
            let runs = runs.into_iter().map(|folder| run(folder, &percentiles));
            let runs: Vec<Run> = runs.collect::<Result<_, Failure>>()?;
            let place = group.map(|repeat| *groups.entry(repeat.group).or_insert(found.len()));
            match place.and_then(|place| found.get_mut(place)) {
                Some(PendingSide::Runs(side)) => side.extend(runs),
                _ => found.push(PendingSide::Runs(runs)),
            }
        }
    }
    if found.len() < 2 {
        return Err(alone(&found));
    }
    cut(found, choice, &figures_of(conditions))
}

/// Reads sides whose runs are listed, even if these repeat others. Fails if a run cannot be read.
pub(in super::super) fn listed(
    sides: Vec<Vec<RunFolder>>,
    conditions: &[Condition],
) -> Result<ReadSides, Failure> {
    let choice = Choice::Headline;
    let percentiles = wanted(&choice, conditions);
    let side = |folders: Vec<RunFolder>| {
        let runs = folders.into_iter().map(|folder| run(folder, &percentiles));
        Ok(PendingSide::Runs(runs.collect::<Result<_, Failure>>()?))
    };
    let found = sides.into_iter().map(side);
    cut(found.collect::<Result<_, Failure>>()?, &choice, &figures_of(conditions))
}

/// Reads the sides of a paired run: the turns of each, or one run of each.
pub(in super::super) fn paired(
    sides: Vec<Vec<RunFolder>>,
    choice: &Choice,
    limits: &[Threshold],
) -> Result<ReadSides, Failure> {
    let limited = || limits.iter().filter_map(Threshold::difference).cloned();
    let turns = sides.first().map_or(0, Vec::len);
    let mut percentiles = percentiles(choice);
    percentiles.extend(limited().filter_map(|figure| percentile(&figure)));
    let read = |folders: Vec<RunFolder>| {
        let runs = folders.into_iter().map(|folder| run(folder, &percentiles));
        runs.collect::<Result<Vec<Run>, Failure>>()
    };
    let found: Vec<Vec<Run>> = sides.into_iter().map(read).collect::<Result<_, _>>()?;
    let limits: Vec<Figure> = limited().collect();
    if turns == 1 {
        let found = found.into_iter().map(PendingSide::Runs).collect();
        let mut read = cut(found, choice, &limits)?;
        read.figures = with(read.figures, &limits);
        return Ok(read);
    }
    let summaries: Vec<&Summary> =
        found.iter().flatten().map(|run| &run.reported.summary).collect();
    let figures = with(figures(choice, &summaries, &[]), &limits);
    let sides = found.into_iter().map(|runs| {
        let apart = |Run { folder, facts, reported }| (folder, (reported, facts));
        let (folders, rest): (Vec<RunFolder>, Vec<_>) = runs.into_iter().map(apart).unzip();
        let runs = folders.iter().zip(rest);
        let runs = runs.map(|(folder, (reported, facts))| Ok((reported, facts, folder.read()?)));
        let runs = runs.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Side::Turns(Turns::read(runs, &figures)?))
    });
    let sides = sides.collect::<Result<_, Failure>>()?;
    // Fewer show no variation.
    Ok(ReadSides { sides, figures, blocks: (turns >= FEWEST).then_some(turns) })
}

/// Reads one result to explain. Fails if there are several.
pub(in super::super) fn account(name: &str) -> Result<Account, Failure> {
    let mut parts = parts(name)?;
    let several = |count: usize| {
        Failure::input(format!(
            "{name}: holds {count} runs, expected one; name the folder of one run"
        ))
    };
    match (parts.pop(), parts.len()) {
        (Some(Part::Claim(claim, doubts)), 0) => Ok(Account::of_claim(*claim, doubts)),
        (Some(Part::Run(folder)), 0) => {
            let Run { folder, facts, reported } = run(folder, &[50.0, 99.0])?;
            Ok(Account::of_run(name.to_owned(), &reported, &facts, folder.read()?)?)
        }
        (Some(Part::Listed(folders)), _) => Err(several(folders.len())),
        (_, others) => Err(several(others + 1)),
    }
}

/// The percentiles of the figures and of the conditions.
fn wanted(choice: &Choice, conditions: &[Condition]) -> Vec<f64> {
    let mut wanted = percentiles(choice);
    wanted.extend(conditions.iter().filter_map(|condition| percentile(&condition.figure)));
    wanted
}

fn figures_of(conditions: &[Condition]) -> Vec<Figure> {
    conditions.iter().map(|condition| condition.figure.clone()).collect()
}

fn percentile(figure: &Figure) -> Option<f64> {
    match figure {
        Figure::Of(_, Statistic::Percentile(percent)) => Some(*percent),
        _ => None,
    }
}

fn with(mut figures: Vec<Figure>, limits: &[Figure]) -> Vec<Figure> {
    let further: Vec<Figure> =
        limits.iter().filter(|limit| !figures.contains(limit)).cloned().collect();
    figures.extend(further);
    figures
}

/// Reads the records, for these figures and others that are judged apart from them.
fn cut(found: Vec<PendingSide>, choice: &Choice, further: &[Figure]) -> Result<ReadSides, Failure> {
    let summaries: Vec<&Summary> = (found.iter())
        .flat_map(|side| match side {
            PendingSide::Runs(runs) => runs.iter().map(|run| &run.reported.summary).collect(),
            PendingSide::Claim(..) => Vec::new(),
        })
        .collect();
    let claims: Vec<&Claim> = (found.iter())
        .filter_map(|side| match side {
            PendingSide::Claim(claim, _) => Some(claim.as_ref()),
            PendingSide::Runs(_) => None,
        })
        .collect();
    let figures = figures(choice, &summaries, &claims);
    let requests = summaries.iter().map(|summary| summary.requests.total);
    let fewest = requests.chain(claims.iter().filter_map(|claim| Stated::requests(claim))).min();
    let blocks = fewest.and_then(blocks);
    let wanted = with(figures.clone(), further);
    let mut sides: Vec<Side> = Vec::new();
    for side in found {
        // Blocks are compared where a side is one run.
        let baseline = match sides.first() {
            Some(Side::Runs(runs)) if runs.len() == 1 => Some(runs[0].places()),
            _ => None,
        };
        sides.push(match side {
            PendingSide::Claim(claim, doubts) => {
                Side::Claim(Box::new(Stated::new(*claim, doubts, blocks)))
            }
            PendingSide::Runs(runs) => {
                let read = |Run { folder, facts, reported }| {
                    let baseline = baseline.as_ref();
                    Measured::read(reported, &facts, &wanted, blocks, baseline, folder.read()?)
                };
                Side::Runs(runs.into_iter().map(read).collect::<Result<_, _>>()?)
            }
        });
    }
    Ok(ReadSides { sides, figures, blocks })
}

/// Parses the variation of runs: a share such as `2%`, or a folder with at least two repeats.
pub(super) fn variation(given: &str, figures: &[Figure]) -> Result<Variation, Failure> {
    if let Some(share) = share(given) {
        return Ok(Variation::Assumed { share });
    }
    let path = Path::new(given);
    if !path.is_dir() {
        return Err(Failure::command_line(format!(
            "--run-variation {given}: expected a share from 0% to 100%, such as 2%, or a folder with repeats of the scenario"
        )));
    }
    let percentiles: Vec<f64> = figures.iter().filter_map(percentile).collect();
    let wrong = |message: String| Failure::input(format!("--run-variation {given}: {message}"));
    let mut runs: Vec<Reported> = Vec::new();
    for folder in folder::runs(path)? {
        runs.push(run(folder, &percentiles)?.reported);
    }
    // Repeats have the same load and engine.
    if let Some(other) = runs.iter().find(|run| run.plan != runs[0].plan) {
        return Err(wrong(format!(
            "{} and {} are not repeats of one scenario against one engine; name a folder with only such repeats (runner run --repeat N --same-requests)",
            runs[0].folder, other.folder
        )));
    }
    if let Some(invalid) = runs.iter().find(|run| run.summary.verdict == Verdict::Invalid) {
        return Err(wrong(format!(
            "the run {} is invalid and cannot show how runs vary; leave it out",
            invalid.folder
        )));
    }
    let scenario = runs.first().map_or_else(String::new, |run| run.plan.name.clone());
    let summaries: Vec<Summary> = runs.into_iter().map(|run| run.summary).collect();
    Variation::of_repeats(given, &scenario, &summaries, figures).ok_or_else(|| {
        Failure::input(format!(
            "--run-variation {given}: the folder holds {} run; at least two repeats show how runs vary (runner run --repeat N --same-requests)",
            summaries.len()
        ))
    })
}

/// A share such as `2%`, at most 100%.
pub(super) fn share(text: &str) -> Option<f64> {
    let share = model::number::hundredths(text.trim().strip_suffix('%')?)?;
    (0.0..=1.0).contains(&share).then_some(share)
}

/// The meaning of a name on the command line.
enum Part {
    /// A run, which forms a side with its repeats.
    Run(RunFolder),
    /// Runs that the user lists as one side.
    Listed(Vec<RunFolder>),
    /// Another tool's result, and the reasons to doubt it.
    Claim(Box<Claim>, Vec<String>),
}

fn parts(name: &str) -> Result<Vec<Part>, Failure> {
    let path = Path::new(name);
    if path.is_dir() {
        let runs = folder::runs(path)?;
        return Ok(runs.into_iter().map(Part::Run).collect());
    }
    let several: Vec<PathBuf> = name.split(',').map(PathBuf::from).collect();
    if several.len() > 1 && several.iter().any(|path| path.is_dir()) {
        let mut runs = Vec::new();
        for path in &several {
            if !path.is_dir() {
                return Err(Failure::input(format!(
                    "{name}: `{}` is no folder; a list with commas names the folders of runs that form one side",
                    path.display()
                )));
            }
            runs.extend(folder::runs(path)?);
        }
        return Ok(vec![Part::Listed(runs)]);
    }
    let (claim, doubts) = claim(name)?;
    Ok(vec![Part::Claim(Box::new(claim), doubts)])
}

/// The run in a folder, with these percentiles in addition to its own.
fn run(folder: RunFolder, percentiles: &[f64]) -> Result<Run, Failure> {
    let mut facts = folder.facts()?;
    facts.run.percentiles.extend_from_slice(percentiles);
    // Runs are compared by their answered requests, and a percentile that failures make infinite is
    // judged as such.
    facts.run.failures_as_infinite = false;
    let name = folder.path().file_name();
    let reported = Reported {
        folder: name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        plan: folder.plan()?,
        environment: folder.environment()?,
        status: folder.status()?,
        summary: folder.summarize(&facts)?,
    };
    if let Some(damage) = &facts.run.damage {
        tell(format_args!(
            "warning: the records of the run in {} are damaged: {}",
            folder.path().display(),
            damage.label()
        ));
    }
    if reported.status.is_none() {
        tell(format_args!(
            "note: the run in {} did not finish: it was killed or still runs; its records so far are compared",
            folder.path().display()
        ));
    }
    Ok(Run { folder, facts, reported })
}

/// Another tool's result, and the reasons to doubt it. `#2` picks the second of several in a file.
fn claim(name: &str) -> Result<(Claim, Vec<String>), Failure> {
    let numbered = name.rsplit_once('#').and_then(|(file, number)| {
        let number: usize = number.parse().ok().filter(|number| *number > 0)?;
        Some((file, number - 1))
    });
    let numbered = numbered.filter(|_| !Path::new(name).exists());
    let file = numbered.map_or(name, |(file, _)| file).to_owned();
    let mut read = documents(std::slice::from_ref(&file))?;
    let claims = read.pop().map(|document| document.claims).unwrap_or_default();
    let place = match (numbered, claims.len()) {
        (Some((_, place)), many) if place < many => place,
        (None, 1) => 0,
        _ => return Err(which(&file, &claims)),
    };
    // A published result is checked against its whole page, and a result in a file against its
    // neighbours.
    let (beside, place) = if file.starts_with(published::PREFIX) {
        let all = published::all();
        let same = |claim: &Claim| claim.source == claims[place].source;
        let place = all.iter().position(same).unwrap_or_default();
        (all, place)
    } else {
        (claims, place)
    };
    let audited = audit::claims(&beside).swap_remove(place);
    let doubts = audited.findings.iter().filter(|finding| finding.severity > Severity::Note);
    let doubts = doubts.map(|finding| format!("{}: {}", finding.severity.name(), finding.seen));
    Ok((audited.claim, doubts.collect()))
}

/// The error that a file holds several results, or fewer than the chosen number.
fn which(file: &str, claims: &[Claim]) -> Failure {
    const TOLD: usize = 12;
    let is_published = file.starts_with(published::PREFIX);
    let listed = (1..).zip(claims).take(TOLD).map(|(number, claim)| {
        let source = &claim.source;
        if is_published {
            return source.file.clone();
        }
        let above = source.headings.join(", ");
        format!(
            "{file}#{number} ({}{}{above})",
            source.place(),
            if above.is_empty() { "" } else { ": " }
        )
    });
    let listed = listed.collect::<Vec<_>>().join("; ");
    let rest = match claims.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Failure::input(format!(
        "{file} holds {} results; name one of them: {listed}{rest}",
        claims.len()
    ))
}

/// The error that there is nothing to compare with.
fn alone(found: &[PendingSide]) -> Failure {
    let message = match found.first() {
        Some(PendingSide::Runs(runs)) if runs.len() > 1 => {
            "all of these runs are repeats and form one side; add another run, or compare them with --each"
        }
        _ => "a comparison needs at least two sides; name a second side",
    };
    Failure::command_line(message)
}
