//! Messages about mistakes in configurations and files: the place, the expected value, and the
//! remedy.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use runner_plugin::random::Python;
use runner_plugin::{Dataset, Error};
use runner_plugin_testing::datasets::{self, cases, invalid_input};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;

use super::{Qa, of_goldens, open};

/// The message of the first error that a configuration and files bring about.
fn mistake(config: &str, files: Named) -> String {
    datasets::mistake(open(config, 0, files).and_then(|mut dataset| dataset.next(100)))
}

fn data(text: &str) -> Named {
    Named::default().with_bytes("data", text)
}

#[test]
fn configurations() {
    for (config, expected) in cases(
        r#"
        {"task": "humaneval", "shots": 2} => key `shots`: expected 0 or none, because the task humaneval has no examples, got 2
        {"task": "mbpp", "shots": 4} => key `shots`: expected at most 3 for the task mbpp, got 4
        {"task": "gsm8k", "shots": 101} => key `shots`: expected at most 100 for the task gsm8k, got 101
        {"task": "bfcl", "form": "text"} => key `form`: expected "turns" or none, because the questions of bfcl are conversations with tools, got "text"
        {"task": "gsm8k", "subjects": ["anatomy"]} => key `subjects`: expected none, because the task gsm8k has no subjects
        {"task": "arc", "limit": 0, "output-len": 0} => key `limit`: expected at least 1, got 0; key `output-len`: expected at least 1, got 0
        {"task": "arc"} => no file of questions: pass --dataset-path FILE, or set `data = "FILE"` under [dataset.files]
        "#,
    ) {
        assert_eq!(mistake(config, Named::default()), expected);
    }
    let message = mistake(r#"{"task": "mmlu", "subjects": ["anatomie"]}"#, Named::default());
    assert!(
        message.starts_with("key `subjects`: expected subjects of mmlu, got `anatomie`; they are abstract_algebra, anatomy, "),
        "{message}"
    );
}

#[test]
fn files_of_examples() {
    let row = r#"{"question": "1+1?", "answer": "2 #### 2"}"#;
    assert_eq!(
        mistake(r#"{"task": "gsm8k"}"#, data(row)),
        "the task gsm8k has 5 examples before each question: set `examples = \"FILE\"` under [dataset.files], or `shots = 0`"
    );
    let few = data(row).with_bytes("examples", [row; 4].join("\n"));
    assert_eq!(
        mistake(r#"{"task": "gsm8k"}"#, few),
        "file `examples`: expected at least 5 rows for 5 examples, found 4"
    );
    let wrong = data(row).with_bytes("examples", format!("{row}\n\n{{\"question\": \"?\"}}"));
    assert_eq!(
        mistake(r#"{"task": "gsm8k", "shots": 2}"#, wrong),
        "file `examples`, line 3: expected the column `answer`; the row has `question`"
    );
    let gpqa = Named::default().with_path("data", of_goldens("gpqa_main.csv"));
    assert_eq!(
        mistake(
            r#"{"task": "gpqa", "shots": 1}"#,
            gpqa.clone().with_path("examples", of_goldens("gpqa_main.csv"))
        ),
        "the task gpqa draws its examples from the file `data`: leave out `examples` under [dataset.files]"
    );
    assert_eq!(
        mistake(r#"{"task": "gpqa", "shots": 12}"#, gpqa),
        "file `data`: expected at least 13 rows for 12 examples, found 12"
    );
    let mmlu = Named::default()
        .with_path("data", of_goldens("mmlu_test.parquet"))
        .with_path("examples", of_goldens("mmlu_dev.parquet"));
    assert_eq!(
        mistake(r#"{"task": "mmlu", "shots": 6}"#, mmlu),
        "file `examples`: expected 6 rows of the subject `abstract_algebra`, found 5"
    );
    let mbpp = r#"{"task_id": 11, "text": "Add.", "code": "", "test_list": ["a", "b", "c"]}"#;
    assert_eq!(
        mistake(r#"{"task": "mbpp", "shots": 1}"#, data(mbpp)),
        "file `data`: expected the row whose `task_id` is 2, which is an example; give the file that has it as `examples` \
         under [dataset.files], or set `shots = 0`"
    );
}

#[test]
fn rows() {
    let of = |task: &str, text: &str| {
        mistake(&format!(r#"{{"task": "{task}", "shots": 0}}"#), data(text))
    };
    // `¶` is a line break.
    for (row, expected) in cases(
        r#"
        gsm8k:  => file `data`: it is empty
        gsm8k: [] => file `data`: expected rows, found none
        gsm8k: question,answer¶ => file `data`: expected rows, found none
        gsm8k: {"question": "?", "answer": "1"}¶{"question":  => file `data`, line 2: expected a whole JSON object in one line: EOF while parsing a value
        gsm8k: {"question": "?", "answer": 7} => file `data`, line 1: column `answer`: expected a text, found 7
        gsm8k: [{"question": "?", "answer": "1"},¶{"question": "?", "answer": null}] => file `data`, item 2 (line 2): column `answer`: expected a value, found none
        gsm8k: prompt,reply¶what,that¶ => file `data`, line 2: expected the column `question`; the row has `prompt`, `reply`
        gsm8k: question,answer¶"what¶ => file `data`, line 2: column 1: a quotation mark is not closed
        mmlu: What?,a,b,c,d¶ => file `data`, line 1: expected a value for each of the 6 columns question, A, B, C, D, answer, found 5 values
        mmlu: What?,a,b,c,d,A¶ => file `data`, line 1: expected the column `subject`, or the file's subject in the configuration, such as `subjects = ["anatomy"]`; the row has `question`, `A`, `B`, `C`, `D`, `answer`
        mmlu: {"question": "?", "subject": "anatomy", "choices": ["a", "b", "c"], "answer": 1} => file `data`, line 1: column `choices`: expected four texts, found ["a","b","c"]
        mmlu: {"question": "?", "subject": "anatomy", "choices": ["a", "b", "c", "d"], "answer": 4} => file `data`, line 1: column `answer`: expected an index from 0 to 3, or a letter from A to D, found 4
        mmlu-pro: {"question": "?", "category": "law", "options": ["a", "b"], "answer": "C"} => file `data`, line 1: column `answer`: expected the letter of an option, found "C"
        gpqa: {"Question": "?", "Correct Answer": "a"} => file `data`, line 1: expected the column `Incorrect Answer 3`; the row has `Question`, `Correct Answer`
        arc: {"question": "?", "choices": {"text": ["a", "b"]}, "answerKey": "A"} => file `data`, line 1: column `choices`: expected at least three choices, each with `text`, found {"text":["a","b"]}
        mbpp: {"task_id": 11, "text": "?", "test_list": ["a"]} => file `data`, line 1: column `test_list`: expected at least three tests, found ["a"]
        mbpp: {"task_id": 601, "text": "?", "test_list": ["a", "b", "c"]} => file `data`: no row is a question of the task mbpp, whose `task_id` is from 11 to 510
        ifeval: {"key": 1, "prompt": "?", "instruction_id_list": ["a:b"], "kwargs": []} => file `data`, line 1: column `kwargs`: expected a list with a table for each instruction, found []
        longbench: {"input": "?", "context": "c", "answers": ["a"]} => file `data`, line 1: expected the column `dataset`, or the file's dataset in the configuration, such as `subjects = ["hotpotqa"]`; the row has `input`, `context`, `answers`
        bfcl: {"id": "simple_python_0", "question": [[{"role": "user", "content": "?"}]], "function": []} => file `data`, line 1: its answer is in a separate file: set `answers = "FILE"` under [dataset.files], the file of the same name in BFCL's folder `possible_answer`
        bfcl: {"id": "multi_turn_base_0", "question": [], "function": []} => file `data`, line 1: the category multi_turn_base needs tools that run; use the files of the single-turn categories
        bfcl: {"id": "irrelevance_0", "question": [[], []], "function": []} => file `data`, line 1: column `question`: expected one turn, a list of messages with `role` and `content`, found [[],[]]
        humaneval: {"task_id": "a", "prompt": "p", "test": "t", "entry_point": "e"}¶{"task_id": "a", "prompt": "p", "test": "t", "entry_point": "e"} => file `data`, line 2: the name `a` belongs to an earlier question; expected a unique name
        "#,
    ) {
        let (task, text) = row.split_once(": ").expect("a task");
        assert_eq!(of(task, &text.replace('¶', "\n")), expected, "{row}");
    }
    let message =
        of("longbench", r#"{"input": "?", "context": "c", "answers": ["a"], "dataset": "hotpot"}"#);
    assert!(
        message.starts_with("file `data`, line 1: expected a dataset of LongBench, found `hotpot`; they are 2wikimqa, dureader, "),
        "{message}"
    );
}

#[test]
fn answers_in_a_file_of_their_own() {
    let row = r#"{"id": "simple_python_0", "question": [[{"role": "user", "content": "?"}]], "function": []}"#;
    let answers =
        |text: &str| mistake(r#"{"task": "bfcl"}"#, data(row).with_bytes("answers", text));
    assert_eq!(
        answers(r#"{"id": "simple_python_1", "ground_truth": []}"#),
        "file `data`, line 1: file `answers`: expected a row with the id `simple_python_0`"
    );
    assert_eq!(
        answers(r#"{"id": "simple_python_0"}"#),
        "file `data`, line 1: file `answers`, line 1: expected the column `ground_truth`; the row has `id`"
    );
    assert_eq!(
        answers(r#"{"ground_truth": []}"#),
        "file `answers`, line 1: expected the column `id`; the row has `ground_truth`"
    );
}

#[test]
fn subjects_that_the_file_does_not_have() {
    let files = Named::default()
        .with_path("data", of_goldens("mmlu_pro_test.parquet"))
        .with_path("examples", of_goldens("mmlu_pro_validation.parquet"));
    assert_eq!(
        mistake(r#"{"task": "mmlu-pro", "subjects": ["law", "maths"]}"#, files),
        "key `subjects`: no row of the file `data` is of the subject `maths`; it has computer science, law"
    );
}

/// A file of many equal rows; none is held.
#[derive(Clone)]
struct Long(u64);

const ROW: &[u8] = b"{\"question\": \"?\", \"answer\": \"1\"}\n";

impl runner_plugin::Files for Long {
    fn open(&self, _name: &str) -> Option<Box<dyn runner_plugin::File>> {
        Some(Box::new(self.clone()))
    }
}

impl runner_plugin::File for Long {
    fn size(&self) -> u64 {
        self.0 * ROW.len() as u64
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, String> {
        let length = u64::from(length).min(self.size().saturating_sub(offset)) as usize;
        let at = offset as usize % ROW.len();
        Ok(ROW.repeat(length / ROW.len() + 2)[at..at + length].to_vec())
    }
}

#[test]
fn files_of_too_many_rows() {
    let mistake_of = |config: &str, rows: u64| {
        let opened = datasets::open::<Qa>(config, 0, None, Long(rows), StandIn);
        opened.is_err().then(|| invalid_input(opened))
    };
    let most = 1 << 20;
    assert_eq!(mistake_of(r#"{"task": "gsm8k", "shots": 8}"#, most), None);
    assert_eq!(
        mistake_of(r#"{"task": "gsm8k", "shots": 0}"#, most + 1).as_deref(),
        Some("file `data`: expected at most 1048576 rows; use a part of the file")
    );
    assert_eq!(
        mistake_of(r#"{"task": "gsm8k", "shots": 9}"#, most).as_deref(),
        Some("file `data`: expected at most 932067 rows with 9 examples each, found 1048576")
    );
}

#[test]
fn sequential_files_are_held_in_memory_up_to_a_bound() {
    let row = format!("{{\"question\": \"?\", \"answer\": \"{}\"}}\n", "1".repeat(1 << 20));
    let packed = |rows: usize| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        for _ in 0..rows {
            packed.write_all(row.as_bytes()).expect("memory");
        }
        Named::default().with_bytes("data", packed.finish().expect("memory"))
    };
    assert!(open(r#"{"task": "gsm8k", "shots": 0}"#, 0, packed(95)).is_ok());
    assert_eq!(
        mistake(r#"{"task": "gsm8k", "shots": 0}"#, packed(96)),
        "file `data`: it cannot be read from its middle, and its rows are more than the 96 MiB that are held; decompress \
         it, or use a part of it"
    );
}

#[test]
fn examples_of_too_many_subjects() {
    let row = |number: usize| {
        format!(
            r#"{{"question": "?", "category": "{number}", "options": ["a"], "answer": "A", "cot_content": "So a."}}"#
        )
    };
    let files = |count: usize| {
        let rows: Vec<_> = (0..count).map(row).collect();
        data(&row(0)).with_bytes("examples", rows.join("\n"))
    };
    assert!(open(r#"{"task": "mmlu-pro", "shots": 1}"#, 0, files(1000)).is_ok());
    assert_eq!(
        mistake(r#"{"task": "mmlu-pro", "shots": 1}"#, files(1001)),
        "file `examples`, line 1001: expected at most 1000 subjects"
    );
}

/// Files whose bytes are changed or cut: each gives samples or a message, and nothing else.
#[test]
fn damaged_files() {
    let mut random = Python::new(1);
    let (mut read, mut refused) = (0, 0);
    for (config, names) in [
        (r#"{"task": "gsm8k", "shots": 2}"#, &["gsm8k_test.jsonl", "gsm8k_train.parquet"][..]),
        (r#"{"task": "mmlu", "shots": 1}"#, &["mmlu_test.parquet", "mmlu_dev.parquet"]),
        (r#"{"task": "gpqa", "shots": 1}"#, &["gpqa_main.csv"]),
        (r#"{"task": "arc"}"#, &["ARC-Challenge-Test.jsonl"]),
        (r#"{"task": "humaneval"}"#, &["HumanEval.jsonl.gz"]),
        (r#"{"task": "mbpp"}"#, &["mbpp.jsonl"]),
        (r#"{"task": "ifeval"}"#, &["ifeval_input_data.jsonl"]),
        (r#"{"task": "longbench"}"#, &["longbench.jsonl"]),
        (r#"{"task": "bfcl"}"#, &["BFCL_v4.json", "BFCL_v4_answers.json"]),
    ] {
        let content = |name: &&str| std::fs::read(of_goldens(name)).expect("a file");
        let contents: Vec<_> = names.iter().map(content).collect();
        for _ in 0..30 {
            let mut files = Named::default();
            for (at, content) in contents.iter().enumerate() {
                let mut content = content.clone();
                for _ in 0..random.below(4) {
                    let place = random.below(content.len() as u64) as usize;
                    match random.below(3) {
                        0 => content.truncate(place + 1),
                        1 => content[place] = random.below(256) as u8,
                        _ => drop(content.drain(place..(place + 9).min(content.len()))),
                    }
                    if content.is_empty() {
                        break;
                    }
                }
                let other = if config.contains("bfcl") { "answers" } else { "examples" };
                files = files.with_bytes(["data", other][at], content);
            }
            let outcome = open(config, 0, files).and_then(|mut dataset| {
                while !dataset.next(5)?.is_empty() {}
                dataset.spare(3)
            });
            match outcome {
                Ok(_) => read += 1,
                Err(Error::InvalidInput(_)) => refused += 1,
                Err(other) => panic!("{config}: {other:?}"),
            }
        }
    }
    assert!(read > 50 && refused > 50, "{read} were read, {refused} refused");
}
