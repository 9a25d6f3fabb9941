//! Error rates of findings on the load: false findings, and causes found.

use crate::cases::{
    CHATS, CHUNKS, CONTEXT, FREE, KV, LONG, MANY, MIXED, PREFIXES, SHARED, SLOW_JITTER, THINKING,
    USUAL, bursts, case,
};
use crate::load::{Replies, each, summary_of};
use crate::measured::{Section, cell, exceeds, falls_short, percent};
use model::exchange::Exchange;
use model::units::Nanos;
use result::finding::{Id, Severity};
use simulator::{Case, Load, delay};

/// The findings whose error rates are counted.
const COUNTED: [Id; 8] = [
    Id::Overloaded,
    Id::ColdStart,
    Id::Drift,
    Id::ArrivalsChanged,
    Id::Swing,
    Id::FewLoads,
    Id::LongDrain,
    Id::ShortRun,
];

/// The number of leading findings that chance can make false. The others describe a run.
const FALLIBLE: usize = 5;

#[derive(Clone, Copy)]
enum Target {
    /// At most one in a hundred has each of the findings that can be false.
    Healthy,
    /// At least this share has the finding.
    Found(Id, f64),
    None,
}

impl Target {
    /// True if `part` of `of` runs misses the target of a finding.
    fn is_missed(self, place: usize, part: usize, of: usize) -> bool {
        match self {
            Target::Healthy => place < FALLIBLE && exceeds(part, of, 0.01),
            Target::Found(id, least) => COUNTED[place] == id && falls_short(part, of, least),
            Target::None => false,
        }
    }
}

/// For each counted finding, true if a run has it; and true if it has any that makes it suspect.
type RunFindings = ([bool; COUNTED.len()], bool);

pub fn sections(runs: u64) -> Vec<Section> {
    vec![healthy(runs), overloaded(runs), cold(runs), slowing(runs), late(runs)]
}

/// Counts the runs of a case that have each counted finding, and any that makes a run suspect.
fn row(
    case: &Case,
    runs: u64,
    target: Target,
    spoil: impl Fn(&mut Vec<Exchange>) + Sync,
) -> Vec<String> {
    row_of(case, runs, target, Replies::Streamed, spoil)
}

fn row_of(
    case: &Case,
    runs: u64,
    target: Target,
    replies: Replies,
    spoil: impl Fn(&mut Vec<Exchange>) + Sync,
) -> Vec<String> {
    let found = each(runs, |run| {
        let mut exchanges = case.exchanges(run, run);
        spoil(&mut exchanges);
        let findings = summary_of(case, replies, &exchanges).findings;
        let counted = COUNTED.map(|id| findings.iter().any(|finding| finding.id == id));
        let suspect = findings.iter().any(|finding| finding.severity >= Severity::Suspect);
        (counted, suspect)
    });
    let many = |is: &dyn Fn(&RunFindings) -> bool| found.iter().filter(|own| is(own)).count();
    let mut row = vec![case.name.clone()];
    row.extend((0..COUNTED.len()).map(|place| {
        let part = many(&|(counted, _)| counted[place]);
        cell(percent(part, found.len()), target.is_missed(place, part, found.len()))
    }));
    row.push(percent(many(&|(_, suspect)| *suspect), found.len()));
    row
}

fn heads() -> Vec<String> {
    let mut heads = vec!["case".to_owned()];
    heads.extend(COUNTED.map(|id| format!("`{}`", id.name())));
    heads.push("any doubt".to_owned());
    heads
}

fn healthy(runs: u64) -> Section {
    use Load::{Closed, Open, Rate};
    let mut cases = Vec::new();
    for share in [0.5, 0.7, 0.85, 0.9, 0.95] {
        for requests in [600, 1500, 5000] {
            cases.push(Case::usual(Open(share), requests));
        }
    }
    for (users, requests) in [(32, 600), (32, 1500), (64, 1500)] {
        cases.push(Case::usual(Closed(users), requests));
    }
    for share in [0.7, 0.85, 0.9, 0.95] {
        for requests in [600, 1500] {
            cases.push(case(SHARED, USUAL, Open(share), requests));
        }
    }
    cases.extend([
        case(SHARED, USUAL, Closed(64), 1500),
        case(SHARED, FREE, Rate(50.0), 600),
        case(SHARED, FREE, Rate(50.0), 1500),
        case(SHARED, CONTEXT, Open(0.85), 1500),
        case(SHARED, KV, Open(0.85), 1500),
        case(THINKING, USUAL, Open(0.6), 600),
        case(THINKING, MANY, Open(0.85), 600),
        case(THINKING, FREE, Rate(10.0), 600),
        case(LONG, USUAL, Open(0.85), 600),
        case(LONG, USUAL, Closed(64), 600),
        case(LONG, FREE, Rate(10.0), 600),
        case(LONG, FREE, Rate(20.0), 600),
        case(MIXED, USUAL, Open(0.85), 1500),
        case(MIXED, CHUNKS, Open(0.85), 1500),
        case(PREFIXES, USUAL, Open(0.5), 600),
        case(PREFIXES, USUAL, Open(0.85), 600),
        case(PREFIXES, USUAL, Open(0.85), 1500),
        case(PREFIXES, USUAL, Closed(8), 600),
        case(PREFIXES, USUAL, Closed(32), 600),
        case(PREFIXES, USUAL, Closed(32), 1500),
        case(PREFIXES, CHUNKS, Open(0.7), 1500),
        case(PREFIXES, CHUNKS, Closed(32), 600),
        case(CHATS, USUAL, bursts(0.7), 600),
        case(CHATS, USUAL, bursts(0.7), 1500),
        case(CHATS, USUAL, bursts(0.9), 1500),
        case(CHATS, SLOW_JITTER, Closed(32), 1500),
    ]);
    let rows = cases.iter().map(|case| row(case, runs, Target::Healthy, |_| {}));
    let mut rows: Vec<Vec<String>> = rows.collect();
    for case in [
        case(CHATS, USUAL, Open(0.9), 1500),
        case(SHARED, USUAL, Open(0.9), 1500),
        case(THINKING, FREE, Rate(10.0), 600),
        case(LONG, FREE, Rate(20.0), 600),
    ] {
        rows.push(whole(case, runs, Target::Healthy));
    }
    Section {
        title: "False findings".into(),
        about: format!(
            "The share of {runs} runs of each case with a finding although the engine keeps up and stays as it is. \"Any doubt\" \
             is any finding that makes a run suspect. The target is 1 % at most, of each of the first five findings: the others \
             are notes that describe a run."
        ),
        heads: heads(),
        rows,
        why: "Throughput of users whose answers are all of one length does oscillate: they stay in lockstep, so `swing` is true \
            there."
            .into(),
    }
}

/// The row of a case whose replies are not streamed.
fn whole(case: Case, runs: u64, target: Target) -> Vec<String> {
    let case = Case { name: format!("{}, not streamed", case.name), ..case };
    row_of(&case, runs, target, Replies::Whole, |_| {})
}

fn overloaded(runs: u64) -> Section {
    use Load::Open;
    let found = |least| Target::Found(Id::Overloaded, least);
    let mut rows = Vec::new();
    for share in [1.05, 1.1, 1.2, 1.3, 1.5] {
        for requests in [600, 1500, 5000] {
            let target = if share >= 1.2 && requests >= 1500 { found(0.8) } else { Target::None };
            rows.push(row(&Case::usual(Open(share), requests), runs, target, |_| {}));
        }
    }
    for (case, least) in [
        (case(SHARED, USUAL, Open(1.2), 1500), 0.8),
        (case(SHARED, CONTEXT, Open(1.2), 1500), 0.8),
        (case(SHARED, KV, Open(1.2), 1500), 0.8),
        (case(THINKING, USUAL, Open(1.2), 1500), 0.8),
        (case(THINKING, MANY, Open(1.2), 1500), 0.6),
        (case(LONG, USUAL, Open(1.2), 1500), 0.8),
        (case(MIXED, USUAL, Open(1.2), 1500), 0.8),
        (case(PREFIXES, USUAL, Open(1.2), 1500), 0.8),
        (case(CHATS, USUAL, bursts(1.2), 5000), 0.8),
    ] {
        rows.push(row(&case, runs, found(least), |_| {}));
    }
    for case in [case(CHATS, USUAL, Open(1.2), 1500), case(SHARED, USUAL, Open(1.2), 1500)] {
        rows.push(whole(case, runs, found(0.8)));
    }
    Section {
        title: "Overload that is found".into(),
        about: format!(
            "The share of {runs} runs of each case with a finding when requests come faster than the engine can answer them. The \
             target is that `overloaded` is found in 80 % at 1.2 of capacity with 1,500 requests, and in 60 % where long answers \
             bind 256 slots."
        ),
        heads: heads(),
        rows,
        why: "The growth of a queue is told from chance by its size alone: the less the work of requests varies, and the more \
            requests are sent, the smaller the overload that shows."
            .into(),
    }
}

fn cold(runs: u64) -> Section {
    let mut rows = Vec::new();
    for users in [8, 32, 64] {
        let case = Case {
            name: format!("closed loop, {users} users, first tokens after 40 s, 600 requests"),
            ..Case::usual(Load::Closed(users), 600)
        };
        let target = Target::Found(Id::ColdStart, 1.0);
        rows.push(row(&case, runs, target, |exchanges| {
            delay(exchanges, |at, _| if at > 0.0 { 40.0 } else { 0.0 });
        }));
    }
    for (workload, load) in [
        (CHATS, Load::Closed(32)),
        (CHATS, Load::Open(0.5)),
        (SHARED, Load::Closed(64)),
        (PREFIXES, Load::Closed(32)),
    ] {
        for (share, part) in [(0.5, 0.05), (0.5, 0.2), (1.0, 0.05), (1.0, 0.1)] {
            let usual = case(workload, USUAL, load, 1500);
            let case = Case {
                name: format!(
                    "{}, steps {:.0} % longer for {:.0} %",
                    usual.name,
                    100.0 * share,
                    100.0 * part
                ),
                ..usual
            };
            let target = match load {
                Load::Closed(_) if part >= 0.1 => Target::Found(Id::ColdStart, 0.9),
                _ => Target::None,
            };
            rows.push(row(&case, runs, target, |exchanges| {
                delay(exchanges, |at, length| share * at.min(part * length));
            }));
        }
    }
    Section {
        title: "Cold starts that are found".into(),
        about: format!(
            "The share of {runs} runs of each case with a finding when the engine stands still for 40 s in the beginning, or takes \
             longer steps for a part of the run. The target is that `cold-start` is found always where the engine stands still, \
             and in 90 % where the steps of a closed loop are longer for a tenth of the run at least."
        ),
        heads: heads(),
        rows,
        why: String::new(),
    }
}

fn slowing(runs: u64) -> Section {
    let mut rows = Vec::new();
    for share in [0.1, 0.2, 0.3, 0.5] {
        for requests in [1500, 5000] {
            let case = Case {
                name: format!(
                    "closed loop, {:.0} % slower at the end, {requests} requests",
                    100.0 * share
                ),
                ..Case::usual(Load::Closed(32), requests)
            };
            let target = if share >= 0.2 { Target::Found(Id::Drift, 0.9) } else { Target::None };
            rows.push(row(&case, runs, target, |exchanges| slow(exchanges, share)));
        }
    }
    for share in [0.2, 0.3, 0.5] {
        let case = Case {
            name: format!(
                "closed loop, {:.0} % slower from the middle on, 1500 requests",
                100.0 * share
            ),
            ..Case::usual(Load::Closed(32), 1500)
        };
        rows.push(row(&case, runs, Target::None, |exchanges| {
            step(exchanges, share);
        }));
    }
    for load in [0.5, 0.7] {
        for slowing in [0.2, 0.5] {
            for requests in [1500, 5000] {
                let usual = Case::usual(Load::Open(load), requests);
                let case = Case {
                    name: format!("{}, {:.0} % slower at the end", usual.name, 100.0 * slowing),
                    slowing,
                    ..usual
                };
                rows.push(row(&case, runs, Target::None, |_| {}));
            }
        }
    }
    Section {
        title: "Drift that is found".into(),
        about: format!(
            "The share of {runs} runs of each case with a finding when the engine slows down, evenly from the first request to \
             the last or at once in the middle. In closed loops of 32 users the target is that an engine which is 20 % slower at \
             the end is found in 90 %. Open loops have none: figures that come and go with the load hide a change of the engine, \
             and a run that is slower may be too short for its answers."
        ),
        heads: heads(),
        rows,
        why: "A change is told from chance by the slices of the steady window.".into(),
    }
}

fn late(runs: u64) -> Section {
    let mut rows = Vec::new();
    for milliseconds in [5, 20, 50, 100, 200, 500] {
        for requests in [600, 1500] {
            let case = Case {
                name: format!("requests leave every {milliseconds} ms, {requests} requests"),
                ..Case::usual(Load::Open(0.7), requests)
            };
            rows.push(row(&case, runs, Target::None, |exchanges| {
                bunch(exchanges, milliseconds);
            }));
        }
    }
    Section {
        title: "Changed arrivals that are found".into(),
        about: format!(
            "The share of {runs} runs of each case with a finding when the client sends due requests only at every full tick of \
             its own, in an open loop at 0.7 of capacity, or 11 requests per second."
        ),
        heads: heads(),
        rows,
        why: String::new(),
    }
}

/// Lets requests leave only at full ticks of this many ms. The engine's reaction is left out.
fn bunch(exchanges: &mut [Exchange], milliseconds: u64) {
    let tick = milliseconds * 1_000_000;
    for own in exchanges {
        let sent = Nanos(own.due.0.div_ceil(tick) * tick);
        (own.sent, own.written) = (Some(sent), Some(sent));
        own.events.at.iter_mut().for_each(|at| *at = (*at).max(sent));
        own.first_byte = own.events.at.first().copied();
        own.headers = own.first_byte;
        own.ended = own.events.at.last().copied();
    }
}

/// Slows a busy engine down evenly: the work of a second takes that much longer at the end.
fn slow(exchanges: &mut [Exchange], share: f64) {
    delay(exchanges, |seconds, length| share * seconds * seconds / (2.0 * length));
}

/// Makes an engine that is always busy slow down once, in the middle.
fn step(exchanges: &mut [Exchange], share: f64) {
    delay(exchanges, |seconds, length| share * (seconds - length / 2.0).max(0.0));
}
