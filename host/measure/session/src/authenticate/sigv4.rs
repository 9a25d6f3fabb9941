//! AWS Signature Version 4 of a request's headers, as AWS documents it ("Create a signed AWS API
//! request", in the reference of IAM). Pure: the time is a parameter. Callers choose the headers to
//! sign and the key.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use jiff::Timestamp;
use ring::hmac::{self, HMAC_SHA256};
use sha2::{Digest, Sha256};

use model::access::Sigv4;
use model::clock::Date;
use model::{hex, percent_encoded};

/// The header with the time of signing.
pub(super) const DATE: HeaderName = HeaderName::from_static("x-amz-date");
/// The digest of its body.
pub(super) const CONTENT: HeaderName = HeaderName::from_static("x-amz-content-sha256");
/// The header with the token of a temporary key.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Headers that others on the way may change; the SDKs of AWS do not sign these either.
const UNSIGNED: [&str; 4] = ["authorization", "expect", "user-agent", "x-amzn-trace-id"];

/// True if a header is signed if a request has it.
pub(super) fn is_signed(name: &str) -> bool {
    !UNSIGNED.contains(&name)
}

/// A request's part in its signature: the canonical request, but for the date.
pub(super) struct Unsigned {
    with: Arc<Sigv4>,
    region: String,
    /// The texts before and after the date.
    before: String,
    after: String,
    /// The names of the headers that are signed, as they are listed.
    names: String,
}

impl Unsigned {
    /// Of a method and the path as it is sent, of headers by their names, and of the body's digest.
    pub(super) fn new<'h>(
        with: &Arc<Sigv4>,
        region: String,
        (method, target): (&str, &str),
        headers: impl IntoIterator<Item = (&'h str, Cow<'h, str>)>,
        digest: &str,
    ) -> Self {
        let mut values = BTreeMap::<String, String>::new();
        for (name, value) in headers {
            let value = single_spaced(&value);
            values
                .entry(name.to_ascii_lowercase())
                .and_modify(|values| {
                    values.push(',');
                    values.push_str(&value);
                })
                .or_insert(value);
        }
        // Its line comes between the two texts.
        values.insert(DATE.as_str().to_owned(), String::new());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut before =
            format!("{method}\n{}\n{}\n", path_of(path, &with.service), query_of(query));
        let mut after = String::new();
        for (name, value) in &values {
            let lines = if name.as_str() < DATE.as_str() { &mut before } else { &mut after };
            if name != DATE.as_str() {
                // Writing to a text cannot fail.
                let _ = writeln!(lines, "{name}:{value}");
            }
        }
        let names = values.into_keys().collect::<Vec<_>>().join(";");
        let _ = write!(after, "\n{names}\n{digest}");
        Unsigned { with: Arc::clone(with), region, before, after, names }
    }

    /// The headers that a signature of this moment adds.
    pub(super) fn sign(&self, at: Date) -> [(HeaderName, HeaderValue); 2] {
        // A clock beyond the years that have dates is refused by the server, in its own words.
        let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
        let date = at.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = date.split('T').next().unwrap_or_default();
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.with.service);
        let signed = self.string_to_sign(&date, &scope);
        let signature = hex(&self.derived_key(day, signed.as_bytes()));
        let authorization = format!(
            "{ALGORITHM} Credential={}/{scope}, SignedHeaders={}, Signature={signature}",
            self.with.id, self.names
        );
        // Both are visible ASCII: their parts were checked when they were read.
        let value = |text: &str| {
            let value = HeaderValue::try_from(text);
            value.unwrap_or_else(|_| HeaderValue::from_static(""))
        };
        let mut secret = value(&authorization);
        secret.set_sensitive(true);
        [(DATE, value(&date)), (AUTHORIZATION, secret)]
    }

    fn canonical(&self, date: &str) -> String {
        format!("{}{DATE}:{date}\n{}", self.before, self.after)
    }

    fn string_to_sign(&self, date: &str, scope: &str) -> String {
        let digest = hex(&Sha256::digest(self.canonical(date)));
        format!("{ALGORITHM}\n{date}\n{scope}\n{digest}")
    }

    /// The HMAC of a text by the key that is made of the secret for a day, a region and a service.
    fn derived_key(&self, day: &str, text: &[u8]) -> Vec<u8> {
        let first = format!("AWS4{}", self.with.secret).into_bytes();
        let steps = [
            day.as_bytes(),
            self.region.as_bytes(),
            self.with.service.as_bytes(),
            b"aws4_request",
            text,
        ];
        steps.into_iter().fold(first, |key, step| {
            let key = hmac::Key::new(HMAC_SHA256, &key);
            hmac::sign(&key, step).as_ref().to_vec()
        })
    }
}

/// A header's value without spaces around it, and with one wherever it has several.
fn single_spaced(value: &str) -> String {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    words.join(" ")
}

/// The path, without its detours and encoded once more than it is sent. S3 alone takes it as it is
/// sent, because `//` and `..` can be parts of the names of its objects.
fn path_of(path: &str, service: &str) -> String {
    if service == "s3" {
        return path.to_owned();
    }
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(encoded(segment.as_bytes())),
        }
    }
    let ends_open = path.len() > 1 && path.ends_with('/') && !segments.is_empty();
    let end = if ends_open { "/" } else { "" };
    format!("/{}{end}", segments.join("/"))
}

/// The query's parameters by their names and values, each encoded once.
fn query_of(query: &str) -> String {
    let mut parameters: Vec<(String, String)> = query
        .split('&')
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (encoded(&decoded(name)), encoded(&decoded(value)))
        })
        .collect();
    parameters.sort_unstable();
    let parameters: Vec<String> =
        parameters.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    parameters.join("&")
}

/// With `%XX` for every byte that is neither a letter, a digit, nor one of `-._~`.
fn encoded(bytes: &[u8]) -> String {
    percent_encoded(bytes, b"-._~")
}

/// The bytes that `%XX` and `+` stand for in a query; a `%` that begins no byte is itself.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        bytes.push(match (byte, tail) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = after;
                    high << 4 | low
                }
                _ => b'%',
            },
            _ => *byte,
        });
    }
    bytes
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests;
