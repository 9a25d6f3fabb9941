//! A result as an explanation needs it: its figures under its tool's names, its tool's definitions
//! of them, and its requests as far as it lists them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use audit::claim::{Claim, Definition, Sample, Stated, Tool, definitions};
use audit::figures::{shown, taken};
use model::connection::Timestamps;
use model::exchange::{Exchange, Kind as Event, Phase};
use result::figure::{Figure, Statistic};
use result::finding::Severity;
use result::metric::{self, Measure, Reading};
use result::summary::RunFacts;
use result::summary::first_token::{Part, Parts, UNEXPLAINED};
use runs::Reported;
use statistics::Sorted;

use super::{Kind, LATENCIES, STATISTICS, Setting, WHOLES};
use crate::comparable::short_model;

/// The metrics of one request that tools call by one of the four names.
const METRICS: [&str; 12] = [
    "ttft",
    "ttft-any",
    "ttft-answer",
    "ttft-with-connect",
    "e2e",
    "e2e-last-token",
    "e2e-usage",
    "e2e-end",
    "tpot",
    "tpot-last-token",
    "tpot-usage",
    "tpot-with-first",
];

#[derive(Clone, Debug)]
pub struct Account {
    pub(super) source: String,
    pub(super) described: String,
    pub(super) doubts: Vec<String>,
    pub(super) tool: Tool,
    pub(super) tool_label: String,
    pub(super) model: Option<String>,
    pub(super) engine: Option<String>,
    pub(super) definitions: BTreeMap<String, Definition>,
    figures: BTreeMap<String, Stated>,
    pub(super) settings: Settings,
    pub(super) came: Came,
    pub(super) requests: Requests,
    /// The parts of the mean time to first token, if the server of a run of ours tells them.
    pub(super) first_token: Option<Parts>,
}

/// The settings of a result that it states.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub requests: Option<u64>,
    /// Infinite if all were to be sent at once.
    pub rate: Option<f64>,
    pub cap: Option<u64>,
    pub arrival: Option<String>,
    pub warmup: Option<u64>,
    pub seed: Option<u64>,
    pub dataset: Option<String>,
    pub output_tokens: Option<u64>,
    pub stream: Option<bool>,
    /// The temperature that requests state, or that they state none.
    pub sampling: Option<String>,
    /// True if the client takes the times of a reply from the kernel.
    pub kernel_times: Option<bool>,
}

/// The counts and times that were reached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    pub answered: Option<f64>,
    pub failed: Option<f64>,
    pub duration_s: Option<f64>,
    /// Tokens of all prompts, and of all answers as its figures count them.
    pub input: Option<f64>,
    pub output: Option<f64>,
    /// Tokens of all answers by the server's count, where its figures count others.
    pub served: Option<f64>,
    /// The shortest and the longest answer.
    pub lengths: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub(super) enum Requests {
    /// Records of our own, in the order in which they were sent.
    Ours(Vec<Record>),
    /// The samples that another tool lists, one of each, in its order.
    Theirs(Vec<Sample>),
}

/// An answered request of ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub warmup: bool,
    sent_s: f64,
    /// Milliseconds, in the order of [`METRICS`]; not a number where there is none.
    values: [f64; METRICS.len()],
    /// Tokens of the answer, if they are known.
    tokens: Option<u32>,
    /// The gaps between its pieces, in milliseconds together, and their number.
    gaps_ms: f64,
    gaps: u64,
    /// The same of chunks of any kind.
    any_gaps_ms: f64,
    any_gaps: u64,
}

/// The way from the records of requests to a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Recipe {
    /// A metric of the catalogue, with one value per request.
    Of(&'static str),
    /// The time from a first instant to a last one, over the tokens after the first: for a tool
    /// whose first chunk may have no output.
    After { first: &'static str, last: &'static str },
    /// Gaps of all requests together.
    Gaps,
    /// The same, where chunks without output begin and end gaps too.
    GapsFromAny,
    /// Times of all requests over their tokens, which weighs long answers more: from sending to the
    /// last token over all tokens, or from the first to the last over all but the first.
    Pooled { further: bool },
}

/// The requests that a figure is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Of {
    Measured,
    /// The same requests, without this number that were sent first.
    Without(u64),
}

impl Account {
    /// A run of ours, with 150 bytes for each answered request. Errors: an exchange cannot be read.
    pub fn of_run<E>(
        source: String,
        reported: &Reported,
        facts: &RunFacts,
        exchanges: impl Iterator<Item = Result<Exchange, E>>,
    ) -> Result<Self, E> {
        let (plan, summary) = (&reported.plan, &reported.summary);
        let mut records = Vec::new();
        for exchange in exchanges {
            records.extend(record(&exchange?, facts));
        }
        records.sort_by(|one, other| one.sent_s.total_cmp(&other.sent_s));
        let measured = || records.iter().filter(|record| !record.warmup);
        let lengths = ends(measured().map(|record| record.tokens.map(u64::from)).collect());
        let total = |name: &str| name.parse::<Figure>().ok()?.read(summary);
        let latencies = LATENCIES
            .into_iter()
            .flat_map(|theirs| STATISTICS.map(|statistic| format!("{theirs}.{statistic}")));
        let names = latencies.chain(WHOLES.map(|(name, _)| name.to_owned()));
        let figures = names.filter_map(|name| {
            let stated = Stated { value: total(&name)?, rounding: 0.0 };
            Some((name, stated))
        });
        let tokens = &summary.tokens;
        let doubts = (summary.findings.iter())
            .filter(|finding| finding.severity > Severity::Note)
            .map(|finding| format!("{}: {}", finding.severity.name(), finding.id.name()));
        let at_once = (summary.run.arrival == "inf").then_some(f64::INFINITY);
        let one_length = lengths.filter(|(least, most)| least == most);
        let about = &plan.about;
        Ok(Account {
            described: format!("this program, {}", plan.name),
            source,
            doubts: doubts.collect(),
            tool: Tool::Runner,
            tool_label: "this program".to_owned(),
            model: plan.target.model().map(str::to_owned),
            engine: engine(about.engine.as_deref(), about.engine_version.as_deref()),
            definitions: definitions(Tool::Runner),
            figures: figures.collect(),
            settings: Settings {
                requests: Some(summary.requests.total),
                rate: plan.load.arrival.rate().or(at_once),
                cap: plan.slots().map(|slots| slots as u64),
                arrival: Some(summary.run.arrival.clone()),
                warmup: Some(u64::from(plan.load.warmup)),
                seed: Some(plan.load.seed),
                dataset: Some(plan.dataset.plugin.name.clone()),
                output_tokens: one_length.map(|(least, _)| least),
                stream: Some(plan.request.stream),
                sampling: Some(match plan.request.temperature {
                    Some(temperature) => format!("temperature {temperature}"),
                    None => "as the server chooses".to_owned(),
                }),
                kernel_times: Some(plan.connection.timestamps == Timestamps::Kernel),
            },
            came: Came {
                answered: Some(summary.requests.successful as f64),
                failed: Some(summary.requests.failed as f64),
                duration_s: total("throughput.duration-s"),
                input: tokens.input.total.map(|tokens| tokens as f64),
                output: tokens.output.total.map(|tokens| tokens as f64),
                served: None,
                lengths,
            },
            requests: Requests::Ours(records),
            first_token: summary.first_token.as_ref().map(|split| split.mean.clone()),
        })
    }

    /// Another tool's result, and the reasons to doubt it.
    pub fn of_claim(claim: Claim, doubts: Vec<String>) -> Self {
        let mut figures = claim.figures.clone();
        for theirs in LATENCIES {
            // Figures that a list of requests does not sum up are computed from it.
            let Some(sorted) = Sorted::new(claim.values(theirs)) else { continue };
            for statistic in STATISTICS {
                let value = taken(&sorted, statistic);
                let stated = Stated { value, rounding: 0.0 };
                let name = format!("{theirs}.{statistic}");
                figures.entry(name).or_insert(stated);
            }
        }
        let stated = |name: &str| claim.value(name);
        let answered = claim.samples.iter().filter(|sample| sample.error.is_none());
        let listed = ends(answered.map(|sample| sample.output_tokens).collect());
        let lengths = claim.output_lengths.map(|lengths| (lengths.least, lengths.most));
        // Of trimmed results, the tokens are of fewer requests than the counts.
        let whole = |tokens: Option<f64>| tokens.filter(|_| !claim.trimmed);
        let own = &claim.asked;
        Account {
            source: claim.source.place(),
            described: audit::text::described(&claim),
            doubts,
            tool: claim.tool,
            tool_label: claim.tool.label().to_owned(),
            model: claim.model.clone(),
            engine: engine(claim.about.engine.as_deref(), claim.about.engine_version.as_deref()),
            definitions: claim.definitions.clone(),
            settings: Settings {
                requests: own.requests.or_else(|| claim.requests()),
                rate: own.request_rate,
                cap: own.max_concurrency,
                seed: own.seed,
                dataset: own.dataset.clone(),
                output_tokens: own.output_tokens,
                stream: own.stream,
                ..Settings::default()
            },
            came: Came {
                answered: stated("requests.successful"),
                failed: stated("requests.failed"),
                duration_s: stated("throughput.duration-s"),
                input: whole(stated("tokens.input")),
                output: whole(stated("tokens.output")),
                served: whole(stated("tokens.output-served")),
                lengths: lengths.or(listed),
            },
            figures,
            requests: Requests::Theirs(claim.samples),
            first_token: None,
        }
    }

    /// A figure, under the tool's own name for it.
    pub(super) fn figure(&self, name: &str) -> Option<Stated> {
        self.figures.get(name).copied().filter(|stated| stated.value.is_finite())
    }

    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.figure(name).map(|stated| stated.value)
    }

    /// Mean tokens of an answer, by the server's count where the tool has another.
    pub(super) fn output_each(&self) -> Option<f64> {
        each(self.came.served.or(self.came.output), self.came.answered)
    }

    /// Mean tokens of a prompt.
    pub(super) fn input_each(&self) -> Option<f64> {
        each(self.came.input, self.came.answered)
    }

    /// The time of a token after the first: the mean time after the first token over the mean
    /// number of further tokens. Weighted by tokens, so that it gives sums.
    pub(super) fn per_token_ms(&self) -> Option<f64> {
        let decode = self.value("e2e.mean")? - self.value("ttft.mean")?;
        let further = self.output_each()? - 1.0;
        (further > 0.0 && decode > 0.0).then(|| decode / further)
    }

    /// Mean number of requests in flight, by Little's law.
    pub(super) fn in_flight(&self) -> Option<f64> {
        let duration = self.came.duration_s.filter(|duration| *duration > 0.0)?;
        Some(self.came.answered? * self.value("e2e.mean")? / 1e3 / duration)
    }

    /// The recipe of one of its latencies; `None` if records of ours do not have it.
    pub(super) fn recipe(&self, theirs: &str) -> Option<Recipe> {
        let definition = self.definitions.get(theirs)?;
        let by_tokens = matches!(self.tool, Tool::Guidellm | Tool::Gpustack);
        match definition.metric.as_deref() {
            Some("tpot-with-first") if by_tokens => Some(Recipe::Pooled { further: false }),
            None if by_tokens && definition.formula.contains("weighted by n - 1") => {
                Some(Recipe::Pooled { further: true })
            }
            Some("itl") if self.begins_with_any() => Some(Recipe::GapsFromAny),
            Some("itl") => Some(Recipe::Gaps),
            Some("tpot-last-token") if self.begins_with_any() => {
                Some(Recipe::After { first: "ttft-any", last: "e2e-last-token" })
            }
            Some(metric) => {
                METRICS.iter().find(|name| **name == metric).map(|name| Recipe::Of(name))
            }
            None => None,
        }
    }

    /// True if its first token is a chunk of any kind.
    fn begins_with_any(&self) -> bool {
        let first = self.definitions.get("ttft");
        first.is_some_and(|first| first.metric.as_deref() == Some("ttft-any"))
    }

    /// True if the two tools define a latency alike, as far as records can tell.
    pub(super) fn defines_alike(&self, other: &Account, theirs: &str) -> bool {
        let recipes = [self.recipe(theirs), other.recipe(theirs)];
        self.definitions.get(theirs) == other.definitions.get(theirs)
            || (recipes[0].is_some() && recipes[0] == recipes[1])
    }

    /// The statistic of a recipe over records of ours; `None` if there are none, or it has none.
    pub(super) fn computed(&self, recipe: Recipe, statistic: Statistic, of: Of) -> Option<f64> {
        let Requests::Ours(records) = &self.requests else { return None };
        let skip = match of {
            Of::Measured => 0,
            Of::Without(first) => usize::try_from(first).ok()?,
        };
        let records = records.iter().filter(|record| !record.warmup).skip(skip);
        match recipe {
            Recipe::Of(metric) => {
                let values = records.filter_map(|record| record.value(metric));
                Some(taken(&Sorted::new(values.collect())?, statistic))
            }
            Recipe::After { first, last } => {
                let values = records.filter_map(|record| {
                    let time = record.value(last)? - record.value(first)?;
                    let further = record.tokens?.checked_sub(1).filter(|more| *more > 0)?;
                    Some(time / f64::from(further))
                });
                Some(taken(&Sorted::new(values.collect())?, statistic))
            }
            _ if statistic != Statistic::Mean => None,
            Recipe::Gaps | Recipe::GapsFromAny => {
                let (mut sum, mut count) = (0.0, 0);
                for record in records {
                    let (gaps_ms, gaps) = match recipe {
                        Recipe::GapsFromAny => (record.any_gaps_ms, record.any_gaps),
                        _ => (record.gaps_ms, record.gaps),
                    };
                    sum += gaps_ms;
                    count += gaps;
                }
                (count > 0).then(|| sum / count as f64)
            }
            Recipe::Pooled { further } => {
                let (mut sum, mut count) = (0.0, 0.0);
                for record in records {
                    let first = if further { record.value("ttft")? } else { 0.0 };
                    sum += record.value("e2e-last-token")? - first;
                    count += f64::from(record.tokens?) - if further { 1.0 } else { 0.0 };
                }
                (count > 0.0).then(|| sum / count)
            }
        }
    }

    /// The mean time per token by a recipe over the requests that another tool lists, each with its
    /// own end; `None` if it lists none.
    pub(super) fn per_token_of_listed(&self, recipe: Recipe) -> Option<f64> {
        let Requests::Theirs(samples) = &self.requests else { return None };
        let answered = samples.iter().filter(|sample| sample.error.is_none());
        let parts: Option<Vec<(f64, f64)>> = answered
            .map(|sample| {
                let (time, less) = match recipe {
                    Recipe::Of("tpot-with-first") | Recipe::Pooled { further: false } => {
                        (sample.e2e_ms?, 0.0)
                    }
                    Recipe::Of("tpot" | "tpot-last-token" | "tpot-usage")
                    | Recipe::After { .. } => (sample.e2e_ms? - sample.ttft_ms?, 1.0),
                    _ => return None,
                };
                Some((time, sample.output_tokens? as f64 - less))
            })
            .collect();
        let mut parts = parts?;
        parts.retain(|(_, tokens)| *tokens > 0.0);
        if let Recipe::Pooled { .. } = recipe {
            let (time, tokens) =
                parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
            return (tokens > 0.0).then(|| time / tokens);
        }
        let each: Vec<f64> = parts.iter().map(|(time, tokens)| time / tokens).collect();
        statistics::mean_if_any(&each)
    }

    /// The statistic of one of its latencies over the requests that another tool lists, without
    /// this number of first-sent requests.
    pub(super) fn listed(&self, theirs: &str, statistic: Statistic, skip: u64) -> Option<f64> {
        let Requests::Theirs(samples) = &self.requests else { return None };
        let mut answered: Vec<&Sample> =
            (samples.iter()).filter(|sample| sample.error.is_none()).collect();
        if answered.iter().any(|sample| sample.start_s.is_none()) {
            return None;
        }
        answered.sort_by(|one, other| {
            let start = |sample: &Sample| sample.start_s.unwrap_or_default();
            start(one).total_cmp(&start(other))
        });
        let values = answered.into_iter().skip(usize::try_from(skip).ok()?);
        Some(taken(&Sorted::new(audit::claim::values(values, theirs))?, statistic))
    }
}

impl Record {
    fn value(&self, metric: &str) -> Option<f64> {
        let place = METRICS.iter().position(|name| *name == metric)?;
        Some(self.values[place]).filter(|value| value.is_finite())
    }
}

/// The shortest and the longest of these lengths.
fn ends(lengths: Option<Vec<u64>>) -> Option<(u64, u64)> {
    let lengths = lengths?;
    Some((*lengths.iter().min()?, *lengths.iter().max()?))
}

fn each(tokens: Option<f64>, answered: Option<f64>) -> Option<f64> {
    let answered = answered.filter(|answered| *answered > 0.0)?;
    tokens.map(|tokens| tokens / answered)
}

fn engine(name: Option<&str>, version: Option<&str>) -> Option<String> {
    let version = version.map_or_else(String::new, |version| format!(" {version}"));
    Some(format!("{}{version}", name?))
}

/// The facts of an exchange that an explanation needs; `None` if it was not answered.
fn record(exchange: &Exchange, facts: &RunFacts) -> Option<Record> {
    if !exchange.is_ok() {
        return None;
    }
    let warmup = exchange.phase != Phase::Measure;
    let retokenized = facts.retokenized.get(exchange.index).filter(|_| !warmup);
    let reading = Reading::new(exchange, facts.run.streamed, retokenized);
    let values = METRICS.map(|name| match metric::by_name(name).map(|found| found.measure) {
        Some(Measure::One(measure)) => measure(&reading).unwrap_or(f64::NAN),
        _ => f64::NAN,
    });
    let (mut gaps_ms, mut gaps) = (0.0, 0);
    if let Some(found) = metric::by_name(metric::ITL)
        && let Measure::Pooled(show) = found.measure
    {
        show(&reading, &mut |_, value, times| {
            gaps_ms += value as f64 / found.unit.scale() * times as f64;
            gaps += times;
        });
    }
    // An event of the end is a chunk of its own unless it came with another.
    let (mut first, mut last, mut chunks) = (None, None, 0_u64);
    for event in exchange.events.iter().filter(|_| facts.run.streamed) {
        let is_chunk = match event.kind {
            Event::Finish => last != Some(event.at),
            kind => kind == Event::Role || kind.is_output(),
        };
        if is_chunk {
            first = first.or(Some(event.at));
            last = Some(event.at);
            chunks += 1;
        }
    }
    let any = first.zip(last).map(|(first, last)| last.since(first).as_millis_f64());
    Some(Record {
        warmup,
        sent_s: exchange.sent?.as_secs_f64(),
        values,
        tokens: reading.output_tokens.map(|count| count.tokens),
        gaps_ms,
        gaps,
        any_gaps_ms: any.unwrap_or_default(),
        any_gaps: chunks.saturating_sub(1),
    })
}

/// A place where time passes until the first token. On each side, the places of a figure add up to
/// it. Their differences add up to its difference.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Place {
    /// The part of the time to first token: `queue`, `prefill`, or `unexplained`.
    pub place: String,
    /// A's mean time there, in milliseconds.
    pub a: f64,
    /// B's.
    pub b: f64,
    /// B's less A's.
    pub difference: f64,
}

/// The parts that pass after sending, one by one.
const APART: [Part; 4] = [Part::Network, Part::FrontEnd, Part::Queue, Part::Prefill];

/// The same, where a side's server does not tell the network from its front end.
const TOGETHER: [Part; 3] = [Part::NetworkAndFrontEnd, Part::Queue, Part::Prefill];

/// A time that rounding may leave.
const NOTHING_MS: f64 = 0.000_5;

/// The places of a difference of the mean TTFT; none if the server of a side reports no timings.
pub(super) fn of_mean_ttft(sides: [&Account; 2]) -> Vec<Place> {
    let split = sides.map(|side| Some((side.first_token.as_ref()?, side.value("ttft.mean")?)));
    let [Some((parts_a, a)), Some((parts_b, b))] = split else { return Vec::new() };
    let is_apart = |parts: &Parts| parts.part(Part::NetworkAndFrontEnd).is_none();
    let parts: &[Part] = if is_apart(parts_a) && is_apart(parts_b) { &APART } else { &TOGETHER };
    let mut places = Vec::new();
    let (mut rest_a, mut rest_b) = (a, b);
    for part in parts {
        let (Some(of_a), Some(of_b)) = (time(parts_a, *part), time(parts_b, *part)) else {
            continue;
        };
        (rest_a, rest_b) = (rest_a - of_a, rest_b - of_b);
        places.push(place(part.name(), of_a, of_b));
    }
    // Time that was not split, because only a part of the replies has timings, is unexplained too.
    if !places.is_empty() && rest_a.abs().max(rest_b.abs()) >= NOTHING_MS {
        places.push(place(UNEXPLAINED, rest_a, rest_b));
    }
    places
}

/// The mean time of a part; the sum of network and front end where they count as one.
fn time(parts: &Parts, part: Part) -> Option<f64> {
    let apart = || Some(parts.part(Part::Network)? + parts.part(Part::FrontEnd)?);
    match part {
        Part::NetworkAndFrontEnd => parts.part(part).or_else(apart),
        _ => parts.part(part),
    }
}

fn place(name: &str, a: f64, b: f64) -> Place {
    Place { place: name.to_owned(), a, b, difference: b - a }
}

/// Totals that differ by less than this share count as totals of the same lengths.
const LENGTHS: f64 = 0.01;

/// The latencies in a formula of `side` that the other side defines in another way, as text.
fn where_they_differ(side: &Account, other: &Account, theirs: &str) -> String {
    let formula = |account: &Account, of: &str| {
        let definition = account.definitions.get(of);
        definition.map(|definition| definition.formula.clone())
    };
    let own = formula(side, theirs).unwrap_or_default();
    let mut words = String::new();
    for used in ["ttft", "e2e"] {
        let [here, there] = [side, other].map(|account| formula(account, used));
        if let Some(here) = here.filter(|_| own.contains(used))
            && Some(&here) != there.as_ref()
        {
            let before = if words.is_empty() { ", where" } else { ", and" };
            words += &format!("{before} {used} is {here}");
        }
    }
    words
}

/// The settings that two results state differently, and the settings that only one states.
pub(super) fn differences([a, b]: [&Account; 2]) -> (Vec<Setting>, Vec<String>) {
    let mut found = SettingDifferences::default();
    for theirs in LATENCIES {
        let mean = format!("{theirs}.mean");
        let [of_a, of_b] = [a, b].map(|side| {
            side.figure(&mean)?;
            Some(side.definitions.get(theirs)?.formula.clone())
        });
        if let (Some(mut of_a), Some(mut of_b)) = (of_a, of_b)
            && !a.defines_alike(b, theirs)
        {
            // One formula of two quantities that are others: these are the difference.
            if of_a == of_b {
                of_a += &where_they_differ(a, b, theirs);
                of_b += &where_they_differ(b, a, theirs);
            }
            found.differ(Kind::Definition, theirs, of_a, of_b);
        }
    }
    let number = |number: &f64| shown(*number);
    // A server's work for a token depends on it, and few tools state it.
    let sampling = [a, b].map(|side| &side.settings.sampling);
    found.check(Kind::Workload, "sampling", sampling, String::clone);
    found.check(Kind::Engine, "engine", [&a.engine, &b.engine], String::clone);
    found.check(Kind::Engine, "model", [&a.model, &b.model], |name| short_model(name));
    let stated = [a, b].map(|side| &side.settings);
    let requests = stated.map(|settings| &settings.requests);
    found.check(Kind::Workload, "requests", requests, u64::to_string);
    found.about(Kind::Workload, "tokens of a prompt", [a, b].map(Account::input_each));
    found.about(Kind::Workload, "tokens of an answer", [a, b].map(Account::output_each));
    let dataset = stated.map(|settings| &settings.dataset);
    found.check(Kind::Workload, "dataset", dataset, String::clone);
    found.check(Kind::Workload, "seed", stated.map(|settings| &settings.seed), u64::to_string);
    let stream = |stream: &bool| if *stream { "yes" } else { "no" }.to_owned();
    found.check(Kind::Workload, "streamed", stated.map(|settings| &settings.stream), stream);
    let rate = |rate: &f64| {
        if rate.is_finite() {
            format!("{} a second", shown(*rate))
        } else {
            "all at once".to_owned()
        }
    };
    found.check(Kind::Schedule, "request rate", stated.map(|settings| &settings.rate), rate);
    let cap = stated.map(|settings| &settings.cap);
    found.check(Kind::Schedule, "most in flight", cap, u64::to_string);
    let arrival = stated.map(|settings| &settings.arrival);
    found.check(Kind::Schedule, "arrivals", arrival, String::clone);
    let warmup = stated.map(|settings| &settings.warmup);
    found.check(Kind::Schedule, "requests to warm up", warmup, u64::to_string);
    let failed = [a, b].map(|side| &side.came.failed);
    found.check(Kind::Failures, "failed requests", failed, number);
    (found.differences, found.unknown)
}

/// The totals that are equal in both.
pub(super) fn equal(sides: [&Account; 2]) -> Vec<String> {
    let [a, b] = sides
        .map(|side| [side.came.answered, side.came.input, side.came.served.or(side.came.output)]);
    let names = ["requests answered", "tokens of prompts", "tokens of answers"];
    let totals = names.into_iter().zip(a.into_iter().zip(b));
    let same = totals.filter_map(|(name, (a, b))| Some((name, a.filter(|a| Some(*a) == b)?)));
    same.map(|(name, total)| format!("{name}: {total}")).collect()
}

#[derive(Default)]
struct SettingDifferences {
    differences: Vec<Setting>,
    unknown: Vec<String>,
}

impl SettingDifferences {
    fn check<T>(
        &mut self,
        kind: Kind,
        what: &str,
        [a, b]: [&Option<T>; 2],
        show: impl Fn(&T) -> String,
    ) {
        match (a, b) {
            (Some(a), Some(b)) => {
                let (a, b) = (show(a), show(b));
                if a != b {
                    self.differ(kind, what, a, b);
                }
            }
            (Some(a), None) => {
                self.unknown.push(format!("{what}: not stated by B; A: {}", show(a)))
            }
            (None, Some(b)) => {
                self.unknown.push(format!("{what}: not stated by A; B: {}", show(b)))
            }
            (None, None) => {}
        }
    }

    /// Means that may differ a little.
    fn about(&mut self, kind: Kind, what: &str, [a, b]: [Option<f64>; 2]) {
        if let (Some(a), Some(b)) = (a, b)
            && (a - b).abs() <= LENGTHS * a.max(b)
        {
            return;
        }
        self.check(kind, what, [&a, &b], |number| shown(*number));
    }

    fn differ(&mut self, kind: Kind, what: &str, a: String, b: String) {
        let what = what.to_owned();
        self.differences.push(Setting { kind, what, a, b });
    }
}
