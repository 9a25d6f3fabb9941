//! The statistics of a judging model's verdicts: its agreement with itself and with other scores,
//! and its preference between two runs.
//!
//! **Two orders.** Judges prefer the answer that they read first, or second (Zheng et al. 2023,
//! "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", section 3.4). So each pair is shown in
//! both orders, and counts as won or lost only if both verdicts say so; every other pair that has
//! two verdicts is a tie. The win rate counts ties as half, and its interval is Wilson's: ties vary
//! less than wins and losses, so it is rather too wide than too narrow.
//!
//! **Right and wrong.** Where another score of the same answers is 0 or 1, a grade can be compared
//! with it without a common scale. The comparison is by the point-biserial correlation, and by the
//! probability that a right answer has the higher grade of two ([`statistics::binary`]). Kappa
//! would need grades to be cut into right and wrong at a place that nobody stated.
//!
//! Pure arithmetic over verdicts; the caller joins them to answers. A verdict that is not there is
//! counted as absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agreement::clustered;
use crate::summary::{Bounds, Column};
use statistics::binary::{self, concordance, point_biserial};
use statistics::clusters::Mean;
use statistics::mean_if_any;
use statistics::share::{Flips, wilson};

/// The agreement of verdicts on the same prompt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Repeated {
    /// Prompts that have two verdicts or more.
    pub prompts: u64,
    /// Pairs of verdicts on the same prompt.
    pub pairs: u64,
    /// The share of these pairs that are equal.
    pub identical_share: f64,
    /// The mean distance of two grades of the same answer, in grades; absent for choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_difference: Option<f64>,
}

impl Repeated {
    /// Of the verdicts on each prompt. `None` if no prompt has two.
    pub fn of<'v>(verdicts: impl Iterator<Item = &'v [f64]>, are_grades: bool) -> Option<Self> {
        let (mut prompts, mut pairs, mut same, mut apart) = (0, 0_u64, 0_u64, 0.0);
        for own in verdicts.filter(|own| own.len() > 1) {
            prompts += 1;
            for (place, one) in own.iter().enumerate() {
                for other in &own[place + 1..] {
                    pairs += 1;
                    same += u64::from(one == other);
                    apart += (one - other).abs();
                }
            }
        }
        (pairs > 0).then(|| Repeated {
            prompts,
            pairs,
            identical_share: same as f64 / pairs as f64,
            mean_difference: are_grades.then(|| apart / pairs as f64),
        })
    }
}

/// Grades of answers that another score calls right or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Against {
    /// Graded answers that the other score calls right.
    pub right: u64,
    /// Graded answers that it calls wrong.
    pub wrong: u64,
    /// The mean grade of right answers; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right_mean: Option<f64>,
    /// The mean grade of wrong answers; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_mean: Option<f64>,
    /// The point-biserial correlation, from -1 to 1; absent unless both kinds and two grades occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<f64>,
    /// The probability that a right answer has a higher grade than a wrong one, ties counting as
    /// half; absent unless both occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concordance: Option<f64>,
}

impl Against {
    /// Grades against a score, over the answers that have both. `None` if the score has other
    /// values than 0 and 1, or no answer has both.
    pub fn of(grades: &Column<f64>, score: &Column<f64>) -> Option<Self> {
        let is_share = score.iter().all(|(_, value)| value == 0.0 || value == 1.0);
        let both = grades.iter().filter_map(|(index, grade)| Some((grade, score.get(index)?)));
        let both: Vec<(f64, bool)> =
            (both.filter(|_| is_share)).map(|(grade, score)| (grade, score == 1.0)).collect();
        if both.is_empty() {
            return None;
        }
        let [wrong, right] = binary::split(&both);
        Some(Against {
            right: right.len() as u64,
            wrong: wrong.len() as u64,
            right_mean: mean_if_any(&right),
            wrong_mean: mean_if_any(&wrong),
            correlation: point_biserial(&both),
            concordance: concordance(&both),
        })
    }
}

/// The answer that a judge chose: the share of the win that goes to the answer shown first.
pub type Choice = f64;

/// A judge's choices between a pair of answers to one sample, each time in both orders.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Duel {
    /// The digest of the sample's conversation, if it is a turn of one.
    pub conversation: Option<u64>,
    /// For each repeat: the choice with the run's answer first, and with the baseline's first;
    /// absent without a verdict.
    pub choices: Vec<[Option<Choice>; 2]>,
}

/// The result of a pair for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Won,
    Tied,
    Lost,
}

impl Duel {
    /// Finds the result: the verdict that more than half of the repeats with both verdicts have,
    /// else a tie. `None` if none has both.
    fn ended(&self) -> Option<Ended> {
        let both = self.choices.iter().filter_map(|[first, second]| {
            Some(match ((*first)?, (*second)?) {
                (1.0, 0.0) => Ended::Won,
                (0.0, 1.0) => Ended::Lost,
                _ => Ended::Tied,
            })
        });
        let both: Vec<Ended> = both.collect();
        let most = |wanted| both.iter().filter(|own| **own == wanted).count() * 2 > both.len();
        match (both.is_empty(), most(Ended::Won), most(Ended::Lost)) {
            (true, ..) => None,
            (_, true, _) => Some(Ended::Won),
            (_, _, true) => Some(Ended::Lost),
            _ => Some(Ended::Tied),
        }
    }
}

/// The preference of a judge between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Preference {
    /// Samples that both runs answered and that were put before the judge.
    pub samples: u64,
    /// Of these, those with a verdict in both orders. All that follows is over these, unless it
    /// says otherwise.
    pub judged: u64,
    /// Samples that lack a verdict in one order or both, because a request failed or its answer
    /// held none.
    pub unjudged: u64,
    /// Samples whose answer by the run is better in both orders.
    pub wins: u64,
    /// Samples for which neither holds.
    pub ties: u64,
    /// Samples whose answer by the baseline is better in both orders.
    pub losses: u64,
    /// `(wins + ties / 2) / judged`; absent if nothing was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub win_rate: Option<f64>,
    /// Its 95 % interval (Wilson), for other samples of the same kind; answers of one conversation
    /// count as the independent ones that they are worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Bounds>,
    /// The probability that wins and losses are at least as uneven if both are equally likely: the
    /// sign test, two-sided. Absent if samples are turns of conversations, which are not
    /// independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Pairs with a verdict in both orders, each repeat for itself.
    pub pairs: u64,
    /// Of these, those on which both orders agree: both on the same answer, or both on a tie.
    pub consistent: u64,
    /// Their share; absent without pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistent_share: Option<f64>,
    /// Of all verdicts for one answer, the share for the one shown first; 0.5 would be without
    /// bias. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_share: Option<f64>,
    /// The agreement of repeats with each other; absent without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeated>,
}

impl Preference {
    /// Of all pairs that were put before the judge.
    pub fn of(duels: &[Duel]) -> Self {
        let ended: Vec<(Option<u64>, Ended)> =
            duels.iter().filter_map(|duel| Some((duel.conversation, duel.ended()?))).collect();
        let count = |wanted| ended.iter().filter(|(_, own)| *own == wanted).count() as u64;
        let [wins, ties, losses] = [Ended::Won, Ended::Tied, Ended::Lost].map(count);
        let judged = ended.len() as u64;
        let points = ended.iter().map(|(conversation, ended)| {
            let points = match ended {
                Ended::Won => 1.0,
                Ended::Tied => 0.5,
                Ended::Lost => 0.0,
            };
            (*conversation, points)
        });
        let clusters = clustered(points);
        let mean = Mean::of(&clusters);
        let bounds = mean.and_then(|mean| wilson(mean.mean, mean.independent(judged)));
        let is_plain = clusters.len() as u64 == judged;
        let flips = Flips { samples: judged, gained: wins, lost: losses };
        let each = duels.iter().flat_map(|duel| &duel.choices);
        let pairs = each.clone().filter_map(|[a, b]| Some(((*a)?, (*b)?)));
        let pairs: Vec<(Choice, Choice)> = pairs.collect();
        // The same answer in both orders, or neither in both.
        let consistent = pairs.iter().filter(|(first, second)| first + second == 1.0);
        let consistent = consistent.count() as u64;
        let decided = each.flatten().flatten().filter(|choice| **choice != 0.5);
        let decided: Vec<f64> = decided.copied().collect();
        let by_order = |order: usize| {
            duels.iter().map(move |duel| {
                let own = duel.choices.iter().filter_map(|choice| choice[order]);
                own.collect::<Vec<f64>>()
            })
        };
        let repeated: Vec<Vec<f64>> = by_order(0).chain(by_order(1)).collect();
        let share = |part: f64, of: usize| (of > 0).then(|| part / of as f64);
        Preference {
            samples: duels.len() as u64,
            judged,
            unjudged: duels.len() as u64 - judged,
            wins,
            ties,
            losses,
            win_rate: mean.map(|mean| mean.mean),
            confidence: bounds.map(Bounds::from),
            probability: (is_plain && judged > 0).then(|| flips.probability()),
            pairs: pairs.len() as u64,
            consistent,
            consistent_share: share(consistent as f64, pairs.len()),
            first_share: share(decided.iter().sum(), decided.len()),
            repeats: Repeated::of(repeated.iter().map(Vec::as_slice), false),
        }
    }
}

#[cfg(test)]
mod tests;
