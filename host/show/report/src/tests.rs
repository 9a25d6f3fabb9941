use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use crate::exchanges::{any_run, facts};
use model::client::{Backlog, Client, HeldBack, Machine, Thread};
use model::exchange::Exchange;
use result::metric;
use result::summary::{Basis, Counted, Distribution, RunFacts, SteadyState, Summary, Window};

/// A block that LMDeploy published: Qwen3-8B-FP8, 10 000 ShareGPT prompts, LMDeploy
/// 0.9.2 on an H800.
const LMDEPLOY: &str = include_str!("cases/lmdeploy-0.9.2.txt");

/// Lines that GPUStack's blocks have beside these, except its capital T in `Token throughput`.
const GPUSTACK: [&str; 11] = [
    "Maximum request concurrency:",
    "Peak output token throughput (tok/s):",
    "Peak concurrent requests:",
    "Total token throughput (tok/s):",
    "Mean Latency(s):",
    "Median Latency(s):",
    "P95 Latency(s):",
    "P99 Latency(s):",
    "P95 TTFT (ms):",
    "P95 TPOT (ms):",
    "P95 ITL (ms):",
];

/// Compares with a committed file; `BLESS=1` writes it instead.
pub(super) fn golden(path: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        actual == expected,
        "{} differs; BLESS=1 writes it anew. Now:\n{actual}",
        path.display()
    );
}

fn mixed() -> (RunFacts, Vec<Exchange>) {
    let facts = serde_json::from_str(include_str!("cases/mixed/facts.json")).unwrap();
    let lines = include_str!("cases/mixed/exchanges.jsonl").lines();
    (facts, lines.map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The figures of a block, as a script reads them: a label up to a colon, spaces, a value.
fn figures(block: &str) -> Vec<(&str, &str)> {
    block.lines().filter_map(|line| line.split_once(": ")).map(|(l, v)| (l, v.trim())).collect()
}

#[test]
fn a_run_of_every_kind_of_exchange() {
    let (facts, exchanges) = mixed();
    let summary = Summary::new(&facts, &exchanges);
    golden("src/cases/mixed/text.txt", &super::text::text(&summary));
    golden("src/cases/mixed/summary.json", &super::json::json(&summary).unwrap());
    let mut table = Vec::new();
    super::csv::csv(&mut table, &facts, &exchanges).unwrap();
    golden("src/cases/mixed/exchanges.csv", &String::from_utf8(table).unwrap());
}

/// LMDeploy's figures in our block make LMDeploy's block, without our own lines.
#[test]
fn the_block_is_lmdeploys_line_for_line() {
    let published: BTreeMap<&str, &str> = figures(LMDEPLOY).into_iter().collect();
    let number = |label: &str| published[label].parse::<f64>().unwrap();
    let whole = |label: &str| published[label].parse::<u64>().unwrap();
    let mut facts = facts();
    facts.run.backend = published["Backend"].into();
    let mut summary = Summary::new(&facts, std::iter::empty::<Exchange>());
    summary.requests.successful = whole("Successful requests");
    let total = |label| Counted { total: Some(whole(label)), ..Counted::default() };
    summary.tokens.input = total("Total input tokens");
    summary.tokens.output = total("Total generated tokens");
    summary.tokens.output_retokenized = Some(whole("Total generated tokens (retokenized)"));
    summary.throughput.duration_s = Some(number("Benchmark duration (s)"));
    summary.throughput.requests_per_s = Some(number("Request throughput (req/s)"));
    summary.throughput.input_tokens_per_s = Some(number("Input token throughput (tok/s)"));
    summary.throughput.output_tokens_per_s = Some(number("Output token throughput (tok/s)"));
    summary.concurrency.peak = Some(1024);
    for (name, label) in [
        (metric::E2E, "E2E Latency"),
        (metric::TTFT, "TTFT"),
        (metric::TPOT, "TPOT"),
        (metric::ITL, "ITL"),
    ] {
        let figure = |which: &str| format!("{which} {label} (ms)");
        let p99 = published.get(&*figure("P99")).map(|value| value.parse().unwrap());
        let distribution = Distribution {
            unit: "ms".into(),
            count: 10_000,
            failure_share: None,
            mean: number(&figure("Mean")),
            std: 1.0,
            min: 1.0,
            max: 1e6,
            median: number(&figure("Median")),
            percentiles: p99.map(|value| ("p99".into(), value)).into_iter().collect(),
            from: Basis::Samples,
            relative_error: None,
            confidence: None,
            with_failures: None,
        };
        summary.metrics.insert(name.into(), distribution);
    }

    let block = super::text::text(&summary);
    let label = |line: &str| line.split(": ").next().unwrap_or_default().to_owned();
    let theirs: Vec<String> = LMDEPLOY.lines().map(label).collect();
    let kept = block.lines().filter(|line| theirs.contains(&label(line)));
    let kept: Vec<&str> = kept.collect();
    assert_eq!(kept, LMDEPLOY.lines().collect::<Vec<_>>());
    assert!(block.lines().count() > kept.len(), "there are lines of ours");
}

#[test]
fn the_block_has_gpustacks_figures() {
    let (facts, exchanges) = mixed();
    let block = super::text::text(&Summary::new(&facts, &exchanges));
    let lmdeploys = figures(LMDEPLOY).into_iter().map(|(label, _)| format!("{label}:"));
    for label in GPUSTACK.iter().map(|label| label.to_string()).chain(lmdeploys) {
        let line = block.lines().find(|line| line.starts_with(&label));
        let line = line.unwrap_or_else(|| panic!("no {label} in\n{block}"));
        assert_eq!(&line[label.len()..41], " ".repeat(41 - label.len()), "{line}");
        assert!(!line[41..].starts_with(' ') && !line.ends_with(' '), "{line}");
    }
}

#[test]
fn unmeasured_figures_have_no_line() {
    let (mut facts, exchanges) = mixed();
    facts.run.streamed = false;
    let block = super::text::text(&Summary::new(&facts, &exchanges));
    for absent in
        ["TTFT (ms)", "TPOT (ms)", "ITL (ms)", "Time to First", "Inter-token", "Peak output"]
    {
        assert!(!block.contains(absent), "{absent} in\n{block}");
    }
    assert!(block.contains("Mean E2E Latency (ms):"));
    assert!(figures(&block).contains(&("Not measured", "TTFT, TPOT, ITL")));

    let block = super::text::text(&Summary::new(&facts, std::iter::empty::<Exchange>()));
    assert!(figures(&block).contains(&("Not measured", "E2E, TTFT, TPOT, ITL")));
    assert!(!block.contains("Benchmark duration"), "{block}");
    assert!(!block.contains("0.00"), "{block}");
}

#[test]
fn words_of_servers_and_plugins_cannot_break_the_block() {
    let (mut facts, mut exchanges) = mixed();
    facts.run.backend = "x\nSuccessful requests: 1\u{1b}[0m".into();
    facts.run_scores.insert("a\rb".into(), 1.0);
    exchanges[0].outcome = model::exchange::Outcome::Ok;
    let block = super::text::text(&Summary::new(&facts, &exchanges));
    assert!(block.chars().all(|c| c == '\n' || !c.is_control()), "{block:?}");
    assert_eq!(block.lines().filter(|line| line.starts_with("Successful requests:")).count(), 1);
}

fn saved(state: impl serde::Serialize) -> Value {
    let scenario = "0".repeat(64);
    serde_json::to_value(crate::search::Saved { scenario, title: "random 16/11".to_owned(), state })
        .unwrap()
}

#[test]
fn schemas_are_committed_and_hold() {
    let (mut facts, exchanges) = mixed();
    facts.client = Some(watched());
    let summary = serde_json::to_value(Summary::new(&facts, &exchanges)).unwrap();
    facts.run.failures_as_infinite = true;
    let infinite = serde_json::to_value(Summary::new(&facts, &exchanges)).unwrap();
    facts.client = None;
    let empty = serde_json::to_value(Summary::new(&facts, std::iter::empty::<Exchange>())).unwrap();
    let records: Vec<Value> =
        exchanges.iter().map(|exchange| serde_json::to_value(exchange).unwrap()).collect();
    let repeats = serde_json::to_value(compare::variation::repeats("chat", &[], None)).unwrap();
    let probe = serde_json::to_value(crate::probe::tests::answered()).unwrap();
    let swept = crate::sweep::tests::swept();
    let sweep = serde_json::to_value(swept.result()).unwrap();
    let done = crate::search::tests::searched(None);
    let begun = crate::search::tests::searched(Some(1));
    let answer = serde_json::to_value(done.answer.as_ref().unwrap()).unwrap();
    for (name, instances) in [
        ("sweep", vec![sweep]),
        ("sweep-file", vec![saved(swept)]),
        ("search", vec![answer]),
        ("search-file", vec![saved(done), saved(begun)]),
        ("summary", vec![summary, infinite, empty]),
        ("exchange", records),
        ("comparison", vec![crate::compared::tests::any()]),
        ("repeats", vec![repeats]),
        ("probe", vec![probe]),
        ("trend", vec![serde_json::to_value(crate::over_time::tests::trends()).unwrap()]),
    ] {
        let text = super::schema::schema(name).unwrap();
        golden(&format!("schemas/{name}.schema.json"), &text);
        let schema: Value = serde_json::from_str(&text).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for mut instance in instances {
            let errors: Vec<String> =
                validator.iter_errors(&instance).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{name}");
            instance["of-a-later-version"] = Value::Null;
            assert!(!validator.is_valid(&instance), "{name} must refuse unknown fields");
        }
    }
    for (name, _) in super::schema::SCHEMAS {
        let text = super::schema::schema(name).unwrap();
        golden(&format!("schemas/{name}.schema.json"), &text);
    }
    assert_eq!(super::schema::schema("nothing"), None);
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

#[test]
fn columns_have_names_of_their_own() {
    let mut header = Vec::new();
    super::csv::header(&mut header).unwrap();
    let header = String::from_utf8(header).unwrap();
    let names: Vec<&str> = header.trim_end().split(',').collect();
    for (i, name) in names.iter().enumerate() {
        assert!(!names[..i].contains(name), "{name} twice");
    }
}

#[test]
fn goodput_and_the_steady_state_are_shown() {
    let (mut facts, exchanges) = mixed();
    facts.run.goodput = metric::objective::parse("ttft:150 e2el:500").unwrap();
    let mut summary = Summary::new(&facts, &exchanges);
    let window = Window {
        plateau: 64,
        at_least: 61,
        ended: 1000,
        sent: 900,
        requests_per_s: 12.5,
        metrics: summary.metrics.clone(),
        ..Window::default()
    };
    summary.steady_state = Some(SteadyState::Window(Box::new(window)));
    let block = super::text::text(&summary);
    for line in [
        "Request goodput (req/s):                 2.72",
        "Good requests:                           3",
        "SLO attainment (%):                      50.00",
        "ttft <= 150 ms (%):                      50.00",
        "Steady with in flight:                   61 of 64 or more",
        "Steady request throughput (req/s):       12.50",
        "Steady mean TTFT (ms):                   133.88",
    ] {
        assert!(block.lines().any(|shown| shown == line), "no {line} in\n{block}");
    }
    let mut table = Vec::new();
    super::csv::csv(&mut table, &facts, &exchanges).unwrap();
    let table = String::from_utf8(table).unwrap();
    let rows: Vec<Vec<String>> = table.lines().map(cells).collect();
    let good = rows[0].iter().position(|name| name == "good").unwrap();
    let good: Vec<&str> = rows[1..].iter().map(|row| row[good].as_str()).collect();
    assert_eq!(good.iter().filter(|good| **good == "true").count(), 3);
    assert_eq!(good.iter().filter(|good| good.is_empty()).count(), 1, "the warm-up");
}

fn watched() -> Client {
    let thread = |cpu, cpu_most| Thread {
        cpu,
        cpu_most,
        waiting: 0.01,
        waiting_most: Some(0.02),
        saturated_s: 0.0,
    };
    let threads = [
        ("pace", thread(0.004, Some(0.01))),
        ("read-0", thread(0.41, Some(0.63))),
        ("read-1", thread(0.5, Some(0.52))),
        ("decode-0", thread(0.2, None)),
    ];
    Client {
        watched_s: 12.5,
        threads: threads.map(|(name, used)| (name.into(), used)).into(),
        decode_backlog: 120,
        decode_behind_ms: 4.25,
        longest_pause_ms: 11.0,
        throttled_s: Some(0.0),
        clock_step_ms: Some(0.002),
        backlog: Some(Backlog {
            bound_bytes: 64 << 20,
            peak_bytes: 64 << 20,
            held_back: Some(HeldBack {
                periods: 1,
                seconds: 2.5,
                from_to_s: vec![(3.0, 5.5)],
                ..HeldBack::default()
            }),
        }),
        machine: Some(Machine { busy: 0.97, own: 0.55, stolen: 0.0, stolen_s: 0.03 }),
        ..Client::default()
    }
}

#[test]
fn shows_the_clients_performance() {
    let (mut facts, exchanges) = mixed();
    facts.client = Some(watched());
    let block = super::text::text(&Summary::new(&facts, &exchanges));
    let lines = "\
----------------------Client----------------------
Reader CPU, mean, most in 1 s (%):       41.0, 63.0
Reader waiting, mean, most in 1 s (%):   1.0, 2.0
Pacer CPU, mean, most in 1 s (%):        0.4, 1.0
Decoder CPU, mean, most in 1 s (%):      20.0
Decode backlog, most (replies):          120
Decode behind, most (ms):                4.25
Held of replies, most (MiB):             64.00
Replies not read (s):                    2.50
Longest pause (ms):                      11.00
Stolen time (s):                         0.03
Machine busy, with this client (%):      97.0, 55.0
";
    assert!(block.contains(lines), "not in\n{block}");
}

proptest! {
    /// Every row has the header's columns, and an unmeasured value is an empty cell.
    #[test]
    fn rows_have_the_headers_columns(run in any_run()) {
        let mut table = Vec::new();
        super::csv::csv(&mut table, &facts(), &run).unwrap();
        let table = String::from_utf8(table).unwrap();
        let mut lines = table.lines().map(cells);
        let header = lines.next().unwrap();
        let column = |name: &str| header.iter().position(|cell| cell == name).unwrap();
        prop_assert_eq!(table.lines().count(), run.len() + 1);
        for (row, exchange) in lines.zip(&run) {
            prop_assert_eq!(row.len(), header.len());
            let ttft = &row[column("ttft-ms")];
            let output = exchange.events.kind.iter().any(|kind| kind.is_output());
            prop_assert_eq!(ttft.is_empty(), !output);
            prop_assert_eq!(row[column("granted-ms")].is_empty(), exchange.granted.is_none());
        }
    }

    /// The block that is printed by default fits a screen, whatever was measured, judged and found:
    /// more lines than that are findings that put the run in doubt. Its lines are the whole block's
    /// lines.
    #[test]
    fn the_default_block_fits_a_screen(run in any_run(), scores in 0..12_u32) {
        let mut facts = facts();
        for score in 0..scores {
            let column = (0..40).map(|index| (index, f64::from(score))).collect();
            facts.scores.insert(format!("score-{score}"), column);
        }
        let summary = Summary::new(&facts, &run);
        let (short, whole) = (super::text::short(&summary), super::text::text(&summary));
        let lines: Vec<&str> = short.lines().collect();
        let is_full = lines.len() > 50;
        prop_assert!(!is_full || !lines.iter().any(|line| line.starts_with("note ")), "{short}");
        prop_assert!(lines.len() <= 50 + summary.findings.len(), "{short}");
        for line in lines.iter().filter(|line| !line.starts_with('…')) {
            // A message of a failure goes on with the number of similar ones.
            prop_assert!(whole.lines().any(|own| own.starts_with(line)), "no {line} in\n{whole}");
        }
        let verdict = format!("{:<40} {}", "Verdict:", summary.verdict.name());
        prop_assert!(lines.contains(&&*verdict), "{short}");
        for finding in &summary.findings {
            let named = lines.iter().any(|line| line.contains(finding.id.name()));
            let is_note = finding.severity == result::finding::Severity::Note;
            prop_assert!(named || is_note, "{short}");
        }
    }

    /// Any summary can be printed, keeps the block's frame, and validates against its schema.
    #[test]
    fn any_run_can_be_reported(run in any_run()) {
        let summary = Summary::new(&facts(), &run);
        let block = super::text::text(&summary);
        prop_assert!(block.starts_with("============ Serving Benchmark Result ============\n"));
        let end = format!("{}\n", "=".repeat(50));
        prop_assert!(block.ends_with(&end));
        prop_assert!(!block.contains("NaN") && !block.contains("-0.00"));
        let infinite = block.lines().filter(|line| line.ends_with("inf")).count();
        prop_assert_eq!(infinite, 1, "the request rate alone");
        let json = super::json::json(&summary).unwrap();
        prop_assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
    }
}
