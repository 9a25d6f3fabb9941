//! Checks that `[request]` makes sense.

use http::header::HeaderName;

use super::{HOST_HEADERS, contradicts, unless, wrong};
use crate::field::{Value, place};
use crate::request::{Ids, RequestOptions};
use crate::scenario::Scenario;
use model::identity::{Form, OFF, RequestIds};
use model::temperature::Temperature;
use reader::{Located, Place, Problem};

/// The largest number that the plugin contract counts in 32 bits.
const MOST: u64 = u32::MAX as u64;

pub(super) fn values(request: &RequestOptions, problems: &mut Vec<Problem>) {
    type Fits = fn(&f64) -> bool;
    let penalty: (&str, Fits) = ("a number from -2 to 2", |p| (-2.0..=2.0).contains(p));
    problems.extend(unless(
        "request.temperature",
        &request.temperature,
        &Temperature::expected(),
        |t| t.stated().is_none_or(|t| t.is_finite() && t >= 0.0),
    ));
    for (name, located, (expected, fits)) in [
        (
            "request.top-p",
            &request.top_p,
            ("a number above 0 and at most 1", (|p| *p > 0.0 && *p <= 1.0) as Fits),
        ),
        ("request.min-p", &request.min_p, ("a number from 0 to 1", |p| (0.0..=1.0).contains(p))),
        ("request.frequency-penalty", &request.frequency_penalty, penalty),
        ("request.presence-penalty", &request.presence_penalty, penalty),
        (
            "request.repetition-penalty",
            &request.repetition_penalty,
            ("a number above 0", |p| p.is_finite() && *p > 0.0),
        ),
        (
            "request.cancel-share",
            &request.cancel_share,
            ("a number above 0 and at most 1", |p| *p > 0.0 && *p <= 1.0),
        ),
    ] {
        problems.extend(unless(name, located, expected, fits));
    }
    for (name, located) in [
        ("request.top-k", &request.top_k),
        ("request.output-tokens", &request.output_tokens),
        ("request.min-output-tokens", &request.min_output_tokens),
    ] {
        let expected = format!("a whole number from 1 to {MOST}");
        problems.extend(unless(name, located, &expected, |n| (1..=MOST).contains(n)));
    }
    if let Some(after) = &request.cancel_after
        && after.value.0.is_zero()
    {
        let expected = "a time above zero, such as 2s";
        problems.push(wrong("request.cancel-after", &after.place, expected, after.value));
    }
    for (name, list) in [("request.stop", &request.stop), ("request.adapters", &request.adapters)] {
        let texts = list.iter().flat_map(|list| &list.value);
        for Located { place, .. } in texts.filter(|text| text.value.is_empty()) {
            problems.push(wrong(name, place, "texts that are not empty", "an empty one"));
        }
    }
}

/// Names of header fields and prefixes that requests cannot carry.
pub(super) fn ids(ids: &Ids, problems: &mut Vec<Problem>) {
    let mut seen: Vec<(&str, &Place)> = Vec::new();
    let lists = [
        ("request.ids.request", &ids.request),
        ("request.ids.session", &ids.session),
        ("request.ids.parent", &ids.parent),
        ("request.ids.routing-key", &ids.routing_key),
    ];
    for (key, list) in lists {
        for Located { value, place } in list.iter().flat_map(|list| &list.value) {
            if value == OFF {
                continue;
            }
            let name = HeaderName::from_bytes(value.as_bytes());
            let owned = |name: &HeaderName| {
                HOST_HEADERS.contains(&name.as_str()) || OF_IDS.contains(&name.as_str())
            };
            let before = seen.iter().find(|(other, _)| other.eq_ignore_ascii_case(value));
            let problem = match (name, before) {
                (Err(_), _) => Problem::new(format!(
                    "`{key}`: {value:?} is not a valid header name"
                ))
                .at(place.clone(), "not possible")
                .help("give the name of a header field, such as X-Session-ID, or `off` for none"),
                (Ok(name), _) if owned(&name) => {
                    Problem::new(format!("`{key}`: the runner sets the header `{name}` itself"))
                        .at(place.clone(), "not possible")
                }
                (Ok(name), Some((_, other))) => {
                    Problem::new(format!("`{key}`: the header `{name}` has an id already"))
                        .at(place.clone(), "again")
                        .at((*other).clone(), "here first")
                        .help("give each id a header of its own")
                }
                (Ok(_), None) => {
                    seen.push((value, place));
                    continue;
                }
            };
            problems.push(problem);
        }
    }
    if let Some(prefix) = &ids.prefix
        && !RequestIds::is_prefix(&prefix.value)
    {
        let expected = "1 to 64 letters, digits and -_.:/, such as \"bench-\"";
        let found = format!("{:?}", prefix.value);
        problems.push(wrong("request.ids.prefix", &prefix.place, expected, found));
    }
    if let (Some(prefix), Some(form)) = (&ids.prefix, &ids.form)
        && form.value == Form::Uuid
    {
        problems.push(
            contradicts("`request.ids.prefix`", &prefix.place, "`form` = \"uuid\"", &form.place)
                .help("a UUID has no prefix: leave one of the two out"),
        );
    }
}

/// Header fields that cannot carry an id, beside the fields that frame a request: keys, the media
/// types of bodies, and fields with a key of their own.
const OF_IDS: [&str; 11] = [
    "authorization",
    "accept",
    "accept-encoding",
    "content-type",
    "content-encoding",
    "cookie",
    "expect",
    "te",
    "traceparent",
    "tracestate",
    "upgrade",
];

pub(super) fn contradictions(scenario: &Scenario, problems: &mut Vec<Problem>) {
    let request = &scenario.request;
    if let (Some(least), Some(most)) = (&request.min_output_tokens, &request.output_tokens)
        && least.value > most.value
    {
        problems.push(
            Problem::new("`request.min-output-tokens` is more than `request.output-tokens`")
                .at(least.place.clone(), "at least")
                .at(most.place.clone(), "at most")
                .help("an answer ends at `output-tokens`; raise it, or lower the minimum"),
        );
    }
    body(scenario, problems);
}

/// Finds the missing keys that a key needs.
pub(super) fn gaps(request: &RequestOptions, problems: &mut Vec<Problem>) {
    if let (Some(assignment), None) = (&request.adapter_assignment, &request.adapters) {
        problems.push(
            Problem::new("`request.adapter-assignment` needs `adapters`")
                .at(assignment.place.clone(), "without adapters")
                .help("add for instance `adapters = [\"my-lora\"]` to [request], or --lora-modules my-lora"),
        );
    }
    match (&request.cancel_share, &request.cancel_after) {
        (Some(share), None) => problems.push(
            Problem::new("`request.cancel-share` needs `cancel-after`")
                .at(share.place.clone(), "without a time")
                .help(
                    "add for instance `cancel-after = \"2s\"` to [request], or --cancel-after 2s",
                ),
        ),
        (None, Some(after)) => problems.push(
            Problem::new("`request.cancel-after` needs `cancel-share`")
                .at(after.place.clone(), "without a share")
                .help("add for instance `cancel-share = 0.1` to [request], or --cancel-share 0.1"),
        ),
        _ => {}
    }
}

/// Fields of the request's body that have their own key.
fn body(scenario: &Scenario, problems: &mut Vec<Problem>) {
    let request = &scenario.request;
    let twins = [
        ("stream", "request.stream", place(&request.stream)),
        ("max_tokens", "request.output-tokens", place(&request.output_tokens)),
        ("min_tokens", "request.min-output-tokens", place(&request.min_output_tokens)),
        ("ignore_eos", "request.ignore-eos", place(&request.ignore_eos)),
        ("temperature", "request.temperature", place(&request.temperature)),
        ("top_p", "request.top-p", place(&request.top_p)),
        ("top_k", "request.top-k", place(&request.top_k)),
        ("min_p", "request.min-p", place(&request.min_p)),
        ("frequency_penalty", "request.frequency-penalty", place(&request.frequency_penalty)),
        ("presence_penalty", "request.presence-penalty", place(&request.presence_penalty)),
        ("repetition_penalty", "request.repetition-penalty", place(&request.repetition_penalty)),
        ("seed", "request.sampling-seed", place(&request.sampling_seed)),
        ("stop", "request.stop", place(&request.stop)),
        ("model", "target.model", place(&scenario.target.model)),
    ];
    for (field, key, other) in twins {
        let Some(entry) = request.extra_body.get(field) else { continue };
        let at = entry.key.place.clone();
        let name = format!("`request.extra-body.{field}`");
        let problem = match other {
            Some(place) => contradicts(&name, &at, &format!("`{key}`"), place)
                .help(format!("set it once, with `{key}`")),
            // It determines how a reply is read, so the runner must know about it.
            None if field == "stream" => Problem::new(format!("{name}: set it with `{key}`"))
                .at(at, "not here")
                .help("it determines how replies are read"),
            None => continue,
        };
        problems.push(problem);
    }
}
