//! The server's own series: the metrics page of each target, or of each engine behind it. A thread
//! that yields to all others reads it at an interval, over a connection of its own, into the run's
//! folder. Without a page or an answer, the run loses only its series. In virtual time nothing is
//! read.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use load::question::ANSWER_BYTES;
use load::transport::Head;
use load::vitals::{WatchedThread, yield_to_others};
use model::clock::{Clock, date};
use model::connection::Version;
use model::target::{Secrets, Target};
use model::units::Nanos;
use plugins::backend::{self, Control};
use runs::record::{RecordError, Written};
use runs::series::Log;
use scenario::plan::Plan;
use series::{Encoder, Entry, Failed, Levels, levels};

use crate::authenticate::http_request;
use crate::decode::failures::fit;
use crate::local::Line;
use crate::lock;
use crate::parts::{Parts, RunError};

/// Time limit for a page, and again for the connection. A server that is busy writes it late.
const PAGE_WITHIN: Duration = Duration::from_secs(10);

/// The time that the last pages may take once the run is over: no server holds a run up.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// The most doublings of the interval, after failures in a row.
const MOST_DOUBLINGS: u32 = 5;

/// The series of a run, from its beginning to its end.
#[derive(Default)]
pub struct ServerPages {
    shared: OnceLock<Arc<PageState>>,
    written: Mutex<Option<Result<Written, RecordError>>>,
}

/// The shared state of the threads: numbers of series count over all targets.
struct PageState {
    kept: Mutex<Option<PagesFile>>,
    /// The levels of each target's latest page.
    latest: Mutex<Vec<Option<Levels>>>,
}

struct PagesFile {
    encoder: Encoder,
    log: Log,
}

pub(crate) struct Sampling {
    shared: Arc<PageState>,
    stops: Vec<Sender<()>>,
    ended: Receiver<()>,
}

impl ServerPages {
    /// Begins to read the targets' metrics pages into the run's folder, if the plan says so.
    pub(crate) fn watch(
        &self,
        (plan, parts): (&Plan, &Parts),
        clock: Clock,
        folder: &Path,
        enlist: impl Fn(WatchedThread) + Clone + Send + 'static,
    ) -> Result<Option<Sampling>, RunError> {
        // One of the runs that share a plan reads for all.
        let is_first = plan.slice.is_none_or(|slice| slice.index == 0);
        let Some(every) = plan.control.server_series.filter(|_| is_first) else { return Ok(None) };
        let Some(question) = parts.backend.open()?.control(Control::Metrics)? else {
            return Ok(None);
        };
        let targets = match parts.monitored.as_slice() {
            [] => &parts.targets,
            _ => &parts.monitored,
        };
        let encoder = Encoder::new(series::Head {
            targets: targets.iter().map(Target::to_string).collect(),
            every_ns: every,
        });
        let mut log = Log::create(folder)?;
        log.write(&[encoder.head()]);
        let shared = Arc::new(PageState {
            kept: Mutex::new(Some(PagesFile { encoder, log })),
            latest: Mutex::new(vec![None; targets.len()]),
        });
        let (end, ended) = channel();
        let mut stops = Vec::new();
        for (number, target) in (0..).zip(targets) {
            let (stop, stopped) = channel();
            let reader = Reader {
                clock,
                number,
                target: target.clone(),
                question: question.clone(),
                is_target: parts.targets.iter().any(|own| own.is_at(target)),
                secrets: parts.secrets.clone(),
                plan: plan.connection.clone(),
                shared: Arc::clone(&shared),
                failed: Failed { target: number, ..Failed::default() },
                in_a_row: 0,
            };
            let (end, enlist) = (end.clone(), enlist.clone());
            let thread = std::thread::Builder::new().name(format!("series-{number}"));
            thread
                .spawn(move || {
                    // First: a thread that yields to all others may not run again before the end.
                    if let Some(thread) = WatchedThread::this_thread("series") {
                        enlist(thread);
                    }
                    yield_to_others();
                    reader.run(&stopped);
                    drop(end);
                })
                .map_err(RunError::Thread)?;
            stops.push(stop);
        }
        let _ = self.shared.set(Arc::clone(&shared));
        Ok(Some(Sampling { shared, stops, ended }))
    }

    /// Takes the last pages, and ends the file.
    pub(crate) fn finish(&self, sampling: Option<Sampling>) {
        let Some(Sampling { shared, stops, ended }) = sampling else { return };
        for stop in &stops {
            let _ = stop.send(());
        }
        // Nothing is ever sent: it ends when the last thread has.
        let _ = ended.recv_timeout(LAST_WITHIN);
        let file = lock(&shared.kept).take();
        *lock(&self.written) = file.map(|file| file.log.finish());
    }

    /// The sum of the targets' latest pages; absent before the first, and if a target has none.
    pub fn latest(&self) -> Option<Levels> {
        let latest = lock(&self.shared.get()?.latest);
        let all: Option<Vec<Levels>> = latest.iter().copied().collect();
        Some(Levels::together(&all?))
    }

    /// Returns the summary of the file, or the error that cut it short; once.
    pub(crate) fn written(&self) -> Option<Result<Written, RecordError>> {
        lock(&self.written).take()
    }
}

struct Reader {
    clock: Clock,
    number: u32,
    target: Target,
    question: backend::Request,
    /// True if requests go there too, and so the key may.
    is_target: bool,
    secrets: Secrets,
    plan: scenario::plan::Wiring,
    shared: Arc<PageState>,
    failed: Failed,
    in_a_row: u32,
}

impl Reader {
    fn run(mut self, stopped: &Receiver<()>) {
        let mut due = self.clock.now();
        let mut line = None;
        loop {
            self.sample(&mut line);
            let Some(every) = self.every() else { break };
            // A server that is slower than the interval is asked as often as it answers.
            due = (due + every).max(self.clock.now());
            match stopped.recv_timeout(due.since(self.clock.now()).into()) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) => {
                    self.sample(&mut line);
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if self.failed.count > 0 {
            self.keep(|_| vec![Entry::Failed(self.failed.clone())]);
        }
    }

    /// The time to the next page; `None` once the file has ended.
    fn every(&self) -> Option<Nanos> {
        let file = lock(&self.shared.kept);
        let every = file.as_ref()?.encoder.every();
        let doublings = self.in_a_row.min(MOST_DOUBLINGS);
        Some(Nanos(every.0.saturating_mul(1 << doublings)))
    }

    fn sample(&mut self, line: &mut Option<Line>) {
        let start = self.clock.now();
        match self.page(line) {
            Ok(page) => {
                let end = self.clock.now();
                self.in_a_row = 0;
                let number = self.number;
                self.keep(|encoder| encoder.page(number, (start, end), &page));
                lock(&self.shared.latest)[number as usize] = Some(levels(&page));
            }
            Err(error) => {
                self.in_a_row += 1;
                self.failed.count += 1;
                self.failed.error = fit(&self.secrets.redact(&error));
                lock(&self.shared.latest)[self.number as usize] = None;
                // A server that is gone for hours fills no disk with its errors.
                if self.failed.count.is_power_of_two() {
                    self.keep(|_| vec![Entry::Failed(self.failed.clone())]);
                }
            }
        }
    }

    fn keep(&self, entries: impl FnOnce(&mut Encoder) -> Vec<Entry>) {
        if let Some(PagesFile { encoder, log }) = &mut *lock(&self.shared.kept) {
            log.write(&entries(encoder));
        }
    }

    /// The page as it is now, without secrets.
    fn page(&self, line: &mut Option<Line>) -> Result<String, String> {
        let version = self.plan.http;
        let line = match line {
            Some(line) => line,
            None => line.insert(Line::open(&self.target, version, &self.plan.trust)?),
        };
        let below = self.target.path(&self.question.path);
        let question = self.question.clone();
        let nothing = Secrets::default();
        let secrets = if self.is_target { &self.secrets } else { &nothing };
        let request = http_request(&self.target, version, (secrets, &[]), &below, question)?;
        let (head, body) = line.page(self.clock, request.ready(date), PAGE_WITHIN)?;
        match head.status {
            200 => {
                whole(&head, version, &body)?;
                Ok(String::from_utf8_lossy(&self.secrets.redact_bytes(&body)).into_owned())
            }
            status => Err(format!(
                "{below} was answered with HTTP {status}; start the server with metrics enabled"
            )),
        }
    }
}

/// Refuses a page that was cut: series behind the cut are not gone, and half a number is another.
fn whole(head: &Head, version: Version, body: &[u8]) -> Result<(), String> {
    if body.len() >= ANSWER_BYTES {
        return Err(format!("the page has more than {} MiB", ANSWER_BYTES >> 20));
    }
    let states_end = [CONTENT_LENGTH, TRANSFER_ENCODING].iter();
    let mut states_end = states_end.map(|name| head.headers.contains_key(name));
    let has_end = version == Version::Http2 || states_end.any(|has| has) || body.ends_with(b"\n");
    has_end.then_some(()).ok_or_else(|| "the page ends within a line".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{HeaderMap, HeaderValue};

    #[test]
    fn cut_page_is_rejected() {
        let mut head = Head { status: 200, headers: HeaderMap::new() };
        let is_whole = |head: &Head, body: &[u8]| whole(head, Version::Http1, body).is_ok();
        assert!(is_whole(&head, b"a 1\nb 2\n"));
        assert!(!is_whole(&head, b"a 1\nb 2\nc 31"));
        assert!(!is_whole(&head, &vec![b'\n'; ANSWER_BYTES]));
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("3"));
        assert!(is_whole(&head, b"a 1"), "its length bounds it");
    }
}
