//! Answers that are made up, where none is on record: of about as many tokens as are asked for.

use crate::sessions::history::text_message;
use plugins::backend::{Message, Role};
use tokenizer::Tokenizer;

/// The words that made-up answers are made of: most tokenizers have a token for each.
const WORDS: &str =
    "the time of the day was long and the people said that it would be a good year for all of us ";
/// The longest that is made up, in tokens.
const LONGEST: usize = 1 << 20;

pub(super) struct MadeUp {
    words: Vec<u32>,
    /// The last one, by its tokens: mostly they are all as long.
    last: Option<(usize, String)>,
}

impl MadeUp {
    pub(super) fn new(tokenizer: &Tokenizer) -> Self {
        let words = tokenizer.encode(&[WORDS.to_owned()], false);
        MadeUp { words: words.unwrap_or_default().pop().unwrap_or_default(), last: None }
    }

    /// An answer of about this many tokens; empty if no number is requested.
    pub(super) fn answer(&mut self, tokenizer: &Tokenizer, tokens: Option<u32>) -> Message {
        let wanted = tokens.map_or(0, |tokens| (tokens as usize).min(LONGEST));
        let text = match &self.last {
            Some((tokens, text)) if *tokens == wanted => text.clone(),
            _ => {
                let ids: Vec<u32> = self.words.iter().copied().cycle().take(wanted).collect();
                let decoded = tokenizer.decode(&[ids]).ok();
                let text = decoded.and_then(|mut texts| texts.pop());
                let text = text.unwrap_or_default();
                self.last = Some((wanted, text.clone()));
                text
            }
        };
        text_message(Role::Assistant, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugins::backend::Part;

    #[test]
    fn answers_have_the_requested_length() {
        let tokenizer = Tokenizer::bytes();
        let mut made_up = MadeUp::new(&tokenizer);
        for tokens in [Some(300), Some(300), Some(1), Some(0), None] {
            let answer = made_up.answer(&tokenizer, tokens);
            let [Part::Text(text)] = answer.parts.as_slice() else { panic!("one text") };
            assert_eq!(text.len(), tokens.unwrap_or(0) as usize);
        }
    }
}
