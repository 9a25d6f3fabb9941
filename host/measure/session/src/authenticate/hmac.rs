//! A signature by HMAC of a request, as its backend describes it. Pure: the time is given. The
//! message before the first placeholder of the time is hashed when the request is written.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use jiff::Timestamp;
use ring::{digest, hmac};

use model::access::hmac::{Digest, Encoding, Hmac, Placeholder, Template};
use model::access::template::Piece;
use model::clock::Date;
use model::hex;

/// A request's part in its signature.
pub(super) struct Unsigned {
    with: Arc<Hmac>,
    method: String,
    path: String,
    body: Bytes,
    /// The body's digest, if a text has it.
    body_digest: String,
    /// The message so far.
    begun: hmac::Context,
    /// The pieces of the message that are in it.
    pieces: usize,
}

/// The moment of a signature, in each form.
struct Moment {
    time: String,
    time_ms: String,
    date: String,
}

impl Unsigned {
    pub(super) fn new(with: &Arc<Hmac>, (method, path): (&str, &str), body: &Bytes) -> Self {
        let (sign, hash) = match with.digest {
            Digest::Sha1 => {
                (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &digest::SHA1_FOR_LEGACY_USE_ONLY)
            }
            Digest::Sha256 => (hmac::HMAC_SHA256, &digest::SHA256),
            Digest::Sha512 => (hmac::HMAC_SHA512, &digest::SHA512),
        };
        let body_digest = if with.has(Placeholder::BodyDigest) {
            hex(digest::digest(hash, body).as_ref())
        } else {
            String::new()
        };
        let key = hmac::Key::new(sign, with.key.secret.as_bytes());
        let mut unsigned = Unsigned {
            with: Arc::clone(with),
            method: method.to_owned(),
            path: path.to_owned(),
            body: body.clone(),
            body_digest,
            begun: hmac::Context::with_key(&key),
            pieces: 0,
        };
        let of_time = [Placeholder::Time, Placeholder::TimeMs, Placeholder::Date];
        let pieces = with.message.pieces().iter();
        let steady = pieces.take_while(|piece| match piece {
            Piece::Text(_) => true,
            Piece::Value(placeholder) => !of_time.contains(placeholder),
        });
        let mut begun = unsigned.begun.clone();
        for piece in steady {
            begun.update(unsigned.bytes(piece, None, ""));
            unsigned.pieces += 1;
        }
        unsigned.begun = begun;
        unsigned
    }

    /// The header fields that a signature of this moment adds.
    pub(super) fn sign(&self, at: Date) -> Vec<(HeaderName, HeaderValue)> {
        // A clock beyond the years that have dates is refused by the server, in its own words.
        let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
        let moment = Moment {
            time: at.as_second().to_string(),
            time_ms: at.as_millisecond().to_string(),
            date: at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
        };
        let mut signing = self.begun.clone();
        for piece in &self.with.message.pieces()[self.pieces..] {
            signing.update(self.bytes(piece, Some(&moment), ""));
        }
        let signature = signing.sign();
        let signature = match self.with.encoding {
            Encoding::Hex => hex(signature.as_ref()),
            Encoding::Base64 => BASE64_STANDARD.encode(signature.as_ref()),
        };
        let fields = self.with.headers.iter().filter_map(|(name, value)| {
            let name = HeaderName::try_from(name.as_str()).ok()?;
            // The texts and the key's parts were checked when they were read.
            let mut value = HeaderValue::try_from(self.text(value, &moment, &signature)).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        fields.collect()
    }

    fn text(&self, template: &Template, moment: &Moment, signature: &str) -> Vec<u8> {
        let pieces = template.pieces().iter();
        pieces.flat_map(|piece| self.bytes(piece, Some(moment), signature)).copied().collect()
    }

    fn bytes<'s>(
        &'s self,
        piece: &'s Piece<Placeholder>,
        moment: Option<&'s Moment>,
        signature: &'s str,
    ) -> &'s [u8] {
        let time = |of: fn(&Moment) -> &str| moment.map_or("", of).as_bytes();
        match piece {
            Piece::Text(text) => text.as_bytes(),
            Piece::Value(Placeholder::Method) => self.method.as_bytes(),
            Piece::Value(Placeholder::Path) => self.path.as_bytes(),
            Piece::Value(Placeholder::Time) => time(|moment| &moment.time),
            Piece::Value(Placeholder::TimeMs) => time(|moment| &moment.time_ms),
            Piece::Value(Placeholder::Date) => time(|moment| &moment.date),
            Piece::Value(Placeholder::Body) => &self.body,
            Piece::Value(Placeholder::BodyDigest) => self.body_digest.as_bytes(),
            Piece::Value(Placeholder::Id) => self.with.key.id.as_bytes(),
            Piece::Value(Placeholder::Signature) => signature.as_bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
