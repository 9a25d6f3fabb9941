//! `runner audit`: reads results of other tools and reports figures that no honest measurement can
//! produce.

use std::io::Read;
use std::process::ExitCode;

use super::failure::{Exit, Failure};
use super::print::{json, write_stdout};
use audit::claim::{self, Document};
use audit::{published, text};

/// Check other tools' results for figures that no honest measurement can produce
///
/// Reads the text block that LMDeploy, SGLang, vLLM and GPUStack print, whether alone, in a log, or
/// many times in a Markdown page; the JSON of `vllm bench serve`, guidellm, AIPerf, GenAI-Perf,
/// inference-perf, evalscope, genai-bench and MLPerf Endpoints, rows of InferenceX and perf-eval,
/// and llm-d's Benchmark Report; SGLang's JSON lines; LMDeploy's CSV. The format is detected from
/// the content. The figures of each result are checked against each other; for a wrong figure, the
/// audit names the formula that would have produced it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner audit results.md                            every block of a page, and the page's own tables\n  \
        vllm bench serve ... | tee log | runner audit -    the result that was just printed\n  \
        runner audit --strict --format github results/*.json\n                                                     \
        annotations for a CI log, and exit code 7 if a result is invalid\n  \
        runner audit published:gpustack                    published results (see runner published)\n\n\
        A result is invalid if its figures contradict each other beyond rounding or if they do not describe the \
        requested work. It is suspect if a figure is not what its name says. Otherwise it is valid; notes do not \
        change that.\n\n\
        Exit codes: 0 done, 3 a file cannot be read or holds no result, 7 a result is invalid (with --strict)")]
pub struct Args {
    /// Files with results, - for standard input, or published:PATTERN
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Output format
    #[arg(long, env = "RUNNER_AUDIT_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 7 if a result is invalid
    #[arg(long, env = "RUNNER_AUDIT_STRICT")]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// JSON that follows `runner schema audit`
    Json,
    /// Annotations for the log of a GitHub workflow
    Github,
}

/// All files that cannot be read are reported at once, after the audit of the others.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let (documents, unreadable) = match read(&args.files) {
        (documents, Some(unreadable)) if documents.is_empty() => return Err(unreadable),
        read => read,
    };
    let report = audit::documents(&documents);
    let shown = match args.format {
        Format::Text => text::text(&report),
        Format::Json => json(&report)?,
        Format::Github => text::github(&report),
    };
    write_stdout(&shown)?;
    match unreadable {
        Some(unreadable) => Err(unreadable),
        None if args.strict && report.totals.invalid > 0 => Ok(Exit::Invalid.into()),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The contents of the files, or every mistake in them.
pub(super) fn documents(files: &[String]) -> Result<Vec<Document>, Failure> {
    match read(files) {
        (documents, None) => Ok(documents),
        (_, Some(unreadable)) => Err(unreadable),
    }
}

/// The contents of the files, and the errors of unreadable files.
fn read(files: &[String]) -> (Vec<Document>, Option<Failure>) {
    let mut documents = Vec::new();
    let mut wrong = Vec::new();
    for file in files {
        if let Some(pattern) = file.strip_prefix(published::PREFIX) {
            match published::find(pattern) {
                Ok(claims) => {
                    documents.push(Document { file: file.clone(), claims, quotes: Vec::new() })
                }
                Err(words) => wrong.push(words),
            }
            continue;
        }
        let content = match content(file) {
            Ok(content) => content,
            Err(cause) => {
                wrong.push(format!("{file}: cannot be read: {cause}"));
                continue;
            }
        };
        match claim::read(file, &content) {
            Ok(document) => documents.push(document),
            Err(errors) => wrong.extend(errors.iter().map(ToString::to_string)),
        }
    }
    let unreadable = (!wrong.is_empty()).then(|| Failure::several(Exit::Input, wrong));
    (documents, unreadable)
}

/// A file's content, up to a byte more than the reader takes: that is how it knows of more.
fn content(file: &str) -> std::io::Result<Vec<u8>> {
    let most = claim::MOST_BYTES as u64 + 1;
    let mut content = Vec::new();
    match file {
        "-" => std::io::stdin().lock().take(most).read_to_end(&mut content),
        file => std::fs::File::open(file)?.take(most).read_to_end(&mut content),
    }?;
    Ok(content)
}
