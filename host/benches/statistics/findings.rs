//! How often findings on the load are false, and how often they find what they are for.

use crate::load::{each, summary};
use crate::table::{Section, misses, percent, remarks};
use model::exchange::Exchange;
use model::units::Nanos;
use result::finding::{Id, Severity};
use simulator::{CHAT, Case, Load, Parameters};

/// The findings whose error rates are counted.
const COUNTED: [Id; 7] = [
    Id::Overloaded,
    Id::Drift,
    Id::ArrivalsChanged,
    Id::Swing,
    Id::FewLoads,
    Id::LongDrain,
    Id::ShortRun,
];

/// Of these, the ones that can be false: a rule decides them by chance. The others state what a run is like.
const FALLIBLE: usize = 4;

/// Whether a run has each of the counted findings, and any that makes it suspect.
type Found = ([bool; COUNTED.len()], bool);

pub fn sections(runs: u64) -> Vec<Section> {
    vec![healthy(runs), overloaded(runs), slowing(runs), late(runs)]
}

/// How many of a case's runs have each of the counted findings, and any that makes a run suspect; and the findings that
/// more than one in a hundred has.
fn row(
    case: &Case,
    runs: u64,
    spoil: impl Fn(&mut Vec<Exchange>) + Sync,
) -> (Vec<String>, Vec<String>) {
    let found = each(runs, |run| {
        let mut exchanges = case.exchanges(run, run);
        spoil(&mut exchanges);
        let findings = summary(case, &exchanges).findings;
        let counted = COUNTED.map(|id| findings.iter().any(|finding| finding.id == id));
        let suspect = findings
            .iter()
            .any(|finding| finding.severity >= Severity::Suspect);
        (counted, suspect)
    });
    let share = |is: &dyn Fn(&Found) -> bool| {
        percent(found.iter().filter(|own| is(own)).count(), found.len())
    };
    let mut row = vec![case.name.clone()];
    row.extend((0..COUNTED.len()).map(|place| share(&|(counted, _)| counted[place])));
    row.push(share(&|(_, suspect)| *suspect));
    let often = (0..FALLIBLE).filter(|place| {
        let many = found.iter().filter(|(counted, _)| counted[*place]);
        many.count() * 100 > found.len()
    });
    let often = often.map(|place| {
        let name = COUNTED[place].name();
        format!("`{name}` of {} ({})", case.name, row[place + 1])
    });
    (row.clone(), often.collect())
}

fn heads() -> Vec<String> {
    let mut heads = vec!["case".to_owned()];
    heads.extend(COUNTED.map(|id| format!("`{}`", id.name())));
    heads.push("any doubt".to_owned());
    heads
}

fn healthy(runs: u64) -> Section {
    let mut cases = Vec::new();
    for share in [0.5, 0.7, 0.85, 0.9, 0.95] {
        for requests in [600, 1500, 5000] {
            cases.push(Case::usual(Load::Open(share), requests));
        }
    }
    for (users, requests) in [(32, 600), (32, 1500), (64, 1500)] {
        cases.push(Case::usual(Load::Closed(users), requests));
    }
    cases.push(Case::of(
        "closed loop, 32 users, 1500 requests, steps that drift slowly (jitter 10 %, correlation 0.99)",
        Parameters {
            jitter: 0.1,
            correlation: 0.99,
            ..Parameters::default()
        },
        CHAT,
        Load::Closed(32),
        1500,
    ));
    let found = cases.iter().map(|case| row(case, runs, |_| {}));
    let (rows, often): (Vec<_>, Vec<_>) = found.unzip();
    let often: Vec<String> = often.into_iter().flatten().collect();
    Section {
        title: "False findings".into(),
        about: "The share of runs with a finding although the engine keeps up and stays as it is. \"Any doubt\" is any \
            finding that makes a run suspect. The target is 1 % at most, of each of the first four findings: the others are notes \
            that state what a run is like."
            .into(),
        heads: heads(),
        rows,
        remarks: remarks([misses(
            "Above 1 %",
            &often,
            "Of so many runs, a share of 1 % can come out as 2 % by chance.",
        )]),
    }
}

fn overloaded(runs: u64) -> Section {
    let mut cases = Vec::new();
    for share in [1.05, 1.1, 1.2, 1.3, 1.5] {
        for requests in [600, 1500, 5000] {
            cases.push(Case::usual(Load::Open(share), requests));
        }
    }
    Section {
        title: "Overload that is found".into(),
        about: "The share of runs with a finding when requests come faster than the engine can answer them.".into(),
        heads: heads(),
        rows: cases.iter().map(|case| row(case, runs, |_| {}).0).collect(),
        remarks: String::new(),
    }
}

fn slowing(runs: u64) -> Section {
    let mut rows = Vec::new();
    for share in [0.1, 0.2, 0.3, 0.5] {
        for requests in [1500, 5000] {
            let case = Case {
                name: format!(
                    "{:.0} % slower at the end, {requests} requests",
                    100.0 * share
                ),
                ..Case::usual(Load::Closed(32), requests)
            };
            rows.push(row(&case, runs, |exchanges| slow(exchanges, share)).0);
        }
    }
    for share in [0.2, 0.3, 0.5] {
        let case = Case {
            name: format!(
                "{:.0} % slower from the middle on, 1500 requests",
                100.0 * share
            ),
            ..Case::usual(Load::Closed(32), 1500)
        };
        rows.push(row(&case, runs, |exchanges| step(exchanges, share)).0);
    }
    Section {
        title: "Drift that is found".into(),
        about: "The share of runs with a finding when the engine slows down, evenly from the first request to the last or at \
            once in the middle, in a closed loop of 32 users."
            .into(),
        heads: heads(),
        rows,
        remarks: String::new(),
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
            rows.push(row(&case, runs, |exchanges| bunch(exchanges, milliseconds)).0);
        }
    }
    Section {
        title: "Changed arrivals that are found".into(),
        about: "The share of runs with a finding when the client sends what is due only at every full tick of its own, in an open \
            loop at 0.7 of capacity, or 11 requests per second."
            .into(),
        heads: heads(),
        rows,
        remarks: String::new(),
    }
}

/// Lets requests leave only at full ticks of so many milliseconds. What the engine would have made of that is left out:
/// the finding looks at the sending alone.
fn bunch(exchanges: &mut [Exchange], milliseconds: u64) {
    let tick = milliseconds * 1_000_000;
    for own in exchanges {
        let sent = Nanos(own.due.0.div_ceil(tick) * tick);
        (own.sent, own.written) = (Some(sent), Some(sent));
        own.events
            .at
            .iter_mut()
            .for_each(|at| *at = (*at).max(sent));
        own.first_byte = own.events.at.first().copied();
        own.headers = own.first_byte;
        own.ended = own.events.at.last().copied();
    }
}

/// Makes an engine that is always busy slow down evenly: what took a second at the beginning takes that much longer at
/// the end.
fn slow(exchanges: &mut [Exchange], share: f64) {
    delay(exchanges, |seconds, length| {
        share * seconds * seconds / (2.0 * length)
    });
}

/// Makes an engine that is always busy slow down once, in the middle.
fn step(exchanges: &mut [Exchange], share: f64) {
    delay(exchanges, |seconds, length| {
        share * (seconds - length / 2.0).max(0.0)
    });
}

/// Delays every instant, given in seconds of a run of a length, by so many seconds.
fn delay(exchanges: &mut [Exchange], by: impl Fn(f64, f64) -> f64) {
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
