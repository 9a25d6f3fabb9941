//! How a run is watched while it goes on: the progress line, the dashboard, or the page that Prometheus reads.

use std::io;
use std::path::Path;
use std::sync::Arc;

use clap::builder::FalseyValueParser;

use super::dashboard::{self, Dashboard};
use super::failure::{Exit, Failure, tell};
use super::interrupt::Interrupt;
use super::progress::{How, Progress};
use model::duration::Span;
use scenario::plan::Plan;
use session::live::Live;
use session::live::exposition::Identity;
use session::live::listen::{Address, Listener};

/// How a run is watched.
#[derive(Clone, Debug, clap::Args)]
pub struct Watch {
    /// Show a run in the terminal while it goes on: throughput, latencies, failures, this client's load
    #[arg(long, env = "RUNNER_DASHBOARD", value_parser = FalseyValueParser::new(), help_heading = "Progress")]
    dashboard: bool,
    /// Serve metrics for Prometheus while runs go on: HOST:PORT, or :PORT for this machine alone
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "RUNNER_METRICS_LISTEN",
        help_heading = "Progress"
    )]
    metrics_listen: Option<Address>,
    /// How often a line tells of progress where stderr is no terminal
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_PROGRESS_EVERY",
        default_value = "30s",
        value_parser = interval,
        help_heading = "Progress"
    )]
    progress_every: Span,
    /// Tell nothing of progress
    #[arg(long, env = "RUNNER_NO_PROGRESS", value_parser = FalseyValueParser::new(), help_heading = "Progress")]
    no_progress: bool,
}

fn interval(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    match span.0.is_zero() {
        true => Err("lines need some time between them; --no-progress has none".to_owned()),
        false => Ok(span),
    }
}

/// What is ready to watch runs, one after the other.
pub struct Watching {
    listener: Option<Listener>,
    dashboard: bool,
    how: How,
}

/// Shows one run until dropped.
pub enum Onlooker {
    /// In a line.
    Progress(Progress),
    /// On the whole terminal.
    Dashboard(Dashboard),
}

impl Watch {
    /// Makes ready, before anything is measured.
    ///
    /// # Errors
    /// Where there is no terminal to draw on, or the address cannot be listened on.
    pub fn begin(&self) -> Result<Watching, Failure> {
        if self.dashboard && !dashboard::is_possible() {
            return Err(Failure::new(
                Exit::CommandLine,
                "--dashboard draws on the terminal that stderr is, and stderr is none; leave it out (a line tells of progress now and then), or watch with --metrics-listen",
            ));
        }
        let listener = self.metrics_listen.as_ref().map(listen).transpose()?;
        if let Some(listener) = &listener {
            let address = listener.address();
            tell(format_args!("metrics: http://{address}/metrics"));
        }
        Ok(Watching {
            listener,
            dashboard: self.dashboard,
            how: match self.no_progress {
                true => How::Silent,
                false => How::suiting_stderr(self.progress_every.0),
            },
        })
    }
}

fn listen(address: &Address) -> Result<Listener, Failure> {
    Listener::bind(address).map_err(|cause| {
        let advice = match cause.kind() {
            io::ErrorKind::AddrInUse => "; another program listens there: give another port, or port 0 to have the system choose one",
            io::ErrorKind::PermissionDenied => "; ports below 1024 are for the system's services: give a higher one",
            _ => "; give an address of this machine, such as 127.0.0.1:9464",
        };
        let words = format!("cannot listen on {address} (--metrics-listen): {cause}{advice}");
        Failure::new(Exit::Input, words)
    })
}

impl Watching {
    /// Watches one run, which goes by the name of its folder.
    pub fn look_at(
        &self,
        folder: &Path,
        plan: &Plan,
        live: &Arc<Live>,
        interrupt: &Interrupt,
    ) -> Onlooker {
        if let Some(listener) = &self.listener {
            let run = folder.file_name().unwrap_or_default().to_string_lossy();
            listener.show(Identity::of(&run, plan), live);
        }
        if self.dashboard {
            match Dashboard::show(plan, live, interrupt) {
                Ok(dashboard) => return Onlooker::Dashboard(dashboard),
                Err(cause) => tell(format_args!("note: no dashboard: {cause}")),
            }
        }
        Onlooker::Progress(Progress::show(plan, live, self.how))
    }
}
