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

const METRICS: &str = "\
vllm:num_requests_running gauge Number of requests in model execution batches.
vllm:num_requests_waiting gauge Number of requests waiting to be processed.
vllm:prefix_cache_queries_total counter Prefix cache queries, in terms of number of queried tokens.
vllm:prefix_cache_hits_total counter Prefix cache hits, in terms of number of cached tokens.
vllm:num_preemptions_total counter Cumulative number of preemption from the engine.
vllm:prompt_tokens_total counter Number of prefill tokens processed.
vllm:generation_tokens_total counter Number of generation tokens processed.
vllm:request_success_total counter Count of successfully processed requests.
vllm:kv_cache_usage_perc gauge KV-cache usage. 1 means 100 percent usage.
sglang:prompt_tokens_total counter Number of prefill tokens processed.
sglang:generation_tokens_total counter Number of generation tokens processed.
sglang:cached_tokens_total counter Number of cached prompt tokens.
sglang:num_requests_total counter Number of requests processed.
sglang:num_aborted_requests_total counter Number of requests aborted.
sglang:num_running_reqs gauge The number of running requests.
sglang:num_queue_reqs gauge The number of requests in the waiting queue.
sglang:num_retracted_requests_total counter Total number of retracted requests.
sglang:cache_hit_rate gauge The prefix cache hit rate.
sglang:token_usage gauge The token usage.
http_requests_total counter Total number of requests by method, status and handler.";

pub(super) fn page(engine: &Engine) -> String {
    let model = engine.script.listed_models()[0]
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let scheduler = Scheduler::new(engine);
    let mut page = String::new();
    vllm(engine, &scheduler, &model, &mut page);
    sglang(engine, &scheduler, &model, &mut page);
    let http = lock(&engine.counters.http);
    let series = http.iter().map(|((handler, method, class), count)| {
        let labels = format!("handler=\"{handler}\",method=\"{method}\",status=\"{class}xx\"");
        (labels, *count as f64)
    });
    put(&mut page, "http_requests_total", series);
    page
}

fn put(page: &mut String, name: &str, series: impl IntoIterator<Item = (String, f64)>) {
    let mut lines = METRICS.lines();
    let row = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.split_once(' '));
    let (kind, help) = row.unwrap_or_default();
    // Writing to memory has no way to fail.
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in series {
        let _ = writeln!(page, "{name}{{{labels}}} {value:?}");
    }
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

fn vllm(engine: &Engine, scheduler: &Scheduler, model: &str, page: &mut String) {
    let counters = &engine.counters;
    let labels = format!("engine=\"0\",model_name=\"{model}\"");
    let mut one = |name: &str, value: f64| put(page, name, [(labels.clone(), value)]);
    one("vllm:num_requests_running", scheduler.running);
    one("vllm:num_requests_waiting", scheduler.waiting);
    one("vllm:prefix_cache_queries_total", count(&counters.prefix_queries));
    one("vllm:prefix_cache_hits_total", count(&counters.prefix_hits));
    one("vllm:num_preemptions_total", scheduler.preemptions);
    one("vllm:prompt_tokens_total", count(&counters.prompt_tokens));
    one("vllm:generation_tokens_total", count(&counters.generation_tokens));
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
    put(page, "vllm:request_success_total", ended);
    if let Some(taken) = scheduler.taken {
        put(page, "vllm:kv_cache_usage_perc", [(labels, taken)]);
    }
}

fn sglang(engine: &Engine, scheduler: &Scheduler, model: &str, page: &mut String) {
    let counters = &engine.counters;
    // Metrics of the tokenizer's process have one label, metrics of the scheduler also have its
    // rank.
    let labels = format!("model_name=\"{model}\"");
    let of_scheduler =
        format!("engine_type=\"unified\",model_name=\"{model}\",pp_rank=\"0\",tp_rank=\"0\"");
    let (queries, hits) = (count(&counters.prefix_queries), count(&counters.prefix_hits));
    let finished = count(&counters.stop) + count(&counters.length);
    let cached = format!("cache_source=\"device\",{labels}");
    let mut one = |name: &str, labels: &str, value| put(page, name, [(labels.to_owned(), value)]);
    one("sglang:prompt_tokens_total", &labels, count(&counters.prompt_tokens));
    one("sglang:generation_tokens_total", &labels, count(&counters.generation_tokens));
    one("sglang:cached_tokens_total", &cached, hits);
    one("sglang:num_requests_total", &labels, finished);
    one("sglang:num_aborted_requests_total", &labels, count(&counters.abort));
    one("sglang:num_running_reqs", &of_scheduler, scheduler.running);
    one("sglang:num_queue_reqs", &of_scheduler, scheduler.waiting);
    one("sglang:num_retracted_requests_total", &of_scheduler, scheduler.preemptions);
    if queries > 0.0 {
        one("sglang:cache_hit_rate", &of_scheduler, hits / queries);
    }
    if let Some(taken) = scheduler.taken {
        one("sglang:token_usage", &of_scheduler, taken);
    }
}
