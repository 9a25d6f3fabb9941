//! Ways to watch a run: the progress line, the dashboard, a file of progress for programs, or the
//! metrics page for Prometheus.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::dashboard;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::print::tell;
use super::progress::{How, Progress, amount};
use load::thread_group::ThreadGroup;
use model::clean;
use model::duration::Span;
use scenario::plan::{Amount, Plan};
use session::live::exposition::Identity;
use session::live::listen::{Address, Listener};
use session::live::{History, Live, Snapshot};

const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The way a run is watched.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Progress")]
pub struct Watch {
    /// Show the run live in the terminal: throughput, latencies, failures, this client's load
    #[arg(long, env = "RUNNER_DASHBOARD")]
    dashboard: bool,
    /// Serve Prometheus metrics during runs, at HOST:PORT, or at :PORT for this machine only
    #[arg(long, value_name = "ADDRESS", env = "RUNNER_METRICS_LISTEN")]
    metrics_listen: Option<Address>,
    /// Append progress to this file or pipe, a line of JSON at a time
    ///
    /// For programs that watch runs; the guide's page `monitoring` has the keys.
    #[arg(long, value_name = "FILE", env = "RUNNER_PROGRESS_FILE")]
    progress_file: Option<PathBuf>,
    /// Time between progress lines of a file, and on stderr if that is not a terminal
    #[arg(long, value_name = "TIME", env = "RUNNER_PROGRESS_EVERY", default_value = "30s")]
    #[arg(value_parser = interval)]
    progress_every: Span,
    /// Do not show progress
    #[arg(long, alias = "disable-tqdm", env = "RUNNER_NO_PROGRESS")]
    no_progress: bool,
}

fn interval(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span.0.is_zero() {
        return Err("the interval must not be zero; use --no-progress instead".to_owned());
    }
    if span.0 > LONGEST {
        let longest = model::duration::format(LONGEST);
        return Err(format!("the interval must be at most {longest}; use --no-progress instead"));
    }
    Ok(span)
}

/// The displays that are ready to watch runs, one after the other.
pub struct Displays {
    listener: Option<Listener>,
    file: Option<ProgressFile>,
    dashboard: bool,
    how: How,
}

/// Shows one run until dropped.
pub struct Onlooker {
    _display: Progress,
    _file: Option<Progress>,
}

impl Watch {
    /// Prepares, before anything is measured.
    pub fn begin(&self) -> Result<Displays, Failure> {
        if self.dashboard && !dashboard::is_possible() {
            return Err(Failure::command_line(
                "--dashboard draws on stderr, but stderr is not a terminal; leave it out (progress lines appear now and then), or watch with --metrics-listen",
            ));
        }
        let file = (self.progress_file.as_deref())
            .map(|file| ProgressFile::open(file, self.progress_every.0))
            .transpose()?;
        let listener = self.metrics_listen.as_ref().map(listen).transpose()?;
        if let Some(listener) = &listener {
            let address = listener.address();
            tell(format_args!("metrics: http://{address}/metrics"));
        }
        Ok(Displays {
            listener,
            file,
            dashboard: self.dashboard,
            how: if self.no_progress {
                How::Silent
            } else {
                How::suiting_stderr(self.progress_every.0)
            },
        })
    }
}

fn listen(address: &Address) -> Result<Listener, Failure> {
    Listener::bind(address).map_err(|cause| {
        let advice = match cause.kind() {
            io::ErrorKind::AddrInUse => "; another program listens there: choose another port, or port 0 to let the system choose one",
            io::ErrorKind::PermissionDenied => "; ports below 1024 are reserved for system services: choose a higher one",
            _ => "; give an address of this machine, such as 127.0.0.1:9464",
        };
        Failure::input(format!("cannot listen on {address} (--metrics-listen): {cause}{advice}"))
    })
}

impl Displays {
    /// Watches one run, which is named after its folder.
    pub(crate) fn look_at(
        &self,
        folder: &Path,
        plan: &Plan,
        live: &Arc<Live>,
        threads: &ThreadGroup,
        interrupt: &Interrupt,
    ) -> Onlooker {
        if let Some(listener) = &self.listener {
            let run = folder.file_name().unwrap_or_default().to_string_lossy();
            listener.show(Identity::new(&run, plan), live, threads);
        }
        let on_screen = || dashboard::show(plan, live, threads, interrupt);
        let display = self.dashboard.then(on_screen).and_then(|shown| {
            let note = |cause: &_| tell(format_args!("note: cannot show the dashboard: {cause}"));
            shown.inspect_err(note).ok()
        });
        Onlooker {
            _display: display.unwrap_or_else(|| Progress::show(plan, live, threads, self.how)),
            _file: (self.file.as_ref()).map(|file| file.follow(folder, plan, live, threads)),
        }
    }
}

// The progress of runs for programs: a file, or a pipe, of lines of JSON. It owns the keys of a
// line; `session::live` owns the figures, and `progress` the text for people.
//
// Each line is complete: a reader needs only the last one. A run's first line comes when its
// folder exists, and its last line when everything is recorded. So the lines also give the runs of
// a command, and their folders.

pub(super) struct ProgressFile {
    file: Arc<File>,
    path: PathBuf,
    every: Duration,
}

impl ProgressFile {
    pub(super) fn open(path: &Path, every: Duration) -> Result<Self, Failure> {
        let file = File::options().append(true).create(true).open(path);
        let file = file
            .map_err(Failure::write(path, "; give --progress-file a file that can be written"))?;
        Ok(ProgressFile { file: Arc::new(file), path: path.to_owned(), every })
    }

    pub(super) fn follow(
        &self,
        folder: &Path,
        plan: &Plan,
        live: &Arc<Live>,
        threads: &ThreadGroup,
    ) -> Progress {
        let (file, path, every) = (Arc::clone(&self.file), self.path.clone(), self.every);
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let run = Run {
            run: folder.to_string_lossy().into_owned(),
            name: clean::line(&plan.name).into_owned(),
            amount: amount(plan),
            history: History::default(),
        };
        let looked_at = Arc::clone(live);
        Progress::start("progress-file", live, threads, move |until| {
            if let Err(cause) = run.write(&file, &looked_at, every, until) {
                let path = path.display();
                tell(format_args!("note: no more progress is written to `{path}`: {cause}"));
            }
        })
        .unwrap_or_default()
    }
}

struct Run {
    run: String,
    name: String,
    amount: Amount,
    history: History,
}

impl Run {
    fn write(
        mut self,
        mut file: &File,
        live: &Live,
        every: Duration,
        until: &AtomicBool,
    ) -> std::io::Result<()> {
        loop {
            // Read before the run's state, so that the last line shows the end.
            let is_last = until.load(Ordering::Acquire);
            let snapshot = live.snapshot();
            self.history.note(&snapshot);
            // In one piece, so that a reader finds whole lines.
            file.write_all(format!("{}\n", self.line(&snapshot)).as_bytes())?;
            if is_last {
                return Ok(());
            }
            std::thread::park_timeout(every);
        }
    }

    /// A line. An unknown value, or one not known yet, has no key.
    fn line(&self, snapshot: &Snapshot) -> Value {
        let counts = &snapshot.counts;
        let ttft = snapshot.ttft.recent.or(snapshot.ttft.whole);
        let requests = match self.amount {
            Amount::Requests(requests) => Some(requests),
            Amount::Sessions(_) | Amount::Duration(_) => None,
        };
        let mut line = json!({
            "run": self.run,
            "name": self.name,
            "phase": counts.phase.name(),
            "requests": requests,
            "share": snapshot.share(self.amount),
            "elapsed-s": counts.elapsed.map(|time| time.as_secs_f64()),
            "left-s": snapshot.left(self.amount).map(|time| time.as_secs_f64()),
            "in-flight": counts.in_flight,
            "waiting": counts.waiting,
            "answered": counts.answered,
            "failed": counts.failures(),
            "cancelled": counts.cancelled,
            "output-tokens-per-s": self.history.recent().map(|rates| rates.tokens),
            "ttft-p50-ms": ttft.map(|ttft| ttft.p50_ms),
            "ttft-p99-ms": ttft.map(|ttft| ttft.p99_ms),
        });
        line.as_object_mut().into_iter().for_each(|keys| keys.retain(|_, value| !value.is_null()));
        line
    }
}
