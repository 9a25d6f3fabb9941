//! `runner compare`: compares each side with the first, figure by figure.

pub(super) mod sides;

use std::path::Path;
use std::process::ExitCode;

use super::failure::{Exit, Failure};
use super::needs::limits;
use super::print::{json, tell, write_stdout};
use super::versus::compare_again;
use crate::cli::words::{one_of, some_of};
use compare::{Choice, Compared, Condition, Kind, Options, compare};
use report::compared;
use result::figure::Figure;

/// Compare runs with each other, with other tools' results and with published ones
///
/// The first side is the baseline. For each figure you get the difference, its 95 % interval, the
/// smallest difference that about nine of ten such comparisons find, and a verdict. The verdict is
/// better (+), worse (!), same (≡, with --same-within), not judged (?), or no difference shown (=),
/// which does not mean that there is none. Runs are only compared if they sent the same requests in
/// the same way. One run per side does not show how much runs vary; compare repeats where you can.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Sides:\n  \
        runs/20260102-030405-chat          a run's folder; repeats with --same-requests form one side\n  \
        runs/a-1,runs/a-2,runs/a-3         several runs as one side\n  \
        runs                               all runs below a folder\n  \
        result.json  page.md#2             another tool's result; #2 picks the second in a file\n  \
        published:lmdeploy-0.9.2/h800/Qwen3-8B-FP8/sharegpt   a published result (runner published)\n\n\
        A --fail-if condition fails if the side is worse by at least that much and the difference is shown: \
        its interval excludes zero. Chance alone fails nothing. Without an interval, the difference alone decides, \
        but not where a percentile's slow samples lie in fewer than five parts of a run: that passes, with a note. \
        A percentile that failed requests make infinite on that side fails. A figure that a side does not have is an error (3).\n\n\
        Exit codes: 0 done, 3 not comparable or not readable, 6 a condition of --fail-if holds")]
#[command(next_help_heading = "Figures")]
pub struct Args {
    /// The baseline, then the sides to compare with it
    #[arg(value_name = "SIDE", required = true, help_heading = None)]
    sides: Vec<String>,
    /// Output format
    #[arg(long, env = "RUNNER_COMPARE_FORMAT", value_enum, default_value_t = Format::Text)]
    #[arg(help_heading = None)]
    format: Format,
    /// Figures to compare instead of the headline ones, such as
    /// ttft.p99,throughput.output-tokens-per-s
    #[arg(long = "metric", value_name = "FIGURE", env = "RUNNER_METRIC", value_delimiter = ',')]
    metrics: Vec<Figure>,
    /// Compare every figure
    #[arg(long, env = "RUNNER_ALL", conflicts_with = "metrics")]
    all: bool,
    /// Exit with 6 if this holds, such as 'ttft.p99 +5%', 'e2e.mean +20ms' or
    /// 'requests.success-share -0.01'
    #[arg(long = "fail-if", value_name = "CONDITION", env = "RUNNER_FAIL_IF")]
    #[arg(value_delimiter = ',')]
    fail_if: Vec<String>,
    /// Variation of runs of one scenario: a standard deviation such as 2%, or a folder with repeats
    /// [default: from the sides that have repeats, else 2%]
    ///
    /// The error includes it where both sides are one run. Several runs show their own variation.
    /// Beside other work on this machine, the default is 20%, and a difference within its interval
    /// is not judged.
    #[arg(long, value_name = "SHARE|FOLDER", env = "RUNNER_RUN_VARIATION")]
    run_variation: Option<String>,
    /// Say which figures are the same within this share of the baseline, such as 2%
    #[arg(long, value_name = "SHARE", env = "RUNNER_SAME_WITHIN", value_parser = a_share)]
    same_within: Option<f64>,
    #[command(flatten)]
    differences: Differences,
    /// Compare no matter what differs
    #[arg(long, env = "RUNNER_FORCE", help_heading = "Comparability")]
    force: bool,
    /// Make each run a side of its own, even repeats of the same run
    #[arg(long, env = "RUNNER_EACH", help_heading = "Comparability")]
    each: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table for the terminal
    Text,
    /// JSON that follows `runner schema comparison`
    Json,
    /// Tables for a Markdown page
    Markdown,
    /// A page for a browser, with the differences drawn
    Html,
}

impl Format {
    fn write(self, found: &Compared) -> Result<(), Failure> {
        write_stdout(&match self {
            Format::Text => compared::page(found).text(),
            Format::Markdown => compared::page(found).markdown_section(2),
            Format::Html => compared::page(found).html(),
            Format::Json => json(found)?,
        })
    }
}

/// Runs the subcommand. Fails if a side cannot be read, or sides cannot be compared.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let choice = match (args.metrics.as_slice(), args.all) {
        ([], false) => Choice::Headline,
        ([], true) => Choice::All,
        (figures, _) => Choice::These(figures.to_vec()),
    };
    let conditions: Vec<Condition> = limits("--fail-if", &args.fail_if)?;
    if let [folder] = args.sides.as_slice()
        && let Some(compared) = compare_again(Path::new(folder), &choice, args.force)
    {
        let compared = compared?;
        args.format.write(&compared)?;
        return conclude(&compared);
    }
    let read = sides::read(&args.sides, &choice, &conditions, args.each)?;
    let conditioned = conditions.iter().map(|condition| condition.figure.clone());
    let judged: Vec<Figure> = read.figures.iter().cloned().chain(conditioned).collect();
    let options = Options {
        variation: (args.run_variation.as_deref())
            .map(|given| sides::variation(given, &judged))
            .transpose()?,
        same_within: args.same_within,
        figures: read.figures,
        conditions,
        names: Vec::new(),
        allowed: if args.force { Kind::ALL.to_vec() } else { args.differences.allow.clone() },
        must_agree: args.differences.must_agree.clone(),
        blocks: read.blocks,
    };
    let found = compare(&read.sides, &options)
        .map_err(|obstacles| Failure::several(Exit::Input, compared::refusal(&obstacles)))?;
    args.format.write(&found)?;
    if args.run_variation.is_none() {
        warn(&found);
    }
    conclude(&found)
}

/// Warns of conditions on one run per side whose variation is assumed without a request.
fn warn(found: &Compared) {
    if found.is_assumed() && !found.conditions.is_empty() {
        tell(format_args!(
            "warning: --fail-if judges one run per side: how much runs vary is assumed; compare repeats (runner run --repeat N --same-requests), or state it with --run-variation"
        ));
    }
}

fn a_share(text: &str) -> Result<f64, String> {
    let share = model::number::share(text).ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0% to 100%, such as 2% or 0.02".to_owned())
}

pub(super) fn conclude(found: &Compared) -> Result<ExitCode, Failure> {
    let absent = found.conditions.iter().filter(|outcome| outcome.is_absent).map(|outcome| {
        format!(
            "'{}' cannot be checked: {}; name a figure that both sides have",
            outcome.condition, outcome.seen
        )
    });
    Failure::of_any(Exit::Input, absent)?;
    let failing = (found.conditions.iter().filter(|outcome| outcome.fails))
        .map(|outcome| format!("{} of {}: {}", outcome.condition, outcome.side, outcome.seen));
    Failure::of_any(Exit::Threshold, failing).map(|()| ExitCode::SUCCESS)
}

/// Kinds of settings in which the sides of a comparison may differ, or must agree.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Comparability")]
pub(in crate::cli) struct Differences {
    /// Compare even though this differs
    #[arg(long, value_name = "KIND", env = "RUNNER_ALLOW", value_delimiter = ',')]
    #[arg(value_parser = one_of::<Kind>())]
    pub(in crate::cli) allow: Vec<Kind>,
    /// Refuse to compare where this differs, which people compare on purpose elsewhere
    #[arg(long, value_name = "KIND", env = "RUNNER_MUST_AGREE", value_delimiter = ',')]
    #[arg(value_parser = some_of(&Kind::ON_PURPOSE))]
    pub(in crate::cli) must_agree: Vec<Kind>,
}
