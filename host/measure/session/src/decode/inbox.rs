//! The inboxes between readers and decode threads: readers put the frames of each reply in, and
//! decode threads take them.
//!
//! Each reply has an inbox, which is in the queue of the decode threads once while it is not empty.
//! So any thread may take it, no two at the same time, and one call decodes everything in it.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use http::header::HeaderMap;
use tokio::sync::mpsc::UnboundedReceiver;

use super::WayBack;
use super::answer::Answer;
use crate::lock;
use crate::sessions::{Interest, Sessions};
use load::backlog::{Backlog, BacklogBytes};
use load::drive::demand::{Demand, Kind};
use load::drive::{DecodeProgress, End, Replies, Reply, SPARE_BYTES};
use load::transport::visible;
use model::exchange::Open;
use model::frame::{Frames, Framing};
use model::units::Nanos;
use plugins::backend::Head;

/// Most frames handed to the plugin in one call.
const BATCH: usize = 256;
/// Most bytes of frames handed to the plugin in one call, if there is more than one frame.
const BATCH_BYTES: usize = 1 << 20;

/// Opens an inbox for each reply of a run.
pub struct Inboxes {
    ready: Sender<Arc<Inbox>>,
    backlog: Arc<Backlog>,
    streaming: bool,
    sessions: Arc<Sessions>,
    opened: AtomicU64,
}

/// The bytes of one reply that were read and are not decoded.
pub struct Inbox {
    mail: Mutex<Mail>,
    pub(super) progress: DecodeProgress,
    pub(super) answer: Mutex<PartialAnswer>,
    ready: Sender<Arc<Inbox>>,
    backlog: Arc<Backlog>,
    streaming: bool,
    /// The pacer's number of the request.
    pub(super) key: u64,
    /// The parts of the reply that other requests wait for.
    pub(super) followed: Interest,
    pub(super) sessions: Arc<Sessions>,
    /// To the reader, if the reply decides what to send next.
    pub(super) way_back: WayBack,
}

pub(super) struct PartialAnswer {
    pub(super) answer: Answer,
    pub(super) held: BacklogBytes,
}

#[derive(Default)]
struct Mail {
    /// The beginning of a reply that is decoded, until its first frames are taken.
    beginning: Option<Beginning>,
    batches: VecDeque<Batch>,
    /// True if one of several replies came to its end, and the reader waits for its next order.
    has_turned: bool,
    closed: Option<Ending>,
    /// True if the inbox is in the queue, or with a decode thread.
    is_waiting: bool,
}

pub(super) struct Beginning {
    pub(super) head: Head,
    /// True if its frames are cut at arbitrary places.
    pub(super) is_raw: bool,
}

/// Frames that are decoded together.
pub(super) struct Batch {
    pub(super) frames: Frames,
    /// The reply's beginning, with its first frames.
    pub(super) beginning: Option<Beginning>,
    /// Instant at which the first of them were passed on.
    pub(super) handed_on: Nanos,
    /// True if they were several batches.
    pub(super) is_joined: bool,
    held: BacklogBytes,
}

pub(super) struct Ending {
    pub(super) exchange: Box<Open>,
    pub(super) end: End,
    /// Counts the reply, if it is an error.
    _held: BacklogBytes,
}

/// The contents of an inbox, as a decode thread finds them.
pub(super) enum InboxItem {
    Frames(Batch),
    /// One of several replies came to its end; its beginning, if it had no frame.
    Turned(Option<Beginning>),
    Ending(Ending),
}

impl Inboxes {
    /// The inboxes of one run, and the queue of the inboxes that are not empty.
    pub fn new(
        backlog: &Arc<Backlog>,
        streaming: bool,
        sessions: &Arc<Sessions>,
    ) -> (Self, Receiver<Arc<Inbox>>) {
        // An inbox is in the queue once, and the backlog bounds the bytes in all of them.
        let (ready, queue) = crossbeam_channel::unbounded();
        let backlog = Arc::clone(backlog);
        let sessions = Arc::clone(sessions);
        let inboxes = Inboxes { ready, backlog, streaming, sessions, opened: AtomicU64::new(0) };
        (inboxes, queue)
    }
}

impl Replies for Inboxes {
    fn open(&self, key: u64) -> Rc<dyn Reply> {
        let place = self.opened.fetch_add(1, Ordering::Relaxed);
        let mut answer = Answer::default();
        answer.place = place;
        let unfinished = PartialAnswer { answer, held: self.backlog.hold() };
        Rc::new(Outlet(Arc::new(Inbox {
            mail: Mutex::default(),
            progress: DecodeProgress::default(),
            answer: Mutex::new(unfinished),
            ready: self.ready.clone(),
            backlog: Arc::clone(&self.backlog),
            streaming: self.streaming,
            key,
            followed: self.sessions.followed(key),
            sessions: Arc::clone(&self.sessions),
            way_back: WayBack::default(),
        })))
    }
}

/// The head of a reply as a plugin sees it: without fields that are hidden, or no text.
pub(crate) fn seen_head(status: u16, headers: &HeaderMap, streaming: bool) -> Head {
    let fields = visible(headers).filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    Head { status, headers: fields.collect(), streaming, context: Vec::new() }
}

struct Outlet(Arc<Inbox>);

impl Reply for Outlet {
    fn demands(&self, place: u32, kind: Kind) -> UnboundedReceiver<Demand> {
        self.0.way_back.open(place, kind)
    }

    fn head(&self, status: u16, headers: &HeaderMap, framing: Framing, context: Vec<u8>) {
        let head = Head { context, ..seen_head(status, headers, self.0.streaming) };
        lock(&self.0.mail).beginning = Some(Beginning { head, is_raw: framing == Framing::Raw });
    }

    fn frames(&self, frames: Frames, handed_on: Nanos, held: BacklogBytes) {
        self.0.put(|mail| {
            let beginning = mail.beginning.take();
            mail.batches.push_back(Batch { frames, beginning, handed_on, is_joined: false, held });
        });
        let inbox = &*self.0;
        if inbox.sessions.waits() && (inbox.followed.first_output || inbox.way_back.get().is_some())
        {
            self.0.wait_until_decoded();
        }
    }

    fn turned(&self) {
        self.0.put(|mail| mail.has_turned = true);
    }

    fn closed(&self, exchange: Box<Open>, end: End) {
        let body = match &end {
            End::Status { body, .. } => body.len(),
            End::Whole { .. } | End::Broke(..) => 0,
        };
        let closed =
            Ending { exchange, end, _held: self.0.backlog.queue(size_of::<Open>() + body) };
        if self.0.followed.end {
            self.0.sessions.expect();
        }
        self.0.put(|mail| mail.closed = Some(closed));
    }

    fn progress(&self) -> &DecodeProgress {
        &self.0.progress
    }
}

impl Inbox {
    fn put(self: &Arc<Self>, put: impl FnOnce(&mut Mail)) {
        let mut mail = lock(&self.mail);
        put(&mut mail);
        if !std::mem::replace(&mut mail.is_waiting, true) {
            drop(mail);
            self.queue();
        }
    }

    fn queue(self: &Arc<Self>) {
        // The decode threads outlive the readers, so this cannot fail while anyone listens.
        let _ = self.ready.send(Arc::clone(self));
    }

    /// Blocks until nothing that was put here waits, so that no time passes on a paused clock.
    fn wait_until_decoded(&self) {
        while lock(&self.mail).is_waiting {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Returns when the first of its frames were passed on; absent if it holds none.
    pub(super) fn waits_since(&self) -> Option<Nanos> {
        lock(&self.mail).batches.front().map(|batch| batch.handed_on)
    }

    /// Takes the next item of work; all waiting frames come together, in these empty ones.
    pub(super) fn take(&self, spare: &mut Frames) -> Option<InboxItem> {
        let mut mail = lock(&self.mail);
        let Some(mut batch) = mail.batches.pop_front() else {
            if std::mem::take(&mut mail.has_turned) {
                return Some(InboxItem::Turned(mail.beginning.take()));
            }
            return mail.closed.take().map(InboxItem::Ending);
        };
        while let Some(next) = mail.batches.front()
            && batch.frames.len() < BATCH
            && batch.frames.bytes().len() + next.frames.bytes().len() <= BATCH_BYTES
            && let Some(next) = mail.batches.pop_front()
        {
            if !std::mem::replace(&mut batch.is_joined, true) {
                let first = std::mem::replace(&mut batch.frames, std::mem::take(spare));
                batch.frames.append(&first);
                self.backlog.spares.put_back(first, SPARE_BYTES);
            }
            batch.frames.append(&next.frames);
            self.backlog.spares.put_back(next.frames, SPARE_BYTES);
            batch.held.absorb(next.held);
        }
        Some(InboxItem::Frames(batch))
    }

    /// Marks the item as done: the inbox moves to the end of the queue if it is not empty.
    pub(super) fn put_back(self: &Arc<Self>) {
        let mut mail = lock(&self.mail);
        mail.is_waiting = !mail.batches.is_empty() || mail.has_turned || mail.closed.is_some();
        if mail.is_waiting {
            drop(mail);
            self.queue();
        }
    }
}
