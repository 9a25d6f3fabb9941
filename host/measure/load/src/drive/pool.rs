//! A worker's connections: opened ahead of need, taken by requests, put back.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;

use super::{Worker, passed_on};
use crate::transport::poller::Poller;
use crate::transport::websocket::WebSocket;
use crate::transport::{ByteStream, Connect, Connection, SHARED_BY};
use model::connection::{Reuse, Version};
use model::exchange::Class;
use model::units::Nanos;

/// The most connections that a worker opens at the same time.
const OPENING: usize = 128;
/// Time for which an unused connection may have been idle and still be used again. Servers close
/// theirs after five seconds (uvicorn) or more, which would fail a request.
const REUSE_WITHIN: Nanos = Nanos(2_000_000_000);
/// The most connections of a worker that wait for the next turn of their conversations, whose last
/// turn is unknown. Beyond, the connection that has waited longest is closed.
pub(super) const KEPT: usize = 256;

/// Time for which a server may answer the close of a WebSocket.
const LEAVE: Duration = Duration::from_secs(1);
/// The most WebSockets of a worker that wait for it. More than these are closed without.
const LEAVING: usize = 128;

/// The reason why a request got no connection.
type Refusal = (Class, String);

pub(super) struct Pool<C: Connect> {
    worker: Rc<Worker<C>>,
    poller: Option<Poller>,
    places: Vec<Place<C::Io>>,
    leaving: Cell<usize>,
}

struct Place<Io> {
    /// The free ones; for shared connections, all.
    idle: RefCell<VecDeque<Connection<Io>>>,
    /// Connections that are reserved for their conversations.
    kept: RefCell<Reserved<Io>>,
    /// The openings under way of connections that can be shared.
    openings: RefCell<Vec<Rc<Opening>>>,
}

/// Connections that are reserved for conversations.
struct Reserved<Io> {
    connections: HashMap<Arc<str>, (u64, Connection<Io>)>,
    /// The conversations in the order of their connections' rest. An outdated number belongs to a
    /// connection that was taken since.
    order: VecDeque<(u64, Arc<str>)>,
    next: u64,
}

/// A connection that is being opened for several requests.
struct Opening {
    waiting: Cell<usize>,
    /// The outcome, once it is known: open, or why not.
    outcome: watch::Receiver<Option<Result<(), Refusal>>>,
}

impl<C: Connect + Clone + 'static> Pool<C> {
    /// For this worker, on whose thread this poller serves the sockets.
    pub fn new(worker: &Rc<Worker<C>>, poller: Option<Poller>) -> Self {
        Pool {
            worker: Rc::clone(worker),
            poller,
            places: (0..worker.places.max(worker.targets).max(1))
                .map(|_| Place {
                    idle: RefCell::default(),
                    kept: RefCell::new(Reserved {
                        connections: HashMap::new(),
                        order: VecDeque::new(),
                        next: 0,
                    }),
                    openings: RefCell::default(),
                })
                .collect(),
            leaving: Cell::new(0),
        }
    }

    pub fn idle(&self, target: u32) -> usize {
        self.place(target).idle.borrow().len()
    }

    fn place(&self, target: u32) -> &Place<C::Io> {
        &self.places[target as usize % self.places.len()]
    }

    /// Opens `count` connections, spread over the targets, until the run is stopped.
    pub(crate) async fn open_ahead(self: Rc<Self>, count: usize) {
        let next = Rc::new(Cell::new(0));
        let mut openers = tokio::task::JoinSet::new();
        for _ in 0..count.min(OPENING) {
            let (pool, next) = (Rc::clone(&self), Rc::clone(&next));
            openers.spawn_local(async move {
                while next.get() < count && !pool.worker.signal.is_stopped() {
                    let target = next.replace(next.get() + 1) % pool.worker.targets.max(1) as usize;
                    Rc::clone(&pool).open_spare(target as u32).await;
                }
            });
        }
        while let Some(ended) = openers.join_next().await {
            passed_on(ended);
        }
    }

    /// Opens one connection to a target ahead of need, unless one that can be shared is there.
    pub(crate) async fn open_spare(self: Rc<Self>, target: u32) {
        let place = self.place(target);
        let opened = match self.worker.connect.version() {
            Version::Http1 => (self.open(target).await)
                .map(|connection| place.idle.borrow_mut().push_back(connection)),
            Version::Http2 => self.shared(target, false).await.map(drop),
        };
        self.worker.opened.settled.fetch_add(1, Ordering::AcqRel);
        if opened.is_err() {
            self.worker.opened.failed.fetch_add(1, Ordering::AcqRel);
        }
    }

    async fn open(&self, target: u32) -> Result<Connection<C::Io>, Refusal> {
        let limit = Duration::from(self.worker.timeouts.connect);
        let poller = self.poller.as_ref();
        let opening = Connection::open(&self.worker.connect, target, self.worker.clock, poller);
        match tokio::time::timeout(limit, opening).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(cause)) => Err((Class::Refused, cause)),
            Err(_) => Err((
                Class::ConnectTimeout,
                format!("no connection within {}", model::duration::format(limit)),
            )),
        }
    }

    /// A connection for a request: one that is free, or a new one for which the request waits.
    pub async fn take(
        self: &Rc<Self>,
        target: u32,
        session: Option<&str>,
    ) -> Result<Connection<C::Io>, Refusal> {
        if self.worker.connect.version() == Version::Http2 {
            return self.shared(target, true).await;
        }
        let own = {
            let mut kept = self.place(target).kept.borrow_mut();
            kept.close_stale(self.worker.clock.now());
            session.and_then(|session| kept.connections.remove(session)).map(|(_, own)| own)
        };
        if let Some(connection) = self.checked(own).await {
            return Ok(connection);
        }
        loop {
            let idle = self.place(target).idle.borrow_mut().pop_front();
            if idle.is_none() {
                let mut connection = self.open(target).await?;
                connection.waited();
                return Ok(connection);
            }
            if let Some(connection) = self.checked(idle).await {
                return Ok(connection);
            }
        }
    }

    /// The connection, if it can still be used.
    async fn checked(&self, connection: Option<Connection<C::Io>>) -> Option<Connection<C::Io>> {
        let mut connection = connection?;
        let is_stale = is_stale(&connection, self.worker.clock.now());
        let is_usable = !is_stale && poll_fn(|cx| Poll::Ready(connection.is_usable(cx))).await;
        is_usable.then_some(connection)
    }

    /// A slot on a shared connection. If none is free, connections are opened, one for as many
    /// requests as can share it, and the request waits.
    async fn shared(
        self: &Rc<Self>,
        target: u32,
        needed: bool,
    ) -> Result<Connection<C::Io>, Refusal> {
        let place = self.place(target);
        loop {
            if let Some(shared) = place.share() {
                return Ok(shared);
            }
            let opening = place.opening_with_room();
            let opening = opening.unwrap_or_else(|| self.begin(target, needed));
            opening.waiting.set(opening.waiting.get() + 1);
            opening.wait().await?;
        }
    }

    /// Starts to open a connection that can be shared, on a task of its own.
    fn begin(self: &Rc<Self>, target: u32, needed: bool) -> Rc<Opening> {
        let (sender, outcome) = watch::channel(None);
        let opening = Rc::new(Opening { waiting: Cell::new(0), outcome });
        let place = self.place(target);
        place.openings.borrow_mut().push(Rc::clone(&opening));
        let (pool, begun) = (Rc::clone(self), Rc::clone(&opening));
        tokio::task::spawn_local(async move {
            let opened = pool.open(target).await;
            let place = pool.place(target);
            let mut openings = place.openings.borrow_mut();
            openings.retain(|other| !Rc::ptr_eq(other, &begun));
            let result = opened.map(|mut connection| {
                if needed {
                    connection.waited();
                }
                let mut idle = place.idle.borrow_mut();
                // One whose places are all taken has free ones again when replies end.
                idle.retain(Connection::is_open);
                idle.push_back(connection);
            });
            sender.send_replace(Some(result));
        });
        opening
    }

    /// Closes a WebSocket whose answer is complete, beside the requests that follow.
    pub(crate) fn leave(self: &Rc<Self>, socket: WebSocket<C::Io>) {
        if self.leaving.get() >= LEAVING {
            return;
        }
        self.leaving.set(self.leaving.get() + 1);
        let pool = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let _ = tokio::time::timeout(LEAVE, socket.leave()).await;
            pool.leaving.set(pool.leaving.get() - 1);
        });
    }

    /// Takes a connection back after its reply has ended.
    pub(crate) fn put_back(
        &self,
        target: u32,
        session: Option<Arc<str>>,
        connection: Connection<C::Io>,
    ) {
        match (self.worker.reuse, session) {
            _ if matches!(connection, Connection::Http2(_)) => {}
            (Reuse::Never, _) => {}
            (Reuse::Session, Some(session)) => {
                let mut kept = self.place(target).kept.borrow_mut();
                kept.close_stale(self.worker.clock.now());
                kept.put(session, connection);
            }
            (Reuse::Session, None) | (Reuse::KeepAlive, _) => {
                self.place(target).idle.borrow_mut().push_back(connection);
            }
        }
    }
}

/// True if a connection has been idle for too long to be used again.
fn is_stale<Io: ByteStream>(connection: &Connection<Io>, now: Nanos) -> bool {
    let since = connection.idle_since();
    since.is_some_and(|since| now.since(since) > REUSE_WITHIN)
}

impl<Io: ByteStream> Place<Io> {
    /// A free place on a connection that is there.
    fn share(&self) -> Option<Connection<Io>> {
        self.idle.borrow().iter().find_map(Connection::share)
    }

    /// A connection on its way that has room for another request.
    fn opening_with_room(&self) -> Option<Rc<Opening>> {
        let openings = self.openings.borrow();
        let room = |opening: &&Rc<Opening>| opening.waiting.get() < SHARED_BY;
        openings.iter().find(room).map(Rc::clone)
    }
}

impl Opening {
    async fn wait(&self) -> Result<(), Refusal> {
        match self.outcome.clone().wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            // So the panic reaches the worker, whose task this is.
            _ => panic!("the task that opens a connection panicked"),
        }
    }
}

impl<Io: ByteStream> Reserved<Io> {
    /// Keeps a connection; closes the longest-waiting one if there are too many.
    fn put(&mut self, session: Arc<str>, connection: Connection<Io>) {
        let number = self.next;
        self.next += 1;
        self.order.push_back((number, Arc::clone(&session)));
        self.connections.insert(session, (number, connection));
        if self.order.len() > 2 * KEPT {
            let Reserved { connections, order, .. } = self;
            order.retain(|(number, session)| {
                (connections.get(session)).is_some_and(|(own, _)| own == number)
            });
        }
        while self.connections.len() > KEPT {
            self.close_first();
        }
    }

    /// Closes connections that have been idle for too long to be used again.
    fn close_stale(&mut self, now: Nanos) {
        while let Some((number, session)) = self.order.front() {
            match self.connections.get(session) {
                Some((own, kept)) if own == number && !is_stale(kept, now) => return,
                _ => self.close_first(),
            }
        }
    }

    fn close_first(&mut self) {
        if let Some((number, session)) = self.order.pop_front()
            && (self.connections.get(&session)).is_some_and(|(own, _)| *own == number)
        {
            self.connections.remove(&session);
        }
    }
}
