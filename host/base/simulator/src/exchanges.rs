//! The client's exchanges of the requests that an engine served.

use model::exchange::{Event, Exchange, Kind, Outcome, Prepared, Reply, SampleFacts, Usage};
use model::units::Nanos;

use crate::ServedRequest;

/// Tokens of an answer beyond which several come in an event.
const EACH: usize = 300;

/// The exchanges of these requests, with token counts from the server. Each event has a token. In a
/// long answer the events after the first token have several, which keeps many runs small.
pub fn exchanges(served: &[ServedRequest]) -> Vec<Exchange> {
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

fn exchange(index: u64, served: &ServedRequest) -> Exchange {
    let sample = SampleFacts {
        id: format!("s{index}"),
        input_tokens: Some(served.work.prompt_tokens),
        output_tokens: Some(served.work.output_tokens),
        request_bytes: u64::from(served.work.prompt_tokens) * 4,
        request_digest: format!("{index:016x}"),
        ..SampleFacts::default()
    };
    let mut open = Prepared::new(index, sample).due(served.sent, None).open();
    (open.sent, open.written, open.status) = (Some(served.sent), Some(served.sent), Some(200));
    open.first_byte = served.tokens.first().copied();
    open.headers = open.first_byte;
    open.ended = served.tokens.last().copied();
    let usage = Usage {
        input_tokens: Some(served.work.prompt_tokens),
        output_tokens: Some(served.work.output_tokens),
        ..Usage::default()
    };
    let mut reply = Reply { output: "x".into(), usage: Some(usage), ..Reply::default() };
    // The first token comes alone, and each further event when its last token does.
    let several = served.tokens.len().div_ceil(EACH).max(1);
    let (first, further) = served.tokens.split_at(served.tokens.len().min(1));
    let tokens = first.chunks(1).chain(further.chunks(several));
    let tokens = tokens.filter_map(|tokens| {
        let bytes = 4 * u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        Some((*tokens.last()?, Kind::Text, bytes))
    });
    for (at, kind, bytes) in tokens.chain(open.ended.map(|at| (at, Kind::End, 0))) {
        reply.events.push(Event { at, kind, tokens: None, bytes });
    }
    open.finish(reply, Outcome::Ok)
}
