//! Rules on the load machines that made a run together.

use super::{Finding, Id};
use crate::summary::Agent;
use crate::summary::Summary;

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
