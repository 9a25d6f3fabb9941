use prost::Message;

use super::*;
use model::exchange::Exchange;

fn about() -> About {
    About {
        version: "1".to_owned(),
        scenario: "chat".to_owned(),
        run: "20260102-030405-chat".to_owned(),
        operation: "chat".to_owned(),
        provider: "vllm".to_owned(),
        model: "m".to_owned(),
        servers: vec![("host".to_owned(), 8000)],
        origin: 1_000_000,
    }
}

/// A record as it lies on disk, with these fields of its own.
fn record(index: u64, fields: serde_json::Value) -> Seen {
    let mut record = serde_json::json!({
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
    let exchange: Exchange = serde_json::from_value(record).unwrap();
    Seen::of(&exchange)
}

fn sample(fields: serde_json::Value) -> serde_json::Value {
    let mut sample = serde_json::json!({"id": "s", "request-bytes": 2, "request-digest": "0f"});
    let further = fields.as_object().unwrap().clone();
    sample.as_object_mut().unwrap().extend(further);
    serde_json::json!({ "sample": sample })
}

fn spans(tracer: &mut Tracer) -> Vec<Span> {
    let (bytes, count) = tracer.traces(usize::MAX);
    let mut request = TracesRequest::decode(&*bytes).unwrap();
    let spans = request.resource_spans.remove(0).scope_spans.remove(0).spans;
    assert_eq!(spans.len() as u64, count);
    spans
}

#[test]
fn a_request_is_a_span_from_due_to_end_with_its_steps() {
    let mut tracer = Tracer::new(about());
    assert!(tracer.add(&record(3, serde_json::json!({}))));
    let span = spans(&mut tracer).remove(0);
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (1_000_010, 1_000_021));
    assert_eq!(span.trace_id, 7_u128.to_be_bytes());
    assert_eq!(span.span_id, 4_u64.to_be_bytes());
    assert!(span.parent_span_id.is_empty());
    assert_eq!((&*span.name, span.status), ("chat m", None));
    let steps = span.events.iter().map(|event| (&*event.name, event.time_unix_nano - 1_000_000));
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
    assert_eq!(tracer.waiting(), 0);
}

#[test]
fn a_failure_is_the_status_and_leaving_on_purpose_is_none() {
    let mut tracer = Tracer::new(about());
    let failed = serde_json::json!({"outcome": {"class": "truncated", "message": "cut"}});
    let left = serde_json::json!({"outcome": {"class": "cancelled", "message": "left"}});
    assert!(tracer.add(&record(1, failed)));
    assert!(tracer.add(&record(2, left)));
    let [failed, left] = spans(&mut tracer).try_into().unwrap();
    let status = failed.status.unwrap();
    assert_eq!((status.code, &*status.message), (StatusCode::Error.into(), "cut"));
    assert_eq!(left.status, None);
    use message::StatusCode;
    let error = failed.attributes.iter().find(|own| own.key == "error.type");
    assert_eq!(error, Some(&KeyValue::text("error.type", "truncated")));
}

#[test]
fn a_session_is_the_parent_of_its_requests_and_ends_with_the_last() {
    let mut tracer = Tracer::new(about());
    let root = sample(serde_json::json!({"descendants": 2}));
    let follower = sample(serde_json::json!({"parents": [0]}));
    assert!(tracer.add(&record(0, root)));
    assert!(tracer.add(&record(1, follower.clone())));
    assert_eq!(tracer.waiting(), 2);
    let mut last = follower;
    last["ended"] = 99.into();
    assert!(tracer.add(&record(2, last)));
    let spans = spans(&mut tracer);
    let [first, .., session] = &*spans else { panic!("{spans:?}") };
    assert_eq!(spans.len(), 4);
    assert_eq!((&*session.name, session.end_time_unix_nano), ("session", 1_000_099));
    assert_eq!(first.parent_span_id, session.span_id);
    assert_eq!(first.trace_id, session.trace_id);
}

#[test]
fn a_session_that_was_cut_short_has_a_span_too() {
    let mut tracer = Tracer::new(about());
    assert!(tracer.add(&record(0, sample(serde_json::json!({"descendants": 2})))));
    tracer.finish();
    let spans = spans(&mut tracer);
    let left = KeyValue::int("runner.session.requests_left", 2);
    assert!(spans[1].attributes.contains(&left), "{spans:?}");
}

#[test]
fn an_exchange_without_ids_has_no_span() {
    let mut tracer = Tracer::new(about());
    assert!(!tracer.add(&record(0, serde_json::json!({"ids": null}))));
    assert_eq!(tracer.waiting(), 0);
}

#[test]
fn histograms_count_what_was_measured_and_answered() {
    let mut tracer = Tracer::new(about());
    assert_eq!(tracer.metrics(Nanos(1)), None);
    let warm = serde_json::json!({"phase": "warmup"});
    let failed = serde_json::json!({"outcome": {"class": "truncated", "message": "cut"}});
    let second = 1_000_000_000_u64;
    let late = serde_json::json!({"sent": second, "ended": 3 * second,
        "events": {"at": [2 * second, 3 * second], "kind": "tt", "bytes": [1, 1]}});
    for fields in [warm, failed, late] {
        assert!(tracer.add(&record(1, fields)));
    }
    let bytes = tracer.metrics(Nanos(4 * second)).unwrap();
    let mut request = MetricsRequest::decode(&*bytes).unwrap();
    let metrics = request.resource_metrics.remove(0).scope_metrics.remove(0).metrics;
    let seen: Vec<_> = metrics
        .iter()
        .flat_map(|metric| {
            let points = metric.histogram.as_ref().unwrap().data_points.iter();
            points.map(|point| (&*metric.name, point.count, point.sum.unwrap()))
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("gen_ai.client.operation.duration", 1, 2.0),
            ("gen_ai.client.operation.duration", 1, 9e-9),
            ("gen_ai.client.token.usage", 2, 6.0),
            ("gen_ai.client.token.usage", 2, 4.0),
            ("gen_ai.client.operation.time_to_first_chunk", 1, 1.0),
            ("gen_ai.client.operation.time_per_output_chunk", 1, 1.0),
        ]
    );
    for point in metrics.iter().flat_map(|metric| &metric.histogram.as_ref().unwrap().data_points) {
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
    }
}

#[test]
fn what_a_collector_did_not_take_is_read_from_its_reply() {
    // Field 1, of field 1: 5; of field 2: "no".
    let reply = [0x0a, 6, 0x08, 5, 0x12, 2, b'n', b'o'];
    assert_eq!(rejected(&reply), (5, "no".to_owned()));
    assert_eq!(rejected(b""), (0, String::new()));
    assert_eq!(rejected(b"\xff\xff"), (0, String::new()));
}
