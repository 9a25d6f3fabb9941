//! The result file of `vllm bench serve --save-result` (`--save-detailed` where detailed), version
//! 0.32: its keys, in its order, with its units: times of requests in seconds, statistics in
//! milliseconds.
//!
//! It leaves out the keys that our runs have no data for: `rps_change_events`, `probe_*`,
//! `spec_decode_*`, `diffusion_*` and `ramp_up_*`, and `rtfx`, which is about audio. It always
//! contains the latencies with and without the client's queueing, which vLLM writes on request
//! only. The run's metadata (`--metadata`, `[about.notes]`) is in the place of vLLM's `--metadata`.
//! A failed request has zeros in its places and a message in `errors`, as in vLLM's own file.

use super::{Compatible, Detail, Object, Request};
use model::arrival::Arrival;

const BACKENDS: [(&str, &str, &str); 3] = [
    ("openai", "completions", "openai"),
    ("openai", "chat", "openai-chat"),
    ("vllm", "chat", "openai-chat"),
];

pub fn json(run: &Compatible<'_>) -> String {
    let Compatible { reported, figures, .. } = run;
    let (plan, summary) = (&reported.plan, &reported.summary);
    let mut object = Object::default();
    object.measured("date", reported.status.as_ref().and_then(|s| date(&s.ended)));
    let backend = run.backend(&BACKENDS);
    object.field("endpoint_type", &backend);
    object.field("backend", &backend);
    object.field("label", None::<&str>);
    object.field("model_id", plan.target.model());
    let tokenizer = Some(&plan.tokenizer).filter(|tokenizer| !tokenizer.approximate);
    object.field("tokenizer_id", tokenizer.map(|tokenizer| &tokenizer.name));
    object.field("num_prompts", plan.held_requests().unwrap_or(figures.total));
    for (name, note) in &plan.about.notes {
        object.field(name, note);
    }
    match run.request_rate() {
        rate if rate.is_finite() => object.field("request_rate", rate),
        _ => object.field("request_rate", "inf"),
    }
    object.measured("burstiness", burstiness(&plan.load.arrival));
    object.field("max_concurrency", summary.run.max_in_flight);

    object.measured("duration", figures.duration_s);
    object.field("completed", figures.completed);
    object.field("failed", figures.total - figures.completed);
    object.measured("total_input_tokens", figures.input);
    object.measured("total_output_tokens", figures.output);
    object.measured("request_throughput", figures.per_s(Some(figures.completed)));
    let good = figures.good.as_ref().map(|good| good.all);
    object.field("request_goodput", figures.per_s(good));
    object.measured("output_throughput", figures.per_s(figures.output));
    object.measured("total_token_throughput", figures.per_s(figures.tokens()));
    requests(&mut object, &run.requests);
    object.measured("max_output_tokens_per_s", figures.peak_tokens.map(|tokens| tokens as f64));
    object.measured("max_concurrent_requests", figures.peak_requests);
    let capped = summary.run.max_in_flight.is_some();
    let queued = capped && summary.run.request_rate.is_some();
    for (name, distribution, held) in [
        ("ttft", &figures.ttft, true),
        ("tpot", &figures.tpot, true),
        ("itl", &figures.itl, true),
        ("e2el", &figures.e2e, true),
        ("client_queue_time", &figures.queue, capped),
        ("e2el_including_client_queue", &figures.e2e_queued, queued),
    ] {
        if let (Some(distribution), true) = (distribution, held) {
            super::statistics(&mut object, name, distribution, &plan.percentiles);
        }
    }
    object.finish()
}

fn requests(object: &mut Object, requests: &[Request]) {
    let details: Vec<&Detail> = requests.iter().filter_map(|r| r.detail.as_deref()).collect();
    let detailed = !details.is_empty();
    let times = |of: fn(&Request) -> f64| requests.iter().map(of).collect::<Vec<f64>>();
    if detailed {
        super::lengths_and_gaps(object, &details);
    }
    object.field("latencies", times(|request| request.latency));
    if detailed {
        object.field("start_times", times(|request| request.start));
    }
    object.field("queue_times", times(|request| request.queued));
    if detailed {
        super::texts_and_errors(object, &details);
    }
}

/// The date as vLLM writes it, but in UTC: `20260102-030405`.
fn date(ended: &str) -> Option<String> {
    let ended: jiff::Timestamp = ended.parse().ok()?;
    Some(ended.strftime("%Y%m%d-%H%M%S").to_string())
}

/// The burstiness on vLLM's scale, if vLLM has such arrivals; 1 if all come at once.
fn burstiness(arrival: &Arrival) -> Option<f64> {
    match arrival {
        Arrival::Inf | Arrival::Closed { .. } | Arrival::Poisson { .. } => Some(1.0),
        Arrival::Gamma { burstiness, .. } => Some(*burstiness),
        _ => None,
    }
}
