//! Exchanges for tests, written by hand or made up by a generator. The tests of `report` and
//! `session` include this file too.

#![allow(dead_code, reason = "each crate needs a part of it")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use model::exchange::{Class, Event, Events, Exchange, Kind, Outcome, Phase, SampleFacts, Usage};
use model::units::Nanos;
use result::summary::{Loop, Run, RunFacts};

pub(crate) fn ms(milliseconds: u64) -> Nanos {
    Nanos(milliseconds * 1_000_000)
}

/// A streamed run of no particular arrival that began at 1 s.
pub(crate) fn facts() -> RunFacts {
    RunFacts::from(Run {
        backend: "openai".into(),
        arrival: "all at once".into(),
        r#loop: Loop::Open,
        request_rate: None,
        even_rate: false,
        max_in_flight: None,
        planned: None,
        warmup_wave: None,
        streamed: true,
        ignore_eos: false,
        unforced: false,
        context_tokens: None,
        percentiles: vec![90.0, 99.0],
        failures_as_infinite: false,
        time_slice: None,
        measure_start: Some(ms(1000)),
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

/// An exchange due and sent at `sent` ms whose reply consists of `events`:
/// `(ms, kind, tokens, bytes)`.
pub(crate) fn reply(index: u64, sent: u64, events: &[(u64, Kind, Option<u32>, u32)]) -> Exchange {
    let mut columns = Events::default();
    for &(at, kind, tokens, bytes) in events {
        columns.push(Event { at: ms(at), kind, tokens, bytes });
    }
    Exchange {
        index,
        phase: Phase::Measure,
        sample: SampleFacts {
            id: format!("s{index}"),
            input_tokens: None,
            audio_duration: None,
            recorded_duration: None,
            output_tokens: None,
            reference: None,
            turn: None,
            class: None,
            parents: Vec::new(),
            descendants: 0,
            history: None,
            adapter: None,
            request_bytes: 100,
            prompt_end: None,
            request_digest: "0123456789abcdef".into(),
        },
        due: ms(sent),
        released: None,
        granted: None,
        target: 0,
        connection: None,
        sent: Some(ms(sent)),
        written: Some(ms(sent)),
        first_byte: columns.at.first().copied(),
        headers: columns.at.first().copied(),
        status: Some(200),
        input_sent: None,
        read_lag: None,
        ended: columns.at.last().copied(),
        steps: Vec::new(),
        events: columns,
        output: "x".into(),
        reasoning: String::new(),
        tool_calls: String::new(),
        choices: Vec::new(),
        vectors: None,
        order: Vec::new(),
        finish: None,
        usage: None,
        timings: None,
        speculation: None,
        audio_duration: None,
        counts: BTreeMap::new(),
        ids: None,
        outcome: Outcome::Ok,
    }
}

pub(crate) fn output_usage(tokens: u32) -> Option<Usage> {
    Some(Usage { output_tokens: Some(tokens), ..Usage::default() })
}

pub(crate) fn failed(mut exchange: Exchange, class: Class, message: &str) -> Exchange {
    exchange.outcome = Outcome::Incomplete { class, reason: None, message: message.into() };
    exchange
}

const CLASSES: [Class; 6] = [
    Class::Refused,
    Class::HttpStatus,
    Class::Truncated,
    Class::TokenGapTimeout,
    Class::Short,
    Class::Cancelled,
];

const KINDS: [Kind; 4] = [Kind::Text, Kind::Reasoning, Kind::Tool, Kind::Role];

/// Any exchange of that index: answered or not, with or without counts.
pub(crate) fn any_exchange(index: u64) -> impl Strategy<Value = Exchange> {
    let event = (0u64..2_000_000_000, 0..KINDS.len(), any::<Option<u8>>(), 0u32..9);
    let counts = any::<[Option<u16>; 4]>();
    let times = (1u64..5_000_000_000, 0u64..50_000_000, any::<bool>());
    let ends = (any::<bool>(), proptest::option::weighted(0.2, (0..CLASSES.len(), 0u8..5)));
    (prop::collection::vec(event, 1..12), counts, times, ends).prop_map(
        move |(
            events,
            [input, output, dataset, requested],
            (due, wait, capped),
            (length, failure),
        )| {
            let mut exchange = reply(index, 0, &[]);
            exchange.due = Nanos(1_000_000_000 + due);
            exchange.granted = capped.then_some(exchange.due + Nanos(wait / 2));
            let sent = exchange.due + Nanos(wait);
            exchange.sent = Some(sent);
            let mut at = sent;
            for (gap, kind, tokens, bytes) in events {
                at = at + Nanos(gap);
                let (kind, tokens) = (KINDS[kind], tokens.map(u32::from));
                exchange.events.push(Event { at, kind, tokens, bytes });
            }
            exchange.events.push(Event { at, kind: Kind::End, tokens: None, bytes: 0 });
            exchange.ended = Some(at);
            exchange.usage = Some(Usage {
                input_tokens: input.map(u32::from),
                output_tokens: output.map(u32::from),
                ..Usage::default()
            });
            exchange.sample.input_tokens = dataset.map(u32::from);
            exchange.sample.output_tokens = requested.map(u32::from);
            exchange.finish = length.then(|| "length".into());
            match failure {
                Some((class, text)) => failed(exchange, CLASSES[class], &format!("message {text}")),
                None => exchange,
            }
        },
    )
}

/// Any run of up to 40 exchanges.
pub(crate) fn any_run() -> impl Strategy<Value = Vec<Exchange>> {
    (0u64..40).prop_flat_map(|n| (0..n).map(any_exchange).collect::<Vec<_>>())
}
