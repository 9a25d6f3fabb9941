//! Cases: folders and files that define a plugin's expected output, run in the sandbox under the
//! limits of a run. The top of `case/given.rs` documents the files of a case.

mod backend;
mod damage;
mod dataset;
mod dice;
mod format;
mod given;
mod messages;
#[cfg(test)]
mod reference;
mod reply;
mod report;
mod scorer;
mod sessions;
#[allow(clippy::disallowed_methods, reason = "writes cases, which their author shares")]
mod store;
#[cfg(test)]
mod tests;

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use similar::TextDiff;

pub use given::{Ask, Case};
pub use report::{CaseReport, Checks, Failure, Loaded, SuiteReport, Tested, TimedReport, Written};

use super::backend::{Aside, Control};
use super::instance::{Configured, World};
use super::sandbox::{Grants, LogBook};
use super::{Info, Plugin, PluginError, examine};
use crate::backend::{Backend, Dialect, Fold};
use given::{Input, Reply};
use model::frame::{Frames, Framing};
use model::plugin::{Kind, Limits};
use reply::Cutting;
use store::{EXTENSION, Store};
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

    /// Runs a case. With `bless`, failing expectations are rewritten, unless the plugin misbehaved.
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
        let (differing, written) = compare(&mut case.store.clone(), &found, bless);
        let mut failures = seen.failures;
        failures.extend(differing);
        CaseReport { name: case.name.clone(), log, failures, written, checks: seen.checks }
    }

    /// The inputs of a backend that no case has, each with its reader and the file of a case.
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
            let plugin: Backend = self.configured(case, None, &LogBook::default()).ok()?;
            plugin.open().ok()
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

    /// The calls of a case; absent unless it has one request, whose reply has a success status.
    pub fn rehearse<'c>(&self, case: &'c Case) -> Result<Option<Rehearsal<'c>>, PluginError> {
        let Input::Ask(ask) = &case.given else { return Ok(None) };
        let success = ask.reply.as_ref().filter(|reply| reply.is_success());
        let Some(Reply { ending, body, .. }) = success else { return Ok(None) };
        let plugin: Backend = self.configured(case, None, &LogBook::default())?;
        let mut dialect = plugin.open()?;
        let is_socket = *ending == reply::MESSAGES;
        let cutting = backend::cutting(&mut dialect, ask, is_socket)?;
        // A case of a faulty reply ends in an error, whose time says nothing.
        let Ok(batches) = reply::batches(cutting, &[body]) else { return Ok(None) };
        let frames = reply::singly(&reply::together(&batches));
        let is_raw = cutting == Cutting::from(Framing::Raw);
        let mut rehearsal = Rehearsal { dialect, ask, is_raw, frames };
        let succeeds = rehearsal.encode().and_then(|()| rehearsal.decode()).is_ok();
        Ok(succeeds.then_some(rehearsal))
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
    let all = above(case).and_then(|parent| within(&parent).ok()).unwrap_or_default();
    let others = all.into_iter().filter(move |other| other.file_name() != absolute.file_name());
    let events = others.filter_map(|other| Store::open(&other).ok()?.read("events.json").ok());
    events.map(|events| String::from_utf8_lossy(&events).into_owned())
}

const CONTEXT: usize = 3;

/// Compares the output with a case's files, or writes them (`bless`). `None`: no such file.
fn compare(
    store: &mut Store,
    found: &[(&'static str, Option<String>)],
    bless: bool,
) -> (Vec<Failure>, Vec<Written>) {
    let mut failures = Vec::new();
    let mut written = Vec::new();
    for (file, found) in found {
        let expected = store.read(file).ok();
        let expected = expected.map(|bytes| String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
        // Editors add a final newline, or remove it; that is not a difference.
        let open = found.as_deref().and_then(|found| found.strip_suffix('\n'));
        if expected == *found || expected.is_some() && expected.as_deref() == open {
            continue;
        }
        let file = (*file).to_owned();
        if bless {
            match store.write(&file, found.as_deref()) {
                Ok(()) => written.push(Written { file, removed: found.is_none() }),
                Err(cause) => {
                    failures.push(Failure::Unwritable { file, cause: cause.to_string() });
                }
            }
            continue;
        }
        let [before, after] = [&expected, found].map(|text| text.as_deref().unwrap_or_default());
        let diff = diff(before, after);
        let (expected, found) = (expected.is_some(), found.is_some());
        failures.push(Failure::Differs { file, expected, found, diff });
    }
    (failures, written)
}

fn diff(expected: &str, found: &str) -> String {
    TextDiff::from_lines(expected, found)
        .unified_diff()
        .context_radius(CONTEXT)
        .header("expected", "found")
        .to_string()
}

/// An open backend with a case's sample and the frames of its reply.
pub struct Rehearsal<'c> {
    dialect: Dialect,
    ask: &'c Ask,
    is_raw: bool,
    frames: Vec<Frames>,
}

impl Rehearsal<'_> {
    pub fn encode(&mut self) -> Result<(), PluginError> {
        let Ask { sample, settings, earlier, .. } = self.ask;
        self.dialect.encode(sample, settings, earlier.as_ref()).map(drop)
    }

    /// Decodes the reply, one frame in a call, as frames come that a server sends one by one.
    pub fn decode(&mut self) -> Result<(), PluginError> {
        let state = self.dialect.begin(&self.ask.head)?;
        let mut fold = Fold::new(state).framed(self.is_raw);
        for frame in &self.frames {
            self.dialect.decode(&mut fold, &mut frame.clone())?;
        }
        Ok(())
    }

    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    pub fn bytes(&self) -> usize {
        self.frames.iter().flat_map(Frames::iter).map(|frame| frame.data.len()).sum()
    }
}

/// A case stops after this many traps on damaged input.
const TOLERATED: usize = 3;

/// The most log lines of a case that are shown.
const LINES: usize = 40;

#[derive(Default)]
struct Observations {
    pub found: Vec<(&'static str, String)>,
    pub failures: Vec<Failure>,
    pub checks: Checks,
    /// True if some output is not known: else an expectation without output must not exist.
    pub unsettled: bool,
    pub log: LogBook,
    /// Those that are worth showing, each once.
    pub lines: Vec<String>,
    /// True if a reply was read that has no end, although the server sent all of it.
    pub endless: bool,
}

impl Observations {
    /// Takes the log since the last call.
    pub fn keep_log(&mut self) {
        for line in self.log.drain() {
            if !self.lines.contains(&line) && self.lines.len() < LINES {
                self.lines.push(line);
            }
        }
    }

    pub fn found(&mut self, file: &'static str, text: String) {
        self.found.push((file, text));
    }

    /// The plugin returned an error or misbehaved, and the case cannot continue.
    pub fn ended(&mut self, doing: &str, error: &PluginError) {
        match format::error(error) {
            Some(message) => self.found("error.txt", message),
            None => self.misbehaved(doing, error),
        }
    }

    /// The plugin trapped or broke its contract; its output is unknown.
    pub fn misbehaved(&mut self, doing: &str, error: &PluginError) {
        self.unsettled = true;
        let doing = doing.to_owned();
        self.failures.push(Failure::Misbehaved { doing, error: error.to_string() });
    }

    /// Returns true if a repetition gave the same as the first time; else records the difference.
    pub fn same(&mut self, what: impl FnOnce() -> String, first: &str, second: &str) -> bool {
        if first == second {
            return true;
        }
        self.unsettled = true;
        self.failures.push(Failure::Unstable { what: what(), diff: diff(first, second) });
        false
    }

    /// The plugin's output violates its contract.
    pub fn breach(&mut self, what: String) {
        self.failures.push(Failure::Breach { what });
    }

    /// The case does not match the plugin.
    pub(crate) fn misfit(&mut self, what: String) {
        self.unsettled = true;
        self.failures.push(Failure::Misfit { what });
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub path: PathBuf,
    /// The mistake, and the expectation.
    pub what: String,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

struct Files<'a> {
    pub store: Store,
    mistakes: &'a mut Vec<Mistake>,
    pub named: Vec<PathBuf>,
}

impl<'a> Files<'a> {
    pub fn new(store: Store, mistakes: &'a mut Vec<Mistake>) -> Self {
        Files { store, mistakes, named: Vec::new() }
    }

    /// Records a mistake of a file, or of the case if the name is empty.
    pub fn mistake(&mut self, file: &str, what: impl Into<String>) {
        self.mistakes.push(Mistake { path: self.store.place(file), what: what.into() });
    }

    /// Records a mistake that leaves no result.
    pub fn refuse<T>(&mut self, file: &str, what: impl Into<String>) -> Option<T> {
        self.mistake(file, what);
        None
    }

    /// A file's bytes; `None` if there is no such file.
    pub fn bytes(&mut self, file: &str) -> Option<Vec<u8>> {
        match self.store.read(file) {
            Ok(bytes) => Some(bytes),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
            Err(cause) => self.refuse(file, format!("cannot be read: {cause}")),
        }
    }

    /// A file's text; `None` if there is no such file, or it cannot be read.
    pub fn text(&mut self, file: &str) -> Option<String> {
        let text = String::from_utf8(self.bytes(file)?);
        text.map_err(|cause| self.mistake(file, format!("is not UTF-8: {}", cause.utf8_error())))
            .ok()
    }

    /// The bytes of a file that another file refers to.
    pub fn beside(&mut self, file: &str) -> Option<Vec<u8>> {
        self.named.push(self.store.place(file));
        let bytes = self.bytes(file);
        if !self.store.has(file) {
            self.mistake(file, "the file does not exist, but sample.json names it");
        }
        bytes
    }

    pub fn json<T: DeserializeOwned>(&mut self, file: &str) -> Option<T> {
        let read = serde_json::from_str(&self.text(file)?);
        read.map_err(|cause| self.mistake(file, cause.to_string())).ok()
    }

    pub fn toml<T: DeserializeOwned>(&mut self, file: &str) -> Option<T> {
        let read = toml::from_str(&self.text(file)?);
        read.map_err(|cause| self.mistake(file, cause.to_string().trim_end())).ok()
    }

    pub fn config(&mut self) -> Value {
        let table: toml::Table = self.toml("config.toml").unwrap_or_default();
        let config = as_json(toml::Value::Table(table));
        config.map_err(|what| self.mistake("config.toml", what)).unwrap_or_default()
    }

    pub fn names(&mut self) -> Vec<String> {
        self.store.names().map_err(|what| self.mistake("", what)).unwrap_or_default()
    }
}

/// TOML as JSON; a value that JSON cannot express is a mistake.
fn as_json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .ok_or_else(|| {
                format!("{number} cannot be passed to a plugin: JSON has no such number")
            })?
            .into(),
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(values) => {
            values.into_iter().map(as_json).collect::<Result<Vec<_>, _>>()?.into()
        }
        toml::Value::Table(table) => Value::Object(
            table
                .into_iter()
                .map(|(key, value)| Ok((key, as_json(value)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}

/// The folder of a plugin project that contains its cases.
const CASES: &str = "cases";

/// The path of a plugin project's component after building.
const BUILT: &str = "target/plugin";

#[derive(Debug, PartialEq, Eq)]
pub struct CaseSet {
    /// The folders and files of cases, by name.
    pub cases: Vec<PathBuf>,
    /// The plugin project that they belong to, if their location shows it.
    pub project: Option<PathBuf>,
}

/// Finds cases: in `cases/` of a plugin project, else in `dir`, which may itself be a case.
pub fn cases(dir: &Path) -> Result<CaseSet, String> {
    if is_file(dir) {
        let project = above(dir).and_then(|cases| project_of(&cases));
        return Ok(CaseSet { cases: vec![dir.to_owned()], project });
    }
    if !dir.is_dir() {
        return Err(format!(
            "`{}` is not a folder; give a plugin project, a folder of cases or one case",
            dir.display()
        ));
    }
    let project = dir.join(CASES);
    let found = if project.is_dir() {
        CaseSet { cases: within(&project)?, project: Some(dir.to_owned()) }
    } else if is_case(dir)? {
        CaseSet {
            cases: vec![dir.to_owned()],
            project: above(dir).and_then(|cases| project_of(&cases)),
        }
    } else {
        CaseSet { cases: within(dir)?, project: project_of(dir) }
    };
    if found.cases.is_empty() {
        let place = if project.is_dir() { &project } else { dir };
        return Err(format!(
            "`{}` has no cases; a case is a file such as {CASES}/first.case, or a folder, with a sample.json, a case.toml or an exchanges.json",
            place.display()
        ));
    }
    Ok(found)
}

/// The project whose cases are in this folder.
fn project_of(cases: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(cases).ok()?;
    (absolute.file_name()? == CASES).then(|| above(cases))?
}

/// The parent folder; the current folder for a relative path with a single component.
fn above(folder: &Path) -> Option<PathBuf> {
    match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
        Some(parent) if folder.file_name().is_some() => Some(parent.to_owned()),
        _ => Some(std::path::absolute(folder).ok()?.parent()?.to_owned()),
    }
}

fn within(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let is_case = |path: &PathBuf| (path.is_dir() || is_file(path)) && !is_hidden(path);
    let mut cases: Vec<PathBuf> = entries(dir)?.into_iter().filter(is_case).collect();
    cases.sort();
    Ok(cases)
}

fn is_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION) && path.is_file()
}

/// True if a folder contains a file that only cases have.
fn is_case(dir: &Path) -> Result<bool, String> {
    const TELLING: [&str; 6] = [
        "config.toml",
        "sample.json",
        "control.txt",
        "case.toml",
        "exchanges.json",
        "exchanges.jsonl",
    ];
    let tells = |path: &PathBuf| TELLING.iter().any(|name| path.ends_with(name));
    Ok(entries(dir)?.iter().any(|path| path.is_file() && tells(path)))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |cause| format!("cannot read the folder `{}`: {cause}", dir.display());
    let entries = std::fs::read_dir(dir).map_err(unreadable)?;
    entries.map(|entry| Ok(entry.map_err(unreadable)?.path())).collect()
}

/// True if it is one of the files that operating systems and editors create.
fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name.ends_with('~')
}

/// The built component of a plugin project.
pub fn component(project: &Path) -> Result<PathBuf, String> {
    let built = project.join(BUILT);
    let mut components: Vec<PathBuf> = entries(&built)
        .unwrap_or_default()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "wasm"))
        .collect();
    components.sort();
    match components.as_slice() {
        [component] => Ok(component.clone()),
        [] => Err(format!(
            "no component in `{}`; run `runner plugin build {}`, or name one with --plugin",
            built.display(),
            project.display()
        )),
        several => Err(format!(
            "`{}` contains several components ({}); name one with --plugin",
            built.display(),
            several
                .iter()
                .filter_map(|path| path.file_name())
                .map(|name| name.to_string_lossy())
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}
