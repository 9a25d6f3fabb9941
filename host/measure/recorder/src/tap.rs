//! Copies of the bytes that pass: requests, and their replies. A copy that would exceed a bound is
//! given up, and its exchange is counted. The bytes themselves pass on unchanged.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use model::clock::Clock;
use model::units::Nanos;

use crate::counts::{Count, Counts};

/// Bytes of all copies together.
pub(crate) const ALL_COPIES: usize = 512 << 20;
/// Bytes of one request, or of one reply.
const ONE_COPY: usize = 96 << 20;
/// Events that wait to be read.
pub(crate) const WAITING: usize = 4096;
/// Reads of a reply whose instants are kept: the first output is in one of them.
const READS: usize = 256;

#[derive(Debug)]
pub(crate) struct Budget(AtomicUsize);

impl Budget {
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Budget(AtomicUsize::new(bytes)))
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct BodyCopy {
    pub(crate) bytes: Vec<u8>,
    /// The end of each of the first reads, and its instant.
    pub(crate) reads: Vec<(usize, Nanos)>,
    /// True if a bound was reached; `bytes` is empty then.
    pub(crate) is_lost: bool,
    /// True if the body came to its proper end.
    pub(crate) is_whole: bool,
    budget: Arc<Budget>,
}

impl BodyCopy {
    fn new(budget: &Arc<Budget>) -> Self {
        BodyCopy {
            bytes: Vec::new(),
            reads: Vec::new(),
            is_lost: false,
            is_whole: false,
            budget: Arc::clone(budget),
        }
    }

    /// A whole body that came at once, beside the budget of traffic.
    pub(crate) fn whole(bytes: Vec<u8>, at: Nanos) -> Self {
        let reads = vec![(bytes.len(), at)];
        let budget = Budget::new(0);
        BodyCopy { bytes, reads, is_lost: false, is_whole: true, budget }
    }

    fn push(&mut self, at: Nanos, data: &[u8]) {
        if self.is_lost {
            return;
        }
        if self.bytes.len() + data.len() > ONE_COPY || !self.budget.take(data.len()) {
            self.budget.give_back(self.bytes.len());
            self.bytes = Vec::new();
            self.is_lost = true;
            return;
        }
        self.bytes.extend_from_slice(data);
        if self.reads.len() < READS {
            self.reads.push((self.bytes.len(), at));
        }
    }

    /// The instant of the read that completed the bytes up to `end`.
    pub(crate) fn instant_of(&self, end: usize) -> Option<Nanos> {
        self.reads.iter().find(|(read, _)| *read >= end).map(|(_, at)| *at)
    }
}

impl Drop for BodyCopy {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes.len());
    }
}

#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: hyper::Method,
    pub(crate) path: String,
    pub(crate) encoding: Option<String>,
    /// The value of the first header that names a session.
    pub(crate) session: Option<Vec<u8>>,
    /// The value of the first header that names a session's parent.
    pub(crate) parent: Option<Vec<u8>>,
    /// The instant when the head was complete.
    pub(crate) arrived: Nanos,
}

/// A fact about an exchange, by the exchange's number.
#[derive(Debug)]
pub(crate) enum Event {
    /// A request has passed as a whole.
    Began(u64, RequestHead, BodyCopy),
    /// The exchange is over, with the reply's status and header fields if there is a reply.
    Ended(u64, Option<(u16, HeaderMap)>, BodyCopy, Nanos),
}

#[derive(Clone, Debug)]
pub(crate) struct Tap {
    pub(crate) clock: Clock,
    pub(crate) budget: Arc<Budget>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) number: Arc<AtomicU64>,
    pub(crate) out: SyncSender<Event>,
}

impl Tap {
    /// Hands an event on. Returns false if the reader of events is behind: traffic never waits.
    fn send(&self, event: Event) -> bool {
        match self.out.try_send(event) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => true,
            Err(TrySendError::Full(_)) => {
                self.counts.add(Count::Behind);
                false
            }
        }
    }
}

/// A request as it passes. Its event is sent when its body is whole.
#[derive(Debug)]
struct PassingRequest {
    tap: Tap,
    number: u64,
    /// Absent once the event was sent.
    head: Option<RequestHead>,
    copy: BodyCopy,
}

impl PassingRequest {
    fn finished(&mut self) {
        let Some(head) = self.head.take() else { return };
        let empty = BodyCopy::new(&self.tap.budget);
        let copy = std::mem::replace(&mut self.copy, empty);
        self.tap.send(Event::Began(self.number, head, copy));
    }
}

/// An exchange as it passes. Its end is sent when it is dropped.
#[derive(Debug)]
pub(crate) struct Passing {
    tap: Tap,
    number: u64,
    reply: Option<(u16, HeaderMap)>,
    body: BodyCopy,
}

impl Passing {
    pub(crate) fn new(tap: &Tap) -> Self {
        let number = tap.number.fetch_add(1, Ordering::Relaxed);
        Passing { body: BodyCopy::new(&tap.budget), tap: tap.clone(), number, reply: None }
    }

    pub(crate) fn request(&self, head: RequestHead, body: Incoming) -> Tapped {
        let copy = BodyCopy::new(&self.tap.budget);
        let (tap, number) = (self.tap.clone(), self.number);
        let request = PassingRequest { tap, number, head: Some(head), copy };
        Tapped::new(body, self.tap.clock, Side::Request(Box::new(request)))
    }

    pub(crate) fn reply(mut self, status: u16, headers: HeaderMap, body: Incoming) -> Tapped {
        self.reply = Some((status, headers));
        Tapped::new(body, self.tap.clock, Side::Reply(Box::new(self)))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let empty = BodyCopy::new(&self.tap.budget);
        let body = std::mem::replace(&mut self.body, empty);
        let ended = self.tap.clock.now();
        self.tap.send(Event::Ended(self.number, self.reply.take(), body, ended));
    }
}

#[derive(Debug)]
enum Side {
    Request(Box<PassingRequest>),
    Reply(Box<Passing>),
}

/// A body that is copied as it passes.
#[derive(Debug)]
pub(crate) struct Tapped {
    body: Incoming,
    clock: Clock,
    side: Side,
}

impl Tapped {
    fn new(body: Incoming, clock: Clock, side: Side) -> Self {
        let is_whole = body.is_end_stream();
        let mut tapped = Tapped { body, clock, side };
        if is_whole {
            tapped.finished();
        }
        tapped
    }

    fn copied(&mut self, data: &[u8]) {
        let now = self.clock.now();
        match &mut self.side {
            Side::Request(request) => request.copy.push(now, data),
            Side::Reply(passing) => passing.body.push(now, data),
        }
    }

    fn finished(&mut self) {
        match &mut self.side {
            Side::Request(request) => {
                request.copy.is_whole = true;
                request.finished();
            }
            Side::Reply(passing) => passing.body.is_whole = true,
        }
    }
}

impl Body for Tapped {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.copied(data);
                }
                if self.body.is_end_stream() {
                    self.finished();
                }
            }
            Some(Err(_)) => {}
            None => self.finished(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn exchanges_beyond_the_queue_are_counted_and_do_not_wait() {
        let (out, events) = sync_channel(3);
        let tap = Tap {
            clock: Clock::start(),
            budget: Budget::new(10),
            counts: Arc::default(),
            number: Arc::default(),
            out,
        };
        (0..7).for_each(|_| drop(Passing::new(&tap)));
        assert_eq!(tap.counts.get(Count::Behind), 4);
        let numbers = events.try_iter().filter_map(|event| match event {
            Event::Ended(number, ..) => Some(number),
            Event::Began(..) => None,
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2]);
        // The queue takes the next exchange again.
        drop(Passing::new(&tap));
        assert!(matches!(events.try_recv(), Ok(Event::Ended(7, ..))));
    }

    #[test]
    fn copies_beyond_the_memory_are_given_up_and_give_it_back() {
        let budget = Budget::new(10);
        let mut copies = [BodyCopy::new(&budget), BodyCopy::new(&budget)];
        copies[0].push(Nanos::ZERO, b"123456");
        copies[1].push(Nanos::ZERO, b"1234");
        copies[1].push(Nanos::ZERO, b"5");
        assert!(copies[1].is_lost && copies[1].bytes.is_empty() && !copies[0].is_lost);
        copies[0].push(Nanos::ZERO, b"7890");
        assert_eq!(copies[0].bytes.len(), 10);
    }
}
