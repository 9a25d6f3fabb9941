//! Rows read from each format, and changes that must not change the measured samples.

mod mistakes;
mod streams;

use std::collections::HashSet;
use std::path::Path;

use runner_plugin::random::Python;
use runner_plugin::{Amount, Dataset, Error, Part, Prompt, Sample, Treatment};
use runner_plugin_testing::datasets::{self, rest as all, text};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;

use super::{Custom, *};

fn folder(path: &str) -> std::path::PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")).join(path)
}

fn open_with(config: &str, seed: u64, amount: Amount, files: Named) -> Result<Custom, Error> {
    datasets::open(config, seed, amount, files, StandIn)
}

fn open(config: &str, files: Named) -> Custom {
    open_with(config, 7, Amount::Unknown, files).expect("a dataset")
}

fn case(path: &str) -> Named {
    Named::default().with_path("data", folder(path))
}

fn lines(rows: &[&str]) -> Named {
    Named::default().with_bytes("data", rows.join("\n"))
}

fn read(config: &str, path: &str) -> Vec<Sample> {
    all(&mut open(config, case(path)), 10)
}

fn mistake(config: &str, files: Named) -> String {
    let opened = open_with(config, 0, Amount::Unknown, files);
    datasets::mistake(opened.and_then(|mut dataset| dataset.next(10)))
}

#[test]
fn guidellms_table_needs_no_configuration() {
    let guidellm = lines(&["prompt,prompt_tokens_count,output_tokens_count", "Hello,1,9"]);
    let guidellm = all(&mut open("{}", guidellm), 5);
    assert_eq!((text(&guidellm[0]), guidellm[0].output_tokens), ("Hello", Some(9)));
}

#[test]
fn media_are_in_the_row_or_in_files_that_the_scenario_names() {
    let png = b"\x89PNG\r\n\x1a\nrest".to_vec();
    let rows = [
        r#"{"prompt":"a","image_files":["dir/b.png"]}"#,
        r#"{"prompt":"a","images":"data:image/png;base64,iVBORw0KGgpyZXN0"}"#,
        r#"{"prompt":"a","image":{"bytes":"iVBORw0KGgpyZXN0","path":"x.png"}}"#,
        r#"{"content":[{"type":"text","text":"a"},{"type":"image","image":"b.png"}]}"#,
    ];
    let files = lines(&rows).with_bytes("b.png", png.clone());
    let samples = all(&mut open("{}", files), 10);
    assert_eq!(samples.len(), 4);
    for sample in samples {
        let [Part::Text(text), Part::Image(image)] = &sample.prompt.messages()[0].parts[..] else {
            panic!("expected a text and an image, got {:?}", sample.prompt)
        };
        assert_eq!((text.as_str(), image.media_type.as_str()), ("a", "image/png"));
        assert_eq!(image.bytes, png);
    }
}

#[test]
fn videos_are_media_too() {
    let mp4 = b"\0\0\0\x18ftypisomrest".to_vec();
    let rows = [
        r#"{"prompt":"a","video":"b.mp4"}"#,
        r#"{"prompt":"a","videos":["data:video/mp4;base64,AAAAGGZ0eXBpc29tcmVzdA=="]}"#,
        r#"{"content":[{"type":"text","text":"a"},{"type":"video_url","video_url":{"url":"b.mp4"}}]}"#,
    ];
    let files = lines(&rows).with_bytes("b.mp4", mp4.clone());
    for sample in all(&mut open("{}", files), 10) {
        let [Part::Text(_), Part::Video(video)] = &sample.prompt.messages()[0].parts[..] else {
            panic!("expected a text and a video, got {:?}", sample.prompt)
        };
        assert_eq!((&*video.media_type, &video.bytes), ("video/mp4", &mp4));
    }
}

#[test]
fn every_format_and_compression_gives_the_same_samples() {
    let seen = |name: &str, config: &str| {
        let samples = read(config, &format!("packed/rows.{name}"));
        assert_eq!(samples.len(), 30, "{name}");
        samples
    };
    for config in ["{}", r#"{"shuffle": true}"#] {
        let plain = seen("jsonl", config);
        for name in ["jsonl.gz", "jsonl.zst", "parquet", "json", "csv", "tsv"] {
            assert_eq!(seen(name, config), plain, "{name}");
        }
    }
}

#[test]
fn texts_are_lines_or_paragraphs() {
    let texts = |config: &str, text: &str| -> Vec<String> {
        let files = Named::default().with_bytes("data", text);
        let samples = all(&mut open(config, files), 10);
        samples.iter().map(|sample| datasets::text(sample).to_owned()).collect()
    };
    assert_eq!(texts("{}", "\u{feff}One, two\r\n\r\n three\nfour"), ["One, two", " three", "four"]);
    let paragraphs = r#"{"format": "paragraphs"}"#;
    assert_eq!(texts(paragraphs, "\n\na\nb\n \n\n\nc\n"), ["a\nb", "c"]);
}

#[test]
fn the_size_of_a_call_changes_nothing() {
    for config in [
        "{}",
        r#"{"shuffle": true, "max-input-tokens": 34, "skip-invalid": true}"#,
        r#"{"classes": ["a"], "form": "chat", "system": "s"}"#,
    ] {
        for name in ["jsonl", "parquet", "csv"] {
            let path = format!("packed/rows.{name}");
            let mut whole = open(config, case(&path));
            let samples = all(&mut whole, 1000);
            assert!(!samples.is_empty());
            for limit in [1, 7, 13] {
                let mut dataset = open(config, case(&path));
                assert_eq!(all(&mut dataset, limit), samples);
                assert_eq!(dataset.remarks(), whole.remarks());
            }
        }
    }
    let turns = r#"{"turns": "all"}"#;
    let path = "turns/conversations.jsonl";
    let whole = all(&mut open(turns, case(path)), 1000);
    assert_eq!(all(&mut open(turns, case(path)), 1), whole);
}

/// The order is CPython's: `random.seed(7); x = list(range(10)); random.shuffle(x)`.
#[test]
fn shuffled_rows_are_in_pythons_order() {
    let rows: Vec<_> = (0..10).map(|row| format!("row {row}")).collect();
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    let samples = all(&mut open(r#"{"shuffle": true}"#, lines(&rows)), 4);
    let order: Vec<_> = samples.iter().map(|sample| &text(sample)[4..]).collect();
    assert_eq!(order, ["8", "3", "1", "4", "7", "0", "9", "6", "2", "5"]);
    let mut known: Vec<_> = (0..10).collect();
    Python::new(7).shuffle(&mut known);
    assert_eq!(known, [8, 3, 1, 4, 7, 0, 9, 6, 2, 5]);
}

#[test]
fn only_repeat_repeats_a_short_file() {
    let path = "vllm-custom/rows.jsonl";
    assert_eq!(read("{}", path).len(), 3);
    for config in [r#"{"repeat": true}"#, r#"{"repeat": true, "shuffle": true}"#] {
        let mut dataset = open(config, case(path));
        let samples = dataset.next(7).unwrap();
        let texts: Vec<_> = samples.iter().map(text).collect();
        assert_eq!(texts[..3], texts[3..6]);
        let ids: HashSet<_> = samples.iter().map(|sample| &sample.id).collect();
        assert_eq!(ids.len(), 7);
        let remarks = dataset.remarks();
        assert_eq!((remarks[0].what, remarks[0].count), (Treatment::Repeated, 4));
        assert!(remarks[0].first.as_ref().unwrap().starts_with("line "));
    }
}

#[test]
fn spare_samples_are_never_measured() {
    for (config, count) in [
        ("{}", Amount::Samples(10)),
        (r#"{"shuffle": true}"#, Amount::Samples(10)),
        (r#"{"shuffle": true}"#, Amount::Unknown),
        (r#"{"shuffle": true, "repeat": true}"#, Amount::Samples(25)),
        (r#"{"repeat": true}"#, Amount::Samples(25)),
    ] {
        let mut plain = open_with(config, 3, count, case("packed/rows.jsonl")).unwrap();
        let mut dataset = open_with(config, 3, count, case("packed/rows.jsonl")).unwrap();
        let spares = dataset.spare(4).unwrap();
        assert_eq!(spares.len(), 4);
        let spared: HashSet<_> = spares.iter().map(text).collect();
        assert_eq!(spared.len(), 4);
        let samples = dataset.next(60).unwrap();
        assert!(samples.iter().all(|sample| !spared.contains(text(sample))));
        if config.contains("shuffle") {
            // The measured samples are the same as without spares.
            let wanted = count.samples().unwrap_or(15) as usize;
            assert_eq!(plain.next(60).unwrap()[..wanted], samples[..wanted]);
        }
    }
}

#[test]
fn bounds_leave_rows_out_and_say_so() {
    let config = r#"{"min-input-tokens": 3, "max-input-tokens": 5, "max-total-tokens": 9}"#;
    let rows = [
        r#"{"prompt":"ab"}"#,
        r#"{"prompt":"abc"}"#,
        r#"{"prompt":"abcdef"}"#,
        r#"{"prompt":"abcde","output_tokens":5}"#,
        r#"{"prompt":"abcde","output_tokens":4}"#,
    ];
    let mut dataset = open(config, lines(&rows));
    assert_eq!(all(&mut dataset, 2).len(), 2);
    let remarks = dataset.remarks();
    let shown: Vec<_> = remarks
        .iter()
        .map(|remark| (remark.reason.as_str(), remark.first.as_deref().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [
            ("fewer than 3 tokens in the prompt", "line 1"),
            ("more than 5 tokens in the prompt", "line 3"),
            ("more than 9 tokens in the prompt and its answer", "line 4"),
        ]
    );
    let none = mistake(r#"{"min-input-tokens": 100}"#, lines(&rows));
    assert_eq!(none, "file `data`: no row is left to measure: 5 were left out");
}

#[test]
fn the_rows_of_a_session_stand_together() {
    let apart = lines(&[
        r#"{"session":"a","prompt":"1"}"#,
        r#"{"session":"b","prompt":"2"}"#,
        r#"{"session":"a","prompt":"3"}"#,
    ]);
    assert!(mistake("{}", apart).contains("line 3: the session `a` was before"));
}

// Tables whose format is guessed, and text that looks like one.

fn texts(config: &str, file: &str) -> Vec<String> {
    let files = Named::default().with_bytes("data", file);
    let samples = all(&mut open(config, files), 3);
    samples.iter().map(|one| text(one).to_owned()).collect()
}

fn refused(file: &str) -> String {
    mistake("{}", Named::default().with_bytes("data", file))
}

#[test]
fn names_in_capitals_and_semicolons_make_a_table() {
    for file in [
        "Question,Answer\nWho?,me\nWhat?,that\n",
        "QUESTION;answer, short\nWho?;me, of course\nWhat?;that\n",
        "id\tPrompt\n1\tWho?\n2\tWhat?\n",
        "\u{feff}question;answer\r\nWho?;\"a;b\"\r\nWhat?;c\r\n",
    ] {
        assert_eq!(texts("{}", file), ["Who?", "What?"], "{file}");
    }
    // Any name in the configuration is a column's.
    let config = r#"{"columns": {"prompt": "what the user says here"}}"#;
    let file = "n;what the user says here\n1;a\n2;b\n";
    assert_eq!(texts(config, file), ["a", "b"]);
    let config = r#"{"format": "csv", "columns": {"prompt": "user_query"}}"#;
    assert_eq!(texts(config, "user_query;len\na, b;3\n"), ["a, b"]);
}

#[test]
fn text_is_not_cut_at_commas() {
    let text = "text, please summarise this\nHow are you?\n";
    assert_eq!(texts("{}", text).len(), 2);
    assert_eq!(texts("{}", text)[0], "text, please summarise this");
    // In a sentence, a space follows a comma.
    assert_eq!(texts("{}", "Hello, you\nBye, you\n").len(), 2);
}

#[test]
fn an_ambiguous_file_is_refused() {
    for (file, expected) in [
        (
            "text, please summarise this\nHow are you, friend?\n",
            "each of its lines has 1 comma; set `format = \"csv\"`",
        ),
        ("a,b,c\n1,2,3\n", "each of its lines has 2 commas"),
        ("a\tb\n1\t2\n", "1 tab; set `format = \"tsv\"`"),
        ("user_query;len\nx;1\n", "the columns `user_query`, `len`"),
    ] {
        let message = refused(file);
        assert!(message.contains(expected), "{message}\n  expected {expected}");
        let text = texts(r#"{"format": "text"}"#, file);
        assert_eq!(text.len(), file.lines().count());
    }
}

#[test]
fn a_quotation_mark_within_a_cell_is_text() {
    let file = "prompt,len\na 5\" pipe,1\nb,2\n\"c\n\"\"d\"\",\",3\n6\" and 7\",4\n";
    let expected = ["a 5\" pipe", "b", "c\n\"d\",", "6\" and 7\""];
    assert_eq!(texts("{}", file), expected);
    let mut shuffled = texts(r#"{"shuffle": true}"#, file);
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    shuffled.sort();
    assert_eq!(shuffled, expected);
    // The line is the editor's: of a row, the first.
    let lines = "prompt,max_tokens\n\n\"a\nb\",1\n\nc,x\n";
    let message = refused(lines);
    assert!(message.starts_with("file `data`, line 6: column `max_tokens`"), "{message}");
}

// Rows that are not measured because the warm-up has them.

fn prompts(rows: &[&str]) -> Custom {
    let rows: Vec<_> = rows.iter().map(|row| format!("{{\"prompt\": \"{row}\"}}")).collect();
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    open("{}", lines(&rows))
}

fn split(dataset: &mut Custom, spare: u32) -> (Vec<String>, Vec<String>) {
    let texts = |samples: Vec<_>| samples.iter().map(|one| text(one).to_owned()).collect();
    let mut spares = Vec::new();
    // As the host asks, until there are none.
    while spares.len() < spare as usize {
        let more = dataset.spare(spare - spares.len() as u32).expect("spares");
        if more.is_empty() {
            break;
        }
        spares.extend(more);
    }
    (texts(spares), texts(all(dataset, 2)))
}

#[test]
fn a_prompt_that_comes_once_is_taken_first() {
    let rows = ["same", "same", "other", "same", "same", "same"];
    let mut dataset = prompts(&rows);
    assert_eq!(split(&mut dataset, 1), (vec!["other".to_owned()], vec!["same".to_owned(); 5]));
    assert!(dataset.remarks().is_empty());
    // If every prompt comes twice or nothing would be left, nothing is taken.
    for rows in [&["a", "a", "b", "b"][..], &["a"]] {
        let (spares, measured) = split(&mut prompts(rows), 3);
        assert!(spares.is_empty());
        assert_eq!(measured, rows);
    }
    let (spares, measured) = split(&mut prompts(&["a", "b", "c"]), 9);
    assert_eq!((spares.len(), measured), (2, vec!["c".to_owned()]));
}

#[test]
fn rows_that_the_warm_up_costs_are_counted() {
    // The second comes too late to be compared.
    let mut rows = vec!["a".to_owned()];
    rows.extend((0..300).map(|row| row.to_string()));
    rows.push("a".to_owned());
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    let mut dataset = prompts(&rows);
    let (spares, measured) = split(&mut dataset, 1);
    assert_eq!((spares[0].as_str(), measured.len()), ("a", 300));
    let [remark] = &dataset.remarks()[..] else { panic!("expected one remark") };
    assert_eq!((remark.what, remark.count), (Treatment::Dropped, 1));
    assert_eq!(remark.first.as_deref(), Some("line 302"));
    assert!(remark.reason.contains("warm-up"), "{}", remark.reason);
}

#[test]
fn a_session_is_measured_whole_or_not_at_all() {
    let session =
        |name: &str, text: &str| format!("{{\"session\": \"{name}\", \"prompt\": \"{text}\"}}");
    let mut rows = vec![session("a", "1"), session("a", "2"), session("b", "3"), session("b", "4")];
    let files = |rows: &[String]| {
        let rows: Vec<_> = rows.iter().map(String::as_str).collect();
        lines(&rows)
    };
    let mut dataset = open("{}", files(&rows));
    assert_eq!(
        split(&mut dataset, 5),
        (vec!["1".to_owned()], vec!["3".to_owned(), "4".to_owned()])
    );
    let [remark] = &dataset.remarks()[..] else { panic!("expected one remark") };
    assert_eq!((remark.count, remark.first.as_deref()), (1, Some("line 2")));
    // A row of no session is preferred.
    rows.push("{\"prompt\": \"5\"}".to_owned());
    let mut dataset = open("{}", files(&rows));
    let (spares, measured) = split(&mut dataset, 1);
    assert_eq!((spares[0].as_str(), measured.len()), ("5", 4));
    // Also where the file is read again.
    let mut dataset = open(r#"{"repeat": true}"#, files(&rows[..4]));
    assert_eq!(dataset.spare(1).expect("a spare").len(), 1);
    let samples = dataset.next(6).expect("samples");
    let texts: HashSet<_> = samples.iter().map(text).collect();
    assert_eq!(texts, HashSet::from(["3", "4"]));
}

#[test]
fn the_warm_up_takes_no_row_that_is_to_be_measured() {
    let rows: Vec<String> = (0..5).map(|at| format!("{{\"prompt\": \"p{at}\"}}")).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    for (measured, spare, left) in [(5, 0, 5), (3, 2, 3), (4, 1, 4)] {
        let opened = open_with("{}", 7, Amount::Samples(measured), lines(&rows));
        let (spares, given) = split(&mut opened.expect("a dataset"), 2);
        assert_eq!((spares.len(), given.len()), (spare, left), "{measured}");
        assert_eq!(given.first().map(String::as_str), Some("p0"));
    }
}

// Requirements on a row, and the meaning of its columns.

#[test]
fn no_limit_is_minus_one_also_in_a_table() {
    let rows = ["prompt,max_tokens", "a,-1", "b,0", "c,7", "d,"];
    let samples = all(&mut open("{}", lines(&rows)), 5);
    let limits: Vec<_> = samples.iter().map(|one| one.output_tokens).collect();
    assert_eq!(limits, [None, None, Some(7), None]);
    let large = lines(&[r#"{"prompt": "a", "output_tokens": 5000000000}"#]);
    assert_eq!(
        mistake("{}", large),
        "file `data`, line 1: column `output_tokens`: expected a whole number from 0 to 4294967295, found 5000000000"
    );
}

#[test]
fn a_prompt_is_never_empty_nor_something_else() {
    for (config, row, expected) in [
        ("{}", r#"{"prompt": true}"#, "found true"),
        ("{}", r#"{"prompt": 5}"#, "found 5"),
        (r#"{"columns": {"prompt": "q"}}"#, r#"{"q": ""}"#, "the prompt's column `q` is empty"),
        (r#"{"columns": {"prompt": "q"}}"#, r#"{"q": null}"#, "the prompt's column `q` is empty"),
        (r#"{"template": "{q}"}"#, r#"{"q": ""}"#, "`template` gives an empty prompt"),
    ] {
        let message = mistake(config, lines(&[row]));
        assert!(message.contains(expected), "{message}\n  expected {expected}");
    }
    assert!(mistake("{}", lines(&["[]"])).contains("the file has none"));
}

#[test]
fn a_configured_column_may_be_rare() {
    let config = r#"{"columns": {"adapter": "lora_of"}}"#;
    let rows = [r#"{"prompt": "a"}"#, r#"{"prompt": "b", "lora_of": "x"}"#];
    let samples = all(&mut open(config, lines(&rows)), 5);
    assert_eq!(samples[1].adapter.as_deref(), Some("x"));
    let message = mistake(config, lines(&rows[..1]));
    assert!(message.contains("no row has the column `lora_of` (`columns.adapter`)"), "{message}");
}

#[test]
fn rows_out_of_order_are_left_out_if_they_may_be() {
    let rows = [
        r#"{"prompt": "a", "timestamp": 1000}"#,
        r#"{"prompt": "b", "timestamp": 500}"#,
        r#"{"prompt": "c"}"#,
        r#"{"prompt": "d", "timestamp": 3000}"#,
    ];
    assert!(mistake("{}", lines(&rows)).contains("line 2: the arrival time 500"));
    let mut dataset = open(r#"{"skip-invalid": true}"#, lines(&rows));
    let samples = all(&mut dataset, 5);
    let due: Vec<_> = samples.iter().map(|one| one.arrival).collect();
    assert_eq!(due, [Some(0), Some(2_000_000_000)]);
    let remarks = dataset.remarks();
    assert_eq!((remarks[0].what, remarks[0].count), (Treatment::Dropped, 2));
}

/// As `runner plan --export` writes them.
#[test]
fn exported_rows_are_as_they_were() {
    let rows = [
        r#"{"embedding": ["a", "b"]}"#,
        r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
            "parameters": {"temperature": 0.5, "tools": [{"type": "function"}]}}"#,
        r#"{"prompt": "p", "parameters": {"tools": [{"type": "function"}]}}"#,
        r#"{"text": "t", "embedding": [0.5, 0.25]}"#,
    ];
    let rows = rows.map(|row| row.replace('\n', " "));
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    let samples = all(&mut open("{}", lines(&rows)), 5);
    let embedding = Prompt::Embedding(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(samples[0].prompt, embedding);
    assert_eq!(samples[1].prompt.messages()[0].parts.len(), 2);
    assert_eq!(
        samples[1].parameters.as_deref(),
        Some(r#"{"temperature":0.5,"tools":[{"type":"function"}]}"#)
    );
    assert_eq!((text(&samples[2]), text(&samples[3])), ("p", "t"));
}

#[test]
fn only_its_key_lets_a_reference_set_a_length() {
    let rows = [r#"{"prompt": "What is 3*3?", "reference": "9"}"#];
    let output_tokens = |config: &str| {
        let samples = all(&mut open(config, lines(&rows)), 4);
        assert_eq!(samples[0].reference.as_deref(), Some("\"9\""));
        samples[0].output_tokens
    };
    assert_eq!(output_tokens("{}"), None);
    assert_eq!(output_tokens(r#"{"reference-sets-length": true}"#), Some(1));
    assert_eq!(output_tokens(r#"{"output-len": 60}"#), Some(60));
}

fn named(rows: &[Option<&str>]) -> Vec<String> {
    let mut names = Names::default();
    let rows = (1..).zip(rows);
    rows.map(|(number, own)| names.name(*own, number, None, false).0).collect()
}

#[test]
fn no_two_names_are_equal() {
    for (rows, expected) in [
        (vec![Some("x"), Some("x"), Some("x#2")], vec!["x", "x#2", "x#2#3"]),
        (vec![Some("x#2"), Some("x#3"), Some("x"), Some("x")], vec!["x#2", "x#3", "x", "x#4"]),
        (vec![Some("x#2"), Some("x"), Some("x"), Some("x#2")], vec!["x#2", "x", "x#3", "x#2#4"]),
        (
            vec![None, Some("custom-000001"), Some("custom-000009")],
            vec!["custom-000001", "custom-000001#2", "custom-000009"],
        ),
        (vec![Some("custom-000002"), None], vec!["custom-000002", "custom-000002#2"]),
    ] {
        assert_eq!(named(&rows), expected);
    }
}

#[test]
fn turns_have_names_of_their_own() {
    let mut names = Names::default();
    assert_eq!(names.name(Some("a/1"), 1, None, false).0, "a/1");
    assert_eq!(names.name(Some("a"), 2, Some(2), false).0, "a#2");
    assert_eq!(names.name(Some("a#2/0"), 3, None, false).0, "a#2/0#3");
    assert_eq!(names.name(Some("a"), 4, None, true), ("a#4".to_owned(), false));
}
