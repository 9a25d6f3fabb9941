//! Limits on a plugin: the limits of a run, and the tally of an instance's memory and tables.

use model::plugin::Limits;

use wasmtime::ResourceLimiter;

/// Core instances, memories and tables of a plugin's instance, which may be many modules.
const INSTANCES: usize = 1_000;
const MEMORIES: usize = 16;
const TABLES: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExceededLimit {
    #[error("it asked for more memory than the {} allowed (raise `memory` under [sandbox] if it really needs more)", mebibytes(*.0))]
    Memory(u64),
    #[error(
        "it asked for tables of more than the {0} elements allowed (raise `table` under [sandbox] if it really needs more)"
    )]
    Tables(u64),
    /// The limit on a text for the tokenizer, in bytes.
    #[error("it asked for the tokens of a text, or the text of tokens, of more than the {} allowed at once (ask for it in pieces)", mebibytes(*.0))]
    Text(u64),
}

/// An instance's use of one resource, and its limit.
struct Share {
    taken: u64,
    limit: u64,
    exceeded: fn(u64) -> ExceededLimit,
}

impl Share {
    /// Accounts for growth; `false` if the guest's own maximum forbids it.
    fn grow(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        let taken = self.taken.saturating_add(more);
        if taken > self.limit {
            return Err((self.exceeded)(self.limit).into());
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.taken = taken;
        Ok(true)
    }
}

/// An instance's use of resources, within its limits.
pub(super) struct Tally {
    memory: Share,
    tables: Share,
}

impl Tally {
    pub fn new(limits: &Limits) -> Self {
        let none = |limit, exceeded| Share { taken: 0, limit, exceeded };
        Tally {
            memory: none(limits.memory_bytes, ExceededLimit::Memory),
            tables: none(limits.table_elements, ExceededLimit::Tables),
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        self.memory.taken
    }
}

/// Exceeding a limit aborts the call with its name: a guest that is denied memory often continues.
impl ResourceLimiter for Tally {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.memory.grow(current, desired, maximum)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.tables.grow(current, desired, maximum)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
