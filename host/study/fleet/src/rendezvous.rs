//! The coordinator's decisions, from the first greeting to the last ending: who belongs to the run,
//! when all are ready, and who was lost.
//!
//! [`Rendezvous`] is a state machine without sockets and without a clock: inputs with their
//! instants go in, actions come out. [`agent`] is the other side. A connection may break and come
//! back at any time: a process is known by its rank and its instance number. Every message may be
//! repeated, and an agent gets its missed messages again when it greets.
//!
//! Before the start a single reason cancels the run, because a run with another load than the
//! plan's is another run. All reasons are collected first: late processes may have reasons of their
//! own. After the start nothing is refused any more; an agent that does not come back within the
//! grace is lost for good.

mod reason;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::units::Nanos;
use serde_json::Value;

use crate::clock::{ClockStep, Course, Estimate, Exchange};
use crate::wire::{Finished, Hello, Interrupt, Message, PROTOCOL, Welcome};
use reason::differences;

pub use reason::{Reason, Step, Who};

/// A connection, numbered by its acceptor.
pub type Conn = u64;

/// The number of strangers to name among the reasons.
const MOST_STRANGERS: usize = 8;
/// Reasons to keep beyond one for each process: who has a token can give any number.
const MORE_REASONS: usize = 64;
/// Time, after the start, in which an agent may answer only for its clock, without figures, records
/// or an ending, before it is lost. The digest of its records may take minutes on a slow disk.
const QUIET: Nanos = Nanos(600_000_000_000);
/// The number of agents' interrupts to pass on.
const MOST_INTERRUPTS: u32 = 2;

/// The coordinator's expectations of the fleet.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The program's version, which all must have: its number, and platform and digest if known.
    pub version: String,
    /// The number of processes.
    pub size: u32,
    /// The time to wait for greetings.
    pub arrive: Nanos,
    /// The time to wait, after that, until all are ready.
    pub prepare: Nanos,
    /// The time to wait for further reasons once there is one.
    pub settle: Nanos,
    /// The time that a connection may be gone before its agent is lost.
    pub grace: Nanos,
    /// The smallest interval that the run reports. The clocks must be known to a tenth of it.
    pub smallest: Nanos,
    /// The least number of answers for a clock's estimate.
    pub answers: u64,
    /// The time to wait, once all are ready, for exact clocks.
    pub measure: Nanos,
}

#[derive(Debug)]
pub enum Input {
    /// A connection greets.
    Hello(Conn, Hello),
    /// A message of a connection that greeted.
    Message(Conn, Message),
    /// An answer about a clock.
    Clock(Conn, Exchange),
    /// An agent's ending, with records that are complete and whole.
    Finished(Conn, Finished),
    /// A message or file from the agent cannot be used, and sending it again would not help.
    Failed(Conn, String),
    /// Records of an agent have come.
    Records(Conn),
    /// A connection is gone.
    Broken(Conn, String),
    /// Something was turned away before it could greet.
    Stranger(String, String),
    /// The run begins at this instant of the coordinator's clock.
    Start(Nanos),
    /// The run ends before its time.
    Interrupt(String),
    /// Time has passed.
    Tick,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Welcome an agent: its connection, its rank.
    Welcome(Conn, u32),
    /// Forget the records of an agent that was started again.
    Forget(u32),
    Send(Conn, Message),
    /// Send waiting messages, and close.
    Close(Conn),
    /// Everybody is ready: the caller may start.
    Gathered,
    /// There will be no run.
    GaveUp(Vec<Reason>),
    /// An event for the run's owner.
    Event(Event),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Gathered,
    Running,
    Over,
    GaveUp,
}

#[derive(Debug, Default)]
pub struct Seat {
    pub who: Who,
    pub step: Step,
    /// The facts that it recorded of its machine.
    pub facts: Option<Value>,
    pub clock: Course,
    /// The estimate of its clock at the start.
    pub at_start: Option<Estimate>,
    /// The end of its part of the run.
    pub ending: Option<Value>,
    /// The time since which it is lost, by the coordinator's clock, and the reason.
    pub lost: Option<(Nanos, String)>,
    instance: Option<u64>,
    conn: Option<Conn>,
    last_contact: Nanos,
    /// The time of its last message, other than an answer about its clock.
    last_report: Nanos,
    broken: Option<(Nanos, String)>,
    turned_away: bool,
    plan: Option<String>,
    start: Option<Message>,
    interrupts: u32,
}

impl Seat {
    /// The seat of a process that has not come.
    fn empty(who: Who, now: Nanos) -> Self {
        Seat { who, last_contact: now, last_report: now, ..Seat::default() }
    }
}

/// The coordinator's side.
#[derive(Debug)]
pub struct Rendezvous {
    rules: Rules,
    began: Nanos,
    phase: Phase,
    seats: Vec<Seat>,
    by_conn: BTreeMap<Conn, u32>,
    reasons: Vec<Reason>,
    strangers: Vec<Reason>,
    /// The time of the last greeting, plan or refusal.
    news: Nanos,
    arrived: Option<Nanos>,
    ready: Option<Nanos>,
    interrupt: Option<Interrupt>,
}

/// True if two processes run the same program. A version is a number, the build's platform and its
/// digest. Builds for two platforms never have equal digests, so there the number decides.
fn is_same_build(one: &str, other: &str) -> bool {
    let mut parts = one.split(' ').zip(other.split(' '));
    let is_same = |parts: Option<(&str, &str)>| parts.is_none_or(|(one, other)| one == other);
    let same_number = is_same(parts.next());
    same_number && (!is_same(parts.next()) || is_same(parts.next()))
}

fn refuse(actions: &mut Vec<Action>, conn: Conn, reasons: Vec<String>) {
    actions.push(Action::Send(conn, Message::Refused { reasons }));
    actions.push(Action::Close(conn));
}

impl Rendezvous {
    /// A rendezvous that begins to wait now.
    pub fn new(rules: Rules, now: Nanos) -> Self {
        let seat = |rank| Seat::empty(Who { rank, host: None }, now);
        Rendezvous {
            seats: (0..rules.size).map(seat).collect(),
            rules,
            began: now,
            phase: Phase::Gathering,
            by_conn: BTreeMap::new(),
            reasons: Vec::new(),
            strangers: Vec::new(),
            news: now,
            arrived: None,
            ready: None,
            interrupt: None,
        }
    }

    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// The connection of a process, if it has one.
    pub fn conn(&self, rank: u32) -> Option<Conn> {
        self.seats[rank as usize].conn
    }

    /// Takes an input at its instant, and returns the actions.
    pub fn on(&mut self, now: Nanos, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        // These come all the time, and decide only the last condition of the wait.
        let frequent = matches!(
            input,
            Input::Clock(..)
                | Input::Records(_)
                | Input::Message(_, Message::Live { .. })
                | Input::Stranger(..)
        );
        match input {
            Input::Hello(conn, hello) => self.hello(now, conn, hello, &mut actions),
            Input::Message(conn, message) => self.message(now, conn, message, &mut actions),
            Input::Clock(conn, exchange) => self.clock(now, conn, exchange, &mut actions),
            Input::Finished(conn, finished) => self.finished(now, conn, finished, &mut actions),
            Input::Records(conn) => {
                if let Some(&rank) = self.by_conn.get(&conn) {
                    let seat = self.seat(rank);
                    (seat.last_contact, seat.last_report) = (now, now);
                }
            }
            Input::Failed(conn, why) => {
                if let Some(rank) = self.by_conn.remove(&conn) {
                    let reasons = vec![format!("rank 0 takes no more records: {why}")];
                    refuse(&mut actions, conn, reasons);
                    self.seat(rank).conn = None;
                    match self.phase {
                        Phase::Gathering => {
                            let seat = self.seat(rank);
                            let (who, step) = (seat.who.clone(), seat.step);
                            self.refuse_rank(now, rank, Reason::Lost { who, step, why });
                        }
                        _ => self.lose(rank, why, &mut actions),
                    }
                }
            }
            Input::Broken(conn, why) => {
                if let Some(rank) = self.by_conn.remove(&conn) {
                    let seat = self.seat(rank);
                    if seat.conn == Some(conn) {
                        seat.conn = None;
                        seat.broken = Some((now, why));
                    }
                }
            }
            Input::Stranger(address, why) => {
                if self.strangers.len() < MOST_STRANGERS {
                    self.strangers.push(Reason::Stranger { address, why });
                }
            }
            Input::Start(at) => self.start(now, at, &mut actions),
            Input::Interrupt(why) => self.interrupt(why, &mut actions),
            Input::Tick => {}
        }
        match self.phase {
            Phase::Gathering if !frequent || self.ready.is_some() => self.judge(now, &mut actions),
            Phase::Gathered | Phase::Running if !frequent => self.watch(now, &mut actions),
            _ => {}
        }
        actions
    }

    fn reasons(&self) -> Vec<String> {
        self.reasons.iter().map(ToString::to_string).collect()
    }

    fn seat(&mut self, rank: u32) -> &mut Seat {
        &mut self.seats[rank as usize]
    }

    /// Notes a reason of one process.
    fn refuse_rank(&mut self, now: Nanos, rank: u32, reason: Reason) {
        self.news = now;
        self.seat(rank).turned_away = true;
        self.note(reason);
    }

    /// Notes a reason, if it is new and there are not too many.
    fn note(&mut self, reason: Reason) {
        let most = self.rules.size as usize + MORE_REASONS;
        if self.reasons.len() < most && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    fn hello(&mut self, now: Nanos, conn: Conn, hello: Hello, actions: &mut Vec<Action>) {
        let of_rank = self.seats.get(hello.rank as usize);
        if of_rank.is_some_and(|seat| {
            seat.step == Step::Finished && seat.instance != Some(hello.instance)
        }) {
            // It comes for the next run of a study, and asks again until rank 0 begins it.
            return actions.push(Action::Close(conn));
        }
        let who = Who { rank: hello.rank, host: Some(hello.host.clone()) };
        let ours = (PROTOCOL, &self.rules.version, self.rules.size);
        let reason = if hello.protocol != ours.0 {
            Some(Reason::Protocol { who, theirs: hello.protocol, ours: ours.0 })
        } else if !is_same_build(&hello.version, ours.1) {
            Some(Reason::Version { who, theirs: hello.version.clone(), ours: ours.1.clone() })
        } else if hello.size != ours.2 || hello.rank >= ours.2 {
            Some(Reason::Size { who, theirs: hello.size, ours: ours.2 })
        } else {
            let seat = &self.seats[hello.rank as usize];
            // A process whose connection is gone before the start may have been started again.
            let is_left = self.phase == Phase::Gathering && seat.conn.is_none();
            let other = seat.instance.is_some_and(|known| known != hello.instance) && !is_left;
            other.then(|| Reason::Duplicate { first: seat.who.clone(), second: hello.host.clone() })
        };
        if let Some(reason) = reason {
            refuse(actions, conn, vec![reason.to_string()]);
            if self.phase == Phase::Gathering && hello.rank < self.rules.size {
                // The first process keeps its seat.
                self.refuse_rank(now, hello.rank, reason);
            } else if self.phase == Phase::Gathering {
                self.news = now;
                self.note(reason);
            }
            return;
        }
        let interrupt = self.interrupt.clone();
        if self.phase == Phase::GaveUp {
            return refuse(actions, conn, self.reasons());
        }
        let seat = self.seat(hello.rank);
        if let Some((_, why)) = &seat.lost {
            let message = format!("{} came back too late and counts as lost: {why}", seat.who);
            return refuse(actions, conn, vec![message]);
        }
        if seat.instance.is_some_and(|known| known != hello.instance) {
            // No message of the first instance counts for the second.
            let who = seat.who.clone();
            *seat = Seat::empty(who, now);
            actions.push(Action::Forget(hello.rank));
        }
        let old = seat.conn.replace(conn);
        seat.instance = Some(hello.instance);
        seat.who.host = Some(hello.host);
        seat.broken = None;
        (seat.last_contact, seat.last_report) = (now, now);
        seat.step = seat.step.max(Step::Welcomed);
        actions.push(Action::Welcome(conn, hello.rank));
        actions.extend(seat.start.clone().map(|start| Action::Send(conn, start)));
        actions.extend(interrupt.map(|it| Action::Send(conn, Message::Interrupt(it))));
        if seat.step == Step::Finished {
            actions.push(Action::Send(conn, Message::Bye));
        }
        if let Some(old) = old {
            self.by_conn.remove(&old);
            actions.push(Action::Close(old));
        }
        self.by_conn.insert(conn, hello.rank);
        self.news = now;
    }

    fn message(&mut self, now: Nanos, conn: Conn, message: Message, actions: &mut Vec<Action>) {
        let Some(&rank) = self.by_conn.get(&conn) else { return };
        let gathering = self.phase == Phase::Gathering;
        let seat = &mut self.seats[rank as usize];
        (seat.last_contact, seat.last_report) = (now, now);
        match message {
            Message::Prepared { plan, facts } if seat.step >= Step::Welcomed => {
                // An agent that connects again may repeat it.
                if seat.step == Step::Welcomed {
                    (seat.step, seat.plan, seat.facts) = (Step::Prepared, Some(plan), Some(facts));
                    self.news = now;
                }
            }
            Message::Ready if seat.step >= Step::Prepared => {
                seat.step = seat.step.max(Step::Ready);
            }
            Message::Live { figures } => {
                actions.push(Action::Event(Event::Live { rank, figures }));
            }
            Message::Interrupt(Interrupt { why, .. }) => {
                seat.interrupts += 1;
                if seat.interrupts <= MOST_INTERRUPTS {
                    let who = seat.who.clone();
                    let message = format!("{who}: {why}");
                    if !gathering {
                        actions.push(Action::Event(Event::Interrupted { who, why }));
                    }
                    self.interrupt(message, actions);
                }
            }
            Message::Refused { reasons } if gathering => {
                let who = seat.who.clone();
                self.refuse_rank(now, rank, Reason::Declined { who, reasons });
            }
            other => {
                let why = format!("it sent a message of kind `{}` out of turn", other.kind());
                seat.conn = None;
                seat.broken = Some((now, why));
                self.by_conn.remove(&conn);
                actions.push(Action::Close(conn));
            }
        }
    }

    fn clock(&mut self, now: Nanos, conn: Conn, exchange: Exchange, actions: &mut Vec<Action>) {
        let Some(&rank) = self.by_conn.get(&conn) else { return };
        let running = self.phase == Phase::Running;
        let seat = self.seat(rank);
        seat.last_contact = now;
        // An impossible answer counts for nothing; an agent with no other is refused for its clock.
        if let Ok(Some(moved)) = seat.clock.note(exchange)
            && running
            && seat.clock.moves().1 == 0
        {
            let who = seat.who.clone();
            actions.push(Action::Event(Event::ClockMoved { who, moved }));
        }
    }

    fn finished(&mut self, now: Nanos, conn: Conn, finished: Finished, actions: &mut Vec<Action>) {
        let Some(&rank) = self.by_conn.get(&conn) else { return };
        let seat = self.seat(rank);
        seat.last_contact = now;
        if seat.start.is_none() {
            let why = "it finished before the start".to_owned();
            actions.extend(self.on(now, Input::Failed(conn, why)));
            return;
        }
        actions.push(Action::Send(conn, Message::Bye));
        if seat.step != Step::Finished {
            seat.step = Step::Finished;
            let ending = finished.ending;
            seat.ending = Some(ending.clone());
            actions.push(Action::Event(Event::Finished { rank, ending }));
        }
    }

    fn start(&mut self, now: Nanos, at: Nanos, actions: &mut Vec<Action>) {
        if self.phase != Phase::Gathered {
            return;
        }
        self.phase = Phase::Running;
        for seat in &mut self.seats {
            let Some(estimate) = seat.clock.at(now) else { continue };
            let start = Message::Start { at: estimate.to_agent(at), bound: estimate.bound };
            seat.at_start = Some(estimate);
            // Between the start and its instant there is nothing to report.
            seat.last_report = now.max(at);
            seat.start = Some(start.clone());
            actions.extend(seat.conn.map(|conn| Action::Send(conn, start)));
        }
    }

    fn interrupt(&mut self, why: String, actions: &mut Vec<Action>) {
        if self.phase == Phase::Gathering {
            self.reasons.push(Reason::Interrupted(why));
            return self.give_up(actions);
        }
        let times = self.interrupt.as_ref().map_or(0, |before| before.times);
        let interrupt = Interrupt { times: times.saturating_add(1), why };
        self.interrupt = Some(interrupt.clone());
        for conn in self.seats.iter().filter_map(|seat| seat.conn) {
            actions.push(Action::Send(conn, Message::Interrupt(interrupt.clone())));
        }
    }
}

/// An event of the run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An agent is gone for good: its remaining requests count as not offered.
    Lost {
        who: Who,
        /// The time of its last message, by the coordinator's clock.
        from: Nanos,
        why: String,
    },
    /// A clock moved against the coordinator's.
    ClockMoved { who: Who, moved: ClockStep },
    /// An agent stopped the run, because somebody stopped it there.
    Interrupted { who: Who, why: String },
    /// Figures of an agent's part of the run.
    Live { rank: u32, figures: Value },
    /// An agent's part of the run has ended.
    Finished { rank: u32, ending: Value },
    /// Every agent has finished or is lost.
    Over,
}

// An agent's side: its sent and received messages, and their repetition on a new connection.
//
// Like `Rendezvous` it has no socket and no clock. Every message that an agent sends is a
// fact about it, so a connection that breaks loses nothing: `Agent::again` repeats the facts.

/// The knowledge of an agent.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// The work; absent before the first welcome.
    pub welcome: Option<Welcome>,
    /// The time when the run begins, by this agent's clock, and the bound of its error.
    pub start: Option<(Nanos, Nanos)>,
    /// The order to end the run before its time.
    pub interrupt: Option<Interrupt>,
    /// The reason why this agent takes no part.
    pub refused: Option<Vec<String>>,
    /// The coordinator has everything.
    pub released: bool,
    /// The number of bytes of records that the coordinator has.
    pub acknowledged: u64,
    prepared: Option<(String, Value)>,
    ready: bool,
    declined: Option<Vec<String>>,
    interrupting: Option<String>,
    finished: Option<Finished>,
}

impl Agent {
    /// Records that the plan is made.
    pub fn prepare(&mut self, plan: String, facts: Value) -> Message {
        self.prepared = Some((plan.clone(), facts.clone()));
        Message::Prepared { plan, facts }
    }

    /// Records that connections are open.
    pub fn set_ready(&mut self) -> Message {
        self.ready = true;
        Message::Ready
    }

    /// Records that this process cannot take part.
    pub fn decline(&mut self, reasons: Vec<String>) -> Message {
        self.declined = Some(reasons.clone());
        Message::Refused { reasons }
    }

    /// Records that somebody stopped this process.
    pub fn stop(&mut self, why: String) -> Message {
        self.interrupting = Some(why.clone());
        Message::Interrupt(Interrupt { times: 1, why })
    }

    /// Records that the part of the run has ended, and its records are complete.
    pub fn finish(&mut self, finished: Finished) {
        self.finished = Some(finished);
    }

    /// The ending, once all records are acknowledged.
    pub fn ending(&self) -> Option<Message> {
        let finished = self.finished.as_ref()?;
        (self.acknowledged >= finished.records).then(|| Message::Finished(finished.clone()))
    }

    /// Returns the messages to send after the welcome of a new connection.
    pub fn again(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        if let Some(reasons) = self.declined.clone() {
            messages.push(Message::Refused { reasons });
            return messages;
        }
        if let Some((plan, facts)) = self.prepared.clone() {
            messages.push(Message::Prepared { plan, facts });
        }
        if self.ready {
            messages.push(Message::Ready);
        }
        // The coordinator knows an interrupt that came back.
        if let (Some(why), None) = (self.interrupting.clone(), &self.interrupt) {
            messages.push(Message::Interrupt(Interrupt { times: 1, why }));
        }
        messages.extend(self.ending());
        messages
    }

    /// Takes a coordinator's message, except questions about the clock. Fails if none sends that.
    pub fn on(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Welcome(welcome) => {
                self.acknowledged = welcome.records;
                let known = self.welcome.get_or_insert_with(|| (*welcome).clone());
                if (known.index, known.of) != (welcome.index, welcome.of) {
                    return Err("the coordinator gave another slice than before".to_owned());
                }
            }
            // The first start holds: a second differs only by the clocks' estimate.
            Message::Start { at, bound } => {
                self.start.get_or_insert((at, bound));
            }
            Message::Ack { offset } => self.acknowledged = self.acknowledged.max(offset),
            Message::Interrupt(interrupt) => {
                let known = self.interrupt.as_ref().map_or(0, |known| known.times);
                if interrupt.times > known {
                    self.interrupt = Some(interrupt);
                }
            }
            Message::Refused { reasons } => self.refused = Some(reasons),
            Message::Bye => self.released = true,
            other => {
                let kind = other.kind();
                return Err(format!("the coordinator sent a message of kind `{kind}`"));
            }
        }
        Ok(())
    }
}

impl Rendezvous {
    /// Before the start: decides that all are ready, or that there is no hope for that.
    fn judge(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let rules = &self.rules;
        let first = self.seats.first();
        let ours = first.and_then(|seat| Some((seat.plan.as_ref()?, seat.facts.as_ref()?)));
        let parts = |facts: &Value| facts.get("plan").cloned().unwrap_or_default();
        let mut found = Vec::new();
        for seat in &self.seats {
            if let (Some((ours, our_facts)), Some(theirs), Some(facts)) =
                (ours, &seat.plan, &seat.facts)
                && ours != theirs
            {
                let digests = (theirs.as_str(), ours.as_str());
                let differs = differences(&parts(facts), &parts(our_facts), digests);
                found.push(Reason::Plan { who: seat.who.clone(), differs });
            }
            if let Some((at, why)) = &seat.broken
                && now.since(*at) >= rules.grace
                && !seat.turned_away
            {
                let (who, step, why) = (seat.who.clone(), seat.step, why.clone());
                found.push(Reason::Lost { who, step, why });
            }
        }
        let here = |seat: &Seat| seat.instance.is_some() || seat.turned_away;
        if self.arrived.is_none() && self.seats.iter().all(here) {
            self.arrived = Some(now);
        }
        // Processes that never came are missing; some of the others may not be ready.
        let mut late = false;
        if self.arrived.is_none() && now.since(self.began) >= rules.arrive {
            late = true;
            let after = rules.arrive;
            for seat in self.seats.iter().filter(|seat| !here(seat)) {
                let who = seat.who.clone();
                found.push(Reason::Missing { who, after });
            }
        }
        let idle = |seat: &&Seat| seat.step < Step::Ready && !seat.turned_away;
        if self.arrived.is_some_and(|at| now.since(at) >= rules.prepare) {
            for seat in self.seats.iter().filter(idle) {
                late = true;
                let (who, step, after) = (seat.who.clone(), seat.step, rules.prepare);
                found.push(Reason::NotReady { who, step, after });
            }
        }
        let all_ready = (self.seats.iter())
            .all(|seat| seat.step == Step::Ready && seat.conn.is_some() && !seat.turned_away);
        if !all_ready {
            self.ready = None;
        } else if self.reasons.is_empty() && found.is_empty() {
            let since = *self.ready.get_or_insert(now);
            let wanting: Vec<Reason> =
                (self.seats.iter()).filter_map(|seat| self.clock_of(seat, now)).collect();
            if wanting.is_empty() {
                self.phase = Phase::Gathered;
                return actions.push(Action::Gathered);
            }
            if now.since(since) >= rules.measure {
                late = true;
                found = wanting;
            }
        }
        // Rank 0's own agent gets the reasons too, so that it does not wait for a coordinator.
        let settled = (now.since(self.news) >= rules.settle && first.is_none_or(here))
            || (self.seats.iter()).all(|seat| seat.turned_away || seat.plan.is_some());
        if !(self.reasons.is_empty() && found.is_empty()) && (late || settled) {
            self.reasons.extend(found);
            self.give_up(actions);
        }
    }

    /// Returns the reason why a clock is too inexact.
    fn clock_of(&self, seat: &Seat, now: Nanos) -> Option<Reason> {
        let who = seat.who.clone();
        let answers = seat.clock.answers();
        let needed = self.rules.answers.max(1);
        match seat.clock.at(now) {
            Some(estimate) if answers >= needed => {
                let cause = estimate.check(self.rules.smallest).err()?;
                Some(Reason::Clock { who, cause })
            }
            _ => Some(Reason::NoClock { who, answers, needed }),
        }
    }

    fn give_up(&mut self, actions: &mut Vec<Action>) {
        self.phase = Phase::GaveUp;
        self.reasons.append(&mut self.strangers);
        let reasons = self.reasons();
        for conn in self.seats.iter_mut().filter_map(|seat| seat.conn.take()) {
            refuse(actions, conn, reasons.clone());
        }
        self.by_conn.clear();
        actions.push(Action::GaveUp(self.reasons.clone()));
    }

    /// After the start: finds lost agents, and the end of all.
    fn watch(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let grace = self.rules.grace;
        let started = self.phase == Phase::Running;
        for rank in 0..self.rules.size {
            let seat = self.seat(rank);
            if let Some((at, why)) = &seat.broken
                && now.since(*at) >= grace
            {
                let why = why.clone();
                self.lose(rank, why, actions);
            } else if started && now.since(seat.last_report) >= QUIET {
                let why = format!(
                    "it is connected, and has sent no figures, records or ending for {:.0} s",
                    QUIET.as_secs_f64()
                );
                self.lose(rank, why, actions);
            }
        }
        let ended = |seat: &Seat| seat.step == Step::Finished || seat.lost.is_some();
        if self.phase == Phase::Running && self.seats.iter().all(ended) {
            self.phase = Phase::Over;
            actions.push(Action::Event(Event::Over));
        }
    }

    fn lose(&mut self, rank: u32, why: String, actions: &mut Vec<Action>) {
        let seat = self.seat(rank);
        if seat.lost.is_some() || seat.step == Step::Finished {
            return;
        }
        let (who, from) = (seat.who.clone(), seat.last_contact);
        seat.lost = Some((from, why.clone()));
        actions.push(Action::Event(Event::Lost { who, from, why }));
    }
}
