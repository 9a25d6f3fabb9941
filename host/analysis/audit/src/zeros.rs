//! Rules on zeros: nothing takes zero time, so a latency of zero was not measured, or is not the
//! latency of its name.

use super::Finding;
use super::figures::{Figures, percent, shown};
use super::id::Id;
use super::order::NAMES;
use result::figure::Statistic;
use result::finding::Severity;

/// The latencies whose mean or median is zero, of one severity.
pub(super) fn absent(figures: &Figures<'_>, severity: Severity) -> Option<Finding> {
    let mut zeros = Vec::new();
    // With a token or less an answer, there is no further one to time.
    let single = figures.tokens_each().is_none_or(|tokens| tokens <= 1.0);
    for (theirs, label) in NAMES {
        let zero =
            |statistic: &str| figures.claim.value(&format!("{theirs}.{statistic}")) == Some(0.0);
        let which = match (zero("mean"), zero("median")) {
            (true, _) => "mean",
            (false, true) if theirs != "itl" => "median",
            _ => continue,
        };
        let after_first = matches!(theirs, "tpot" | "itl");
        let own = if after_first && (single || figures.whole_replies()) {
            Severity::Note
        } else if after_first && came_whole(figures) {
            Severity::Suspect
        } else {
            Severity::Invalid
        };
        if own == severity {
            zeros.push(format!("{which} {label} is 0"));
        }
    }
    let whole =
        "TTFT equals E2E: replies arrived whole, so there were no gaps between tokens to measure";
    let single = "no answer had a second token to time, and the tool writes 0 in that case";
    let formula = match severity {
        Severity::Invalid => formula_of_zero(figures),
        Severity::Note if !figures.whole_replies() => Some(single.to_owned()),
        Severity::Suspect | Severity::Note => Some(whole.to_owned()),
    };
    let finding = || Finding::new(Id::ZeroMeansAbsent, severity, zeros.join(", ")).by(formula);
    (!zeros.is_empty()).then(finding)
}

/// True if the first token came together with the last, as in replies that are not streamed.
fn came_whole(figures: &Figures<'_>) -> bool {
    let means = figures.positive("ttft.mean").zip(figures.positive("e2e.mean"));
    means.is_some_and(|(first, last)| first.wider(0.001).meets(last))
}

fn formula_of_zero(figures: &Figures<'_>) -> Option<String> {
    let zero = |name: &str| figures.claim.value(name) == Some(0.0);
    if zero("itl.mean") {
        let last = if zero("ttft.median") {
            "for half of the requests it counted no chunk at all"
        } else {
            "so the last token is also the first"
        };
        return Some(format!("ITL is 0 if the tool counted one chunk per request: {last}"));
    }
    zero("ttft.median").then(|| "TTFT is 0 if the tool saw no first token".to_owned())
}

/// Gaps with at least half at zero, while others are not.
pub(super) fn gaps(figures: &Figures<'_>) -> Option<Finding> {
    figures.positive("itl.mean").filter(|mean| mean.low > 0.0)?;
    let zeros: Vec<String> = (figures.claim.statistics("itl").into_iter())
        .filter(|(statistic, stated)| {
            matches!(statistic, Statistic::Percentile(percent) if *percent >= 50.0)
                && stated.value == 0.0
        })
        .map(|(statistic, _)| match statistic {
            Statistic::Percentile(50.0) => "median".to_owned(),
            other => other.to_string().to_uppercase(),
        })
        .collect();
    if zeros.is_empty() {
        return None;
    }
    let mean = figures.claim.value("itl.mean").unwrap_or_default();
    let which = zeros.join(" and ");
    let seen = format!("{which} ITL is 0 at a mean of {} ms", shown(mean));
    let formula = if figures.first_and_last() {
        "gaps are computed from the first and last counted chunk of a request: they are 0 if all tokens were counted in one"
    } else {
        "one read of the socket returned several tokens, and all got the same timestamp"
    };
    Some(Finding::new(Id::ZeroGaps, Severity::Suspect, seen).by(Some(formula.to_owned())))
}

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
