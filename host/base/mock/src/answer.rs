//! Answers of a mock engine: the number of tokens, the text, and the reason to stop.

use std::sync::LazyLock;

use super::ask::types::{Ask, Route};
use super::script::{AnswerText, Script};

model::names! {
    pub(super) enum Finish {
        /// It was complete.
        Stop = "stop",
        /// It reached the limit of tokens.
        Length = "length",
    }
}

/// An answer, before it is cut into events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// At least `tokens` bytes.
    text: String,
    pub tokens: u32,
    /// The number of its first tokens that are reasoning.
    pub reasoning: u32,
    pub finish: Finish,
}

impl Answer {
    /// The script's answer to a request; with `stop_early` it has at most that many tokens.
    pub fn new(script: &Script, ask: &Ask, stop_early: Option<u32>) -> Self {
        let wants_reasoning = if ask.route == Route::Chat { script.reasoning_tokens } else { 0 };
        let given = match &script.answer {
            AnswerText::Words => None,
            AnswerText::Echo => Some(ask.echo.as_str()),
            AnswerText::Text(text) => Some(text.as_str()),
        };
        let whole = given.map(|text| wants_reasoning.saturating_add(length(text)));
        let own_end = match (whole, script.stop_after) {
            (Some(whole), Some(stop)) => Some(whole.min(stop)),
            (whole, stop) => whole.or(stop),
        };
        let own_end = own_end.filter(|_| !ask.ignore_eos).map(|end| end.max(ask.min_tokens));
        let room = script.context_limit.get().saturating_sub(ask.prompt_tokens);
        let limit = ask.max_tokens.unwrap_or(room).min(room);
        let default_end = ask.max_tokens.is_none().then_some(script.output_tokens);
        let (mut tokens, mut finish) = match own_end.or(default_end) {
            Some(end) if end < limit => (end, Finish::Stop),
            _ => (limit, Finish::Length),
        };
        if let Some(early) = stop_early.filter(|early| *early < tokens) {
            (tokens, finish) = (early, Finish::Stop);
        }
        let reasoning = wants_reasoning.min(tokens);
        Answer { text: text(given, reasoning, tokens, ask.prompt_hash), tokens, reasoning, finish }
    }

    /// The text that tokens `from..to` add. A character belongs to the token that completes it, so
    /// a piece may be empty, as with engines whose tokens are bytes.
    pub fn piece(&self, from: u32, to: u32) -> &str {
        let at = |token: u32| self.text.floor_char_boundary(token as usize);
        &self.text[at(from)..at(to)]
    }

    pub fn ids(&self, from: u32, to: u32) -> &[u8] {
        &self.text.as_bytes()[from as usize..to as usize]
    }

    pub(crate) fn reasoning_text(&self) -> &str {
        self.piece(0, self.reasoning)
    }

    pub fn content(&self) -> &str {
        self.piece(self.reasoning, self.tokens)
    }
}

fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

/// Reasoning is words; then comes the given text, and more words if that is not enough.
fn text(given: Option<&str>, reasoning: u32, tokens: u32, seed: u64) -> String {
    let mut text = String::with_capacity(tokens as usize + 8);
    let given = given.unwrap_or_default();
    let mut source = words(seed);
    extend(&mut text, &mut source, reasoning as usize);
    text.push_str(given);
    extend(&mut text, &mut source, tokens as usize);
    text
}

/// Appends words until `text` has at least `bytes` bytes; the last one is cut.
fn extend(text: &mut String, words: &mut impl Iterator<Item = &'static str>, bytes: usize) {
    if text.len() >= bytes {
        return;
    }
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
        if text.len() >= bytes {
            break;
        }
    }
    text.truncate(bytes);
}

/// Words without end, ASCII, the same for the same seed.
fn words(seed: u64) -> impl Iterator<Item = &'static str> {
    const TEXT: &str = "a long time ago the river ran under old stone bridges and people came to measure how \
        fast it was some threw leaves from one side then counted until they saw them again \
        others only listened because water sounds different when there is more of every \
        winter morning";
    static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| TEXT.split(' ').collect());
    let mut state = seed;
    std::iter::from_fn(move || {
        state = model::random::mix(state);
        let place = state % WORDS.len() as u64;
        WORDS.get(usize::try_from(place).ok()?).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(route: Route, body: &str) -> Ask {
        Ask::read(route, body.as_bytes()).expect(body)
    }

    fn completion(script: &Script, more: &str) -> Answer {
        Answer::new(
            script,
            &ask(Route::Completions, &format!(r#"{{"prompt":"tell me"{more}}}"#)),
            None,
        )
    }

    #[test]
    fn words_fill_the_length_and_depend_on_the_prompt_alone() {
        let script = Script::default();
        let answer = completion(&script, r#","max_tokens":50"#);
        let expected = (50, Finish::Length, 50);
        assert_eq!((answer.tokens, answer.finish, answer.content().len()), expected);
        assert!(answer.content().is_ascii());
        assert_eq!(answer, completion(&script, r#","max_tokens":50"#));
        let other = Answer::new(
            &script,
            &ask(Route::Completions, r#"{"prompt":"x","max_tokens":50}"#),
            None,
        );
        assert_ne!(answer.content(), other.content());
        let unlimited = completion(&script, "");
        assert_eq!((unlimited.tokens, unlimited.finish), (128, Finish::Stop));
    }

    #[test]
    fn answers_end_by_themselves_unless_ignore_eos_is_set() {
        let script = Script { stop_after: Some(9), ..Script::default() };
        let short = completion(&script, r#","max_tokens":50"#);
        assert_eq!((short.tokens, short.finish), (9, Finish::Stop));
        let cut = completion(&script, r#","max_tokens":4"#);
        assert_eq!((cut.tokens, cut.finish), (4, Finish::Length));
        let forced = completion(&script, r#","max_tokens":50,"ignore_eos":true"#);
        assert_eq!((forced.tokens, forced.finish), (50, Finish::Length));
        let least = completion(&script, r#","max_tokens":50,"min_tokens":20"#);
        assert_eq!((least.tokens, least.finish), (20, Finish::Stop));
        let early = Answer::new(
            &script,
            &ask(Route::Completions, r#"{"prompt":"x","ignore_eos":true}"#),
            Some(3),
        );
        assert_eq!((early.tokens, early.finish), (3, Finish::Stop));
    }

    #[test]
    fn a_given_text_is_followed_by_words() {
        let script =
            Script { answer: AnswerText::Text("forty-two".to_owned()), ..Script::default() };
        let answer = completion(&script, r#","max_tokens":50"#);
        assert_eq!((answer.content(), answer.finish), ("forty-two", Finish::Stop));
        let forced = completion(&script, r#","max_tokens":20,"ignore_eos":true"#);
        assert!(forced.content().starts_with("forty-two "));
        assert_eq!(forced.content().len(), 20);
        let echo = Script { answer: AnswerText::Echo, ..Script::default() };
        assert_eq!(completion(&echo, "").content(), "tell me");
    }

    #[test]
    fn reasoning_comes_first_and_only_in_chats() {
        let script = Script {
            reasoning_tokens: 6,
            answer: AnswerText::Text("yes".to_owned()),
            ..Script::default()
        };
        let chat = r#"{"messages":[{"content":"well?"}],"max_tokens":50}"#;
        let answer = Answer::new(&script, &ask(Route::Chat, chat), None);
        assert_eq!((answer.tokens, answer.reasoning, answer.content()), (9, 6, "yes"));
        assert_eq!(answer.reasoning_text().len(), 6);
        assert_eq!(completion(&script, "").content(), "yes");
    }

    #[test]
    fn a_character_comes_with_its_last_byte() {
        let script = Script { answer: AnswerText::Text("né".to_owned()), ..Script::default() };
        let answer = completion(&script, "");
        assert_eq!(answer.tokens, 3);
        let pieces: Vec<&str> = (0..3).map(|token| answer.piece(token, token + 1)).collect();
        assert_eq!(pieces, ["n", "", "é"]);
        assert_eq!(answer.ids(1, 3), "é".as_bytes());
    }

    #[test]
    fn the_context_bounds_an_answer_without_a_limit() {
        let script = Script { context_limit: 20.try_into().unwrap(), ..Script::default() };
        let answer = completion(&script, "");
        assert_eq!((answer.tokens, answer.finish), (13, Finish::Length));
    }
}
