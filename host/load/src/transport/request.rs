//! A request as it goes out: made ready before it is due.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};

use model::connection::Version;

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub enum Request {
    /// The bytes of HTTP/1.1.
    Http1 {
        /// Request line and header fields.
        head: Bytes,
        /// The body.
        body: Bytes,
    },
    /// For HTTP/2, whose header fields are compressed in the connection's own way.
    Http2(Box<hyper::Request<Full<Bytes>>>),
}

/// What HTTP does not allow in a request, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsendable(String);

impl Request {
    /// Makes a request ready. `path` is the path and query at the server, `authority` its host and
    /// port. The fields that frame a request are set here.
    ///
    /// # Errors
    /// If the method or the path cannot be sent.
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
            Version::Http1 => Request::Http1 {
                head: head(&method, path, authority, &headers).into(),
                body,
            },
            Version::Http2 => {
                let mut request = hyper::Request::new(Full::new(body));
                *request.method_mut() = method;
                *request.uri_mut() = uri;
                *request.headers_mut() = headers;
                Request::Http2(Box::new(request))
            }
        })
    }
}

/// The head in the form of HTTP/1.1.
fn head(method: &Method, path: &str, authority: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(method.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(path.as_bytes());
    head.extend_from_slice(b" HTTP/1.1\r\n");
    let mut field = |name: &HeaderName, value: &[u8]| {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    };
    field(&HOST, authority.as_bytes());
    for (name, value) in headers {
        field(name, value.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::AUTHORIZATION;

    #[test]
    fn the_bytes_of_http_1() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer k"));
        let at = ("http", "h:81");
        let request = Request::new(
            Version::Http1,
            at,
            "POST",
            "/v1/x?y",
            headers,
            Bytes::from_static(b"{}"),
        );
        let Ok(Request::Http1 { head, body }) = request else {
            panic!("it can be sent")
        };
        let expected = "POST /v1/x?y HTTP/1.1\r\nhost: h:81\r\nauthorization: Bearer k\r\ncontent-length: 2\r\n\r\n";
        assert_eq!(std::str::from_utf8(&head).unwrap(), expected);
        assert_eq!(&body[..], b"{}");
        for (method, path) in [("GE T", "/"), ("GET", "/a b")] {
            let none = Bytes::new();
            let refused = Request::new(Version::Http1, at, method, path, HeaderMap::new(), none);
            assert!(refused.is_err(), "{method} {path}");
        }
    }
}
