//! Signatures by HMAC: a backend's description of one, checked and in the host's types.

use super::request::HOST_HEADERS;
use crate::bindings::backend_world::exports::runner::plugin::backend::{Digest, Encoding, Hmac};
use model::access::template::UnknownPlaceholder;
use model::access::{Key, hmac};

/// The most header fields that a signature adds.
pub(super) const HEADERS: usize = 16;
pub(super) const TEMPLATE_BYTES: usize = 4 << 10;

impl Hmac {
    /// Returns the signature that it describes, with a key.
    pub fn with_key(&self, key: Key) -> Result<hmac::Hmac, UnknownPlaceholder> {
        let headers = self.headers.iter();
        let headers =
            headers.map(|(name, value)| Ok((name.to_ascii_lowercase(), hmac::header(value)?)));
        Ok(hmac::Hmac {
            digest: match self.digest {
                Digest::Sha1 => hmac::Digest::Sha1,
                Digest::Sha256 => hmac::Digest::Sha256,
                Digest::Sha512 => hmac::Digest::Sha512,
            },
            encoding: match self.encoding {
                Encoding::Hex => hmac::Encoding::Hex,
                Encoding::Base64 => hmac::Encoding::Base64,
            },
            message: hmac::message(&self.message)?,
            headers: headers.collect::<Result<_, _>>()?,
            key,
        })
    }
}

pub(super) fn fault(described: &Hmac) -> Option<String> {
    if described.headers.is_empty() || described.headers.len() > HEADERS {
        let fields = described.headers.len();
        return Some(format!("its signature adds {fields} header fields; expected 1 to {HEADERS}"));
    }
    if let Err(error) = hmac::message(&described.message) {
        return Some(format!("the message of its signature: {error}"));
    }
    if let Some(fault) = fault_of_names("signature", &described.headers, hmac::header) {
        return Some(fault);
    }
    let values = described.headers.iter().map(|(_, value)| value);
    let is_long = values.chain([&described.message]).any(|text| text.len() > TEMPLATE_BYTES);
    is_long.then(|| format!("a text of its signature has more than {TEMPLATE_BYTES} bytes"))
}

/// Describes the fault of header fields that the host adds for this purpose.
pub(super) fn fault_of_names<T>(
    of: &str,
    headers: &[(String, String)],
    read: impl Fn(&str) -> Result<T, UnknownPlaceholder>,
) -> Option<String> {
    let mut names = Vec::new();
    for (name, value) in headers {
        let letters = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        let lower = name.to_ascii_lowercase();
        let is_hosts = lower != "authorization" && HOST_HEADERS.contains(&&*lower);
        let is_again = names.contains(&lower);
        let shown = name.escape_debug();
        if name.is_empty() || !name.bytes().all(letters) || is_hosts || is_again {
            return Some(format!("it names `{shown}` as a header of its {of}"));
        }
        if let Err(error) = read(value) {
            return Some(format!("the header `{shown}` of its {of}: {error}"));
        }
        if !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return Some(format!(
                "the header `{shown}` of its {of} contains characters that are not allowed in a header"
            ));
        }
        names.push(lower);
    }
    None
}
