//! The blocks of a row's prompt, which follow from its hash ids.

use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::content::{self, Kind, Run, stream};

/// The number of hash ids of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// One for every block; the last block may be partial.
    Ceil,
    /// One for every whole block.
    Floor,
    Either,
}

/// The way in which hash ids stand for blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) rule: Rule,
    pub(crate) size: u32,
    /// The scope in which ids mean the same block.
    pub(crate) scope: u64,
    /// The session, if its rows are numbered within it.
    pub(crate) session: u64,
    /// True if a wrong number of ids is repaired.
    pub(crate) lenient: bool,
}

/// Runs, and the repair that was made.
pub(crate) type Blocks = (Vec<Run>, Option<&'static str>);

impl Layout {
    /// The blocks of a prompt of this many tokens; tokens without an id are a stream of the row.
    pub(crate) fn blocks(&self, length: u32, ids: &[HashId], own: u64) -> Result<Blocks, String> {
        let (whole, all) = (length / self.size, length.div_ceil(self.size));
        let count = ids.len() as u64;
        let fits = match self.rule {
            Rule::Ceil => count == u64::from(all),
            Rule::Floor => count == u64::from(whole),
            Rule::Either => count == u64::from(all) || count == u64::from(whole),
        };
        if !fits && !self.lenient {
            let expected = match self.rule {
                Rule::Floor => format!("{whole}, one for every whole block"),
                Rule::Ceil => format!("{all}, the last block being partial"),
                Rule::Either if whole == all => whole.to_string(),
                Rule::Either => format!("{whole} or {all}"),
            };
            // Weka's sessions state the size themselves.
            let advice = match self.rule {
                Rule::Floor => "correct the session's `block_size`, or set",
                Rule::Ceil | Rule::Either => "set `block-size` to the trace's, or",
            };
            return Err(format!(
                "{count} hash ids for a prompt of {length} tokens in blocks of {}; expected {expected}: {advice} \
                 `on-wrong-blocks = \"repair\"`",
                self.size
            ));
        }
        let mut runs = Vec::with_capacity(ids.len() + 1);
        let mut left = length;
        for id in ids {
            let taken = left.min(self.size);
            // Weka's ids stand for whole blocks only.
            if taken == 0 || (self.rule == Rule::Floor && taken < self.size) {
                break;
            }
            runs.push(Run {
                stream: stream(Kind::Block, &[self.scope, id.0, self.size.into()]),
                from: 0,
                length: taken,
            });
            left -= taken;
        }
        if left > 0 {
            runs.push(Run {
                stream: stream(Kind::Rest, &[self.session, own]),
                from: 0,
                length: left,
            });
        }
        let wrong = (!fits).then_some("a number of hash ids that does not fit the prompt's length");
        Ok((runs, wrong))
    }
}

/// A block's name in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HashId(pub(crate) u64);

impl<'de> Deserialize<'de> for HashId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Id;
        impl Visitor<'_> for Id {
            type Value = HashId;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a hash id: an integer or a text")
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<HashId, E> {
                Ok(HashId(id))
            }

            fn visit_i64<E: de::Error>(self, id: i64) -> Result<HashId, E> {
                Ok(HashId(id as u64))
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<HashId, E> {
                Ok(HashId(content::hash(id)))
            }
        }
        deserializer.deserialize_any(Id)
    }
}
