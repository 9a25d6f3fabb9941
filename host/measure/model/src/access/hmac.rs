//! Signatures by HMAC as a backend describes them: texts with placeholders, and a key in two parts.

use std::fmt;

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
    /// The key's public part; empty if it has none.
    pub id: String,
    /// The key: it signs, and is never sent.
    pub secret: String,
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

/// Placeholders of the text that is signed.
const OF_MESSAGE: [(&str, Placeholder); 8] = [
    ("method", Placeholder::Method),
    ("path", Placeholder::Path),
    ("time", Placeholder::Time),
    ("time-ms", Placeholder::TimeMs),
    ("date", Placeholder::Date),
    ("body", Placeholder::Body),
    ("body-digest", Placeholder::BodyDigest),
    ("id", Placeholder::Id),
];
/// Placeholders of header fields.
const OF_HEADERS: [(&str, Placeholder); 8] = [
    ("method", Placeholder::Method),
    ("path", Placeholder::Path),
    ("time", Placeholder::Time),
    ("time-ms", Placeholder::TimeMs),
    ("date", Placeholder::Date),
    ("body-digest", Placeholder::BodyDigest),
    ("id", Placeholder::Id),
    ("signature", Placeholder::Signature),
];

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text that stands for itself.
    Text(String),
    /// A placeholder.
    Value(Placeholder),
}

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

/// An error: a text in braces is no placeholder.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no placeholder; expected {expected}")]
pub struct UnknownPlaceholder {
    found: String,
    expected: String,
}

impl Template {
    /// Reads a text that is signed.
    ///
    /// # Errors
    /// If a text in braces is no placeholder of it.
    pub fn message(text: &str) -> Result<Template, UnknownPlaceholder> {
        Template::parse(text, &OF_MESSAGE)
    }

    /// Reads the value of a header field.
    ///
    /// # Errors
    /// If a text in braces is no placeholder of it.
    pub fn header(text: &str) -> Result<Template, UnknownPlaceholder> {
        Template::parse(text, &OF_HEADERS)
    }

    fn parse(text: &str, known: &[(&str, Placeholder)]) -> Result<Template, UnknownPlaceholder> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            let (name, after, is_closed) = match after.split_once('}') {
                Some((name, after)) => (name, after, true),
                None => (after, "", false),
            };
            let found = known.iter().find(|(word, _)| is_closed && *word == name);
            let Some((_, placeholder)) = found else {
                let all: Vec<String> =
                    known.iter().map(|(word, _)| format!("`{{{word}}}`")).collect();
                let shown: String = name.chars().take(64).collect();
                return Err(UnknownPlaceholder {
                    found: format!(
                        "{{{}{}",
                        shown.escape_debug(),
                        if is_closed { "}" } else { "" }
                    ),
                    expected: all.join(", "),
                });
            };
            pieces.push(Piece::Value(*placeholder));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Template(pieces))
    }

    /// Returns its parts, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// True if it has this placeholder.
    pub fn has(&self, placeholder: Placeholder) -> bool {
        self.0.contains(&Piece::Value(placeholder))
    }
}

impl Hmac {
    /// Splits a key of the form `SECRET` or `ID:SECRET` in two; the first is empty if there is none.
    /// Absent if a part cannot be sent, or has no character.
    pub fn parse_key(key: &str) -> Option<(String, String)> {
        let (id, secret) = match key.split_once(':') {
            Some((id, secret)) => (id, secret),
            None => ("", key),
        };
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_graphic());
        let is_key = is_part(secret) && (is_part(id) || !key.contains(':'));
        is_key.then(|| (id.to_owned(), secret.to_owned()))
    }

    /// True if a text of it has this placeholder.
    pub fn has(&self, placeholder: Placeholder) -> bool {
        let headers = self.headers.iter().map(|(_, value)| value);
        headers.chain([&self.message]).any(|template| template.has(placeholder))
    }
}

impl fmt::Debug for Hmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hmac(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_that_is_not_known_is_named() {
        let pieces = Template::message("{method} a{time-ms}").unwrap();
        let expected = [
            Piece::Value(Placeholder::Method),
            Piece::Text(" a".to_owned()),
            Piece::Value(Placeholder::TimeMs),
        ];
        assert_eq!(pieces.pieces(), expected);
        for (wrong, named) in [
            (
                Template::message("{now}"),
                "`{now}` is no placeholder; expected `{method}`, `{path}`",
            ),
            (Template::message("a{signature}"), "`{signature}` is no placeholder"),
            (Template::message("{time"), "`{time` is no placeholder"),
            (Template::header("{body}"), "`{body}` is no placeholder"),
        ] {
            let error = wrong.unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_key_is_a_secret_or_has_an_id_before_it() {
        let parts = |id: &str, secret: &str| Some((id.to_owned(), secret.to_owned()));
        assert_eq!(Hmac::parse_key("s3cret"), parts("", "s3cret"));
        assert_eq!(Hmac::parse_key("me:s3:cret"), parts("me", "s3:cret"));
        for wrong in ["", ":s", "me:", "a b", "s\n"] {
            assert_eq!(Hmac::parse_key(wrong), None, "{wrong:?}");
        }
    }
}
