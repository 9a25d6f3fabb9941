//! The pace of one answer: the script's times, with their variation, or the batch's steps.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use model::random::mix;
use simulator::Work;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::answer::Answer;
use super::ask::types::Ask;
use super::batch::Ticket;
use super::engine::Engine;
use super::script::Script;
use super::serve::LONGEST;
use super::truth::Timings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// From the complete request, or its slot, to the first token.
    pub ttft: Duration,
    /// From each token to the next.
    pub itl: Duration,
}

impl Pace {
    /// The pace of the request with this number, the same each time the script is played.
    pub fn new(script: &Script, number: u64) -> Self {
        let about = |time: Duration, which: u64| {
            if script.spread == 0.0 {
                return time;
            }
            let chance =
                normal(mix(script.seed).wrapping_add(number.wrapping_mul(2).wrapping_add(which)));
            let seconds = time.as_secs_f64() * (script.spread * chance).exp();
            Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64()))
        };
        let cold = if number < u64::from(script.cold_requests) {
            script.cold_delay.0
        } else {
            Duration::ZERO
        };
        Pace { ttft: about(script.ttft.0, 0) + cold, itl: about(script.itl.0, 1) }
    }
}

/// The time when the tokens of one reply are due.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    source: Source,
    /// The share of the time to first token that is queueing, if the reply has engine timings.
    queueing: Option<f64>,
    /// The time that the request waited until the engine began to process it, once it is known.
    waited: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Source {
    /// At times that are known from the start.
    Script(Pace),
    /// The time when a step of the batch has generated them.
    Batch(Ticket),
}

impl Clock {
    fn new(source: Source, script: &Script) -> Self {
        // A format of the script's own may hold timings even if the script sets none.
        let any = (!script.routes.is_empty()).then_some(0.0);
        Clock { source, queueing: script.server_timings.or(any), waited: None }
    }

    /// The engine has begun to process the request, which waited for this time.
    pub fn begun(&mut self, waited: Duration) {
        self.waited = Some(waited);
    }

    /// True if the reply states its wait, so that nothing can be written before the engine begins.
    pub fn needs_begin(&self) -> bool {
        self.queueing.is_some() && self.waited.is_none()
    }

    /// The time from the beginning of work on the request to the due time of token number `token`,
    /// counted from 0. Pending while it [needs the begin](Self::needs_begin).
    pub fn poll_span(&self, token: u32, cx: &mut Context<'_>) -> Poll<Duration> {
        if self.needs_begin() {
            return Poll::Pending;
        }
        match &self.source {
            Source::Script(pace) => Poll::Ready(pace.ttft + pace.itl * token),
            Source::Batch(ticket) => ticket.poll_span(token, cx),
        }
    }

    /// The engine's own timings, if the reply has them. The last token so far is due at `last`,
    /// from the beginning of work.
    pub fn poll_timings(&self, last: Duration, cx: &mut Context<'_>) -> Poll<Option<Timings>> {
        let Some((share, waited)) = self.queueing.zip(self.waited) else {
            return Poll::Ready(None);
        };
        let first = ready!(self.poll_span(0, cx));
        let queued = first.mul_f64(share);
        Poll::Ready(Some(Timings {
            queue: waited + queued,
            prefill: first.saturating_sub(queued),
            decode: last.saturating_sub(first),
        }))
    }
}

/// A slot among the requests that are being processed.
pub(super) enum Slot {
    /// There is no limit, or the work is done.
    Free,
    /// A slot that was free on arrival.
    Permit(#[expect(dead_code, reason = "held until dropped")] OwnedSemaphorePermit),
    Batched(Ticket),
    Waiting(Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>),
}

impl Slot {
    /// Takes a slot, or a place in the queue.
    pub fn new(slots: Option<&Arc<Semaphore>>) -> Self {
        let Some(slots) = slots else { return Slot::Free };
        match Arc::clone(slots).try_acquire_owned() {
            Ok(permit) => Slot::Permit(permit),
            Err(_) => {
                let permit = Arc::clone(slots).acquire_owned();
                Slot::Waiting(Box::pin(async { permit.await.ok() }))
            }
        }
    }

    /// The time when the work begins: at `received`, with a free slot, or with a step.
    pub(crate) fn poll_start(&mut self, received: Instant, cx: &mut Context<'_>) -> Poll<Instant> {
        let permit = match self {
            Slot::Free | Slot::Permit(_) => return Poll::Ready(received),
            Slot::Batched(ticket) => return ticket.poll_start(cx),
            Slot::Waiting(permit) => permit,
        };
        let permit = ready!(permit.as_mut().poll(cx));
        *self = permit.map_or(Slot::Free, Slot::Permit);
        Poll::Ready(Instant::now())
    }
}

pub(super) struct Turn {
    pub slot: Slot,
    pub clock: Clock,
    /// Tokens of its prompt that were in the prefix cache.
    pub cached_tokens: u32,
}

impl Turn {
    /// The turn of a request that makes the engine no work.
    pub fn at_once(engine: &Engine, number: u64) -> Self {
        let pace = Pace::new(&engine.script, number);
        Turn {
            slot: Slot::Free,
            clock: Clock::new(Source::Script(pace), &engine.script),
            cached_tokens: 0,
        }
    }

    /// The turn of a request, or `None` if too many wait already. Tokens in the prefix cache are
    /// not read again, which saves the batch their work.
    pub fn new(
        engine: &Engine,
        number: u64,
        received: Instant,
        ask: &Ask,
        answer: &Answer,
    ) -> Option<Self> {
        let mut cached_tokens = 0;
        let mut look_up = || {
            if engine.script.prefix_cache {
                cached_tokens = engine.prefixes.take(ask.prompt_tokens, &ask.prefixes);
            }
            cached_tokens
        };
        let (slot, source) = match &engine.batch {
            None => {
                look_up();
                let pace = Pace::new(&engine.script, number);
                (Slot::new(engine.slots.as_ref()), Source::Script(pace))
            }
            Some(batch) => {
                let ticket = batch.submit(number, received, || Work {
                    prompt_tokens: ask.prompt_tokens.saturating_sub(look_up()),
                    output_tokens: answer.tokens,
                    ..Work::default()
                })?;
                (Slot::Batched(ticket.clone()), Source::Batch(ticket))
            }
        };
        Some(Turn { slot, clock: Clock::new(source, &engine.script), cached_tokens })
    }
}

/// A normal variate from a counter, by Box and Muller's method.
fn normal(counter: u64) -> f64 {
    let uniform = |salt: u64| {
        let bits = mix(counter.wrapping_mul(2).wrapping_add(salt)) >> 11;
        (bits + 1) as f64 / (1_u64 << 53) as f64
    };
    (-2.0 * uniform(0).ln()).sqrt() * (std::f64::consts::TAU * uniform(1)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_vary_with_the_spread_of_the_script() {
        let script: Script =
            "ttft = '100ms'\nitl = '10ms'\nspread = 0.2\nseed = 3".parse().unwrap();
        let paces: Vec<Pace> = (0..4000).map(|number| Pace::new(&script, number)).collect();
        for times in [
            paces.iter().map(|pace| pace.ttft.as_secs_f64() / 0.1).collect::<Vec<_>>(),
            paces.iter().map(|pace| pace.itl.as_secs_f64() / 0.01).collect(),
        ] {
            let logarithms: Vec<f64> = times.iter().map(|time| time.ln()).collect();
            let mean = logarithms.iter().sum::<f64>() / 4000.0;
            let squares: f64 = logarithms.iter().map(|x| (x - mean) * (x - mean)).sum();
            let deviation = (squares / 4000.0).sqrt();
            assert!(mean.abs() < 0.015 && (deviation - 0.2).abs() < 0.01, "{mean} {deviation}");
        }
        assert_eq!(paces[7], Pace::new(&script, 7));
        let other = Script { seed: 4, ..script.clone() };
        assert_ne!(paces[7], Pace::new(&other, 7));
        let even = Script { spread: 0.0, ..script };
        assert_eq!(Pace::new(&even, 7).ttft, Duration::from_millis(100));
    }
}
