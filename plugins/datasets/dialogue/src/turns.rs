//! From messages to turns. A turn is one request: the messages up to a message that a model
//! answers, and the recorded answer.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use crate::words::{TextRequest, Writer, generator};
use runner_plugin::lengths::{Choice, Distribution, Lengths, Stream};
use runner_plugin::{Error, Message, Role, Tokenizer};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
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

    pub fn len(&self) -> usize {
        self.turns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// All turns. Messages after the last answer make a turn only if they ask something.
    pub fn finish(mut self) -> Vec<Turn> {
        self.ask();
        self.turns
    }

    fn asks(&self) -> bool {
        let last = self.next.messages.last();
        last.is_some_and(|last| matches!(last.role, Role::User | Role::Tool))
    }
}

/// The most system prompts that are kept for later sessions, and the most bytes of them.
const KEPT: usize = 64;

const KEPT_BYTES: usize = 16 << 20;

/// Changes the seed, since a system prompt belongs to no session.
const APART: u64 = 0x5e55_1045;

/// A system prompt of the key `system-prompts`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SystemPrompt {
    /// Its tokens; 0 for conversations without one.
    pub tokens: u32,
    /// Frequency, in proportion to the weights of the others.
    pub weight: f64,
}

enum Kind {
    /// That many prompts, in turn; 0 for one each.
    InTurn(Lengths, u64),
    /// One of these lengths.
    Listed(Choice, Vec<u32>),
}

/// Writes system prompts. Each is a function of the seed and its group's number alone.
pub struct Systems {
    seed: u64,
    kind: Kind,
    /// By their group, the latest last.
    kept: Vec<(u64, String)>,
}

impl Systems {
    /// The prompts by the keys `system-len` and `system-groups`, if there are any. Session N has
    /// the system prompt N modulo `groups`; with 0, each session has its own.
    pub fn new(
        seed: u64,
        given: Option<&Distribution>,
        groups: Option<u32>,
    ) -> Result<Option<Self>, Error> {
        let Some(given) = given else { return Ok(None) };
        let lengths = lengths("system-len", Some(given), 1)?;
        let kind = Kind::InTurn(lengths, groups.unwrap_or(1).into());
        Ok(Some(Self { seed: seed ^ APART, kind, kept: Vec::new() }))
    }

    /// The prompts of the key `system-prompts`.
    pub fn listed(seed: u64, given: &[SystemPrompt]) -> Result<Self, Error> {
        let choice = Choice::weighted("system-prompts", given.iter().map(|given| given.weight))?;
        let tokens = given.iter().map(|given| given.tokens).collect();
        Ok(Self { seed: seed ^ APART, kind: Kind::Listed(choice, tokens), kept: Vec::new() })
    }

    /// The system prompt of a session; empty if it has none.
    pub fn prompt(
        &mut self,
        session: u64,
        writer: &Writer,
        tokenizer: &dyn Tokenizer,
    ) -> Result<String, Error> {
        let group = match &self.kind {
            Kind::InTurn(_, groups) => session.checked_rem(*groups).unwrap_or(session),
            Kind::Listed(choice, _) => choice.draw(&mut generator(self.seed, session, 2)) as u64,
        };
        if let Some((_, known)) = self.kept.iter().find(|(of, _)| *of == group) {
            return Ok(known.clone());
        }
        let wanted = TextRequest {
            tokens: match &self.kind {
                Kind::InTurn(lengths, _) => lengths.draw(&mut generator(self.seed, group, 0)),
                Kind::Listed(_, tokens) => tokens[group as usize],
            },
            random: generator(self.seed, group, 1),
        };
        let written = writer.write(tokenizer, &[wanted])?;
        let text = written.into_iter().next().unwrap_or_default().0;
        let bytes = |kept: &[(u64, String)]| kept.iter().map(|(_, text)| text.len()).sum::<usize>();
        while !self.kept.is_empty()
            && (self.kept.len() >= KEPT || bytes(&self.kept) + text.len() > KEPT_BYTES)
        {
            self.kept.remove(0);
        }
        self.kept.push((group, text.clone()));
        Ok(text)
    }
}

/// A word, or a distribution from which numbers are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting<W> {
    Word(W),
    Drawn(Distribution),
}

impl<'de, W: DeserializeOwned> Deserialize<'de> for Setting<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<W>(PhantomData<W>);

        impl<'de, W: DeserializeOwned> Visitor<'de> for Either<W> {
            type Value = Setting<W>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "a word, a number, or a table like { distribution = \"uniform\", min = 100, max = 200 }",
                )
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Setting<W>, E> {
                W::deserialize(StrDeserializer::new(word)).map(Setting::Word)
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Setting<W>, E> {
                Ok(Setting::Drawn(Distribution::constant(value as f64)))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Setting<W>, E> {
                Ok(Setting::Drawn(Distribution::constant(value as f64)))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Setting<W>, E> {
                Ok(Setting::Drawn(Distribution::constant(value)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Setting<W>, A::Error> {
                Distribution::deserialize(MapAccessDeserializer::new(map)).map(Setting::Drawn)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<W: JsonSchema> JsonSchema for Setting<W> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrDistribution", W::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "anyOf": [generator.subschema_for::<W>(), generator.subschema_for::<Distribution>()],
        })
    }
}

pub fn lengths(key: &str, given: Option<&Distribution>, default: u32) -> Result<Lengths, Error> {
    match given {
        Some(distribution) => distribution.lengths(key, 1..=crate::LONGEST),
        None => Ok(Lengths::constant(default)),
    }
}

/// A number of seconds drawn from a distribution, as nanoseconds: at least 0, and at most
/// [`LONGEST_WAIT`](crate::LONGEST_WAIT).
pub fn wait(distribution: &Distribution, random: &mut impl Stream) -> u64 {
    let seconds = distribution.draw(random).clamp(0.0, crate::LONGEST_WAIT);
    (seconds * 1e9).round() as u64
}

/// Checks that a distribution of seconds has no impossible number.
pub fn check_wait(key: &str, distribution: &Distribution) -> Result<(), Error> {
    for p in [0.0, 0.5] {
        let seconds = distribution.quantile(p);
        // The tail of a normal distribution may reach below zero; half of it may not.
        if !seconds.is_finite()
            || (p > 0.0 || distribution.as_constant().is_some()) && seconds < 0.0
        {
            return Err(Error::InvalidConfig(format!(
                "`{key}` gives {seconds} seconds; expected 0 or more"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use runner_plugin_testing::files::Named;
    use runner_plugin_testing::tokenizer::Pairs;

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

    #[test]
    fn listed_prompts_come_by_weight() {
        let writer = Writer::open(&Named::default()).expect("a writer");
        let listed = [(40, 6.0), (0, 3.0), (17, 1.0)];
        let listed = listed.map(|(tokens, weight)| SystemPrompt { tokens, weight });
        let mut systems = Systems::listed(7, &listed).expect("systems");
        let mut counts = std::collections::BTreeMap::new();
        for session in 0..1000 {
            let prompt = systems.prompt(session, &writer, &Pairs).expect("a prompt");
            *counts.entry(prompt.len()).or_insert(0) += 1;
        }
        let [none, short, long] = counts.into_values().collect::<Vec<u64>>()[..] else {
            panic!("other than three prompts")
        };
        assert!((250..350).contains(&none) && (70..130).contains(&short), "{none}, {short}");
        assert!((550..650).contains(&long), "{long}");
    }

    #[test]
    fn sessions_of_a_group_share_a_prompt() {
        let writer = Writer::open(&Named::default()).expect("a writer");
        for (groups, expected) in [(1, 1), (3, 3), (100, 100), (0, 200)] {
            let systems = Systems::new(7, Some(&Distribution::constant(20.0)), Some(groups));
            let mut systems = systems.expect("lengths").expect("systems");
            let mut prompt = |session| systems.prompt(session, &writer, &Pairs).expect("a prompt");
            let all: Vec<String> = (0..200).map(&mut prompt).collect();
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), expected);
            // However many came between.
            assert_eq!(prompt(0), all[0]);
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Word {
        Recorded,
        Run,
    }

    #[derive(Debug, Deserialize)]
    struct Config {
        length: Setting<Word>,
    }

    fn read(json: &str) -> Result<Setting<Word>, Error> {
        runner_plugin::parse::<Config>(json).map(|config| config.length)
    }

    #[test]
    fn a_key_takes_a_word_a_number_or_a_table() {
        assert_eq!(read(r#"{"length": "recorded"}"#), Ok(Setting::Word(Word::Recorded)));
        assert_eq!(read(r#"{"length": "run"}"#), Ok(Setting::Word(Word::Run)));
        for json in [
            r#"{"length": 5}"#,
            r#"{"length": 5.0}"#,
            r#"{"length": {"distribution": "constant", "value": 5}}"#,
        ] {
            assert_eq!(read(json), Ok(Setting::Drawn(Distribution::constant(5.0))), "{json}");
        }
        for (json, expected) in [
            (
                r#"{"length": "all"}"#,
                "key `length`: unknown variant `all`, expected `recorded` or `run`",
            ),
            (
                r#"{"length": {"distribution": "uniform", "min": 1}}"#,
                "a uniform distribution needs `max`",
            ),
            (r#"{"length": []}"#, "expected a word, a number, or a table"),
        ] {
            let Err(Error::InvalidConfig(message)) = read(json) else {
                panic!("{json} was taken");
            };
            assert!(message.contains(expected), "{json}: {message}");
        }
    }

    #[test]
    fn waits_below_zero_are_refused() {
        assert_eq!(check_wait("w", &Distribution::constant(0.0)), Ok(()));
        assert!(check_wait("w", &Distribution::constant(-0.1)).is_err());
    }
}
