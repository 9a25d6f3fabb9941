//! The page for Prometheus, with vLLM's and SGLang's metric names.
//!
//! A real engine writes one family; the mock writes both, since it speaks both dialects. Metrics of
//! things it does not have are left out; the usage of the KV cache is the share of slots in use, if
//! the script limits them. With a batch, the gauges of the scheduler show the batch.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::batch::Load;
use super::engine::Engine;
use super::truth::lock;

/// A metric's name, kind, help, and its series: labels and value.
type Family<'a> = (&'a str, &'a str, &'a str, Vec<(String, f64)>);

pub(super) fn page(engine: &Engine) -> String {
    let model = engine.script.listed_models()[0]
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let scheduler = Scheduler::new(engine);
    let mut families = vllm(engine, &scheduler, &model);
    families.extend(sglang(engine, &scheduler, &model));
    families.push(http(engine));
    let mut page = String::new();
    for (name, kind, help, series) in families {
        // Writing to memory has no way to fail.
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in series {
            let _ = writeln!(page, "{name}{{{labels}}} {value:?}");
        }
    }
    page
}

fn count(counter: &AtomicU64) -> f64 {
    counter.load(Relaxed) as f64
}

struct Scheduler {
    running: f64,
    waiting: f64,
    preemptions: f64,
    /// The share of the KV cache or of slots in use, if they are limited.
    taken: Option<f64>,
}

impl Scheduler {
    fn new(engine: &Engine) -> Self {
        if let (Some(batch), Some(parameters)) = (&engine.batch, &engine.script.batching) {
            let Load { running, waiting, preemptions, kv_usage } = batch.load();
            return Scheduler {
                running: running as f64,
                waiting: waiting as f64,
                preemptions: preemptions as f64,
                taken: (parameters.kv > 0).then_some(kv_usage),
            };
        }
        let running = count(&engine.counters.running);
        let places = engine.script.max_concurrency;
        Scheduler {
            running,
            waiting: count(&engine.counters.waiting),
            preemptions: 0.0,
            taken: places.map(|places| running / places.get() as f64),
        }
    }
}

fn vllm<'a>(engine: &Engine, scheduler: &Scheduler, model: &str) -> Vec<Family<'a>> {
    let counters = &engine.counters;
    let labels = format!("engine=\"0\",model_name=\"{model}\"");
    let one = |value: f64| vec![(labels.clone(), value)];
    let ended = [
        ("stop", &counters.stop),
        ("length", &counters.length),
        ("abort", &counters.abort),
        ("error", &counters.error),
    ];
    let ended = ended.map(|(reason, counter)| {
        let labels = format!("engine=\"0\",finished_reason=\"{reason}\",model_name=\"{model}\"");
        (labels, count(counter))
    });
    let mut families = vec![
        (
            "vllm:num_requests_running",
            "gauge",
            "Number of requests in model execution batches.",
            one(scheduler.running),
        ),
        (
            "vllm:num_requests_waiting",
            "gauge",
            "Number of requests waiting to be processed.",
            one(scheduler.waiting),
        ),
        (
            "vllm:prefix_cache_queries_total",
            "counter",
            "Prefix cache queries, in terms of number of queried tokens.",
            one(count(&counters.prefix_queries)),
        ),
        (
            "vllm:prefix_cache_hits_total",
            "counter",
            "Prefix cache hits, in terms of number of cached tokens.",
            one(count(&counters.prefix_hits)),
        ),
        (
            "vllm:num_preemptions_total",
            "counter",
            "Cumulative number of preemption from the engine.",
            one(scheduler.preemptions),
        ),
        (
            "vllm:prompt_tokens_total",
            "counter",
            "Number of prefill tokens processed.",
            one(count(&counters.prompt_tokens)),
        ),
        (
            "vllm:generation_tokens_total",
            "counter",
            "Number of generation tokens processed.",
            one(count(&counters.generation_tokens)),
        ),
        (
            "vllm:request_success_total",
            "counter",
            "Count of successfully processed requests.",
            ended.to_vec(),
        ),
    ];
    if let Some(taken) = scheduler.taken {
        families.push((
            "vllm:kv_cache_usage_perc",
            "gauge",
            "KV-cache usage. 1 means 100 percent usage.",
            one(taken),
        ));
    }
    families
}

fn sglang<'a>(engine: &Engine, scheduler: &Scheduler, model: &str) -> Vec<Family<'a>> {
    let counters = &engine.counters;
    // Metrics of the tokenizer's process have one label, metrics of the scheduler also have its
    // rank.
    let labels = format!("model_name=\"{model}\"");
    let of_scheduler =
        format!("engine_type=\"unified\",model_name=\"{model}\",pp_rank=\"0\",tp_rank=\"0\"");
    let one = |value: f64| vec![(labels.clone(), value)];
    let scheduled = |value: f64| vec![(of_scheduler.clone(), value)];
    let (queries, hits) = (count(&counters.prefix_queries), count(&counters.prefix_hits));
    let finished = count(&counters.stop) + count(&counters.length);
    let mut families = vec![
        (
            "sglang:prompt_tokens_total",
            "counter",
            "Number of prefill tokens processed.",
            one(count(&counters.prompt_tokens)),
        ),
        (
            "sglang:generation_tokens_total",
            "counter",
            "Number of generation tokens processed.",
            one(count(&counters.generation_tokens)),
        ),
        (
            "sglang:cached_tokens_total",
            "counter",
            "Number of cached prompt tokens.",
            vec![(format!("cache_source=\"device\",model_name=\"{model}\""), hits)],
        ),
        ("sglang:num_requests_total", "counter", "Number of requests processed.", one(finished)),
        (
            "sglang:num_aborted_requests_total",
            "counter",
            "Number of requests aborted.",
            one(count(&counters.abort)),
        ),
        (
            "sglang:num_running_reqs",
            "gauge",
            "The number of running requests.",
            scheduled(scheduler.running),
        ),
        (
            "sglang:num_queue_reqs",
            "gauge",
            "The number of requests in the waiting queue.",
            scheduled(scheduler.waiting),
        ),
        (
            "sglang:num_retracted_requests_total",
            "counter",
            "Total number of retracted requests.",
            scheduled(scheduler.preemptions),
        ),
    ];
    if queries > 0.0 {
        let help = "The prefix cache hit rate.";
        families.push(("sglang:cache_hit_rate", "gauge", help, scheduled(hits / queries)));
    }
    if let Some(taken) = scheduler.taken {
        families.push(("sglang:token_usage", "gauge", "The token usage.", scheduled(taken)));
    }
    families
}

fn http<'a>(engine: &Engine) -> Family<'a> {
    let http = lock(&engine.counters.http);
    let series = http.iter().map(|((handler, method, class), count)| {
        let labels = format!("handler=\"{handler}\",method=\"{method}\",status=\"{class}xx\"");
        (labels, *count as f64)
    });
    let help = "Total number of requests by method, status and handler.";
    ("http_requests_total", "counter", help, series.collect())
}
