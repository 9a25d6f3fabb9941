//! Rules on the offered load: was it as planned, and long against filling and draining?

use super::{Finding, Id};
use crate::metric;
use crate::summary::{Agent, Distribution, Loop, SteadyState, Summary};

/// The largest shortfall of output throughput against the steady window's, as its share.
const APART: f64 = 0.05;

/// Share of the duration spent draining above which the drain explains the lower throughput.
const DRAINS: f64 = 0.05;

pub(super) fn long_drain(summary: &Summary) -> Option<Finding> {
    let Some(SteadyState::Window(window)) = &summary.steady_state else { return None };
    let steady = window.output_tokens_per_s?;
    let whole = summary.throughput.output_tokens_per_s?;
    let drain = summary.throughput.drain_share?;
    let short = Sending::new(summary).filter(|sending| sending.is_short() && is_judged(summary));
    (drain > DRAINS && whole < (1.0 - APART) * steady).then(|| Id::LongDrain.note(
        format!(
            "output throughput is {whole:.2} tokens per second over the run and {steady:.2} in its steady window; {:.0} % of the run passed after the last request was sent",
            drain * 100.0
        ),
        "throughput over the run includes the time in which requests finish and none follow, so it depends on the length of the run",
        &match short {
            Some(Sending { enough, .. }) => format!("quote the figures of the steady window, or send requests for at least {enough:.0} s, ten times the P99 of the E2E latency"),
            None => "quote the throughput of the steady window, or run longer".to_owned(),
        },
    ))
}

/// The number of times the longest answers' duration for which requests should be sent. Filling and
/// draining take about one each, so at least eight parts in ten of the requests see full load.
const TIMES: f64 = 10.0;

/// The time for which requests were sent, in seconds.
pub(super) struct Sending {
    pub lasted: f64,
    /// The time that they should take: ten times P99 of the E2E latency.
    pub enough: f64,
}

impl Sending {
    pub fn new(summary: &Summary) -> Option<Self> {
        let p99 = summary.metric(metric::E2E)?.percentile(99.0)? / 1000.0;
        let gaps = summary.requests.sent.saturating_sub(1) as f64;
        let lasted = gaps / summary.throughput.sent_requests_per_s?;
        Some(Sending { lasted, enough: TIMES * p99 })
    }

    /// True if the run is short: most of it may be an engine that fills.
    pub fn is_short(&self) -> bool {
        self.lasted < self.enough
    }
}

/// False for a burst, which takes as long as it takes.
fn is_judged(summary: &Summary) -> bool {
    summary.run.request_rate.is_some() || summary.run.r#loop == Loop::Closed
}

/// A run that a steady window does not rescue: `long_drain` says of the others what matters.
pub(super) fn short_run(summary: &Summary) -> Option<Finding> {
    if !is_judged(summary) || long_drain(summary).is_some() {
        return None;
    }
    let sending = Sending::new(summary)?;
    let per_second = summary.throughput.sent_requests_per_s?;
    let Sending { lasted, enough } = sending;
    sending.is_short().then(|| Id::ShortRun.note(
        format!(
            "requests were sent for only {lasted:.2} s, {:.1} times the P99 of the E2E latency: start and end weigh too much",
            lasted * TIMES / enough
        ),
        "the server spends about one such latency filling and another draining, so the figures of a short run largely describe a server that is not yet or no longer loaded",
        &format!(
            "send requests for at least {enough:.2} s, ten times that latency: at this rate, {:.0} requests",
            (enough * per_second).ceil()
        ),
    ))
}

/// Requests needed to compare two patterns of arrivals.
const MANY: u64 = 100;

/// The most by which the coefficients of variation may differ: this difference, and this share of
/// the planned one. Smaller differences load a queue alike: its waiting time grows with the sum of
/// the squares of this coefficient and the service's (Kingman's formula), and a tenth changes that
/// little.
const VARIES: f64 = 0.1;

/// Lateness up to which a client is punctual, in milliseconds: less than a step of most engines,
/// and the limit of `send-lag`. Gaps of a millisecond vary much if each request is a fraction of
/// one late, and no server sees that; so without later requests, the pattern counts as kept.
const PUNCTUAL: f64 = 10.0;

pub(super) fn arrivals_changed(summary: &Summary) -> Option<Finding> {
    let arrivals = summary.arrivals?;
    let (due, sent) = (arrivals.due_gap_cv?, arrivals.sent_gap_cv?);
    let p99 = |name| summary.metric(name).and_then(|of: &Distribution| of.percentile(99.0));
    let late = p99(metric::SEND_LAG)?.max(p99(metric::QUEUE).unwrap_or(0.0));
    let differs = (sent - due).abs() > VARIES + VARIES * due;
    (summary.requests.sent >= MANY && differs && late > PUNCTUAL).then(|| Id::ArrivalsChanged.suspect(
        format!(
            "the gaps between requests have a coefficient of variation of {sent:.2} as sent and {due:.2} as planned; P99 of the delay until they were sent is {late:.2} ms"
        ),
        if sent > due {
            "the server saw more bursts than planned, and requests in a burst wait for each other: latency is longer than with the planned arrivals"
        } else {
            "the server saw fewer bursts than planned, so fewer requests waited for each other: latency is shorter than with the planned arrivals"
        },
        "check whether the cap on requests in flight or this machine held requests back; raise the cap, lower the rate, or split the load across several machines",
    ))
}

/// The most agents that a finding names.
const NAMED: usize = 4;

fn listed(agents: &[String]) -> String {
    let named = agents[..agents.len().min(NAMED)].join("; ");
    match agents.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

fn agents(summary: &Summary) -> impl Iterator<Item = &Agent> {
    summary.fleet.iter().flat_map(|fleet| &fleet.agents)
}

pub(super) fn agent_lost(summary: &Summary) -> Option<Finding> {
    let lost: Vec<String> = agents(summary)
        .filter_map(|agent| {
            let lost = agent.lost.as_ref()?;
            let missing = match lost.unknown {
                Some(requests) => format!(", {requests} of its requests are not on record"),
                None => String::new(),
            };
            let merged = if agent.merged {
                ", though the records of its own disk were taken in"
            } else {
                ""
            };
            let (name, from, why) = (agent.name(), lost.from_s, &lost.why);
            Some(format!("{name} from {from:.1} s on ({why}){missing}{merged}"))
        })
        .collect();
    (!lost.is_empty()).then(|| Id::AgentLost.invalid(
        format!("lost: {}", listed(&lost)),
        "its later requests are not recorded, so the load is unknown; throughput and the share of requests that met their objectives leave its part out",
        "if its own records are on its disk, take them in with `runner fleet merge`; otherwise find out why that machine or its network failed, and measure again",
    ))
}

pub(super) fn agent_failed(summary: &Summary) -> Option<Finding> {
    let failed: Vec<String> = agents(summary)
        .filter_map(|agent| Some(format!("{}: {}", agent.name(), agent.error.as_ref()?)))
        .collect();
    (!failed.is_empty()).then(|| {
        Id::AgentFailed.invalid(
            listed(&failed),
            "its remaining requests are missing from the load",
            "mend the cause that the message names, and measure again",
        )
    })
}

pub(super) fn agent_clock(summary: &Summary) -> Option<Finding> {
    let moved: Vec<String> = agents(summary)
        .filter_map(|agent| {
            let moved = agent.clock_moved?;
            let (name, from, by) = (agent.name(), moved.from_s, moved.by_ms);
            Some(format!("the clock of {name} by {by:.3} ms from {from:.1} s on"))
        })
        .collect();
    (!moved.is_empty()).then(|| Id::AgentClock.suspect(
        format!("clocks moved: {}", listed(&moved)),
        "its requests were sent earlier or later by this much than the requests of other machines, and figures over all machines (throughput by second, requests in flight) mix different instants; latency is measured on one machine and stays right",
        "check whether the virtual machine was suspended or migrated, or its clock source changed; measure again",
    ))
}
