//! The faults of a mock engine's replies, and the choice of affected requests.
//!
//! `table` handles the notation. The effect of a fault on a reply is in
//! `reply` (its events), `stream` (its writes) and `serve` (its HTTP response).

mod table;

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use serde::Deserialize;

use model::duration::Span;
use model::random::mix;

/// One fault, and the requests that it affects.
///
/// In TOML it is a table: `kind`, the keys of that kind, and at most one of `every = 10`,
/// `requests = [0, 7]` and `share = 0.1`; without any of these it affects every request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "table::FaultTable")]
pub struct Fault {
    pub kind: FaultKind,
    /// The requests that it affects.
    pub on: Selection,
}

/// The affected requests. They are numbered from 0 in order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// Every request.
    All,
    /// Every nth: with 10, numbers 9, 19, 29.
    Every(NonZeroU64),
    /// These numbers.
    Requests(Vec<u64>),
    /// This share of all, 0 to 1, chosen by a hash of the number: the same requests each time.
    Share(f64),
}

#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// `http-error`: an HTTP error status (`status`, 500 if not given) and a JSON error.
    HttpError {
        status: u16,
        /// Time until a retry (`retry-after`), in whole seconds.
        retry_after: Option<Duration>,
    },
    /// `html`: a web page instead of an API (`status`, 200 if not given), as behind a wrong port.
    /// Without a choice of requests, on every route.
    Html { status: u16 },
    /// `hang-up`: the connection is closed without a reply; in HTTP/2, only the request's stream.
    HangUp {
        /// With a TCP reset (`reset = true`).
        reset: bool,
    },
    /// `goodbye`: the connection takes no request after this one, and announces it:
    /// `connection: close`, or GOAWAY in HTTP/2.
    Goodbye,
    /// `slow-headers`: the reply's headers come later by `for`; tokens that are due by then follow
    /// at once.
    SlowHeaders { by: Duration },
    /// `in-band-error`, `cut`, `no-done`, `close`: the reply breaks off when the next token is due.
    Break { after_tokens: u32, how: Breakdown },
    /// `stall`: nothing comes for a while (`for`) or forever (without `for`); everything after it
    /// is as much later.
    Stall {
        after_tokens: u32,
        /// Duration; absent means forever.
        lasting: Option<Duration>,
    },
    /// `stop-early`: the answer ends properly, but is shorter than requested, with `ignore_eos` or
    /// without.
    StopEarly { after_tokens: u32 },
    /// `split`: every write holds `bytes` bytes of the body, so that events and characters are cut
    /// anywhere.
    Split { bytes: NonZeroUsize },
    /// `merge`: `events` events are held back and written together when the last of them is due.
    Merge { events: NonZeroU32 },
    /// `crlf`: lines end in CR LF.
    Crlf,
    /// `ping`: a comment line comes at once, and one before every event.
    Ping,
}

/// The way a reply breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakdown {
    /// An error inside a reply that began as a success, then the end marker.
    InBandError,
    Cut {
        /// With a TCP reset (`reset = true`) instead of an orderly close in the middle of the
        /// reply.
        reset: bool,
    },
    /// The HTTP reply ends properly, but without its end marker and everything else that is due by
    /// then. A WebSocket is closed.
    NoDone,
    /// As `no-done`, and a WebSocket is closed with this code (`code`, 1011 if not given).
    Close { code: u16 },
}

impl FaultKind {
    pub(super) fn lasting(&self) -> Option<Span> {
        match self {
            FaultKind::SlowHeaders { by } => Some(Span(*by)),
            FaultKind::Stall { lasting, .. } => lasting.map(Span),
            FaultKind::HttpError { retry_after, .. } => retry_after.map(Span),
            _ => None,
        }
    }
}

impl Selection {
    /// True if this affects the request with this number; `salt` makes faults with equal shares
    /// differ.
    fn selects(&self, number: u64, salt: u64) -> bool {
        match self {
            Selection::All => true,
            Selection::Every(n) => number.wrapping_add(1).is_multiple_of(n.get()),
            Selection::Requests(numbers) => numbers.contains(&number),
            Selection::Share(share) => {
                let hash = mix(number ^ mix(salt));
                ((hash >> 11) as f64 / (1_u64 << 53) as f64) < *share
            }
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mishaps {
    pub http_error: Option<(u16, Option<Duration>)>,
    pub html: Option<u16>,
    /// True if with a TCP reset.
    pub hang_up: Option<bool>,
    pub goodbye: bool,
    pub slow_headers: Duration,
    pub breakdown: Option<(u32, Breakdown)>,
    pub stall: Option<(u32, Option<Duration>)>,
    pub stop_early: Option<u32>,
    pub split: Option<NonZeroUsize>,
    pub merge: Option<NonZeroU32>,
    pub crlf: bool,
    pub ping: bool,
}

impl Mishaps {
    /// The effects of the script's faults on the request with this number; of two of a kind, the
    /// first counts.
    pub fn new(faults: &[Fault], number: u64) -> Self {
        fn first<T>(place: &mut Option<T>, value: T) {
            place.get_or_insert(value);
        }
        let mut mishaps = Mishaps::default();
        let chosen = (0..).zip(faults).filter(|(salt, fault)| fault.on.selects(number, *salt));
        for (_, fault) in chosen {
            match fault.kind {
                FaultKind::HttpError { status, retry_after } => {
                    first(&mut mishaps.http_error, (status, retry_after));
                }
                FaultKind::Html { status } => first(&mut mishaps.html, status),
                FaultKind::HangUp { reset } => first(&mut mishaps.hang_up, reset),
                FaultKind::Goodbye => mishaps.goodbye = true,
                FaultKind::SlowHeaders { by } if mishaps.slow_headers.is_zero() => {
                    mishaps.slow_headers = by
                }
                FaultKind::SlowHeaders { .. } => {}
                FaultKind::Break { after_tokens, how } => {
                    first(&mut mishaps.breakdown, (after_tokens, how));
                }
                FaultKind::Stall { after_tokens, lasting } => {
                    first(&mut mishaps.stall, (after_tokens, lasting));
                }
                FaultKind::StopEarly { after_tokens } => {
                    first(&mut mishaps.stop_early, after_tokens);
                }
                FaultKind::Split { bytes } => first(&mut mishaps.split, bytes),
                FaultKind::Merge { events } => first(&mut mishaps.merge, events),
                FaultKind::Crlf => mishaps.crlf = true,
                FaultKind::Ping => mishaps.ping = true,
            }
        }
        mishaps
    }
}

/// The status of the web page that all routes show, if there is one.
pub(super) fn web_page_everywhere(faults: &[Fault]) -> Option<u16> {
    faults.iter().find_map(|fault| match (&fault.kind, &fault.on) {
        (FaultKind::Html { status }, Selection::All) => Some(*status),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(on: &str, of: u64) -> Vec<u64> {
        let fault: Fault = format!("kind = 'crlf', {on}").parse().unwrap();
        let faults = [fault];
        (0..of).filter(|number| Mishaps::new(&faults, *number).crlf).collect()
    }

    #[test]
    fn requests_are_chosen() {
        assert_eq!(chosen("every = 3", 9), [2, 5, 8]);
        assert_eq!(chosen("requests = [4, 0]", 9), [0, 4]);
        assert_eq!(chosen("share = 1.0", 4), [0, 1, 2, 3]);
        assert!(chosen("share = 0.0", 1000).is_empty());
        let tenth = chosen("share = 0.1", 10_000);
        assert!((900..1100).contains(&tenth.len()), "{}", tenth.len());
        assert_eq!(tenth, chosen("share = 0.1", 10_000));
    }

    #[test]
    fn equal_shares_are_chosen_apart() {
        let half: Fault = "kind = 'crlf', share = 0.5".parse().unwrap();
        let faults = [half.clone(), Fault { kind: FaultKind::Ping, ..half }];
        let both = |m: &Mishaps| m.crlf == m.ping;
        let same = (0..1000).filter(|n| both(&Mishaps::new(&faults, *n))).count();
        assert!((400..600).contains(&same), "{same}");
    }
}
