//! Files of the format and files that break it, read in pieces of every small size.

use runner_plugin::random::Python;
use runner_plugin::{Error, File, Files};

use super::{Conversations, Like, Pair};

/// A file that gives few bytes at a time.
#[derive(Clone)]
struct Crumbs {
    bytes: Vec<u8>,
    size: usize,
}

impl Files for Crumbs {
    fn open(&self, name: &str) -> Option<Box<dyn File>> {
        (name == "data").then(|| Box::new(self.clone()) as Box<dyn File>)
    }
}

impl File for Crumbs {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, String> {
        let start = self.bytes.len().min(offset as usize);
        let end = self.bytes.len().min(start + self.size.min(length as usize));
        Ok(self.bytes[start..end].to_vec())
    }
}

const TWO: &str = r#"[
  {"id": "a\"b", "conversations": [
    {"from": "human", "value": "Say \"hi\" \u00e9\\"},
    {"from": "gpt", "value": "hi [{,"},
    {"from": "human", "value": 3}
  ], "other": {"conversations": [1, 2.5e-3, null, [], {}, true]}},
  {"conversations": [{"value": "", "from": "human"}, {"value": "so?", "from": "gpt"}]},
  {"conversations": [{"value": "alone", "from": "human"}]},
  {"conversations": []}
]
"#;

fn open(text: &str, size: usize, like: Like, keep_empty: bool) -> Result<Conversations, Error> {
    let files = Crumbs { bytes: text.as_bytes().to_vec(), size };
    Ok(Conversations::open(&files, "data", like, keep_empty)?.expect("the file is there"))
}

fn complaint(text: &str, like: Like) -> String {
    let opened = open(text, 1 << 20, like, true).and_then(|conversations| {
        (0..conversations.len()).try_for_each(|position| conversations.read(position).map(drop))
    });
    match opened {
        Err(Error::InvalidInput(message)) => message,
        other => panic!("expected invalid input of {text}, got {other:?}"),
    }
}

fn pair(prompt: &str, completion: &str) -> Pair {
    Pair { prompt: prompt.to_owned(), completion: completion.to_owned() }
}

#[test]
fn pieces_of_every_size_give_the_same_pairs() {
    for size in 1..TWO.len() + 1 {
        let conversations = open(TWO, size, Like::Lmdeploy, true).expect("a valid file");
        assert_eq!(conversations.len(), 2, "pieces of {size}");
        assert_eq!(conversations.read(0), Ok(Some(pair("Say \"hi\" é\\", "hi [{,"))));
        assert_eq!(conversations.read(1), Ok(Some(pair("", "so?"))));
        assert_eq!(conversations.read(2), Ok(None));
    }
}

/// Lists the conversations that were left out: reason, number, and the first.
fn left_out(conversations: &Conversations) -> Vec<(String, u64, Option<String>)> {
    let remarks = conversations.remarks().list().into_iter();
    remarks.map(|remark| (remark.reason, remark.count, remark.first)).collect()
}

fn left(reason: &str, count: u64, first: &str) -> (String, u64, Option<String>) {
    (reason.to_owned(), count, Some(first.to_owned()))
}

#[test]
fn empty_prompts_can_be_left_out() {
    let conversations = open(TWO, 5, Like::Lmdeploy, false).expect("a valid file");
    assert_eq!(conversations.len(), 1);
    let short = "conversation of fewer than two turns";
    let empty = "conversation whose first turn is empty";
    assert_eq!(
        left_out(&conversations),
        [left(empty, 1, "conversation 2"), left(short, 2, "conversation 3")]
    );
    let kept = open(TWO, 5, Like::Lmdeploy, true).expect("a valid file");
    assert_eq!(left_out(&kept), [left(short, 2, "conversation 3")]);
    assert_eq!(kept.place(0), "the conversation at byte 42");
}

#[test]
fn a_file_cut_anywhere_is_called_incomplete() {
    let whole = TWO.trim_end();
    for end in 1..whole.len() {
        let message = complaint(&whole[..end], Like::Lmdeploy);
        assert!(message.contains("incomplete; download it again"), "cut at {end}: {message}");
        assert!(message.contains(&format!("byte {end}, line ")), "cut at {end}: {message}");
    }
    assert_eq!(
        complaint(&whole[..150], Like::Lmdeploy),
        "the file `data` ends inside conversation 1 (byte 150, line 5), where the rest of a string was expected: \
         the file is incomplete; download it again"
    );
    assert_eq!(
        complaint("", Like::Lmdeploy),
        "the file `data` is empty; expected a JSON array of conversations: download it again"
    );
}

#[test]
fn an_entry_without_turns_is_as_the_tools_have_it() {
    let text = r#"[{"id": "x"}, {"conversation": [{"value": "a"}, {"value": "b"}]}, {"conversations": [], "conversation": [{"value": "a"}, {"value": "b"}]}]"#;
    assert_eq!(
        complaint(text, Like::Lmdeploy),
        "the file `data` has an entry without the key `conversations` in conversation 1 (byte 1, line 1); expected \
         entries like {\"conversations\": [{\"from\": \"human\", \"value\": \"…\"}, {\"from\": \"gpt\", \"value\": \"…\"}]}: \
         use a file of the ShareGPT format"
    );
    assert_eq!(open(text, 9, Like::Vllm, true).expect("a valid file").len(), 0);
    let conversations = open(text, 9, Like::Sglang, true).expect("a valid file");
    assert_eq!(conversations.len(), 1);
    assert_eq!(conversations.read(0), Ok(Some(pair("a", "b"))));
    assert_eq!(
        left_out(&conversations),
        [
            left("entry without a conversation", 1, "conversation 1"),
            left("conversation of fewer than two turns", 1, "conversation 3")
        ]
    );
}

#[test]
fn a_file_of_another_shape_is_refused_with_its_place() {
    // `¶` is a line break.
    let cases = r#"
        {"id": 1}¶{"id": 2} => expected `[`, the beginning of an array of conversations, found `{`; convert a file with one conversation a line
        <!DOCTYPE html> => (byte 0, line 1): expected `[`, the beginning of an array of conversations, found `<`; look whether it is another file
        [¶{"conversations": [}] => in conversation 1 (byte 21, line 2): expected a value, found `}`
        [{"a": 1 "b": 2}] => expected `,` or `}`, found `"`: the file is damaged
        [{"a": tru}] => (byte 7, line 1): expected a value, found `t`
        [{"a": 1}, ] => in conversation 2 (byte 11, line 1): expected `{`, the beginning of a conversation, found `]`
        [] [] => (byte 3, line 1): expected nothing after the array of conversations, found `[`
        [¶¶7] => something else than an object in conversation 1 (byte 3, line 3)
        [{"conversations": null}] => something else than a list of turns in conversation 1 (byte 19, line 1)
        [{"conversations": ["a", "b"]}] => a turn that is not an object in conversation 1 (byte 20, line 1)
        [{"conversations": [{"from": "a"}, {}]}] => a turn without the key `value` in conversation 1 (byte 20, line 1)
        [{"conversations": [{"value": "a"}, {"value": 1}]}] => a turn whose `value` is not a string in conversation 1 (byte 36, line 1)
        [{"conversations":¶ [{"value": "a"},¶ {"value": "\x"}]}] => a turn that cannot be read: invalid escape (byte 50, line 3)
        [{"conversations": [{"value": "\ud800"}, {"value": "a"}]}] => a turn that cannot be read: unexpected end of hex escape
    "#;
    for case in cases.trim().lines() {
        let (text, expected) = case.trim().split_once(" => ").expect("a case");
        let text = &text.replace('¶', "\n");
        // vLLM reads entries without turns, so that these get as far as their mistakes.
        let message = complaint(text, Like::Vllm);
        assert!(message.contains(expected), "{text}\ngave: {message}\nnot:  {expected}");
    }
}

#[test]
fn values_nested_without_end_are_refused() {
    let deep = format!("[{{\"a\": {}", "[".repeat(100_000));
    assert!(complaint(&deep, Like::Lmdeploy).contains("nested more than 128 levels deep"));
}

#[test]
fn a_shuffle_is_that_of_python() {
    let entry =
        |number| format!(r#"{{"conversations": [{{"value": "{number}"}}, {{"value": "x"}}]}}"#);
    let text = format!("[{}]", (1..=5).map(entry).collect::<Vec<_>>().join(","));
    let mut conversations = open(&text, 100, Like::Lmdeploy, true).expect("a valid file");
    conversations.shuffle(&mut Python::new(42));
    let order: Vec<_> = (0..5)
        .map(|position| conversations.read(position).expect("readable").expect("there").prompt)
        .collect();
    // random.seed(42); x = [1, 2, 3, 4, 5]; random.shuffle(x)
    assert_eq!(order, ["4", "2", "3", "5", "1"]);
}

#[test]
fn a_file_that_the_scenario_does_not_name_is_absent() {
    let files = Crumbs { bytes: Vec::new(), size: 1 };
    assert!(matches!(Conversations::open(&files, "other", Like::Lmdeploy, true), Ok(None)));
}

#[test]
fn whole_conversations_are_read_from_pieces_of_any_size() {
    let text = r#"[{"conversations": [{"from": "human", "value": "a"}, {"value": "b"} , {"from": "x", "value": "c"}]},
        {"id": 1, "conversation": [{"value": "d"}, {"from": null, "value": "e"}]}, {"conversations": [{"value": "f"}]}]"#;
    for size in [1, 7, 1000] {
        let files = Crumbs { bytes: text.as_bytes().to_vec(), size };
        let whole =
            Conversations::open_whole(&files, "data").expect("a valid file").expect("a file");
        assert_eq!(whole.len(), 2);
        let read = |position| {
            let conversation = whole.read_whole(position).expect("readable");
            conversation.map(|turns| {
                let turns = turns.into_iter();
                turns.map(|turn| (turn.from.unwrap_or_default(), turn.value)).collect::<Vec<_>>()
            })
        };
        let pairs = |list: &[(&str, &str)]| {
            let owned = list.iter();
            let owned = owned.map(|(from, value)| ((*from).to_owned(), (*value).to_owned()));
            Some(owned.collect::<Vec<_>>())
        };
        assert_eq!(read(0), pairs(&[("human", "a"), ("", "b"), ("x", "c")]));
        assert_eq!(read(1), pairs(&[("", "d"), ("", "e")]));
        assert_eq!(read(2), None);
    }
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let file = "\u{feff}[{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}]}]";
    for size in [1, 2, 100] {
        let files = Crumbs { bytes: file.as_bytes().to_vec(), size };
        let read = Conversations::open(&files, "data", Like::Vllm, true)
            .expect("a file")
            .expect("it is named");
        assert_eq!(read.read(0).unwrap().unwrap().prompt, "a");
    }
}
