//! The notation of faults in TOML: one flat table, whose keys depend on its `kind`.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Breakdown, Fault, FaultKind, Selection};
use model::duration::Span;

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

/// A fault's table in TOML.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct FaultTable {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_tokens: Option<u32>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    lasting: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
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

const KINDS: &str = "http-error, html, hang-up, goodbye, slow-headers, in-band-error, cut, no-done, close, \
                     stall, stop-early, split, merge, crlf or ping";

impl TryFrom<FaultTable> for Fault {
    type Error = String;

    fn try_from(mut written: FaultTable) -> Result<Self, String> {
        let kind = std::mem::take(&mut written.kind);
        let on = match (written.every.take(), written.requests.take(), written.share.take()) {
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
        let after_tokens = written.after_tokens.take();
        let after = after_tokens.ok_or_else(|| needs("after-tokens"));
        let breaks = |how| after.clone().map(|after_tokens| FaultKind::Break { after_tokens, how });
        let mut uses_after = true;
        let fault_kind = match kind.as_str() {
            "in-band-error" => breaks(Breakdown::InBandError)?,
            "cut" => breaks(Breakdown::Cut { reset: written.reset.take().unwrap_or(false) })?,
            "no-done" => breaks(Breakdown::NoDone)?,
            "close" => {
                breaks(Breakdown::Close { code: close_code(written.code.take().unwrap_or(1011))? })?
            }
            "stall" => FaultKind::Stall {
                after_tokens: after.clone()?,
                lasting: written.lasting.take().map(|span| span.0),
            },
            "stop-early" => FaultKind::StopEarly { after_tokens: after.clone()? },
            other => {
                uses_after = false;
                match other {
                    "http-error" => FaultKind::HttpError {
                        status: error_status(written.status.take().unwrap_or(500))?,
                        retry_after: written.retry_after.take().map(|span| span.0),
                    },
                    "html" => FaultKind::Html {
                        status: match written.status.take().unwrap_or(200) {
                            200 => 200,
                            status => error_status(status)?,
                        },
                    },
                    "hang-up" => FaultKind::HangUp { reset: written.reset.take().unwrap_or(false) },
                    "goodbye" => FaultKind::Goodbye,
                    "slow-headers" => {
                        let by = written.lasting.take().ok_or_else(|| needs("for"))?;
                        FaultKind::SlowHeaders { by: by.0 }
                    }
                    "split" => FaultKind::Split {
                        bytes: written.bytes.take().ok_or_else(|| needs("bytes"))?,
                    },
                    "merge" => FaultKind::Merge {
                        events: written.events.take().ok_or_else(|| needs("events"))?,
                    },
                    "crlf" => FaultKind::Crlf,
                    "ping" => FaultKind::Ping,
                    "" => return Err(format!("a fault needs a `kind`: {KINDS}")),
                    _ => {
                        return Err(format!("`{other}` is not a kind of fault; expected {KINDS}"));
                    }
                }
            }
        };
        let left = [
            ("after-tokens", after_tokens.is_some() && !uses_after),
            ("status", written.status.is_some()),
            ("for", written.lasting.is_some()),
            ("retry-after", written.retry_after.is_some()),
            ("reset", written.reset.is_some()),
            ("code", written.code.is_some()),
            ("bytes", written.bytes.is_some()),
            ("events", written.events.is_some()),
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

impl From<Fault> for FaultTable {
    fn from(fault: Fault) -> Self {
        let mut written = FaultTable::default();
        match fault.on {
            Selection::All => {}
            Selection::Every(n) => written.every = Some(n),
            Selection::Requests(numbers) => written.requests = Some(numbers),
            Selection::Share(share) => written.share = Some(share),
        }
        let kind = match fault.kind {
            FaultKind::HttpError { status, retry_after } => {
                written.status = Some(status);
                written.retry_after = retry_after.map(Span);
                "http-error"
            }
            FaultKind::Html { status } => {
                written.status = (status != 200).then_some(status);
                "html"
            }
            FaultKind::HangUp { reset } => {
                written.reset = reset.then_some(true);
                "hang-up"
            }
            FaultKind::Goodbye => "goodbye",
            FaultKind::SlowHeaders { by } => {
                written.lasting = Some(Span(by));
                "slow-headers"
            }
            FaultKind::Break { after_tokens, how } => {
                written.after_tokens = Some(after_tokens);
                match how {
                    Breakdown::InBandError => "in-band-error",
                    Breakdown::Cut { reset } => {
                        written.reset = reset.then_some(true);
                        "cut"
                    }
                    Breakdown::NoDone => "no-done",
                    Breakdown::Close { code } => {
                        written.code = (code != 1011).then_some(code);
                        "close"
                    }
                }
            }
            FaultKind::Stall { after_tokens, lasting } => {
                written.after_tokens = Some(after_tokens);
                written.lasting = lasting.map(Span);
                "stall"
            }
            FaultKind::StopEarly { after_tokens } => {
                written.after_tokens = Some(after_tokens);
                "stop-early"
            }
            FaultKind::Split { bytes } => {
                written.bytes = Some(bytes);
                "split"
            }
            FaultKind::Merge { events } => {
                written.events = Some(events);
                "merge"
            }
            FaultKind::Crlf => "crlf",
            FaultKind::Ping => "ping",
        };
        FaultTable { kind: kind.to_owned(), ..written }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
