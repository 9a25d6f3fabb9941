//! The load of a scenario: one number of a curve.

use lab::digest;
use lab::study::OfLoad;
use model::session::Users;
use scenario::{Arrival, Load};
use search::Load as Varied;
use search::sweep::At;
use session::Source;

/// The load of a scenario, if it is one number, and a digest of the other settings.
pub(crate) fn of_load(mut source: Source) -> Option<OfLoad> {
    let load = std::mem::take(&mut source.scenario.load);
    let (kind, at) = size(&load)?;
    // The rest of the load does not depend on its size.
    source.scenario.load = Load {
        arrival: load.arrival.filter(|arrival| arrival.value.has_rate()),
        burstiness: load.burstiness,
        think_time: load.think_time,
        think_spread: load.think_spread,
        cache: load.cache,
        flush_cache: load.flush_cache,
        ..Load::default()
    };
    source.scenario.name = None;
    // Values without their places: scenarios of one curve are separate files.
    let entries = source.scenario.settled().entries().into_iter();
    let settings = entries.map(|entry| format!("{} = {}", entry.path, entry.value));
    let plugins = source.plugins.into_iter().map(|named| named.value);
    let settings: Vec<String> = settings.chain(plugins).collect();
    Some(OfLoad { kind, at, besides: digest(settings.iter().map(String::as_str)) })
}

/// The size of a load, if it is one number: no changing load, and no trace.
fn size(load: &Load) -> Option<(Varied, At)> {
    let changes = load.stages.is_some() || load.ramp.from.is_some() || load.ramp.to.is_some();
    let arrival = load.arrival.as_ref().map(|arrival| arrival.value);
    let follows = load.trace.file.is_some() || load.trace.time_scale.is_some();
    if changes || follows || matches!(arrival, Some(Arrival::Trace | Arrival::Dataset)) {
        return None;
    }
    let sessions = load.users.as_ref().map(|users| users.value) == Some(Users::Sessions);
    match (&load.concurrency, &load.rate) {
        (Some(users), _) if sessions => Some((Varied::Sessions, At::Load(users.value as f64))),
        (Some(users), _) => Some((Varied::Concurrency, At::Load(users.value as f64))),
        (None, Some(rate)) if rate.value.is_finite() => Some((Varied::Rate, At::Load(rate.value))),
        (None, Some(_)) => Some((Varied::Rate, At::Unlimited)),
        (None, None) => None,
    }
}
