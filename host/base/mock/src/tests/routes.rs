//! Routes that a script defines: their replies byte by byte, and every mistake in them.

use super::*;
use crate::End;

/// An engine that streams lines with all text so far.
const LINES: &str = r#"
answer = { text = "abc" }
models = ["tiny"]

[[route]]
path = "/infer"
prompt = "/input"
tokens = "/limits/new"
ignore-eos = "/limits/force"
model = "/model"
stream = "/stream"
first = '{"begin":{input-tokens},"n":{index}}'
event = '{"text":{text-so-far},"tokens":{tokens},"n":{index}}'
last = '{"text":{text-so-far},"tokens":{tokens},"stop":{finish}}'
usage = '{"in":{input-tokens},"out":{output-tokens},"n":{index}}'
end = '{"done":true}'
whole = '{"text":{text},"model":{model},"out":{output-tokens}}'
error = '{"problem":{message},"code":{status}}'

[[route]]
path = "/models"
body = '{"models":["tiny"]}'

[[route]]
path = "/health"
key = false
status = 204
body = ""
"#;

const ASK: &str = r#"{"model":"tiny","input":"hello","stream":true,"limits":{"new":3}}"#;

#[tokio::test(start_paused = true)]
async fn a_stream_of_lines_is_as_its_templates_say() {
    let engine = engine(LINES);
    let got = post(&engine, "/infer", ASK).await;
    assert_eq!(got.content_type(), "application/x-ndjson");
    let expected = r#"{"begin":5,"n":0}
{"text":"a","tokens":1,"n":1}
{"text":"ab","tokens":2,"n":2}
{"text":"abc","tokens":3,"stop":"length"}
{"in":5,"out":3,"n":4}
{"done":true}
"#;
    assert_eq!(got.body(), expected);
    // The first line comes with the first token, the last two with the last.
    assert_eq!(got.at_ms(), [120.0, 120.0, 140.0, 160.0, 160.0, 160.0]);
    let [truth] = &engine.truths()[..] else { panic!() };
    assert_eq!((truth.path.as_ref(), truth.status), ("/infer", Some(200)));
    assert_eq!((truth.prompt_tokens, truth.tokens_sent()), (Some(5), 3));
    assert_eq!(truth.end, End::Whole);
}

#[tokio::test(start_paused = true)]
async fn settings_of_the_script_hold_for_its_routes() {
    let chunked = engine(&format!("tokens-per-chunk = 2\nrole-chunk = 'at-once'\n{LINES}"));
    let got = post(&chunked, "/infer", ASK).await;
    assert_eq!(got.at_ms(), [0.0, 120.0, 160.0, 160.0, 160.0]);
    let key = engine(&format!("api-key = 'k'\n{LINES}"));
    assert_eq!(post(&key, "/infer", ASK).await.status, 401);
    assert_eq!(get(&key, "/models").await.status, 401);
    assert_eq!(get(&key, "/health").await.status, 204);
    let forced = ASK.replace("3}", "5,\"force\":true}");
    let got = post(&engine(LINES), "/infer", &forced).await;
    assert!(got.body().contains(r#""out":5"#), "{}", got.body());
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_one_piece_and_fixed_ones() {
    let engine = engine(LINES);
    let got = post(&engine, "/infer", &ASK.replace("true", "false")).await;
    assert_eq!(got.content_type(), "application/json");
    assert_eq!(got.body(), r#"{"text":"abc","model":"tiny","out":3}"#);
    assert_eq!(got.at_ms(), [160.0]);
    let models = get(&engine, "/models").await;
    assert_eq!(models.body(), r#"{"models":["tiny"]}"#);
    assert_eq!(post(&engine, "/models", "").await.status, 405);
    assert_eq!(get(&engine, "/infer").await.status, 405);
    let health = get(&engine, "/health").await;
    assert!(health.headers.get(CONTENT_TYPE).is_none());
}

#[tokio::test(start_paused = true)]
async fn scripted_routes_refuse_wrong_requests_in_their_words() {
    let engine = engine(LINES);
    for (body, status, message) in [
        ("{", 400, "the body is not JSON"),
        ("{}", 400, "`/input` must be there"),
        (r#"{"input":7}"#, 400, "`/input` must be a text"),
        (
            r#"{"input":"a","limits":{"new":0}}"#,
            400,
            "`/limits/new` must be a number of at least 1",
        ),
        (r#"{"input":"a","stream":"yes"}"#, 400, "`/stream` must be true or false"),
        (r#"{"input":"a","model":"other"}"#, 404, "The model `other` does not exist"),
    ] {
        let got = post(&engine, "/infer", body).await;
        assert_eq!(got.status, status, "{body}");
        let start = format!(r#"{{"problem":"{message}"#);
        assert!(got.body().starts_with(&start), "{body}: {}", got.body());
        assert!(got.body().ends_with(&format!(r#","code":{status}}}"#)), "{}", got.body());
    }
    for (prompt, tokens) in
        [(r#"[104,105]"#, 2), (r#"[{"content":"ab"},{"content":[{"text":"cde"}]}]"#, 5)]
    {
        let body = ASK.replace("\"hello\"", prompt);
        let got = post(&engine, "/infer", &body).await.body();
        assert!(got.starts_with(&format!(r#"{{"begin":{tokens},"#)), "{got}");
    }
}

#[tokio::test(start_paused = true)]
async fn faults_befall_scripted_routes_too() {
    let fault = |fault: &str| engine(&format!("{LINES}\n[[fault]]\n{fault}"));
    let got = post(&fault("kind = 'in-band-error'\nafter-tokens = 1"), "/infer", ASK).await.body();
    let lines: Vec<&str> = got.lines().collect();
    assert_eq!(lines.len(), 4, "{got}");
    assert!(lines[2].starts_with(r#"{"problem":"EngineCore encountered an issue."#), "{got}");
    assert_eq!(lines[3], r#"{"done":true}"#);

    let got = post(&fault("kind = 'no-done'\nafter-tokens = 2"), "/infer", ASK).await;
    assert!(got.body().ends_with("\"n\":2}\n"), "{}", got.body());
    let got = post(&fault("kind = 'cut'\nafter-tokens = 2"), "/infer", ASK).await;
    assert!(got.ended.is_err());
    let got = post(&fault("kind = 'crlf'"), "/infer", ASK).await.body();
    assert!(got.ends_with("{\"done\":true}\r\n"), "{got:?}");
    let got = post(&fault("kind = 'ping'"), "/infer", ASK).await.body();
    assert!(got.starts_with("\n\n{\"begin\""), "{got:?}");
    let got = post(&fault("kind = 'http-error'\nstatus = 503"), "/infer", ASK).await;
    assert!(got.body().ends_with(r#""code":503}"#), "{}", got.body());
    let got = post(&fault("kind = 'stop-early'\nafter-tokens = 1"), "/infer", ASK).await;
    assert!(got.body().contains(r#""stop":"stop""#), "{}", got.body());
}

/// A route that always streams two tokens `a` and `b`.
fn streamed(keys: &str) -> Arc<Engine> {
    engine(&format!("answer = {{ text = 'ab' }}\n[[route]]\npath = '/x'\nprompt = '/p'\n{keys}"))
}

#[tokio::test(start_paused = true)]
async fn every_framing_is_written() {
    const ASK: &str = r#"{"p":"q"}"#;
    let events = streamed("framing = 'event-stream'\nevent = \"{text}\\n{tokens}\"\nend = 'bye'");
    let got = post(&events, "/x", ASK).await;
    assert_eq!(got.content_type(), "text/event-stream; charset=utf-8");
    assert_eq!(got.body(), "data: \"a\"\ndata: 1\n\ndata: \"b\"\ndata: 2\n\ndata: bye\n\n");

    let raw = streamed(
        r#"
        framing = "raw"
        content-type = "text/x"
        event = "event: t\ndata: {text}\n\n"
    "#,
    );
    let got = post(&raw, "/x", ASK).await;
    assert_eq!(got.content_type(), "text/x");
    assert_eq!(got.body(), "event: t\ndata: \"a\"\n\nevent: t\ndata: \"b\"\n\n");

    let prefixed = streamed("framing = 'length-prefixed'\nevent = '{text}'");
    let got = post(&prefixed, "/x", ASK).await;
    assert_eq!(got.body(), "\0\0\0\u{3}\"a\"\0\0\0\u{3}\"b\"");
    let little = "framing = 'length-prefixed'\nevent = '{ids}'\nprefix = { skip = 1, width = 8, little-endian = true }";
    let got = post(&streamed(little), "/x", ASK).await;
    let one = |ids: &str| format!("\0{}\0\0\0\0\0\0\0{ids}", ids.len() as u8 as char);
    assert_eq!(got.body(), one("[97]") + &one("[98]"));

    let whole = streamed("framing = 'whole'\ncontent-type = 'text/plain'\nwhole = '{text}'");
    let got = post(&whole, "/x", ASK).await;
    assert_eq!((got.content_type(), got.body().as_str()), ("text/plain", "\"ab\""));
}

#[test]
fn the_scripts_of_other_engines_are_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("engines");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let script = std::fs::read_to_string(&path).unwrap().parse::<Script>();
        let script = script.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!script.routes.is_empty(), "{}", path.display());
        read += 1;
    }
    assert!(read > 0);
}

#[tokio::test(start_paused = true)]
async fn finish_reasons_are_in_the_engines_own_words() {
    let words = "finish = { stop = 'end_turn', length = 'max_tokens' }";
    let script = LINES.replace("model = \"/model\"", &format!("model = \"/model\"\n{words}"));
    let got = post(&engine(&script), "/infer", ASK).await;
    assert!(got.body().contains(r#""stop":"max_tokens""#), "{}", got.body());
    let long = ASK.replace("3}", "9}");
    let got = post(&engine(&format!("stop-after = 2\n{script}")), "/infer", &long).await;
    assert!(got.body().contains(r#""stop":"end_turn""#), "{}", got.body());
}

#[tokio::test(start_paused = true)]
async fn events_of_aws_are_messages_with_their_names() {
    let engine = engine(
        "answer = { text = 'ab' }\n[[route]]\npath = '/x'\nprompt = '/input'\ntokens = '/limits/new'\n\
         framing = 'aws-event-stream'\nfirst = 'messageStart {}'\nevent = 'delta {text}'\n\
         end = \"\"\"stop {finish}\nmetadata {output-tokens}\"\"\"\nerror-event = 'someException {message}'\n\
         [[fault]]\nkind = 'in-band-error'\nafter-tokens = 1\nrequests = [1]",
    );
    let ask = ASK.replace("3}", "2}");
    let got = post(&engine, "/x", &ask).await;
    assert_eq!(got.content_type(), "application/vnd.amazon.eventstream");
    let messages = |bytes: &[u8]| {
        let mut messages = Vec::new();
        let mut rest = bytes;
        while let Some((length, _)) = rest.split_first_chunk::<4>() {
            let (message, after) = rest.split_at(u32::from_be_bytes(*length) as usize);
            let headers = u32::from_be_bytes(message[4..8].try_into().unwrap()) as usize;
            let (headers, payload) = message[12..message.len() - 4].split_at(headers);
            // The first header's value: one byte for the length of the name, one for the type, two
            // for its own.
            let value = &headers[1 + usize::from(headers[0]) + 3..];
            let value = value.split(|byte| *byte < b' ').next().unwrap();
            messages.push(String::from_utf8([value, b" ", payload].concat()).unwrap());
            rest = after;
        }
        messages
    };
    let expected =
        ["messageStart {}", "delta \"a\"", "delta \"b\"", "stop \"length\"", "metadata 2"];
    assert_eq!(messages(&got.bytes()), expected);
    let failed = messages(&post(&engine, "/x", &ask).await.bytes());
    assert_eq!(failed[..2], expected[..2]);
    assert!(failed[2].starts_with("someException \""), "{failed:?}");
}

#[test]
fn events_of_aws_need_names() {
    let route = |keys: &str| {
        let script =
            format!("[[route]]\npath = '/x'\nprompt = '/p'\nframing = 'aws-event-stream'\n{keys}");
        script.parse::<Script>().map_err(|error| error.to_string())
    };
    assert!(route("event = 'a {text}'\nerror-event = 'bException {message}'").is_ok());
    let error = route("event = '{text}'").unwrap_err();
    assert!(error.contains("script:5:9: `route.event`: with `framing"), "{error}");
    assert!(error.contains("script:1:1: `route.error-event` is missing"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_scripted_route_stands_before_our_own() {
    let engine = engine(
        "[[route]]\npath = '/generate'\nprompt = '/q'\nstream = 'never'\nwhole = '{tokens}'\n[[route]]\npath = '/v1/models'\nbody = '[]'",
    );
    let got = post(&engine, "/generate", r#"{"q":"a"}"#).await;
    assert_eq!(got.body(), "128");
    assert_eq!(get(&engine, "/v1/models").await.body(), "[]");
    assert_eq!(complete(&engine, 2).await.status, 200);
}

#[test]
fn all_mistakes_are_reported_with_their_lines() {
    let script = r#"
ttft = 5
[[route]]
path = "infer"
prompt = "input"
event = '{"t":{txt}}'
evnt = 'x'

[[route]]
path = "/a"

[[route]]
path = "/a"
body = "x"
event = '{text}'
status = 99

[[route]]
path = "/b"
prompt = "/p"
stream = "/s"
event = "{text}\n{finish}"
prefix = { width = 3 }

[[route]]
path = "/c"
prompt = "/p"
stream = "never"
end = '{tokens}'
status = 200

[[route]]
path = "/d"
prompt = "/p"
framing = "whole"
stream = "always"
whole = '{text}'

[[route]]
path = "/e"
prompt = "/p"
event = "{text}\n{tokens}"
prefix = { width = 4 }
content-type = "a\nb"

[[route]]
path = "/f"
body = ""
[[route]]
path = "/f"
body = ""
"#;
    let error = script.parse::<Script>().unwrap_err().to_string();
    let expected = [
        "2:8: `ttft`: expected a time such as \"120ms\", found the integer 5",
        "4:8: `route.path`: expected a path such as \"/generate\", but found \"infer\"",
        "5:10: `route.prompt`: expected a JSON pointer such as \"/parameters/max_new\", but found \"input\"",
        "6:9: `route.event`: expected a template, but `{txt}` is not a placeholder; use one of {text}",
        "7:1: unknown key `evnt`; did you mean `event`?",
        "9:1: `route.prompt` is missing",
        "9:1: `route.event` is missing",
        "15:9: `route.event` has no effect in a route with a `body`",
        "16:10: `route.status`: expected a status from 200 to 599, found 99",
        "18:1: `route.whole` is missing",
        "22:9: `route.event`: expected a template, but `{finish}` is not valid here",
        "23:20: `route.prefix.width`: expected 4 or 8, found 3",
        "23:20: `route.prefix` has no effect without `framing = \"length-prefixed\"`",
        "25:1: `route.whole` is missing",
        "29:7: `route.end` has no effect in a route that never streams",
        "30:10: `route.status` has no effect without a `body`",
        "32:1: a route with `framing = \"whole\"` cannot stream",
        "37:9: `route.whole` has no effect in a route that always streams",
        "42:9: `route.event` has several lines",
        "43:20: `route.prefix` has no effect without",
        "44:16: `route.content-type`: expected a media type, but found \"a\\nb\"",
        "49:1: `route`: GET /f is defined twice",
    ];
    let messages: Vec<&str> = error.lines().filter(|line| line.starts_with("script:")).collect();
    for (line, expected) in messages.iter().zip(expected) {
        assert!(line.starts_with(&format!("script:{expected}")), "{line}\n{expected}");
    }
    assert_eq!(messages.len(), expected.len(), "{error}");
}
