//! `runner fetch`: downloads tokenizers and datasets from the Hugging Face hub into its local
//! cache. Nothing else in the program downloads anything.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::failure::Failure;
use super::print::{finish, tell};
use super::progress::can_be_drawn_on;
use hub::{Client, Event, Kind, Listing, Remote, Repository, Settings, Snapshot, size};
use reader::Size;

/// A tokenizer's files together are smaller than this.
const TOKENIZER: Size = Size(1 << 30);
const LISTED: usize = 20;

/// Download tokenizers and datasets from the Hugging Face hub
///
/// Files go into the local cache that all tools of the hub share, and each is checked against the
/// digest that the hub states. Files in the cache are not downloaded again, and an interrupted
/// download resumes. No other command downloads anything.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner fetch tokenizer Qwen/Qwen3-8B      then: runner --tokenizer Qwen/Qwen3-8B ...\n  \
        runner fetch dataset ORG/NAME             all data files, after a look at their sizes\n  \
        runner fetch dataset ORG/NAME data.jsonl  one file\n\n\
        Variables, as in the hub's own tools:\n  \
        HF_TOKEN        a token, for gated and private repositories; else the file HF_TOKEN_PATH\n  \
        HF_HUB_CACHE    the cache; else hub in HF_HOME, else ~/.cache/huggingface/hub\n  \
        HF_ENDPOINT     a mirror of the hub\n  \
        HF_HUB_OFFLINE  1 forbids downloads\n  \
        HTTPS_PROXY     a proxy\n\n\
        Exit codes: 0 done, 3 a name or a file is not available, 5 the hub is not reachable or sent damaged files")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    Tokenizer(TokenizerArgs),
    Dataset(DatasetArgs),
}

/// Download a model's tokenizer, without the model
///
/// These are the files that decide which tokens a text has: the tokenizer, its chat templates and
/// their settings. Prints their folder. A run finds it by the model's name: with
/// --tokenizer NAME, or without the flag where the server calls its model so.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner fetch tokenizer Qwen/Qwen3-8B\n  \
        runner fetch tokenizer Qwen/Qwen3-8B@v1.0        a branch, a tag or a commit\n  \
        runner fetch tokenizer meta-llama/Llama-3.1-8B   gated: accept its terms, and set HF_TOKEN")]
struct TokenizerArgs {
    /// The model: ORG/NAME, or ORG/NAME@REVISION
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    how: How,
}

/// Download files of a dataset
///
/// Without file names, these are all files with data: .jsonl, .json, .csv, .parquet, .txt, .zst,
/// .gz. Prints the path of each; give it to a run with --dataset-path.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner fetch dataset ORG/NAME                        all data files\n  \
        runner fetch dataset ORG/NAME a.jsonl sub/b.parquet  these\n  \
        runner fetch dataset ORG/NAME --max-size 50GiB       even if they are large")]
struct DatasetArgs {
    /// The dataset: ORG/NAME, or ORG/NAME@REVISION
    #[arg(value_name = "NAME")]
    name: String,
    /// Files to download, by their paths in the dataset [default: all with data]
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Largest download; larger files are listed and refused
    #[arg(long, value_name = "SIZE", env = "RUNNER_MAX_SIZE", default_value = "2GiB", value_parser = Size::parse)]
    max_size: Size,
    #[command(flatten)]
    how: How,
}

#[derive(Clone, Debug, clap::Args)]
struct How {
    /// Branch, tag or commit [default: main]
    #[arg(long, value_name = "REVISION", env = "RUNNER_REVISION")]
    revision: Option<String>,
    /// Do not show progress
    #[arg(long, env = "RUNNER_NO_PROGRESS")]
    no_progress: bool,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    finish(&match &args.command {
        Command::Tokenizer(args) => tokenizer(args),
        Command::Dataset(args) => dataset(args),
    }?)
}

/// Downloads a tokenizer; the line with its folder.
fn tokenizer(args: &TokenizerArgs) -> Result<String, Failure> {
    let found = RemoteRepository::new(Kind::Model, &args.name, &args.how)?;
    let files = found.listing.chosen(Kind::Model);
    if !files.iter().any(|path| hub::decides_tokens(path)) {
        return Err(Failure::input(format!(
            "{} has no tokenizer; its files are {}; it may be a converted model, such as GGUF: give the name of the original model",
            found.repository,
            found.listing.few()
        )));
    }
    let snapshot = found.fetch(&files, TOKENIZER, &args.how)?;
    if !snapshot.has_tokenizer() {
        tell(format_args!(
            "warning: {} has tokenizer settings, but no vocabulary file (tokenizer.json, tokenizer.model, …)",
            found.repository
        ));
    }
    Ok(format!("{}\n", snapshot.folder.display()))
}

/// Downloads files of a dataset; the lines with their paths.
fn dataset(args: &DatasetArgs) -> Result<String, Failure> {
    let found = RemoteRepository::new(Kind::Dataset, &args.name, &args.how)?;
    let files = match args.files.as_slice() {
        [] => found.listing.chosen(Kind::Dataset),
        named => found.listing.named(&found.repository, named)?,
    };
    if files.is_empty() {
        return Err(Failure::input(format!(
            "{} has no data files with a known ending; name the files; its files are {}",
            found.repository,
            found.listing.few()
        )));
    }
    let snapshot = found.fetch(&files, args.max_size, &args.how)?;
    let line = |file| format!("{}\n", snapshot.folder.join(file).display());
    Ok(files.iter().map(line).collect())
}

struct RemoteRepository {
    settings: Settings,
    client: Client,
    repository: Repository,
    listing: Listing,
}

impl RemoteRepository {
    fn new(kind: Kind, name: &str, how: &How) -> Result<Self, Failure> {
        let mut repository = Repository::parse(kind, name).map_err(Failure::command_line)?;
        if let Some(revision) = &how.revision {
            if name.contains('@') {
                return Err(Failure::command_line(format!(
                    "two revisions are given, by `{name}` and by --revision; give one"
                )));
            }
            repository = repository.at(revision).map_err(Failure::command_line)?;
        }
        let settings = Settings::from_variables(|name| std::env::var(name).ok())?;
        let client = Client::new(&settings)?;
        let listing = hub::list(&client, &repository)?;
        Ok(RemoteRepository { settings, client, repository, listing })
    }

    fn fetch(&self, files: &[String], most: Size, how: &How) -> Result<Snapshot, Failure> {
        let commit = &self.listing.commit;
        let remotes = hub::look(&self.client, &self.repository, commit, files)?;
        let sizes = remotes.iter().filter_map(|file| file.bytes);
        let total = sizes.fold(0, u64::saturating_add);
        if total > most.0 {
            return Err(too_large(&self.repository, &remotes, total, most));
        }
        for file in remotes.iter().filter(|file| !file.has_checksum()) {
            tell(format_args!(
                "warning: {}: the hub states no digest, so the download is not checked",
                file.path
            ));
        }
        let commit_shown: String = commit.chars().take(12).collect();
        tell(format_args!(
            "{} at {} (commit {commit_shown}): {}, {}",
            self.repository.name(),
            self.repository.revision(),
            match remotes.len() {
                1 => "1 file".to_owned(),
                several => format!("{several} files"),
            },
            size(total)
        ));
        let progress = Progress::new(total, how.no_progress);
        let fetched = hub::fetch(
            &self.client,
            &self.settings.cache,
            &self.repository,
            commit,
            (&remotes, most.0 - total),
            &|event| progress.note(event),
        );
        progress.finish();
        Ok(fetched?)
    }
}

fn too_large(repository: &Repository, files: &[Remote], total: u64, most: Size) -> Failure {
    let mut largest: Vec<&Remote> = files.iter().collect();
    largest.sort_by_key(|file| std::cmp::Reverse(file.bytes));
    let limit = match repository.kind() {
        Kind::Model => format!("a tokenizer has ({most})"),
        _ => format!("{most}; name the files that you need, or allow more with --max-size"),
    };
    let (bytes, count) = (size(total), files.len());
    let mut message = format!("{repository}: {bytes} in {count} files is more than {limit}:");
    for file in largest.iter().take(LISTED) {
        let bytes = file.bytes.map_or("unknown".to_owned(), size);
        message.push_str(&format!("\n  {bytes:>9}  {}", file.path));
    }
    if largest.len() > LISTED {
        message.push_str(&format!("\n  and {} more", largest.len() - LISTED));
    }
    Failure::input(message)
}

/// The progress of files: a bar on a terminal, a line for each file elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    is_silent: bool,
    /// The last interruption of each file, so that each is reported once.
    interruptions: Mutex<BTreeMap<String, String>>,
}

impl Progress {
    fn new(total: u64, is_silent: bool) -> Self {
        let bar = (!is_silent && can_be_drawn_on()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template(
                "{bar:24} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}, {eta} left {wide_msg}",
            );
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Progress { bar, is_silent, interruptions: Mutex::default() }
    }

    fn note(&self, event: Event<'_>) {
        match event {
            Event::Got(bytes) => self.bar.iter().for_each(|bar| bar.inc(bytes)),
            Event::Lost(bytes) => self.bar.iter().for_each(|bar| bar.dec(bytes)),
            Event::Again { path, cause } => {
                let mut reported =
                    self.interruptions.lock().unwrap_or_else(PoisonError::into_inner);
                let before = reported.insert(path.to_owned(), cause.to_owned());
                if before.is_none_or(|before| before != cause) {
                    self.say(&format!("{path}: {cause}; resuming with another connection"));
                }
            }
            Event::Done { path, bytes, was_there } => {
                let how = if was_there { ", already there" } else { "" };
                if !self.is_silent {
                    self.say(&format!("  {path} ({}{how})", size(bytes)));
                }
            }
        }
    }

    fn say(&self, message: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tell(message)),
            None => tell(message),
        }
    }

    fn finish(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
