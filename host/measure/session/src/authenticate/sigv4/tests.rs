//! Signatures against the vectors of AWS.

use std::time::Duration;

use serde_json::Value;

use super::*;

/// AWS's test suite for signers, with its headers for the requests, the texts on the way and the
/// signatures. Cases with paths that are signed as for S3, and with an unsigned token, are left
/// out.
const VECTORS: &str = include_str!("vectors.json");
/// The key of all of them.
const ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// 2015-08-30T12:36:00Z, in seconds since 1970.
const AT: u64 = 1_440_938_160;

fn with(service: &str, token: Option<&str>) -> Arc<Sigv4> {
    Arc::new(Sigv4 {
        service: service.to_owned(),
        region: None,
        id: ID.to_owned(),
        secret: SECRET.to_owned(),
        session_token: token.map(str::to_owned),
    })
}

fn at() -> Date {
    std::time::UNIX_EPOCH + Duration::from_secs(AT)
}

fn text<'v>(case: &'v Value, key: &str) -> &'v str {
    case[key].as_str().unwrap_or_else(|| panic!("{key} of {case}"))
}

#[test]
fn signatures_equal_the_aws_vectors() {
    let cases: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert!(cases.len() >= 30, "{}", cases.len());
    for case in &cases {
        let name = text(case, "name");
        let digest = hex(&Sha256::digest(text(case, "body")));
        let token = case["session-token"].as_str();
        let listed = case["headers"].as_array().unwrap();
        let mut headers: Vec<(&str, Cow<'_, str>)> = listed
            .iter()
            .map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap().into()))
            .collect();
        if case["sign-body"] == true {
            headers.push(("x-amz-content-sha256", (&*digest).into()));
        }
        if let Some(token) = token {
            headers.push(("x-amz-security-token", token.into()));
        }
        let what = (text(case, "method"), text(case, "target"));
        let region = "us-east-1".to_owned();
        let unsigned = Unsigned::new(&with("service", token), region, what, headers, &digest);
        let date = "20150830T123600Z";
        assert_eq!(unsigned.canonical(date), text(case, "canonical-request"), "{name}");
        let scope = "20150830/us-east-1/service/aws4_request";
        let signed = unsigned.string_to_sign(date, scope);
        assert_eq!(signed, text(case, "string-to-sign"), "{name}");
        let [(first, when), (second, authorization)] = unsigned.sign(at());
        assert_eq!((first, when.to_str().unwrap()), (DATE, date), "{name}");
        let expected = format!(
            "AWS4-HMAC-SHA256 Credential={ID}/{scope}, SignedHeaders={}, Signature={}",
            unsigned.names,
            text(case, "signature")
        );
        assert_eq!(
            (second, authorization.to_str().unwrap()),
            (AUTHORIZATION, &*expected),
            "{name}"
        );
        assert!(authorization.is_sensitive(), "{name}");
    }
}

#[test]
fn canonical_paths_and_queries() {
    // As it is sent, a colon in a model's name is `%3A`; signed it is encoded once more.
    assert_eq!(path_of("/model/m%3A0/invoke", "bedrock"), "/model/m%253A0/invoke");
    assert_eq!(path_of("/model/m:0/invoke", "bedrock"), "/model/m%3A0/invoke");
    assert_eq!(path_of("/a/../..//b/", "bedrock"), "/b/");
    assert_eq!(path_of("/bucket//a/../b%20c", "s3"), "/bucket//a/../b%20c");
    assert_eq!(path_of("", "bedrock"), "/");
    let query = "b=2&a=%3a&a=1&c&=&d=x+y&e=%zz%";
    assert_eq!(query_of(query), "=&a=%3A&a=1&b=2&c=&d=x%20y&e=%25zz%25");
}

#[test]
fn signature_depends_on_the_time() {
    let headers = || [("host", Cow::Borrowed("h"))];
    let digest = hex(&Sha256::digest(""));
    let unsigned =
        Unsigned::new(&with("s", None), "r".to_owned(), ("GET", "/"), headers(), &digest);
    let [first, later] = [0, 1].map(|more| unsigned.sign(at() + Duration::from_secs(more)));
    assert_eq!(first, unsigned.sign(at()));
    assert_ne!(first[0], later[0]);
    assert_ne!(first[1], later[1]);
    // A day has a key of its own, and a date beyond all calendars must not stop a run.
    let [_, tomorrow] = unsigned.sign(at() + Duration::from_secs(86_400));
    assert!(tomorrow.1.to_str().unwrap().contains("/20150831/r/s/"));
    let beyond = std::time::UNIX_EPOCH + Duration::from_secs(1 << 50);
    assert_eq!(unsigned.sign(beyond)[0].1, "19700101T000000Z");
}
