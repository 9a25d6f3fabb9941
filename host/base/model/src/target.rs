//! The target: the place of requests, and their secret parts.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, PoisonError, RwLock};

use crate::access::Access;
use crate::exchange::Reply;
use crate::redact::{Known, SHORTEST_KNOWN};

/// Replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Secrets of this length are no words of a language.
const NO_WORD_BYTES: usize = 12;
/// The most secrets of servers that are looked for.
const ISSUED: usize = 64;

/// An HTTP origin and the path below which the engine's routes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    tls: bool,
    host: String,
    port: u16,
    prefix: String,
}

/// The reason why a URL cannot be a target.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL of the kind expected.
    #[error("`{0}` is not a base URL: expected something like http://127.0.0.1:8000")]
    NotUrl(String),
    /// Credentials in the URL would end up in results.
    #[error(
        "the base URL contains a user name or password; put the key into the variable named by `api-key-env` instead"
    )]
    Credentials,
}

impl Target {
    /// Reads a base URL such as `http://127.0.0.1:8000`, `http://gateway/tenant` or
    /// `localhost:8000`. Fails if it is not an HTTP URL, or holds credentials.
    pub fn parse(url: &str) -> Result<Self, TargetError> {
        let not_url = || TargetError::NotUrl(url.to_owned());
        // First, because the other refusals repeat the URL.
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(TargetError::Credentials);
        }
        let uri: http::Uri = with_scheme(url).parse().map_err(|_| not_url())?;
        let authority = uri.authority().ok_or_else(not_url)?;
        // A port that is no number from 0 to 65535 must not become the default one.
        let after_host = &authority.as_str()[authority.host().len()..];
        let has_port = authority.port_u16().is_some() || matches!(after_host, "" | ":");
        if !is_host(authority.host()) || !has_port {
            return Err(not_url());
        }
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(not_url()),
        };
        if uri.query().is_some() {
            return Err(not_url());
        }
        Ok(Target {
            tls,
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(default_port(tls)),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// The path on the server for a backend's path. Users give the base URL of OpenAI-like engines
    /// with and without `/v1`; both work.
    pub fn path(&self, path: &str) -> String {
        let prefix = match self.prefix.strip_suffix("/v1") {
            Some(shorter) if path.starts_with("/v1/") => shorter,
            _ => &self.prefix,
        };
        format!("{prefix}{path}")
    }

    /// True if it uses TLS.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// The host's name or address, without brackets.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// True if its name alone means this machine: `localhost`, or a loopback address in its usual
    /// notation. No resolver is consulted.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// True if scheme, host and port are the same.
    pub fn is_at(&self, other: &Target) -> bool {
        self.tls == other.tls
            && self.port == other.port
            && self.host.eq_ignore_ascii_case(&other.host)
    }

    /// True if a path of the server, with or without a query, lies below this URL.
    pub fn holds(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&*self.prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }

    /// The value of the `host` header.
    pub fn authority(&self) -> String {
        if self.port == default_port(self.tls) {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Looks the host's addresses up. Errors: the resolver's error.
    pub fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        Ok((self.host(), self.port).to_socket_addrs()?.collect())
    }
}

/// A base URL with its scheme, which is `http` where none is written, as in `localhost:8000`.
pub fn with_scheme(url: &str) -> Cow<'_, str> {
    if url.contains("://") { url.into() } else { format!("http://{url}").into() }
}

fn is_host(host: &str) -> bool {
    match host.strip_prefix('[') {
        Some(rest) => {
            let address = rest.strip_suffix(']').map(str::parse::<Ipv6Addr>);
            matches!(address, Some(Ok(_)))
        }
        None => !host.is_empty() && !host.contains(['[', ']']),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme();
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

/// The targets of a run, for messages.
pub fn listed(targets: &[Target]) -> String {
    let urls: Vec<String> = targets.iter().map(Target::to_string).collect();
    urls.join(", ")
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// Secrets, which must appear in requests and nowhere else.
///
/// They go to every target of a run, so a run has only targets that the user named and this
/// machine.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Proof to the server of who asks.
    pub access: Access,
    /// For messages: the variable of the key. Without a key, the variables that could have held it,
    /// the usual one first; none if the backend sends no key.
    pub variables: Vec<String>,
    /// Further header fields that the user gave.
    pub headers: Vec<(String, String)>,
    /// Secret values in the bodies of requests.
    pub fields: Vec<String>,
    /// Secrets that servers gave during the run.
    pub issued: IssuedSecrets,
    /// True if the cookies of conversations are kept, which are secret too.
    pub keeps_cookies: bool,
}

/// Secrets that servers gave, such as tokens. Copies share them.
#[derive(Clone, Default)]
pub struct IssuedSecrets(Arc<RwLock<VecDeque<String>>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl IssuedSecrets {
    /// Takes a secret. The oldest of many go.
    pub fn put(&self, secret: &str) {
        let mut issued = self.0.write().unwrap_or_else(PoisonError::into_inner);
        issued.retain(|text| text != secret);
        issued.push_back(secret.to_owned());
        if issued.len() > ISSUED {
            issued.pop_front();
        }
    }
}

impl Secrets {
    /// Removes secret values from a text that a server or a plugin wrote.
    pub fn redact(&self, text: &str) -> String {
        self.known(SHORTEST_KNOWN, |known| known.redact(text))
    }

    /// A reply without the secrets that the server repeats in it. A value that is a plain word, as
    /// in `x-tier: free`, must not change the answer. So only values too long for a word are
    /// removed.
    pub fn redacted_reply(&self, reply: Reply) -> Reply {
        self.known(NO_WORD_BYTES, |known| {
            let redacted = |text: String| known.redact_owned(text);
            Reply {
                output: redacted(reply.output),
                reasoning: redacted(reply.reasoning),
                tool_calls: redacted(reply.tool_calls),
                choices: reply.choices.into_iter().map(redacted).collect(),
                finish: reply.finish.map(redacted),
                ..reply
            }
        })
    }

    /// As [`Secrets::redact`], for bytes. Bytes without secrets need not be text.
    pub fn redact_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        self.known(SHORTEST_KNOWN, |known| known.redact_bytes(bytes))
    }

    /// The same and these values.
    pub fn and(&self, values: Vec<String>) -> Self {
        let fields = self.fields.iter().cloned().chain(values).collect();
        Secrets { fields, ..self.clone() }
    }

    /// The secrets of the user alone, for replies that give others.
    pub fn of_user(&self) -> Self {
        Secrets { issued: IssuedSecrets::default(), ..self.clone() }
    }

    /// Calls `with` with the secret values of at least `shortest` bytes.
    fn known<R>(&self, shortest: usize, with: impl FnOnce(&Known<Cow<'_, str>>) -> R) -> R {
        let issued = self.issued.0.read().unwrap_or_else(PoisonError::into_inner);
        let texts = self
            .access
            .secrets()
            .into_iter()
            .flatten()
            .chain(self.headers.iter().map(|(_, value)| &**value))
            .chain(self.fields.iter().chain(&*issued).map(String::as_str));
        with(&Known::no_shorter(texts.map(Cow::Borrowed), shortest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls() {
        let target = Target::parse("http://localhost:8000/").unwrap();
        assert_eq!(target.to_string(), "http://localhost:8000");
        assert_eq!(target.path("/v1/models"), "/v1/models");
        let gateway = Target::parse("http://gateway/tenant/v1").unwrap();
        assert_eq!(gateway.path("/v1/models"), "/tenant/v1/models");
        assert_eq!(gateway.path("/generate"), "/tenant/v1/generate");
        assert_eq!(gateway.authority(), "gateway");
        let secure = Target::parse("https://[::1]").unwrap();
        assert_eq!((secure.host(), secure.to_string()), ("::1", "https://[::1]".to_owned()));
        assert_eq!(Target::parse("https://h:80").unwrap().authority(), "h:80");
        for (url, whole) in [
            ("localhost:8000", "http://localhost:8000"),
            ("gateway/tenant/", "http://gateway/tenant"),
            ("[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(Target::parse(url).unwrap().to_string(), whole);
        }
    }

    #[test]
    fn refuses_a_text_that_is_no_base_url() {
        for url in [
            "localhost:port",
            "/v1",
            "two words",
            "ftp://x",
            "",
            "http://",
            "http://h?q=1",
            "http://:8000",
            "http://:.0.",
            "http://h:99999",
            "http://h:x",
            "http://[]",
            "http://[]:80",
            "http://[localhost]",
            "http://[::1",
        ] {
            assert!(matches!(Target::parse(url), Err(TargetError::NotUrl { .. })), "{url}");
        }
        for url in ["http://me:pw@h", "https://me:pw@h", "me:pw@h", "ftp://me:pw@h/x"] {
            assert_eq!(Target::parse(url), Err(TargetError::Credentials), "{url}");
        }
    }

    #[test]
    fn knows_this_machine_by_its_name_alone() {
        for url in [
            "http://localhost:8000",
            "https://LocalHost",
            "http://127.0.0.1:8000/v1",
            "http://127.9.9.9",
            "http://[::1]:8000",
            "http://[::ffff:127.0.0.1]:8000",
        ] {
            assert!(Target::parse(url).unwrap().is_loopback(), "{url}");
        }
        for url in [
            "https://api.example.com",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "http://notlocalhost",
            "http://10.0.0.1:8000",
            "http://0.0.0.0:8000",
            "http://[::]:8000",
            "http://[2001:db8::1]",
            // A resolver may take these for this machine; the runner does not.
            "http://2130706433",
            "http://127.1",
            "http://0x7f000001",
            "http://localhost.",
        ] {
            let target = Target::parse(url).unwrap_or_else(|error| panic!("{error}"));
            assert!(!target.is_loopback(), "{url}");
        }
    }

    #[test]
    fn removes_secrets_from_texts_of_servers() {
        let secrets = Secrets {
            access: Access::Bearer("sk-12345".into()),
            variables: vec!["OPENAI_API_KEY".into()],
            headers: vec![("x-tenant".into(), "t0p".into())],
            fields: vec!["in-a-body".into()],
            ..Secrets::default()
        };
        let expected = "bad key [redacted] at t0p [redacted]";
        assert_eq!(secrets.redact("bad key sk-12345 at t0p in-a-body"), expected);
        assert_eq!(&*secrets.redact_bytes(b"key sk-12345"), b"key [redacted]");
        let header = |value: &str| ("x-gateway".to_owned(), value.to_owned());
        let headers = ["Bearer tok%2Fen-of-a", "session=cookie-b; theme=dark; id=\"cookie-c\""];
        let secrets = Secrets { headers: headers.map(header).to_vec(), ..Secrets::default() };
        assert_eq!(
            secrets.redact("no tok%2Fen-of-a, no tok/en-of-a, no cookie-b, no cookie-c, no dark"),
            "no [redacted], no [redacted], no [redacted], no [redacted], no dark"
        );
        assert_eq!(&*secrets.redact_bytes(b"\xff t0p"), b"\xff t0p");
        assert_eq!(format!("{secrets:?}"), "Secrets(…)");
    }
}
