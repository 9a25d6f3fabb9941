//! Whole runs on virtual time against the mock engine in memory, through real components and a
//! real HTTP client and server: exact numbers.

mod agentic;
mod arrivals;
mod aside;
mod batching;
mod comparisons;
mod connections;
mod counts;
mod dialects;
mod engines;
mod faults;
mod figures;
mod loads;
mod outcomes;
mod patience;
mod realtime;
mod sessions;
mod settings;
mod shipped;
mod timings;
mod transcriptions;
mod wire;

use result::finding::Id;

use crate::support::trial::{RunResult, Trial};

/// Prompts of 40 tokens for answers of 11, so a reply takes 120 + 10 × 20 = 320 ms.
pub const BASE: &str = r#"
[target]
model = "mock"
[backend]
plugin = "backends/vllm.wasm"
[dataset]
plugin = "datasets/random.wasm"
[dataset.config]
like = "vllm"
input-len = 40
output-len = 11
[load]
requests = 5
arrival = "constant"
rate = 10.0
warmup = 0
"#;

fn base() -> Trial {
    Trial::new(BASE)
}

/// A trial of [`BASE`] with another backend.
fn with_backend(name: &str) -> Trial {
    base().plugin(&format!("backends/{name}.wasm"))
}

fn has_finding(ran: &RunResult, id: Id) -> bool {
    ran.summary.findings.iter().any(|finding| finding.id == id)
}

/// Equal but for the last bits of a division.
#[track_caller]
fn assert_close(got: Option<f64>, wanted: f64) {
    let got = got.expect("it was measured");
    assert!((got - wanted).abs() <= 1e-12 * wanted.abs(), "got {got}, wanted {wanted}");
}
