//! A run's records.

use model::exchange::Exchange;
use model::units::Nanos;
use report::csv;
use result::summary::{Loop, Run, RunFacts, Summary};
use runs::record;

/// Records, as lines: each is passed over, or read, and reads back as it was written. The records
/// that were read are summarised and listed.
pub fn records(data: &[u8]) {
    let exchanges: Vec<Exchange> = record::in_lines(data).collect();
    let Some(first) = exchanges.first() else {
        return;
    };
    let written = serde_json::to_vec(first).expect("an exchange is JSON");
    let again: Exchange = serde_json::from_slice(&written).expect("it reads back");
    assert_eq!(*first, again);
    let facts = facts(data.len().is_multiple_of(2));
    let summary = Summary::of(&facts, &exchanges);
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
        r#loop: Loop::Open,
        request_rate: None,
        even_rate: false,
        max_in_flight: None,
        planned: None,
        warmup_wave: None,
        streamed,
        ignore_eos: false,
        unforced: false,
        context_tokens: None,
        percentiles: vec![90.0, 99.0],
        failures_as_infinite: false,
        time_slice: None,
        measure_start: Some(Nanos(0)),
        first_due: Nanos::ZERO,
        goodput: Vec::new(),
        thresholds: Vec::new(),
        tokenizer: None,
        insecure: false,
        plugins: Vec::new(),
        sandbox: None,
        interrupted: false,
        recorded_histories: false,
        ignored_options: Vec::new(),
        damage: None,
        series_damage: None,
        cost: None,
    })
}
