//! One figure of two sides: their difference, its certainty, and the judgement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scores::{Paired, Pairing, pairing};
use super::sensitivity::sensitivity;
use super::side::Side;
use super::variation::{BESIDE_WORK, Variation};
use super::{Ends, NoInterval};
use result::figure::{Better, Figure, Statistic};
use statistics::bootstrap::Draws;
use statistics::difference::{Estimate, between_runs};
use statistics::interval::LEVEL;
use statistics::moments::{is_same, mean};
use statistics::several::benjamini_hochberg;

/// One figure of two sides.
#[model::apply(model::document!)]
pub struct Row {
    /// The figure's name.
    pub figure: String,
    /// Its unit; empty for a share or a number.
    pub unit: String,
    /// The baseline's value; for several runs, their mean.
    pub baseline: Option<f64>,
    /// The other side's value; for several runs, their mean.
    pub value: Option<f64>,
    /// The other side's value minus the baseline's.
    pub difference: Option<f64>,
    /// The difference in percent of the baseline's value; absent if that is zero.
    pub percent: Option<f64>,
    /// The 95 % confidence interval of the difference.
    pub interval: Option<Ends>,
    /// The smallest true difference that nine of ten such comparisons would find, if this figure
    /// were judged alone.
    pub detectable: Option<f64>,
    /// True if the difference is surely below the limit for equal figures, by two one-sided tests
    /// at 5 %. Absent without such a limit, or without an interval.
    pub is_same: Option<bool>,
    /// The p-value: the probability of a difference this large by chance alone.
    pub probability: Option<f64>,
    /// The standard deviation from run to run that a comparison of single runs adds, as a share of
    /// the figure. It is taken from repeats, or assumed and multiplied by the figure's dependence
    /// on the load. Absent where sides have several runs.
    pub run_variation: Option<f64>,
    /// True if the metric grew or wandered during the runs, so that each run is a single sample of
    /// it. Its interval is wide, and repeats make it narrower.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub walks: bool,
    /// For a score that both runs have: the answers to the same samples, from which the figures of
    /// this row come.
    pub paired: Option<Paired>,
    /// The judgement; absent for figures where neither more nor less is better.
    pub judgement: Option<Judgement>,
    /// The reason why there is no interval, if there is none.
    pub no_interval: Option<NoInterval>,
}

impl Row {
    /// True if it is one of the jointly judged figures, which chance could make better or worse.
    pub fn is_judged(&self) -> bool {
        self.probability.is_some() && self.judgement.is_some() && !self.is_constant()
    }

    /// True if it is the same in all runs, which is no chance to err.
    fn is_constant(&self) -> bool {
        self.interval.is_none() && self.difference == Some(0.0)
    }
}

/// The judgement of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The side is better than the baseline, beyond chance.
    Better,
    /// It is worse, beyond chance.
    Worse,
    /// The two are the same, within the given difference.
    Same,
    /// No difference is shown. That does not mean that there is none.
    NoDifference,
    /// There is no interval, so there is no judgement.
    NotJudged,
}

/// The means by which figures of two sides are compared.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    /// The resamples of blocks, if runs are long enough.
    pub draws: Option<&'a Draws>,
    pub variation: &'a Variation,
    /// The variation of the sides that have several runs.
    pub pooled: Option<&'a Variation>,
    /// True if the variation is the usual assumption, neither stated nor measured.
    pub is_usual: bool,
    /// True if other work may explain a difference within the variation.
    pub is_doubted: bool,
    /// The difference, as a share, up to which figures count as the same.
    pub same_within: Option<f64>,
}

impl Means<'_> {
    /// The means for these sides: other work that changed a side's times widens the assumption.
    pub(super) fn between(self, sides: [&Side; 2]) -> Self {
        if self.is_usual && sides.iter().any(|side| side.has_work_beside()) {
            return Means { variation: &BESIDE_WORK, is_doubted: true, ..self };
        }
        self
    }
}

/// A figure of two sides, not judged yet.
pub(super) fn row(figure: &Figure, [a, b]: [&Side; 2], means: Means<'_>) -> Row {
    let pairing = match figure {
        Figure::Score(name) => pairing(name, [a, b]),
        Figure::Of(..) | Figure::Whole(_) => Ok(None),
    };
    let (baseline, value) = match &pairing {
        Ok(Some(Pairing { means: [a, b], .. })) => (Some(*a), Some(*b)),
        _ => (a.value(figure), b.value(figure)),
    };
    let both = baseline.zip(value);
    // The rounding error of equal figures is no difference.
    let both = both.map(|(a, b)| (a, if is_same(a, b) { a } else { b }));
    let difference = both.map(|(a, b)| b - a);
    let estimated = match both {
        None => Err(NoInterval::Absent),
        Some(figures) => match &pairing {
            Ok(Some(pairing)) => pairing.estimate.ok_or(NoInterval::FewRequests),
            Ok(None) => estimate(figure, [a, b], means, figures.into()),
            Err(why) => Err(*why),
        },
    };
    let estimate = estimated.ok();
    let known = estimate.filter(|estimate| estimate.sure.error > 0.0);
    let no_interval = match estimated {
        Ok(_) => known.is_none().then_some(NoInterval::NothingVaried),
        Err(why) => Some(why),
    };
    let percent = both
        .zip(difference)
        .and_then(|((a, _), difference)| (a != 0.0).then(|| 100.0 * difference / a.abs()));
    Row {
        figure: figure.to_string(),
        unit: figure.unit().to_owned(),
        baseline,
        value,
        difference,
        percent,
        interval: known.map(|estimate| estimate.interval.into()),
        detectable: known.map(|estimate| estimate.detectable()),
        is_same: known
            .zip(means.same_within)
            .zip(both)
            .map(|((estimate, within), (a, b))| estimate.is_within(b - a, within * a.abs())),
        probability: estimate.map(|estimate| estimate.probability),
        run_variation: estimate.and_then(|estimate| estimate.run_variation),
        walks: estimate.is_some_and(|estimate| estimate.walks),
        paired: pairing.ok().flatten().map(|pairing| pairing.paired),
        judgement: None,
        no_interval,
    }
}

fn estimate(
    figure: &Figure,
    sides: [&Side; 2],
    by: Means<'_>,
    figures: [f64; 2],
) -> Result<Estimate, NoInterval> {
    let [a, b] = sides;
    if a.runs() > 1 || b.runs() > 1 {
        let runs = [a, b].map(|side| side.values(figure));
        let pooled = by.pooled.and_then(|pooled| pooled.figure(figure).ok().flatten());
        let found = between_runs(&runs[0], &runs[1], pooled);
        let is_claim = a.claim().is_some() || b.claim().is_some();
        return found.ok_or(if is_claim { NoInterval::Published } else { NoInterval::OneRun });
    }
    let is_published =
        |side: &Side| matches!(side, Side::Claim(stated) if stated.blocked.is_none());
    if is_published(a) || is_published(b) {
        return Err(NoInterval::Published);
    }
    let draws = by.draws.ok_or(NoInterval::FewRequests)?;
    let taken = |figure: &Figure| a.taken(figure).zip(b.taken(figure));
    let means = match figure {
        Figure::Of(metric, _) => taken(&Figure::Of(metric, Statistic::Mean)),
        Figure::Whole(_) | Figure::Score(_) => None,
    };
    let means = means.as_ref().map(|(a, b)| [a, b]);
    let (a, b) = taken(figure).ok_or(NoInterval::OneRun)?;
    if !(a.is_supported() && b.is_supported()) {
        return Err(NoInterval::FewSamples);
    }
    if !(a.is_spread() && b.is_spread()) {
        return Err(NoInterval::FewBlocks);
    }
    let follows: Vec<f64> = (sides.iter().zip([&a, &b]))
        .filter_map(|(side, taken)| sensitivity(draws, taken, side.load()?))
        .collect();
    let varies = by.variation.figure(figure)?;
    let varies = varies.map(|own| if follows.is_empty() { own } else { own.times(mean(&follows)) });
    let found = draws.estimate([&a, &b], means, figures, varies).ok_or(NoInterval::FewSamples)?;
    // A share of zero makes no interval wider.
    let is_within = figures.iter().any(|figure| *figure <= 0.0)
        || (found.interval.low <= 0.0 && found.interval.high >= 0.0);
    if varies.is_some() && is_within && by.is_doubted {
        return Err(NoInterval::TimesInDoubt);
    }
    Ok(found)
}

/// Judges rows together: the more there are, the stronger the evidence each one needs.
pub(super) fn judge(rows: Vec<&mut Row>, figures: &[Figure]) {
    let better = |row: &Row| {
        let named = figures.iter().find(|figure| figure.to_string() == row.figure);
        named.map_or(Better::Neither, Figure::better)
    };
    let could_err = |row: &Row| better(row) != Better::Neither && !row.is_constant();
    let probabilities: Vec<f64> =
        (rows.iter()).filter(|row| could_err(row)).filter_map(|row| row.probability).collect();
    let mut shown = benjamini_hochberg(&probabilities, 1.0 - LEVEL / 100.0).into_iter();
    for row in rows {
        let better = better(row);
        if better == Better::Neither || row.difference.is_none() {
            continue;
        }
        row.judgement = Some(match row.probability {
            None => Judgement::NotJudged,
            Some(_) if !could_err(row) => Judgement::NoDifference,
            Some(_) => judged(row, better, shown.next() == Some(true)),
        });
    }
}

fn judged(row: &Row, better: Better, is_shown: bool) -> Judgement {
    let difference = row.difference.unwrap_or_default();
    let clear = row.interval.is_none_or(|ends| ends.low > 0.0 || ends.high < 0.0);
    if row.is_same == Some(true) {
        return Judgement::Same;
    }
    match (is_shown && clear, better) {
        (false, _) => Judgement::NoDifference,
        (true, Better::Higher) if difference > 0.0 => Judgement::Better,
        (true, Better::Lower) if difference < 0.0 => Judgement::Better,
        (true, _) => Judgement::Worse,
    }
}

impl Judgement {
    pub fn label(self) -> &'static str {
        match self {
            Judgement::Better => "better",
            Judgement::Worse => "worse",
            Judgement::Same => "same",
            Judgement::NoDifference => "no difference shown",
            Judgement::NotJudged => "not judged",
        }
    }

    /// A sign that conveys the same without colour.
    pub fn sign(self) -> char {
        match self {
            Judgement::Better => '+',
            Judgement::Worse => '!',
            Judgement::Same => '≡',
            Judgement::NoDifference => '=',
            Judgement::NotJudged => '?',
        }
    }
}
