//! The origin of an address, which decides where a token may go.

use model::percent_encoded;
use ureq::http::Uri;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) is_secure: bool,
    /// In lower case.
    pub(crate) host: String,
    port: u16,
}

impl Origin {
    /// Returns the origin of an address; none where it is not one of HTTP.
    pub(crate) fn from_uri(address: &Uri) -> Option<Self> {
        let is_secure = match address.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let port = address.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Some(Origin { is_secure, host: address.host()?.to_ascii_lowercase(), port })
    }

    pub(crate) fn of_text(address: &str) -> Option<Self> {
        Origin::from_uri(&address.parse().ok()?)
    }
}

/// The place where a redirect leads.
pub(crate) fn follow(from: &Uri, location: &str) -> Option<Uri> {
    let scheme = from.scheme_str()?;
    let authority = from.authority()?.as_str();
    // An address may stand in a query, too.
    let before = location.split(['/', '?', '#']).next().unwrap_or_default();
    let whole = if before.ends_with(':') && location[before.len()..].starts_with("//") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let (folder, _) = from.path().rsplit_once('/')?;
        format!("{scheme}://{authority}{folder}/{location}")
    };
    whole.parse().ok()
}

/// Text as a part of a path in an address. Slashes stay where `slashes` says so.
pub(crate) fn escaped(text: &str, slashes: bool) -> String {
    percent_encoded(text.as_bytes(), if slashes { b"-_.~/" } else { b"-_.~" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_may_be_absolute_or_relative() {
        let from: Uri = "https://hub/models/a/b".parse().unwrap();
        for (location, expected) in [
            ("https://store/x", "https://store/x"),
            ("//store/x", "https://store/x"),
            ("/api/x", "https://hub/api/x"),
            ("/api/x?u=https://y", "https://hub/api/x?u=https://y"),
            ("c?u=https://y", "https://hub/models/a/c?u=https://y"),
        ] {
            assert_eq!(follow(&from, location).unwrap().to_string(), expected);
        }
    }
}
