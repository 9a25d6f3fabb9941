//! The equivalence of metrics of different servers.
//!
//! Each name has sources in order, and the first source that a page has counts. So a server that
//! writes a figure under an old and a new name, or in two families, has it once.

model::words! {
    /// The figures of servers over time, under names that all servers share.
    pub enum Name {
        /// Requests being worked on.
        Running = "running",
        /// Requests that wait for the scheduler.
        Waiting = "waiting",
        /// Share of the cache for keys and values in use, from 0 to 1.
        KvUsage = "kv-usage",
        /// Share of the prompts' tokens that the prefix cache had, from 0 to 1.
        CacheHitRate = "cache-hit-rate",
        /// Prompt tokens that the cache in the devices' memory had, per second.
        DeviceCached = "device-cached-tokens",
        /// Prompt tokens that the cache in the hosts' memory had, per second.
        HostCached = "host-cached-tokens",
        /// Prompt tokens that a storage behind the hosts had, per second.
        StorageCached = "storage-cached-tokens",
        /// Prompt tokens that caches outside the engine had, per second.
        ExternalCached = "external-cached-tokens",
        /// Share of the tokens looked up in caches outside the engine that they had, from 0 to 1.
        /// The engine looks up only tokens that its own cache does not have.
        ExternalHitRate = "external-hits-of-external-queries",
        /// Bytes of keys and values moved to the devices from other memory, per second.
        KvLoaded = "kv-loaded-bytes",
        /// Bytes of keys and values moved from the devices to other memory, per second.
        KvStored = "kv-stored-bytes",
        /// Requests that were begun and put back, per second.
        Preemptions = "preemptions",
        /// Tokens that a step of the engine computes.
        BatchTokens = "batch-tokens",
        /// Share of drafted tokens that the model accepted, from 0 to 1.
        Acceptance = "acceptance",
        /// Tokens of prompts, per second.
        InputTokens = "input-tokens",
        /// Tokens of answers, per second.
        OutputTokens = "output-tokens",
        /// Time that requests waited for the scheduler, in milliseconds, by the time of their first
        /// token or their end.
        QueueTime = "queue-time",
        /// Time that their prompts took, in milliseconds.
        PrefillTime = "prefill-time",
        /// Time that the transfer of keys and values took between machines, in milliseconds.
        TransferTime = "transfer-time",
        /// Time to first token as the server sees it, in milliseconds.
        ServerTtft = "server-ttft",
        /// Requests whose keys and values are under way between machines.
        Transferring = "transferring",
        /// Requests that a full server refused, per second.
        Refused = "refused",
    }
}

impl Name {
    /// The unit of its values, or nothing for a share.
    pub fn unit(self) -> &'static str {
        match self {
            Name::KvUsage | Name::CacheHitRate | Name::ExternalHitRate | Name::Acceptance => "",
            Name::Running | Name::Waiting | Name::Transferring => "requests",
            Name::Preemptions | Name::Refused => "requests/s",
            Name::BatchTokens => "tokens",
            Name::InputTokens
            | Name::OutputTokens
            | Name::DeviceCached
            | Name::HostCached
            | Name::StorageCached
            | Name::ExternalCached => "tok/s",
            Name::KvLoaded | Name::KvStored => "B/s",
            Name::QueueTime | Name::PrefillTime | Name::TransferTime | Name::ServerTtft => "ms",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// Gauges, added up over models and processes.
    Sum(&'static [&'static str]),
    /// A gauge; the largest counts.
    Largest(&'static str),
    /// A gauge; the mean counts.
    Mean(&'static str),
    Count(&'static str),
    /// The series of a counter with this value of a label.
    Labelled(&'static str, (&'static str, &'static str)),
    /// A counter as a share of another that contains it.
    Share(&'static str, &'static str),
    /// A counter as a share of itself and another together.
    Part(&'static str, &'static str),
    /// A histogram, and the factor from its unit to milliseconds.
    Time(&'static str, f64),
    Size(&'static str),
}

impl Source {
    pub(crate) fn metrics(&self) -> Vec<&'static str> {
        match self {
            Source::Sum(names) => names.to_vec(),
            Source::Largest(name)
            | Source::Mean(name)
            | Source::Count(name)
            | Source::Labelled(name, _)
            | Source::Time(name, _)
            | Source::Size(name) => vec![name],
            Source::Share(part, whole) | Source::Part(part, whole) => vec![part, whole],
        }
    }
}

use Source::{Count, Labelled, Largest, Mean, Part, Share, Size, Sum, Time};

/// Milliseconds in a second, the unit of nearly all histograms of times.
const SECONDS: f64 = 1_000.0;

/// SGLang's counter of cached prompt tokens, by `cache_source`.
const SGLANG_CACHED: &str = "sglang:cached_tokens_total";

/// The sources of a name: vLLM's (`vllm/v1/metrics/loggers.py` and its connectors'),
/// SGLang's (`sglang/srt/metrics/collector.py`), `trtllm-serve`'s
/// (`tensorrt_llm/metrics/collector.py`), llama.cpp's (`tools/server/README.md`), TGI's
/// (`docs/source/reference/metrics.md`) and LMDeploy's (`lmdeploy/metrics/loggers.py`).
pub(crate) fn sources(name: Name) -> &'static [Source] {
    match name {
        Name::Running => &[
            Sum(&["vllm:num_requests_running"]),
            Sum(&["sglang:num_running_reqs"]),
            Sum(&["trtllm_num_requests_running"]),
            Sum(&["llamacpp:requests_processing"]),
            Sum(&["tgi_batch_current_size"]),
            Sum(&["lmdeploy:num_requests_running"]),
        ],
        Name::Waiting => &[
            Sum(&["vllm:num_requests_waiting"]),
            Sum(&["sglang:num_queue_reqs"]),
            Sum(&["trtllm_num_requests_waiting"]),
            Sum(&["llamacpp:requests_deferred"]),
            Sum(&["tgi_queue_size"]),
            Sum(&["lmdeploy:num_requests_waiting"]),
        ],
        Name::KvUsage => &[
            Largest("vllm:kv_cache_usage_perc"),
            Largest("vllm:gpu_cache_usage_perc"),
            Largest("sglang:token_usage"),
            Largest("trtllm_kv_cache_utilization"),
            Largest("llamacpp:kv_cache_usage_ratio"),
            Largest("lmdeploy:gpu_cache_usage_perc"),
        ],
        Name::CacheHitRate => &[
            Share("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
            Share("sglang:cached_tokens_total", "sglang:prompt_tokens_total"),
            Part("llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_tokens_total"),
        ],
        Name::DeviceCached => &[
            Count("vllm:prefix_cache_hits_total"),
            Labelled(SGLANG_CACHED, ("cache_source", "device")),
        ],
        Name::HostCached => &[Labelled(SGLANG_CACHED, ("cache_source", "host"))],
        Name::StorageCached => &[Labelled(SGLANG_CACHED, ("cache_source", "storage"))],
        Name::ExternalCached => &[Count("vllm:external_prefix_cache_hits_total")],
        Name::ExternalHitRate => &[Share(
            "vllm:external_prefix_cache_hits_total",
            "vllm:external_prefix_cache_queries_total",
        )],
        // Hits of TensorRT-LLM's cache are blocks of all its memories together.
        Name::KvLoaded => &[
            Count("vllm:kv_offload_load_bytes_total"),
            Count("trtllm_kv_cache_onboard_bytes_total"),
        ],
        Name::KvStored => &[
            Count("vllm:kv_offload_store_bytes_total"),
            Count("trtllm_kv_cache_offload_bytes_total"),
        ],
        Name::Preemptions => {
            &[Count("vllm:num_preemptions_total"), Count("sglang:num_retracted_requests_total")]
        }
        Name::BatchTokens => &[Size("vllm:iteration_tokens_total")],
        Name::Acceptance => &[
            Share(
                "vllm:spec_decode_num_accepted_tokens_total",
                "vllm:spec_decode_num_draft_tokens_total",
            ),
            Mean("sglang:spec_accept_rate"),
        ],
        Name::InputTokens => &[
            Count("vllm:prompt_tokens_total"),
            Count("sglang:prompt_tokens_total"),
            Count("trtllm_prompt_tokens_total"),
            Count("llamacpp:prompt_tokens_total"),
            Count("tgi_request_input_length_sum"),
            Count("lmdeploy:prompt_tokens_total"),
        ],
        Name::OutputTokens => &[
            Count("vllm:generation_tokens_total"),
            Count("sglang:generation_tokens_total"),
            Count("trtllm_generation_tokens_total"),
            Count("llamacpp:tokens_predicted_total"),
            Count("tgi_request_generated_tokens_sum"),
            Count("lmdeploy:generation_tokens_total"),
        ],
        Name::QueueTime => &[
            Time("vllm:request_queue_time_seconds", SECONDS),
            Time("sglang:queue_time_seconds", SECONDS),
            Time("trtllm_request_queue_time_seconds", SECONDS),
            Time("tgi_request_queue_duration", SECONDS),
            Time("lmdeploy:request_queue_time_seconds", SECONDS),
        ],
        Name::PrefillTime => &[
            Time("vllm:request_prefill_time_seconds", SECONDS),
            Time("trtllm_request_prefill_time_seconds", SECONDS),
            Time("lmdeploy:request_prefill_time_seconds", SECONDS),
        ],
        Name::TransferTime => &[
            Time("vllm:nixl_xfer_time_seconds", SECONDS),
            Time("sglang:kv_transfer_latency_ms", 1.0),
        ],
        Name::ServerTtft => &[
            Time("vllm:time_to_first_token_seconds", SECONDS),
            Time("sglang:time_to_first_token_seconds", SECONDS),
            Time("trtllm_time_to_first_token_seconds", SECONDS),
            Time("lmdeploy:time_to_first_token_seconds", SECONDS),
        ],
        Name::Transferring => &[Sum(&[
            "sglang:num_prefill_inflight_queue_reqs",
            "sglang:num_decode_transfer_queue_reqs",
        ])],
        Name::Refused => &[Count("vllm:admission_rejections_total")],
    }
}
