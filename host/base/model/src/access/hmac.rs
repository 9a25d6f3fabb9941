//! Signatures by HMAC as a backend describes them: texts with placeholders, and a key in two parts.

use super::Key;
use super::template::{self, UnknownPlaceholder};

/// The needs of a signature by HMAC beside the request and the time.
#[derive(Clone, PartialEq, Eq)]
pub struct Hmac {
    /// The digest.
    pub digest: Digest,
    /// The way in which the signature is written.
    pub encoding: Encoding,
    /// The text that is signed.
    pub message: Template,
    /// Header fields to add.
    pub headers: Vec<(String, Template)>,
    /// The key: its secret signs, and is never sent.
    pub key: Key,
}

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// The way in which a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Hexadecimal, in lower case.
    Hex,
    /// Base64 with padding.
    Base64,
}

/// A placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The request's method.
    Method,
    /// Its path and query, as sent.
    Path,
    /// The Unix time in seconds.
    Time,
    /// The Unix time in milliseconds.
    TimeMs,
    /// The date, as HTTP writes it.
    Date,
    /// The body.
    Body,
    /// The body's digest, in hexadecimal.
    BodyDigest,
    /// The key's public part.
    Id,
    /// The signature.
    Signature,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Both,
    Message,
    Header,
}

const PLACEHOLDERS: [(&str, Placeholder, Place); 9] = [
    ("method", Placeholder::Method, Place::Both),
    ("path", Placeholder::Path, Place::Both),
    ("time", Placeholder::Time, Place::Both),
    ("time-ms", Placeholder::TimeMs, Place::Both),
    ("date", Placeholder::Date, Place::Both),
    ("body", Placeholder::Body, Place::Message),
    ("body-digest", Placeholder::BodyDigest, Place::Both),
    ("id", Placeholder::Id, Place::Both),
    ("signature", Placeholder::Signature, Place::Header),
];

/// A text of a signature.
pub type Template = template::Template<Placeholder>;

/// Reads the text that is signed. Fails if a text in braces is no placeholder of it.
pub fn message(text: &str) -> Result<Template, UnknownPlaceholder> {
    parse(text, Place::Message)
}

/// Reads the value of a header field. Fails if a text in braces is no placeholder of it.
pub fn header(text: &str) -> Result<Template, UnknownPlaceholder> {
    parse(text, Place::Header)
}

fn parse(text: &str, place: Place) -> Result<Template, UnknownPlaceholder> {
    let known = PLACEHOLDERS.iter().filter(|(_, _, at)| [Place::Both, place].contains(at));
    let known: Vec<_> = known.map(|(name, placeholder, _)| (*name, *placeholder)).collect();
    Template::parse(text, &known)
}

impl Hmac {
    /// True if a text of it has this placeholder.
    pub fn has(&self, placeholder: Placeholder) -> bool {
        let headers = self.headers.iter().map(|(_, value)| value);
        headers.chain([&self.message]).any(|template| template.has(placeholder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::template::Piece;

    #[test]
    fn errors_name_an_unknown_placeholder() {
        let pieces = message("{method} a{time-ms}").unwrap();
        let expected = [
            Piece::Value(Placeholder::Method),
            Piece::Text(" a".to_owned()),
            Piece::Value(Placeholder::TimeMs),
        ];
        assert_eq!(pieces.pieces(), expected);
        for (wrong, named) in [
            (message("{now}"), "`{now}` is no placeholder; expected `{method}`, `{path}`"),
            (message("a{signature}"), "`{signature}` is no placeholder"),
            (message("{time"), "`{time` is no placeholder"),
            (header("{body}"), "`{body}` is no placeholder"),
        ] {
            let error = wrong.unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
