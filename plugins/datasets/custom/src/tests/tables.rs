//! Tables whose format is guessed, and text that looks like one.

use runner_plugin_testing::files::Named;

use super::{all, mistake, open, text};

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
