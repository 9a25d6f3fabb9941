//! Due times that a dataset sets, read before the run, so that they are equal in each slice.

use super::{BATCH, spares};
use model::arrival::{Arrival, MOST_TIMES};
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::Sample;
use plugins::dataset::{self, Dataset};
use scenario::plan::{Amount, Load};

/// Counts the dataset's samples after the warm-up, for a load without an amount: requests, or
/// sessions if any request depends on another.
pub fn all(load: &Load, dataset: &Dataset) -> Result<Amount, PluginError> {
    let mut samples = dataset.open(load.seed, dataset::Amount::Unknown)?;
    spares(&mut samples, load.warmup_requests(), || false)?;
    let (mut requests, mut sessions) = (0_u64, 0_u64);
    loop {
        let batch = samples.next(BATCH)?;
        if batch.is_empty() {
            break;
        }
        // Without times there is nothing to plan, and no end either where samples are made up.
        if (batch.iter()).any(|sample| sample.after.is_empty() && sample.arrival.is_none()) {
            return Ok(load.amount);
        }
        requests += batch.len() as u64;
        sessions += batch.iter().filter(|sample| sample.after.is_empty()).count() as u64;
        if sessions > MOST_TIMES as u64 {
            return Err(too_many(dataset));
        }
    }
    Ok(match requests {
        // A run that has nothing to send says so itself.
        0 => load.amount,
        _ if requests == sessions => Amount::Requests(requests),
        _ => Amount::Sessions(sessions),
    })
}

fn broken(dataset: &Dataset, what: String) -> PluginError {
    PluginError::Contract { plugin: dataset.plugin().name.clone(), call: "next", what }
}

fn too_many(dataset: &Dataset) -> PluginError {
    let what = format!(
        "it plans more than {MOST_TIMES} arrivals; ask for fewer with `requests` or `duration` in [load]"
    );
    broken(dataset, what)
}

/// Returns when a load's measured samples are due, in order, by one pass with a run's calls.
pub fn arrivals(load: &Load, dataset: &Dataset) -> Result<Vec<Nanos>, PluginError> {
    let mut samples = dataset.open(load.seed, super::amount(load))?;
    spares(&mut samples, load.warmup_requests(), || false)?;
    let wanted = load.roots().unwrap_or(u64::MAX);
    let until = last_due(load);
    let mut arrivals: Vec<Nanos> = Vec::new();
    while (arrivals.len() as u64) < wanted {
        let left = wanted - arrivals.len() as u64;
        let batch = samples.next(u32::try_from(left).unwrap_or(BATCH).min(BATCH))?;
        if batch.is_empty() {
            break;
        }
        // Those that depend on others are due when these have come so far.
        for sample in batch.into_iter().filter(|sample| sample.after.is_empty()) {
            if arrivals.len() as u64 == wanted {
                break;
            }
            let due = due(&sample, arrivals.last().copied());
            let due = due.map_err(|what| broken(dataset, what))?;
            if until.is_some_and(|until| due > until) {
                return Ok(arrivals);
            }
            if arrivals.len() == MOST_TIMES {
                return Err(too_many(dataset));
            }
            arrivals.push(due);
        }
    }
    Ok(arrivals)
}

fn due(sample: &Sample, before: Option<Nanos>) -> Result<Nanos, String> {
    let id = sample.id.escape_debug();
    let Some(due) = sample.arrival.map(Nanos) else {
        return Err(format!(
            "sample `{id}` has no arrival time, but `arrival` = \"dataset\" takes due times from the dataset; choose another `arrival`, or a dataset with due times"
        ));
    };
    match before.filter(|before| due < *before) {
        None => Ok(due),
        Some(before) => Err(format!(
            "sample `{id}` is due after {} s, earlier than the sample before it, which is due after {} s",
            due.as_secs_f64(),
            before.as_secs_f64()
        )),
    }
}

/// The instant of the dataset's own time after which nothing is sent.
fn last_due(load: &Load) -> Option<Nanos> {
    match (&load.arrival, load.amount) {
        (Arrival::Dataset { time_scale, .. }, Amount::Duration(duration)) => {
            Some(Nanos::from_secs_f64(duration.as_secs_f64() * time_scale))
        }
        _ => None,
    }
}
