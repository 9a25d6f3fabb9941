//! Cases: folders and files that define a plugin's expected output, run in the sandbox under the
//! limits of a run.
//!
//! [`find`] finds them, [`Suite::read`] reads them and reports all their mistakes, [`Suite::check`]
//! runs one and returns a typed report. The top of `case/given.rs` documents the files of a case.
//! `cli` does the printing.

mod backend;
mod damage;
mod dataset;
mod dice;
mod expect;
mod files;
pub mod find;
mod format;
mod given;
mod messages;
#[cfg(test)]
mod reference;
mod rehearsal;
mod reply;
mod report;
mod scorer;
mod seen;
mod sessions;
#[allow(clippy::disallowed_methods, reason = "writes cases, which their author shares")]
mod store;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use files::Mistake;
pub use given::{Ask, Case};
pub use rehearsal::Rehearsal;
pub use report::{CaseReport, Checks, Failure, Loaded, SuiteReport, Tested, TimedReport, Written};

use super::backend::{Aside, Control};
use super::instance::{Configured, World};
use super::sandbox::{Grants, LogBook};
use super::{Info, Plugin, PluginError, examine};
use given::Input;
use model::frame::Framing;
use model::plugin::{Kind, Limits};
use seen::Observations;
use store::Store;
use tokenizer::Tokenizer;

pub struct Suite {
    pub plugin: Plugin,
    pub limits: Limits,
    pub cases: Vec<Case>,
}

impl Suite {
    /// Reads cases. Errors: every mistake of every case.
    pub fn read(plugin: Plugin, limits: Limits, folders: &[PathBuf]) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let cases = folders
            .iter()
            .filter_map(|folder| given::read(plugin.kind, folder, &mut mistakes))
            .collect();
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Suite { plugin, limits, cases })
    }

    pub fn describe(&self) -> Result<Info, PluginError> {
        examine::describe_with(&self.plugin, self.grants(None, &LogBook::default()))
    }

    /// Runs a case. With `bless`, failing expectations are rewritten, unless the plugin misbehaved:
    /// a wrong result must not become the expected one.
    pub fn check(&self, case: &Case, bless: bool) -> CaseReport {
        let mut seen = Observations::default();
        if let Err(error) = self.run(case, &mut seen) {
            seen.misbehaved("opening it", &error);
        }
        let is_damaged = matches!(case.given, Input::Ask(_) | Input::Control(..));
        if !is_damaged || !seen.failures.is_empty() {
            seen.keep_log();
        }
        if seen.endless && !self.finds_an_end(case) {
            // A wrong result must not become the expected one.
            seen.found.retain(|(file, _)| *file != "events.json");
            seen.unsettled = true;
            seen.breach(
                "the backend gives no `end` event, for this reply or any other of these cases: a run would record every \
                 reply as cut off; give `end` at what marks a reply's end (a case of a reply that was cut off is fine \
                 next to one that is whole)"
                    .to_owned(),
            );
        }
        let mut found: Vec<(&'static str, Option<String>)> =
            seen.found.into_iter().map(|(file, text)| (file, Some(text))).collect();
        if !seen.unsettled {
            for file in given::expectations(self.plugin.kind) {
                if !found.iter().any(|(known, _)| known == file) {
                    found.push((file, None));
                }
            }
        }
        let bless = bless && seen.failures.is_empty();
        // Here all lines are this plugin's.
        let own = format!(" {}: ", self.plugin.name);
        let log = seen.lines.iter();
        let log = log.map(|line| line.replacen(&own, ": ", 1)).collect();
        let (differing, written) = expect::compare(&mut case.store.clone(), &found, bless);
        let mut failures = seen.failures;
        failures.extend(differing);
        CaseReport { name: case.name.clone(), log, failures, written, checks: seen.checks }
    }

    /// The inputs of a backend that no case has, each with the function that reads it and the file
    /// of a case.
    pub fn untouched(&self) -> Vec<String> {
        if self.plugin.kind != Kind::Backend {
            return Vec::new();
        }
        let asks = || self.cases.iter().filter_map(|case| Some((case, case.ask()?)));
        let controls = |what: Aside| {
            let mut cases = self.cases.iter();
            cases.any(|case| matches!(&case.given, Input::Control(of, Some(_)) if *of == what))
        };
        // Control requests that the backend leaves to nobody have no reply to read.
        let mut opened = self.cases.first().and_then(|case| {
            let plugin: Configured<_> = self.configured(case, None, &LogBook::default()).ok()?;
            backend::dialect(&plugin)
        });
        let mut answers = |what| {
            let dialect = opened.as_mut();
            dialect.is_some_and(|dialect| matches!(dialect.aside(what), Ok(Some(_))))
        };
        let (models, metrics) =
            (Aside::Control(Control::ListModels), Aside::Control(Control::Metrics));
        let fails = |(case, _): (&Case, &Ask)| {
            let events = case.store.read("events.json").unwrap_or_default();
            String::from_utf8_lossy(&events).contains(r#""kind":"failure""#)
        };
        let refused =
            |(_, ask): (&Case, &Ask)| ask.reply.as_ref().is_some_and(|reply| !reply.is_success());
        let streams = |wanted| move |(_, ask): (&Case, &Ask)| ask.settings.streaming == wanted;
        let rows = [
            (!asks().any(streams(true)), "a reply that is streamed (`streaming` in settings.json)"),
            (
                !asks().any(streams(false)),
                "a reply that is not streamed (`streaming` in settings.json)",
            ),
            (
                !asks().any(refused),
                "a reply with an error status, which `explain` reads (reply.400.json)",
            ),
            (!asks().any(fails), "an error within a reply, an event of the kind `failure`"),
            (
                !controls(models) && answers(models),
                "a list of models, which `read-models` reads (control.txt)",
            ),
            (
                !controls(metrics) && answers(metrics),
                "a page of metrics, which `read-metrics` reads (control.txt)",
            ),
            (
                !controls(Aside::Prepare) && answers(Aside::Prepare),
                "a reply to `prepare`, which `read-prepared` reads (control.txt)",
            ),
        ];
        rows.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what.to_owned()).collect()
    }

    /// True if the backend finds the end of the reply of some case, of this suite or beside it.
    fn finds_an_end(&self, case: &Case) -> bool {
        let mut asks = self.cases.iter().filter_map(|case| Some((case, case.ask()?)));
        let found = asks.any(|(case, ask)| {
            let plugin = self.configured(case, None, &LogBook::default());
            plugin.is_ok_and(|plugin| backend::ends(&plugin, ask))
        });
        // Only some of a plugin's cases may have been asked for.
        found || beside(&case.path).any(|events| events.contains(r#""kind":"end""#))
    }

    fn run(&self, case: &Case, seen: &mut Observations) -> Result<(), PluginError> {
        match &case.given {
            Input::Ask(ask) => {
                let plugin = self.configured(case, None, &seen.log)?;
                backend::ask(&plugin, ask, seen);
            }
            Input::Control(what, body) => {
                let plugin = self.configured(case, None, &seen.log)?;
                backend::control(&plugin, *what, body.as_deref(), seen);
            }
            Input::Draw(draw) => {
                let plugin = self.configured(case, Some(draw), &seen.log)?;
                dataset::draw(&plugin, draw, seen);
            }
            Input::Judge(exchanges) => {
                let plugin = self.configured(case, None, &seen.log)?;
                scorer::judge(&plugin, exchanges, seen);
            }
        }
        Ok(())
    }

    fn configured<W: World>(
        &self,
        case: &Case,
        draw: Option<&given::Draw>,
        log: &LogBook,
    ) -> Result<Configured<W>, PluginError> {
        let grants = self.grants(draw, log);
        Configured::new(self.plugin.clone(), &case.config, grants)
    }

    fn grants(&self, draw: Option<&given::Draw>, log: &LogBook) -> Grants {
        Grants {
            limits: self.limits.clone(),
            log: log.clone(),
            files: Arc::new(draw.map(|draw| draw.files.clone()).unwrap_or_default()),
            tokenizer: draw
                .map_or_else(|| Arc::new(Tokenizer::bytes()), |draw| Arc::clone(&draw.tokenizer)),
            seed: draw.map_or(0, |draw| draw.seed),
        }
    }
}

/// The name of the file of a reply with this status, as a case has it.
pub fn reply_file(framing: Framing, status: u16, body: &[u8]) -> String {
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
    let document = match str::from_utf8(body) {
        Ok(_) if is_json => "json",
        Ok(_) => "txt",
        Err(_) => "bin",
    };
    if !(200..300).contains(&status) {
        return format!("reply.{status}.{document}");
    }
    let ending = match framing {
        Framing::Whole => document,
        other => reply::ending_of(other).1[0],
    };
    format!("reply.{ending}")
}

/// The events that other cases beside a case expect.
fn beside(case: &Path) -> impl Iterator<Item = String> {
    let absolute = std::path::absolute(case).unwrap_or_default();
    let all = find::above(case).and_then(|parent| find::within(&parent).ok()).unwrap_or_default();
    let others = all.into_iter().filter(move |other| other.file_name() != absolute.file_name());
    let events = others.filter_map(|other| Store::open(&other).ok()?.read("events.json").ok());
    events.map(|events| String::from_utf8_lossy(&events).into_owned())
}
