//! A run's records.

use model::exchange::Exchange;
use model::units::Nanos;
use report::csv;
use result::summary::{Run, RunFacts, Summary};
use runs::record;

/// Records as lines: skipped, or read back as they were written, then summarised and listed.
pub fn records(data: &[u8]) {
    let exchanges: Vec<Exchange> = record::in_lines(data).collect();
    let Some(first) = exchanges.first() else { return };
    let written = serde_json::to_vec(first).expect("an exchange is JSON");
    let again: Exchange = serde_json::from_slice(&written).expect("it reads back");
    assert_eq!(*first, again);
    let facts = facts(data.len().is_multiple_of(2));
    let summary = Summary::new(&facts, &exchanges);
    let written = serde_json::to_vec(&summary).expect("a summary is JSON");
    let again: Summary = serde_json::from_slice(&written).expect("it reads back");
    assert_eq!(serde_json::to_vec(&again).expect("as before"), written);
    csv::csv(&mut std::io::sink(), &facts, &exchanges).expect("nothing fails to be written");
}

/// A run of no particular arrival.
fn facts(streamed: bool) -> RunFacts {
    RunFacts::from(Run {
        backend: "openai".into(),
        arrival: "all at once".into(),
        streamed,
        percentiles: vec![90.0, 99.0],
        measure_start: Some(Nanos(0)),
        ..Run::default()
    })
}
