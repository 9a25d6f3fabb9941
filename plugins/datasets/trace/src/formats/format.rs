//! The way in which the rows of a file are read. Leaves its choice, and the rows, to the modules
//! above.

use super::blocks::{Blocks, HashId, Layout, Rule};
use super::row::nanos;
use crate::config::{Labels, Name};

/// The way in which a file is read.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) name: Name,
    /// Tokens of a block.
    pub(super) block: u32,
    /// Seconds of one unit of time.
    pub(super) unit: f64,
    pub(super) lenient: bool,
    pub(super) labels: Labels,
    /// The columns of a CSV file, in lower case.
    pub(super) columns: Vec<String>,
    /// True if the first row has a `session_id`.
    pub(super) named: bool,
}

impl Format {
    /// True if the first line names columns.
    pub(crate) fn has_header(&self) -> bool {
        !self.columns.is_empty()
    }

    /// True if sessions are the usual way to replay it.
    pub(crate) fn in_sessions(&self) -> bool {
        match self.name {
            Name::Weka | Name::Tracelab => true,
            Name::Mooncake => self.named,
            _ => false,
        }
    }

    /// True if a session's rows are in the order of their times, rather than in the file's order.
    pub(crate) fn by_time(&self) -> bool {
        self.name != Name::Mooncake
    }

    /// Units of the trace's clock in nanoseconds.
    pub(super) fn nanos(&self, units: f64) -> Result<i64, String> {
        nanos(units * self.unit)
            .ok_or_else(|| format!("the time {units:?} is too large: check `time-unit`"))
    }

    /// The blocks of a prompt; tokens without an id are content of its own.
    pub(super) fn blocks(
        &self,
        rule: Rule,
        length: u32,
        ids: &[HashId],
        row: u64,
    ) -> Result<Blocks, String> {
        let layout = Layout { rule, size: self.block, scope: 0, session: 0, lenient: self.lenient };
        layout.blocks(length, ids, row)
    }
}
