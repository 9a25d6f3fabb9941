//! Bytes that formats share: JSON, and the ping of an event stream.

/// A comment of an event stream, which keeps a connection alive.
pub(crate) const PING: &[u8] = b": ping\n\n";

/// Appends formatted text to bytes. Writing to memory has no way to fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        let _ = std::io::Write::write_fmt($out, format_args!($($text)*));
    }};
}
pub(crate) use put;

pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    // Neither strings nor memory have a way to fail.
    let _ = serde_json::to_writer(out, text);
}

pub(super) fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
