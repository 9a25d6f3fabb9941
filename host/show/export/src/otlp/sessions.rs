//! The spans of sessions: a request that others depend on, with all that depend on it. A session's
//! span ends with its last request, and has the spans of its requests below it.

use std::collections::HashMap;

use super::span::{SAMPLED, Span, conversation, end, failed, failure, is_of_session};
use super::{About, int, text};
use model::exchange::Exchange;
use model::identity::TraceId;
use model::units::Nanos;
use report::row::phase;

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;

#[derive(Default)]
pub(super) struct Sessions(HashMap<TraceId, Session>);

struct Session {
    /// Its number of requests, once its first one is known.
    requests: Option<u64>,
    seen: u64,
    failed: u64,
    from: Nanos,
    to: Nanos,
    id: Option<String>,
    phase: &'static str,
}

impl Sessions {
    /// Adds a request. Returns the span of its session, if the session is over now.
    pub(super) fn add(
        &mut self,
        about: &About,
        exchange: &Exchange,
        trace: TraceId,
    ) -> Option<Span> {
        if !is_of_session(exchange) {
            return None;
        }
        let session = self.0.entry(trace).or_insert(Session {
            requests: None,
            seen: 0,
            failed: 0,
            from: exchange.due,
            to: end(exchange),
            id: None,
            phase: phase(exchange.phase),
        });
        session.seen += 1;
        session.failed += u64::from(failure(exchange).is_some());
        session.from = session.from.min(exchange.due);
        session.to = session.to.max(end(exchange));
        if exchange.sample.parents.is_empty() {
            session.requests = Some(u64::from(exchange.sample.descendants) + 1);
            session.id = conversation(exchange).map(str::to_owned);
        }
        let is_over = session.requests == Some(session.seen);
        is_over.then(|| self.0.remove(&trace)).flatten().map(|session| session.span(about, trace))
    }

    /// The spans of sessions that are not over, up to their last request on record.
    pub(super) fn finish(self, about: &About) -> Vec<Span> {
        let mut open: Vec<(TraceId, Session)> = self.0.into_iter().collect();
        open.sort_by_key(|(trace, session)| (session.from, trace.to_string()));
        open.into_iter().map(|(trace, session)| session.span(about, trace)).collect()
    }
}

impl Session {
    fn span(self, about: &About, trace: TraceId) -> Span {
        let mut attributes =
            vec![int("runner.session.requests", self.seen), text("runner.phase", self.phase)];
        if let Some(id) = self.id {
            attributes.push(text("gen_ai.conversation.id", id));
        }
        if let Some(left) = self.requests.and_then(|all| all.checked_sub(self.seen))
            && left > 0
        {
            attributes.push(int("runner.session.requests_left", left));
        }
        let message = || failed(&format!("{} of {} requests failed", self.failed, self.seen));
        Span {
            trace_id: trace,
            span_id: trace.session(),
            parent_span_id: None,
            name: "session".to_owned(),
            kind: INTERNAL,
            start_time_unix_nano: about.unix(self.from),
            end_time_unix_nano: about.unix(self.to),
            attributes,
            events: Vec::new(),
            status: (self.failed > 0).then(message),
            flags: SAMPLED,
        }
    }
}
