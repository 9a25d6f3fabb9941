//! The engine: a queue, a batch and its steps. It has no clock: its caller waits for the length of
//! a step.

use std::collections::{HashSet, VecDeque};

use model::units::Nanos;

use crate::{Parameters, Random};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub prompt_tokens: u32,
    /// Tokens of its answer; at least one is generated.
    pub output_tokens: u32,
    /// Tokens at the beginning of its prompt in the engine's prefix cache. They are not read,
    /// except for the last of a prompt, but take room in the KV cache, for each request anew.
    pub cached_tokens: u32,
}

#[derive(Clone, Debug)]
pub struct Engine {
    parameters: Parameters,
    random: Random,
    /// Duration of all steps of this run, as a multiple of the median run's.
    pace: f64,
    /// Duration of its further steps, as a multiple of that.
    slowed: f64,
    /// The jitter's process, with mean 0 and deviation 1.
    jitter: f64,
    /// The queue. Requests whose clients have gone are dropped when their turn comes.
    waiting: VecDeque<Job>,
    /// The requests of the queue whose clients still wait.
    wanted: HashSet<u64>,
    batch: Vec<Job>,
    /// Number of requests of the batch that were in it before the latest step began.
    stayed: usize,
    /// Requests that the latest step put back into the queue.
    put_back: Vec<u64>,
    preemptions: u64,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    id: u64,
    /// Tokens that must be read before the next one can be generated.
    unread: u32,
    /// Tokens that it has in the KV cache, or will have when it enters the batch.
    held: u64,
    /// Tokens to generate.
    left: u32,
    /// True if the step under way generates a token of it.
    generates: bool,
}

impl Engine {
    /// An engine without requests. The seed decides its pace and its jitter.
    pub fn new(parameters: Parameters, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let pace = (parameters.run * random.normal()).exp();
        let jitter = random.normal();
        Engine {
            parameters,
            random,
            pace,
            slowed: 1.0,
            jitter,
            waiting: VecDeque::new(),
            wanted: HashSet::new(),
            batch: Vec::new(),
            stayed: 0,
            put_back: Vec::new(),
            preemptions: 0,
        }
    }

    /// Makes every further step `times` as long, on top of the pace that the seed decides.
    pub fn slow_down(&mut self, times: f64) {
        self.slowed = times;
    }

    /// Adds a request to the queue, under a number that no other request may ever have.
    pub fn submit(&mut self, id: u64, work: Work) {
        let prompt = work.prompt_tokens.max(1);
        let cached = work.cached_tokens.min(prompt - 1);
        self.wanted.insert(id);
        self.waiting.push_back(Job {
            id,
            unread: prompt - cached,
            held: u64::from(cached),
            left: work.output_tokens.max(1),
            generates: false,
        });
    }

    /// Drops a request whose client has gone. In the queue that takes constant time on average, so
    /// that a whole queue can leave at once.
    pub fn cancel(&mut self, id: u64) {
        if !self.wanted.remove(&id) {
            self.batch.retain(|job| job.id != id);
            return;
        }
        // Each sweep at least halves the queue, so the departures since the last sweep pay for it.
        if self.waiting.len() > 2 * self.wanted.len() + 64 {
            self.waiting.retain(|job| self.wanted.contains(&job.id));
        }
    }

    /// Begins a step, and returns its length; `None` without work. [`Engine::finish`] ends it.
    pub fn begin(&mut self) -> Option<Nanos> {
        self.put_back.clear();
        self.preempt();
        self.stayed = self.batch.len();
        self.admit();
        if self.batch.is_empty() {
            return None;
        }
        let mut budget = self.parameters.chunk;
        let (mut read, mut decoding) = (0_u32, 0_u32);
        for job in &mut self.batch {
            let now = job.unread.min(budget);
            decoding += u32::from(job.unread == 0);
            job.unread -= now;
            job.held += u64::from(now);
            budget -= now;
            read += now;
            job.generates = job.unread == 0;
        }
        Some(self.time(decoding, read))
    }

    /// Ends the step, and shows each request that got a token; true for its last token.
    pub fn finish(&mut self, mut show: impl FnMut(u64, bool)) {
        self.batch.retain_mut(|job| {
            if !job.generates {
                return true;
            }
            job.generates = false;
            job.left -= 1;
            job.held += 1;
            show(job.id, job.left == 0);
            job.left > 0
        });
    }

    /// Requests that the step just begun took from the queue. Ask before anything else is done.
    pub fn admitted(&self) -> impl Iterator<Item = u64> {
        self.batch.iter().skip(self.stayed).map(|job| job.id)
    }

    pub fn preempted(&self) -> &[u64] {
        &self.put_back
    }

    pub fn waiting(&self) -> usize {
        self.wanted.len()
    }

    pub fn running(&self) -> usize {
        self.batch.len()
    }

    /// Number of times that a full KV cache put a request back into the queue.
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// Share of the KV cache in use, at most 1, even while a request that is larger than the cache
    /// is answered alone; 0 where the cache has no limit.
    pub fn kv_usage(&self) -> f64 {
        match self.parameters.kv {
            0 => 0.0,
            limit => (self.held() as f64 / limit as f64).min(1.0),
        }
    }

    fn held(&self) -> u64 {
        self.batch.iter().map(|job| job.held).sum()
    }

    /// Puts the newest requests back into the queue until there is room for the step's tokens: its
    /// prompt tokens, and a token for each other request. The oldest request stays at any length.
    fn preempt(&mut self) {
        let limit = self.parameters.kv;
        if limit == 0 {
            return;
        }
        let chunk = u64::from(self.parameters.chunk);
        let mut held = self.held();
        let mut unread: u64 = self.batch.iter().map(|job| u64::from(job.unread)).sum();
        while self.batch.len() > 1 && held + unread.min(chunk) + self.batch.len() as u64 > limit {
            let Some(job) = self.batch.pop() else { return };
            held -= job.held;
            unread -= u64::from(job.unread);
            let again = u32::try_from(job.held).unwrap_or(u32::MAX).saturating_add(job.unread);
            self.waiting.push_front(Job { unread: again, held: 0, ..job });
            self.wanted.insert(job.id);
            self.put_back.push(job.id);
            self.preemptions += 1;
        }
    }

    fn admit(&mut self) {
        let limit = self.parameters.kv;
        // The tokens that the batch holds and has still to read.
        let mut needed: u64 =
            (self.batch.iter()).map(|job| job.held + u64::from(job.unread) + 1).sum();
        while self.batch.len() < self.parameters.slots as usize {
            let Some(next) = self.waiting.front() else { return };
            if !self.wanted.contains(&next.id) {
                self.waiting.pop_front();
                continue;
            }
            needed += next.held + u64::from(next.unread) + 1;
            if limit > 0 && needed > limit && !self.batch.is_empty() {
                return;
            }
            self.wanted.remove(&next.id);
            self.batch.extend(self.waiting.pop_front());
        }
    }

    fn time(&mut self, decoding: u32, read: u32) -> Nanos {
        // Engines without a cost of context need not count it.
        let held = if self.parameters.context > 0.0 { self.held() as f64 } else { 0.0 };
        let own = &self.parameters;
        let seconds = own.step
            + own.request * f64::from(decoding)
            + own.prompt_token * f64::from(read)
            + own.context * held;
        let kept = own.correlation;
        self.jitter = kept * self.jitter + (1.0 - kept * kept).sqrt() * self.random.normal();
        // The mean of the factor is 1.
        let factor = (own.jitter * self.jitter - own.jitter * own.jitter / 2.0).exp();
        Nanos::from_secs_f64(seconds * self.pace * self.slowed * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(slots: u32, kv: u64) -> Engine {
        let parameters = Parameters {
            slots,
            kv,
            step: 0.010,
            request: 0.001,
            prompt_token: 0.000_1,
            chunk: 100,
            jitter: 0.0,
            ..Parameters::default()
        };
        Engine::new(parameters, 1)
    }

    /// The length of every step in milliseconds, and the requests for which it generated a token.
    fn steps(engine: &mut Engine) -> Vec<(u64, Vec<u64>)> {
        let mut steps = Vec::new();
        while let Some(span) = engine.begin() {
            let mut shown = Vec::new();
            engine.finish(|id, _| shown.push(id));
            steps.push((span.0 / 1_000_000, shown));
        }
        steps
    }

    #[test]
    fn the_batch_decides_the_time_of_a_step() {
        let mut engine = exact(2, 0);
        for id in 0..3 {
            let work = Work { prompt_tokens: 150, output_tokens: 2, ..Work::default() };
            engine.submit(id, work);
        }
        let wanted = [
            // A chunk of the first prompt; the rest of it and half of the second one; the rest of
            // that.
            (20, vec![]),
            (20, vec![0]),
            (21, vec![0, 1]),
            // The third takes the place of the first.
            (21, vec![1]),
            (15, vec![2]),
            (11, vec![2]),
        ];
        assert_eq!(steps(&mut engine), wanted);
    }

    #[test]
    fn context_costs_time_and_cached_tokens_are_not_read() {
        let parameters = Parameters { context: 0.000_1, ..exact(2, 0).parameters };
        let mut engine = Engine::new(parameters, 1);
        let work = |cached_tokens| Work { prompt_tokens: 100, output_tokens: 2, cached_tokens };
        // 10 ms, 0.1 ms for each token read, and 0.1 ms for each held; the second step has 101 and
        // one to generate.
        engine.submit(0, work(0));
        assert_eq!(steps(&mut engine), [(30, vec![0]), (21, vec![0])]);
        engine.submit(1, work(70));
        assert_eq!(steps(&mut engine), [(23, vec![1]), (21, vec![1])]);
        // Of a prompt that is cached as a whole, the last token is read.
        engine.submit(2, work(100));
        assert_eq!(steps(&mut engine)[0], (20, vec![2]));
        engine.slow_down(2.0);
        engine.submit(3, work(0));
        assert_eq!(steps(&mut engine)[0], (60, vec![3]));
    }

    #[test]
    fn cached_tokens_take_room_in_the_cache() {
        let mut engine = exact(8, 60);
        for id in 0..2 {
            engine.submit(id, Work { prompt_tokens: 40, output_tokens: 5, cached_tokens: 30 });
        }
        assert!(engine.begin().is_some());
        assert_eq!((engine.running(), engine.waiting()), (1, 1));
    }

    #[test]
    fn a_full_cache_puts_the_newest_back() {
        let mut engine = exact(8, 60);
        for id in 0..2 {
            let work = Work { prompt_tokens: 20, output_tokens: 20, ..Work::default() };
            engine.submit(id, work);
        }
        let (mut shown, mut admitted, mut preempted) = (Vec::new(), Vec::new(), Vec::new());
        while engine.begin().is_some() {
            admitted.extend(engine.admitted());
            preempted.extend_from_slice(engine.preempted());
            engine.finish(|id, _| shown.push(id));
        }
        assert_eq!(engine.preemptions(), 1);
        assert_eq!((admitted, preempted), (vec![0, 1, 1], vec![1]));
        for id in 0..2 {
            assert_eq!(shown.iter().filter(|own| **own == id).count(), 20);
        }
        // A request that is larger than the cache is answered alone.
        engine.submit(9, Work { prompt_tokens: 100, output_tokens: 3, ..Work::default() });
        assert_eq!(steps(&mut engine).len(), 3);
    }

    /// Random prompts, answers, arrivals and departures; each request fits into the cache.
    #[test]
    fn the_cache_never_exceeds_its_size() {
        let mut random = Random::new(11);
        let mut upto = |most: u64| (random.uniform() * most as f64).ceil() as u64;
        let (mut preemptions, mut full) = (0, 0);
        for seed in 0..200 {
            let (kv, chunk) = (20 + upto(300), upto(60));
            let parameters = format!("slots={},kv={kv},chunk={chunk}", upto(8));
            let mut engine = Engine::new(parameters.parse().unwrap(), seed);
            let mut next = 0;
            loop {
                while next < 60 && upto(3) > 1 {
                    let prompt = upto(kv - 1);
                    let work = Work {
                        prompt_tokens: prompt as u32,
                        output_tokens: upto(kv - prompt) as u32,
                        ..Work::default()
                    };
                    engine.submit(next, work);
                    next += 1;
                }
                if upto(20) == 1 {
                    engine.cancel(upto(60) - 1);
                }
                let oldest = engine.batch.first().map(|job| job.id);
                if engine.begin().is_none() {
                    if next == 60 {
                        break;
                    }
                    continue;
                }
                assert!(oldest.is_none_or(|oldest| engine.batch[0].id == oldest));
                let generated = engine.batch.iter().filter(|job| job.generates).count();
                let held = engine.held() + generated as u64;
                assert!(held <= kv, "{parameters}: {held}");
                full += u32::from(held == kv);
                engine.finish(|_, _| ());
                assert!(engine.held() <= kv && engine.kv_usage() <= 1.0);
            }
            assert_eq!((engine.waiting(), engine.running()), (0, 0));
            preemptions += engine.preemptions();
        }
        assert!(preemptions > 1000 && full > 100, "{preemptions} {full}");
    }

    #[test]
    fn a_request_larger_than_the_cache_fills_it() {
        let mut engine = exact(8, 60);
        let work = Work { prompt_tokens: 100, output_tokens: 2, ..Work::default() };
        engine.submit(0, work);
        assert!(engine.begin().is_some());
        assert_eq!(engine.kv_usage(), 1.0);
    }

    /// A departure does not move the requests behind it, so a whole queue can leave at once.
    #[test]
    fn clients_that_left_the_queue_get_no_place() {
        let mut engine = exact(2, 0);
        let work = Work { prompt_tokens: 1, output_tokens: 1, ..Work::default() };
        let many = 65_536;
        for id in 0..many {
            engine.submit(id, work);
        }
        let mut moved = 0;
        // All but every 16,384th, the first of them from the front.
        for id in (0..many).filter(|id| id % 16_384 != 5) {
            let before = engine.waiting.len();
            engine.cancel(id);
            if engine.waiting.len() != before {
                moved += before;
            }
        }
        assert!(moved < 3 * many as usize, "{moved}");
        assert_eq!(engine.waiting(), 4);
        assert!(engine.waiting.len() < 128);
        let shown: Vec<u64> =
            (steps(&mut engine).into_iter()).flat_map(|(_, shown)| shown).collect();
        assert_eq!(shown, [5, 16_389, 32_773, 49_157]);
        // A request that has ended is not there to be cancelled.
        engine.cancel(5);
        assert_eq!((engine.waiting(), engine.waiting.len()), (0, 0));
    }

    #[test]
    fn a_cancelled_request_takes_no_steps() {
        let mut engine = exact(1, 0);
        engine.submit(1, Work { prompt_tokens: 1, output_tokens: 5, ..Work::default() });
        engine.submit(2, Work { prompt_tokens: 1, output_tokens: 1, ..Work::default() });
        assert!(engine.begin().is_some());
        engine.cancel(1);
        engine.finish(|id, _| panic!("{id} is gone"));
        assert_eq!(steps(&mut engine).len(), 1);
    }

    #[test]
    fn seeds_decide_pace_and_jitter() {
        let parameters: Parameters = "jitter=0.1,correlation=0.9,run=0.01".parse().unwrap();
        let times = |seed| {
            let mut engine = Engine::new(parameters.clone(), seed);
            engine.submit(0, Work { prompt_tokens: 1, output_tokens: 50, ..Work::default() });
            steps(&mut engine)
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }
}
