//! Signatures by HMAC: what a backend may describe, and the same in the host's types.

use super::{Digest, Encoding, HOST_HEADERS, Hmac};
use model::access::hmac::{self, Template, UnknownPlaceholder};

/// The most header fields that a signature adds.
const HEADERS: usize = 16;
/// The most bytes of a template.
const TEMPLATE_BYTES: usize = 4 << 10;

impl Hmac {
    /// Returns the signature that it describes, with a key's parts.
    ///
    /// # Errors
    /// If a placeholder is not known.
    pub fn with_key(
        &self,
        (id, secret): (String, String),
    ) -> Result<hmac::Hmac, UnknownPlaceholder> {
        let headers = self.headers.iter();
        let headers =
            headers.map(|(name, value)| Ok((name.to_ascii_lowercase(), Template::header(value)?)));
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
            message: Template::message(&self.message)?,
            headers: headers.collect::<Result<_, _>>()?,
            id,
            secret,
        })
    }
}

/// Says what is wrong with a signature.
pub(super) fn fault(hmac: &Hmac) -> Option<String> {
    if hmac.headers.is_empty() || hmac.headers.len() > HEADERS {
        let fields = hmac.headers.len();
        return Some(format!("its signature adds {fields} header fields; expected 1 to {HEADERS}"));
    }
    if let Err(error) = Template::message(&hmac.message) {
        return Some(format!("the message of its signature: {error}"));
    }
    let mut names = Vec::new();
    for (name, value) in &hmac.headers {
        let letters = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        let lower = name.to_ascii_lowercase();
        let is_hosts = lower != "authorization" && HOST_HEADERS.contains(&&*lower);
        let is_again = names.contains(&lower);
        let shown = name.escape_debug();
        if name.is_empty() || !name.bytes().all(letters) || is_hosts || is_again {
            return Some(format!("it names `{shown}` as a header of its signature"));
        }
        if let Err(error) = Template::header(value) {
            return Some(format!("the header `{shown}` of its signature: {error}"));
        }
        if !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return Some(format!(
                "the header `{shown}` of its signature contains characters that are not allowed in a header"
            ));
        }
        names.push(lower);
    }
    let values = hmac.headers.iter().map(|(_, value)| value);
    let is_long = values.chain([&hmac.message]).any(|text| text.len() > TEMPLATE_BYTES);
    is_long.then(|| format!("a text of its signature has more than {TEMPLATE_BYTES} bytes"))
}
