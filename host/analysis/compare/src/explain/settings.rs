//! Differences between the requested settings of two results, and between their effects.

use super::account::Account;
use super::{Kind, LATENCIES, Setting};
use crate::comparable::short_model;
use audit::figures::shown;

/// Totals that differ by less than this share count as totals of the same lengths.
const LENGTHS: f64 = 0.01;

/// The definitions of the latencies that a formula of `side` names and the other side defines in
/// another way, as text.
fn where_they_differ(side: &Account, other: &Account, theirs: &str) -> String {
    let formula = |account: &Account, of: &str| {
        let definition = account.definitions.get(of);
        definition.map(|definition| definition.formula.clone())
    };
    let own = formula(side, theirs).unwrap_or_default();
    let mut words = String::new();
    for used in ["ttft", "e2e"] {
        let [here, there] = [side, other].map(|account| formula(account, used));
        if let Some(here) = here.filter(|_| own.contains(used))
            && Some(&here) != there.as_ref()
        {
            let before = if words.is_empty() { ", where" } else { ", and" };
            words += &format!("{before} {used} is {here}");
        }
    }
    words
}

/// The settings that two results state differently, and the settings that only one states.
pub(super) fn differences([a, b]: [&Account; 2]) -> (Vec<Setting>, Vec<String>) {
    let mut found = SettingDifferences::default();
    for theirs in LATENCIES {
        let mean = format!("{theirs}.mean");
        let [of_a, of_b] = [a, b].map(|side| {
            side.figure(&mean)?;
            Some(side.definitions.get(theirs)?.formula.clone())
        });
        if let (Some(mut of_a), Some(mut of_b)) = (of_a, of_b)
            && !a.defines_alike(b, theirs)
        {
            // One formula of two quantities that are others: these are the difference.
            if of_a == of_b {
                of_a += &where_they_differ(a, b, theirs);
                of_b += &where_they_differ(b, a, theirs);
            }
            found.differ(Kind::Definition, theirs, of_a, of_b);
        }
    }
    let count = |count: &u64| count.to_string();
    let text = |text: &String| text.clone();
    let number = |number: &f64| shown(*number);
    // A server's work for a token depends on it, and few tools state it.
    found.check(Kind::Workload, "sampling", [a, b].map(|side| &side.settings.sampling), text);
    found.check(Kind::Engine, "engine", [&a.engine, &b.engine], text);
    found.check(Kind::Engine, "model", [&a.model, &b.model], |name| short_model(name));
    let stated = [a, b].map(|side| &side.settings);
    found.check(Kind::Workload, "requests", stated.map(|settings| &settings.requests), count);
    found.about(Kind::Workload, "tokens of a prompt", [a, b].map(Account::input_each));
    found.about(Kind::Workload, "tokens of an answer", [a, b].map(Account::output_each));
    found.check(Kind::Workload, "dataset", stated.map(|settings| &settings.dataset), text);
    found.check(Kind::Workload, "seed", stated.map(|settings| &settings.seed), count);
    let stream = |stream: &bool| if *stream { "yes" } else { "no" }.to_owned();
    found.check(Kind::Workload, "streamed", stated.map(|settings| &settings.stream), stream);
    let rate = |rate: &f64| {
        if rate.is_finite() {
            format!("{} a second", shown(*rate))
        } else {
            "all at once".to_owned()
        }
    };
    found.check(Kind::Schedule, "request rate", stated.map(|settings| &settings.rate), rate);
    found.check(Kind::Schedule, "most in flight", stated.map(|settings| &settings.cap), count);
    found.check(Kind::Schedule, "arrivals", stated.map(|settings| &settings.arrival), text);
    found.check(
        Kind::Schedule,
        "requests to warm up",
        stated.map(|settings| &settings.warmup),
        count,
    );
    let failed = [a, b].map(|side| &side.came.failed);
    found.check(Kind::Failures, "failed requests", failed, number);
    (found.differences, found.unknown)
}

/// The totals that are equal in both.
pub(super) fn equal(sides: [&Account; 2]) -> Vec<String> {
    let [a, b] = sides
        .map(|side| [side.came.answered, side.came.input, side.came.served.or(side.came.output)]);
    let names = ["requests answered", "tokens of prompts", "tokens of answers"];
    let totals = names.into_iter().zip(a.into_iter().zip(b));
    let same = totals.filter_map(|(name, (a, b))| Some((name, a.filter(|a| Some(*a) == b)?)));
    same.map(|(name, total)| format!("{name}: {total}")).collect()
}

#[derive(Default)]
struct SettingDifferences {
    differences: Vec<Setting>,
    unknown: Vec<String>,
}

impl SettingDifferences {
    fn check<T>(
        &mut self,
        kind: Kind,
        what: &str,
        [a, b]: [&Option<T>; 2],
        show: impl Fn(&T) -> String,
    ) {
        match (a, b) {
            (Some(a), Some(b)) => {
                let (a, b) = (show(a), show(b));
                if a != b {
                    self.differ(kind, what, a, b);
                }
            }
            (Some(a), None) => {
                self.unknown.push(format!("{what}: not stated by B; A: {}", show(a)))
            }
            (None, Some(b)) => {
                self.unknown.push(format!("{what}: not stated by A; B: {}", show(b)))
            }
            (None, None) => {}
        }
    }

    /// Means that may differ a little.
    fn about(&mut self, kind: Kind, what: &str, [a, b]: [Option<f64>; 2]) {
        if let (Some(a), Some(b)) = (a, b)
            && (a - b).abs() <= LENGTHS * a.max(b)
        {
            return;
        }
        self.check(kind, what, [&a, &b], |number| shown(*number));
    }

    fn differ(&mut self, kind: Kind, what: &str, a: String, b: String) {
        let what = what.to_owned();
        self.differences.push(Setting { kind, what, a, b });
    }
}
