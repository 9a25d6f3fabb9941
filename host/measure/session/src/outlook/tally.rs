//! Counts of the drawn requests.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::{DrawnSession, PLACEHOLDER, Question, Request, shown};
use crate::stages::treatment;
use model::arrival::{Arrival, Think};
use model::hex;
use plugins::backend::{Prompt, Sample};
use plugins::dataset;
use result::prefix::{BestCache, Pages, Reuse};
use runs::outlook::{
    Cache, CacheSize, Due, End, Faulty, InFlight, Input, Lengths, Outlook, Output, RecordedRequest,
    RecordedSession, Remark, Sessions, Shown, StandIns, Users,
};
use scenario::plan::{Controls, Plan, PlannedPlugin};
use statistics::Spread;

/// The most classes that are counted on their own.
const CLASSES: usize = 1000;
const OTHERS: &str = "(others)";

pub(super) struct Tally {
    show: u64,
    cut: Option<usize>,
    pub(super) requests: u64,
    warmup: u64,
    bytes: u64,
    faulty: Option<Faulty>,
    session_requests: Spread,
    is_grouped: bool,
    pub(super) counts: Sessions,
    delays: Spread,
    stand_ins: StandIns,
    input: Spread,
    counted: Input,
    output: Spread,
    unlimited: u64,
    due: Spread,
    classes: BTreeMap<String, u64>,
    pages: Pages,
    best: BestCache,
    /// The start, the end and the tokens of each request whose duration is on record.
    flights: Vec<(f64, f64, u64)>,
    recorded: Vec<RecordedSession>,
    is_flushed: bool,
    cache: Cache,
    digest: Sha256,
    shown: Vec<Shown>,
}

impl Tally {
    /// Nothing yet, of a server that is controlled so.
    pub(super) fn new(question: &Question, control: &Controls) -> Self {
        Tally {
            show: question.show,
            cut: question.cut,
            requests: 0,
            warmup: 0,
            bytes: 0,
            faulty: None,
            session_requests: Spread::new(1.0),
            is_grouped: false,
            counts: Sessions::default(),
            delays: Spread::new(1e6),
            stand_ins: StandIns::default(),
            input: Spread::new(1.0),
            counted: Input::default(),
            output: Spread::new(1.0),
            unlimited: 0,
            due: Spread::new(1e6),
            classes: BTreeMap::new(),
            pages: Pages::new(control.page()),
            best: BestCache::new(control.page()),
            flights: Vec::new(),
            recorded: Vec::new(),
            is_flushed: control.flush_cache,
            cache: Cache { page: control.page().get(), ..Cache::default() },
            digest: Sha256::new(),
            shown: Vec::new(),
        }
    }

    pub(super) fn warm_up(&mut self, request: &Request) {
        self.warmup += 1;
        if !self.is_flushed {
            self.reuse(request);
        }
    }

    pub(super) fn add(&mut self, drawn: &DrawnSession) {
        self.counts.count += 1;
        self.session_requests.add(drawn.requests.len() as f64);
        self.is_grouped |= drawn.requests.len() > 1;
        if let Some(due) = drawn.due {
            self.due.add(due.as_secs_f64());
        }
        if let Some(times) = recorded_times(drawn) {
            if drawn.due.is_some() {
                self.fly(drawn, &times);
            }
            self.record(drawn, &times);
        }
        self.edges(drawn);
        for request in &drawn.requests {
            self.request(request);
        }
    }

    /// Notes the tokens of a session's requests over time.
    fn fly(&mut self, drawn: &DrawnSession, times: &[(f64, f64)]) {
        /// Requests whose times are kept.
        const MOST: usize = 1 << 20;
        for (request, (start, end)) in drawn.requests.iter().zip(times.iter().copied()) {
            let tokens = request.input_tokens.unwrap_or(0);
            let tokens = tokens + u64::from(request.output_tokens.unwrap_or(0));
            if self.flights.len() < MOST {
                self.flights.push((start, end, tokens));
            }
        }
    }

    /// Notes the times of the first sessions.
    fn record(&mut self, drawn: &DrawnSession, times: &[(f64, f64)]) {
        /// Sessions, and requests of all of them.
        const MOST: (usize, usize) = (40, 2_000);
        let known: usize = self.recorded.iter().map(|session| session.requests.len()).sum();
        if self.recorded.len() == MOST.0 || known == MOST.1 {
            return;
        }
        let name = |request: &Request| {
            let turn = request.given.turn.as_ref();
            turn.map_or_else(|| request.given.id.clone(), |turn| turn.session.clone())
        };
        let Some(first) = drawn.requests.first().map(name) else { return };
        let requests = drawn.requests.iter().zip(times).take(MOST.1 - known);
        let requests = requests.map(|(request, (start, end))| RecordedRequest {
            start: *start,
            end: *end,
            is_sub_agents: request.given.turn.is_some() && name(request) != first,
        });
        self.recorded.push(RecordedSession { requests: requests.collect(), name: first });
    }

    fn edges(&mut self, drawn: &DrawnSession) {
        let mut followers: BTreeMap<&str, u64> = BTreeMap::new();
        let mut needed = Vec::new();
        for request in &drawn.requests {
            let sample = &request.given;
            self.counts.joins += u64::from(sample.after.len() > 1);
            for dependency in &sample.after {
                self.delays.add(dependency.delay as f64 / 1e9);
                *followers.entry(&dependency.sample).or_default() += 1;
            }
            if request.is_estimate {
                self.stand_ins.requests += 1;
                needed.extend(answers(sample));
            }
        }
        for number in followers.into_values() {
            self.counts.forks += u64::from(number > 1);
            self.counts.widest = self.counts.widest.max(number);
        }
        needed.sort_unstable();
        needed.dedup();
        let needs = |request: &&Request| needed.binary_search(&&*request.given.id).is_ok();
        for request in drawn.requests.iter().filter(needs) {
            let kind = match (&request.given.recorded_answer, request.output_tokens) {
                (Some(_), _) => &mut self.stand_ins.recorded,
                (None, Some(_)) => &mut self.stand_ins.made_up,
                (None, None) => &mut self.stand_ins.empty,
            };
            *kind += 1;
        }
    }

    fn request(&mut self, request: &Request) {
        self.requests += 1;
        self.bytes += request.bytes;
        self.digest.update(&request.digest);
        self.digest.update("\n");
        if let Some(fault) = &request.fault {
            let first = || Faulty { count: 0, first: fault.clone() };
            self.faulty.get_or_insert_with(first).count += 1;
        }
        match (request.input_tokens, request.sent.input_tokens) {
            (None, _) => self.counted.unknown += 1,
            (Some(_), Some(_)) => self.counted.by_dataset += 1,
            (Some(_), None) => {
                self.counted.by_tokenizer += 1;
                let is_bare = request.tokens.as_ref().is_some_and(|made| made.is_bare);
                self.counted.without_template += u64::from(is_bare);
            }
        }
        if let Some(tokens) = request.input_tokens {
            self.input.add(tokens as f64);
        }
        match request.output_tokens {
            Some(tokens) => self.output.add(f64::from(tokens)),
            None => self.unlimited += 1,
        }
        if let Some(class) = &request.given.class {
            let known = self.classes.contains_key(class) || self.classes.len() < CLASSES;
            let class = if known { class } else { OTHERS };
            *self.classes.entry(class.to_owned()).or_default() += 1;
        }
        if let Some(reuse) = self.reuse(request) {
            self.cache.requests += 1;
            self.cache.tokens += u64::from(reuse.tokens);
            self.cache.cached += u64::from(reuse.cached);
        }
        if (self.shown.len() as u64) < self.show {
            self.shown.push(shown(request, self.cut));
        }
    }

    fn reuse(&mut self, request: &Request) -> Option<Reuse> {
        let made = request.tokens.as_ref()?;
        let adapter = request.sent.adapter.as_deref();
        self.best.take(adapter, &made.tokens);
        Some(self.pages.take(adapter, &made.tokens))
    }

    pub(super) fn finish(self, plan: &Plan, end: End, remarks: Vec<dataset::Remark>) -> Outlook {
        let whole = |spread: Spread| Some(Lengths::new(&spread.figures()?, true));
        let seconds = |spread: Spread| Some(Lengths::new(&spread.figures()?, false));
        let plugin = |plugin: &PlannedPlugin| format!("{} {}", plugin.name, plugin.version);
        let users = match &plan.load.arrival {
            Arrival::Closed { concurrency, think } => {
                Some(Users { count: *concurrency, think: think.as_ref().map(thinking) })
            }
            _ => None,
        };
        Outlook {
            name: plan.name.clone(),
            model: plan.target.model.clone(),
            model_is_placeholder: plan.target.model == PLACEHOLDER,
            backend: plugin(&plan.backend),
            dataset: plugin(&plan.dataset.plugin),
            tokenizer: plan.tokenizer.summary(),
            arrival: plan.load.arrival.to_string(),
            end,
            requests: self.requests,
            warmup: self.warmup,
            faulty: self.faulty,
            request_bytes: self.bytes,
            sessions: Sessions {
                requests: if self.is_grouped { whole(self.session_requests) } else { None },
                delays: seconds(self.delays),
                stand_ins: (self.stand_ins.requests > 0).then_some(self.stand_ins),
                ..self.counts
            },
            input: Input { tokens: whole(self.input), ..self.counted },
            output: Output { tokens: whole(self.output), unlimited: self.unlimited },
            due: self.due.figures().map(|due| Lengths::of_times(&due)).map(|seconds| Due {
                per_second: (seconds.max > seconds.min)
                    .then(|| (seconds.count - 1) as f64 / (seconds.max - seconds.min)),
                seconds,
            }),
            users,
            classes: self.classes,
            cache: (self.cache.tokens > 0).then(|| Cache {
                share: self.cache.cached as f64 / self.cache.tokens as f64,
                is_bounded: self.pages.is_full(),
                sizes: (self.best.shares().into_iter())
                    .map(|(tokens, share)| CacheSize { tokens, share })
                    .collect(),
                ..self.cache
            }),
            in_flight: InFlight::new(&self.flights),
            recorded_sessions: if self.is_grouped { self.recorded } else { Vec::new() },
            remarks: remarks.into_iter().map(remark).collect(),
            digest: hex(&self.digest.finalize()),
            shown: self.shown,
        }
    }
}

/// The start and the end of a session's requests by their recorded durations, in seconds.
fn recorded_times(drawn: &DrawnSession) -> Option<Vec<(f64, f64)>> {
    let due = drawn.due.unwrap_or_default().as_secs_f64();
    let mut ends: BTreeMap<&str, f64> = BTreeMap::new();
    let times = drawn.requests.iter().map(|request| {
        let sample = &request.given;
        let took = sample.recorded_duration? as f64 / 1e9;
        let after = sample.after.iter().filter_map(|dependency| {
            Some(ends.get(&*dependency.sample)? + dependency.delay as f64 / 1e9)
        });
        let start = after.fold(due, f64::max);
        ends.insert(&sample.id, start + took);
        Some((start, start + took))
    });
    times.collect()
}

/// The samples whose answers a sample's prompt needs.
fn answers(sample: &Sample) -> Vec<&str> {
    let mut needed = sample.prompt.quotes();
    if let Prompt::Continuation(next) = &sample.prompt {
        needed.push(&next.parent);
    }
    needed
}

fn thinking(think: &Think) -> String {
    let time = model::duration::format(std::time::Duration::from_nanos(think.time.0));
    format!("{time} ({})", think.spread)
}

fn remark(remark: dataset::Remark) -> Remark {
    let what = treatment(remark.what).name().to_owned();
    let dataset::Remark { reason, count, first, .. } = remark;
    Remark { what, reason, count, first }
}
