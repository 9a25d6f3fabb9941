//! The verdicts on a run. Each of the client's figures is compared with its value by the definition
//! that the client claims, then with its value by every other definition.

use crate::card::Outcome;
use crate::case::Case;
use crate::log::Log;
use crate::meaning::{Figure, Meaning, Quantity, World};
use crate::profile::Profile;
use crate::sources::Sources;
use crate::types::{ByDefinition, Check, Property, Verdict};
use crate::{Count, load};
use audit::claim::Stated;
use model::duration;
use result::figure::Statistic;

#[derive(Debug)]
pub struct Run {
    pub log: Log,
    pub sources: Sources,
}

/// Judges the runs of a case, one for each of its seeds: the checks, and the outcome that follows
/// from them. `count` leaves out the `added` special tokens that the tokenizer puts around a text.
pub fn judge(
    case: &Case,
    profile: &Profile,
    runs: &[Run],
    count: &Count<'_>,
    added: u64,
) -> (Outcome, Vec<Check>) {
    let Some(run) = runs.first() else {
        return (Outcome::Failed("there is no run".into()), Vec::new());
    };
    let mut checks = Vec::new();
    let mut unread = None;
    let world = World {
        log: &run.log,
        warm_up: load::before(case, profile),
        asks: &case.asks,
        count,
        added,
    };
    for wanted in &case.judges.figures {
        for name in profile.figures.keys() {
            if profile.quantity(name) != Ok(wanted.quantity)
                || profile.lacks(&case.name, name).is_some()
            {
                continue;
            }
            for statistic in statistics(profile, name, *wanted) {
                match run.sources.figure(profile, name, statistic) {
                    Ok(reading) => {
                        let figure = Figure { quantity: wanted.quantity, statistic };
                        checks.extend(check((name, figure), reading, case, profile, &world));
                    }
                    Err(why) => unread = Some(why),
                }
            }
        }
    }
    let logs: Vec<&Log> = runs.iter().map(|run| &run.log).collect();
    let of_load = (case.judges.load.iter().copied()).filter(|property| {
        let is_seeds = *property == Property::Seeds;
        let name = format!("load.{property}");
        (profile.load.seeded || !is_seeds) && profile.lacks(&case.name, &name).is_none()
    });
    checks.extend(of_load.filter_map(|own| load::check(own, case, profile, &logs, count)));
    let outcome = match (unread, checks.iter().map(|check| check.verdict).max()) {
        (Some(why), _) => Outcome::Failed(why),
        (None, Some(worst)) => Outcome::Judged(worst),
        (None, None) => {
            let why = "the client states no figure that the case judges";
            Outcome::NotApplicable(why.into())
        }
    };
    (outcome, checks)
}

/// The judged statistics of a figure: the statistics that the case names and the client states.
fn statistics(profile: &Profile, name: &str, wanted: Figure) -> Vec<Option<Statistic>> {
    let claimed = profile.figures.get(name).map(|claim| &claim.statistics);
    let claimed = claimed.into_iter().flatten();
    let claimed: Vec<Statistic> = claimed.filter_map(|name| name.parse().ok()).collect();
    let judged = wanted.each().into_iter().map(|figure| figure.statistic);
    judged.filter(|one| one.is_none_or(|one| claimed.contains(&one))).collect()
}

/// Compares a figure of the client, by its name, with its value by each definition.
fn check(
    (name, figure): (&str, Figure),
    reading: Option<Stated>,
    case: &Case,
    profile: &Profile,
    world: &World<'_>,
) -> Option<Check> {
    let quantity = figure.quantity;
    let claimed = profile.meaning(name).ok()?;
    let expected = claimed.value(figure, world);
    let own = reading.map(|reading| reading.value);
    let cannot_tell = expected.is_none() && claimed.from_due && !case.asks.is_closed();
    if cannot_tell || (expected.is_none() && own.is_none()) {
        // There was nothing to measure and the client states nothing, or the log cannot tell.
        return None;
    }
    let rounding = reading.map_or(0.0, |reading| reading.rounding);
    let fits = |meaning: &Meaning| {
        let value = meaning.value(figure, world);
        value.zip(own).is_some_and(|(value, own)| {
            (value - own).abs() <= tolerance(case, quantity, value, world) + rounding
        })
    };
    let is_exact = fits(&claimed);
    let stated = profile.figures.get(name).and_then(|claim| claim.error.as_deref());
    let is_within = expected.zip(own).is_some_and(|(expected, own)| {
        stated.is_some_and(|error| (expected - own).abs() <= allowed(error, quantity, expected))
    });
    let other = (!is_exact && !is_within && own.is_some())
        .then(|| claimed.others(quantity).into_iter().find(|other| fits(other)))
        .flatten();
    let verdict = match (&other, is_exact, is_within) {
        (_, true, _) => Verdict::Exact,
        (_, _, true) => Verdict::WithinStatedError,
        (Some(_), ..) => Verdict::AnotherDefinition,
        (None, ..) => Verdict::Wrong,
    };
    let fits = other.map(|other| claimed.changes(&other).join(", "));
    let word = claimed.word(quantity);
    let by_definition = match verdict {
        Verdict::Exact => Vec::new(),
        _ => by_definition(&claimed, figure, world),
    };
    let mut words = explanation(figure, verdict, &word, expected, own, fits.as_deref());
    if let (Verdict::Wrong, Some(own), Some(_)) = (verdict, own, expected) {
        words += &nearest(quantity, own, &by_definition);
    }
    Some(Check {
        figure: match figure.statistic {
            Some(statistic) => format!("{name}.{statistic}"),
            None => name.to_owned(),
        },
        claimed: word,
        expected,
        said: own,
        verdict,
        fits,
        by_definition,
        words,
    })
}

/// The largest difference from a true value that counts as none.
fn tolerance(case: &Case, quantity: Quantity, value: f64, world: &World<'_>) -> f64 {
    let tolerance = &case.tolerance;
    match quantity {
        quantity if quantity.is_count() => 1e-9,
        quantity if quantity.is_latency() => tolerance.millis() + tolerance.share * value.abs(),
        Quantity::Duration => tolerance.millis() / 1e3 + tolerance.share * value.abs(),
        _ => {
            // The span that a throughput is divided by has the error of any time.
            let ends = world.log.requests.iter().map(|request| request.ended);
            let first = world.log.requests.first().map_or(0.0, |first| first.received);
            let span = (ends.fold(0.0, f64::max) - first).max(1.0);
            value.abs() * (tolerance.share + tolerance.millis() / span)
        }
    }
}

/// An error as documentation states it: `5ms`, or a share.
fn allowed(error: &str, quantity: Quantity, value: f64) -> f64 {
    if let Ok(span) = duration::parse(error) {
        let seconds = span.as_secs_f64();
        return if quantity == Quantity::Duration { seconds } else { seconds * 1e3 };
    }
    model::number::share(error).map_or(0.0, |share| share * value.abs())
}

fn by_definition(claimed: &Meaning, figure: Figure, world: &World<'_>) -> Vec<ByDefinition> {
    let words = Meaning::definitions(figure.quantity).into_iter();
    words
        .filter_map(|word| {
            let mut meaning = claimed.clone();
            meaning.define(figure.quantity, &[word.to_owned()]).ok()?;
            Some(ByDefinition { definition: word.to_owned(), value: meaning.value(figure, world)? })
        })
        .collect()
}

/// The definition whose value is nearest to the client's, as text: a figure that fits none may be
/// far from all, or a little late.
fn nearest(quantity: Quantity, own: f64, values: &[ByDefinition]) -> String {
    let apart = |value: &ByDefinition| (value.value - own).abs();
    let nearest = values.iter().min_by(|a, b| apart(a).total_cmp(&apart(b)));
    nearest.map_or(String::new(), |value| {
        let by = shown(quantity, apart(value));
        format!("; the nearest is `{}`, {by} away", value.definition)
    })
}

fn explanation(
    figure: Figure,
    verdict: Verdict,
    word: &str,
    expected: Option<f64>,
    own: Option<f64>,
    fits: Option<&str>,
) -> String {
    let quantity = figure.quantity;
    let value = |value: f64| shown(quantity, value);
    let label = match figure.statistic {
        Some(statistic) => format!("{statistic} {}", quantity.label()),
        None => quantity.label().to_owned(),
    };
    match (verdict, expected, own) {
        (_, Some(expected), None) => {
            format!("the client states no {label}; by `{word}` it is {}", value(expected))
        }
        (Verdict::Exact, _, Some(own)) => format!("{label} is {}, as by `{word}`", value(own)),
        (_, None, Some(own)) => match fits {
            None => format!(
                "the client states {label} {}, where there was nothing to measure",
                value(own)
            ),
            Some(fits) => format!(
                "the client states {label} {}, its value by {fits}; by `{word}` there was \
                 nothing to measure",
                value(own)
            ),
        },
        (verdict, Some(expected), Some(own)) => {
            let so = format!(
                "the client states {label} {}; by its own definition `{word}` it is {}",
                value(own),
                value(expected)
            );
            match (verdict, fits) {
                (Verdict::AnotherDefinition, Some(fits)) => format!("{so}; it fits: {fits}"),
                (Verdict::WithinStatedError, _) => format!("{so}, within the error that it states"),
                _ => format!("{so}; it fits no definition"),
            }
        }
        (_, None, None) => format!("there is no {label}"),
    }
}

pub(crate) fn shown(quantity: Quantity, value: f64) -> String {
    let unit = quantity.unit();
    if quantity.is_count() && value.fract() == 0.0 {
        format!("{value}{unit}")
    } else {
        format!("{value:.2}{unit}")
    }
}
