use super::*;

fn about() -> About {
    About {
        version: "1".to_owned(),
        scenario: "chat".to_owned(),
        run: "20260102-030405-chat".to_owned(),
        operation: "chat",
        provider: "vllm".to_owned(),
        model: "m".to_owned(),
        servers: vec![("host".to_owned(), 8000)],
        origin: 1_000_000,
    }
}

/// A record as it lies on disk, with these fields of its own.
fn record(index: u64, fields: Value) -> Exchange {
    let mut record = json!({
        "index": index, "phase": "measure",
        "sample": {"id": format!("s{index}"), "request-bytes": 2, "request-digest": "0f"},
        "due": 10, "sent": 12, "written": 13, "first-byte": 15, "headers": 15, "status": 200,
        "events": {"at": [16, 18, 20], "kind": "rtt", "bytes": [0, 2, 2]}, "ended": 21,
        "output": "hihi", "finish": "stop",
        "usage": {"input-tokens": 3, "output-tokens": 2},
        "ids": {
            "request": format!("r{index}"), "trace": format!("{:032x}", 7), "span": format!("{:016x}", index + 1)
        },
        "outcome": {"class": "complete"},
    });
    let further = fields.as_object().unwrap().clone();
    record.as_object_mut().unwrap().extend(further);
    serde_json::from_value(record).unwrap()
}

fn sample(fields: Value) -> Value {
    let mut sample = json!({"id": "s", "request-bytes": 2, "request-digest": "0f"});
    let further = fields.as_object().unwrap().clone();
    sample.as_object_mut().unwrap().extend(further);
    json!({ "sample": sample })
}

fn spans(exchanges: &[Exchange]) -> Vec<Value> {
    let mut tracer = Tracer::new(about());
    exchanges.iter().for_each(|exchange| tracer.add(exchange));
    tracer.finish();
    let document = tracer.line();
    document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

/// An instant after the origin.
fn at(value: &Value) -> u64 {
    value.as_str().unwrap().parse::<u64>().unwrap() - 1_000_000
}

#[test]
fn a_request_is_a_span_from_due_to_end_with_its_steps() {
    let span = spans(&[record(3, json!({}))]).remove(0);
    assert_eq!([at(&span["startTimeUnixNano"]), at(&span["endTimeUnixNano"])], [10, 21]);
    assert_eq!(span["traceId"], format!("{:032x}", 7));
    assert_eq!(span["spanId"], format!("{:016x}", 4));
    assert_eq!(
        (&span["name"], &span["kind"], &span["flags"]),
        (&json!("chat m"), &json!(3), &json!(1))
    );
    for absent in ["parentSpanId", "status"] {
        assert_eq!(span.get(absent), None);
    }
    let steps = span["events"].as_array().unwrap().iter();
    let steps = steps.map(|event| (event["name"].as_str().unwrap(), at(&event["timeUnixNano"])));
    assert_eq!(
        steps.collect::<Vec<_>>(),
        [
            ("due", 10),
            ("sent", 12),
            ("written", 13),
            ("first_byte", 15),
            ("headers", 15),
            ("first_token", 16),
            ("last_token", 20)
        ]
    );
    let attributes = span["attributes"].as_array().unwrap();
    for own in [
        text("server.address", "host"),
        int("server.port", 8000),
        text("runner.request.id", "r3"),
        int("gen_ai.usage.input_tokens", 3),
        list("gen_ai.response.finish_reasons", "stop"),
    ] {
        assert!(attributes.contains(&own), "{own}");
    }
}

#[test]
fn a_failure_is_the_status_and_leaving_on_purpose_is_none() {
    let failed = json!({"outcome": {"class": "truncated", "message": "cut"}});
    let left = json!({"outcome": {"class": "cancelled", "message": "left"}});
    let [failed, left] = spans(&[record(1, failed), record(2, left)]).try_into().unwrap();
    assert_eq!(failed["status"], json!({"code": 2, "message": "cut"}));
    assert_eq!(left.get("status"), None);
    let attributes = failed["attributes"].as_array().unwrap();
    assert!(attributes.contains(&text("error.type", "truncated")));
}

#[test]
fn a_session_is_the_parent_of_its_requests() {
    let root = sample(json!({"descendants": 2}));
    let follower = sample(json!({"parents": [0]}));
    let mut last = follower.clone();
    last["ended"] = 99.into();
    let spans = spans(&[record(0, root), record(1, follower), record(2, last)]);
    let [first, .., session] = &*spans else { panic!("{spans:?}") };
    assert_eq!(spans.len(), 4);
    assert_eq!((&session["name"], at(&session["endTimeUnixNano"])), (&json!("session"), 99));
    assert_eq!(first["parentSpanId"], session["spanId"]);
    assert_eq!(first["traceId"], session["traceId"]);
}

#[test]
fn a_session_that_was_cut_short_has_a_span_too() {
    let spans = spans(&[record(0, sample(json!({"descendants": 2})))]);
    let left = int("runner.session.requests_left", 2);
    assert!(spans[1]["attributes"].as_array().unwrap().contains(&left), "{spans:?}");
}

#[test]
fn requests_without_a_trace_context_have_ids_by_their_session() {
    let with = |mut fields: Value| {
        fields["ids"] = Value::Null;
        fields
    };
    let exchanges = [
        record(0, with(sample(json!({"descendants": 2})))),
        record(1, with(sample(json!({"parents": [0]})))),
        record(2, with(sample(json!({"parents": [1]})))),
        record(3, with(json!({}))),
    ];
    let spans = spans(&exchanges);
    let [root, child, grandchild, session, alone] = &*spans else { panic!("{spans:?}") };
    for member in [root, child, grandchild] {
        assert_eq!(member["traceId"], session["traceId"]);
        assert_eq!(member["parentSpanId"], session["spanId"]);
    }
    assert_ne!(alone["traceId"], session["traceId"]);
    let ids: std::collections::BTreeSet<_> =
        spans.iter().map(|span| span["spanId"].as_str()).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!(spans, super::tests::spans(&exchanges), "every export has the same ids");
}

#[test]
fn histograms_count_measured_answers() {
    let mut metrics = Metrics::default();
    assert!(metrics.all(&about()).is_empty());
    let warm = json!({"phase": "warmup"});
    let failed = json!({"outcome": {"class": "truncated", "message": "cut"}});
    let second = 1_000_000_000_u64;
    let late = json!({"sent": second, "ended": 3 * second,
        "events": {"at": [2 * second, 3 * second], "kind": "tt", "bytes": [1, 1]}});
    for fields in [warm, failed, late] {
        metrics.add(&about(), &record(1, fields));
    }
    let metrics = metrics.all(&about());
    let points = metrics.iter().flat_map(|metric| {
        let points = metric["histogram"]["dataPoints"].as_array().unwrap().iter();
        points.map(|point| (metric["name"].as_str().unwrap(), point))
    });
    let points: Vec<(&str, &Value)> = points.collect();
    let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let seen = points.iter();
    let seen = seen.map(|(name, point)| (*name, number(&point["count"]), point["sum"].as_f64()));
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            ("gen_ai.client.operation.duration", 1, Some(2.0)),
            ("gen_ai.client.operation.duration", 1, Some(9e-9)),
            ("gen_ai.client.token.usage", 2, Some(6.0)),
            ("gen_ai.client.token.usage", 2, Some(4.0)),
            ("gen_ai.client.operation.time_to_first_chunk", 1, Some(1.0)),
            ("gen_ai.client.operation.time_per_output_chunk", 1, Some(1.0)),
        ]
    );
    for (_, point) in points {
        assert_eq!([at(&point["startTimeUnixNano"]), at(&point["timeUnixNano"])], [10, 3 * second]);
        let (buckets, bounds) = (&point["bucketCounts"], &point["explicitBounds"]);
        let buckets: Vec<u64> = buckets.as_array().unwrap().iter().map(number).collect();
        assert_eq!(buckets.len(), bounds.as_array().unwrap().len() + 1);
        assert_eq!(buckets.iter().sum::<u64>(), number(&point["count"]));
    }
}
