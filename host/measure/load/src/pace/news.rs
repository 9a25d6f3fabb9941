//! News of sessions for the pacer: requests that follow from ended ones, each with its due time. A
//! reader announces news ([`Announcer::expect`]) before it frees the slot of the reply, so the
//! pacer knows if news are still to come, and waits for them on a paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError};

use super::Signal;
use model::units::Nanos;

/// Interval at which the pacer looks for news that it waits for.
const GLANCE: Duration = Duration::from_micros(20);

/// A request that is due because of others.
pub struct Follower<Item> {
    /// Due time, since the run's origin.
    pub due: Nanos,
    pub item: Item,
}

/// The outcome of something that ended.
pub enum News<Item> {
    /// A request became due, or will.
    Due(Follower<Item>),
    /// A request that is never sent, because its predecessor failed. It takes no slot and no user.
    Lost(Follower<Item>),
    /// Every request of a session is over, or will never be sent.
    Over {
        /// The number of its first request.
        root: u64,
        at: Nanos,
    },
}

/// The pacer's end.
pub struct Newsfeed<Item> {
    news: Receiver<Vec<News<Item>>>,
    /// News that was taken and not yet given.
    taken: std::vec::IntoIter<News<Item>>,
    unsettled: Arc<AtomicUsize>,
}

pub struct Announcer<Item> {
    news: Sender<Vec<News<Item>>>,
    unsettled: Arc<AtomicUsize>,
    signal: Signal,
}

impl<Item> Clone for Announcer<Item> {
    fn clone(&self) -> Self {
        Announcer {
            news: self.news.clone(),
            unsettled: Arc::clone(&self.unsettled),
            signal: self.signal.clone(),
        }
    }
}

/// News for the pacer that this signal wakes.
pub fn newsfeed<Item>(signal: &Signal) -> (Announcer<Item>, Newsfeed<Item>) {
    // Bounded by the memory of sessions: at the bound no session begins.
    let (sender, news) = crossbeam_channel::unbounded();
    let unsettled = Arc::new(AtomicUsize::new(0));
    let announcer =
        Announcer { news: sender, unsettled: Arc::clone(&unsettled), signal: signal.clone() };
    let newsfeed = Newsfeed { news, taken: Vec::new().into_iter(), unsettled };
    (announcer, newsfeed)
}

impl<Item> Announcer<Item> {
    /// Something happened that news will come of.
    pub fn expect(&self) {
        self.unsettled.fetch_add(1, Ordering::AcqRel);
    }

    /// Announces the outcome of one thing that was expected, which may be nothing.
    pub fn announce(&self, news: Vec<News<Item>>) {
        // The pacer may be gone; then nothing more is sent.
        let _ = self.news.send(news);
        self.unsettled.fetch_sub(1, Ordering::AcqRel);
        self.signal.wake();
    }
}

impl<Item> Newsfeed<Item> {
    /// Returns a feed without news, for runs in which no request depends on another.
    pub fn none() -> Self {
        newsfeed(&Signal::for_task()).1
    }

    /// True if everything that was expected has come and was taken.
    pub(super) fn is_settled(&self) -> bool {
        self.unsettled.load(Ordering::Acquire) == 0 && self.taken.len() == 0 && self.news.is_empty()
    }

    /// The next news; if it may block, waits for all that is expected.
    pub(super) fn take(&mut self, blocks: bool) -> Option<News<Item>> {
        loop {
            if let Some(news) = self.taken.next() {
                return Some(news);
            }
            // Looked at before the queue: settled news is in the queue by then.
            let is_settled = self.unsettled.load(Ordering::Acquire) == 0;
            let more = match self.news.try_recv() {
                Ok(more) => more,
                // The news may be taken before it counts as settled: more need not come.
                Err(TryRecvError::Empty) if blocks && !is_settled => {
                    std::thread::sleep(GLANCE);
                    continue;
                }
                Err(_) => return None,
            };
            self.taken = more.into_iter();
        }
    }
}
