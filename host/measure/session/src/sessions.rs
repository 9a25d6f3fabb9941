//! Sessions under way: requests that wait for others. When a reply ends, its followers are written,
//! with the answer in their history, and go to the pacer with their due times.
//!
//! [`graph`] holds the dependencies, [`history`] the messages in front of a request. Threads of its
//! own do the work ([`Continuer`]), so that neither a reader nor the pacer waits for a plugin.

pub mod graph;
pub mod history;
pub mod lanes;
pub mod memory;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crossbeam_channel::{Receiver, Sender};

use crate::decode::failures::failed;
use crate::lock;
use crate::parts::RunError;
use crate::pending::{ComposedSample, OfLane, PendingRequest, SessionSalt};
use crate::prepare::Item;
use crate::prepare::writer::Writer;
use graph::{Graph, Primer, Steps};
use history::ReplyContent;
use lanes::{Lanes, Tree};
use load::pace::{Announcer, Follower, News};
use load::thread_group::trip;
use memory::Memory;
use model::exchange::{Class, Exchange};
use model::units::Nanos;
use plugins::backend::Prompt;
use reader::Size;

/// The sessions of a run, as everyone sees them who has to do with their requests.
pub struct Sessions {
    /// The requests under way that belong to a session, by the pacer's number.
    places: Mutex<HashMap<u64, Place>>,
    /// True if any request depends on another. Otherwise nothing here costs anything.
    is_used: AtomicBool,
    /// True if nothing more is sent.
    is_closed: AtomicBool,
    over: AtomicU64,
    pub memory: Memory,
    /// One queue for each thread. All events of a session go to the same, to keep their order.
    events: Vec<Sender<Event>>,
    announcer: Announcer<Item>,
    pub lanes: OnceLock<Lanes>,
    /// True if time stands still while the followers are worked out.
    waits: bool,
}

/// Something that others may depend on.
enum Event {
    /// A lane's live conversations are to be in the server's cache: requests for one token, each
    /// due at this instant less its lead.
    Prime(Place, Vec<Primer>, Nanos),
    /// A lane goes on: with this many requests to warm up, or measured.
    Resume(Place, Option<u32>, Nanos),
    FirstOutput(Place, Nanos),
    Over(Place, Nanos, RequestEnd),
    Stop,
}

enum RequestEnd {
    Answered(ReplyContent),
    Failed,
    /// Without one, because the context is too long.
    Overflowed,
    /// Its user left on purpose.
    Left,
}

/// The facts that must be known of a reply that others depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    pub end: bool,
    pub first_output: bool,
}

/// The threads' end of [`Sessions`].
pub struct Continuer {
    sessions: Arc<Sessions>,
    events: Receiver<Event>,
    writer: Writer,
}

impl Sessions {
    /// For this many threads. If `waits`, replies stop while their first output is looked at.
    pub fn new(
        announcer: Announcer<Item>,
        memory: Memory,
        (threads, waits): (usize, bool),
    ) -> (Arc<Self>, Vec<EventQueue>) {
        let queues = (0..threads.max(1)).map(|_| crossbeam_channel::unbounded());
        let (events, queues): (Vec<_>, Vec<_>) = queues.unzip();
        let sessions = Arc::new(Sessions {
            places: Mutex::default(),
            is_used: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            over: AtomicU64::new(0),
            memory,
            events,
            announcer,
            lanes: OnceLock::new(),
            waits,
        });
        (sessions, queues.into_iter().map(EventQueue).collect())
    }

    /// An item of a session is handed on with this number. Returns true if it begins one.
    pub fn enter(&self, key: u64, entry: Entry) -> bool {
        self.is_used.store(true, Ordering::Release);
        let (place, is_root) = match entry {
            Entry::Root(graph) => {
                let bytes = graph.bytes();
                self.memory.hold(bytes);
                let session = Session {
                    graph: *graph,
                    root: key,
                    last: Nanos::ZERO,
                    bytes,
                    is_announced: false,
                    lane: None,
                };
                let session = Arc::new(Mutex::new(session));
                let queue = (key % self.events.len() as u64) as usize;
                let node = 0;
                let place = Place { session, queue, node };
                (place, true)
            }
            Entry::Node(place) => (place, false),
        };
        lock(&self.places).insert(key, place);
        is_root
    }

    fn send(&self, queue: usize, event: Event) {
        // Its thread lives until it is stopped, which is after the last reply.
        let _ = self.events[queue].send(event);
    }

    /// Returns the parts of a request's reply that its session needs.
    pub fn followed(&self, key: u64) -> Interest {
        if !self.is_used.load(Ordering::Acquire) {
            return Interest::default();
        }
        let place = lock(&self.places).get(&key).cloned();
        place.map_or(Interest::default(), |place| Interest {
            end: true,
            first_output: lock(&place.session).graph.watches_first_output(place.node),
        })
    }

    /// True if a reply waits until its first output, or its answered frames, were looked at.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// A reply that is followed has ended; [`Sessions::over`] comes later.
    pub fn expect(&self) {
        self.announcer.expect();
    }

    pub fn first_output(&self, key: u64, at: Nanos) {
        let place = lock(&self.places).get(&key).cloned();
        if let Some(place) = place {
            self.announcer.expect();
            self.send(place.queue, Event::FirstOutput(place, at));
        }
    }

    /// An exchange that is followed, and expected, is over.
    pub fn over(&self, key: u64, exchange: &Exchange, carry: Option<Vec<u8>>) {
        let place = lock(&self.places).remove(&key);
        let at = exchange.ended.unwrap_or(exchange.due);
        match place {
            Some(place) => {
                let ended = match exchange.outcome.class() {
                    Class::Cancelled => RequestEnd::Left,
                    _ if exchange.overflows_context() => RequestEnd::Overflowed,
                    _ => ReplyContent::from_exchange(exchange, carry)
                        .map_or(RequestEnd::Failed, RequestEnd::Answered),
                };
                self.send(place.queue, Event::Over(place, at, ended));
            }
            None => self.announcer.announce(Vec::new()),
        }
    }

    /// A request of a session is not sent any more, because its phase is over.
    pub fn forget(&self, key: u64) {
        lock(&self.places).remove(&key);
    }

    /// A request of a session is over without having been sent.
    pub fn fell_through(&self, key: u64, at: Nanos) {
        if let Some(place) = lock(&self.places).remove(&key) {
            self.announcer.expect();
            self.send(place.queue, Event::Over(place, at, RequestEnd::Failed));
        }
    }

    /// Puts a session into a lane. Fails if the sessions take too much memory.
    fn place(&self, number: u32, tree: Tree, primers: Option<u32>) -> Result<Place, RunError> {
        let Tree { graph, salt, entered } = tree;
        let bytes = graph.bytes();
        self.memory.hold(bytes);
        if !self.memory.has_room(Nanos::ZERO) {
            let bound = Size(self.memory.bound());
            return Err(RunError::Lanes(format!(
                "the sessions of the lanes take more than {bound}: raise `session-memory` in [load], or use fewer lanes"
            )));
        }
        let held = entered.open.into_iter();
        let held = held.map(|(node, pause)| Held { node, pause, since: None }).collect();
        let lane = InLane { number, salt, held, primers };
        let session = Session {
            graph,
            root: u64::from(number),
            last: Nanos::ZERO,
            bytes,
            is_announced: false,
            lane: Some(lane),
        };
        let queue = number as usize % self.events.len();
        let place = Place { session: Arc::new(Mutex::new(session)), queue, node: 0 };
        if let Some(lanes) = self.lanes.get() {
            lock(&lanes.places).insert(number, place.clone());
        }
        Ok(place)
    }

    /// Fills the server's cache with these lanes at one instant. Returns the time until then.
    pub fn prime(&self, trees: Vec<(u32, Tree)>, now: Nanos) -> Result<Nanos, RunError> {
        let primers = trees.iter().flat_map(|(_, tree)| &tree.entered.primers);
        let reach = primers.map(|primer| primer.lead).max().unwrap_or_default();
        for (number, mut tree) in trees {
            let primers = std::mem::take(&mut tree.entered.primers);
            let place = self.place(number, tree, Some(0))?;
            self.announcer.expect();
            self.send(place.queue, Event::Prime(place, primers, now + reach));
        }
        Ok(reach)
    }

    /// Has every lane go on: with this many requests to warm up, or measured.
    pub fn resume(&self, primers: Option<u32>, at: Nanos) {
        let Some(lanes) = self.lanes.get() else { return };
        for place in lock(&lanes.places).values().cloned() {
            self.announcer.expect();
            self.send(place.queue, Event::Resume(place, primers, at));
        }
    }

    /// Nothing more is sent, so nothing more needs to be written.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Ends the threads, once no reply is under way any more.
    pub fn stop(&self) {
        for queue in 0..self.events.len() {
            self.send(queue, Event::Stop);
        }
    }

    pub fn over_count(&self) -> u64 {
        self.over.load(Ordering::Relaxed)
    }
}

/// The events that were not worked on, for one thread.
pub struct EventQueue(Receiver<Event>);

impl Continuer {
    /// Works on the events of these sessions, with a writer of its own.
    pub fn new(sessions: &Arc<Sessions>, events: EventQueue, writer: Writer) -> Self {
        Continuer { sessions: Arc::clone(sessions), events: events.0, writer }
    }

    /// Works until [`Sessions::stop`].
    pub fn run(mut self) {
        while let Ok(event) = self.events.recv() {
            trip("continue");
            let news = match event {
                Event::Stop => return,
                Event::Prime(place, primers, instant) => self.prime(&place, primers, instant),
                Event::Resume(place, primers, at) => {
                    if let Some(lane) = &mut lock(&place.session).lane {
                        lane.primers = primers;
                    }
                    self.go_on(&place, at)
                }
                Event::FirstOutput(place, at) => {
                    let ready = lock(&place.session).graph.first_output(place.node, at);
                    self.follow(&place, Steps { ready, dropped: Vec::new() }, (at, false))
                }
                Event::Over(place, at, ended) => self.over(&place, at, ended),
            };
            self.sessions.announcer.announce(news);
        }
    }

    /// A request is over: writes its followers, or the next session of its lane.
    fn over(&mut self, place: &Place, at: Nanos, ended: RequestEnd) -> Vec<News<Item>> {
        let left = matches!(ended, RequestEnd::Left);
        let is_cut = matches!(ended, RequestEnd::Overflowed);
        let answer = match ended {
            RequestEnd::Answered(answer) => Some(answer),
            RequestEnd::Failed | RequestEnd::Overflowed | RequestEnd::Left => None,
        };
        let steps = {
            let mut session = lock(&place.session);
            session.last = session.last.max(at);
            let more = answer.as_ref().map_or(0, ReplyContent::bytes);
            session.bytes += more;
            self.sessions.memory.hold(more);
            if is_cut && session.lane.is_some() {
                session.graph.cut(place.node, at)
            } else {
                session.graph.over(place.node, at, answer)
            }
        };
        let mut news = self.follow(place, steps, (at, left));
        let mut session = lock(&place.session);
        if session.graph.is_over() && !session.is_announced {
            session.is_announced = true;
            self.sessions.over.fetch_add(1, Ordering::Relaxed);
            self.sessions.memory.free(session.bytes);
            let (root, last) = (session.root, session.last);
            let lane = session.lane.as_ref().map(|lane| (lane.number, lane.primers));
            drop(session);
            match lane {
                Some(lane) => news.extend(self.next_in_lane(lane, at)),
                None => news.push(News::Over { root, at: last }),
            }
        }
        news
    }

    /// Writes the requests that fill the server's cache with a lane's live conversations.
    fn prime(&mut self, place: &Place, primers: Vec<Primer>, instant: Nanos) -> Vec<News<Item>> {
        let salt = lock(&place.session).lane.as_ref().and_then(|lane| lane.salt.clone());
        let written = primers.into_iter().map(|Primer { index, lead, composed }| {
            let lane = OfLane { salt: salt.clone(), is_primer: true };
            let item = self.writer.write(PendingRequest::of_lane(index, composed, lane));
            News::Due(Follower { due: instant.since(lead), item })
        });
        written.collect()
    }

    /// Writes the requests that a lane holds; while it warms up as many as it may, due at once.
    fn go_on(&mut self, place: &Place, at: Nanos) -> Vec<News<Item>> {
        let mut news = Vec::new();
        let mut session = lock(&place.session);
        while !self.sessions.is_closed.load(Ordering::Acquire) {
            let Session { graph, lane: Some(lane), .. } = &mut *session else { break };
            if lane.primers == Some(0) {
                break;
            }
            let Some(Held { node, pause, since }) = lane.held.pop_front() else { break };
            let due = match (&mut lane.primers, since) {
                (Some(left), _) => {
                    *left -= 1;
                    at
                }
                (None, since) => (since.unwrap_or(at) + pause).max(at),
            };
            let of = OfLane { salt: lane.salt.clone(), is_primer: lane.primers.is_some() };
            let descendants = if node == 0 { graph.followers_of_root() } else { 0 };
            let item = self.write(place.at(node), graph, |index, composed| PendingRequest {
                descendants,
                ..PendingRequest::of_lane(index, composed, of)
            });
            news.push(News::Due(Follower { due, item }));
        }
        news
    }

    /// Puts the next session into a lane whose session is over.
    fn next_in_lane(
        &mut self,
        (number, primers): (u32, Option<u32>),
        at: Nanos,
    ) -> Vec<News<Item>> {
        if self.sessions.is_closed.load(Ordering::Acquire) {
            return Vec::new();
        }
        let Some(lanes) = self.sessions.lanes.get() else { return Vec::new() };
        let place = lanes.next(number).and_then(|tree| {
            tree.map(|tree| self.sessions.place(number, tree, primers)).transpose()
        });
        match place {
            Ok(Some(place)) => self.go_on(&place, at),
            Ok(None) => Vec::new(),
            Err(why) => {
                self.writer.abort(why);
                Vec::new()
            }
        }
    }

    /// Writes the request at a place of a session, as `pending` has it.
    fn write(
        &mut self,
        place: Place,
        graph: &mut Graph,
        pending: impl FnOnce(u64, ComposedSample) -> PendingRequest,
    ) -> Item {
        let index = graph.index(place.node);
        let item = match graph.compose(place.node) {
            Ok(composed) => self.writer.write(pending(index, composed)),
            Err(what) => self.writer.faulty(pending(index, graph.unsent(place.node)), &what),
        };
        Item { entry: Some(Entry::Node(place)), ..item }
    }

    /// Writes the followers, or keeps them in a lane and sends as many as it may. A dropped request
    /// counts as cancelled if the user left, else as lost to a failure.
    fn follow(
        &mut self,
        place: &Place,
        steps: Steps,
        (at, left): (Nanos, bool),
    ) -> Vec<News<Item>> {
        let mut news = Vec::new();
        if self.sessions.is_closed.load(Ordering::Acquire) {
            return news;
        }
        let mut session = lock(&place.session);
        let is_in_lane = session.lane.is_some();
        if let Session { graph, lane: Some(lane), .. } = &mut *session {
            lane.held.extend(steps.ready.into_iter().map(|node| Held {
                node,
                pause: graph.due(node).since(at),
                since: Some(at),
            }));
        } else {
            for node in steps.ready {
                let due = session.graph.due(node);
                let item =
                    self.write(place.at(node), &mut session.graph, PendingRequest::of_session);
                news.push(News::Due(Follower { due, item }));
            }
        }
        for node in steps.dropped {
            let index = session.graph.index(node);
            let unsent = session.graph.unsent(node);
            let why = if left {
                failed(Class::Cancelled, "a request that it depends on was cancelled on purpose")
            } else {
                failed(Class::ParentFailed, "a request that it depends on failed")
            };
            let item = self.writer.unsent(PendingRequest::of_session(index, unsent), why);
            // It would have been due some time after the failure; when is unknown, and nothing
            // waits for it.
            let due = session.last;
            news.push(News::Lost(Follower { due, item }));
        }
        drop(session);
        if is_in_lane {
            news.extend(self.go_on(place, at));
        }
        news
    }
}

/// The place of a request in its session.
#[derive(Clone)]
pub struct Place {
    session: Arc<Mutex<Session>>,
    /// Index of the queue for the session's events.
    queue: usize,
    node: usize,
}

struct Session {
    graph: Graph,
    /// The pacer's number of its first request.
    root: u64,
    last: Nanos,
    /// Its memory in bytes: the samples, and the answers so far.
    bytes: usize,
    /// True if the pacer knows that it is over.
    is_announced: bool,
    lane: Option<InLane>,
}

/// The state of a session in a lane.
struct InLane {
    number: u32,
    salt: Option<Arc<SessionSalt>>,
    /// Requests that wait for no reply, until the lane goes on.
    held: VecDeque<Held>,
    /// Number of requests that the lane may still send to warm up; absent once it is measured.
    primers: Option<u32>,
}

/// A request that waits for no reply.
struct Held {
    node: usize,
    /// Its pause, from this instant or from when the lane goes on.
    pause: Nanos,
    since: Option<Nanos>,
}

/// The role of an item in its session, until it is handed on.
pub enum Entry {
    Root(Box<Graph>),
    /// A follower in a session.
    Node(Place),
}

impl Place {
    fn at(&self, node: usize) -> Place {
        Place { session: Arc::clone(&self.session), queue: self.queue, node }
    }
}

/// The cuts of a session's prompts, by position; none beyond the last entry.
#[derive(Default)]
pub struct Beginnings(Vec<Cut>);

struct Cut {
    /// The earlier prompt.
    of: usize,
    /// The bytes or tokens of it that this prompt begins with; 0 for a prompt that is whole.
    length: usize,
    /// True if a later prompt begins like this one.
    is_base: bool,
}

impl Beginnings {
    /// Takes the next prompt, and cuts off the beginning that it shares with an earlier one.
    pub fn cut<'p>(
        &mut self,
        prompt: &mut Prompt,
        base: Option<usize>,
        held: impl Fn(usize) -> &'p Prompt,
    ) {
        let mut cut = Cut { of: 0, length: 0, is_base: false };
        if let Some(base) = base {
            let pieces = self.pieces(base, held);
            (cut.of, cut.length) = (base, shared(prompt, &pieces));
            // The prompts in between add nothing.
            while cut.length > 0 && cut.length <= self.0[cut.of].length {
                cut.of = self.0[cut.of].of;
            }
            self.0[cut.of].is_base |= cut.length > 0;
        }
        match prompt {
            Prompt::Text(text) => *text = text[cut.length..].to_owned(),
            Prompt::Tokens(ids) => *ids = ids[cut.length..].to_vec(),
            _ => {}
        }
        self.0.push(cut);
    }

    pub fn whole<'p>(&self, position: usize, held: impl Fn(usize) -> &'p Prompt) -> Prompt {
        let pieces = self.pieces(position, &held);
        match held(position) {
            Prompt::Text(_) => Prompt::Text(pieces.iter().map(|piece| text(*piece)).collect()),
            Prompt::Tokens(_) => {
                Prompt::Tokens(pieces.iter().flat_map(|piece| tokens(*piece)).copied().collect())
            }
            other => other.clone(),
        }
    }

    /// True if a later prompt needs this one.
    pub fn is_base(&self, position: usize) -> bool {
        self.0.get(position).is_some_and(|cut| cut.is_base)
    }

    /// The pieces of a prompt in order, each the beginning of a held prompt with its length.
    fn pieces<'p>(
        &self,
        position: usize,
        held: impl Fn(usize) -> &'p Prompt,
    ) -> Vec<(&'p Prompt, usize)> {
        let (mut at, mut most, mut pieces) = (position, usize::MAX, Vec::new());
        loop {
            let (of, length) = self.0.get(at).map_or((0, 0), |cut| (cut.of, cut.length));
            pieces.push((held(at), most.saturating_sub(length)));
            if length == 0 {
                break;
            }
            (at, most) = (of, most.min(length));
        }
        pieces.reverse();
        pieces
    }
}

fn text((prompt, length): (&Prompt, usize)) -> &str {
    let Prompt::Text(text) = prompt else { return "" };
    &text[..length.min(text.len())]
}

fn tokens((prompt, length): (&Prompt, usize)) -> &[u32] {
    let Prompt::Tokens(ids) = prompt else { return &[] };
    &ids[..length.min(ids.len())]
}

/// The length of the beginning that a prompt shares with these pieces.
fn shared(prompt: &Prompt, pieces: &[(&Prompt, usize)]) -> usize {
    match prompt {
        Prompt::Text(own) => {
            let pieces = pieces.iter().map(|piece| text(*piece).as_bytes());
            own.floor_char_boundary(common(own.as_bytes(), pieces))
        }
        Prompt::Tokens(own) => common(own, pieces.iter().map(|piece| tokens(*piece))),
        _ => 0,
    }
}

fn common<'p, T: PartialEq + 'p>(own: &[T], pieces: impl Iterator<Item = &'p [T]>) -> usize {
    let mut at = 0;
    for piece in pieces {
        let left = &own[at..];
        if left.starts_with(piece) {
            at += piece.len();
            continue;
        }
        at += left.iter().zip(piece).take_while(|(own, other)| own == other).count();
        break;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::prompt_bytes;
    use model::generator::Generator;

    #[test]
    fn growing_prompts_take_the_memory_of_the_longest() {
        let (mut beginnings, mut held, mut text) =
            (Beginnings::default(), Vec::new(), String::new());
        for turn in 0..1_000_usize {
            text.push_str(&format!("turn {turn} of é;"));
            let mut prompt = Prompt::Text(text.clone());
            beginnings.cut(&mut prompt, turn.checked_sub(1), |at| &held[at]);
            held.push(prompt);
        }
        assert_eq!(held.iter().map(prompt_bytes).sum::<usize>(), text.len());
    }

    /// Prompts that grow, go back, fork and differ in the middle of a character.
    #[test]
    fn prompts_come_back_whole_and_are_held_once() {
        let mut generator = Generator::new(41);
        let mut texts = vec!["<é>".repeat(50)];
        let mut bases = vec![None];
        for _ in 1..300 {
            let base = (generator.uniform(0.7, 1.0) * texts.len() as f64) as usize;
            let mut text = texts[base].clone();
            let kept = generator.uniform(0.5, 1.4) * text.len() as f64;
            text.truncate(text.floor_char_boundary(kept as usize));
            let ends = ["é", "è", "plain", "𝄞", ""];
            let end = ends[(generator.uniform(0.0, 5.0)) as usize];
            text.push_str(&end.repeat(generator.uniform(1.0, 30.0) as usize));
            texts.push(text);
            bases.push(Some(base));
        }
        for as_prompt in [(|text| Prompt::Text(text)) as fn(String) -> Prompt, |text| {
            Prompt::Tokens(text.chars().map(u32::from).collect())
        }] {
            let mut beginnings = Beginnings::default();
            let mut held: Vec<Prompt> = Vec::new();
            for (text, base) in texts.iter().zip(&bases) {
                let mut prompt = as_prompt(text.clone());
                beginnings.cut(&mut prompt, *base, |at| &held[at]);
                held.push(prompt);
            }
            // A prompt that no later one needs may go once it was sent.
            for (at, text) in texts.iter().enumerate() {
                let [whole, expected] =
                    [beginnings.whole(at, |at| &held[at]), as_prompt(text.clone())];
                assert_eq!(format!("{whole:?}"), format!("{expected:?}"), "{at}");
                if !beginnings.is_base(at) {
                    held[at] = Prompt::Tokens(Vec::new());
                }
            }
        }
    }
}
