//! A control of a run's misses: the misses of a simulated engine on the same requests.
//!
//! Near capacity most of the misses' variance is in the arrivals and the lengths of answers: a run
//! meets a few queues, and their number is luck. A simulated engine under the same arrivals and
//! lengths has much the same luck, and its long-run share of misses is known as exactly as wanted.
//! So the run's share y, the simulated share x on the same requests and the long-run share m of the
//! simulation give the estimate y - β (x - m), a control variate (Lavenberg and Welch 1981, "A
//! perspective on the use of control variables to increase the efficiency of Monte Carlo
//! simulations"). β is the slope of the regression of y on x over batches of the run. The estimate
//! has no bias where both queues grow alike, and the beginning with an empty engine cancels out.
//! The part of y's variance that the regression leaves shows the worth of the control. Where few
//! batches have misses, both follow from the requests in the highest tenth of the run and of the
//! simulation: a run without a miss shows how alike their queues are too. A simulation whose
//! requests wait otherwise than the run's (`WAITS`) is worth nothing.
//!
//! **The simulation follows from the run alone.** The time of a step is the line of
//! `statistics::steps`, and the slots are the most answers that were ever under way together. One
//! engine and replicas behind a router are tried; the fit is best whose requests wait most like the
//! run's. Its pace is then corrected until they wait as long: close to capacity a queue shows the
//! pace more exactly than steps do. The long run has gaps and lengths drawn from the run's own, the
//! gaps scaled to the planned rate. The lengths of a finite run are off by chance. That has two
//! effects: more or fewer requests miss by themselves, which widens the estimate of the share, and
//! all wait for more or less work, which is another load ([`Control::uneven`]). A second long run,
//! with the same draws at a slightly higher rate, gives the slope of the misses. An engine that
//! misses most in the long run has no share of misses, and its load lies above the crossing.

use model::units::Nanos;
use result::metric::Reading;
use simulator::{Engine, Parameters, Random, ServedRequest, Work, exchanges, open_ends};
use statistics::batches::design_effect;
use statistics::mean;
use statistics::steps::{Slice, Steps};

use crate::gather::{coded, highest_tenth, is_miss, misses};
use crate::slo::{Limit, Reader};

pub use statistics::crossing::Control;

/// Requests of a run that has a control, at least.
const LEAST: usize = 400;
/// Batches of a run by which its misses are compared with the simulated ones.
const BATCHES: usize = 32;
/// Batches with misses from which on the misses themselves show how alike they are.
const FEW: usize = 8;
/// Slices of a run through which the line of the steps' time goes.
const SLICES: usize = 200;
/// Requests of the long run: as a multiple of the run's, at least, and at most.
const LONGER: usize = 50;
const LONG: (usize, usize) = (60_000, 600_000);
/// The factor between the loads of the two long runs that show the slope.
const STEP: f64 = 1.02;
/// Tokens of its answers, at most.
const TOKENS: f64 = 1.5e8;
/// Part of the long run that is left out, because the engine begins empty.
const START: usize = 20;
/// Independent requests that the long run is worth, at least; an overloaded engine has fewer.
const WORTH: f64 = 50.0;
/// Share of misses in the long run, at most: the simulated queue may grow without end.
const SHARE: f64 = 0.5;
/// The largest factor between the mean times to the first token of the run and of the simulation.
/// Behind a router, requests wait for one replica while another is free, so queues grow otherwise.
/// Runs of single engines differ by 0.97 to 1.54, of two replicas by 1.32 to 2.28.
const WAITS: f64 = 1.45;
/// The most by which the simulation's pace is corrected, as a change of its logarithm, and the
/// number of halvings that find the correction.
const PACE: f64 = 0.05;
const HALVINGS: u32 = 6;
/// Numbers of engines behind a router that are tried.
const REPLICAS: [u32; 5] = [1, 2, 3, 4, 8];
/// Requests whose exchanges are in memory at the same time.
const CHUNK: usize = 4096;

/// The arrivals of a run whose requests are due with independent gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals {
    /// Requests per second that were planned.
    pub per_s: f64,
    /// The seed of the long run.
    pub seed: u64,
}

/// A request and its answer, as the simulation needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub due: Nanos,
    first: Nanos,
    end: Nanos,
    work: Work,
}

impl Life {
    /// The life of a streamed answer; `None` if its tokens or its instants are not known.
    pub fn new(reading: &Reading<'_>) -> Option<Self> {
        let exchange = reading.exchange;
        let [_, first, end] = reading.life().filter(|_| exchange.is_ok())?;
        reading.began()?;
        let prompt_tokens = reading.input_tokens?.tokens;
        let output_tokens = reading.output_tokens.filter(|own| own.tokens > 0)?.tokens;
        let cached = exchange.usage.as_ref().and_then(|usage| usage.cached_input_tokens);
        let work = Work { prompt_tokens, output_tokens, cached_tokens: cached.unwrap_or(0) };
        Some(Life { due: exchange.due, first, end, work })
    }

    fn read(&self) -> f64 {
        f64::from(self.work.prompt_tokens.saturating_sub(self.work.cached_tokens))
    }
}

/// A simulation's finding on a run's misses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Simulated {
    pub control: Option<Control>,
    /// True if the simulated engine has no steady share of misses at the rate, because its queue
    /// grows too long.
    pub overloads: bool,
}

/// The simulation's findings for each limit, in the order of `limits`. `lives` and the `values` of
/// each limit's metric are in the order in which requests were due.
pub(crate) fn controls(
    lives: &[Life],
    readers: &[Reader],
    limits: &[&Limit],
    values: &[&[f64]],
    arrivals: Arrivals,
) -> Option<Vec<Simulated>> {
    let judge = Judge { readers, limits };
    let due: Vec<Nanos> = lives.iter().map(|own| own.due).collect();
    let work: Vec<Work> = lives.iter().map(|own| own.work).collect();
    let waits: Vec<f64> = lives.iter().map(|own| own.first.since(own.due).as_secs_f64()).collect();
    let parameters = parameters(lives)?;
    let counts = REPLICAS.into_iter().filter(|count| *count <= parameters.slots);
    let replicas = counts.map(|count| Replicas::new(&parameters, count));
    let fits = replicas.map(|replicas| Fit::new(replicas, &waits, &due, &work));
    let fit = fits.min_by(|one, other| one.error.total_cmp(&other.error))?;
    let waits_alike = fit.waits_alike;
    let fit = fit.paced(&waits, &due, &work);
    let replicas = &fit.replicas;
    let own = judge.values(&fit.served);
    let tokens = mean(&work.iter().map(|own| f64::from(own.output_tokens)).collect::<Vec<_>>());
    let many = (LONGER * lives.len()).clamp(LONG.0, LONG.1);
    let many = many.min((TOKENS / tokens) as usize).max(lives.len());
    let (long_due, sources) = drawn(lives, arrivals, many);
    let long_work: Vec<Work> = sources.iter().map(|place| work[*place]).collect();
    let long = judge.misses(&replicas.serve(&long_due, &long_work));
    let sooner: Vec<Nanos> =
        long_due.iter().map(|own| Nanos((own.0 as f64 / STEP) as u64)).collect();
    let above = judge.misses(&replicas.serve(&sooner, &long_work));
    let uneven = unevenness(lives, &replicas.engine);
    let start = many / START;
    let found = (0..limits.len()).map(|place| {
        let by_lengths = variance_by_lengths(&long[place], &sources, lives.len());
        let values = [values[place], &own[place]];
        let [bad, simulated_bad] = values.map(|values| misses(limits[place], values));
        let alike = alike(&bad, &simulated_bad, values);
        let found = simulated([&bad, &simulated_bad], alike, &long[place][start..], by_lengths);
        let [low, high] = [&long, &above].map(|own| logit(&own[place][start..]));
        let slope = ((high - low) / STEP.ln()).max(1.0);
        let control = found.control.map(|control| {
            let unexplained = if waits_alike { control.unexplained } else { 1.0 };
            Control { uneven, slope, unexplained, ..control }
        });
        Simulated { control, ..found }
    });
    Some(found.collect())
}

/// The likeness of the run's misses and the simulated ones, over batches of the run.
#[derive(Clone, Copy, Debug)]
struct Alike {
    /// The slope of the regression of the run's misses on the simulated ones.
    slope: f64,
    /// The part of the variance of the run's misses that the regression leaves.
    left: f64,
}

impl Alike {
    /// `None` if one of them does not vary, or they vary against each other.
    fn new(own: &[bool], simulated: &[bool]) -> Option<Self> {
        let [y, x] = [own, simulated].map(batches);
        let products = |a: &[f64], b: &[f64]| -> f64 {
            a.iter().zip(b).map(|(y, x)| (y - mean(a)) * (x - mean(b))).sum()
        };
        let [yy, xx, xy] = [products(&y, &y), products(&x, &x), products(&y, &x)];
        let varies = yy > 0.0 && xx > 0.0 && xy > 0.0;
        let freedom = BATCHES as f64;
        let left = (1.0 - xy * xy / (xx * yy)) * (freedom - 1.0) / (freedom - 2.0);
        varies.then_some(Alike { slope: xy / xx, left: left.min(1.0) })
    }
}

/// Compares misses. Where few batches have any, compares the requests in the highest tenth of each
/// side instead.
fn alike(own: &[bool], simulated: &[bool], values: [&[f64]; 2]) -> Option<Alike> {
    let with_misses = |bad: &[bool]| batches(bad).iter().filter(|share| **share > 0.0).count();
    if with_misses(own).min(with_misses(simulated)) >= FEW {
        return Alike::new(own, simulated);
    }
    let [own, simulated] = values.map(|values| {
        let from = highest_tenth(values);
        values.iter().map(|value| *value > from).collect::<Vec<bool>>()
    });
    Alike::new(&own, &simulated)
}

/// The control of a run's misses by simulated misses on the same requests and in the long run.
/// `by_lengths` is the variance that each request's lengths add to the long run's share by
/// themselves. There is no control of an engine that misses most.
fn simulated(
    [own, simulated]: [&[bool]; 2],
    alike: Option<Alike>,
    long: &[bool],
    by_lengths: f64,
) -> Simulated {
    let many = own.len() as f64;
    let steady = share(long);
    let (effect, _) = design_effect(long);
    let overloads = long.len() as f64 / effect < WORTH || steady > SHARE;
    let Some(Alike { slope, left }) = alike.filter(|_| steady <= SHARE) else {
        return Simulated { control: None, overloads };
    };
    let estimate = (share(own) - slope * (share(simulated) - steady)).clamp(0.0, 1.0);
    let binomial = |share: f64| share * (1.0 - share);
    let of_long = binomial(steady.max(0.5 / long.len() as f64)) * effect * many / long.len() as f64;
    let unit = binomial(estimate.clamp(0.5 / many, 1.0 - 0.5 / many));
    let control = Control {
        share: estimate,
        unexplained: left,
        effect: effect.max(1.0),
        added: slope * slope * (of_long + by_lengths) / unit,
        uneven: 0.0,
        slope: 1.0,
    };
    Simulated { control: Some(control), overloads }
}

fn share(shown: &[bool]) -> f64 {
    shown.iter().filter(|shown| **shown).count() as f64 / shown.len().max(1) as f64
}

fn logit(shown: &[bool]) -> f64 {
    let (bad, all) = (share(shown) * shown.len() as f64, shown.len() as f64);
    ((bad + 0.5) / (all - bad + 0.5)).ln()
}

fn batches(shown: &[bool]) -> Vec<f64> {
    let many = shown.len();
    let of = |batch: usize| batch * many / BATCHES..(batch + 1) * many / BATCHES;
    (0..BATCHES).map(|batch| share(&shown[of(batch)])).collect()
}

/// One engine, or equal ones behind a router that sends each request to the next one.
struct Replicas {
    count: u32,
    engine: Parameters,
}

impl Replicas {
    /// The work and the slots of one engine for `count` of them: each has a part of the batch,
    /// whose requests and tokens weigh more in its steps.
    fn new(engine: &Parameters, count: u32) -> Self {
        let times = f64::from(count);
        let engine = Parameters {
            slots: engine.slots.div_ceil(count),
            request: engine.request * times,
            prompt_token: engine.prompt_token * times,
            context: engine.context * times,
            ..engine.clone()
        };
        Replicas { count, engine }
    }

    /// The answers in the order of their requests.
    fn serve(&self, due: &[Nanos], work: &[Work]) -> Vec<ServedRequest> {
        let count = self.count as usize;
        let own = |replica: usize| {
            let every = due.iter().copied().zip(work.iter().copied()).skip(replica).step_by(count);
            let (due, work): (Vec<Nanos>, Vec<Work>) = every.unzip();
            open_ends(&mut Engine::new(self.engine.clone(), 0), &due, &work).into_iter()
        };
        let mut each: Vec<_> = (0..count).map(own).collect();
        (0..due.len()).filter_map(|place| each[place % count].next()).collect()
    }
}

/// Replicas, and their answers to the run's own requests.
struct Fit {
    replicas: Replicas,
    served: Vec<ServedRequest>,
    /// The mean distance between the waits of the run and of the simulation, in seconds.
    error: f64,
    waits_alike: bool,
    /// See [`queue`].
    queue: f64,
}

impl Fit {
    fn new(replicas: Replicas, waits: &[f64], due: &[Nanos], work: &[Work]) -> Self {
        let served = replicas.serve(due, work);
        let first = |own: &ServedRequest| own.tokens.first().copied().unwrap_or(own.sent);
        let own = served.iter().map(|own| first(own).since(own.sent).as_secs_f64());
        let own: Vec<f64> = own.collect();
        let off = own.iter().zip(waits).map(|(own, wait)| (own - wait).abs());
        let error = mean(&off.collect::<Vec<_>>());
        let factor = mean(waits) / mean(&own);
        let waits_alike = (1.0 / WAITS..=WAITS).contains(&factor);
        Fit { replicas, served, error, waits_alike, queue: queue(&own) }
    }

    /// The same at the pace at which requests wait as long as the run's.
    fn paced(self, waits: &[f64], due: &[Nanos], work: &[Work]) -> Fit {
        let wanted = queue(waits);
        let (mut low, mut high) = (-PACE, PACE);
        let mut best = self;
        let (count, engine) = (best.replicas.count, best.replicas.engine.clone());
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            let slower = middle.exp();
            let engine = Parameters {
                step: engine.step * slower,
                request: engine.request * slower,
                prompt_token: engine.prompt_token * slower,
                context: engine.context * slower,
                ..engine.clone()
            };
            let fit = Fit::new(Replicas { count, engine }, waits, due, work);
            if fit.queue < wanted {
                low = middle
            } else {
                high = middle
            }
            if (fit.queue - wanted).abs() < (best.queue - wanted).abs() {
                best = fit;
            }
        }
        best
    }
}

/// The mean time for which requests wait beyond the lowest tenth's.
fn queue(waits: &[f64]) -> f64 {
    let mut ranked = waits.to_vec();
    let tenth = ranked.len() / 10;
    let (_, least, _) = ranked.select_nth_unstable_by(tenth, f64::total_cmp);
    mean(waits) - *least
}

/// The engine that the run shows; `None` if the run is too short.
fn parameters(lives: &[Life]) -> Option<Parameters> {
    let (origin, last) = (lives.first()?.due, lives.last()?.due);
    let length = last.since(origin).as_secs_f64() / SLICES as f64;
    if lives.len() < LEAST || length <= 0.0 {
        return None;
    }
    let mut slices = vec![Slice { seconds: length, ..Slice::default() }; SLICES];
    let place = |at: f64| ((at / length) as usize).min(SLICES - 1);
    for own in lives {
        let [first, end] = [own.first, own.end].map(|at| at.since(origin).as_secs_f64());
        let per_s = f64::from(own.work.output_tokens - 1) / (end - first).max(1e-9);
        if own.first < last {
            slices[place(first)].prompts += own.read();
        }
        let (from, to) = (place(first), place(end));
        for (slice, held) in (from..=to).zip(&mut slices[from..=to]) {
            let begins = first.max(slice as f64 * length);
            let ends = end.min((slice + 1) as f64 * length);
            let part = (ends - begins).max(0.0);
            held.tokens += per_s * part;
            held.batch += part / length;
            let generated = per_s * (f64::midpoint(begins, ends) - first);
            held.context += (f64::from(own.work.prompt_tokens) + generated) * part / length;
        }
    }
    let steps = Steps::from_slices(&slices)?;
    Some(Parameters {
        slots: most_together(lives),
        step: steps.empty,
        request: steps.request,
        prompt_token: steps.prompt_token,
        context: steps.context_token,
        jitter: 0.0,
        ..Parameters::default()
    })
}

/// The most answers that were under way at the same time.
fn most_together(lives: &[Life]) -> u32 {
    let mut moves: Vec<(Nanos, i32)> =
        lives.iter().flat_map(|own| [(own.first, 1), (own.end, -1)]).collect();
    // An answer of one token is under way at its instant.
    moves.sort_unstable_by_key(|(at, by)| (*at, -by));
    let mut now = 0;
    let counts = moves.into_iter().map(|(_, by)| {
        now += by;
        now
    });
    counts.max().unwrap_or(1).max(1) as u32
}

/// The variance over the run's requests of the share of their draws that miss in the long run: the
/// variance that their lengths add by themselves.
fn variance_by_lengths(long: &[bool], sources: &[usize], requests: usize) -> f64 {
    let mut drawn = vec![[0.0; 2]; requests];
    for (bad, source) in long.iter().zip(sources) {
        drawn[*source][0] += f64::from(u8::from(*bad));
        drawn[*source][1] += 1.0;
    }
    let shares = drawn.iter().map(|[bad, all]| bad / f64::max(*all, 1.0));
    statistics::variance(&shares.collect::<Vec<_>>()).unwrap_or(0.0)
}

/// The squared coefficient of variation of the work of a request: the variance of the logarithm of
/// the load of one request.
fn unevenness(lives: &[Life], parameters: &Parameters) -> f64 {
    let each = parameters.step / f64::from(parameters.slots) + parameters.request;
    let seconds = |own: &Life| {
        each * f64::from(own.work.output_tokens) + parameters.prompt_token * own.read()
    };
    let seconds: Vec<f64> = lives.iter().map(seconds).collect();
    let variance = statistics::variance(&seconds).unwrap_or(0.0);
    if variance > 0.0 { variance / mean(&seconds).powi(2) } else { 0.0 }
}

/// Arrivals of a long run, and the request of the run whose lengths each has.
fn drawn(lives: &[Life], arrivals: Arrivals, many: usize) -> (Vec<Nanos>, Vec<usize>) {
    let mut random = Random::new(arrivals.seed);
    let mut place = |of: usize| ((random.uniform() * of as f64) as usize).min(of - 1);
    let gaps = lives.len() - 1;
    let length = lives[gaps].due.since(lives[0].due).as_secs_f64();
    let scale = gaps as f64 / (arrivals.per_s * length);
    let mut now = 0.0;
    let mut next = |_| {
        let before = place(gaps);
        now += lives[before + 1].due.since(lives[before].due).as_secs_f64() * scale;
        (Nanos::from_secs_f64(now), place(lives.len()))
    };
    (0..many).map(&mut next).unzip()
}

/// The limits by which simulated answers are judged, as the run's are.
struct Judge<'j> {
    readers: &'j [Reader],
    limits: &'j [&'j Limit],
}

impl Judge<'_> {
    /// The misses of each limit.
    fn misses(&self, served: &[ServedRequest]) -> Vec<Vec<bool>> {
        self.each(served, is_miss)
    }

    /// The values of each limit's metric.
    fn values(&self, served: &[ServedRequest]) -> Vec<Vec<f64>> {
        self.each(served, |_, value| value)
    }

    fn each<T>(&self, served: &[ServedRequest], of: impl Fn(&Limit, f64) -> T) -> Vec<Vec<T>> {
        let mut all: Vec<Vec<T>> =
            self.limits.iter().map(|_| Vec::with_capacity(served.len())).collect();
        for exchange in served.chunks(CHUNK).flat_map(exchanges) {
            let reading = Reading::new(&exchange, true, None);
            for (limit, own) in self.limits.iter().zip(&mut all) {
                let reader = self.readers.iter().find(|own| own.metric == limit.metric);
                own.push(of(limit, coded(reader.map(|own| own.read(&reading)))));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
