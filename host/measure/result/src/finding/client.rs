//! Rules on this client: did it send or read late, lack connections, or get chunks in bundles?

use super::{Finding, Id, Severity};
use crate::metric;
use crate::summary::Summary;
use model::client::Errands;
use model::exchange::Class;

/// Send lag beyond which a client that holds to a rate is too late, in milliseconds, whatever the
/// server's latency. If everything is due at the same moment, some request has to be the last.
const LATE_MS: f64 = 10.0;

/// Send lag in milliseconds below which a client is not late: a busy kernel's scheduling.
const PUNCTUAL_MS: f64 = 1.0;

/// Gaps this short are between chunks of one read, in milliseconds.
const TOGETHER_MS: f64 = 0.01;

/// Share of requests beyond which waits for connections are more than an accident.
const ACCIDENT: f64 = 0.01;

/// Share of the time to first token beyond which the client's own lag shows in it.
pub(super) const LAG_SHARE: f64 = 0.05;

/// Errors of a process without files, ports or socket memory: text, resource and advice.
const LIMITS: [(&str, &str, &str); 3] = [
    (
        "Too many open files",
        "file descriptors",
        "raise the limit on open files (ulimit -n, LimitNOFILE)",
    ),
    (
        "Cannot assign requested address",
        "ports",
        "reuse connections (drop --connections never), widen net.ipv4.ip_local_port_range, or give several base URLs",
    ),
    ("No buffer space available", "memory for sockets", "raise the system's limits on sockets"),
];

pub(super) fn limits(summary: &Summary) -> Option<Finding> {
    let failures = summary.requests.failures.get(&Class::Refused)?;
    let has = |words: &str| failures.messages.iter().any(|message| message.text.contains(words));
    let (_, resource, advice) = LIMITS.iter().find(|(words, ..)| has(words))?;
    let share = failures.count as f64 / summary.requests.total.max(1) as f64;
    Some(Id::ClientLimits.finding(
        if share > ACCIDENT { Severity::Invalid } else { Severity::Suspect },
        format!(
            "this machine ran out of {resource}; {} requests got no connection",
            failures.count
        ),
        "the run measured a limit of this client, not of the server",
        &format!("{advice}, or cap requests in flight (--max-concurrency)"),
    ))
}

pub(super) fn send_lag(summary: &Summary) -> Option<Finding> {
    let lag = summary.metric(metric::SEND_LAG)?.percentile(99.0)?;
    let first = summary.metric(metric::TTFT).map(|ttft| ttft.median);
    let shows = first.is_some_and(|first| lag > PUNCTUAL_MS && lag > LAG_SHARE * first);
    let late = lag > LATE_MS && summary.run.request_rate.is_some();
    if !late && !shows {
        return None;
    }
    let beside = first.map(|first| format!(" (median TTFT {first:.2} ms)")).unwrap_or_default();
    Some(Id::SendLag.suspect(
        format!("P99 of the send lag is {lag:.2} ms{beside}"),
        "requests left later than they were due, so the server did not see the planned load; latency from the due time includes the lag, latency from the send time does not",
        "give this machine more processor time, or split the load across several machines",
    ))
}

pub(super) fn read_lag(summary: &Summary) -> Option<Finding> {
    let lag = summary.metric(metric::READ_LAG)?.percentile(99.0)?;
    let first = summary.metric(metric::TTFT)?.median;
    let gap = summary.metric(metric::ITL).map(|gaps| gaps.median);
    let in_first = lag > LAG_SHARE * first;
    let in_gaps = gap.is_some_and(|gap| lag > gap);
    if lag <= PUNCTUAL_MS || !(in_first || in_gaps) {
        return None;
    }
    let gap = gap.map(|gap| format!(", median ITL {gap:.2} ms")).unwrap_or_default();
    Some(Id::ReadLag.note(
        format!("P99 of the read lag is {lag:.2} ms (median TTFT {first:.2} ms{gap})"),
        "replies waited in the socket before this client read them; timestamps come from the kernel and stay correct, but chunks that were read together share one timestamp, and in closed loops the next request was late by the same time",
        "give this machine more processor time, or split the load across several machines",
    ))
}

pub(super) fn connection_waits(summary: &Summary) -> Option<Finding> {
    let (waited, sent) = (summary.requests.waited_for_connection, summary.requests.sent);
    if waited as f64 <= ACCIDENT * sent as f64 {
        return None;
    }
    let most = summary.metric(metric::CONNECTION_WAIT).and_then(|waits| waits.percentile(99.0));
    let most = most.map(|most| format!(" (P99 {most:.2} ms)")).unwrap_or_default();
    Some(Id::ConnectionWaits.note(
        format!("{waited} of {sent} requests waited for a connection to be opened{most}"),
        "the wait counts as send lag, so TTFT does not include it; clients that connect as part of a request do include it",
        "use ttft-with-connect to compare with such clients; check whether the server closes its connections",
    ))
}

/// States the failed errands, with an error; absent if none failed.
fn errands(errands: &Errands, kind: &str) -> Option<String> {
    let error = errands.error.as_deref().filter(|error| !error.is_empty());
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    let all = errands.failed.saturating_add(errands.done);
    (errands.failed > 0).then(|| format!("{} of {all} {kind} failed{error}", errands.failed))
}

pub(super) fn clean_ups_failed(summary: &Summary) -> Option<Finding> {
    let seen = errands(summary.client.as_ref()?.cleaning.as_ref()?, "requests after exchanges")?;
    Some(Id::CleanUpsFailed.note(
        seen,
        "the jobs or sessions may still run in the server and take its memory",
        "look for leftovers on the server before the next run; its log says why it refused the requests",
    ))
}

pub(super) fn renewals_failed(summary: &Summary) -> Option<Finding> {
    let renewals = summary.client.as_ref()?.renewals.as_ref()?;
    let seen = errands(renewals, "renewals of tokens or prepared values")?;
    Some(Id::RenewalsFailed.note(
        seen,
        "requests went on with the token or value before; the server refuses them after its end",
        "compare the failures of requests with the times of the server's log, which says why it refused the renewals",
    ))
}

pub(super) fn buffered_replies(summary: &Summary) -> Option<Finding> {
    let gaps = summary.metric(metric::ITL)?;
    let (why, advice) = match super::vitals::paused(summary) {
        Some(_) => (
            "no model generates tokens that fast: this client was paused (client-paused), and what came meanwhile was read at once; if that does not explain it, the server, or a proxy in front of it, held chunks back and sent them together. TTFT, ITL and peaks describe the pauses or a buffer",
            "measure again without the pauses first; if the finding stays, turn off buffering in any proxy in front of the engine, and check how many tokens the engine collects before it sends; compare by TPOT",
        ),
        None => (
            "no model generates tokens that fast: the server, or a proxy in front of it, held chunks back and sent them together, so TTFT, ITL and peaks describe its buffer",
            "turn off buffering in any proxy in front of the engine, and check how many tokens the engine collects before it sends; compare by TPOT",
        ),
    };
    (gaps.median < TOGETHER_MS).then(|| {
        Id::BufferedReplies.suspect(
            format!(
                "half of the gaps between chunks of a reply are {:.3} ms or shorter",
                gaps.median
            ),
            why,
            advice,
        )
    })
}
