//! Spans and metrics of a run on their way to a collector of traces: taken where exchanges are
//! recorded, and sent by a thread of its own.
//!
//! Nothing waits for it. The recorder puts what it saw into a queue of bounded length and goes on;
//! what finds no room there, or what the collector does not take, is counted as lost, which becomes
//! a note in the result. The end of a run waits for the rest for a limited time. What spans are is
//! up to `otlp`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::runtime::Runtime;

use load::pace::Signal;
use load::question::{answer_within, open};
use load::thread_group::{GroupThread, ThreadGroup, trip};
use load::transport::{Dial, Request};
use load::vitals::yield_to_others;
use model::client::Spans;
use model::clock::Clock;
use model::connection::{Timestamps, Version};
use model::exchange::Exchange;
use model::target::Secrets;
use model::units::Nanos;
use otlp::{About, MEDIA_TYPE, METRICS, Seen, TRACES, Tracer, rejected};
use scenario::plan::Plan;

use crate::parts::{Collector, Parts, RunError};

/// Exchanges that may wait to become spans: some megabytes.
const QUEUE: usize = 16 << 10;
/// Spans of one request to the collector.
const BATCH: usize = 512;
/// Time for which spans wait for others.
const GATHER: Nanos = Nanos(1_000_000_000);
/// Time between reports of metrics.
const REPORT: Nanos = Nanos(10_000_000_000);
/// The timeout for a connection, and again for the collector's reply.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Pauses before a batch is sent again, if the collector may take it later.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// Time after the last exchange for which spans are still sent.
const END_WITHIN: Nanos = Nanos(10_000_000_000);
/// The same of a run that was stopped.
const STOPPED_WITHIN: Nanos = Nanos(2_000_000_000);
/// The longest error that is kept, in bytes.
const ERROR: usize = 300;

/// The recorder's end of the queue.
pub(crate) struct Outlet {
    queue: Sender<Seen>,
    overflow: Arc<AtomicU64>,
}

impl Outlet {
    /// Takes what spans need of an exchange, if there is room.
    pub(crate) fn offer(&self, exchange: &Exchange) {
        if self.queue.is_full() || self.queue.try_send(Seen::of(exchange)).is_err() {
            self.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Begins to send spans, if the run has a collector: the recorder's end, and the thread, which ends
/// with the recorder. In virtual time nothing is sent.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn start(
    (plan, parts): (&Plan, &Parts),
    clock: Clock,
    (group, signal): (&ThreadGroup, &Signal),
    run: &std::path::Path,
) -> Result<Option<(Outlet, GroupThread<Spans>)>, RunError> {
    let Some(collector) = parts.collector.clone().filter(|_| !signal.is_task()) else {
        return Ok(None);
    };
    let (queue, waiting) = crossbeam_channel::bounded(QUEUE);
    let overflow = Arc::new(AtomicU64::new(0));
    let outlet = Outlet { queue, overflow: Arc::clone(&overflow) };
    let tracer = Tracer::new(about(plan, parts, clock, run));
    let (signal, trust) = (signal.clone(), plan.connection.trust.clone());
    let thread = group.start("spans", None, move || {
        yield_to_others();
        let wire = Wire::new(collector, &trust, clock);
        let exporting = Exporting {
            tracer,
            wire,
            clock,
            signal,
            spans: Spans::default(),
            is_down: false,
            reported: clock.now(),
        };
        let mut spans = exporting.run(&waiting);
        spans.lost += overflow.load(Ordering::Relaxed);
        if spans.lost > 0 {
            let slow = "it was slower than the run, and no more spans may wait";
            spans.error.get_or_insert_with(|| slow.to_owned());
        }
        spans
    });
    let thread = thread.map_err(RunError::Thread)?;
    Ok(Some((outlet, thread)))
}

/// What is the same for all spans of a run.
fn about(plan: &Plan, parts: &Parts, clock: Clock, run: &std::path::Path) -> About {
    /// Backends whose servers have a name in the semantic conventions.
    const PROVIDERS: [(&str, &str); 2] = [("bedrock", "aws.bedrock"), ("gemini", "gcp.gemini")];
    /// Backends that speak of chats alone.
    const CHATS: [&str; 5] = ["anthropic", "bedrock", "cohere", "gemini", "realtime"];
    let backend = &*plan.backend.name;
    let provider = PROVIDERS.iter().find(|(name, _)| *name == backend);
    let route = plan.backend.config.get("route");
    let route = route.and_then(|route| route.as_str());
    let is_chat = match route {
        Some(route) => route.contains("chat"),
        None => CHATS.contains(&backend),
    };
    let origin = clock.behind_system_time().unwrap_or_else(|| {
        // The two clocks were read apart; twice in a row is enough for a picture.
        let since = model::clock::date().duration_since(std::time::UNIX_EPOCH);
        let since = i128::try_from(since.unwrap_or_default().as_nanos()).unwrap_or_default();
        since - i128::from(clock.now().0)
    });
    let servers = parts.targets.iter();
    About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: plan.name.clone(),
        run: run.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        operation: if is_chat { "chat".to_owned() } else { "text_completion".to_owned() },
        provider: provider.map_or(backend, |(_, name)| name).to_owned(),
        model: plan.target.model.clone(),
        servers: servers.map(|target| (target.host().to_owned(), target.port())).collect(),
        origin: u64::try_from(origin).unwrap_or_default(),
    }
}

/// The thread's state.
struct Exporting {
    tracer: Tracer,
    wire: Result<Wire, String>,
    clock: Clock,
    signal: Signal,
    spans: Spans,
    /// True if the last batch was not taken even when it was sent again.
    is_down: bool,
    /// When metrics were reported last.
    reported: Nanos,
}

impl Exporting {
    /// Sends what the recorder saw, until it has left and everything is sent or lost.
    fn run(mut self, waiting: &Receiver<Seen>) -> Spans {
        let mut since = self.clock.now();
        loop {
            let now = self.clock.now();
            let left = Duration::from(GATHER).saturating_sub(now.since(since).into());
            match waiting.recv_timeout(left) {
                Ok(seen) => {
                    trip("spans");
                    if self.tracer.waiting() == 0 {
                        since = self.clock.now();
                    }
                    if !self.tracer.add(&seen) {
                        self.spans.lost += 1;
                    }
                    if self.tracer.waiting() < BATCH {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.send(None);
            since = self.clock.now();
            if since.since(self.reported) >= REPORT {
                self.report(None);
            }
        }
        self.tracer.finish();
        self.spans.lost += self.tracer.untracked();
        let within = if self.signal.is_stopped() { STOPPED_WITHIN } else { END_WITHIN };
        let until = Some(self.clock.now() + within);
        while self.tracer.waiting() > 0 && self.may_go_on(until) {
            self.send(until);
        }
        self.spans.lost += self.tracer.waiting() as u64;
        if self.may_go_on(until) {
            self.report(until);
        }
        self.spans
    }

    /// True while there is time left, and the user still waits.
    fn may_go_on(&self, until: Option<Nanos>) -> bool {
        !self.signal.is_aborted() && until.is_none_or(|until| self.clock.now() < until)
    }

    /// How long the collector has for a step.
    fn limit(&self, until: Option<Nanos>) -> Duration {
        let left = until.map(|until| Duration::from(until.since(self.clock.now())));
        left.map_or(ANSWER_WITHIN, |left| left.min(ANSWER_WITHIN))
    }

    /// Sends a batch.
    fn send(&mut self, until: Option<Nanos>) {
        let (message, count) = self.tracer.traces(BATCH);
        if count == 0 {
            return;
        }
        match self.post(TRACES, &message, until) {
            Ok((rejected, why)) => {
                let rejected = rejected.min(count);
                self.spans.lost += rejected;
                self.spans.sent += count - rejected;
                if rejected > 0 {
                    self.fault(why);
                }
            }
            Err(why) => {
                self.spans.lost += count;
                self.fault(why);
            }
        }
    }

    /// Sends the metrics so far.
    fn report(&mut self, until: Option<Nanos>) {
        self.reported = self.clock.now();
        let Some(message) = self.tracer.metrics(self.reported) else {
            return;
        };
        match self.post(METRICS, &message, until) {
            Ok((0, _)) => {}
            Ok((_, why)) | Err(why) => self.fault(why),
        }
    }

    fn fault(&mut self, why: String) {
        self.spans.error.get_or_insert(why);
    }

    /// Sends a message, again if the collector may take it later. Says how much of it was not
    /// taken.
    fn post(
        &mut self,
        path: &str,
        message: &[u8],
        until: Option<Nanos>,
    ) -> Result<(u64, String), String> {
        let wire = self.wire.as_ref().map_err(String::clone)?;
        let mut pauses = PAUSES.iter();
        loop {
            let failed = match wire.post(path, message, self.limit(until)) {
                Ok(taken) => {
                    self.is_down = false;
                    return Ok(taken);
                }
                Err(failed) => failed,
            };
            // One that was down is given one chance for each batch.
            let pause = pauses.next().filter(|_| failed.may_pass && !self.is_down);
            let Some(pause) = pause.filter(|_| self.may_go_on(until)) else {
                self.is_down = failed.may_pass;
                return Err(failed.why);
            };
            std::thread::sleep(*pause);
        }
    }
}

/// The reason why the collector did not take a message.
struct Failed {
    why: String,
    /// True if it may take it later.
    may_pass: bool,
}

/// The way to the collector.
struct Wire {
    collector: Collector,
    dial: Dial,
    runtime: Runtime,
    clock: Clock,
}

impl Wire {
    /// To this collector.
    ///
    /// # Errors
    /// Why there is none, for people.
    fn new(
        collector: Collector,
        trust: &model::connection::Trust,
        clock: Clock,
    ) -> Result<Self, String> {
        let targets = std::slice::from_ref(&collector.target);
        let dial = Dial::new(targets, &[], Version::Http1, trust, Timestamps::User);
        let dial = dial.map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Wire { collector, dial, runtime, clock })
    }

    /// Sends a message, on a connection of its own. Says how much of it was not taken, and why.
    fn post(&self, path: &str, message: &[u8], limit: Duration) -> Result<(u64, String), Failed> {
        let request = self.request(path, message).map_err(|why| Failed { why, may_pass: false })?;
        let asked = async {
            let mut connection = open(&self.dial, 0, self.clock, limit.into()).await?;
            let answer = answer_within(&mut connection, request, limit).await;
            let late = || {
                let limit = model::duration::format(limit);
                Err(format!("no answer within {limit}"))
            };
            answer.unwrap_or_else(late)
        };
        let answered = tokio::task::LocalSet::new().block_on(&self.runtime, asked);
        let (head, body) =
            answered.map_err(|why| Failed { why: self.shown(&why), may_pass: true })?;
        match head.status {
            200..300 => {
                let (count, why) = rejected(&body);
                Ok((count, self.shown(&why)))
            }
            status => Err(Failed {
                why: self.shown(&format!(
                    "it answered with HTTP {status} {}",
                    String::from_utf8_lossy(&body)
                )),
                // Those that OTLP says to send again.
                may_pass: matches!(status, 429 | 502 | 503 | 504),
            }),
        }
    }

    fn request(&self, path: &str, message: &[u8]) -> Result<Request, String> {
        let target = &self.collector.target;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.collector.headers {
            let name = HeaderName::try_from(name).map_err(|error| error.to_string())?;
            let mut value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        let (scheme, authority) = (target.scheme(), target.authority());
        let path = target.path(path);
        let body = Bytes::copy_from_slice(message);
        let at = (scheme, &*authority);
        let request = Request::new(Version::Http1, at, "POST", &path, headers, body);
        request.map_err(|error| error.to_string())
    }

    /// What the collector said, as it may be shown: in one line, of a bounded length, without
    /// secrets.
    fn shown(&self, text: &str) -> String {
        let secrets = Secrets { headers: self.collector.headers.clone(), ..Secrets::default() };
        let text = model::clean::line(&secrets.redact(text)).into_owned();
        let text = text.trim();
        text[..text.floor_char_boundary(ERROR)].to_owned()
    }
}
