//! The rules: each looks at one thing in a summary and speaks up, or does not.

use super::{Finding, Id, Severity};
use crate::exchange::FailureClass;
use crate::metric;
use crate::metric::Source;
use crate::summary::{Comparison, Summary};

/// Every rule, in the order in which findings of equal weight are listed.
pub(super) const ALL: [fn(&Summary) -> Option<Finding>; 13] = [
    nothing_answered,
    failures,
    not_sent,
    interrupted,
    send_lag,
    cap_reached,
    short_answers,
    tokens_unknown,
    approximate_tokens,
    input_tokens_disagree,
    output_tokens_disagree,
    tokens_per_event,
    few_samples,
];

/// Share of requests beyond which failures, waits and short answers are more than an accident.
const ACCIDENT: f64 = 0.01;

/// Send lag beyond which a client that holds to a rate is too late, in milliseconds, whatever the
/// server's latency. Where everything is due at the same moment, somebody has to be the last.
const LATE_MS: f64 = 10.0;

/// Send lag below which nobody is late, in milliseconds: what a busy kernel's scheduler costs.
const PUNCTUAL_MS: f64 = 1.0;

/// Share of the time to first token beyond which the client's own lag shows in it.
const LAG_SHARE: f64 = 0.05;

fn nothing_answered(summary: &Summary) -> Option<Finding> {
    let requests = &summary.requests;
    (requests.successful == 0).then(|| Finding {
        id: Id::NothingAnswered,
        severity: Severity::Invalid,
        seen: format!("none of {} requests was answered", requests.total),
        why: "latency and throughput are of answered requests; there are none".into(),
        advice: "see the failures by class and their messages".into(),
    })
}

fn failures(summary: &Summary) -> Option<Finding> {
    let requests = &summary.requests;
    let elsewhere: u64 = [FailureClass::NotSent, FailureClass::Interrupted]
        .iter()
        .filter_map(|class| requests.failures.get(class))
        .map(|failures| failures.count)
        .sum();
    let failed = requests.failed - elsewhere.min(requests.failed);
    let share = failed as f64 / requests.total.max(1) as f64;
    if share <= ACCIDENT {
        return None;
    }
    Some(Finding {
        id: Id::Failures,
        severity: if share > 0.5 { Severity::Invalid } else { Severity::Suspect },
        seen: format!("{failed} of {} requests failed ({:.1} %)", requests.total, share * 100.0),
        why: "latency is of answered requests only; failed ones, often the slowest, are missing from it, and they took load off the server".into(),
        advice: "see the failures by class and their messages; lower the load, or repair the server".into(),
    })
}

fn not_sent(summary: &Summary) -> Option<Finding> {
    let requests = &summary.requests;
    let count = requests.failures.get(&FailureClass::NotSent)?.count;
    Some(Finding {
        id: Id::NotSent,
        severity: Severity::Suspect,
        seen: format!("{count} of {} requests were due but never sent", requests.total),
        why: "the load that was to be offered was not offered".into(),
        advice: "raise the cap on requests in flight, lower the rate, or allow the run more time to finish".into(),
    })
}

fn interrupted(summary: &Summary) -> Option<Finding> {
    let answered = summary.requests.successful;
    let of = summary
        .run
        .planned
        .map(|planned| format!(" of {planned}"))
        .unwrap_or_default();
    summary.run.interrupted.then(|| Finding {
        id: Id::Interrupted,
        severity: Severity::Suspect,
        seen: format!("the run was stopped; {answered}{of} requests were answered"),
        why: "the figures are of a part of the plan, and its end is missing".into(),
        advice: "run it again to the end before comparing".into(),
    })
}

fn send_lag(summary: &Summary) -> Option<Finding> {
    let lag = summary.metric(metric::SEND_LAG)?.percentile(99.0)?;
    let first = summary.metric(metric::TTFT).map(|ttft| ttft.median);
    let shows = first.is_some_and(|first| lag > PUNCTUAL_MS && lag > LAG_SHARE * first);
    let late = lag > LATE_MS && summary.run.request_rate.is_some();
    if !late && !shows {
        return None;
    }
    let beside = first
        .map(|first| format!(" (median TTFT {first:.2} ms)"))
        .unwrap_or_default();
    Some(Finding {
        id: Id::SendLag,
        severity: Severity::Suspect,
        seen: format!("P99 of the send lag is {lag:.2} ms{beside}"),
        why: "requests left later than they were due, so the server saw another load than the plan's; latency from the due time includes the lag, latency from the send time hides it".into(),
        advice: "give this machine more processor time, or spread the load over several machines".into(),
    })
}

fn cap_reached(summary: &Summary) -> Option<Finding> {
    let rate = summary.run.request_rate?;
    let cap = summary.run.max_in_flight?;
    let (held_back, total) = (summary.requests.held_back?, summary.requests.total);
    if held_back == 0 {
        return None;
    }
    let share = held_back as f64 / total.max(1) as f64;
    Some(Finding {
        id: Id::CapReached,
        severity: if share > ACCIDENT {
            Severity::Suspect
        } else {
            Severity::Note
        },
        seen: format!("{held_back} of {total} requests waited for the cap of {cap} in flight"),
        why: format!(
            "the plan offers {rate} requests a second, but the cap let through fewer; latency from the send time leaves the wait out"
        ),
        advice: "read latency from the due time; raise the cap, or lower the rate".into(),
    })
}

fn short_answers(summary: &Summary) -> Option<Finding> {
    let comparison = summary.tokens.output_against_requested?;
    if !summary.run.ignore_eos || comparison.lower + comparison.higher == 0 {
        return None;
    }
    let Comparison {
        exchanges,
        lower,
        higher,
        counted,
        reference,
    } = comparison;
    let share = (lower + higher) as f64 / exchanges.max(1) as f64;
    Some(Finding {
        id: Id::ShortAnswers,
        severity: if share > ACCIDENT { Severity::Suspect } else { Severity::Note },
        seen: format!("of {exchanges} answers {lower} are shorter and {higher} longer than asked for ({counted} tokens instead of {reference})"),
        why: "the server was told to go on to the length asked for; runs whose answers differ in length do not compare".into(),
        advice: "see whether this engine knows the option to ignore the end of the text, and whether its context is long enough".into(),
    })
}

fn tokens_unknown(summary: &Summary) -> Option<Finding> {
    let unknown = summary.tokens.output.unknown;
    (unknown > 0).then(|| Finding {
        id: Id::TokensUnknown,
        severity: Severity::Suspect,
        seen: format!("output tokens of {unknown} of {} answers are unknown", summary.requests.successful),
        why: "they are in no token total, so token throughput is understated; these answers have no TPOT".into(),
        advice: "have the server state usage, or give a tokenizer to count with".into(),
    })
}

fn approximate_tokens(summary: &Summary) -> Option<Finding> {
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

fn input_tokens_disagree(summary: &Summary) -> Option<Finding> {
    let comparison = summary.tokens.input_against_dataset?;
    let (apart, share) = apart(comparison)?;
    let Comparison {
        exchanges,
        counted,
        reference,
        ..
    } = comparison;
    Some(Finding {
        id: Id::InputTokensDisagree,
        severity: if share > 0.1 { Severity::Suspect } else { Severity::Note },
        seen: format!("of {exchanges} prompts {apart} have other lengths by the server than by the dataset ({counted} tokens against {reference})"),
        why: "the prompts are not as long as the plan says: a chat template, special tokens or another tokenizer came between".into(),
        advice: "compare runs by the server's counts; use the served model's tokenizer, and text completion where the length must be exact".into(),
    })
}

fn output_tokens_disagree(summary: &Summary) -> Option<Finding> {
    if summary
        .run
        .tokenizer
        .as_ref()
        .is_some_and(|tokenizer| tokenizer.approximate)
    {
        return None;
    }
    let comparison = summary.tokens.output_against_retokenized?;
    let (apart, share) = apart(comparison)?;
    let Comparison {
        exchanges,
        counted,
        reference,
        ..
    } = comparison;
    (share > 0.05).then(|| Finding {
        id: Id::OutputTokensDisagree,
        severity: if share > 0.2 { Severity::Suspect } else { Severity::Note },
        seen: format!("of {exchanges} answers {apart} have other lengths as counted than as tokenized again ({counted} tokens against {reference})"),
        why: "text that is tokenized again seldom gives the very same tokens, but totals this far apart mean that tokens were counted which gave no text, or another tokenizer".into(),
        advice: "see where the counts come from, and whether the tokenizer is the served model's".into(),
    })
}

/// Exchanges beyond tolerance, if any, and how far the totals are apart as a share of the
/// reference.
fn apart(comparison: Comparison) -> Option<(u64, f64)> {
    let exchanges = comparison.lower + comparison.higher;
    let tokens = comparison.counted.abs_diff(comparison.reference);
    (exchanges > 0).then(|| {
        (
            exchanges,
            tokens as f64 / comparison.reference.max(1) as f64,
        )
    })
}

fn tokens_per_event(summary: &Summary) -> Option<Finding> {
    let tokens = summary.tokens.per_event.filter(|tokens| *tokens > 1.2)?;
    Some(Finding {
        id: Id::TokensPerEvent,
        severity: Severity::Note,
        seen: format!("an event of a reply stands for {tokens:.2} tokens on average"),
        why: "ITL is the gap between events, not between tokens; the first event's tokens share its TTFT".into(),
        advice: "compare by TPOT, or by itl-token where the server states the tokens of its events".into(),
    })
}

fn few_samples(summary: &Summary) -> Option<Finding> {
    let samples = [metric::E2E, metric::TTFT, metric::TPOT]
        .iter()
        .filter_map(|name| summary.metric(name))
        .map(|distribution| distribution.count)
        .min()?;
    // Fewer than 1 / (1 - p) samples: not one is expected beyond the percentile.
    let beyond = |percent: &f64| samples as f64 * (100.0 - percent) / 100.0 < 1.0 - 1e-9;
    let unfounded: Vec<String> = summary
        .run
        .percentiles
        .iter()
        .filter(|percent| **percent < 100.0 && beyond(percent))
        .map(|percent| format!("P{percent}"))
        .collect();
    (!unfounded.is_empty()).then(|| Finding {
        id: Id::FewSamples,
        severity: Severity::Note,
        seen: format!("{} from {samples} samples", unfounded.join(", ")),
        why: "with fewer samples than 1 / (1 - p), a percentile is little more than the largest sample".into(),
        advice: "send more requests, or read a lower percentile".into(),
    })
}
