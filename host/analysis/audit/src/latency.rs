//! Rules on latencies against each other: the end-to-end latency is the time to the first token
//! plus the time for all others.
//!
//! Let a tool's TPOT be (E2E - TTFT) / (n - 1). If all answers have the same length, its mean over
//! requests gives the mean E2E exactly. Otherwise E2E - TTFT = mean(TPOT * (n - 1)), which is
//! mean(TPOT) * mean(n - 1) plus the covariance of the two. That is unknown: short answers that
//! wait for others' prompts have large TPOTs. LMDeploy's ShareGPT results are within 7 % of their
//! decode time. Only a percentile gives certainty: no more than 1 % of the requests are above the
//! 99th, and none of them lasts longer than the run.

use super::figures::{Figures, percent, shown};
use super::id::Id;
use super::spread::{MUCH, NOTHING, Range};
use super::{Finding, spread};
use crate::claim::Tool;
use result::figure::Statistic;
use result::finding::Severity;

/// The largest ratio of the plain mean of TPOT to the mean over tokens. Beyond it, long answers
/// would have to be slower than short ones by more than a batch ever makes them; with fewer
/// requests than [`MANY`], one may be.
const TIMES: f64 = 4.0;
const MANY: f64 = 100.0;

/// The largest ratio of the means if all answers seem to have one length, and another figure
/// confirms the other mean. Different lengths may by chance have the totals of one length.
const TIMES_OF_ONE_LENGTH: f64 = 2.0;

/// Least share of a request's time that its tokens cover. An end marker follows the last token.
const COVERED: f64 = 0.9;

/// Below this share, more than a quarter of the time is nobody's.
const HALF_COVERED: f64 = 0.75;

/// Chunks of a reply that carry no token: role, finish reason and usage.
const BARE: f64 = 3.0;

pub(super) fn whole(figures: &Figures<'_>) -> Option<Finding> {
    let (e2e, ttft) = (figures.positive("e2e.mean")?, figures.get("ttft.mean")?);
    let tpot = figures.positive("tpot.mean")?;
    let tokens = figures.tokens_each().filter(|tokens| *tokens > 1.0)?;
    let [tokens, further] = [tokens, tokens - 1.0].map(Range::exact);
    let parts = Parts { e2e, ttft, tpot, tokens, further, decode: e2e - ttft };
    if figures.tpot_is_after_first() && figures.same_length() {
        fixed(figures, &parts)
    } else if figures.tpot_is_after_first() {
        varying(figures, &parts)
    } else if figures.first_and_last() {
        first_and_last(figures, &parts)
    } else {
        None
    }
}

/// The parts of latencies that the rules here compare, in milliseconds and tokens.
struct Parts {
    e2e: Range,
    ttft: Range,
    tpot: Range,
    tokens: Range,
    /// Tokens after the first.
    further: Range,
    /// Mean time after the first token.
    decode: Range,
}

fn fixed(figures: &Figures<'_>, parts: &Parts) -> Option<Finding> {
    let Parts { e2e, ttft, tpot, tokens, further, .. } = *parts;
    let sum = ttft + tpot * further;
    let apart = sum.apart(e2e);
    if apart <= NOTHING {
        return None;
    }
    let severity = if apart > MUCH { Severity::Invalid } else { Severity::Suspect };
    let seen = format!(
        "TTFT + TPOT * (n - 1) is {ttft} + {tpot} * {further} = {sum} ms, but E2E is {e2e} ms, although all answers have {tokens} tokens"
    );
    Some(Finding::new(Id::LatencyDisagrees, severity, seen).by(formula(figures, parts)))
}

fn varying(figures: &Figures<'_>, parts: &Parts) -> Option<Finding> {
    let Parts { e2e, ttft, tpot, further, decode, .. } = *parts;
    let each = decode / further;
    let times = each / tpot;
    let at_least = decode / steps(figures, parts) / tpot;
    let observation = |words: String| {
        format!(
            "(E2E - TTFT) / (n - 1) is ({e2e} - {ttft}) / {further} = {each} ms, but mean TPOT is {tpot} ms{words}"
        )
    };
    if let Some(most) = most(figures, parts)
        && most.below(decode)
    {
        let words =
            ": its P99 allows less, even if the slowest hundredth took the whole run".to_owned();
        let seen = observation(words);
        let finding = Finding::new(Id::LatencyDisagrees, Severity::Invalid, seen);
        return Some(finding.by(formula(figures, parts)));
    }
    if let Some((severity, words)) = spread::any_length(figures, decode, further.mid()) {
        let finding = Finding::new(Id::LatencyDisagrees, severity, observation(words));
        return Some(finding.by(formula(figures, parts)));
    }
    if figures.one_length().is_some()
        && let Some(finding) = inferred(figures, parts, each, &observation)
    {
        return Some(finding);
    }
    let many = figures.answered().is_some_and(|answered| answered >= MANY);
    let severity = match times {
        _ if at_least.low > TIMES && many => Severity::Suspect,
        // Short answers alone can make the plain mean large.
        times if times.high < 1.0 / TIMES && many && decode.low > 0.0 => Severity::Note,
        _ => return None,
    };
    let words = match severity {
        Severity::Note => ": short answers have by far the longest time per token".to_owned(),
        _ => format!(": long answers would have to take {times} times the mean time per token"),
    };
    let finding = Finding::new(Id::LatencyDisagrees, severity, observation(words));
    Some(finding.by(formula(figures, parts)))
}

/// Compares the mean TPOT with the totals. Where the totals fit one length, the mean TPOT is the
/// mean of all gaps. The audit doubts a mean TPOT that is far from it, or that a wrong formula
/// gives. Stated gaps must then agree with the other figures.
fn inferred(
    figures: &Figures<'_>,
    parts: &Parts,
    each: Range,
    observation: &dyn Fn(String) -> String,
) -> Option<Finding> {
    if figures.itl_is_gaps()
        && let Some(itl) = figures.positive("itl.mean")
        && !itl.wider(MUCH).meets(each)
    {
        return None;
    }
    let times = each / parts.tpot;
    let far = times.low > TIMES_OF_ONE_LENGTH || times.high < 1.0 / TIMES_OF_ONE_LENGTH;
    let formula = formula(figures, parts);
    let wrong = formula.is_some() && parts.tpot.apart(each) > MUCH;
    if parts.decode.low <= 0.0 || !(far || wrong) {
        return None;
    }
    let words = format!(", and the totals fit {} tokens for each request", parts.tokens);
    let finding = Finding::new(Id::LatencyDisagrees, Severity::Suspect, observation(words));
    Some(finding.by(formula))
}

/// The most steps of a request that share its time after the first token. An answer of one token
/// has no TPOT, but may take a step until it ends: then there are up to n steps, not n - 1.
fn steps(figures: &Figures<'_>, parts: &Parts) -> Range {
    match figures.shortest() {
        Some(least) if least >= 2.0 => parts.further,
        _ => parts.tokens,
    }
}

/// The longest mean time after the first token that the 99th percentile of TPOT allows: up to it
/// all requests at that, and the others for the whole run.
fn most(figures: &Figures<'_>, parts: &Parts) -> Option<Range> {
    let p99 = figures.positive("tpot.p99")?;
    let answered = figures.answered()?;
    let above = ((answered - 1.0) * 0.01).floor() + 2.0;
    let whole = figures.duration()? * Range::exact(1e3);
    Some(p99 * steps(figures, parts) + whole * Range::exact(above / answered))
}

/// Guidellm's figures are means over all tokens together, so that they give sums. TPOT * n is the
/// time to the last token it timed, and so is TTFT + ITL * (n - 1).
fn first_and_last(figures: &Figures<'_>, parts: &Parts) -> Option<Finding> {
    let Parts { e2e, ttft, tpot, tokens, further, decode } = *parts;
    let last = tpot * tokens;
    let itl = figures.get("itl.mean")?;
    let by_gaps = ttft + itl * further;
    // A request without tokens is in one mean and not in the other.
    if !last.wider(0.005).meets(by_gaps) {
        if by_gaps.high >= e2e.low * COVERED {
            return None;
        }
        let seen = format!(
            "TTFT + ITL * (n - 1) is {ttft} + {itl} * {further} = {by_gaps} ms, but E2E is {e2e} ms"
        );
        return Some(Finding::new(Id::GapsDisagree, uncovered(by_gaps, e2e), seen));
    }
    if last.high < e2e.low * COVERED {
        let share = percent(last.mid() / e2e.mid());
        let seen = format!(
            "TPOT * n is {tpot} * {tokens} = {last} ms: the last timed token came after {share} of the {e2e} ms that requests took"
        );
        let instead = format!("(E2E - TTFT) / (n - 1) is {} ms", decode / further);
        let formula = if itl.high < 0.01 && itl.mid() == 0.0 {
            format!(
                "TPOT = TTFT / n, {ttft} / {tokens} = {}: the tool counted one chunk of each reply, as first and as last; {instead}",
                ttft / tokens
            )
        } else {
            format!(
                "TPOT = (TTFT + ITL * (n - 1)) / n, ({ttft} + {itl} * {further}) / {tokens} = {}; {instead}",
                by_gaps / tokens
            )
        };
        let finding = Finding::new(Id::LastTokenEarly, uncovered(last, e2e), seen);
        return Some(finding.by(Some(formula)));
    }
    with_first(figures, parts)
}

/// The severity of a sum of times that covers too little of the requests.
fn uncovered(sum: Range, whole: Range) -> Severity {
    if sum.high < whole.low * HALF_COVERED { Severity::Invalid } else { Severity::Suspect }
}

/// GPUStack's block calls it "excl. 1st token", and passes on guidellm's, which is not.
fn with_first(figures: &Figures<'_>, parts: &Parts) -> Option<Finding> {
    let Parts { e2e, tpot, tokens, further, decode, .. } = *parts;
    let after = decode / further;
    if figures.claim.tool != Tool::Gpustack || after.wider(MUCH).meets(tpot) {
        return None;
    }
    let seen =
        format!("TPOT (excl. 1st token) is {tpot} ms, but (E2E - TTFT) / (n - 1) is {after} ms");
    let formula = format!("TPOT = E2E / n, {e2e} / {tokens} = {}", e2e / tokens);
    Some(Finding::new(Id::TpotWithFirst, Severity::Suspect, seen).by(Some(formula)))
}

/// The formula that reproduces a result's TPOT when the tool's own does not, by its means.
fn formula(figures: &Figures<'_>, parts: &Parts) -> Option<String> {
    let Parts { e2e, ttft, tokens, further, decode, .. } = *parts;
    let requested = figures.claim.asked.output_tokens.map(|tokens| tokens as f64);
    let again = figures.claim.value("tokens.output-retokenized").zip(figures.answered());
    let again = again.map(|(again, answered)| again / answered);
    let after_first = |each: Option<f64>| {
        each.filter(|each| *each > 1.0).map(|each| decode / Range::exact(each - 1.0))
    };
    let candidates = [
        ("TTFT / n: the tool counted one chunk of each reply", Some(ttft / tokens)),
        ("E2E / n: it includes the time to the first token", Some(e2e / tokens)),
        ("(E2E - TTFT) / n: it counts the first token but not its time", Some(decode / tokens)),
        ("E2E / (n - 1): it includes the time to the first token", Some(e2e / further)),
        ("(E2E - TTFT) / (requested length - 1), but fewer tokens came", after_first(requested)),
        ("(E2E - TTFT) / (tokens of the text - 1)", after_first(again)),
    ];
    candidates.into_iter().find_map(|(words, value)| {
        let value = value?;
        // A hit says something where rounding leaves few digits open.
        let narrow = value.high - value.low < 0.02 * value.mid();
        (narrow && value.wider(0.002).meets(parts.tpot)).then(|| format!("TPOT = {words}, {value}"))
    })
}

/// The gaps of a request span its first to last chunk. Except for chunks without tokens, there are
/// at most as many gaps as tokens after the first.
pub(super) fn gaps(figures: &Figures<'_>) -> Option<Finding> {
    let (decode, itl) = (figures.decode()?, figures.positive("itl.mean")?);
    let further = figures.tokens_each()? - 1.0;
    if !figures.itl_is_gaps() || further <= 0.0 {
        return None;
    }
    let covered = itl * Range::exact(further + BARE);
    let further = Range::exact(further);
    let gaps = itl * further;
    if covered.high < decode.low * COVERED {
        let seen = format!(
            "{further} gaps of {itl} ms add up to {gaps} ms, but E2E - TTFT is {decode} ms"
        );
        return Some(Finding::new(Id::GapsDisagree, uncovered(covered, decode), seen));
    }
    let to_a_gap = gaps.mid() / decode.mid();
    if to_a_gap < 1.5 {
        return None;
    }
    let (each, to_a_gap) = (decode / further, shown((to_a_gap * 10.0).round() / 10.0));
    let seen = format!(
        "mean ITL is {itl} ms, but (E2E - TTFT) / (n - 1) is {each} ms: a gap covers about {to_a_gap} tokens"
    );
    Some(Finding::new(Id::TokensPerGap, Severity::Note, seen))
}

/// A first token comes before the last, and so do all their statistics but the deviation.
pub(super) fn first_over_last(figures: &Figures<'_>) -> Option<Finding> {
    let over: Vec<String> = (figures.claim.statistics("ttft").into_iter())
        .filter(|(statistic, _)| *statistic != Statistic::Std)
        .filter_map(|(statistic, ttft)| {
            let e2e = figures.positive(&format!("e2e.{statistic}"))?;
            let ttft = Range::from(ttft);
            // A request that has one of the two and not the other may be between.
            (e2e.below(ttft) && ttft.apart(e2e) > MUCH)
                .then(|| format!("{statistic} TTFT is {ttft} ms and {statistic} E2E {e2e} ms"))
        })
        .collect();
    (!over.is_empty()).then(|| Finding::new(Id::TtftOverE2e, Severity::Invalid, over.join(", ")))
}

/// A request lies within the run, with its gaps; guidellm may leave the run's ends out.
pub(super) fn over_duration(figures: &Figures<'_>) -> Option<Finding> {
    let duration = figures.duration().filter(|_| figures.claim.tool != Tool::Guidellm)?;
    let whole = duration * Range::exact(1e3);
    let over: Vec<String> = [("e2e", "E2E"), ("ttft", "TTFT"), ("itl", "ITL")]
        .into_iter()
        .flat_map(|(theirs, label)| {
            let statistics = figures.claim.statistics(theirs).into_iter();
            statistics.map(move |(statistic, stated)| (label, statistic, Range::from(stated)))
        })
        .filter(|(_, statistic, _)| *statistic != Statistic::Std)
        .filter(|(_, _, latency)| whole.below(*latency) && latency.apart(whole) > 0.01)
        .map(|(label, statistic, latency)| format!("{statistic} {label} is {latency} ms"))
        .collect();
    if over.is_empty() {
        return None;
    }
    let seen = format!("{}, but the run took {whole} ms", over.join(", "));
    Some(Finding::new(Id::LatencyOverDuration, Severity::Invalid, seen))
}
