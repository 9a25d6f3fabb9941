//! Requests that a backend wants sent once an exchange has ended: to delete a job, or to close a
//! session. Nothing of a measurement waits for them. Decode threads put them into a queue of a
//! fixed length; one thread (in virtual time, a task) sends them, each on a connection of its own.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use crate::decode::failures::fit;
use crate::{local::Local, lock};
use load::pace::Signal;
use load::question;
use load::thread_group::GroupThread;
use load::transport::{Connect, Request};
use model::client::Errands;
use model::clock::Clock;
use model::target::Secrets;
use model::units::Nanos;

const WAITING: usize = 1024;
/// The most that are under way at once.
const IN_FLIGHT: usize = 16;
/// Time for the clean-up requests that are left when all exchanges are over.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval of the checks for the end of the run.
const GLANCE: Duration = Duration::from_millis(100);
/// The longest part of a server's message that is kept, in bytes.
const MESSAGE_BYTES: usize = 200;

/// A request, and the number of the target that it goes to.
pub(crate) struct CleanUp {
    target: u32,
    request: Request,
    cookies: Vec<String>,
}

pub struct CleanUps {
    queue: Sender<CleanUp>,
    tally: Arc<Tally>,
    thread: LateThread,
}

/// A thread that sends clean-up requests, and starts with the first.
#[derive(Clone, Default)]
pub(crate) struct LateThread(Arc<Mutex<Option<State>>>);

enum State {
    Waiting(Box<dyn FnOnce() -> io::Result<SenderThread> + Send>),
    Running(SenderThread),
}

type SenderThread = GroupThread<Option<Errands>>;

pub(crate) struct Cleaner {
    queue: Receiver<CleanUp>,
    tally: Arc<Tally>,
    secrets: Secrets,
    signal: Signal,
    clock: Clock,
    limit: Nanos,
}

#[derive(Default)]
struct Tally {
    done: AtomicU64,
    failed: AtomicU64,
    error: OnceLock<String>,
}

/// Opens the queue of a run with these secrets, this clock and this limit for a connection.
pub(crate) fn queue(
    secrets: Secrets,
    signal: Signal,
    (clock, limit): (Clock, Nanos),
) -> (CleanUps, LateThread, Cleaner) {
    let (sender, receiver) = channel(WAITING);
    let tally = Arc::new(Tally::default());
    let thread = LateThread::default();
    let clean_ups = CleanUps { queue: sender, tally: Arc::clone(&tally), thread: thread.clone() };
    (clean_ups, thread, Cleaner { queue: receiver, tally, secrets, signal, clock, limit })
}

impl CleanUps {
    /// Takes a request for this target with these cookies, or the reason why it cannot be sent.
    pub(crate) fn take(&self, target: u32, request: Result<Request, String>, cookies: Vec<String>) {
        if let Err(error) = self.thread.start() {
            self.tally.fail(error.to_string());
        }
        let taken = request.and_then(|request| {
            let sent = self.queue.try_send(CleanUp { target, request, cookies });
            sent.map_err(|_| format!("{WAITING} requests waited already"))
        });
        if let Err(why) = taken {
            self.tally.fail(why);
        }
    }
}

impl LateThread {
    pub(crate) fn waits(&self, start: impl FnOnce() -> io::Result<SenderThread> + Send + 'static) {
        *lock(&self.0) = Some(State::Waiting(Box::new(start)));
    }

    fn start(&self) -> io::Result<()> {
        let mut state = lock(&self.0);
        *state = match state.take() {
            Some(State::Waiting(start)) => Some(State::Running(start()?)),
            other => other,
        };
        Ok(())
    }

    /// Waits for its end, and returns the numbers of its requests; absent if it never started.
    pub(crate) fn join(&self) -> Option<Errands> {
        // Unlocked before the thread is waited for.
        let state = lock(&self.0).take();
        match state {
            Some(State::Running(thread)) => thread.join().flatten(),
            Some(State::Waiting(_)) | None => None,
        }
    }
}

impl Tally {
    fn fail(&self, why: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let _ = self.error.set(why);
    }

    fn count(&self, ended: Result<(), String>) {
        match ended {
            Ok(()) => drop(self.done.fetch_add(1, Ordering::Relaxed)),
            Err(why) => self.fail(why),
        }
    }
}

impl Cleaner {
    /// Sends until all exchanges are over, on the calling thread.
    pub(crate) fn run_here<C: Connect + Clone + 'static>(mut self, connect: C) -> Option<Errands> {
        match Local::new() {
            Ok(local) => local.run(self.run(connect)),
            Err(error) => {
                self.tally.fail(error.to_string());
                while self.queue.blocking_recv().is_some() {
                    self.tally.fail(String::new());
                }
                self.errands()
            }
        }
    }

    /// The same on a `LocalSet`.
    pub(crate) async fn run<C: Connect + Clone + 'static>(mut self, connect: C) -> Option<Errands> {
        let mut tasks = JoinSet::new();
        let mut until = None;
        loop {
            let next = tokio::select! {
                biased;
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    self.tally.count(ended.unwrap_or_else(|error| Err(error.to_string())));
                    continue;
                }
                next = self.queue.recv(), if until.is_none() && tasks.len() < IN_FLIGHT => next,
                () = tokio::time::sleep(GLANCE), if !tasks.is_empty() => {
                    let is_late = until.is_some_and(|until| tokio::time::Instant::now() > until);
                    if is_late || self.signal.is_aborted() {
                        break;
                    }
                    continue;
                }
                else => break,
            };
            match next {
                Some(CleanUp { target, request, cookies }) => {
                    let (connect, secrets) = (connect.clone(), self.secrets.and(cookies));
                    let (clock, limit) = (self.clock, self.limit);
                    tasks.spawn_local(async move {
                        send(&connect, (target, request), (clock, limit))
                            .await
                            .map_err(|why| fit(&secrets.redact(&why)))
                    });
                }
                None => until = Some(tokio::time::Instant::now() + PATIENCE),
            }
        }
        let unfinished = tasks.len() + self.queue.len();
        for _ in 0..unfinished {
            self.tally.fail("the run ended before the server answered".to_owned());
        }
        self.errands()
    }

    fn errands(&self) -> Option<Errands> {
        let Tally { done, failed, error } = &*self.tally;
        let [done, failed] = [done, failed].map(|count| count.load(Ordering::Acquire));
        let error = error.get().cloned();
        (done + failed > 0).then_some(Errands { done, failed, error })
    }
}

async fn send<C: Connect>(
    connect: &C,
    (target, request): (u32, Request),
    (clock, limit): (Clock, Nanos),
) -> Result<(), String> {
    let mut connection = question::open(connect, target, clock, limit).await?;
    let (head, body) = question::answer(&mut connection, request).await?;
    if (200..300).contains(&head.status) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&body);
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = &text[..text.floor_char_boundary(text.len().min(MESSAGE_BYTES))];
    Err(format!("HTTP {}: {text}", head.status))
}
