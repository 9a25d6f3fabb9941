//! Conducts the runs of a client: plays a case's script, starts the client, waits for it, and
//! collects the log and the client's files.
//!
//! The mock engine runs in this process, on the thread that waits for the client, at an address of
//! its own for each run. A run leaves nothing to the next: each has a fresh engine and a fresh
//! folder.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::super::failure::{Exit, Failure};
use super::super::mock::interrupted;
use super::files;
use launch::{ProgramOutput, Value};
use mock::{Mounts, Script};
use model::{clean, glob, private};
use tokenizer::Tokenizer;
use verify::card::Client;
use verify::ceiling::{self, Ceiling, Level};
use verify::profile::Values;
use verify::sources::Sources;
use verify::{Case, CaseCard, Log, Outcome, Profile, Run, judge};

const LAST_LINES: usize = 12;

/// The time that a client may take to say its version.
const VERSION_WITHIN: Duration = Duration::from_secs(120);

/// The time that replies which a client gave up may take to be noticed.
const SETTLES_WITHIN: Duration = Duration::from_millis(200);

pub struct Conductor {
    profile: Profile,
    own: String,
    folder: Folder,
    tokenizer: Tokenizer,
    tokenizer_folder: PathBuf,
    pub tokenizer_name: String,
    counts: RefCell<HashMap<String, Option<u64>>>,
    timeout: Duration,
    tries: u32,
    runtime: tokio::runtime::Runtime,
}

/// The folder of all runs, removed in the end unless its user wants it.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn system(task: &str) -> impl Fn(std::io::Error) -> Failure {
    move |cause| Failure::new(Exit::CommandLine, format!("cannot {task}: {cause}"))
}

impl Conductor {
    pub fn new(
        mut profile: Profile,
        program: Option<&Path>,
        tokenizer: Option<&Path>,
        keep: Option<&Path>,
        timeout: Duration,
        tries: u32,
    ) -> Result<Self, Failure> {
        let own = std::env::current_exe().map_err(system("find this program"))?;
        let own = own.to_string_lossy().into_owned();
        let replaced = program.map(|path| path.to_string_lossy().into_owned());
        let first = profile.command[0].clone();
        let version = profile.version.as_mut().map(|version| &mut version.command);
        for words in [Some(&mut profile.command), version].into_iter().flatten() {
            if let (Some(replaced), Some(word)) = (&replaced, words.first_mut())
                && *word == first
            {
                word.clone_from(replaced);
            }
            for word in words.iter_mut().filter(|word| *word == "{self}") {
                word.clone_from(&own);
            }
        }
        let folder = match keep {
            Some(path) => path.to_owned(),
            None => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let unique = now.unwrap_or_default().as_nanos();
                let name = format!("runner-verify-{}-{unique}", std::process::id());
                std::env::temp_dir().join(name)
            }
        };
        private::folder(&folder).map_err(system("make a folder for the runs"))?;
        // An earlier run's files would be taken for this client's result.
        let mut there = std::fs::read_dir(&folder).map_err(system("look into --keep"))?;
        if there.next().is_some() {
            let message = format!("--keep: {} is not empty; name a new folder", folder.display());
            return Err(Failure::input(message));
        }
        let folder = Folder { path: folder.canonicalize().unwrap_or(folder), keep: keep.is_some() };
        let (tokenizer_folder, tokenizer_name) = match tokenizer {
            Some(path) => {
                let found = path.canonicalize().map_err(|cause| {
                    let path = path.display();
                    Failure::input(format!("--tokenizer: {path}: cannot be read: {cause}"))
                })?;
                let name = path.file_name().unwrap_or(path.as_os_str());
                let name = name.to_string_lossy().into_owned();
                (found, name)
            }
            None => (own_tokenizer(&folder.path)?, "words".to_owned()),
        };
        let tokenizer = Tokenizer::open(&tokenizer_folder)
            .map_err(|error| Failure::input(format!("--tokenizer: {error}")))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(system("begin"))?;
        Ok(Conductor {
            profile,
            own,
            folder,
            tokenizer,
            tokenizer_folder,
            tokenizer_name,
            counts: RefCell::default(),
            timeout,
            tries,
            runtime,
        })
    }

    pub fn client(&self, version: Option<String>) -> Client {
        Client { name: self.profile.name.clone(), title: self.profile.title.clone(), version }
    }

    pub fn version(&self) -> Result<Option<String>, Failure> {
        let Some(version) = &self.profile.version else { return Ok(None) };
        let environment = self.environment();
        let running = launch::run(&version.command, &environment, &[], None, VERSION_WITHIN);
        let ran = self.runtime.block_on(self.unless_interrupted(running))?;
        let ran = ran.map_err(|error| self.missing(error))?;
        let output = [ran.stdout, ran.stderr].concat();
        let version = version.find(&String::from_utf8_lossy(&output));
        Ok(version.map(|version| clean::line(&version).into_owned()))
    }

    fn missing(&self, why: impl Display) -> Failure {
        let Profile { title, install, .. } = &self.profile;
        let install = install.as_ref().map(|how| format!("; install it: {how}"));
        let install = install.unwrap_or_default();
        Failure::input(format!("{title}: {why}{install}; or name its program with --program"))
    }

    fn environment(&self) -> Vec<(String, Value)> {
        let variables = self.profile.environment.iter();
        variables.map(|(name, value)| (name.clone(), Value::Plain(value.clone()))).collect()
    }

    /// Runs a case until it is judged, and repeats a case that fails only in its times.
    pub fn run(&self, case: &Case) -> Result<CaseCard, Failure> {
        let mut card = CaseCard {
            name: case.name.clone(),
            part: case.part(),
            title: case.title.clone(),
            why: case.why.clone(),
            outcome: Outcome::Failed(String::new()),
            tries: 0,
            tolerance: case.tolerance.to_string(),
            checks: Vec::new(),
            last_lines: Vec::new(),
            command: Vec::new(),
        };
        if let Some(why) = self.profile.cannot_run(&case.name) {
            card.outcome = Outcome::NotApplicable(why.to_owned());
            return Ok(card);
        }
        if let Some(arrivals) = case.asks.arrivals
            && !self.profile.load.arrivals.contains(&arrivals)
        {
            let why = format!("it has no {arrivals} arrivals");
            card.outcome = Outcome::NotApplicable(why);
            return Ok(card);
        }
        let count = |text: &str| self.count(text);
        let mut before = None;
        for number in 1..=self.tries {
            card.tries = number;
            let mut runs = Vec::new();
            for (index, seed) in case.asks.seeds.iter().enumerate() {
                let name = format!("{}-{number}-{index}", case.name);
                let folder = self.folder.path.join(name);
                card.command = self.command(case, *seed, &folder)?;
                let (run, ran) = self.conduct(case, *seed, &folder)?;
                card.last_lines = last_lines(&ran);
                runs.push(run);
                if ran.exit.is_none() {
                    let within = model::duration::format(self.timeout);
                    card.outcome = Outcome::Failed(format!("it did not end within {within}"));
                    return Ok(card);
                }
            }
            (card.outcome, card.checks) = judge(case, &self.profile, &runs, &count, self.added());
            let other = card.other_definitions();
            if !card.may_be_noise() || (other.is_some() && other == before) {
                break;
            }
            before = other;
        }
        if !matches!(card.outcome, Outcome::Failed(_)) {
            card.last_lines.clear();
        }
        Ok(card)
    }

    /// Looks for the load up to which the client's times are true. `tell` gets each level.
    pub fn ceiling(&self, tell: impl Fn(&Level)) -> Result<Ceiling, Failure> {
        let mut levels = Vec::new();
        for streams in ceiling::LEVELS {
            let level = self.level(streams)?;
            tell(&level);
            let holds = level.holds();
            levels.push(level);
            if !holds {
                break;
            }
        }
        Ok(Ceiling::new(levels))
    }

    /// Tries a level until it holds, and keeps the best try.
    fn level(&self, streams: u64) -> Result<Level, Failure> {
        let case = ceiling::case(streams).map_err(|error| Failure::new(Exit::Bug, error))?;
        let mut best: Option<Level> = None;
        for number in 1..=self.tries {
            let folder = self.folder.path.join(format!("{}-{number}", case.name));
            let (run, ran) = self.conduct(&case, 1, &folder)?;
            let requests = run.log.requests.iter();
            let first = requests.clone().map(|request| request.received);
            let last = requests.map(|request| request.end());
            let last = last.fold(f64::NEG_INFINITY, f64::max);
            let seconds = (last - first.fold(f64::INFINITY, f64::min)) / 1e3;
            let tokens = run.log.requests.iter().map(|request| request.tokens).sum();
            let runs = [run];
            let (outcome, checks) =
                judge(&case, &self.profile, &runs, &|text| self.count(text), self.added());
            let late = Outcome::Failed("it did not end in time".to_owned());
            let outcome = if ran.exit.is_none() { &late } else { &outcome };
            let processor = ran.processor.map(|time| time.as_secs_f64());
            let level = Level::new(streams, (outcome, &checks), tokens, Some(seconds), processor);
            let off = |level: &Level| (level.failed.is_some(), level.worst());
            if best.as_ref().is_none_or(|best| off(&level) < off(best)) {
                best = Some(level);
            }
            if best.as_ref().is_some_and(Level::holds) {
                break;
            }
        }
        best.ok_or_else(|| Failure::new(Exit::Bug, "no level was tried"))
    }

    /// The number of special tokens that the tokenizer puts around a text.
    fn added(&self) -> u64 {
        self.tokenizer.facts().added_tokens.into()
    }

    fn count(&self, text: &str) -> Option<u64> {
        if let Some(known) = self.counts.borrow().get(text) {
            return *known;
        }
        let counted = self.tokenizer.count(&[text.to_owned()], false);
        let counted = counted.ok().and_then(|counts| counts.first().copied());
        let counted = counted.map(u64::from);
        self.counts.borrow_mut().insert(text.to_owned(), counted);
        counted
    }

    fn command(&self, case: &Case, seed: u64, folder: &Path) -> Result<Vec<String>, Failure> {
        let mut values = self.values(case, seed, folder);
        values.set("folder", "FOLDER");
        values.set("tokenizer", "TOKENIZER");
        values.set("host", "HOST");
        values.set("port", "PORT");
        values.set("base-url", format!("http://HOST:PORT/{}", case.name));
        values.set("root-url", "http://HOST:PORT");
        let mut command = self.filled(case, &values)?;
        if let Some(first) = command.first_mut() {
            let name = Path::new(first.as_str()).file_name();
            *first = name.unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(command)
    }

    fn values(&self, case: &Case, seed: u64, folder: &Path) -> Values {
        let mut values = Values::new(&case.asks, seed);
        values.set("self", &self.own);
        values.set("model", "mock");
        values.set("case", &case.name);
        values.set("folder", folder.display());
        values.set("tokenizer", self.tokenizer_folder.display());
        values
    }

    fn filled(&self, case: &Case, values: &Values) -> Result<Vec<String>, Failure> {
        let wrong = |error| Failure::input(format!("{}: `command`: {error}", self.profile.name));
        self.profile.command_for(&case.asks, values).map_err(wrong)
    }

    fn conduct(
        &self,
        case: &Case,
        seed: u64,
        folder: &Path,
    ) -> Result<(Run, ProgramOutput), Failure> {
        private::folder(folder).map_err(system("make a folder for a run"))?;
        let script = Script::parse(&case.name, &case.script())
            .map_err(|error| Failure::input(format!("case {}: {error}", case.name)))?;
        self.runtime.block_on(async {
            let scripts = [(case.name.clone(), script)];
            let mounts = Mounts::new(scripts, Box::new(|_, _| None))
                .map_err(|error| Failure::input(format!("case {}: {error}", case.name)))?;
            let listener = mock::listen((Ipv4Addr::LOCALHOST, 0).into())
                .map_err(system("listen on this machine"))?;
            let address = listener.local_addr().map_err(system("listen on this machine"))?;
            let server =
                tokio::spawn(mock::serve_mounts(listener, mounts.clone(), std::future::pending()));
            let mut values = self.values(case, seed, folder);
            values.set("host", address.ip());
            values.set("port", address.port());
            values.set("root-url", format!("http://{address}"));
            values.set("base-url", format!("http://{address}/{}", case.name));
            let command = self.filled(case, &values)?;
            let environment = self.environment();
            let running = launch::run(&command, &environment, &[], Some(folder), self.timeout);
            let ran = self.unless_interrupted(running).await?;
            let ran = ran.map_err(|error| self.missing(error))?;
            tokio::time::sleep(SETTLES_WITHIN).await;
            server.abort();
            let _ = server.await;
            let log = mounts.log(&case.name).unwrap_or_default();
            self.keep(folder, &log, &ran)?;
            let log = Log::read(&log).map_err(|error| Failure::new(Exit::Bug, error))?;
            let sources = Sources::read(&self.profile, &self.contents(folder, &ran));
            Ok((Run { log, sources }, ran))
        })
    }

    async fn unless_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            done = work => Ok(done),
            () = interrupted() => {
                Err(Failure::new(Exit::Interrupted, "interrupted; no card is written"))
            }
        }
    }

    fn keep(&self, folder: &Path, log: &str, ran: &ProgramOutput) -> Result<(), Failure> {
        if !self.folder.keep {
            return Ok(());
        }
        let files = [
            ("truth.jsonl", log.as_bytes()),
            ("stdout.txt", &ran.stdout),
            ("stderr.txt", &ran.stderr),
        ];
        for (name, content) in files {
            private::write(&folder.join(name), content).map_err(system("keep a run's files"))?;
        }
        Ok(())
    }

    /// The content of each source, or the reason why there is none.
    fn contents(
        &self,
        folder: &Path,
        ran: &ProgramOutput,
    ) -> BTreeMap<String, Result<Vec<u8>, String>> {
        let sources = self.profile.sources.iter();
        let content = sources.map(|source| {
            let content = match (&source.file, source.name.as_str()) {
                (None, "stderr") => Ok(ran.stderr.clone()),
                (None, _) => Ok(ran.stdout.clone()),
                (Some(pattern), _) => newest(folder, pattern),
            };
            (source.name.clone(), content)
        });
        content.collect()
    }
}

/// Writes the tokenizer whose tokens are words, so that a client can read it.
fn own_tokenizer(folder: &Path) -> Result<PathBuf, Failure> {
    let folder = folder.join("tokenizer");
    private::folder(&folder).map_err(system("make a folder for the tokenizer"))?;
    for (name, text) in files::tokenizer() {
        let written = private::write(&folder.join(name), text.as_bytes());
        written.map_err(system("write the tokenizer"))?;
    }
    Ok(folder)
}

fn last_lines(ran: &ProgramOutput) -> Vec<String> {
    let text = [String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)];
    let lines = text.iter().flat_map(|text| text.lines());
    let lines: Vec<String> = lines
        .filter(|line| !line.trim().is_empty())
        .map(|line| clean::line(line).chars().take(200).collect())
        .collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].to_vec()
}

/// The newest file below a folder that fits a pattern of a profile.
fn newest(folder: &Path, pattern: &str) -> Result<Vec<u8>, String> {
    let below = pattern.strip_prefix("{folder}").unwrap_or(pattern);
    let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = Vec::new();
    collect(folder, &parts, &mut found);
    let time = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    let newest = found.into_iter().max_by_key(time);
    let newest = newest.ok_or_else(|| format!("the client left no file `{below}`"))?;
    std::fs::read(&newest).map_err(|cause| format!("{}: {cause}", newest.display()))
}

fn collect(folder: &Path, parts: &[&str], found: &mut Vec<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else { return };
    if *part == "**" {
        collect(folder, rest, found);
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        let fits = *part != "**" && glob::fits(part, &name.to_string_lossy());
        if kind.is_dir() && *part == "**" {
            collect(&path, parts, found);
        } else if kind.is_dir() && fits {
            collect(&path, rest, found);
        } else if fits && rest.is_empty() {
            found.push(path);
        }
    }
}
