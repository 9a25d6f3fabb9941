//! Numbers that nobody means, given to the built binary: each is refused with a message or served
//! within limits.

use runs::folder::RunFolder;

use crate::support::process::{Mock, run, runner, words};
use crate::support::results::{random, run_folder};

/// Values that are refused, with a part of the message about each.
const REFUSED: [(&str, &str, i32); 14] = [
    (
        "--num-prompts 18446744073709551615",
        "`load.requests`: expected a whole number from 1 to 1000000000, found 18446744073709551615",
        3,
    ),
    ("--num-prompts 18446744073709551616", "expected at most 18446744073709551615", 2),
    (
        "--request-rate 1e300",
        "`load.rate`: expected from 0.000001 to 1000000 requests per second, or inf, found 1e300",
        3,
    ),
    (
        "--request-rate 1e15 --duration 1s",
        "`load.rate`: expected from 0.000001 to 1000000 requests per second",
        3,
    ),
    ("--request-rate 1e-6 --num-prompts 1000000", "the last request would be due after 8760h", 3),
    (
        "--request-rate 1000000 --duration 8760h",
        "up to 3.154e13 requests would be due, but a run has at most 1000000000",
        3,
    ),
    ("--num-prompts 1000000000", "at most 1000000 requests can begin at once", 3),
    (
        "--concurrency 4294967295",
        "`load.concurrency`: expected a whole number from 1 to 1000000, found 4294967295",
        3,
    ),
    (
        "--warmup-requests 4294967296",
        "`load.warmup`: expected a whole number from 0 to 100000, found 4294967296",
        3,
    ),
    ("--readers 65", "`connection.readers`: expected a whole number from 1 to 64, found 65", 3),
    ("--decoders 0", "`connection.decoders`: expected a whole number from 1 to 64, found 0", 3),
    (
        "--request-timeout 9999999999h",
        "`timeouts.request`: expected a duration above zero, at most 8760h, found 9999999999h",
        3,
    ),
    ("--repeat 4294967295", "4294967295 is not in 1..=10000", 2),
    ("--progress-every 9999999999h", "at most 8760h", 2),
];

#[test]
fn numbers_that_are_too_large_are_refused_with_their_limit() {
    for (flags, says, code) in REFUSED {
        let line = "--backend vllm --dataset-name random --base-url http://127.0.0.1:1 --model m";
        let ended = run(runner().args(words(line)).args(words(flags))).with_code(code);
        assert!(ended.stderr.contains(says), "{flags}: {ended:#?}");
    }
    let two = "--num-prompts 18446744073709551615 --request-rate 1e300";
    let ended = run(runner().args(words("--backend vllm --dataset-name random")).args(words(two)));
    let ended = ended.with_code(3);
    for key in ["load.requests", "load.rate"] {
        assert!(ended.stderr.contains(key), "{ended:#?}");
    }
}

#[test]
fn a_dataset_reports_a_request_for_too_many_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "0ms"]);
    for flags in [
        "--random-input-len 18446744073709551615",
        "--random-input-len 4294967296",
        "--random-output-len 18446744073709551615",
        "--random-range-ratio 1e300",
        "--random-range-ratio nan",
        "--random-input-len 0",
    ] {
        let line = format!("--num-prompts 1 --no-progress {flags}");
        let ended = run(&mut random(&mock.url, folder.path(), &line));
        assert!(matches!(ended.code, Some(2..=5)), "{flags}: {ended:#?}");
        let key = flags.trim_start_matches("--random-").split(' ').next();
        assert!(ended.stderr.contains(key.unwrap()), "{flags}: {ended:#?}");
        assert!(!ended.stderr.contains("panicked"), "{flags}: {ended:#?}");
    }
}

#[test]
fn the_requested_number_of_threads_reads_and_decodes() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "10ms"]);
    let flags = "--num-prompts 30 --random-output-len 20 --readers 3 --no-progress";
    run(random(&mock.url, folder.path(), flags).env("RUNNER_DECODERS", "2")).with_code(0);
    let run_folder = RunFolder::at(&run_folder(folder.path()));
    let wiring = run_folder.plan().unwrap().connection;
    assert_eq!((wiring.readers, wiring.decoders), (Some(3), Some(2)));
    if cfg!(target_os = "linux") {
        let threads = run_folder.facts().unwrap().client.unwrap().threads;
        let of = |role: &str| threads.keys().filter(|name| name.starts_with(role)).count();
        assert_eq!((of("read-"), of("decode-")), (3, 2), "{:?}", threads.keys());
    }
}
