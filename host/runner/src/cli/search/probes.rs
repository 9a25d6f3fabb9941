//! One run of a search: made, watched for a backlog that grows, and read.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::failure::Failure;
use super::super::interrupt::Interrupt;
use super::super::loads::{self, Amount};
use super::super::machines::Machines;
use super::super::measure::{Overseer, Place};
use super::super::watch::Displays;
use model::arrival::Arrival;
use model::units::Nanos;
use result::finding::{Finding, Id, Severity};
use result::metric::Reading;
use search::control::Arrivals;
use search::gather::Gather;
use search::slo::Tier;
use search::sweep::At;
use search::watch::{Alarm, Progress, Watch};
use search::{Load, Outcome, Probe, Report};
use session::live::{Phase, Snapshot};
use session::{MeasuredRun, Source};

/// Findings about the server, which leave no run out: such requests miss the objectives.
const SERVERS: [Id; 4] = [Id::NothingAnswered, Id::Failures, Id::NotSent, Id::Interrupted];

pub(super) struct Probes<'p> {
    pub source: &'p Source,
    /// The folder in which each run gets a folder.
    pub within: &'p Path,
    pub machines: &'p Machines,
    pub displays: &'p Displays,
    pub interrupt: &'p Interrupt,
}

impl Probes<'_> {
    /// Makes a run. Gives its result, and the name of its folder.
    pub(super) fn make(
        &self,
        probe: &Probe,
        tiers: &[Tier],
        left: Option<Duration>,
    ) -> Result<(Report, String), Failure> {
        let began = Instant::now();
        let amount = Amount {
            load: probe.load,
            at: At::Load(probe.at),
            requests: Some(probe.requests),
            seed: Some(probe.seed),
        };
        let source = loads::with(self.source, amount);
        let guard = Guard {
            watch: (probe.load == Load::Rate).then(|| Mutex::new((Watch::new(1.0), None))),
            sends_for: probe.seconds.and_then(|own| Duration::try_from_secs_f64(own).ok()),
            stops_at: left.and_then(|left| began.checked_add(left)),
            is_late: AtomicBool::new(false),
        };
        let place = Place { within: self.within, repeat: None, overseer: Some(&guard) };
        let measured =
            self.machines.measured(&source, &amount, place, self.displays, self.interrupt);
        self.interrupt.done();
        let measured = measured?;
        let folder = measured.folder.path().file_name().unwrap_or_default();
        let folder = folder.to_string_lossy().into_owned();
        let late = guard.is_late.load(Ordering::Acquire);
        let late = late.then(|| "it was under way when the time was over (--within)".to_owned());
        let alarm = guard.watch.as_ref().and_then(|watch| locked(watch).1);
        let outcome = match (alarm, invalid(&measured.summary.findings).or(late)) {
            (_, Some(why)) => Outcome::Invalid { why },
            (Some(alarm), None) => Outcome::Stopped(alarm),
            (None, None) => Outcome::Measured(gathered(measured, tiers, probe)?),
        };
        let probe = probe.clone();
        let seconds = began.elapsed().as_secs_f64();
        Ok((Report { probe, outcome, seconds }, folder))
    }
}

fn invalid(findings: &[Finding]) -> Option<String> {
    let counts = |finding: &&Finding| {
        finding.severity == Severity::Invalid && !SERVERS.contains(&finding.id)
    };
    let finding = findings.iter().find(counts)?;
    Some(format!("{}: {}", finding.id.name(), finding.seen))
}

fn gathered(
    measured: MeasuredRun,
    tiers: &[Tier],
    probe: &Probe,
) -> Result<search::gather::Measured, Failure> {
    let MeasuredRun { plan, ended, folder, facts, summary, .. } = measured;
    ended?;
    let is_independent = matches!(
        plan.load.arrival,
        Arrival::Constant { .. } | Arrival::Poisson { .. } | Arrival::Gamma { .. }
    );
    let is_open = plan.load.slots().is_none() && summary.sessions.is_none();
    let arrivals =
        (is_independent && is_open).then_some(Arrivals { per_s: probe.at, seed: probe.seed });
    let mut gather = Gather::new(tiers);
    for exchange in folder.read()? {
        let exchange = exchange?;
        let retokenized = facts.retokenized.get(exchange.index);
        let reading = Reading::new(&exchange, facts.run.streamed, retokenized);
        gather.add(&reading);
    }
    Ok(gather.finish(summary.concurrency.backlog, arrivals))
}

/// Stops a run whose backlog grows, or whose time is over.
struct Guard {
    /// The detector of a backlog that grows, and its alarm; absent in a closed loop. Gaps are taken
    /// for a Poisson process's; with more even ones, it is slower to raise an alarm than it might
    /// be.
    watch: Option<Mutex<(Watch, Option<Alarm>)>>,
    /// The time since the first request was due, after which the run sends no more.
    sends_for: Option<Duration>,
    stops_at: Option<Instant>,
    is_late: AtomicBool,
}

fn locked(
    watch: &Mutex<(Watch, Option<Alarm>)>,
) -> std::sync::MutexGuard<'_, (Watch, Option<Alarm>)> {
    watch.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Overseer for Guard {
    fn stops(&self, state: &Snapshot) -> bool {
        if self.stops_at.is_some_and(|end| Instant::now() > end) {
            self.is_late.store(true, Ordering::Release);
            return true;
        }
        let (Some(watch), Phase::Measuring, Some(at), Some(due)) =
            (&self.watch, state.counts.phase, state.counts.elapsed, state.counts.due)
        else {
            return false;
        };
        let progress = Progress {
            at: Nanos(at.0),
            due,
            sent: state.counts.given_out,
            ended: state.counts.over(),
        };
        let mut watch = locked(watch);
        if let Some(ttft) = state.ttft.recent {
            watch.0.waits(Nanos::from_secs_f64(ttft.p50_ms / 1000.0));
        }
        let alarm = watch.0.sample(progress);
        watch.1 = watch.1.or(alarm);
        alarm.is_some()
    }

    fn ends(&self, state: &Snapshot) -> bool {
        let elapsed = (state.counts.elapsed).filter(|_| state.counts.phase == Phase::Measuring);
        let is_over = |(at, most): (Nanos, Duration)| u128::from(at.0) >= most.as_nanos();
        elapsed.map(|at| Nanos(at.0)).zip(self.sends_for).is_some_and(is_over)
    }
}
