//! Loads: the arrivals of requests at the engine, and the times of the tokens of their answers.

use model::units::Nanos;

use crate::{Engine, Parameters, Random, Work};

#[derive(Clone, Debug, PartialEq)]
pub struct ServedRequest {
    pub sent: Nanos,
    pub work: Work,
    pub tokens: Vec<Nanos>,
}

impl ServedRequest {
    fn new(sent: Nanos, work: Work) -> Self {
        ServedRequest { sent, work, tokens: Vec::with_capacity(work.output_tokens as usize) }
    }
}

/// Instants at which requests arrive by chance, `per_s` a second.
pub fn poisson(requests: usize, per_s: f64, seed: u64) -> Vec<Nanos> {
    gamma(requests, per_s, 1.0, seed)
}

/// Instants at which requests arrive, `per_s` a second. The gaps have a gamma distribution of this
/// shape: 1 is by chance, less comes in bursts, and more is more even.
pub fn gamma(requests: usize, per_s: f64, shape: f64, seed: u64) -> Vec<Nanos> {
    let mut random = Random::new(seed);
    let mut at = 0.0;
    let next = |_| {
        // The same distribution, but fewer numbers drawn.
        at += if shape == 1.0 { random.exponential() } else { random.gamma(shape) } / per_s;
        Nanos::from_secs_f64(at)
    };
    (0..requests).map(next).collect()
}

/// Requests that arrive at given instants, in order.
pub fn open(engine: &mut Engine, due: &[Nanos], work: &[Work]) -> Vec<ServedRequest> {
    open_slowing(engine, due, work, |_| 1.0)
}

/// The same at an engine whose steps slow down by a factor over time, beside its pace.
pub fn open_slowing(
    engine: &mut Engine,
    due: &[Nanos],
    work: &[Work],
    slower: impl Fn(Nanos) -> f64,
) -> Vec<ServedRequest> {
    arriving(engine, due, work, slower, |_, _| true)
}

/// The same with the first and the last token of each answer alone.
pub fn open_ends(engine: &mut Engine, due: &[Nanos], work: &[Work]) -> Vec<ServedRequest> {
    arriving(engine, due, work, |_| 1.0, |is_first, is_last| is_first || is_last)
}

/// Requests that arrive at given instants, with the tokens that `stays` keeps.
fn arriving(
    engine: &mut Engine,
    due: &[Nanos],
    work: &[Work],
    slower: impl Fn(Nanos) -> f64,
    stays: impl Fn(bool, bool) -> bool,
) -> Vec<ServedRequest> {
    let of = |(sent, work): (&Nanos, &Work)| {
        let room = if stays(false, false) { work.output_tokens as usize } else { 2 };
        ServedRequest { sent: *sent, work: *work, tokens: Vec::with_capacity(room) }
    };
    let mut served: Vec<ServedRequest> = due.iter().zip(work).map(of).collect();
    let (mut now, mut next) = (Nanos::ZERO, 0);
    loop {
        while let Some(arrived) = served.get(next).filter(|own| own.sent <= now) {
            engine.submit(next as u64, arrived.work);
            next += 1;
        }
        engine.slow_down(slower(now));
        match engine.begin() {
            Some(span) => {
                now = now + span;
                engine.finish(|id, is_last| {
                    let tokens = &mut served[id as usize].tokens;
                    if stays(tokens.is_empty(), is_last) {
                        tokens.push(now);
                    }
                });
            }
            None => match served.get(next) {
                Some(arrives) => now = arrives.sent,
                None => return served,
            },
        }
    }
}

/// Users who each send a request, wait for its answer, and send the next.
pub fn closed(engine: &mut Engine, users: usize, work: &[Work]) -> Vec<ServedRequest> {
    let mut served: Vec<ServedRequest> = Vec::with_capacity(work.len());
    let mut now = Nanos::ZERO;
    let mut free = users;
    loop {
        while free > 0 && served.len() < work.len() {
            let work = work[served.len()];
            engine.submit(served.len() as u64, work);
            served.push(ServedRequest::new(now, work));
            free -= 1;
        }
        let Some(span) = engine.begin() else { return served };
        now = now + span;
        engine.finish(|id, is_last| {
            served[id as usize].tokens.push(now);
            free += usize::from(is_last);
        });
    }
}

pub fn all_at_once(engine: &mut Engine, work: &[Work]) -> Vec<ServedRequest> {
    open(engine, &vec![Nanos::ZERO; work.len()], work)
}

/// Requests per second that the engine answers of this work when it always has enough to do.
///
/// The time in which the first and the last fifth of the requests end is left out, because the
/// batch fills and drains then. So there should be at least ten times as many requests as slots.
/// The capacity of too few requests is 0.
pub fn capacity(parameters: &Parameters, work: &[Work]) -> f64 {
    let users = parameters.slots as usize * 2;
    let steady = Parameters { run: 0.0, ..parameters.clone() };
    let served = closed(&mut Engine::new(steady, 7), users, work);
    let mut ends: Vec<Nanos> =
        (served.iter()).filter_map(|own| own.tokens.last().copied()).collect();
    ends.sort_unstable();
    let (from, to) = (ends.len() / 5, ends.len() * 4 / 5);
    match (ends.get(from), ends.get(to)) {
        (Some(first), Some(last)) if first < last => {
            (to - from) as f64 / last.since(*first).as_secs_f64()
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lengths;

    const PROMPTS: Lengths = Lengths { mean: 200.0, spread: 0.5 };
    const ANSWERS: Lengths = Lengths { mean: 60.0, spread: 0.5 };

    #[test]
    fn every_request_gets_all_its_tokens() {
        let work = Lengths::work(PROMPTS, ANSWERS, 300, 5);
        let engine = || Engine::new(Parameters::default(), 1);
        let due = poisson(300, 5.0, 2);
        for served in [
            open(&mut engine(), &due, &work),
            closed(&mut engine(), 20, &work),
            all_at_once(&mut engine(), &work),
        ] {
            assert_eq!(served.len(), 300);
            for own in &served {
                assert_eq!(own.tokens.len(), own.work.output_tokens as usize);
                assert!(own.tokens[0] > own.sent);
                assert!(own.tokens.is_sorted());
            }
        }
    }

    /// A full batch of 32 that answers 60 tokens each, at about 16.4 ms a step and 2.2 ms for its
    /// prompts.
    #[test]
    fn ends_are_the_first_and_the_last_token() {
        let work = [1, 2, 7].map(|output_tokens| Work { output_tokens, ..Work::default() });
        let due = [0, 3, 5].map(Nanos);
        let engine = || Engine::new(Parameters::default(), 1);
        let ends = open_ends(&mut engine(), &due, &work);
        for (all, ends) in open(&mut engine(), &due, &work).iter().zip(ends) {
            assert_eq!(ends.tokens.first(), all.tokens.first());
            assert_eq!(ends.tokens.last(), all.tokens.last());
            assert_eq!(ends.tokens.len(), all.tokens.len().min(2));
        }
    }

    #[test]
    fn capacity_is_the_rate_of_a_full_batch() {
        let work = Lengths::work(PROMPTS, ANSWERS, 3000, 5);
        let capacity = capacity(&Parameters::default(), &work);
        let step = 0.010 + 0.000_2 * 32.0 + 32.0 / 60.0 * 200.0 * 0.000_02;
        let expected = 32.0 / (60.0 * step);
        assert!((capacity / expected - 1.0).abs() < 0.05, "{capacity} {expected}");
    }

    #[test]
    fn too_little_work_has_no_capacity() {
        let work = Work { prompt_tokens: 10, output_tokens: 10, ..Work::default() };
        // Three are answered in the same steps.
        for requests in [0, 1, 3] {
            let work = vec![work; requests];
            assert_eq!(capacity(&Parameters::default(), &work), 0.0, "{requests}");
        }
    }
}
