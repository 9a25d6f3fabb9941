//! The pacer: sends each request when it is due and a slot is free, and not before.
//!
//! One loop for every arrival model. In a real run it has an OS thread of its own, because a
//! runtime's timers are late by a millisecond. On a paused clock it is a task, and exact. Requests
//! that depend on others come as [`news`] with their due times.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;

use crossbeam_channel::{Receiver, Sender};
use tokio::sync::Notify;

use model::arrival::{Due, Think};
use model::clock::Clock;
use model::units::Nanos;

pub mod news;

pub use news::{Announcer, Follower, News, Newsfeed};

pub struct Pacing {
    pub origin: Nanos,
    /// Nothing is sent once the phase is this old; absent where requests are counted.
    pub duration: Option<Nanos>,
    /// The cap on requests in flight; in a closed loop the number of users.
    pub slots: Option<usize>,
    /// True if a user of a closed loop completes its session first; else it sends any due request.
    pub by_session: bool,
    /// True if `slots` is a cap, so that waiting for one is queueing worth recording.
    pub capped: bool,
    /// The think time of users in a closed loop; absent if they do not think.
    pub thinking: Option<Thinking>,
    /// The load by lanes; absent for other loads.
    pub lanes: Option<Lanes>,
}

/// The load by lanes: sessions whose requests, first ones included, come as [`news`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    /// The longest time without a request in flight; then all waiting requests move forward.
    pub idle_most: Option<Nanos>,
}

/// The think time of users, and their numbers among the plan's users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinking {
    pub think: Think,
    pub seed: u64,
    pub first: u32,
    /// Difference between one user's number and the next.
    pub step: u32,
}

/// The instants at which a request was due and released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Instant at which it should have been sent.
    pub due: Nanos,
    /// Instant at which the cap released it; absent without a cap.
    pub granted: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Send(Release),
    /// It was due, but no slot came free before the phase ended.
    NotSent {
        /// Instant at which it should have been sent.
        due: Nanos,
    },
}

/// The answer when the pacer asks for the next request of the sequence.
pub enum Next<Item> {
    Ready(Item),
    /// There will be one, but it is not ready.
    Later,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedRequest {
    pub key: u64,
    /// True if others depend on it: [`News::Over`] has this number when all of them are over.
    pub opens: bool,
}

impl From<u64> for HandedRequest {
    fn from(key: u64) -> Self {
        HandedRequest { key, opens: false }
    }
}

/// The pacer's wait for a request that is not ready, while other requests may become due.
const GLANCE: Nanos = Nanos(1_000_000);

/// Paces one phase: draws an item for each due time, takes followers from the newsfeed, and hands
/// each on with its verdict. `next` gets whether it may wait until an item is ready. In a closed
/// loop a request is due when its user's slot came free and the user has thought.
///
/// Items that were due before the end and found no slot are handed on as not sent, so the record
/// shows the missing load. After the signal to stop, the pacer draws no further item, as there may
/// be millions, and returns the number of due requests that it did not hand on.
pub async fn pace<Item>(
    clock: &Clock,
    signal: &Signal,
    pacing: &Pacing,
    due_times: impl Iterator<Item = Due>,
    newsfeed: &mut Newsfeed<Item>,
    next: impl FnMut(bool) -> Next<Item>,
    hand_on: impl FnMut(Item, Verdict) -> HandedRequest,
) -> u64 {
    let phase = Phase {
        clock,
        signal,
        pacing,
        end: pacing.duration.map(|duration| pacing.origin + duration),
        due_times,
        newsfeed,
        next,
        hand_on,
        root: Root::Unknown,
        queue: Queue::new(),
        users: None,
        sessions: 0,
        idle_since: None,
        is_starved: false,
    };
    phase.run().await
}

/// The next request of the sequence.
enum Root<Item> {
    /// Its due time was not drawn.
    Unknown,
    /// Its due time was drawn; it may not be ready.
    Drawn(Due),
    /// It is in hand before it is due.
    Ready(Due, Item),
    None,
}

struct Phase<'p, Item, Times, Draw, HandOn> {
    clock: &'p Clock,
    signal: &'p Signal,
    pacing: &'p Pacing,
    end: Option<Nanos>,
    due_times: Times,
    newsfeed: &'p mut Newsfeed<Item>,
    next: Draw,
    hand_on: HandOn,
    root: Root<Item>,
    /// The requests that follow, by due time.
    queue: Queue<Item>,
    users: Option<Users>,
    sessions: usize,
    /// Instant since which nothing is in flight, where lanes limit that time.
    idle_since: Option<Nanos>,
    /// True if the phase has ended without its next request: the rest counts as unsent.
    is_starved: bool,
}

impl<Item, Times, Draw, HandOn> Phase<'_, Item, Times, Draw, HandOn>
where
    Times: Iterator<Item = Due>,
    Draw: FnMut(bool) -> Next<Item>,
    HandOn: FnMut(Item, Verdict) -> HandedRequest,
{
    async fn run(mut self) -> u64 {
        loop {
            self.gather();
            if self.signal.is_stopped() {
                return self.stop();
            }
            self.draw();
            let now = self.clock.now();
            self.shorten_idleness(now);
            let root = self.root_due(now);
            let follower = self.follower_due();
            let is_root = match (root, follower) {
                (Some(root), Some(follower)) => root < follower,
                (root, _) => root.is_some(),
            };
            let Some(due) = (if is_root { root } else { follower }) else {
                if self.is_over(now) {
                    return self.stop();
                }
                self.wait(now, self.end.map(|end| end.max(now + GLANCE))).await;
                continue;
            };
            if due > now {
                self.wait(now, Some(self.end.map_or(due, |end| due.min(end)))).await;
                continue;
            }
            if self.users.is_some() {
                self.send_as_user(is_root);
            } else {
                self.send(due, is_root).await;
            }
        }
    }

    /// Waits until then at most. News wakes the pacer; an item that is not ready does not.
    async fn wait(&self, now: Nanos, until: Option<Nanos>) {
        let until = match self.root {
            Root::Drawn(_) => Some(until.map_or(now + GLANCE, |until| until.min(now + GLANCE))),
            _ => until,
        };
        self.signal.wait(self.clock, until).await;
    }

    /// True if the due time is too late for this phase.
    fn is_late(&self, due: Nanos) -> bool {
        self.end.is_some_and(|end| due >= end)
    }

    /// True if nothing more can become due. Call it only when nothing is due.
    fn is_over(&self, now: Nanos) -> bool {
        let is_owed = matches!(self.root, Root::Drawn(Due::At(_))) && !self.is_starved;
        let has_ended = self.is_late(now) && self.newsfeed.is_settled() && !is_owed;
        let is_exhausted = matches!(self.root, Root::None) && self.sessions == 0;
        has_ended || is_exhausted && (self.pacing.lanes.is_none() || self.has_rested())
    }

    /// True if no request waits or is in flight, so that no news can come.
    fn has_rested(&self) -> bool {
        self.queue.is_empty() && self.signal.in_flight() == 0 && self.newsfeed.is_settled()
    }

    /// Moves all waiting requests forward together if the next one leaves lanes idle for too long.
    fn shorten_idleness(&mut self, now: Nanos) {
        let Some(Lanes { idle_most: Some(most) }) = self.pacing.lanes else { return };
        if self.signal.in_flight() > 0 {
            self.idle_since = None;
            return;
        }
        let since = *self.idle_since.get_or_insert(now);
        if let Some(due) = self.queue.due().filter(|_| self.newsfeed.is_settled()) {
            self.queue.advance(due.since(since + most));
        }
    }

    /// Takes the news: freed slots, followers with their due times, sessions that are over.
    fn gather(&mut self) {
        let blocks = self.signal.is_task();
        while let Some(news) = self.newsfeed.take(blocks) {
            match news {
                News::Due(follower) => self.queue.push(follower),
                News::Lost(Follower { due, item }) => {
                    if !self.is_late(due) {
                        self.hand(item, Verdict::NotSent { due }, false);
                    }
                }
                News::Over { root, at } => {
                    self.sessions = self.sessions.saturating_sub(1);
                    if let Some(users) = &mut self.users {
                        users.free(root, at);
                    }
                }
            }
        }
        if let Some(users) = &mut self.users {
            users.gather(self.signal);
        }
    }

    /// Draws the next due time of the sequence and its item, if there is none in hand.
    fn draw(&mut self) {
        if matches!(self.root, Root::Unknown) {
            self.root = match self.due_times.next() {
                Some(Due::At(at)) if self.is_late(self.pacing.origin + at) => Root::None,
                Some(due) => Root::Drawn(due),
                None => Root::None,
            };
        }
        let Root::Drawn(due) = self.root else { return };
        if due == Due::WhenFree {
            let (signal, pacing) = (self.signal, self.pacing);
            self.users.get_or_insert_with(|| {
                signal.watch();
                Users::new(pacing.slots.unwrap_or(1), pacing.origin, pacing.thinking)
            });
            if self.is_late(self.clock.now()) {
                self.root = Root::None;
                return;
            }
        }
        // Waits for the item if nothing else can become due, or if waiting would move the clock.
        let is_idle = self.sessions == 0 && self.queue.is_empty();
        let has_ended = self.is_late(self.clock.now());
        match (self.next)(self.signal.is_task() || is_idle || has_ended) {
            Next::Ready(item) => self.root = Root::Ready(due, item),
            Next::Later => self.is_starved = has_ended,
            Next::None => {
                if !self.signal.is_stopped() {
                    self.root = Root::None;
                }
            }
        }
    }

    /// Returns the due time of the sequence's next request, if it is known and the request ready.
    fn root_due(&self, now: Nanos) -> Option<Nanos> {
        match &self.root {
            Root::Ready(Due::At(at), _) => Some(self.pacing.origin + *at),
            Root::Ready(Due::WhenFree, _) => {
                let due = self.users.as_ref()?.next_due();
                due.filter(|due| !self.is_late(*due) && !self.is_late(now))
            }
            Root::Unknown | Root::Drawn(_) | Root::None => None,
        }
    }

    /// Returns the due time of the next follower: not before a user is free, if users send it.
    fn follower_due(&self) -> Option<Nanos> {
        let due = self.queue.due()?;
        let due = match &self.users {
            Some(users) if !self.pacing.by_session => due.max(users.next_due()?),
            _ => due,
        };
        (!self.is_late(due)).then_some(due)
    }

    /// Takes the item that is due out of its place.
    fn take(&mut self, is_root: bool) -> Option<Item> {
        if !is_root {
            return self.queue.pop();
        }
        match std::mem::replace(&mut self.root, Root::Unknown) {
            Root::Ready(_, item) => Some(item),
            other => {
                self.root = other;
                None
            }
        }
    }

    fn hand(&mut self, item: Item, verdict: Verdict, is_root: bool) -> HandedRequest {
        let handed = (self.hand_on)(item, verdict);
        if is_root && handed.opens {
            self.sessions += 1;
        }
        handed
    }

    /// Sends the item that is due, as soon as the cap lets it go.
    async fn send(&mut self, due: Nanos, is_root: bool) {
        let (signal, slots, end) = (self.signal, self.pacing.slots, self.end);
        let is_free = || slots.is_none_or(|slots| signal.in_flight() < slots);
        let over = |now: Nanos| signal.is_stopped() || end.is_some_and(|end| now >= end);
        while !is_free() && !over(self.clock.now()) {
            self.signal.wait(self.clock, self.end).await;
        }
        let Some(item) = self.take(is_root) else { return };
        if !is_free() || self.signal.is_stopped() {
            self.hand(item, Verdict::NotSent { due }, is_root);
            return;
        }
        self.signal.take_slot();
        let granted = self.pacing.capped.then(|| self.clock.now().max(due));
        self.hand(item, Verdict::Send(Release { due, granted }), is_root);
    }

    fn send_as_user(&mut self, is_root: bool) {
        let by_session = self.pacing.by_session;
        let due = if is_root { self.root_due(Nanos::ZERO) } else { self.follower_due() };
        let Some(due) = due else { return };
        // The user of a session waits for the followers, so another user is one too many.
        let takes_user = is_root || !by_session;
        let user = self.users.as_mut().filter(|_| takes_user).and_then(Users::next);
        let Some(item) = self.take(is_root) else { return };
        self.signal.take_slot();
        let handed = self.hand(item, Verdict::Send(Release { due, granted: None }), is_root);
        if let (Some(users), Some(user)) = (&mut self.users, user) {
            if handed.opens && is_root && by_session {
                users.hold(user, handed.key)
            } else {
                users.send(user, handed.key)
            }
        }
    }

    /// Ends the phase: records the item in hand if it was due; returns how many more were due.
    fn stop(mut self) -> u64 {
        let now = self.clock.now();
        let mut unsent = 0;
        while let Some(due) = self.follower_due().filter(|due| *due <= now) {
            if let Some(item) = self.queue.pop() {
                self.hand(item, Verdict::NotSent { due }, false);
            }
        }
        if !self.signal.is_stopped() && !self.is_starved {
            return 0;
        }
        let (origin, end) = (self.pacing.origin, self.end);
        let was_due = |due: &Due| match due {
            Due::At(at) => {
                let due = origin + *at;
                due <= now && end.is_none_or(|end| due < end)
            }
            Due::WhenFree => false,
        };
        match std::mem::replace(&mut self.root, Root::Unknown) {
            Root::Unknown => {}
            Root::Drawn(due) if was_due(&due) => unsent += 1,
            Root::Ready(due @ Due::At(at), item) if was_due(&due) => {
                let due = self.pacing.origin + at;
                self.hand(item, Verdict::NotSent { due }, true);
            }
            Root::Drawn(_) | Root::Ready(..) | Root::None => return 0,
        }
        unsent + self.due_times.take_while(was_due).count() as u64
    }
}

/// Waits until every reply has ended, or until `impatient` returns true.
pub async fn drain(clock: &Clock, signal: &Signal, impatient: impl Fn() -> bool) {
    /// Interval between calls of `impatient`.
    const GLANCE: Nanos = Nanos(100_000_000);
    while signal.in_flight() > 0 && !impatient() && !signal.is_broken() {
        signal.wait(clock, Some(clock.now() + GLANCE)).await;
    }
}

/// Unsent followers, the earliest first; followers of one instant in the order of their news.
struct Queue<Item> {
    waiting: BTreeMap<(Nanos, u64), Item>,
    pushed: u64,
}

impl<Item> Queue<Item> {
    fn new() -> Self {
        Queue { waiting: BTreeMap::new(), pushed: 0 }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn push(&mut self, follower: Follower<Item>) {
        self.pushed += 1;
        self.waiting.insert((follower.due, self.pushed), follower.item);
    }

    /// Has every follower due this much earlier.
    fn advance(&mut self, span: Nanos) {
        if span > Nanos::ZERO {
            let waiting = std::mem::take(&mut self.waiting).into_iter();
            let earlier = waiting.map(|((due, place), item)| ((due.since(span), place), item));
            self.waiting = earlier.collect();
        }
    }

    fn due(&self) -> Option<Nanos> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    fn pop(&mut self) -> Option<Item> {
        self.waiting.pop_first().map(|(_, item)| item)
    }
}

/// Every user is either waiting for its next request to be due or has one in flight.
struct Users {
    thinking: Option<Thinking>,
    /// Due times of the next request of each waiting user; ties go by the user's number.
    waiting: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Whose request has that number.
    in_flight: HashMap<u64, u32>,
    /// Whose session began with the request of that number.
    in_session: HashMap<u64, u32>,
    /// Answers so far, by user.
    turns: Vec<u32>,
}

impl Users {
    /// This many users, whose first requests are due at once.
    fn new(users: usize, origin: Nanos, thinking: Option<Thinking>) -> Self {
        let numbers = 0..u32::try_from(users).unwrap_or(u32::MAX);
        Users {
            thinking,
            turns: vec![0; numbers.len()],
            in_flight: HashMap::new(),
            in_session: HashMap::new(),
            waiting: numbers.map(|user| Reverse((origin, user))).collect(),
        }
    }

    /// Takes note of the slots that have come free.
    fn gather(&mut self, signal: &Signal) {
        while let Some(freed) = signal.next_freed() {
            if let Some(user) = self.in_flight.remove(&freed.key) {
                let due = freed.at + self.pause(user);
                self.waiting.push(Reverse((due, user)));
            }
        }
    }

    fn pause(&mut self, user: u32) -> Nanos {
        let turn = &mut self.turns[user as usize];
        *turn += 1;
        self.thinking.map_or(Nanos::ZERO, |thinking| {
            let number = (thinking.first).wrapping_add(user.wrapping_mul(thinking.step));
            thinking.think.pause(thinking.seed, number, *turn)
        })
    }

    /// Returns when the next request is due, if one will be without a further answer.
    fn next_due(&self) -> Option<Nanos> {
        self.waiting.peek().map(|Reverse((due, _))| *due)
    }

    /// The user whose request is due next; its request then has that number.
    fn next(&mut self) -> Option<u32> {
        self.waiting.pop().map(|Reverse((_, user))| user)
    }

    /// A user has a session that begins with the request of that number, until it is over.
    fn hold(&mut self, user: u32, root: u64) {
        self.in_session.insert(root, user);
    }

    /// A session is over: its user is free.
    fn free(&mut self, root: u64, at: Nanos) {
        if let Some(user) = self.in_session.remove(&root) {
            let due = at + self.pause(user);
            self.waiting.push(Reverse((due, user)));
        }
    }

    /// A user's request is in flight under that number.
    fn send(&mut self, user: u32, key: u64) {
        self.in_flight.insert(key, user);
    }
}

/// Time before an instant at which a thread stops sleeping and watches the clock instead: a sleep
/// ends some 30 µs late. Watching costs at most 4 % of a core at 2000 requests a second, and lowers
/// the median lag from 30 to 10 µs.
const WATCH: Nanos = Nanos(20_000);

/// The signal that wakes the pacer while it waits: a slot is free, or the run must stop.
#[derive(Clone)]
pub struct Signal(Arc<SignalState>);

struct SignalState {
    in_flight: AtomicUsize,
    stopped: AtomicBool,
    aborted: AtomicBool,
    broken: AtomicBool,
    /// True if it matters which slots become free, and when.
    watched: AtomicBool,
    freed: (Sender<FreeSlot>, Receiver<FreeSlot>),
    /// True if the pacer's thread was woken since it last waited. The thread's own token is not
    /// enough: another wait of the thread may use that up.
    woken: AtomicBool,
    wake: Wake,
}

#[derive(Clone, Copy)]
struct FreeSlot {
    /// The request that held the slot.
    key: u64,
    at: Nanos,
}

enum Wake {
    Thread(std::sync::OnceLock<Thread>),
    Task(Notify),
}

impl Signal {
    /// For a pacer on its own thread, which must call [`Signal::attach`] first.
    pub fn for_thread() -> Self {
        Self::new(Wake::Thread(std::sync::OnceLock::new()))
    }

    pub fn for_task() -> Self {
        Self::new(Wake::Task(Notify::new()))
    }

    /// True if the pacer is a task, whose clock stands still while it blocks.
    pub fn is_task(&self) -> bool {
        matches!(self.0.wake, Wake::Task(_))
    }

    fn new(wake: Wake) -> Self {
        Signal(Arc::new(SignalState {
            in_flight: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            // At most one entry for each request in flight, as the pacer takes all before each.
            freed: crossbeam_channel::unbounded(),
            woken: AtomicBool::new(false),
            wake,
        }))
    }

    /// Registers the calling thread as the thread to wake.
    pub fn attach(&self) {
        if let Wake::Thread(thread) = &self.0.wake {
            let _ = thread.set(std::thread::current());
            // The kernel may let a sleeper wait 50 µs longer; `sent - due` then shows it.
            #[cfg(target_os = "linux")]
            let _ = nix::sys::prctl::set_timerslack(1);
        }
    }

    /// The reply to the request with this number ended at this instant: its slot is free.
    pub fn release(&self, key: u64, at: Nanos) {
        if self.0.watched.load(Ordering::Acquire) {
            // Received as long as the signal lives.
            let _ = self.0.freed.0.send(FreeSlot { key, at });
        }
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.wake();
    }

    /// Takes note of freed slots from here on.
    fn watch(&self) {
        self.0.watched.store(true, Ordering::Release);
    }

    fn next_freed(&self) -> Option<FreeSlot> {
        self.0.freed.1.try_recv().ok()
    }

    /// Nothing further is to be sent.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Acquire)
    }

    /// Replies under way must not be waited for either.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Release);
        self.stop();
    }

    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    /// A worker is gone: its replies will never end.
    pub fn break_down(&self) {
        // `aborted` first: whoever sees `broken` must also see that nobody waits for replies.
        self.0.aborted.store(true, Ordering::Release);
        self.0.broken.store(true, Ordering::Release);
        self.stop();
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.0.broken.load(Ordering::Acquire)
    }

    /// Requests sent whose replies have not ended.
    pub fn in_flight(&self) -> usize {
        self.0.in_flight.load(Ordering::Acquire)
    }

    fn take_slot(&self) {
        self.0.in_flight.fetch_add(1, Ordering::AcqRel);
    }

    /// Wakes the pacer, to look for news.
    pub fn wake(&self) {
        match &self.0.wake {
            Wake::Thread(thread) => {
                self.0.woken.store(true, Ordering::Release);
                if let Some(thread) = thread.get() {
                    thread.unpark();
                }
            }
            Wake::Task(notify) => notify.notify_one(),
        }
    }

    /// Waits until woken, or until `until`. May return early.
    pub async fn wait(&self, clock: &Clock, until: Option<Nanos>) {
        if self.0.woken.swap(false, Ordering::AcqRel) {
            return;
        }
        match (&self.0.wake, until) {
            (Wake::Thread(_), Some(until)) => match until.since(clock.now()) {
                left if left > WATCH => std::thread::park_timeout(left.since(WATCH).into()),
                _ => {
                    while clock.now() < until {
                        std::hint::spin_loop();
                    }
                }
            },
            (Wake::Thread(_), None) => std::thread::park(),
            (Wake::Task(notify), Some(until)) => {
                let _ = tokio::time::timeout_at(clock.instant(until), notify.notified()).await;
            }
            (Wake::Task(notify), None) => notify.notified().await,
        }
        // The waiting thread looks for news afterwards, and so sees the reason for its wake.
        self.0.woken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
