//! All requests together: sums, distributions, and the peaks within a second, as the tools compute
//! them.

use std::collections::BTreeMap;

use super::{Detail, Keep, Request, Tool, ToolRequest};
use model::exchange::Outcome;
use model::units::Nanos;
use result::metric::Unit;
use statistics::Spread;

const SECOND: u64 = 1_000_000_000;

/// A run's figures by a tool's definitions. Distributions are in milliseconds.
#[derive(Default)]
pub struct Figures {
    pub total: u64,
    pub completed: u64,
    /// Seconds from the start of the measurement to its end.
    pub duration_s: Option<f64>,
    /// Input tokens of the answered requests; absent if any request's are unknown.
    pub input: Option<u64>,
    /// Their output tokens; absent if any request's are unknown.
    pub output: Option<u64>,
    /// The same by the model's tokenizer; absent if any was not tokenized.
    pub retokenized: Option<u64>,
    /// Requests that met the objectives; absent without objectives that the tool knows.
    pub good: Option<Good>,
    /// Most chunks within a whole second since the first request.
    pub peak_tokens: Option<u64>,
    /// Most requests that were in flight at any time of a whole second since the first request.
    pub peak_requests: Option<u64>,
    pub ttft: Option<statistics::Figures>,
    pub tpot: Option<statistics::Figures>,
    pub itl: Option<statistics::Figures>,
    pub e2e: Option<statistics::Figures>,
    /// The time from when a request was due to when it was sent.
    pub queue: Option<statistics::Figures>,
    /// The time in that queue and the latency together.
    pub e2e_queued: Option<statistics::Figures>,
    /// Seconds in flight of the answered requests, summed.
    pub busy_s: f64,
}

/// The number of requests that met the run's objectives.
#[derive(Clone, Debug, PartialEq)]
pub struct Good {
    pub all: u64,
    /// For each objective: the tool's name, the limit in milliseconds, the requests that met it.
    pub each: Vec<(&'static str, f64, u64)>,
}

impl Figures {
    pub fn per_s(&self, amount: Option<u64>) -> Option<f64> {
        Some(amount? as f64 / self.duration_s?)
    }

    pub fn tokens(&self) -> Option<u64> {
        Some(self.input?.saturating_add(self.output?))
    }

    pub fn concurrency(&self) -> Option<f64> {
        Some(self.busy_s / self.duration_s?)
    }
}

pub(super) struct Sums {
    origin: Nanos,
    figures: Figures,
    ttft: Spread,
    tpot: Spread,
    itl: Spread,
    e2e: Spread,
    queue: Spread,
    e2e_queued: Spread,
    busy: u128,
    tokens: BTreeMap<u64, u64>,
    /// The change of the number of requests in flight from one second to the next.
    in_flight: BTreeMap<u64, i64>,
}

impl Sums {
    /// `origin` is when the first answered request was sent.
    pub(super) fn new(origin: Nanos, objectives: Option<Vec<(&'static str, f64)>>) -> Self {
        let spread = || Spread::new(Unit::Milliseconds.scale());
        Sums {
            origin,
            figures: Figures {
                input: Some(0),
                output: Some(0),
                retokenized: Some(0),
                good: objectives.map(|objectives| Good {
                    all: 0,
                    each: objectives.into_iter().map(|(name, limit)| (name, limit, 0)).collect(),
                }),
                ..Figures::default()
            },
            ttft: spread(),
            tpot: spread(),
            itl: spread(),
            e2e: spread(),
            queue: spread(),
            e2e_queued: spread(),
            busy: 0,
            tokens: BTreeMap::new(),
            in_flight: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, seen: &ToolRequest<'_>) {
        self.figures.total += 1;
        if !seen.answered {
            return;
        }
        let figures = &mut self.figures;
        figures.completed += 1;
        add(&mut figures.input, seen.input);
        add(&mut figures.output, seen.output);
        add(&mut figures.retokenized, seen.retokenized);
        let (ttft, tpot, latency) = (seen.ttft(), seen.tpot(), seen.latency());
        if let Some(ttft) = ttft {
            self.ttft.add(ttft.as_millis_f64());
        }
        if let Some(tpot) = tpot {
            self.tpot.add(tpot);
        }
        if let Some(latency) = latency {
            self.e2e.add(latency.as_millis_f64());
            self.busy += u128::from(latency.0);
            let queue = seen.sent.since(seen.exchange.due);
            self.queue.add(queue.as_millis_f64());
            self.e2e_queued.add((queue + latency).as_millis_f64());
        }
        seen.gaps(|_, gap, times| {
            (0..times).for_each(|_| self.itl.add(gap / 1e6));
        });
        self.add_to_seconds(seen);
        if let Some(good) = &mut self.figures.good {
            // An answer of one token has no time per further token, which counts as none.
            let one = seen.first.is_some() && seen.output.is_some_and(|n| n <= 1);
            let took = |name: &str| match name {
                "ttft" => ttft.map(Nanos::as_millis_f64),
                "tpot" => tpot.or(one.then_some(0.0)),
                _ => latency.map(Nanos::as_millis_f64),
            };
            let mut all = true;
            for (name, limit, kept) in &mut good.each {
                let keeps = took(name).is_some_and(|took| took <= *limit);
                *kept += u64::from(keeps);
                all &= keeps;
            }
            good.all += u64::from(all);
        }
    }

    fn add_to_seconds(&mut self, seen: &ToolRequest<'_>) {
        let origin = self.origin;
        let second = |at: f64| (at - origin.0 as f64).max(0.0) as u64 / SECOND;
        if let Some(first) = seen.first {
            *self.tokens.entry(second(first.0 as f64)).or_default() += 1;
        }
        seen.gaps(|from, gap, times| {
            for nth in 1..=times {
                let at = from.0 as f64 + gap * nth as f64;
                *self.tokens.entry(second(at)).or_default() += 1;
            }
        });
        if let Some(end) = seen.end {
            let mut change = |second, by| *self.in_flight.entry(second).or_default() += by;
            change(second(seen.sent.0 as f64), 1);
            change(second(end.0 as f64) + 1, -1);
        }
    }

    pub(super) fn finish(self, duration: Option<f64>) -> Figures {
        let mut in_flight = 0;
        let most = self.in_flight.values().map(|change| {
            in_flight += change;
            in_flight
        });
        Figures {
            duration_s: duration,
            peak_requests: most.max().and_then(|most| u64::try_from(most).ok()),
            peak_tokens: self.tokens.values().max().copied(),
            ttft: self.ttft.figures(),
            tpot: self.tpot.figures(),
            itl: self.itl.figures(),
            e2e: self.e2e.figures(),
            queue: self.queue.figures(),
            e2e_queued: self.e2e_queued.figures(),
            busy_s: self.busy as f64 / SECOND as f64,
            ..self.figures
        }
    }
}

fn add(sum: &mut Option<u64>, tokens: Option<u32>) {
    *sum = sum.zip(tokens).map(|(sum, more)| sum.saturating_add(more.into()));
}

impl Request {
    pub(super) fn new(tool: Tool, seen: &ToolRequest<'_>, keep: Keep) -> Self {
        let seconds = |span: Option<Nanos>| span.unwrap_or_default().as_secs_f64();
        let exchange = seen.exchange;
        let latency = seen.latency().filter(|_| seen.answered);
        let detail = || {
            let mut itls = Vec::new();
            seen.gaps(|_, gap, times| itls.extend((0..times).map(|_| gap / 1e9)));
            let text = match tool {
                Tool::Vllm | Tool::Aiperf => exchange.output.clone(),
                Tool::Sglang | Tool::Lmdeploy => exchange.reasoning.clone() + &exchange.output,
            };
            Detail {
                input: match tool {
                    Tool::Vllm | Tool::Aiperf => seen.input,
                    Tool::Sglang | Tool::Lmdeploy => {
                        exchange.usage.and_then(|usage| usage.input_tokens).or(seen.input)
                    }
                },
                output: seen.output.filter(|_| seen.answered).unwrap_or(0),
                ttft: seconds(seen.ttft()),
                itls,
                text: Some(text).filter(|_| seen.answered).unwrap_or_default(),
                error: match &exchange.outcome {
                    Outcome::Ok => String::new(),
                    Outcome::Incomplete { class, message, .. } => {
                        format!("{}: {message}", class.name())
                    }
                },
            }
        };
        Request {
            index: exchange.index,
            answered: seen.answered,
            start: seen.sent.as_secs_f64(),
            queued: seen.sent.since(exchange.due).as_secs_f64(),
            latency: seconds(latency),
            detail: (keep == Keep::All).then(|| Box::new(detail())),
        }
    }
}
