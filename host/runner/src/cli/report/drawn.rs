//! The pages and pictures that are drawn of runs.

use std::path::Path;

use crate::cli::destination::Destination;
use crate::cli::failure::Failure;
use compare::{self, Choice, Measured, Options, Side};
use model::units::Nanos;
use report::chart::{Chart, Look, Theme, Width, svg};
use report::charts::{Charts, RunView, labels};
use report::page::{self, Comparison};
use report::view::{View, grain};
use runs::folder::RunFolder;

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    Svg,
    Png,
}

impl Picture {
    fn extension(self) -> &'static str {
        match self {
            Picture::Svg => "svg",
            Picture::Png => "png",
        }
    }
}

/// Refuses a chart by its name where no pictures are drawn.
pub fn check_chart(name: Option<&str>, is_drawn: bool) -> Result<(), Failure> {
    let refused = name.filter(|_| !is_drawn);
    let wrong = |name| format!("--chart {name} only works with --format svg or --format png");
    refused.map_or(Ok(()), |name| Err(Failure::command_line(wrong(name))))
}

/// Writes the page of these runs, with time slices of this length if one is given.
pub fn page(
    runs: &[RunFolder],
    time_slice: Option<Nanos>,
    out: &mut Destination,
) -> Result<(), Failure> {
    let shown = shown(runs, time_slice)?;
    let compared = match runs.len() {
        1 => None,
        _ => Some(compared(runs, &shown)?),
    };
    let page = page::page(&shown, compared.as_ref());
    out.text(&page.html()).map(drop)
}

pub fn pictures(
    runs: &[RunFolder],
    form: Picture,
    name: Option<&str>,
    output: &Path,
) -> Result<(), Failure> {
    let charts = Charts::new(&shown(runs, None)?);
    let charts: Vec<&Chart> = charts.iter().collect();
    write_charts(&charts, form, name, output)
}

pub fn write_charts(
    charts: &[&Chart],
    form: Picture,
    name: Option<&str>,
    output: &Path,
) -> Result<(), Failure> {
    let names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
    let Some(name) = name else { return all(charts, form, &names, output) };
    let Some(chart) = charts.iter().find(|chart| chart.name == name) else {
        let near = model::nearest(name, names.iter().copied());
        let near = near.map(|near| format!("; did you mean `{near}`?"));
        return Err(Failure::command_line(format!(
            "there is no chart `{name}`{}; there are {}",
            near.unwrap_or_default(),
            names.join(", ")
        )));
    };
    write_chart(chart, form, output)
}

fn write_chart(chart: &Chart, form: Picture, path: &Path) -> Result<(), Failure> {
    let mut out = Destination::open(path)?;
    out.bytes(&drawn(chart, form)?)?;
    out.finish()
}

fn all(charts: &[&Chart], form: Picture, names: &[&str], folder: &Path) -> Result<(), Failure> {
    if folder == Path::new("-") {
        return Err(Failure::command_line(format!(
            "there are several charts; name one with --chart ({}), or give a folder for all of them with --output",
            names.join(", ")
        )));
    }
    std::fs::create_dir_all(folder)
        .map_err(Failure::write(folder, "; give a writable folder with --output"))?;
    for chart in charts {
        let name = format!("{}.{}", chart.name, form.extension());
        write_chart(chart, form, &folder.join(name))?;
    }
    Ok(())
}

fn drawn(chart: &Chart, form: Picture) -> Result<Vec<u8>, Failure> {
    let look = Look {
        width: Width::Wide,
        log: chart.log.is_some_and(|log| log.first),
        alone: Some(Theme::Light),
    };
    let drawing = svg(chart, look);
    match form {
        Picture::Svg => Ok(format!("{drawing}\n").into_bytes()),
        Picture::Png => pixels(&drawing),
    }
}

#[cfg(feature = "pictures")]
fn pixels(drawing: &str) -> Result<Vec<u8>, Failure> {
    let drawn = report::chart::png::png(drawing);
    drawn.map_err(Failure::cannot("write the report"))
}

#[cfg(not(feature = "pictures"))]
fn pixels(_: &str) -> Result<Vec<u8>, Failure> {
    Err(Failure::not_built("charts as PNG (SVG needs nothing more)"))
}

/// Compares each further run with the first, as `runner compare --each` does.
fn compared(runs: &[RunFolder], shown: &[RunView]) -> Result<Comparison, Failure> {
    let figures = compare::figures(&Choice::Headline, &[], &[]);
    let requests = shown.iter().map(|run| run.reported.summary.requests.total);
    let blocks = requests.min().and_then(compare::blocks);
    let mut sides = Vec::with_capacity(runs.len());
    let mut baseline = None;
    for (run, shown) in runs.iter().zip(shown) {
        let (reported, facts) = (shown.reported.clone(), run.facts()?);
        let places = baseline.as_ref();
        let measured = Measured::read(reported, &facts, &figures, blocks, places, run.read()?)?;
        baseline.get_or_insert_with(|| measured.places());
        sides.push(Side::Runs(vec![measured]));
    }
    let options = Options::new(figures, blocks);
    Ok(compare::compare(&sides, &options))
}

/// The runs with their shown figures, all with the same length of time steps.
fn shown(runs: &[RunFolder], time_slice: Option<Nanos>) -> Result<Vec<RunView>, Failure> {
    let mut reported = Vec::with_capacity(runs.len());
    for run in runs {
        reported.push(run.reported_with(&super::facts(run, time_slice)?)?);
    }
    let durations = reported.iter().filter_map(|run| run.summary.throughput.duration_s);
    let grain = grain(durations.fold(0.0, f64::max));
    let labels = labels(&reported);
    let mut shown = Vec::with_capacity(runs.len());
    for ((run, reported), label) in runs.iter().zip(reported).zip(labels) {
        let view = View::read(&run.facts()?, &reported, grain, run.read()?)?;
        shown.push(RunView { label, reported, view });
    }
    Ok(shown)
}
