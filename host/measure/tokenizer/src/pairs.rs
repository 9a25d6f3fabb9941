//! A tokenizer for tests of datasets, small but with the troublesome habits of real tokenizers. It
//! reads printable ASCII, two characters at a time if possible. So a text made of ids has another
//! number of tokens when it is read again.
//!
//! | ids | text |
//! | --- | --- |
//! | 0–94 | one character, from the space on; 7 is special and reads `<seven>` |
//! | 95–8999 | two characters: 95 + 95 · first + second |
//! | 9000–9119 | a character three times; never the result of encoding |
//! | 9120 | `<s>`, which stands before every text; special, and added on top of the rest |
//! | 9121 | `</s>`; special, and added on top of the rest |
//!
//! Characters other than printable ASCII are read as `?`.

use super::Facts;

const SINGLE: u32 = 95;
const TRIPLE: u32 = 9000;
const START: u32 = 9120;
const END: u32 = 9121;
const SEVEN: u32 = 7;

pub fn facts() -> Facts {
    Facts {
        vocabulary_size: END + 1,
        base_size: START,
        added_tokens: 1,
        special: vec![SEVEN, START, END],
        approximate: false,
    }
}

pub fn encode(text: &str, special: bool) -> Vec<u32> {
    let letter = |letter: char| match letter {
        ' '..='~' => u32::from(letter) - u32::from(' '),
        _ => u32::from('?') - u32::from(' '),
    };
    let letters: Vec<u32> = text.chars().map(letter).collect();
    let mut ids = if special { vec![START] } else { Vec::new() };
    let mut at = 0;
    while let Some(first) = letters.get(at) {
        let pair = letters
            .get(at + 1)
            .map(|second| SINGLE + SINGLE * first + second)
            .filter(|pair| *pair < TRIPLE);
        ids.push(pair.unwrap_or(*first));
        at += if pair.is_some() { 2 } else { 1 };
    }
    ids
}

pub fn decode(ids: &[u32]) -> String {
    ids.iter().map(|id| text(*id)).collect()
}

fn text(id: u32) -> String {
    match id {
        SEVEN => "<seven>".to_owned(),
        0..SINGLE => letter(id).to_string(),
        SINGLE..TRIPLE => {
            let pair = id - SINGLE;
            [letter(pair / SINGLE), letter(pair)].iter().collect()
        }
        TRIPLE..START => letter(id).to_string().repeat(3),
        START => "<s>".to_owned(),
        END => "</s>".to_owned(),
        _ => String::new(),
    }
}

fn letter(index: u32) -> char {
    char::from(b' ' + (index % SINGLE) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_characters_are_a_token_and_special_ids_have_their_own_text() {
        let ids = encode("abc", true);
        assert_eq!(ids, [START, SINGLE + SINGLE * 65 + 66, 67]);
        assert_eq!(decode(&ids), "<s>abc");
        assert_eq!(decode(&[SEVEN, 9_025 + 33, END, 99_999]), "<seven>AAA</s>");
    }

    #[test]
    fn a_text_made_of_ids_may_have_fewer_tokens_when_read_again() {
        let ids = [TRIPLE, TRIPLE];
        assert_eq!(encode(&decode(&ids), false).len(), 3);
        assert_eq!(encode("é", false), encode("?", false));
    }
}
