//! Comparison: how far sides are apart in each figure, how sure that is, and whether they can be
//! compared at all. A side is a run, several repeats of one, or what another tool states.
//!
//! Pure: records come one by one, and a result goes out. Which folders and files they come from is the
//! command line's, how a result looks `report`'s. What a figure is, is `figure`'s; when a run is to be doubted,
//! `finding`'s.

mod blocks;
mod cells;
mod choice;
pub mod comparable;
pub mod condition;
mod dependence;
pub mod estimate;
mod prompts;
mod row;
mod side;

#[cfg(test)]
mod fixture;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod trials;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use blocks::blocks;
pub use choice::{Choice, figures, percentiles};
pub use comparable::{Compatibility, Difference, Kind, Obstacle, compatibility};
pub use condition::{Condition, Outcome};
pub use row::{Ends, Judgement, NoInterval, Row};
pub use side::{Measured, Side, Stated};

use estimate::Draws;
use model::about::About;
use result::figure::Figure;
use result::finding::Verdict;
use result::stats::interval::LEVEL;
use row::{judge, row};

/// A comparison of sides with the first of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Compared {
    /// The sides, the baseline first.
    pub sides: Vec<SideFacts>,
    /// How sure intervals are, in percent.
    pub level: f64,
    /// What should agree and does not, but was allowed.
    pub allowed: Vec<Obstacle>,
    /// What differs on purpose.
    pub differences: Vec<Difference>,
    /// What cannot be checked, as one side does not say.
    pub unknown: Vec<String>,
    /// Each further side against the baseline.
    pub pairs: Vec<Pair>,
    /// The conditions that were asked to fail, and whether they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Outcome>,
}

/// What a side is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SideFacts {
    /// Its letter.
    pub name: String,
    /// The folders of its runs, or where a claim stands.
    pub sources: Vec<String>,
    /// The scenario, as it is called there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it is of.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
    /// The worst verdict of its runs; absent where another tool states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The tool that states it; absent where it is a run of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Reasons to doubt what is stated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// A side against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pair {
    /// The side's letter.
    pub side: String,
    /// Where intervals come from.
    pub method: Method,
    /// Each figure that one of both has.
    pub figures: Vec<Row>,
}

/// Where a pair's intervals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "by", deny_unknown_fields)]
pub enum Method {
    /// Resamples of blocks of consecutive requests, of both sides at the same places of the run.
    Blocks {
        /// Blocks of a run.
        blocks: usize,
        /// Requests of a block, of the shorter run.
        requests: u64,
    },
    /// How far runs of a side are apart.
    Runs {
        /// Runs of the baseline.
        baseline: usize,
        /// Runs of the other side.
        side: usize,
    },
    /// Nothing: a side has no samples, or too few.
    None,
}

/// What a comparison is to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Which figures.
    pub figures: Vec<Figure>,
    /// What is to make it fail.
    pub conditions: Vec<Condition>,
    /// What need not agree.
    pub allowed: Vec<Kind>,
    /// Into how many blocks each run was cut.
    pub blocks: Option<usize>,
}

impl Asked {
    /// These figures, on no condition, and of sides that agree in all that should.
    pub fn of(figures: Vec<Figure>, blocks: Option<usize>) -> Self {
        Asked {
            figures,
            conditions: Vec::new(),
            allowed: Vec::new(),
            blocks,
        }
    }
}

/// Compares every further side with the first. Sides have names by their place: A, B, C.
///
/// # Errors
/// All that should agree and does not, but for what is allowed.
pub fn compare(sides: &[Side], asked: &Asked) -> Result<Compared, Vec<Obstacle>> {
    let names: Vec<String> = (0..sides.len()).map(letter).collect();
    let mut all = Compatibility::default();
    for (side, name) in sides.iter().zip(&names).skip(1) {
        let found = compatibility(&sides[0], side, [&names[0], name]);
        all.obstacles.extend(found.obstacles);
        all.differences.extend(found.differences);
        for unknown in found.unknown {
            if !all.unknown.contains(&unknown) {
                all.unknown.push(unknown);
            }
        }
    }
    let (allowed, refused): (Vec<_>, Vec<_>) =
        (all.obstacles.into_iter()).partition(|obstacle| asked.allowed.contains(&obstacle.kind));
    if !refused.is_empty() {
        return Err(refused);
    }
    let draws = asked.blocks.map(Draws::of);
    let pairs = sides.iter().zip(&names).skip(1).map(|(side, name)| {
        let with = [&sides[0], side];
        let mut figures: Vec<Row> = (asked.figures.iter())
            .map(|figure| row(figure, with, draws.as_ref()))
            .filter(|row| row.baseline.is_some() || row.value.is_some())
            .collect();
        judge(&mut figures, &asked.figures);
        Pair {
            side: name.clone(),
            method: method(with, asked.blocks),
            figures,
        }
    });
    let conditions = sides.iter().zip(&names).skip(1).flat_map(|(side, name)| {
        condition::outcomes(&asked.conditions, [&sides[0], side], name, draws.as_ref())
    });
    Ok(Compared {
        pairs: pairs.collect(),
        conditions: conditions.collect(),
        sides: sides.iter().zip(names.clone()).map(facts).collect(),
        level: LEVEL,
        allowed,
        differences: all.differences,
        unknown: all.unknown,
    })
}

/// The name of the side of that place: A, B, … Z, A1, B1 ….
pub fn letter(place: usize) -> String {
    let letter = char::from(b'A' + (place % 26) as u8);
    match place / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

fn facts((side, name): (&Side, String)) -> SideFacts {
    match side {
        Side::Runs(runs) => SideFacts {
            name,
            sources: (runs.iter().map(|run| run.reported.folder.clone())).collect(),
            scenario: runs.first().map(|run| run.reported.plan.name.clone()),
            model: (runs.first()).map(|run| run.reported.plan.target.model.clone()),
            about: (runs.first())
                .map_or_else(About::default, |run| run.reported.plan.about.clone()),
            verdict: runs.iter().map(|run| run.reported.summary.verdict).max(),
            tool: None,
            doubts: Vec::new(),
        },
        Side::Claim(stated) => SideFacts {
            name,
            sources: vec![stated.claim.source.place()],
            scenario: stated.claim.scenario.clone(),
            model: stated.claim.model.clone(),
            about: stated.claim.about.clone(),
            verdict: None,
            tool: Some(stated.claim.tool.label().to_owned()),
            doubts: stated.doubts.clone(),
        },
    }
}

fn method([a, b]: [&Side; 2], blocks: Option<usize>) -> Method {
    let count = |side: &Side| match side {
        Side::Runs(runs) => runs.first().map(|run| run.reported.summary.requests.total),
        Side::Claim(stated) => Stated::requests(&stated.claim),
    };
    let several = a.runs() > 1 || b.runs() > 1;
    match (several, blocks, count(a).zip(count(b))) {
        (true, ..) if a.claim().is_none() && b.claim().is_none() => Method::Runs {
            baseline: a.runs(),
            side: b.runs(),
        },
        (false, Some(blocks), Some((a, b))) => Method::Blocks {
            blocks,
            requests: a.min(b) / blocks as u64,
        },
        _ => Method::None,
    }
}

impl Compared {
    /// The reported figure of a statistic of a metric, of a side's pair.
    pub fn row(&self, side: &str, figure: &str) -> Option<&Row> {
        let pair = self.pairs.iter().find(|pair| pair.side == side)?;
        pair.figures.iter().find(|row| row.figure == figure)
    }

    /// Whether a condition that was to make it fail holds.
    pub fn is_failed(&self) -> bool {
        self.conditions.iter().any(|outcome| outcome.fails)
    }
}
