//! Command lines of users of `vllm bench serve`, SGLang's `bench_serving`, LMDeploy's
//! `profile_restful_api.py` and guidellm: names of backends and datasets, flags, paths.
//!
//! `inputs` holds the help of these tools, as `vllm bench serve --help=all`,
//! `bench_serving.py --help`, `profile_restful_api.py --help` and `guidellm run --help` print it.

mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Command, CommandFactory};
use serde_json::Value;

use super::transcript;
use crate::support::process::{Mock, only_run, run, runner, words};
use crate::support::raw::{Raw, whole};
use crate::support::results::{json_file, json_lines};
use page::{Theirs, Tool};
use runner::cli::flags::familiar::line;
use runner::cli::flags::{backends, datasets};

const VLLM: &str = include_str!("inputs/vllm-bench-serve-0.32.txt");
const SGLANG: &str = include_str!("inputs/sglang-bench-serving-0.5.23.txt");
const LMDEPLOY: &str = include_str!("inputs/lmdeploy-profile-restful-api-0.16.0.txt");
const GUIDELLM: &str = include_str!("inputs/guidellm-run-0.8.1.txt");
const TOOLS: [(Tool, &str, &str); 3] = [
    (Tool::Vllm, VLLM, "## Flags of vllm bench serve"),
    (Tool::Sglang, SGLANG, "## Flags of SGLang's bench_serving"),
    (Tool::Lmdeploy, LMDEPLOY, "## Flags of LMDeploy's profile_restful_api.py"),
];

/// The flags of a help text, two spaces from the left, in the order of their names.
fn flags(help: &str) -> Vec<Theirs> {
    let mut flags = Vec::new();
    for line in help.lines().filter(|line| line.starts_with("  -")) {
        // Several names of one option stand on one line, the value after the last; help begins two
        // blanks further.
        let option = line.trim_start().split("  ").next().unwrap_or_default();
        let takes = !option.split(", ").last().unwrap_or_default().starts_with("--")
            || option.split(", ").last().unwrap_or_default().contains(' ');
        for name in option.split(", ") {
            let long = name.split(' ').next().unwrap_or_default();
            if let Some(long) = long.strip_prefix("--") {
                let long = long.to_owned();
                flags.push(Theirs { long, takes });
            }
        }
    }
    flags.sort_by(|a, b| a.long.cmp(&b.long));
    flags
}

/// Lists the values that `--NAME {a,b}` allows.
fn choices<'h>(help: &'h str, flag: &str) -> Vec<&'h str> {
    let start = format!("  --{flag} {{");
    let line = help.lines().find_map(|line| line.strip_prefix(&*start));
    let list = line.and_then(|line| line.split('}').next());
    let list = list.unwrap_or_else(|| panic!("--{flag} has no choices"));
    list.split(',').collect()
}

fn run_command() -> Command {
    let cli = runner::cli::Cli::command();
    let run = cli.find_subcommand("run");
    run.cloned().unwrap_or_else(|| panic!("there is `run`"))
}

#[test]
fn help_is_read_as_it_is() {
    let (vllm, sglang, lmdeploy) = (flags(VLLM), flags(SGLANG), flags(LMDEPLOY));
    let has = |flags: &[Theirs], long: &str, takes: bool| {
        let long = long.to_owned();
        flags.contains(&Theirs { long, takes })
    };
    assert_eq!((vllm.len(), sglang.len(), lmdeploy.len()), (103, 88, 30));
    for (long, takes) in [
        ("append-result", false),
        ("header", true),
        ("self-timed", false),
        ("no-self-timed", false),
        ("top-p", true),
    ] {
        assert!(has(&vllm, long, takes), "{long}");
    }
    for (long, takes) in [("gsp-ordered", false), ("lora-name", true)] {
        assert!(has(&sglang, long, takes), "{long}");
    }
}

/// The guide's tables are written by the flags' own declarations; `BLESS=1` writes them again.
#[test]
fn the_guide_has_every_flag_of_the_other_tools() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../guide/src/coming-from.md");
    let text = std::fs::read_to_string(file).unwrap();
    let mut page = text.clone();
    let command = run_command();
    for (tool, help, heading) in TOOLS {
        let flags = flags(help);
        let faults = flags.iter().filter_map(|theirs| page::fault(&command, theirs));
        assert_eq!(faults.collect::<Vec<_>>(), Vec::<String>::new(), "{tool:?}");
        let table = page::table(&command, tool, &flags);
        let table = table.unwrap_or_else(|missing| {
            panic!("{tool:?}: neither supported nor refused: {}", missing.join(", "))
        });
        let from = page.find(heading).unwrap_or_else(|| panic!("{heading}"));
        let from = from + heading.len();
        let to = page[from..].find("\n## ").map_or(page.len(), |to| from + to);
        page.replace_range(from..to, &format!("\n\n{table}"));
    }
    let names = backends::ALIASES.iter().map(|alias| alias.name);
    let names = names.chain(backends::REFUSED.iter().map(|(name, _)| *name));
    let names = names.chain(datasets::ALIASES.iter().map(|alias| alias.name));
    for name in names.chain(datasets::REFUSED.iter().map(|(name, _)| *name)) {
        assert!(page.contains(&format!("`{name}`")), "the guide lacks {name}");
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file, &page).unwrap();
        return;
    }
    assert!(page == text, "{file} is stale; BLESS=1 writes it again");
}

/// guidellm's flags hold several values each, so that few of them can be taken as they are. The
/// guide gives a replacement for each, in existing flags.
#[test]
fn the_guide_has_guidellms_flags_and_their_replacements() {
    let page = include_str!("../../host/guide/src/coming-from.md");
    let (_, section) = page.split_once("\n## guidellm\n").unwrap();
    let section = section.split("\n## ").next().unwrap_or_default();
    let theirs = flags(GUIDELLM).into_iter();
    for Theirs { long, .. } in theirs.filter(|theirs| theirs.long != "help") {
        assert!(section.contains(&format!("`--{long}")), "--{long}");
    }
    let command = run_command();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let here = rows.filter_map(|line| line.split(" | ").nth(1));
    let named: Vec<&str> = here
        .flat_map(|here| here.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')))
        .filter_map(|word| word.strip_prefix("--"))
        .filter(|long| !["format", "output", "rates"].contains(long))
        .collect();
    assert!(named.len() > 15, "{named:?}");
    for long in named {
        assert!(page::own(&command, long).is_some(), "--{long}");
    }
}

#[test]
fn every_backend_and_dataset_of_these_tools_is_known_or_refused() {
    let ships = |name: String| shipped::has_plugin(&name);
    for (tool, help, _) in TOOLS {
        for name in choices(help, "backend") {
            let known = backends::alias(name).is_some()
                || backends::REFUSED.iter().any(|(refused, _)| *refused == name)
                || ships(backends::file(name));
            assert!(known, "{tool:?}: --backend {name}");
        }
        for name in choices(help, "dataset-name") {
            let known = datasets::alias(name).is_some()
                || datasets::REFUSED.iter().any(|(refused, _)| *refused == name)
                || ships(datasets::file(name));
            assert!(known, "{tool:?}: --dataset-name {name}");
        }
    }
}

/// Returns the facts that `runner plugin info` prints, as JSON.
fn info(plugin: &str) -> Value {
    run(runner().args(["plugin", "info", plugin, "--json"])).with_code(0).json()
}

#[test]
fn names_set_the_keys_of_their_plugins() {
    for alias in backends::shipped_aliases() {
        let Some(route) = alias.route else { continue };
        let schema = info(&backends::file(alias.plugin)).to_string();
        assert!(schema.contains(route), "{alias:?}: {schema}");
    }
    for alias in &datasets::ALIASES {
        let schema = info(&datasets::file(alias.plugin)).to_string();
        for (key, value) in alias.config {
            assert!(schema.contains(key), "{alias:?}: {key}");
            let word = value.trim_matches('"');
            assert!(word == *value || schema.contains(word), "{alias:?}: {value}");
        }
    }
}

/// The scenario that a command line describes, without the comments that name the origins.
fn shown(flags: &str) -> (String, String) {
    let ended = run(runner().args(["scenario", "show"]).args(words(flags))).with_code(0);
    let lines = ended.stdout.lines();
    let lines = lines.map(|line| line.split("  #").next().unwrap_or_default());
    (lines.collect::<Vec<_>>().join("\n"), ended.stderr)
}

#[test]
fn flags_of_theirs_become_keys() {
    for (flags, expected) in [
        (
            "--backend sglang --dataset-name generated-shared-prefix --gsp-num-groups 4 --gsp-system-prompt-len 100 \
             --gsp-group-distribution zipf --gsp-zipf-alpha 1 --gsp-ordered",
            &[
                "plugin = \"datasets/shared-prefix.wasm\"",
                "config.algorithm = \"sglang\"",
                "config.groups = 4",
                "config.prefix-len = 100",
                "config.zipf = 1.0",
                "config.shuffle = false",
            ][..],
        ),
        (
            "--backend vllm --dataset-name timed_trace --dataset-path t.jsonl --timed-trace-label-timestamp at \
             --timed-trace-label-hash-ids 5 --timed-trace-sec-multiplier 0.001",
            &[
                "config.format = \"vllm-timed\"",
                "config.time-unit = 0.001",
                "timestamp = \"at\"",
                "hash-ids = \"5\"",
                "arrival = \"dataset\"",
            ],
        ),
        (
            "--backend sglang-oai-chat --dataset-name image --image-resolution 1080x1920 --image-content blank \
             --random-input-len 64",
            &[
                "config.route = \"chat\"",
                "config.sizes = [\"1920x1080\"]",
                "config.noise = 0.0",
                "config.input-len = 64",
            ],
        ),
        (
            "--backend vllm --model org/model --served-model-name m --label quick --tag nightly --num-warmups 3 \
             --header a=1 b=2 --lora-name x y --lora-request-distribution distinct",
            &[
                "model = \"m\"",
                "path = \"org/model\"",
                "name = \"quick\"",
                "tag = \"nightly\"",
                "warmup = 3",
                "headers.a: not shown",
                "headers.b: not shown",
                "adapters = [\"x\", \"y\"]",
                "adapter-assignment = \"round-robin\"",
                "plugin = \"datasets/random.wasm\"",
            ],
        ),
        (
            "--backend vllm-pooling --random-input-len 32 --random-batch-size 4",
            &["plugin = \"datasets/embeddings.wasm\"", "config.batch-size = 4", "stream = false"],
        ),
        (
            "--backend vllm --endpoint /tenant/v1/chat/completions --base-url localhost:9",
            &["config.route = \"chat\"", "base-url = \"localhost:9/tenant\""],
        ),
        (
            "--backend openai --endpoint /api/v3/chat/completions",
            &["config.route = \"chat\"", "config.prefix = \"/api/v3\""],
        ),
        (
            "--backend sglang --host ::1 --dataset-name random",
            &["base-url = \"http://[::1]:30000\""],
        ),
        (
            "--backend openai --dataset-name custom --custom-output-len -1",
            &["plugin = \"datasets/custom.wasm\""],
        ),
        (
            "--backend openai --dataset-name random --tokenize-prompt",
            &["config.route = \"completions\"", "config.as = \"tokens\""],
        ),
        (
            "--backend openai --dataset-name random --set backend.config.route=chat",
            &["config.route = \"chat\""],
        ),
        (
            "--backend vllm --dataset-name conversation --dataset-path c.json",
            &["config.route = \"chat\""],
        ),
        (
            "--backend vllm --dataset-name conversation --dataset-path c.json --endpoint /v1/responses",
            &["config.route = \"responses\""],
        ),
        (
            "--backend vllm --seed 1 --seed 2 --stop a --stop b --cancel-share 20% --cancel-after 1s",
            &["seed = 2", "stop = [\"a\", \"b\"]", "share = 0.2"],
        ),
    ] {
        let (scenario, stderr) = shown(flags);
        for line in expected {
            assert!(scenario.contains(line), "{flags}: {line}\n{scenario}\n{stderr}");
        }
    }
}

#[test]
fn silent_changes_are_reported() {
    let lines = [
        "--backend vllm --save-result --trust-remote-code --disable-ignore-eos",
        "--backend openai --dataset-name random --random-range-ratio 0.0",
        "--backend vllm-rerank --dataset-name random-rerank --gsp-fast-prepare",
    ];
    let text: String = lines
        .iter()
        .map(|flags| format!("$ runner scenario show {flags}\n{}", shown(flags).1))
        .collect();
    transcript("familiar-notes", &text);
}

/// The lines that are typed against the other tools, with nothing changed but the program.
#[test]
fn their_command_lines_run() {
    let mock = Mock::start(&["--model", "mock", "--ttft", "1ms", "--itl", "1ms"]);
    let address = mock.url.trim_start_matches("http://");
    let folder = tempfile::tempdir().unwrap();
    for (flags, path) in [
        (
            "--backend openai-chat --endpoint /v1/chat/completions --num-prompts 4 --random-input-len 16 \
             --random-output-len 3 --save-result --percentile-metrics ttft,tpot --metric-percentiles 50,99 \
             --disable-tqdm --metadata tp=1 dp=2 --result-dir chat",
            "/v1/chat/completions",
        ),
        (
            "--backend sglang-oai --dataset-name random-ids --num-prompts 4 --random-input-len 16 --random-output-len 3 \
             --random-range-ratio 1.0 --result-dir oai",
            "/v1/completions",
        ),
        (
            "--backend sglang-native --dataset-name random --num-prompts 4 --random-input-len 16 --random-output-len 3 \
             --result-dir native",
            "/generate",
        ),
        // Its backend is the usual one of `vllm bench serve`.
        (
            "--model mock --dataset-name random --num-prompts 4 --random-input-len 16 --random-output-len 3 \
             --save-result --result-dir serve",
            "/v1/completions",
        ),
    ] {
        let mut command = runner();
        command.args(words(flags)).args(["--base-url", address]);
        let summary = run(command.arg("--json").current_dir(folder.path())).with_code(0).json();
        assert_eq!(summary["requests"]["successful"], 4, "{summary}");
        let name = flags.rsplit("--result-dir ").next().unwrap_or_default();
        let name = name.split(' ').next().unwrap_or_default();
        let folder = only_run(&folder.path().join(name)).unwrap();
        let lines =
            run(runner().args(["report", "--format", "jsonl"]).arg(&folder)).with_code(0).stdout;
        assert_eq!(lines.lines().count(), 4 + 1, "{lines}");
        let plan = json_file(Path::new(&folder).join("plan.json"));
        match plan["backend"]["config"]["route"].as_str() {
            Some(route) => assert!(path.contains(route), "{plan}"),
            // The usual route of the usual backend.
            None => assert_eq!(plan["backend"]["plugin"], "backends/vllm.wasm", "{plan}"),
        }
    }
    // Appended to, as scripts that loop over rates expect.
    for rate in ["inf", "1 --request-rate 200"] {
        let line = format!(
            "--model mock --num-prompts 4 --random-input-len 16 --random-output-len 3 --result-filename all.jsonl \
             --append-result --result-dir serve --request-rate {rate}"
        );
        run(runner().args(words(&line)).args(["--base-url", address]).current_dir(folder.path()))
            .with_code(0);
    }
    let kept: Vec<Value> = json_lines(folder.path().join("serve/all.jsonl"));
    assert_eq!(kept.len(), 2);
    for (result, rate) in kept.iter().zip([Value::from("inf"), Value::from(200.0)]) {
        assert_eq!(result["completed"], 4, "{result}");
        // Of a flag that is given twice, the later one counts.
        assert_eq!(result["request_rate"], rate, "{result}");
    }
    let mut folders: Vec<String> = (std::fs::read_dir(folder.path().join("serve")).unwrap())
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter_map(|name| Some(name.splitn(3, '-').nth(2)?.to_owned()))
        .collect();
    folders.sort();
    folders.dedup_by(|a, b| a.starts_with(&**b));
    assert_eq!(folders, ["mock-random-16-3-200-req-s", "mock-random-16-3-all-at-once"]);
}

#[test]
fn a_clients_own_words_are_its_alone() {
    let helps = [(VLLM, "vllm"), (SGLANG, "sglang")];
    for client in line::CLIENTS {
        for (help, word) in helps {
            let (flags, own) = (flags(help), word == client.word);
            for alone in client.alone {
                let has = flags.iter().any(|flag| flag.long == *alone);
                assert_eq!(has, own, "--{alone} of {word}");
            }
            for name in client.backends {
                assert_eq!(choices(help, "backend").contains(name), own, "{name} of {word}");
            }
            let known = choices(help, "dataset-name");
            assert!(!own || client.datasets.iter().all(|name| known.contains(name)), "{word}");
        }
    }
}

/// The guide's rules that assign a line to a client, and the defaults that then hold.
#[test]
fn the_tool_of_a_line_decides_its_defaults() {
    const RATIO: &str = "--dataset-name random --random-range-ratio 0.2";
    let vllm =
        ["temperature = \"server\"", "seed = 0", "config.like = \"vllm\"", "ignore-eos = true"];
    let sglang = ["seed = 42", "config.like = \"sglang\""];
    for (flags, expected) in [
        // A flag beside it does not change the settings that the backend's name decides.
        ("--backend vllm", &vllm[..]),
        ("--backend vllm --save-result", &vllm),
        ("--backend openai-chat", &vllm),
        ("--backend vllm --tag a --save-result", &vllm),
        ("--save-result", &vllm),
        ("--backend sglang", &sglang),
        ("--backend sglang --save-result", &sglang),
        ("--backend vllm --tag a", &sglang),
        ("--tag a", &sglang),
        ("--line-of sglang --save-result", &sglang),
        ("--backend sglang --line-of runner", &[]),
        ("--backend lmdeploy", &[]),
    ] {
        let (scenario, stderr) = shown(&format!("{flags} {RATIO}"));
        for line in expected {
            assert!(scenario.contains(line), "{flags}: {line}\n{scenario}\n{stderr}");
        }
        assert_eq!(stderr.contains("read as a line of"), !expected.is_empty(), "{flags}: {stderr}");
        assert!(!expected.is_empty() || !scenario.contains("like"), "{flags}: {scenario}");
    }
    // Nothing says whose it is.
    for flags in ["", "--tag a --save-result", "--backend tgi"] {
        let mut command = runner();
        command.args(["scenario", "show"]).args(words(&format!("{flags} {RATIO}")));
        let ended = run(&mut command).with_code(3);
        for form in ["--line-of vllm", "--line-of sglang"] {
            assert!(ended.stderr.contains(form), "{flags}: {}", ended.stderr);
        }
    }
    // The line's own flags hold, and so do the defaults for a dataset that the client lacks.
    for (flags, expected) in [
        ("--backend vllm --temperature 0 --seed 7 --dataset-name random", "temperature = 0"),
        ("--backend vllm --dataset-name sharegpt --dataset-path s.json", "ignore-eos = false"),
        (
            "--backend vllm --dataset-name sharegpt --ignore-eos --dataset-path s.json",
            "ignore-eos = true",
        ),
        ("--backend openai-chat --dataset-name random", "ignore-eos-field = \"ignore_eos\""),
        (
            r#"--dataset-name random --random-range-ratio {"input":0.1,"output":0.5}"#,
            "config.range-ratio = { input = 0.1, output = 0.5 }",
        ),
        (
            r#"--dataset-name random --random-range-ratio {"input":0.1,"output":0.5}"#,
            "config.like = \"vllm\"",
        ),
        ("--backend vllm --dataset-name custom --dataset-path c.jsonl", "output-len = 256"),
        ("--backend sglang --dataset-name random", "range-ratio = 0.0"),
        ("--backend sglang --dataset-name random", "output-len = 1024"),
    ] {
        let (scenario, stderr) = shown(flags);
        assert!(scenario.contains(expected), "{flags}: {expected}\n{scenario}\n{stderr}");
    }
    let (scenario, _) = shown("--backend vllm --dataset-name conversation --dataset-path c.json");
    assert!(scenario.contains("temperature = 0"), "{scenario}");
}

/// The arrays of `vllm bench serve --save-detailed`, by its definitions: the latency is the first
/// token's time and all gaps.
#[test]
fn details_of_requests_are_in_the_result_file() {
    const ARRAYS: [&str; 7] =
        ["input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts", "errors"];
    let mock = Mock::start(&["--model", "mock", "--ttft", "1ms", "--itl", "1ms"]);
    let folder = tempfile::tempdir().unwrap();
    let result = |flag: &str| -> Value {
        let mut command = runner();
        command.args(words(
            "--backend vllm --num-prompts 3 --random-input-len 16 --random-output-len 4",
        ));
        command
            .args(words("--save-result --result-filename v.json --result-dir ."))
            .args(words(flag));
        run(command.args(["--base-url", &mock.url]).current_dir(folder.path())).with_code(0);
        json_file(folder.path().join("v.json"))
    };
    let plain = result("");
    assert!(ARRAYS.iter().all(|name| plain.get(name).is_none()), "{plain}");
    let detailed = result("--save-detailed");
    for name in ARRAYS {
        assert_eq!(detailed[name].as_array().map(Vec::len), Some(3), "{name}: {detailed}");
    }
    for request in 0..3 {
        let gaps = detailed["itls"][request].as_array().unwrap();
        assert_eq!((gaps.len(), &detailed["output_lens"][request]), (3, &Value::from(4)));
        let gaps: f64 = gaps.iter().filter_map(Value::as_f64).sum();
        let first = detailed["ttfts"][request].as_f64().unwrap();
        let latency = detailed["latencies"][request].as_f64().unwrap();
        assert!((first + gaps - latency).abs() < 1e-6, "{detailed}");
    }
}

/// Files of the kinds that the lines name.
fn write_files(folder: &Path) {
    let files = [
        (
            "sharegpt.json",
            serde_json::to_string(&(0..8).map(conversation).collect::<Vec<_>>()).unwrap(),
        ),
        ("data.jsonl", "{\"prompt\": \"What is the capital of India?\"}\n".repeat(8)),
        (
            "question.jsonl",
            "{\"question_id\": 1, \"category\": \"summarization\", \"turns\": [\"Sum it up.\"]}\n"
                .repeat(8),
        ),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn conversation(number: u32) -> Value {
    let text = format!("conversation {number}: {}", "words ".repeat(20));
    serde_json::json!({ "id": number.to_string(), "conversations": [
        { "from": "human", "value": text }, { "from": "gpt", "value": text },
    ]})
}

/// The fields of a value by their paths, such as `messages.0.content`; `*` has none below it.
fn fields(value: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| fields(value, &below(key), found)),
        Value::Array(list) if list.iter().any(Value::is_object) => {
            (list.iter().enumerate())
                .for_each(|(at, value)| fields(value, &below(&at.to_string()), found));
        }
        _ => _ = found.insert(path.to_owned(), value.clone()),
    }
}

/// Compares a request with the client's own, and returns the fields that differ.
fn differing(request: &str, line: &Value, default: &Value) -> BTreeSet<String> {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut head = head.lines();
    let path = head.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    assert_eq!(path, line["path"], "{line}");
    let (mut theirs, mut ours) = (BTreeMap::new(), BTreeMap::new());
    fields(&line["body"], "", &mut theirs);
    fields(&line["headers"], "", &mut theirs);
    fields(&serde_json::from_str(body).unwrap(), "", &mut ours);
    const TRANSPORT: [&str; 5] =
        ["host", "accept", "accept-encoding", "content-length", "user-agent"];
    let headers = head.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), Value::from(value)));
    ours.extend(headers.filter(|(name, _)| !TRANSPORT.contains(&&**name)));
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let differ = |name: &&&String| match (theirs.get(**name), ours.get(**name)) {
        (Some(theirs), Some(ours)) => {
            // 1 and 1.0 are one number.
            let same = theirs.as_f64().is_some() && theirs.as_f64() == ours.as_f64();
            !(theirs == ours || theirs == "*" || same)
        }
        (Some(theirs), None) => default.get(**name) != Some(theirs),
        (None, ours) => ours.is_some(),
    };
    names.iter().filter(differ).map(|name| (*name).clone()).collect()
}

/// Lines of the clients' own documentation send the clients' requests, field by field; the note of
/// the run names differences.
#[test]
fn pasted_lines_send_the_requests_of_their_clients() {
    let file: Value = serde_json::from_str(include_str!("inputs/pasted-lines.json")).unwrap();
    let lines = file["lines"].as_array().unwrap();
    assert!(lines.len() >= 20);
    let mut wrong = Vec::new();
    for line in lines {
        let folder = tempfile::tempdir().unwrap();
        write_files(folder.path());
        let mut parts = words(line["line"].as_str().unwrap());
        let model = parts.find(|word| *word == "--model").and_then(|_| parts.next());
        let models = serde_json::json!({ "data": [{ "id": model.unwrap_or("mock") }] });
        let server = Raw::routing([
            ("GET", vec![whole("200 OK", &models.to_string())]),
            ("POST", vec![whole("500 Internal Server Error", "{}")]),
        ]);
        let listening = server.listen();
        let mut command = runner();
        command.args(words(line["line"].as_str().unwrap()));
        let address = format!("--base-url {} --num-prompts 5", listening.url);
        command.args(words(&address)).current_dir(folder.path());
        let ended = run(&mut command);
        let requests = server.requests();
        let posted: Vec<_> = requests.iter().filter(|text| text.starts_with("POST")).collect();
        if posted.len() < 5 {
            wrong.push(format!(
                "{}\n  sent {} requests: {}",
                line["line"],
                posted.len(),
                ended.stderr
            ));
            continue;
        }
        let apart = line["apart"].as_object().unwrap();
        for request in posted {
            let differing = differing(request, line, &file["default"]);
            let unsaid =
                differing.iter().filter(|name| !apart.keys().any(|key| name.starts_with(&**key)));
            let unsaid: Vec<&String> = unsaid.collect();
            if !unsaid.is_empty() {
                wrong.push(format!("{}\n  {unsaid:?} differ: {request}", line["line"]));
            }
        }
        let client = if line["of"] == "vllm" { "`vllm bench serve`" } else { "SGLang's" };
        let note = ended.stderr.lines().find(|line| line.contains("read as a line of"));
        for words in apart.values().filter_map(Value::as_str).chain([client]) {
            if !note.is_some_and(|note| note.contains(words)) {
                wrong.push(format!("{}\n  {words:?} is not in {note:?}", line["line"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
