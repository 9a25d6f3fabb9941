//! Rules on throughput: counts over the duration, the sum of parts, a peak, and the rate that was asked for.

use super::figures::{Figures, percent, shown};
use super::range::Range;
use super::{Finding, Id};
use crate::claim::Tool;
use crate::finding::Severity;

/// Below this share, two clocks were read a moment apart.
const NOTHING: f64 = 0.001;

/// Beyond this share, a figure is of something else.
const MUCH: f64 = 0.05;

/// No engine gives one request as many tokens a second.
const FASTEST: f64 = 10_000.0;

/// How many times the requests in flight at their mean speed a second of them may give: a second without
/// prompts beside a run full of them is faster by a few times.
const TIMES: f64 = 10.0;

fn graded(apart: f64) -> Severity {
    match apart > MUCH {
        true => Severity::Invalid,
        false => Severity::Suspect,
    }
}

pub(super) fn requests(figures: &Figures<'_>) -> Vec<Finding> {
    let rate = figures.positive("throughput.requests-per-s");
    let (Some(rate), Some(duration), Some(answered)) =
        (rate, figures.duration(), figures.answered())
    else {
        return Vec::new();
    };
    let apart = (rate * duration).apart(Range::exact(answered));
    if apart <= NOTHING {
        return Vec::new();
    }
    let seen = format!(
        "{} requests over {} s are {} a second, and {} is stated",
        shown(answered),
        shown(duration.mid()),
        shown(answered / duration.mid()),
        shown(rate.mid()),
    );
    vec![Finding::new(Id::RequestRateDisagrees, graded(apart), seen)]
}

pub(super) fn tokens(figures: &Figures<'_>) -> Vec<Finding> {
    let Some(duration) = figures.duration() else {
        return Vec::new();
    };
    let count = |name: &str| figures.claim.value(name).filter(|tokens| *tokens > 0.0);
    let (input, output) = (count("tokens.input"), count("tokens.output"));
    let whole = input.zip(output).map(|(input, output)| input + output);
    let rates = [
        ("output", "throughput.output-tokens-per-s", output),
        ("input", "throughput.input-tokens-per-s", input),
        ("total", "throughput.total-tokens-per-s", whole),
    ];
    let off = rates.into_iter().filter_map(|(label, name, tokens)| {
        let (rate, tokens) = (figures.positive(name)?, tokens?);
        let apart = (rate * duration).apart(Range::exact(tokens));
        (apart > NOTHING).then_some((label, rate, tokens, apart))
    });
    let off: Vec<_> = off.collect();
    let Some((label, rate, tokens, _)) = off.first().copied() else {
        return Vec::new();
    };
    let apart = off.iter().map(|(.., apart)| *apart).fold(0.0, f64::max);
    let more = rate.mid() * duration.mid() > tokens;
    let over = tokens / rate.mid();
    let others: Vec<&str> = off.iter().skip(1).map(|(label, ..)| *label).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; so is the {}", others.join(" and the ")),
    };
    let seen = format!(
        "{label} throughput {} tok/s is {} tokens over {} s, and the run took {} s, which gives {} ({}{}){others}",
        shown(rate.mid()),
        shown(tokens),
        shown(over),
        shown(duration.mid()),
        shown(tokens / duration.mid()),
        if more { "+" } else { "-" },
        percent((rate.mid() * duration.mid() / tokens - 1.0).abs()),
    );
    // guidellm's rate is a mean over the events of its tokens, from the first to the last.
    let (severity, formula) = match !figures.over_duration() && more {
        true => {
            let severity = if apart > MUCH {
                Severity::Suspect
            } else {
                Severity::Note
            };
            let formula = format!(
                "tokens over the {} s from the first token that was timed to the last",
                shown(over)
            );
            (
                severity,
                (figures.claim.tool != Tool::Unknown).then_some(formula),
            )
        }
        false => (graded(apart), None),
    };
    vec![Finding::new(Id::TokenRateDisagrees, severity, seen).by(formula)]
}

pub(super) fn total(figures: &Figures<'_>) -> Vec<Finding> {
    let total = figures.positive("throughput.total-tokens-per-s");
    let output = figures.positive("throughput.output-tokens-per-s");
    let (Some(total), Some(output)) = (total, output) else {
        return Vec::new();
    };
    let sum = figures
        .get("throughput.input-tokens-per-s")
        .map(|input| input + output);
    let tokens = figures
        .claim
        .value("tokens.input")
        .zip(figures.claim.value("tokens.output"));
    let by_tokens = tokens
        .filter(|(_, output)| *output > 0.0)
        .map(|(input, of_it)| output * Range::exact((input + of_it) / of_it));
    let apart = [sum, by_tokens]
        .into_iter()
        .flatten()
        .map(|expected| total.apart(expected));
    // guidellm takes the rate of prompts over another time than that of answers; the counts still agree.
    let Some(apart) = apart.reduce(f64::min).filter(|apart| *apart > NOTHING) else {
        return Vec::new();
    };
    let expected = sum.or(by_tokens).map_or(0.0, Range::mid);
    let seen = format!(
        "input and output throughput are {} tok/s together, and {} is stated as the total",
        shown(expected),
        shown(total.mid()),
    );
    vec![Finding::new(Id::TotalDisagrees, graded(apart), seen)]
}

pub(super) fn peak(figures: &Figures<'_>) -> Vec<Finding> {
    let Some(peak) = figures.positive("throughput.peak-output-tokens-per-s") else {
        return Vec::new();
    };
    let output = figures
        .claim
        .value("tokens.output")
        .filter(|output| *output > 0.0);
    let long = figures
        .duration()
        .is_some_and(|duration| duration.low >= 1.0);
    let in_flight = figures.positive("concurrency.peak").map(|peak| peak.high);
    let in_flight = in_flight
        .or(figures.claim.asked.max_concurrency.map(|cap| cap as f64))
        .or(figures.answered());
    let each = in_flight.map(|in_flight| peak.low / in_flight);
    let gap = format!(
        "the inverse of the {} ns between two tokens, of which one read of the socket held both",
        shown(1e9 / peak.mid())
    );
    let gap = (figures.claim.tool == Tool::Gpustack).then_some(gap);
    if let Some(output) = output.filter(|output| long && peak.low > *output) {
        let seen = format!(
            "the peak is {} tok/s, and the whole run generated {} tokens",
            shown(peak.mid()),
            shown(output)
        );
        return vec![Finding::new(Id::PeakImpossible, Severity::Invalid, seen).by(gap)];
    }
    if let Some(each) = each.filter(|each| *each > FASTEST) {
        let seen = format!(
            "the peak is {} tok/s, {} for each of {} requests in flight",
            shown(peak.mid()),
            shown(each),
            shown(in_flight.unwrap_or_default()),
        );
        return vec![Finding::new(Id::PeakImpossible, Severity::Invalid, seen).by(gap)];
    }
    if let Some(finding) = implausible(figures, peak, each) {
        return vec![finding.by(gap)];
    }
    below(figures, peak)
}

/// A peak far above the mean speed of the requests that can have made it.
fn implausible(figures: &Figures<'_>, peak: Range, each: Option<f64>) -> Option<Finding> {
    let speed = (figures.tokens_each()? - 1.0) / figures.decode()?.low * 1e3;
    let each = each?;
    (speed > 0.0 && each > speed * TIMES).then(|| {
        let seen = format!(
            "the peak is {} tok/s, {} for each request in flight, and in the mean they were at {} after the first token",
            shown(peak.mid()),
            shown(each),
            shown(speed),
        );
        Finding::new(Id::PeakImplausible, Severity::Suspect, seen)
    })
}

/// The busiest of whole seconds has at least the mean, where there are a few of them.
fn below(figures: &Figures<'_>, peak: Range) -> Vec<Finding> {
    let (Some(duration), Some(output)) = (figures.duration(), figures.claim.value("tokens.output"))
    else {
        return Vec::new();
    };
    // The last second may be a part of one.
    let least = output / (duration.high.ceil() + 1.0);
    if peak.high >= least || duration.low < 2.0 {
        return Vec::new();
    }
    let mean = figures
        .get("throughput.output-tokens-per-s")
        .map_or(least, Range::mid);
    let seen = format!(
        "the peak is {} tok/s, and the mean {}",
        shown(peak.mid()),
        shown(mean)
    );
    let formula = format!(
        "events a second instead of tokens, of about {} tokens each",
        shown((mean / peak.mid() * 10.0).round() / 10.0)
    );
    vec![Finding::new(Id::PeakBelowMean, Severity::Suspect, seen).by(Some(formula))]
}

/// The rate that was asked for against the one that was reached. Requests come at random: the time for n of them
/// strays by its square root, and the last still has to be answered.
pub(super) fn asked(figures: &Figures<'_>) -> Vec<Finding> {
    let rate = figures
        .claim
        .asked
        .request_rate
        .filter(|rate| rate.is_finite() && *rate > 0.0);
    let (Some(rate), Some(duration)) = (rate, figures.duration()) else {
        return Vec::new();
    };
    let requests = figures
        .claim
        .asked
        .requests
        .map(|requests| requests as f64)
        .or(figures.answered());
    let Some(requests) = requests.filter(|requests| *requests >= 30.0) else {
        return Vec::new();
    };
    let planned = requests / rate;
    let stray = 5.0 / requests.sqrt();
    let longest = ["e2e.max", "e2e.p99", "e2e.mean"]
        .iter()
        .find_map(|name| figures.positive(name));
    let reached = requests / duration.mid();
    if duration.low > planned * (1.0 + stray) + longest.map_or(0.0, |longest| longest.high * 2e-3) {
        let cap = figures.claim.asked.max_concurrency;
        let cap = cap
            .map(|cap| format!(", with at most {cap} in flight"))
            .unwrap_or_default();
        let seen = format!(
            "{} requests a second were asked for, and {} went through{cap}",
            shown(rate),
            shown(reached)
        );
        return vec![Finding::new(Id::RateNotReached, Severity::Note, seen)];
    }
    if longest.is_some() && duration.high < planned * (1.0 - stray) - 1.0 / rate {
        let seen = format!(
            "{} requests a second were asked for, and {} went through",
            shown(rate),
            shown(reached)
        );
        return vec![Finding::new(Id::RateExceeded, Severity::Suspect, seen)];
    }
    Vec::new()
}
