//! The formulas: each metric of the catalogue for one exchange that has been read.

use super::reading::Reading;
use crate::summary::first_token::{Part, Split};
use model::exchange::{self, Connection, Exchange, ServerTimings, Usage};
use model::units::Nanos;

impl Reading<'_> {
    /// The instant of the first output, of a streamed reply.
    pub fn began(&self) -> Option<Nanos> {
        self.first_output.filter(|_| self.streamed)
    }

    /// Time to first token: from sending to the first output, in milliseconds.
    pub fn ttft(&self) -> Option<f64> {
        self.streamed_since_sent(self.first_output)
    }

    /// A part of the time from due to first token, in milliseconds.
    pub(super) fn first_token(&self, part: Part) -> Option<f64> {
        Split::new(self)?.part(part).map(Nanos::as_millis_f64)
    }

    pub(super) fn ttft_with_connect(&self) -> Option<f64> {
        let first = self.began()?;
        let sent = self.exchange.sent?;
        let begun = self.waited_for().map_or(sent, |(begun, _)| begun.min(sent));
        Some(span(begun, first))
    }

    pub(super) fn audio_duration(&self) -> Option<f64> {
        self.exchange.audio_duration.map(Nanos::as_millis_f64)
    }

    pub(super) fn input_audio_duration(&self) -> Option<f64> {
        self.exchange.sample.audio_duration.map(Nanos::as_millis_f64)
    }

    /// The time that an answer takes for each second of sound: below 1, faster than it is heard.
    pub(super) fn real_time_factor(&self, duration: Option<f64>) -> Option<f64> {
        let duration = duration.filter(|duration| *duration > 0.0)?;
        Some(self.e2e()? / duration)
    }

    /// The seconds of sound to a second of waiting.
    pub(super) fn real_time_speedup(&self, duration: Option<f64>) -> Option<f64> {
        let e2e = self.e2e().filter(|e2e| *e2e > 0.0)?;
        Some(duration? / e2e)
    }

    pub(super) fn parent_wait(&self) -> Option<f64> {
        self.exchange.sent?;
        let several = self.exchange.sample.parents.len() > 1;
        let released = self.exchange.released.filter(|_| several)?;
        Some(span(released, self.exchange.due))
    }

    pub(super) fn e2e(&self) -> Option<f64> {
        Some(span(self.exchange.sent?, self.last?))
    }

    pub(super) fn e2e_last_token(&self) -> Option<f64> {
        Some(span(self.exchange.sent?, self.last_output?))
    }

    pub(super) fn e2e_end(&self) -> Option<f64> {
        Some(span(self.exchange.sent?, self.exchange.ended?))
    }

    /// Time per output token after the first, in milliseconds.
    pub fn tpot(&self) -> Option<f64> {
        self.per_further_token(self.last?, 1)
    }

    /// Share of the tokens after the first that come too late for a reader. The reader begins with
    /// the first token and takes the objective's time for each. The deadlines follow Etalon's
    /// fluidity index (Agrawal et al., arXiv:2407.07000) and the reader of Andes (Liu et al.,
    /// arXiv:2404.16283). A gap costs nothing while the reader still has tokens that came early, so
    /// it differs from the share of long gaps. Deadlines do not move: a reply that falls behind is
    /// late until it has caught up.
    pub(super) fn stall_share(&self) -> Option<f64> {
        let pace = self.pace.filter(|pace| *pace > Nanos::ZERO)?;
        let (mut first, mut tokens, mut late) = (None, 0u64, 0u64);
        self.each_token_arrival(|at, more| {
            if more == 0 {
                return;
            }
            let since = at.since(*first.get_or_insert(at)).0;
            // The deadlines up to here, with the first token's, which it meets itself.
            let passed = since.div_ceil(pace.0);
            let upto = tokens + more;
            late += passed.min(upto).saturating_sub(tokens);
            tokens = upto;
        });
        (tokens > 1).then(|| late as f64 / (tokens - 1) as f64)
    }

    pub(super) fn tokens_per_event(&self) -> Option<f64> {
        let n = self.output_tokens.filter(|_| self.streamed)?.tokens;
        (self.pieces > 0).then(|| f64::from(n) / self.pieces as f64)
    }

    pub(super) fn decoded_per_event(&self) -> Option<f64> {
        let further = self.output_tokens.filter(|_| self.streamed)?.tokens.checked_sub(1)?;
        (self.pieces > 1).then(|| f64::from(further) / (self.pieces - 1) as f64)
    }

    pub(super) fn send_lag(&self) -> Option<f64> {
        let ready = self.exchange.due.max(self.exchange.granted.unwrap_or_default());
        Some(span(ready, self.exchange.sent?))
    }

    pub(super) fn opened(&self) -> Option<Connection> {
        self.exchange.connection.filter(|own| !own.reused)
    }

    pub(super) fn input_length(&self) -> Option<f64> {
        self.input_tokens.map(|count| f64::from(count.tokens))
    }

    pub(super) fn output_length(&self) -> Option<f64> {
        self.output_tokens.map(|count| f64::from(count.tokens))
    }

    /// The share of the proposed tokens that the model accepted.
    pub(super) fn draft_acceptance(&self) -> Option<f64> {
        let usage = self.exchange.usage?;
        let (drafted, accepted) = (usage.draft_tokens?, usage.accepted_draft_tokens?);
        (drafted > 0).then(|| f64::from(accepted) / f64::from(drafted))
    }

    /// The mean number of tokens per step of speculative decoding: the accepted and the model's.
    pub(crate) fn acceptance_length(&self) -> Option<f64> {
        let steps = self.exchange.speculation.as_ref()?.steps;
        let accepted = accepted_drafts(self.exchange)?;
        (steps > 0).then(|| 1.0 + accepted as f64 / f64::from(steps))
    }

    pub(super) fn server_ttft(&self) -> Option<f64> {
        let sum = || Some(self.timing(|own| own.queue)? + self.timing(|own| own.prefill)?);
        self.timing(|timings| timings.first_token).or_else(sum)
    }

    /// One of the server's own timings, in milliseconds.
    pub(super) fn timing(&self, part: fn(&ServerTimings) -> Option<Nanos>) -> Option<f64> {
        part(self.exchange.timings.as_ref()?).map(Nanos::as_millis_f64)
    }

    /// The time that a gateway states as its own, in milliseconds.
    pub(super) fn gateway_overhead(&self) -> Option<f64> {
        self.exchange.counts.get(exchange::GATEWAY_OVERHEAD).map(|micros| *micros as f64 / 1e3)
    }

    pub(super) fn usage(&self, count: fn(&Usage) -> Option<u32>) -> Option<f64> {
        count(&self.exchange.usage?).map(f64::from)
    }

    /// True if the answer has only its first token, and so no time per further token.
    pub fn is_one_token(&self) -> bool {
        self.streamed && self.output_tokens.is_some_and(|count| count.tokens <= 1)
    }

    /// Finds the begin and the end of the connection's opening that this request waited for.
    pub(super) fn waited_for(&self) -> Option<(Nanos, Nanos)> {
        let connection = self.exchange.connection.filter(|own| own.waited)?;
        let ready = connection.secured.unwrap_or(connection.connected);
        Some((connection.begun, ready))
    }

    pub(super) fn streamed_since_sent(&self, instant: Option<Nanos>) -> Option<f64> {
        Some(span(self.exchange.sent?, instant.filter(|_| self.streamed)?))
    }

    /// The time from the first output to `end`, for each token but the `first` ones.
    pub(super) fn per_further_token(&self, end: Nanos, first: u32) -> Option<f64> {
        let from = self.began()?;
        self.exchange.sent?;
        let further =
            self.output_tokens?.tokens.checked_sub(first).filter(|further| *further > 0)?;
        Some(span(from, end) / f64::from(further))
    }

    pub(super) fn per_token(&self, milliseconds: f64) -> Option<f64> {
        let n = self.output_tokens?.tokens;
        (n > 0).then_some(milliseconds / f64::from(n))
    }
}

/// The proposed tokens that the model accepted, as its steps say, else as the server's counts do.
pub(crate) fn accepted_drafts(exchange: &Exchange) -> Option<u64> {
    let by_steps = exchange.speculation.as_ref()?.accepted_tokens();
    let counted = || Some(u64::from(exchange.usage?.accepted_draft_tokens?));
    by_steps.or_else(counted)
}

/// Milliseconds from one instant to another.
pub(super) fn span(from: Nanos, to: Nanos) -> f64 {
    to.since(from).as_millis_f64()
}

/// An amount over a number of milliseconds as a rate per second; `None` if no time passed.
pub(super) fn per_second(amount: f64, milliseconds: f64) -> Option<f64> {
    (milliseconds > 0.0).then(|| amount / milliseconds * 1000.0)
}
