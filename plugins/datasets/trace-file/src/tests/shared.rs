//! Equal blocks have equal tokens everywhere, with tokenizers that merge wherever they can.

use runner_plugin::{Dataset, Facts, Prompt, Sample, Tokenizer};
use runner_plugin_testing::tokenizer::{Pairs, StandIn};

use super::{TRACES, open_with, rest, text, trace};
use crate::config::Form;
use crate::words::Words;

/// Words of a space and two letters; many pairs of them have a token. Ids: special 0, letters,
/// words, pairs. With `bare`, a space is put before every text, and left out at its beginning.
#[derive(Clone, Copy)]
struct Merging {
    /// One pair in this many has a token; none at 0.
    merged: u32,
    bare: bool,
}

impl Merging {
    const LETTERS: u32 = 27;
    const WORDS: u32 = Self::LETTERS + 26 * 26;

    fn word(id: u32) -> String {
        let index = id - Self::LETTERS;
        let letter = |index: u32| char::from(b'a' + (index % 26) as u8);
        [' ', letter(index / 26), letter(index)].iter().collect()
    }

    fn pair(self, first: u32, second: u32) -> Option<u32> {
        let (first, second) = (first - Self::LETTERS, second - Self::LETTERS);
        let merges = self.merged > 0 && (first * 31 + second * 17) % self.merged == 0;
        merges.then_some(Self::WORDS + first * 676 + second)
    }

    fn ids(self, text: &str) -> Vec<u32> {
        let text = if self.bare { format!(" {text}") } else { text.to_owned() };
        let bytes = text.as_bytes();
        let (mut ids, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let word = |at: usize| match bytes.get(at..at + 3) {
                Some([b' ', first @ b'a'..=b'z', second @ b'a'..=b'z']) => {
                    Some(Self::LETTERS + u32::from(first - b'a') * 26 + u32::from(second - b'a'))
                }
                _ => None,
            };
            let pair =
                word(at).zip(word(at + 3)).and_then(|(first, second)| self.pair(first, second));
            if let Some(pair) = pair {
                ids.push(pair);
                at += 6;
            } else if let Some(word) = word(at) {
                ids.push(word);
                at += 3;
            } else {
                ids.push(u32::from(bytes[at].clamp(b'`', b'z') - b'`').max(1));
                at += 1;
            }
        }
        ids
    }
}

impl Tokenizer for Merging {
    fn describe(&self) -> Facts {
        Facts {
            vocabulary_size: Self::WORDS,
            base_size: Self::WORDS,
            added_tokens: 0,
            special: vec![0],
            approximate: false,
            chat: false,
        }
    }

    fn encode(&self, texts: &[String], _: bool) -> Vec<Vec<u32>> {
        texts.iter().map(|text| self.ids(text)).collect()
    }

    fn count(&self, texts: &[String], special: bool) -> Vec<u32> {
        let encoded = self.encode(texts, special);
        encoded.iter().map(|ids| ids.len() as u32).collect()
    }

    fn decode(&self, tokens: &[Vec<u32>]) -> Vec<String> {
        let text = |ids: &Vec<u32>| {
            let text: String = ids
                .iter()
                .map(|id| match id {
                    0 => String::new(),
                    1..Self::LETTERS => char::from(b'`' + *id as u8).to_string(),
                    _ => Self::word(*id),
                })
                .collect();
            match text.strip_prefix(' ') {
                Some(rest) if self.bare => rest.to_owned(),
                _ => text,
            }
        };
        tokens.iter().map(text).collect()
    }
}

const PLAIN: Merging = Merging { merged: 0, bare: false };

fn samples(config: &str, trace: &str, tokenizer: impl Tokenizer + 'static) -> Vec<Sample> {
    let mut dataset = open_with(config, trace, 7, tokenizer)
        .unwrap_or_else(|error| panic!("{config}: {error:?}"));
    rest(&mut dataset, 5)
}

/// Every format with a tokenizer: the text of a prompt tokenizes to the sent token ids.
fn joins_hold(tokenizer: impl Tokenizer + Copy + 'static) {
    for (name, trace, config) in TRACES {
        if name == "mooncake-sessions" {
            continue;
        }
        let tokens = config.replacen('{', r#"{"as": "tokens", "#, 1).replace(", }", "}");
        let as_text = samples(config, trace, tokenizer);
        let as_tokens = samples(&tokens, trace, tokenizer);
        assert_eq!(as_text.len(), as_tokens.len());
        for (sample, same) in as_text.iter().zip(as_tokens) {
            let Prompt::Tokens(ids) = &same.prompt else {
                panic!("{:?}", same.prompt);
            };
            let texts = [text(sample).to_owned()];
            assert_eq!(tokenizer.encode(&texts, false)[0], *ids, "{name}: {}", sample.id);
            assert_eq!(sample.input_tokens, Some(tokenizer.count(&texts, true)[0]));
            assert_eq!(same.input_tokens, Some(ids.len() as u32));
        }
    }
}

#[test]
fn joins_do_not_merge_tokens() {
    joins_hold(Pairs);
    for bare in [false, true] {
        for merged in [0, 7, 500] {
            joins_hold(Merging { merged, bare });
        }
    }
}

#[test]
fn blocks_are_shared_to_the_token() {
    let config = r#"{"as": "tokens", "block-size": 4}"#;
    let prompts: Vec<Vec<u32>> = samples(config, trace("mooncake"), PLAIN)
        .into_iter()
        .map(|sample| match sample.prompt {
            Prompt::Tokens(ids) => ids,
            other => panic!("{other:?}"),
        })
        .collect();
    let [first, second, third, fourth] = &prompts[..] else {
        panic!("four prompts");
    };
    assert_eq!(first[..8], second[..8]);
    assert_eq!(first[4..7], third[4..7], "wherever it stands");
    assert_eq!(second[..], fourth[..12]);
    assert_ne!(first[8..10], second[8..10], "another block");
    assert_ne!(first[..4], first[4..8]);
}

#[test]
fn a_block_depends_on_the_seed_and_its_size() {
    let row = "{\"input_length\": 8, \"hash_ids\": [5, 6]}\n";
    let block = |config: &str, row: &str, seed: u64| {
        let mut dataset = open_with(config, row, seed, StandIn).unwrap();
        text(&rest(&mut dataset, 1)[0]).to_owned()
    };
    let config = r#"{"block-size": 4}"#;
    assert_eq!(block(config, row, 1), block(config, row, 1));
    assert_ne!(block(config, row, 1), block(config, row, 2));
    let large = "{\"input_length\": 8, \"hash_ids\": [5]}\n";
    assert_ne!(block(config, row, 1)[..4], block(r#"{"block-size": 8}"#, large, 1)[..4]);
    // These stay as they are from version to version: results of the same seed are compared.
    assert_eq!(block(config, row, 1), "L4GUnkgf");
}

#[test]
fn words_that_merge_are_left_out_and_few_are_enough() {
    let size = |merged: u32| {
        let words = Words::new(&Merging { merged, bare: false }, Form::Text).unwrap();
        let found: std::collections::BTreeSet<usize> =
            (0..40_000_u64).map(|draw| words.pick(crate::content::mixed(draw))).collect();
        found.len()
    };
    assert_eq!(size(0), 675, "all but the mark of spare prompts");
    assert!((16..=128).contains(&size(7)), "{}", size(7));
    // Letters stay apart where every pair of words merges.
    assert!(size(1) >= 15, "{}", size(1));
}

#[test]
fn spare_prompts_are_never_measured() {
    for (name, trace, config) in TRACES {
        let mut dataset = open_with(config, trace, 7, Pairs).unwrap();
        let spares = dataset.spare(40).unwrap();
        assert_eq!(spares.len(), 40, "{name}");
        let measured = rest(&mut dataset, 7);
        for spare in &spares {
            let first = &text(spare)[..2];
            assert!(
                measured
                    .iter()
                    .filter(|sample| sample.input_tokens.is_some())
                    .all(|sample| text(sample) != text(spare)),
                "{name}"
            );
            assert_eq!(first, &text(&spares[0])[..2], "all begin with the mark");
            let texts = [text(spare).to_owned()];
            assert_eq!(Some(Pairs.count(&texts, true)[0]), spare.input_tokens);
        }
        // They have the lengths of the trace.
        assert!(spares.iter().all(|spare| spare.output_tokens.is_some()), "{name}");
    }
    // A recorded prompt that was used is left out.
    let row = "{\"text_input\": \"a\"}\n{\"text_input\": \"b\"}\n";
    let mut dataset = open_with("{}", row, 7, StandIn).unwrap();
    let spare = text(&dataset.spare(1).unwrap()[0]).to_owned();
    let rows = format!("{row}{{\"text_input\": \"{spare}\"}}\n");
    let mut dataset = open_with("{}", &rows, 7, StandIn).unwrap();
    assert_eq!(text(&dataset.spare(1).unwrap()[0]), spare);
    assert_eq!(rest(&mut dataset, 9).len(), 2);
    // And the next row of its session.
    let rows = format!(
        "{{\"session_id\": \"s\", \"text_input\": \"{spare}\", \"context_mode\": \"message_array_with_responses\"}}\n\
         {{\"session_id\": \"s\", \"text_input\": \"c\", \"context_mode\": \"message_array_with_responses\"}}\n{row}"
    );
    let mut dataset = open_with("{}", &rows, 7, StandIn).unwrap();
    assert_eq!(text(&dataset.spare(1).unwrap()[0]), spare);
    assert_eq!(super::ids(&rest(&mut dataset, 9)), ["line-3", "line-4"]);
}
