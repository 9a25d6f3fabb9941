//! The spans of sessions: a request that others depend on, with all that depend on it. A session's
//! span ends with its last request, and has the spans of its requests below it.

use std::collections::HashMap;

use model::identity::TraceId;
use model::units::Nanos;

use crate::message::{KeyValue, Span, SpanKind, Status, StatusCode};
use crate::span::{SAMPLED, phase};
use crate::{About, Seen};

/// The most sessions under way that are kept in mind.
const MOST: usize = 1 << 16;

#[derive(Default)]
pub(crate) struct Sessions {
    open: HashMap<TraceId, Session>,
    untracked: u64,
}

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
    /// Adds a request; the span of its session, if that is over now.
    pub(crate) fn add(&mut self, about: &About, seen: &Seen) -> Option<Span> {
        if !seen.is_follower && seen.descendants == 0 {
            return None;
        }
        let ids = seen.ids.as_deref()?;
        let trace = ids.trace?;
        if !self.open.contains_key(&trace) && self.open.len() >= MOST {
            // Counted once for each session, by its first request.
            self.untracked += u64::from(!seen.is_follower);
            return None;
        }
        let session = self.open.entry(trace).or_insert(Session {
            requests: None,
            seen: 0,
            failed: 0,
            from: seen.due,
            to: seen.end(),
            id: None,
            phase: phase(seen.phase),
        });
        session.seen += 1;
        session.failed += u64::from(seen.failure.is_some());
        session.from = session.from.min(seen.due);
        session.to = session.to.max(seen.end());
        if !seen.is_follower {
            session.requests = Some(u64::from(seen.descendants) + 1);
            session.id = ids.session.clone().or_else(|| seen.conversation.clone());
        }
        let is_over = session.requests == Some(session.seen);
        let over = is_over.then(|| self.open.remove(&trace)).flatten();
        over.map(|session| session.span(about, trace))
    }

    /// The spans of sessions that are not over, as far as they came.
    pub(crate) fn finish(&mut self, about: &About) -> Vec<Span> {
        let open = std::mem::take(&mut self.open).into_iter();
        open.map(|(trace, session)| session.span(about, trace)).collect()
    }

    /// The number of sessions that have no span.
    pub(crate) fn untracked(&self) -> u64 {
        self.untracked
    }
}

impl Session {
    fn span(self, about: &About, trace: TraceId) -> Span {
        let mut attributes = vec![
            KeyValue::int("runner.session.requests", self.seen),
            KeyValue::text("runner.phase", self.phase),
        ];
        if let Some(id) = self.id {
            attributes.push(KeyValue::text("gen_ai.conversation.id", id));
        }
        if let Some(left) = self.requests.and_then(|all| all.checked_sub(self.seen))
            && left > 0
        {
            attributes.push(KeyValue::int("runner.session.requests_left", left));
        }
        Span {
            trace_id: trace.bytes().to_vec(),
            span_id: trace.session().bytes().to_vec(),
            parent_span_id: Vec::new(),
            name: "session".to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: about.unix(self.from),
            end_time_unix_nano: about.unix(self.to),
            attributes,
            events: Vec::new(),
            status: (self.failed > 0).then(|| Status {
                message: format!("{} of {} requests failed", self.failed, self.seen),
                code: StatusCode::Error.into(),
            }),
            flags: SAMPLED,
        }
    }
}
