//! What a run asks of requests, as it goes over the wire.

use serde_json::{Value, json};

use super::BASE;
use crate::support::raw::Raw;
use crate::support::trial::Trial;

/// The bodies of the requests that were answered, in the order in which they came.
fn bodies(raw: &Raw) -> Vec<Value> {
    let requests = raw.requests();
    let bodies = requests.iter().map(|request| {
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    });
    bodies.collect()
}

const ASKED: &str = r#"
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
async fn what_is_asked_of_requests_is_in_their_bodies() {
    let raw = Raw::with([]);
    let ran = Trial::of(BASE).with(ASKED).against_raw(&raw).run().await;
    assert!(ran.ended.is_ok());
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
