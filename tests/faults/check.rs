//! The check after every fault: the exit code, the folder, the summary against the records, the
//! records against the engine's own log. Nothing else may change or stay behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use mock::{End, Truth};
use model::exchange::{Class, Exchange, Outcome, Phase};
use result::finding::Id;
use result::summary::Summary;
use runs::folder::{RunFolder, Status};

use crate::endings::RUNS;
use crate::support::process::{Exit, only_run, run, runner};

/// A file for a test's input to the run; nothing else may lie next to the runs.
pub const GIVEN: &str = "given.toml";

/// The files that a run's folder may hold.
const FILES: [&str; 9] = [
    "plan.json",
    "environment.json",
    "records.jsonl.zst",
    "status.json",
    "client.json",
    "server.json",
    "assessment.json",
    "summary.json",
    "plugins.log",
];

/// The way a run must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its plan is done, and something was answered.
    Finished,
    /// Its plan is done, and every request failed.
    NothingAnswered,
    /// By a signal: the measurements are reported.
    Interrupted,
    /// With this exit code, by an error whose words contain this.
    Failed(i32, &'static str),
    /// By a kill, so it could write nothing any more.
    Killed,
}

impl Ending {
    fn code(self) -> Option<i32> {
        match self {
            Ending::Finished => Some(0),
            Ending::NothingAnswered => Some(5),
            Ending::Interrupted => Some(130),
            Ending::Failed(code, _) => Some(code),
            Ending::Killed => None,
        }
    }
}

#[derive(Debug)]
pub struct Remains {
    /// All exchanges by phase and index.
    pub exchanges: Vec<Exchange>,
    pub summary: Summary,
}

impl Remains {
    pub fn measured(&self) -> impl Iterator<Item = &Exchange> {
        (self.exchanges.iter()).filter(|exchange| exchange.phase == Phase::Measure)
    }
}

pub fn failure(exchange: &Exchange) -> Option<(Class, &str)> {
    match &exchange.outcome {
        Outcome::Ok => None,
        Outcome::Incomplete { class, message, .. } => Some((*class, message)),
    }
}

/// Checks everything that holds after any fault. `log` is the engine's own log, if it lived to
/// write one.
#[track_caller]
pub fn check(
    about: &str,
    place: &Path,
    ended: &Exit,
    how: Ending,
    log: Option<&[Truth]>,
) -> Remains {
    assert_eq!(ended.code, how.code(), "{about}: {ended:#?}");
    no_panic(about, ended);
    nothing_stays_behind(about, place);
    let folder = only_run(&place.join(RUNS)).unwrap();
    let after = readable(about, &folder);
    let unsent = check_status(about, &folder, ended, how);
    check_summary(about, &after, unsent);
    check_outputs(about, &folder, ended, how, &after.summary);
    if let Some(log) = log {
        agrees(about, &after.exchanges, log, how);
    }
    after
}

/// A refusal before anything was measured: this exit code, these words, and nothing on disk.
#[track_caller]
pub fn refused(about: &str, place: &Path, ended: &Exit, code: i32, expected: &str) {
    assert_eq!(ended.code, Some(code), "{about}: {ended:#?}");
    no_panic(about, ended);
    assert!(ended.stderr.contains(expected), "{about}: {ended:#?}");
    assert_eq!(ended.stdout, "", "{about}");
    nothing_stays_behind(about, place);
    let runs = std::fs::read_dir(place.join(RUNS));
    let left: Vec<_> = (runs.into_iter().flatten()).map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{about}: {left:?}");
}

#[track_caller]
pub fn no_panic(about: &str, ended: &Exit) {
    for word in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
        assert!(!ended.stderr.contains(word), "{about}: {ended:#?}");
    }
}

/// Next to the runs lies nothing, and no process works there any more.
#[track_caller]
pub fn nothing_stays_behind(about: &str, place: &Path) {
    let stray: Vec<String> =
        names(place).into_iter().filter(|name| name != RUNS && name != GIVEN).collect();
    assert_eq!(stray, [""; 0], "{about}: stray files");
    let here = place.canonicalize().unwrap();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let works_in = std::fs::read_link(process.path().join("cwd"));
        assert!(
            works_in.is_err() || works_in.unwrap() != here,
            "{about}: {} is still there",
            process.path().display()
        );
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Reads the content of the folder with the library.
#[track_caller]
pub fn readable(about: &str, folder: &Path) -> Remains {
    let opened = RunFolder::at(folder);
    let exchanges = opened.exchanges().unwrap_or_else(|error| panic!("{about}: {error}"));
    let reported = run(runner().arg("report").arg(folder).args(["--format", "json"])).with_code(0);
    let summary = serde_json::from_str(&reported.stdout)
        .unwrap_or_else(|error| panic!("{about}: {error}: {reported:#?}"));
    Remains { exchanges, summary }
}

/// The status names the ending, and is absent only if nothing could be written any more. Returns
/// the number of its requests that have no record.
#[track_caller]
fn check_status(about: &str, folder: &Path, ended: &Exit, how: Ending) -> u64 {
    let killed = how == Ending::Killed;
    for name in names(folder) {
        let part = name.strip_suffix(".part");
        assert!(part.is_none() || killed, "{about}: {name} is left");
        let whole = part.unwrap_or(&name);
        assert!(FILES.contains(&whole), "{about}: {name} is no result");
    }
    let status: Option<Status> = RunFolder::at(folder).status().unwrap();
    let Some(status) = status else {
        assert!(killed, "{about}: no status; {ended:#?}");
        return 0;
    };
    assert_eq!(status.interrupted, how == Ending::Interrupted, "{about}");
    match (how, &status.error) {
        (Ending::Failed(_, expected), Some(error)) => {
            assert!(error.contains(expected), "{about}: {error}");
            assert!(ended.stderr.contains(expected), "{about}: {ended:#?}");
        }
        (Ending::Failed(..), None) => panic!("{about}: no error is on record"),
        (_, error) => assert_eq!(*error, None, "{about}"),
    }
    assert!(status.unsent == 0 || status.interrupted, "{about}");
    status.unsent
}

/// The summary counts the requests on record, and the requests that the status gives as never sent.
#[track_caller]
fn check_summary(about: &str, after: &Remains, unsent: u64) {
    let mut classes = BTreeMap::<Class, u64>::new();
    if unsent > 0 {
        classes.insert(Class::NotSent, unsent);
    }
    for (class, _) in after.measured().filter_map(failure) {
        *classes.entry(class).or_default() += 1;
    }
    let requests = &after.summary.requests;
    let counted: BTreeMap<Class, u64> =
        (requests.failures.iter()).map(|(class, failures)| (*class, failures.count)).collect();
    assert_eq!(counted, classes, "{about}");
    let recorded = after.measured().count() as u64;
    let (total, failed) = (recorded + unsent, classes.values().sum::<u64>());
    assert_eq!(
        (requests.total, requests.failed, requests.successful),
        (total, failed, total - failed),
        "{about}"
    );
    let warmup = after.exchanges.len() as u64 - recorded;
    assert_eq!(requests.warmup, warmup, "{about}");
    let mut indices: Vec<u64> = after.measured().map(|exchange| exchange.index).collect();
    indices.dedup();
    assert_eq!(indices.len() as u64, recorded, "{about}: one record for each");
    for exchange in &after.exchanges {
        let unsent = exchange.sent.is_none() && exchange.status.is_none();
        let instants = [
            Some(exchange.due),
            exchange.sent,
            exchange.first_byte,
            exchange.headers,
            exchange.ended,
        ];
        let instants: Vec<_> = instants.into_iter().flatten().collect();
        assert!(unsent || instants.is_sorted(), "{about}: {exchange:#?}");
        assert!(exchange.events.at.is_sorted(), "{about}: {exchange:#?}");
        let bytes: u64 = exchange.events.bytes.iter().map(|n| u64::from(*n)).sum();
        let text = exchange.output.len() + exchange.reasoning.len();
        assert_eq!(bytes, text as u64, "{about}: {exchange:#?}");
    }
}

/// Checks that the run's output, its files and a new report agree.
#[track_caller]
fn check_outputs(about: &str, folder: &Path, ended: &Exit, how: Ending, summary: &Summary) {
    let written = std::fs::read(folder.join("summary.json")).ok();
    let written: Option<Summary> = written.map(|text| serde_json::from_slice(&text).unwrap());
    let drawn = run(runner().arg("report").arg(folder)).with_code(0);
    let cut_short = summary.run.interrupted;
    let found = (summary.findings.iter()).any(|finding| finding.id == Id::Interrupted);
    match how {
        Ending::Killed => {
            assert_eq!(written, None, "{about}");
            assert!(drawn.stderr.contains("did not finish"), "{about}: {drawn:#?}");
            assert!(cut_short && found, "{about}: {drawn:#?}");
        }
        Ending::Failed(_, expected) => {
            assert!(drawn.stderr.contains(expected), "{about}: {drawn:#?}");
            assert!(cut_short, "{about}");
            assert!(written.is_none_or(|written| written == *summary), "{about}");
        }
        Ending::Finished | Ending::NothingAnswered | Ending::Interrupted => {
            assert_eq!(written.as_ref(), Some(summary), "{about}");
            assert_eq!(drawn.stdout, ended.stdout, "{about}");
            assert_eq!(drawn.stderr, "", "{about}");
            let interrupted = how == Ending::Interrupted;
            assert_eq!((cut_short, found), (interrupted, interrupted), "{about}");
        }
    }
}

/// Checks the records against the engine's log: each whole answer with its number of tokens, and
/// each refusal with its status. A token is a byte of text.
#[track_caller]
pub fn agrees(about: &str, exchanges: &[Exchange], log: &[Truth], how: Ending) {
    let given = sorted(log.iter().filter(|t| t.end == End::Whole).map(tokens));
    let got = sorted(exchanges.iter().filter(|e| e.has_answer()).map(text));
    if how == Ending::Killed {
        assert!(is_within(&got, &given), "{about}: {got:?} of {given:?}");
        return;
    }
    assert_eq!(got, given, "{about}: answers by length");
    let refused = |status: &u16| *status >= 400;
    let sent = sorted(log.iter().filter_map(|t| t.status).filter(refused));
    let seen = sorted(exchanges.iter().filter_map(|e| e.status).filter(refused));
    assert_eq!(seen, sent, "{about}: refusals by status");
    if how == Ending::Finished || how == Ending::NothingAnswered {
        let sent = exchanges.iter().filter(|e| e.sent.is_some()).count();
        // An engine that ends logs no unfinished requests.
        let lost = |e: &&Exchange| {
            let class = failure(e).map(|(class, _)| class);
            matches!(class, Some(Class::Reset | Class::Truncated))
        };
        let lost = exchanges.iter().filter(lost).count();
        let logged = log.len();
        assert!(
            logged <= sent && sent <= logged + lost,
            "{about}: {sent} requests, {logged} in the log, {lost} lost"
        );
    }
}

/// Checks requests one after the other: each measured time includes the engine's time.
#[track_caller]
pub fn no_faster(about: &str, exchanges: &[Exchange], log: &[Truth]) {
    let mut log: Vec<&Truth> = log.iter().collect();
    log.sort_by_key(|truth| truth.number);
    assert_eq!(exchanges.len(), log.len(), "{about}");
    for (exchange, truth) in exchanges.iter().zip(log) {
        let first = exchange.events.iter().find(|event| event.kind.is_output());
        if let (Some(first), Some(given)) = (first, truth.first_token()) {
            let (seen, took) =
                (first.at.since(exchange.sent.unwrap()), given.since(truth.received));
            assert!(seen >= took, "{about}: {seen:?} instead of {took:?}");
        }
    }
}

/// Goes through a table, `most` rows at a time, because a row mostly waits.
pub fn at_once<T: Sync>(rows: &[T], most: usize, row: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || {
        while let Some(taken) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            row(taken);
        }
    };
    std::thread::scope(|scope| {
        let takers: Vec<_> = (0..most).map(|_| scope.spawn(take)).collect();
        for taker in takers {
            if let Err(panic) = taker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

pub fn tokens(truth: &Truth) -> usize {
    truth.chunks.iter().map(|sent| sent.tokens as usize).sum()
}

fn text(exchange: &Exchange) -> usize {
    exchange.output.len() + exchange.reasoning.len()
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items
}

/// True if all of `some` are among `all`, each as often; both are sorted.
fn is_within(some: &[usize], all: &[usize]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}
