//! `runner plan`: shows a run's requests, without sending them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::agreement::nothing_in_common;
use super::artifacts::Artifacts;
use super::destination::Destination;
use super::failure::{Exit, Failure, with_flag};
use super::flags::Flags;
use super::interrupt::Interrupt;
use super::print::{json, tell};
use super::report::{Picture, check_chart, one_at_a_time, write_charts};
use super::score::no_answer;
use super::sources::{described, sources};
use super::versus;
use super::words::one_of;
use load::pace::Signal;
use model::arrival::Arrival;
use report::outlook;
use runs::folder::RunFolder;
use runs::outlook::{End, Outlook};
use scenario::plan::Plan;
use session::outlook::export::{Exporter, Format as ExportFormat};
use session::outlook::{Answers, OutlookError, Question, draw_alike};
use session::paired::Servers;
use session::parts::RunError;
use session::resolve;

/// Characters of a message that are shown unless all are asked for.
const CUT: usize = 400;

/// Show a run's requests, without sending them
///
/// Resolves scenarios and flags as `runner run` does, and draws the samples with the same calls.
/// Writes the requests and their counts: lengths of prompts and answers, due times, sessions, hits
/// of a prefix cache, samples that the dataset left out. No server is contacted. The digest is over
/// all requests as the backend writes them: two machines with the same digest send the same bytes.
///
/// In conversations, the server's answers are not known before the run. Recorded answers stand in
/// for them, or texts of the requested length, and the output says so.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plan scenarios/quickstart.toml --show 3     counts, and the first three prompts\n  \
        runner plan traffic.jsonl --tokenizer NAME         a trace: lengths, times, cache hits by size\n  \
        runner plan chat.toml --format json | jq .digest   the same on two machines?\n  \
        runner plan chat.toml --format html --output plan.html   the same as a page; svg: charts alone\n  \
        runner plan chat.toml --export chat.jsonl          the requests as rows, and the flags that send them again\n  \
        runner plan qa.toml --export qa.jsonl --answers runs/QA   the run's answers as rows for a judge\n\n\
        Exports: `runner` writes prompts as the dataset gives them: rows for the dataset `custom`, or, where turns follow \
        one another, for `conversation` (format \"aiperf\"). The flags that replay them are printed, without a warm-up. `vllm` and `aiperf` write prompts as they are sent. For vLLM, \
        conversations become the text that the model's chat template makes of them (then pass vLLM \
        --skip-chat-template); without a template they are refused.\n\n\
        Exit codes: 0 done, 3 wrong scenario or input, or an export cannot express it, 4 plugin, 130 interrupted (the \
        drawn samples are shown)")]
pub struct Args {
    /// Scenario files or folders, built-in scenarios such as scenarios/lmdeploy, a trace in JSON
    /// lines, or `-` for stdin
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    #[command(flatten)]
    flags: Flags,
    /// Output format
    #[arg(long, env = "RUNNER_PLAN_FORMAT", value_enum, default_value_t = Format::Text)]
    #[arg(help_heading = "Plan")]
    format: Format,
    /// File to write (complete or not at all), for charts a folder or, with --chart, a file; `-` is
    /// stdout
    #[arg(long, value_name = "FILE", env = "RUNNER_PLAN_OUTPUT", default_value = "-")]
    #[arg(help_heading = "Plan")]
    output: PathBuf,
    /// Draw only this chart, such as input-tokens, as `svg` or `png`
    #[arg(long, value_name = "NAME", env = "RUNNER_PLAN_CHART")]
    #[arg(help_heading = "Plan")]
    chart: Option<String>,
    /// Show the first N prompts, each message cut to 400 characters
    #[arg(long, value_name = "N", env = "RUNNER_SHOW", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=10_000))]
    #[arg(help_heading = "Plan")]
    show: u64,
    /// Show messages in full
    #[arg(long, env = "RUNNER_FULL")]
    #[arg(help_heading = "Plan")]
    full: bool,
    /// Stop after N requests, at the end of a session [default: 10000 if the answers decide how
    /// many requests fit the plan's time]
    #[arg(long, value_name = "N", env = "RUNNER_AT_MOST")]
    #[arg(help_heading = "Plan")]
    at_most: Option<u64>,
    /// Write the requests to this file too, one line of JSON each
    #[arg(long, value_name = "FILE", env = "RUNNER_EXPORT")]
    #[arg(help_heading = "Plan")]
    export: Option<PathBuf>,
    /// Tool that reads the exported file
    #[arg(long, value_name = "TOOL", env = "RUNNER_EXPORT_FORMAT", default_value = "runner")]
    #[arg(value_parser = one_of::<ExportFormat>())]
    #[arg(help_heading = "Plan")]
    export_format: ExportFormat,
    /// Export this run's answers beside their questions instead, as rows for a judge
    ///
    /// The scenario and the flags must be the run's, so that the plan draws the same samples. Two
    /// runs give rows with the answers of both. `runner guide scorers` shows how to ask a judge.
    #[arg(long, value_name = "RUN", env = "RUNNER_ANSWERS", value_delimiter = ',')]
    #[arg(requires = "export", conflicts_with = "export_format")]
    #[arg(help_heading = "Plan")]
    answers: Vec<PathBuf>,
    #[command(flatten)]
    artifacts: Artifacts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// JSON that follows `runner schema outlook`
    Json,
    /// A page with charts, in one file that needs no network
    Html,
    /// Histograms as vector drawings
    Svg,
    /// Histograms as pixel images
    Png,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let picture = match args.format {
        Format::Svg => Some(Picture::Svg),
        Format::Png => Some(Picture::Png),
        Format::Text | Format::Json | Format::Html => None,
    };
    check_chart(args.chart.as_deref(), picture.is_some())?;
    described(&args.scenarios, &args.flags, "plan", "")?;
    args.artifacts.apply();
    let interrupt = Interrupt::listen()?;
    let sources = sources(&args.scenarios, &args.flags)?;
    let is_single = picture.is_some() || args.format == Format::Html || args.export.is_some();
    if sources.len() > 1 && is_single {
        return Err(one_at_a_time(sources.len(), "scenario", "pages, charts and exported rows"));
    }
    let mut out = if picture.is_none() { Some(Destination::open(&args.output)?) } else { None };
    let mut interrupted = false;
    for source in sources {
        // Of a paired run, the whole load of its first side.
        let source = match versus::servers(source, &[])? {
            Servers::Several(pairing) => {
                let (chosen, _) = versus::chosen(&pairing)?;
                tell(format_args!("note: {}", versus::described(&chosen)));
                pairing.into_first()
            }
            Servers::One(source) => *source,
        };
        let resolved = resolve(&source)?;
        resolved.remarks.iter().for_each(tell);
        let (run, _) = resolved.unasked();
        let outlook = args.look(&run, &interrupt)?;
        interrupted |= outlook.end == End::Interrupted;
        if let Some(picture) = picture {
            let charts = outlook::charts(&outlook);
            let charts: Vec<_> = charts.iter().collect();
            write_charts(&charts, picture, args.chart.as_deref(), &args.output)?;
        } else if let Some(out) = &mut out {
            match args.format {
                Format::Json => out.json(&json(&outlook)?)?,
                Format::Html => out.text(&outlook::page(&outlook).html())?,
                _ => out.text(&outlook::text(&outlook))?,
            };
        }
        if interrupted {
            break;
        }
    }
    if let Some(out) = out {
        out.finish()?;
    }
    Ok(if interrupted { Exit::Interrupted.into() } else { ExitCode::SUCCESS })
}

impl Args {
    fn look(&self, run: &session::CheckedRun, interrupt: &Interrupt) -> Result<Outlook, Failure> {
        let signal = Signal::for_thread();
        interrupt.drawing(&signal);
        let question = Question {
            at_most: self.at_most,
            show: self.show,
            cut: (!self.full).then_some(CUT),
            answers: self.answers(&run.plan)?,
        };
        let open = |path| Export::open(path, self.export_format, run, &question.answers);
        let mut export = self.export.as_deref().map(open).transpose()?;
        let outlook = run.outlook(&question, &signal, |drawn| {
            export.as_mut().map_or(Ok(()), |export| export.write(drawn))
        });
        interrupt.done();
        let outlook = outlook?;
        if let Some(export) = export {
            // A part of the requests is no export.
            if outlook.end == End::Interrupted {
                tell("note: interrupted, so nothing was exported");
            } else if export.rows == 0 && !self.answers.is_empty() {
                return Err(match self.answers.as_slice() {
                    [run, baseline] => nothing_in_common(run, baseline),
                    runs => no_answer(&runs[0]),
                });
            } else {
                let replay = export.replay();
                export.out.finish()?;
                replay.iter().for_each(tell);
            }
        }
        Ok(outlook)
    }

    fn answers(&self, plan: &Plan) -> Result<Answers, Failure> {
        if self.answers.len() > 2 {
            let message = "--answers takes one run, or two to compare their answers";
            return Err(Failure::command_line(message));
        }
        let mut answers = Answers::default();
        for path in &self.answers {
            let folder = RunFolder::at(path);
            if !draw_alike(&folder.plan()?, plan) {
                return Err(Failure::input(format!(
                    "the plan draws other samples than `{}`; give the scenario, files and flags of the run",
                    path.display()
                )));
            }
            answers.add(&folder)?;
        }
        Ok(answers)
    }
}

struct Export<'r> {
    path: &'r Path,
    out: Destination,
    exporter: Exporter<'r>,
    answers: &'r Answers,
    rows: u64,
}

impl<'r> Export<'r> {
    fn open(
        path: &'r Path,
        format: ExportFormat,
        run: &'r session::CheckedRun,
        answers: &'r Answers,
    ) -> Result<Self, Failure> {
        let is_timed = !matches!(run.plan.load.arrival, Arrival::Inf | Arrival::Closed { .. });
        Ok(Export {
            path,
            out: Destination::open(path)?,
            exporter: Exporter::new(format, &run.tokenizer, is_timed),
            answers,
            rows: 0,
        })
    }

    fn write(&mut self, drawn: &session::outlook::DrawnSession) -> Result<(), Failure> {
        let rows = if self.answers.is_empty() {
            self.exporter.rows(drawn)
        } else {
            Ok(self.answers.rows(drawn).collect())
        };
        let rows = rows.map_err(|cause| Failure::input(format!("cannot export {cause}")))?;
        for row in rows {
            self.out.json(&format!("{row}\n"))?;
            self.rows += 1;
        }
        Ok(())
    }

    /// The flags that send the same requests again, as text, if the runner reads the file.
    fn replay(&self) -> Option<String> {
        if !self.answers.is_empty() {
            return Some(format!(
                "note: to ask a judge, add to a scenario of scenarios/judge: --dataset-path {} --num-prompts {}",
                self.path.display(),
                self.rows
            ));
        }
        let flags = self.exporter.replay(&self.path.to_string_lossy())?;
        Some(format!(
            "note: to send the same requests again, replace the flags of the dataset with: {flags}"
        ))
    }
}

impl From<OutlookError> for Failure {
    fn from(error: OutlookError) -> Self {
        match error {
            OutlookError::Plugin(error) => error.into(),
            OutlookError::Ended(RunError::Aborted(why)) => {
                let message = with_flag(&format!("no request can be planned: {why}"));
                Failure::new(Exit::Plugin, message)
            }
            OutlookError::Ended(error) => error.into(),
        }
    }
}
