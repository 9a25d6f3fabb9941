//! Plugins whose faults no single call shows, and the checks that find them.

use serde_json::Value;

use super::{Project, SAMPLE, WORDS};

/// Lists the failures in a case's report, each with its kind and its one-line text.
fn failures(report: &Value) -> Vec<(String, String)> {
    let failures = report["cases"][0]["failures"].as_array().unwrap();
    let kind_and_message = |failure: &Value| {
        let keys = ["what", "file", "doing"];
        let what = keys.iter().find_map(|key| failure[key].as_str()).unwrap();
        let error = failure["error"].as_str().unwrap_or_default();
        (failure["kind"].as_str().unwrap().to_owned(), format!("{what} {error}"))
    };
    failures.iter().map(kind_and_message).collect()
}

#[test]
fn a_reply_without_an_end_is_neither_passed_nor_blessed() {
    let project = Project::asking("", "reply.lines", b"one\ntwo\n");
    for words in [&["--bless"][..], &[]] {
        project.test(words).with_stdout(4, "the backend gives no `end` event");
        assert!(!project.path("cases/words/events.json").exists());
    }
    // Next to a reply that is whole, it is the case of a reply that was cut off.
    project.write("cases/whole/sample.json", SAMPLE);
    project.write("cases/whole/reply.lines", WORDS);
    project.test(&["--bless"]).with_code(0);
    project.test(&["--filter", "words"]).with_code(0);
}

#[test]
fn a_backend_that_is_unsteady_is_found_out() {
    let faults = [
        ("by-batch", "unstable", "frame by frame gives different events than in one batch"),
        ("forgets", "unstable", "frame by frame gives different events than in one batch"),
        ("in-instance", "unstable", "each frame in a different instance than the previous one"),
        ("everlasting", "unstable", "in one batch a second time gives different events"),
        ("looks-ahead", "unstable", "frame by frame gives different events than in one batch"),
        (
            "requests",
            "unstable",
            "writing the request again in the same instance gave a different result",
        ),
        ("begins", "unstable", "in one batch a second time gives different events"),
        ("trusting", "misbehaved", "it panicked: "),
    ];
    for (fault, kind, words) in faults {
        let project = Project::asking(&format!("fault = \"{fault}\"\n"), "reply.lines", WORDS);
        project.test(&["--bless"]).with_code(4);
        let failures = failures(&project.report(4));
        assert!(
            failures.iter().any(|(found, message)| found == kind && message.contains(words)),
            "{fault}: {failures:#?}"
        );
        // Output of a plugin that does something wrong is not written.
        for file in ["events.json", "request.http"] {
            assert!(!project.path(&format!("cases/words/{file}")).exists(), "{fault}: {file}");
        }
    }
}

#[test]
fn a_steady_backend_holds_in_every_framing() {
    let mut lengths = Vec::new();
    for word in ["one", "two", "three", "end"] {
        lengths.extend(u16::try_from(word.len()).unwrap().to_le_bytes());
        lengths.extend(word.as_bytes());
    }
    let replies: [(&str, &str, &[u8], &str); 3] = [
        ("lines", "reply.lines", WORDS, r#"{"frame":2,"kind":"text","text":"three#3","tokens":1}"#),
        (
            "lengths",
            "reply.bin",
            &lengths,
            r#"{"frame":2,"kind":"text","text":"three#3","tokens":1}"#,
        ),
        // The network cuts at random, so events belong to no frame and pieces are joined.
        (
            "raw",
            "reply.bin",
            WORDS,
            r#"{"kind":"text","text":"one#1two#2three#3four#4five#5","tokens":5}"#,
        ),
    ];
    for (framing, reply, body, event) in replies {
        let project = Project::asking(&format!("framing = \"{framing}\"\n"), reply, body);
        project.test(&["--bless"]).with_code(0);
        let events = project.read("cases/words/events.json");
        assert!(events.contains(event), "{framing}: {events}");
        let report = project.report(0);
        let checks = &report["checks"];
        assert!(checks["decodings"].as_u64() > Some(100), "{framing}: {checks}");
        assert!(checks["damaged"].as_u64() > Some(50), "{framing}: {checks}");
    }
}

#[test]
fn a_raw_backend_that_drops_partial_frames_is_detected() {
    let config = "framing = \"raw\"\nfault = \"forgets\"\n";
    let failures = failures(&Project::asking(config, "reply.bin", WORDS).report(4));
    assert!(failures[0].1.contains("cuts it at random bytes"), "{failures:#?}");
}

#[test]
fn a_raw_reply_that_is_read_twice_is_found_out() {
    let config = "framing = \"raw\"\nfault = \"reads-twice\"\n";
    let failures = failures(&Project::asking(config, "reply.bin", WORDS).report(4));
    assert!(
        failures.iter().any(
            |(kind, message)| kind == "unstable" && message.contains("cuts it at random bytes")
        ),
        "{failures:#?}"
    );
}

#[test]
fn a_request_is_written_from_the_last_replys_values() {
    let project = Project::new("unsteady-backend");
    let sample = |carry: &str| {
        format!(
            "{{\"id\": \"2\", \"prompt\": {{\"text\": \"x\"}}, \"earlier\": {{\"carry\": {carry}, \"messages\": 3}}}}\n"
        )
    };
    project.write("cases/text/sample.json", sample("\"abc\""));
    project.write("cases/bytes/sample.json", sample("[100, 101]"));
    project.test(&["--bless"]).with_code(0);
    for (case, carry) in [("text", "abc"), ("bytes", "de")] {
        let request = project.read(&format!("cases/{case}/request.http"));
        assert_eq!(request, format!("POST /2/after/{carry}/3\n"));
    }
    // Unsteady only where there is something earlier.
    project.write("cases/bytes/sample.json", SAMPLE);
    for case in ["text", "bytes"] {
        let config = "fault = \"next-requests\"\n";
        project.write(&format!("cases/{case}/config.toml"), config);
    }
    project.write("cases/bytes/request.http", "POST /1\n");
    let report = project.report(4);
    let names = report["cases"].as_array().unwrap().iter().map(|case| {
        let failed = !case["failures"].as_array().unwrap().is_empty();
        (case["name"].as_str().unwrap(), failed)
    });
    assert_eq!(names.collect::<Vec<_>>(), [("bytes", false), ("text", true)]);
}

#[test]
fn a_reply_begins_with_its_head() {
    let project = Project::asking("", "reply.lines", WORDS);
    project
        .write("cases/words/head.json", "{\"status\": 201, \"headers\": {\"x-words\": \"40\"}}\n");
    project.test(&["--bless"]).with_code(0);
    let events = project.read("cases/words/events.json");
    assert!(events.contains("\"text\":\"one#41\""), "{events}");
    // An unreadable head is an error before the first frame.
    project.write("cases/words/head.json", "{\"headers\": {\"x-words\": \"many\"}}\n");
    project.test(&["--bless"]).with_code(0);
    assert_eq!(project.read("cases/words/events.json"), "[]\n");
    assert_eq!(project.read("cases/words/error.txt"), "protocol: `many` words before the reply\n");
    // All mistakes at once.
    project
        .write("cases/words/head.json", "{\"status\": 404, \"headers\": {\"X-Words\": \"4\"}}\n");
    project.write("cases/alone/sample.json", SAMPLE);
    project.write("cases/alone/head.json", "{}\n");
    let ended = project.test(&[]).with_code(3);
    for words in [
        "words/head.json: status: expected a success status, from 200 to 299, found 404",
        "words/head.json: headers.X-Words: write `x-words`; names are in lower case",
        "alone/head.json: is the beginning of a reply with a success status, but there is none beside it",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn input_beside_replies_is_damaged_too() {
    let project = Project::new("unsteady-backend");
    project.write("cases/error/config.toml", "fault = \"trusting\"\n");
    project.write("cases/error/sample.json", SAMPLE);
    project.write("cases/error/reply.429.txt", "too much to do");
    let found = failures(&project.report(4));
    assert!(
        found.iter().any(|(_, message)| message.contains("explaining the error reply, damaged")
            && message.contains("only text comes")),
        "{found:#?}"
    );
    let project = Project::new("unsteady-backend");
    project.write("cases/metrics/config.toml", "fault = \"trusting\"\n");
    project.write("cases/metrics/control.txt", "metrics\n");
    project.write("cases/metrics/reply.txt", "12\n");
    let found = failures(&project.report(4));
    assert!(
        found.iter().any(|(_, message)| message.contains("reading the metrics, damaged")
            && message.contains("broke its contract")),
        "{found:#?}"
    );
}

#[test]
fn over_grpc_the_reply_to_a_control_request_has_its_trailers() {
    let component = super::component("backends/triton-grpc.wasm");
    let project = Project { component, ..Project::new("unsteady-backend") };
    let list = br#"{"data": [{"id": "m"}]}"#;
    let message = [&[0, 0, 0, 0, list.len() as u8], &list[..]].concat();
    project.write("cases/models/control.txt", "list-models\n");
    project.write("cases/models/reply.grpc", &message);
    let found = failures(&project.report(4));
    assert!(
        found.iter().any(|(kind, text)| kind == "misfit"
            && text.contains("the reply beside control.txt: a reply of gRPC has no trailers")),
        "{found:#?}"
    );
    let trailers = b"\x80\0\0\0\x10grpc-status: 0\r\n";
    project.write("cases/models/reply.grpc", [&message[..], trailers].concat());
    project.test(&["--bless"]).with_code(0);
    assert_eq!(project.read("cases/models/models.json"), "[\n  \"m\"\n]\n");
}

#[test]
fn a_dataset_that_is_unsteady_is_found_out() {
    let faults = [
        ("by-limit", "unstable", "one by one, in a fresh instance, gives different samples"),
        ("same-id", "misbehaved", "it returned two samples with the id `9`"),
        ("spare-measured", "breach", "the spare sample `spare-1` is also measured"),
        (
            "spare-turns",
            "breach",
            "the spare sample `spare-1` depends on others; spare samples stand alone",
        ),
        (
            "scattered",
            "breach",
            "sample `3` depends on `2`, which did not come before it in its session",
        ),
        (
            "orphans",
            "breach",
            "sample `2` depends on `nobody`, which did not come before it in its session",
        ),
        ("hasty", "breach", "sample `2` continues `1` without depending on its end"),
        ("remarks-by-call", "unstable", "one by one, in a fresh instance, gives different remarks"),
    ];
    for (fault, kind, words) in faults {
        let project = Project::new("unsteady-dataset");
        let turns = if matches!(fault, "scattered" | "orphans" | "hasty") { 3 } else { 1 };
        let config = format!("fault = \"{fault}\"\nturns = {turns}\n");
        project.write("cases/some/config.toml", config);
        project.write("cases/some/case.toml", "seed = 7\nspare = 2\n");
        let failures = failures(&project.report(4));
        assert!(
            failures.iter().any(|(found, message)| found == kind && message.contains(words)),
            "{fault}: {failures:#?}"
        );
    }
}

/// Most runs draw spare samples: a case without any must not pass if they break the sessions.
#[test]
fn every_case_finds_a_spare_sample_that_splits_a_session() {
    let case = |fault: &str| {
        let project = Project::new("unsteady-dataset");
        let config = format!("fault = \"{fault}\"\nturns = 3\n");
        project.write("cases/some/config.toml", config);
        project.write("cases/some/case.toml", "seed = 7\n");
        project
    };
    let project = case("spare-later");
    let found = failures(&project.report(4));
    assert!(
        found.iter().any(|(kind, message)| {
            kind == "breach"
                && message.contains("after `spare`: sample `2` depends on `1`")
                && message.contains("`next` must not return the rest")
        }),
        "{found:#?}"
    );
    project.test(&["--bless"]).with_code(4);
    assert!(!project.path("cases/some/samples.json").exists());
    // The SDK's default leaves the rest of the session out.
    let project = case("spare-default");
    project.test(&["--bless"]).with_code(0);
    let shown: Value = serde_json::from_str(&project.read("cases/some/samples.json")).unwrap();
    assert_eq!(shown["samples"][0]["id"], "1", "the case has no spare sample");
    project.write("cases/some/case.toml", "seed = 7\nspare = 2\n");
    project.test(&["--bless"]).with_code(0);
    let shown: Value = serde_json::from_str(&project.read("cases/some/samples.json")).unwrap();
    let ids = |key: &str| {
        let samples = shown[key].as_array().unwrap().iter();
        samples.map(|sample| sample["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (ids("spare"), ids("samples")),
        (
            vec!["1".to_owned(), "4".to_owned()],
            vec!["7".to_owned(), "8".to_owned(), "9".to_owned()],
        )
    );
}

/// The run refuses this backend before it sends anything.
#[test]
fn a_key_in_a_header_of_the_host_is_refused() {
    for name in ["host", "Content-Length", "te", ""] {
        let project = Project::new("keyed-backend");
        let config = format!("scheme = \"header\"\nname = \"{name}\"\n");
        project.write("cases/some/config.toml", config);
        project.write("cases/some/sample.json", SAMPLE);
        project.test(&["--bless"]).with_code(4);
        assert!(!project.path("cases/some/request.http").exists());
        let found = failures(&project.report(4));
        assert!(
            found[0].1.contains(&format!("it names `{name}` as the header of the key")),
            "{found:#?}"
        );
    }
    let project = Project::new("keyed-backend");
    let config = "scheme = \"header\"\nname = \"x-api-key\"\n";
    project.write("cases/some/config.toml", config);
    project.write("cases/some/sample.json", SAMPLE);
    project.test(&["--bless"]).with_code(0);
}

#[test]
fn a_steady_dataset_holds_and_depends_on_its_seed() {
    let project = Project::new("unsteady-dataset");
    project.write("cases/some/case.toml", "seed = 7\nspare = 2\n");
    project.test(&["--bless"]).with_code(0);
    let digest = project.read("cases/some/digest.txt");
    assert!(digest.ends_with("  1000 samples\n"), "{digest}");
    project.report(0);
    project.write("cases/some/case.toml", "seed = 8\nspare = 2\n");
    let files: Vec<String> = failures(&project.report(4))
        .into_iter()
        .map(|(_, message)| message.trim().to_owned())
        .collect();
    assert_eq!(files, ["samples.json", "digest.txt"]);
}

#[test]
fn sessions_and_remarks_are_expectations() {
    let project = Project::new("unsteady-dataset");
    project.write("cases/some/config.toml", "turns = 3\nremarks = true\n");
    project.write("cases/some/case.toml", "sessions = 4\n");
    project.test(&["--bless"]).with_code(0);
    let digest = project.read("cases/some/digest.txt");
    assert!(digest.ends_with("  12 samples\n"), "{digest}");
    let samples: Value = serde_json::from_str(&project.read("cases/some/samples.json")).unwrap();
    let second = &samples["samples"][1];
    assert_eq!(second["prompt"]["continues"], "1");
    let after = serde_json::json!([{"sample": "1", "point": "end", "delay": 1_000_000}]);
    assert_eq!(second["after"], after);
    assert_eq!(
        project.read("cases/some/remarks.json"),
        "[\n  {\"what\":\"dropped\",\"reason\":\"fewer than two words\",\"count\":3,\"first\":\"line 7\"},\n  \
         {\"what\":\"repeated\",\"reason\":\"not enough lines\",\"count\":1,\"first\":\"line 7\"}\n]\n"
    );
    project.report(0);
    // Without remarks there is no such file.
    project.write("cases/some/config.toml", "turns = 3\n");
    let found = failures(&project.report(4));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].1.starts_with("remarks.json"), "{found:#?}");
    project.write("cases/some/case.toml", "sessions = 4\ncount = 12\n");
    project.test(&[]).with_stderr(3, "but this case gives both");
}

#[test]
fn a_scorer_that_gives_no_number_is_found_out() {
    let project = Project::new("hostile-scorer");
    project.write("cases/some/exchanges.json", "[{\"id\": \"a\", \"output\": \"x\"}]\n");
    project.test(&["--bless"]).with_code(0);
    let scores = project.read("cases/some/scores.json");
    assert!(scores.contains("{\"id\":\"a\",\"scores\":{\""), "{scores}");
    project.write("cases/some/config.toml", "answer = \"nan\"\ncall = \"score\"\n");
    let failures = failures(&project.report(4));
    assert!(
        failures[0].1.contains("broke its contract in `score`") && failures[0].1.contains("NaN"),
        "{failures:#?}"
    );
}
