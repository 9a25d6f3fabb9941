//! Stands before the C library's `clock_gettime`, so that a test can set the clock of a running
//! process. The monotonic clock is ahead by the current number of nanoseconds in the file that
//! `CLOCK_AHEAD` names.

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanos: i64,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn mmap(at: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, from: i64) -> *mut c_void;
}

type ClockGettime = unsafe extern "C" fn(c_int, *mut Timespec) -> c_int;

const MONOTONIC: c_int = 1;
const READ: c_int = 1;
const SHARED: c_int = 1;

fn real() -> ClockGettime {
    static REAL: OnceLock<ClockGettime> = OnceLock::new();
    *REAL.get_or_init(|| {
        let next = -1_isize as *mut c_void;
        // SAFETY: the name ends with a zero, and the function that it names has this type.
        unsafe { std::mem::transmute(dlsym(next, c"clock_gettime".as_ptr())) }
    })
}

/// The file, which stays mapped; nothing without the variable.
fn ahead() -> Option<&'static AtomicI64> {
    static AHEAD: OnceLock<Option<&'static AtomicI64>> = OnceLock::new();
    *AHEAD.get_or_init(|| {
        // SAFETY: the file keeps its eight bytes; both sides read and write them at once.
        unsafe {
            let path = getenv(c"CLOCK_AHEAD".as_ptr());
            if path.is_null() {
                return None;
            }
            let file = open(path, 0);
            let mapped = mmap(std::ptr::null_mut(), 8, READ, SHARED, file, 0);
            (file >= 0 && mapped as isize != -1).then(|| &*mapped.cast())
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    // SAFETY: as the caller's.
    let done = unsafe { real()(clock, time) };
    if let (0, MONOTONIC, Some(ahead)) = (done, clock, ahead()) {
        // SAFETY: it was just written.
        let time = unsafe { &mut *time };
        let nanos = time.nanos + ahead.load(Ordering::Relaxed);
        time.seconds += nanos.div_euclid(1_000_000_000);
        time.nanos = nanos.rem_euclid(1_000_000_000);
    }
    done
}
