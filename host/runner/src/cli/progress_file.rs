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

use serde_json::{Value, json};

use super::failure::Failure;
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
