//! Starts and salts against AIPerf's own.

use super::*;
use serde_json::Value;

#[test]
fn starts_and_salts_are_aiperfs() {
    let file: Value = serde_json::from_str(include_str!("aiperf.json")).unwrap();
    let seed = file["seed"].as_u64().unwrap();
    for (lane, expected) in (0..).zip(file["lanes"].as_array().unwrap()) {
        let trace = expected[0].as_str().unwrap();
        let length = match trace {
            "alpha" => 32_500,
            "beta" => 12_150,
            _ => 24_200,
        };
        let at = start([0.0, 1.0], Nanos(length * 1_000_000), (seed, trace, lane));
        let expected = Nanos::from_millis_f64(expected[1].as_f64().unwrap());
        assert!(at.0.abs_diff(expected.0) <= 1, "{lane}: {at:?}, not {expected:?}");
    }
    // Without a range, nothing is drawn.
    assert_eq!(start([0.5, 0.5], Nanos(100), (1, "t", 0)), Nanos(50));
    let run = file["run"].as_str().unwrap();
    for request in file["requests"].as_array().unwrap() {
        let (lane, pass) = (request[1].as_u64().unwrap(), request[2].as_u64().unwrap());
        let trace = request[3].as_str().unwrap().split("::").next().unwrap();
        let replay = (pass, u32::try_from(lane).unwrap(), trace);
        let text = format!("[rid:{}]\n\n", request[9].as_str().unwrap());
        assert_eq!(salt(LaneSalt::Session, run, replay), Some((text, None)));
    }
}
