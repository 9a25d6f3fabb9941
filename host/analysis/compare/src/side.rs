//! The sides of a comparison: a run of ours, several repeats of one, or another tool's result.

use super::blocks::{Blocked, Cutting};
use super::prompts::{Places, Prompts};
use super::scores::Answers;
use audit::claim::Claim;
use model::exchange::Exchange;
use result::figure::{Figure, Statistic};
use result::finding::{Finding, Id, Severity};
use result::metric;
use result::summary::RunFacts;
use runs::Reported;
use statistics::decomposition::Decomposition;
use statistics::mean_if_any;

#[derive(Debug)]
pub enum Side {
    /// Runs of ours: one, or several repeats.
    Runs(Vec<Measured>),
    /// Runs of ours that took turns with the other side's, each with the requests of one of them.
    Turns(Turns),
    /// The figures that another tool states.
    Claim(Box<Stated>),
}

/// A side's turns in a paired run. Its figures are of the requests of all turns together.
#[derive(Debug)]
pub struct Turns {
    runs: Vec<Measured>,
    blocked: Option<Blocked>,
}

impl Turns {
    /// Reads the exchanges of each turn, for those figures. Errors: the first that cannot be read.
    pub fn read<E, I: Iterator<Item = Result<Exchange, E>>>(
        runs: Vec<(Reported, RunFacts, I)>,
        figures: &[Figure],
    ) -> Result<Self, E> {
        let turns = runs.len();
        let facts: Vec<RunFacts> = runs.iter().map(|(_, facts, _)| facts.clone()).collect();
        let first = facts.first().zip(runs.first());
        let mut cutting = first.map(|(facts, (reported, ..))| {
            Cutting::in_turns((facts, &reported.summary), figures, turns)
        });
        let mut measured = Vec::new();
        for (turn, ((reported, _, exchanges), facts)) in runs.into_iter().zip(&facts).enumerate() {
            if let Some(cutting) = &mut cutting {
                cutting.begin_turn(turn, (facts, &reported.summary));
            }
            measured.push(Measured::shown(reported, facts, &mut cutting, exchanges)?);
        }
        Ok(Turns { runs: measured, blocked: cutting.map(Cutting::finish) })
    }
}

/// The parts of a run of ours that a comparison uses.
#[derive(Debug)]
pub struct Measured {
    /// The facts that a report has about it.
    pub reported: Reported,
    pub prompts: Prompts,
    pub answers: Answers,
    /// Its blocks; absent if runs are too short for any.
    pub blocked: Option<Blocked>,
}

#[derive(Debug)]
pub struct Stated {
    pub claim: Claim,
    /// The reasons to doubt it, in a line each.
    pub doubts: Vec<String>,
    /// Its requests in blocks, if it has samples of them.
    pub blocked: Option<Blocked>,
}

impl Measured {
    /// Reads a run's exchanges, for those figures. Requests that `baseline` sent too stand in its
    /// blocks, so that blocks of both runs hold the same work, in whatever order it was sent.
    /// Errors: the first that cannot be read.
    pub fn read<E>(
        reported: Reported,
        facts: &RunFacts,
        figures: &[Figure],
        blocks: Option<usize>,
        baseline: Option<&Places>,
        exchanges: impl Iterator<Item = Result<Exchange, E>>,
    ) -> Result<Self, E> {
        let slices = reported.plan.slice.map_or(1, |slice| slice.of);
        let mut cutting =
            blocks.map(|blocks| Cutting::new((facts, &reported.summary), slices, figures, blocks));
        if let (Some(cutting), Some(baseline)) = (&mut cutting, baseline) {
            cutting.place_as(baseline);
        }
        let measured = Measured::shown(reported, facts, &mut cutting, exchanges)?;
        Ok(Measured { blocked: cutting.map(Cutting::finish), ..measured })
    }

    /// A run without blocks, whose exchanges were cut on the way.
    fn shown<E>(
        reported: Reported,
        facts: &RunFacts,
        cutting: &mut Option<Cutting<'_>>,
        exchanges: impl Iterator<Item = Result<Exchange, E>>,
    ) -> Result<Self, E> {
        let (mut prompts, mut answers) = (Prompts::default(), Answers::new(&facts.scores));
        for exchange in exchanges {
            let exchange = exchange?;
            prompts.add(&exchange);
            answers.add(&exchange);
            if let Some(cutting) = cutting {
                cutting.add(&exchange);
            }
        }
        Ok(Measured { reported, prompts, answers, blocked: None })
    }

    /// Finds the place of each of its requests, for a run to compare with it.
    pub fn places(&self) -> Places {
        let slices = self.reported.plan.slice.map_or(1, |slice| slice.of);
        Places::new(&self.prompts, slices)
    }
}

impl Stated {
    /// A claim, cut into this many blocks if it has samples.
    pub fn new(claim: Claim, doubts: Vec<String>, blocks: Option<usize>) -> Self {
        let samples: Vec<(&'static str, Vec<f64>)> = LATENCIES
            .into_iter()
            .filter_map(|theirs| {
                let metric = metric::by_name(metric_of(&claim, theirs)?)?;
                let values = claim.values(theirs);
                (!values.is_empty()).then_some((metric.name, values))
            })
            .collect();
        let blocked = blocks.filter(|_| !samples.is_empty());
        Stated {
            blocked: blocked.map(|blocks| Blocked::of_samples(&samples, blocks)),
            claim,
            doubts,
        }
    }

    /// The number of requests with samples; `None` if there are none.
    pub fn requests(claim: &Claim) -> Option<u64> {
        (!claim.samples.is_empty()).then_some(claim.samples.len() as u64)
    }
}

/// Findings about work beside a run or limits on it, which change its times by an unknown amount.
const WORK_BESIDE: [Id; 5] =
    [Id::SharedMachine, Id::StolenTime, Id::Throttled, Id::ClientSaturated, Id::ClientPaused];

/// The latencies that every tool has a name for.
pub const LATENCIES: [&str; 4] = [metric::TTFT, metric::TPOT, metric::ITL, metric::E2E];

/// Our metric that a claim's latency equals.
pub(crate) fn metric_of<'c>(claim: &'c Claim, theirs: &str) -> Option<&'c str> {
    claim.definitions.get(theirs)?.metric.as_deref()
}

impl Side {
    /// The figure; of several runs the mean over the runs that have it.
    pub fn value(&self, figure: &Figure) -> Option<f64> {
        match self {
            Side::Runs(_) => mean_if_any(&self.values(figure)),
            Side::Turns(turns) => {
                let whole = self.taken(figure).and_then(|t| t.mixed(&vec![1; turns.runs.len()]));
                whole.or_else(|| mean_if_any(&self.values(figure)))
            }
            Side::Claim(stated) => stated.claim.figure(figure).map(|stated| stated.value),
        }
    }

    /// The figure of each run that has it; none for a claim.
    pub fn values(&self, figure: &Figure) -> Vec<f64> {
        let runs = self.measured().iter();
        runs.filter_map(|run| figure.read(&run.reported.summary)).collect()
    }

    /// The share of its runs whose percentile the requests that failed or were not sent make the
    /// worst there is: infinite, or zero for a speed. Zero for other figures.
    pub(super) fn spoiled(&self, figure: &Figure) -> f64 {
        if !matches!(figure, Figure::Of(_, Statistic::Percentile(_))) {
            return 0.0;
        }
        let is_spoiled = |run: &&Measured| {
            let summary = &run.reported.summary;
            let own = figure.read(summary);
            let with = figure.read_with_failures(summary).filter(|_| own != Some(0.0));
            with.is_some_and(|with| with.is_infinite() || with == 0.0)
        };
        let runs = self.measured();
        runs.iter().filter(is_spoiled).count() as f64 / runs.len().max(1) as f64
    }

    /// Its blocks, if the side is one run or has samples.
    fn blocked(&self) -> Option<&Blocked> {
        match self {
            Side::Runs(runs) => match runs.as_slice() {
                [run] => run.blocked.as_ref(),
                _ => None,
            },
            Side::Turns(turns) => turns.blocked.as_ref(),
            Side::Claim(stated) => stated.blocked.as_ref(),
        }
    }

    /// The figure by blocks, if the side is one run or has samples.
    pub fn taken(&self, figure: &Figure) -> Option<Decomposition> {
        self.blocked()?.take(figure)
    }

    /// Returns the variation of the load over the blocks, as a share of it. `None` where the side
    /// is not one run of ours, or the engine's answers decide the times of requests.
    pub(super) fn load(&self) -> Option<f64> {
        self.blocked()?.load
    }

    /// The number of runs; one for turns, and for a claim, about which nothing more is known.
    pub fn runs(&self) -> usize {
        match self {
            Side::Runs(runs) => runs.len(),
            Side::Turns(_) | Side::Claim(_) => 1,
        }
    }

    /// The findings that doubt its runs, or their times: the first of each kind.
    pub(super) fn findings(&self) -> Vec<&Finding> {
        let runs = self.measured().iter();
        let mut found: Vec<&Finding> = Vec::new();
        for finding in runs.flat_map(|run| &run.reported.summary.findings) {
            let doubts = finding.severity > Severity::Note || WORK_BESIDE.contains(&finding.id);
            if doubts && found.iter().all(|own| own.id != finding.id) {
                found.push(finding);
            }
        }
        found
    }

    /// True if other work, or a limit, changed the times of a run.
    pub(super) fn has_work_beside(&self) -> bool {
        self.findings().iter().any(|finding| WORK_BESIDE.contains(&finding.id))
    }

    /// The runs, if they are ours.
    pub fn measured(&self) -> &[Measured] {
        match self {
            Side::Runs(runs) => runs,
            Side::Turns(turns) => &turns.runs,
            Side::Claim(_) => &[],
        }
    }

    pub fn claim(&self) -> Option<&Claim> {
        match self {
            Side::Runs(_) | Side::Turns(_) => None,
            Side::Claim(stated) => Some(&stated.claim),
        }
    }

    /// True if it states or measured the metric at all.
    pub fn has(&self, metric: &'static str) -> bool {
        self.value(&Figure::Of(metric, Statistic::Mean)).is_some()
            || self.value(&Figure::Of(metric, Statistic::Percentile(50.0))).is_some()
    }
}
