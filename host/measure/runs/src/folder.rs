//! A run's folder on disk: which files it holds, and reading and writing the small ones.
//!
//! `plan.json` and `environment.json` are written before the first request, the records (`record`)
//! and the samples of devices (`telemetry`) during the run, and the others after it; `scores.json`
//! has later judgements. However the run ends, the files written until then are readable: the
//! summary is a function of the other files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::assessment::{Assessment, Later};
use crate::environment::Environment;
use crate::record::{self, RecordError, RunEnd, Written};
use crate::{Repeat, Reported, series, telemetry};
use model::exchange::Exchange;
use model::timings::StageTimes;
use model::{clean, private, redact};
use result::summary::cache::Cache;
use result::summary::{
    Client, Damage, Dataset, Fleet, Loop, Run, RunFacts, Server, Summary, Survey, Used,
};
use scenario::plan::{Plan, PlannedPlugin};

use model::plugin::Kind;
use model::redact::Known;
use model::session::{History, Warming};
use model::simulation::simulated_acceptance;

const PLAN: &str = "plan.json";
const ENVIRONMENT: &str = "environment.json";
const LOG: &str = "plugins.log";
const SCORES: &str = "scores.json";
const AGREEMENT: &str = "agreement.json";

/// The contents of a file of the folder, in JSON.
pub trait Document: Serialize {
    const FILE: &'static str;
}

macro_rules! documents {
    ($($Contents:ty: $file:literal),+ $(,)?) => { $(
        impl Document for $Contents {
            const FILE: &'static str = $file;
        }
    )+ };
}

documents! {
    Status: "status.json",
    Fleet: "fleet.json",
    Client: "client.json",
    Server: "server.json",
    Dataset: "dataset.json",
    Cache: "cache.json",
    Assessment: "assessment.json",
    Summary: "summary.json",
    Repeat: "repeat.json",
}

/// The format of the start time in a folder's name.
const STAMP: &str = "%Y%m%d-%H%M%S";

/// Characters of a name that a path takes, at most: file systems allow 255 bytes.
const LONGEST_SLUG: usize = 100;

/// A name as part of a path: lower case, digits and single hyphens, of a bounded length.
pub fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = name.chars().map(plain).collect();
    let parts = text.split('-').filter(|part| !part.is_empty());
    let mut slug = parts.collect::<Vec<_>>().join("-");
    slug.truncate(LONGEST_SLUG);
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

#[derive(Clone, Debug)]
pub struct RunFolder(PathBuf);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Status {
    pub started: String,
    /// The origin of the run's instants, in nanoseconds since 1970 by the system's clock, if kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<u64>,
    /// The end, in UTC.
    pub ended: String,
    /// True if the user stopped it before its plan was done.
    pub interrupted: bool,
    /// Requests that were due when it was stopped, and have no record.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub unsent: u64,
    /// The times of the start's steps.
    #[serde(default)]
    pub timings: StageTimes,
    /// The records that were written; absent if not all could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<Written>,
    /// The lines of the server's series that were written, if all of them could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Written>,
    /// The reason why it ended early, if something went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot write `{path}`: {cause}")]
    Write { path: PathBuf, cause: io::Error },
    #[error("cannot read `{path}`: {cause}; is `{folder}` the folder of a run?")]
    Read { path: PathBuf, folder: PathBuf, cause: io::Error },
    #[error(
        "`{path}` is not the folder of a run and does not contain one: expected a `plan.json` in it or in a folder below it, as in runs/20260102-030405-quick-start"
    )]
    NoRun { path: PathBuf },
    #[error("cannot list `{path}`: {cause}; pass the runs' folders one by one")]
    List { path: PathBuf, cause: io::Error },
    #[error("`{path}` is not in the form that this version of the runner writes: {cause}")]
    Malformed { path: PathBuf, cause: String },
    #[error(transparent)]
    Records(#[from] RecordError),
}

impl RunFolder {
    /// Makes the folder of a new run below `parent`, named by time and run.
    pub fn create(
        parent: &Path,
        name: &str,
        started: &jiff::Timestamp,
    ) -> Result<Self, FolderError> {
        let stamp = started.strftime(STAMP).to_string();
        let slug = slug(name);
        let named = if slug.is_empty() { stamp } else { format!("{stamp}-{slug}") };
        let write = |path: &Path, cause| FolderError::Write { path: path.to_owned(), cause };
        std::fs::create_dir_all(parent).map_err(|cause| write(parent, cause))?;
        let again = (2..1000).map(|more| format!("{named}-{more}"));
        for name in std::iter::once(named.clone()).chain(again) {
            let path = parent.join(name);
            match private::create_folder(&path) {
                Ok(()) => return Ok(RunFolder(path)),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(write(&path, cause)),
            }
        }
        let taken = io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a thousand runs with that name started in this second",
        );
        Err(write(parent, taken))
    }

    pub fn at(path: &Path) -> Self {
        RunFolder(path.to_owned())
    }

    /// Removes the files written before the first request, if nothing followed.
    pub fn discard_unbegun(&self) {
        let records = [record::FILE, LOG];
        if !records.iter().any(|name| self.0.join(name).exists()) {
            let own = [PLAN, ENVIRONMENT, Repeat::FILE, Status::FILE];
            for name in own.into_iter().chain([telemetry::FILE, series::FILE]) {
                let _ = std::fs::remove_file(self.0.join(name));
            }
            // Fails, as it should, where anything else lies there.
            let _ = std::fs::remove_dir(&self.0);
        }
    }

    /// Removes the files of a run that failed before the first record. The plugins' output stays.
    pub fn discard_unrecorded(&self) {
        for name in [record::FILE, Client::FILE, Server::FILE, Dataset::FILE] {
            let _ = std::fs::remove_file(self.0.join(name));
        }
        self.discard_unbegun();
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the files that are known before the first request.
    pub fn begin(&self, plan: &Plan, environment: &Environment) -> Result<(), FolderError> {
        self.write_json(PLAN, &without_secrets(plan))?;
        let command_line = without_configs(plan, &environment.command_line);
        self.write_json(ENVIRONMENT, &Environment { command_line, ..environment.clone() })
    }

    pub fn write<D: Document>(&self, document: &D) -> Result<(), FolderError> {
        self.write_json(D::FILE, document)
    }

    pub fn write_some<D: Document>(&self, document: Option<&D>) -> Result<(), FolderError> {
        document.map_or(Ok(()), |document| self.write(document))
    }

    /// The group of repeats that the run belongs to; absent if it is not a repeat.
    pub fn repeat(&self) -> Result<Option<Repeat>, FolderError> {
        self.read_if_there(Repeat::FILE)
    }

    pub fn write_log(&self, lines: &[String]) -> Result<(), FolderError> {
        if lines.is_empty() {
            return Ok(());
        }
        let path = self.0.join(LOG);
        let text: String = lines.iter().map(|line| clean::line(line) + "\n").collect();
        let written = private::append(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|cause| FolderError::Write { path, cause })
    }

    /// The plan. Fails if this is no run's folder, or a folder of another version.
    pub fn plan(&self) -> Result<Plan, FolderError> {
        self.read_json(PLAN)
    }

    /// Reads the end of the run; absent if it was killed or has not ended.
    pub fn status(&self) -> Result<Option<Status>, FolderError> {
        self.read_if_there(Status::FILE)
    }

    /// The run's origin in nanoseconds since 1970: exact if kept, else to the second, if known.
    pub fn origin(&self) -> Result<Option<u64>, FolderError> {
        if let Some(origin) = self.status()?.and_then(|status| status.origin) {
            return Ok(Some(origin));
        }
        let stamp = began(self)?.and_then(|stamp| DateTime::strptime(STAMP, stamp).ok());
        let zoned = stamp.and_then(|stamp| stamp.to_zoned(TimeZone::UTC).ok());
        Ok(zoned.and_then(|zoned| u64::try_from(zoned.timestamp().as_nanosecond()).ok()))
    }

    /// The environment of the run; absent if it was not written.
    pub fn environment(&self) -> Result<Option<Environment>, FolderError> {
        self.read_if_there(ENVIRONMENT)
    }

    /// Everything that a report needs from the run, except its exchanges.
    pub fn reported(&self) -> Result<Reported, FolderError> {
        self.reported_with(&self.facts()?)
    }

    /// The same where the run's facts were read before.
    pub fn reported_with(&self, facts: &RunFacts) -> Result<Reported, FolderError> {
        let name = self.0.file_name().map(|name| name.to_string_lossy());
        Ok(Reported {
            folder: name.unwrap_or_default().into_owned(),
            plan: self.plan()?,
            environment: self.environment()?,
            status: self.status()?,
            summary: self.summarize(facts)?,
        })
    }

    /// The exchanges in the order of their records, one by one.
    pub fn read(&self) -> Result<impl Iterator<Item = Result<Exchange, FolderError>>, FolderError> {
        let records = record::read(&self.0)?;
        Ok(records.map(|record| record.map_err(FolderError::from)))
    }

    /// All exchanges, ordered by phase and index: for runs that memory can hold.
    pub fn exchanges(&self) -> Result<Vec<Exchange>, FolderError> {
        let mut exchanges: Vec<Exchange> = self.read()?.collect::<Result<_, _>>()?;
        exchanges.sort_by_key(|exchange| (exchange.phase, exchange.index));
        Ok(exchanges)
    }

    /// Reads the facts that a summary needs in addition to the exchanges.
    pub fn facts(&self) -> Result<RunFacts, FolderError> {
        let plan = self.plan()?;
        // A run that was killed has none of these, and is reported all the same.
        let status = self.status()?;
        let assessment = self.assessment()?;
        let unsent = status.as_ref().map_or(0, |status| status.unsent);
        let cut = |status: &Status| status.interrupted || status.error.is_some();
        let interrupted = status.as_ref().is_none_or(cut);
        let mut facts = facts(&plan, assessment, interrupted);
        facts.run.damage = self.damage(status.as_ref())?;
        let written = status.as_ref().and_then(|status| status.series.as_ref());
        let (series, series_damage) = series::checked(&self.0, written)?;
        facts.run.series_damage = series_damage;
        add_later(&mut facts, self.later()?);
        Ok(RunFacts {
            unsent,
            fleet: self.read_if_there(Fleet::FILE)?,
            client: self.read_if_there(Client::FILE)?,
            server: self.read_if_there(Server::FILE)?,
            devices: telemetry::read(&self.0)?,
            series,
            dataset: self.read_if_there(Dataset::FILE)?,
            cache: self.read_if_there(Cache::FILE)?,
            ..facts
        })
    }

    /// Finds the damage of the records, given the end of the run.
    pub fn damage(&self, status: Option<&Status>) -> Result<Option<Damage>, FolderError> {
        let ended = match status {
            None => RunEnd::Anywhere,
            Some(status) => match &status.records {
                Some(written) => RunEnd::Wrote(written),
                None if status.error.is_some() => RunEnd::Anywhere,
                None => RunEnd::Uncounted,
            },
        };
        Ok(record::check(&self.0, ended)?)
    }

    /// The run's summary, computed from its records without keeping them in memory.
    pub fn summarize(&self, facts: &RunFacts) -> Result<Summary, FolderError> {
        Summary::read(facts, || self.read())
    }

    /// The same where the records were read before, and surveyed then.
    pub fn summarize_surveyed(
        &self,
        facts: &RunFacts,
        survey: Survey,
    ) -> Result<Summary, FolderError> {
        Summary::read_surveyed(facts, survey, self.read()?)
    }

    fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), FolderError> {
        let path = self.0.join(name);
        let mut text = serde_json::to_string_pretty(value).map_err(|cause| {
            FolderError::Malformed { path: path.clone(), cause: cause.to_string() }
        })?;
        text.push('\n');
        // Whole or not at all: half a file would keep a report from being drawn.
        private::replace(&path, text.as_bytes()).map_err(|cause| FolderError::Write { path, cause })
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, FolderError> {
        let path = self.0.join(name);
        let text = std::fs::read(&path).map_err(|cause| FolderError::Read {
            path: path.clone(),
            folder: self.0.clone(),
            cause,
        })?;
        serde_json::from_slice(&text)
            .map_err(|cause| FolderError::Malformed { path, cause: cause.to_string() })
    }

    fn read_if_there<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, FolderError> {
        match self.read_json(name) {
            Ok(value) => Ok(Some(value)),
            Err(FolderError::Read { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the agreement of the run's answers with a baseline's.
    pub fn write_agreement(&self, agreed: &impl Serialize) -> Result<(), FolderError> {
        self.write_json(AGREEMENT, agreed)
    }

    /// Reads the results of tokenizer and scorers after the run; empty if neither was used.
    pub fn assessment(&self) -> Result<Assessment, FolderError> {
        Ok(self.read_if_there(Assessment::FILE)?.unwrap_or_default())
    }

    /// Reads the later judgings, the oldest first.
    pub fn later(&self) -> Result<Vec<Later>, FolderError> {
        Ok(self.read_if_there(SCORES)?.unwrap_or_default())
    }

    /// Adds later scores. Nothing that the run wrote is changed.
    pub fn add_later(&self, later: Later) -> Result<(), FolderError> {
        let mut all = self.later()?;
        all.push(later);
        self.write_json(SCORES, &without_secret_configs(&all))
    }
}

/// The plan as it is kept. Of values that may be keys, a digest of 32 bits is kept, so that runs
/// that differ in them can be told apart.
pub fn without_secrets(plan: &Plan) -> serde_json::Value {
    let mut json = serde_json::to_value(plan).unwrap_or_default();
    let mut hide = |place: &str, names: &[String]| {
        if let Some(value) = json.pointer_mut(place) {
            redact::fields_named(value, names, &mark);
        }
    };
    hide("/request/extra-body", &[]);
    hide("/backend/config", &plan.backend.secret_keys);
    hide("/dataset/config", &plan.dataset.plugin.secret_keys);
    for (number, scorer) in plan.scorers.iter().enumerate() {
        hide(&format!("/scorers/{number}/config"), &scorer.secret_keys);
    }
    json
}

/// A command line without the secrets in the configurations of a plan's plugins.
fn without_configs(plan: &Plan, words: &[String]) -> Vec<String> {
    let plugins = [&plan.backend, &plan.dataset.plugin].into_iter().chain(&plan.scorers);
    let known = Known::new(plugins.flat_map(PlannedPlugin::secrets));
    words.iter().map(|word| known.redact(word)).collect()
}

fn without_secret_configs(later: &[Later]) -> serde_json::Value {
    let mut all = serde_json::to_value(later).unwrap_or_default();
    let each = all.as_array_mut().into_iter().flatten();
    let scorers = each.filter_map(|later| later.get_mut("scorers")?.as_array_mut());
    for scorer in scorers.flatten() {
        if let Some(config) = scorer.get_mut("config") {
            redact::fields(config, &mark);
        }
    }
    all
}

fn mark(secret: &serde_json::Value) -> String {
    let digest = model::hex(&Sha256::digest(secret.to_string().as_bytes())[..4]);
    format!("[redacted, sha256 {digest}]")
}

/// Collects the facts that a summary needs in addition to the exchanges, from the plan and the
/// assessment. The caller adds the client's and the server's figures, and the dataset's remarks.
pub fn facts(plan: &Plan, assessment: Assessment, interrupted: bool) -> RunFacts {
    let launch = plan.about.launch_command.as_deref();
    let rate = plan.load.arrival.rate().filter(|rate| rate.is_finite());
    RunFacts {
        scorer_errors: assessment.error_count(),
        retokenized: assessment.retokenized,
        reasoning: assessment.reasoning,
        scores: assessment.scores,
        unscored: assessment.unscored,
        run_scores: assessment.run_scores,
        silent_scorers: assessment.silent,
        ..RunFacts::from(Run {
            backend: plan.backend.name.clone(),
            arrival: plan.load.arrival.to_string(),
            r#loop: if plan.load.arrival.is_open() { Loop::Open } else { Loop::Closed },
            request_rate: rate,
            even_rate: rate.is_some() && plan.load.arrival.is_even(),
            // A lane's session may have several requests in flight.
            max_in_flight: (plan.slots().filter(|_| plan.load.lanes.is_none()))
                .map(|slots| slots as u64),
            users: plan.slots().filter(|_| !plan.load.arrival.is_open()).map(|users| users as u64),
            machines: plan.machines,
            warmup_wave: (plan.load.warming == Warming::UntilStable)
                .then_some(u64::from(plan.load.warmup)),
            planned: plan.held_requests(),
            streamed: plan.request.stream,
            expected_acceptance_length: plan.expect.acceptance_length,
            simulated_acceptance: (launch.and_then(simulated_acceptance))
                .map(|setting| setting.name.to_owned()),
            ignore_eos: plan.request.ignore_eos,
            unforced: plan.request.unforced,
            context_tokens: plan.target.context_tokens,
            percentiles: plan.percentiles.clone(),
            failures_as_infinite: plan.failures_as_infinite,
            time_slice: plan.time_slice,
            first_due: plan.first_due(),
            goodput: plan.goodput.clone(),
            thresholds: plan.thresholds.clone(),
            tokenizer: Some(plan.tokenizer.summary()),
            rules: plan.rules.clone(),
            insecure: plan.connection.trust.insecure,
            plugins: plan.plugins(),
            sandbox: Some(plan.sandbox.clone()),
            interrupted,
            recorded_histories: plan.request.history == History::Recorded,
            ignored_options: plan.request.ignored.clone(),
            cost: plan.cost.clone(),
            ..Run::default()
        })
    }
}

fn add_later(facts: &mut RunFacts, later: Vec<Later>) {
    for later in later {
        facts.run.plugins.extend(later.scorers.iter().map(|scorer| Used {
            kind: Kind::Scorer,
            name: scorer.name.clone(),
            version: scorer.version.clone(),
            digest: scorer.digest.clone(),
        }));
        facts.scores.extend(later.scores);
        facts.unscored.extend(later.unscored);
        facts.left_out.extend(later.left_out);
        facts.run_scores.extend(later.run_scores);
        facts.silent_scorers.extend(later.silent);
        facts.scorer_errors += later.errors;
    }
}

/// The run in this folder, or all the runs below it, in the order of their start times.
pub fn runs(path: &Path) -> Result<Vec<RunFolder>, FolderError> {
    let mut found = Vec::new();
    search(path, &mut found)?;
    if found.is_empty() {
        return Err(FolderError::NoRun { path: path.to_owned() });
    }
    let mut timed = Vec::with_capacity(found.len());
    for run in found {
        timed.push((began(&run)?, run));
    }
    // Runs without a known time come last. Names order runs that began in the same instant.
    timed.sort_by(|(a, run), (b, other)| {
        (a.is_none(), a, run.path()).cmp(&(b.is_none(), b, other.path()))
    });
    Ok(timed.into_iter().map(|(_, run)| run).collect())
}

fn search(path: &Path, found: &mut Vec<RunFolder>) -> Result<(), FolderError> {
    if path.join(PLAN).is_file() {
        found.push(RunFolder::at(path));
        return Ok(());
    }
    let cannot = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            FolderError::NoRun { path: path.to_owned() }
        }
        _ => FolderError::List { path: path.to_owned(), cause },
    };
    let mut below: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let kind = entry.file_type().map_err(cannot)?;
        // A link to a run is followed, one to any other folder is not: it may lead in a circle.
        let linked = kind.is_symlink() && entry.path().join(PLAN).is_file();
        if kind.is_dir() || linked {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|path| search(path, found))
}

/// Finds the beginning of a run, to the second: from its status, else from its folder's name.
fn began(run: &RunFolder) -> Result<Option<String>, FolderError> {
    if let Some(status) = run.status()?
        && let Ok(started) = status.started.parse::<jiff::Timestamp>()
    {
        return Ok(Some(started.strftime(STAMP).to_string()));
    }
    let name = run.path().file_name().map(|name| name.to_string_lossy());
    let stamp = name.as_deref().and_then(|name| name.get(..15));
    let is_stamp = |stamp: &&str| {
        stamp.bytes().enumerate().all(|(place, byte)| match place {
            8 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    };
    Ok(stamp.filter(is_stamp).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a run's folder, with a status if it ended.
    fn run(parent: &Path, name: &str, started: Option<&str>) {
        let folder = parent.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(PLAN), "{}").unwrap();
        if let Some(started) = started {
            let status = format!(
                r#"{{"started": "{started}", "ended": "{started}", "interrupted": false}}"#
            );
            std::fs::write(folder.join("status.json"), status).unwrap();
        }
    }

    fn found(path: &Path, below: &Path) -> Vec<String> {
        let runs = runs(path).unwrap();
        let name = |run: &RunFolder| run.path().strip_prefix(below).unwrap().display().to_string();
        runs.iter().map(name).collect()
    }

    #[test]
    fn runs_below_come_in_the_order_in_which_they_began() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        run(root, "z", Some("2026-01-02T03:04:05.6Z"));
        run(root, "deep/er/a", Some("2026-01-02T03:04:06Z"));
        run(root, "20260102-030400-killed", None);
        run(root, "renamed", None);
        run(root, "z/within-a-run", Some("2020-01-01T00:00:00Z"));
        std::fs::create_dir(root.join("empty")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root, root.join("deep/circle")).unwrap();
            std::os::unix::fs::symlink(root.join("z"), root.join("deep/y")).unwrap();
        }
        let mut expected = vec!["20260102-030400-killed", "z", "deep/er/a", "renamed"];
        if cfg!(unix) {
            expected.insert(1, "deep/y");
        }
        assert_eq!(found(root, root), expected);
        assert_eq!(found(&root.join("z"), root), ["z"]);
    }

    #[test]
    fn missing_run_error_states_the_expected_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [folder.path(), &file, &folder.path().join("nowhere")] {
            let error = runs(path).unwrap_err().to_string();
            assert!(error.contains("expected a `plan.json`"), "{error}");
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }
}
