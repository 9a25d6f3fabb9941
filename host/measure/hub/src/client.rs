//! Questions to the hub: over TLS with the system's certificates, with the token where it belongs,
//! asked again where the network failed.
//!
//! Redirects are followed here, hop by hop, because each decides anew who may see the token: only
//! the hub itself, never its servers for contents.
//!
//! Contents come into `TAG.incomplete` and get their name when their digest is right. `runner
//! fetch` is the only command that downloads anything; a run only looks into the cache.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;

use ureq::http::{HeaderMap, Method, Request, Response, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::error::HubError;
use crate::origin::{Origin, follow};
use crate::settings::{Settings, Token};

const REDIRECTS: usize = 10;
/// The time that opening a connection may take.
const CONNECT: Duration = Duration::from_secs(20);
/// The time that an answer's head may take, and each piece of its body.
const SILENCE: Duration = Duration::from_secs(60);
/// The least that must come of a body in [`WHILE`], in bytes, so that none lasts for ever.
const LEAST: u64 = 64 << 10;
/// The time that a slow server is waited for. Tests wait for nobody.
const WHILE: Nanos = Nanos(if cfg!(test) { 300_000_000 } else { 60_000_000_000 });
/// The time that the whole of a list may take.
const WHOLE: Nanos = Nanos(10 * WHILE.0);
/// The number of times that a question is asked before its failure is final.
const TRIES: u32 = 4;
const SHOWN: usize = 300;

pub struct Client {
    agent: ureq::Agent,
    pub(crate) endpoint: String,
    origin: Origin,
    token: Option<Token>,
}

/// An answer to a question, after redirects.
pub(crate) struct Answer {
    pub(crate) response: Response<ureq::Body>,
    /// The heads of the hub's own answers on the way, and of the last one if it was the hub's.
    pub(crate) of_hub: Vec<HeaderMap>,
    /// The host that gave the last answer.
    pub(crate) host: String,
    pub(crate) is_of_hub: bool,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.response.status().is_success()
    }

    /// The whole body, of at most `most` bytes. Errors: the connection's, more bytes, or slowness.
    pub(crate) fn whole(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let (clock, mut pace) = (Clock::start(), Pace::start());
        let mut body = self.response.body_mut().as_reader();
        let (mut whole, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let read = match body.read(&mut buffer) {
                Ok(0) => return Ok(whole),
                Ok(read) => read,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(cause),
            };
            whole.extend_from_slice(&buffer[..read]);
            if whole.len() as u64 > most {
                return Err(io::Error::other(format!("it has more than {most} bytes")));
            }
            pace.took(read as u64).map_err(io::Error::other)?;
            if clock.now() > WHOLE {
                let words = format!("it was not whole after {} s", WHOLE.as_secs_f64());
                return Err(io::Error::other(words));
            }
        }
    }

    /// A header field that the hub gave, in the last answer that has it.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut heads = self.of_hub.iter().rev();
        heads.find_map(|head| head.get(name)?.to_str().ok())
    }
}

/// Speed at which a body comes.
pub(crate) struct Pace {
    clock: Clock,
    since: Nanos,
    bytes: u64,
}

impl Pace {
    /// Begins to measure a body that comes now.
    pub(crate) fn start() -> Self {
        Pace { clock: Clock::start(), since: Nanos::ZERO, bytes: 0 }
    }

    /// Counts bytes that have come. Errors: a message, if they come too slowly.
    pub(crate) fn took(&mut self, bytes: u64) -> Result<(), String> {
        self.bytes += bytes;
        let now = self.clock.now();
        if now.since(self.since) < WHILE {
            return Ok(());
        }
        if self.bytes < LEAST {
            return Err(format!(
                "it sent {} bytes in {:.0} s, which is too slow to continue",
                self.bytes,
                now.since(self.since).as_secs_f64()
            ));
        }
        (self.since, self.bytes) = (now, 0);
        Ok(())
    }
}

struct Failure {
    error: HubError,
    /// True if it may work the next time.
    is_passing: bool,
}

impl Client {
    /// Prepares to ask. Fails if downloads are forbidden, or there are no certificates to trust.
    pub fn new(settings: &Settings) -> Result<Self, HubError> {
        if settings.offline {
            return Err(HubError::Offline);
        }
        let origin = Origin::of_text(&settings.endpoint)
            .ok_or_else(|| HubError::Setting("HF_ENDPOINT is not an address".to_owned()))?;
        let found = rustls_native_certs::load_native_certs();
        let trusted: Vec<Certificate<'static>> = (found.certs.iter())
            .map(|certificate| Certificate::from_der(certificate).to_owned())
            .collect();
        if trusted.is_empty() && origin.is_secure {
            return Err(HubError::Setting(
                "the system has no certificates to check the hub's with; install them (ca-certificates), or name a file of them with SSL_CERT_FILE".to_owned(),
            ));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::new_with_certs(&trusted))
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .user_agent(concat!("runner/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Client {
            agent: config.new_agent(),
            endpoint: settings.endpoint.clone(),
            origin,
            token: settings.token.clone(),
        })
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Asks for a path of the hub, again where that may help. `from` is the first byte that is
    /// wanted. Fails if no answer comes. Any status is an answer.
    pub(crate) fn ask(&self, method: &Method, path: &str, from: u64) -> Result<Answer, HubError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let passing = match self.once(method, path, from) {
                Ok(answer) if !is_passing(answer.status()) || tries == TRIES => return Ok(answer),
                Ok(answer) => wait_of(&answer),
                Err(failed) if !failed.is_passing || tries == TRIES => return Err(failed.error),
                Err(_) => None,
            };
            std::thread::sleep(passing.unwrap_or_default().max(pause(tries)));
        }
    }

    fn once(&self, method: &Method, path: &str, from: u64) -> Result<Answer, Failure> {
        let unexpected = |cause: &str| Failure {
            error: HubError::Unexpected {
                host: self.origin.host.clone(),
                what: path.to_owned(),
                cause: cause.to_owned(),
            },
            is_passing: false,
        };
        let address = format!("{}{path}", self.endpoint);
        let mut address: Uri = address.parse().map_err(|_| unexpected("its path is not one"))?;
        let mut of_hub = Vec::new();
        for _ in 0..=REDIRECTS {
            let origin =
                Origin::from_uri(&address).ok_or_else(|| unexpected("it is not an address"))?;
            let is_of_hub = origin == self.origin;
            let mut request = Request::builder()
                .method(method.clone())
                .uri(address.clone())
                // Ranges and lengths refer to the contents themselves.
                .header(header::ACCEPT_ENCODING, "identity");
            if let (Some(token), true) = (&self.token, is_of_hub) {
                request = request.header(header::AUTHORIZATION, token.header());
            }
            if from > 0 {
                request = request.header(header::RANGE, format!("bytes={from}-"));
            }
            let request = request.body(()).map_err(|cause| unexpected(&cause.to_string()))?;
            let answered = self.agent.run(request);
            let response = answered.map_err(|cause| failed(&origin.host, cause))?;
            if is_of_hub {
                of_hub.push(response.headers().clone());
            }
            let location = (response.status().is_redirection())
                .then(|| response.headers().get(header::LOCATION))
                .flatten();
            let Some(location) = location else {
                return Ok(Answer { response, of_hub, host: origin.host, is_of_hub });
            };
            let next = location
                .to_str()
                .ok()
                .and_then(|location| follow(&address, location))
                .and_then(|next| Some((Origin::from_uri(&next)?, next)));
            let (to, next) = next.ok_or_else(|| unexpected("it redirects to no address"))?;
            if origin.is_secure && !to.is_secure {
                return Err(unexpected("it redirects to an address without encryption"));
            }
            // The hub's statements about a file stand in its redirect; nobody else is asked about
            // it.
            let is_said = || of_hub.iter().any(|head| head.contains_key("x-linked-etag"));
            if method == Method::HEAD && to != self.origin && is_said() {
                return Ok(Answer {
                    response: Response::builder()
                        .status(200)
                        .body(ureq::Body::builder().data(Vec::new()))
                        .map_err(|cause| unexpected(&cause.to_string()))?,
                    of_hub,
                    host: origin.host,
                    is_of_hub,
                });
            }
            address = next;
        }
        Err(unexpected("it redirects without end"))
    }

    /// Returns the error text of the last answer, in brackets, or nothing.
    pub(crate) fn error_text(&self, answer: &Answer) -> String {
        let text = answer.field("x-error-message").unwrap_or_default();
        let mut text: String = text.chars().take(SHOWN).collect();
        if let Some(token) = &self.token {
            let secret = token.header();
            let secret = secret.trim_start_matches("Bearer ");
            text = text.replace(secret, "…");
        }
        if text.is_empty() { text } else { format!(": {text}") }
    }
}

/// The time to wait after this many failures in a row: none, 1 s, 2 s, 4 s, 8 s.
pub(crate) fn pause(failures: u32) -> Duration {
    // Tests wait for nobody.
    let second = Duration::from_millis(if cfg!(test) { 1 } else { 1_000 });
    match failures {
        0 | 1 => Duration::ZERO,
        more => second * (1 << (more - 2).min(3)),
    }
}

/// True if a status may be another one soon.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// The time that the other side wants to be left alone, at most half a minute.
fn wait_of(answer: &Answer) -> Option<Duration> {
    let value = answer.response.headers().get(header::RETRY_AFTER)?;
    let seconds: u64 = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(30)))
}

fn failed(host: &str, cause: ureq::Error) -> Failure {
    let (words, is_passing) = match cause {
        ureq::Error::Io(cause) => {
            let refused = cause.kind() == std::io::ErrorKind::ConnectionRefused;
            (cause.to_string(), !refused)
        }
        ureq::Error::HostNotFound => ("there is no such host".to_owned(), false),
        ureq::Error::Timeout(_) => ("it did not answer in time".to_owned(), true),
        ureq::Error::ConnectionFailed => ("no connection".to_owned(), true),
        ureq::Error::Protocol(cause) => (cause.to_string(), true),
        other => (other.to_string(), false),
    };
    Failure { error: HubError::Unreachable { host: host.to_owned(), cause: words }, is_passing }
}
