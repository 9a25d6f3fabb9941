//! Messages between processes of a fleet, and Slurm's lists of hosts.

use fleet::place::hostlist;
use fleet::wire::{Bound, Decoder};

use crate::bytes::{Cuts, first};

/// The most hosts that a list may stand for.
const MOST_HOSTS: usize = 1 << 16;

/// Bytes of a connection are frames or an error with any cuts, and take no more memory than a frame
/// may have. A frame is written as it was read. A list of hosts is refused with a message, or has a
/// bound.
pub fn fleet(data: &[u8]) {
    let (choice, data) = first(data);
    let bound = match choice % 4 {
        0 => Bound::Hello,
        1 => Bound::Agent,
        2 => Bound::Coordinator,
        _ => return list(data),
    };
    let (seed, data) = first(data);
    let whole = frames(bound, [data].into_iter());
    assert_eq!(whole, frames(bound, Cuts::new(seed, data)), "cuts make no difference");
}

/// Every frame, written again, and whether the bytes ended in an error.
fn frames<'d>(bound: Bound, pieces: impl Iterator<Item = &'d [u8]>) -> (Vec<Vec<u8>>, bool) {
    let mut decoder = Decoder::new(bound);
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => {
                    // The written frame may be longer than the read one.
                    let Ok(written) = frame.encode(bound) else { continue };
                    let mut again = Decoder::new(bound);
                    again.feed(&written);
                    let read = again.next().expect("what we write can be read");
                    assert_eq!(read.as_ref(), Some(&frame));
                    seen.push(written);
                }
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return (seen, true);
                }
            }
        }
    }
    (seen, false)
}

fn list(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match hostlist::expand(text) {
        Ok(hosts) => {
            assert!(hosts.len() <= MOST_HOSTS && hosts.iter().all(|host| !host.is_empty()))
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
