//! Rules on the numbers of requests and of requested tokens.

use super::figures::{Figures, percent, shown};
use super::finding::Finding;
use super::id::Id;
use result::finding::Severity;

/// Share of requests beyond which failures are more than an accident, as for runs of our own.
const ACCIDENT: f64 = 0.01;

/// Answers are cut to the requested length, so every token less is missing; tokenizers differ by
/// less than this share on the same text.
const SHORT: f64 = 0.99;

pub(super) fn nothing_answered(figures: &Figures<'_>) -> Option<Finding> {
    let answered = figures.claim.value("requests.successful")?;
    let requests = figures.claim.asked.requests;
    let requests = requests.map_or_else(|| "its".to_owned(), |requests| requests.to_string());
    (answered == 0.0).then(|| {
        let seen = format!("none of {requests} requests was answered");
        Finding::new(Id::NothingAnswered, Severity::Invalid, seen)
    })
}

pub(super) fn failures(figures: &Figures<'_>) -> Option<Finding> {
    let claim = figures.claim;
    let answered = figures.answered()?;
    let failed = claim.value("requests.failed").unwrap_or(0.0);
    let requested = claim.asked.requests.map(|requests| requests as f64);
    // guidellm's incomplete requests were cut off by the end of the benchmark, so its total says
    // nothing here.
    let all = requested.unwrap_or(0.0).max(answered + failed);
    let missing = all - answered;
    let share = missing / all;
    if missing <= 0.0 {
        return None;
    }
    let severity = match share {
        share if share > 0.5 => Severity::Invalid,
        share if share > ACCIDENT => Severity::Suspect,
        _ => Severity::Note,
    };
    let how = if failed >= missing {
        "failed"
    } else {
        "are missing, and the result does not mention them"
    };
    let seen = format!("{} of {} requests {how} ({})", shown(missing), shown(all), percent(share));
    Some(Finding::new(Id::Failures, severity, seen))
}

pub(super) fn short_answers(figures: &Figures<'_>) -> Option<Finding> {
    let (requested, each) = (figures.claim.asked.output_tokens?, figures.tokens_each()?);
    if each >= requested as f64 * SHORT {
        return None;
    }
    let seen =
        format!("answers have {} tokens on average, but {requested} were requested", shown(each));
    Some(Finding::new(Id::ShortAnswers, Severity::Suspect, seen))
}
