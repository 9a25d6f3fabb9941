//! Files of strangers, given to every command that reads files, under a memory limit: each is read,
//! or refused with a message, whatever it holds.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::check::{at_once, no_panic};
use crate::support::process::{Exit, run, runner_behind, words};

/// Kilobytes that a process may write to.
const MEMORY: u64 = 2_500_000;

/// A run of a real engine, whose files are replaced one by one.
const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../guide/gallery/run");

/// Commands for a file in the place of `X`; the run above is in the place of `R`.
const OF_A_FILE: [&str; 16] = [
    "report X",
    "audit X",
    "compare X X",
    "explain X X",
    "agreement R X",
    "ci R --baseline X",
    "score R --scorer X",
    "scenario check X",
    "lab --dry-run X",
    "plugin check X",
    "plugin info X",
    "plan X",
    "plan --model m --trace X",
    "plan --model m --dataset-name random --tokenizer X",
    "plan --model m --dataset-name sharegpt --dataset-path X --num-prompts 2",
    "plan --model m --dataset-name custom --dataset-path X --num-prompts 2",
];

/// Commands for the folder of a run in the place of `X`.
const OF_A_FOLDER: [&str; 6] = [
    "report X",
    "report X --format html",
    "compare X R",
    "explain X R",
    "ci X",
    "export X --table requests --format csv --output -",
];

/// Contents that cost much more than they look: nesting, numbers without an end, quotes, tables, a
/// component, and bytes that are no text.
fn contents() -> Vec<(&'static str, Vec<u8>)> {
    let noise = (0u32..200_000).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8);
    vec![
        ("lists.json", vec![b'['; 1_000_000]),
        ("objects.json", b"{\"a\":".repeat(500_000)),
        ("digits.json", vec![b'1'; 2_000_000]),
        ("numbers.json", [b"[".as_slice(), &b"1,".repeat(2_000_000), b"1]"].concat()),
        ("lists.toml", [b"a = ".as_slice(), &vec![b'['; 200_000]].concat()),
        ("tables.toml", [b"[a".as_slice(), &b".a".repeat(100_000), b"]\n"].concat()),
        ("quotes.csv", vec![b'"'; 2_000_000]),
        ("headings.md", [b"|".repeat(1_000_000), b"\n# a".repeat(100_000)].concat()),
        ("latin.toml", b"[load]\nrequests = \"\xff\xfe\"\n".to_vec()),
        ("noise", noise.clone().collect()),
        ("noise.wasm", b"\0asm\x0d\0\x01\0".iter().copied().chain(noise).collect()),
        ("empty", Vec::new()),
        ("zeros.zst", zeros()),
    ]
}

/// Some 10 KB that are 6 GiB when they are decompressed.
fn zeros() -> Vec<u8> {
    zstd::encode_all(vec![0; 64 << 20].as_slice(), 3).unwrap().repeat(96)
}

#[track_caller]
fn is_read_or_refused(line: &str, given: &Path) {
    let limited = format!("ulimit -d {MEMORY} && exec \"$@\"");
    let mut command = runner_behind(&limited);
    command.args(words(line).map(|word| match word {
        "X" => given.to_path_buf(),
        "R" => PathBuf::from(RUN),
        word => PathBuf::from(word),
    }));
    let ended: Exit = run(&mut command);
    let about = format!("{line} of {}", given.display());
    no_panic(&about, &ended);
    let code = ended.code;
    assert!(code.is_some_and(|code| (0..=9).contains(&code)), "{about}: {code:?} {}", ended.stderr);
    if code != Some(0) {
        assert!(!ended.stderr.trim().is_empty(), "{about}: nothing says why");
    }
}

#[test]
fn files_of_strangers_are_read_or_refused() {
    let place = TempDir::new().unwrap();
    let mut all = Vec::new();
    for (name, content) in contents() {
        let path = place.path().join(name);
        std::fs::write(&path, content).unwrap();
        all.extend(OF_A_FILE.map(|line| (line, path.clone())));
    }
    at_once(&all, 4, |(line, path)| is_read_or_refused(line, path));
}

#[test]
fn folders_of_strangers_are_read_or_refused() {
    let place = TempDir::new().unwrap();
    let files: Vec<_> = std::fs::read_dir(RUN).unwrap().map(|entry| entry.unwrap()).collect();
    let mut all = Vec::new();
    let contents = contents();
    let hostile = ["lists.json", "digits.json", "noise", "zeros.zst"];
    for (name, content) in contents.iter().filter(|(name, _)| hostile.contains(name)) {
        for replaced in &files {
            let folder = place.path().join(format!("{name}-{}", all.len()));
            std::fs::create_dir(&folder).unwrap();
            for file in &files {
                let to = folder.join(file.file_name());
                if file.file_name() == replaced.file_name() {
                    std::fs::write(to, content).unwrap()
                } else {
                    std::fs::copy(file.path(), to).unwrap();
                }
            }
            all.extend(OF_A_FOLDER.map(|line| (line, folder.clone())));
        }
    }
    at_once(&all, 4, |(line, folder)| is_read_or_refused(line, folder));
}
