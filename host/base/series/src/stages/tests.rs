//! Pages of servers that prefill and of servers that decode, as their engines write them.

use super::*;
use crate::{Encoder, Head};

const SECOND: u64 = 1_000_000_000;

/// The lines of a histogram that has seen `requests` requests with this mean.
fn histogram(name: &str, labels: &str, requests: u64, mean: f64) -> String {
    let sum = requests as f64 * mean;
    format!(
        "# TYPE {name} histogram\n\
         {name}_bucket{{{labels},le=\"1.0\"}} {requests}.0\n\
         {name}_bucket{{{labels},le=\"+Inf\"}} {requests}.0\n\
         {name}_count{{{labels}}} {requests}.0\n\
         {name}_sum{{{labels}}} {sum}\n"
    )
}

/// A page, by the number of requests that its server has had.
type Page = fn(u64) -> String;

const OF_VLLM: &str = "engine=\"0\",model_name=\"qwen\"";

fn vllm_prefills(requests: u64) -> String {
    histogram("vllm:request_queue_time_seconds", OF_VLLM, requests, 0.020)
        + &histogram("vllm:request_prefill_time_seconds", OF_VLLM, requests, 0.050)
        + &histogram("vllm:nixl_xfer_time_seconds", OF_VLLM, 0, 0.0)
}

fn vllm_decodes(requests: u64) -> String {
    // Its queue holds the transfer.
    histogram("vllm:request_queue_time_seconds", OF_VLLM, requests, 0.015)
        + &histogram("vllm:request_prefill_time_seconds", OF_VLLM, requests, 0.007)
        + &histogram("vllm:nixl_xfer_time_seconds", OF_VLLM, requests, 0.004)
}

fn sglang(role: &str, more: &str) -> String {
    format!("engine_type=\"{role}\",model_name=\"qwen\",tp_rank=\"0\"{more}")
}

fn sglang_prefills(requests: u64) -> String {
    let stage = |stage: &str, mean: f64| {
        let labels = sglang("prefill", &format!(",stage=\"{stage}\""));
        histogram("sglang:per_stage_req_latency_seconds", &labels, requests, mean)
    };
    let own = sglang("prefill", "");
    stage("prefill_bootstrap", 0.003)
        + &stage("prefill_forward", 0.040)
        + &stage("prefill_transfer_kv_cache", 0.008)
        + &histogram("sglang:queue_time_seconds", &own, requests, 0.017)
        + &histogram("sglang:kv_transfer_latency_ms", &own, requests, 6.0)
}

fn sglang_decodes(requests: u64) -> String {
    let labels = sglang("decode", ",stage=\"decode_transferred\"");
    histogram("sglang:per_stage_req_latency_seconds", &labels, requests, 0.055)
        + &histogram("sglang:queue_time_seconds", &sglang("decode", ""), requests, 0.002)
}

/// The stages over the second and the third page of these servers, which had requests before.
fn stages(pages: &[Page]) -> Option<Stages> {
    let mut encoder = Encoder::new(Head {
        targets: (0..pages.len()).map(|n| format!("http://{n}")).collect(),
        every_ns: Nanos(SECOND),
    });
    let mut recording = Recording::default();
    recording.enter(encoder.head());
    for (place, requests) in (1..).zip([100, 130, 190]) {
        let at = Nanos(place * SECOND);
        for (target, page) in (0..).zip(pages) {
            let page = page(requests);
            for entry in encoder.page(target, (at, at), &page) {
                recording.enter(entry);
            }
        }
    }
    let over = (Nanos(2 * SECOND), Nanos(3 * SECOND));
    recording.figures(over).unwrap().stages
}

fn shown(stages: &Stages) -> Vec<(&'static str, f64)> {
    let stages = stages.stages.iter();
    stages
        .map(|staged| {
            assert!((staged.count - 60.0).abs() < 1e-6, "{staged:?}");
            (staged.stage.name(), (staged.mean_ms * 1e6).round() / 1e6)
        })
        .collect()
}

#[test]
fn stages_of_prefill_and_decode_servers() {
    for pages in [[vllm_prefills as Page, vllm_decodes], [vllm_decodes, vllm_prefills]] {
        let found = stages(&pages).unwrap();
        let expected = [
            ("prefill-queue", 20.0),
            ("prefill", 50.0),
            ("transfer", 4.0),
            ("decode-queue", 11.0),
            ("first-step", 7.0),
        ];
        assert_eq!(shown(&found), expected);
        let place = pages.iter().position(|page| page(1) == vllm_decodes(1));
        assert_eq!(found.decode_servers, [format!("http://{}", place.unwrap())]);
        assert_eq!(found.prefill_servers.len(), 1);
    }
    let found = stages(&[sglang_prefills, sglang_decodes]).unwrap();
    let expected =
        [("prefill-queue", 20.0), ("prefill", 40.0), ("transfer", 8.0), ("decode-queue", 2.0)];
    assert_eq!(shown(&found), expected);
    assert_eq!(
        found.stages[0].metrics,
        [
            "sglang:per_stage_req_latency_seconds{stage=\"prefill_bootstrap\"}",
            "sglang:queue_time_seconds"
        ]
    );
}

#[test]
fn stages_of_servers_without_a_role() {
    let found = stages(&[vllm_prefills, vllm_prefills]).unwrap();
    assert_eq!(found.prefill_servers, Vec::<String>::new());
    let names: Vec<_> = found.stages.iter().map(|it| (it.stage, it.mean_ms)).collect();
    assert_eq!(names[0].0, Stage::Queue);
    assert!((names[0].1 - 20.0).abs() < 1e-6 && (names[1].1 - 50.0).abs() < 1e-6);
    assert_eq!(stages(&[sglang_prefills]), None);
    // Two engines are no pair.
    assert_eq!(stages(&[vllm_prefills, sglang_decodes]), None);
}
