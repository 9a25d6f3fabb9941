//! The progress of runs for programs: a file, or a pipe, of lines of JSON. It owns the keys of a
//! line; [`session::live`] owns the figures, and [`super::progress`] the text for people.
//!
//! Each line is complete: a reader needs only the last one. A run's first line comes when its
//! folder exists, and its last line when everything is recorded. So the lines also give the runs of
//! a command, and their folders.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::error::CliError;
use super::print::tell;
use super::progress::{Progress, amount};
use load::thread_group::ThreadGroup;
use model::clean;
use scenario::plan::{Amount, Plan};
use session::live::{History, Live, Snapshot};

pub(super) struct ProgressFile {
    file: Arc<File>,
    path: PathBuf,
    every: Duration,
}

impl ProgressFile {
    pub(super) fn open(path: &Path, every: Duration) -> Result<Self, CliError> {
        let file = File::options().append(true).create(true).open(path);
        let file = file
            .map_err(CliError::write(path, "; give --progress-file a file that can be written"))?;
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
            let mut line = serde_json::to_vec(&self.line(&snapshot))?;
            line.push(b'\n');
            // In one piece, so that a reader finds whole lines.
            file.write_all(&line)?;
            if is_last {
                return Ok(());
            }
            std::thread::park_timeout(every);
        }
    }

    fn line(&self, snapshot: &Snapshot) -> Line<'_> {
        let counts = &snapshot.counts;
        let ttft = snapshot.ttft.recent.or(snapshot.ttft.whole);
        Line {
            run: &self.run,
            name: &self.name,
            phase: counts.phase.name(),
            requests: match self.amount {
                Amount::Requests(requests) => Some(requests),
                Amount::Sessions(_) | Amount::Duration(_) => None,
            },
            share: snapshot.share(self.amount),
            elapsed_s: counts.elapsed.map(|time| time.as_secs_f64()),
            left_s: snapshot.left(self.amount).map(|time| time.as_secs_f64()),
            in_flight: counts.in_flight,
            waiting: counts.waiting,
            answered: counts.answered,
            failed: counts.failures(),
            cancelled: counts.cancelled,
            output_tokens_per_s: self.history.recent().map(|rates| rates.tokens),
            ttft_p50_ms: ttft.map(|ttft| ttft.p50_ms),
            ttft_p99_ms: ttft.map(|ttft| ttft.p99_ms),
        }
    }
}

/// A line. An unknown value, or one not known yet, has no key.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Line<'t> {
    run: &'t str,
    name: &'t str,
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_s: Option<f64>,
    in_flight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<u64>,
    answered: u64,
    failed: u64,
    cancelled: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttft_p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttft_p99_ms: Option<f64>,
}
