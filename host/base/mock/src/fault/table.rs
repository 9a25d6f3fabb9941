//! The notation of faults in TOML: one flat table, whose keys depend on its `kind`.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use serde::Deserialize;

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
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct FaultTable {
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
