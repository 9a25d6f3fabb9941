//! Rules on token counts: are they known, whose are they, and do their sources agree?

use super::{Finding, Id, Severity};
use crate::metric::Source;
use crate::summary::{Comparison, Summary};

pub(super) fn unknown(summary: &Summary) -> Option<Finding> {
    let unknown = summary.tokens.output.unknown;
    (unknown > 0).then(|| Finding {
        id: Id::TokensUnknown,
        severity: Severity::Suspect,
        seen: format!("output tokens of {unknown} of {} answers are unknown", summary.requests.successful),
        why: "they are in no token total, so token throughput is understated; these answers have no TPOT".into(),
        advice: "have the server state usage, or give a tokenizer to count with".into(),
    })
}

pub(super) fn approximate(summary: &Summary) -> Option<Finding> {
    let tokenizer = summary
        .run
        .tokenizer
        .as_ref()
        .filter(|tokenizer| tokenizer.approximate)?;
    let by = |counted: &crate::summary::Counted, source| {
        counted
            .exchanges_by_source
            .get(&source)
            .copied()
            .unwrap_or(0)
    };
    let input = by(&summary.tokens.input, Source::Dataset);
    let output = by(&summary.tokens.output, Source::Retokenized);
    let counted = input + output > 0;
    if !counted && summary.tokens.output_retokenized.is_none() {
        return None;
    }
    let name = &tokenizer.name;
    Some(Finding {
        id: Id::ApproximateTokens,
        severity: if counted {
            Severity::Suspect
        } else {
            Severity::Note
        },
        seen: if counted {
            format!(
                "tokens of {input} prompts and {output} answers were counted with {name}, which is not the model's tokenizer"
            )
        } else {
            format!("answers were tokenized again with {name}, which is not the model's tokenizer")
        },
        why: if counted {
            "token counts, and throughput and TPOT made from them, are estimates".into()
        } else {
            "the retokenized total is an estimate, and so are the lengths the dataset aimed at; the other counts are the server's".into()
        },
        advice: "give the served model's tokenizer.json, or have the server state usage".into(),
    })
}

pub(super) fn input_disagree(summary: &Summary) -> Option<Finding> {
    let Apart {
        of,
        apart,
        share,
        totals,
    } = Apart::of(summary.tokens.input_against_dataset?)?;
    Some(Finding {
        id: Id::InputTokensDisagree,
        severity: if share > 0.1 { Severity::Suspect } else { Severity::Note },
        seen: format!("of {of} prompts {apart} have other lengths by the server than by the dataset ({totals})"),
        why: "the prompts are not as long as the plan says: a chat template, special tokens or another tokenizer came between".into(),
        advice: "compare runs by the server's counts; use the served model's tokenizer, and text completion where the length must be exact".into(),
    })
}

pub(super) fn output_disagree(summary: &Summary) -> Option<Finding> {
    if summary
        .run
        .tokenizer
        .as_ref()
        .is_some_and(|tokenizer| tokenizer.approximate)
    {
        return None;
    }
    let Apart {
        of,
        apart,
        share,
        totals,
    } = Apart::of(summary.tokens.output_against_retokenized?)?;
    (share > 0.05).then(|| Finding {
        id: Id::OutputTokensDisagree,
        severity: if share > 0.2 { Severity::Suspect } else { Severity::Note },
        seen: format!("of {of} answers {apart} have other lengths as counted than as tokenized again ({totals})"),
        why: "text that is tokenized again seldom gives the very same tokens, but totals this far apart mean that tokens were counted which gave no text, or another tokenizer".into(),
        advice: "see where the counts come from, and whether the tokenizer is the served model's".into(),
    })
}

/// How far two counts of the same tokens are apart.
struct Apart {
    /// Exchanges that have both.
    of: u64,
    /// Of these, those beyond tolerance.
    apart: u64,
    /// Between the totals, as a share of the reference.
    share: f64,
    /// The totals, in words.
    totals: String,
}

impl Apart {
    /// `None` where no exchange is beyond tolerance.
    fn of(comparison: Comparison) -> Option<Self> {
        let Comparison {
            exchanges,
            lower,
            higher,
            counted,
            reference,
        } = comparison;
        let apart = lower + higher;
        (apart > 0).then(|| Apart {
            of: exchanges,
            apart,
            share: counted.abs_diff(reference) as f64 / reference.max(1) as f64,
            totals: format!("{counted} tokens against {reference}"),
        })
    }
}

/// The server's total against what it states of each event: two words of the same server.
pub(super) fn events_disagree(summary: &Summary) -> Option<Finding> {
    let Apart {
        of,
        apart,
        share,
        totals,
    } = Apart::of(summary.tokens.output_against_events?)?;
    Some(Finding {
        id: Id::EventTokensDisagree,
        severity: if share > 0.01 { Severity::Suspect } else { Severity::Note },
        seen: format!("of {of} answers {apart} have other totals than the tokens of their events sum to ({totals})"),
        why: "the server contradicts itself; totals are by its usage, gaps by the token and peaks by its events".into(),
        advice: "see what this engine counts: tokens held back at the end, stop tokens, or tokens of rejected drafts".into(),
    })
}

pub(super) fn per_event(summary: &Summary) -> Option<Finding> {
    let tokens = summary.tokens.per_event?;
    let (why, advice) = if tokens > 1.2 {
        (
            "ITL is the gap between events, not between tokens; the first event's tokens share its TTFT",
            "compare by TPOT, or by itl-token where the server states the tokens of its events",
        )
    } else if tokens < 0.8 {
        (
            "there are more events than tokens, so ITL is shorter than the gap between tokens; or the server does not count all of its tokens",
            "compare by TPOT, or by itl-dealt; give the model's tokenizer to have the answers counted",
        )
    } else {
        return None;
    };
    Some(Finding {
        id: Id::TokensPerEvent,
        severity: Severity::Note,
        seen: format!("an event of a reply stands for {tokens:.2} tokens on average"),
        why: why.into(),
        advice: advice.into(),
    })
}
