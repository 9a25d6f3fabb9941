//! Authenticated requests, in both versions of HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use model::access::Sigv4;

use super::*;

/// 2015-08-30T12:36:00Z.
fn date() -> Date {
    std::time::UNIX_EPOCH + Duration::from_secs(1_440_938_160)
}

fn never() -> Date {
    panic!("nothing about the request depends on the date")
}

fn encoded(headers: &[(&str, &str)]) -> backend::Request {
    backend::Request {
        method: "POST".to_owned(),
        path: "/v1/x".to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: b"{}".to_vec(),
    }
}

fn secrets(access: Access) -> Secrets {
    Secrets {
        access,
        headers: vec![("x-tenant".to_owned(), "seven".to_owned())],
        ..Secrets::default()
    }
}

/// The header fields that are sent, with the request line under an empty name.
fn sent(request: Request) -> BTreeMap<String, String> {
    match request {
        Request::Http1 { head, body } => {
            assert_eq!(&body[..], b"{}");
            let head = std::str::from_utf8(&head).unwrap();
            let head = head.strip_suffix("\r\n\r\n").expect("a whole head");
            let mut lines = head.split("\r\n");
            let first = lines.next().unwrap().to_owned();
            let fields = lines.map(|line| line.split_once(": ").expect("a field"));
            let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let fields: Vec<_> = fields.chain([(String::new(), first)]).collect();
            let map: BTreeMap<_, _> = fields.iter().cloned().collect();
            assert_eq!(map.len(), fields.len(), "no field comes twice: {fields:?}");
            map
        }
        Request::Http2(request) => request
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect(),
    }
}

fn made(
    version: Version,
    url: &str,
    access: Access,
    headers: &[(&str, &str)],
) -> Result<Outgoing, String> {
    let target = Target::parse(url).unwrap();
    http_request(&target, version, (&secrets(access), &[]), "/v1/x", encoded(headers))
}

const BOTH: [Version; 2] = [Version::Http1, Version::Http2];

#[test]
fn key_is_sent_as_its_scheme_requires() {
    let header = Access::Header { name: "x-api-key".to_owned(), key: "sk-1".to_owned() };
    for version in BOTH {
        let of = |access| {
            // The backend's own value is replaced.
            let request = made(version, "http://h", access, &[("x-api-key", "mine")]);
            sent(request.unwrap().ready(never))
        };
        let bearer = of(Access::Bearer("sk-1".to_owned()));
        assert_eq!(bearer["authorization"], "Bearer sk-1");
        assert_eq!((&*bearer["x-api-key"], &*bearer["x-tenant"]), ("mine", "seven"));
        let alone = of(header.clone());
        assert_eq!(alone["x-api-key"], "sk-1");
        assert!(!alone.contains_key("authorization"), "{alone:?}");
        let open = of(Access::Open);
        assert!(!open.contains_key("authorization"), "{open:?}");
    }
}

#[test]
fn keys_stay_out_of_http2_tables_and_errors() {
    let header = |key: &str| Access::Header { name: "x-api-key".to_owned(), key: key.to_owned() };
    let request = made(Version::Http2, "http://h", header("sk-1"), &[]).unwrap();
    let Request::Http2(request) = request.ready(never) else { panic!("it is of HTTP/2") };
    assert!(request.headers()["x-api-key"].is_sensitive());
    for access in [header("sk\n1"), Access::Bearer("sk\n1".to_owned())] {
        let error = made(Version::Http1, "http://h", access, &[]).err();
        let error = error.expect("it cannot be sent");
        assert_eq!(error, "the API key has characters that a header cannot contain");
    }
}

fn aws(region: Option<&str>) -> Access {
    Access::Sigv4(Arc::new(Sigv4 {
        service: "bedrock".to_owned(),
        region: region.map(str::to_owned),
        id: "AKIDEXAMPLE".to_owned(),
        secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
        session_token: Some("t0ken".to_owned()),
    }))
}

#[test]
fn requests_are_signed_when_sent() {
    let url = "https://bedrock-runtime.eu-west-1.amazonaws.com";
    let own =
        [("content-type", "application/json"), ("user-agent", "mine"), ("x-amz-date", "yesterday")];
    for version in BOTH {
        // The host's own region counts, whatever the environment says.
        let outgoing = || made(version, url, aws(Some("us-east-1")), &own).unwrap();
        let fields = sent(outgoing().ready(date));
        assert_eq!(fields["x-amz-date"], "20150830T123600Z");
        assert_eq!(fields["x-amz-security-token"], "t0ken");
        let digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(fields["x-amz-content-sha256"], digest);
        let (credential, signature) = fields["authorization"].split_once(", Signature=").unwrap();
        assert_eq!(
            credential,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request, \
             SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token;x-tenant"
        );
        assert_eq!(signature.len(), 64);
        let later = sent(outgoing().ready(|| date() + Duration::from_secs(300)));
        assert_eq!(later["x-amz-date"], "20150830T124100Z");
        assert_ne!(later["authorization"], fields["authorization"]);
    }
}

#[test]
fn region_comes_from_the_host_or_the_environment() {
    let gateway = |region| made(Version::Http1, "http://gateway:8080", aws(region), &[]);
    let fields = sent(gateway(Some("eu-central-1")).unwrap().ready(date));
    assert!(fields["authorization"].contains("/eu-central-1/bedrock/"), "{fields:?}");
    let error = gateway(None).err();
    assert_eq!(error.as_deref(), Some("the region of http://gateway:8080 is not known"));
}
