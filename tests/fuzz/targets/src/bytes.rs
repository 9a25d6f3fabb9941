//! Choices made from an input's first bytes.

/// Splits off the first byte; 0 where there is none.
pub fn first(data: &[u8]) -> (u8, &[u8]) {
    match data {
        [first, rest @ ..] => (*first, rest),
        [] => (0, data),
    }
}

/// Cuts of bytes: pieces whose lengths follow from a seed. Seed 0 gives pieces of one byte.
pub struct Cuts<'d> {
    rest: &'d [u8],
    state: u32,
}

impl<'d> Cuts<'d> {
    pub fn new(seed: u8, bytes: &'d [u8]) -> Self {
        Cuts { rest: bytes, state: u32::from(seed).wrapping_mul(0x9e37_79b9) }
    }

    /// The next number that follows from the seed, below a bound. 0 where the seed is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        // Xorshift, whose zero stays zero.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        self.state % bound
    }
}

impl<'d> Iterator for Cuts<'d> {
    type Item = &'d [u8];

    fn next(&mut self) -> Option<&'d [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        // Mostly a few bytes, now and then many: small cuts and whole messages are met.
        let length = match self.below(4) {
            3 => 1 + self.below(512) as usize,
            _ => 1 + self.below(12) as usize,
        };
        let (piece, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        Some(piece)
    }
}
