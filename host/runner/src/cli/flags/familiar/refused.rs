//! Flags of other clients that this program does not support, each with its replacement.

use super::{Means, Row, Takes};

const PROFILE: &str = "a profiled server is slower; start and stop its profiler around a separate short run (POST /start_profile and /stop_profile)";
const HF: &str = "download the files with `runner fetch dataset ORG/NAME` and give one with `--dataset-name custom --dataset-path FILE`; --output-len sets the length of answers";
const BLAZEDIT: &str = "the distance between texts is not read; choose the rows yourself and give them with `--dataset-name custom`";
const ASR: &str = "`--dataset-name speech` leaves out recordings by `min-seconds` and `max-seconds` in `[dataset.config]`";

const GUIDELLM_PROFILE: &str = "guidellm's profiles are flags here: `--concurrency 1` for `synchronous`, `--concurrency N` for `concurrent`, `--request-rate inf` for `throughput`, `--request-rate R` for `poisson` (with `--arrival constant` for `constant`), `--arrival dataset` for `replay`, `runner sweep --rates LIST` for `sweep`";
const GUIDELLM_DATA: &str = "`--dataset-name random --random-input-len 256 --random-output-len 128` for synthetic texts, `--dataset-name custom --dataset-path FILE` for a file of prompts";
const GUIDELLM_ROWS: &str =
    "columns are keys of the dataset's configuration: `runner plugin info datasets/custom.wasm`";
const AIPERF_SPREAD: &str = "lengths are distributions: `--set 'dataset.config.input-len={ distribution = \"normal\", mean = 550, deviation = 50 }'`; `runner plugin info datasets/random.wasm` has their forms";

const RATES: &str = "`runner sweep --rates 2:10:2` measures a list of rates";

const fn refused(long: &'static str, instead: &'static str) -> Row {
    Row { long, takes: Takes::Anything, datasets: &[], means: Means::Refused(instead) }
}

/// Advises on a replacement, by the values too: one name means different things to tools.
pub(super) fn instead(long: &str, values: &[String], usual: &'static str) -> &'static str {
    let of_guidellm = |value: &String| {
        let kind = value.strip_prefix("kind=").unwrap_or(value);
        let kind = kind.split(',').next().unwrap_or_default();
        ["synchronous", "concurrent", "throughput", "constant", "poisson", "replay", "sweep"]
            .contains(&kind)
    };
    if long == "profile" && values.iter().any(of_guidellm) { GUIDELLM_PROFILE } else { usual }
}

#[rustfmt::skip]
pub(super) const ROWS: [Row; 81] = [
    // Once a flag of this program.
    refused("new-requests", "each repeat has new requests without it; `--same-requests` sends the same ones"),
    refused("multi", RATES),
    refused("request-rate-range", RATES),
    refused("profile", PROFILE),
    refused("profile-activities", PROFILE),
    refused("profile-start-step", PROFILE),
    refused("profile-steps", PROFILE),
    refused("profile-num-steps", PROFILE),
    refused("profile-by-stage", PROFILE),
    refused("profile-stages", PROFILE),
    refused("profile-output-dir", PROFILE),
    refused("profile-prefix", PROFILE),
    refused("profile-prefill-url", PROFILE),
    refused("profile-decode-url", PROFILE),
    refused("plot-timeline", "`runner report RUN --format html --output FILE` draws the run, with charts of its requests over time"),
    refused("timeline-itl-thresholds", "`runner report RUN --format html --output FILE` draws the run, with charts of its inter-token latencies"),
    refused("plot-dataset-stats", "`runner plan --format svg --output FOLDER` draws the lengths of prompts and answers without sending them"),
    refused("plot-throughput", "--dashboard shows throughput during the run, and `runner report RUN --format html --output FILE` draws it"),
    refused("print-requests", "`runner plan --show N` shows the first N prompts, and the run's folder holds a record of every request"),
    refused("logprobs", "ask for them in the body: `--extra-body '{\"logprobs\": 1}'`, on a chat route `--extra-body '{\"logprobs\": true, \"top_logprobs\": 1}'`"),
    refused("use-beam-search", "ask for it in the body: `--extra-body '{\"use_beam_search\": true, \"n\": 4}'`"),
    refused("return-logprob", "ask for them in the body: `--extra-body '{\"return_logprob\": true}'`, on SGLang's OpenAI routes `--extra-body '{\"logprobs\": true}'`"),
    refused("top-logprobs-num", "ask for them in the body: `--extra-body '{\"return_logprob\": true, \"top_logprobs_num\": 5}'`"),
    refused("token-ids-logprob", "ask for them in the body: `--extra-body '{\"return_logprob\": true, \"token_ids_logprob\": [1, 2]}'`"),
    refused("logprob-start-len", "ask for them in the body: `--extra-body '{\"return_logprob\": true, \"logprob_start_len\": 0}'`"),
    refused("return-routed-experts", "ask for them in the body: `--extra-body '{\"return_routed_experts\": true}'`"),
    refused("chat-template-kwargs", "the server applies the template on chat routes, and takes these in the body: `--extra-body '{\"chat_template_kwargs\": {\"enable_thinking\": false}}'`"),
    refused("apply-chat-template", "no template is applied here; on a chat route the server does it: `--endpoint /v1/chat/completions`"),
    refused("enable-multimodal-chat", "conversations with images go to chat routes as they are: `--backend openai-chat` or `--endpoint /v1/chat/completions`"),
    refused("skip-tokenizer-init", "leave --tokenizer out: a stand-in then counts bytes, and the server's own counts are used where it reports them"),
    refused("fake-prefill", "ask for it in the body: `--extra-body '{\"bootstrap_host\": \"2.2.2.2\", \"bootstrap_room\": 0}'`"),
    refused("pd-separated", "one base URL is all that a client needs of a disaggregated server; the flag only chose which workers to profile"),
    refused("probe-request-rate", "send the probes with a second run beside this one, such as `--request-rate 1 --random-input-len 8 --random-output-len 1`"),
    refused("flush-cache-timeout", "the cache is flushed after the warmup, when no request of this client is under way; leave the flag out, and let no one else use the server"),
    refused("prompt-suffix", "put it into a template of the dataset `custom`: `--set 'dataset.config.template=\"{prompt} SUFFIX\"'`"),
    refused("lora-zipf-alpha", "adapters are assigned at random or in turn (--lora-assignment); give every sample its adapter with a column `adapter` of `--dataset-name custom`"),
    refused("no-oversample", "files are repeated only with `repeat` in the dataset's configuration, or by `--dataset-name sharegpt` with `like = \"vllm\"`; leave these out or request less"),
    refused("no-reranker", "only rerank routes rank pairs of texts: `--backend vllm-rerank`"),
    refused("hf-name", HF),
    refused("hf-subset", HF),
    refused("hf-split", HF),
    refused("hf-output-len", HF),
    refused("bfcl-categories", "download the files with `runner fetch dataset gorilla-llm/Berkeley-Function-Calling-Leaderboard`, write their functions as OpenAI tools (a column `tools`) and use `--dataset-name custom`"),
    refused("blazedit-min-distance", BLAZEDIT),
    refused("blazedit-max-distance", BLAZEDIT),
    refused("asr-min-audio-len-sec", ASR),
    refused("asr-max-audio-len-sec", ASR),
    refused("speed-bench-dataset-subset", "name the subset's own file with --dataset-path"),
    refused("custom-ensure-client-side-data", "images are sent as the file has them; write them into it as data URLs"),
    refused("random-image-count", "make the number a distribution: `--set 'dataset.config.images={ distribution = \"uniform\", min = 1, max = 4 }'`"),
    refused("random-mm-bucket-config", "name the sizes with their weights: `--set 'dataset.config.sizes=[\"256x256:0.5\", \"1280x720:0.5\"]'`, width before height"),
    refused("random-mm-limit-mm-per-prompt", "the number of images of a request is `dataset.config.images`, a number or a distribution with its own bounds"),
    refused("random-mm-num-mm-items-range-ratio", "make the number a distribution: `--set 'dataset.config.images={ distribution = \"uniform\", min = 1, max = 3 }'`"),
    refused("mooncake-num-rounds", "rows with a `session_id` are the turns of a session, and the turns of one session follow each other; leave the flag out"),
    refused("mooncake-workload", "name the workload's own file with --dataset-path"),
    refused("dataset-offset", "the rows of a trace are chosen by `window` and `share` in `[dataset.config]`, and rows of other files by cutting the file"),
    refused("agentic-max-turns", "`--dataset-name conversation` has `max-turns` in `[dataset.config]`"),
    // guidellm's.
    refused("target", "`--base-url URL`"),
    refused("data", GUIDELLM_DATA),
    refused("data-column-mapper", GUIDELLM_ROWS),
    refused("data-preprocessor", GUIDELLM_ROWS),
    refused("constraint", "`--num-prompts N` for `max_requests`, `--duration TIME` for `max_duration`, `--threshold 'requests.success-share >= 99%'` for `max_error_rate`"),
    refused("override", RATES),
    refused("rate-type", "`--concurrency N` for `concurrent` (1 for `synchronous`), `--request-rate inf` for `throughput`, `--request-rate R` for `poisson` (with `--arrival constant` for `constant`), `runner sweep --rates LIST` for `sweep`"),
    refused("rate", "`--request-rate R`, or `--concurrency N` for streams; `runner sweep --rates LIST` measures a list"),
    refused("max-requests", "`--num-prompts N`"),
    refused("max-seconds", "`--duration 60s`"),
    // AIPerf's.
    refused("url", "`--base-url URL`"),
    refused("endpoint-type", "`--backend openai-chat` for `chat`, `openai-completions` for `completions`, `openai-embeddings` for `embeddings`; `runner plugin list` has all"),
    refused("streaming", "leave it out: replies are streamed unless `--disable-stream` is given"),
    refused("synthetic-input-tokens-mean", "`--dataset-name random --random-input-len N`"),
    refused("synthetic-input-tokens-stddev", AIPERF_SPREAD),
    refused("output-tokens-mean", "`--random-output-len N`"),
    refused("output-tokens-stddev", AIPERF_SPREAD),
    refused("request-count", "`--num-prompts N`"),
    refused("warmup-request-count", "`--warmup-requests N`"),
    refused("benchmark-duration", "`--duration 60s`"),
    refused("custom-dataset-type", "`--dataset-name custom`, or `mooncake` for `mooncake_trace`"),
    refused("input-file", "`--dataset-path FILE`"),
    refused("random-seed", "`--seed N`"),
    refused("artifact-dir", "`--output-dir FOLDER`"),
];
