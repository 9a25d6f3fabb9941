//! Checks that a scenario makes sense: values are in range, pairs do not contradict each other, and
//! an arrival has the keys it needs.
//!
//! Works on scenarios alone, whether they come from a file, from flags or from code.

use std::fmt::Display;

use http::Uri;
use http::header::{HeaderName, HeaderValue};

use crate::scenario::Scenario;
use crate::target::Target;
use model::connection::{Reuse, Version};
use model::places::AllowedHost;
use model::session::Warming;
use model::target::with_scheme;
use reader::{Located, Place, Problem};
use result::metric::Objective;
use result::threshold::Threshold;

mod limits;
pub(crate) mod load;
mod request;

/// Headers that the host sets itself.
const HOST_HEADERS: [&str; 4] = ["host", "content-length", "connection", "transfer-encoding"];

pub fn values(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::new();
    target(&scenario.target, &mut problems);
    load::values(&scenario.load, &mut problems);

    request::values(&scenario.request, &mut problems);
    request::ids(&scenario.request.ids, &mut problems);
    limits::values(scenario, &mut problems);
    let mut check = |problem: Option<Problem>| problems.extend(problem);
    for (metric, most) in scenario.goodput.iter() {
        if let Err(error) = Objective::new(metric, most.value) {
            let problem = Problem::new(format!("`goodput.{metric}`: {}", error.mistakes()));
            check(Some(problem.at(most.place.clone(), "not an objective")));
        }
    }

    for Located { value, place } in scenario.thresholds.iter() {
        if let Err(reason) = value.parse::<Threshold>() {
            let problem = Problem::new(format!("`thresholds`: {reason}"));
            check(Some(problem.at(place.clone(), "not a threshold")));
        }
    }

    if let Some(percentiles) = &scenario.report.percentiles {
        if percentiles.value.is_empty() {
            let problem = Problem::new("`report.percentiles`: expected at least one, found none");
            check(Some(problem.at(percentiles.place.clone(), "an empty list")));
        }
        for (index, percentile) in percentiles.value.iter().enumerate() {
            let Located { value, place } = percentile;
            if !(*value > 0.0 && *value <= 100.0) {
                let expected = "a number above 0 and at most 100";
                check(Some(wrong("report.percentiles", place, expected, value)));
            }
            if percentiles.value[..index].iter().any(|before| before.value == *value) {
                let problem = Problem::new(format!("`report.percentiles`: {value} occurs twice"));
                check(Some(problem.at(place.clone(), "again")));
            }
        }
    }
    problems
}

fn target(target: &Target, problems: &mut Vec<Problem>) {
    let named = |key: &'static str, urls: &Option<Located<Vec<Located<String>>>>| {
        let urls: Vec<Located<String>> = urls.iter().flat_map(|urls| urls.value.clone()).collect();
        urls.into_iter().map(move |url| (key, url))
    };
    let urls = named("target.base-url", &target.base_url);
    for (key, Located { value, place }) in
        urls.chain(named("target.metrics-url", &target.metrics_url))
    {
        let uri = with_scheme(&value).parse::<Uri>().ok().filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|h| !h.is_empty())
        });
        // A URL that may hold a password is refused by the target, which does not repeat it.
        if uri.is_none_or(|uri| uri.query().is_some()) && !value.contains('@') {
            let expected = "a URL such as \"http://127.0.0.1:8000\"";
            problems.push(wrong(key, &place, expected, format!("{value:?}")));
        }
    }
    for Located { value, place } in target.hosts.iter().flat_map(|hosts| &hosts.value) {
        if let Err(error) = value.parse::<AllowedHost>() {
            let problem = Problem::new(format!("`target.hosts`: {error}"));
            problems.push(problem.at(place.clone(), "no host"));
        }
    }
    if let Some(Located { value, place }) = &target.api_key_env {
        let name = !value.starts_with(|c: char| c.is_ascii_digit())
            && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !name {
            let message = "`target.api-key-env`: expected the name of an environment variable";
            let help = "put the key itself into a variable and name that variable here; \
                        keys do not belong in scenarios";
            problems
                .push(Problem::new(message).at(place.clone(), "not a name").help(help).secret());
        }
    }
    for (name, Located { value, place }) in target.headers.iter() {
        let key = format!("target.headers.{name}");
        let problem = if HeaderName::from_bytes(name.as_bytes()).is_err() {
            Problem::new(format!("`{key}`: {name:?} is not a valid header name"))
        } else if HeaderValue::from_str(value).is_err() {
            Problem::new(format!("`{key}`: the value has characters that a header cannot contain"))
        } else if name == "authorization" {
            Problem::new(format!("`{key}`: keys do not belong in scenarios"))
                .help("put the key into an environment variable and name it with `api-key-env` in [target]")
                .secret()
        } else if HOST_HEADERS.contains(&name.as_str()) {
            Problem::new(format!("`{key}`: the runner sets this header itself"))
        } else {
            continue;
        };
        problems.push(problem.at(place.clone(), "not possible"));
    }
}

fn unless<T: Display>(
    name: &str,
    located: &Option<Located<T>>,
    expected: &str,
    fits: impl Fn(&T) -> bool,
) -> Option<Problem> {
    let located = located.as_ref().filter(|located| !fits(&located.value))?;
    Some(wrong(name, &located.place, expected, &located.value))
}

/// A key against a decision that was made elsewhere.
fn contradicts(key: &str, place: &Place, decision: &str, other: &Place) -> Problem {
    Problem::new(format!("{key} contradicts {decision}"))
        .at(place.clone(), "this")
        .at(other.clone(), "conflicts with this")
}

fn wrong(name: &str, place: &Place, expected: &str, found: impl Display) -> Problem {
    let found = short(found.to_string());
    let message = format!("`{name}`: expected {expected}, found {found}");
    Problem::new(message).at(place.clone(), format!("expected {expected}"))
}

/// A number of hundreds of digits by its exponent.
fn short(found: String) -> String {
    match found.parse::<f64>() {
        Ok(number) if found.len() > 20 => format!("{number:e}"),
        _ => found,
    }
}

/// Finds the missing keys that arrivals and other keys need.
pub fn gaps(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = load::gaps(scenario);
    request::gaps(&scenario.request, &mut problems);
    if let (Some(currency), None) = (&scenario.cost.currency, &scenario.cost.per_hour) {
        problems.push(
            Problem::new("`cost.currency` is set, and `cost.per-hour` is not")
                .at(currency.place.clone(), "a currency without a cost")
                .help("set the machines' cost per hour (--cost-per-hour), or drop the currency"),
        );
    }
    problems
}

/// Pairs of keys that cannot both be set.
pub(crate) fn contradictions(scenario: &Scenario) -> Vec<Problem> {
    let load = &scenario.load;
    let mut problems = Vec::new();
    if let (Some(http), Some(reuse)) = (&scenario.connection.http, &scenario.connection.reuse)
        && (http.value, reuse.value) == (Version::Http2, Reuse::Never)
    {
        let reads = "`connection.reuse` = \"never\"";
        problems.push(
            contradicts(reads, &reuse.place, "`connection.http` = \"2\"", &http.place)
                .help("HTTP/2 requests share connections; one connection each needs HTTP/1.1"),
        );
    }
    if let (Some(requests), Some(duration)) = (&load.requests, &load.duration) {
        problems.push(
            Problem::new("`load.requests` and `load.duration` contradict each other")
                .at(requests.place.clone(), "how many")
                .at(duration.place.clone(), "for how long")
                .help("a run ends after a number of requests or a duration; keep one of the two"),
        );
    }
    if let (Some(warmup), Some(warming)) = (&load.warmup, &load.warming)
        && warming.value != Warming::Requests
    {
        problems.push(
            Problem::new("`load.warmup` and `load.warming` contradict each other")
                .at(warmup.place.clone(), "how many")
                .at(warming.place.clone(), "as many as the load has in flight")
                .help("`warmup` counts for `warming` = \"requests\" alone; keep one of the two"),
        );
    }
    let others = problems.len();
    load::contradictions(load, &mut problems);
    if problems.len() == others {
        limits::together(load, &mut problems);
    }
    request::contradictions(scenario, &mut problems);
    problems
}
