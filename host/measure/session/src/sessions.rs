//! Sessions under way: requests that wait for others. When a reply ends, its followers are written,
//! with the answer in their history, and go to the pacer with their due times.
//!
//! [`graph`] holds the dependencies, [`history`] the messages in front of a request. Threads of its
//! own do the work ([`Continuer`]), so that neither a reader nor the pacer waits for a plugin.

pub mod graph;
pub mod history;
pub mod memory;
pub mod place;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender};

use crate::decode::failures::failed;
use crate::lock;
use crate::pending::PendingRequest;
use crate::prepare::item::Item;
use crate::prepare::writer::Writer;
use graph::Steps;
use history::ReplyContent;
use load::pace::{Announcer, Follower, News};
use load::thread_group::trip;
use memory::Memory;
use model::exchange::{Class, Exchange};
use model::units::Nanos;
use place::{Entry, Place, Session};

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
    /// One queue for each thread. A session's events all go to the same one, so that they are
    /// worked on in order.
    events: Vec<Sender<Event>>,
    announcer: Announcer<Item>,
    /// True if time stands still while the followers are worked out.
    waits: bool,
}

/// Something that others may depend on.
enum Event {
    FirstOutput(Place, Nanos),
    Over(Place, Nanos, RequestEnd),
    Stop,
}

enum RequestEnd {
    Answered(ReplyContent),
    /// Without one.
    Failed,
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
    /// For one run, with this many threads. If `waits`, replies stop while their first output is
    /// looked at, as on a paused clock.
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

    /// True if a reply whose first output is watched, or whose frames are answered, waits until
    /// these were looked at.
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
            let (place, at, ended) = match event {
                Event::Stop => return,
                Event::FirstOutput(place, at) => {
                    let ready = lock(&place.session).graph.first_output(place.node, at);
                    let steps = Steps { ready, dropped: Vec::new() };
                    let news = self.follow(&place, steps, false);
                    self.sessions.announcer.announce(news);
                    continue;
                }
                Event::Over(place, at, ended) => (place, at, ended),
            };
            let left = matches!(ended, RequestEnd::Left);
            let answer = match ended {
                RequestEnd::Answered(answer) => Some(answer),
                RequestEnd::Failed | RequestEnd::Left => None,
            };
            let steps = {
                let mut session = lock(&place.session);
                session.last = session.last.max(at);
                let more = answer.as_ref().map_or(0, ReplyContent::bytes);
                session.bytes += more;
                self.sessions.memory.hold(more);
                session.graph.over(place.node, at, answer)
            };
            let mut news = self.follow(&place, steps, left);
            let mut session = lock(&place.session);
            if session.graph.is_over() && !session.is_announced {
                session.is_announced = true;
                self.sessions.over.fetch_add(1, Ordering::Relaxed);
                self.sessions.memory.free(session.bytes);
                let (root, at) = (session.root, session.last);
                news.push(News::Over { root, at });
            }
            drop(session);
            self.sessions.announcer.announce(news);
        }
    }

    /// Writes the followers. A dropped request counts as cancelled if the user left, else as lost
    /// to a failure.
    fn follow(&mut self, place: &Place, steps: Steps, left: bool) -> Vec<News<Item>> {
        let mut news = Vec::new();
        if self.sessions.is_closed.load(Ordering::Acquire) {
            return news;
        }
        let mut session = lock(&place.session);
        for node in steps.ready {
            let (index, due) = (session.graph.index(node), session.graph.due(node));
            let item = match session.graph.compose(node) {
                Ok(composed) => self.writer.write(PendingRequest::of_session(index, composed)),
                Err(what) => {
                    let unsent = session.graph.unsent(node);
                    self.writer.faulty(PendingRequest::of_session(index, unsent), &what)
                }
            };
            let item = Item { entry: Some(Entry::Node(place.at(node))), ..item };
            news.push(News::Due(Follower { due, item }));
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
        news
    }
}
