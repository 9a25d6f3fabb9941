//! Counts that a summary leaves out where they are zero.

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
