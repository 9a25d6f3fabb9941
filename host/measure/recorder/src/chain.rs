//! Names of blocks without their text: a keyed chain of hashes.
//!
//! A block's id is the beginning of BLAKE2b over the previous block's hash and the block's content,
//! with a random key of the process, which is overwritten at its end. So equal prefixes have equal
//! ids, and nobody can test a text against an id.

use ring::rand::{SecureRandom, SystemRandom};

/// Tokens of a block.
pub(crate) const BLOCK: usize = 64;
/// Bits of an id, which every reader of JSON keeps.
const ID_BITS: u32 = 53;

pub(crate) struct Key([u8; 64]);

pub(crate) type Digest = [u8; 16];

#[derive(Debug, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandom;

impl Key {
    pub(crate) fn random() -> Result<Self, NoRandom> {
        let mut key = [0; 64];
        SystemRandom::new().fill(&mut key).map_err(|_| NoRandom)?;
        Ok(Key(key))
    }

    /// The digest of some bytes after others. `purpose` keeps digests of different things apart.
    pub(crate) fn digest(&self, purpose: u8, before: &Digest, bytes: &[u8]) -> Digest {
        let mut state = blake2b_simd::Params::new().hash_length(16).key(&self.0).to_state();
        state.update(&[purpose]).update(before).update(bytes);
        let mut digest = Digest::default();
        digest.copy_from_slice(state.finalize().as_bytes());
        digest
    }

    /// The ids of a prompt's blocks; the last block may be partial.
    pub(crate) fn blocks(&self, units: &Units) -> Vec<u64> {
        let mut before = Digest::default();
        let chained = units.bytes.chunks(units.of_token * BLOCK).map(|block| {
            before = self.digest(b'b', &before, block);
            id(&before)
        });
        chained.collect()
    }

    /// An id that no other block has.
    pub(crate) fn unique(&self, row: u64, block: usize) -> u64 {
        let place = [row, block as u64].map(u64::to_le_bytes).concat();
        id(&self.digest(b'u', &Digest::default(), &place))
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0 = std::hint::black_box([0; 64]);
    }
}

fn id(digest: &Digest) -> u64 {
    let first = digest[..8].iter().fold(0, |id, byte| id << 8 | u64::from(*byte));
    first >> (64 - ID_BITS)
}

/// A prompt as blocks are cut from it.
pub(crate) struct Units {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of a token: four of an id, or an estimate for text.
    pub(crate) of_token: usize,
}

impl Units {
    pub(crate) fn of_tokens(ids: &[u32]) -> Self {
        Units { bytes: ids.iter().flat_map(|id| id.to_le_bytes()).collect(), of_token: 4 }
    }

    pub(crate) fn tokens(&self) -> u32 {
        u32::try_from(self.bytes.len().div_ceil(self.of_token)).unwrap_or(u32::MAX)
    }
}
