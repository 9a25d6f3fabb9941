//! A slow start: whether an engine's steps took longer in the beginning of a run than the same work
//! took later.
//!
//! The time of a step follows from its work (`steps`). A line through the slices after the first
//! quarter gives the expected length of each step of the first quarter. A start is slow if the
//! steps before some instant of that quarter took longer than expected, and later ones did not. So
//! an engine that fills is not slow: it does less, and the line knows that.
//!
//! Only steps that read no prompt are compared, and slices in which they are many. An engine that
//! keeps the beginnings of prompts reads each in full once. So steps with prompts take longer at
//! first although the engine is as fast as later, and no line knows which prompts these were.

use crate::dependence::inflation;
use crate::moments::{mean, squares_about};
use crate::ranked::{Ranked, Sorted};
use crate::steps::{QUIET, Slice, line_through};
use crate::student;

/// Slices that a slow start needs, and the smallest part of all slices that it lasts, one in 25: a
/// shorter one is the reading of the first prompts.
const LEAST: usize = 3;
const PART: usize = 25;
/// The probability that chance alone makes a start slow, over all instants at which it may end.
const CHANCE: f64 = 0.001;
/// The share of a slice's steps that may read prompts, so that the quickest quarter of its tokens
/// has none of them.
const READING: f64 = 0.75;
/// Tokens that an engine reads of a prompt in one step at least, if the prompt has that many.
const PIECE: f64 = 256.0;
/// Slices in which the answer to a prompt may begin that is read in the first of them.
const AHEAD: usize = 3;
/// The share by which steps must be longer.
const SMALL: f64 = 0.1;
/// Parts of the later slices between which dependence is corrected for.
const BLOCKS: usize = 20;
/// The percentage of the later slices that may do less work than any slice of the beginning.
const FEW: f64 = 5.0;
/// The factor by which the work of a slice may lie outside of later ones' range. The line is not
/// drawn on beyond that.
const BEYOND: f64 = 1.05;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowStart {
    /// The number of slices until it was over, the idle ones included.
    pub slices: usize,
    /// The time of its steps, divided by the time that the same work took later.
    pub factor: f64,
}

/// Finds a slow start; `None` if there is none, or if slices show too little. Steps that do more
/// than later ones, or less than nearly all of them, are left out. Assumes that the later slices'
/// residuals about the line follow a first-order autoregressive process ([`inflation`]).
pub fn slow_start(slices: &[Slice]) -> Option<SlowStart> {
    let ahead = |place: usize| &slices[place..slices.len().min(place + AHEAD)];
    let slices: Vec<Slice> = (0..slices.len()).map(|place| quiet(ahead(place))).collect();
    let (early, later) = slices.split_at(slices.len() / 4);
    let busy: Vec<&Slice> = later.iter().filter(|slice| slice.is_busy()).collect();
    let line = line_through(&busy)?;
    let ranges: Vec<(f64, f64)> = (1..QUIET)
        .filter_map(|term| Sorted::new(busy.iter().map(|slice| slice.terms()[term]).collect()))
        .map(|term| (term.percentile(FEW), term.max()))
        .collect();
    let within = |slice: &Slice| {
        let own = slice.terms().into_iter().take(QUIET).skip(1);
        own.zip(&ranges).all(|(own, (least, most))| own >= least / BEYOND && own <= most * BEYOND)
    };
    // The excess of the steps of a slice, as a share of the line's time.
    let off = |slice: &Slice| {
        let terms = line.iter().zip(slice.terms());
        let step: f64 = terms.map(|(factor, term)| factor * term).sum();
        slice.seconds / (slice.steps() * step) - 1.0
    };
    let early: Vec<(usize, f64)> = (early.iter().enumerate())
        .filter(|(_, slice)| slice.is_busy() && within(slice))
        .map(|(place, slice)| (place, off(slice)))
        .filter(|(_, off)| off.is_finite())
        .collect();
    let rest: Vec<f64> = busy.iter().map(|slice| off(slice)).collect();
    let blocks: Vec<f64> = (0..BLOCKS)
        .map(|block| mean(&rest[block * rest.len() / BLOCKS..(block + 1) * rest.len() / BLOCKS]))
        .collect();
    let (factor, freedom) = inflation(&blocks);
    // The variance of a mean of slices, times their number.
    let each = rest.len() as f64 / BLOCKS as f64;
    let level = mean(&blocks);
    let variance = squares_about(&blocks, level) / (BLOCKS as f64 - 1.0) * factor * each;
    let own = squares_about(&rest, mean(&rest)) / (rest.len() as f64 - 1.0);
    let variance = variance.max(own);
    let places = early.len().saturating_sub(LEAST - 1);
    let limit = student::quantile(CHANCE / (places as f64).max(1.0), freedom);
    let all: Vec<f64> = early.iter().map(|(_, off)| *off).chain(rest).collect();
    (LEAST..=early.len())
        .filter_map(|count| {
            let (before, after) = all.split_at(count);
            let longer = mean(before) - mean(after);
            let halves = 1.0 / count as f64 + 1.0 / after.len() as f64;
            let sure = longer / (variance * halves).sqrt();
            let factor = (1.0 + mean(before)) / (1.0 + mean(after));
            // A few very long slices are no slow start of many.
            let slow = before.iter().filter(|off| **off > SMALL / 2.0).count();
            let start = SlowStart { slices: early[count - 1].0 + 1, factor };
            let lasts = start.slices >= slices.len() / PART && 4 * slow >= 3 * count;
            (sure > limit && factor > 1.0 + SMALL && lasts).then_some((sure, start))
        })
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, start)| start)
}

/// The first of these slices, as if no step read a prompt; idle if too few are like that.
fn quiet(slices: &[Slice]) -> Slice {
    let Some(slice) = slices.first().filter(|slice| slice.is_busy()) else {
        return Slice::default();
    };
    let steps = slice.steps();
    // Each prompt takes a step and one for each piece, and none is read while no request waits.
    let pieces = |slice: &Slice| slice.begun + slice.prompts / PIECE;
    let most = slices.iter().map(pieces).fold(0.0, f64::max);
    let reading = most.min(slice.waiting * steps);
    if slice.quick > 0.0 && reading <= READING * steps {
        Slice { seconds: steps * slice.quick, ..*slice }
    } else {
        Slice::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::Random;

    /// Slices of 50 steps; the first `slow` of them take longer by a factor.
    fn slices(seed: u64, slow: usize, factor: f64) -> Vec<Slice> {
        let mut random = Random::new(seed);
        let slice = |place: usize| {
            // The engine fills over the first three.
            let batch = 20.0 * ((place + 1) as f64 / 3.0).min(1.0) + random.uniform();
            let prompts = (random.uniform() * 10_000.0).round();
            let work = 50.0 * (0.010 + 0.000_2 * batch) + 0.000_02 * prompts;
            let noise = 1.0 + 0.02 * random.normal();
            let times = noise * if place < slow { factor } else { 1.0 };
            Slice {
                seconds: work * times,
                tokens: 50.0 * batch,
                batch,
                prompts,
                begun: 10.0,
                waiting: 0.5,
                quick: (0.010 + 0.000_2 * batch) * times,
                ..Slice::default()
            }
        };
        (0..200).map(slice).collect()
    }

    /// Chance hides a start of few slow slices in a few of a hundred runs.
    #[test]
    fn a_slow_start_is_told_from_an_engine_that_fills() {
        let mut missed = 0;
        for seed in 0..200 {
            assert_eq!(slow_start(&slices(seed, 0, 1.0)), None, "{seed}");
            for slow in [10, 25, 50] {
                let Some(found) = slow_start(&slices(seed, slow, 1.3)) else {
                    assert_eq!(slow, 10, "{seed}");
                    missed += 1;
                    continue;
                };
                assert!(found.slices.abs_diff(slow) <= 3, "{found:?} of {slow}");
                assert!((found.factor - 1.3).abs() < 0.05, "{found:?} of {slow}");
            }
        }
        assert!(missed <= 10, "{missed}");
    }

    #[test]
    fn stalls_few_slices_and_steps_that_read_prompts_are_no_slow_start() {
        let mut stalled = slices(1, 0, 1.0);
        stalled[20].seconds *= 50.0;
        stalled[20].quick *= 50.0;
        assert_eq!(slow_start(&stalled), None);
        assert_eq!(slow_start(&slices(1, 10, 2.0)[..40]), None);
        assert_eq!(slow_start(&[]), None);
        // Prompts whose beginnings are not kept yet take time that steps without prompts do not.
        // Where nearly every step reads one, nothing tells the two apart.
        let mut filling = slices(1, 0, 1.0);
        for slice in &mut filling[..40] {
            slice.seconds *= 2.0;
        }
        assert_eq!(slow_start(&filling), None);
        let mut slow = slices(1, 25, 2.0);
        assert!(slow_start(&slow).is_some());
        for slice in &mut slow {
            (slice.begun, slice.waiting) = (40.0, 20.0);
        }
        assert_eq!(slow_start(&slow), None);
    }
}
