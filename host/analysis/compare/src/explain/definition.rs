//! The part of a difference that comes of two definitions under one name.
//!
//! If one side has records of ours, the other's definition is computed from them. Else only the
//! identity E2E = TTFT + TPOT * (n - 1) is known. It gives the mean time per token by the other
//! definition if all answers have one length. If the shortest and the longest are stated, it gives
//! bounds.

use super::account::{Account, Of, Recipe, Requests};
use super::{How, Kind, Part, Range};
use result::figure::Statistic;

/// The parts that come of the definitions of a latency.
pub(super) fn of_latency([a, b]: [&Account; 2], theirs: &str, statistic: Statistic) -> Vec<Part> {
    let mut parts = Vec::new();
    parts.extend(by_name([a, b], theirs, statistic));
    if theirs == "tpot" {
        parts.extend(counted_again(a, b, statistic, -1.0));
        parts.extend(counted_again(b, a, statistic, 1.0));
    }
    parts
}

/// The part that comes of different formulas.
fn by_name([a, b]: [&Account; 2], theirs: &str, statistic: Statistic) -> Option<Part> {
    if a.defines_alike(b, theirs) {
        return None;
    }
    let unknown = || {
        let words = "the results lack the data to separate the two definitions";
        Some(Part::unknown(Kind::Definition, words))
    };
    let [Some(recipe_a), Some(recipe_b)] = [a, b].map(|side| side.recipe(theirs)) else {
        return unknown();
    };
    for (side, name, other, own, foreign, sign) in
        [(a, "A", "B", recipe_a, recipe_b, 1.0), (b, "B", "A", recipe_b, recipe_a, -1.0)]
    {
        if !matches!(side.requests, Requests::Ours(_)) {
            continue;
        }
        let own_value = side
            .computed(own, statistic, Of::Measured)
            .or_else(|| side.value(&format!("{theirs}.{statistic}")));
        let foreign_value = side.computed(foreign, statistic, Of::Measured);
        if let Some((own, foreign)) = own_value.zip(foreign_value) {
            let words = format!("{name}'s records by {other}'s definition");
            let value = Range::exact(sign * (foreign - own));
            return Some(Part::known(Kind::Definition, How::Recomputed, value, words));
        }
    }
    if theirs == "tpot"
        && statistic == Statistic::Mean
        && let Some(part) = of_stated([a, b], [recipe_a, recipe_b])
    {
        return Some(part);
    }
    unknown()
}

/// True if a time per token begins with the first token.
fn is_after_first(recipe: Recipe) -> Option<bool> {
    match recipe {
        Recipe::Of("tpot" | "tpot-last-token" | "tpot-usage") | Recipe::After { .. } => Some(true),
        Recipe::Of("tpot-with-first") | Recipe::Pooled { further: false } => Some(false),
        _ => None,
    }
}

/// A's mean time per token by B's definition, as far as the two differ in the first token.
fn of_stated([a, b]: [&Account; 2], [recipe_a, recipe_b]: [Recipe; 2]) -> Option<Part> {
    let (from, to) = (is_after_first(recipe_a)?, is_after_first(recipe_b)?);
    if from == to {
        return None;
    }
    for (side, name, other, own, foreign, sign) in
        [(a, "A", "B", recipe_a, recipe_b, 1.0), (b, "B", "A", recipe_b, recipe_a, -1.0)]
    {
        let of = |recipe| side.per_token_of_listed(recipe);
        if let (Some(own), Some(foreign)) = (of(own), of(foreign)) {
            let words = format!(
                "the requests that {name} lists by {other}'s definition, each with the end that {name} gives it"
            );
            let value = Range::exact(sign * (foreign - own));
            return Some(Part::known(Kind::Definition, How::Recomputed, value, words));
        }
    }
    // The side whose lengths are known better is brought to the other's definition.
    let known = |side: &Account| side.came.lengths.map(|(least, most)| most - least);
    let a_first = match (known(a), known(b)) {
        (Some(a), Some(b)) => a <= b,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => return None,
    };
    let (side, name, other, after, sign) =
        if a_first { (a, "A", "B", to, 1.0) } else { (b, "B", "A", from, -1.0) };
    let (least, most) = side.came.lengths?;
    if least < 2 {
        return None;
    }
    let (least, most) = (least as f64, most as f64);
    let own = side.value("tpot.mean")?;
    let e2e = side.value("e2e.mean")?;
    let (time, less) = if after { (e2e - side.value("ttft.mean")?, 1.0) } else { (e2e, 0.0) };
    let by = Range::between(time / (most - less) - own, time / (least - less) - own)?;
    let value = Range::between(sign * by.low, sign * by.high)?;
    let (how, lengths) = if least == most {
        (How::Recomputed, format!("{least:.0} tokens in each answer"))
    } else {
        (How::Bounded, format!("{least:.0} to {most:.0} tokens in each answer"))
    };
    let words = format!(
        "{name}'s mean TTFT and E2E by {other}'s definition, with {lengths}; E2E is {name}'s own, so a different end is left out"
    );
    Some(Part::known(Kind::Definition, how, value, words))
}

/// The part that comes of counting the tokens of the text again, where all answers have one length
/// by the server's count. Each request's time per token is off by a factor between the factors of
/// the shortest and the longest text. So is every percentile, and the mean. `sign` is the sign of
/// `side` in the difference.
fn counted_again(side: &Account, other: &Account, statistic: Statistic, sign: f64) -> Option<Part> {
    let served = side.came.served?;
    let counted = side.came.output?;
    if served == counted {
        return None;
    }
    let words = format!(
        "{} divides by the {counted:.0} tokens of the text, and the server counted {served:.0}",
        side.tool_label
    );
    let answered = side.came.answered.filter(|answered| *answered > 0.0)?;
    let each = served / answered;
    let requested = [side.settings.output_tokens, other.settings.output_tokens];
    let one_length = requested.contains(&Some(each as u64)) && each.fract() == 0.0 && each > 1.0;
    let (least, most) = side.came.lengths.unwrap_or((0, 0));
    let own = side.value(&format!("tpot.{statistic}"))?;
    if !one_length || least < 2 {
        return Some(Part::unknown(Kind::Definition, words));
    }
    let by = |text: u64| own - own * (text as f64 - 1.0) / (each - 1.0);
    let value = Range::between(sign * by(least), sign * by(most))?;
    let words = format!("{words}, {each:.0} in each answer; texts have {least} to {most}");
    let how = if least == most { How::Recomputed } else { How::Bounded };
    Some(Part::known(Kind::Definition, how, value, words))
}
