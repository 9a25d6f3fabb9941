//! `runner agreement`: compares a run's answers with another run's, and with the differences
//! between repeats.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::failure::Failure;
use super::print::{finish, json};
use compare::agreed::{Agreed, Agreeing};
use runs::folder::RunFolder;
use session::TextTokenizer;

/// Compare the answers of two runs on the same samples
///
/// Reports how many answers are identical, where the others diverge, and which scores flipped.
/// Repeats of the baseline (--floor) show how much answers differ without any change. An option
/// that changes more of them is shown as changed, else it is cleared. Samples are joined by their
/// id, turn, class and reference.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner agreement runs/fp8 --baseline runs/bf16\n  \
        runner agreement runs/fp8 --baseline runs/bf16-1 --floor runs/bf16-2,runs/bf16-3\n\n\
        Answers that are sampled differ by chance alone: set request.temperature = 0 in every run.\n\n\
        Exit codes: 0 done, 3 a run cannot be read, or no sample was answered in both")]
pub struct Args {
    /// The run's folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    reference: Reference,
    /// Tokenizer to find the first token that differs, as in `runner run`; the baseline's own if it
    /// is still there
    #[arg(long, value_name = "PATH", env = "RUNNER_AGREEMENT_TOKENIZER")]
    tokenizer: Option<String>,
    /// Output format
    #[arg(long, env = "RUNNER_AGREEMENT_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The baseline that answers are compared with.
#[derive(Clone, Debug, clap::Args)]
pub struct Reference {
    /// The folder of the run whose answers are the baseline
    #[arg(long, value_name = "RUN", env = "RUNNER_AGREEMENT_BASELINE", required = true)]
    baseline: PathBuf,
    /// A repeat of the baseline, to show how much answers differ without any change; repeatable
    #[arg(long, value_name = "RUN", env = "RUNNER_AGREEMENT_FLOOR", value_delimiter = ',')]
    floor: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// JSON that follows `runner schema agreement`
    Json,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let tokenizer = args.tokenizer.as_deref().map(TextTokenizer::named).transpose();
    let tokenizer = tokenizer.map_err(Failure::input)?;
    let Reference { baseline, floor } = &args.reference;
    let agreed = agreed(&args.run, baseline, floor, tokenizer)?;
    finish(&match args.format {
        Format::Text => report::agreed::text(&agreed),
        Format::Json => json(&agreed)?,
    })
}

/// Compares answers with a baseline and its repeats, by the given or the baseline's tokenizer.
pub(super) fn agreed(
    run: &Path,
    baseline: &Path,
    floor: &[PathBuf],
    tokenizer: Option<TextTokenizer>,
) -> Result<Agreed, Failure> {
    let folder = RunFolder::at(baseline);
    let (plan, facts) = (folder.plan()?, folder.facts()?);
    let mut agreeing = match tokenizer.or_else(|| TextTokenizer::from_plan(&plan.tokenizer)) {
        Some(tokenizer) => {
            Agreeing::tokenized(Box::new(move |one, other| tokenizer.first_difference(one, other)))
        }
        None => Agreeing::default(),
    };
    agreeing.baseline((&named(baseline), &plan, &facts), folder.read()?)?;
    for repeat in floor {
        let folder = RunFolder::at(repeat);
        folder.plan()?;
        agreeing.repeat(&named(repeat), folder.read()?)?;
    }
    let folder = RunFolder::at(run);
    let (plan, facts) = (folder.plan()?, folder.facts()?);
    let agreed = agreeing.run((&named(run), &plan, &facts), folder.read()?)?;
    if agreed.answers.samples == 0 {
        return Err(nothing_in_common(run, baseline));
    }
    Ok(agreed)
}

pub(super) fn nothing_in_common(run: &Path, baseline: &Path) -> Failure {
    let (run, baseline) = (run.display(), baseline.display());
    Failure::input(format!(
        "no sample was answered in both `{run}` and `{baseline}`; compare runs of one dataset with one seed"
    ))
}

fn named(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    name.to_string_lossy().into_owned()
}
