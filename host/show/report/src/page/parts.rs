//! Sections of a few figures each: goodput, sessions, steady state, tokens, the dataset's changes,
//! the server's own metrics, devices, cost, scores.

mod devices;

use crate::document::{Pair, pairs};
use crate::served::{Served, served};
use model::number::{count, fixed, percent, significant};
use result::metric;
use result::summary::server::Figure as Counted;
use result::summary::{Reported, Score, SteadyState, Summary};

/// A few figures that belong together.
pub(super) struct Part {
    pub(super) title: &'static str,
    pub(super) words: Option<String>,
    pub(super) pairs: Vec<Pair>,
}

/// The present ones of these sections.
pub(super) fn parts(summary: &Summary) -> Vec<Part> {
    let parts = [
        goodput(summary),
        sessions(summary),
        steady(summary),
        tokens(summary),
        cache(summary),
        dataset(summary),
        server(summary),
        series(summary),
        devices::devices(summary),
        devices::cost(summary),
        scores(summary),
    ];
    let there = parts.into_iter().flatten();
    there.filter(|part| !part.pairs.is_empty() || part.words.is_some()).collect()
}

fn goodput(summary: &Summary) -> Option<Part> {
    let goodput = summary.goodput.as_ref()?;
    let mut pairs = pairs([
        ("Good requests", Some(count(goodput.good))),
        ("Share of the due requests", goodput.slo_attainment.map(percent)),
        ("Good requests per second", goodput.requests_per_s.map(|value| significant(value, 4))),
        (
            "Their output tokens per second",
            goodput.output_tokens_per_s.map(|value| significant(value, 4)),
        ),
    ]);
    for (metric, of) in &goodput.objectives {
        let unknown = match of.unknown {
            0 => String::new(),
            unknown => format!(", {} unknown", count(unknown)),
        };
        let share = of.attainment.map(|share| format!("{}: ", percent(share)));
        pairs.push(Pair {
            name: format!("{metric} at most {} ms", significant(of.at_most_ms, 4)),
            value: format!(
                "{}{} met, {} missed{unknown}",
                share.unwrap_or_default(),
                count(of.kept),
                count(of.missed)
            ),
        });
    }
    Some(Part { title: "Goodput", words: None, pairs })
}

fn sessions(summary: &Summary) -> Option<Part> {
    let sessions = summary.sessions.as_ref()?;
    let of = |name: &str| {
        let of = summary.metric(name)?;
        let p99 = of.percentile(99.0)?;
        let unit = &of.unit;
        let (median, p99) = (significant(of.median, 4), significant(p99, 4));
        Some(format!("{median} {unit}, P99 {p99} {unit}"))
    };
    let histories = summary.histories.map(|histories| {
        let share = histories.recorded_share().map(percent);
        format!(
            "{}; of their answers, {} are those on record",
            count(histories.requests),
            share.unwrap_or_default()
        )
    });
    Some(Part {
        title: "Sessions",
        words: None,
        pairs: pairs([
            ("Sessions", Some(count(sessions.total))),
            ("Complete", Some(count(sessions.complete))),
            ("With a failure", Some(count(sessions.failed))),
            ("Cancelled on purpose", Some(sessions.cancelled).filter(|many| *many > 0).map(count)),
            ("Cut short", Some(count(sessions.cut_short))),
            (
                "Complete sessions per second",
                sessions.sessions_per_s.map(|rate| significant(rate, 4)),
            ),
            ("Answered turns per second", sessions.turns_per_s.map(|rate| significant(rate, 4))),
            ("Time of a session, median", of(metric::SESSION_TIME)),
            ("Of this in flight", of(metric::SESSION_IN_FLIGHT)),
            ("Of this idle", of(metric::SESSION_IDLE)),
            ("Requests of a session, median", of(metric::SESSION_TURNS)),
            ("Wait for other parents, median", of(metric::PARENT_WAIT)),
            ("Requests with a history", histories),
        ]),
    })
}

fn dataset(summary: &Summary) -> Option<Part> {
    let dataset = summary.dataset.as_ref()?;
    let pairs = dataset.remarks.iter().map(|remark| {
        let first = remark.first.as_ref();
        let first = first.map(|first| format!(", first {first}"));
        Pair {
            name: format!("{}: {}", remark.what.name(), remark.reason),
            value: format!("{}{}", count(remark.count), first.unwrap_or_default()),
        }
    });
    Some(Part { title: "Changes by the dataset", words: None, pairs: pairs.collect() })
}

fn steady(summary: &Summary) -> Option<Part> {
    let window = match summary.steady_state.as_ref()? {
        SteadyState::Absent(why) => {
            return Some(Part {
                title: "Steady state",
                words: Some(format!("None: {why}.")),
                pairs: Vec::new(),
            });
        }
        SteadyState::Window(window) => window,
    };
    let of = |name: &str| {
        let of = window.metrics.get(name)?;
        let p99 = of.percentile(99.0);
        let p99 = p99.map(|p99| format!(", P99 {} ms", significant(p99, 4)));
        Some(format!("{} ms{}", significant(of.median, 4), p99.unwrap_or_default()))
    };
    let drift = window.drift.iter().map(|(name, drift)| {
        let change = format!("{:+.1} %", drift.change * 100.0);
        format!("{name} {}", change.replace('-', "\u{2212}"))
    });
    let drift: Vec<String> = drift.collect();
    Some(Part {
        title: "Steady state",
        words: Some(format!(
            "From {} to {} s, while at least {} of {} requests were in flight.",
            significant(window.from_s, 4),
            significant(window.to_s, 4),
            count(window.at_least),
            count(window.plateau)
        )),
        pairs: pairs([
            ("Requests that ended in it", Some(count(window.ended))),
            ("Requests sent in it", Some(count(window.sent))),
            ("Requests per second", Some(significant(window.requests_per_s, 4))),
            (
                "Output tokens per second",
                window.output_tokens_per_s.map(|value| significant(value, 4)),
            ),
            ("In flight", Some(significant(window.mean_in_flight, 4))),
            ("TTFT, median", of(metric::TTFT)),
            ("TPOT, median", of(metric::TPOT)),
            ("ITL, median", of(metric::ITL)),
            ("E2E latency, median", of(metric::E2E)),
            ("Change from beginning to end", (!drift.is_empty()).then(|| drift.join(", "))),
            (
                "Throughput oscillates every",
                window.swing.map(|swing| {
                    format!("{} s, by {}", significant(swing.period_s, 3), percent(swing.share))
                }),
            ),
        ]),
    })
}

fn tokens(summary: &Summary) -> Option<Part> {
    let tokens = &summary.tokens;
    let sources = |counted: &result::summary::Counted| {
        let known = counted.exchanges_by_source.iter();
        let known = known.map(|(source, n)| format!("{} {}", source.name(), count(*n)));
        let unknown = (counted.unknown > 0).then(|| format!("unknown {}", count(counted.unknown)));
        let parts: Vec<String> = known.chain(unknown).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let kind = |kind: Option<Reported>| kind.map(|kind| kind.label(count));
    let steps = tokens.speculation.as_ref();
    let tpot = steps.and_then(|steps| steps.tpot.as_ref());
    let tokenizer = summary.run.tokenizer.as_ref();
    let tokenizer = tokenizer.map(|tokenizer| match tokenizer.remark() {
        Some(remark) => format!("{}, {remark}", tokenizer.name),
        None => tokenizer.name.clone(),
    });
    let counts = summary.counts.iter();
    let counts: Vec<String> =
        counts.map(|(name, stated)| format!("{name} {}", stated.label(count))).collect();
    Some(Part {
        title: "Tokens",
        words: None,
        pairs: pairs([
            ("Input tokens", tokens.input.total.map(count)),
            ("Counted by, in requests", sources(&tokens.input)),
            ("Output tokens", tokens.output.total.map(count)),
            ("Counted by, in requests", sources(&tokens.output)),
            ("Output tokens requested", tokens.output_requested.map(count)),
            ("Output tokens, retokenized", tokens.output_retokenized.map(count)),
            ("Cached input tokens", tokens.input_cached.map(count)),
            ("Reasoning tokens", tokens.output_reasoning.map(count)),
            (
                "Reasoning text, in answers",
                tokens.reasoning.as_ref().map(|reasoning| reasoning.label()),
            ),
            ("Draft tokens accepted", tokens.drafts.as_ref().map(|drafts| drafts.label(count))),
            (
                "Acceptance length, in tokens per step",
                steps
                    .and_then(|steps| steps.acceptance_length)
                    .map(|length| significant(length, 4)),
            ),
            ("Steps by accepted tokens", steps.and_then(|steps| steps.label(count))),
            ("Steps that accepted at position", steps.and_then(|steps| steps.positions())),
            ("TPOT by acceptance length, answers in brackets", tpot.map(|tpot| tpot.label(count))),
            (
                "Rank correlation of TPOT and acceptance length",
                tpot.and_then(|tpot| tpot.rank_correlation)
                    .map(|correlation| fixed(correlation, 2)),
            ),
            ("Image tokens, of the input", kind(tokens.input_image)),
            ("Video tokens, of the input", kind(tokens.input_video)),
            ("Audio tokens, of the input", kind(tokens.input_audio)),
            ("Audio tokens, of the output", kind(tokens.output_audio)),
            ("Further counts of the server", (!counts.is_empty()).then(|| counts.join(", "))),
            ("Output tokens per event", tokens.per_event.map(|value| significant(value, 4))),
            ("Tokenizer of the client", tokenizer),
        ]),
    })
}

fn cache(summary: &Summary) -> Option<Part> {
    let cache = summary.cache.as_ref()?;
    let reported = cache.reported.as_ref();
    Some(Part {
        title: "Prefix cache",
        words: Some(format!(
            "A cache without limits is counted in pages of {} tokens, over the prompts in the order in which they were sent.",
            cache.page
        )),
        pairs: pairs([
            ("Before the run", Some(cache.policy.to_string())),
            ("Prompt tokens counted", Some(count(cache.tokens))),
            ("Prompt tokens that repeat", cache.reusable_share().map(percent)),
            ("Reported cached tokens", reported.map(|cache| count(cache.cached))),
            (
                "Reported cached share",
                reported.and_then(|cache| cache.shares()).map(|(_, found)| percent(found)),
            ),
        ]),
    })
}

fn series(summary: &Summary) -> Option<Part> {
    let series = summary.server_series.as_ref()?;
    let pairs = served(summary).into_iter().map(|Served { label, value }| Pair {
        name: label.to_owned(),
        value: significant(value, 4),
    });
    let failed = series.failed.zip(series.last_error.as_ref());
    let failed = failed.map_or(String::new(), |(count, error)| {
        format!(" {count} pages did not come, the last because: {error}.")
    });
    Some(Part {
        title: "Server metrics over time",
        words: Some(format!(
            "From {} series of its metrics page, read every {} s.{failed}",
            count(series.series),
            significant(series.every_s, 3)
        )),
        pairs: pairs.collect(),
    })
}

fn server(summary: &Summary) -> Option<Part> {
    let server = summary.server.as_ref()?;
    let counted = |figure| server.counted(figure).map(|value| significant(value, 12));
    let hits = server.counted(Counted::PrefixCacheHits);
    let queries = server.counted(Counted::PrefixCacheQueries);
    let share = hits.zip(queries).filter(|(_, queries)| *queries > 0.0);
    let cache = match server.largest(Counted::KvCacheUsage) {
        [Some(before), Some(after)] => {
            Some(format!("{} before, {} after", percent(before), percent(after)))
        }
        _ => None,
    };
    let lost = server.targets.iter().filter_map(|target| {
        let why = target.lost.as_ref()?;
        Some(format!("{} did not return its metrics after the run: {why}", target.url))
    });
    let lost: Vec<String> = lost.collect();
    Some(Part {
        title: "Server counts",
        words: (!lost.is_empty()).then(|| lost.join("; ")),
        pairs: pairs([
            ("Finished requests", counted(Counted::FinishedRequests)),
            ("Input tokens", counted(Counted::InputTokens)),
            ("Output tokens", counted(Counted::OutputTokens)),
            ("Preemptions", counted(Counted::Preemptions)),
            (
                "Tokens found in the prefix cache",
                share.map(|(hits, queries)| percent(hits / queries)),
            ),
            ("KV cache in use", cache),
        ]),
    })
}

/// A score's mean, its certainty, and its number of answers.
fn scored(score: &Score) -> String {
    let bounds = score.confidence;
    let bounds = bounds.map(|bounds| format!(" ({})", bounds.label(" to ", |end| fixed(end, 4))));
    let unjudged = score.unjudged.label();
    let unjudged = unjudged.map(|words| format!("; not judged: {words}"));
    format!(
        "{}{}, mean of {}{}",
        fixed(score.mean, 4),
        bounds.unwrap_or_default(),
        count(score.count),
        unjudged.unwrap_or_default()
    )
}

fn scores(summary: &Summary) -> Option<Part> {
    let means = summary
        .scores
        .iter()
        .map(|(name, score)| Pair { name: name.clone(), value: scored(score) });
    let whole = summary
        .run_scores
        .iter()
        .map(|(name, value)| Pair { name: name.clone(), value: fixed(*value, 4) });
    let silent = summary.silent_scorers.iter().map(|scorer| Pair {
        name: scorer.name.clone(),
        value: format!("no score: {}", scorer.unjudged.label().unwrap_or_default()),
    });
    let pairs: Vec<Pair> = means.chain(whole).chain(silent).collect();
    (!pairs.is_empty()).then_some(Part {
        title: "Scores",
        words: (!summary.scores.is_empty())
            .then(|| "Means over the judged answers, with 95 % intervals.".to_owned()),
        pairs,
    })
}
