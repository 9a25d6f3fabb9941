//! PCG64 (XSL-RR 128/64, <https://www.pcg-random.org>) and `SeedSequence`, with which NumPy seeds
//! the generator (`numpy.random.SeedSequence` in NumPy's reference).

/// NumPy's default bit generator.
#[derive(Clone, Debug)]
pub(super) struct Pcg64 {
    state: u128,
    increment: u128,
    /// The high half of a word whose low half was drawn; 64-bit draws leave it alone.
    half: Option<u32>,
}

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

impl Pcg64 {
    pub(super) fn new(seed: u64) -> Self {
        let [state_high, state_low, stream_high, stream_low] = seed_sequence(seed);
        let start = u128::from(state_high) << 64 | u128::from(state_low);
        let stream = u128::from(stream_high) << 64 | u128::from(stream_low);
        let increment = stream << 1 | 1;
        let mut generator = Self { state: increment.wrapping_add(start), increment, half: None };
        generator.step();
        generator
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    pub(super) fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// The next 32 bits: the low half of a fresh word, then its high half.
    pub(super) fn next_u32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let word = self.next_u64();
        self.half = Some((word >> 32) as u32);
        word as u32
    }
}

const POOL: usize = 4;

/// A hash constant that changes with every use.
struct Hash {
    constant: u32,
    multiplier: u32,
}

impl Hash {
    fn apply(&mut self, value: u32) -> u32 {
        let value = value ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.multiplier);
        let value = value.wrapping_mul(self.constant);
        value ^ value >> 16
    }
}

fn mix(x: u32, y: u32) -> u32 {
    let mixed = x.wrapping_mul(0xca01_f9dd).wrapping_sub(y.wrapping_mul(0x4973_f715));
    mixed ^ mixed >> 16
}

/// As `numpy.random.SeedSequence(seed).generate_state(4, numpy.uint64)`.
fn seed_sequence(seed: u64) -> [u64; 4] {
    // An integer seed fills the first words of a pool of four: absent words hash as zeros.
    let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0];
    let mut hash = Hash { constant: 0x43b0_d7e5, multiplier: 0x931e_8875 };
    for word in &mut pool {
        *word = hash.apply(*word);
    }
    for from in 0..POOL {
        for to in (0..POOL).filter(|to| *to != from) {
            pool[to] = mix(pool[to], hash.apply(pool[from]));
        }
    }
    let mut hash = Hash { constant: 0x8b51_f9dd, multiplier: 0x58f3_8ded };
    let mut halves = pool.iter().cycle().map(|word| u64::from(hash.apply(*word)));
    std::array::from_fn(|_| {
        let low = halves.next().unwrap_or_default();
        let high = halves.next().unwrap_or_default();
        high << 32 | low
    })
}
