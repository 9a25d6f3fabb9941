//! Asks the processor to fetch memory that is read soon.
//!
//! This crate owns that instruction, and all unsafe code for it. The caller chooses the data and
//! the time of the fetch.
//!
//! Unlike a read, the instruction does not wait, so that the fetches of many places overlap with
//! one another and with other work. A loop that reads thousands of places outside of the cache
//! spends nearly all of its time waiting for them. On processors other than x86-64 nothing happens:
//! Rust has no stable function for them.
#![deny(unsafe_code)]

/// The size of a cache line, in bytes.
const LINE: usize = 64;

/// Fetches the cache line in which this address is. Any address will do.
#[inline(always)]
pub fn line<T>(of: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the function needs only SSE, which every processor of this architecture has. The
        // instruction changes no memory and no register, and does nothing where no memory is
        // mapped.
        #[expect(unsafe_code, reason = "the function is not safe to call in Rust 1.95")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(of.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = of;
}

/// Fetches the cache lines of a value, but not the data it points to.
#[inline(always)]
pub fn lines<T>(of: *const T) {
    for offset in (0..size_of::<T>()).step_by(LINE) {
        line(of.cast::<u8>().wrapping_add(offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_will_do_and_nothing_changes() {
        let values = [7_u64; 100];
        lines(&values);
        line(values.as_ptr().wrapping_add(values.len()));
        line(std::ptr::null::<u8>());
        line(std::ptr::without_provenance::<u64>(usize::MAX));
        assert_eq!(values, [7; 100]);
    }
}
