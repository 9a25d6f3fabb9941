//! `runner record --fit`: a synthetic scenario with a recording's distributions, and its distance
//! from the recording.

use std::path::{Path, PathBuf};

use load::pace::Signal;
use model::number::{change, fixed, percent, short};
use recorder::{Compared, Recorded, Workload, compare};
use session::outlook::{DrawnSession, Question};
use session::resolve;

use crate::cli::destination::Destination;
use crate::cli::failure::Failure;
use crate::cli::flags::Flags;
use crate::cli::print::{columns, tell, write_stdout};
use crate::cli::sources::{Text, source_of};

/// Requests of the fitted scenario that are compared with the recording, about.
const DRAWN: u64 = 20_000;

/// Writes the scenario of these rows to `path` and prints its distance from the recording.
pub(super) fn write(path: &Path, rows: &[PathBuf], tokenizer: Option<&str>) -> Result<(), Failure> {
    let recorded = Recorded::read(rows)?;
    let name = rows[0].file_name().unwrap_or_default().to_string_lossy();
    let scenario = recorded.scenario(&name, tokenizer).ok_or_else(|| {
        Failure::input(format!("`{}` has no row, so nothing can be fitted", rows[0].display()))
    })?;
    let mut out = Destination::open(path)?;
    let text = Text { name: path.display().to_string(), folder: None, text: scenario.clone() };
    let distance = table(&compare(&recorded.workload, &drawn(text)?));
    let comments = distance.lines().map(|line| format!("#{line}\n"));
    let (first, rest) = scenario.split_once('\n').unwrap_or((&scenario, ""));
    out.text(&format!("{first}\n{}{rest}", comments.collect::<String>()))?;
    out.finish()?;
    write_stdout(&distance)?;
    tell(format_args!("the fitted scenario is in {}", path.display()));
    tell(format_args!("run: runner {} --base-url URL --backend vllm --ignore-eos", path.display()));
    Ok(())
}

/// The workload that a scenario would send.
fn drawn(text: Text) -> Result<Workload, Failure> {
    let (source, _) = source_of(Some(text), &Flags::default())?;
    let (run, _) = resolve(&source)?.unasked();
    let question =
        Question { at_most: Some(DRAWN), show: 0, cut: None, answers: Default::default() };
    let mut workload = Workload::default();
    let outlook = run.outlook(&question, &Signal::for_thread(), |session| {
        add(&mut workload, session);
        Ok::<_, Failure>(())
    })?;
    workload.cached = outlook.cache.map_or(0.0, |cache| cache.share);
    Ok(workload)
}

fn add(workload: &mut Workload, session: &DrawnSession) {
    workload.turns.push(session.requests.len() as f64);
    workload.starts.extend(session.due.map(|due| due.as_secs_f64()));
    for request in &session.requests {
        workload.add(request.input_tokens.unwrap_or(0), request.output_tokens.unwrap_or(0).into());
        let pauses = request.given.after.iter().map(|after| after.delay as f64 / 1e9);
        workload.pauses.extend(pauses);
    }
}

/// The distance by statistic, a line each.
fn table(rows: &[Compared]) -> String {
    let head = ["", "", "recorded", "fitted", "difference", "KS distance"].map(str::to_owned);
    let mut before = "";
    let lines = rows.iter().map(|row| {
        let is_share = row.statistic.starts_with("share");
        let number = |value: Option<f64>| match value {
            Some(share) if is_share => percent(share),
            Some(value) => short(value, 4),
            None => "-".to_owned(),
        };
        let difference = match (row.recorded, row.fitted) {
            (Some(own), Some(other)) if is_share => {
                format!("{:+.1} points", (other - own) * 100.0)
            }
            (Some(own), Some(other)) if row.statistic.contains("correlation") => {
                format!("{:+.2}", other - own)
            }
            (Some(own), Some(other)) if own != 0.0 => change((other / own - 1.0) * 100.0),
            _ => "-".to_owned(),
        };
        let name = if row.name == before { "" } else { row.name };
        before = row.name;
        let distance = row.distance.map_or_else(String::new, |distance| fixed(distance, 3));
        [name, row.statistic, &number(row.recorded), &number(row.fitted), &difference, &distance]
            .map(str::to_owned)
    });
    let rows: Vec<_> = [head].into_iter().chain(lines).collect();
    columns(&rows)
}
