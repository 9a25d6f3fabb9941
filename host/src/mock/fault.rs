//! What can go wrong with a mock engine's replies, and for which requests it does.
//!
//! Responsible for the notation and for choosing; what a fault does to a reply is done in
//! `reply` (its events), `stream` (its writes) and `serve` (its HTTP response).

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::Span;

/// One thing that goes wrong, and for which requests.
///
/// In TOML it is a table: `kind`, what that kind needs, and at most one of `every = 10`,
/// `requests = [0, 7]` and `share = 0.1`; without any of these it goes wrong every time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Fault {
    /// What goes wrong.
    pub what: What,
    /// For which requests.
    pub on: On,
}

/// Which requests go wrong. They are numbered from 0 in order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub enum On {
    /// Every request.
    All,
    /// The nth, the 2nth and so on: with 10, numbers 9, 19, 29.
    Every(NonZeroU64),
    /// These.
    Requests(Vec<u64>),
    /// This share of all, 0 to 1, chosen by a hash of the number: the same ones each time.
    Share(f64),
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// `http-error`: an HTTP error status (`status`, 500 if not given) and a JSON error.
    HttpError {
        /// The status.
        status: u16,
    },
    /// `html`: a web page instead of an API, as behind a wrong port. Without a choice of requests,
    /// on every route.
    Html,
    /// `hang-up`: the connection is closed without a reply.
    HangUp,
    /// `slow-headers`: the reply's headers come that much later (`for`); tokens that are due by then follow at once.
    SlowHeaders {
        /// How much later.
        by: Duration,
    },
    /// `in-band-error`, `cut`, `no-done`: the reply ends badly, when the next token would be due.
    Break {
        /// Tokens that are sent before.
        after_tokens: u32,
        /// How it ends.
        how: Breakdown,
    },
    /// `stall`: nothing comes for a while (`for`) or ever (without `for`); what follows is as much later.
    Stall {
        /// Tokens that are sent before.
        after_tokens: u32,
        /// For how long; absent for ever.
        lasting: Option<Duration>,
    },
    /// `stop-early`: the answer ends properly, but short of what was asked, `ignore_eos` or not.
    StopEarly {
        /// Its tokens.
        after_tokens: u32,
    },
    /// `split`: every write holds `bytes` bytes of the body, so events and characters are cut anywhere.
    Split {
        /// Bytes in each write.
        bytes: NonZeroUsize,
    },
    /// `merge`: `events` events are held back and written together when the last of them is due.
    Merge {
        /// Events in each write.
        events: NonZeroU32,
    },
    /// `crlf`: lines end in CR LF.
    Crlf,
    /// `ping`: a comment line comes at once, and one before every event.
    Ping,
}

/// How a reply ends badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakdown {
    /// An error inside a reply that began as a success, then the end marker.
    InBandError,
    /// The connection breaks.
    Cut {
        /// With a TCP reset (`reset = true`) instead of an orderly close in mid-reply.
        reset: bool,
    },
    /// The HTTP reply ends as it should, but its end marker is missing, and with it all that is due by then.
    NoDone,
}

impl What {
    /// The length of time it names.
    pub(super) fn lasting(&self) -> Option<Span> {
        match self {
            What::SlowHeaders { by } => Some(Span(*by)),
            What::Stall { lasting, .. } => lasting.map(Span),
            _ => None,
        }
    }
}

impl On {
    /// Whether the request with this number is meant; `salt` sets faults with equal shares apart.
    fn selects(&self, number: u64, salt: u64) -> bool {
        match self {
            On::All => true,
            On::Every(n) => (number + 1).is_multiple_of(n.get()),
            On::Requests(numbers) => numbers.contains(&number),
            On::Share(share) => {
                let hash = mixed(number ^ mixed(salt));
                ((hash >> 11) as f64 / (1_u64 << 53) as f64) < *share
            }
        }
    }
}

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014): equally likely bits from a counter.
pub(super) fn mixed(counter: u64) -> u64 {
    let mut z = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// All that goes wrong with one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mishaps {
    pub http_error: Option<u16>,
    pub html: bool,
    pub hang_up: bool,
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
    /// What the faults of a script do to the request with this number; of two of a kind the first counts.
    pub fn of(faults: &[Fault], number: u64) -> Self {
        let mut mishaps = Mishaps::default();
        for (salt, fault) in (0..).zip(faults) {
            if !fault.on.selects(number, salt) {
                continue;
            }
            match fault.what {
                What::HttpError { status } => {
                    mishaps.http_error.get_or_insert(status);
                }
                What::Html => mishaps.html = true,
                What::HangUp => mishaps.hang_up = true,
                What::SlowHeaders { by } if mishaps.slow_headers.is_zero() => {
                    mishaps.slow_headers = by
                }
                What::SlowHeaders { .. } => {}
                What::Break { after_tokens, how } => {
                    mishaps.breakdown.get_or_insert((after_tokens, how));
                }
                What::Stall {
                    after_tokens,
                    lasting,
                } => {
                    mishaps.stall.get_or_insert((after_tokens, lasting));
                }
                What::StopEarly { after_tokens } => {
                    mishaps.stop_early.get_or_insert(after_tokens);
                }
                What::Split { bytes } => {
                    mishaps.split.get_or_insert(bytes);
                }
                What::Merge { events } => {
                    mishaps.merge.get_or_insert(events);
                }
                What::Crlf => mishaps.crlf = true,
                What::Ping => mishaps.ping = true,
            }
        }
        mishaps
    }
}

/// Whether all routes show a web page.
pub(super) fn serves_web_page(faults: &[Fault]) -> bool {
    faults
        .iter()
        .any(|fault| fault.what == What::Html && fault.on == On::All)
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

/// A fault as it stands in TOML.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Written {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_tokens: Option<u32>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    lasting: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<NonZeroUsize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<NonZeroU64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
}

const KINDS: &str = "http-error, html, hang-up, slow-headers, in-band-error, cut, no-done, stall, \
                     stop-early, split, merge, crlf or ping";

impl TryFrom<Written> for Fault {
    type Error = String;

    fn try_from(mut written: Written) -> Result<Self, String> {
        let kind = std::mem::take(&mut written.kind);
        let on = match (
            written.every.take(),
            written.requests.take(),
            written.share.take(),
        ) {
            (None, None, None) => On::All,
            (Some(n), None, None) => On::Every(n),
            (None, Some(numbers), None) => On::Requests(numbers),
            (None, None, Some(share)) if (0.0..=1.0).contains(&share) => On::Share(share),
            (None, None, Some(share)) => {
                return Err(format!("`share` is {share}, but must lie between 0 and 1"));
            }
            _ => {
                return Err(
                    "only one of `every`, `requests` and `share` can choose the requests"
                        .to_owned(),
                );
            }
        };
        let needs = |key: &str| format!("a fault of kind `{kind}` needs `{key}`");
        let after_tokens = written.after_tokens.take();
        let after = after_tokens.ok_or_else(|| needs("after-tokens"));
        let breaks = |how| {
            after
                .clone()
                .map(|after_tokens| What::Break { after_tokens, how })
        };
        let mut uses_after = true;
        let what = match kind.as_str() {
            "in-band-error" => breaks(Breakdown::InBandError)?,
            "cut" => breaks(Breakdown::Cut {
                reset: written.reset.take().unwrap_or(false),
            })?,
            "no-done" => breaks(Breakdown::NoDone)?,
            "stall" => What::Stall {
                after_tokens: after.clone()?,
                lasting: written.lasting.take().map(|span| span.0),
            },
            "stop-early" => What::StopEarly {
                after_tokens: after.clone()?,
            },
            other => {
                uses_after = false;
                match other {
                    "http-error" => match written.status.take().unwrap_or(500) {
                        status @ 400..=599 => What::HttpError { status },
                        status => {
                            return Err(format!(
                                "`status` is {status}, but errors lie between 400 and 599"
                            ));
                        }
                    },
                    "html" => What::Html,
                    "hang-up" => What::HangUp,
                    "slow-headers" => {
                        let by = written.lasting.take().ok_or_else(|| needs("for"))?;
                        What::SlowHeaders { by: by.0 }
                    }
                    "split" => What::Split {
                        bytes: written.bytes.take().ok_or_else(|| needs("bytes"))?,
                    },
                    "merge" => What::Merge {
                        events: written.events.take().ok_or_else(|| needs("events"))?,
                    },
                    "crlf" => What::Crlf,
                    "ping" => What::Ping,
                    "" => return Err(format!("a fault needs a `kind`: {KINDS}")),
                    _ => {
                        return Err(format!(
                            "`{other}` is not a kind of fault; expected {KINDS}"
                        ));
                    }
                }
            }
        };
        let left = [
            ("after-tokens", after_tokens.is_some() && !uses_after),
            ("status", written.status.is_some()),
            ("for", written.lasting.is_some()),
            ("reset", written.reset.is_some()),
            ("bytes", written.bytes.is_some()),
            ("events", written.events.is_some()),
        ];
        match left.iter().find(|(_, left)| *left) {
            Some((key, _)) => Err(format!("`{key}` means nothing to a fault of kind `{kind}`")),
            None => Ok(Fault { what, on }),
        }
    }
}

impl From<Fault> for Written {
    fn from(fault: Fault) -> Self {
        let mut written = Written::default();
        match fault.on {
            On::All => {}
            On::Every(n) => written.every = Some(n),
            On::Requests(numbers) => written.requests = Some(numbers),
            On::Share(share) => written.share = Some(share),
        }
        let kind = match fault.what {
            What::HttpError { status } => {
                written.status = Some(status);
                "http-error"
            }
            What::Html => "html",
            What::HangUp => "hang-up",
            What::SlowHeaders { by } => {
                written.lasting = Some(Span(by));
                "slow-headers"
            }
            What::Break { after_tokens, how } => {
                written.after_tokens = Some(after_tokens);
                match how {
                    Breakdown::InBandError => "in-band-error",
                    Breakdown::Cut { reset } => {
                        written.reset = reset.then_some(true);
                        "cut"
                    }
                    Breakdown::NoDone => "no-done",
                }
            }
            What::Stall {
                after_tokens,
                lasting,
            } => {
                written.after_tokens = Some(after_tokens);
                written.lasting = lasting.map(Span);
                "stall"
            }
            What::StopEarly { after_tokens } => {
                written.after_tokens = Some(after_tokens);
                "stop-early"
            }
            What::Split { bytes } => {
                written.bytes = Some(bytes);
                "split"
            }
            What::Merge { events } => {
                written.events = Some(events);
                "merge"
            }
            What::Crlf => "crlf",
            What::Ping => "ping",
        };
        Written {
            kind: kind.to_owned(),
            ..written
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(on: &str, of: u64) -> Vec<u64> {
        let fault: Fault = format!("kind = 'crlf', {on}").parse().unwrap();
        let faults = [fault];
        (0..of)
            .filter(|number| Mishaps::of(&faults, *number).crlf)
            .collect()
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
        let faults = [
            half.clone(),
            Fault {
                what: What::Ping,
                ..half
            },
        ];
        let both = |m: &Mishaps| m.crlf == m.ping;
        let same = (0..1000)
            .filter(|n| both(&Mishaps::of(&faults, *n)))
            .count();
        assert!((400..600).contains(&same), "{same}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("every = 2", "a fault needs a `kind`: http-error"),
            (
                "kind = 'cutt'",
                "`cutt` is not a kind of fault; expected http-error",
            ),
            ("kind = 'cut'", "a fault of kind `cut` needs `after-tokens`"),
            ("kind = 'split'", "needs `bytes`"),
            (
                "kind = 'crlf', bytes = 3",
                "`bytes` means nothing to a fault of kind `crlf`",
            ),
            (
                "kind = 'crlf', after-tokens = 3",
                "`after-tokens` means nothing",
            ),
            (
                "kind = 'http-error', status = 200",
                "errors lie between 400 and 599",
            ),
            ("kind = 'crlf', share = 2.0", "must lie between 0 and 1"),
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
