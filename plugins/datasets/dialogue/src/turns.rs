//! From messages to turns. A turn is one request: the messages up to a message that a model
//! answers, and the recorded answer.

use runner_plugin::{Message, Role};
use serde_json::{Map, Value};

/// A turn: messages that are sent at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// The messages since the previous answer; the model answers the last message.
    pub messages: Vec<Message>,
    pub answer: Option<Message>,
    /// Time between the end of the answer before and its due time, in nanoseconds.
    pub delay: u64,
    /// Output tokens to request, if the record says.
    pub output_tokens: Option<u32>,
    /// Fields of its request alone.
    pub parameters: Map<String, Value>,
    /// The value with which a scorer compares the answer.
    pub reference: Option<String>,
}

/// Splits messages into turns at each assistant's message after a user's or a tool's.
#[derive(Debug, Default)]
pub struct Splitter {
    turns: Vec<Turn>,
    next: Turn,
}

impl Splitter {
    /// Adds a message. An assistant's message answers the turn, if it has a question; otherwise it
    /// comes beforehand, such as a greeting.
    pub fn push(&mut self, message: Message) {
        if message.role != Role::Assistant {
            self.next.messages.push(message);
        } else if self.asks() {
            let mut turn = std::mem::take(&mut self.next);
            turn.answer = Some(message);
            self.turns.push(turn);
        } else if self.next.messages.is_empty()
            && let Some(last) = self.turns.last_mut()
            && last.answer.is_none()
        {
            last.answer = Some(message);
        } else {
            self.next.messages.push(message);
        }
    }

    /// The open turn is due at least this long after the previous answer, in nanoseconds. The
    /// longest counts, since the results of tools that run side by side are sent together.
    pub fn wait(&mut self, delay: u64) {
        self.next.delay = self.next.delay.max(delay);
    }

    /// Ends the turn, if it has a question, although no answer is recorded.
    pub fn ask(&mut self) {
        if self.asks() {
            self.turns.push(std::mem::take(&mut self.next));
        }
    }

    /// Requests this many output tokens for the last turn.
    pub fn limit(&mut self, output_tokens: Option<u32>) {
        if let Some(last) = self.turns.last_mut() {
            last.output_tokens = output_tokens.or(last.output_tokens);
        }
    }

    /// Sends these fields with the open turn.
    pub fn set(&mut self, parameters: Map<String, Value>) {
        self.next.parameters.extend(parameters);
    }

    /// Judges the answer of the last turn by this value.
    pub fn refer(&mut self, reference: String) {
        if let Some(last) = self.turns.last_mut().filter(|last| last.answer.is_some()) {
            last.reference.get_or_insert(reference);
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// All turns. Messages after the last answer make a turn only if they ask something.
    #[must_use]
    pub fn finish(mut self) -> Vec<Turn> {
        self.ask();
        self.turns
    }

    fn asks(&self) -> bool {
        let last = self.next.messages.last();
        last.is_some_and(|last| matches!(last.role, Role::User | Role::Tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(letters: &str) -> String {
        let mut splitter = Splitter::default();
        for letter in letters.chars() {
            let role = match letter {
                's' => Role::System,
                'u' => Role::User,
                't' => Role::Tool,
                'a' => Role::Assistant,
                _ => {
                    splitter.ask();
                    continue;
                }
            };
            splitter.push(Message::text(role, letter));
        }
        let turns = splitter.finish();
        let shown = turns.iter().map(|turn| {
            let question: String = turn.messages.iter().map(letter).collect();
            let answered = turn.answer.iter().map(letter).collect::<String>();
            format!("{question}>{answered}")
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    fn letter(message: &Message) -> char {
        match message.role {
            Role::System | Role::Developer => 's',
            Role::User => 'u',
            Role::Assistant => 'a',
            Role::Tool => 't',
        }
    }

    #[test]
    fn a_turn_ends_where_the_assistant_answers() {
        for (letters, turns) in [
            ("sua", "su>a"),
            ("uaua", "u>a u>a"),
            ("uuattau", "uu>a tt>a u>"),
            ("aua", "au>a"),
            ("uaaua", "u>a au>a"),
            ("uas", "u>a"),
            ("u|u|", "u> u>"),
            ("u|a|u|a", "u>a u>a"),
            ("a", ""),
            ("", ""),
        ] {
            assert_eq!(split(letters), turns, "{letters}");
        }
    }

    #[test]
    fn the_longest_wait_of_a_turn_counts() {
        let mut splitter = Splitter::default();
        for (role, delay) in
            [(Role::User, 5), (Role::Assistant, 0), (Role::Tool, 7), (Role::Tool, 3)]
        {
            if delay > 0 {
                splitter.wait(delay);
            }
            splitter.push(Message::text(role, "x"));
        }
        splitter.ask();
        splitter.limit(Some(9));
        splitter.limit(None);
        let turns = splitter.finish();
        let shown: Vec<_> = turns.iter().map(|turn| (turn.delay, turn.output_tokens)).collect();
        assert_eq!(shown, [(5, None), (7, Some(9))]);
    }
}
