//! Hash tables for what tokenizing looks up millions of times: byte strings, and pairs of ids.

/// Numbers by byte strings, which lie end to end in one buffer.
#[derive(Default)]
pub(super) struct Strings {
    slots: Vec<Slot>,
    bytes: Vec<u8>,
    len: usize,
}

/// Free where `at` is [`FREE`].
#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    at: u32,
    len: u16,
    count: u16,
    value: u32,
}

const FREE: u32 = u32::MAX;
const NO_SLOT: Slot = Slot {
    tag: 0,
    at: FREE,
    len: 0,
    count: 0,
    value: 0,
};

impl Strings {
    /// Room for so many strings.
    pub(super) fn with_capacity(strings: usize) -> Self {
        Strings {
            slots: vec![NO_SLOT; (2 * strings).next_power_of_two()],
            ..Strings::default()
        }
    }

    /// How many strings it holds.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that it takes, roughly.
    pub(super) fn size(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.bytes.len()
    }

    /// The number of a string.
    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<u32> {
        self.look_up(key).map(|(value, _)| *value)
    }

    /// The number of a string, and the small number beside it.
    #[inline]
    pub(super) fn look_up(&self, key: &[u8]) -> Option<(&u32, u16)> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = &self.slots[self.find(key, hash(key))];
        (slot.at != FREE).then_some((&slot.value, slot.count))
    }

    /// Sets the number of a string, and gives the one it had. Does nothing where it, or all strings together,
    /// are too long.
    pub(super) fn set(&mut self, key: &[u8], value: u32) -> Option<u32> {
        self.set_both(key, value, 0)
    }

    /// Sets the number of a string and the small one, else as [`Strings::set`].
    pub(super) fn set_both(&mut self, key: &[u8], value: u32, count: u16) -> Option<u32> {
        if 2 * (self.len + 1) > self.slots.len() {
            self.grow();
        }
        let hash = hash(key);
        let index = self.find(key, hash);
        let slot = &mut self.slots[index];
        if slot.at != FREE {
            return Some(std::mem::replace(&mut slot.value, value));
        }
        let (Ok(at), Ok(len)) = (u32::try_from(self.bytes.len()), u16::try_from(key.len())) else {
            return None;
        };
        if at == FREE {
            return None;
        }
        *slot = Slot {
            tag: hash as u32,
            at,
            len,
            count,
            value,
        };
        self.bytes.extend_from_slice(key);
        self.len += 1;
        None
    }

    /// The slot of a string, or the free one where it belongs.
    #[inline]
    fn find(&self, key: &[u8], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut index = (hash >> 32) as usize & mask;
        loop {
            let slot = self.slots[index];
            let is_it = slot.at == FREE
                || slot.tag == hash as u32
                    && slot.len as usize == key.len()
                    && self.bytes[slot.at as usize..][..key.len()] == *key;
            if is_it {
                return index;
            }
            index = (index + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let slots = vec![NO_SLOT; (2 * self.slots.len()).max(64)];
        let old = std::mem::replace(&mut self.slots, slots);
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.at != FREE) {
            let key = &self.bytes[slot.at as usize..][..slot.len as usize];
            let mut index = (hash(key) >> 32) as usize & mask;
            while self.slots[index].at != FREE {
                index = (index + 1) & mask;
            }
            self.slots[index] = slot;
        }
    }
}

/// Mixes eight bytes at a time. Inputs are a tokenizer's vocabulary and texts that the user chose, so it need not
/// withstand an adversary.
#[inline]
fn hash(key: &[u8]) -> u64 {
    let mut state = key.len() as u64;
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
        state = mix(state ^ word);
    }
    let mut rest = [0; 8];
    let left = words.remainder();
    rest[..left.len()].copy_from_slice(left);
    mix(state ^ u64::from_le_bytes(rest))
}

#[inline]
fn mix(value: u64) -> u64 {
    let product = u128::from(value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product as u64) ^ ((product >> 64) as u64)
}

/// What two neighbouring tokens become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Merge {
    /// Lower ranks come first.
    pub(super) rank: u32,
    /// The token they become.
    pub(super) token: u32,
}

/// Merges by pairs of tokens.
pub(super) struct Pairs {
    slots: Vec<(u64, Merge)>,
}

/// No pair of tokens: ids are far below.
const NO_PAIR: u64 = u64::MAX;

impl Pairs {
    /// Room for so many pairs, and no more.
    pub(super) fn with_capacity(pairs: usize) -> Self {
        let none = (NO_PAIR, Merge { rank: 0, token: 0 });
        Pairs {
            slots: vec![none; (2 * pairs).next_power_of_two().max(2)],
        }
    }

    /// What the pair becomes.
    #[inline]
    pub(super) fn get(&self, left: u32, right: u32) -> Option<Merge> {
        let (key, merge) = self.slots[self.find(pair(left, right))];
        (key != NO_PAIR).then_some(merge)
    }

    /// Sets what the pair becomes. No more pairs than it was made for.
    pub(super) fn set(&mut self, left: u32, right: u32, merge: Merge) {
        let key = pair(left, right);
        let index = self.find(key);
        self.slots[index] = (key, merge);
    }

    #[inline]
    fn find(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut index = mix(key) as usize & mask;
        while self.slots[index].0 != key && self.slots[index].0 != NO_PAIR {
            index = (index + 1) & mask;
        }
        index
    }
}

fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}
