//! The times between the tokens of answers, by slice of a run's time: the length of an engine's
//! steps while it reads no prompt.
//!
//! A step that reads a prompt is longer than one that generates tokens alone, so the shortest gaps
//! of a slice belong to the latter. They are kept in buckets that grow with the gap, in memory that
//! does not grow with the run.

use model::units::Nanos;

/// The share of the shortest gaps: the lower quartile. Up to three of four steps may read prompts
/// without moving it.
const QUICK: f64 = 0.25;
/// Buckets of a doubling, as bits: 16, so a gap is known to one in sixteen.
const FINE: u32 = 4;
/// The bits of the shortest gap that has a bucket of its own, 16 µs, and of the longest, 137 s.
const SHORTEST: u32 = 14;
const LONGEST: u32 = 37;
const BUCKETS: usize = ((LONGEST - SHORTEST) << FINE) as usize;

/// Tokens of one answer that came at one instant.
#[derive(Clone, Copy, Debug)]
struct Latest {
    /// The instant of the tokens before these.
    from: Nanos,
    at: Nanos,
    slice: usize,
    tokens: u64,
}

pub(super) struct Gaps {
    /// For each slice, the tokens of each bucket.
    counts: Vec<u32>,
    latest: Option<Latest>,
}

impl Gaps {
    pub(super) fn new(slices: usize) -> Self {
        Gaps { counts: vec![0; slices * BUCKETS], latest: None }
    }

    pub(super) fn begin(&mut self, first: Nanos) {
        self.end();
        self.latest = Some(Latest { from: first, at: first, slice: 0, tokens: 0 });
    }

    /// Adds tokens of the answer that was begun last. Tokens that came at one instant share the
    /// time since the tokens before them.
    pub(super) fn add(&mut self, at: Nanos, slice: usize, tokens: u64) {
        let Some(latest) = &mut self.latest else { return };
        if latest.at == at {
            latest.tokens += tokens;
            return;
        }
        let from = latest.at;
        self.end();
        self.latest = Some(Latest { from, at, slice, tokens });
    }

    fn end(&mut self) {
        let Some(latest) = self.latest.take().filter(|latest| latest.tokens > 0) else { return };
        let gap = latest.at.since(latest.from).0 / latest.tokens;
        let count = &mut self.counts[latest.slice * BUCKETS + bucket(gap)];
        *count = count.saturating_add(u32::try_from(latest.tokens).unwrap_or(u32::MAX));
    }

    /// For each slice, the lower quartile of the seconds between tokens; 0 where there are none.
    pub(super) fn finish(mut self) -> Vec<f64> {
        self.end();
        self.counts.chunks(BUCKETS).map(quick).collect()
    }
}

/// The bucket of a gap in nanoseconds: its highest bit, and the four below it.
fn bucket(gap: u64) -> usize {
    let gap = gap.clamp(1 << SHORTEST, (1 << LONGEST) - 1);
    let bits = gap.ilog2();
    let part = (gap >> (bits - FINE)) as usize - (1 << FINE);
    (((bits - SHORTEST) as usize) << FINE) + part
}

/// The nanoseconds at which a bucket begins.
fn begins(bucket: usize) -> f64 {
    let (doublings, part) = (bucket >> FINE, bucket & ((1 << FINE) - 1));
    let share = 1.0 + part as f64 / f64::from(1_u32 << FINE);
    share * (f64::from(SHORTEST) + doublings as f64).exp2()
}

/// The most seconds of the quickest quarter of the tokens, which lie evenly within a bucket.
fn quick(counts: &[u32]) -> f64 {
    let all: f64 = counts.iter().copied().map(f64::from).sum();
    let mut left = QUICK * all;
    for (bucket, count) in counts.iter().copied().map(f64::from).enumerate() {
        if count > 0.0 && count >= left {
            let (from, to) = (begins(bucket), begins(bucket + 1));
            return (from + left / count * (to - from)) / 1e9;
        }
        left -= count;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: f64) -> Nanos {
        Nanos::from_secs_f64(millis / 1000.0)
    }

    #[test]
    fn a_gap_is_known_to_one_in_sixteen() {
        for nanos in [16_384_u64, 20_000, 1_000_000, 14_234_567, 68_000_000_000] {
            let bucket = bucket(nanos);
            let (from, to) = (begins(bucket), begins(bucket + 1));
            assert!(from <= nanos as f64 && (nanos as f64) < to, "{nanos}");
            assert!(to / from <= 1.0 + 1.0 / 16.0, "{nanos}");
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    /// Two of three steps read a prompt and take 50 ms, the third takes 10 ms.
    #[test]
    fn steps_that_read_prompts_do_not_count() {
        let mut gaps = Gaps::new(2);
        for answer in 0..4 {
            let mut now = f64::from(answer);
            gaps.begin(at(now));
            for step in 0..30 {
                now += if step % 3 == 0 { 10.0 } else { 50.0 };
                gaps.add(at(now), 1, 1);
            }
        }
        let quick = gaps.finish();
        assert_eq!(quick[0], 0.0);
        assert!((quick[1] / 0.010 - 1.0).abs() < 1.0 / 16.0, "{quick:?}");
    }

    /// The second of two events in a packet has no gap of its own.
    #[test]
    fn tokens_that_come_together_share_their_gap() {
        let mut gaps = Gaps::new(1);
        gaps.begin(at(0.0));
        for step in 1..=20 {
            gaps.add(at(40.0 * f64::from(step)), 0, 1);
            gaps.add(at(40.0 * f64::from(step)), 0, 3);
        }
        let quick = gaps.finish();
        assert!((quick[0] / 0.010 - 1.0).abs() < 1.0 / 16.0, "{quick:?}");
    }
}
