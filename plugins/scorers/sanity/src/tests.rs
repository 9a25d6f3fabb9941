use goldens::open;
use serde_json::json;

use super::{Sanity, checks};

#[test]
fn repeated_words_are_the_share_of_repeated_4_grams() {
    let words: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(checks::repetition(&words.join(" ")), 0.0);
    // 100 words have 97 4-grams; the second half repeats 47, and the seam is new.
    let twice = [words.join(" "), words.join(" ")].join(" ");
    assert_eq!(checks::repetition(&twice), 1.0 - 50.0 / 97.0);
    assert_eq!(checks::repetition(&"a ".repeat(49)), 0.0);
    assert_eq!(checks::repetition(&"a ".repeat(50)), 1.0 - 1.0 / 47.0);
}

#[test]
fn loops_are_found_at_the_end() {
    for text in [
        "So it goes. ".repeat(9),
        format!("Well: {}", "好的，".repeat(30)),
        format!("x{}a", "ab, ".repeat(40)),
        "a".repeat(300),
    ] {
        assert!(checks::ends_in_a_loop(&text), "{text}");
    }
    for text in [
        "So it goes. ".repeat(5),
        format!("{}The end.", "So it goes. ".repeat(40)),
        format!("Title\n{}", "-".repeat(80)),
        "One sentence after another, none of them twice, goes on for more than sixty-four characters.".to_owned(),
    ] {
        assert!(!checks::ends_in_a_loop(&text), "{text}");
    }
}

#[test]
fn special_tokens_of_templates_are_leaks() {
    for text in
        ["4<|im_end|>", "<|start_header_id|>", "ok</s>", "<｜end▁of▁sentence｜>", "[/INST] x"]
    {
        assert!(checks::leaks_tokens(text), "{text}");
    }
    for text in ["a <| b |> c <- f", "if x<|y", "<s>struck</s", "<||>", "<div>"] {
        assert!(!checks::leaks_tokens(text), "{text}");
    }
}

#[test]
fn scripts_that_go_together_are_no_mix() {
    for text in
        ["5 μm and π", "5 μm and 東京 Tower Ω", "東京はTokyoです", "Привет, world", "", "123"]
    {
        assert!(!checks::mixes_scripts(text), "{text}");
    }
    for text in [
        "pаypal with а Cyrillic а: p\u{430}ypal",
        "hello 你好 привет",
        "one العربية 한국어",
        "one αβγδ 한국어",
    ] {
        assert!(checks::mixes_scripts(text), "{text}");
    }
}

#[test]
fn broken_characters() {
    for text in ["a\u{fffd}", "a\0", "\u{1b}[0m", "\u{ffff}", "\u{fdd0}"] {
        assert!(checks::has_broken_characters(text), "{text:?}");
    }
    assert!(!checks::has_broken_characters("a\tb\r\nc\u{85}é😀"));
}

#[test]
fn mistakes_in_the_configuration_come_together() {
    let config = json!({"repetition": 2.0, "special-tokens": [""]});
    let error = format!("{:?}", open::<Sanity>(&config).err().unwrap());
    assert!(error.contains("`repetition`") && error.contains("`special-tokens`"), "{error}");
}
