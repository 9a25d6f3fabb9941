//! One run from the parts that the agents sent: records by one clock in one file, and the end of
//! each agent's part.

use std::path::Path;

use crate::link::{Ending, Outcome};
use model::arrival::{Due, Trace};
use model::units::Nanos;
use result::summary::{Agent, Client, Fleet, Lost, Moved};
use runs::record::{self, Part as Records, RecordError};
use scenario::plan::{Amount, Plan, Slice};
use session::Measurements;
use session::parts::RunError;

use super::agent::AgentPart;

/// Brings the agents' records into the run's folder. Fails if they cannot be written.
pub(super) fn combine(
    folder: &Path,
    plan: &Plan,
    trace: &Trace,
    start: Nanos,
    endings: Vec<Ending>,
) -> Result<Measurements, RecordError> {
    let handed: Vec<Option<AgentPart>> = endings.iter().map(handed_over).collect();
    let mut parts = Vec::new();
    let mut ranks = Vec::new();
    for (rank, (ending, handed)) in endings.iter().zip(&handed).enumerate() {
        if let Some(path) = &ending.records {
            let ahead = ahead(ending, handed.as_ref(), start);
            parts.push(Records { path: path.clone(), ahead, ..Records::default() });
            ranks.push(rank);
        }
    }
    let (records, counts) = record::merge(folder, &parts)?;
    let mut counted = vec![0; endings.len()];
    for (rank, count) in ranks.into_iter().zip(counts) {
        counted[rank] = count;
    }
    let size = endings.len() as u32;
    let (mut unsent, mut agents) = (0, Vec::new());
    let (mut clients, mut server, mut dataset) = (Vec::<Client>::new(), None, None);
    for ((ending, handed), records) in endings.into_iter().zip(handed).zip(counted) {
        let rank = ending.who.rank;
        let since = |at: Nanos| at.since(start).as_secs_f64();
        let lost = match &ending.outcome {
            Outcome::Finished(_) => None,
            Outcome::Lost { from, why } => Some((since(*from), why.clone())),
            Outcome::Unfinished => Some((0.0, "it had not finished".to_owned())),
        };
        let lost = lost.map(|(from_s, why)| {
            let slice = Slice { index: rank, of: size };
            let unknown = planned(plan, slice, trace).map(|all| all.saturating_sub(records));
            Lost { from_s, why, unknown }
        });
        let part = handed.map(|handed| handed.part).unwrap_or_default();
        unsent += part.unsent;
        clients.extend(part.client.clone());
        server = server.or(part.server);
        dataset = dataset.or(part.dataset);
        let micros = |bound: Nanos| bound.0 as f64 / 1e3;
        agents.push(Agent {
            rank,
            host: ending.who.host.clone().unwrap_or_else(|| "an unknown machine".to_owned()),
            records,
            clock_bound_us: ending.at_start.map(|estimate| micros(estimate.bound)),
            clock_moved: (ending.moves.first())
                .map(|moved| Moved { from_s: since(moved.from), by_ms: moved.by as f64 / 1e6 }),
            lost,
            merged: false,
            error: part.error,
            client: part.client,
        });
    }
    let failed = (agents.iter()).find_map(|agent| {
        let why = agent.error.as_ref()?;
        Some(RunError::Agent(format!("{}: {why}", agent.name())))
    });
    Ok(Measurements {
        records: Some(records),
        unsent,
        client: Client::worst(clients),
        server,
        dataset,
        fleet: Some(Fleet { agents }),
        ended: failed.map_or(Ok(()), Err),
    })
}

/// The part that an agent handed over, if it finished.
fn handed_over(ending: &Ending) -> Option<AgentPart> {
    match &ending.outcome {
        Outcome::Finished(value) => serde_json::from_value(value.clone()).ok(),
        Outcome::Lost { .. } | Outcome::Unfinished => None,
    }
}

/// Computes the lead of an agent's clock: exactly by its start instant, so that its due times are
/// the plan's to the nanosecond. Without that instant, by the estimate at the start.
fn ahead(ending: &Ending, part: Option<&AgentPart>, start: Nanos) -> i128 {
    let instant = part.map(|part| part.start).filter(|at| *at > Nanos::ZERO);
    match (instant, &ending.at_start) {
        (Some(at), _) => i128::from(at.0) - i128::from(start.0),
        (None, Some(estimate)) => i128::from(estimate.offset),
        (None, None) => 0,
    }
}

/// The number of requests of a slice, if the plan has it; dependent requests are not counted.
fn planned(plan: &Plan, slice: Slice, trace: &Trace) -> Option<u64> {
    let plan = Plan { slice: Some(slice), ..plan.clone() };
    match plan.load.amount {
        Amount::Requests(_) => plan.held_requests(),
        Amount::Sessions(_) => None,
        Amount::Duration(duration) => {
            let rate = plan.load.arrival.rate()?;
            (plan.load.arrival.is_open() && rate.is_finite()).then(|| {
                let due = plan.due_times(trace);
                due.take_while(|due| matches!(due, Due::At(at) if *at < duration)).count() as u64
            })
        }
    }
}
