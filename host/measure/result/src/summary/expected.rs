//! Intervals for other runs, from the requested lengths and from the residuals of the engine's step
//! times.
//!
//! Two questions have two answers. **The same requests again**, with the same lengths at the same
//! times, differ by the engine's own noise alone (`statistics::steps`). Answers that end by
//! themselves have other lengths in a repeat. **Other requests of this
//! kind** differ in their lengths and their gaps as well. Either is a sum over requests or over
//! time, so the law of large numbers holds for it whatever the queue does:
//!
//! - **Noise.** A mean latency is the integral of the requests that wait or are answered, divided
//!   by their number. Noise of variance v per second, at every instant, moves it by v times the
//!   integral of that number's square. Where all slots are taken, a delay also reaches requests
//!   that come before the queue is empty. In an open loop, slower steps also let more requests in,
//!   which makes them slower still.
//! - **Phase.** A request that comes by itself meets a step at a chance place of it. The first
//!   token waits for its end.
//! - **Load.** In an open loop, the requests in flight are their rate times the time that each
//!   takes (Little 1961). So the mean load is a sum over requests of the share that each adds to
//!   the steps of others. Its variance is the variance of a sum of this many independent shares,
//!   with the gaps between them as varied as they were due.
//! - **Work.** Where the engine is always busy, time is the sum of the work of each request. The
//!   mean wait in a burst is the mean of a walk whose steps are the work: 4/3 of its variance. Work
//!   after the last request was let in delays nobody.
//! - **Drain.** A run ends with the longest answer under way when the last request was let in.
//!   Answers that are met at a chance instant have the remaining lengths of renewal theory.
//!
//! Times to first token and percentiles of the tail come from blocks of requests instead
//! (`interval`). Nothing here sees the causes that make a whole run faster or slower.

use super::confidence::{Both, Bounds, RateConfidence, Rates, Same};
use super::lives::{ArrivalKind, LifeFigures, TRAITS, traits};
use crate::metric;
use statistics::blocks::Blocks;
use statistics::bounds::most_events;
use statistics::interval::{self, FillVariance, Loads};
use statistics::steps::Steps;
use statistics::{Figures, Interval, Ranked, student};

/// Degrees of freedom of variances between requests: lengths with long tails show as much of theirs
/// as twenty values.
const FREEDOM: f64 = 19.0;
/// Fewer answers than this show nothing of how requests vary.
const FEWEST: f64 = 20.0;
/// The most that slower steps can be slowed further by the requests that come meanwhile.
const MOST: f64 = 2.0;
/// Share of the most answers under way at one time from which on all slots count as taken.
const TAKEN: f64 = 0.95;
/// The same share down to which a queue of an open loop still shows an earlier delay.
const EMPTYING: f64 = 0.85;
/// The sum of the variation of prompts and of answers from which on requests differ by their
/// lengths.
const ALIKE: f64 = 0.2;
/// The mean of Φ(x) (1 - Φ(x)) over all x, which is 1/√π. Noise of one deviation moves this number
/// of samples across a limit, among the samples within one deviation of it, as a variance.
const CROSSING: f64 = 0.564;
/// Share of the latencies from which on the time to first token is a large part.
const CALM: f64 = 0.1;
/// The correlation of the work with the drain, over other requests, in laboratories.
const COMMON: f64 = 0.3;
/// The least shape of the Pareto distribution of the longest answers, and their longest duration,
/// as a multiple of the longest one seen.
const LEAST_SHAPE: f64 = 3.0;
const REACH: f64 = 3.0;
/// The share of the shape seen that counts where the longest answer of a burst decides the rate.
/// Nine answers show the shape to a third, and a heavier tail costs more than a lighter one saves.
/// With this share, intervals in laboratories are as wide as they have to be.
const SURE: f64 = 0.8;
/// The number of longest answers from which the length of longer answers follows.
const TAIL: u64 = 10;
/// The share of the answers from which on the drain has many of them.
const MANY: f64 = 0.2;
/// Blocks of a run's time in which waits are counted.
const BLOCKS: usize = 20;
/// Factor by which waits vary more than their number: times in which all slots are taken differ in
/// length.
const BURSTS: f64 = 1.5;

/// Everything from which the intervals follow.
pub(super) struct Expectation {
    lived: LifeFigures,
    /// Squared coefficient of variation of the gaps between requests, as due.
    gaps: f64,
    /// Requests per second, while they come.
    rate: f64,
    /// Seconds of the run.
    duration: f64,
    loads: Option<Loads>,
    full: Full,
}

/// Waits for a place in the batch, as the run shows them.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    /// True if a request waited for longer than reading prompts explains.
    seen: bool,
    /// Seconds of all waits while every slot was taken.
    waits: f64,
    /// Share of the time in which that was so.
    share: f64,
    /// Blocks of the run in which that was so.
    blocks: f64,
}

/// An interval for other requests: below and above the figure.
#[derive(Clone, Copy, Debug)]
struct Around {
    below: f64,
    above: f64,
}

impl Around {
    fn even(half: f64) -> Self {
        Around { below: half, above: half }
    }

    fn from_interval(figure: f64, interval: Interval) -> Self {
        Around { below: figure - interval.low, above: interval.high - figure }
    }

    /// Widens it to at least another one.
    fn with(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        Around { below: self.below.max(other.below), above: self.above.max(other.above) }
    }

    /// Narrows it to at most `half` on either side.
    fn within(self, half: f64) -> Self {
        Around { below: self.below.min(half), above: self.above.min(half) }
    }

    /// Adds an independent uncertainty of `half` to either side.
    fn wider(self, half: f64) -> Self {
        Around { below: self.below.hypot(half), above: self.above.hypot(half) }
    }

    /// Adds an independent uncertainty above the figure alone.
    fn higher(self, half: f64) -> Self {
        Around { above: self.above.hypot(half), ..self }
    }

    fn times(self, factor: f64) -> Self {
        Around { below: self.below * factor, above: self.above * factor }
    }

    fn about(self, figure: f64) -> Interval {
        Interval { low: (figure - self.below).max(0.0), high: figure + self.above }
    }
}

impl Expectation {
    /// Intervals from the answers of a run. `ttft` are the times to first token. `gap_cv` is the
    /// coefficient of variation of the gaps between requests. `rate` is the requests sent per
    /// second, `duration` the seconds of the run.
    pub(super) fn new(
        lived: LifeFigures,
        ttft: Option<&Figures>,
        gap_cv: Option<f64>,
        rate: Option<f64>,
        duration: f64,
        loads: Option<Loads>,
    ) -> Option<Self> {
        if lived.count < FEWEST {
            return None;
        }
        let cv = gap_cv.unwrap_or(0.0);
        Some(Expectation {
            gaps: cv * cv,
            rate: rate.unwrap_or(0.0),
            duration,
            loads,
            full: ttft
                .map(|ttft| Full::new(&lived, ttft.percentile(50.0) / 1e3))
                .unwrap_or_default(),
            lived,
        })
    }

    fn is_timed(&self) -> bool {
        self.lived.coming == ArrivalKind::Timed
    }

    /// True if requests come by a rate and none waited for a place in the batch. Such a run does
    /// not show how long a request waits for a place.
    pub(super) fn shows_no_waits(&self) -> bool {
        self.is_timed() && !self.full.seen
    }

    /// True if nobody waited for a place in an open loop, and first tokens took a small part of the
    /// time: then the part outside the model is small.
    fn is_calm(&self) -> bool {
        let means = &self.lived.means;
        let waited = means[traits::TOOK] - means[traits::ANSWERING];
        self.is_timed() && !self.full.seen && waited < CALM * means[traits::TOOK]
    }

    /// The factor by which slower steps slow themselves: in an open loop, more requests are met by
    /// each of them.
    fn feedback(&self) -> f64 {
        let steps = self.lived.steps.as_ref().filter(|_| self.is_timed());
        steps.map_or(1.0, |steps| (steps.mean / steps.empty.max(1e-9)).clamp(1.0, MOST))
    }

    /// The share of the variance between requests that other requests would have: none where all
    /// have one length, because others are like these.
    fn differ(&self) -> f64 {
        let cv = |place: usize| {
            let mean = self.lived.means[place];
            let only = self.lived.variance(one(place, 1.0));
            if mean > 0.0 { only.sqrt() / mean } else { 0.0 }
        };
        ((cv(traits::PROMPT) + cv(traits::OUTPUT)) / ALIKE).min(1.0).powi(2)
    }

    /// The variance that noise gives to the integral of a weight by slice, in seconds squared.
    fn noise(&self, steps: &Steps, weights: impl Iterator<Item = f64>) -> f64 {
        let squares: f64 = weights.map(|weight| weight * weight).sum();
        steps.noise * squares * self.lived.seconds
    }

    /// The requests, by slice, that come later and find the queue that a delay has made longer. A
    /// queue keeps a delay until the answers under way fall below a share of the most.
    fn later(&self, keeps: f64) -> Vec<f64> {
        let lived = &self.lived;
        let most = Full::most(lived);
        let mut later = vec![0.0; lived.waiting.len()];
        let mut come = 0.0;
        for slice in (0..later.len()).rev() {
            if !(self.is_timed() && lived.answering[slice] >= keeps * most) {
                come = 0.0;
            }
            later[slice] = come;
            if self.full.seen && Full::is_full(lived, slice, most) {
                come += lived.sent[slice].requests as f64;
            }
        }
        later
    }

    /// The variance of a mean latency over repeats of the same requests, in seconds squared, and a
    /// single request's variance by chance, for one second of its latency and beside it.
    fn same_variance(&self, name: &str, keeps: f64) -> Option<(f64, f64, f64)> {
        let lived = &self.lived;
        let steps = lived.steps.as_ref()?;
        let phase = if self.is_timed() { steps.mean * steps.mean / 12.0 } else { 0.0 };
        let output = lived.means[traits::OUTPUT].max(1.0);
        let count = lived.count;
        let each = lived.waiting.len() / steps.lengths.len();
        // Noise grows with the steps that reading prompts makes longer. The noise of a burst contains
        // its long steps, and its short steps hold work that no line describes: half of the growth
        // counts.
        let growth = |slice: usize| {
            let length = steps.lengths[slice / each];
            match lived.coming {
                ArrivalKind::AtOnce => (length / steps.under_way).powf(0.25),
                ArrivalKind::Timed | ArrivalKind::Closed => length.sqrt(),
            }
        };
        // Tokens come in steps of all kinds; only a burst begins with the long ones.
        let of_burst = |slice: usize| match lived.coming {
            ArrivalKind::AtOnce => growth(slice),
            ArrivalKind::Timed | ArrivalKind::Closed => 1.0,
        };
        let (noise, chance, per_second) = match name {
            metric::TTFT => {
                let weights = lived.waiting.iter().zip(self.later(keeps)).enumerate();
                let weights =
                    weights.map(|(slice, (own, later))| (own + later) / count * growth(slice));
                (self.noise(steps, weights), phase, steps.noise)
            }
            metric::TPOT => {
                let weights = lived.per_token.iter().enumerate();
                let weights = weights.map(|(slice, own)| own / count * of_burst(slice));
                (self.noise(steps, weights), 2.0 * phase / output / output, steps.noise / output)
            }
            metric::E2E => {
                let all =
                    lived.waiting.iter().zip(&lived.answering).zip(self.later(keeps)).enumerate();
                let weights = all.map(|(slice, ((wait, answer), later))| {
                    (wait + answer + later) / count * of_burst(slice)
                });
                (self.noise(steps, weights), 2.0 * phase, steps.noise)
            }
            _ => return None,
        };
        let variance = self.feedback().powi(2) * noise + chance / count;
        Some((variance, per_second, chance))
    }

    /// Half widths, in seconds, of the mean and the median of a metric over repeats of the same
    /// requests. Repeats differ by no more than other requests would, so the blocks of this run
    /// bound them. Where an engine is mostly idle, the time of its steps shows little of its noise.
    fn same_halves(&self, name: &str, figures: &Figures, blocks: &Blocks) -> Option<[f64; 2]> {
        let (variance, per_second, chance) = self.same_variance(name, EMPTYING)?;
        // What a queue keeps reaches few requests, so it moves the mean alone.
        let (of_median, ..) = self.same_variance(name, TAKEN)?;
        let quantile = certain(self.lived.steps.as_ref()?.freedom);
        let (mean, median) = (figures.mean() / 1e3, figures.percentile(50.0) / 1e3);
        let own = (per_second * median + chance).sqrt();
        let count = figures.count() as f64;
        let density = density(figures);
        // As many samples as noise moves across the median, and no more than chance moves of
        // samples that are all new.
        let crossing = (CROSSING * own / (count * density)).min(0.25 / (count * density * density));
        let shared = of_median * (median / mean.max(1e-12)).powi(2);
        let halves = [quantile * variance.sqrt(), quantile * (shared + crossing).sqrt()];
        if self.lived.coming == ArrivalKind::AtOnce {
            // The requests of a burst wait for each other, so its blocks differ by their places.
            return Some(halves);
        }
        let most = [
            interval::mean(blocks, figures, None),
            interval::percentile(blocks, figures, 50.0, None),
        ];
        let bounded = |(half, most): (f64, Option<Interval>)| {
            let most = most.map_or(f64::INFINITY, |own| (own.high - own.low) / 2e3);
            half.min(most)
        };
        let [of_mean, of_median] = [0, 1].map(|place| bounded((halves[place], most[place])));
        Some([of_mean, of_median])
    }

    /// Intervals of the mean and the median of a metric, over other requests of this kind and over
    /// repeats of the same; `None` for metrics that this says nothing of.
    pub(super) fn both(
        &self,
        name: &str,
        figures: &Figures,
        blocks: &Blocks,
    ) -> Option<(Option<Both>, Option<Same>)> {
        let halves = self.same_halves(name, figures, blocks)?;
        let about = |figure: f64, half: f64| Bounds::from(Around::even(half * 1e3).about(figure));
        let same = self.lived.forced.then(|| Same {
            mean: Some(about(figures.mean(), halves[0])),
            median: Some(about(figures.percentile(50.0), halves[1])),
        });
        Some((self.other(name, figures, blocks, halves), same))
    }

    /// The factors from the variation of the engine's pace to a mean's and a median's. By the clock
    /// of its steps, a slower engine gets its requests faster. No figure follows its load more than
    /// the figure varies from block to block.
    pub(super) fn follows_pace(&self, figures: &Figures, blocks: &Blocks) -> [f64; 2] {
        let deviations = blocks.deviations(figures).filter(|_| self.is_timed());
        deviations.unwrap_or_default().map(|deviation| 1.0 + deviation)
    }

    /// Seconds that a request adds to each step of the others, by its traits, times the seconds for
    /// which it does.
    fn load(&self) -> [f64; TRAITS] {
        let Some(steps) = &self.lived.steps else {
            return [0.0; TRAITS];
        };
        let mut load = one(traits::ANSWERING, steps.request * 1e-6);
        load[traits::HELD] = steps.context_token * 1e-6;
        load[traits::PROMPT] = steps.prompt_token * steps.mean;
        load
    }

    /// The mean of it over the requests.
    fn mean_load(&self) -> f64 {
        let answer = self.lived.steps.as_ref().map_or(0.0, |steps| steps.answer * steps.mean);
        self.lived.mean(self.load()) + answer
    }

    /// Seconds of the engine's time that a request takes, by its traits, in work that delays
    /// others. Where the steps are not known, something that is as long.
    fn work(&self) -> [f64; TRAITS] {
        let Some(steps) = &self.lived.steps else {
            return match self.lived.coming {
                ArrivalKind::AtOnce => one(traits::OUTPUT, 1.0),
                ArrivalKind::Timed | ArrivalKind::Closed => one(traits::TOOK, 1.0),
            };
        };
        let mut work = one(traits::BEFORE, steps.empty / self.lived.batch.max(1.0) + steps.request);
        work[traits::BEFORE_CONTEXT] = steps.context_token;
        work[traits::PROMPT] = steps.prompt_token;
        let prompt = self.lived.means[traits::PROMPT];
        if self.reads_a_burst() {
            // Answers delay requests that wait for a place, and prompts delay the others. Every
            // step of a burst reads the same budget of prompt tokens, so the line through the
            // steps cannot tell their time from other time. Prompts take the rest of the time
            // until the last first token.
            let full = self.full_share();
            work[traits::BEFORE] *= full;
            work[traits::BEFORE_CONTEXT] *= full;
            let answered = self.lived.mean(work) - work[traits::PROMPT] * prompt;
            let rest = self.lived.until_drain / self.lived.count - answered;
            work[traits::PROMPT] = (rest / prompt).max(full * work[traits::PROMPT]);
        }
        work
    }

    /// True if a burst's prompts have known lengths: then its work holds all of its time.
    fn reads_a_burst(&self) -> bool {
        self.lived.coming == ArrivalKind::AtOnce && self.lived.means[traits::PROMPT] > 0.0
    }

    /// The share of the time in which requests of a burst wait that all places are taken.
    fn full_share(&self) -> f64 {
        let lived = &self.lived;
        let most = Full::most(lived);
        let waits = (0..lived.waiting.len()).filter(|slice| lived.waiting[*slice] > 0.5);
        let full = waits.clone().filter(|slice| Full::is_full(lived, *slice, most)).count();
        full as f64 / waits.count().max(1) as f64
    }

    /// The mean of it over the requests.
    fn mean_work(&self) -> f64 {
        let steps = self.lived.steps.as_ref().filter(|_| !self.reads_a_burst());
        let answer = steps.map_or(0.0, |steps| steps.answer);
        (self.lived.mean(self.work()) + answer).max(1e-12)
    }

    /// The relative variance of the summed work of all requests.
    fn work_variance(&self) -> f64 {
        let (work, lived) = (self.work(), &self.lived);
        let mean = self.mean_work();
        self.differ() * lived.variance(work) / (mean * mean) / lived.count + self.new_lengths()
    }

    /// The relative variance of that work from the number of different lengths of prompts.
    fn new_lengths(&self) -> f64 {
        let each = self.lived.steps.as_ref().map_or(0.0, |steps| steps.new_length);
        let all = self.mean_work() * self.lived.count;
        self.lived.lengths_variance * (each / all).powi(2)
    }

    /// Intervals over other requests. The halves are the halves over repeats of the same requests,
    /// whose noise is in these too.
    fn other(
        &self,
        name: &str,
        figures: &Figures,
        blocks: &Blocks,
        [same_mean, same_median]: [f64; 2],
    ) -> Option<Both> {
        let steps = self.lived.steps.as_ref()?;
        let (mean, median) = (figures.mean() / 1e3, figures.percentile(50.0) / 1e3);
        let quantile = certain(FREEDOM);
        // One variance is common to mean and median, the other is the median's own.
        let both = |shared: f64, own: f64| {
            let of_mean = (quantile * shared.sqrt()).hypot(same_mean);
            let share = shared.sqrt() * median / mean.max(1e-12);
            let of_median = quantile * share.hypot(own.sqrt());
            [Some(Around::even(of_mean)), Some(Around::even(of_median.hypot(same_median)))]
        };
        let around = match (name, self.lived.coming) {
            (metric::TPOT, _) => both(self.tpot_variance(steps, figures), self.of_median(figures)),
            (metric::TTFT, ArrivalKind::AtOnce) => {
                // The middle of a walk varies by twice the variance of its work.
                let first = (2.0 * self.first_share()).min(0.75);
                let middle = 2.0 / (1.0 - first) - 4.0 / 3.0 / (1.0 - self.first_share());
                let middle = middle * self.work_variance() * median * median;
                both(self.wait_variance(mean), middle)
            }
            (metric::TTFT, ArrivalKind::Closed) => {
                let most = self.rest_of_answers(steps, figures).map(|most| most.hypot(same_mean));
                let waits = self.waits(figures, blocks);
                [0, 1].map(|place| waits[place].map(|own| own.within(most[place])))
            }
            (metric::TTFT, ArrivalKind::Timed) => self.waits(figures, blocks),
            (metric::E2E, ArrivalKind::AtOnce | ArrivalKind::Closed) => {
                let took = self.lived.took.std() / 1e3;
                let count = figures.count() as f64;
                let crossing = CROSSING * took / (count * density(figures)) * self.differ();
                let own = crossing.min(self.of_median(figures));
                let shared = self.busy_variance(mean);
                let [of_mean, of_median] = both(shared, own);
                if self.lived.coming == ArrivalKind::AtOnce {
                    [of_mean, of_median]
                } else {
                    // A longer answer is longer itself, and others wait for it.
                    let means = &self.lived.means;
                    let waited = 1.0 - means[traits::ANSWERING] / means[traits::TOOK].max(1.0);
                    let waits = waited * shared.sqrt() * median / mean.max(1e-12);
                    let half = quantile * (waits + own.sqrt());
                    [of_mean, Some(Around::even(half.hypot(same_median)))]
                }
            }
            (_, ArrivalKind::Timed) => {
                let [of_mean, of_median] = both(self.timed_variance(), 0.0);
                let within = |around: Option<Around>, figure: f64, percent: Option<f64>| {
                    let blocks = match percent {
                        // Load and lengths explain all, and the blocks show how the engine filled.
                        _ if self.is_calm() => None,
                        None => {
                            let fill = FillVariance { chance: self.differ(), ..FillVariance::ALL };
                            interval::mean_with_fill(blocks, figures, None, fill)
                        }
                        Some(percent) => interval::percentile(blocks, figures, percent, None)
                            .filter(|of| of.low.is_finite() && of.high.is_finite()),
                    };
                    let blocks =
                        blocks.map(|own| Around::from_interval(figure * 1e3, own).times(1e-3));
                    Some(around?.with(blocks).higher(self.unseen(mean)))
                };
                [within(of_mean, mean, None), within(of_median, median, Some(50.0))]
            }
            _ => return None,
        };
        // If an open loop may be twice as slow, the run does not hold the waits that decide.
        let is_open = |own: Around, figure: f64| self.is_timed() && own.above > figure;
        let ends = |own: Around, figure: f64| {
            if is_open(own, figure) { own.higher(f64::INFINITY) } else { own }
        };
        let (of_mean, of_median) =
            (around[0].map(|own| ends(own, mean)), around[1].map(|own| ends(own, median)));
        // Other requests meet the noise that the same ones meet.
        let about = |own: Option<Around>, same: f64, figure: f64| {
            own.map(|own| own.with(Some(Around::even(same))).times(1e3).about(figure))
        };
        Some([
            about(of_mean, same_mean, figures.mean()),
            about(of_median, same_median, figures.percentile(50.0)),
        ])
    }

    /// The variance of the median of samples that are all new, in seconds squared.
    fn of_median(&self, figures: &Figures) -> f64 {
        let density = density(figures);
        self.differ() * 0.25 / (figures.count() as f64 * density * density)
    }

    /// The standard deviation of the mean load of an open loop over other requests, as a share of
    /// the mean step.
    fn load_share(&self) -> f64 {
        let Some(steps) = self.lived.steps.as_ref().filter(|_| self.is_timed()) else { return 0.0 };
        let (load, mean) = (self.load(), self.mean_load());
        let variance = mean * mean * self.gaps + self.lived.variance(load);
        self.feedback() * self.rate * (variance / self.lived.count).sqrt() / steps.mean
    }

    /// The variance of the mean TPOT over other requests: of the load, and of when each meets it.
    fn tpot_variance(&self, steps: &Steps, figures: &Figures) -> f64 {
        let lived = &self.lived;
        let load = match lived.coming {
            ArrivalKind::Timed => {
                let (load, mean) = (self.load(), self.mean_load());
                let grown = self.feedback() * self.rate;
                grown * grown * (mean * mean * self.gaps + lived.variance(load))
            }
            ArrivalKind::AtOnce => {
                (self.mix_variance(steps) + self.reads_variance(steps)) * lived.count
            }
            ArrivalKind::Closed => self.mix_variance(steps) * lived.count,
        };
        let own = (figures.std() / 1e3).powi(2) * self.differ();
        load / lived.count + own / figures.count() as f64
    }

    /// The variance of the mean TPOT of a burst with free slots from the time that its prompts take.
    /// An answer gets its tokens in long steps until the last prompt is read. Longer prompts make
    /// that time longer for the answers before them, which is a third of the variance of their sum.
    fn reads_variance(&self, steps: &Steps) -> f64 {
        let lived = &self.lived;
        if !self.reads_a_burst() {
            return 0.0;
        }
        let slice = |slices: usize| {
            ((lived.until_drain / lived.seconds) as usize * slices / lived.per_token.len())
                .min(slices - 1)
        };
        let last = slice(steps.lengths.len());
        let (reading, after) = steps.lengths.split_at(last.max(1));
        let reading = reading.iter().sum::<f64>() / reading.len() as f64;
        // The slice of the last prompt holds steps of both kinds.
        let after = after.get(1).map_or(reading, |after| after.min(reading));
        let longer = (1.0 - self.full_share()) * (1.0 - after / reading);
        let each = longer * lived.per_token[slice(lived.per_token.len())] / lived.count;
        let prompts = lived.variance(one(traits::PROMPT, self.work()[traits::PROMPT]));
        self.differ() * each * each * prompts * lived.count / 3.0
    }

    /// The variance of the mean step over other requests, where always the same number is answered:
    /// their prompts and contexts have shares of each step.
    fn mix_variance(&self, steps: &Steps) -> f64 {
        let lived = &self.lived;
        let output = lived.means[traits::OUTPUT].max(1.0);
        let share = lived.batch / output;
        let mut mix = one(traits::PROMPT, steps.prompt_token * share);
        mix[traits::CONTEXT] = steps.context_token * share;
        mix[traits::OUTPUT] = -(lived.mean(mix) + steps.answer * share) / output;
        let lengths = (steps.new_length * share).powi(2) * lived.lengths_variance / lived.count;
        (lived.variance(mix) + lengths) / lived.count
    }

    /// The most that a closed loop's mean and median wait may differ, in seconds: a wait is what
    /// answering leaves of the whole, and the mean of the whole follows from the work. Blocks of
    /// waits that get shorter while an engine warms up do not know that.
    fn rest_of_answers(&self, steps: &Steps, figures: &Figures) -> [f64; 2] {
        let lived = &self.lived;
        let whole = lived.means[traits::TOOK] / 1e6;
        let own = lived.variance(one(traits::ANSWERING, 1e-6)) / lived.count;
        let pace = self.mix_variance(steps).sqrt() * lived.means[traits::OUTPUT];
        let shared = self.busy_variance(whole).sqrt() + own.sqrt() + pace;
        let median = shared * figures.percentile(50.0) / figures.mean().max(1e-9);
        [shared, median + self.of_median(figures).sqrt()].map(|half| certain(FREEDOM) * half)
    }

    /// The variance of the mean wait of a burst.
    fn wait_variance(&self, mean: f64) -> f64 {
        4.0 / 3.0 / (1.0 - self.first_share()) * self.work_variance() * mean * mean
    }

    /// The share of a burst's requests that get a place at once. The others wait for the work of
    /// fewer requests than all.
    fn first_share(&self) -> f64 {
        let most = Full::most(&self.lived);
        self.full_share() * (most / self.lived.count).min(0.75)
    }

    /// The variance of the mean E2E latency where the engine is always busy.
    fn busy_variance(&self, mean: f64) -> f64 {
        let lived = &self.lived;
        if lived.coming == ArrivalKind::Closed {
            // Always the same number in flight: the mean latency follows from the time that the run
            // takes.
            return self.work_variance() * mean * mean;
        }
        let took = lived.took.mean() / 1e3;
        let wait = self.wait_variance((mean - took).max(0.0)).sqrt();
        let own = (self.differ() * (lived.took.std() / 1e3).powi(2) / lived.count).sqrt();
        // A long answer is long itself and makes others wait; the two means share their requests by
        // √3/2.
        wait * wait + own * own + 3.0_f64.sqrt() * wait * own
    }

    /// The variance of the mean E2E latency in an open loop: from each request's own latency, and
    /// from its effect on others.
    fn timed_variance(&self) -> f64 {
        let lived = &self.lived;
        let load = self.load();
        let grown = self.feedback() * self.rate * lived.means[traits::OUTPUT];
        let mut own = load.map(|factor| grown * factor);
        own[traits::TOOK] += 1e-6;
        let shared = grown * self.mean_load();
        (lived.variance(own) + shared * shared * self.gaps) / lived.count
    }

    /// Intervals of times to first token outside of bursts: from blocks of requests, and with the
    /// waits that the run may not have held, if it held any.
    fn waits(&self, figures: &Figures, blocks: &Blocks) -> [Option<Around>; 2] {
        let (mean, median) = (figures.mean(), figures.percentile(50.0));
        let loads = self.loads.filter(|_| self.full.seen);
        let fill = if self.is_timed() { FillVariance::ALL } else { self.first_wave() };
        let of_mean = if self.is_calm() {
            interval::mean_beside_trend(blocks, figures)
        } else {
            interval::mean_with_fill(blocks, figures, loads, fill)
        };
        let load = self.load_share();
        let of_mean = of_mean.map(|own| {
            let around = Around::from_interval(mean, own).times(1e-3);
            if self.is_calm() { around.wider(certain(FREEDOM) * load * mean / 1e3) } else { around }
        });
        let of_median = interval::percentile(blocks, figures, 50.0, None)
            .filter(|own| own.low.is_finite() && own.high.is_finite())
            .map(|own| Around::from_interval(median, own).times(1e-3))
            .or_else(|| of_mean.map(|own| own.times(median / mean.max(1e-12))));
        let unseen = self.unseen(mean / 1e3);
        let opened = self.full.seen && self.full.share > 0.25 && self.independent() < 5.0;
        let unseen_of_median = if opened { f64::INFINITY } else { 0.0 };
        [of_mean.map(|own| own.higher(unseen)), of_median.map(|own| own.higher(unseen_of_median))]
    }

    /// The variance of the waits of the first requests of a closed loop. They come at once, so each
    /// waits for the work of those before it. Where requests are alike, the waits of every run
    /// differ by noise alone, which `other` adds.
    fn first_wave(&self) -> FillVariance {
        let relative = |factors: [f64; TRAITS], mean: f64| {
            self.lived.variance(factors) / (mean * mean).max(1e-24)
        };
        let prompts = one(traits::PROMPT, 1.0);
        let work = relative(self.work(), self.mean_work());
        let work = relative(prompts, self.lived.mean(prompts)).max(work);
        FillVariance { chance: self.differ(), work }
    }

    fn independent(&self) -> f64 {
        self.loads.map_or(f64::INFINITY, |loads| loads.independent)
    }

    /// Seconds by which the mean wait of an open loop may exceed this run's mean wait: other runs
    /// may have all slots taken more often or for longer. Nothing if no request waited for a slot,
    /// infinite if all slots are taken throughout. `mean` is the figure.
    fn unseen(&self, mean: f64) -> f64 {
        let waits = self.full.waits / self.lived.count;
        if !self.full.seen {
            return 0.0;
        }
        if self.independent() < super::LEAST_LOADS && waits > 0.1 * mean {
            return f64::INFINITY;
        }
        let seen = self.full.blocks.min(self.independent()).max(1.0);
        waits * (most_events(seen) / seen - 1.0) * BURSTS
    }

    /// Intervals of the run's rates, over other requests and over repeats of these.
    pub(super) fn rates(&self, figures: [Option<f64>; 4]) -> RateConfidence {
        let lived = &self.lived;
        let length = self.duration.max(1e-9);
        let quantile = certain(FREEDOM);
        let begins =
            if self.is_timed() { (lived.until_drain / lived.seconds).floor() as usize } else { 0 };
        let busy = (0..lived.waiting.len()).map(|slice| f64::from(u8::from(slice >= begins)));
        let same = |steps: &Steps| certain(steps.freedom) * self.noise(steps, busy).sqrt() / length;
        let same = lived.steps.as_ref().map(same);
        let (drain, ends) = self.drain();
        let main = match lived.coming {
            ArrivalKind::Timed => (lived.until_drain / length).clamp(0.0, 1.0),
            // For replies that come whole in a burst, nothing tells when the last one was let in.
            ArrivalKind::AtOnce if same.is_none() => 1.0,
            ArrivalKind::AtOnce | ArrivalKind::Closed => 1.0 - (drain / length).min(1.0),
        };
        let gaps = main * main * self.gaps / lived.count;
        // The drain follows from fewer answers than the rest.
        let ends = ends * (certain((TAIL - 1) as f64) / quantile).powi(2);
        let work = self.work();
        let mean_work = self.mean_work();
        let other = |counted: [f64; TRAITS]| {
            let mean = lived.mean(counted);
            let inputs = if self.is_timed() {
                let own = if mean > 0.0 { lived.variance(counted) / (mean * mean) } else { 0.0 };
                gaps + own / lived.count
            } else {
                let mut against = work.map(|factor| -main * factor / mean_work);
                for (own, counted) in against.iter_mut().zip(counted) {
                    *own += if mean > 0.0 { counted / mean } else { 0.0 };
                }
                // The noise of the steps is apart where they are known. Where replies come whole,
                // it is in the time that each takes, and replies in flight together share it.
                let noise = match (same, lived.coming) {
                    (None, ArrivalKind::Closed) => (1.0 - self.differ()) * lived.batch.max(1.0),
                    _ => 0.0,
                };
                (self.differ() + noise) * lived.variance(against) / lived.count
                    + main * main * self.new_lengths()
            };
            // A long answer makes the work and the drain longer. Its own tokens make up for that.
            let common = if counted[traits::OUTPUT] > 0.0 { 0.0 } else { COMMON };
            let both = inputs + ends + 2.0 * common * (inputs * ends).sqrt();
            (quantile * both.sqrt()).hypot(same.unwrap_or(0.0))
        };
        let (input, output) = (one(traits::PROMPT, 1.0), one(traits::OUTPUT, 1.0));
        let both = std::array::from_fn(|place| input[place] + output[place]);
        let halves = [[0.0; TRAITS], input, output, both].map(other);
        let about = |halves: [f64; 4]| {
            let bounds = |place: usize| {
                // Where nothing varies and the noise of the engine is not known, a width of nothing
                // would be a lie.
                let (figure, half) = (figures[place], halves[place]);
                let figure = figure.filter(|_| half > 0.0)?;
                Some(Bounds::from(Around::even(figure * half).about(figure)))
            };
            Rates {
                requests_per_s: bounds(0),
                input_tokens_per_s: bounds(1),
                output_tokens_per_s: bounds(2),
                total_tokens_per_s: bounds(3),
            }
        };
        RateConfidence {
            level: interval::LEVEL,
            other_requests: about(halves),
            same_requests: (same.filter(|_| lived.forced))
                .map(|same| about([same; 4]))
                .unwrap_or_default(),
        }
    }

    /// The length of a step of the drain with `left` answers left, as a share of the mean step:
    /// none reads prompts, and fewer and fewer answers share it. Where most answers are of the
    /// drain, its steps are the mean steps.
    fn pace_with(&self, left: f64) -> f64 {
        let steps = self.lived.steps.as_ref();
        let steps = steps.filter(|_| 2.0 * self.lived.draining < self.lived.count);
        steps.map_or(1.0, |steps| {
            ((steps.empty + steps.request * left) / steps.mean.max(1e-12)).min(1.0)
        })
    }

    /// The mean seconds of the drain, and the relative variance that the drain gives to a rate. A
    /// rate is the inverse of a run's time, so a very long drain moves it little.
    ///
    /// Let n answers be under way that were met at a chance instant. None lasts longer than x with
    /// a probability of exp(-n E(D - x)⁺ / E(D)), where D is the duration of an answer. Other runs
    /// hold longer answers than the longest of this one. Beyond the tenth longest, the excess is
    /// the geometric mean of an exponential distribution's and a Pareto distribution's (Hill 1975,
    /// "A simple general approach to inference about the tail of a distribution"). Alone, the
    /// exponential distribution gives too little for lengths of chats, and Pareto's too much. Where
    /// many answers are of the drain, the longest answer decides the rate, and the Pareto
    /// distribution counts alone.
    fn drain(&self) -> (f64, f64) {
        const PARTS: u32 = 300;
        let lived = &self.lived;
        let took = &lived.took;
        let (mean, most) = (took.mean(), took.max());
        if mean <= 0.0 {
            return (0.0, 0.0);
        }
        // At most a thousand of them, the longest included.
        let count = took.count().min(1000);
        let rank = |place: u64| (place + 1) * took.count() / count - 1;
        let lengths: Vec<f64> = (0..count).map(|place| took.at(rank(place))).collect();
        let beyond = |at: f64| lengths.iter().map(|own| (own - at).max(0.0)).sum::<f64>();
        let longest = |rank: u64| took.at(took.count().saturating_sub(rank));
        let tenth = longest(TAIL).max(1e-3 * most);
        let of_longer = |value: &dyn Fn(f64) -> f64| {
            (1..TAIL).map(|rank| value(longest(rank))).sum::<f64>() / (TAIL - 1) as f64
        };
        let excess = of_longer(&|own| own - tenth).max(f64::MIN_POSITIVE);
        let shape = 1.0 / of_longer(&|own| (own / tenth).ln()).max(1e-3);
        let light = if lived.draining < MANY * lived.count { 0.5 } else { 0.0 };
        let sure = if lived.coming == ArrivalKind::AtOnce && light == 0.0 { SURE } else { 1.0 };
        let falls = (sure * shape).max(LEAST_SHAPE) - 1.0;
        let (beyond_tenth, reach) = (beyond(tenth), REACH * most / tenth);
        let share = |part: u32| f64::from(part) / f64::from(PARTS);
        let upto = (1..=PARTS).map(|part| {
            let at = tenth * share(part);
            (at, beyond(at))
        });
        let further = (1..=PARTS).map(|part| {
            let times = reach.powf(share(part));
            let (pareto, exponential) = (falls * times.ln(), tenth * (times - 1.0) / excess);
            let logarithm = pareto + light * (exponential - pareto);
            (tenth * times, beyond_tenth * (-logarithm).exp())
        });
        // Seconds that an answer of each duration takes with the others, and the moments of the
        // drain, weighed by the chance that this answer is the longest.
        let (mut lasted, mut from, mut before) = (0.0, 0.0, 0.0);
        let (mut drain, mut rate, mut squares) = (0.0, 0.0, 0.0);
        for (at, excess) in upto.chain(further) {
            let left = lived.draining * excess / (count as f64 * mean);
            lasted += (at - from) * self.pace_with(left) / 1e3;
            let ended = (-left).exp();
            let (chance, own) = (ended - before, 1.0 / (lived.until_drain + lasted));
            drain += chance * lasted;
            rate += chance * own;
            squares += chance * own * own;
            (from, before) = (at, ended);
        }
        let variance = (before * squares / (rate * rate) - 1.0).max(0.0);
        (drain, self.differ() * variance)
    }
}

impl Full {
    /// `usual` is the median time to first token, in seconds.
    fn new(lived: &LifeFigures, usual: f64) -> Self {
        let Some(steps) = lived.steps.as_ref().filter(|_| lived.coming == ArrivalKind::Timed)
        else {
            return Full::default();
        };
        let most = Full::most(lived);
        let slices = lived.waiting.len();
        let mut full = Full::default();
        let mut blocks = [false; BLOCKS];
        for slice in (0..slices).filter(|slice| Full::is_full(lived, *slice, most)) {
            full.waits += lived.waiting[slice] * lived.seconds;
            full.share += 1.0 / slices as f64;
            blocks[slice * BLOCKS / slices] = true;
        }
        full.blocks = blocks.into_iter().filter(|held| *held).count() as f64;
        full.seen = (0..slices).any(|slice| {
            let (wait, prompt) = lived.sent[slice].longest;
            let read = steps.answer + steps.prompt_token * f64::from(prompt);
            lived.answering[slice] >= 0.9 * most && wait.as_secs_f64() > 4.0 * usual + 2.0 * read
        });
        full
    }

    fn most(lived: &LifeFigures) -> f64 {
        lived.answering.iter().copied().fold(0.0, f64::max)
    }

    /// True if requests waited in a slice while the number of answers under way was at its highest.
    fn is_full(lived: &LifeFigures, slice: usize, most: f64) -> bool {
        lived.waiting[slice] > 0.5 && lived.answering[slice] >= TAKEN * most
    }
}

/// The number of standard deviations that hold a figure at the level of the intervals.
fn certain(freedom: f64) -> f64 {
    student::quantile(1.0 - interval::LEVEL / 100.0, freedom)
}

/// A sum of traits in which only one counts.
fn one(place: usize, factor: f64) -> [f64; TRAITS] {
    let mut factors = [0.0; TRAITS];
    factors[place] = factor;
    factors
}

/// The density of the samples at their median, per second.
fn density(figures: &Figures) -> f64 {
    let width = (figures.percentile(60.0) - figures.percentile(40.0)) / 1e3;
    0.2 / width.max(1e-9)
}

#[cfg(test)]
mod tests {
    use crate::summary::fixture::{facts, reply};
    use crate::summary::{Bounds, Loop, Summary};
    use model::exchange::{Exchange, Kind};
    use simulator::Random;

    /// Four users, each of whose replies takes 20 to 180 ms and comes whole.
    fn whole(seed: u64, requests: u64) -> Vec<Exchange> {
        let mut random = Random::new(seed);
        let mut free = [1000; 4];
        (0..requests)
            .map(|index| {
                let next = free.iter_mut().min().unwrap();
                let sent = *next;
                let tokens = 2 + (16.0 * random.uniform()) as u32;
                *next += 10 * u64::from(tokens);
                reply(index, sent, &[(*next, Kind::Text, Some(tokens), tokens)])
            })
            .collect()
    }

    #[test]
    fn whole_replies_have_a_right_throughput_interval() {
        let mut facts = facts();
        (facts.run.r#loop, facts.run.streamed) = (Loop::Closed, false);
        facts.run.max_in_flight = Some(4);
        let runs = (0..100).map(|seed| Summary::new(&facts, &whole(seed, 300)).throughput);
        let seen: Vec<(f64, Bounds)> = runs
            .map(|of| {
                let bounds = of.confidence.unwrap().other_requests.requests_per_s;
                (of.requests_per_s.unwrap(), bounds.unwrap())
            })
            .collect();
        let truth = seen.iter().map(|(rate, _)| rate).sum::<f64>() / 100.0;
        let holds = |of: &Bounds| of.low.unwrap() <= truth && truth <= of.high.unwrap();
        let held = seen.iter().filter(|(_, of)| holds(of)).count();
        assert!((88..=100).contains(&held), "{held}");
        // Each reply takes 100 ms ± 46, so 300 of them have a mean that is known within 5 %, and
        // the end adds little.
        let wide = (seen.iter()).filter(|(rate, of)| of.high.unwrap() > 1.12 * rate);
        assert!(wide.count() < 5);
    }
}
