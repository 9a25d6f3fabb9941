//! The second pass over a run's exchanges: all that is counted and summed.

use std::collections::BTreeMap;

use super::agents::Agents;
use super::backlog::Waiting;
use super::confidence::Rates;
use super::distribution::WAITING;
use super::expected::Expectation;
use super::facts::{self, AnswerTokens};
use super::facts::{LOST_WITH_AGENT, NOT_SENT};
use super::failing::missing;
use super::lives::Lives;
use super::load::{Load, Sound};
use super::messages::Messages;
use super::sessions::Histories;
use super::steady::SteadyState;
use super::survey::SurveyResult;
use super::tokens::TokenSums;
use super::{
    Concurrency, Cost, Distribution, HEADLINE, Requests, Run, RunFacts, Summary, Throughput,
    WithFailures, cold, groups, scores, sessions, steady, time_slices, warmup,
};
use super::{ServerCounts, first_token};
use crate::figure::{Figure, Statistic, mirrored};
use crate::finding::Verdict;
use crate::metric::{self, CATALOGUE, Measure, Metric, Reading, Unit};
use crate::metric::{spread, take};
use crate::threshold::Threshold;
use model::exchange::{Class, Exchange, Outcome, Phase};
use model::units::Nanos;
use statistics::blocks::Blocks;
use statistics::{Figures, Spread};

/// A wait at the cap no longer than this is the pacer's, not the cap's.
const WAITED: Nanos = Nanos(1_000_000);

/// Share of the cap that must have been in flight at some time for it to have held anything back. A
/// slot is taken a little before its request is sent, and freed a little after its reply has ended.
const REACHED: f64 = 0.9;

pub(crate) struct Gather<'a> {
    facts: &'a RunFacts,
    surveyed: SurveyResult,
    requests: Requests,
    held_back: u64,
    messages: BTreeMap<Class, Messages>,
    tokens: TokenSums,
    counts: ServerCounts,
    sound: Sound,
    input_sound: Sound,
    load: Load,
    /// Lives of the answers; only of a run whose replies are streamed.
    lives: Option<Lives>,
    /// Requests that wait; only of a run at one rate.
    waiting: Option<Waiting>,
    judged: Option<super::Gather>,
    steady: Option<Result<steady::Gather, SteadyState>>,
    cold: Option<cold::Gather>,
    waves: warmup::Waves,
    /// Sessions; only of a run that has any.
    sessions: Option<sessions::Gather>,
    histories: Histories,
    first_token: first_token::Gather,
    groups: groups::Gather,
    scores: scores::Gather<'a>,
    /// Figures by time slice; only of a run that is to have them.
    time_slices: Option<time_slices::Gather>,
    /// Samples of each metric of the catalogue, and of the headline metrics by block.
    spreads: Vec<(Spread, Option<Blocks>)>,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(facts: &'a RunFacts, mut surveyed: SurveyResult) -> Self {
        let steady = surveyed.steady.take();
        let filled = surveyed.first_answer.unwrap_or_default();
        Gather {
            facts,
            requests: Requests::default(),
            held_back: 0,
            messages: BTreeMap::new(),
            tokens: TokenSums::new(facts.run.tokenizer.as_ref()),
            counts: ServerCounts::default(),
            sound: Sound::default(),
            input_sound: Sound::default(),
            load: Load::new(surveyed.origin),
            lives: Lives::new(&facts.run, &surveyed),
            waiting: Waiting::new(&surveyed).filter(|_| facts.run.even_rate),
            judged: super::Gather::new(&facts.run.goodput),
            steady: steady.map(|found| found.map(|window| steady::Gather::new(window, filled))),
            waves: warmup::Waves::default(),
            cold: cold::Gather::new(&facts.run, &surveyed),
            sessions: surveyed.has_sessions.then(Default::default),
            histories: Histories::default(),
            first_token: first_token::Gather::default(),
            groups: groups::Gather::default(),
            scores: scores::Gather::new(facts),
            time_slices: (facts.run.time_slice)
                .and_then(|every| time_slices::Gather::new(every, &surveyed)),
            spreads: CATALOGUE
                .iter()
                .map(|metric| {
                    let layout = surveyed.layout.filter(|_| HEADLINE.contains(&metric.name));
                    let blocks = layout.map(|layout| Blocks::new(layout, metric.unit.scale()));
                    (spread(metric), blocks)
                })
                .collect(),
            surveyed,
        }
    }

    pub(crate) fn add(&mut self, exchange: &Exchange) {
        if exchange.phase == Phase::Warmup {
            self.requests.warmup += 1;
            if self.facts.run.warmup_wave.is_some() {
                self.waves.add(exchange, self.facts.run.streamed);
            }
            return;
        }
        if exchange.phase == Phase::Tail {
            self.requests.tail += 1;
            self.scores.add(exchange);
            return;
        }
        let retokenized = self.facts.retokenized.get(exchange.index);
        let run = &self.facts.run;
        let reading = Reading::new(exchange, run.streamed, retokenized).at_pace(run.pace());
        self.count(exchange);
        self.load.add(&reading);
        self.waiting.iter_mut().for_each(|own| own.add(&reading));
        self.sessions.iter_mut().for_each(|own| own.add(exchange));
        self.histories.add(exchange);
        self.first_token.add(&reading);
        self.groups.add(&reading);
        self.scores.add(exchange);
        self.time_slices.iter_mut().for_each(|own| own.add(&reading));
        if exchange.is_ok() {
            let reasoning = self.facts.reasoning_of(exchange.index);
            self.add_answer(&reading, retokenized, reasoning);
        } else {
            self.tokens.leave_out(&reading)
        }
        for (metric, (spread, blocks)) in CATALOGUE.iter().zip(&mut self.spreads) {
            let blocks = blocks.as_mut().map(|blocks| (blocks, exchange.index));
            take(metric, &reading, spread, blocks);
        }
    }

    fn add_answer(
        &mut self,
        reading: &Reading<'_>,
        retokenized: Option<u32>,
        reasoning: Option<u32>,
    ) {
        self.tokens.add(reading, retokenized, reasoning);
        self.counts.add(&reading.exchange.counts);
        self.sound.add(reading.exchange.audio_duration);
        self.input_sound.add(reading.exchange.sample.audio_duration);
        self.judged.iter_mut().for_each(|own| own.add(reading));
        self.cold.iter_mut().for_each(|own| own.add(reading));
        self.lives.iter_mut().for_each(|own| own.add(reading));
        let mut inside = self.steady.as_mut().and_then(|found| found.as_mut().ok());
        inside.iter_mut().for_each(|own| own.add(reading));
        reading.each_token_arrival(|at, tokens| {
            self.load.add_tokens(at, tokens);
            self.time_slices.iter_mut().for_each(|own| own.add_tokens(at, tokens));
            inside.iter_mut().for_each(|own| own.add_tokens(at, tokens));
            self.lives.iter_mut().for_each(|own| own.add_tokens(at, tokens));
        });
    }

    fn count(&mut self, exchange: &Exchange) {
        self.requests.total += 1;
        self.requests.sent += u64::from(exchange.sent.is_some());
        if exchange.connection.is_some_and(|own| own.waited) {
            self.requests.waited_for_connection += 1;
        }
        self.count_accepted(exchange);
        if let Some(context) = self.facts.run.context_tokens {
            let input = exchange.usage.and_then(|usage| usage.input_tokens);
            let input = input.or(exchange.sample.input_tokens).unwrap_or(0);
            let both = u64::from(input) + u64::from(exchange.sample.output_tokens.unwrap_or(0));
            self.requests.beyond_context += u64::from(both > u64::from(context));
        }
        let mut held_back =
            exchange.granted.is_some_and(|granted| granted.since(exchange.due) > WAITED);
        match &exchange.outcome {
            Outcome::Ok => self.requests.successful += 1,
            Outcome::Incomplete { class: Class::Cancelled, .. } => {
                self.requests.cancelled += 1;
                self.requests.cancelled_unsent += u64::from(exchange.sent.is_none());
            }
            Outcome::Incomplete { class, reason, message } => {
                self.requests.failed += 1;
                self.requests.context_overflows += u64::from(exchange.overflows_context());
                held_back |= *class == Class::NotSent;
                let status = exchange.status.filter(|_| *class == Class::HttpStatus);
                let messages = self.messages.entry(*class).or_default();
                messages.add(exchange.index, 1, (status, *reason), message);
            }
        }
        self.held_back += u64::from(held_back);
    }

    /// Counts replies that the backend read as an answer although the server called them an error.
    fn count_accepted(&mut self, exchange: &Exchange) {
        // A status that is not accepted ends the exchange.
        let refused = exchange.outcome.class() == Class::HttpStatus;
        let last = exchange.steps.len().saturating_sub(1);
        for (place, step) in exchange.steps.iter().enumerate() {
            match step.status {
                Some(404) if place < last => self.requests.accepted_not_yet += 1,
                Some(status) if status >= 400 && (place < last || !refused) => {
                    *self.requests.accepted_errors.entry(status).or_default() += 1;
                }
                _ => {}
            }
        }
    }

    /// Counts requests without a record: due when the run was stopped, or of lost agents.
    fn count_unrecorded(&mut self) {
        let unsent = self.facts.unsent;
        for (class, count, words) in [
            (Class::NotSent, unsent, NOT_SENT),
            (Class::LostWithAgent, self.facts.unknown(), LOST_WITH_AGENT),
        ] {
            if count > 0 {
                let messages = self.messages.entry(class).or_default();
                messages.add(self.requests.total, count, (None, None), words);
                self.requests.total += count;
                self.requests.failed += count;
            }
        }
        self.held_back += unsent;
    }

    pub(crate) fn finish(mut self) -> Summary {
        self.count_unrecorded();
        let run = Run {
            percentiles: percentiles(&self.facts.run),
            measure_start: Some(self.surveyed.origin)
                .filter(|_| self.requests.total > 0)
                .or(self.facts.run.measure_start),
            ..self.facts.run.clone()
        };
        let mut requests = self.requests;
        let failures = self.messages.into_iter();
        requests.failures = failures.map(|(class, own)| (class, own.finish())).collect();
        let parents = requests.failures.get(&Class::ParentFailed);
        requests.failed_by_themselves = parents.map(|own| requests.failed - own.count);
        // Requests cancelled on purpose count neither for nor against the server.
        let judged = requests.total - requests.cancelled;
        requests.success_share = (judged > 0).then(|| requests.successful as f64 / judged as f64);
        requests.held_back = run.max_in_flight.map(|cap| {
            let never_sent = requests.failures.get(&Class::NotSent);
            match self.surveyed.peak {
                Some(peak) if peak as f64 >= REACHED * cap as f64 => self.held_back,
                // Where there was room all the time, it was the pacer that was late.
                _ => never_sent.map_or(0, |failures| failures.count),
            }
        });

        let tokens = self.tokens.finish(run.streamed);
        let duration = self.surveyed.duration;
        let spreads = &mut self.spreads;
        let unsent = self.facts.unsent;
        let sessions = self.sessions.map(|sessions| {
            let mut sessions = sessions.finish(duration, |session| {
                for (metric, (spread, _)) in CATALOGUE.iter().zip(&mut *spreads) {
                    if let Measure::Session(measure) = metric.measure
                        && let Some(sample) = measure(session)
                    {
                        spread.add(sample);
                    }
                }
            });
            sessions.count_unsent(unsent);
            sessions
        });
        let per_s = |amount: u64| duration.map(|seconds| amount as f64 / seconds);
        let total = tokens.input.total.zip(tokens.output.total).map(|(i, o)| i.saturating_add(o));
        let whole_second = duration.is_some_and(|seconds| seconds >= 1.0);
        let peak = self.load.peak_tokens().filter(|_| whole_second);
        let (last_sent, last_end) = (self.load.sent.last(), self.surveyed.last_end);
        let at_once = self.load.due.at_once() && self.surveyed.peak >= Some(requests.sent);
        let drain = last_sent.zip(last_end).filter(|_| !at_once);
        let drain = drain.map(|(sent, end)| end.since(sent).as_secs_f64());
        let drain_share = drain.zip(duration).map(|(drain, seconds)| drain / seconds);
        let mut throughput = Throughput {
            confidence: None,
            duration_s: duration,
            requests_per_s: per_s(requests.successful),
            input_tokens_per_s: tokens.input.total.and_then(per_s),
            output_tokens_per_s: tokens.output.total.and_then(per_s),
            total_tokens_per_s: total.and_then(per_s),
            peak_output_tokens_per_s: peak.map(|tokens| tokens as f64),
            audio_s_per_s: self.sound.per_second(duration),
            input_audio_s_per_s: self.input_sound.per_second(duration),
            sent_requests_per_s: self.load.sent.per_second(),
            due_requests_per_s: self.load.due.per_second(),
            drain_share,
        };
        let mean = |seconds: f64| duration.map(|duration| seconds / duration);
        let concurrency = Concurrency {
            mean: mean(self.load.answered_seconds()),
            mean_in_flight: mean(self.surveyed.in_flight_seconds),
            peak: self.surveyed.peak,
            independent: self.surveyed.loads.map(|loads| loads.independent),
            backlog: self.waiting.map(|waiting| waiting.finish()),
        };
        let loads = self.surveyed.loads;
        let figures: Vec<(&Metric, Figures, Option<Blocks>)> = CATALOGUE
            .iter()
            .zip(self.spreads)
            .filter_map(|(metric, (spread, blocks))| Some((metric, spread.figures()?, blocks)))
            .collect();
        let lived = self.lives.and_then(Lives::finish);
        let slow_start = lived.as_ref().and_then(|lived| lived.slow_start);
        let cold_start = self.cold.and_then(|cold| cold.finish(slow_start));
        let expected = lived.zip(duration).and_then(|(lived, duration)| {
            let ttft = figures.iter().find(|(own, ..)| own.name == metric::TTFT);
            let ttft = ttft.map(|(_, figures, _)| figures);
            let rate = self.load.sent.per_second();
            Expectation::new(lived, ttft, self.surveyed.gap_cv, rate, duration, loads)
        });
        let expected = expected.as_ref();
        let rates = expected.map(|expected| {
            expected.rates([
                throughput.requests_per_s,
                throughput.input_tokens_per_s,
                throughput.output_tokens_per_s,
                throughput.total_tokens_per_s,
            ])
        });
        throughput.confidence = rates.filter(|rates| rates.other_requests != Rates::default());
        let metrics = figures.into_iter().map(|(metric, figures, blocks)| {
            let percentiles = &percentiles_of(metric, &run.percentiles);
            let mut distribution = Distribution::new(metric, &figures, percentiles);
            let all = (&requests, sessions.as_ref());
            distribution.with_failures = WithFailures::new(metric, &figures, all, percentiles);
            let missing = missing(metric, &requests, sessions.as_ref());
            distribution.failure_share = missing
                .filter(|(missing, _)| *missing > 0)
                .map(|(missing, present)| missing as f64 / (missing + present) as f64);
            if let Some(blocks) = blocks {
                let both = expected.and_then(|own| own.both(metric.name, &figures, &blocks));
                let follows = expected.map_or([1.0; 2], |own| own.follows_pace(&figures, &blocks));
                distribution = distribution
                    .with_confidence(metric, &figures, &blocks, loads, both)
                    .following(follows);
                let no_waits = expected.map_or(loads.is_some(), Expectation::shows_no_waits);
                if no_waits && WAITING.contains(&metric.name) {
                    distribution = distribution.without_waits();
                }
            }
            if run.failures_as_infinite {
                distribution = distribution.with_failures_included();
            }
            (metric.name.to_owned(), distribution)
        });
        let metrics: BTreeMap<String, Distribution> = metrics.collect();
        let steady_state = self.steady.map(|found| match found {
            Ok(inside) => inside.finish(&run.percentiles, loads, requests.total),
            Err(absent) => absent,
        });
        let answered = AnswerTokens::new(&tokens);
        let devices = self.facts.devices.as_ref().zip(last_end);
        let devices = devices.map(|(recording, end)| {
            let measured = (self.surveyed.origin, end);
            facts::devices(recording, measured, answered, steady_state.as_ref())
        });
        let series = self.facts.series.as_ref().zip(last_end);
        let server_series =
            series.and_then(|(series, end)| series.figures((self.surveyed.origin, end)));
        let cost = run.cost.as_ref();
        let job_latency_s = metrics.get(metric::SESSION_TIME).map(|time| time.mean / 1e3);
        Summary {
            agents: Agents::new(&run, sessions.as_ref(), job_latency_s, devices.as_ref()),
            cost: cost.map(|price| Cost::new(price, duration, answered)),
            devices,
            verdict: Verdict::Valid,
            findings: Vec::new(),
            thresholds: Vec::new(),
            tokens,
            counts: self.counts.finish(),
            throughput,
            arrivals: self.surveyed.arrivals,
            concurrency,
            first_token_by_series: self.first_token.by_series(server_series.as_ref()),
            first_token: self.first_token.finish(),
            groups: self.groups.finish(&run.percentiles),
            sessions,
            histories: Some(self.histories).filter(|histories| histories.requests > 0),
            dataset: self.facts.dataset.clone(),
            time_slices: (self.time_slices).map(|slices| slices.finish(&run.percentiles)),
            goodput: (self.judged)
                .map(|judged| judged.finish(requests.total - requests.cancelled, duration)),
            fleet: self.facts.fleet.clone(),
            steady_state,
            warmup: run.warmup_wave.map(|size| self.waves.judge(size)),
            cold_start,
            client: self.facts.client.clone(),
            server: self.facts.server.clone(),
            server_series,
            cache: self.facts.cache.clone(),
            metrics,
            scores: self.scores.finish(),
            run_scores: self.facts.run_scores.clone(),
            silent_scorers: self.facts.silent_scorers.clone(),
            scorer_errors: self.facts.scorer_errors,
            requests,
            run,
        }
    }
}

/// The percentiles of a metric. A speed's high percentiles belong to the luckiest users; the
/// slowest users' are at the same distance from the other end, so a speed gets both.
fn percentiles_of(metric: &Metric, percentiles: &[f64]) -> Vec<f64> {
    let mut percentiles = percentiles.to_vec();
    if metric.unit == Unit::TokensPerSecond {
        percentiles.extend(mirrored(&percentiles));
    }
    in_order(percentiles)
}

fn in_order(mut percentiles: Vec<f64>) -> Vec<f64> {
    percentiles.sort_unstable_by(f64::total_cmp);
    percentiles.dedup();
    percentiles
}

/// The requested percentiles and the thresholds' percentiles, in order and once each, always
/// including 99, which the layout of the text block needs.
fn percentiles(run: &Run) -> Vec<f64> {
    let mut percentiles = run.percentiles.clone();
    percentiles.push(99.0);
    let thresholds = run.thresholds.iter().filter_map(Threshold::figure);
    percentiles.extend(thresholds.filter_map(|figure| match figure {
        Figure::Of(_, Statistic::Percentile(percent)) if *percent != 50.0 => Some(*percent),
        _ => None,
    }));
    in_order(percentiles)
}
