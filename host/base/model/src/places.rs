//! The places where requests may go: the run's targets, and hosts that the user allows for requests
//! that a reply leads to. A server cannot make the runner reach anything else.

use std::fmt;
use std::str::FromStr;

use crate::target::{Target, TargetError};

/// A host that the user allows, with or without a port: one entry of `[target] hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    plain: Target,
    secure: Target,
    written: String,
}

/// The reason why a text names no host.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no host: expected its name, with a port if it is not the usual one, such as stream.replicate.com or localhost:8443, and neither scheme nor path"
)]
pub struct NotHost(String);

/// The places of a run, numbered: the targets first, then the other hosts.
#[derive(Clone, Debug, Default)]
pub struct Places {
    targets: Vec<Target>,
    /// Each allowed host without TLS and with it.
    others: Vec<Target>,
}

/// A place that a URL leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'p> {
    /// Its number.
    pub number: u32,
    /// Scheme, host and port.
    pub origin: &'p Target,
    /// True if it lies below the target's URL: requests there carry the key and the user's headers.
    pub is_target: bool,
}

/// The reason why a URL that a reply led to is not followed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// Not a URL that a request can go to.
    #[error("expected a URL that begins with http:// or https:// and holds no user name")]
    NotUrl,
    /// Neither below the URL of the exchange's target nor on a host that the user allows.
    #[error(
        "the URL is neither below the target's nor on an allowed host; if the server may send requests to `{0}`, without the key and your headers, allow the host with `hosts = [\"{0}\"]` in `[target]`, or --allow-host {0}"
    )]
    NotAllowed(String),
}

impl FromStr for AllowedHost {
    type Err = NotHost;

    fn from_str(text: &str) -> Result<Self, NotHost> {
        let not_host = || NotHost(text.to_owned());
        let is_bare = !text.ends_with(':') && !text.contains(['/', '?', '#', '@', ',', '\\']);
        let parse = |scheme: &str| Target::parse(&format!("{scheme}://{text}"));
        let (true, Ok(plain), Ok(secure)) = (is_bare, parse("http"), parse("https")) else {
            return Err(not_host());
        };
        Ok(AllowedHost { plain, secure, written: text.to_ascii_lowercase() })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Places {
    /// The targets of a run, and the hosts that its user allows beside them.
    pub fn new(targets: Vec<Target>, hosts: &[AllowedHost]) -> Self {
        let both = |host: &AllowedHost| [host.plain.clone(), host.secure.clone()];
        Places { targets, others: hosts.iter().flat_map(both).collect() }
    }

    /// The places that are no targets, in the order of their numbers.
    pub fn others(&self) -> &[Target] {
        &self.others
    }

    /// The number of places.
    pub fn count(&self) -> u32 {
        (self.targets.len() + self.others.len()) as u32
    }

    /// The target of this number, for a path below its URL.
    pub fn target(&self, number: u32) -> Option<Place<'_>> {
        self.targets.get(number as usize).map(|origin| Place { number, origin, is_target: true })
    }

    /// The place that a whole URL leads to in an exchange with this target, and the path and query
    /// there. Other targets are hosts like any other, because the runner cannot know which paths
    /// they hide from each other. Fails if it is no URL of HTTP, or leads to a place that the user
    /// does not name.
    pub fn find(&self, target: u32, url: &str) -> Result<(Place<'_>, String), Unreachable> {
        let (scheme, rest) = url.split_once("://").ok_or(Unreachable::NotUrl)?;
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let destination = match Target::parse(&format!("{scheme}://{authority}")) {
            Ok(destination) if !authority.is_empty() => destination,
            Ok(_) | Err(TargetError::NotUrl { .. } | TargetError::Credentials) => {
                return Err(Unreachable::NotUrl);
            }
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let path = format!("{slash}{path}");
        let own = self.target(target);
        if let Some(own) =
            own.filter(|own| own.origin.is_at(&destination) && own.origin.holds(&path))
        {
            return Ok((own, path));
        }
        let mut others = (self.targets.len() as u32..).zip(&self.others);
        match others.find(|(_, place)| place.is_at(&destination)) {
            Some((number, origin)) => Ok((Place { number, origin, is_target: false }, path)),
            None => Err(Unreachable::NotAllowed(destination.authority())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        let targets = ["http://127.0.0.1:8000/v1", "https://api.example.com"];
        let targets = targets.map(|url| Target::parse(url).unwrap()).to_vec();
        let hosts = ["stream.example.com", "localhost:9000"];
        Places::new(targets, &hosts.map(|host| host.parse().unwrap()))
    }

    #[test]
    fn urls_lead_below_the_own_target_and_to_allowed_hosts_alone() {
        let places = places();
        assert_eq!((places.count(), places.others().len()), (6, 4));
        for (own, url, number, path) in [
            (0, "http://127.0.0.1:8000/v1/x?y=1", 0, "/v1/x?y=1"),
            (0, "http://127.0.0.1:8000/v1?y=1", 0, "/v1?y=1"),
            (1, "https://API.example.com", 1, "/"),
            (1, "https://api.example.com:443?a", 1, "/?a"),
            (1, "http://stream.example.com/s", 2, "/s"),
            (0, "https://stream.example.com/s", 3, "/s"),
            (0, "http://localhost:9000/", 4, "/"),
        ] {
            let (place, found) = places.find(own, url).unwrap();
            assert_eq!((place.number, place.is_target), (number, number < 2), "{url}");
            assert_eq!(found, path);
        }
        for (url, host) in [
            ("http://127.0.0.1:8000/admin/keys", "127.0.0.1:8000"),
            ("http://127.0.0.1:8000/v1x", "127.0.0.1:8000"),
            ("http://127.0.0.1:8000/V1/x", "127.0.0.1:8000"),
            ("https://api.example.com/x", "api.example.com"),
            ("http://127.0.0.1:8001/x", "127.0.0.1:8001"),
            ("https://127.0.0.1:8000/x", "127.0.0.1:8000"),
            ("http://127.0.0.1/x", "127.0.0.1"),
            ("http://localhost:8000/x", "localhost:8000"),
            ("http://169.254.169.254/latest/meta-data", "169.254.169.254"),
            ("https://stream.example.com:444/", "stream.example.com:444"),
            ("https://stream.example.com.evil.com/", "stream.example.com.evil.com"),
            ("http://[::1]:8000/", "[::1]:8000"),
        ] {
            let refused = places.find(0, url).unwrap_err();
            assert_eq!(refused, Unreachable::NotAllowed(host.to_owned()), "{url}");
            assert!(refused.to_string().contains(&format!("hosts = [\"{host}\"]")));
        }
    }

    #[test]
    fn refuses_a_text_that_is_no_url() {
        for url in [
            "",
            "x",
            "//127.0.0.1:8000/x",
            "ftp://127.0.0.1:8000/x",
            "file:///etc/passwd",
            "http://",
            "http:///x",
            "http://me@127.0.0.1:8000/x",
            "http://127.0.0.1:8000@evil.com/x",
            "http://evil.com:x/",
            "http://127.0.0.1:8000 /x",
            "http://127.0.0.1:99999/x",
        ] {
            assert_eq!(places().find(0, url), Err(Unreachable::NotUrl), "{url}");
        }
        let places = places();
        let (place, path) = places.find(1, "https://api.example.com\\@evil.com/").unwrap();
        assert_eq!((place.number, &*path), (1, "/\\@evil.com/"));
    }

    #[test]
    fn hosts_are_names_with_or_without_a_port() {
        for host in ["stream.example.com", "LOCALHOST:9000", "[::1]:80", "10.0.0.1"] {
            let read: AllowedHost = host.parse().unwrap();
            assert_eq!(read.to_string(), host.to_ascii_lowercase());
        }
        for host in [
            "",
            "http://stream.example.com",
            "stream.example.com/x",
            "a,b",
            "me@host",
            "host:",
            "host:x",
            "host:70000",
            "two words",
            "*.example.com?",
        ] {
            let read = host.parse::<AllowedHost>();
            assert_eq!(read, Err(NotHost(host.to_owned())), "{host}");
        }
    }
}
