//! From the requests of a trace to a graph. Traces do not state continuations, so the messages
//! decide: a request continues another if its prompt begins with the other's prompt and answer.
//!
//! A request that continues another waits for it, and for conversations that ran wholly between the
//! two, such as conversations of sub-agents. A request that begins a conversation waits for the
//! last conversation that ended before it. Its delay is the time since the last of its
//! dependencies, such as the time that a tool took.

use std::collections::BTreeMap;

use runner_plugin::report::Remarks;
use runner_plugin::requests::fingerprint;
use runner_plugin::{Message, Point, Role};

use crate::attributes::Span;
use crate::config::Config;
use crate::graph::{After, Graph, Request};

/// The request that another request continues.
#[derive(Clone, Copy, Debug)]
struct Parent {
    span: usize,
    /// Number of messages of the prompt that are the parent's, with its answer.
    messages: usize,
}

/// A conversation: requests, each the continuation of the previous one.
#[derive(Clone, Copy, Debug)]
struct Chain {
    start: u64,
    end: u64,
    last: usize,
    /// True if a request already waits for it.
    joined: bool,
}

/// Builds the graph of a trace, whose spans are in the order of their beginnings.
pub(crate) fn graph(
    name: &str,
    mut spans: Vec<Span>,
    arrival: Option<u64>,
    config: &Config,
    remarks: &mut Remarks,
) -> Result<Graph, String> {
    let parents = parents(&mut spans);
    let (of_span, mut chains) = chains(&spans, &parents);
    let mut graph = Graph::default();
    let ends: Vec<u64> = spans.iter().map(ended).collect();
    // After a request without an end, the next request's wait is unknown.
    let known: Vec<bool> = spans.iter().map(|span| span.end.is_some()).collect();
    for (index, span) in spans.into_iter().enumerate() {
        let chain = of_span[index];
        let mut before = Vec::new();
        if let Some(parent) = parents[index] {
            before.push(parent.span);
            let between = ends[parent.span]..=span.start;
            for (other, each) in chains.iter_mut().enumerate() {
                let within = between.contains(&each.start) && between.contains(&each.end);
                if other != chain && within && !each.joined && each.last < index {
                    each.joined = true;
                    before.push(each.last);
                }
            }
        } else {
            let ended = (0..index).filter(|other| ends[*other] <= span.start);
            before.extend(ended.max_by_key(|other| (ends[*other], *other)));
        }
        let last = before.iter().copied().max_by_key(|other| ends[*other]);
        let mut after: Vec<After> = before
            .iter()
            .map(|other| {
                let waited = if Some(*other) == last && known[*other] {
                    span.start - ends[*other]
                } else {
                    0
                };
                After::end(*other, config.delay(waited))
            })
            .collect();
        if after.is_empty() && index > 0 {
            after.push(After { request: 0, point: Point::FirstOutput, delay: 0 });
            let reason = "a request that began before any other of its trace had ended; it now starts with the \
                          first request's first output";
            remarks.repaired(reason, || format!("request {} of `{name}`", index + 1));
        }
        let mut messages = span.input.unwrap_or_default();
        if let Some(parent) = parents[index] {
            messages.drain(..parent.messages);
        }
        graph.push(Request {
            conversation: match chain {
                0 => name.to_owned(),
                _ => format!("{name}:{chain}"),
            },
            parent: parents[index].map(|parent| parent.span),
            messages,
            after,
            answer: span.output,
            output_tokens: span.output_tokens,
            class: if chain == 0 { "main" } else { "sub-agent" },
            parameters: span.parameters,
            arrival: arrival.filter(|_| index == 0),
        })?;
    }
    Ok(graph)
}

/// Returns the time when a request ended; without a record, when it began.
fn ended(span: &Span) -> u64 {
    span.end.unwrap_or(span.start)
}

/// Finds the continued requests. A prompt that continues an unrecorded answer gives the answer.
fn parents(spans: &mut [Span]) -> Vec<Option<Parent>> {
    // Requests by the fingerprint of the beginning that a continuing prompt has.
    let mut answered: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut unanswered: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut parents = Vec::with_capacity(spans.len());
    for index in 0..spans.len() {
        let start = spans[index].start;
        let input = spans[index].input.clone().unwrap_or_default();
        let mut prefixes = vec![0];
        for message in &input {
            prefixes.push(after(prefixes[prefixes.len() - 1], message));
        }
        let asks = |at: usize| {
            let rest = input.get(at..).unwrap_or_default();
            rest.last().is_some_and(|last| matches!(last.role, Role::User | Role::Tool))
        };
        let earlier = |known: &BTreeMap<u64, Vec<usize>>, key: u64| {
            let known = known.get(&key).into_iter().flatten().copied();
            known
                .filter(|other| ended(&spans[*other]) <= start)
                .max_by_key(|other| (ended(&spans[*other]), *other))
        };
        let found = (1..input.len()).rev().filter(|at| asks(*at)).find_map(|at| {
            let span = earlier(&answered, prefixes[at]);
            let guessed = || {
                let answer = input[at - 1].role == Role::Assistant;
                answer.then(|| earlier(&unanswered, prefixes[at - 1]))?
            };
            span.or_else(guessed).map(|span| Parent { span, messages: at })
        });
        if let Some(parent) = found {
            let answer = &mut spans[parent.span].output;
            if answer.is_none() {
                *answer = Some(input[parent.messages - 1].clone());
            }
        }
        parents.push(found);
        if !input.is_empty() {
            let whole = prefixes[input.len()];
            match &spans[index].output {
                Some(answer) => answered.entry(after(whole, answer)),
                None => unanswered.entry(whole),
            }
            .or_default()
            .push(index);
        }
    }
    parents
}

/// The conversation of each request, and all conversations by their beginnings. Of requests that
/// continue the same one, the first continues its conversation, and the others fork.
fn chains(spans: &[Span], parents: &[Option<Parent>]) -> (Vec<usize>, Vec<Chain>) {
    let mut chains: Vec<Chain> = Vec::new();
    let mut of_span: Vec<usize> = Vec::with_capacity(spans.len());
    for (index, (span, parent)) in spans.iter().zip(parents).enumerate() {
        let continued = parent.map(|parent| of_span[parent.span]);
        let continued = continued.filter(|chain| {
            let last = chains[*chain].last;
            parent.is_some_and(|parent| parent.span == last)
        });
        let chain = continued.unwrap_or(chains.len());
        match continued {
            Some(chain) => {
                chains[chain].end = ended(span);
                chains[chain].last = index;
            }
            None => chains.push(Chain {
                start: span.start,
                end: ended(span),
                last: index,
                joined: false,
            }),
        }
        of_span.push(chain);
    }
    (of_span, chains)
}

/// The fingerprint of messages with that fingerprint and one more.
fn after(before: u64, message: &Message) -> u64 {
    fingerprint((before, format!("{message:?}")))
}
