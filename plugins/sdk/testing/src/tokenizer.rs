//! Tokenizers for a plugin under test: small enough to be written down, but with the features that
//! make real tokenizers difficult.

use runner_plugin::{Facts, Tokenizer};

/// The tokenizer that the host provides if none is configured: a byte is a token, and ids that are
/// not printable ASCII are special.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandIn;

impl Tokenizer for StandIn {
    fn describe(&self) -> Facts {
        Facts {
            vocabulary_size: 256,
            base_size: 256,
            added_tokens: 0,
            special: (0..256).filter(|id| !(32..127).contains(id)).collect(),
            approximate: true,
            chat: false,
        }
    }

    fn encode(&self, texts: &[String], _special: bool) -> Vec<Vec<u32>> {
        texts.iter().map(|text| text.bytes().map(u32::from).collect()).collect()
    }

    fn count(&self, texts: &[String], _special: bool) -> Vec<u32> {
        texts.iter().map(|text| text.len() as u32).collect()
    }

    fn decode(&self, tokens: &[Vec<u32>]) -> Vec<String> {
        let text = |ids: &Vec<u32>| {
            let bytes: Vec<u8> = ids.iter().filter_map(|id| u8::try_from(*id).ok()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        tokens.iter().map(text).collect()
    }
}

/// A tokenizer of printable ASCII that takes two characters at a time if it can. As with real
/// tokenizers, a text made from ids may tokenize to a different number of tokens.
///
/// | ids | text |
/// | --- | --- |
/// | 0–94 | one character, from the space on; 7 is special and reads `<seven>` |
/// | 95–8999 | two characters: 95 + 95 · first + second |
/// | 9000–9119 | three times one character; never the result of encoding |
/// | 9120 | `<s>`, which precedes every text; special, and added on top of the rest |
/// | 9121 | `</s>`; special, and added on top of the rest |
///
/// Any other character is read as `?`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pairs;

impl Pairs {
    const SINGLE: u32 = 95;
    const TRIPLE: u32 = 9000;
    const START: u32 = 9120;
    const END: u32 = 9121;

    fn letter(index: u32) -> char {
        char::from(b' ' + (index % Self::SINGLE) as u8)
    }

    fn text(id: u32) -> String {
        match id {
            7 => "<seven>".to_owned(),
            0..Self::SINGLE => Self::letter(id).to_string(),
            Self::SINGLE..Self::TRIPLE => {
                let pair = id - Self::SINGLE;
                [Self::letter(pair / Self::SINGLE), Self::letter(pair)].iter().collect()
            }
            Self::TRIPLE..Self::START => Self::letter(id).to_string().repeat(3),
            Self::START => "<s>".to_owned(),
            Self::END => "</s>".to_owned(),
            _ => String::new(),
        }
    }

    fn ids(text: &str, special: bool) -> Vec<u32> {
        let letters: Vec<u32> = text
            .chars()
            .map(|letter| if (' '..='~').contains(&letter) { letter } else { '?' })
            .map(|letter| u32::from(letter) - u32::from(' '))
            .collect();
        let mut ids = if special { vec![Self::START] } else { Vec::new() };
        let mut at = 0;
        while let Some(first) = letters.get(at) {
            let pair =
                letters.get(at + 1).map(|second| Self::SINGLE + Self::SINGLE * first + second);
            match pair {
                Some(pair) if pair < Self::TRIPLE => {
                    ids.push(pair);
                    at += 2;
                }
                _ => {
                    ids.push(*first);
                    at += 1;
                }
            }
        }
        ids
    }
}

impl Tokenizer for Pairs {
    fn describe(&self) -> Facts {
        Facts {
            vocabulary_size: Self::END + 1,
            base_size: Self::START,
            added_tokens: 1,
            special: vec![7, Self::START, Self::END],
            approximate: false,
            chat: false,
        }
    }

    fn encode(&self, texts: &[String], special: bool) -> Vec<Vec<u32>> {
        texts.iter().map(|text| Self::ids(text, special)).collect()
    }

    fn count(&self, texts: &[String], special: bool) -> Vec<u32> {
        texts.iter().map(|text| Self::ids(text, special).len() as u32).collect()
    }

    fn decode(&self, tokens: &[Vec<u32>]) -> Vec<String> {
        tokens.iter().map(|ids| ids.iter().map(|id| Self::text(*id)).collect()).collect()
    }
}
