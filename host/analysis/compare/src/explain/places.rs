//! The places of a difference of TTFT: between the client and its first token, by the servers' own
//! timings. The parts of a difference say why two figures differ, the places say where.

use schemars::JsonSchema;
use serde::Serialize;

use super::account::Account;
use result::summary::first_token::{Part, Parts, UNEXPLAINED};

/// A place where time passes until the first token. On each side, the places of a figure add up to
/// it. Their differences add up to its difference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Place {
    /// The part of the time to first token: `queue`, `prefill`, or `unexplained`.
    pub place: String,
    /// A's mean time there, in milliseconds.
    pub a: f64,
    /// B's.
    pub b: f64,
    /// B's less A's.
    pub difference: f64,
}

/// The parts that pass after sending, one by one.
const APART: [Part; 4] = [Part::Network, Part::FrontEnd, Part::Queue, Part::Prefill];

/// The same, where a side's server does not tell the network from its front end.
const TOGETHER: [Part; 3] = [Part::NetworkAndFrontEnd, Part::Queue, Part::Prefill];

/// A time that rounding may leave.
const NOTHING_MS: f64 = 0.000_5;

/// The places of a difference of the mean TTFT, which begins with sending; none if the server of a
/// side reports no timings.
pub(super) fn of_mean_ttft(sides: [&Account; 2]) -> Vec<Place> {
    let split = sides.map(|side| Some((side.first_token.as_ref()?, side.value("ttft.mean")?)));
    let [Some((parts_a, a)), Some((parts_b, b))] = split else { return Vec::new() };
    let is_apart = |parts: &Parts| parts.part(Part::NetworkAndFrontEnd).is_none();
    let parts: &[Part] = if is_apart(parts_a) && is_apart(parts_b) { &APART } else { &TOGETHER };
    let mut places = Vec::new();
    let (mut rest_a, mut rest_b) = (a, b);
    for part in parts {
        let (Some(of_a), Some(of_b)) = (time(parts_a, *part), time(parts_b, *part)) else {
            continue;
        };
        (rest_a, rest_b) = (rest_a - of_a, rest_b - of_b);
        places.push(place(part.name(), of_a, of_b));
    }
    // Time that was not split, because only a part of the replies has timings, is unexplained too.
    if !places.is_empty() && rest_a.abs().max(rest_b.abs()) >= NOTHING_MS {
        places.push(place(UNEXPLAINED, rest_a, rest_b));
    }
    places
}

/// The mean time of a part; the sum of network and front end where they count as one.
fn time(parts: &Parts, part: Part) -> Option<f64> {
    let apart = || Some(parts.part(Part::Network)? + parts.part(Part::FrontEnd)?);
    match part {
        Part::NetworkAndFrontEnd => parts.part(part).or_else(apart),
        _ => parts.part(part),
    }
}

fn place(name: &str, a: f64, b: f64) -> Place {
    Place { place: name.to_owned(), a, b, difference: b - a }
}
