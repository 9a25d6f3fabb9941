//! Exchanges for tests, written by hand or made up by a generator. The tests of `report` and
//! `session` include this file too.

#![allow(dead_code, reason = "each crate needs a part of it")]

use proptest::prelude::*;

use model::exchange::{Class, Event, Exchange, Kind, Outcome, Prepared, Reply, SampleFacts, Usage};
use model::units::Nanos;
use result::summary::{Run, RunFacts};

pub(crate) fn ms(milliseconds: u64) -> Nanos {
    Nanos(milliseconds * 1_000_000)
}

/// A streamed run of no particular arrival that began at 1 s.
pub(crate) fn facts() -> RunFacts {
    RunFacts::from(Run {
        backend: "openai".into(),
        arrival: "all at once".into(),
        streamed: true,
        percentiles: vec![90.0, 99.0],
        measure_start: Some(ms(1000)),
        ..Run::default()
    })
}

/// An exchange due and sent at `sent` ms whose reply consists of `events`:
/// `(ms, kind, tokens, bytes)`.
pub(crate) fn reply(index: u64, sent: u64, events: &[(u64, Kind, Option<u32>, u32)]) -> Exchange {
    let sample = SampleFacts {
        id: format!("s{index}"),
        request_bytes: 100,
        request_digest: "0123456789abcdef".into(),
        ..SampleFacts::default()
    };
    let mut open = Prepared::new(index, sample).due(ms(sent), None).open();
    let mut reply = Reply { output: "x".into(), ..Reply::default() };
    for &(at, kind, tokens, bytes) in events {
        reply.events.push(Event { at: ms(at), kind, tokens, bytes });
    }
    (open.sent, open.written, open.status) = (Some(ms(sent)), Some(ms(sent)), Some(200));
    open.first_byte = reply.events.at.first().copied();
    open.headers = open.first_byte;
    open.ended = reply.events.at.last().copied();
    open.finish(reply, Outcome::Ok)
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
