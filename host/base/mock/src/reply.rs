//! The events of a reply: their order, their due times, and the token after which the reply fails.
//!
//! Responsible for the sequence; `wire` makes the bytes of an event, and `stream` waits.
//! Events are made one at a time, so that a reply of any length takes little memory.

use std::num::NonZeroU32;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;

use super::answer::Answer;
use super::ask::types::{Refusal, Route};
use super::fault::{Breakdown, Mishaps};
use super::pace::Clock;
use super::script::{RoleChunk, Script};
use super::transcript::{Part, PartAction, ReplyFacts, Transcript};
use super::wire::{self, Piece, Wire};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum When {
    AtOnce,
    /// The time when a token is due.
    Token {
        /// Its number, from 0.
        token: u32,
        /// Delay because of stalls.
        late: Duration,
    },
    /// This long after the engine began with the request.
    After(Duration),
    /// Never, until the client gives up.
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Write {
        bytes: Bytes,
        tokens: u32,
        /// True if the answer is complete with them.
        last: bool,
    },
    Cut {
        reset: bool,
    },
    /// The reply ends properly in HTTP's terms.
    End {
        whole: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub when: When,
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    Role,
    Tokens,
    Usage,
    Done,
    /// After an error event: the end marker, then the end.
    Failed,
    Broken,
    Ended,
}

pub(super) struct Reply {
    wire: Box<dyn Wire>,
    route: Route,
    answer: Answer,
    tokens_per_chunk: NonZeroU32,
    role_chunk: RoleChunk,
    mishaps: Mishaps,
    stage: Stage,
    sent: u32,
    late: Duration,
    /// A step that waits for others to be merged with it, and how many events it holds.
    merging: Option<(Step, u32)>,
    /// A step that could not be merged with the steps before it.
    behind: Option<Step>,
    /// The remaining parts of a transcript in place of an answer, and true if it has its end.
    transcript: Option<(std::vec::IntoIter<Part>, bool)>,
}

impl Reply {
    pub fn new(
        script: &Script,
        route: Route,
        answer: Answer,
        wire: Box<dyn Wire>,
        mishaps: Mishaps,
    ) -> Self {
        Reply {
            wire,
            route,
            answer,
            tokens_per_chunk: script.tokens_per_chunk,
            role_chunk: script.role_chunk,
            mishaps,
            stage: Stage::Opening,
            sent: 0,
            late: Duration::ZERO,
            merging: None,
            behind: None,
            transcript: None,
        }
    }

    /// The reply with a transcript in place of its answer.
    pub fn with_transcript(mut self, transcript: &Transcript, facts: &ReplyFacts<'_>) -> Self {
        let parts = transcript.parts(facts, |event| self.dressed(event));
        self.transcript = Some((parts.into_iter(), transcript.is_whole()));
        self
    }

    /// The next step, once its contents are known; after the last step, the last step again.
    pub fn poll_next(&mut self, clock: &Clock, cx: &mut Context<'_>) -> Poll<Step> {
        if let Some(step) = self.behind.take() {
            return Poll::Ready(step);
        }
        let events = self.mishaps.merge.map_or(1, NonZeroU32::get);
        loop {
            let next = ready!(self.poll_single(clock, cx));
            let (step, merged) = match self.merging.take() {
                None => (next, 1),
                Some((mut step, merged)) => match merge(&mut step, next) {
                    None => (step, merged + 1),
                    Some(other) => {
                        self.behind = Some(other);
                        return Poll::Ready(step);
                    }
                },
            };
            if merged >= events || !matches!(step.action, Action::Write { .. }) {
                return Poll::Ready(step);
            }
            self.merging = Some((step, merged));
        }
    }

    /// The time when token number `token`, counted from 0, is due.
    fn due(&self, token: u32) -> When {
        When::Token { token: token.min(self.answer.tokens.saturating_sub(1)), late: self.late }
    }

    fn poll_single(&mut self, clock: &Clock, cx: &mut Context<'_>) -> Poll<Step> {
        if let Some((parts, whole)) = &mut self.transcript {
            let last = parts.len() == 1;
            return Poll::Ready(match parts.next() {
                Some(part) => Step {
                    when: When::After(part.at),
                    action: match part.action {
                        PartAction::Cut { reset } => Action::Cut { reset },
                        PartAction::Write { bytes, tokens } => {
                            Action::Write { bytes: bytes.into(), tokens, last }
                        }
                    },
                },
                None => Step {
                    when: When::After(Duration::ZERO),
                    action: Action::End { whole: *whole },
                },
            });
        }
        loop {
            let stage = self.stage;
            if matches!(stage, Stage::Role | Stage::Tokens | Stage::Usage)
                && let Some(step) = self.goes_wrong(stage == Stage::Usage)
            {
                return Poll::Ready(step);
            }
            let mut out = Vec::with_capacity(384);
            let (mut tokens, mut last) = (0, false);
            let when = match stage {
                Stage::Opening => {
                    self.stage = Stage::Role;
                    if self.role_chunk == RoleChunk::AtOnce {
                        self.wire.role(&mut out);
                    }
                    if out.is_empty() && self.pings() {
                        return Poll::Ready(self.write(When::AtOnce, Vec::new(), 0, false));
                    }
                    When::AtOnce
                }
                Stage::Role => {
                    self.stage = Stage::Tokens;
                    if self.role_chunk == RoleChunk::FirstToken {
                        self.wire.role(&mut out);
                    }
                    self.due(0)
                }
                Stage::Tokens => {
                    let from = self.sent;
                    let to = self.chunk_end();
                    let token = to.saturating_sub(1);
                    // Some dialects write the duration, so the event cannot be made before.
                    let span = ready!(clock.poll_span(token, cx)) + self.late;
                    let timings = ready!(clock.poll_timings(span, cx));
                    last = to == self.answer.tokens;
                    tokens = to - from;
                    self.sent = to;
                    if last {
                        self.stage = Stage::Usage;
                    }
                    self.wire.piece(
                        &self.answer,
                        Piece { from, to, last, seconds: span.as_secs_f64(), timings },
                        &mut out,
                    );
                    self.due(token)
                }
                Stage::Usage => {
                    self.stage = Stage::Done;
                    self.wire.usage(&self.answer, &mut out);
                    self.due(self.sent)
                }
                Stage::Done | Stage::Failed => {
                    self.stage = if stage == Stage::Done { Stage::Ended } else { Stage::Broken };
                    self.wire.done(&self.answer, &mut out);
                    self.due(self.sent)
                }
                Stage::Ended | Stage::Broken => {
                    let whole = stage == Stage::Ended;
                    return Poll::Ready(Step {
                        when: self.due(self.sent),
                        action: Action::End { whole },
                    });
                }
            };
            if !out.is_empty() {
                return Poll::Ready(self.write(when, out, tokens, last));
            }
        }
    }

    /// The end of the chunk that begins after the tokens sent so far.
    fn chunk_end(&self) -> u32 {
        let step = if self.sent == 0 { 1 } else { self.tokens_per_chunk.get() };
        let end = self.sent.saturating_add(step).min(self.answer.tokens);
        let breaks = [
            Some(self.answer.reasoning),
            self.mishaps.breakdown.map(|(after, _)| after),
            self.mishaps.stall.map(|(after, _)| after),
        ];
        let inside = |at: &u32| self.sent < *at && *at < end;
        breaks.into_iter().flatten().filter(inside).min().unwrap_or(end)
    }

    /// A stall or the end of the reply, if its token has come; after the answer, any other fault.
    fn goes_wrong(&mut self, answered: bool) -> Option<Step> {
        let reached = |after: u32| answered || self.sent >= after;
        if let Some((_, lasting)) = self.mishaps.stall.take_if(|(after, _)| reached(*after)) {
            match lasting {
                Some(span) => self.late += span,
                None => {
                    return Some(Step { when: When::Never, action: Action::End { whole: false } });
                }
            }
        }
        let (_, how) = self.mishaps.breakdown.take_if(|(after, _)| reached(*after))?;
        let when = self.due(self.sent);
        self.stage = Stage::Broken;
        Some(match how {
            Breakdown::InBandError => {
                self.stage = Stage::Failed;
                let mut out = Vec::new();
                wire::error_event(&self.route, &Refusal::internal(500), &mut out);
                self.write(when, out, 0, false)
            }
            Breakdown::Cut { reset } => Step { when, action: Action::Cut { reset } },
            Breakdown::NoDone | Breakdown::Close { .. } => {
                Step { when, action: Action::End { whole: false } }
            }
        })
    }

    fn pings(&self) -> bool {
        self.mishaps.ping && !wire::ping(&self.route).is_empty()
    }

    /// An event as it goes out: with the comment and the line ends of the script's faults.
    fn write(&self, when: When, event: Vec<u8>, tokens: u32, last: bool) -> Step {
        Step { when, action: Action::Write { bytes: self.dressed(event).into(), tokens, last } }
    }

    fn dressed(&self, mut event: Vec<u8>) -> Vec<u8> {
        if self.pings() {
            event.splice(0..0, wire::ping(&self.route).iter().copied());
        }
        if self.mishaps.crlf && wire::has_lines(&self.route) {
            // Line feeds stand between lines alone: within JSON they are escaped.
            event = event.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
        }
        event
    }
}

/// Adds an event to the events that are written with it, or returns the event that cannot be added.
fn merge(step: &mut Step, next: Step) -> Option<Step> {
    match (&mut step.action, next.action) {
        (
            Action::Write { bytes, tokens, last },
            Action::Write { bytes: more, tokens: further, last: complete },
        ) if next.when != When::Never => {
            *bytes = [bytes.as_ref(), more.as_ref()].concat().into();
            *tokens += further;
            *last |= complete;
            step.when = step.when.max(next.when);
            None
        }
        (_, action) => Some(Step { when: next.when, action }),
    }
}

/// The end of a reply of this length that may break off in the middle: the number of its bytes that
/// are sent, the number that its head announces, and its last action.
pub(super) fn ending(breaks: Option<Breakdown>, length: usize) -> (usize, usize, Action) {
    match breaks {
        None => (length, length, Action::End { whole: true }),
        Some(Breakdown::InBandError) => (length, length, Action::End { whole: false }),
        Some(Breakdown::Cut { reset }) => (length / 2, length, Action::Cut { reset }),
        Some(Breakdown::NoDone | Breakdown::Close { .. }) => {
            (length / 2, length / 2, Action::End { whole: false })
        }
    }
}

pub(super) struct Whole {
    pub route: Route,
    pub answer: Answer,
    pub wire: Box<dyn Wire>,
    pub mishaps: Mishaps,
}

impl Whole {
    /// Its steps, once its last token is due, and the number of bytes that its head announces.
    pub fn poll_steps(&self, clock: &Clock, cx: &mut Context<'_>) -> Poll<(Vec<Step>, usize)> {
        let token = self.answer.tokens.saturating_sub(1);
        let span = ready!(clock.poll_span(token, cx));
        let late = self.mishaps.stall.and_then(|(_, lasting)| lasting).unwrap_or_default();
        let timings = ready!(clock.poll_timings(span + late, cx));
        let all = Piece {
            from: 0,
            to: self.answer.tokens,
            last: true,
            seconds: (span + late).as_secs_f64(),
            timings,
        };
        Poll::Ready(self.steps(token, late, all))
    }

    fn steps(&self, token: u32, late: Duration, all: Piece) -> (Vec<Step>, usize) {
        let Whole { route, answer, wire, mishaps } = self;
        let never = mishaps.stall.is_some_and(|(_, lasting)| lasting.is_none());
        let when = if never { When::Never } else { When::Token { token, late } };
        let breaks = mishaps.breakdown.map(|(_, how)| how);
        let mut out = Vec::new();
        if breaks == Some(Breakdown::InBandError) {
            let refusal = Refusal::internal(500);
            let failed = wire.failed(&refusal);
            out = failed.unwrap_or_else(|| wire::error_body(route, &refusal));
        } else {
            wire.whole(answer, all, &mut out);
        }
        let (kept, length, end) = ending(breaks, out.len());
        out.truncate(kept);
        let tokens = if breaks.is_none() { answer.tokens } else { 0 };
        let write = Action::Write { bytes: out.into(), tokens, last: breaks.is_none() };
        (vec![Step { when, action: write }, Step { when, action: end }], length)
    }
}
