//! The further steps of a run, each a type. A [`CheckedRun`] begins and becomes a [`StartedRun`].
//! Then come the load ([`LoadedRun`]), the observations on disk ([`SavedRun`]), the assessed
//! answers ([`AssessedRun`]) and the result ([`MeasuredRun`]).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::Recording;
use load::pace::Signal;
use load::thread_group::{ThreadGroup, trip};
use load::transport::Connect;
use model::client::Overruns;
use model::identity::RunId;
use model::target::Secrets;
use plugins::sandbox::LogBook;
use plugins::{PluginError, dataset};
use result::summary::{
    Client, Dataset, Fleet, Remark, RunFacts, Server, Summary, Survey, Treatment,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use runs::Repeat;
use runs::assessment::Assessment;
use runs::environment::Environment;
use runs::folder::{self, FolderError, RunFolder, Status};
use runs::record::{RecordError, Written};
use scenario::plan::Plan;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::assess::assess_read;
use crate::check::CheckedRun;
use crate::gate::Gate;
use crate::live::Live;
use crate::parts::RunError;
use crate::prepare::salt;
use crate::reuse::SentPrompts;
use crate::run::{Control, Execute, Executor, Setup, Threads};
use crate::series::Sampling;
use crate::telemetry::{self, DeviceRecord, NoDevices, Watching};
use model::clock::Clock;

/// The folder in which a run is kept, and the facts that it records before the first request.
pub struct Record {
    /// The folder in which the run gets a folder of its own.
    pub output: PathBuf,
    pub started: jiff::Timestamp,
    pub environment: Environment,
    pub repeat: Option<Repeat>,
}

/// The end of the load, as the caller knows it.
pub struct Ending {
    /// Time of the end, in UTC.
    pub at: String,
    pub interrupted: bool,
}

pub struct StartedRun<E> {
    run: CheckedRun,
    folder: RunFolder,
    started: String,
    control: Control,
    executor: E,
}

pub struct LoadedRun {
    run: CheckedRun,
    folder: RunFolder,
    started: String,
    live: Arc<Live>,
    group: ThreadGroup,
    ended: Result<(), RunError>,
}

pub struct SavedRun {
    run: CheckedRun,
    folder: RunFolder,
    group: ThreadGroup,
    made: Measurements,
    cut_short: bool,
    /// True if its file of records is whole, and has none.
    is_empty: bool,
    devices: Option<Recording>,
    series: Option<::series::Recording>,
    first_token: Option<Instant>,
    kept: Result<(), FolderError>,
}

pub struct AssessedRun {
    plan: Plan,
    folder: RunFolder,
    ended: Result<(), RunError>,
    facts: RunFacts,
    /// Facts of all records that the summary needs first, gathered by the assessment.
    survey: Option<Survey>,
    unjudged: Option<Unjudged>,
    first_token: Option<Instant>,
    kept: Result<(), FolderError>,
}

/// Answers that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    pub failures: u64,
    pub first: String,
}

#[derive(Debug)]
pub struct MeasuredRun {
    pub plan: Plan,
    pub folder: RunFolder,
    pub ended: Result<(), RunError>,
    pub facts: RunFacts,
    pub summary: Summary,
    pub unjudged: Option<Unjudged>,
    /// The instant of the server's first token, or of its first answer where replies are not
    /// streamed. `None` without an answer, and where other machines made the load.
    pub first_token: Option<Instant>,
    /// The result of writing into the folder; the rest is shown even after an error.
    pub kept: Result<(), FolderError>,
}

impl CheckedRun {
    /// Leaves the devices and the server's pages out, which another process reads for all.
    pub fn without_devices(mut self) -> Self {
        self.plan.device_metrics = None;
        self.plan.control.server_series = None;
        self
    }

    /// Creates the run's folder and writes the facts before the first request.
    pub fn begin<E: Executor>(
        mut self,
        record: Record,
        executor: E,
    ) -> Result<StartedRun<E>, BeginError> {
        self.parts.run_id = identity(&self.plan, &record.started, executor.is_in_real_time());
        if self.plan.load.salted {
            let started = record.started.to_string();
            self.plan.load.salt = Some(salt(self.plan.load.seed, &started, &self.tokenizer));
        }
        let devices = if executor.is_in_real_time() { telemetry::open(&self.plan)? } else { None };
        let title = self.plan.name.clone();
        let title = (self.source).folder_title(title, self.plan.target.model());
        let folder = RunFolder::create(&record.output, &title, &record.started)
            .map_err(BeginError::Create)?;
        let written = folder.begin(&self.plan, &record.environment);
        let written = written.and_then(|()| folder.write_some(record.repeat.as_ref()));
        written.map_err(|error| {
            folder.discard_unbegun();
            BeginError::Write(error)
        })?;
        let mut run = self;
        if run.plan.control.cache_report {
            let prompts = SentPrompts::within(folder.path()).map_err(|cause| {
                folder.discard_unbegun();
                BeginError::Write(FolderError::Write { path: folder.path().to_owned(), cause })
            })?;
            run.parts.prompts = Some(Arc::new(prompts));
        }
        let signal = executor.signal();
        let live = Live::timed_by(&run.timings);
        live.telemetry.prepare(devices);
        let control =
            Control { group: ThreadGroup::new(&signal), signal, live: Arc::new(live), gate: None };
        Ok(StartedRun { run, folder, started: record.started.to_string(), control, executor })
    }
}

impl<E> StartedRun<E> {
    pub fn plan(&self) -> &Plan {
        &self.run.plan
    }

    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    pub fn signal(&self) -> &Signal {
        &self.control.signal
    }

    pub fn threads(&self) -> &ThreadGroup {
        &self.control.group
    }

    pub fn live(&self) -> &Arc<Live> {
        &self.control.live
    }

    /// Has the run wait there for others.
    pub fn behind(mut self, gate: Gate) -> Self {
        self.control.gate = Some(gate);
        self
    }

    /// Begins to read the devices and the servers' pages of a run that others make, by its clock.
    pub fn watch_devices(&self, clock: Clock) -> Result<Devices, RunError> {
        self.control.live.date(clock);
        let live = Arc::clone(&self.control.live);
        let enlist = move |thread| live.enlist(thread);
        let (live, folder) = (&self.control.live, self.folder.path());
        let devices = live.telemetry.watch(clock, folder, enlist.clone())?;
        let made = (&self.run.plan, &self.run.parts);
        let pages = live.pages.watch(made, clock, folder, enlist)?;
        Ok(Devices(devices, pages))
    }

    /// Takes the last sample of the devices, and the last page of each server.
    pub fn leave_devices(&self, devices: Devices) {
        self.control.live.telemetry.finish(devices.0);
        self.control.live.pages.finish(devices.1);
    }

    /// Writes the measurements of others, in place of a load of its own.
    pub fn made_elsewhere(self, made: Measurements, ending: &Ending) -> SavedRun {
        let StartedRun { run, folder, started, control, .. } = self;
        saved((run, folder, started), (&control.live, control.group), made, ending)
    }

    /// Makes the load, from the warm-up to the last record.
    pub async fn load<C>(self, connect: &C) -> LoadedRun
    where
        C: Connect,
        E: Execute<C>,
    {
        let StartedRun { run, folder, started, control, executor } = self;
        let CheckedRun { plan, parts, .. } = &run;
        let setup = Setup { plan, parts, folder: folder.path(), control: &control };
        let ended = executor.execute(setup, connect).await;
        LoadedRun { run, folder, started, live: control.live, group: control.group, ended }
    }
}

impl StartedRun<Threads> {
    /// [`StartedRun::load`] for a caller without a runtime: blocks until the load is over.
    pub fn load_now<C: Connect + Clone + Send + 'static>(self, connect: &C) -> LoadedRun {
        pollster::block_on(self.load(connect))
    }
}

impl LoadedRun {
    /// Writes the end of the load, this client's figures, and the server's counts.
    pub fn keep(self, ending: &Ending) -> SavedRun {
        let LoadedRun { run, folder, started, live, group, ended } = self;
        let client = live.client.get().map(|client| Client {
            plugin_overruns: overruns(&run.log),
            cleaning: live.cleaned.get().cloned(),
            renewals: live.renewed.get().cloned(),
            ..client.clone()
        });
        let remarks = live.remarks.get().filter(|remarks| !remarks.is_empty());
        let made = Measurements {
            records: live.written.get().cloned(),
            unsent: live.unsent.load(Ordering::Acquire),
            fleet: None,
            client,
            server: live.server.get().cloned(),
            dataset: remarks.map(|remarks| altered(remarks, &run.parts.secrets)),
            ended,
        };
        saved((run, folder, started), (&live, group), made, ending)
    }

    /// All steps after the load.
    pub fn finish(self, ending: &Ending) -> Result<MeasuredRun, NotMeasured> {
        Ok(self.keep(ending).measured()?.assess()?.summarise()?)
    }
}

/// Writes the end of a load and its measurements into the run's folder.
fn saved(
    (run, folder, started): (CheckedRun, RunFolder, String),
    (live, group): (&Live, ThreadGroup),
    made: Measurements,
    ending: &Ending,
) -> SavedRun {
    let pages = live.pages.written();
    let status = Status {
        started,
        origin: live.origin.get().copied(),
        ended: ending.at.clone(),
        interrupted: ending.interrupted,
        unsent: made.unsent,
        timings: run.timings.reached(),
        records: made.records.clone(),
        series: pages.as_ref().and_then(|pages| pages.as_ref().ok()).cloned(),
        error: (made.ended.as_ref().err())
            .map(|error| run.parts.secrets.redact(&error.to_string())),
    };
    let mut kept = folder
        .write(&status)
        .and(folder.write_some(made.fleet.as_ref()))
        .and(folder.write_some(made.client.as_ref()))
        .and(folder.write_some(made.server.as_ref()))
        .and(folder.write_some(made.dataset.as_ref()));
    let devices = live.telemetry.recorded().map(|DeviceRecord { recording, written }| {
        let so_far = std::mem::replace(&mut kept, Ok(()));
        kept = so_far.and(written.map_err(FolderError::from));
        recording
    });
    let (series, written) = series(pages, &folder);
    SavedRun {
        cut_short: status.interrupted || status.error.is_some(),
        // Others that made the load recorded something, or tried to.
        is_empty: made.fleet.is_none() && status.records.is_some_and(|written| written.count == 0),
        first_token: live.first_token(),
        run,
        folder,
        group,
        made,
        devices,
        series,
        kept: kept.and(written),
    }
}

/// Draws the identity of a run. In virtual time, where each run must be the same, it follows from
/// the seed and the start of the run. So it does if the system has no random numbers.
fn identity(plan: &Plan, started: &jiff::Timestamp, is_in_real_time: bool) -> RunId {
    let mut bytes = [0; 16];
    if !is_in_real_time || SystemRandom::new().fill(&mut bytes).is_err() {
        let part = plan.slice.map_or(0, |slice| slice.index);
        let digest = Sha256::digest(format!("{} {started} {part}", plan.load.seed));
        bytes.copy_from_slice(&digest[..16]);
    }
    RunId::new(bytes)
}

/// States a dataset's changes to its input in the terms of a result.
fn altered(remarks: &[dataset::Remark], secrets: &Secrets) -> Dataset {
    let stated = remarks.iter().map(|remark| Remark {
        what: treatment(remark.what),
        reason: secrets.redact(&remark.reason),
        count: remark.count,
        first: remark.first.as_deref().map(|first| secrets.redact(first)),
    });
    Dataset { remarks: stated.collect() }
}

pub(crate) fn treatment(by_plugin: dataset::Treatment) -> Treatment {
    match by_plugin {
        dataset::Treatment::Dropped => Treatment::Dropped,
        dataset::Treatment::Truncated => Treatment::Truncated,
        dataset::Treatment::Repaired => Treatment::Repaired,
        dataset::Treatment::Repeated => Treatment::Repeated,
    }
}

/// The calls to plugins that were stopped, as a result states them.
fn overruns(log: &LogBook) -> BTreeMap<String, Overruns> {
    let stated = log.overruns().into_iter().map(|(plugin, overruns)| {
        (plugin, Overruns { calls: overruns.calls, seconds: overruns.time.as_secs_f64() })
    });
    stated.collect()
}

/// Reads the server's series back, if its pages were sampled; second, whether all were written.
fn series(
    written: Option<Result<Written, RecordError>>,
    folder: &RunFolder,
) -> (Option<::series::Recording>, Result<(), FolderError>) {
    let Some(written) = written else { return (None, Ok(())) };
    let written = written.map(drop).map_err(FolderError::from);
    match runs::series::read(folder.path()) {
        Ok(recording) => (recording, written),
        Err(error) => (None, written.and(Err(error.into()))),
    }
}

impl SavedRun {
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Returns the end of the load, and the error if files could not be written.
    pub fn ended(self) -> (Result<(), RunError>, Result<(), FolderError>) {
        (self.made.ended, self.kept)
    }

    /// Returns the measurements of this process, for a run that several make together.
    pub fn part(&self) -> Part {
        Part {
            unsent: self.made.unsent,
            error: self.made.ended.as_ref().err().map(ToString::to_string),
            client: self.made.client.clone(),
            server: self.made.server.clone(),
            dataset: self.made.dataset.clone(),
        }
    }

    /// Makes sure that there are records to assess. Removes a folder that holds only a plan.
    pub fn measured(self) -> Result<Self, NotMeasured> {
        let readable = self.folder.read().map(drop);
        let ended = match (readable, self.made.ended) {
            (Ok(()), Err(why)) if why.is_before_measurement() => {
                return Err(NotMeasured::Ended(why));
            }
            // The input holds no sample. The folder of a run with a failing plugin is kept.
            (Ok(()), Err(why)) if self.is_empty && is_no_sample(&why) => {
                self.folder.discard_unrecorded();
                return Err(unbegun(why, &self.run.plan));
            }
            (Ok(()), ended) => ended,
            // It ended before anything was recorded: the reason matters more than the empty result.
            (Err(_), Err(why)) => {
                self.folder.discard_unbegun();
                return Err(unbegun(why, &self.run.plan));
            }
            (Err(error), Ok(())) => return Err(error.into()),
        };
        Ok(SavedRun { made: Measurements { ended, ..self.made }, ..self })
    }

    /// Has the tokenizer count the answers, and the scorers judge them.
    pub fn assess(self) -> Result<AssessedRun, FolderError> {
        self.assess_until(|| false)
    }

    /// The same, but stops as soon as this is true: then nothing is counted or judged.
    pub fn assess_until(self, given_up: impl Fn() -> bool) -> Result<AssessedRun, FolderError> {
        let SavedRun { run, folder, group, made, mut cut_short, first_token, mut kept, .. } = self;
        let Measurements { unsent, fleet, client, server, dataset, mut ended, .. } = made;
        let abandoned = Arc::new(AtomicBool::new(false));
        let work = {
            let (folder, abandoned) = (folder.clone(), Arc::clone(&abandoned));
            let (tokenizer, scorers) = (Arc::clone(&run.tokenizer), run.scorers.clone());
            let (plan, prompts) = (run.plan.clone(), run.parts.prompts.clone());
            move || {
                trip("assess");
                let given_up = || abandoned.load(Ordering::Relaxed);
                // All records are read here anyway.
                let facts = folder::facts(&plan, Assessment::default(), false);
                let mut survey = Survey::new(&facts.run);
                let records = folder.read()?.inspect(|read| {
                    if let Ok(exchange) = read {
                        survey.add(exchange);
                    }
                });
                let assessed = assess_read(records, &tokenizer, &scorers, given_up)?;
                let counted = match &prompts {
                    Some(prompts) => prompts.count(&plan, &tokenizer, folder.read()?, given_up)?,
                    None => None,
                };
                Ok::<_, FolderError>(assessed.map(|assessed| (assessed, counted, survey)))
            }
        };
        // A scorer may not return for as long as its limit is, which is up to the user.
        let assessed = group.until(given_up, "assess", work);
        abandoned.store(true, Ordering::Relaxed);
        let panicked = || group.panicked().map_or(RunError::Unassessed, RunError::Panicked);
        let assessed = match assessed {
            Ok(assessed) => assessed.transpose()?.flatten().ok_or_else(panicked),
            Err(cause) => Err(RunError::Thread(cause)),
        };
        let (assessment, cache, survey) = match assessed {
            Ok((assessment, cache, survey)) => (assessment, cache, Some(survey)),
            Err(why) => {
                let mut none = Assessment::default();
                none.failed(why.to_string());
                ended = ended.and(Err(why));
                cut_short = true;
                (none, None, None)
            }
        };
        kept = kept.and(folder.write(&assessment));
        kept = kept.and(folder.write_some(cache.as_ref()));
        let secrets = &run.parts.secrets;
        let lines = run.log.drain();
        let logged: Vec<String> = lines.iter().map(|line| secrets.redact(line)).collect();
        kept = kept.and(folder.write_log(&logged));
        let first = assessment.errors.first().cloned();
        let unjudged = first.map(|first| Unjudged { failures: assessment.error_count(), first });
        let facts = RunFacts {
            unsent,
            fleet,
            client,
            server,
            devices: self.devices,
            series: self.series,
            dataset,
            cache,
            ..folder::facts(&run.plan, assessment, cut_short)
        };
        let plan = run.plan;
        Ok(AssessedRun { plan, folder, ended, facts, survey, unjudged, first_token, kept })
    }
}

impl AssessedRun {
    pub fn summarise(self) -> Result<MeasuredRun, FolderError> {
        trip("summarise");
        let AssessedRun { plan, folder, ended, facts, survey, unjudged, first_token, kept } = self;
        let summary = match survey {
            Some(survey) => folder.summarize_surveyed(&facts, survey)?,
            None => folder.summarize(&facts)?,
        };
        let kept = kept.and(folder.write(&summary));
        Ok(MeasuredRun { plan, folder, ended, facts, summary, unjudged, first_token, kept })
    }
}

/// The most files that an error names: a folder may have thousands.
const MOST_FILES: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Create(FolderError),
    #[error(transparent)]
    Write(FolderError),
    #[error(transparent)]
    Devices(#[from] NoDevices),
}

/// The reason why a run that began has no result.
#[derive(Debug, thiserror::Error)]
pub enum NotMeasured {
    #[error(transparent)]
    Ended(RunError),
    /// The dataset refused its input; the error adds the paths of the files.
    #[error("{why} ({})", .files.join(", "))]
    Input { why: RunError, files: Vec<String> },
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// True if the dataset refused its input before it gave a sample.
fn is_no_sample(why: &RunError) -> bool {
    matches!(why, RunError::NoSample(error) if matches!(**error, PluginError::Input { .. }))
}

/// Returns the error for a run that ended before its first record.
fn unbegun(why: RunError, plan: &Plan) -> NotMeasured {
    let is_input = matches!(&why, RunError::Plugin(PluginError::Input { .. }));
    if !is_input && !is_no_sample(&why) {
        return NotMeasured::Ended(why);
    }
    let files = plan.dataset.files.iter();
    let further = files.len().saturating_sub(MOST_FILES);
    let files = files
        .take(MOST_FILES)
        .map(|(name, file)| format!("`{name}` is {}", file.path.display()))
        .chain((further > 0).then(|| format!("and {further} more")))
        .collect();
    NotMeasured::Input { why, files }
}

/// The measurements of one process, beside its records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Part {
    /// Requests that were due, and have no record.
    pub unsent: u64,
    /// Reason why its load ended early, if it did.
    pub error: Option<String>,
    pub client: Option<Client>,
    /// The server's own counts, if this process asked.
    pub server: Option<Server>,
    /// The dataset's changes to its input.
    pub dataset: Option<Dataset>,
}

/// The measurements of a load whose records are in its run's folder; see also [`Part`].
pub struct Measurements {
    /// The records that were written; absent if not all could be.
    pub records: Option<Written>,
    pub unsent: u64,
    /// The processes that made the load, if they were several.
    pub fleet: Option<Fleet>,
    /// Performance of the client; of several, of the worst.
    pub client: Option<Client>,
    pub server: Option<Server>,
    pub dataset: Option<Dataset>,
    pub ended: Result<(), RunError>,
}

/// The devices and the server's metrics pages of a run that others make, while they are read.
pub struct Devices(Option<Watching>, Option<Sampling>);
