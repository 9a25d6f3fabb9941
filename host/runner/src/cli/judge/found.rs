//! Results of a judging: verdicts joined to the answers, written into its folder and beside the
//! run's scores.

use std::collections::BTreeMap;

use super::Args;
use super::before::{Before, JudgingFolder};
use crate::cli::failure::Failure;
use crate::cli::print::tell;
use result::judged::{Against, Preference, Repeated};
use result::summary::{Column, RunFacts};
use runs::assessment::{Assessment, Later};
use runs::judged::{Cost, Grades, Judge, Judged};
use session::Measured;
use session::judging::rubric::Kind;
use session::judging::scenario::score_of;
use session::judging::verdicts::Verdicts;

/// The name of the score that grades become.
const NAME: &str = "judge.grade";

/// The result, after it was written down. A judging that was stopped adds nothing to the run: a
/// mean over the answers that happened to be judged first would mislead.
pub(super) fn found(
    args: &Args,
    before: &Before,
    bench: &JudgingFolder,
    made: &Measured,
    interrupted: bool,
) -> Result<Judged, Failure> {
    let kind = args.kind();
    let scores = made.facts.scores.get(score_of(kind));
    let verdicts = Verdicts::of(bench.prompts, scores, made.folder.read()?)?;
    let judge = judge(before, bench, made);
    let at = jiff::Timestamp::now().to_string();
    let is_whole = !interrupted && made.ended.is_ok();
    let (grades, preference) = match kind {
        Kind::Pair => {
            let duels = verdicts.duels(&before.answers, args.repeat);
            (None, Some(Preference::of(&duels)))
        }
        Kind::Single => {
            let graded = Graded {
                at: at.clone(),
                judge: judge.clone(),
                scorers: made.plan.scorers.clone(),
                is_whole,
            };
            (graded.beside(args, before, &verdicts)?, None)
        }
    };
    let judged = Judged {
        at,
        run: before.folder.path().display().to_string(),
        baseline: args.baseline.as_ref().map(|path| path.display().to_string()),
        cautions: cautions(before, made, &verdicts, interrupted),
        judge,
        interrupted,
        answers: before.counts,
        requests: verdicts.requests,
        grades,
        preference,
        cost: Cost::of(&made.summary, args.price_per_million),
    };
    bench.folder.write_judgement(&judged)?;
    Ok(judged)
}

/// Describes the judge: its model, backend, temperature and rubric.
fn judge(before: &Before, bench: &JudgingFolder, made: &Measured) -> Judge {
    let (rubric, rubric_digest) = before.rubrics.identity();
    Judge {
        model: made.plan.target.model.clone(),
        backend: made.plan.backend.name.clone(),
        temperature: made.plan.request.temperature,
        rubric,
        rubric_digest,
        folder: bench.folder.path().display().to_string(),
    }
}

/// Lists cautions for readers of the figures.
fn cautions(
    before: &Before,
    made: &Measured,
    verdicts: &Verdicts,
    interrupted: bool,
) -> Vec<String> {
    let mut cautions = Vec::new();
    if interrupted {
        cautions.push(
            "the judging was stopped: what it says is of the answers that were judged until then, and nothing was added to the run's scores"
                .to_owned(),
        );
    }
    let (judge, own) = (&made.plan.target.model, &before.plan.target.model);
    if !own.is_empty() && judge == own {
        cautions.push(format!(
            "`{judge}` judges its own answers, and models favour those; ask another one"
        ));
    }
    if made.plan.request.temperature != Some(0.0) && made.plan.request.top_k != Some(1) {
        cautions.push(
            "the judge samples its verdicts, so they differ by chance; set --temperature 0"
                .to_owned(),
        );
    }
    if verdicts.cut > 0 {
        cautions.push(format!(
            "{} answers of the judge were cut at their limit of tokens and hold no verdict; raise --output-tokens",
            verdicts.cut
        ));
    }
    if before.counts.with_media > 0 {
        cautions.push(format!(
            "{} questions held images or audio, which the judge was not shown",
            before.counts.with_media
        ));
    }
    cautions
}

/// Grades on their way to the run's scores.
struct Graded {
    at: String,
    judge: Judge,
    scorers: Vec<scenario::plan::PlannedPlugin>,
    /// True if the judging came to its end.
    is_whole: bool,
}

impl Graded {
    /// The grades as a score of the run, which has it from now on if the judging is whole. `None`
    /// if there is no grade.
    fn beside(
        self,
        args: &Args,
        before: &Before,
        verdicts: &Verdicts,
    ) -> Result<Option<Grades>, Failure> {
        let grades = verdicts.grades();
        if grades.is_empty() {
            return Ok(None);
        }
        let means: Column<f64> =
            grades.iter().map(|(index, own)| (*index, statistics::mean(own))).collect();
        let folder = &before.folder;
        let mut facts = folder.facts()?;
        let against = against(&facts, &means);
        let (later, name) = self.later(&facts, before, &means);
        let is_whole = self.is_whole;
        let summary = if is_whole {
            folder.add_later(later)?;
            let summary = folder.summarize(&folder.facts()?)?;
            folder.write_summary(&summary)?;
            summary
        } else {
            facts.scores.extend(later.scores);
            facts.unscored.extend(later.unscored);
            facts.left_out.extend(later.left_out);
            folder.summarize(&facts)?
        };
        Ok(summary.scores.get(&name).cloned().map(|score| Grades {
            lowest: args.scale.lowest,
            highest: args.scale.highest,
            name: is_whole.then_some(name),
            score,
            repeats: Repeated::of(grades.values().map(Vec::as_slice), true),
            against,
        }))
    }

    /// Returns the score to add beside the run's scores, and its name.
    fn later(&self, facts: &RunFacts, before: &Before, means: &Column<f64>) -> (Later, String) {
        let ungraded = before.answers.iter().map(|answer| answer.index);
        let ungraded = ungraded.filter(|index| means.get(*index).is_none());
        let mut unscored: Vec<u64> = ungraded.chain(before.unaskable.iter().copied()).collect();
        unscored.sort_unstable();
        let named = |list: &[u64]| match list {
            [] => BTreeMap::new(),
            list => BTreeMap::from([(NAME.to_owned(), list.to_vec())]),
        };
        let judged = Assessment {
            scores: [(NAME.to_owned(), means.clone())].into(),
            unscored: named(&unscored),
            ..Assessment::default()
        };
        let taken = facts.scores.keys().chain(facts.run_scores.keys());
        let taken = taken.cloned().collect();
        let (later, renamed) = Later::of(self.at.clone(), self.scorers.clone(), judged, &taken);
        let name = match renamed.into_iter().next() {
            Some((_, new)) => {
                if self.is_whole {
                    tell(format_args!(
                        "note: the run has a score `{NAME}` already; the new one is `{new}`"
                    ));
                }
                new
            }
            None => NAME.to_owned(),
        };
        let left_out = named(&before.left_out);
        let left_out = left_out.into_values().map(|list| (name.clone(), list));
        let later =
            Later { left_out: left_out.collect(), judge: Some(self.judge.clone()), ..later };
        (later, name)
    }
}

/// The grades against the run's other scores that call answers right or wrong. A count of unparsed
/// answers says nothing of the quality of an answer, and another judge's grades are no share.
fn against(facts: &RunFacts, grades: &Column<f64>) -> BTreeMap<String, Against> {
    let scores = facts.scores.iter();
    let scores = scores.filter(|(name, _)| !name.ends_with("-unparsed"));
    scores.filter_map(|(name, score)| Some((name.clone(), Against::of(grades, score)?))).collect()
}
