//! From the scenarios named on the command line to the runs to make, in order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::flags::Flags;
use super::print::tell;
use reader::{Problem, ScenarioError};
use scenario::Scenario;
use serde::{Deserialize, Serialize};
use session::resolve::plugins_of;
use session::{Faults, Source, Variables};

const STDIN: &str = "<stdin>";

/// A scenario's text and its location.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Text {
    pub name: String,
    /// The place where its relative paths start.
    pub folder: Option<PathBuf>,
    pub text: String,
}

impl Text {
    /// True if it sets headers, whose values may be secret.
    pub(super) fn has_headers(&self) -> bool {
        let scenario = Scenario::parse(&self.name, &self.text);
        let entries = scenario.map(|scenario| scenario.entries());
        // A scenario that cannot be read may hold anything.
        entries.map_or(true, |entries| entries.iter().any(|entry| entry.secret))
    }
}

/// Checks that scenarios or flags name a workload.
pub(super) fn described(
    named: &[String],
    flags: &Flags,
    to: &str,
    otherwise: &str,
) -> Result<(), Failure> {
    if !named.is_empty() || flags.describe_a_run() {
        return Ok(());
    }
    Err(Failure::command_line(format!(
        "nothing to {to}: name a scenario (such as scenarios/quickstart.toml), or describe the run with flags (--backend and --dataset-name){otherwise}"
    )))
}

/// Reads every named scenario, or builds one from the flags alone. Reports every mistake in each.
pub fn sources(named: &[String], flags: &Flags) -> Result<Vec<Source>, Failure> {
    let mut overlay = Overlay::new(flags)?;
    let mut sources = Vec::new();
    let mut faults = Faults::default();
    if named.is_empty() {
        sources.push(overlay.over(Scenario::default(), String::new(), None));
    }
    for name in once(named)? {
        let mut group = Vec::new();
        for text in texts(name)? {
            match read_with_plugins(&text, flags) {
                Ok(scenario) => group.push((scenario, text.name, text.folder)),
                Err(wrong) => faults.scenario.extend(wrong.scenario),
            }
        }
        group.sort_by_key(|(scenario, name, _)| {
            let order = scenario.order.as_ref().map(|order| order.value);
            (order.is_none(), order, name.clone())
        });
        for (scenario, name, folder) in group {
            let stem = stem(&name);
            sources.push(overlay.over(scenario, stem, folder));
        }
    }
    for note in overlay.end(faults)? {
        tell(format_args!("note: {note}"));
    }
    Ok(sources)
}

struct Overlay<'f> {
    flags: &'f Flags,
    over: Scenario,
    assigned: Scenario,
    notes: BTreeSet<String>,
    problems: Vec<Problem>,
}

impl<'f> Overlay<'f> {
    fn new(flags: &'f Flags) -> Result<Self, Failure> {
        let over = flags.scenario()?;
        let (assigned, problems) = flags.assigned();
        Ok(Overlay { flags, over, assigned, notes: BTreeSet::new(), problems })
    }

    fn over(&mut self, scenario: Scenario, name: String, folder: Option<PathBuf>) -> Source {
        let scenario = scenario.overlay(self.over.clone());
        let scenario = scenario.overlay(self.assigned.clone());
        let settled = self.flags.settle(scenario, name.is_empty());
        self.notes.extend(settled.notes);
        self.problems.extend(settled.problems);
        Source {
            scenario: settled.scenario,
            name,
            folder,
            plugins: settled.plugins,
            plugin_path: self.flags.plugin_folders(),
            shipped: shipped::PLUGINS,
            variables: Variables::Process,
            ..Source::default()
        }
    }

    fn end(self, mut faults: Faults) -> Result<BTreeSet<String>, Failure> {
        faults.scenario.extend(self.problems);
        Failure::of_faults(faults).map(|()| self.notes)
    }
}

/// The text of the named scenario; nothing if none is named.
pub(super) fn text(named: &[String]) -> Result<Option<Text>, Failure> {
    let mut found = Vec::new();
    for name in once(named)? {
        found.extend(texts(name)?);
    }
    match found.len() {
        0 | 1 => Ok(found.pop()),
        several => Err(Failure::command_line(format!("name one scenario; these are {several}"))),
    }
}

/// The run of one scenario's text, or of the flags alone, with the notes on the flags.
pub(super) fn source_of(
    text: Option<Text>,
    flags: &Flags,
) -> Result<(Source, BTreeSet<String>), Failure> {
    let mut overlay = Overlay::new(flags)?;
    let source = match text {
        None => overlay.over(Scenario::default(), String::new(), None),
        Some(text) => {
            let scenario = read_with_plugins(&text, flags)?;
            overlay.over(scenario, stem(&text.name), text.folder)
        }
    };
    let notes = overlay.end(Faults::default())?;
    Ok((source, notes))
}

/// Reads a scenario, or every mistake in it and in the configurations of its plugins.
fn read_with_plugins(text: &Text, flags: &Flags) -> Result<Scenario, Faults> {
    let (scenario, mut problems) = Scenario::read(&text.name, &text.text);
    if problems.is_empty() {
        return Ok(scenario);
    }
    let source = bare(scenario, text.folder.clone(), &flags.plugin_folders());
    if let Err(wrong) = plugins_of(&source) {
        problems.extend(wrong.scenario);
    }
    Err(Faults::from_scenario(&ScenarioError::new(problems)))
}

fn bare(scenario: Scenario, folder: Option<PathBuf>, plugin_path: &[PathBuf]) -> Source {
    Source {
        scenario,
        folder,
        plugin_path: plugin_path.to_owned(),
        shipped: shipped::PLUGINS,
        ..Source::default()
    }
}

fn stem(name: &str) -> String {
    let stem = Path::new(name).file_stem().unwrap_or_default();
    if name == STDIN { "stdin".to_owned() } else { stem.to_string_lossy().into_owned() }
}

/// The names; `-` may be among them only once, because stdin can be read only once.
fn once(named: &[String]) -> Result<&[String], Failure> {
    match named.iter().filter(|name| *name == "-").count() {
        0 | 1 => Ok(named),
        _ => Err(Failure::command_line("`-` is given twice, but stdin holds one scenario")),
    }
}

/// Reads every named scenario without flags, and reports all mistakes; the scenarios' names.
pub fn check(named: &[String], plugin_path: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    let mut faults = Faults::default();
    for name in once(named)? {
        for Text { name, folder, text } in texts(name)? {
            let (scenario, mut problems) = Scenario::read(&name, &text);
            if problems.is_empty()
                && let Err(error) = scenario.validate()
            {
                problems.extend(error.problems().iter().cloned());
            }
            if let Err(wrong) = plugins_of(&bare(scenario, folder, plugin_path)) {
                problems.extend(wrong.scenario);
                faults.plugins.extend(wrong.plugins);
            }
            faults.scenario.extend(ScenarioError::new(problems).problems().iter().cloned());
            names.push(name);
        }
    }
    Failure::of_faults(faults).map(|()| names)
}

/// The texts that a name stands for: stdin, a file, the TOML files of a folder, or built-in ones.
fn texts(name: &str) -> Result<Vec<Text>, Failure> {
    if name == "-" {
        let text = reader::read_text_from(std::io::stdin()).map_err(|cause| {
            Failure::input(format!("cannot read the scenario from stdin: {cause}"))
        })?;
        // Relative paths start at the working directory.
        return Ok(vec![Text { name: STDIN.to_owned(), folder: None, text }]);
    }
    let path = Path::new(name);
    if path.is_dir() {
        let mut texts = Vec::new();
        let entries = std::fs::read_dir(path).map_err(unreadable(path))?;
        for entry in entries {
            let file = entry.map_err(unreadable(path))?.path();
            if file.extension().is_some_and(|extension| extension == "toml") {
                texts.push(read(&file).map_err(unreadable(&file))?);
            }
        }
        if texts.is_empty() {
            let message =
                format!("the folder `{name}` holds no scenario: no file there ends in .toml");
            return Err(Failure::input(message));
        }
        return Ok(texts);
    }
    if let Some(text) = of_trace(path) {
        return Ok(vec![text]);
    }
    match read(path) {
        Ok(text) => Ok(vec![text]),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => shipped_texts(name),
        Err(cause) => Err(unreadable(path)(cause)),
    }
}

/// The scenario that replays a trace of JSON rows; sessions without times are a closed loop.
fn of_trace(path: &Path) -> Option<Text> {
    /// The beginning of a line that shows its format.
    const BEGINNING: u64 = 64 << 10;
    let file = std::fs::File::open(path).ok()?;
    let mut line = Vec::new();
    let mut reader = std::io::BufReader::new(std::io::Read::take(file, BEGINNING));
    std::io::BufRead::read_until(&mut reader, b'\n', &mut line).ok()?;
    if !line.trim_ascii_start().starts_with(b"{\"") {
        return None;
    }
    let line = String::from_utf8_lossy(&line);
    let has_times = line.contains("\"timestamp\"");
    let load = if has_times { "arrival = \"dataset\"" } else { "concurrency = 64" };
    let data = toml::Value::from(path.file_name()?.to_string_lossy().into_owned());
    let text = format!(
        "[backend]\nplugin = \"backends/openai.wasm\"\nconfig = {{ route = \"completions\" }}\n\
         [dataset]\nplugin = \"datasets/trace.wasm\"\nfiles = {{ data = {data} }}\n\
         [load]\nrequests = 10000000\nwarmup = 0\n{load}\n"
    );
    let folder = path.parent().map(Path::to_owned);
    Some(Text { name: path.display().to_string(), folder, text })
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    Failure::read("the scenario ", path)
}

fn read(path: &Path) -> std::io::Result<Text> {
    Ok(Text {
        name: path.display().to_string(),
        folder: path.parent().map(Path::to_owned),
        text: reader::read_text(path)?,
    })
}

fn shipped_texts(name: &str) -> Result<Vec<Text>, Failure> {
    let name = name.trim_end_matches('/');
    let folder = format!("{name}/");
    let found: Vec<Text> = shipped::scenarios()
        .filter(|known| *known == name || known.starts_with(&folder))
        .filter_map(|known| {
            let text = shipped::scenario(known)?.to_owned();
            Some(Text { name: known.to_owned(), folder: None, text })
        })
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let nearest = shipped::scenarios()
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(closeness, _)| *closeness > 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let all = || shipped::scenarios().collect::<Vec<_>>().join(", ");
    let hint = match nearest {
        Some((_, known)) => format!("did you mean `{known}`?"),
        None => format!("the built-in ones are {}", all()),
    };
    Err(Failure::input(format!(
        "no scenario `{name}`: there is no such file, folder or built-in scenario; {hint}"
    )))
}
