//! The tokenizer as plugins call it: the host's work is charged to the call, and limited like it.

use wasmtime::Trap;

use super::bindings::tokenizer::{Facts, Host};
use super::bindings::types::Message;
use super::chat;
use super::limits::ExceededLimit;
use super::sandbox::Guest;

/// Bytes of text that are processed between two looks at the clock.
const PORTION: u64 = 1 << 20;
/// Longest text to tokenize, in bytes: it is worked on as a whole.
const TEXT: u64 = 8 << 20;
/// Bytes that a list takes beside its items.
const LIST: u64 = 16;

impl Host for Guest {
    fn describe(&mut self) -> wasmtime::Result<Facts> {
        let facts = self.grants.tokenizer.facts();
        Ok(Facts {
            vocabulary_size: facts.vocabulary_size,
            base_size: facts.base_size,
            added_tokens: facts.added_tokens,
            special: facts.special.clone(),
            approximate: facts.approximate,
            chat: chat::is_known(&self.grants.tokenizer),
        })
    }

    fn encode(&mut self, texts: Vec<String>, special: bool) -> wasmtime::Result<Vec<Vec<u32>>> {
        let tokenizer = self.grants.tokenizer.clone();
        self.portions(
            &texts,
            TEXT,
            |text| text.len() as u64,
            |some| tokenizer.encode(some, special),
            |ids| 4 * ids.len() as u64,
        )
    }

    fn count(&mut self, texts: Vec<String>, special: bool) -> wasmtime::Result<Vec<u32>> {
        let tokenizer = self.grants.tokenizer.clone();
        self.portions(
            &texts,
            TEXT,
            |text| text.len() as u64,
            |some| tokenizer.count(some, special),
            |_| 4,
        )
    }

    fn count_chat(
        &mut self,
        conversations: Vec<Vec<Message>>,
        tools: Option<String>,
    ) -> wasmtime::Result<Vec<Option<u32>>> {
        let tokenizer = self.grants.tokenizer.clone();
        let tools = tools.and_then(|tools| serde_json::from_str(&tools).ok());
        self.portions(
            &conversations,
            TEXT,
            |messages| chat::bytes(messages),
            |some| {
                let counted = some.iter();
                Ok(counted
                    .map(|messages| chat::count(&tokenizer, messages, tools.as_ref()))
                    .collect())
            },
            |_| 8,
        )
    }

    fn decode(&mut self, tokens: Vec<Vec<u32>>) -> wasmtime::Result<Vec<String>> {
        let tokenizer = self.grants.tokenizer.clone();
        self.portions(
            &tokens,
            self.grants.limits.memory_bytes,
            |ids| tokenizer.decoded_bytes(ids),
            |some| tokenizer.decode(some),
            |text| text.len() as u64,
        )
    }
}

impl Guest {
    /// Works on a few items at a time, within time and memory; `size` is an item's text length.
    fn portions<I, T>(
        &self,
        items: &[I],
        longest: u64,
        size: impl Fn(&I) -> u64,
        work: impl Fn(&[I]) -> Result<Vec<T>, String>,
        takes: impl Fn(&T) -> u64,
    ) -> wasmtime::Result<Vec<T>> {
        let most = self.grants.limits.memory_bytes;
        let mut results = Vec::new();
        let mut taken = 0_u64;
        let mut rest = items;
        while !rest.is_empty() {
            if self.is_late() {
                return Err(Trap::Interrupt.into());
            }
            let mut portion = 0;
            let mut bytes = 0_u64;
            for item in rest {
                let more = size(item);
                if more > longest {
                    return Err(ExceededLimit::Text(longest).into());
                }
                if portion > 0 && bytes + more > PORTION {
                    break;
                }
                // Empty texts cost something too.
                bytes += more.max(LIST);
                portion += 1;
            }
            let (some, later) = rest.split_at(portion);
            rest = later;
            for result in work(some).map_err(wasmtime::Error::msg)? {
                taken += LIST + takes(&result);
                results.push(result);
            }
            if taken > most {
                return Err(ExceededLimit::Memory(most).into());
            }
        }
        if self.is_late() {
            return Err(Trap::Interrupt.into());
        }
        Ok(results)
    }
}
