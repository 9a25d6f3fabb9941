//! Rules on throughput: counts over the duration, the sum of parts, a peak, and the requested rate.

use super::figures::{Figures, percent, shown};
use super::id::Id;
use super::spread::{MUCH, NOTHING, Range};
use super::{Finding, concurrency};
use crate::claim::Tool;
use result::finding::Severity;

/// Share of the cap from which on it is full most of the time.
const FULL: f64 = 0.75;

/// No engine generates this many tokens per second for one request.
const FASTEST: f64 = 10_000.0;

/// The largest ratio of one second's throughput to the throughput of the requests in flight at
/// their mean speed. A second without prompts is a few times faster than a run full of them.
const TIMES: f64 = 10.0;

fn graded(apart: f64) -> Severity {
    if apart > MUCH { Severity::Invalid } else { Severity::Suspect }
}

pub(super) fn requests(figures: &Figures<'_>) -> Option<Finding> {
    let rate = figures.positive("throughput.requests-per-s")?;
    let (duration, answered) = (figures.duration()?, figures.answered()?);
    let apart = (rate * duration).apart(Range::exact(answered));
    if apart <= NOTHING {
        return None;
    }
    let over = answered / rate.mid();
    let seen = format!(
        "{} requests over {duration} s are {} per second, but {rate} is stated",
        shown(answered),
        shown(answered / duration.mid())
    );
    let (severity, formula) = if figures.longer_span() && over > duration.mid() {
        (Severity::Note, Some(format!("requests over the {} s of the whole phase", shown(over))))
    } else {
        (graded(apart), None)
    };
    Some(Finding::new(Id::RequestRateDisagrees, severity, seen).by(formula))
}

pub(super) fn tokens(figures: &Figures<'_>) -> Option<Finding> {
    let duration = figures.duration()?;
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
    // Where requests are counted over a span as well, the rule on requests covers it.
    let span = figures.answered().zip(figures.positive("throughput.requests-per-s"));
    let span = span
        .filter(|_| figures.longer_span())
        .map(|(answered, rate)| Range::exact(answered) / rate);
    let off = off.filter(|(_, rate, tokens, _)| {
        span.is_none_or(|span| (*rate * span).apart(Range::exact(*tokens)) > NOTHING)
    });
    let off: Vec<_> = off.collect();
    let (label, rate, tokens, _) = off.first().copied()?;
    let apart = off.iter().map(|(.., apart)| *apart).fold(0.0, f64::max);
    let more = rate.mid() * duration.mid() > tokens;
    let over = tokens / rate.mid();
    let others: Vec<&str> = off.iter().skip(1).map(|(label, ..)| *label).collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!("; so is the {}", others.join(" and the "))
    };
    let seen = format!(
        "{label} throughput {rate} tok/s is {} tokens over {} s, but the run took {duration} s, which gives {} ({}{}){others}",
        shown(tokens),
        shown(over),
        shown(tokens / duration.mid()),
        if more { "+" } else { "-" },
        percent((rate.mid() * duration.mid() / tokens - 1.0).abs())
    );
    // guidellm's rate is a mean over the events of its tokens, from the first to the last.
    let by_events = figures.by_events() && (more || apart <= MUCH);
    let (severity, formula) = if by_events {
        let severity = if apart > MUCH { Severity::Suspect } else { Severity::Note };
        let formula =
            format!("tokens over the {} s from the first timed token to the last", shown(over));
        (severity, Some(formula))
    } else {
        (graded(apart), None)
    };
    Some(Finding::new(Id::TokenRateDisagrees, severity, seen).by(formula))
}

pub(super) fn total(figures: &Figures<'_>) -> Option<Finding> {
    let total = figures.positive("throughput.total-tokens-per-s")?;
    let output = figures.positive("throughput.output-tokens-per-s")?;
    let sum = figures.get("throughput.input-tokens-per-s").map(|input| input + output);
    let tokens = figures.claim.value("tokens.input").zip(figures.claim.value("tokens.output"));
    let by_tokens = tokens
        .filter(|(_, output)| *output > 0.0)
        .map(|(input, own)| output * Range::exact((input + own) / own));
    let apart = [sum, by_tokens].into_iter().flatten().map(|expected| total.apart(expected));
    // guidellm takes the rates of prompts and answers over different times; the counts still agree.
    let apart = apart.reduce(f64::min).filter(|apart| *apart > NOTHING)?;
    let expected = sum.or(by_tokens)?;
    let seen = format!(
        "input and output throughput add up to {expected} tok/s, but {total} is stated as the total"
    );
    let severity =
        if figures.by_events() && apart <= MUCH { Severity::Note } else { graded(apart) };
    Some(Finding::new(Id::TotalDisagrees, severity, seen))
}

pub(super) fn peak(figures: &Figures<'_>) -> Option<Finding> {
    let peak = figures.positive("throughput.peak-output-tokens-per-s")?;
    let output = figures.claim.value("tokens.output").filter(|output| *output > 0.0);
    let long = figures.duration().is_some_and(|duration| duration.low >= 1.0);
    let in_flight = figures.positive("concurrency.peak").map(|peak| peak.high);
    let in_flight = in_flight
        .or(figures.claim.asked.max_concurrency.map(|cap| cap as f64))
        .or(figures.answered());
    let each = in_flight.map(|in_flight| peak.low / in_flight);
    let gap = format!(
        "the inverse of the {} ns between two tokens that came with one read of the socket",
        shown(1e9 / peak.mid())
    );
    let gap = (figures.claim.tool == Tool::Gpustack).then_some(gap);
    if let Some(output) = output.filter(|output| long && peak.low > *output) {
        let seen = format!(
            "the peak is {peak} tok/s, but the whole run generated only {} tokens",
            shown(output)
        );
        return Some(Finding::new(Id::PeakImpossible, Severity::Invalid, seen).by(gap));
    }
    if let Some(each) = each.filter(|each| *each > FASTEST) {
        let seen = format!(
            "the peak is {peak} tok/s, {} for each of {} requests in flight",
            shown(each),
            shown(in_flight.unwrap_or_default())
        );
        return Some(Finding::new(Id::PeakImpossible, Severity::Invalid, seen).by(gap));
    }
    // Some requests can be faster than the mean by any factor, so it is grave only of a tool whose
    // formula does it.
    let severity = if gap.is_some() { Severity::Suspect } else { Severity::Note };
    if let Some(seen) = implausible(figures, peak, each) {
        return Some(Finding::new(Id::PeakImplausible, severity, seen).by(gap));
    }
    below(figures, peak)
}

/// A peak far above the mean speed of the requests that can have made it.
fn implausible(figures: &Figures<'_>, peak: Range, each: Option<f64>) -> Option<String> {
    let speed = (figures.tokens_each()? - 1.0) / figures.decode()?.low * 1e3;
    let each = each.filter(|each| speed > 0.0 && *each > speed * TIMES)?;
    let [each, speed] = [each, speed].map(shown);
    Some(format!(
        "the peak is {peak} tok/s, {each} for each request in flight, but their mean was {speed} after the first token"
    ))
}

/// The busiest whole second has at least the mean, if there are a few of them.
fn below(figures: &Figures<'_>, peak: Range) -> Option<Finding> {
    let (duration, output) = (figures.duration()?, figures.claim.value("tokens.output")?);
    // The last second may be a part of one.
    let least = output / (duration.high.ceil() + 1.0);
    if peak.high >= least || duration.low < 2.0 {
        return None;
    }
    let mean = figures.get("throughput.output-tokens-per-s").map_or(least, Range::mid);
    let seen = format!("the peak is {peak} tok/s, but the mean is {}", shown(mean));
    let formula = format!(
        "events per second instead of tokens, with about {} tokens each",
        shown((mean / peak.mid() * 10.0).round() / 10.0)
    );
    Some(Finding::new(Id::PeakBelowMean, Severity::Suspect, seen).by(Some(formula)))
}

/// Deviations of the time for all arrivals that count as chance, and the least share for clocks.
const DEVIATIONS: f64 = 5.0;
const MOMENT: f64 = 0.01;

/// Share by which the time for n arrivals may stray from n / rate. It is a sum of n independent
/// times, each with the coefficient of variation c, so that its own is c / sqrt(n). Poisson has c =
/// 1, and gamma times of shape b, which `burstiness` states, c = 1 / sqrt(b).
fn stray(figures: &Figures<'_>, requests: f64) -> f64 {
    let shape = figures.claim.asked.burstiness;
    let variation = shape.filter(|shape| *shape > 0.0).map_or(1.0, |shape| 1.0 / shape.sqrt());
    (DEVIATIONS * variation / requests.sqrt()).max(MOMENT)
}

/// The requested rate against the reached rate. Requests arrive at random, and the last one still
/// has to be answered.
pub(super) fn requested_rate(figures: &Figures<'_>) -> Option<Finding> {
    let rate = figures.claim.asked.request_rate.filter(|rate| rate.is_finite() && *rate > 0.0);
    if let (Some(rate), Some(sent)) = (rate, figures.positive("throughput.sent-per-s")) {
        return sent_at(figures, rate, sent);
    }
    let (rate, duration) = (rate?, figures.duration()?);
    let requests =
        figures.claim.asked.requests.map(|requests| requests as f64).or(figures.answered());
    let requests = requests.filter(|requests| *requests >= 30.0)?;
    let planned = requests / rate;
    let stray = stray(figures, requests);
    let longest = ["e2e.max", "e2e.p99", "e2e.mean"].iter().find_map(|name| figures.positive(name));
    let longest_s = longest.map_or(0.0, |longest| longest.high * 1.2e-3);
    let reached = figures.answered().unwrap_or(requests) / duration.mid();
    let cap = figures.claim.asked.max_concurrency.map(|cap| cap as f64);
    let in_flight = concurrency::mean(figures).map(Range::mid);
    let full = cap
        .zip(in_flight)
        .is_some_and(|(cap, in_flight)| in_flight > cap * FULL && reached < rate * FULL);
    let requested = format!("the requested rate is {} requests per second", shown(rate));
    if full || duration.low > planned * (1.0 + stray) + longest_s {
        let held = match (cap, in_flight) {
            (Some(cap), Some(in_flight)) if full => format!(
                ": the cap held them back, {} of at most {} were in flight on average",
                shown(in_flight),
                shown(cap)
            ),
            _ => String::new(),
        };
        let seen = format!("{requested}, but {} went through{held}", shown(reached));
        return Some(Finding::new(Id::RateNotReached, Severity::Note, seen));
    }
    if longest.is_some() && duration.high < planned * (1.0 - stray) - 1.0 / rate {
        let seen = format!("{requested}, but {} went through", shown(reached));
        return Some(Finding::new(Id::RateExceeded, Severity::Suspect, seen));
    }
    None
}

/// The requested rate against the stated rate of sending.
fn sent_at(figures: &Figures<'_>, rate: f64, sent: Range) -> Option<Finding> {
    let requests = figures.claim.value("requests.total").or(figures.answered());
    let requests = requests.filter(|requests| *requests >= 30.0)?;
    let stray = stray(figures, requests);
    let (id, severity) = if sent.high < rate * (1.0 - stray) {
        (Id::RateNotReached, Severity::Note)
    } else if sent.low > rate * (1.0 + stray) {
        (Id::RateExceeded, Severity::Suspect)
    } else {
        return None;
    };
    let seen =
        format!("the requested rate is {} requests per second, but {sent} were sent", shown(rate));
    Some(Finding::new(id, severity, seen))
}
