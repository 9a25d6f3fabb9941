//! Workloads: the lengths of prompts and answers, and the common beginnings of prompts.

use crate::{Random, Work};

/// Lengths of prompts or answers, in tokens: lognormal, at least one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    pub mean: f64,
    /// The standard deviation, as a share of the mean.
    pub spread: f64,
}

impl Lengths {
    pub const fn fixed(tokens: f64) -> Self {
        Lengths { mean: tokens, spread: 0.0 }
    }

    pub fn draw(self, random: &mut Random) -> u32 {
        // The variance of the logarithm that gives this spread.
        let variance = (1.0 + self.spread * self.spread).ln();
        let drawn = (self.mean.ln() - variance / 2.0 + variance.sqrt() * random.normal()).exp();
        drawn.round().clamp(1.0, f64::from(u32::MAX)) as u32
    }

    /// The prompts and answers of a number of requests.
    pub fn work(prompts: Lengths, answers: Lengths, requests: usize, seed: u64) -> Vec<Work> {
        Workload::from([prompts, answers]).work(requests, seed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Lengths of prompts, without their common prefix.
    pub prompts: Lengths,
    pub answers: Lengths,
    /// Prompts of another kind: their share and their lengths.
    pub other: Option<(f64, Lengths)>,
    /// Templates with which prompts begin: their number, each equally likely, and their lengths.
    /// Only the first request with a template reads it, because the prefix cache has it then.
    pub templates: Option<(u32, Lengths)>,
}

impl From<[Lengths; 2]> for Workload {
    fn from([prompts, answers]: [Lengths; 2]) -> Self {
        Workload::new(prompts, answers)
    }
}

impl Workload {
    pub const fn new(prompts: Lengths, answers: Lengths) -> Self {
        Workload { prompts, answers, other: None, templates: None }
    }

    pub fn work(&self, requests: usize, seed: u64) -> Vec<Work> {
        let random = &mut Random::new(seed);
        // The length of each template, and true once a request has had it.
        let mut templates: Vec<(u32, bool)> = match self.templates {
            Some((many, lengths)) => (0..many).map(|_| (lengths.draw(random), false)).collect(),
            None => Vec::new(),
        };
        let draw = |_| {
            let mut work = self.draw(random);
            if !templates.is_empty() {
                let place = (random.uniform() * templates.len() as f64).ceil() as usize - 1;
                let (length, seen) = &mut templates[place];
                work.prompt_tokens = work.prompt_tokens.saturating_add(*length);
                work.cached_tokens = if *seen { *length } else { 0 };
                *seen = true;
            }
            work
        };
        (0..requests).map(draw).collect()
    }

    fn draw(&self, random: &mut Random) -> Work {
        let prompts = match self.other {
            Some((share, other)) if random.uniform() <= share => other,
            _ => self.prompts,
        };
        Work {
            prompt_tokens: prompts.draw(random),
            output_tokens: self.answers.draw(random),
            cached_tokens: 0,
        }
    }
}

/// Prompts and answers of chats: they vary much.
pub const CHAT: [Lengths; 2] =
    [Lengths { mean: 500.0, spread: 0.8 }, Lengths { mean: 100.0, spread: 0.6 }];

/// Prompts and answers of one length.
pub const FIXED: [Lengths; 2] = [Lengths::fixed(500.0), Lengths::fixed(100.0)];

/// Prompts of 220 tokens and answers of 190 on average, as in the ShareGPT dataset. Their
/// logarithms have standard deviations of 1.2 and 1.0.
pub const SHAREGPT: Workload = Workload::new(
    Lengths { mean: 220.0, spread: 1.794_6 },
    Lengths { mean: 190.0, spread: 1.310_8 },
);

/// Short prompts, and answers that think for 1,500 tokens on average.
pub const REASONING: Workload =
    Workload::new(Lengths { mean: 200.0, spread: 0.8 }, Lengths { mean: 1500.0, spread: 0.6 });

/// Prompts and answers of 1,000 tokens each.
pub const THOUSAND: Workload = Workload::new(Lengths::fixed(1000.0), Lengths::fixed(1000.0));

/// Chats, one in twenty with a prompt of 12,000 tokens.
pub const BIMODAL: Workload =
    Workload { other: Some((0.05, Lengths::fixed(12_000.0))), ..Workload::new(CHAT[0], CHAT[1]) };

/// Chats whose prompts begin with one of twenty templates of 2,000 tokens on average.
pub const TEMPLATES: Workload = Workload {
    templates: Some((20, Lengths { mean: 2000.0, spread: 0.5 })),
    ..Workload::new(CHAT[0], CHAT[1])
};

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        (mean, (squares / count).sqrt())
    }

    #[test]
    fn lengths_have_their_mean_and_spread() {
        let mut random = Random::new(3);
        let lengths = Lengths { mean: 300.0, spread: 0.8 };
        let drawn: Vec<f64> = (0..100_000).map(|_| f64::from(lengths.draw(&mut random))).collect();
        let (mean, deviation) = moments(&drawn);
        assert!((mean - 300.0).abs() < 4.0, "{mean}");
        assert!((deviation / mean - 0.8).abs() < 0.03, "{deviation}");
    }

    #[test]
    fn lengths_of_sharegpt_have_their_deviations() {
        let work = SHAREGPT.work(100_000, 4);
        let of = |tokens: fn(&Work) -> u32| {
            let tokens: Vec<f64> = work.iter().map(|own| f64::from(tokens(own))).collect();
            let logarithms: Vec<f64> = tokens.iter().map(|own| own.ln()).collect();
            (moments(&tokens).0, moments(&logarithms).1)
        };
        for ((mean, deviation), wanted) in [
            (of(|own| own.prompt_tokens), (220.0, 1.2)),
            (of(|own| own.output_tokens), (190.0, 1.0)),
        ] {
            assert!((mean / wanted.0 - 1.0).abs() < 0.03, "{mean}");
            assert!((deviation / wanted.1 - 1.0).abs() < 0.03, "{deviation}");
        }
    }

    #[test]
    fn one_prompt_in_twenty_is_of_the_other_kind() {
        let work = BIMODAL.work(20_000, 5);
        let long = work.iter().filter(|own| own.prompt_tokens == 12_000);
        let long = long.count();
        assert!((900..1100).contains(&long), "{long}");
    }

    #[test]
    fn a_template_is_read_once() {
        let work = TEMPLATES.work(2000, 6);
        let unread = work.iter().filter(|own| own.cached_tokens == 0);
        assert_eq!(unread.count(), 20);
        let mut lengths: Vec<u32> = work.iter().map(|own| own.cached_tokens).collect();
        lengths.sort_unstable();
        lengths.dedup();
        assert!(lengths.len() <= 21, "{}", lengths.len());
        assert!(work.iter().all(|own| own.cached_tokens < own.prompt_tokens));
    }
}
