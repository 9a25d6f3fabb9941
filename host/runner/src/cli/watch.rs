//! Ways to watch a run: the progress line, the dashboard, a file of progress for programs, or the
//! metrics page for Prometheus.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::dashboard;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::print::tell;
use super::progress::{How, Progress};
use super::progress_file::ProgressFile;
use load::thread_group::ThreadGroup;
use model::duration::Span;
use scenario::plan::Plan;
use session::live::Live;
use session::live::exposition::Identity;
use session::live::listen::{Address, Listener};

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
