//! Settings of requests, as they go over the wire.

use model::exchange::{Class, Outcome, Reason};
use serde_json::{Value, json};

use super::{BASE, base};
use crate::support::raw::{CHUNKED, LAST_CHUNK, Raw, chunk, say, sound, whole};
use crate::support::trial::{RunResult, Trial};

/// The bodies of the requests that were answered, in the order in which they came.
fn bodies(raw: &Raw) -> Vec<Value> {
    let requests = raw.requests();
    let bodies = requests.iter().map(|request| {
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    });
    bodies.collect()
}

const OPTIONS: &str = r#"
[request]
output-tokens = 2
min-output-tokens = 1
temperature = 0.5
top-p = 0.95
top-k = 40
min-p = 0.05
frequency-penalty = -0.5
presence-penalty = 0.25
repetition-penalty = 1.05
sampling-seed = 11
stop = ["END", "\n\n"]
"#;

#[tokio::test(start_paused = true)]
async fn options_of_requests_are_in_their_bodies() {
    let raw = Raw::with([]);
    Trial::new(BASE).with(OPTIONS).against_raw(&raw).run().await;
    let bodies = bodies(&raw);
    assert!(!bodies.is_empty());
    for body in bodies {
        for (field, value) in [
            ("min_tokens", json!(1)),
            ("temperature", json!(0.5)),
            ("top_p", json!(0.95)),
            ("top_k", json!(40)),
            ("min_p", json!(0.05)),
            ("frequency_penalty", json!(-0.5)),
            ("presence_penalty", json!(0.25)),
            ("repetition_penalty", json!(1.05)),
            ("seed", json!(11)),
            ("stop", json!(["END", "\n\n"])),
        ] {
            assert_eq!(body[field], value, "{field}");
        }
    }
}

/// An engine whose requests have no place for a temperature.
const NO_TEMPERATURE: &str = r#"
backend.config.path = "/v1/completions"
backend.config.body = { prompt = "{prompt}", n = "{max-tokens}", on = "{ignore-eos}", stream = "{stream}" }
backend.config.events = { text = "/choices/0/text", done = "[DONE]" }
"#;

#[tokio::test(start_paused = true)]
async fn the_temperature_is_0_unless_the_server_or_the_body_sets_it() {
    for (setting, temperature, planned) in [
        ("", Some(json!(0.0)), Some(0.0)),
        ("request.temperature = 0.7", Some(json!(0.7)), Some(0.7)),
        ("request.temperature = 'server'", None, None),
        ("request.extra-body.temperature = 0.3", Some(json!(0.3)), None),
    ] {
        let raw = Raw::with([]);
        let ran = Trial::new(BASE).with(setting).against_raw(&raw).run().await;
        assert_eq!(ran.failures(), [], "{setting}");
        assert_eq!(ran.plan.request.temperature, planned, "{setting}");
        for body in bodies(&raw) {
            assert_eq!(body.get("temperature"), temperature.as_ref(), "{setting}");
        }
    }
    let raw = Raw::with([]);
    let without = Trial::new(BASE).plugin("backends/template.wasm");
    let ran = without.with(NO_TEMPERATURE).against_raw(&raw).run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.plan.request.temperature, None);
    assert!(ran.plan.request.ignore_eos);
}

#[tokio::test(start_paused = true)]
async fn why_a_server_refused_is_recorded_and_counted() {
    let error = |message: &str| json!({ "error": { "message": message } }).to_string();
    let in_band = format!("data: {}\n\n", error("The queue is full"));
    let raw = Raw::with([
        (0, whole("429 Too Many Requests", &error("slow down"))),
        (
            1,
            whole(
                "400 Bad Request",
                &error("the prompt is longer than the maximum context length"),
            ),
        ),
        (2, whole("302 Found", "")),
        (3, vec![say(CHUNKED), say(chunk(in_band)), say(LAST_CHUNK)]),
        (4, sound()),
    ]);
    let ran = Trial::new(BASE).against_raw(&raw).run().await;
    let reasons: Vec<_> = ran
        .measured()
        .map(|exchange| match &exchange.outcome {
            Outcome::Ok => None,
            Outcome::Incomplete { class, reason, .. } => Some((*class, *reason)),
        })
        .collect();
    use Class::{HttpStatus, InBandError};
    let expected = [
        Some((HttpStatus, Some(Reason::Overloaded))),
        Some((HttpStatus, Some(Reason::TooLong))),
        Some((HttpStatus, None)),
        Some((InBandError, Some(Reason::Overloaded))),
        None,
    ];
    assert_eq!(reasons, expected);
    let failures = &ran.summary.requests.failures[&HttpStatus];
    assert_eq!(failures.count, 3);
    let counted: Vec<_> = failures.reasons.iter().map(|(of, n)| (*of, *n)).collect();
    assert_eq!(counted, [(Reason::Overloaded, 1), (Reason::TooLong, 1)]);
    for line in [
        "  http-status (overloaded):              1\n",
        "  in-band-error (overloaded):            1\n",
    ] {
        assert!(ran.text.contains(line), "{}", ran.text);
    }
}

/// The adapters of the measured requests, by their number.
fn adapters(ran: &RunResult) -> Vec<(u64, String)> {
    let measured = ran.measured();
    measured.map(|exchange| (exchange.index, exchange.sample.adapter.clone().unwrap())).collect()
}

const SPREAD: &str = "request.adapters = ['a', 'b', 'c']\nload = { requests = 40, arrival = 'constant', rate = 100.0 }\n";

#[tokio::test(start_paused = true)]
async fn adapters_are_assigned_by_seed_and_number_alone() {
    let raw = Raw::with([]);
    let whole = Trial::new(BASE).with(SPREAD).against_raw(&raw).run().await;
    let all = adapters(&whole);
    assert_eq!(all.len(), 40);
    for adapter in ["a", "b", "c"] {
        let share = all.iter().filter(|(_, of)| of == adapter).count();
        assert!((5..=25).contains(&share), "{adapter}: {share} of 40");
        // The engines know an adapter as a model of its own.
        let named = format!("\"model\":\"{adapter}\"");
        let requests = raw.requests();
        let named_requests = requests.iter().filter(|request| request.contains(&named)).count();
        assert_eq!(named_requests, share);
    }
    let mut of_slices = Vec::new();
    for index in 0..3 {
        of_slices.extend(adapters(&base().with(SPREAD).slice(index, 3).run().await));
    }
    of_slices.sort();
    assert_eq!(of_slices, all);
    let other = base().with(SPREAD).with("load.seed = 2").run().await;
    assert_ne!(adapters(&other), all);

    let in_turn = "request.adapter-assignment = 'round-robin'";
    let in_turn = adapters(&base().with(SPREAD).with(in_turn).run().await);
    let names: String = in_turn.into_iter().map(|(_, of)| of).collect();
    assert_eq!(&names[..9], "abcabcabc");
}

#[tokio::test(start_paused = true)]
async fn a_sample_keeps_the_adapter_that_its_dataset_gave_it() {
    let plugin = crate::hostile_guests::fixture::components().join("guests/hostile-dataset.wasm");
    let own = format!("dataset = {{ plugin = '{}', config.adapter = 'own' }}", plugin.display());
    let scenario = BASE.split("[dataset]").next().unwrap().to_owned() + "[load]\nrequests = 5\n";
    let ran = Trial::new(&scenario).with(&own).with("request.adapters = ['a']").run().await;
    assert!(adapters(&ran).iter().all(|(_, of)| of == "own"));
}
