//! One request of an exchange that has several.

use super::Connection;
use crate::units::Nanos;

/// One request of an exchange that has several, with the transport's view of its reply. The
/// exchange has the answer's events.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Step {
    /// The host that it went to, with its port unless that is the scheme's own; absent if it went
    /// to the exchange's target. Paths are not kept, because a server may put an access key there.
    pub host: Option<String>,
    /// Opening of its connection; absent if it had none.
    pub connection: Option<Connection>,
    /// Instant at which its first byte was handed to the socket; absent if it never was.
    pub sent: Option<Nanos>,
    /// Instant at which the first byte of its reply was read.
    pub first_byte: Option<Nanos>,
    /// Instant at which the headers of its reply were complete.
    pub headers: Option<Nanos>,
    /// Instant at which its reply ended, well or badly; absent if there was none.
    pub ended: Option<Nanos>,
    /// The HTTP status of its reply.
    pub status: Option<u16>,
    /// Bytes of the reply's body, without framing; for an error, the kept bytes.
    pub bytes: u64,
}

impl Step {
    /// Changes every instant.
    pub(super) fn shift(&mut self, moved: impl Fn(Nanos) -> Nanos) {
        let instants = [&mut self.sent, &mut self.first_byte, &mut self.headers, &mut self.ended];
        for at in instants {
            *at = at.map(&moved);
        }
        self.connection.iter_mut().for_each(|own| own.shift(&moved));
    }
}
