//! Authenticated requests: the key as a header, or a signature. Turns the backend's request into a
//! request of HTTP. `resolve` finds the key.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use sha2::{Digest, Sha256};

use load::transport::Request;
use model::access::token::Token;
use model::access::{Access, region_of};
use model::clock::Date;
use model::connection::Version;
use model::hex;
use model::identity::Field;
use model::target::{Secrets, Target};
use plugins::backend;

mod hmac;
mod sigv4;

use sigv4::{CONTENT, DATE, TOKEN};

/// A request that can be sent, after its signature or token if the server wants one.
///
/// A signature holds for five minutes, and requests are written ahead of need. So the time-free
/// part is computed when the request is written, above all the digest of the body. The rest takes
/// about three microseconds when the request goes to a worker.
pub struct Outgoing {
    /// The request as it was written, which may lack its signature.
    pub(crate) request: Request,
    unsigned: Option<Unsigned>,
}

enum Unsigned {
    Sigv4(Box<sigv4::Unsigned>),
    Hmac(Box<hmac::Unsigned>),
    /// By the token of a target at that time.
    Token(Arc<Token>, String),
}

impl Outgoing {
    /// The request as it is sent now; the date is read only if it is part of it.
    pub fn ready(self, date: impl FnOnce() -> Date) -> Request {
        match self.unsigned {
            None => self.request,
            Some(Unsigned::Sigv4(unsigned)) => self.request.with(&unsigned.sign(date())),
            Some(Unsigned::Hmac(unsigned)) => self.request.with(&unsigned.sign(date())),
            Some(Unsigned::Token(with, target)) => match with.issued.get(&target) {
                Some(issued) => self.request.with(&issued.fields),
                None => self.request,
            },
        }
    }
}

/// Adds the host's own headers, the user's, and each id whose name no header has. Ids are not
/// signed, because a proxy may write others. Fails if HTTP does not allow a part of it.
pub(crate) fn http_request(
    target: &Target,
    version: Version,
    (secrets, ids): (&Secrets, &[Field]),
    path: &str,
    encoded: backend::Request,
) -> Result<Outgoing, String> {
    let named = |name: &str| {
        let named = HeaderName::try_from(name);
        named.map_err(|_| format!("`{}` is not a header name", name.escape_debug()))
    };
    let mut headers = HeaderMap::new();
    let given = encoded.headers.iter().chain(&secrets.headers);
    for (name, value) in given {
        let name = named(name)?;
        let value = HeaderValue::try_from(value.as_str())
            .map_err(|_| format!("the value of the header `{name}` has invalid characters"))?;
        headers.insert(name, value);
    }
    if is_grpc(&headers) {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    let authority = target.authority();
    let body = Bytes::from(encoded.body);
    let mut unsigned = None;
    match &secrets.access {
        Access::Open => {}
        Access::Bearer(key) => {
            headers.insert(AUTHORIZATION, secret(&format!("Bearer {key}"))?);
        }
        Access::Header { name, key } => {
            headers.insert(named(name)?, secret(key)?);
        }
        Access::Sigv4(with) => {
            let region = region_of(target.host()).or_else(|| with.region.clone());
            let region = region.ok_or_else(|| format!("the region of {target} is not known"))?;
            let digest = hex(&Sha256::digest(&body));
            // The signer's own: whatever a backend or a user wrote there would contradict it.
            headers.remove(DATE);
            headers.remove(TOKEN);
            // No secret, but of this request alone: nothing for the tables of HTTP/2 either.
            headers.insert(CONTENT, secret(&digest)?);
            if let Some(token) = &with.session_token {
                headers.insert(TOKEN, secret(token)?);
            }
            let signed = headers
                .iter()
                .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())))
                .filter(|(name, _)| sigv4::is_signed(name))
                .chain([("host", authority.as_str().into())]);
            let what = (&*encoded.method, path);
            let signing = sigv4::Unsigned::new(with, region, what, signed, &digest);
            unsigned = Some(Unsigned::Sigv4(Box::new(signing)));
        }
        Access::Hmac(with) => {
            // The signer's own: whatever a backend or a user wrote there would contradict it.
            for (name, _) in &with.headers {
                headers.remove(name);
            }
            let signing = hmac::Unsigned::new(with, (&*encoded.method, path), &body);
            unsigned = Some(Unsigned::Hmac(Box::new(signing)));
        }
        Access::Token(with) => {
            for (name, _) in &with.headers {
                headers.remove(name);
            }
            unsigned = Some(Unsigned::Token(Arc::clone(with), target.to_string()));
        }
    }
    for (name, value) in ids {
        headers.entry(name).or_insert_with(|| value.clone());
    }
    let at = (target.scheme(), &*authority);
    let request = Request::new(version, at, &encoded.method, path, headers, body)
        .map_err(|unsendable| unsendable.to_string())?;
    Ok(Outgoing { request, unsigned })
}

/// True for a call of gRPC, whose servers want clients to state that they read trailers.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The value of a header that nobody but the server may see: HTTP/2 does not keep it in its tables.
fn secret(value: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| "the API key has characters that a header cannot contain".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
