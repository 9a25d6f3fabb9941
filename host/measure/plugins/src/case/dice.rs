//! Seeded random choices, the same on every machine.

use model::random::SplitMix64;

pub struct Dice(SplitMix64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(SplitMix64::new(seed))
    }

    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        match end {
            0 => 0,
            end => (self.draw() % end as u64) as usize,
        }
    }

    pub fn pick<'a, T>(&mut self, these: &'a [T]) -> Option<&'a T> {
        these.get(self.below(these.len()))
    }
}
