//! Rules on the acceptance of drafts: is it as expected, and is it real?

use super::{Finding, Id};
use crate::summary::{Speculation, Summary};

/// The most by which the interval may miss the expectation, as a share of it. The end of an answer
/// cuts its last step, so acceptance as ordered falls short by less.
const TOLERANCE: f64 = 0.02;

pub(super) fn differs(summary: &Summary) -> Option<Finding> {
    let expected = summary.run.expected_acceptance_length?;
    let steps = summary.tokens.speculation.as_ref()?;
    let (length, interval) = (steps.acceptance_length?, steps.acceptance_length_interval?);
    let margin = TOLERANCE * expected;
    let is_above = interval.low.is_some_and(|low| low > expected + margin);
    let is_below = interval.high.is_some_and(|high| high < expected - margin);
    (is_above || is_below).then(|| Id::AcceptanceDiffers.suspect(
        format!(
            "the acceptance length is {length:.2} (95 % interval {} from {} answers), and the scenario expects {expected}",
            interval.label(" to ", |end| format!("{end:.2}")),
            steps.answers
        ),
        "the time per token follows the acceptance length, so the speeds of this run are no speeds at the expected length",
        "check the draft model, the number of draft tokens, the thinking mode and the prompts against the expectation's; an engine that simulates acceptance needs the expected length in its setting",
    ))
}

pub(super) fn not_reported(summary: &Summary) -> Option<Finding> {
    let expected = summary.run.expected_acceptance_length?;
    let steps = summary.tokens.speculation.as_ref();
    let is_known = steps.is_some_and(|steps| steps.acceptance_length_interval.is_some());
    (!is_known && summary.requests.successful > 0).then(|| Id::AcceptanceNotReported.note(
        format!(
            "the scenario expects an acceptance length of {expected}, and fewer than 2 of {} answers report their steps and accepted tokens",
            summary.requests.successful
        ),
        "the acceptance length of this run is unknown, so the expectation is unchecked",
        "let answers report their steps (vLLM: --per-request-spec-decode-metrics summary; SGLang: its route /generate, or --extra-body '{\"return_spec_tokens_details\": true}'), or drop `expect.acceptance-length`",
    ))
}

/// Fewer answers, or fewer steps for each, may be regular by chance.
const ANSWERS: u64 = 30;
const STEPS_PER_ANSWER: u64 = 20;

/// The share of steps that may be irregular, such as steps that the end of an answer cuts.
const IRREGULAR: f64 = 0.01;

/// The fewest and the most tokens that steps accept, without the steps at both ends that together
/// are `IRREGULAR` at most.
fn regular_range(steps: &[u64]) -> Option<[usize; 2]> {
    let all: u64 = steps.iter().sum();
    let beyond = IRREGULAR / 2.0 * all as f64;
    let is_beyond = |passed: &mut u64, steps: &u64| {
        *passed += steps;
        Some(*passed as f64 > beyond)
    };
    let least = steps.iter().scan(0, is_beyond).position(|is_beyond| is_beyond)?;
    let most = steps.iter().rev().scan(0, is_beyond).position(|is_beyond| is_beyond)?;
    Some([least, steps.len() - 1 - most])
}

/// The observation of steps that no real draft has. Engines that simulate acceptance accept one of
/// two neighbouring numbers of tokens at every step. A real draft has its first token rejected now
/// and then, and is accepted as a whole now and then. So real steps begin at 0, or end at the
/// draft's length, or span more numbers.
fn regular(summary: &Summary, steps: &Speculation) -> Option<String> {
    let proposed = summary.tokens.drafts.as_ref()?.proposed?;
    let draft = proposed as f64 / steps.steps as f64;
    let is_enough = steps.answers >= ANSWERS && steps.steps >= STEPS_PER_ANSWER * steps.answers;
    let [least, most] = regular_range(&steps.steps_by_accepted).filter(|_| is_enough)?;
    let is_regular = least > 0 && most - least <= 1 && draft >= most as f64 + 1.0;
    is_regular.then(|| {
        let tokens = if least == most { least.to_string() } else { format!("{least} or {most}") };
        let share = (1.0 - IRREGULAR) * 100.0;
        format!(
            "at least {share:.0} % of {} steps accepted {tokens} of {draft:.1} proposed tokens; a real draft is sometimes rejected from its first token, or accepted as a whole",
            steps.steps
        )
    })
}

pub(super) fn simulated(summary: &Summary) -> Option<Finding> {
    let setting = summary.run.simulated_acceptance.as_ref();
    let regular = || regular(summary, summary.tokens.speculation.as_ref()?);
    let seen = match setting {
        Some(setting) => {
            format!(
                "the engine simulates the acceptance of drafts: its launch command sets `{setting}`"
            )
        }
        None => regular()?,
    };
    let has_scores = !(summary.scores.is_empty() && summary.run_scores.is_empty());
    let why = if has_scores {
        "the speeds are speeds of a simulation, and the answers are no texts of the model, so their scores mean nothing"
    } else {
        "the speeds are speeds of a simulation at its acceptance length, and the answers are no texts of the model"
    };
    Some(Id::AcceptanceSimulated.doubted(
        setting.is_none() || has_scores,
        seen,
        why,
        "publish the speeds as simulated, with the acceptance length; have answers judged in a run of an engine that does not simulate it",
    ))
}
