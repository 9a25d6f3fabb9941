//! A worker's connections: opened ahead of need, taken by requests, put back.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Mutex;

use super::{Opened, Worker};
use crate::transport::{Connect, Connection};
use model::clock::Clock;
use model::connection::Reuse;
use model::connection::Version;
use model::exchange::FailureClass;
use model::units::Nanos;

/// The most connections that a worker opens at the same time.
const OPENING: usize = 128;
/// How long an unused connection may have been idle and still be used again. Servers close theirs
/// after five seconds (uvicorn) or more; a request that meets the close would count as failed.
const REUSE_WITHIN: Nanos = Nanos(2_000_000_000);

/// Why a request got no connection.
type Refusal = (FailureClass, String);

/// The connections of one worker.
pub(super) struct Pool<C: Connect> {
    connect: C,
    clock: Clock,
    limit: Nanos,
    reuse: Reuse,
    opened: Arc<Opened>,
    places: Vec<Place<C::Io>>,
}

/// The connections to one target.
struct Place<Io> {
    /// The free ones; for shared connections, all.
    idle: RefCell<VecDeque<Connection<Io>>>,
    /// Those that are reserved for their conversations.
    kept: RefCell<HashMap<Arc<str>, Connection<Io>>>,
    /// Held while a connection that others can share is opened, so that they wait for it.
    sharing: Mutex<()>,
}

impl<C: Connect + Clone + 'static> Pool<C> {
    pub fn of(worker: &Worker<C>) -> Self {
        Pool {
            connect: worker.connect.clone(),
            clock: worker.clock,
            limit: worker.timeouts.connect,
            reuse: worker.reuse,
            opened: Arc::clone(&worker.opened),
            places: (0..worker.targets.max(1))
                .map(|_| Place {
                    idle: RefCell::default(),
                    kept: RefCell::default(),
                    sharing: Mutex::new(()),
                })
                .collect(),
        }
    }

    /// How many connections to a target are free.
    pub fn idle(&self, target: u32) -> usize {
        self.place(target).idle.borrow().len()
    }

    fn place(&self, target: u32) -> &Place<C::Io> {
        &self.places[target as usize % self.places.len()]
    }

    /// Opens `count` connections, spread over the targets, a limited number at the same time.
    pub(crate) async fn open_ahead(self: Rc<Self>, count: usize) {
        let next = Rc::new(Cell::new(0));
        let mut openers = tokio::task::JoinSet::new();
        for _ in 0..count.min(OPENING) {
            let (pool, next) = (Rc::clone(&self), Rc::clone(&next));
            openers.spawn_local(async move {
                while next.get() < count {
                    let target = next.replace(next.get() + 1) % pool.places.len();
                    Rc::clone(&pool).open_spare(target as u32).await;
                }
            });
        }
        while openers.join_next().await.is_some() {}
    }

    /// Opens one connection to a target ahead of need, unless one that can be shared is there.
    pub(crate) async fn open_spare(self: Rc<Self>, target: u32) {
        let place = self.place(target);
        let opened = match self.connect.version() {
            Version::Http1 => {
                let opened = self.open(target).await;
                opened.map(|connection| place.idle.borrow_mut().push_back(connection))
            }
            Version::Http2 => self.shared(target).await.map(drop),
        };
        self.opened.settled.fetch_add(1, Ordering::AcqRel);
        if opened.is_err() {
            self.opened.failed.fetch_add(1, Ordering::AcqRel);
        }
    }

    async fn open(&self, target: u32) -> Result<Connection<C::Io>, Refusal> {
        let limit = Duration::from(self.limit);
        match tokio::time::timeout(limit, Connection::open(&self.connect, target, self.clock)).await
        {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(cause)) => Err((FailureClass::Connect, cause)),
            Err(_) => Err((
                FailureClass::ConnectTimeout,
                format!("no connection within {}", model::duration::format(limit)),
            )),
        }
    }

    /// A connection for a request: one that is free, or a new one for which the request waits.
    pub async fn take(
        &self,
        target: u32,
        session: Option<&str>,
    ) -> Result<Connection<C::Io>, Refusal> {
        if self.connect.version() == Version::Http2 {
            return self.shared(target).await;
        }
        let kept = &self.place(target).kept;
        let own = session.and_then(|session| kept.borrow_mut().remove(session));
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
        let now = self.clock.now();
        let is_stale = connection
            .idle_since()
            .is_some_and(|since| now.since(since) > REUSE_WITHIN);
        let is_usable = !is_stale && poll_fn(|cx| Poll::Ready(connection.is_usable(cx))).await;
        is_usable.then_some(connection)
    }

    /// A slot on a shared connection.
    async fn shared(&self, target: u32) -> Result<Connection<C::Io>, Refusal> {
        let place = self.place(target);
        let find = || place.idle.borrow().iter().find_map(Connection::share);
        if let Some(shared) = find() {
            return Ok(shared);
        }
        let _alone = place.sharing.lock().await;
        if let Some(shared) = find() {
            return Ok(shared);
        }
        let connection = self.open(target).await?;
        let shared = connection.share();
        let mut idle = place.idle.borrow_mut();
        idle.retain_mut(|connection| connection.share().is_some());
        match shared {
            Some(mut shared) => {
                idle.push_back(connection);
                shared.waited();
                Ok(shared)
            }
            None => Ok(connection),
        }
    }

    /// Takes a connection back after its reply has ended.
    pub(crate) fn put_back(
        &self,
        target: u32,
        session: Option<Arc<str>>,
        connection: Connection<C::Io>,
    ) {
        match (self.reuse, session) {
            _ if matches!(connection, Connection::Http2(_)) => {}
            (Reuse::Never, _) => {}
            (Reuse::Session, Some(session)) => {
                let kept = &self.place(target).kept;
                kept.borrow_mut().insert(session, connection);
            }
            (Reuse::Session, None) | (Reuse::KeepAlive, _) => {
                self.place(target).idle.borrow_mut().push_back(connection);
            }
        }
    }
}
