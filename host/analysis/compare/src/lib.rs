//! Comparison: the difference of sides in each figure, with its confidence, and whether they are
//! comparable at all. A side is a run, several repeats of one, or another tool's result.
//!
//! Pure: takes records one by one and returns a result. The command line finds the folders and
//! files, `report` lays out the result, `figure` defines the figures, and `finding` decides when to
//! doubt a run.
//!
//! **How a difference is found.** Requests in flight together share a batch and a queue. So blocks
//! of consecutive requests are resampled, at the same places of both runs. Throughput and gaps are
//! split by time instead, because a pause affects all requests in flight. Near capacity a metric
//! walks through the run: the KPSS test and the correlation of neighbours detect that, and the
//! error grows by as far as the walk gets. Several runs per side use Student's or Welch's interval
//! over one value per run. A difference is shown if Benjamini and Hochberg's procedure at 5 % over
//! all figures finds the difference and its interval excludes zero. So equal sides differ in at
//! most 5 of 100 comparisons, for any number of figures. *Same* takes two one-sided tests.

pub mod agreed;
mod blocks;
mod choice;
pub mod comparable;
pub mod condition;
pub mod explain;
pub mod limits;
mod prompts;
mod row;
mod scores;
mod sensitivity;
mod side;
pub mod until;
pub mod variation;

/// Exchanges for tests, the same as in `result`.
#[cfg(test)]
#[path = "../../../measure/result/src/summary/fixture.rs"]
mod exchanges;
// Its fixture is of the tests of `report`, too.
#[cfg(test)]
extern crate self as compare;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod judged;
#[cfg(test)]
mod laboratory;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trials;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use blocks::blocks;
pub use choice::{Choice, figures, percentiles};
pub(crate) use comparable::compatibility;
pub use comparable::{Compatibility, Difference, Kind, Obstacle};
pub use condition::{Condition, Outcome};
pub use prompts::Places;
pub use row::{Judgement, Row};
pub use scores::{Answers, Flipped, Paired, PairedBy, flipped};
pub use side::{Measured, Side, Stated, Turns};
pub use variation::Variation;

use model::about::About;
use result::figure::Figure;
use result::finding::Verdict;
use result::metric;
use row::{Means, judge, row};
use statistics::bootstrap::Draws;
use statistics::interval::{Interval, LEVEL};

/// A comparison of sides with the first of them.
#[model::apply(model::document!)]
pub struct Compared {
    /// The sides, the baseline first.
    pub sides: Vec<SideFacts>,
    /// Confidence level of the intervals, in percent.
    pub level: f64,
    /// The difference, as a share of the baseline, up to which two figures count as the same;
    /// absent if none was given.
    pub same_within: Option<f64>,
    /// Differences in settings that must agree, which were allowed.
    pub allowed: Vec<Obstacle>,
    /// Differences in what people compare on purpose.
    pub differences: Vec<Difference>,
    /// Settings that cannot be checked, because a side does not state them.
    pub unknown: Vec<String>,
    /// Each further side against the baseline.
    pub pairs: Vec<Pair>,
    /// The conditions that make the comparison fail, and whether they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Outcome>,
}

/// The facts about a side.
#[model::apply(model::document!)]
pub struct SideFacts {
    /// Its letter.
    pub name: String,
    /// The folders of its runs, or the place of a claim.
    pub sources: Vec<String>,
    /// The name of the scenario in the source.
    pub scenario: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The subject of its runs.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
    /// The worst verdict of its runs; absent for another tool's result.
    pub verdict: Option<Verdict>,
    /// The overhead that a gateway states in its replies; absent if none does.
    pub gateway_overhead: Option<GatewayOverhead>,
    /// The tool that stated it; absent for a run of this program.
    pub tool: Option<String>,
    /// Reasons to doubt its figures: findings of its runs, or an audit's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// A gateway's own time, as it states in its replies; means over the side's runs, in milliseconds.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct GatewayOverhead {
    /// The median.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl GatewayOverhead {
    fn of(runs: &[Measured]) -> Option<Self> {
        let mean = |statistic: &str| {
            let figure: Figure =
                format!("{}.{statistic}", metric::GATEWAY_OVERHEAD).parse().ok()?;
            let read = runs.iter().map(|run| figure.read(&run.reported.summary));
            statistics::mean_if_any(&read.collect::<Option<Vec<f64>>>()?)
        };
        Some(GatewayOverhead { median: mean("median")?, p99: mean("p99")? })
    }
}

/// A side against the baseline.
#[model::apply(model::document!)]
pub struct Pair {
    /// The side's letter.
    pub side: String,
    /// The method of its intervals.
    pub method: Method,
    /// Each figure that at least one of the two has.
    pub figures: Vec<Row>,
}

/// The method of a pair's intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "by", deny_unknown_fields)]
pub enum Method {
    /// Resampling blocks of consecutive requests, at the same places of both runs; and the
    /// variation from run to run.
    Blocks {
        /// Number of blocks per run.
        blocks: usize,
        /// Requests per block, in the shorter run.
        requests: u64,
        /// The variation of runs from one to the next.
        variation: Variation,
    },
    /// Resampling the turns that sides took one after the other, at the same places of both.
    Turns {
        /// Number of turns of each side.
        turns: usize,
        /// Requests per turn.
        requests: u64,
    },
    /// The spread between the runs of a side.
    Runs {
        /// Number of runs of the baseline.
        baseline: usize,
        /// Number of runs of the other side.
        side: usize,
    },
    /// None: a side has no samples, or too few.
    None,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub figures: Vec<Figure>,
    pub conditions: Vec<Condition>,
    /// The names of the sides; letters if there are none.
    pub names: Vec<String>,
    /// The kinds of settings that need not agree.
    pub allowed: Vec<Kind>,
    /// The kinds of settings that people compare on purpose, and that must agree here.
    pub must_agree: Vec<Kind>,
    /// The number of blocks that each run was cut into.
    pub blocks: Option<usize>,
    /// The variation of runs from one to the next, for sides of one run. `None` takes the variation
    /// of the sides that have repeats, else assumes the usual one.
    pub variation: Option<Variation>,
    /// The difference, as a share of the baseline, up to which two figures count as the same.
    pub same_within: Option<f64>,
}

impl Options {
    /// These figures, without conditions, for sides whose settings agree.
    pub fn new(figures: Vec<Figure>, blocks: Option<usize>) -> Self {
        Options { figures, blocks, ..Options::default() }
    }
}

/// Compares every further side with the first. Errors: all settings that differ and must agree.
pub fn compare(sides: &[Side], options: &Options) -> Result<Compared, Vec<Obstacle>> {
    let name = |place: usize| options.names.get(place).cloned().unwrap_or_else(|| letter(place));
    let names: Vec<String> = (0..sides.len()).map(name).collect();
    let mut all = Compatibility::default();
    for (side, name) in sides.iter().zip(&names).skip(1) {
        let found = compatibility(&sides[0], side, [&names[0], name], &options.must_agree);
        let own = found.obstacles.into_iter();
        let new: Vec<_> = own.filter(|own| !all.obstacles.contains(own)).collect();
        all.obstacles.extend(new);
        all.differences.extend(found.differences);
        for unknown in found.unknown {
            if !all.unknown.contains(&unknown) {
                all.unknown.push(unknown);
            }
        }
    }
    let (allowed, refused): (Vec<_>, Vec<_>) =
        (all.obstacles.into_iter()).partition(|obstacle| options.allowed.contains(&obstacle.kind));
    if !refused.is_empty() {
        return Err(refused);
    }
    let draw = match sides.first() {
        Some(Side::Turns(_)) => Draws::of_turns,
        _ => Draws::new,
    };
    let draws = options.blocks.map(draw);
    let conditioned = options.conditions.iter().map(|condition| &condition.figure);
    let wanted: Vec<&Figure> = options.figures.iter().chain(conditioned).collect();
    let pooled = Variation::of_sides(sides, &names, &wanted);
    let variation = options.variation.clone().or(pooled.clone());
    let is_usual = variation.is_none();
    let variation = variation.unwrap_or_default();
    let means = Means {
        draws: draws.as_ref(),
        variation: &variation,
        pooled: pooled.as_ref(),
        is_usual,
        is_doubted: false,
        same_within: options.same_within,
    };
    let pairs = sides.iter().zip(&names).skip(1).map(|(side, name)| {
        let with = [&sides[0], side];
        let means = means.between(with);
        Pair {
            side: name.clone(),
            method: method(with, options.blocks, means.variation),
            figures: (options.figures.iter())
                .map(|figure| row(figure, with, means))
                .filter(|row| row.baseline.is_some() || row.value.is_some())
                .collect(),
        }
    });
    let mut pairs: Vec<Pair> = pairs.collect();
    // All figures of all sides are one family: five equal sides are not five chances to err.
    judge(pairs.iter_mut().flat_map(|pair| pair.figures.iter_mut()).collect(), &options.figures);
    Ok(Compared {
        pairs,
        conditions: condition::outcomes(&options.conditions, sides, &names, means),
        same_within: options.same_within,
        sides: sides.iter().zip(names.clone()).map(facts).collect(),
        level: LEVEL,
        allowed,
        differences: all.differences,
        unknown: all.unknown,
    })
}

/// The name of the side at that position: A, B, … Z, A1, B1 ….
pub fn letter(place: usize) -> String {
    let letter = char::from(b'A' + (place % 26) as u8);
    match place / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

fn facts((side, name): (&Side, String)) -> SideFacts {
    match side {
        Side::Runs(_) | Side::Turns(_) => {
            let runs = side.measured();
            let plan = runs.first().map(|run| &run.reported.plan);
            SideFacts {
                name,
                sources: (runs.iter().map(|run| run.reported.folder.clone())).collect(),
                scenario: plan.map(|plan| plan.name.clone()),
                model: plan.and_then(|plan| plan.target.model().map(str::to_owned)),
                about: plan.map_or_else(About::default, |plan| plan.about.clone()),
                verdict: runs.iter().map(|run| run.reported.summary.verdict).max(),
                gateway_overhead: GatewayOverhead::of(runs),
                tool: None,
                doubts: (side.findings().into_iter())
                    .map(|own| format!("{} {}: {}", own.severity.name(), own.id.name(), own.seen))
                    .collect(),
            }
        }
        Side::Claim(stated) => SideFacts {
            name,
            sources: vec![stated.claim.source.place()],
            scenario: stated.claim.scenario.clone(),
            model: stated.claim.model.clone(),
            about: stated.claim.about.clone(),
            verdict: None,
            gateway_overhead: None,
            tool: Some(stated.claim.tool.label().to_owned()),
            doubts: stated.doubts.clone(),
        },
    }
}

fn method([a, b]: [&Side; 2], blocks: Option<usize>, variation: &Variation) -> Method {
    let count = |side: &Side| match side {
        Side::Runs(_) | Side::Turns(_) => {
            side.measured().first().map(|run| run.reported.summary.requests.total)
        }
        Side::Claim(stated) => Stated::requests(&stated.claim),
    };
    if let (Side::Turns(_), Some(turns)) = (a, blocks) {
        return Method::Turns { turns, requests: count(a).unwrap_or_default() };
    }
    let several = a.runs() > 1 || b.runs() > 1;
    match (several, blocks, count(a).zip(count(b))) {
        (true, ..) if a.claim().is_none() && b.claim().is_none() => {
            Method::Runs { baseline: a.runs(), side: b.runs() }
        }
        (false, Some(blocks), Some((a, b))) => Method::Blocks {
            blocks,
            requests: a.min(b) / blocks as u64,
            variation: variation.clone(),
        },
        _ => Method::None,
    }
}

impl Compared {
    /// The name of the first side.
    pub fn baseline(&self) -> &str {
        self.sides.first().map_or("A", |side| &side.name)
    }

    /// A figure's row in the pair of a side.
    pub fn row(&self, side: &str, figure: &str) -> Option<&Row> {
        let pair = self.pairs.iter().find(|pair| pair.side == side)?;
        pair.figures.iter().find(|row| row.figure == figure)
    }

    /// True if the variation of runs was assumed, because there is one run per side.
    pub fn is_assumed(&self) -> bool {
        let assumed = |pair: &Pair| {
            matches!(&pair.method, Method::Blocks { variation: Variation::Assumed { .. }, .. })
        };
        self.pairs.iter().any(assumed)
    }

    #[cfg(test)]
    pub(crate) fn is_failed(&self) -> bool {
        self.conditions.iter().any(|outcome| outcome.fails)
    }
}

/// The ends of an interval.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Ends {
    /// The lower one.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

impl From<Interval> for Ends {
    fn from(interval: Interval) -> Self {
        Ends { low: interval.low, high: interval.high }
    }
}

/// The reason why a figure has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoInterval {
    /// One side does not have the figure.
    Absent,
    /// A side was published without samples.
    Published,
    /// There are fewer than ten requests.
    FewRequests,
    /// Fewer than five samples lie beyond the percentile.
    FewSamples,
    /// The samples beyond the percentile lie in fewer than five blocks of the run.
    FewBlocks,
    /// A single run per side does not provide one; repeats do.
    OneRun,
    /// It is a score, and no sample was judged in both runs.
    Unpaired,
    /// Fewer than two of the repeats that show how much runs vary have the figure.
    Variation,
    /// Other work on this machine, or a limit on this client, changed the times of a side, and may
    /// explain the difference: one run per side does not show by how much.
    TimesInDoubt,
    /// Nothing varied, as where all of a few requests were answered: chance is not seen, and not
    /// excluded either.
    NothingVaried,
}

impl NoInterval {
    pub fn label(self) -> &'static str {
        match self {
            NoInterval::Absent => "not on both sides",
            NoInterval::Published => "published without samples",
            NoInterval::FewRequests => "too few requests",
            NoInterval::FewSamples => "too few samples beyond it",
            NoInterval::FewBlocks => "samples beyond it in too few blocks",
            NoInterval::OneRun => "not known from one run per side",
            NoInterval::Unpaired => "no sample was judged in both runs",
            NoInterval::Variation => "not in the repeats that show how runs vary",
            NoInterval::TimesInDoubt => "times in doubt",
            NoInterval::NothingVaried => "nothing varied",
        }
    }
}
