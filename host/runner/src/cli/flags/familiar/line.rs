//! The client that a command line was written for, and the defaults of that client.
//!
//! [`Flags::client`] decides it once, by rules that the guide states; [`Flags::read_as`] lays the
//! client's defaults over the line's open settings, and lists them in one note. A line over a
//! scenario belongs to this program alone.

use reader::{Config, Located, Place};

use super::super::settle::SettledRun;
use super::super::{Flags, Ratio, backends};
use model::temperature::Temperature;

/// A client whose command lines are understood.
#[derive(Debug)]
pub struct Client {
    /// The name and version that its users know.
    pub name: &'static str,
    /// Its value of `like` in configurations of datasets.
    pub word: &'static str,
    /// Names of `--backend` that only this client has, except `vllm` and its routes.
    pub backends: &'static [&'static str],
    pub datasets: &'static [&'static str],
    /// Flags that only this client has, and this program only for its sake.
    pub alone: &'static [&'static str],
}

#[rustfmt::skip]
pub static VLLM: Client = Client {
    name: "`vllm bench serve` 0.32",
    word: "vllm",
    backends: &[
        "openai", "openai-chat", "openai-responses", "openai-audio", "openai-embeddings",
        "infinity-embeddings", "vllm-pooling", "vllm-rerank",
    ],
    datasets: &[
        "sharegpt", "burstgpt", "random", "random-mm", "random-rerank", "custom", "custom_image",
        "prefix_repetition", "spec_bench", "speed_bench", "timed_trace",
    ],
    alone: &[
        "ignore-eos", "input-len", "label", "no-stream", "output-len", "percentile-metrics",
        "prefix-repetition-num-prefixes", "random-batch-size", "random-prefix-len", "save-result",
        "skip-chat-template", "spec-bench-category", "tokenizer-mode",
    ],
};

#[rustfmt::skip]
pub static SGLANG: Client = Client {
    name: "SGLang's `bench_serving` 0.5.23",
    word: "sglang",
    backends: &["sglang", "sglang-native", "sglang-oai", "sglang-oai-chat", "sglang-embedding"],
    datasets: &[
        "sharegpt", "custom", "openai", "random", "random-ids", "generated-shared-prefix", "image",
        "mooncake", "speed-bench",
    ],
    alone: &[
        "gsp-num-groups", "gsp-prompts-per-group", "gsp-system-prompt-len",
        "lora-request-distribution", "output-details", "rust-client", "rust-worker-threads", "tag",
        "tokenize-prompt",
    ],
};

pub static CLIENTS: [&Client; 2] = [&VLLM, &SGLANG];

/// The client of the line, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LineOf {
    /// `vllm bench serve`.
    Vllm,
    /// SGLang's `bench_serving`.
    Sglang,
    /// This program.
    Runner,
}

impl Flags {
    /// The client of the line, and the word of the line that decides it.
    pub(in super::super) fn client(&self) -> Option<(&'static Client, String)> {
        let (client, why) = match (self.line_of, self.backend.as_deref()) {
            (Some(LineOf::Vllm), _) => return Some((&VLLM, "--line-of vllm".to_owned())),
            (Some(LineOf::Sglang), _) => return Some((&SGLANG, "--line-of sglang".to_owned())),
            (Some(LineOf::Runner), _) => return None,
            // No client has plugins.
            (None, _) if !self.plugins.is_empty() => return None,
            (None, Some(name)) => {
                let mut named = CLIENTS.iter().filter(|client| client.backends.contains(&name));
                let flag = self.familiar.alone();
                let own = || format!("--backend {name}");
                match (named.next(), flag) {
                    (Some(client), _) => (*client, own()),
                    (None, _) if !name.starts_with("vllm") => return None,
                    (None, Some((flag, client))) if client.word != "vllm" => {
                        (client, format!("--{flag}"))
                    }
                    (None, _) => (&VLLM, own()),
                }
            }
            (None, None) => match (self.familiar.alone(), self.random_range_ratio) {
                (None, Some(Ratio::Each { .. })) => (&VLLM, "--random-range-ratio".to_owned()),
                (flag, _) => {
                    let (flag, client) = flag?;
                    (client, format!("--{flag}"))
                }
            },
        };
        // A client does not take the line with a dataset that it lacks.
        let dataset = self.dataset_name.as_deref();
        dataset.is_none_or(|name| client.datasets.contains(&name)).then_some((client, why))
    }

    /// Overlays the defaults of the line's client on open settings, and notes it.
    pub(in super::super) fn read_as(&self, settled: &mut SettledRun) {
        let Some((client, why)) = self.client() else { return };
        let place = Place::Flag(why.clone());
        let mut read = Reading { settled, place, defaults: Vec::new(), apart: Vec::new() };
        let by_name = self.dataset_name.as_deref();
        let output = self.backend.as_deref().and_then(backends::alias).map(|alias| alias.output);
        if output.is_none_or(|output| output == backends::Output::Answers) {
            match client.word {
                "vllm" => read.vllm(by_name, self.familiar.has("skip-chat-template")),
                _ => read.sglang(by_name),
            }
        }
        read.prompts(client.word);
        let Reading { defaults, apart, .. } = read;
        let mut note = format!("read as a line of {}, because of {why}", client.name);
        if !defaults.is_empty() {
            note += &format!(": {}", defaults.join(", "));
        }
        if !apart.is_empty() {
            note += &format!("; differences: {}", apart.join(", "));
        }
        note += "; for runner's own defaults, add --line-of runner";
        settled.notes.push(note);
    }
}

/// A line in the making.
struct Reading<'s> {
    settled: &'s mut SettledRun,
    place: Place,
    defaults: Vec<&'static str>,
    /// Its defaults that do not hold here.
    apart: Vec<&'static str>,
}

impl Reading<'_> {
    fn take<T>(
        &mut self,
        at: fn(&mut SettledRun) -> &mut Option<Located<T>>,
        value: T,
        label: &'static str,
    ) {
        let open = at(self.settled);
        if open.is_none() {
            *open = Some(Located::new(value, self.place.clone()));
            self.defaults.push(label);
        }
    }

    /// Takes a default of the dataset's configuration where nothing is set.
    fn config(&mut self, key: &str, value: serde_json::Value, label: &'static str) {
        let config = &mut self.settled.scenario.dataset.config;
        if config.get(key).is_none() {
            config.set(key, Located::new(value, self.place.clone()));
            self.defaults.push(label);
        }
    }

    fn dataset(&self) -> Option<String> {
        self.settled.shipped_dataset()
    }

    fn route(&self) -> Option<String> {
        match self.settled.scenario.backend.config.get("route").map(|entry| &entry.value.value) {
            Some(Config::Scalar(serde_json::Value::String(route))) => Some(route.clone()),
            // The usual route of the usual backend.
            None if self.settled.backend().as_deref() == Some("vllm") => {
                Some("completions".to_owned())
            }
            _ => None,
        }
    }

    fn vllm(&mut self, dataset: Option<&str>, no_template: bool) {
        self.take(
            |s| &mut s.scenario.request.temperature,
            Temperature::Server,
            "sampling left to the server",
        );
        let forced = matches!(dataset, None | Some("random" | "random-mm" | "timed_trace"));
        let label = if forced {
            "answers ignore the end of the text"
        } else {
            "answers end where the model ends them"
        };
        self.take(|s| &mut s.scenario.request.ignore_eos, forced, label);
        let backend = self.settled.backend();
        let is_forced =
            self.settled.scenario.request.ignore_eos.as_ref().is_some_and(|on| on.value);
        let config = &mut self.settled.scenario.backend.config;
        if is_forced
            && backend.as_deref() == Some("openai")
            && config.get("ignore-eos-field").is_none()
        {
            config.set("ignore-eos-field", Located::new("ignore_eos".into(), self.place.clone()));
        }
        let load = &self.settled.scenario.load;
        if load.warmup.is_none() && load.warming.is_none() {
            self.apart
                .push("one unmeasured request comes first (that client's --num-warmups is 0)");
        }
        let route = self.route();
        match route.as_deref() {
            Some("chat") => self.apart.push("a message's text is a string, not a list of parts"),
            Some("completions") => {
                let label = "repetition-penalty 1";
                self.take(|s| &mut s.scenario.request.repetition_penalty, 1.0, label);
            }
            _ => {}
        }
        // A column of lengths is this program's own way to give lengths.
        let columns = self.settled.scenario.dataset.config.get("columns").is_some();
        match dataset.filter(|_| !columns) {
            Some("custom" | "spec_bench") => {
                self.config("output-len", 256.into(), "256 output tokens");
            }
            Some("speed_bench") => self.config("output-len", 4096.into(), "4096 output tokens"),
            _ => {}
        }
        if matches!(dataset, Some("custom" | "spec_bench" | "speed_bench")) && !no_template {
            self.apart.push("prompts go without the model's chat template (--skip-chat-template)");
        }
    }

    fn sglang(&mut self, dataset: Option<&str>) {
        let scalar = |read: &Self, key: &str| {
            let entry = read.settled.scenario.dataset.config.get(key);
            entry.is_none_or(|entry| matches!(entry.value.value, Config::Scalar(_)))
        };
        let lengths =
            scalar(self, "input-len") && scalar(self, "output-len") && scalar(self, "classes");
        match self.dataset().as_deref() {
            Some("random") => {
                if lengths {
                    let label = "lengths from 0 to the requested ones (--random-range-ratio 0)";
                    self.config("range-ratio", 0.0.into(), label);
                }
                self.config("output-len", 1024.into(), "1024 output tokens");
                let files = &self.settled.scenario.dataset.files;
                if dataset != Some("random-ids") && files.is_empty() {
                    self.apart.push("prompts are made of token ids (that client's random-ids) without a ShareGPT file (--dataset-path)");
                }
            }
            Some("images") => {
                self.config("input-len", 1024.into(), "1024 input tokens");
                self.config("output-len", 1024.into(), "1024 output tokens");
                self.apart.push("lengths are exact (that client's --random-range-ratio 1)");
            }
            _ => {}
        }
        if dataset.is_none() {
            self.apart.push("the dataset is random, not sharegpt, which that client downloads (--dataset-name sharegpt --dataset-path FILE)");
        }
        if matches!(self.route().as_deref(), Some("completions" | "chat")) {
            self.apart.push("replies end with the server's token counts (stream_options)");
        }
        self.apart.push("requests have ids (x-request-id)");
    }

    fn prompts(&mut self, word: &'static str) {
        let (seed, label) = if word == "vllm" { (0, "seed 0") } else { (42, "seed 42") };
        self.take(|s| &mut s.scenario.load.seed, seed, label);
        let files = &self.settled.scenario.dataset.files;
        let draws = match self.dataset().as_deref() {
            Some("random") => word == "sglang" || files.is_empty(),
            Some("sharegpt") => true,
            _ => false,
        };
        if draws {
            self.config("like", word.into(), "prompts as that client draws them");
        }
    }
}
