//! One request of an exchange that has several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Connection;
use crate::units::Nanos;

/// One request of an exchange that has several, and what the transport saw of its reply. The
/// answer's events are those of the exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Step {
    /// The host that it went to, with its port unless that is the scheme's own; absent if it went
    /// to the exchange's target. Paths are not kept, because what servers put there may give
    /// access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Opening of its connection; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// Instant at which its first byte was handed to the socket; absent if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Nanos>,
    /// Instant at which the first byte of its reply was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Nanos>,
    /// Instant at which the headers of its reply were complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Nanos>,
    /// Instant at which its reply ended, well or badly; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Nanos>,
    /// The HTTP status of its reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes of the reply's body, without what frames it on the wire; of an error, those that were
    /// kept.
    pub bytes: u64,
}

impl Step {
    /// Changes every instant.
    pub(super) fn shift(&mut self, moved: impl Fn(Nanos) -> Nanos) {
        let instants = [&mut self.sent, &mut self.first_byte, &mut self.headers, &mut self.ended];
        for at in instants {
            *at = at.map(&moved);
        }
        if let Some(connection) = &mut self.connection {
            connection.shift(&moved);
        }
    }
}
