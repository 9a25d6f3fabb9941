//! The client's exchanges of the requests that an engine served.

use std::collections::BTreeMap;

use model::exchange::{Event, Events, Exchange, Kind, Outcome, Phase, SampleFacts, Usage};
use model::units::Nanos;

use crate::Served;

/// Tokens of an answer beyond which several come in an event.
const EACH: usize = 300;

/// The exchanges of these requests, with token counts from the server. Each event has a token. In a
/// long answer the events after the first token have several, which keeps many runs small.
pub fn exchanges(served: &[Served]) -> Vec<Exchange> {
    (0..).zip(served).map(|(index, own)| exchange(index, own)).collect()
}

/// Delays every instant by a number of seconds: a function of the instant and of the run's length,
/// both in seconds. It spoils a healthy run.
pub fn delay(exchanges: &mut [Exchange], by: impl Fn(f64, f64) -> f64) {
    let end = exchanges.iter().filter_map(|own| own.ended).max();
    let length = end.unwrap_or(Nanos(1)).as_secs_f64();
    let later = |at: &mut Nanos| {
        let seconds = at.as_secs_f64();
        *at = Nanos::from_secs_f64(seconds + by(seconds, length));
    };
    for own in exchanges {
        later(&mut own.due);
        let instants = [
            &mut own.sent,
            &mut own.written,
            &mut own.first_byte,
            &mut own.headers,
            &mut own.ended,
        ];
        instants.into_iter().flatten().for_each(later);
        own.events.at.iter_mut().for_each(later);
    }
}

fn exchange(index: u64, served: &Served) -> Exchange {
    let mut events = Events::default();
    // The first token comes alone, and each further event when its last token does.
    let several = served.tokens.len().div_ceil(EACH).max(1);
    let (first, further) = served.tokens.split_at(served.tokens.len().min(1));
    let tokens = first.chunks(1).chain(further.chunks(several));
    let tokens = tokens.filter_map(|tokens| {
        let bytes = 4 * u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        Some((*tokens.last()?, Kind::Text, bytes))
    });
    let ended = served.tokens.last().copied();
    for (at, kind, bytes) in tokens.chain(ended.map(|at| (at, Kind::End, 0))) {
        events.push(Event { at, kind, tokens: None, bytes });
    }
    let first: Option<Nanos> = served.tokens.first().copied();
    Exchange {
        index,
        phase: Phase::Measure,
        sample: SampleFacts {
            id: format!("s{index}"),
            input_tokens: Some(served.work.prompt_tokens),
            audio_duration: None,
            recorded_duration: None,
            output_tokens: Some(served.work.output_tokens),
            reference: None,
            turn: None,
            class: None,
            parents: Vec::new(),
            descendants: 0,
            history: None,
            adapter: None,
            request_bytes: u64::from(served.work.prompt_tokens) * 4,
            prompt_end: None,
            request_digest: format!("{index:016x}"),
        },
        due: served.sent,
        released: None,
        granted: None,
        target: 0,
        connection: None,
        sent: Some(served.sent),
        written: Some(served.sent),
        first_byte: first,
        headers: first,
        status: Some(200),
        input_sent: None,
        read_lag: None,
        events,
        ended,
        steps: Vec::new(),
        output: "x".into(),
        reasoning: String::new(),
        tool_calls: String::new(),
        choices: Vec::new(),
        vectors: None,
        order: Vec::new(),
        finish: None,
        usage: Some(Usage {
            input_tokens: Some(served.work.prompt_tokens),
            output_tokens: Some(served.work.output_tokens),
            ..Usage::default()
        }),
        timings: None,
        speculation: None,
        audio_duration: None,
        counts: BTreeMap::new(),
        ids: None,
        outcome: Outcome::Ok,
    }
}
