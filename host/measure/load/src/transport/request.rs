//! A request as it goes out: made ready before it is due.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};

use model::connection::Version;

#[derive(Clone, Debug)]
pub enum Request {
    Http1 {
        /// Request line and header fields.
        head: Bytes,
        body: Bytes,
    },
    /// For HTTP/2, whose header fields are compressed in the connection's own way.
    Http2(Box<hyper::Request<Full<Bytes>>>),
}

/// An error: HTTP does not allow a part of a request, which the text names.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsendable(String);

impl Request {
    /// Makes a request of a path with its query, and an authority; sets the fields that frame it.
    pub fn new(
        version: Version,
        (scheme, authority): (&str, &str),
        method: &str,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Self, Unsendable> {
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| Unsendable(format!("`{}` is not a method", method.escape_debug())))?;
        let uri: Uri = format!("{scheme}://{authority}{path}")
            .parse()
            .map_err(|cause| Unsendable(format!("the path `{}`: {cause}", path.escape_debug())))?;
        if !body.is_empty() || method != Method::GET {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        Ok(match version {
            Version::Http1 => {
                Request::Http1 { head: head(&method, path, authority, &headers).into(), body }
            }
            Version::Http2 => {
                let mut request = hyper::Request::new(Full::new(body));
                *request.method_mut() = method;
                *request.uri_mut() = uri;
                *request.headers_mut() = headers;
                Request::Http2(Box::new(request))
            }
        })
    }

    pub fn has(&self, name: &HeaderName) -> bool {
        match self {
            Request::Http1 { head, .. } => {
                let mut lines = head.split(|byte| *byte == b'\n').skip(1);
                lines.any(|line| {
                    let field = line.strip_prefix(name.as_str().as_bytes());
                    field.is_some_and(|rest| rest.starts_with(b":"))
                })
            }
            Request::Http2(request) => request.headers().contains_key(name),
        }
    }

    /// The same with the header fields of this list that it lacks.
    pub fn with_missing(self, fields: &[(HeaderName, HeaderValue)]) -> Self {
        let missing: Vec<_> = fields.iter().filter(|(name, _)| !self.has(name)).cloned().collect();
        if missing.is_empty() { self } else { self.with(&missing) }
    }

    /// The same with new header fields, which depend on the time of sending.
    pub fn with(self, fields: &[(HeaderName, HeaderValue)]) -> Self {
        match self {
            Request::Http1 { head, body } => {
                let end = head.len().saturating_sub(b"\r\n".len());
                let more = |(name, value): &(HeaderName, HeaderValue)| {
                    name.as_str().len() + value.len() + b": \r\n".len()
                };
                let more: usize = fields.iter().map(more).sum();
                let mut longer = Vec::with_capacity(head.len() + more);
                longer.extend_from_slice(&head[..end]);
                for (name, value) in fields {
                    put(&mut longer, name, value.as_bytes());
                }
                longer.extend_from_slice(b"\r\n");
                Request::Http1 { head: longer.into(), body }
            }
            Request::Http2(mut request) => {
                request.headers_mut().extend(fields.iter().cloned());
                Request::Http2(request)
            }
        }
    }
}

/// Adds a header field in the form of HTTP/1.1.
fn put(head: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// The head in the form of HTTP/1.1.
fn head(method: &Method, path: &str, authority: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(method.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(path.as_bytes());
    head.extend_from_slice(b" HTTP/1.1\r\n");
    put(&mut head, &HOST, authority.as_bytes());
    for (name, value) in headers {
        put(&mut head, name, value.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::AUTHORIZATION;

    #[test]
    fn bytes_of_an_http_1_request() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer k"));
        let at = ("http", "h:81");
        let request =
            Request::new(Version::Http1, at, "POST", "/v1/x?y", headers, Bytes::from_static(b"{}"));
        let Ok(Request::Http1 { head, body }) = request else { panic!("it can be sent") };
        let expected = "POST /v1/x?y HTTP/1.1\r\nhost: h:81\r\nauthorization: Bearer k\r\ncontent-length: 2\r\n\r\n";
        assert_eq!(std::str::from_utf8(&head).unwrap(), expected);
        assert_eq!(&body[..], b"{}");
        let more = [(hyper::header::DATE, HeaderValue::from_static("now"))];
        let Request::Http1 { head, body } = (Request::Http1 { head, body }).with(&more) else {
            panic!("it is of the same version")
        };
        let expected = expected.replace("\r\n\r\n", "\r\ndate: now\r\n\r\n");
        assert_eq!(std::str::from_utf8(&head).unwrap(), expected);
        assert_eq!(&body[..], b"{}");
        let field = |name, value| (name, HeaderValue::from_static(value));
        let more = [field(hyper::header::DATE, "later"), field(hyper::header::FROM, "me")];
        let request = (Request::Http1 { head, body }).with_missing(&more);
        let Request::Http1 { head, .. } = request.with_missing(&more) else {
            panic!("it is of the same version")
        };
        let expected = expected.replace("\r\n\r\n", "\r\nfrom: me\r\n\r\n");
        assert_eq!(std::str::from_utf8(&head).unwrap(), expected);
        for (method, path) in [("GE T", "/"), ("GET", "/a b")] {
            let none = Bytes::new();
            let refused = Request::new(Version::Http1, at, method, path, HeaderMap::new(), none);
            assert!(refused.is_err(), "{method} {path}");
        }
    }
}
