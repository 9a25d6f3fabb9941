//! The faults of a mock engine's replies, and the choice of affected requests.
//!
//! `table` handles the notation. The effect of a fault on a reply is in
//! `reply` (its events), `stream` (its writes) and `serve` (its HTTP response).

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use model::duration::Span;
use model::random::mix;

/// One fault, and the requests that it affects.
///
/// In TOML it is a table: `kind`, the keys of that kind, and at most one of `every = 10`,
/// `requests = [0, 7]` and `share = 0.1`; without any of these it affects every request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "FaultTable")]
pub struct Fault {
    pub kind: FaultKind,
    pub on: Selection,
}

/// The affected requests. They are numbered from 0 in order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    All,
    /// Every nth: with 10, numbers 9, 19, 29.
    Every(NonZeroU64),
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
    HangUp { reset: bool },
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
    /// True if this affects this request; `salt` makes faults with equal shares differ.
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
    /// The effects of the script's faults on this request; of two of a kind, the first counts.
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

impl FromStr for Fault {
    type Err = String;

    /// Reads the inside of a TOML inline table: `kind = "cut", after-tokens = 5, every = 10`.
    fn from_str(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Line {
            fault: Fault,
        }
        let line = format!("fault = {{ {} }}", text.trim());
        toml::from_str::<Line>(&line)
            .map(|line| line.fault)
            .map_err(|error| error.message().to_owned())
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct FaultTable {
    kind: String,
    status: Option<u16>,
    after_tokens: Option<u32>,
    #[serde(rename = "for")]
    lasting: Option<Span>,
    retry_after: Option<Span>,
    reset: Option<bool>,
    code: Option<u16>,
    bytes: Option<NonZeroUsize>,
    events: Option<NonZeroU32>,
    every: Option<NonZeroU64>,
    requests: Option<Vec<u64>>,
    share: Option<f64>,
}

const KINDS: &str = "http-error, html, hang-up, goodbye, slow-headers, in-band-error, cut, no-done, close, \
                     stall, stop-early, split, merge, crlf or ping";

impl TryFrom<FaultTable> for Fault {
    type Error = String;

    fn try_from(mut table: FaultTable) -> Result<Self, String> {
        let kind = std::mem::take(&mut table.kind);
        let on = match (table.every.take(), table.requests.take(), table.share.take()) {
            (None, None, None) => Selection::All,
            (Some(n), None, None) => Selection::Every(n),
            (None, Some(numbers), None) => Selection::Requests(numbers),
            (None, None, Some(share)) if (0.0..=1.0).contains(&share) => Selection::Share(share),
            (None, None, Some(share)) => {
                return Err(format!("`share` is {share}, but must be between 0 and 1"));
            }
            _ => {
                return Err("only one of `every`, `requests` and `share` can select the requests"
                    .to_owned());
            }
        };
        let needs = |key: &str| format!("a fault of kind `{kind}` needs `{key}`");
        let after_tokens = table.after_tokens;
        let mut after = || {
            table.after_tokens = None;
            after_tokens.ok_or_else(|| needs("after-tokens"))
        };
        let mut breaks = |how| Ok(FaultKind::Break { after_tokens: after()?, how });
        let fault_kind = match kind.as_str() {
            "in-band-error" => breaks(Breakdown::InBandError),
            "cut" => breaks(Breakdown::Cut { reset: table.reset.take().unwrap_or(false) }),
            "no-done" => breaks(Breakdown::NoDone),
            "close" => {
                breaks(Breakdown::Close { code: close_code(table.code.take().unwrap_or(1011))? })
            }
            "stall" => Ok(FaultKind::Stall {
                after_tokens: after()?,
                lasting: table.lasting.take().map(|span| span.0),
            }),
            "stop-early" => Ok(FaultKind::StopEarly { after_tokens: after()? }),
            "http-error" => Ok(FaultKind::HttpError {
                status: error_status(table.status.take().unwrap_or(500))?,
                retry_after: table.retry_after.take().map(|span| span.0),
            }),
            "html" => Ok(FaultKind::Html {
                status: match table.status.take().unwrap_or(200) {
                    200 => 200,
                    status => error_status(status)?,
                },
            }),
            "hang-up" => Ok(FaultKind::HangUp { reset: table.reset.take().unwrap_or(false) }),
            "goodbye" => Ok(FaultKind::Goodbye),
            "slow-headers" => {
                let by = table.lasting.take().ok_or_else(|| needs("for"))?;
                Ok(FaultKind::SlowHeaders { by: by.0 })
            }
            "split" => {
                let bytes = table.bytes.take().ok_or_else(|| needs("bytes"))?;
                Ok(FaultKind::Split { bytes })
            }
            "merge" => {
                let events = table.events.take().ok_or_else(|| needs("events"))?;
                Ok(FaultKind::Merge { events })
            }
            "crlf" => Ok(FaultKind::Crlf),
            "ping" => Ok(FaultKind::Ping),
            "" => Err(format!("a fault needs a `kind`: {KINDS}")),
            other => Err(format!("`{other}` is not a kind of fault; expected {KINDS}")),
        }?;
        let left = [
            ("after-tokens", table.after_tokens.is_some()),
            ("status", table.status.is_some()),
            ("for", table.lasting.is_some()),
            ("retry-after", table.retry_after.is_some()),
            ("reset", table.reset.is_some()),
            ("code", table.code.is_some()),
            ("bytes", table.bytes.is_some()),
            ("events", table.events.is_some()),
        ];
        match left.iter().find(|(_, left)| *left) {
            Some((key, _)) => Err(format!("`{key}` has no effect on a fault of kind `{kind}`")),
            None => Ok(Fault { kind: fault_kind, on }),
        }
    }
}

/// Codes that a server may close a WebSocket with (RFC 6455, 7.4).
fn close_code(code: u16) -> Result<u16, String> {
    match code {
        1000..=1003 | 1007..=1014 | 3000..=4999 => Ok(code),
        _ => Err(format!(
            "`code` is {code}, but a WebSocket is closed with 1000 to 1003, 1007 to 1014 or 3000 to 4999"
        )),
    }
}

fn error_status(status: u16) -> Result<u16, String> {
    match status {
        400..=599 => Ok(status),
        _ => Err(format!("`status` is {status}, but error statuses are between 400 and 599")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(on: &str, of: u64) -> Vec<u64> {
        let faults = [format!("kind = 'crlf', {on}").parse().unwrap()];
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

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("every = 2", "a fault needs a `kind`: http-error"),
            ("kind = 'cutt'", "`cutt` is not a kind of fault; expected http-error"),
            ("kind = 'cut'", "a fault of kind `cut` needs `after-tokens`"),
            ("kind = 'split'", "needs `bytes`"),
            ("kind = 'crlf', bytes = 3", "`bytes` has no effect on a fault of kind `crlf`"),
            ("kind = 'crlf', after-tokens = 3", "`after-tokens` has no effect"),
            ("kind = 'http-error', status = 200", "error statuses are between 400 and 599"),
            ("kind = 'html', status = 302", "error statuses are between 400 and 599"),
            (
                "kind = 'html', retry-after = '1s'",
                "`retry-after` has no effect on a fault of kind `html`",
            ),
            ("kind = 'close', after-tokens = 3, code = 1005", "`code` is 1005, but a WebSocket"),
            ("kind = 'crlf', share = 2.0", "must be between 0 and 1"),
            (
                "kind = 'crlf', share = 0.5, every = 2",
                "only one of `every`, `requests` and `share`",
            ),
            ("kind = 'crlf', evry = 2", "unknown field `evry`"),
        ] {
            let error = text.parse::<Fault>().expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
