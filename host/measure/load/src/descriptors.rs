//! The process's file descriptors: their limit, and the kernel's table of them.
//!
//! Linux doubles the table of a process when a descriptor does not fit. If the process has several
//! threads, the requesting thread then waits until every core has passed through the scheduler
//! (`expand_fdtable` in `fs/file.c`). That took 8 to 16 ms, in which a reader thread neither sends
//! nor reads, so the table is made large before a run begins.

use std::fs::File;
use std::io;

use rustix::io::fcntl_dupfd_cloexec;

/// The most descriptors that the table is made for ahead: half a megabyte of the kernel's memory.
const MOST: u64 = 1 << 16;

/// Makes room for all permitted descriptors at once, while no other thread has to be waited for.
pub fn make_room_ahead() {
    // Without the room there are the pauses, and nothing else.
    if let Ok(limit) = rlimit::increase_nofile_limit(MOST) {
        let _ = make_room(limit.min(MOST));
    }
}

/// Raises the limit of this process to `needed` file descriptors, or to the hard limit. A thread
/// makes room for them, and nobody waits for it. Returns the limit in force.
pub fn allow(needed: u64) -> io::Result<u64> {
    let limit = rlimit::increase_nofile_limit(needed)?;
    // Without the room there are the pauses, and nothing else.
    let count = needed.min(limit).min(MOST);
    let _ = std::thread::Builder::new().spawn(move || make_room(count));
    Ok(limit)
}

/// Has the kernel make its table large enough for `count` descriptors. It never makes it smaller.
fn make_room(count: u64) -> io::Result<()> {
    let last = i32::try_from(count.saturating_sub(1)).unwrap_or(i32::MAX);
    fcntl_dupfd_cloexec(File::open("/")?, last)?;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn descriptor_table_grows_before_the_run() {
        let limit = allow(0).unwrap();
        make_room(limit.min(5_000)).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        let size: u64 = size.unwrap().trim().parse().unwrap();
        assert!(size >= limit.min(5_000), "{size} of {limit}");
    }
}
