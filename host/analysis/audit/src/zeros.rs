//! Rules on zeros: nothing takes zero time, so a latency of zero was not measured, or is not the
//! latency of its name.

use super::figures::{Figures, shown};
use super::finding::Finding;
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
