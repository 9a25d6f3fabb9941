//! Rules on how tokens were counted.

use super::Finding;
use super::figures::{Figures, percent, shown};
use super::id::Id;
use super::spread::Range;
use result::finding::Severity;

/// A text of many tokens seldom gives the same ones again, but about as many: texts of thousands of
/// tokens are off by this share at most.
const AGAIN: f64 = 0.003;

/// An end token is counted but has no text, a beginning token is added: one per request, plus
/// merges at the seams.
const SEAMS: f64 = 0.001;

/// Beyond this share, figures a token are off by more than runs differ.
const MUCH: f64 = 0.02;

fn count(figures: &Figures<'_>, name: &str) -> Option<f64> {
    figures.claim.value(name).filter(|tokens| *tokens > 0.0)
}

/// The severity of a difference of two counts beyond seams, and the difference as text.
fn apart(figures: &Figures<'_>, one: f64, other: f64) -> Option<(Severity, String)> {
    let off = (one - other).abs();
    if off <= (other * AGAIN).max(figures.answered()? + other * SEAMS) {
        return None;
    }
    let share = off / other;
    let severity = if share > MUCH { Severity::Suspect } else { Severity::Note };
    let way = if one < other { "fewer" } else { "more" };
    Some((severity, format!("{} {way}", percent(share))))
}

pub(super) fn retokenized(figures: &Figures<'_>) -> Option<Finding> {
    let counted = count(figures, "tokens.output")?;
    let again = count(figures, "tokens.output-retokenized")?;
    let (severity, apart) = apart(figures, again, counted)?;
    let seen = format!(
        "the text of the answers has {} tokens, {apart} than the {} in the result",
        shown(again),
        shown(counted)
    );
    let each = again / figures.answered()? - 1.0;
    let formula = (|| {
        let decode = figures.positive("e2e.mean")?.mid() - figures.positive("ttft.mean")?.mid();
        let tpot = figures.positive("tpot.mean")?;
        let duration = figures.duration();
        let rate = duration.map_or_else(String::new, |duration| shown(again / duration.mid()));
        let own = shown(decode / each);
        (each > 0.0 && decode > 0.0 && figures.tpot_is_after_first()).then(|| {
            format!(
                "with the tokens of the text, TPOT is about {own} ms, not {tpot}, and output throughput is {rate} tok/s"
            )
        })
    })();
    Some(Finding::new(Id::RetokenizedDiffers, severity, seen).by(formula))
}

/// Compares the figures' token counts of the text with the server's counts.
pub(super) fn served(figures: &Figures<'_>) -> Option<Finding> {
    let counted = count(figures, "tokens.output")?;
    let served = count(figures, "tokens.output-served")?;
    let (severity, apart) = apart(figures, counted, served)?;
    let seen = format!(
        "throughput and the times per token count {} tokens of the text, {apart} than the {} that the server counted",
        shown(counted),
        shown(served)
    );
    let formula = figures.duration().map(|duration| {
        let rate = shown(served / duration.mid());
        format!("with the server's count, output throughput is {rate} tok/s")
    });
    Some(Finding::new(Id::RetokenizedDiffers, severity, seen).by(formula))
}

/// Checks the figures of a file that contains its requests against them.
pub(super) fn samples(figures: &Figures<'_>) -> Option<Finding> {
    let claim = figures.claim;
    let answered = claim.samples.iter().filter(|sample| sample.error.is_none());
    if claim.samples.is_empty()
        || claim.trimmed
        || figures.answered() != Some(answered.clone().count() as f64)
    {
        return None;
    }
    let mut wrong = Vec::new();
    let tokens: Option<u64> = answered.map(|sample| sample.output_tokens).sum();
    if let (Some(sum), Some(stated)) = (tokens, claim.value("tokens.output"))
        && sum as f64 != stated
    {
        wrong.push(format!(
            "the total states {stated} output tokens, but the requests sum to {sum}"
        ));
    }
    for (theirs, label) in [("ttft", "TTFT"), ("itl", "ITL")] {
        let values = claim.values(theirs);
        let Some(stated) = figures.positive(&format!("{theirs}.mean")) else { continue };
        if values.is_empty() || (theirs == "itl" && !figures.itl_is_gaps()) {
            continue;
        }
        let mean = statistics::mean(&values);
        if Range::exact(mean).wider(1e-3).apart(stated) > 0.0 {
            wrong.push(format!(
                "mean {label} is {stated} ms, but the mean of the requests is {}",
                shown(mean)
            ));
        }
    }
    (!wrong.is_empty())
        .then(|| Finding::new(Id::SamplesDisagree, Severity::Invalid, wrong.join("; ")))
}
