//! Secrets in commands, and in the bodies of requests.

use crate::access::Access;

use super::*;

#[test]
fn secrets_do_not_stay_in_the_command_line() {
    let line = [
        "runner",
        "--header",
        "Authorization: Bearer sk",
        "--header=X: y",
        "--set",
        "target.headers.x-tenant=y",
        "--set=target.headers.x=y=z",
        "--base-url",
        "http://me:pw@host:1/x@y",
        "--api-key-env",
        "NAME",
        "--launch-command",
        "vllm serve m --api-key sk-1",
        "--model",
        "m",
    ];
    assert_eq!(
        command_line(line.map(str::to_owned)),
        [
            "runner",
            "--header",
            "[redacted]",
            "--header=[redacted]",
            "--set",
            "target.headers.x-tenant=[redacted]",
            "--set=target.headers.x=[redacted]",
            "--base-url",
            "http://[redacted]@host:1/x@y",
            "--api-key-env",
            "NAME",
            "--launch-command",
            "vllm serve m --api-key [redacted]",
            "--model",
            "m"
        ]
    );
}

#[test]
fn commands_keep_all_but_their_secrets() {
    for (given, kept) in [
        ("vllm serve m --api-key sk-1 -tp 8", "vllm serve m --api-key [redacted] -tp 8"),
        ("vllm serve m --api-key=sk-1", "vllm serve m --api-key=[redacted]"),
        (
            "lmdeploy serve api_server m --api-keys a b --tp 1",
            "lmdeploy serve api_server m --api-keys [redacted] [redacted] --tp 1",
        ),
        (
            "HF_TOKEN=hf_1 sglang.launch_server --admin-api-key 'x'",
            "HF_TOKEN=[redacted] sglang.launch_server --admin-api-key [redacted]",
        ),
        (
            "docker run --env \"HF_TOKEN=$HF_TOKEN\" -e KEY=1 \\\n    --api-key \\\n  sk-1 img",
            "docker run --env \"HF_TOKEN=$HF_TOKEN\" -e KEY=[redacted] \\\n    --api-key \\\n  [redacted] img",
        ),
        (
            "vllm serve m --max-num-batched-tokens 8192 --tokenizer t --ssl-keyfile f",
            "vllm serve m --max-num-batched-tokens 8192 --tokenizer t --ssl-keyfile f",
        ),
        ("curl https://me:pw@h/x", "curl https://[redacted]@h/x"),
        ("curl https://h/x?api_key=1&b=2", "curl https://h/x?api_key=[redacted]&b=2"),
        ("curl https://h?u=a@b", "curl https://h?u=a@b"),
        ("serve --apikey X", "serve --apikey [redacted]"),
        ("serve --apiKey=X", "serve --apiKey=[redacted]"),
        ("serve --api_key=X --b", "serve --api_key=[redacted] --b"),
        ("serve --API-KEY X", "serve --API-KEY [redacted]"),
        ("serve --api-key \"a b\" m", "serve --api-key [redacted] m"),
        ("serve -k X m", "serve -k [redacted] m"),
        ("curl -k https://h", "curl -k https://h"),
        ("TOKEN=x serve", "TOKEN=[redacted] serve"),
        ("export 'AWS_SECRET_ACCESS_KEY=x y'", "export 'AWS_SECRET_ACCESS_KEY=[redacted]'"),
        ("docker run --env=HF_TOKEN=x i", "docker run --env=HF_TOKEN=[redacted] i"),
        ("docker run -e \"A_PASSWORD=x\" i", "docker run -e \"A_PASSWORD=[redacted]\" i"),
        ("HF_TOKEN=hf_1 vllm serve m", "HF_TOKEN=[redacted] vllm serve m"),
        ("curl -H 'Authorization: Bearer x' h", "curl -H 'Authorization: [redacted]' h"),
        ("serve --header \"X-Api-Key: x\" m", "serve --header \"X-Api-Key: [redacted]\" m"),
        ("serve --header=X-Tenant:x m", "serve --header=X-Tenant: [redacted] m"),
        ("curl Authorization: Bearer x", "curl Authorization: Bearer [redacted]"),
        ("curl X-Api-Key:x", "curl X-Api-Key:[redacted]"),
        ("curl -u me:pw h", "curl -u [redacted] h"),
        ("docker run -u 1000:1000 i", "docker run -u 1000:1000 i"),
        ("login hf_0123456789abcdef", "login [redacted]"),
        ("serve sk-0123456789abcdef", "serve [redacted]"),
        (
            "bash -c \"A=b HF_TOKEN=x vllm serve --api-key y\"",
            "bash -c \"A=b HF_TOKEN=[redacted] vllm serve --api-key [redacted]\"",
        ),
        (
            "serve --config '{\"api_key\":\"x\",\"max_tokens\":5}' m",
            "serve --config '{\"api_key\":\"[redacted]\",\"max_tokens\":5}' m",
        ),
        ("serve --config '{ \"max_tokens\": 5 }' m", "serve --config '{ \"max_tokens\": 5 }' m"),
        ("echo it's --api-key x", "echo it's --api-key [redacted]"),
        (
            "serve --password p --passphrase q",
            "serve --password [redacted] --passphrase [redacted]",
        ),
        ("a  b\n", "a  b\n"),
    ] {
        assert_eq!(command(given), kept, "{given}");
    }
}

#[test]
fn fields_that_are_named_as_secrets_are_replaced() {
    let mut body = serde_json::json!({
        "max_tokens": 5, "stop_token_ids": [1], "top_k": 3, "cache_salt": "s", "apiKey": "k",
        "user": { "hf_token": 7, "name": "n", "secret": null }, "list": ["Bearer x", "plain"],
    });
    assert_eq!(secrets_in(&body, &[]), ["s", "k", "7", "Bearer x"]);
    fields(&mut body, &|_| "-".to_owned());
    let expected = serde_json::json!({
        "max_tokens": 5, "stop_token_ids": [1], "top_k": 3, "cache_salt": "-", "apiKey": "-",
        "user": { "hf_token": "-", "name": "n", "secret": null }, "list": ["-", "plain"],
    });
    assert_eq!(body, expected);
}

#[test]
fn a_secret_that_holds_another_is_removed_whole() {
    // The shorter one comes first, as a header may before a key.
    let known = Known::new(["open", "opensesame", "it"].map(String::from));
    assert_eq!(known.redact("opensesame, open it"), "[redacted], [redacted] it");
    let secrets = Secrets {
        access: Access::Bearer("open".to_owned()),
        headers: vec![("x-key".to_owned(), "opensesame".to_owned())],
        ..Secrets::default()
    };
    assert_eq!(secrets.redact("opensesame"), "[redacted]");
    assert_eq!(format!("{known:?}"), "Known(…)");
}

#[test]
fn known_secrets_are_removed_from_the_description() {
    let secrets = Secrets { access: Access::Bearer("abcdef".to_owned()), ..Secrets::default() };
    let stated = About {
        launch_command: Some("serve abcdef".to_owned()),
        notes: [("key".to_owned(), "is abcdef".to_owned())].into(),
        ..About::default()
    };
    let kept = about(stated, &secrets);
    assert_eq!(kept.launch_command.as_deref(), Some("serve [redacted]"));
    assert_eq!(kept.notes["key"], "is [redacted]");
}

/// A stranger's scenario may hold any words; they must not take the stack.
#[test]
fn deep_nesting_is_removed_whole() {
    let deep = "a=".repeat(200_000) + "b";
    let shown = command(&deep);
    assert!(shown.ends_with(REDACTED) && shown.len() < 100, "{shown}");
}

#[test]
fn keys_that_a_schema_marks_are_secret_whatever_their_names() {
    let schema = serde_json::json!({
        "properties": {
            "signing": { "type": "string", "writeOnly": true },
            "voice": { "type": "string", "writeOnly": false },
            "login": { "$ref": "#/$defs/login" },
        },
        "$defs": { "login": { "properties": { "pin": { "writeOnly": true } } } },
    });
    let names = write_only(&schema);
    assert_eq!(names, ["pin", "signing"]);
    let config = serde_json::json!({ "signing": "open", "voice": "x", "login": { "pin": 1234 } });
    assert_eq!(secrets_in(&config, &names), ["open", "1234"]);
}
