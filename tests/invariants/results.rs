//! Results contain the measurements, no more, and in the promised format.

use std::collections::BTreeMap;

use model::exchange::{Class, Exchange};
use report::{csv, json, schema};
use result::summary::Summary;

use crate::support::trial::{RunResult, Trial};

const SCENARIO: &str = r#"
target.model = "mock"
backend.plugin = "backends/vllm.wasm"
dataset.plugin = "datasets/random.wasm"
dataset.config = { like = "vllm", input-len = 40, output-len = 11 }
load = { requests = 20, arrival = "constant", rate = 10.0, warmup = 2 }
timeouts.token-gap = "1s"
"#;

/// A run with every kind of outcome: successes, several failures, a cap, a warmup, reasoning.
fn mixed() -> Trial {
    Trial::new(SCENARIO)
        .with("load.max-in-flight = 2\nload.duration = '2s'\nbackend.config.route = 'chat'")
        .against("reasoning-tokens = 3")
        .against("[[fault]]\nkind = 'http-error'\nrequests = [4]")
        .against("[[fault]]\nkind = 'cut'\nafter-tokens = 3\nrequests = [5]")
        .against("[[fault]]\nkind = 'stall'\nafter-tokens = 3\nrequests = [6]")
}

/// The table as rows of cells by column name.
fn table(ran: &RunResult) -> Vec<BTreeMap<String, String>> {
    let mut text = Vec::new();
    csv::csv(&mut text, &ran.facts, &ran.exchanges).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}

/// (8) Absent is not zero: a value that a whole reply lacks has no line, no key, an empty cell.
#[tokio::test(start_paused = true)]
async fn figures_without_a_measurement_are_absent() {
    let whole = Trial::new(SCENARIO).with("request.stream = false").run().await;
    assert_eq!(whole.failures(), []);
    let json = json::json(&whole.summary).unwrap();
    assert!(!json.contains("null"), "{json}");
    let figures = whole.text.split("Not measured").next().unwrap();
    let metrics: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (metric, line) in [("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL")] {
        assert!(metrics["metrics"].get(metric).is_none(), "{json}");
        assert!(!figures.contains(line), "{}", whole.text);
        assert!(whole.text.contains(line), "its absence is reported\n{}", whole.text);
    }
    for row in table(&whole) {
        for empty in ["ttft-ms", "ttft-from-due-ms", "tpot-ms", "granted-ms", "queue-ms"] {
            assert_eq!(row[empty], "", "{empty}");
        }
        assert_eq!(row["e2e-ms"].parse::<f64>().unwrap(), 320.0);
    }
}

/// (8) A failed request has no figures for stages that it did not reach, nor a place in statistics.
#[tokio::test(start_paused = true)]
async fn failures_leave_empty_cells() {
    let ran = mixed().run().await;
    let rows = table(&ran);
    let row = |outcome: &str| rows.iter().find(|row| row["outcome"] == outcome).unwrap();
    let refused = row(Class::HttpStatus.name());
    for empty in ["ttft-ms", "e2e-ms", "tpot-ms", "output-tokens", "finish"] {
        assert_eq!(refused[empty], "", "{empty}: {refused:?}");
    }
    let not_sent = row(Class::NotSent.name());
    for empty in ["sent-ms", "granted-ms", "headers-ms", "ended-ms", "send-lag-ms", "status"] {
        assert_eq!(not_sent[empty], "", "{empty}: {not_sent:?}");
    }
    assert_ne!(not_sent["due-ms"], "");
    let answered = ran.summary.requests.successful;
    for metric in ["ttft", "e2e", "tpot", "output-tokens"] {
        assert_eq!(ran.everywhere(metric).1, answered, "{metric}");
    }
    let all_refused = Trial::new(SCENARIO).against("[[fault]]\nkind = 'http-error'").run().await;
    let json = json::json(&all_refused.summary).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(value["tokens"]["output"].get("total").is_none(), "{json}");
    assert!(value["metrics"].get("e2e").is_none(), "{json}");
    assert!(!all_refused.text.contains("generated tokens:"), "{}", all_refused.text);
}

/// (9) Percentiles come from the samples: `np.percentile([320, 320, 440, 440, 560], 99)` is 555.2,
/// and percentiles of two halves together are not made from the percentiles of each.
#[tokio::test(start_paused = true)]
async fn percentiles_come_from_samples() {
    let over = "load.requests = 5\nload.max-in-flight = 2\nreport.percentiles = [25, 50, 90, 99]";
    let ran = Trial::new(SCENARIO).with(over).run().await;
    let from_due = ran.metric("e2e-from-due");
    for (percent, wanted) in [(25.0, 320.0), (50.0, 440.0), (90.0, 512.0), (99.0, 555.2)] {
        let got = from_due.percentile(percent).unwrap();
        assert!((got - wanted).abs() < 1e-9, "p{percent}: {got}");
    }
    let measured: Vec<&Exchange> = ran.measured().collect();
    let p99 = |exchanges: &[&Exchange]| {
        let summary = Summary::new(&ran.facts, exchanges.iter().copied());
        summary.metric("e2e-from-due").unwrap().percentile(99.0).unwrap()
    };
    let (first, second) = measured.split_at(2);
    let mean_of_both = (p99(first) + p99(second)) / 2.0;
    assert!((mean_of_both - 555.2).abs() > 50.0, "{mean_of_both}");
    let backwards: Vec<&Exchange> = measured.iter().rev().copied().collect();
    assert_eq!(p99(&backwards), p99(&measured));
}

/// (12) The files that a run writes follow the shipped schemas.
#[tokio::test(start_paused = true)]
async fn results_agree_with_their_schemas() {
    let ran = mixed().run().await;
    assert!(ran.summary.requests.failures.keys().count() >= 4, "{}", ran.text);
    let validator = |name: &str| {
        let path =
            format!("{}/../show/report/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let shipped = std::fs::read_to_string(path).unwrap();
        let current = schema::schema(name).unwrap();
        assert!(
            shipped == current,
            "host/show/report/schemas/{name}.schema.json is not the schema of what a run writes: BLESS=1 writes it anew"
        );
        jsonschema::validator_for(&serde_json::from_str(&shipped).unwrap()).unwrap()
    };
    let check = |name: &str, value: &serde_json::Value| {
        let errors: Vec<String> = validator(name)
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, [""; 0]);
    };
    let summary = std::fs::read_to_string(ran.folder().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    check("summary", &summary);
    assert_eq!(serde_json::from_value::<Summary>(summary).unwrap(), ran.summary);
    for exchange in &ran.exchanges {
        check("exchange", &serde_json::to_value(exchange).unwrap());
    }
    let broken = serde_json::json!({ "index": "first" });
    assert!(!validator("exchange").is_valid(&broken));
}
