//! Hash tables that tokenizing reads millions of times: of byte strings, and of pairs of ids.

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
const NO_SLOT: Slot = Slot { tag: 0, at: FREE, len: 0, count: 0, value: 0 };

/// A string that is looked up, perhaps a little later.
#[derive(Clone, Copy, Default)]
pub(super) struct Key<'k> {
    pub(super) bytes: &'k [u8],
    hash: u64,
}

impl<'k> Key<'k> {
    #[inline]
    pub(super) fn new(bytes: &'k [u8]) -> Self {
        Key { bytes, hash: hash(bytes) }
    }

    fn place(self, mask: usize) -> usize {
        (self.hash >> 32) as usize & mask
    }
}

impl Strings {
    pub(super) fn with_capacity(strings: usize) -> Self {
        Strings { slots: vec![NO_SLOT; (2 * strings).next_power_of_two()], ..Strings::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that it takes, roughly.
    pub(super) fn size(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.bytes.len()
    }

    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<u32> {
        self.look_up(Key::new(key)).map(|(value, _)| *value)
    }

    /// The number of a string, and the small number beside it.
    #[inline]
    pub(super) fn look_up(&self, key: Key<'_>) -> Option<(&u32, u16)> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = &self.slots[self.find(key)];
        (slot.at != FREE).then_some((&slot.value, slot.count))
    }

    /// Has the processor fetch the place where a string is likely to be.
    #[inline]
    pub(super) fn fetch(&self, key: Key<'_>) {
        let mask = self.slots.len().wrapping_sub(1);
        if let Some(slot) = self.slots.get(key.place(mask)) {
            prefetch::line(slot);
        }
    }

    /// Has the processor fetch the bytes of the likely string, once its place is fetched.
    #[inline]
    pub(super) fn fetch_bytes(&self, key: Key<'_>) {
        let mask = self.slots.len().wrapping_sub(1);
        if let Some(slot) = self.slots.get(key.place(mask))
            && slot.at != FREE
        {
            prefetch::line(self.bytes.as_ptr().wrapping_add(slot.at as usize));
        }
    }

    /// The strings and their numbers, in no order. Entered in this order, they fill a table of the
    /// same size from end to end.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let taken = self.slots.iter().filter(|slot| slot.at != FREE);
        taken.map(|slot| {
            let key = &self.bytes[slot.at as usize..][..slot.len as usize];
            (key, slot.value)
        })
    }

    /// Sets the number of a string, and returns its old number. Does nothing if the string, or all
    /// strings together, are too long.
    pub(super) fn set(&mut self, key: &[u8], value: u32) -> Option<u32> {
        self.set_both(key, value, 0)
    }

    /// Sets the number of a string and the small one, else as [`Strings::set`].
    pub(super) fn set_both(&mut self, key: &[u8], value: u32, count: u16) -> Option<u32> {
        if 2 * (self.len + 1) > self.slots.len() {
            self.grow();
        }
        let key = Key::new(key);
        let index = self.find(key);
        let slot = &mut self.slots[index];
        if slot.at != FREE {
            return Some(std::mem::replace(&mut slot.value, value));
        }
        let (Ok(at), Ok(len)) = (u32::try_from(self.bytes.len()), u16::try_from(key.bytes.len()))
        else {
            return None;
        };
        if at == FREE {
            return None;
        }
        *slot = Slot { tag: key.hash as u32, at, len, count, value };
        self.bytes.extend_from_slice(key.bytes);
        self.len += 1;
        None
    }

    /// The slot of a string, or the free one where it belongs.
    #[inline]
    fn find(&self, key: Key<'_>) -> usize {
        let mask = self.slots.len() - 1;
        let mut index = key.place(mask);
        loop {
            let slot = self.slots[index];
            let is_it = slot.at == FREE
                || slot.tag == key.hash as u32
                    && slot.len as usize == key.bytes.len()
                    && self.bytes[slot.at as usize..][..key.bytes.len()] == *key.bytes;
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
            let mut index = Key::new(key).place(mask);
            while self.slots[index].at != FREE {
                index = (index + 1) & mask;
            }
            self.slots[index] = slot;
        }
    }
}

/// Mixes eight bytes at a time. Inputs are a tokenizer's vocabulary and texts that the user chose,
/// so it need not withstand an adversary.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Merge {
    /// Lower ranks come first.
    pub(super) rank: u32,
    pub(super) token: u32,
}

/// A merge and what merges, in the order in which they were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) left: u32,
    pub(super) right: u32,
    pub(super) merge: Merge,
}

/// Merges by pairs of tokens.
///
/// The slots are small and apart from the entries, so that making the table touches little memory
/// out of order. A tokenizer has a few hundred thousand merges, and a user waits for them.
pub(super) struct Pairs {
    slots: Vec<PairSlot>,
    entries: Vec<Entry>,
}

/// Free where `at` is [`FREE`].
#[derive(Clone, Copy)]
struct PairSlot {
    tag: u32,
    at: u32,
}

const NO_PAIR: PairSlot = PairSlot { tag: 0, at: FREE };

impl Pairs {
    pub(super) fn with_capacity(pairs: usize) -> Self {
        // At most three quarters of the slots are taken.
        let slots = (pairs + pairs / 3 + 1).next_power_of_two();
        Pairs { slots: vec![NO_PAIR; slots], entries: Vec::with_capacity(pairs) }
    }

    #[inline]
    pub(super) fn get(&self, left: u32, right: u32) -> Option<Merge> {
        let slot = self.slots[self.find(left, right, hash_pair(left, right))];
        (slot.at != FREE).then(|| self.entries[slot.at as usize].merge)
    }

    /// Sets the merge of a pair. The table takes no more pairs than it was made for.
    pub(super) fn set(&mut self, left: u32, right: u32, merge: Merge) {
        let hash = hash_pair(left, right);
        let index = self.find(left, right, hash);
        self.slots[index] = PairSlot { tag: hash as u32, at: self.entries.len() as u32 };
        self.entries.push(Entry { left, right, merge });
    }

    /// All merges in the order of their setting; of a pair that was set twice, the last counts.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    #[inline]
    fn find(&self, left: u32, right: u32, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut index = (hash >> 32) as usize & mask;
        loop {
            let slot = self.slots[index];
            let is_it = slot.at == FREE
                || slot.tag == hash as u32 && {
                    let entry = &self.entries[slot.at as usize];
                    (entry.left, entry.right) == (left, right)
                };
            if is_it {
                return index;
            }
            index = (index + 1) & mask;
        }
    }
}

#[inline]
fn hash_pair(left: u32, right: u32) -> u64 {
    mix(u64::from(left) << 32 | u64::from(right))
}
