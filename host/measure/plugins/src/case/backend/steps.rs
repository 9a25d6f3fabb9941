//! Exchanges of several requests: each reply is read in every way, and leads to the next.

use super::super::given::{Ask, Reply};
use super::super::{Observations, format};
use super::{explain, is_endless, misnamed, read};
use crate::backend::{Backend, Head, Meaning, Step};
use model::frame::Framing;

/// Reads the replies of a case, from the first request on.
pub(super) fn ask(plugin: &Backend, first: Step, ask: &Ask, seen: &mut Observations) {
    let mut step = Some(first);
    let mut entries = Vec::new();
    let numbered = (1..).zip(&ask.steps).map(|(number, reply)| (reply, Some(number)));
    for (reply, number) in ask.reply.iter().map(|reply| (reply, None)).chain(numbered) {
        let Reply { status, ending, body } = reply;
        let name = number.map_or("reply".to_owned(), |number: usize| format!("reply.{number}"));
        let Some(request) = step.take() else {
            let what = format!("{name} is there, but the reply before it leads to no next request");
            return seen.misfit(what);
        };
        let dialect = match plugin.open() {
            Ok(dialect) => dialect,
            Err(error) => return seen.misbehaved("opening it once more", &error),
        };
        let is_success = reply.is_success();
        if !is_success && !request.accepted.contains(status) {
            explain(plugin, dialect, *status, body, seen);
            continue;
        }
        let framing = Framing::from(request.framing);
        if let Some(what) = misnamed(framing, &name, ending) {
            return seen.misfit(what);
        }
        let is_first = number.is_none_or(|number| number == 1);
        let head = Head {
            status: if is_first && is_success { ask.head.status } else { *status },
            headers: if is_first { ask.head.headers.clone() } else { Vec::new() },
            streaming: ask.head.streaming,
            context: request.context,
        };
        let step_of = ((framing.into(), true), &head);
        let Some(reading) = read(plugin, dialect, step_of, body, seen) else { return };
        seen.endless = is_endless(framing, &reading);
        let by_frame = framing != Framing::Raw;
        entries.extend(format::entries(&reading.events, by_frame, number));
        let mut named = reading.events.into_iter().filter_map(|(_, meaning)| match meaning {
            Meaning::Next(next) => Some(next),
            _ => None,
        });
        step = named.next();
        if named.next().is_some() {
            seen.breach(format!(
                "the reply in {name} names two `next` requests; a reply has at most one"
            ));
        }
        seen.endless &= step.is_none();
        if let Some(error) = reading.error {
            seen.found("error.txt", error);
        }
    }
    if !entries.is_empty() {
        seen.found("events.json", format::list(entries.into_iter()));
    }
}
