//! Rules on token counts: are they known, where do they come from, and do their sources agree?

use super::{Finding, Id};
use crate::metric::Source;
use crate::summary::{Comparison, Summary};

pub(super) fn unknown(summary: &Summary) -> Option<Finding> {
    let unknown = summary.tokens.output.unknown;
    (unknown > 0).then(|| Id::TokensUnknown.suspect(
        format!("the output tokens of {unknown} of {} answers are unknown", summary.requests.successful),
        "token totals leave these answers out, so token throughput is understated; these answers have no TPOT",
        "have the server report usage, or pass the model's tokenizer (--tokenizer)",
    ))
}

pub(super) fn approximate(summary: &Summary) -> Option<Finding> {
    let tokenizer = summary.run.tokenizer.as_ref().filter(|tokenizer| tokenizer.approximate)?;
    let by = |counted: &crate::summary::Counted, source| {
        counted.exchanges_by_source.get(&source).copied().unwrap_or(0)
    };
    let input = by(&summary.tokens.input, Source::Dataset);
    let output = by(&summary.tokens.output, Source::Retokenized);
    let counted = input + output > 0;
    if !counted && summary.tokens.output_retokenized.is_none() {
        return None;
    }
    let name = &tokenizer.name;
    let (seen, why, advice) = if counted {
        (
            format!(
                "tokens of {input} prompts and {output} answers were counted with {name}, which is not the model's tokenizer"
            ),
            "token counts are estimates, and so are the throughput and TPOT computed from them",
            "pass the served model's tokenizer.json (--tokenizer), or have the server report usage",
        )
    } else {
        (
            format!("answers were tokenized again with {name}, which is not the model's tokenizer"),
            "the retokenized total is an estimate, and so are the lengths that the dataset aimed at; the other counts come from the server",
            "pass the served model's tokenizer.json (--tokenizer)",
        )
    };
    Some(Id::ApproximateTokens.doubted(counted, seen, why, advice))
}

pub(super) fn input_disagree(summary: &Summary) -> Option<Finding> {
    let Gap { of, apart, share, totals } = Gap::new(summary.tokens.input_against_dataset?)?;
    Some(Id::InputTokensDisagree.doubted(
        share > 0.1,
        format!("server and dataset disagree on the length of {apart} of {of} prompts ({totals})"),
        "the prompts are not as long as the plan states: a chat template, special tokens or a different tokenizer changed their length",
        "compare runs by the server's counts; use the served model's tokenizer, and text completion if the length must be exact",
    ))
}

pub(super) fn output_disagree(summary: &Summary) -> Option<Finding> {
    if summary.run.tokenizer.as_ref().is_some_and(|tokenizer| tokenizer.approximate) {
        return None;
    }
    let Gap { of, apart, share, totals } = Gap::new(summary.tokens.output_against_retokenized?)?;
    (share > 0.05).then(|| Id::OutputTokensDisagree.doubted(
        share > 0.2,
        format!("counted length and length after tokenizing again differ for {apart} of {of} answers ({totals})"),
        "tokenizing the text again rarely gives exactly the same tokens, but totals this far apart mean that some counted tokens produced no text, or that the tokenizer is a different one",
        "check where the counts come from, and whether this is the served model's tokenizer",
    ))
}

struct Gap {
    of: u64,
    apart: u64,
    /// Between the totals, as a share of the reference.
    share: f64,
    totals: String,
}

impl Gap {
    /// `None` if no exchange is beyond tolerance.
    fn new(comparison: Comparison) -> Option<Self> {
        let Comparison { exchanges, lower, higher, counted, reference } = comparison;
        let apart = lower + higher;
        (apart > 0).then(|| Gap {
            of: exchanges,
            apart,
            share: counted.abs_diff(reference) as f64 / reference.max(1) as f64,
            totals: format!("{counted} tokens against {reference}"),
        })
    }
}

/// The server's total against its statements for each event: two statements of the same server.
pub(super) fn events_disagree(summary: &Summary) -> Option<Finding> {
    let Gap { of, apart, share, totals } = Gap::new(summary.tokens.output_against_events?)?;
    Some(Id::EventTokensDisagree.doubted(
        share > 0.01,
        format!("for {apart} of {of} answers, the stated total is not the sum of the tokens of the events ({totals})"),
        "the server contradicts itself; totals use its usage figures, per-token gaps and peaks use its events",
        "find out what this engine counts: tokens held back at the end, stop tokens, or tokens of rejected drafts",
    ))
}

pub(super) fn per_event(summary: &Summary) -> Option<Finding> {
    let tokens = summary.tokens.per_event?;
    let (why, advice) = if tokens > 1.2 {
        (
            "ITL is the gap between events, not between tokens; all tokens of the first event share its TTFT",
            "compare by TPOT, or by itl-token if the server reports the tokens of each event",
        )
    } else if tokens < 0.8 {
        (
            "either there are more events than tokens, so ITL is shorter than the gap between tokens, or the server does not count all of its tokens",
            "compare by TPOT or by itl-dealt; pass the model's tokenizer to count the answers' tokens",
        )
    } else {
        return None;
    };
    Some(Id::TokensPerEvent.note(
        format!("an event of a reply carries {tokens:.2} tokens on average"),
        why,
        advice,
    ))
}
