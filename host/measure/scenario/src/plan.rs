//! The plan: a run with nothing left to decide. Every default is filled in, every plugin is
//! identified by its digest, and every random choice comes from the seed. So the same plan gives
//! the same requests at the same due times. It is written next to the records and holds no secret.

use model::file::PlannedFile;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use model::about::About;
use model::arrival::{Arrival, Due, Trace};
use model::connection::{Reuse, Timeouts, Timestamps, Trust, Version};
use model::plugin::{Kind, Limits};
use model::session::{AfterFailure, History, LaneSalt, Users, Warming};
use model::units::Nanos;
use result::metric::Objective;
use result::prefix::PAGE;
use result::summary::{Machines, Price, Rules, Used};
use result::threshold::Threshold;

use crate::DeviceMetrics;
use crate::field::below;
use crate::load::SESSION_MEMORY;
use model::adapter::Assignment;
use model::identity::RequestIds;
use model::random::mix;

/// A resolved run.
#[model::apply(model::document!)]
pub struct Plan {
    /// The name of the scenario.
    pub name: String,
    /// Version of the runner that made the plan.
    pub runner: String,
    /// The subject of the run, in its author's words.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
    /// The target of requests.
    pub target: PlannedTarget,
    /// The backend, which speaks the server's dialect.
    pub backend: PlannedPlugin,
    /// The source of the requests' contents.
    pub dataset: PlannedDataset,
    /// The scorers that judge the answers.
    pub scorers: Vec<PlannedPlugin>,
    /// The tokenizer that counts tokens on this side.
    pub tokenizer: PlannedTokenizer,
    /// The number of requests, and when they are due.
    pub load: Load,
    /// The options of every request.
    pub request: RequestOptions,
    /// The connections to the targets.
    pub connection: Wiring,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// Requests to the targets in addition to the measured ones.
    #[serde(default, skip_serializing_if = "Controls::is_none")]
    pub control: Controls,
    /// The devices that are sampled; absent if none is.
    pub device_metrics: Option<WatchedDevices>,
    /// The cost of the devices or their machine, if it was stated.
    pub cost: Option<Price>,
    /// The machines, as the scenario declares them.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub machines: Machines,
    /// Percentiles to report, in percent.
    pub percentiles: Vec<f64>,
    /// True if means and percentiles include requests that failed or were not sent, as infinitely
    /// late.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failures_as_infinite: bool,
    /// The length of the time slices that figures are also given by, in nanoseconds; absent if they
    /// are not.
    pub time_slice: Option<Nanos>,
    /// The SLOs that a good request meets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goodput: Vec<Objective>,
    /// The thresholds of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub thresholds: Vec<Threshold>,
    /// The figures that the run is expected to have.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub expect: Expectations,
    /// The rules of a published benchmark that the run is to keep; absent if it is by none.
    pub rules: Option<Rules>,
    /// The resource limits of plugins.
    pub sandbox: Limits,
    /// The part of the plan that this process runs; absent if it runs the whole.
    pub slice: Option<Slice>,
}

/// The figures that a run is expected to have.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Expectations {
    /// The acceptance length of drafts, in tokens per step.
    pub acceptance_length: Option<f64>,
}

/// The target of requests.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct PlannedTarget {
    /// The engine's base URLs; requests go to them in turn.
    pub base_urls: Vec<String>,
    /// The model's name as the server knows it; empty in plans of runs that never learned it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The API key that requests carry, if they do.
    pub api_key: ApiKey,
    /// Names of the further headers that the user gave; values may be secret.
    pub headers: Vec<String>,
    /// The hosts beside the targets' to which a reply may lead the next request of its exchange.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The base URLs of the engines behind a router; their metrics pages are read, and not the
    /// targets'.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics_urls: Vec<String>,
    /// The most tokens of a prompt and its answer, as the server states it.
    pub context_tokens: Option<u32>,
}

/// The API key that requests carry, but for its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ApiKey {
    /// `false` if they carry none; `true` in plans that do not name its variable.
    Carried(bool),
    /// It was read from a variable of the environment.
    From {
        /// The variable's name.
        variable: String,
        /// The way in which requests carry it.
        #[serde(default)]
        scheme: Scheme,
    },
}

/// The way in which requests show that their sender has the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// As `authorization: Bearer KEY`; also in plans that do not say.
    #[default]
    Bearer,
    /// The key alone, in the header of this name.
    Header(String),
    /// By a signature for this service of AWS, of version 4.
    Sigv4(String),
    /// By a signature with HMAC, as the backend describes it.
    Hmac,
    /// By a token that a login with the key gives, as the backend describes it.
    Token,
}

impl ApiKey {
    /// The variable that it was read from, if that is known.
    pub fn variable(&self) -> Option<&str> {
        match self {
            ApiKey::Carried(_) => None,
            ApiKey::From { variable, .. } => Some(variable),
        }
    }
}

impl PlannedTarget {
    pub fn model(&self) -> Option<&str> {
        (!self.model.is_empty()).then_some(&*self.model)
    }
}

/// The connections to targets.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Wiring {
    /// The HTTP version.
    pub http: Version,
    /// The connection that a request uses.
    pub reuse: Reuse,
    /// The certificates to trust, if TLS is used.
    pub trust: Trust,
    /// The source of timestamps of received bytes.
    pub timestamps: Timestamps,
    /// Threads that send and read; absent if the machine's cores decide.
    pub readers: Option<u32>,
    /// The most threads that decode; absent if the machine's cores decide.
    pub decoders: Option<u32>,
}

/// A plugin, identified exactly.
#[model::apply(model::document!)]
pub struct PlannedPlugin {
    /// The name in the scenario.
    pub plugin: String,
    /// Its own name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of the component, in hexadecimal.
    pub digest: String,
    /// Its configuration.
    pub config: serde_json::Value,
    /// Keys of the configuration whose values are secret, because the schema says `writeOnly`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_keys: Vec<String>,
}

impl PlannedPlugin {
    pub fn secrets(&self) -> Vec<String> {
        model::redact::secrets_in(&self.config, &self.secret_keys)
    }
}

/// A dataset and its input files.
#[model::apply(model::document!)]
pub struct PlannedDataset {
    /// The plugin.
    #[serde(flatten)]
    pub plugin: PlannedPlugin,
    /// The files it may read, by the names that the plugin uses for them.
    pub files: BTreeMap<String, PlannedFile>,
}

/// The tokenizer that counts tokens on this side.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct PlannedTokenizer {
    /// Its path, its name on the Hugging Face hub, or `bytes` for the substitute.
    pub name: String,
    /// True if it is a substitute for the model's own, so that its counts are approximate.
    pub approximate: bool,
    /// The commit, where it comes from the local cache of the Hugging Face hub.
    pub revision: Option<String>,
    /// SHA-256 of its file. A folder has the SHA-256 of a list of the files that decide tokens, in
    /// the order of their names and in the form of `sha256sum`. Absent for the substitute.
    pub digest: Option<String>,
    /// True if the scenario names none, and it was found under the served model's name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found: bool,
    /// Tokens of the model's chat template around one message; absent without a template.
    pub template_tokens: Option<u32>,
}

impl PlannedTokenizer {
    pub fn summary(&self) -> result::summary::Tokenizer {
        result::summary::Tokenizer {
            name: self.name.clone(),
            approximate: self.approximate,
            revision: self.revision.clone(),
            found: self.found,
            template_tokens: self.template_tokens,
        }
    }
}

/// The most waves of a warm-up.
const WARMUP_WAVES: u32 = 10;
/// The most requests of a wave, so that the requests of all waves can lie in memory together.
const WAVE: u32 = 10_000;

/// The number of requests, and when they are due.
#[model::apply(model::document!)]
pub struct Load {
    /// The end of the measurement.
    pub amount: Amount,
    /// The due times of requests.
    pub arrival: Arrival,
    /// The maximum number of requests in flight.
    pub max_in_flight: Option<u32>,
    /// The unit of work that a user of a closed loop has one of at a time.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub users: Users,
    /// Bytes that the sessions under way may take; no new one begins beyond that.
    #[serde(default = "usual_session_memory", skip_serializing_if = "is_usual_session_memory")]
    pub session_memory: u64,
    /// True if every prompt begins with a text that no other run has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub salted: bool,
    /// The text of `salted`. It is made when the run begins.
    pub salt: Option<Salt>,
    /// Requests before the measurement: of each wave, if there are several.
    pub warmup: u32,
    /// The way in which they are sent.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub warming: Warming,
    /// The time after which no wave begins, in nanoseconds; absent if there is but one.
    pub warmup_limit: Option<Nanos>,
    /// The lanes of sessions that begin inside their recordings; absent for other loads.
    pub lanes: Option<Lanes>,
    /// Random seed.
    pub seed: u64,
}

/// Sessions that begin inside their recordings, one in each lane.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Lanes {
    /// The shares of a recording's length between which a lane begins.
    pub start_at: [f64; 2],
    /// Further requests of each lane for one token, without pauses, before the measurement.
    pub warmup: u32,
    /// The longest wait for the replies of the warm-up, in nanoseconds.
    pub warmup_grace: Nanos,
    /// The longest time without a request in flight, in nanoseconds; absent if it has no bound.
    pub idle_most: Option<Nanos>,
    /// The texts of their own in the prompts of sessions.
    pub salt: LaneSalt,
}

fn usual_session_memory() -> u64 {
    SESSION_MEMORY
}

fn is_usual_session_memory(bytes: &u64) -> bool {
    *bytes == SESSION_MEMORY
}

/// The text with which every prompt of a run begins, and no prompt of another run.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Salt {
    /// It, in front of texts and conversations.
    pub text: String,
    /// It as tokens of the run's tokenizer, in front of prompts that are tokens.
    pub tokens: Vec<u32>,
}

/// Requests to targets in addition to the measured ones. None of them is measured.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct Controls {
    /// The time to wait until they are ready, in nanoseconds; absent if the run does not wait.
    pub wait_ready: Option<Nanos>,
    /// True if they clear their prefix caches after the warmup, before the measurement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flush_cache: bool,
    /// True if they report their metrics, before and after the measurement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_metrics: bool,
    /// The time between two readings of their metrics pages while the run goes on, in nanoseconds;
    /// absent if they are not read.
    pub server_series: Option<Nanos>,
    /// True if the repeated parts of prompts are counted. This sends no request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache_report: bool,
    /// Tokens per page that this count assumes.
    pub page_size: Option<NonZeroU32>,
}

impl Controls {
    /// Tokens per page of the prefix cache: the stated number, or most engines' number.
    pub fn page(&self) -> NonZeroU32 {
        self.page_size.unwrap_or(PAGE)
    }

    fn is_none(&self) -> bool {
        *self == Controls::default()
    }
}

/// Devices that are sampled while a run goes on.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct WatchedDevices {
    /// The source of their telemetry: `nvml`, or the URL of a page of DCGM's exporter.
    pub from: DeviceMetrics,
    /// The time from one sample to the next, in nanoseconds.
    pub every: Nanos,
    /// The numbers of these devices, or the beginnings of their UUIDs; all if the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

impl WatchedDevices {
    /// Returns the interval at which devices are read if the scenario does not say: most drivers
    /// renew the readings of NVML, and an exporter its page, no more often.
    pub fn usual(from: &DeviceMetrics) -> Nanos {
        match from {
            DeviceMetrics::None | DeviceMetrics::Nvml => Nanos(100_000_000),
            DeviceMetrics::Page(_) => Nanos(1_000_000_000),
        }
    }
}

/// The end of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// After this many requests.
    Requests(u64),
    /// After this many sessions: requests that depend on no other, with all that depend on them.
    Sessions(u64),
    /// After this many nanoseconds no request is due any more.
    Duration(Nanos),
}

/// Part `index` of `of` of a plan. Places (the users of a closed loop, or the slots below a cap)
/// are dealt out in turn, and requests by place ([`Plan::holds`]). So a part has an equal share of
/// places and requests.
#[model::apply(model::document!)]
#[derive(Copy, Eq)]
pub struct Slice {
    /// The index of the part, from 0.
    pub index: u32,
    /// The number of parts.
    pub of: u32,
}

impl Slice {
    /// True if this part gets the item with this number, where items are dealt out in turn.
    fn gets(self, number: u64) -> bool {
        number % u64::from(self.of) == u64::from(self.index)
    }

    fn share(self, items: u64) -> u64 {
        let (index, of) = (u64::from(self.index), u64::from(self.of));
        items / of + u64::from(index < items % of)
    }
}

impl Load {
    /// Requests that may be in flight at the same time: the cap, or a closed loop's users.
    pub fn slots(&self) -> Option<u32> {
        let Arrival::Closed { concurrency, .. } = self.arrival else { return self.max_in_flight };
        Some(self.max_in_flight.map_or(concurrency, |most| concurrency.min(most)))
    }

    /// The number of requests drawn for the warm-up, enough for its most waves.
    pub fn warmup_requests(&self) -> u32 {
        match self.warming {
            Warming::UntilStable => self.warmup.saturating_mul(WARMUP_WAVES),
            Warming::Requests | Warming::LikeLoad => self.warmup,
        }
    }

    /// The number of requests of a warm-up wave that looks like this load: the most in flight; at a
    /// rate, the requests of five seconds; else the requests that come at once.
    pub fn wave(&self) -> u32 {
        const SECONDS: f64 = 5.0;
        const AT_ONCE: u64 = 1000;
        let wanted = match (self.slots(), self.warmup_rate()) {
            (Some(slots), _) => u64::from(slots),
            (None, Some(rate)) => {
                let wave = (1..=WAVE).find(|wave| f64::from(*wave) >= rate * SECONDS);
                u64::from(wave.unwrap_or(WAVE))
            }
            (None, None) => self.roots().unwrap_or(AT_ONCE).min(AT_ONCE),
        };
        u32::try_from(wanted).unwrap_or(WAVE).clamp(1, WAVE)
    }

    /// Requests per second of a warm-up that looks like this load, if it has a rate and no cap.
    pub fn warmup_rate(&self) -> Option<f64> {
        let rate = self.arrival.peak_rate();
        rate.filter(|rate| rate.is_finite() && *rate > 0.0 && self.slots().is_none())
    }

    /// Returns the maximum number of measured requests, if it is known beforehand.
    pub fn requests(&self) -> Option<u64> {
        let Amount::Requests(requests) = self.amount else { return None };
        Some(self.arrival.limit().map_or(requests, |limit| requests.min(limit)))
    }

    /// The maximum number of due requests that depend on no other, if it is known.
    pub fn roots(&self) -> Option<u64> {
        let Amount::Sessions(sessions) = self.amount else { return self.requests() };
        Some(self.arrival.limit().map_or(sessions, |limit| sessions.min(limit)))
    }
}

impl Plan {
    /// The plugins of the run, the backend first.
    pub fn plugins(&self) -> Vec<Used> {
        let used = |kind, plugin: &PlannedPlugin| Used {
            kind,
            name: plugin.name.clone(),
            version: plugin.version.clone(),
            digest: plugin.digest.clone(),
        };
        let scorers = self.scorers.iter();
        [used(Kind::Backend, &self.backend), used(Kind::Dataset, &self.dataset.plugin)]
            .into_iter()
            .chain(scorers.map(|scorer| used(Kind::Scorer, scorer)))
            .collect()
    }

    /// True if this plan's slice holds the session with this number. If no request depends on
    /// another, each is a session.
    ///
    /// Session `k` belongs to place `k` modulo the number of places. If replies take equally long,
    /// a run of one process has that place free for it. So the slices together always have the
    /// same requests in flight as the whole.
    pub fn holds(&self, number: u64) -> bool {
        holds(self.slice, self.load.slots(), number)
    }

    /// True if there are fewer places than slices, and none is left for this one: it sends nothing.
    pub fn is_idle(&self) -> bool {
        self.slots() == Some(0)
    }

    /// The plan without the parts that differ between machines of one run: its name, the slices,
    /// and the machines' names for the same files.
    pub fn shared(&self) -> Plan {
        let mut plan = self.clone();
        plan.name.clear();
        plan.slice = None;
        plan.load.salt = None;
        let dataset = &mut plan.dataset;
        for plugin in [&mut plan.backend, &mut dataset.plugin] {
            plugin.plugin.clear();
        }
        (plan.scorers.iter_mut()).for_each(|scorer| scorer.plugin.clear());
        (dataset.files.values_mut()).for_each(|file| file.path = PathBuf::new());
        let tokenizer = &mut plan.tokenizer;
        if tokenizer.digest.is_some() {
            tokenizer.name.clear();
            tokenizer.revision = None;
            tokenizer.found = false;
            tokenizer.template_tokens = None;
        }
        plan.connection.trust.ca_cert = None;
        if let Arrival::Trace { file, .. } = &mut plan.load.arrival {
            file.path = PathBuf::new();
        }
        plan
    }

    /// The maximum number of measured requests of the whole plan, if it is known.
    pub fn requests(&self) -> Option<u64> {
        self.load.requests()
    }

    pub fn held_requests(&self) -> Option<u64> {
        let requests = self.requests()?;
        Some(match (self.slice, self.load.slots().map(u64::from)) {
            (None, _) => requests,
            (Some(slice), None | Some(0)) => slice.share(requests),
            (Some(slice), Some(slots)) => {
                requests / slots * slice.share(slots) + slice.share(requests % slots)
            }
        })
    }

    /// Due times of this plan's requests that depend on no other, in order. `trace` has the
    /// contents of the trace's file, or the dataset's times; other arrivals ignore it.
    pub fn due_times(&self, trace: &Trace) -> impl Iterator<Item = Due> + use<> {
        // An idle slice holds no due time, so a search for the first never ends.
        let roots = if self.is_idle() { Some(0) } else { self.load.roots() };
        let (slice, slots) = (self.slice, self.load.slots());
        self.load
            .arrival
            .due_times(self.load.seed, self.load.roots(), trace)
            .zip(0..roots.unwrap_or(u64::MAX))
            .filter(move |(_, number)| holds(slice, slots, *number))
            .map(|(due, _)| due)
    }

    /// Returns the due time of the first request of the measurement, which some arrivals put well
    /// after the beginning. A trace's first request is due at its beginning.
    pub fn first_due(&self) -> Nanos {
        if let Arrival::Dataset { first, .. } = self.load.arrival {
            return first;
        }
        match self.due_times(&Trace::default()).next() {
            Some(Due::At(after)) => after,
            Some(Due::WhenFree) | None => Nanos::ZERO,
        }
    }

    /// Numbers of this slice's users of a closed loop: the first, and the distance to the next.
    pub fn users(&self) -> (u32, u32) {
        self.slice.map_or((0, 1), |slice| (slice.index, slice.of))
    }

    /// Requests that may be in flight at once: the slice's share of the cap or users, perhaps none.
    pub fn slots(&self) -> Option<usize> {
        let whole = self.load.slots()?;
        Some(self.slice.map_or(whole as usize, |slice| {
            // A share is no more than the whole.
            usize::try_from(slice.share(u64::from(whole))).unwrap_or(whole as usize)
        }))
    }
}

/// True if a slice holds the session with this number, where `slots` sessions may be in flight.
fn holds(slice: Option<Slice>, slots: Option<u32>, number: u64) -> bool {
    let place = slots.map_or(number, |slots| number % u64::from(slots.max(1)));
    slice.is_none_or(|slice| slice.gets(place))
}

/// The values of a plan in JSON by their paths, such as `load.amount.requests`.
pub fn flat(plan: &serde_json::Value) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    flatten("", plan, &mut values);
    values
}

fn flatten(name: &str, value: &serde_json::Value, flat: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                flatten(&below(name, key), value, flat);
            }
        }
        serde_json::Value::String(text) => _ = flat.insert(name.to_owned(), text.clone()),
        other => _ = flat.insert(name.to_owned(), other.to_string()),
    }
}

/// The options of every request. An absent option is left to the server.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct RequestOptions {
    /// True if replies are streamed.
    pub stream: bool,
    /// Output tokens to ask for if the sample does not say.
    pub output_tokens: Option<u32>,
    /// Minimum number of output tokens.
    pub min_output_tokens: Option<u32>,
    /// True if answers reach the requested length.
    pub ignore_eos: bool,
    /// True if answers may end early because the backend has no field against it, and not because
    /// the scenario lets them.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub unforced: bool,
    /// Sampling temperature; absent if requests state none.
    pub temperature: Option<f64>,
    /// Sample from the likeliest tokens whose probabilities add up to this.
    pub top_p: Option<f64>,
    /// Sample from this many of the likeliest tokens.
    pub top_k: Option<u32>,
    /// Sample from tokens with at least this share of the likeliest token's probability.
    pub min_p: Option<f64>,
    /// Subtracted for each earlier occurrence of a token.
    pub frequency_penalty: Option<f64>,
    /// Subtracted once if a token occurred earlier.
    pub presence_penalty: Option<f64>,
    /// Divides the score of tokens that occurred earlier.
    pub repetition_penalty: Option<f64>,
    /// Random seed of the server's sampling.
    pub sampling_seed: Option<u64>,
    /// Texts that end an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Adapters to use if the sample names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapters: Vec<String>,
    /// The assignment of adapters to requests.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub adapter_assignment: Assignment,
    /// Instructions that every conversation begins with.
    pub system_prompt: Option<String>,
    /// The answers in the history of a conversation.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub history: History,
    /// The treatment of requests that depend on a failed request.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub after_failure: AfterFailure,
    /// The requests that are cancelled on purpose; absent if none is.
    pub cancel: Option<Cancel>,
    /// Fields added to every request's body.
    pub extra_body: Option<serde_json::Value>,
    /// The ids that requests carry; none in plans that do not say.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub ids: RequestIds,
    /// Options that the scenario states and the backend ignores, by their keys, such as
    /// `request.top-k`. No request carries them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// Requests that the client cancels on purpose.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Cancel {
    /// Their share of the requests, above 0 and at most 1; the seed decides which.
    pub share: f64,
    /// The time from sending a request to its cancellation, unless its answer has ended.
    pub after: Nanos,
}

impl RequestOptions {
    /// True if requests tell the server to ignore the end of the text.
    pub fn asks_to_go_on(&self) -> bool {
        self.ignore_eos && !self.ignored.iter().any(|key| key == "request.ignore-eos")
    }

    /// True if requests force the length of answers: neither their end nor a stop text ends them.
    pub fn forces_length(&self) -> bool {
        self.ignore_eos && self.stop.is_empty()
    }
}

impl Cancel {
    /// True if the request with this number is one of them.
    fn chooses(&self, seed: u64, index: u64) -> bool {
        let number = mix(mix(seed ^ CANCELLED).wrapping_add(index));
        // 53 bits: the precision of a double, from 0 up to but not including 1.
        let drawn = (number >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < self.share
    }
}

/// Keeps the requests that are cancelled apart from other choices that the seed makes.
const CANCELLED: u64 = 0x63_61_6e_63_65_6c;

impl Plan {
    /// The adapter for a request whose sample names none; the plan alone decides.
    pub fn adapter(&self, index: u64) -> Option<&str> {
        let adapters = &self.request.adapters;
        let count = adapters.len() as u64;
        let number = match self.request.adapter_assignment {
            Assignment::RoundRobin => index,
            Assignment::Random => mix(mix(self.load.seed).wrapping_add(index)),
        };
        let place = usize::try_from(number.checked_rem(count)?).ok()?;
        adapters.get(place).map(String::as_str)
    }

    /// The time from sending to cancellation, if the measured request with this number is cancelled
    /// on purpose. The plan alone decides, so each of its slices cancels the same requests.
    pub fn cancelled_after(&self, index: u64) -> Option<Nanos> {
        let cancel = self.request.cancel?;
        let is_chosen = cancel.chooses(self.load.seed, index);
        is_chosen.then_some(cancel.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_chooses_the_cancelled_requests() {
        let chosen = |share, seed, many| {
            let after = Nanos(1);
            let cancel = Cancel { share, after };
            let indexes = (0..many).filter(move |index| cancel.chooses(seed, *index));
            indexes.collect::<Vec<u64>>()
        };
        assert_eq!(chosen(0.4, 0, 20), [1, 3, 4, 12, 13, 16, 18, 19]);
        assert_eq!(chosen(0.4, 1, 20), [0, 2, 3, 4, 5, 7, 8, 9, 12, 13, 14, 15, 17]);
        for seed in 0..4 {
            let share = chosen(0.4, seed, 10_000).len() as f64 / 10_000.0;
            assert!((share - 0.4).abs() < 0.01, "seed {seed}: {share}");
            // A larger share includes every request of a smaller one.
            let few = chosen(0.1, seed, 1_000);
            let more = chosen(0.4, seed, 1_000);
            assert!(few.iter().all(|index| more.contains(index)));
            assert_eq!(chosen(1.0, seed, 1_000).len(), 1_000);
        }
    }
}
