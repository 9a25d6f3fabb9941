//! The journal of a lab: one line of JSON for each event, appended at once.
//!
//! It records every event of a lab: the start and the failure of engines, and the runs with their
//! measurements. Strategies decide only from [`Results`], and results do
//! not depend on the order of lines of different runs; so a lab that was stopped anywhere continues
//! as if it had not been.
//!
//! **What counts.** The first finished attempt of a run that was measured and is not invalid
//! counts. An attempt that never finished does not count. Nor does an attempt that failed because
//! of the machine (a port that is taken, a full disk) or that was interrupted: it is repeated. An
//! attempt that is invalid, or whose engine died, is repeated as often as the lab file's `retries`
//! says. An engine that does not start fails only its trial.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expand::TrialId;
use crate::measured::Measured;
use result::figure::FIRST_TOKEN_AFTER;
use result::finding::Verdict;

pub const VERSION: u32 = 1;

/// The most remarks on a journal's text.
const MOST_NOTES: usize = 20;

/// The longest line that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// One run of a scenario against a trial's engine.
#[model::apply(model::document!)]
#[derive(Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// The trial.
    pub trial: TrialId,
    /// The scenario's name.
    pub scenario: String,
    /// A digest of the scenario's content: its file, its data, its plugins.
    pub content: String,
    /// The round: runs of one round were made one after another, and are compared with each other.
    pub round: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "event", deny_unknown_fields)]
pub enum Event {
    /// The lab began, or continued.
    Began(Began),
    /// An engine is about to be started.
    Starting(Starting),
    /// An engine answers.
    Ready(Ready),
    /// An engine did not start.
    Failed(Failed),
    /// A run begins.
    Running(Running),
    /// A run ended.
    Finished(Finished),
    /// An engine was stopped, or found dead.
    Stopped(Stopped),
}

/// The lab began, or continued.
#[model::apply(model::document!)]
pub struct Began {
    /// The time, as RFC 3339.
    pub at: String,
    /// The format's version.
    pub version: u32,
    /// This program's version.
    pub program: String,
    /// The lab's name.
    pub lab: String,
    /// A digest of the lab file.
    pub file: String,
}

/// An engine is about to be started.
#[model::apply(model::document!)]
pub struct Starting {
    /// The time, as RFC 3339.
    pub at: String,
    /// The trial.
    pub trial: TrialId,
    /// The round.
    pub round: u32,
    /// The trial's name in tables.
    pub label: String,
    /// Its command with its variables, as [`Trial::recorded`](crate::Trial::recorded) gives it:
    /// without secrets.
    pub command: String,
}

/// An engine answers.
#[model::apply(model::document!)]
pub struct Ready {
    /// The trial.
    pub trial: TrialId,
    /// The round.
    pub round: u32,
    /// The time of the start, in seconds, with all questions before the first run.
    pub seconds: f64,
    /// Seconds from the start of its process until it answered; absent if the lab did not start it.
    /// It is asked again after 20 ms first and after 1 s at last, so the figure is late by no more
    /// than a second and the time of an answer.
    pub ready_after_s: Option<f64>,
    /// The facts about the engine and the machine.
    pub facts: Facts,
}

/// The facts about an engine and its machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Facts {
    /// The engine's version, as it reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The model, as the engine calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Devices, one for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// The devices' driver.
    pub driver: Option<String>,
    /// The machine: its name, processor and memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The server's statement about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Value>,
}

model::words! {
    /// The reason why an engine did not start, or ended.
    pub enum Ending {
        /// It ended before it answered.
        DiedBeforeReady = "died-before-ready",
        /// It did not answer in time.
        NotReady = "not-ready",
        /// It ended during a run.
        Died = "died",
        /// The system had no memory left for it.
        OutOfMemory = "out-of-memory",
        /// The command cannot be run.
        NoCommand = "no-command",
        /// The port is taken by another process: the machine's fault, not the trial's.
        PortTaken = "port-taken",
        /// Another fault of the machine: no disk, no permission.
        Machine = "machine",
        /// The lab was stopped.
        Interrupted = "interrupted",
        /// It was stopped because its runs are done.
        Stopped = "stopped",
    }
}

impl Ending {
    /// True if the trial is to blame.
    pub fn is_of_trial(self) -> bool {
        !matches!(self, Ending::PortTaken | Ending::Machine | Ending::Interrupted | Ending::Stopped)
    }

    pub fn label(self) -> &'static str {
        match self {
            Ending::DiedBeforeReady => "the engine ended before it answered",
            Ending::NotReady => "the engine did not answer in time",
            Ending::Died => "the engine ended during a run",
            Ending::OutOfMemory => "the engine ran out of memory",
            Ending::NoCommand => "the command cannot be run",
            Ending::PortTaken => "the port is taken",
            Ending::Machine => "the machine failed",
            Ending::Interrupted => "the lab was stopped",
            Ending::Stopped => "it was stopped",
        }
    }
}

/// The end of an engine.
#[model::apply(model::document!)]
pub struct End {
    /// The reason.
    pub class: Ending,
    /// Its exit code or signal, as text.
    pub exit: Option<String>,
    /// The last lines of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

/// An engine did not start.
#[model::apply(model::document!)]
pub struct Failed {
    /// The trial.
    pub trial: TrialId,
    /// The round.
    pub round: u32,
    /// The time for which it was tried, in seconds.
    pub seconds: f64,
    /// The way in which it ended.
    pub end: End,
}

/// A run begins.
#[model::apply(model::document!)]
pub struct Running {
    /// The time, as RFC 3339.
    pub at: String,
    /// The run.
    pub run: RunKey,
    /// Its folder, relative to the journal's.
    pub folder: String,
}

/// A run ended.
#[model::apply(model::document!)]
pub struct Finished {
    /// The run.
    pub run: RunKey,
    /// Its folder, relative to the journal's.
    pub folder: String,
    /// Its time, in seconds.
    pub seconds: f64,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// It was measured; its verdict may still be that it is invalid.
    Measured(Measured),
    /// The run failed, with the reason as text, such as that no request was answered.
    Failed(String),
    /// Its engine died.
    Died(End),
    /// It was stopped, or the machine failed; it does not count.
    Stopped(String),
}

/// An engine was stopped, or found dead.
#[model::apply(model::document!)]
pub struct Stopped {
    /// The trial.
    pub trial: TrialId,
    /// The round.
    pub round: u32,
    /// The time that stopping took, in seconds.
    pub seconds: f64,
    /// The way in which it ended.
    pub end: End,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    pub events: Vec<Event>,
    /// Remarks on its text: lines that are no events.
    pub notes: Vec<String>,
}

impl Event {
    /// The event as a line of a journal, with its end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

impl Journal {
    /// Reads a journal. A torn line was being written when the program or the machine stopped, or
    /// found no room. It is left out with a note, and its work is done again. Errors: a journal of
    /// another version, or of no event.
    pub fn read(bytes: &[u8]) -> Result<Journal, String> {
        let mut journal = Journal::default();
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        for (number, line) in (1..).zip(&lines) {
            let is_last = number == lines.len();
            if line.trim_ascii().is_empty() {
                continue;
            }
            let line = if line.len() > LONGEST { &[] } else { *line };
            match serde_json::from_slice::<Event>(line) {
                Ok(Event::Began(began)) if began.version != VERSION => {
                    return Err(format!(
                        "line {number}: it has version {} of the format; this program reads version {VERSION}",
                        began.version
                    ));
                }
                // A line without its end may be whole by chance: it is taken, and an end is written
                // before the next line.
                Ok(event) => journal.events.push(event),
                Err(_) if is_last => journal.notes.push(format!(
                    "line {number} was cut off while it was written, and is left out"
                )),
                Err(_) if journal.notes.len() >= MOST_NOTES => {}
                Err(error) => {
                    let note = format!("line {number} is no event, and is left out: {error}");
                    journal.notes.push(note);
                }
            }
        }
        match journal.notes.first().filter(|_| journal.events.is_empty() && lines.len() > 1) {
            Some(note) => Err(note.clone()),
            None => Ok(journal),
        }
    }

    /// Returns the text to write before the next line is appended to a journal's: nothing, or the
    /// end of a torn line. The torn line itself must be cut off first: [`whole`].
    pub fn before_next(text: &[u8]) -> &'static str {
        if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" }
    }
}

/// The text without a torn last line. Cut the file to this length before appending.
pub fn whole(text: &[u8]) -> &[u8] {
    let begin = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let last = &text[begin..];
    if last.is_empty() || serde_json::from_slice::<Event>(last).is_ok() {
        text
    } else {
        &text[..begin]
    }
}

/// The results of a journal's events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Every attempt that ended and was not merely stopped.
    pub runs: BTreeMap<RunKey, Finished>,
    /// Starts that failed through the fault of their trial, in order.
    pub failures: BTreeMap<TrialId, Vec<Failed>>,
    /// The times until engines answered, in seconds, by trial.
    pub starts: BTreeMap<TrialId, Vec<f64>>,
    /// Starts of engines that answered and whose process the lab started, in order.
    pub ready: Vec<Ready>,
    /// For these, by their place, the seconds from the process's start until a run's first token.
    pub first_tokens: BTreeMap<usize, f64>,
    /// The facts about each trial's engine, from its last start.
    pub facts: BTreeMap<TrialId, Facts>,
    /// The ends of engines that died during a run.
    pub deaths: BTreeMap<TrialId, Vec<End>>,
    /// The run that began last and has not ended.
    pub running: Option<Running>,
    /// The version of the program that continued the lab last.
    pub program: Option<String>,
    /// The time that engines and runs took together, in seconds.
    pub seconds: f64,
}

impl Results {
    pub fn from_events(events: &[Event]) -> Self {
        let mut results = Results::default();
        events.iter().for_each(|event| results.add(event));
        results
    }

    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Began(began) => {
                self.running = None;
                self.program = Some(began.program.clone());
            }
            Event::Starting(_) => {}
            Event::Ready(ready) => {
                self.seconds += ready.seconds.max(0.0);
                self.starts.entry(ready.trial.clone()).or_default().push(ready.seconds);
                if ready.ready_after_s.is_some() {
                    self.ready.push(ready.clone());
                }
                self.facts.insert(ready.trial.clone(), ready.facts.clone());
            }
            Event::Failed(failed) => {
                self.seconds += failed.seconds.max(0.0);
                if failed.end.class.is_of_trial() {
                    self.failures.entry(failed.trial.clone()).or_default().push(failed.clone());
                }
            }
            Event::Running(running) => self.running = Some(running.clone()),
            Event::Finished(finished) => {
                self.running = None;
                self.seconds += finished.seconds.max(0.0);
                if let Outcome::Measured(measured) = &finished.outcome
                    && let Some(after) = measured.named(FIRST_TOKEN_AFTER)
                {
                    let is_own = |ready: &Ready| {
                        ready.trial == finished.run.trial && ready.round == finished.run.round
                    };
                    let place = self.ready.iter().rposition(is_own);
                    self.first_tokens.extend(place.map(|place| (place, after)));
                }
                let counts = match &finished.outcome {
                    Outcome::Measured(_) | Outcome::Failed(_) => true,
                    Outcome::Died(end) => end.class.is_of_trial(),
                    Outcome::Stopped(_) => false,
                };
                if let (Outcome::Died(end), true) = (&finished.outcome, counts) {
                    self.deaths.entry(finished.run.trial.clone()).or_default().push(end.clone());
                }
                if counts {
                    // The first counts: an attempt is made once.
                    self.runs.entry(finished.run.clone()).or_insert_with(|| finished.clone());
                }
            }
            Event::Stopped(stopped) => self.seconds += stopped.seconds.max(0.0),
        }
    }

    /// Finds the state of a run, given the number of its retries.
    pub fn cell(&self, run: &RunKey, retries: u32) -> Cell<'_> {
        let mut why = String::new();
        for attempt in 1..=retries + 1 {
            let key = RunKey { attempt, ..run.clone() };
            let Some(finished) = self.runs.get(&key) else { return Cell::Missing(key) };
            why = match &finished.outcome {
                Outcome::Measured(measured) if measured.verdict != Verdict::Invalid => {
                    return Cell::Counted(finished, measured);
                }
                Outcome::Measured(measured) => match measured.findings.first() {
                    Some(finding) => format!("the run is invalid: {finding}"),
                    None => "the run is invalid".to_owned(),
                },
                Outcome::Failed(why) | Outcome::Stopped(why) => format!("the run failed: {why}"),
                Outcome::Died(end) => ended(end),
            };
        }
        Cell::Bad(why)
    }

    /// The reason why a trial's engine is not started any more, if it failed too often.
    pub fn does_not_start(&self, trial: &TrialId, retries: u32) -> Option<String> {
        let failures = self.failures.get(trial)?;
        let last = failures.last()?;
        (failures.len() > retries as usize).then(|| ended(&last.end))
    }
}

/// Describes the end of an engine.
pub(crate) fn ended(end: &End) -> String {
    let mut text = end.class.label().to_owned();
    if let Some(exit) = &end.exit {
        text.push_str(&format!(" ({exit})"));
    }
    if let Some(line) = telling(&end.log) {
        text.push_str(&format!("; its log says: {}", line.trim().trim_end_matches('.')));
    }
    text
}

/// The most useful line of a log about why a program ended: the last that names an error, or the
/// last of all. After an error, lines are often advice, a summary or an error that follows.
fn telling(log: &[String]) -> Option<&str> {
    const ERRORS: [&str; 8] = [
        "error:",
        "exception:",
        "error ",
        "out of memory",
        "panicked",
        "fatal",
        "cannot ",
        "failed",
    ];
    let lines = || log.iter().rev().map(|line| line.trim());
    let lines = || lines().filter(|line| line.chars().any(char::is_alphanumeric));
    let names = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ERRORS.iter().any(|word| line.contains(word)) && !line.contains("--help")
    };
    lines().find(names).or_else(|| lines().next())
}

#[cfg(test)]
mod telling_tests {
    #[test]
    fn shows_the_most_useful_line_of_a_log() {
        for (log, line) in [
            // clap, argparse, Python, CUDA, a shell.
            (
                "error: unexpected argument '--x' found\n\nUsage: a\n\nFor more information, try '--help'.",
                "error: unexpected argument '--x' found",
            ),
            (
                "usage: api_server.py [-h]\napi_server.py: error: unrecognized arguments: --x 1",
                "api_server.py: error: unrecognized arguments: --x 1",
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\"\nValueError: max_num_seqs must be positive\n[rank0]: shutting down",
                "ValueError: max_num_seqs must be positive",
            ),
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB\n",
                "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB",
            ),
            ("loading\nready\n---", "ready"),
        ] {
            let log: Vec<String> = log.lines().map(str::to_owned).collect();
            assert_eq!(super::telling(&log), Some(line));
        }
        assert_eq!(super::telling(&[]), None);
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'r> {
    /// Nothing that counts: this attempt is to be made.
    Missing(RunKey),
    Counted(&'r Finished, &'r Measured),
    /// It was tried often enough; the reason why it does not count.
    Bad(String),
}
