//! Authentication of requests: a key in a header of its own, and signatures for AWS, as the server
//! gets them. Also the messages about keys that cannot be used.

use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use model::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::hostile_guests::fixture::components;
use crate::support::process::{Exit, Mock, run, runner, words};
use crate::support::results::{contents, random, run_file, run_folder};
use crate::support::server::{EVENTS, JSON, completion, field, models, read_request, reply, serve};

const KEY: &str = "sk-0123456789abcdef";
const OTHER: &str = "sk-of-somebody-else";
const ID: &str = "AKIDEXAMPLE12345";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "FwoGZXIvYXdzEJr//of:a:temporary==";

/// A server that keeps each request, head and body, and answers with it.
pub(super) fn parrot() -> (String, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&requests);
    (serve(move |stream| answer(stream, &kept)), requests)
}

fn answer(mut stream: &TcpStream, kept: &Mutex<Vec<String>>) -> Option<()> {
    let request = read_request(stream)?;
    kept.lock().unwrap().push(request.clone());
    if request.starts_with("DELETE /gone") {
        return reply(stream, "404 Not Found", "", JSON, "no such job\n");
    }
    if request.starts_with("POST /endless") {
        let piece = json!({ "choices": [{ "index": 0, "text": "so" }] });
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        write!(stream, "{head}data: {piece}\n\n").ok()?;
        // Until the client hangs up.
        let _ = read_request(stream);
        return None;
    }
    if request.lines().next().is_some_and(|line| line.contains("/v1/models ")) {
        return reply(stream, "200 OK", "", JSON, &models());
    }
    reply(stream, "200 OK", "", EVENTS, &completion(&request, "stop"))
}

/// A run of three requests with the backend whose configuration says how its server wants its key.
pub(super) fn keyed(url: &str, folder: &Path, config: &str) -> Command {
    several(3, url, folder, config)
}

pub(super) fn several(requests: u32, url: &str, folder: &Path, config: &str) -> Command {
    let mut command = runner();
    command
        .args(words("--dataset-name random --random-output-len 4"))
        .args(["--num-prompts", &requests.to_string(), "--base-url", url])
        .arg("--plugin")
        .arg(components().join("guests/keyed-backend.wasm"))
        .current_dir(folder);
    for assignment in words(config) {
        command.arg("--set").arg(format!("backend.config.{assignment}"));
    }
    command
}

pub(super) fn planned(folder: &Path) -> Value {
    run_file(folder, "plan.json")["target"]["api-key"].clone()
}

/// Neither the output nor a file of the run contains one of these secrets.
#[track_caller]
pub(super) fn assert_kept(folder: &Path, ended: &Exit, secrets: &[&str]) {
    let mut texts = vec![
        (PathBuf::from("stdout"), ended.stdout.clone().into_bytes()),
        (PathBuf::from("stderr"), ended.stderr.clone().into_bytes()),
    ];
    texts.extend(contents(&run_folder(folder)));
    assert!(texts.len() >= 7, "{} texts", texts.len());
    for (path, bytes) in texts {
        let text = String::from_utf8_lossy(&bytes);
        for secret in secrets {
            assert!(!text.contains(secret), "{} holds {secret}: {text}", path.display());
        }
    }
}

#[test]
fn a_key_goes_into_the_header_that_the_backend_names() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = parrot();
    let config = "scheme=header name=X-Api-Key variable=ENGINE_API_KEY";
    let mut command = keyed(&url, folder.path(), config);
    command.env("ENGINE_API_KEY", KEY).env("OPENAI_API_KEY", OTHER);
    let ended = run(&mut command).with_code(0);
    let requests = requests.lock().unwrap();
    assert!(requests.iter().any(|request| request.starts_with("GET /v1/models")));
    assert!(requests.len() >= 4, "{requests:?}");
    for request in &*requests {
        assert_eq!(field(request, "x-api-key"), Some(KEY), "{request}");
        assert_eq!(field(request, "authorization"), None, "{request}");
        assert!(!request.contains(OTHER), "{request}");
    }
    let says = format!("note: the API key from ENGINE_API_KEY goes to {url}");
    assert!(ended.stderr.contains(&says), "{ended:#?}");
    let scheme = json!({ "header": "x-api-key" });
    let expected = json!({ "variable": "ENGINE_API_KEY", "scheme": scheme });
    assert_eq!(planned(folder.path()), expected);
    assert_kept(folder.path(), &ended, &[KEY, OTHER]);
}

/// HMAC with SHA-256, as RFC 2104 writes it.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    assert!(key.len() <= 64);
    let padded = |with: u8| -> Vec<u8> {
        (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect()
    };
    let inner = Sha256::digest([&padded(0x36)[..], text].concat());
    Sha256::digest([&padded(0x5c)[..], &inner].concat()).to_vec()
}

/// Checks a request's signature, as the server would.
#[track_caller]
fn assert_signed(request: &str, region: &str, token: Option<&str>) {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut line = head.lines().next().unwrap().split(' ');
    let (method, target) = (line.next().unwrap(), line.next().unwrap());
    // The test's paths have nothing to encode, and its queries are encoded as they are sent.
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut query: Vec<&str> = query.split('&').collect();
    query.sort_unstable();
    let given = field(request, "authorization").unwrap_or_else(|| panic!("unsigned: {request}"));
    let (given, signature) = given.split_once(", Signature=").unwrap();
    let (credential, names) = given.split_once(", SignedHeaders=").unwrap();
    let date = field(request, "x-amz-date").unwrap();
    let day = &date[..8];
    let scope = format!("{day}/{region}/bedrock/aws4_request");
    assert_eq!(credential, format!("AWS4-HMAC-SHA256 Credential={ID}/{scope}"));
    let digest = hex(&Sha256::digest(body));
    assert_eq!(field(request, "x-amz-content-sha256"), Some(&*digest));
    assert_eq!(field(request, "x-amz-security-token"), token);
    let signed: Vec<&str> = names.split(';').collect();
    let mut wanted = vec!["host", "x-amz-date", "x-amz-content-sha256"];
    wanted.extend(token.map(|_| "x-amz-security-token"));
    for name in wanted {
        assert!(signed.contains(&name), "`{name}` is not signed: {names}");
    }
    let lines: String =
        signed.iter().map(|name| format!("{name}:{}\n", field(request, name).unwrap())).collect();
    let query = query.join("&");
    let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}");
    let canonical = hex(&Sha256::digest(&canonical));
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{canonical}");
    let mut key = format!("AWS4{SECRET}").into_bytes();
    for part in [day, region, "bedrock", "aws4_request", &text] {
        key = hmac(&key, part.as_bytes());
    }
    assert_eq!(signature, hex(&key), "{request}");
}

const SIGV4: &str = "scheme=sigv4 name=bedrock";

#[test]
fn requests_are_signed_for_aws() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = parrot();
    let ended = run(keyed(&url, folder.path(), SIGV4)
        .env("AWS_ACCESS_KEY_ID", ID)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("AWS_SESSION_TOKEN", TOKEN)
        .env("AWS_REGION", "eu-west-1")
        .env("OPENAI_API_KEY", OTHER))
    .with_code(0);
    let requests = requests.lock().unwrap();
    assert!(requests.iter().any(|request| request.starts_with("GET /v1/models")));
    assert!(requests.len() >= 4, "{requests:?}");
    for request in &*requests {
        assert_signed(request, "eu-west-1", Some(TOKEN));
        assert!(!request.contains(SECRET) && !request.contains(OTHER), "{request}");
    }
    let scheme = json!({ "sigv4": "bedrock" });
    let expected = json!({ "variable": "AWS_ACCESS_KEY_ID", "scheme": scheme });
    assert_eq!(planned(folder.path()), expected);
    assert_kept(folder.path(), &ended, &[ID, SECRET, TOKEN, OTHER]);
}

#[test]
fn a_key_of_aws_may_be_in_one_variable() {
    for (token, variable) in [(None, "AWS_DEFAULT_REGION"), (Some(TOKEN), "AWS_REGION")] {
        let folder = tempfile::tempdir().unwrap();
        let (url, requests) = parrot();
        let mut command = keyed(&url, folder.path(), SIGV4);
        let parts: Vec<&str> = [ID, SECRET].into_iter().chain(token).collect();
        command
            .args(["--api-key-env", "ENGINE_KEY"])
            .env("ENGINE_KEY", parts.join(":"))
            .env("AWS_ACCESS_KEY_ID", "AKIDOFSOMEBODYELSE")
            .env("AWS_SECRET_ACCESS_KEY", OTHER)
            .env(variable, "us-gov-west-1");
        let ended = run(&mut command).with_code(0);
        for request in &*requests.lock().unwrap() {
            assert_signed(request, "us-gov-west-1", token);
        }
        assert_kept(folder.path(), &ended, &[ID, SECRET, TOKEN]);
    }
}

/// A mistake in a key is reported before anything is sent, with the key's variable and without its
/// value.
#[test]
fn keys_that_cannot_be_used_are_refused() {
    let id = ("AWS_ACCESS_KEY_ID", ID);
    let secret = ("AWS_SECRET_ACCESS_KEY", SECRET);
    let one = ("ENGINE_KEY", "AKID-and-nothing-else");
    /// A scheme, variables, and parts of the message.
    type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c [&'c str]);
    let cases: [Case<'_>; 7] = [
        (SIGV4, &[id], &["AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"]),
        (SIGV4, &[id, secret], &["the host name contains none", "set AWS_REGION"]),
        (
            SIGV4,
            &[id, secret, ("AWS_REGION", "Frankfurt")],
            &["`AWS_REGION` holds no region of AWS: \"Frankfurt\""],
        ),
        (
            SIGV4,
            &[one, ("AWS_REGION", "eu-west-1")],
            &[
                "`ENGINE_KEY` is not a key for AWS Signature Version 4",
                "`ID:SECRET` or `ID:SECRET:SESSION-TOKEN`",
            ],
        ),
        (
            "scheme=header name=x-api-key",
            &[("ENGINE_KEY", "sk-one\nsk-two")],
            &["`ENGINE_KEY` has characters that a header cannot contain"],
        ),
        (
            "scheme=bearer",
            &[("OPENAI_API_KEY", "sk-one\nsk-two")],
            &["`OPENAI_API_KEY` has characters that a header cannot contain"],
        ),
        ("scheme=none", &[("ENGINE_KEY", KEY)], &["sends no API key, so none can be named"]),
    ];
    for (config, variables, says) in cases {
        let folder = tempfile::tempdir().unwrap();
        let (url, requests) = parrot();
        let mut command = keyed(&url, folder.path(), config);
        if variables.iter().any(|(name, _)| *name == "ENGINE_KEY") {
            command.args(["--api-key-env", "ENGINE_KEY"]);
        }
        command.envs(variables.iter().copied());
        let ended = run(&mut command).with_code(3);
        for expected in says {
            let message = ended.message();
            assert!(message.contains(expected), "{config}: {message}");
        }
        for (name, value) in variables {
            let is_allowed = *name == "AWS_REGION" || !ended.stderr.contains(value);
            assert!(is_allowed, "{config}: {ended:#?}");
        }
        assert_eq!(*requests.lock().unwrap(), Vec::<String>::new(), "{config}");
    }
}

fn of_python(digest: &str, key: &str, text: &str) -> String {
    let program = "import base64, hmac, sys\n\
        key, digest = sys.argv[1].encode(), sys.argv[2]\n\
        code = hmac.new(key, sys.stdin.buffer.read(), digest).digest()\n\
        print(base64.b64encode(code).decode(), end='')";
    let mut python = Command::new("python3");
    python.args(["-c", program, key, digest]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().unwrap();
    python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ended = python.wait_with_output().unwrap();
    assert!(ended.status.success());
    String::from_utf8(ended.stdout).unwrap()
}

/// A run with a signature of this message.
fn signing(url: &str, folder: &Path, message: &str) -> Command {
    let mut command = keyed(url, folder, "scheme=hmac name=X-Sign variable=ENGINE_API_KEY");
    command.args(["--set", &format!("backend.config.message='{message}'")]);
    command
}

#[test]
fn requests_are_signed_by_hmac() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = parrot();
    let mut command = signing(&url, folder.path(), "{method}|{path}|{time-ms}|{id}|{body}");
    command.env("ENGINE_API_KEY", format!("{ID}:{SECRET}"));
    let ended = run(&mut command).with_code(0);
    let requests = requests.lock().unwrap();
    assert!(requests.iter().any(|request| request.starts_with("GET /v1/models")));
    assert!(requests.len() >= 4, "{requests:?}");
    for request in &*requests {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let mut line = head.lines().next().unwrap().split(' ');
        let (method, path) = (line.next().unwrap(), line.next().unwrap());
        let time = field(request, "x-time").unwrap();
        let text = format!("{method}|{path}|{time}|{ID}|{body}");
        let signature = of_python("sha512", SECRET, &text);
        let expected = format!("id={ID}, signature={signature}");
        assert_eq!(field(request, "x-sign"), Some(&*expected), "{request}");
        assert!(!request.contains(SECRET), "{request}");
    }
    let expected = json!({ "variable": "ENGINE_API_KEY", "scheme": "hmac" });
    assert_eq!(planned(folder.path()), expected);
    assert_kept(folder.path(), &ended, &[ID, SECRET]);
}

#[test]
fn an_impossible_signature_is_refused_before_the_run() {
    for (message, key, code, says) in [
        ("{method}{now}", "me:s", 4, "`{now}` is no placeholder; expected `{method}`, `{path}`"),
        ("{body}", "secret-without-an-id", 3, "is not a key for the signature of this backend"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (url, requests) = parrot();
        let mut command = signing(&url, folder.path(), message);
        let ended = run(command.env("ENGINE_API_KEY", key)).with_code(code);
        let message = ended.message();
        assert!(message.contains(says) && !message.contains(key), "{message}");
        assert_eq!(*requests.lock().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_backend_without_keys_sends_none() {
    let folder = tempfile::tempdir().unwrap();
    let (url, requests) = parrot();
    run(keyed(&url, folder.path(), "scheme=none").env("OPENAI_API_KEY", KEY)).with_code(0);
    let requests = requests.lock().unwrap();
    assert!(requests.len() >= 4, "{requests:?}");
    assert!(!requests.iter().any(|request| request.contains(KEY)), "{requests:?}");
    assert_eq!(planned(folder.path()), json!(false));
}

/// A plugin names the variable of another program's secret. It gets it where the user says so, and
/// not before.
#[test]
fn a_backend_does_not_choose_among_the_users_secrets() {
    let config = "scheme=bearer variable=GITHUB_TOKEN";
    for named in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (url, requests) = parrot();
        let mut command = keyed(&url, folder.path(), config);
        command.env("GITHUB_TOKEN", KEY);
        if named {
            command.args(["--api-key-env", "GITHUB_TOKEN"]);
        }
        let ended = run(&mut command).with_code(0);
        let requests = requests.lock().unwrap();
        assert!(requests.len() >= 4, "{requests:?}");
        for request in &*requests {
            let bearer = format!("Bearer {KEY}");
            let expected = named.then_some(&*bearer);
            assert_eq!(field(request, "authorization"), expected, "{request}");
        }
        let notes = ended.stderr.contains("give --api-key-env GITHUB_TOKEN");
        assert_eq!(notes, !named, "{ended:#?}");
    }
}

#[test]
fn an_engines_own_variable_comes_before_the_usual_one() {
    let mock = Mock::start(&["--api-key", KEY, "--ttft", "1ms", "--itl", "1ms"]);
    for (variables, from) in [
        (&[("VLLM_API_KEY", KEY), ("OPENAI_API_KEY", OTHER)][..], "VLLM_API_KEY"),
        (&[("OPENAI_API_KEY", KEY)][..], "OPENAI_API_KEY"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let flags = "--num-prompts 2 --random-output-len 4";
        run(random(&mock.url, folder.path(), flags).envs(variables.iter().copied()))
            .with_stderr(0, &format!("the API key from {from}"));
    }
}

fn holder(folder: &Path, text: &str) -> Option<PathBuf> {
    std::fs::read_dir(folder).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holder(&path, text);
        }
        let mut bytes = std::fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "zst") {
            bytes = zstd::decode_all(&bytes[..]).unwrap();
        }
        String::from_utf8_lossy(&bytes).contains(text).then_some(path)
    })
}

/// The plugin's schema marks the key `pin`, whose name alone does not say that it is secret.
#[test]
fn a_key_that_a_plugin_marks_is_kept_in_no_folder() {
    const PIN: &str = "wisteria-4711";
    let (url, requests) = parrot();
    let guest = components().join("guests/keyed-backend.wasm");
    let guest = guest.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let scenario = format!(
        "[backend]\nplugin = '{guest}'\nconfig = {{ scheme = \"none\", pin = \"{PIN}\" }}\n\
         [dataset]\nplugin = \"datasets/random.wasm\"\nconfig = {{ input-len = 8, output-len = 2 }}\n\
         [load]\nrequests = 3\nconcurrency = 1\n"
    );
    let lab = format!(
        "name = \"keyed\"\nstrategy = \"matrix\"\nscenarios = [\"a.toml\"]\nrepeats = 1\n\
         set = {{ backend.config.scheme = \"none\", backend.config.pin = \"{PIN}\" }}\n\
         [[engines]]\nname = \"parrot\"\nbase-url = \"{url}\"\nbackend = '{guest}'\n"
    );
    std::fs::write(folder.path().join("lab.toml"), lab).unwrap();
    std::fs::write(folder.path().join("a.toml"), &scenario).unwrap();
    let out = folder.path().join("out");
    for line in [
        format!("sweep a.toml --base-url {url} --concurrencies 1,2 --output-dir out/of-a-file"),
        format!(
            "sweep a.toml --base-url {url} --concurrencies 1,2 --output-dir out/of-a-flag \
             --set backend.config.pin={PIN}"
        ),
        "lab lab.toml --folder out/lab".to_owned(),
    ] {
        requests.lock().unwrap().clear();
        let ended = run(runner().args(words(&line)).current_dir(folder.path())).with_code(0);
        let sent = requests.lock().unwrap();
        assert!(sent.iter().any(|request| field(request, "x-pin") == Some(PIN)), "{line}");
        assert!(![ended.stdout, ended.stderr].concat().contains(PIN), "{line}");
        assert_eq!(holder(&out, PIN), None, "{line}");
    }
    // The command can be resumed with the key alone.
    let begun = std::fs::read_dir(out.join("of-a-flag")).unwrap().next().unwrap().unwrap().path();
    let resume = || {
        let mut command = runner();
        command.args(["sweep", "--resume"]).arg(&begun).current_dir(folder.path());
        command
    };
    run(&mut resume()).with_stderr(2, "has --set");
    let key = format!("backend.config.pin={PIN}");
    run(resume().args(["--set", &key])).with_code(0);
}
