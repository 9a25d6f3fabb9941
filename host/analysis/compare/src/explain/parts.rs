//! The parts of a difference: definition, workload, schedule, failures, and a client's own time, in
//! this order.

use super::account::{Account, Of, Requests};
use super::{How, Kind, Part, Range, definition};
use audit::claim::Tool;
use audit::figures::{percent, shown};
use result::figure::Statistic;

/// Lengths that differ by more than this share are different workloads.
const LENGTHS: f64 = 0.01;

/// The fewest samples for a meaningful 99th percentile.
const FEW: f64 = 100.0;

/// Share of a figure below which two ways to count it are the same.
const SAME: f64 = 1e-3;

pub(super) fn of_latency(sides: [&Account; 2], theirs: &str, statistic: Statistic) -> Vec<Part> {
    let mut parts = definition::of_latency(sides, theirs, statistic);
    parts.extend(lengths(sides, theirs, statistic));
    parts.extend(prompts(sides, theirs));
    parts.extend(samples(sides, statistic));
    parts.extend(warmup(sides, theirs, statistic));
    parts.extend(load(sides));
    parts.extend(failures(sides));
    parts.extend(client(sides, theirs, statistic));
    parts
}

fn apart(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() > share * a.abs().max(b.abs())
}

/// The time of the answers' additional tokens. E2E = TTFT + t * (n - 1) with t as the time per
/// token. So the difference of E2E has t * (n_B - n_A) in it, with A's t or with B's.
fn lengths([a, b]: [&Account; 2], theirs: &str, statistic: Statistic) -> Option<Part> {
    let (each_a, each_b) = (a.output_each()?, b.output_each()?);
    if !apart(each_a, each_b, LENGTHS) {
        return None;
    }
    let lengths = format!("answers have {} tokens in A and {} in B", shown(each_a), shown(each_b));
    if theirs == "e2e"
        && statistic == Statistic::Mean
        && let (Some(own), Some(other)) = (a.per_token_ms(), b.per_token_ms())
    {
        let more = each_b - each_a;
        let value = Range::between(own * more, other * more)?;
        let words = format!("{lengths}, at A's {} ms or B's {} ms each", shown(own), shown(other));
        return Some(Part::known(Kind::Workload, How::Bounded, value, words));
    }
    let why = match theirs {
        "ttft" => "they decide how full the engine is",
        _ => "neither result has the other's lengths",
    };
    Some(Part::unknown(Kind::Workload, format!("{lengths}; {why}")))
}

/// The prompts, whose lengths decide the first token.
fn prompts([a, b]: [&Account; 2], theirs: &str) -> Option<Part> {
    if !matches!(theirs, "ttft" | "e2e") {
        return None;
    }
    let (each_a, each_b) = (a.input_each()?, b.input_each()?);
    apart(each_a, each_b, LENGTHS).then(|| {
        let [each_a, each_b] = [each_a, each_b].map(shown);
        let words = format!(
            "prompts have {each_a} tokens in A and {each_b} in B; neither result has the other's lengths"
        );
        Part::unknown(Kind::Workload, words)
    })
}

/// A percentile of few samples.
fn samples([a, b]: [&Account; 2], statistic: Statistic) -> Option<Part> {
    if !matches!(statistic, Statistic::Percentile(percent) if percent > 90.0) {
        return None;
    }
    let (of_a, of_b) = (a.came.answered?, b.came.answered?);
    let fewest = of_a.min(of_b);
    (fewest < FEW).then(|| {
        let [of_a, of_b] = [of_a, of_b].map(shown);
        let words = format!(
            "a percentile of {of_a} requests in A and {of_b} in B rests on a few slow ones"
        );
        Part::unknown(Kind::Workload, words)
    })
}

/// The first requests, which one side left out as its warm-up and the other measured.
fn warmup([a, b]: [&Account; 2], theirs: &str, statistic: Statistic) -> Option<Part> {
    match (a.settings.warmup, b.settings.warmup) {
        (Some(of_a), Some(of_b)) if of_a != of_b => {
            let (side, name, first, sign) =
                if of_a < of_b { (a, "A", of_b - of_a, 1.0) } else { (b, "B", of_a - of_b, -1.0) };
            let words = format!(
                "{name}'s first {}: it left out {} to warm up, and {} {}",
                requests(first),
                side.settings.warmup.unwrap_or_default(),
                if name == "A" { "B" } else { "A" },
                of_a.max(of_b)
            );
            match without(side, theirs, statistic, first) {
                Some(by) => {
                    let value = Range::exact(sign * by);
                    Some(Part::known(Kind::Schedule, How::Recomputed, value, words))
                }
                None => Some(Part::unknown(Kind::Schedule, words)),
            }
        }
        (Some(first @ 1..), None) => may_be_cold(b, "B", "A", first, theirs, statistic, -1.0),
        (None, Some(first @ 1..)) => may_be_cold(a, "A", "B", first, theirs, statistic, 1.0),
        _ => None,
    }
}

/// A number of requests, as text.
fn requests(count: u64) -> String {
    if count == 1 { "request".to_owned() } else { format!("{count} requests") }
}

/// The change of a figure if this number of first-sent requests is left out.
fn without(side: &Account, theirs: &str, statistic: Statistic, first: u64) -> Option<f64> {
    match side.requests {
        Requests::Ours(_) => {
            let recipe = side.recipe(theirs)?;
            let of = |of| side.computed(recipe, statistic, of);
            Some(of(Of::Without(first))? - of(Of::Measured)?)
        }
        Requests::Theirs(_) => {
            let of = |skip| side.listed(theirs, statistic, skip);
            Some(of(first)? - of(0)?)
        }
    }
}

/// The part of a claim's possible warm-up: between nothing and the share of its first requests.
fn may_be_cold(
    side: &Account,
    name: &str,
    other: &str,
    first: u64,
    theirs: &str,
    statistic: Statistic,
    sign: f64,
) -> Option<Part> {
    let words = format!(
        "{other} left out its first {} to warm up, and {name} does not state its warm-up",
        requests(first)
    );
    let Some(by) = without(side, theirs, statistic, first) else {
        return Some(Part::unknown(Kind::Schedule, words));
    };
    let value = Range::between(0.0, sign * by)?;
    let words = format!("{words}: nothing, or the effect of {name}'s first {}", requests(first));
    Some(Part::known(Kind::Schedule, How::Bounded, value, words))
}

/// The load, on which every latency depends.
fn load([a, b]: [&Account; 2]) -> Vec<Part> {
    let mut parts = Vec::new();
    let rate = |rate: f64| {
        if rate.is_finite() {
            format!("{} requests a second", shown(rate))
        } else {
            "all at once".to_owned()
        }
    };
    if let (Some(of_a), Some(of_b)) = (a.settings.rate, b.settings.rate)
        && of_a != of_b
    {
        let [of_a, of_b] = [of_a, of_b].map(rate);
        let words = format!("A sent {of_a}, B {of_b}; neither result shows the effect on latency");
        parts.push(Part::unknown(Kind::Schedule, words));
    }
    if let (Some(of_a), Some(of_b)) = (a.settings.cap, b.settings.cap)
        && of_a != of_b
    {
        let words = format!(
            "at most {of_a} requests were in flight in A and {of_b} in B; neither result shows the effect on latency"
        );
        parts.push(Part::unknown(Kind::Schedule, words));
    }
    parts
}

fn failed(side: &Account) -> Option<f64> {
    let (failed, answered) = (side.came.failed?, side.came.answered?);
    (failed + answered > 0.0).then(|| failed / (failed + answered))
}

fn failures([a, b]: [&Account; 2]) -> Option<Part> {
    let (of_a, of_b) = (failed(a)?, failed(b)?);
    (of_a != of_b).then(|| {
        let [of_a, of_b] = [of_a, of_b].map(percent);
        let words =
            format!("{of_a} of the requests failed in A and {of_b} in B; latencies leave them out");
        Part::unknown(Kind::Failures, words)
    })
}

/// The time of the clients themselves, as far as results tell of it.
fn client([a, b]: [&Account; 2], theirs: &str, statistic: Statistic) -> Vec<Part> {
    let mut parts = Vec::new();
    for (side, sign) in [(a, -1.0), (b, 1.0)] {
        if theirs == "e2e"
            && statistic == Statistic::Mean
            && let Some(part) = tail(side, sign)
        {
            parts.push(part);
        }
    }
    let kernel = [a, b].map(|side| side.settings.kernel_times == Some(true));
    if kernel[0] != kernel[1] && theirs != "itl" {
        let (ours, other) = if kernel[0] { (a, b) } else { (b, a) };
        let (ours, other) = (&ours.tool_label, &other.tool_label);
        let words = format!(
            "{ours} takes the times of a reply from the kernel, and {other} in its own code; the delay is not in its result"
        );
        parts.push(Part::unknown(Kind::Client, words));
    }
    parts
}

/// The time from the last token until inference-perf has counted the tokens of the reply, which is
/// in its latency. It is an upper end of the counting time, from the requests that it lists.
fn tail(side: &Account, sign: f64) -> Option<Part> {
    if side.tool != Tool::InferencePerf {
        return None;
    }
    let Requests::Theirs(samples) = &side.requests else { return None };
    let tails: Option<Vec<f64>> = samples
        .iter()
        .filter(|sample| sample.error.is_none())
        .map(|sample| Some(sample.e2e_ms? - sample.ttft_ms? - sample.gaps_ms.iter().sum::<f64>()))
        .collect();
    let words = "inference-perf counts the tokens of a reply before it takes the time of its end";
    let mean = tails.and_then(|tails| statistics::mean_if_any(&tails));
    Some(match mean.and_then(|mean| Range::between(0.0, sign * mean.max(0.0))) {
        Some(value) => {
            let words = format!("{words}: at most the time after its last chunk");
            Part::known(Kind::Client, How::Bounded, value, words)
        }
        None => Part::unknown(Kind::Client, words),
    })
}

/// The parts of the difference of a throughput.
pub(super) fn of_whole(sides: [&Account; 2], figure: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for (side, name, sign) in [(sides[0], "A", -1.0), (sides[1], "B", 1.0)] {
        parts.extend(counting(side, name, figure, sign));
    }
    let [a, b] = sides;
    let requests = [a, b].map(|side| rate(side, Some(1.0)));
    let per_request = sides.map(|side| per_request(side, figure));
    if let ([Some(rate_a), Some(rate_b)], [Some(each_a), Some(each_b)]) = (requests, per_request) {
        let more = each_b - each_a;
        if let Some(part) = held([a, b], [each_a, each_b]) {
            parts.push(part);
        } else if apart(each_a, each_b, LENGTHS)
            && let Some(value) = Range::between(rate_a * more, rate_b * more)
        {
            let [in_a, in_b, at_a, at_b] = [each_a, each_b, rate_a, rate_b].map(shown);
            let words = format!(
                "{in_a} tokens for each request in A and {in_b} in B, at A's {at_a} or B's {at_b} requests a second"
            );
            parts.push(Part::known(Kind::Workload, How::Bounded, value, words));
        }
        // The remainder is of the requests alone, at the tokens of A or B.
        let each = Range::between(each_a, each_b).unwrap_or(Range::exact(1.0));
        parts.extend(schedule([a, b], each));
        parts.extend(lost([a, b], each));
    }
    parts
}

/// The part of the lengths of answers where both sides keep the same number of requests in flight:
/// longer answers take longer, and so fewer are answered in a second. By Little's law L requests in
/// flight that take R give L / R. R changes by the time of the further tokens, at A's time per
/// token or at B's. The part is taken from A's rate or up to B's.
fn held([a, b]: [&Account; 2], [each_a, each_b]: [f64; 2]) -> Option<Part> {
    let cap = a.settings.cap.filter(|cap| Some(*cap) == b.settings.cap)?;
    let is_open = |side: &Account| side.settings.rate.is_some_and(f64::is_finite);
    if is_open(a) || is_open(b) {
        return None;
    }
    let (tokens_a, tokens_b) = (a.output_each()?, b.output_each()?);
    if !apart(tokens_a, tokens_b, LENGTHS) {
        return None;
    }
    let (rate_a, rate_b) = (rate(a, Some(1.0))?, rate(b, Some(1.0))?);
    let (in_a, in_b) = (a.in_flight()?, b.in_flight()?);
    let [e2e_a, e2e_b] = [a, b].map(|side| side.value("e2e.mean").map(|ms| ms / 1e3));
    let (e2e_a, e2e_b) = (e2e_a?, e2e_b?);
    let mut ends = Vec::new();
    for each in [a.per_token_ms()?, b.per_token_ms()?] {
        let more = each * (tokens_b - tokens_a) / 1e3;
        if e2e_a + more <= 0.0 || e2e_b - more <= 0.0 {
            return None;
        }
        ends.push(in_a / (e2e_a + more) * each_b - rate_a * each_a);
        ends.push(rate_b * each_b - in_b / (e2e_b - more) * each_a);
    }
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let [tokens_a, tokens_b] = [tokens_a, tokens_b].map(shown);
    let words = format!(
        "answers have {tokens_a} tokens in A and {tokens_b} in B, with at most {cap} requests in flight: longer answers take longer, so fewer requests are answered"
    );
    Some(Part::known(Kind::Workload, How::Bounded, Range::between(low, high)?, words))
}

/// The count of a rate for each request: the request itself, or its tokens.
fn per_request(side: &Account, figure: &str) -> Option<f64> {
    match figure {
        "throughput.requests-per-s" => Some(1.0),
        "throughput.output-tokens-per-s" => side.output_each(),
        _ => Some(side.output_each()? + side.input_each()?),
    }
}

/// Counts over the duration.
fn rate(side: &Account, each: Option<f64>) -> Option<f64> {
    let duration = side.came.duration_s.filter(|duration| *duration > 0.0)?;
    Some(side.came.answered? * each? / duration)
}

/// The part of a side's rate over another time than its duration, or of other tokens.
fn counting(side: &Account, name: &str, figure: &str, sign: f64) -> Option<Part> {
    let stated = side.figure(figure)?;
    let counted = rate(side, per_request(side, figure))?;
    let by = stated.value - counted;
    if !apart(stated.value, counted, SAME) || by.abs() <= stated.rounding {
        return None;
    }
    let words = match side.came.served {
        Some(served) if figure != "throughput.requests-per-s" => format!(
            "{name} counts {} tokens of the text, and the server {}",
            shown(side.came.output.unwrap_or_default()),
            shown(served)
        ),
        _ => format!(
            "{name}'s counts over its duration are {}, and it states {}",
            shown(counted),
            shown(stated.value)
        ),
    };
    let value = Range::exact(sign * by);
    Some(Part::known(Kind::Definition, How::Recomputed, value, words))
}

/// The part of the schedule: the requested rates where both were reached, else the effect of the
/// requests in flight by Little's law.
fn schedule([a, b]: [&Account; 2], each: Range) -> Option<Part> {
    let requested = [a, b].map(|side| side.settings.rate.filter(|rate| rate.is_finite()));
    let came = [a, b].map(|side| rate(side, Some(1.0)));
    if let ([Some(requested_a), Some(requested_b)], [Some(came_a), Some(came_b)]) =
        (requested, came)
        && requested_a != requested_b
    {
        let near = |requested: f64, came: f64| !apart(requested, came, 0.1);
        let words = format!(
            "the requested rate is {} a second in A and {} in B",
            shown(requested_a),
            shown(requested_b)
        );
        if !(near(requested_a, came_a) && near(requested_b, came_b)) {
            let words = format!("{words}; {} and {} were answered", shown(came_a), shown(came_b));
            return Some(Part::unknown(Kind::Schedule, words));
        }
        let more = requested_b - requested_a;
        let value = Range::between(more * each.low, more * each.high)?;
        return Some(Part::known(Kind::Schedule, How::Settings, value, words));
    }
    let (cap_a, cap_b) = (a.settings.cap?, b.settings.cap?);
    if cap_a == cap_b || requested != [None, None] {
        return None;
    }
    let words = format!("at most {cap_a} requests were in flight in A and {cap_b} in B");
    let parts = (|| {
        let (in_a, in_b) = (a.in_flight()?, b.in_flight()?);
        let [e2e_a, e2e_b] = [a, b].map(|side| side.value("e2e.mean").map(|ms| ms / 1e3));
        let (e2e_a, e2e_b) = (e2e_a?, e2e_b?);
        let more = in_b - in_a;
        let ends = [e2e_a, e2e_b].map(|e2e| more / e2e);
        let all =
            [ends[0] * each.low, ends[0] * each.high, ends[1] * each.low, ends[1] * each.high];
        let low = all.into_iter().fold(f64::INFINITY, f64::min);
        let high = all.into_iter().fold(f64::NEG_INFINITY, f64::max);
        Some((in_a, in_b, Range::between(low, high)?))
    })();
    Some(match parts {
        Some((in_a, in_b, value)) => {
            let [in_a, in_b] = [in_a, in_b].map(shown);
            let words =
                format!("{words}, {in_a} and {in_b} on average: with A's E2E latency, or with B's");
            Part::known(Kind::Schedule, How::Bounded, value, words)
        }
        None => Part::unknown(Kind::Schedule, words),
    })
}

/// The part of the failures: from nothing to all of them answered in the same time.
fn lost([a, b]: [&Account; 2], each: Range) -> Option<Part> {
    let (of_a, of_b) = (failed(a)?, failed(b)?);
    if of_a == of_b {
        return None;
    }
    let lost = |side: &Account| {
        let duration = side.came.duration_s.filter(|duration| *duration > 0.0)?;
        Some(side.came.failed? / duration * each.high)
    };
    let (lost_a, lost_b) = (lost(a)?, lost(b)?);
    let [of_a, of_b] = [of_a, of_b].map(percent);
    let words = format!(
        "{of_a} of the requests failed in A and {of_b} in B: from nothing to all answered in the same time"
    );
    let value = Range { low: -lost_b, high: lost_a };
    Some(Part::known(Kind::Failures, How::Bounded, value, words))
}
