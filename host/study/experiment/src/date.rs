//! The date.

/// The present date, in the clock of this machine.
pub(crate) fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
