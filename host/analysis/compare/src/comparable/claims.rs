//! Compares the settings in another tool's result with a run of ours, or with another claim. A
//! result states less than a plan: settings that it does not state cannot be checked, and are
//! listed as such.

use super::{CompatibilityCheck, Kind};
use crate::side::{LATENCIES, Measured, metric_of};
use audit::claim::Claim;

/// Totals that differ by more than this share come from different lengths.
const LENGTHS: f64 = 0.01;

/// The stated settings behind a result, for a run or a claim alike.
struct Located {
    model: Option<String>,
    requests: Option<f64>,
    rate: Option<f64>,
    cap: Option<u64>,
    input: Option<f64>,
    output: Option<f64>,
    stream: Option<bool>,
    dataset: Option<String>,
}

/// A run of ours with a claim; `claim_first` if the claim is the baseline.
pub(super) fn with_run(
    run: &Measured,
    claim: &Claim,
    claim_first: bool,
    found: &mut CompatibilityCheck<'_>,
) {
    let (ours, theirs) = (of_run(run), of_claim(claim));
    let (a, b) = if claim_first { (&theirs, &ours) } else { (&ours, &theirs) };
    stated_settings(a, b, found);
    let (mut ours, theirs) = (run.reported.plan.about.clone(), &claim.about);
    if theirs.notes.contains_key("backend") {
        let backend = &run.reported.plan.backend.name;
        ours.notes.entry("backend".to_owned()).or_insert_with(|| backend.clone());
    }
    let (a, b) = if claim_first { (theirs, &ours) } else { (&ours, theirs) };
    found.about(a, b);
    found.unknown("the requests themselves: the claim does not contain them");
}

pub(super) fn with_claim(a: &Claim, b: &Claim, found: &mut CompatibilityCheck<'_>) {
    stated_settings(&of_claim(a), &of_claim(b), found);
    for theirs in LATENCIES {
        let [ours, other] = [a, b].map(|claim| metric_of(claim, theirs));
        let stated = [a, b].iter().all(|claim| !claim.statistics(theirs).is_empty());
        if stated && ours != other {
            let formula = |claim: &Claim| {
                let definition = claim.definitions.get(theirs)?;
                Some(format!("{} ({})", definition.formula, claim.tool.label()))
            };
            found.obstacle(Kind::Definition, theirs, formula(a), formula(b));
        }
    }
    found.about(&a.about, &b.about);
    let tool = |claim: &Claim| Some(claim.tool.label().to_owned());
    found.may("tool", tool(a), tool(b));
    found.unknown("the requests themselves: claims do not contain them");
}

fn of_run(run: &Measured) -> Located {
    let (plan, summary) = (&run.reported.plan, &run.reported.summary);
    Located {
        model: plan.target.model().map(str::to_owned),
        requests: Some(summary.requests.total as f64),
        rate: plan.load.arrival.rate(),
        cap: plan.slots().map(|slots| slots as u64),
        input: summary.tokens.input.total.map(|tokens| tokens as f64),
        output: summary.tokens.output.total.map(|tokens| tokens as f64),
        stream: Some(plan.request.stream),
        dataset: Some(plan.dataset.plugin.name.clone()),
    }
}

fn of_claim(claim: &Claim) -> Located {
    let stated = |figure: &str| claim.value(figure);
    let [successful, failed] = ["requests.successful", "requests.failed"].map(stated);
    let total = stated("requests.total").or(claim.asked.requests.map(|n| n as f64));
    Located {
        model: claim.model.clone(),
        requests: total.or_else(|| Some(successful? + failed.unwrap_or(0.0))),
        rate: claim.asked.request_rate,
        cap: claim.asked.max_concurrency,
        input: stated("tokens.input"),
        output: stated("tokens.output"),
        stream: claim.asked.stream,
        dataset: claim.asked.dataset.clone(),
    }
}

fn stated_settings(a: &Located, b: &Located, found: &mut CompatibilityCheck<'_>) {
    found.unknown(
        "sampling: a claim does not state temperature and top-p, which may change every figure",
    );
    let same_model = |a: &String, b: &String| short_model(a) == short_model(b);
    check(found, Kind::Model, "model", (&a.model, &b.model), same_model, String::clone);
    check(found, Kind::Count, "requests", (&a.requests, &b.requests), f64::eq, f64::to_string);
    let rate =
        |rate: &f64| if rate.is_finite() { format!("{rate}/s") } else { "all at once".to_owned() };
    check(found, Kind::Load, "request rate", (&a.rate, &b.rate), f64::eq, rate);
    let about = |a: &f64, b: &f64| (a - b).abs() <= LENGTHS * a.max(*b);
    let tokens = |n: &f64| format!("{n} tokens");
    check(found, Kind::Lengths, "input tokens", (&a.input, &b.input), about, tokens);
    check(found, Kind::Lengths, "output tokens", (&a.output, &b.output), about, tokens);
    check(found, Kind::Request, "streaming", (&a.stream, &b.stream), bool::eq, bool::to_string);
    // A cap that is not stated may be none, or may not have been written down.
    match (a.cap, b.cap) {
        (Some(a), Some(b)) if a != b => {
            found.obstacle(Kind::Load, "max concurrency", Some(a.to_string()), Some(b.to_string()));
        }
        (None, Some(_)) | (Some(_), None) => found.unknown("max concurrency: one side states none"),
        _ => {}
    }
    // Names of datasets are each tool's own: told, never compared.
    found.may("dataset", a.dataset.clone(), b.dataset.clone());
}

fn check<T>(
    found: &mut CompatibilityCheck<'_>,
    kind: Kind,
    what: &str,
    values: (&Option<T>, &Option<T>),
    same: impl Fn(&T, &T) -> bool,
    show: impl Fn(&T) -> String,
) {
    match values {
        (Some(a), Some(b)) if !same(a, b) => {
            found.obstacle(kind, what, Some(show(a)), Some(show(b)));
        }
        (Some(_), Some(_)) => {}
        _ => found.unknown(&format!("{what}: not stated by both sides")),
    }
}

/// A model's name without its owner or folder, in lower case: publishers leave them out.
pub(crate) fn short_model(name: &str) -> String {
    let name = name.trim_end_matches('/');
    name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase()
}
