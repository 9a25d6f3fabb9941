//! The body of a reply: waits until each step is due and hands its bytes to the connection.
//!
//! Responsible for timing and for writes: every piece is flushed before the next is handed out,
//! because hyper flushes its buffer only when the body has nothing ready.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

use super::fault::Breakdown;
use super::pace::{Clock, Slot, Turn};
use super::record::Record;
use super::reply::{Action, Reply, Step, When, Whole, ending};

#[derive(Debug, thiserror::Error)]
#[error("the script cuts this reply")]
pub(super) struct Cut;

#[derive(Debug, Default)]
pub(super) struct Fate {
    pub reset: AtomicBool,
    pub goodbye: Notify,
    pub secure: AtomicBool,
}

pub(super) enum Steps {
    Streamed(Box<Reply>),
    Whole {
        /// The reply until its steps are known.
        reply: Option<Box<Whole>>,
        steps: VecDeque<Step>,
        /// The number of bytes that its head announces.
        length: usize,
    },
}

impl Steps {
    pub fn whole(reply: Whole) -> Self {
        Steps::Whole { reply: Some(Box::new(reply)), steps: VecDeque::new(), length: 0 }
    }

    /// Of a reply whose bytes are there, which may break off in the middle.
    pub fn at_once(bytes: Vec<u8>, breaks: Option<Breakdown>) -> Self {
        let (kept, length, end) = ending(breaks, bytes.len());
        let bytes = Bytes::from(bytes).slice(..kept);
        let write = Action::Write { bytes, tokens: 0, last: false };
        let steps = [write, end].map(|action| Step { when: When::AtOnce, action });
        Steps::Whole { reply: None, steps: steps.into(), length }
    }

    /// The end of the reply, if nothing comes after the last step: true if the reply is whole. The
    /// server reads no further than the length in its head.
    fn ends(&self) -> Option<bool> {
        let Steps::Whole { steps, .. } = self else { return None };
        match steps.front()?.action {
            Action::End { whole } => Some(whole),
            _ => None,
        }
    }

    fn poll_next(&mut self, clock: &Clock, cx: &mut Context<'_>) -> Poll<Step> {
        match self {
            Steps::Streamed(reply) => reply.poll_next(clock, cx),
            Steps::Whole { reply, steps, length } => {
                if let Some(whole) = reply {
                    let (made, announced) = ready!(whole.poll_steps(clock, cx));
                    (*steps, *length) = (made.into(), announced);
                    *reply = None;
                }
                let end = Step { when: When::AtOnce, action: Action::End { whole: true } };
                Poll::Ready(steps.pop_front().unwrap_or(end))
            }
        }
    }
}

pub(super) struct Timed {
    steps: Steps,
    step: Option<Step>,
    received: Instant,
    start: Option<Instant>,
    slot: Slot,
    clock: Clock,
    sleep: Pin<Box<Sleep>>,
    /// The rest of a step whose bytes go out in pieces.
    rest: Option<Rest>,
    split: usize,
    /// True if hyper may still hold the last piece.
    unflushed: bool,
    record: Record,
    fate: Arc<Fate>,
    pub trailers: Option<HeaderMap>,
}

struct Rest {
    bytes: Bytes,
    tokens: u32,
    last: bool,
    whole: Bytes,
}

impl Timed {
    pub fn new(
        steps: Steps,
        received: Instant,
        turn: Turn,
        split: Option<usize>,
        record: Record,
        fate: Arc<Fate>,
    ) -> Self {
        Timed {
            steps,
            step: None,
            received,
            start: None,
            slot: turn.slot,
            clock: turn.clock,
            sleep: Box::pin(tokio::time::sleep_until(received)),
            rest: None,
            split: split.unwrap_or(usize::MAX),
            unflushed: false,
            record,
            fate,
            trailers: None,
        }
    }

    pub(crate) async fn until_first_step(&mut self) {
        std::future::poll_fn(|cx| self.poll_due(cx)).await;
    }

    pub fn record(&mut self) -> &mut Record {
        &mut self.record
    }

    /// Waits for the instant of the next step, which is then in `self.step`.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let when = match &self.step {
            Some(step) => step.when,
            None => {
                let mut step = self.steps.poll_next(&self.clock, cx);
                if step.is_pending() && self.clock.needs_begin() {
                    ready!(self.poll_start(cx));
                    step = self.steps.poll_next(&self.clock, cx);
                }
                self.step.insert(ready!(step)).when
            }
        };
        let due = match when {
            When::AtOnce => self.record.unpaused(self.received),
            When::Never => return Poll::Pending,
            When::Token { token, late } => {
                let start = ready!(self.poll_start(cx));
                let due = start + ready!(self.clock.poll_span(token, cx)) + late;
                self.record.unpaused(due)
            }
            When::After(span) => {
                let start = ready!(self.poll_start(cx));
                self.record.unpaused(start + span)
            }
        };
        if Instant::now() >= due {
            return Poll::Ready(());
        }
        if self.sleep.deadline() != due {
            self.sleep.as_mut().reset(due);
        }
        self.sleep.as_mut().poll(cx)
    }

    fn poll_start(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        if let Some(start) = self.start {
            return Poll::Ready(start);
        }
        let start = ready!(self.slot.poll_start(self.received, cx));
        let start = self.record.unpaused(start);
        self.record.started(start);
        self.clock.begun(start - self.received);
        Poll::Ready(*self.start.insert(start))
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        if self.rest.is_none() && self.poll_due(cx).is_pending() {
            self.unflushed = false;
            return Poll::Pending;
        }
        if std::mem::take(&mut self.unflushed) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut rest = match self.rest.take() {
            Some(rest) => rest,
            None => match self.step.take().map(|step| step.action) {
                Some(Action::Write { bytes, tokens, last }) => {
                    let whole = bytes.clone();
                    Rest { bytes, tokens, last, whole }
                }
                Some(Action::Cut { reset }) => {
                    self.fate.reset.store(reset, Relaxed);
                    self.record.over(false);
                    return Poll::Ready(Some(Err(Cut)));
                }
                Some(Action::End { whole }) => {
                    self.record.over(whole);
                    return Poll::Ready(None);
                }
                None => return Poll::Ready(None),
            },
        };
        let piece = rest.bytes.split_to(self.split.min(rest.bytes.len()));
        if rest.bytes.is_empty() {
            self.record.sent(Instant::now(), rest.tokens, &rest.whole);
            if rest.last {
                self.slot = Slot::Free;
                self.record.answered();
            }
            if let Some(whole) = self.steps.ends() {
                self.record.over(whole);
            }
        } else {
            self.rest = Some(rest);
        }
        self.unflushed = true;
        Poll::Ready(Some(Ok(piece)))
    }
}

pub(super) enum ReplyBody {
    Ready(Option<Bytes>),
    Called(Option<Bytes>, Option<HeaderMap>),
    Timed(Box<Timed>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            ReplyBody::Ready(bytes) => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            ReplyBody::Called(bytes, trailers) => {
                let bytes = bytes.take().map(Frame::data);
                let frame = bytes.or_else(|| trailers.take().map(Frame::trailers));
                Poll::Ready(frame.map(Ok))
            }
            ReplyBody::Timed(timed) => Poll::Ready(match ready!(timed.poll_piece(cx)) {
                Some(piece) => Some(piece.map(Frame::data)),
                None => timed.trailers.take().map(Frame::trailers).map(Ok),
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ReplyBody::Ready(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            // A body of a known length would end before its trailer.
            ReplyBody::Called(..) => SizeHint::default(),
            ReplyBody::Timed(timed) if timed.trailers.is_some() => SizeHint::default(),
            ReplyBody::Ready(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            ReplyBody::Timed(timed) => match &timed.steps {
                Steps::Whole { length, .. } => SizeHint::with_exact(*length as u64),
                Steps::Streamed(_) => SizeHint::default(),
            },
        }
    }
}
