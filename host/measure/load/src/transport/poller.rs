//! Tells the readers of one thread which of its sockets are ready, without waking a task for each,
//! which costs a lock, a wake-up, the queue of tasks and nested futures for every event. A thread's
//! sockets have an epoll of their own, which lies in the runtime's. One task waits for it
//! ([`PollLoop`]), takes the events in batches, and calls whatever watches a socket ([`Watch`]). A
//! socket that nothing watches wakes the task that last waited for it.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mio::event::{Event, Source};
use mio::{Events, Interest, Registry, Token};
use tokio::io::unix::AsyncFd;

/// Sockets served before the thread's other tasks, as many as the runtime polls tasks in a row.
const BATCH: usize = 64;
/// Number of turns before its own at which the state of a socket's watcher is fetched, step by
/// step: of a thousand replies none is in the processor's cache.
const FIRST: usize = 8;
const FAR: usize = 5;
const NEAR: usize = 2;

#[derive(Clone)]
pub struct Poller(Rc<Sockets>);

pub struct PollLoop {
    sockets: Rc<Sockets>,
    epoll: AsyncFd<mio::Poll>,
    events: Events,
    /// The ready sockets of a batch, empty between batches.
    ready: Vec<Rc<Readiness>>,
}

struct Sockets {
    registry: Registry,
    places: RefCell<Places>,
}

#[derive(Default)]
struct Places {
    taken: Vec<Option<Rc<Readiness>>>,
    free: Vec<usize>,
    /// Left since events were last taken. One of those may name it, so it is not given away yet.
    left: Vec<usize>,
}

/// Called when a socket is ready, on the task of the [`PollLoop`].
pub trait Watch {
    /// The socket can be read, or was closed. Called once for all bytes that have come.
    fn ready(&self);

    /// It is called soon: has the processor fetch the memory for the call.
    fn fetch(&self, _: Ahead) {}
}

/// The data fetched ahead of a turn. Each step finds the previous step's data in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// The line in which the watcher begins.
    First,
    /// All of its own fields.
    Far,
    /// The data that its fields point to.
    Near,
}

/// The state of one socket, as far as it is known.
#[derive(Default)]
pub struct Readiness {
    readable: Cell<bool>,
    /// The other side sends nothing more, or the connection broke. It stays so.
    is_over: Cell<bool>,
    writable: Cell<bool>,
    watch: RefCell<Option<Rc<dyn Watch>>>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

/// A socket's registration, until this is dropped.
pub struct Registered<S: Source> {
    pub socket: S,
    number: usize,
    pub readiness: Rc<Readiness>,
    sockets: Rc<Sockets>,
}

/// Watches a socket until this is dropped.
pub struct Watching<'r>(&'r Readiness);

impl Poller {
    /// For the calling thread, whose runtime must have its I/O driver. Serves once the loop runs.
    pub fn new() -> io::Result<(Self, PollLoop)> {
        let epoll = mio::Poll::new()?;
        let sockets = Rc::new(Sockets {
            registry: epoll.registry().try_clone()?,
            places: RefCell::default(),
        });
        // SAFETY: `mio::Poll` owns the descriptor, always the same one. The `AsyncFd` owns the
        // `Poll`, and lends it out only for calls that keep it in its place.
        #[expect(unsafe_code, reason = "tokio has no other way to wait for an epoll")]
        let epoll =
            unsafe { AsyncFd::register_with_interest(epoll, tokio::io::Interest::READABLE)? };
        let serves = PollLoop {
            sockets: Rc::clone(&sockets),
            epoll,
            events: Events::with_capacity(BATCH),
            ready: Vec::with_capacity(BATCH),
        };
        Ok((Poller(sockets), serves))
    }

    pub fn register<S: Source>(&self, mut socket: S) -> io::Result<Registered<S>> {
        let readiness = Rc::new(Readiness::default());
        let number = self.0.places.borrow_mut().take(&readiness);
        let both = Interest::READABLE | Interest::WRITABLE;
        let registered = self.0.registry.register(&mut socket, Token(number), both);
        if let Err(error) = registered {
            self.0.places.borrow_mut().leave(number);
            return Err(error);
        }
        Ok(Registered { socket, number, readiness, sockets: Rc::clone(&self.0) })
    }
}

impl Places {
    fn take(&mut self, readiness: &Rc<Readiness>) -> usize {
        let readiness = Some(Rc::clone(readiness));
        match self.free.pop() {
            Some(number) => {
                self.taken[number] = readiness;
                number
            }
            None => {
                self.taken.push(readiness);
                self.taken.len() - 1
            }
        }
    }

    fn leave(&mut self, number: usize) {
        self.taken[number] = None;
        self.left.push(number);
    }

    /// Every event that was taken is dealt with.
    fn settle(&mut self) {
        self.free.append(&mut self.left);
    }
}

impl PollLoop {
    /// Serves the sockets for ever; gives why it cannot.
    pub async fn run(mut self) -> io::Error {
        loop {
            let is_all = match self.take().await {
                Ok(is_all) => is_all,
                Err(error) => return error,
            };
            self.serve();
            if !is_all {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits until sockets are ready, and notes a batch of them. Whether these are all.
    async fn take(&mut self) -> io::Result<bool> {
        let mut epoll = self.epoll.readable_mut().await?;
        let mut places = self.sockets.places.borrow_mut();
        places.settle();
        match epoll.get_inner_mut().poll(&mut self.events, Some(Duration::ZERO)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            polled => polled?,
        }
        for event in &self.events {
            if let Some(Some(readiness)) = places.taken.get(event.token().0) {
                readiness.note(event);
                self.ready.push(Rc::clone(readiness));
            }
        }
        let is_all = self.events.iter().count() < BATCH;
        if is_all {
            // A socket that becomes ready from here on makes the epoll ready anew.
            epoll.clear_ready();
        }
        Ok(is_all)
    }

    fn serve(&mut self) {
        let fetch = |number: usize, ahead| {
            if let Some(soon) = self.ready.get(number) {
                soon.fetch(ahead);
            }
        };
        (0..FIRST).for_each(|number| fetch(number, Ahead::First));
        (0..FAR).for_each(|number| fetch(number, Ahead::Far));
        (0..NEAR).for_each(|number| fetch(number, Ahead::Near));
        for (number, readiness) in self.ready.iter().enumerate() {
            fetch(number + FIRST, Ahead::First);
            fetch(number + FAR, Ahead::Far);
            fetch(number + NEAR, Ahead::Near);
            readiness.tell();
        }
        self.ready.clear();
    }
}

impl Readiness {
    fn note(&self, event: &Event) {
        if event.is_readable() || event.is_error() {
            self.readable.set(true);
        }
        if event.is_read_closed() {
            self.is_over.set(true);
        }
        if event.is_writable() || event.is_write_closed() || event.is_error() {
            self.writable.set(true);
        }
    }

    fn fetch(&self, ahead: Ahead) {
        if let Some(watch) = &*self.watch.borrow() {
            watch.fetch(ahead);
        }
    }

    /// Calls the watcher, or wakes the tasks that wait.
    fn tell(&self) {
        if self.is_readable() {
            let watch = self.watch.borrow().clone();
            match watch {
                Some(watch) => watch.ready(),
                None => wake(&self.reader),
            }
        }
        if self.writable.get() {
            wake(&self.writer);
        }
    }

    fn is_readable(&self) -> bool {
        self.readable.get() || self.is_over.get()
    }

    /// Has this called when the socket is ready, instead of a task woken.
    pub fn watch(&self, watch: Rc<dyn Watch>) -> Watching<'_> {
        *self.watch.borrow_mut() = Some(watch);
        Watching(self)
    }

    /// Ready when the socket may have something to read.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_readable() {
            return Poll::Ready(());
        }
        if self.watch.borrow().is_none() {
            wait(&self.reader, cx);
        }
        Poll::Pending
    }

    /// The socket was read to where it is empty.
    pub(super) fn drained(&self) {
        self.readable.set(false);
    }

    /// Ready when the socket may take something.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.writable.get() {
            return Poll::Ready(());
        }
        wait(&self.writer, cx);
        Poll::Pending
    }

    /// The socket takes no more for now.
    pub(super) fn filled(&self) {
        self.writable.set(false);
    }
}

fn wait(waiting: &RefCell<Option<Waker>>, cx: &Context<'_>) {
    let mut waiting = waiting.borrow_mut();
    match &mut *waiting {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *waiting = Some(cx.waker().clone()),
    }
}

fn wake(waiting: &RefCell<Option<Waker>>) {
    let waker = waiting.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let watch = self.0.watch.borrow_mut().take();
        drop(watch);
    }
}

impl<S: Source> Drop for Registered<S> {
    fn drop(&mut self) {
        // A socket that is not registered any more is as good as one that was just taken out.
        let _ = self.sockets.registry.deregister(&mut self.socket);
        self.sockets.places.borrow_mut().leave(self.number);
    }
}

#[cfg(test)]
mod tests;
