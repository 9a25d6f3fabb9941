//! Reports name damaged or changed records, and use the readable ones.

use std::path::{Path, PathBuf};

use crate::support::process::{Exit, Mock, only_run, run, runner, words};

const REQUESTS: usize = 40;

/// A whole run, and its folder.
fn a_run(folder: &Path) -> PathBuf {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let mut command = runner();
    let line = "--backend vllm --dataset-name random --num-prompts 40 --random-output-len 4 --set load.warmup=0";
    command.args(words(line));
    command.args(["--base-url", &mock.url]).current_dir(folder);
    run(&mut command).with_code(0);
    only_run(&folder.join("runs")).unwrap()
}

fn records(run: &Path) -> PathBuf {
    run.join("records.jsonl.zst")
}

fn lines(run: &Path) -> Vec<String> {
    let text = zstd::decode_all(&*std::fs::read(records(run)).unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn write(run: &Path, lines: &[String]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let bytes = zstd::encode_all(text.as_bytes(), 1).unwrap();
    std::fs::write(records(run), bytes).unwrap();
}

fn report(run_folder: &Path, format: &str) -> Exit {
    let mut command = runner();
    command.arg("report").arg(run_folder);
    command.args(["--format", format]);
    run(&mut command).with_code(0)
}

/// The findings, and the number of reported requests.
fn found(run: &Path) -> (Option<String>, u64, String) {
    let ended = report(run, "json");
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let findings = summary["findings"].as_array().unwrap();
    let of = |id: &str| findings.iter().find(|finding| finding["id"] == id);
    assert!(of("short-dataset").is_none(), "{findings:?}");
    let damaged = of("records-damaged").map(|finding| {
        assert_eq!(finding["severity"], "invalid");
        assert_eq!(summary["verdict"], "invalid");
        let seen = finding["seen"].as_str().unwrap().to_owned();
        assert!(ended.stderr.contains(&seen), "{ended:#?}");
        seen
    });
    let total = summary["requests"]["total"].as_u64().unwrap();
    (damaged, total, ended.stderr)
}

#[test]
fn a_changed_file_is_told_from_an_unchanged_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = a_run(folder.path());
    let (whole, total, notes) = found(&run);
    assert_eq!((whole, total, notes.as_str()), (None, 40, ""));
    let status = std::fs::read_to_string(run.join("status.json")).unwrap();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["records"]["count"], REQUESTS);
    let bytes = std::fs::read(records(&run)).unwrap();
    let all = lines(&run);
    assert_eq!(all.len(), REQUESTS);
    // Compressed anew, it holds the same.
    write(&run, &all);
    assert_eq!(found(&run).0, None);

    let damaged = |what: &str, least: u64, words: &[&str]| {
        let (seen, total, _) = found(&run);
        let seen = seen.unwrap_or_else(|| panic!("{what}: nothing is found"));
        for word in words {
            assert!(seen.contains(word), "{what}: {seen}");
        }
        assert!(total >= least && total <= 41, "{what}: {total} requests");
        // Its figures are shown in every form; lines and rows are the readable ones.
        for format in ["text", "markdown", "html"] {
            let shown = report(&run, format).stdout;
            assert!(shown.contains("records-damaged"), "{what}: {format}: {shown}");
        }
        let rows = report(&run, "jsonl").stdout.lines().count() as u64;
        assert_eq!(rows, total, "{what}");
    };

    std::fs::write(records(&run), &bytes[..bytes.len() - 40]).unwrap();
    damaged("cut off", 0, &[" of 40 records are missing", "breaks off"]);
    for at in [bytes.len() / 3, bytes.len() / 2] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        std::fs::write(records(&run), flipped).unwrap();
        damaged("a bit", 0, &["40 records"]);
    }
    write(&run, &all[..39]);
    damaged("the last line", 39, &["1 of 40 records", "taken out"]);
    write(&run, &[&all[..], &all[..1]].concat());
    damaged("a line twice", 41, &["holds 41", "wrote 40", "added"]);
    let mut edited = all.clone();
    edited[7] = edited[7].replacen("\"index\":", "\"index\":1", 1);
    write(&run, &edited);
    damaged("an edited line", 40, &["were changed"]);
    edited[7] = "nonsense".to_owned();
    write(&run, &edited);
    damaged("a line that is none", 39, &["1 of 40 records", "line 8 is not a record"]);
    let mut unended = all.join("\n");
    unended.truncate(unended.len() - 3);
    let unended = zstd::encode_all(unended.as_bytes(), 1).unwrap();
    std::fs::write(records(&run), unended).unwrap();
    damaged("no end", 39, &["1 of 40 records", "ends within a line"]);
}

#[test]
fn a_comparison_with_damaged_records_needs_a_flag() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = a_run(folder.path());
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    for file in std::fs::read_dir(&run_folder).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), other.join(file.file_name())).unwrap();
    }
    let all = lines(&other);
    write(&other, &all[..30]);
    let compare = |flags: &[&str]| {
        let mut command = runner();
        command.arg("compare").arg(&run_folder).arg(&other).args(flags);
        run(&mut command)
    };
    let refused = compare(&[]).with_code(3);
    assert!(refused.stderr.contains("records-damaged"), "{refused:#?}");
    assert!(refused.stderr.contains("10 of 40 records are missing"), "{refused:#?}");
    compare(&["--force"]).with_code(0);
}

#[test]
fn files_of_a_killed_run_are_not_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let run = a_run(folder.path());
    std::fs::remove_file(run.join("status.json")).unwrap();
    let bytes = std::fs::read(records(&run)).unwrap();
    std::fs::write(records(&run), &bytes[..bytes.len() - 40]).unwrap();
    let (damaged, _, notes) = found(&run);
    assert_eq!(damaged, None);
    assert!(notes.contains("did not finish"), "{notes}");
    let mut edited = lines_of_killed(&bytes);
    edited[3] = "{}".to_owned();
    write(&run, &edited);
    let (damaged, total, _) = found(&run);
    let damaged = damaged.unwrap();
    assert!(damaged.contains("line 4 is not a record"), "{damaged}");
    assert_eq!(total, 39);
}

fn lines_of_killed(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(zstd::decode_all(bytes).unwrap()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_small_file_cannot_take_much_memory_or_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = a_run(folder.path());
    let all = lines(&run);
    for (what, text, words) in [
        // 20 KB that become 600 MB.
        ("a long line", vec![b'a'; 600 << 20], "a line is longer than 256 MiB"),
        ("many lines", vec![b'\n'; 64 << 20], "line 2 is not a record"),
    ] {
        let mut content = format!("{}\n", all[0]).into_bytes();
        content.extend(text);
        // A sound one behind it is not reached.
        content.extend(format!("\n{}\n", all[1]).into_bytes());
        let bytes = zstd::encode_all(&*content, 1).unwrap();
        std::fs::write(records(&run), bytes).unwrap();
        let (seen, total, _) = found(&run);
        let seen = seen.unwrap();
        assert!(seen.contains(words), "{what}: {seen}");
        assert_eq!(total, 1, "{what}");
    }
}

#[cfg(unix)]
#[test]
fn a_run_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let run = a_run(folder.path());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&run), 0o700);
    for file in std::fs::read_dir(&run).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}
