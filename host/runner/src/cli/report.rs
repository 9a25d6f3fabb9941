//! `runner report`: renders results again from the records of runs, in formats for people and
//! for programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;

use super::destination::Destination;
use super::failure::{Exit, Failure};
use super::output::seen_by;
use super::print::{json, tell};
use super::saved;
use compare::{self, Choice, Measured, Options, Side};
use model::clean;
use model::duration::Span;
use model::units::Nanos;
use report::chart::{Chart, Look, Theme, Width, svg};
use report::charts::{Charts, RunView, labels};
use report::compatible::aiperf::{Export, Lines};
use report::compatible::{self, Compatible, Keep, Tool, inferencex};
use report::document::Document;
use report::page::Comparison;
use report::view::{View, grain};
use report::{csv, page, published, text, time_slices};
use result::summary::RunFacts;
use runs::folder::{self, FolderError, RunFolder, Status};
use scenario::plan::Slice;

/// Render results again from the records of runs
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Folders of runs, or folders that contain runs; runs are read in the order of their start. Of
    /// a sweep or a search, pages and charts show the whole
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Output format
    #[arg(long, env = "RUNNER_REPORT_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Tool whose layout, names and definitions to use: another tool's block has only that tool's
    /// lines, with the figures that it would have reported for the same replies
    #[arg(long, env = "RUNNER_STYLE", value_enum, default_value_t = Style::Runner)]
    style: Style,
    /// Include every request in another tool's JSON: lengths, times, gaps, texts, errors
    #[arg(long, env = "RUNNER_DETAILED")]
    detailed: bool,
    /// Print every figure and the reasons of each finding, instead of one screen
    #[arg(long, env = "RUNNER_DETAILS")]
    details: bool,
    /// Also show figures by time slices of this length, such as 10s, instead of the scenario's; as
    /// `csv`, a row for each slice instead of each exchange
    #[arg(long, value_name = "TIME", env = "RUNNER_REPORT_SLICE")]
    slice: Option<Span>,
    /// Draw only this chart, such as ttft-ecdf, as `svg` or `png`; without this flag, all charts
    /// are drawn into the folder given with --output
    #[arg(long, value_name = "NAME", env = "RUNNER_REPORT_CHART")]
    chart: Option<String>,
    /// File to write (complete or not at all); `-` is stdout
    #[arg(long, value_name = "FILE", env = "RUNNER_REPORT_OUTPUT", default_value = "-")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The text block
    Text,
    /// A Markdown page of all runs, with their text blocks in the chosen style
    Markdown,
    /// The summary, as JSON that follows `runner schema summary`; with `--style vllm`, the file
    /// of `vllm bench serve --save-result`
    Json,
    /// One line per exchange, as JSON that follows `runner schema exchange`, in the order in which
    /// they ended; with `--style sglang`, one line per run, as in bench_serving's `--output-file`
    Jsonl,
    /// One row per exchange, in the order in which they ended; values that were not measured are
    /// empty
    Csv,
    /// A page with charts, in one file that needs no network; several runs are drawn over each
    /// other, and the others are compared with the first
    Html,
    /// Charts as vector drawings
    Svg,
    /// Charts as pixel images
    Png,
}

/// The tool whose layout, names and definitions a result uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Style {
    /// This program's own
    Runner,
    /// `vllm bench serve`'s: text, markdown or json
    Vllm,
    /// SGLang's bench_serving's: text, markdown or jsonl
    Sglang,
    /// LMDeploy's profile_restful_api.py's: text or markdown
    Lmdeploy,
    /// AIPerf's: jsonl (profile_export.jsonl) or json (profile_export_aiperf.json)
    Aiperf,
    /// InferenceX's row of an agentic run, as json; the notes of the run state hw, tp and others
    #[value(name = "inferencex")]
    InferenceX,
}

pub(super) fn tell_parts(runs: &[RunFolder]) -> Result<(), Failure> {
    for run in runs {
        if let Some(Slice { index, of }) = run.plan()?.slice {
            tell(format_args!(
                "note: {} is a part of a run, rank {index} of {of} processes: its requests, rates and verdict cover this process only; `runner fleet merge` adds it to the run's folder",
                run.path().display()
            ));
        }
    }
    Ok(())
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    draw(args).map(|()| ExitCode::SUCCESS)
}

fn draw(args: &Args) -> Result<(), Failure> {
    args.check()?;
    let picture = match args.format {
        Format::Svg => Some(Picture::Svg),
        Format::Png => Some(Picture::Png),
        _ => None,
    };
    if let Some(page) = args.saved()? {
        if args.slice.is_some() {
            return Err(Failure::command_line(
                "--slice is for runs, not for the page of a sweep or a search; name the runs in its folder",
            ));
        }
        if let Some(picture) = picture {
            let charts: Vec<_> = page.charts().collect();
            return write_charts(&charts, picture, args.chart.as_deref(), &args.output);
        }
        let text = if args.format == Format::Markdown { page.markdown() } else { page.html() };
        let mut out = Destination::open(&args.output)?;
        out.text(&text)?;
        return out.finish();
    }
    let runs = open(&args.runs)?;
    tell_parts(&runs)?;
    if let Some(picture) = picture {
        return pictures(&runs, picture, args.chart.as_deref(), &args.output);
    }
    let mut out = Destination::open(&args.output)?;
    match (args.format, args.style) {
        (Format::Text, style) => each(&runs, &mut out, |run| args.block(run, style, args.details)),
        (Format::Markdown, style) => args.page(&runs, &mut out, style),
        (Format::Json, Style::Vllm) => {
            each(&runs, &mut out, |run| args.line(run, Tool::Vllm, compatible::vllm::json))
        }
        (Format::Json, Style::Aiperf) => {
            each(&runs, &mut out, |run| export(run, |export| Ok(export.json())))
        }
        (Format::Json, Style::InferenceX) => {
            each(&runs, &mut out, |run| export(run, |it| row(run, it)))
        }
        (Format::Json, _) => each(&runs, &mut out, |run| json(&run.summarize(&args.facts(run)?)?)),
        (Format::Jsonl, Style::Sglang) => {
            each(&runs, &mut out, |run| args.line(run, Tool::Sglang, compatible::sglang::json))
        }
        (Format::Jsonl, style) => lines(only(&runs, "lines")?, style, &mut out),
        (Format::Csv, _) if args.slice.is_some() => args.slices(only(&runs, "rows")?, &mut out),
        (Format::Csv, _) => table(only(&runs, "rows")?, &mut out),
        (Format::Html, _) => page(&runs, args.time_slice(), &mut out),
        (Format::Svg | Format::Png, _) => Ok(()),
    }?;
    out.finish()
}

impl Args {
    /// The page of a sweep or a search, if the only folder has one and pages or pictures are asked.
    fn saved(&self) -> Result<Option<Document>, Failure> {
        let is_drawn =
            matches!(self.format, Format::Markdown | Format::Html | Format::Svg | Format::Png);
        match (self.runs.as_slice(), is_drawn && self.style == Style::Runner) {
            ([folder], true) => saved::page(folder),
            _ => Ok(None),
        }
    }

    /// Checks that this style has this format, and names its formats.
    fn check(&self) -> Result<(), Failure> {
        let forms: &[Format] = match self.style {
            Style::Runner => Format::value_variants(),
            Style::Vllm => &[Format::Text, Format::Markdown, Format::Json],
            Style::Sglang => &[Format::Text, Format::Markdown, Format::Jsonl],
            Style::Lmdeploy => &[Format::Text, Format::Markdown],
            Style::Aiperf => &[Format::Json, Format::Jsonl],
            Style::InferenceX => &[Format::Json],
        };
        if !forms.contains(&self.format) {
            let there_are: Vec<String> = forms.iter().map(|form| name(*form)).collect();
            return Err(Failure::command_line(format!(
                "--style {1} has no format {0}; it has {2}",
                name(self.format),
                name(self.style),
                there_are.join(", "),
            )));
        }
        let is_drawn = matches!(self.format, Format::Svg | Format::Png);
        check_chart(self.chart.as_deref(), is_drawn)?;
        let with_slices = [Format::Text, Format::Markdown, Format::Json, Format::Csv, Format::Html];
        if let Some(slice) = self.slice {
            if slice.0.is_zero() {
                return Err(Failure::command_line(
                    "--slice: expected a time above zero, such as 10s",
                ));
            }
            if self.style != Style::Runner || !with_slices.contains(&self.format) {
                return Err(Failure::command_line(
                    "--slice only works in this program's own style, as text, markdown, json, csv or html",
                ));
            }
        }
        let listing = [(Format::Json, Style::Vllm), (Format::Jsonl, Style::Sglang)];
        if self.detailed && !listing.contains(&(self.format, self.style)) {
            return Err(Failure::command_line(
                "--detailed only works with `--format json --style vllm` and `--format jsonl --style sglang`; in this program's own style, csv and jsonl list every exchange",
            ));
        }
        Ok(())
    }

    fn time_slice(&self) -> Option<Nanos> {
        self.slice.map(|span| span.0.into())
    }

    fn facts(&self, run: &RunFolder) -> Result<RunFacts, Failure> {
        Ok(facts(run, self.time_slice())?)
    }

    /// The text block of a run: of our own style the whole block, or one screen.
    fn block(&self, run: &RunFolder, style: Style, details: bool) -> Result<String, Failure> {
        let (tool, draw): (_, fn(&Compatible<'_>) -> String) = match style {
            Style::Runner => {
                let summary = run.summarize(&self.facts(run)?)?;
                return Ok(if details { text::text(&summary) } else { text::short(&summary) });
            }
            Style::Vllm => (Tool::Vllm, text::vllm::text),
            Style::Sglang => (Tool::Sglang, text::sglang::sglang),
            Style::Lmdeploy => (Tool::Lmdeploy, text::sglang::lmdeploy),
            // These have no block: `check` refuses them.
            Style::Aiperf | Style::InferenceX => return Ok(String::new()),
        };
        seen_by(run, tool, Keep::Nothing, draw)
    }

    fn page(&self, runs: &[RunFolder], out: &mut Destination, style: Style) -> Result<(), Failure> {
        let shown = runs.iter().map(|run| {
            Ok(published::PublishedRun {
                reported: run.reported_with(&self.facts(run)?)?,
                block: self.block(run, style, true)?,
            })
        });
        let shown: Vec<_> = shown.collect::<Result<_, Failure>>()?;
        out.text(&published::page(&shown).markdown()).map(drop)
    }

    fn slices(&self, run: &RunFolder, out: &mut Destination) -> Result<(), Failure> {
        let summary = run.summarize(&self.facts(run)?)?;
        let Some(slices) = &summary.time_slices else {
            return Err(Failure::input(format!(
                "the run in {} has no time slices, because none of its measured requests ended",
                run.path().display()
            )));
        };
        let mut table = Vec::new();
        time_slices::csv(&mut table, slices).map_err(Failure::cannot("write the report"))?;
        out.text(&String::from_utf8_lossy(&table)).map(drop)
    }

    fn line(
        &self,
        run: &RunFolder,
        tool: Tool,
        draw: fn(&Compatible<'_>) -> String,
    ) -> Result<String, Failure> {
        let keep = match tool {
            _ if self.detailed => Keep::All,
            Tool::Vllm => Keep::Times,
            _ => Keep::Nothing,
        };
        let line = seen_by(run, tool, keep, draw)?;
        Ok(clean::json(&line).into_owned() + "\n")
    }
}

/// The facts of a run, with time slices of this length instead of its scenario's.
fn facts(run: &RunFolder, time_slice: Option<Nanos>) -> Result<RunFacts, FolderError> {
    let mut facts = run.facts()?;
    facts.run.time_slice = time_slice.or(facts.run.time_slice);
    Ok(facts)
}

fn name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The named runs, once each, with notes on runs that ended badly. Reports all errors at once.
pub(super) fn open(named: &[PathBuf]) -> Result<Vec<RunFolder>, Failure> {
    let (mut runs, mut seen, mut wrong) = (Vec::<RunFolder>::new(), Vec::new(), Vec::new());
    for path in named {
        match folder::runs(path) {
            Err(error) => wrong.push(error.to_string()),
            Ok(found) => {
                for run in found {
                    let place = run.path().canonicalize().ok();
                    if place.is_none() || !seen.contains(&place) {
                        seen.push(place);
                        runs.push(run);
                    }
                }
            }
        }
    }
    let mut notes = Vec::new();
    for run in &runs {
        let mut readable = || {
            run.plan()?;
            drop(run.read()?);
            let status = run.status()?;
            if let Some(damage) = run.damage(status.as_ref())? {
                notes.push(format!(
                    "warning: the records of the run in {} are damaged: {}",
                    run.path().display(),
                    damage.label()
                ));
            }
            Ok::<_, FolderError>(status)
        };
        let folder = run.path().display();
        match readable() {
            Err(error) => wrong.push(error.to_string()),
            Ok(None) => notes.push(format!(
                "note: the run in {folder} did not finish: it was killed or still runs; this shows its records so far"
            )),
            Ok(Some(Status {
                error: Some(error), ..
            })) => notes.push(format!("note: the run in {folder} ended early: {error}")),
            Ok(Some(_)) => {}
        }
    }
    Failure::of_any(Exit::Input, wrong)?;
    notes.iter().for_each(tell);
    Ok(runs)
}

/// The only run, for formats whose parts do not say which run they belong to.
fn only<'a>(runs: &'a [RunFolder], parts: &str) -> Result<&'a RunFolder, Failure> {
    match runs {
        [run] => Ok(run),
        _ => Err(one_at_a_time(runs.len(), "run", parts)),
    }
}

/// The error that several of these were named where their `parts` do not show which is which.
pub(super) fn one_at_a_time(count: usize, of: &str, parts: &str) -> Failure {
    let one = of.to_uppercase();
    Failure::command_line(format!(
        "{count} {of}s were named, but {parts} do not say which {of} they belong to; give one {one} at a time"
    ))
}

fn each(
    runs: &[RunFolder],
    out: &mut Destination,
    draw: impl Fn(&RunFolder) -> Result<String, Failure>,
) -> Result<(), Failure> {
    for run in runs {
        out.text(&draw(run)?)?;
    }
    Ok(())
}

fn lines(run: &RunFolder, style: Style, out: &mut Destination) -> Result<(), Failure> {
    let (reported, facts) = (run.reported()?, run.facts()?);
    let aiperf = Lines::new(&reported, &facts, run.origin()?);
    for exchange in run.read()? {
        let exchange = exchange?;
        let line = if style == Style::Aiperf {
            let Some(line) = aiperf.line(&exchange) else { continue };
            line
        } else {
            serde_json::to_string(&exchange).map_err(Failure::cannot("write the report"))?
        };
        if !out.json(&(line + "\n"))? {
            break;
        }
    }
    Ok(())
}

/// A run's export for AIPerf's readers, drawn.
fn export(
    run: &RunFolder,
    draw: impl FnOnce(&Export<'_>) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let (reported, facts) = (run.reported()?, run.facts()?);
    let export = Export::read(&reported, &facts, run.origin()?, run.read()?)?;
    draw(&export).map(|text| clean::json(&text).into_owned())
}

fn row(run: &RunFolder, export: &Export<'_>) -> Result<String, Failure> {
    let folder = run.path().display();
    let row = inferencex::row(export).map_err(|wrong| {
        Failure::input(format!(
            "the run in {folder} has no row of InferenceX: {}",
            wrong.join("; ")
        ))
    })?;
    if !row.unstated.is_empty() {
        tell(format_args!(
            "note: the run in {folder} does not state {}; state them with --metadata when it runs, such as --metadata hw=h200",
            row.unstated.join(", ")
        ));
    }
    Ok(row.json)
}

fn table(run: &RunFolder, out: &mut Destination) -> Result<(), Failure> {
    let facts = run.facts()?;
    let mut row = Vec::new();
    csv::header(&mut row).map_err(Failure::cannot("write the report"))?;
    out.text(&String::from_utf8_lossy(&row))?;
    for exchange in run.read()? {
        row.clear();
        csv::row(&mut row, &facts, &exchange?).map_err(Failure::cannot("write the report"))?;
        if !out.text(&String::from_utf8_lossy(&row))? {
            break;
        }
    }
    Ok(())
}

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Picture {
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
pub(super) fn check_chart(name: Option<&str>, is_drawn: bool) -> Result<(), Failure> {
    let refused = name.filter(|_| !is_drawn);
    let wrong = |name| format!("--chart {name} only works with --format svg or --format png");
    refused.map_or(Ok(()), |name| Err(Failure::command_line(wrong(name))))
}

/// Writes the page of these runs, with time slices of this length if one is given.
pub(super) fn page(
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

pub(super) fn pictures(
    runs: &[RunFolder],
    form: Picture,
    name: Option<&str>,
    output: &Path,
) -> Result<(), Failure> {
    let charts = Charts::new(&shown(runs, None)?);
    let charts: Vec<&Chart> = charts.iter().collect();
    write_charts(&charts, form, name, output)
}

pub(super) fn write_charts(
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
        reported.push(run.reported_with(&facts(run, time_slice)?)?);
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
