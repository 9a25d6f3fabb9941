//! Flags whose meaning depends on the whole scenario: the route of a path, the default dataset, the
//! port of the engine, and flags of one dataset that are given to another.

use super::backends::{self, Output, RouteChoice};
use super::{Flags, datasets};
use reader::{Config, Located, Place, Problem};
use scenario::{Arrival, Scenario};
use session::resolve::BY_DEFAULT;

pub(crate) struct SettledRun {
    pub(crate) scenario: Scenario,
    pub(crate) plugins: Vec<Located<String>>,
    pub(crate) notes: Vec<String>,
    pub(crate) problems: Vec<Problem>,
}

/// Datasets that have lengths of their own, which `--random-*` does not mean.
const NOT_RANDOM: [&str; 4] = ["sharegpt", "custom", "shared-prefix", "trace"];
/// Datasets that give conversations, which only chat routes take.
const OF_CONVERSATIONS: [&str; 5] = ["agent", "audio", "conversation", "images", "speech"];
/// The dataset of recordings, which a route for the text of sounds is meant for.
const OF_RECORDINGS: &str = "speech";
const OF_SOUNDS: [&str; 3] = ["audio", "custom", OF_RECORDINGS];
/// Datasets whose answers `--sharegpt-output-len` sets, here and in SGLang's client.
const OF_SHAREGPT: [&str; 3] = ["sharegpt", "custom", "conversation"];

impl Flags {
    /// Settles open settings of a scenario under these flags; `alone` without any file.
    pub(crate) fn settle(&self, scenario: Scenario, alone: bool) -> SettledRun {
        let mut settled = SettledRun {
            scenario,
            plugins: self.named_plugins(),
            notes: self.familiar.note().into_iter().collect(),
            problems: Vec::new(),
        };
        let line = self.client().filter(|_| alone);
        if alone {
            let usual = line.as_ref().map_or("vllm", |(client, _)| client.word);
            settled.default_backend(usual);
        }
        let chosen = settled.endpoint(self.endpoint.as_deref());
        settled.fit_dataset(self.output(chosen.as_ref()));
        settled.default_dataset(line.is_some_and(|(client, _)| client.word == "sglang"));
        if let Some(chosen) = chosen {
            settled.route(chosen);
        }
        settled.usual_route(self.backend.as_deref());
        settled.chat_route();
        settled.port(self.host.is_some() && self.port.is_none());
        self.timed(&mut settled);
        if alone {
            self.read_as(&mut settled);
        }
        self.check_datasets(&mut settled, alone);
        settled
    }

    /// Returns the output of the backend's route, with the flag that names the route.
    fn output(&self, chosen: Option<&RouteChoice>) -> Option<(String, Output)> {
        if let (Some(chosen), Some(path)) = (chosen, &self.endpoint) {
            return Some((format!("--endpoint {path}"), chosen.output));
        }
        let name = self.backend.as_deref()?;
        Some((format!("--backend {name}"), backends::alias(name)?.output))
    }

    /// Sends at the times of samples if the dataset's name says so and nothing else sets times.
    fn timed(&self, settled: &mut SettledRun) {
        let name = self.dataset_name.as_deref().and_then(datasets::alias);
        let load = &mut settled.scenario.load;
        let open = load.meant_arrival().is_none() && load.trace.file.is_none();
        if name.is_some_and(|alias| alias.timed) && open && !self.familiar.has("no-self-timed") {
            load.arrival = Some(Located::flag("--dataset-name", Arrival::Dataset));
        }
    }

    /// Finds flags of one dataset that are given to another, and an ambiguous ratio.
    fn check_datasets(&self, settled: &mut SettledRun, alone: bool) {
        let Some(dataset) = settled.shipped_dataset() else { return };
        let random = [
            ("random-input-len", self.random_input_len.is_some()),
            ("random-output-len", self.random_output_len.is_some()),
            ("random-range-ratio", self.random_range_ratio.is_some()),
        ];
        let strangers = (random.into_iter())
            .filter(|(_, given)| *given && NOT_RANDOM.contains(&&*dataset))
            .map(|(flag, _)| (flag, "random".to_owned()));
        let sharegpt = self.sharegpt_output_len.is_some() && !OF_SHAREGPT.contains(&&*dataset);
        let sharegpt = sharegpt.then(|| ("sharegpt-output-len", "sharegpt".to_owned()));
        let theirs = (self.familiar.of_datasets())
            .filter(|(_, datasets)| !datasets.contains(&&*dataset))
            .map(|(flag, datasets)| (flag, datasets.join(", ")));
        for (flag, fits) in strangers.chain(sharegpt).chain(theirs) {
            settled.refuse(
                format!("`--{flag}` is for the dataset {fits}, and this run's is {dataset}"),
                format!(
                    "leave it out, or choose the dataset with --dataset-name; `runner plugin info datasets/{dataset}.wasm` lists its keys for --set dataset.config.KEY=VALUE"
                ),
            );
        }
        let config = &settled.scenario.dataset.config;
        // SGLang's client, and LMDeploy's, which took it over, read the ratio as this program does.
        let read_so = matches!(settled.backend().as_deref(), Some("sglang" | "lmdeploy"));
        if let (Some(ratio), "random", None) =
            (self.random_range_ratio, &*dataset, config.get("like"))
            && ratio.has_two_readings()
            && !read_so
        {
            if alone && self.line_of.is_none() {
                settled.refuse(
                    format!(
                        "`--random-range-ratio {ratio}` has two meanings, and no other flag shows the client"
                    ),
                    format!(
                        "for lengths from {ratio} times the length to the length add --line-of sglang, for up to {ratio} times the length shorter or longer --line-of vllm"
                    ),
                )
            } else {
                settled.notes.push(format!(
                    "--random-range-ratio {ratio} is read as SGLang's client reads it: lengths from {ratio} times the length to the length; for vLLM's reading add --set dataset.config.like=vllm"
                ))
            }
        }
    }
}

impl SettledRun {
    fn refuse(&mut self, message: String, help: impl Into<String>) {
        self.problems.push(Problem::new(message).help(help));
    }

    /// The plugin of a folder (`backends`) that the flags or the scenario name.
    fn named(&self, folder: &str) -> Option<String> {
        let own = match folder {
            "backends" => &self.scenario.backend.plugin,
            _ => &self.scenario.dataset.plugin,
        };
        let mut flags = self.plugins.iter().filter(|plugin| plugin.value.starts_with(folder));
        let plugin = flags.next_back().or(own.as_ref())?;
        let name = plugin.value.strip_prefix(folder)?.strip_prefix('/')?;
        let name = name.split_once('@').map_or(name, |(name, _)| name);
        name.strip_suffix(".wasm").map(str::to_owned)
    }

    pub(super) fn backend(&self) -> Option<String> {
        self.named("backends")
    }

    pub(super) fn shipped_dataset(&self) -> Option<String> {
        let named = self.named("datasets");
        named.filter(|name| shipped::has_plugin(&datasets::file(name)))
    }

    /// True if a flag or the scenario may name a dataset; a file of any name may be one.
    fn may_have_dataset(&self) -> bool {
        let may_be = |plugin: &_| !matches!(folder(plugin), Some("backends" | "scorers"));
        self.scenario.dataset.plugin.is_some() || self.plugins.iter().any(may_be)
    }

    fn endpoint(&mut self, endpoint: Option<&str>) -> Option<RouteChoice> {
        let endpoint = endpoint?;
        let chosen = match self.backend() {
            Some(backend) => backends::route_of(&backend, endpoint),
            None => {
                Err("it chooses a route of a built-in backend; name one with --backend".to_owned())
            }
        };
        let problem = |message: String| Problem::new(format!("`--endpoint`: {message}"));
        chosen.map_err(|message| self.problems.push(problem(message))).ok()
    }

    /// Takes a dataset of texts to embed or to rank, or of sounds, for a route that needs one.
    fn fit_dataset(&mut self, output: Option<(String, Output)>) {
        let (flag, dataset, gets) = match output {
            Some((flag, Output::Transcripts)) => return self.transcribes(flag),
            Some((flag, Output::Vectors)) => (flag, "embeddings", "texts to embed"),
            Some((flag, Output::Orders)) => (flag, "rerank", "texts to rank"),
            _ => return,
        };
        let stream = &mut self.scenario.request.stream;
        stream.get_or_insert_with(|| Located::flag(flag.clone(), false));
        match self.shipped_dataset().as_deref() {
            None if self.may_have_dataset() => {}
            None | Some("random") => {
                self.notes.push(format!("{flag} takes {gets}, so the dataset is {dataset}"));
                let of_kind = |plugin: &Located<String>| plugin.value.starts_with("datasets/");
                self.plugins.retain(|plugin| !of_kind(plugin));
                self.plugins.push(Located::flag(flag, datasets::file(dataset)));
            }
            Some("embeddings" | "rerank" | "custom") => {}
            Some(other) => self.refuse(
                format!("`{flag}` takes {gets}, and the dataset {other} gives prompts to answer"),
                format!(
                    "use --dataset-name {dataset}, or --dataset-name custom with rows of {gets}"
                ),
            ),
        }
    }

    /// Takes a dataset for a route that transcribes: recordings if there are files, else sounds.
    fn transcribes(&mut self, flag: String) {
        let dataset = if self.scenario.dataset.files.is_empty() { "audio" } else { OF_RECORDINGS };
        match self.shipped_dataset().as_deref() {
            Some(named) if OF_SOUNDS.contains(&named) => {}
            None if self.may_have_dataset() => {}
            None => {
                self.notes.push(format!("{flag} takes sounds, so the dataset is {dataset}"));
                self.plugins.push(Located::flag(flag, datasets::file(dataset)));
            }
            Some(other) => {
                self.refuse(
                    format!("`{flag}` takes sounds, and the dataset {other} has none"),
                    "use --dataset-name speech with recordings, or --dataset-name audio for sounds that nobody recorded",
                )
            }
        }
    }

    fn default_backend(&mut self, usual: &str) {
        let may_be = |plugin: &_| !matches!(folder(plugin), Some("datasets" | "scorers"));
        if self.scenario.backend.plugin.is_some() || self.plugins.iter().any(may_be) {
            return;
        }
        let client = if usual == "vllm" { "vllm bench serve" } else { "SGLang's bench_serving" };
        self.notes
            .push(format!("no backend is named, so it is {usual}, as in {client} (--backend)"));
        self.plugins.push(Located::flag(BY_DEFAULT, backends::file(usual)));
    }

    /// Takes the random dataset where none is named and no file is given.
    fn default_dataset(&mut self, in_sglangs_line: bool) {
        let names_backend = self.scenario.backend.plugin.is_some()
            || self.plugins.iter().any(|plugin| plugin.value.contains("backends/"));
        if self.may_have_dataset() || !self.scenario.dataset.files.is_empty() || !names_backend {
            return;
        }
        // The note on such a line covers its settings.
        if !in_sglangs_line {
            self.notes.push(
                "no dataset is named, so the dataset is `random`, as in vllm bench serve; without flags for lengths, its requests have 1024 input and 128 output tokens (--dataset-name)"
                    .to_owned(),
            );
        }
        self.plugins.push(Located::flag(BY_DEFAULT, datasets::file("random")));
    }

    fn route(&mut self, chosen: RouteChoice) {
        let place = Place::Flag("--endpoint".to_owned());
        let config = &mut self.scenario.backend.config;
        if let Some(route) = chosen.route {
            let set = config.get("route").map(|entry| &entry.value);
            let other = set.filter(|set| !is(&set.value, route));
            match other.map(|set| (&set.place, &set.value)) {
                // These are of the command line too.
                Some((Place::Flag(flag), Config::Scalar(name))) => {
                    let name = name.as_str().unwrap_or("another one");
                    let message = format!(
                        "`--endpoint` chooses the route {route}, and `{flag}` the route {name}"
                    );
                    self.problems.push(Problem::new(message).help("leave one of the two out"));
                }
                _ => config.set("route", Located::new(route.into(), place.clone())),
            }
        }
        if chosen.bare {
            config.set("prefix", Located::new(chosen.before.into(), place));
        } else if !chosen.before.is_empty() {
            self.prefix(&chosen.before);
        }
        if let (Some(model), None) = (chosen.model, &self.scenario.target.model) {
            self.scenario.target.model = Some(Located::flag("--endpoint", model));
        }
    }

    /// Puts a prefix behind every base URL that does not have it.
    fn prefix(&mut self, prefix: &str) {
        let port = self.backend().and_then(|backend| backends::port(&backend));
        let urls = &mut self.scenario.target.base_url;
        if let (None, Some(port)) = (&urls, port) {
            let url = Located::flag("--endpoint", format!("http://127.0.0.1:{port}"));
            *urls = Some(Located::flag("--endpoint", vec![url]));
        }
        for url in urls.iter_mut().flat_map(|urls| &mut urls.value) {
            let bare = url.value.trim_end_matches('/');
            if !bare.ends_with(prefix) {
                url.value = format!("{bare}{prefix}");
            }
        }
        if urls.is_none() {
            self.refuse(
                format!(
                    "`--endpoint` begins with `{prefix}`, which belongs to the base URL, and none is given"
                ),
                "give one with --base-url",
            );
        }
    }

    /// `--backend openai` means completions in `vllm bench serve`; the plugin's usual route is
    /// chat.
    fn usual_route(&mut self, backend: Option<&str>) {
        let converses =
            (self.shipped_dataset()).is_some_and(|name| OF_CONVERSATIONS.contains(&&*name));
        let config = &mut self.scenario.backend.config;
        if backend == Some("openai") && config.get("route").is_none() && !converses {
            config.set("route", Located::flag("--backend", "completions".into()));
        }
    }

    /// Takes the chat route for conversations, and the route of transcriptions for recordings.
    fn chat_route(&mut self) {
        let (Some(backend), Some(dataset)) = (self.backend(), self.shipped_dataset()) else {
            return;
        };
        let transcribes =
            (dataset == OF_RECORDINGS).then(|| backends::transcription_route(&backend)).flatten();
        let config = &mut self.scenario.backend.config;
        let (true, None, Some(chat)) = (
            OF_CONVERSATIONS.contains(&&*dataset),
            config.get("route"),
            transcribes.or(backends::chat_route(&backend)),
        ) else {
            return;
        };
        config.set("route", Located::flag(BY_DEFAULT, chat.into()));
        let content = if transcribes.is_some() { "recordings" } else { "conversations" };
        // Some backends take conversations anyway.
        if transcribes.is_some() || backend != "openai" {
            self.notes.push(format!(
                "the dataset {dataset} gives {content}, so the route is {chat} (--endpoint chooses another)"
            ));
        }
    }

    /// Completes a base URL that is a host alone.
    fn port(&mut self, missing: bool) {
        let port = self.backend().and_then(|backend| backends::port(&backend));
        let urls = &mut self.scenario.target.base_url;
        let (true, Some(port), Some(urls)) = (missing, port, urls) else { return };
        let by_host =
            |url: &Located<String>| matches!(&url.place, Place::Flag(flag) if flag == "--host");
        for url in urls.value.iter_mut().filter(|url| by_host(url)) {
            let rest = url.value.strip_prefix("http://").unwrap_or(&url.value);
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            url.value = format!("http://{host}:{port}{path}");
        }
    }
}

fn folder(plugin: &Located<String>) -> Option<&str> {
    plugin.value.rsplit('/').nth(1)
}

fn is(value: &Config, text: &str) -> bool {
    matches!(value, Config::Scalar(serde_json::Value::String(own)) if own == text)
}
