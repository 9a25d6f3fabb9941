//! Requests that are answered in one batch: the simulator's engine, played in real time.
//!
//! Owns the begin and the end of steps, and the tokens that each request has. `simulator` decides
//! the duration and the tokens of a step; `reply` and `stream` bring a token to its client.
//!
//! Steps have a schedule of their own: each begins at the very instant at which the step before it
//! ended, or, after a pause, at which a request was complete. A task that wakes up late delays the
//! events at clients by the same time, but never the schedule. A step is decided only once its
//! first instant is over, so that it includes every request that was complete by then. On a paused
//! clock, the schedule therefore equals the schedule of `simulator::open`, to the nanosecond.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use simulator::{Parameters, Work};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::serve::LONGEST;
use super::truth::lock;

/// The most requests that wait for a place in the batch; further ones are refused. HTTP/1.1 cannot
/// exceed it: there are no more connections.
const QUEUE: usize = 65_536;

/// The most tokens of a reply whose instants are kept until they are sent: 8 KiB for each client
/// that does not read. Older tokens count as generated with the oldest of these.
const BEHIND: usize = 512;

#[derive(Debug)]
pub(super) struct Batch {
    core: Arc<Core>,
    /// The task that makes the steps; it begins with the first request.
    driver: OnceLock<AbortHandle>,
}

#[derive(Debug)]
struct Core {
    state: Mutex<State>,
    queue: usize,
    /// True if the instants of all tokens are kept.
    keeps_truth: bool,
    submitted: Notify,
}

#[derive(Debug)]
struct State {
    engine: simulator::Engine,
    /// Requests that the engine gets when its next step begins, in the order in which they were
    /// complete. Some are submitted a little later than others that came after them.
    arrived: BTreeMap<Arrival, Work>,
    jobs: HashMap<u64, Job>,
}

/// The instant when a request was complete, and its number.
type Arrival = (Instant, u64);

#[derive(Debug)]
struct Job {
    received: Instant,
    work: Work,
    admitted: Option<Instant>,
    preemptions: u32,
    generated: u32,
    /// Instants of the latest of them, the newest last.
    recent: VecDeque<Instant>,
    all: Vec<Instant>,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    pub running: usize,
    pub waiting: usize,
    pub preemptions: u64,
    /// Share of the KV cache in use.
    pub kv_usage: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobRecord {
    /// The time when the first step began that worked on it.
    pub admitted: Option<Instant>,
    pub preemptions: u32,
    /// The time when each token was generated; empty unless truth is kept.
    pub generated: Vec<Instant>,
}

#[derive(Clone, Debug)]
pub(super) struct Ticket {
    core: Arc<Core>,
    id: u64,
}

impl Batch {
    pub fn new(parameters: Parameters, seed: u64, keeps_truth: bool) -> Self {
        Self::with_queue(parameters, seed, keeps_truth, QUEUE)
    }

    /// With room for `queue` waiting requests.
    pub fn with_queue(parameters: Parameters, seed: u64, keeps_truth: bool, queue: usize) -> Self {
        let state = State {
            engine: simulator::Engine::new(parameters, seed),
            arrived: BTreeMap::new(),
            jobs: HashMap::new(),
        };
        let core = Core { state: Mutex::new(state), queue, keeps_truth, submitted: Notify::new() };
        Batch { core: Arc::new(core), driver: OnceLock::new() }
    }

    /// Puts a request into the queue. Returns `None` if it is full; then the request makes no work.
    pub fn submit(
        &self,
        id: u64,
        received: Instant,
        work: impl FnOnce() -> Work,
    ) -> Option<Ticket> {
        let mut state = lock(&self.core.state);
        if state.waiting() >= self.core.queue {
            return None;
        }
        let work = work();
        state.arrived.insert((received, id), work);
        let job = Job {
            received,
            work,
            admitted: None,
            preemptions: 0,
            generated: 0,
            recent: VecDeque::new(),
            all: Vec::new(),
            waker: None,
        };
        state.jobs.insert(id, job);
        drop(state);
        self.driver.get_or_init(|| {
            let core = Arc::clone(&self.core);
            tokio::spawn(drive(core)).abort_handle()
        });
        self.core.submitted.notify_one();
        Some(Ticket { core: Arc::clone(&self.core), id })
    }

    /// Forgets a request whose reply has ended. Its remaining tokens are never generated.
    pub fn leave(&self, id: u64) -> Option<JobRecord> {
        let mut state = lock(&self.core.state);
        let job = state.jobs.remove(&id)?;
        let has_arrived = state.arrived.remove(&(job.received, id)).is_some();
        if !has_arrived && job.generated < job.work.output_tokens.max(1) {
            state.engine.cancel(id);
        }
        Some(JobRecord { admitted: job.admitted, preemptions: job.preemptions, generated: job.all })
    }

    pub fn load(&self) -> Load {
        let state = lock(&self.core.state);
        Load {
            running: state.engine.running(),
            waiting: state.waiting(),
            preemptions: state.engine.preemptions(),
            kv_usage: state.engine.kv_usage(),
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.get() {
            driver.abort();
        }
    }
}

impl Ticket {
    pub fn poll_start(&self, cx: &mut Context<'_>) -> Poll<Instant> {
        self.poll(cx, |job| job.admitted)
    }

    /// The time until token number `token`, from 0, is generated. A reply asks for them in order.
    pub fn poll_span(&self, token: u32, cx: &mut Context<'_>) -> Poll<Duration> {
        self.poll(cx, |job| {
            let at = job.when(token)?;
            Some(at.duration_since(job.admitted?))
        })
    }

    fn poll<T>(&self, cx: &mut Context<'_>, ask: impl FnOnce(&mut Job) -> Option<T>) -> Poll<T> {
        let mut state = lock(&self.core.state);
        let Some(job) = state.jobs.get_mut(&self.id) else { return Poll::Pending };
        match ask(job) {
            Some(known) => Poll::Ready(known),
            None => {
                job.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Job {
    /// The time when a token was generated, if it was. No earlier token is requested again.
    fn when(&mut self, token: u32) -> Option<Instant> {
        let newer = self.generated.checked_sub(token.checked_add(1)?)? as usize;
        while self.recent.len() > newer + 1 {
            self.recent.pop_front();
        }
        self.recent.front().copied()
    }

    fn generated(&mut self, at: Instant) {
        self.generated += 1;
        if self.recent.len() == BEHIND {
            self.recent.pop_front();
        }
        self.recent.push_back(at);
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl State {
    fn waiting(&self) -> usize {
        self.engine.waiting() + self.arrived.len()
    }

    /// The time when the next step begins, if there is one; the latest one ended at `ended`.
    fn next(&self, ended: Option<Instant>) -> Option<Instant> {
        if self.engine.waiting() + self.engine.running() > 0 {
            return ended;
        }
        let (&(arrived, _), _) = self.arrived.first_key_value()?;
        Some(ended.map_or(arrived, |ended| ended.max(arrived)))
    }

    fn begin(&mut self, start: Instant) -> Option<Duration> {
        while let Some(next) = self.arrived.first_entry()
            && next.key().0 <= start
        {
            let ((_, id), work) = next.remove_entry();
            self.engine.submit(id, work);
        }
        let span = Duration::from(self.engine.begin()?).min(LONGEST);
        for id in self.engine.preempted() {
            if let Some(job) = self.jobs.get_mut(id) {
                job.preemptions += 1;
            }
        }
        for id in self.engine.admitted() {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.admitted.get_or_insert(start);
                job.wake();
            }
        }
        Some(span)
    }

    fn finish(&mut self, end: Instant, keeps_truth: bool) {
        let State { engine, jobs, .. } = self;
        engine.finish(|id, _| {
            if let Some(job) = jobs.get_mut(&id) {
                job.generated(end);
                if keeps_truth {
                    job.all.push(end);
                }
                job.wake();
            }
        });
    }
}

/// Makes one step after the other. If it falls behind, it catches up; the timers let other tasks
/// run in between.
async fn drive(core: Arc<Core>) {
    let mut ended = None;
    loop {
        let next = lock(&core.state).next(ended);
        let Some(start) = next else {
            core.submitted.notified().await;
            continue;
        };
        if Instant::now() <= start {
            sleep_until(start + Duration::from_nanos(1)).await;
        }
        let begun = lock(&core.state).begin(start);
        // Otherwise all clients have gone.
        if let Some(span) = begun {
            let end = start + span;
            sleep_until(end).await;
            lock(&core.state).finish(end, core.keeps_truth);
            ended = Some(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(output_tokens: u32) -> Work {
        Work { prompt_tokens: 1, output_tokens, ..Work::default() }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Steps of 10 ms for one request at a time.
    fn batch(queue: usize) -> Batch {
        let parameters = "slots=1,step=10ms,request=0,prompt-token=0,jitter=0";
        Batch::with_queue(parameters.parse().unwrap(), 1, true, queue)
    }

    async fn span(ticket: &Ticket, token: u32) -> Duration {
        std::future::poll_fn(|cx| ticket.poll_span(token, cx)).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_bounded() {
        let batch = batch(2);
        let now = Instant::now();
        let first = batch.submit(0, now, || work(3)).unwrap();
        batch.submit(1, now, || work(3)).unwrap();
        let refused = batch.submit(2, now, || panic!("there is no room for it"));
        assert!(refused.is_none());
        assert_eq!(span(&first, 0).await, ms(10));
        // The first is in the batch.
        assert_eq!((batch.load().running, batch.load().waiting), (1, 1));
        batch.submit(2, Instant::now(), || work(3)).unwrap();
        assert!(batch.submit(3, Instant::now(), || work(3)).is_none());
        // One that leaves makes room for another.
        batch.leave(1);
        assert!(batch.submit(3, Instant::now(), || work(3)).is_some());
    }

    /// Three requests are submitted late and in the wrong order. The first to be complete is
    /// answered first, and a client that leaves before its turn never gets one.
    #[tokio::test(start_paused = true)]
    async fn requests_are_answered_in_the_order_in_which_they_were_complete() {
        let batch = batch(9);
        let began = Instant::now();
        for (id, received) in [(3, ms(2)), (2, ms(1)), (0, ms(0)), (1, ms(0))] {
            batch.submit(id, began + received, || work(1)).unwrap();
        }
        assert!(batch.leave(1).is_some_and(|left| left.admitted.is_none()));
        assert_eq!(batch.load().waiting, 3);
        tokio::time::sleep(ms(35)).await;
        let ended = [0, 2, 3].map(|id| batch.leave(id).unwrap().generated);
        let wanted = [10, 20, 30].map(|at| vec![began + ms(at)]);
        assert_eq!(ended, wanted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_that_is_far_behind_keeps_the_latest_instants() {
        let batch = batch(1);
        let many = u32::try_from(BEHIND).unwrap() + 100;
        let slow = batch.submit(0, Instant::now(), || work(many)).unwrap();
        tokio::time::sleep(ms(10) * many + ms(1)).await;
        let kept = || lock(&batch.core.state).jobs[&0].recent.len();
        assert_eq!(kept(), BEHIND);
        assert_eq!(span(&slow, 0).await, ms(10 * 101));
        assert_eq!(span(&slow, 100).await, ms(10 * 101));
        assert_eq!(span(&slow, 101).await, ms(10 * 102));
        assert_eq!(span(&slow, many - 1).await, ms(10) * many);
        assert_eq!(kept(), 1);
        assert_eq!(batch.leave(0).unwrap().generated.len(), many as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_wake_up_does_not_change_the_schedule() {
        let parameters = "slots=2,step=333us,request=0,prompt-token=0,jitter=0";
        let batch = Batch::new(parameters.parse().unwrap(), 1, true);
        let ticket = batch.submit(0, Instant::now(), || work(1000)).unwrap();
        // Each millisecond's timer finds three steps that have ended.
        assert_eq!(span(&ticket, 999).await, Duration::from_micros(333_000));
        let generated = batch.leave(0).unwrap().generated;
        let start = generated[0] - Duration::from_micros(333);
        let scheduled = (1..=1000).map(|step| start + Duration::from_micros(333) * step);
        assert!(generated.into_iter().eq(scheduled));
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_with_the_batch() {
        let batch = batch(1);
        batch.submit(0, Instant::now(), || work(5)).unwrap();
        tokio::time::sleep(ms(15)).await;
        let driver = batch.driver.get().unwrap().clone();
        assert!(!driver.is_finished());
        drop(batch);
        tokio::task::yield_now().await;
        assert!(driver.is_finished());
    }
}
