//! The flags that describe a run, with the names that users of `vllm bench serve` and SGLang's
//! client know, and how they become a scenario that overrides the file's.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use serde_json::{Map, Value};

use model::arrival::ThinkSpread;
use model::duration::Span;
use reader::{ConfigTable, Place, Said};
use result::metric::objective::{self, Objective};
use scenario::{Arrival, Scenario, THINK_SPREADS};

mod about;
mod aside;
mod sampling;
mod shape;
mod wiring;

use about::About;
use aside::Aside;
use sampling::Sampling;
use shape::Shape;
use wiring::Wiring;

/// Flags that describe the run. Each overrides the scenario file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// A plugin (backend, dataset or scorer; detected from the component); repeatable
    ///
    /// A path, or the name of a built-in plugin: backends/{openai,vllm,sglang,lmdeploy}.wasm,
    /// datasets/{random,sharegpt}.wasm, scorers/{exact-match,output-length}.wasm.
    /// Append @sha256: and a digest to accept only that exact file.
    #[arg(
        long = "plugin",
        value_name = "WASM",
        env = "RUNNER_PLUGIN",
        value_delimiter = ',',
        help_heading = "Plugins"
    )]
    pub plugins: Vec<String>,
    /// Folders to search for plugins, separated as in PATH
    #[arg(
        long,
        value_name = "FOLDERS",
        env = "RUNNER_PLUGIN_PATH",
        help_heading = "Plugins"
    )]
    plugin_path: Option<std::ffi::OsString>,
    /// Short for --plugin backends/NAME.wasm
    #[arg(
        long,
        value_name = "NAME",
        env = "RUNNER_BACKEND",
        help_heading = "Plugins"
    )]
    backend: Option<String>,

    /// Base URL of the engine; if repeated, requests go to each in turn [default: where the backend's engine listens]
    #[arg(long, value_name = "URL", env = "RUNNER_BASE_URL", value_delimiter = ',', conflicts_with_all = ["host", "port"], help_heading = "Target")]
    base_url: Vec<String>,
    /// Host of the engine; use with --port instead of --base-url
    #[arg(long, env = "RUNNER_HOST", help_heading = "Target")]
    host: Option<String>,
    /// Port of the engine
    #[arg(long, env = "RUNNER_PORT", help_heading = "Target")]
    port: Option<u16>,
    /// Model name [default: the only one the server lists]
    #[arg(long, env = "RUNNER_MODEL", help_heading = "Target")]
    model: Option<String>,
    /// Environment variable that holds the API key [default: OPENAI_API_KEY]
    #[arg(
        long,
        value_name = "VARIABLE",
        env = "RUNNER_API_KEY_ENV",
        help_heading = "Target"
    )]
    api_key_env: Option<String>,
    /// Header to send with every request, `Name: value` or `Name=value`; repeatable
    ///
    /// Values never appear in results or logs.
    #[arg(
        long = "header",
        value_name = "FIELD",
        env = "RUNNER_HEADER",
        hide_env_values = true,
        help_heading = "Target"
    )]
    headers: Vec<String>,

    #[command(flatten)]
    about: About,
    #[command(flatten)]
    aside: Aside,
    #[command(flatten)]
    wiring: Wiring,

    /// Short for --plugin datasets/NAME.wasm
    #[arg(
        long,
        value_name = "NAME",
        env = "RUNNER_DATASET_NAME",
        help_heading = "Requests"
    )]
    dataset_name: Option<String>,
    /// The dataset's input file
    #[arg(
        long,
        value_name = "FILE",
        env = "RUNNER_DATASET_PATH",
        help_heading = "Requests"
    )]
    dataset_path: Option<PathBuf>,
    /// Input tokens per request (random dataset)
    #[arg(
        long,
        value_name = "TOKENS",
        env = "RUNNER_RANDOM_INPUT_LEN",
        help_heading = "Requests"
    )]
    random_input_len: Option<u64>,
    /// Output tokens per request (random dataset)
    #[arg(
        long,
        value_name = "TOKENS",
        env = "RUNNER_RANDOM_OUTPUT_LEN",
        help_heading = "Requests"
    )]
    random_output_len: Option<u64>,
    /// How far the random dataset's lengths may vary; 1.0 means not at all, as in SGLang's client
    #[arg(
        long,
        value_name = "RATIO",
        env = "RUNNER_RANDOM_RANGE_RATIO",
        help_heading = "Requests"
    )]
    random_range_ratio: Option<f64>,
    /// Output tokens per request (ShareGPT dataset), instead of the real answer's length
    #[arg(
        long,
        value_name = "TOKENS",
        env = "RUNNER_SHAREGPT_OUTPUT_LEN",
        help_heading = "Requests"
    )]
    sharegpt_output_len: Option<u64>,
    /// The model's tokenizer: a tokenizer.json, or a folder that holds one
    #[arg(
        long,
        value_name = "PATH",
        env = "RUNNER_TOKENIZER",
        help_heading = "Requests"
    )]
    tokenizer: Option<PathBuf>,
    /// Let the model end its answers by itself
    #[arg(long, env = "RUNNER_DISABLE_IGNORE_EOS", value_parser = FalseyValueParser::new(), help_heading = "Requests")]
    disable_ignore_eos: bool,
    /// Ask for whole replies instead of streams
    #[arg(long, env = "RUNNER_DISABLE_STREAM", value_parser = FalseyValueParser::new(), help_heading = "Requests")]
    disable_stream: bool,
    #[command(flatten)]
    sampling: Sampling,
    /// JSON object whose fields are added to the body of every request
    #[arg(
        long,
        value_name = "JSON",
        env = "RUNNER_EXTRA_BODY",
        help_heading = "Requests",
        alias = "extra-request-body"
    )]
    extra_body: Option<String>,

    /// Number of requests to measure
    #[arg(
        long,
        value_name = "N",
        env = "RUNNER_NUM_PROMPTS",
        conflicts_with = "duration",
        help_heading = "Load"
    )]
    num_prompts: Option<u64>,
    /// How long to measure, such as 60s
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_DURATION",
        help_heading = "Load"
    )]
    duration: Option<Span>,
    /// Requests per second; `inf` sends all at once
    #[arg(
        long,
        value_name = "RATE",
        env = "RUNNER_REQUEST_RATE",
        help_heading = "Load"
    )]
    request_rate: Option<f64>,
    /// How requests arrive: inf, constant, poisson, gamma, trace, dataset or closed
    #[arg(long, env = "RUNNER_ARRIVAL", value_parser = arrival, help_heading = "Load")]
    arrival: Option<Arrival>,
    #[command(flatten)]
    shape: Shape,
    /// Users in a closed loop; each sends its next request when the last one is answered
    #[arg(
        long,
        value_name = "USERS",
        env = "RUNNER_CONCURRENCY",
        help_heading = "Load"
    )]
    concurrency: Option<u64>,
    /// How long a user in a closed loop waits after each answer, such as 2s
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_THINK_TIME",
        help_heading = "Load"
    )]
    think_time: Option<Span>,
    /// How the think time varies: constant, or exponential with that mean
    #[arg(long, value_name = "SPREAD", env = "RUNNER_THINK_SPREAD", value_parser = think_spread, help_heading = "Load")]
    think_spread: Option<ThinkSpread>,
    /// Maximum number of requests in flight; the wait for a free slot is recorded as queueing
    #[arg(
        long,
        value_name = "N",
        env = "RUNNER_MAX_CONCURRENCY",
        help_heading = "Load"
    )]
    max_concurrency: Option<u64>,
    /// Number of requests to send before the measurement; their prompts are never measured
    #[arg(
        long,
        value_name = "N",
        env = "RUNNER_WARMUP_REQUESTS",
        help_heading = "Load"
    )]
    warmup_requests: Option<u64>,
    /// Random seed
    #[arg(long, env = "RUNNER_SEED", help_heading = "Load")]
    seed: Option<u64>,

    /// Percentiles to report, such as 50,90,99.9
    #[arg(
        long,
        value_name = "LIST",
        env = "RUNNER_METRIC_PERCENTILES",
        value_delimiter = ',',
        help_heading = "Result"
    )]
    metric_percentiles: Option<Vec<f64>>,
    /// SLOs that a good request meets, each METRIC:MILLISECONDS, such as ttft:200 tpot:20 e2el:5000
    ///
    /// Any metric of the result works if it is a time and each request has one value of it. Limits may
    /// have a unit, as in itl-max:1.5s. This flag takes every word after it, so put scenarios first.
    #[arg(
        long,
        value_name = "OBJECTIVE",
        env = "RUNNER_GOODPUT",
        num_args = 1..,
        help_heading = "Result"
    )]
    goodput: Vec<String>,
    /// Threshold for the run, such as 'ttft.p99 <= 200ms'; exit with 6 if it does not hold; repeatable
    ///
    /// Write a figure as in the result (ttft.p99, throughput.output-tokens-per-s,
    /// requests.success-share), then <=, <, >= or >, and a limit; or 'verdict <= valid'. No threshold
    /// holds for an invalid run; the exit code is then 7.
    #[arg(
        long = "threshold",
        value_name = "THRESHOLD",
        env = "RUNNER_THRESHOLD",
        value_delimiter = ';',
        help_heading = "Result"
    )]
    thresholds: Vec<String>,
}

fn arrival(text: &str) -> Result<Arrival, String> {
    Arrival::ALL
        .into_iter()
        .find(|arrival| arrival.name() == text)
        .ok_or_else(|| {
            "expected inf, constant, poisson, gamma, trace, dataset or closed".to_owned()
        })
}

fn think_spread(text: &str) -> Result<ThinkSpread, String> {
    let known = THINK_SPREADS.into_iter().find(|(name, _)| *name == text);
    known
        .map(|(_, spread)| spread)
        .ok_or_else(|| "expected constant or exponential".to_owned())
}

impl Flags {
    /// The plugins that the flags name.
    pub fn named_plugins(&self) -> Vec<Said<String>> {
        let short = |flag: &str, folder: &str, name: &Option<String>| {
            let name = name.as_ref()?;
            Some(Said::flag(flag, format!("{folder}/{name}.wasm")))
        };
        self.plugins
            .iter()
            .map(|plugin| Said::flag("--plugin", plugin.clone()))
            .chain(short("--backend", "backends", &self.backend))
            .chain(short("--dataset-name", "datasets", &self.dataset_name))
            .collect()
    }

    /// The folders to search for plugins.
    pub fn plugin_folders(&self) -> Vec<PathBuf> {
        self.plugin_path
            .as_ref()
            .map(|paths| std::env::split_paths(paths).collect())
            .unwrap_or_default()
    }

    /// The scenario that the flags describe, which overrides the file's.
    ///
    /// # Errors
    /// A message that says what is wrong with a flag's value.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let mut scenario = Scenario::default();
        let target = &mut scenario.target;
        target.base_url = match (&*self.base_url, &self.host, self.port) {
            ([], None, None) => None,
            ([], host, port) => {
                let host = host.as_deref().unwrap_or("127.0.0.1");
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                let url = Said::flag("--host", format!("http://{host}{port}"));
                Some(Said::flag("--host", vec![url]))
            }
            (urls, _, _) => {
                let urls = urls.iter().map(|url| Said::flag("--base-url", url.clone()));
                Some(Said::flag("--base-url", urls.collect()))
            }
        };
        self.wiring.lay_on(&mut scenario);
        let target = &mut scenario.target;
        target.model = said("--model", &self.model);
        target.api_key_env = said("--api-key-env", &self.api_key_env);
        for field in &self.headers {
            let (name, value) = field
                .split_once(':')
                .or_else(|| field.split_once('='))
                .filter(|(name, _)| !name.trim().is_empty())
                .ok_or("--header takes `Name: value` or `Name=value`")?;
            let value = Said::flag("--header", value.trim().to_owned());
            target
                .headers
                .insert(name.trim().to_ascii_lowercase(), value);
        }
        self.requests(&mut scenario)?;
        self.load(&mut scenario);
        scenario.report.percentiles = self.metric_percentiles.as_ref().map(|list| {
            let flag = "--metric-percentiles";
            Said::flag(flag, list.iter().map(|p| Said::flag(flag, *p)).collect())
        });
        self.about.lay_on(&mut scenario)?;
        self.aside.lay_on(&mut scenario);
        self.goodput(&mut scenario)?;
        let thresholds = self.thresholds.iter();
        scenario.thresholds = thresholds
            .map(|threshold| Said::flag("--threshold", threshold.clone()))
            .collect();
        Ok(scenario)
    }

    fn goodput(&self, scenario: &mut Scenario) -> Result<(), String> {
        for text in &self.goodput {
            let objectives =
                objective::parse(text).map_err(|cause| format!("--goodput: {cause}"))?;
            for Objective { metric, at_most_ms } in objectives {
                let said = Said::flag("--goodput", at_most_ms);
                scenario.goodput.insert(metric, said);
            }
        }
        Ok(())
    }

    fn requests(&self, scenario: &mut Scenario) -> Result<(), String> {
        scenario.tokenizer.path = said("--tokenizer", &self.tokenizer);
        let dataset = &mut scenario.dataset;
        if let Some(path) = &self.dataset_path {
            let file = Said::flag("--dataset-path", path.clone());
            dataset.files.insert("data".to_owned(), file);
        }
        let config = &mut dataset.config;
        set(
            config,
            "input-len",
            "--random-input-len",
            self.random_input_len,
        );
        set(
            config,
            "output-len",
            "--random-output-len",
            self.random_output_len,
        );
        set(
            config,
            "output-len",
            "--sharegpt-output-len",
            self.sharegpt_output_len,
        );
        set(
            config,
            "range-ratio",
            "--random-range-ratio",
            self.random_range_ratio,
        );
        let request = &mut scenario.request;
        if self.disable_ignore_eos {
            request.ignore_eos = Some(Said::flag("--disable-ignore-eos", false));
        }
        if self.disable_stream {
            request.stream = Some(Said::flag("--disable-stream", false));
        }
        self.sampling.lay_on(request);
        if let Some(text) = &self.extra_body {
            let fields: Map<String, Value> = serde_json::from_str(text).map_err(|cause| {
                format!("--extra-body takes a JSON object such as {{\"top_k\": 1}}: {cause}")
            })?;
            request.extra_body =
                ConfigTable::from_json(fields, &Place::Flag("--extra-body".into()));
        }
        Ok(())
    }

    fn load(&self, scenario: &mut Scenario) {
        let load = &mut scenario.load;
        load.requests = said("--num-prompts", &self.num_prompts);
        load.duration = said("--duration", &self.duration);
        load.rate = said("--request-rate", &self.request_rate);
        load.arrival = said("--arrival", &self.arrival);
        self.shape.lay_on(load);
        load.concurrency = said("--concurrency", &self.concurrency);
        load.think_time = said("--think-time", &self.think_time);
        load.think_spread = said("--think-spread", &self.think_spread);
        load.max_in_flight = said("--max-concurrency", &self.max_concurrency);
        load.warmup = said("--warmup-requests", &self.warmup_requests);
        load.seed = said("--seed", &self.seed);
    }
}

fn said<T: Clone>(flag: &str, value: &Option<T>) -> Option<Said<T>> {
    value.clone().map(|value| Said::flag(flag, value))
}

fn set<T: Into<Value>>(config: &mut ConfigTable, key: &str, flag: &str, value: Option<T>) {
    if let Some(value) = value {
        config.set(key, Said::flag(flag, value.into()));
    }
}
