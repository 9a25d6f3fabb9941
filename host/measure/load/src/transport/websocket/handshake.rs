//! The handshake to a WebSocket (RFC 6455, 4.1): the request's fields, and the reply's check.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::HeaderMap;
use hyper::StatusCode;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use ring::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::transport::reply::Head;
use crate::transport::request::Request;

/// Appended to the client's key before the server hashes it (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

pub struct Handshake {
    /// The value that the server must derive from the client's key.
    accept: String,
    offers_protocols: bool,
}

impl Handshake {
    /// Adds the fields of a handshake to a request.
    pub fn begin(request: Request) -> Result<(Request, Self), String> {
        let mut key = [0; 16];
        let drawn = SystemRandom::new().fill(&mut key);
        drawn.map_err(|_| "the system gives no random numbers for a handshake".to_owned())?;
        let key = BASE64_STANDARD.encode(key);
        let handshake = Handshake {
            accept: accept(&key),
            offers_protocols: request.has(&SEC_WEBSOCKET_PROTOCOL),
        };
        let key = HeaderValue::try_from(key).expect("it is of letters and digits");
        let fields: [(HeaderName, HeaderValue); 4] = [
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
            (SEC_WEBSOCKET_KEY, key),
        ];
        Ok((request.with(&fields), handshake))
    }

    /// Checks that the server agrees.
    ///
    /// # Errors
    /// If the reply does not agree; a message for people. A reply with an error status is not
    /// checked further.
    pub fn check(&self, head: &Head) -> Result<(), String> {
        let Head { status, headers } = head;
        let says = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
        if *status != StatusCode::SWITCHING_PROTOCOLS.as_u16() {
            return Err(format!(
                "the server answered HTTP {status} and did not open a WebSocket (HTTP 101); is this the WebSocket path?"
            ));
        }
        let has = |name: HeaderName| headers.contains_key(name);
        let is_switched =
            names(headers, &UPGRADE, "websocket") && names(headers, &CONNECTION, "upgrade");
        let refused = if !is_switched {
            "the server switched to another protocol than a WebSocket (HTTP 101 without `upgrade: websocket` and `connection: upgrade`)"
        } else if says(&SEC_WEBSOCKET_ACCEPT) != Some(self.accept.as_bytes()) {
            "the server's `sec-websocket-accept` does not belong to this client's key; is there a proxy in between that answers by itself?"
        } else if has(SEC_WEBSOCKET_EXTENSIONS) {
            "the server uses extensions of WebSockets (`sec-websocket-extensions`), and none were offered"
        } else if has(SEC_WEBSOCKET_PROTOCOL) && !self.offers_protocols {
            "the server chose a subprotocol (`sec-websocket-protocol`), and none were offered"
        } else {
            return Ok(());
        };
        Err(refused.to_owned())
    }
}

/// Derives the value from a key by which a server shows that it speaks WebSocket.
fn accept(key: &str) -> String {
    let mut hash = digest::Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(GUID);
    BASE64_STANDARD.encode(hash.finish())
}

/// True if the field of this name lists this word.
fn names(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|listed| listed.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::connection::Version;

    fn request(headers: HeaderMap) -> Request {
        let at = ("http", "engine");
        Request::new(Version::Http1, at, "GET", "/ws", headers, Bytes::new()).unwrap()
    }

    /// The fields of a reply that agrees.
    fn agreeing(handshake: &Handshake) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::try_from(&handshake.accept).unwrap());
        headers
    }

    /// The example of RFC 6455, 1.3.
    #[test]
    fn accept_key_equals_the_rfc_example() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn handshakes_have_fresh_keys() {
        let sent = || match Handshake::begin(request(HeaderMap::new())).unwrap().0 {
            Request::Http1 { head, .. } => String::from_utf8(head.to_vec()).unwrap(),
            Request::Http2(_) => panic!("it is of HTTP/1.1"),
        };
        let first = sent();
        let fields = "GET /ws HTTP/1.1\r\nhost: engine\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ";
        let key = first.strip_prefix(fields).unwrap().trim_end();
        assert_eq!(BASE64_STANDARD.decode(key).unwrap().len(), 16);
        assert_ne!(first, sent());
    }

    #[test]
    fn mismatched_handshake_reply_is_refused() {
        let (_, handshake) = Handshake::begin(request(HeaderMap::new())).unwrap();
        let check = |status, headers| handshake.check(&Head { status, headers });
        assert_eq!(check(101, agreeing(&handshake)), Ok(()));
        assert!(check(200, agreeing(&handshake)).unwrap_err().contains("HTTP 200"));
        for (name, value, what) in [
            (UPGRADE, Some("h2c"), "another protocol"),
            (CONNECTION, Some("close"), "another protocol"),
            (SEC_WEBSOCKET_ACCEPT, None, "does not belong"),
            (SEC_WEBSOCKET_ACCEPT, Some("AAAA"), "does not belong"),
            (SEC_WEBSOCKET_EXTENSIONS, Some("permessage-deflate"), "extensions"),
            (SEC_WEBSOCKET_PROTOCOL, Some("realtime"), "subprotocol"),
        ] {
            let mut headers = agreeing(&handshake);
            match value {
                Some(value) => headers.insert(name.clone(), HeaderValue::from_static(value)),
                None => headers.remove(&name),
            };
            let refused = check(101, headers).unwrap_err();
            assert!(refused.contains(what), "{name}: {refused}");
        }
        let protocol = || [(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("realtime"))];
        let (_, offering) = Handshake::begin(request(protocol().into_iter().collect())).unwrap();
        let mut headers = agreeing(&offering);
        headers.extend(protocol());
        assert_eq!(offering.check(&Head { status: 101, headers }), Ok(()));
    }
}
