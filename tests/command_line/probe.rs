//! `runner probe` against the mock engine and its scripts: the named engine, the findings by route,
//! the requests, the servers that see a key, and the exit codes.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::transcript;
use crate::support::authority::Authority;
use crate::support::process::{Exit, Mock, only_run, run, runner, words};
use crate::support::results::{follows, json_file};
use crate::support::server::nobody;

const KEY: &str = "sk-0123456789abcdef";

/// An engine that a script plays.
struct Scripted {
    mock: Mock,
    _folder: TempDir,
}

fn scripted(script: &str) -> Scripted {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.toml");
    let fast = "ttft = '5ms'\nitl = '1ms'\n";
    std::fs::write(&path, format!("{fast}{script}")).unwrap();
    Scripted { mock: Mock::logging(&["--script", path.to_str().unwrap()]), _folder: folder }
}

/// A route with GET that always answers the same.
fn route(path: &str, body: &Value) -> String {
    format!("[[route]]\npath = '{path}'\nkey = false\nbody = '{body}'\n")
}

/// The list of models as an engine gives it.
fn models(owner: &str) -> String {
    let one = json!({"id": "m", "root": "/models/m", "max_model_len": 4096, "owned_by": owner});
    route("/v1/models", &json!({"object": "list", "data": [one]}))
}

/// A run reads the server's version, unless the user states one, and the model's context. It names
/// longer requests before it sends any.
#[test]
fn a_run_records_the_engine_and_its_context() {
    let small = models("vllm").replace("4096", "50");
    let script = small + &route("/version", &json!({"version": "0.32.0"}));
    for (flags, version, input) in [("", "0.32.0", 40), ("--engine-version 9", "9", 20)] {
        let engine = scripted(&script);
        let runs = tempfile::tempdir().unwrap();
        let ended = run(runner()
            .args(["--backend", "vllm", "--dataset-name", "random", "--base-url", &engine.mock.url])
            .args(words(&format!("--num-prompts 7 --random-input-len {input}")))
            .args(words("--random-output-len 20 --allow-invalid"))
            .args(words(flags))
            .arg("--output-dir")
            .arg(runs.path()));
        let folder = only_run(runs.path()).unwrap();
        let read = |name: &str| -> Value { json_file(folder.join(name)) };
        let about = json!({"engine": "vLLM", "engine-version": version});
        assert_eq!(read("plan.json")["about"], about, "{}", ended.stderr);
        let findings = read("summary.json")["findings"].to_string();
        let is_beyond = input == 40;
        assert_eq!(findings.contains("\"beyond-context\""), is_beyond, "{findings}");
        let note = "note: a request of 40 + 20 tokens does not fit into the model's context of 50";
        assert_eq!(ended.stderr.contains(note), is_beyond, "{}", ended.stderr);
    }
}

fn probe(url: &str, flags: &str) -> Exit {
    run(runner().args(["probe", url]).args(words(flags)))
}

/// The document, which follows its schema.
#[track_caller]
fn document(ended: &Exit) -> Value {
    let document = ended.json();
    follows("probe", &document);
    document
}

#[track_caller]
fn found(url: &str, flags: &str, code: i32) -> Value {
    document(&probe(url, &format!("--format json {flags}")).with_code(code))
}

/// Path, outcome, tokens and chunks of each generating route.
fn routes(document: &Value) -> Vec<(String, String, Option<u64>, Option<u64>)> {
    // Further engines to try do not change the findings on these.
    let routes = document["routes"].as_array().unwrap().iter();
    routes
        .filter(|route| route["backend"] != "anthropic")
        .map(|route| {
            let text = |key: &str| route[key].as_str().unwrap().to_owned();
            let shape = &route["shape"];
            let number = |key: &str| shape[key].as_u64();
            (text("path"), text("outcome"), number("tokens"), number("chunks"))
        })
        .collect()
}

fn answers(path: &str, tokens: u64, chunks: u64) -> (String, String, Option<u64>, Option<u64>) {
    (path.to_owned(), "answers".to_owned(), Some(tokens), Some(chunks))
}

#[test]
fn a_probe_prints_its_results() {
    let engine = scripted("");
    let port = engine.mock.port().to_owned();
    let ended = probe(&format!("localhost:{port}"), "--model mock").with_code(0);
    let shown = ended.stdout.replace(&port, "PORT");
    transcript("probe", &shown.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    assert_eq!(ended.stderr, "");
}

/// Every engine that names itself as the owner of its models, with its version where a route of its
/// own has it.
#[test]
fn engines_are_distinguished() {
    for (script, engine, version, seen, backend) in [
        (
            models("vllm") + &route("/version", &json!({"version": "0.32.0"})),
            "vLLM",
            json!("0.32.0"),
            "GET /version",
            "vllm",
        ),
        (
            models("sglang")
                + &route("/get_server_info", &json!({"model_path": "m", "version": "0.5.23"})),
            "SGLang",
            json!("0.5.23"),
            "GET /get_server_info",
            "sglang",
        ),
        (
            // An older release, which does not say its version.
            models("m")
                + &route("/get_model_info", &json!({"model_path": "m", "is_generation": true})),
            "SGLang",
            Value::Null,
            "GET /get_model_info",
            "sglang",
        ),
        (
            format!("generate = 'lmdeploy'\n{}", models("lmdeploy")),
            "LMDeploy",
            Value::Null,
            "GET /v1/models",
            "lmdeploy",
        ),
    ] {
        let engine_of_script = scripted(&script);
        let document = found(&engine_of_script.mock.url, "", 0);
        let expected = match version {
            Value::Null => json!({"name": engine, "seen": seen}),
            version => json!({"name": engine, "version": version, "seen": seen}),
        };
        assert_eq!(document["engine"], expected);
        let served = json!([{"name": "m", "root": "/models/m", "context-tokens": 4096}]);
        assert_eq!(document["models"], served, "{engine}");
        let command = document["command"].as_array().unwrap();
        assert_eq!(command[..3], [json!("runner"), json!("--backend"), json!(backend)]);
    }
}

/// The parts of each dialect's stream are described, and the engine gets little: a few tokens, a
/// few times.
#[test]
fn streams_are_described_and_little_is_sent() {
    let engine = scripted(&format!(
        "tokens-per-chunk = 2\nreasoning-tokens = 3\n{}{}",
        models("vllm"),
        route("/version", &json!({"version": "0.32.0"}))
    ));
    let vllm = found(&engine.mock.url, "", 0);
    assert_eq!(
        routes(&vllm),
        [
            // The first event holds one token, every other two.
            answers("/v1/completions", 8, 5),
            answers("/v1/chat/completions", 8, 5),
        ]
    );
    let chat = &vllm["routes"][1]["shape"];
    assert_eq!(chat["opens-empty"], true);
    assert_eq!(chat["reasoning-chunks"], 2);
    assert_eq!(chat["usage"]["output-tokens"], 8);
    assert_eq!(chat["usage"]["reasoning-tokens"], 3);
    assert_eq!(chat["tokens-per-chunk"], 1.6);
    assert_eq!((&chat["end-marker"], &chat["finish"]), (&json!(true), &json!("length")));
    let completions = &vllm["routes"][0]["shape"];
    assert_eq!(completions["opens-empty"], false);
    assert_eq!(completions["reasoning-chunks"], 0);
    for shape in [chat, completions] {
        assert_eq!(
            (&shape["cumulative"], &shape["states-chunk-tokens"]),
            (&json!(false), &json!(false))
        );
    }
    let sent = engine.mock.end();
    let generating: Vec<_> = sent.iter().filter(|sent| sent.output_tokens.is_some()).collect();
    assert_eq!(generating.len(), 2);
    for one in generating {
        assert_eq!(one.output_tokens, Some(8));
        assert!(one.prompt_tokens < Some(100), "{one:?}");
    }
    let controls: Vec<&str> = (vllm["controls"].as_array().unwrap().iter())
        .map(|control| control["path"].as_str().unwrap())
        .collect();
    assert_eq!(controls, ["/health", "/v1/models", "/metrics"]);
    // Models, version, health, metrics and the routes: the models are asked for once.
    let tried = vllm["routes"].as_array().unwrap().len();
    assert_eq!(vllm["requests"], 4 + tried);

    for (incremental, cumulative) in [(false, true), (true, false)] {
        let script = format!("incremental = {incremental}\n{}", models("sglang"));
        let engine = scripted(&script);
        let sglang = found(&engine.mock.url, "", 0);
        let native = &sglang["routes"][0];
        assert_eq!(native["path"], "/generate");
        assert_eq!(native["shape"]["cumulative"], cumulative);
        assert_eq!(native["shape"]["states-chunk-tokens"], true);
    }
}

#[test]
fn the_command_that_is_shown_measures_the_server() {
    let engine = scripted("");
    let document = found(&engine.mock.url, "--model mock --connect-timeout 7s", 0);
    let command = document["command"].as_array().unwrap().iter();
    let mut command: Vec<&str> = command.map(|word| word.as_str().unwrap()).collect();
    assert_eq!(command.remove(0), "runner");
    let at = |flag: &str| command.iter().position(|word| *word == flag).unwrap() + 1;
    assert_eq!(command[at("--connect-timeout")], "7s");
    let (prompts, length) = (at("--num-prompts"), at("--random-input-len"));
    (command[prompts], command[length]) = ("4", "16");
    let folder = tempfile::tempdir().unwrap();
    run(runner().args(&command).current_dir(folder.path()))
        .with_stdout(0, "Successful requests:                     4");
}

#[test]
fn a_key_is_missing_or_there() {
    let engine = scripted(&format!("api-key = '{KEY}'"));
    let url = &engine.mock.url;
    probe(url, "--model mock")
        .with_stdout(5, "needs a key: HTTP 401")
        .with_stderr(5, "OPENAI_API_KEY");
    let probed =
        |command: &mut std::process::Command| run(command.args(["probe", url, "--model", "mock"]));
    let ended = probed(runner().env("OPENAI_API_KEY", KEY)).with_code(0);
    let says = format!("note: the API key from OPENAI_API_KEY goes to {url}\n");
    assert_eq!(ended.stderr, says);
    assert!(!ended.stdout.contains(KEY));
    let named = run(runner().env("GATEWAY_KEY", KEY).args([
        "probe",
        url,
        "--model",
        "mock",
        "--api-key-env",
        "GATEWAY_KEY",
    ]));
    let named = named.with_stdout(0, "--api-key-env GATEWAY_KEY");
    assert!(!named.stdout.contains(KEY));
}

/// A server that says that it is vLLM does not get vLLM's key by that, unless it is on this
/// machine.
#[test]
fn a_server_chooses_no_key() {
    let engine = scripted(&format!("api-key = '{KEY}'\n{}", models("vllm")));
    // Another name of this machine, which does not show that it is one.
    let elsewhere = format!("http://0.0.0.0:{}", engine.mock.port());
    let probed = |url: &str, flags: &str| {
        run(runner().env("VLLM_API_KEY", KEY).args(["probe", url]).args(words(flags)))
    };
    let refused = probed(&elsewhere, "").with_code(5);
    assert!(!refused.stderr.contains("goes to"), "{refused:#?}");
    assert!(refused.stdout.contains("vLLM"), "{refused:#?}");
    for (url, flags) in [(&engine.mock.url, ""), (&elsewhere, "--backend vllm")] {
        let ended = probed(url, flags).with_code(0);
        let says = format!("note: the API key from VLLM_API_KEY goes to {url}\n");
        assert_eq!(ended.stderr, says);
    }
}

#[test]
fn refuses_a_server_that_is_no_engine() {
    let url = nobody();
    let refused = probe(&url, "").with_stderr(5, &format!("cannot reach {url}"));
    assert_eq!(refused.stdout, "");

    let page = scripted("[[fault]]\nkind = 'html'\n");
    probe(&page.mock.url, "").with_stderr(5, "a web page");

    probe("ftp://127.0.0.1", "").with_stderr(3, "ftp://127.0.0.1");
}

/// Routes that are not there, a model that is not, and a server that fails: each has its own words
/// and exit code.
#[test]
fn refusals_are_distinguished() {
    let fixed = |status: u16, expected: &str| {
        let routes = ["/v1/chat/completions", "/v1/completions", "/generate"];
        let route = |path: &str| {
            let body = json!({ "detail": expected });
            format!(
                "[[route]]\nmethod = 'POST'\npath = '{path}'\nstatus = {status}\nbody = '{body}'\n"
            )
        };
        models("vllm") + &routes.map(route).concat()
    };
    let gone = "The model `m` does not exist.";
    for (script, flags, outcome, code, expected) in [
        (fixed(404, "Not Found"), "", "no-route", 5, "none of the generating routes"),
        (
            fixed(405, "Method Not Allowed"),
            "",
            "no-route",
            5,
            "/v1/completions, /v1/chat/completions",
        ),
        (fixed(404, gone), "", "unknown-model", 3, "does not serve the model `m`"),
        (fixed(403, "Forbidden"), "", "needs-key", 5, "refuses the request (HTTP 403: Forbidden"),
        (fixed(422, "no"), "", "refuses", 5, "no generating route of"),
        (fixed(500, "boom"), "", "fails", 5, "boom"),
    ] {
        let engine = scripted(&script);
        let ended = probe(&engine.mock.url, &format!("--format json {flags}")).with_code(code);
        assert!(ended.stderr.contains(expected), "{outcome}: {ended:#?}");
        let document = document(&ended);
        let own = routes(&document);
        assert_eq!(own.len(), 2, "{ended:#?}");
        for (path, came, ..) in own {
            assert_eq!(came, outcome, "{path}");
        }
        assert_eq!(document.get("command"), None, "{outcome}");
    }
    let engine = scripted(&models("vllm"));
    probe(&engine.mock.url, "--model another")
        .with_stderr(3, "does not serve the model `another`; it serves `m`")
        .with_stdout(3, "/models/m");
    let cut = scripted(&format!(
        "{}[[fault]]\nkind = 'in-band-error'\nafter-tokens = 2\n",
        models("vllm")
    ));
    let failed = found(&cut.mock.url, "", 5);
    assert_eq!(failed["routes"][0]["outcome"], "fails");
}

#[test]
fn certificates_equal_a_runs() {
    let authority = Authority::new();
    let certified = authority.certify("127.0.0.1");
    let mock = Mock::start(&certified.flags());
    let url = mock.url.replace("http://", "https://");
    probe(&url, "--model mock").with_stderr(5, "cannot reach");
    probe(&url, "--model mock --insecure").with_stdout(0, "--insecure");
    let ca = authority.certificate();
    let trusted = probe(&url, &format!("--model mock --ca-cert {}", ca.display()));
    assert!(trusted.with_code(0).stdout.contains("--ca-cert"));
}

/// No backend that ships is forgotten, and the table names no route that its backend does not have.
#[test]
fn every_backend_can_be_tried() {
    let engine = scripted("");
    let known = session::probe::backends();
    // The template needs a configuration first, gRPC has a port of its own without HTTP/1.1, and
    // the WebSocket route needs sound.
    const CONFIGURED: [&str; 3] = ["template", "triton-grpc", "realtime"];
    let shipped =
        shipped::plugins().filter_map(|name| name.strip_prefix("backends/")?.strip_suffix(".wasm"));
    let mut tried = 0;
    for backend in shipped.filter(|name| !CONFIGURED.contains(name)) {
        assert!(known.contains(backend), "{backend} is tried with no engine");
        let flags = format!("--backend {backend} --model mock --format json");
        let ended = probe(&engine.mock.url, &flags);
        assert!([Some(0), Some(5)].contains(&ended.code), "{backend}: {ended:#?}");
        let document = document(&ended);
        assert!(!document["routes"].as_array().unwrap().is_empty(), "{backend}");
        tried += 1;
    }
    assert!(tried >= 4, "{tried}");
}
