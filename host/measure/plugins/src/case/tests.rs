//! Tests that need no plugin: damage, batches, texts of expectations. The rest is tested with the
//! built binary, in `tests/plugin_cases`.

use super::dice::Dice;
use super::*;
use crate::backend::{Meaning, Output, Request};
use model::frame::LengthPrefix;

const BODY: &[u8] = b"data: {\"n\": 12}\n\nevent: e\ndata: {\"n\": 345}\n\ndata: [DONE]\n\n";

fn frames(framing: Framing, body: &[u8]) -> Frames {
    reply::together(&reply::batches(framing, &[body]).unwrap())
}

fn shown(frames: &Frames) -> Vec<(Option<String>, Vec<u8>)> {
    frames.iter().map(|frame| (frame.name.map(str::to_owned), frame.data.to_vec())).collect()
}

#[test]
fn batching_does_not_change_frames() {
    let whole = frames(Framing::EventStream, BODY);
    assert_eq!(whole.len(), 3);
    for seed in 0..200 {
        let dice = &mut Dice::new(seed);
        let grouped = reply::grouped(&whole, dice);
        let reads = reply::reads(BODY, dice);
        assert_eq!(reads.concat(), BODY);
        let read = reply::batches(Framing::EventStream, &reads).unwrap();
        for batches in [grouped, read] {
            assert!(batches.iter().all(|batch| !batch.is_empty()));
            assert_eq!(shown(&reply::together(&batches)), shown(&whole));
        }
    }
}

#[test]
fn damage_is_varied_and_reproducible() {
    let whole = frames(Framing::EventStream, BODY);
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let damaged = || {
            let dice = &mut Dice::new(seed);
            damage::reply(Framing::EventStream, BODY, &whole, dice).unwrap()
        };
        let (what, once) = damaged();
        assert_eq!(shown(&once), shown(&damaged().1), "{what}");
        let word = |word: &str| !word.starts_with(|first: char| first.is_ascii_digit());
        kinds.insert(what.split(' ').filter(|part| word(part)).collect::<String>());
    }
    for kind in
        ["lost", "twice", "swapped", "empty", "flipped", "garbage", "nested", "UTF", "number"]
    {
        assert!(kinds.iter().any(|known| known.contains(kind)), "{kind}: {kinds:?}");
    }
}

#[test]
fn bodies_of_every_size_can_be_damaged() {
    for size in 0..40 {
        let messages = [&b"\0\0\0\0\x28"[..], &BODY[..40]].concat();
        for seed in 0..200 {
            damage::body(&BODY[..size], &mut Dice::new(seed));
            for framing in [
                Framing::EventStream,
                Framing::Lines,
                Framing::Grpc,
                Framing::Whole,
                Framing::Raw,
                Framing::LengthPrefixed(LengthPrefix {
                    skip: 0,
                    width: 1,
                    adjust: 0,
                    little_endian: false,
                }),
            ] {
                let body = match framing {
                    Framing::Grpc => &messages[..size],
                    _ => &BODY[..size],
                };
                let whole = frames(framing, body);
                damage::cut(framing, body, &mut Dice::new(seed));
                if !whole.is_empty() {
                    damage::reply(framing, body, &whole, &mut Dice::new(seed));
                }
            }
        }
    }
}

#[test]
fn events_without_frames_join_their_pieces() {
    let piece = |text: &str, tokens| {
        let text = text.to_owned();
        Meaning::Text(Output { text, tokens, choice: 0 })
    };
    let events =
        [(0, Meaning::Opened), (0, piece("a", Some(1))), (1, piece("b", None)), (2, Meaning::End)];
    assert_eq!(
        format::events(&events, false),
        "[\n  {\"kind\":\"opened\"},\n  {\"kind\":\"text\",\"text\":\"ab\",\"tokens\":1},\n  {\"kind\":\"end\"}\n]\n"
    );
    assert_eq!(format::events(&events, true).lines().count(), 6);
    assert_eq!(format::events(&[], true), "[]\n");
}

#[test]
fn request_is_written_as_on_the_wire() {
    let mut request = Request {
        method: "POST".to_owned(),
        path: "/a?b=c".to_owned(),
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: Vec::new(),
    };
    assert_eq!(format::request(&request), "POST /a?b=c\ncontent-type: text/plain\n");
    request.body = b"x\n".to_vec();
    assert_eq!(format::request(&request), "POST /a?b=c\ncontent-type: text/plain\n\nx\n\n");
}

#[test]
fn editors_newlines_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.json");
    let found = [("events.json", Some("a\nb\n".to_owned()))];
    for same in ["a\nb\n", "a\nb", "a\r\nb\r\n"] {
        std::fs::write(&path, same).unwrap();
        assert_eq!(
            super::compare(&mut Store::open(folder.path()).unwrap(), &found, false),
            (vec![], vec![])
        );
    }
    for other in ["a\nb\n\n", "a\n b\n", ""] {
        std::fs::write(&path, other).unwrap();
        let (failures, _) = super::compare(&mut Store::open(folder.path()).unwrap(), &found, false);
        assert!(matches!(failures.as_slice(), [Failure::Differs { .. }]), "{other:?}");
    }
    let (failures, written) =
        super::compare(&mut Store::open(folder.path()).unwrap(), &[("events.json", None)], true);
    assert!(failures.is_empty() && written[0].removed && !path.exists());
}

fn made(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    folder
}

fn names(found: &CaseSet, below: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.strip_prefix(below).unwrap().display().to_string();
    found.cases.iter().map(name).collect()
}

#[test]
fn projects_folders_and_cases_are_distinguished() {
    let folder = made(&[
        "cases/b/sample.json",
        "cases/a/sample.json",
        "cases/shared.json",
        "cases/c.case",
        "cases/.git/x",
    ]);
    let root = folder.path();
    let project = cases(root).unwrap();
    assert_eq!(names(&project, root), ["cases/a", "cases/b", "cases/c.case"]);
    assert_eq!(project.project.as_deref(), Some(root));
    let folder_of_cases = cases(&root.join("cases")).unwrap();
    assert_eq!(folder_of_cases.cases, project.cases);
    assert_eq!(folder_of_cases.project.as_deref(), Some(root));
    let one = cases(&root.join("cases/b")).unwrap();
    assert_eq!(names(&one, root), ["cases/b"]);
    assert_eq!(one.project.as_deref(), Some(root));
    let file = cases(&root.join("cases/c.case")).unwrap();
    assert_eq!(names(&file, root), ["cases/c.case"]);
    assert_eq!(file.project.as_deref(), Some(root));
}

#[test]
fn several_components_are_refused() {
    let folder = made(&["target/plugin/b.wasm", "target/plugin/c.wasm"]);
    let several = component(folder.path()).unwrap_err();
    assert!(several.contains("(b.wasm, c.wasm)"), "{several}");
}
