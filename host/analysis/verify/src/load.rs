//! The load that a client offered, as the server saw it, against the client's task: the times of
//! requests, the number in flight, their contents, and repeated requests.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::Count;
use crate::case::Case;
use crate::log::{Log, Request};
use crate::profile::Profile;
use crate::types::{Arrivals, Check, Property, Verdict};

/// The prompts that two random ones may share by chance, in tokens.
const BY_CHANCE: u64 = 3;

/// A property of the load against the task.
pub(crate) fn check(
    property: Property,
    case: &Case,
    profile: &Profile,
    logs: &[&Log],
    count: &Count<'_>,
) -> Option<Check> {
    let log = logs.first()?;
    let skipped = before(case, profile);
    let measured: Vec<&Request> = log.requests.iter().skip(skipped).collect();
    let asks = &case.asks;
    let found = match property {
        Property::Requests => requests(case, profile, log),
        Property::Arrivals => match asks.arrivals? {
            Arrivals::Constant => constant(asks.rate?, &measured),
            Arrivals::Poisson => poisson(asks.rate?, &measured),
        },
        Property::InFlight => in_flight(asks.concurrency?, &measured),
        Property::PromptTokens => lengths(asks.input_len, &measured, count),
        Property::Prompts => distinct(&measured),
        Property::Prefix => prefix(asks.prefix_len?, &measured, count),
        Property::Retries => retries(profile, &measured),
        Property::Seeds => seeds(&asks.seeds, logs, skipped),
    };
    Some(Check { figure: format!("load.{property}"), ..found })
}

/// The number of requests before the measured ones.
pub(crate) fn before(case: &Case, profile: &Profile) -> usize {
    let before = profile.load.probes + profile.load.warm_up + case.asks.warm_up;
    usize::try_from(before).unwrap_or(usize::MAX)
}

/// A check by two numbers. A load that does not fit its task has the verdict `otherwise`.
fn found(
    claimed: String,
    [expected, said]: [f64; 2],
    fits: Option<String>,
    otherwise: Verdict,
    words: String,
) -> Check {
    let verdict = if fits.is_none() { Verdict::Exact } else { otherwise };
    let (expected, said) = (Some(expected), Some(said));
    Check { claimed, expected, said, verdict, fits, words, ..Check::default() }
}

fn requests(case: &Case, profile: &Profile, log: &Log) -> Check {
    let before = before(case, profile) as u64;
    let expected = case.asks.requests + before;
    let all: Vec<&Request> = log.requests.iter().collect();
    // A client that repeats failed requests, by its own statement, sends more.
    let again = if profile.load.retries { sent_again(&all) } else { 0 };
    let value = all.len() as u64 - again;
    let added = match before {
        0 => String::new(),
        added => format!(" and {added} before them"),
    };
    let fits = match value.cmp(&expected) {
        Ordering::Equal => None,
        Ordering::Greater => Some(format!("{} more than requested", value - expected)),
        Ordering::Less => Some(format!("{} fewer than requested", expected - value)),
    };
    let claimed = format!("{} requests{added}", case.asks.requests);
    let words = format!("the server got {value} requests, expected {expected}");
    found(claimed, [expected as f64, value as f64], fits, Verdict::Wrong, words)
}

fn gaps(measured: &[&Request]) -> Vec<f64> {
    let pairs = measured.windows(2);
    pairs.map(|pair| pair[1].received - pair[0].received).collect()
}

/// Requests a second between the first and the last.
fn rate_of(gaps: &[f64]) -> f64 {
    gaps.len() as f64 / (gaps.iter().sum::<f64>() / 1e3)
}

/// The deviation of the gaps as a share of their mean: 0 if all are the same, 1 if exponential.
fn variation(gaps: &[f64]) -> Option<f64> {
    Some(statistics::variance(gaps)?.sqrt() / statistics::mean(gaps))
}

fn constant(rate: f64, measured: &[&Request]) -> Check {
    let gap = 1e3 / rate;
    let gaps = gaps(measured);
    // The first request may be a late one, so the schedule lies where most agree.
    let offsets = || {
        let numbered = measured.iter().enumerate();
        numbered.map(|(number, request)| request.received - gap * number as f64)
    };
    let origin = statistics::median(offsets().collect()).unwrap_or(0.0);
    let apart = || offsets().map(|offset| (offset - origin).abs());
    let worst = apart().fold(0.0, f64::max);
    let on_time = apart().filter(|apart| *apart <= gap / 2.0).count();
    // A busy machine makes single requests late; another schedule makes most of them.
    let holds = on_time * 10 >= measured.len() * 9;
    let longest = gaps.iter().copied().fold(0.0, f64::max);
    let fits = (!holds).then(|| match variation(&gaps) {
        _ if longest > 10.0 * gap => {
            format!("a loop that waits for the server: {longest:.0} ms without a request")
        }
        Some(variation) if variation > 0.5 => "random gaps".to_owned(),
        _ if (rate_of(&gaps) / rate).ln().abs() < 0.02 => "gaps that are not equal".to_owned(),
        _ => format!("another rate: {:.2} a second", rate_of(&gaps)),
    });
    let words = format!(
        "{on_time} of {} requests came within half a gap of their due times, the others at most \
         {worst:.1} ms off",
        measured.len()
    );
    let claimed = format!("a request every {gap:.1} ms");
    found(claimed, [rate, rate_of(&gaps)], fits, Verdict::AnotherDefinition, words)
}

fn poisson(rate: f64, measured: &[&Request]) -> Check {
    let gaps = gaps(measured);
    let count = (gaps.len() as f64).max(1.0);
    let value = rate_of(&gaps);
    let variation = variation(&gaps).unwrap_or(0.0);
    let apart = apart_from_exponential(&gaps);
    // Kolmogorov's bound at 1 %, and four standard errors of a mean of exponential gaps.
    let bound = 1.63 / count.sqrt();
    let near = (value / rate).ln().abs() < 4.0 / count.sqrt();
    let fits = match (apart <= bound, near) {
        (true, true) => None,
        (true, false) => Some(format!("another rate: {value:.2} a second")),
        (false, _) if variation < 0.3 => Some("equal gaps".to_owned()),
        (false, _) => Some("another distribution of gaps".to_owned()),
    };
    let words = format!(
        "{value:.2} requests a second came, their gaps vary by {variation:.2} of their mean \
         (exponential: 1), and lie {apart:.2} from an exponential distribution (bound {bound:.2})"
    );
    let claimed = format!("exponential gaps, {rate} a second");
    found(claimed, [rate, value], fits, Verdict::AnotherDefinition, words)
}

/// The distance of gaps from the exponential distribution with their mean, after Kolmogorov.
fn apart_from_exponential(gaps: &[f64]) -> f64 {
    let mean = statistics::mean(gaps);
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let apart = sorted.iter().enumerate().map(|(rank, gap)| {
        let share = 1.0 - (-gap / mean).exp();
        let (below, above) = (rank as f64 / count, (rank + 1) as f64 / count);
        (share - below).abs().max((above - share).abs())
    });
    apart.fold(0.0, f64::max)
}

fn in_flight(requested: u64, measured: &[&Request]) -> Check {
    let log = Log { requests: measured.iter().map(|request| (*request).clone()).collect() };
    let peak = log.peak() as u64;
    let claimed = format!("{requested} in flight");
    let fits = (peak != requested).then(|| format!("{peak} in flight"));
    let words = format!("at most {peak} requests were in flight, requested {requested}");
    found(claimed, [requested as f64, peak as f64], fits, Verdict::Wrong, words)
}

fn lengths(requested: u64, measured: &[&Request], count: &Count<'_>) -> Check {
    let lengths: Vec<u64> = (measured.iter())
        .filter_map(|request| match request.prompt_ids() {
            Some(ids) => Some(ids as u64),
            None => count(&request.prompt()),
        })
        .collect();
    let least = lengths.iter().copied().min().unwrap_or(0);
    let most = lengths.iter().copied().max().unwrap_or(0);
    let mean = lengths.iter().sum::<u64>() as f64 / (lengths.len() as f64).max(1.0);
    let claimed = format!("{requested} tokens a prompt");
    let is_other = (least, most) != (requested, requested);
    let fits = is_other.then(|| format!("{least} to {most} tokens"));
    let words =
        format!("prompts have {least} to {most} tokens by the tokenizer, without a template");
    found(claimed, [requested as f64, mean], fits, Verdict::Wrong, words)
}

fn distinct(measured: &[&Request]) -> Check {
    let prompts: Vec<String> = measured.iter().map(|request| request.prompt()).collect();
    let halves: BTreeSet<&str> = (prompts.iter())
        .map(|prompt| &prompt[..prompt.floor_char_boundary(prompt.len() / 2)])
        .collect();
    let (all, value) = (prompts.len(), halves.len());
    let fits = (value != all).then(|| "prompts with the same first half".to_owned());
    let words = format!("{all} prompts have {value} different first halves");
    let claimed = "different prompts".to_owned();
    found(claimed, [all as f64, value as f64], fits, Verdict::Wrong, words)
}

fn prefix(requested: u64, measured: &[&Request], count: &Count<'_>) -> Check {
    let prompts: Vec<String> = measured.iter().map(|request| request.prompt()).collect();
    let mut shared = prompts.first().map(String::as_str).unwrap_or_default();
    for prompt in &prompts {
        let same = shared.char_indices().zip(prompt.chars());
        let length = same
            .take_while(|((_, a), b)| a == b)
            .map(|((at, char), _)| at + char.len_utf8())
            .last()
            .unwrap_or(0);
        shared = &shared[..length];
    }
    let value = count(shared).unwrap_or(0);
    let claimed = format!("{requested} tokens shared");
    let holds = (requested..=requested + BY_CHANCE).contains(&value);
    let fits = (!holds).then(|| format!("{value} tokens shared"));
    let words = format!("all prompts begin with the same {value} tokens, requested {requested}");
    found(claimed, [requested as f64, value as f64], fits, Verdict::Wrong, words)
}

/// Counts the requests that repeat a failed one.
fn sent_again(requests: &[&Request]) -> u64 {
    let mut failed: BTreeSet<String> = BTreeSet::new();
    let mut again = 0;
    for request in requests {
        let body = request.body.to_string();
        if failed.contains(&body) {
            again += 1;
        }
        if request.status != Some(200) {
            failed.insert(body);
        }
    }
    again
}

fn retries(profile: &Profile, measured: &[&Request]) -> Check {
    let again = sent_again(measured);
    let repeats = "failed requests are sent again";
    let claimed = if profile.load.retries { repeats } else { "no request is sent again" };
    let fits = (again > 0 && !profile.load.retries).then(|| repeats.to_owned());
    let words = format!("{again} of {} requests repeat a failed one", measured.len());
    found(claimed.to_owned(), [0.0, again as f64], fits, Verdict::AnotherDefinition, words)
}

fn seeds(seeds: &[u64], logs: &[&Log], skipped: usize) -> Check {
    let prompts: Vec<BTreeSet<String>> = (logs.iter())
        .map(|log| log.requests.iter().skip(skipped).map(Request::prompt).collect())
        .collect();
    let mut wrong = Vec::new();
    for (index, (seed, own)) in seeds.iter().zip(&prompts).enumerate() {
        for (other_seed, other) in seeds.iter().zip(&prompts).skip(index + 1) {
            if seed == other_seed && own != other {
                wrong.push(format!("seed {seed} gave other prompts twice"));
            } else if seed != other_seed && own == other {
                wrong.push(format!("seeds {seed} and {other_seed} gave the same prompts"));
            }
        }
    }
    let runs = prompts.len();
    let fits = (!wrong.is_empty()).then(|| wrong.join("; "));
    let follow = || format!("the prompts of {runs} runs follow their seeds");
    let words = fits.clone().unwrap_or_else(follow);
    let claimed = "prompts that depend on the seed alone".to_owned();
    let check = found(claimed, [0.0, wrong.len() as f64], fits, Verdict::Wrong, words);
    if runs == seeds.len() { check } else { Check { verdict: Verdict::Wrong, ..check } }
}
