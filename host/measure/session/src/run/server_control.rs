//! Requests to the server outside of the measurement: to clear its prefix cache after the warmup,
//! and for its metrics before and after. A worker asks, because its runtime's connections stay
//! open; the pacer waits for it while nothing is due.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::phases::Phases;
use crate::authenticate::http_request;
use crate::decode::failures::fit;
use crate::parts::{Parts, RunError};
use load::drive::Order;
use load::question::Question;
use model::clock::date;
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::{Control, Dialect, ServerMetric};
use result::summary::server::{Figure, Server, TargetMetrics};
use scenario::plan::Plan;

/// Number of times that a server is asked to clear its cache: warm-up requests may still run.
const ATTEMPTS: u32 = 5;
/// The pause after a refusal before it is asked again.
const AGAIN: Nanos = Nanos(200_000_000);
/// Interval of the checks for an answer.
const GLANCE: Nanos = Nanos(1_000_000);
/// Time for which an answer is waited for once the run was stopped.
const GRACE: Nanos = Nanos(1_000_000_000);

pub(super) struct ServerControl<'r> {
    dialect: Dialect,
    parts: &'r Parts,
}

type Readings = BTreeMap<Figure, f64>;

impl<'r> ServerControl<'r> {
    /// Opens the backend, if the plan has something to ask.
    pub(super) fn open(plan: &Plan, parts: &'r Parts) -> Result<Option<Self>, PluginError> {
        let asks = plan.control.flush_cache || plan.control.server_metrics;
        // One of the runs that share a plan asks for all.
        let wanted = asks && plan.slice.is_none_or(|slice| slice.index == 0);
        let open = || {
            let dialect = parts.backend.open()?;
            Ok(ServerControl { dialect, parts })
        };
        wanted.then(open).transpose()
    }

    /// Makes every target clear its prefix cache, unless the run is stopped.
    pub(super) async fn flush(&mut self, phases: &Phases<'_>) -> Result<(), RunError> {
        for target in 0..self.parts.targets.len() as u32 {
            let mut attempt = 1;
            while let Err(cause) = self.ask(phases, Control::FlushCache, target).await? {
                if phases.run.control.signal.is_stopped() {
                    return Ok(());
                }
                if attempt == ATTEMPTS {
                    return Err(RunError::Flush {
                        target: self.parts.targets[target as usize].to_string(),
                        cause,
                    });
                }
                attempt += 1;
                phases.rest(AGAIN).await;
            }
        }
        Ok(())
    }

    /// The metrics of every target so far.
    pub(super) async fn before(&mut self, phases: &Phases<'_>) -> Result<Server, RunError> {
        let mut targets = Vec::new();
        for (number, target) in (0..).zip(&self.parts.targets) {
            let url = target.to_string();
            match self.readings(phases, number).await? {
                Ok(before) => targets.push(TargetMetrics::since(url, before)),
                Err(cause) => return Err(RunError::Metrics { target: url, cause }),
            }
        }
        Ok(Server { targets })
    }

    /// The metrics since then. If a target no longer reports them, the measurement is kept.
    pub(super) async fn after(
        &mut self,
        phases: &Phases<'_>,
        server: &mut Server,
    ) -> Result<(), RunError> {
        for (number, target) in (0..).zip(&mut server.targets) {
            match self.readings(phases, number).await? {
                Ok(after) => target.until(after),
                Err(cause) => target.lost(cause),
            }
        }
        Ok(())
    }

    async fn readings(
        &mut self,
        phases: &Phases<'_>,
        target: u32,
    ) -> Result<Result<Readings, String>, RunError> {
        let body = match self.ask(phases, Control::Metrics, target).await? {
            Ok(body) => body,
            Err(cause) => return Ok(Err(cause)),
        };
        let body = self.parts.secrets.redact_bytes(&body);
        match self.dialect.read_metrics(&body) {
            Ok(readings) => Ok(Ok(readings
                .into_iter()
                .map(|reading| (figure(reading.metric), reading.value))
                .collect())),
            Err(error) if error.is_misbehaviour() => Err(error.into()),
            Err(error) => Ok(Err(fit(&error.to_string()))),
        }
    }

    /// The body of a successful answer; the inner error is the reason for a failure.
    async fn ask(
        &mut self,
        phases: &Phases<'_>,
        what: Control,
        target: u32,
    ) -> Result<Result<Vec<u8>, String>, RunError> {
        let Some(question) = self.dialect.control(what)? else {
            let cause = format!("the backend `{}` has no request for this", self.dialect.name());
            return Ok(Err(cause));
        };
        let to = &self.parts.targets[target as usize];
        let secrets = &self.parts.secrets;
        let below = to.path(&question.path);
        let version = phases.run.plan.connection.http;
        let request = match http_request(to, version, (secrets, &[]), &below, question) {
            Ok(request) => request.ready(date),
            Err(cause) => return Ok(Err(cause)),
        };
        let (sender, mut answer) = oneshot::channel();
        // In a real run the first worker, as any other, is there from the beginning to the end.
        if let Some(worker) = phases.orders.first() {
            worker.put(Order::Ask(Box::new(Question { target, request, answer: sender })));
        }
        let signal = &phases.run.control.signal;
        let mut patience = None;
        let answered = loop {
            if signal.is_stopped() {
                let until = *patience.get_or_insert(phases.run.clock.now() + GRACE);
                if signal.is_aborted() || phases.run.clock.now() >= until {
                    break Err("the run was stopped before it answered".to_owned());
                }
            }
            match answer.try_recv() {
                Ok(answered) => break answered,
                Err(oneshot::error::TryRecvError::Empty) => phases.rest(GLANCE).await,
                Err(oneshot::error::TryRecvError::Closed) => {
                    break Err("no target is left to ask".to_owned());
                }
            }
        };
        Ok(match answered {
            Ok((head, body)) if (200..300).contains(&head.status) => Ok(body),
            Ok((head, body)) => {
                let refusal = self.dialect.explain(head.status, &secrets.redact_bytes(&body))?;
                Err(fit(&format!("HTTP {}: {}", head.status, refusal.message)))
            }
            Err(cause) => Err(fit(&secrets.redact(&cause))),
        })
    }
}

/// The figure that a backend's name for a server metric stands for.
fn figure(metric: ServerMetric) -> Figure {
    match metric {
        ServerMetric::FinishedRequests => Figure::FinishedRequests,
        ServerMetric::RunningRequests => Figure::RunningRequests,
        ServerMetric::WaitingRequests => Figure::WaitingRequests,
        ServerMetric::InputTokens => Figure::InputTokens,
        ServerMetric::OutputTokens => Figure::OutputTokens,
        ServerMetric::PrefixCacheQueries => Figure::PrefixCacheQueries,
        ServerMetric::PrefixCacheHits => Figure::PrefixCacheHits,
        ServerMetric::KvCacheUsage => Figure::KvCacheUsage,
        ServerMetric::Preemptions => Figure::Preemptions,
    }
}
