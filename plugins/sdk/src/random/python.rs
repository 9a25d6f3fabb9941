//! CPython's `random` module: a Mersenne Twister seeded by array, and the draws that its library
//! builds on it.

use rand_mt::Mt;

use super::unit_interval;

/// The generator behind Python's module `random`, as it stands after `random.seed(seed)`.
///
/// ```
/// use runner_plugin::random::Python;
/// let mut cards = [1, 2, 3, 4, 5];
/// Python::new(42).shuffle(&mut cards);
/// assert_eq!(cards, [4, 2, 3, 5, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct Python(Box<Mt>);

impl Python {
    /// As `random.seed(seed)` with an integer: the seed's 32-bit words, lowest first, are the key.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32];
        let key = if words[1] == 0 { &words[..1] } else { &words[..] };
        Self(Box::new(Mt::new_with_key(key.iter().copied())))
    }

    /// As `random.random()`: uniform in `[0, 1)`.
    pub fn random(&mut self) -> f64 {
        unit_interval(&mut self.0)
    }

    /// As `random.getrandbits(bits)`.
    ///
    /// # Panics
    /// If `bits` is above 64.
    pub fn bits(&mut self, bits: u32) -> u64 {
        assert!(bits <= 64, "at most 64 bits can be drawn at a time, not {bits}");
        match bits {
            0 => 0,
            1..=32 => u64::from(self.0.next_u32() >> (32 - bits)),
            _ => {
                let low = u64::from(self.0.next_u32());
                let high = u64::from(self.0.next_u32() >> (64 - bits));
                low | high << 32
            }
        }
    }

    /// As `random.randrange(bound)`: uniform below `bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero to draw");
        let bits = u64::BITS - bound.leading_zeros();
        loop {
            let drawn = self.bits(bits);
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// As `random.shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// As `random.choice(items)`; nothing is drawn if there are no items.
    pub fn choice<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() {
            return None;
        }
        let index = self.below(items.len() as u64) as usize;
        items.get(index)
    }

    /// The indices that `random.sample(items, count)` chooses of `items` items, in its order;
    /// `None` if there are fewer than `count`.
    pub fn sample(&mut self, items: usize, count: usize) -> Option<Vec<usize>> {
        if count > items {
            return None;
        }
        // Above this many items CPython remembers its draws, instead of taking from a list of all.
        let mut listed = 21;
        if count > 5 {
            let mut power = 1;
            while power < count * 3 {
                power *= 4;
            }
            listed += power;
        }
        let mut chosen = Vec::with_capacity(count);
        if items <= listed {
            let mut left: Vec<usize> = (0..items).collect();
            for taken in 0..count {
                let at = self.below((items - taken) as u64) as usize;
                chosen.push(left[at]);
                left[at] = left[items - taken - 1];
            }
        } else {
            let mut seen = std::collections::HashSet::with_capacity(count);
            while chosen.len() < count {
                let at = self.below(items as u64) as usize;
                if seen.insert(at) {
                    chosen.push(at);
                }
            }
        }
        Some(chosen)
    }
}
