//! The phases of a run, one after the other: prepares requests and connections, warms up, measures.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;

use super::{Preparations, Running, SPARE_CONNECTIONS};
use crate::decode::failures::failed;
use crate::live::Phase;
use crate::parts::RunError;
use crate::prepare::{Item, Preparation};
use crate::sessions::lanes::{Lanes, Tree};
use load::drive::worker_handle::{WorkerHandle, idlest};
use load::drive::{Job, Order};
use load::pace::{
    self, HandedRequest, Newsfeed, Next, Pacing, Release, Thinking, Verdict, drain, pace,
};
use load::thread_group::trip;
use load::vitals::Watch;
use model::arrival::{Arrival, Due};
use model::clock::date;
use model::connection::Reuse;
use model::exchange::{self, Class, Outcome};
use model::frame::Framing;
use model::session::{Users, Warming};
use model::target::listed;
use model::timings::Stage;
use model::units::Nanos;
use result::summary::NOT_SENT;
use scenario::plan::{self, Amount};

/// Seconds' worth of requests that must be ready before a run with a fixed rate begins.
const READY_SECONDS: f64 = 2.0;
/// Connections that were opened longer ago are opened again before the first request is due.
const IDLE_TOO_LONG: Nanos = Nanos(1_000_000_000);

/// Connections begin to be opened when the last request is expected to be ready within this time.
const OPENING_AHEAD: Nanos = Nanos(500_000_000);

struct Opening {
    wanted: usize,
    /// Number that had been opened or had failed before, and the number of these that had failed.
    settled_before: usize,
    failed_before: usize,
}

/// True if the last of these requests is expected to be ready soon. A quarter of them must be, so
/// that their time predicts the time of the others.
fn ends_soon(taken: Nanos, ready: u64, wanted: u64) -> bool {
    let left = wanted.saturating_sub(ready);
    let expected = u128::from(taken.0) * u128::from(left) / u128::from(ready.max(1));
    ready >= wanted / 4 && ready > 0 && expected <= u128::from(OPENING_AHEAD.0)
}

pub(super) struct Phases<'r> {
    pub(super) run: &'r Running<'r>,
    pub(super) orders: &'r [WorkerHandle],
}

impl Phases<'_> {
    pub(super) async fn conduct(&self, prepared: Preparations<'_>) -> Result<(), RunError> {
        let conducted = self.conduct_phases(prepared).await;
        if let Some(lanes) = self.run.background.rest.sessions.lanes.get() {
            lanes.close();
        }
        conducted
    }

    async fn conduct_phases(
        &self,
        (mut preparation, mut newsfeed, mut server_control): Preparations<'_>,
    ) -> Result<(), RunError> {
        let framing = preparation.framing;
        let group = &self.run.control.group;
        let prepared = group.until_stopped("warm-up", move || {
            let items = preparation.warmup();
            (preparation, items)
        });
        let Some((preparation, warmup)) = prepared.map_err(RunError::Thread)? else {
            return Ok(());
        };
        let warmup = warmup?;
        let wanted = self.ready(preparation.is_for_a_time());
        let live = &self.run.control.live;
        let began = self.run.clock.now();
        let mut opening = None;
        let lanes = self.run.plan.load.lanes;
        let (mut feed, mut trees) = (None, Vec::new());
        if let Some(options) = lanes {
            trees = self.lanes(preparation, options)?;
        } else {
            let requests = preparation.start(wanted).map_err(RunError::Thread)?;
            requests.wait(wanted, |ready| {
                live.ready.store(ready as u64, Ordering::Relaxed);
                if opening.is_none()
                    && ends_soon(self.run.clock.now().since(began), ready as u64, wanted)
                {
                    opening = Some(self.open_connections(warmup.len()));
                }
                !self.run.control.signal.is_stopped()
            });
            feed = Some(requests);
        }
        live.timings.reach(Stage::RequestsReady);
        let opening = opening.unwrap_or_else(|| self.open_connections(warmup.len()));
        self.opened(opening).await?;
        live.timings.reach(Stage::ConnectionsOpen);
        let mut key = 0;
        if !warmup.is_empty() {
            live.enter(Phase::WarmUp);
            self.warm_up(warmup, framing, &mut key).await;
        }
        if let Some(options) = lanes {
            live.enter(Phase::WarmUp);
            self.warm_lanes(trees, options, (&mut newsfeed, framing), &mut key).await?;
        }
        let gate = self.run.control.gate.as_ref();
        if let (Some(gate), Some(_)) = (gate, &server_control) {
            gate.wait_for_others(&self.run.control.signal).await;
        }
        let asks = &self.run.plan.control;
        let mut server = None;
        if let Some(server_control) = &mut server_control
            && !self.run.control.signal.is_stopped()
        {
            if asks.flush_cache {
                server_control.flush(self).await?;
            }
            if asks.server_metrics {
                let before = server_control.before(self).await;
                // Not asked to its end if it was stopped, because nothing will be measured.
                if !self.run.control.signal.is_stopped() {
                    server = Some(before?);
                }
            }
        }
        if let Some(start) = self.start().await? {
            let duration = match self.run.plan.load.amount {
                Amount::Requests(_) | Amount::Sessions(_) => None,
                Amount::Duration(duration) => Some(duration),
            };
            live.measure(start);
            let watch = self.run.vitals.as_ref().map(|vitals| vitals.watch(group)).transpose();
            let watch = watch.map_err(RunError::Thread)?;
            let due_times = self.run.plan.due_times(&self.run.parts.trace);
            // Every request of lanes comes as news.
            let due_times = due_times.take(if lanes.is_some() { 0 } else { usize::MAX });
            self.run.background.rest.sessions.resume(None, start);
            let next = |may_wait| {
                let Some(feed) = &feed else { return Next::None };
                if self.run.background.rest.sessions.memory.has_room(self.run.clock.now()) {
                    feed.next(may_wait)
                } else {
                    Next::Later
                }
            };
            let unsent = self
                .phase((start, duration), due_times, (&mut newsfeed, next), framing, &mut key)
                .await;
            live.unsent.store(unsent, Ordering::Release);
            if let Some(gate) = gate {
                let waits = server_control.is_some();
                gate.leave(&self.run.control.signal, waits).await;
            }
            if let Some(mut client) = watch.and_then(Watch::finish) {
                client.sessions =
                    self.run.background.rest.sessions.memory.figures(self.run.clock.now());
                let _ = self.run.control.live.client.set(client);
            }
            if let (Some(server_control), Some(mut server)) = (&mut server_control, server) {
                server_control.after(self, &mut server).await?;
                let _ = self.run.control.live.server.set(server);
            }
        }
        Ok(())
    }

    /// Sends the requests of the warm-up: all of them, or wave by wave until the engine is stable.
    async fn warm_up(&self, items: Vec<Item>, framing: Framing, key: &mut u64) {
        let load = &self.run.plan.load;
        let repeats = load.warming == Warming::UntilStable;
        // Those of a machine's slice are a part of each wave.
        let size = u64::from(load.warmup.max(1));
        let wave_of = |item: &Item| if repeats { item.prepared.index / size } else { 0 };
        let rate = match load.warming {
            Warming::Requests => None,
            Warming::LikeLoad | Warming::UntilStable => load.warmup_rate(),
        };
        let began = self.run.clock.now();
        let (mut items, mut sent) = (items.into_iter().peekable(), 0);
        while let Some(wave) = items.peek().map(&wave_of) {
            let mut own = Vec::new();
            while let Some(item) = items.next_if(|item| wave_of(item) == wave) {
                own.push(item);
            }
            sent += own.len();
            let due: Vec<Due> = (own.iter())
                .map(|item| {
                    let place = (item.prepared.index % size) as f64;
                    Due::At(rate.map_or(Nanos::ZERO, |rate| Nanos::from_secs_f64(place / rate)))
                })
                .collect();
            let mut own = own.into_iter();
            let next = |_| own.next().map_or(Next::None, Next::Ready);
            let mut none = Newsfeed::none();
            let now = self.run.clock.now();
            self.phase((now, None), due.into_iter(), (&mut none, next), framing, key).await;
            if !repeats || self.run.control.signal.is_stopped() {
                return;
            }
            // Replies are on record a little after they have ended.
            let mut seen = self.run.control.live.warmed_up(size);
            while seen.0 < sent && !self.run.control.signal.is_stopped() {
                self.rest(Nanos(1_000_000)).await;
                seen = self.run.control.live.warmed_up(size);
            }
            let limit = load.warmup_limit.unwrap_or_default();
            if seen.1.stable || self.run.clock.now().since(began) > limit {
                return;
            }
        }
    }

    /// Opens the lanes: the first session of each, at its instant.
    fn lanes(
        &self,
        preparation: Preparation,
        options: plan::Lanes,
    ) -> Result<Vec<(u32, Tree)>, RunError> {
        let Running { plan, parts, .. } = self.run;
        let count = plan.slots().unwrap_or_default();
        let feed = preparation.start_trees(count as u64).map_err(RunError::Thread)?;
        let (first, step) = plan.users();
        let numbers = (0..u32::try_from(count).unwrap_or(u32::MAX)).map(|lane| first + lane * step);
        let lanes = Lanes::new(plan, options, feed, (parts.run_id, &parts.tokenizer));
        let trees = lanes.begin(numbers);
        let _ = self.run.background.rest.sessions.lanes.set(lanes);
        trees
    }

    /// Warms the lanes up: the state of each live conversation, and then further requests of each
    /// lane without pauses. Fails if any of these requests does.
    async fn warm_lanes(
        &self,
        trees: Vec<(u32, Tree)>,
        options: plan::Lanes,
        (newsfeed, framing): (&mut Newsfeed<Item>, Framing),
        key: &mut u64,
    ) -> Result<(), RunError> {
        let sessions = &self.run.background.rest.sessions;
        let mut reach = sessions.prime(trees, self.run.clock.now())?;
        for primers in [0, options.warmup] {
            let now = self.run.clock.now();
            if primers > 0 {
                sessions.resume(Some(primers), now);
                reach = Nanos::ZERO;
            }
            let duration = Some(reach + options.warmup_grace);
            let none = |_| Next::None;
            let feed = (&mut *newsfeed, none);
            self.phase((now, duration), std::iter::empty(), feed, framing, key).await;
            let live = &self.run.control.live;
            let mut seen = live.primed();
            // Replies are on record a little after they have ended.
            while seen.ended < *key && !self.run.control.signal.is_stopped() {
                self.rest(Nanos(1_000_000)).await;
                seen = live.primed();
            }
            if self.run.control.signal.is_stopped() {
                return Ok(());
            }
            if let Some(first) = seen.first {
                let (failed, sent) = (seen.failed, *key);
                return Err(RunError::WarmUp { failed, sent, first });
            }
            if options.warmup == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Returns the instant at which the measurement begins; nothing if the run is stopped.
    async fn start(&self) -> Result<Option<Nanos>, RunError> {
        let signal = &self.run.control.signal;
        let since = self.run.clock.now();
        let start = match &self.run.control.gate {
            Some(gate) => gate.wait_for_start(signal).await,
            None => Some(since),
        };
        if self.run.clock.now().since(since) > IDLE_TOO_LONG {
            // Connections that lay idle for so long are not used.
            self.opened(self.open_connections(0)).await?;
        }
        Ok(start.filter(|_| !signal.is_stopped()))
    }

    /// Waits this long, while nothing is due. May return early.
    pub(super) async fn rest(&self, span: Nanos) {
        let until = self.run.clock.now() + span;
        self.run.control.signal.wait(&self.run.clock, Some(until)).await;
    }

    /// Returns the number of requests to prepare before the first is due: all that may go at once.
    fn ready(&self, are_for_a_time: bool) -> u64 {
        let requests = self.run.plan.load.roots().unwrap_or(u64::MAX);
        let arrival = &self.run.plan.load.arrival;
        let wanted = match (self.run.plan.slots(), arrival.peak_rate()) {
            (Some(slots), _) => slots as u64 + (slots as u64).div_ceil(4),
            (_, Some(rate)) if rate.is_finite() => {
                let more = if are_for_a_time { 0 } else { 16 };
                (rate * READY_SECONDS).ceil() as u64 + more
            }
            _ => requests,
        };
        wanted.min(requests)
    }

    /// Begins to open the connections that will be needed first, before anything is due.
    fn open_connections(&self, warmup: usize) -> Opening {
        let requests = self.run.plan.load.roots().unwrap_or(u64::MAX);
        let requests = requests.max(warmup as u64);
        let wanted = match (self.run.plan.slots(), self.run.plan.load.arrival.peak_rate()) {
            (Some(slots), _) => slots as u64,
            (None, Some(rate)) if rate.is_finite() => {
                (rate.ceil() as u64).clamp(4, SPARE_CONNECTIONS as u64)
            }
            _ => requests,
        };
        let wanted = wanted.min(requests) as usize;
        let workers = self.orders.len();
        let opening = Opening {
            wanted,
            settled_before: self.run.opened.settled.load(Ordering::Acquire),
            failed_before: self.run.opened.failed.load(Ordering::Acquire),
        };
        for (number, orders) in self.orders.iter().enumerate() {
            let share = wanted / workers + usize::from(number < wanted % workers);
            orders.put(Order::Open(share));
        }
        opening
    }

    /// Waits until these connections are open, or cannot be.
    async fn opened(&self, opening: Opening) -> Result<(), RunError> {
        let wanted = opening.wanted;
        let settled = || self.run.opened.settled.load(Ordering::Acquire) - opening.settled_before;
        while settled() < wanted && !self.run.control.signal.is_stopped() {
            self.rest(Nanos(1_000_000)).await;
        }
        if self.run.control.signal.is_stopped() {
            return Ok(());
        }
        let failed = self.run.opened.failed.load(Ordering::Acquire) - opening.failed_before;
        if failed > 0 && failed == settled() {
            return Err(RunError::Connections {
                target: listed(&self.run.parts.targets),
                failed,
                wanted,
            });
        }
        Ok(())
    }

    /// Paces one phase and waits for its replies. Returns the number of due requests not on record.
    async fn phase(
        &self,
        (origin, duration): (Nanos, Option<Nanos>),
        due_times: impl Iterator<Item = Due>,
        (newsfeed, next): (&mut Newsfeed<Item>, impl FnMut(bool) -> Next<Item>),
        framing: Framing,
        key: &mut u64,
    ) -> u64 {
        let load = &self.run.plan.load;
        // A lane's session may have several requests in flight.
        let slots = self.run.plan.slots().filter(|_| load.lanes.is_none());
        let thinking = match load.arrival {
            Arrival::Closed { think, .. } => think.map(|think| {
                let (first, step) = self.run.plan.users();
                Thinking { think, seed: load.seed, first, step }
            }),
            _ => None,
        };
        let pacing = Pacing {
            origin,
            duration,
            slots,
            by_session: load.users == Users::Sessions,
            capped: load.arrival.is_open() && slots.is_some(),
            thinking,
            lanes: load.lanes.map(|lanes| pace::Lanes { idle_most: lanes.idle_most }),
        };
        let signal = &self.run.control.signal;
        let unsent =
            pace(&self.run.clock, signal, &pacing, due_times, newsfeed, next, |item, verdict| {
                *key += 1;
                let opens = self.hand_on(item, verdict, framing, *key);
                HandedRequest { key: *key, opens }
            })
            .await;
        if self.run.control.live.phase() == Phase::Measuring {
            self.run.background.rest.sessions.close();
            self.run.control.live.enter(Phase::Draining);
        }
        if load.lanes.is_some() && self.run.control.live.phase() == Phase::WarmUp {
            self.end_grace(*key);
        }
        drain(&self.run.clock, signal, || signal.is_stopped()).await;
        if signal.is_stopped() {
            for orders in self.orders {
                orders.put(Order::Halt);
            }
            drain(&self.run.clock, signal, || signal.is_aborted()).await;
        }
        if signal.is_aborted() {
            for orders in self.orders {
                orders.put(Order::Abort);
            }
            drain(&self.run.clock, signal, || false).await;
        }
        unsent
    }

    /// Ends the run if replies of a lanes' warm-up are missing, whose time is over.
    fn end_grace(&self, sent: u64) {
        let signal = &self.run.control.signal;
        let failed = signal.in_flight() as u64;
        if failed > 0 && !signal.is_stopped() {
            let first = "no reply within `warmup-grace` of [load.lanes]".to_owned();
            self.run.background.rest.failures.abort(RunError::WarmUp { failed, sent, first });
            signal.abort();
        }
    }

    /// The least busy worker for a request; for a conversation, the worker with its connection.
    fn worker_of(&self, job: &Job) -> usize {
        match &job.session {
            Some(session) if self.run.plan.connection.reuse == Reuse::Session => {
                let mut hasher = DefaultHasher::new();
                session.hash(&mut hasher);
                (hasher.finish() % self.orders.len() as u64) as usize
            }
            _ => idlest(self.orders, job.key),
        }
    }

    /// Hands a request to a worker, or records why not. Returns true if it begins a session.
    fn hand_on(&self, item: Item, verdict: Verdict, framing: Framing, key: u64) -> bool {
        trip("pace");
        let Item { mut prepared, request, entry } = item;
        let lanes = self.run.background.rest.sessions.lanes.get();
        if prepared.phase == exchange::Phase::Measure && lanes.is_some_and(Lanes::is_short) {
            prepared.phase = exchange::Phase::Tail;
        }
        // Before the request is sent: its reply may end at any time.
        let is_member = entry.is_some();
        let opens = entry.is_some_and(|entry| self.run.background.rest.sessions.enter(key, entry));
        let measured = prepared.phase == exchange::Phase::Measure;
        match (verdict, request) {
            (Verdict::Send(Release { due, granted }), Ok(ready)) => {
                let cancelled_after =
                    if measured { self.run.plan.cancelled_after(prepared.index) } else { None };
                let job = Box::new(Job {
                    key,
                    exchange: prepared.due(due, granted),
                    request: ready.outgoing.ready(date),
                    framing: ready.framing.unwrap_or(framing),
                    course: ready.course,
                    session: ready.session,
                    cancelled_after,
                });
                self.orders[self.worker_of(&job)].send(job);
                if measured {
                    self.run.control.live.gave_out();
                }
                if key == 1 {
                    self.run.control.live.timings.reach(Stage::FirstSent);
                }
            }
            (Verdict::Send(Release { due, .. }), Err(outcome)) => {
                if measured {
                    self.run.control.live.gave_out();
                }
                if is_member {
                    self.run.background.rest.sessions.fell_through(key, due);
                }
                self.run.control.signal.release(key, self.run.clock.now());
                self.record(prepared.due(due, None), outcome);
            }
            (Verdict::NotSent { due }, request) => {
                if measured && request.is_err() {
                    // It counts as given out: only requests without a slot count as not sent.
                    self.run.control.live.gave_out();
                }
                let outcome = request.err().unwrap_or_else(|| failed(Class::NotSent, NOT_SENT));
                if is_member {
                    self.run.background.rest.sessions.forget(key);
                }
                self.record(prepared.due(due, None), outcome);
            }
        }
        opens
    }

    /// Hands an exchange whose request was never sent to the recorder.
    fn record(&self, due: exchange::Due, outcome: Outcome) {
        self.run.background.rest.finished.send(Box::new(due.unsent(outcome)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_soon_from_half_a_second_before_the_end() {
        let second = Nanos(1_000_000_000);
        // Ten thousand in two seconds: half a second is left at 7,500 of them.
        for (taken, ready, expected) in [
            (Nanos(0), 0, false),
            (Nanos(1_000), 8, false),
            (Nanos(1_000_000), 2_499, false),
            (Nanos(1_000_000), 2_500, true),
            (second, 5_000, false),
            (Nanos(1_500_000_000), 7_499, false),
            (Nanos(1_500_000_000), 7_500, true),
            (second, 10_000, true),
        ] {
            assert_eq!(ends_soon(taken, ready, 10_000), expected, "{ready}");
        }
        assert!(ends_soon(second, 1, 1));
        assert!(!ends_soon(second, 0, 1));
    }
}
