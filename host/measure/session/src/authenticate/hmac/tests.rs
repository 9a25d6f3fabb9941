//! Signatures against constants that Python's `hmac`, `hashlib` and `email.utils` gave.

use std::time::Duration;

use model::access::{Key, hmac};

use super::*;

/// 2015-08-30T12:36:00.007Z.
fn at() -> Date {
    std::time::UNIX_EPOCH + Duration::from_millis(1_440_938_160_007)
}

const ALL: &str = "{method}\n{path}\n{time}\n{time-ms}\n{date}\n{id}\n{body-digest}\n{body}";

fn with(digest: Digest, encoding: Encoding, message: &str, value: &str) -> Arc<Hmac> {
    Arc::new(Hmac {
        digest,
        encoding,
        message: hmac::message(message).unwrap(),
        headers: vec![("x-signature".to_owned(), hmac::header(value).unwrap())],
        key: Key { id: "me".to_owned(), secret: "s3cret".to_owned() },
    })
}

fn signature(with: &Arc<Hmac>) -> String {
    let body = Bytes::from_static(b"{\"a\": 1}");
    let unsigned = Unsigned::new(with, ("POST", "/v1/x?y=z"), &body);
    let fields = unsigned.sign(at());
    assert_eq!(fields, unsigned.sign(at()), "the same moment gives the same bytes");
    let [(name, value)] = &*fields else { panic!("one header") };
    assert_eq!(name, "x-signature");
    assert!(value.is_sensitive());
    value.to_str().unwrap().to_owned()
}

#[test]
fn signatures_equal_pythons() {
    for (digest, encoding, expected) in [
        (Digest::Sha1, Encoding::Hex, "3b1589f3b4329ca3eb0e7603d3696f8ca8443ca5"),
        (Digest::Sha1, Encoding::Base64, "OxWJ87QynKPrDnYD02lvjKhEPKU="),
        (
            Digest::Sha256,
            Encoding::Hex,
            "9c9092b257d3673f22585774d28f246dbc9c86abc47627ed91edf3f52f209f3a",
        ),
        (Digest::Sha256, Encoding::Base64, "nJCSslfTZz8iWFd00o8kbbychqvEdiftke3z9S8gnzo="),
        (
            Digest::Sha512,
            Encoding::Base64,
            "uadRSw/U+PxYSIZBL8yO/+J88rAk+pIX2VqQsMEUWIeQVo3FyIMAX7Wc+nRMZdPClODkDLgx7lkM2ndGDiD+0g==",
        ),
    ] {
        assert_eq!(signature(&with(digest, encoding, ALL, "{signature}")), expected, "{digest:?}");
    }
    // A message without a time is hashed ahead.
    assert_eq!(
        signature(&with(Digest::Sha256, Encoding::Hex, "{body}", "v1,{id} t={time} {signature}")),
        "v1,me t=1440938160 1a9fab6cd4b8cdcaad8640f3eca73fa924c62ff24f3833254ef3547232153767"
    );
}
