//! Conversations drawn from distributions. Each is a function of the seed and its number alone.

use std::rc::Rc;

use dialogue::MOST_TURNS;
use dialogue::draw::generator;
use dialogue::setting::{Setting, lengths, wait};
use dialogue::systems::Systems;
use dialogue::turns::Turn;
use dialogue::words::{TextRequest, Writer};
use runner_plugin::lengths::{Distribution, Lengths};
use runner_plugin::{Error, Message, Role, Tokenizer};

use crate::config::{Config, Format};
use crate::source::{Conversation, Source};

/// The parts of a session, each with a generator of its own.
const TURNS: u64 = 0;
const WAITS: u64 = 1;
/// Of the texts: two for each turn.
const TEXTS: u64 = 16;

const SPARE: u64 = 0x5fa4_e000;

pub(crate) struct Synthetic {
    seed: u64,
    tokenizer: Rc<dyn Tokenizer>,
    writer: Writer,
    turns: Lengths,
    first: Lengths,
    later: Lengths,
    outputs: Option<Lengths>,
    think: Option<Distribution>,
    systems: Option<Systems>,
    drawn: u64,
    spares: u64,
}

impl Synthetic {
    pub(crate) fn new(
        config: &Config,
        seed: u64,
        tokenizer: Rc<dyn Tokenizer>,
        writer: Writer,
    ) -> Result<Self, Error> {
        let turns = match &config.turns {
            Some(distribution) => distribution.lengths("turns", 1..=MOST_TURNS as u32)?,
            None => Lengths::constant(4),
        };
        let later = lengths("input-len", config.input_len.as_ref(), 128)?;
        let first = match &config.first_input_len {
            None => later.clone(),
            given => lengths("first-input-len", given.as_ref(), 128)?,
        };
        let systems = match &config.system_prompts {
            Some(listed) => Some(Systems::listed(seed, listed)?),
            None => Systems::new(seed, config.system_len.as_ref(), config.system_groups)?,
        };
        Ok(Self {
            seed,
            tokenizer,
            writer,
            turns,
            first,
            later,
            outputs: config.drawn_outputs(Format::Synthetic)?,
            think: match &config.think_time {
                Some(Setting::Drawn(distribution)) => Some(distribution.clone()),
                _ => None,
            },
            systems,
            drawn: 0,
            spares: 0,
        })
    }

    fn draw(&mut self, number: u64) -> Result<Conversation, Error> {
        let mut lengths = generator(self.seed, number, TURNS);
        let mut waits = generator(self.seed, number, WAITS);
        let count = self.turns.draw(&mut lengths);
        let mut wanted = Vec::new();
        let mut turns = Vec::new();
        for index in 0..u64::from(count) {
            let input = if index == 0 { &self.first } else { &self.later };
            let mut text = |part, tokens| {
                wanted.push(TextRequest {
                    random: generator(self.seed, number, TEXTS + 2 * index + part),
                    tokens,
                });
            };
            text(0, input.draw(&mut lengths));
            let output = self.outputs.as_ref().map(|outputs| outputs.draw(&mut lengths));
            text(1, output.unwrap_or(0));
            let think = self.think.as_ref();
            turns.push(Turn {
                delay: think.map_or(0, |think| wait(think, &mut waits)),
                output_tokens: output,
                ..Turn::default()
            });
        }
        let mut texts = self.writer.write(&*self.tokenizer, &wanted)?.into_iter();
        let mut next = || texts.next().unwrap_or_default().0;
        for turn in &mut turns {
            turn.messages.push(Message::text(Role::User, next()));
            let answer = next();
            turn.answer = turn.output_tokens.map(|_| Message::text(Role::Assistant, answer));
        }
        if let Some(systems) = &mut self.systems
            && let Some(first) = turns.first_mut()
        {
            let system = systems.prompt(number, &self.writer, &*self.tokenizer)?;
            if !system.is_empty() {
                first.messages.insert(0, Message::text(Role::System, system));
            }
        }
        Ok(Conversation {
            place: format!("conversation {}", number + 1),
            turns,
            ..Conversation::default()
        })
    }
}

impl Source for Synthetic {
    fn next(&mut self) -> Result<Option<Conversation>, Error> {
        self.drawn += 1;
        self.draw(self.drawn - 1).map(Some)
    }

    /// One question of a first question's length, which begins like no text of
    /// [`next`](Self::next).
    fn spare(&mut self) -> Result<Option<Conversation>, Error> {
        let number = self.spares;
        self.spares += 1;
        let mut lengths = generator(self.seed ^ SPARE, number, TURNS);
        let tokens = self.first.draw(&mut lengths);
        let random = generator(self.seed ^ SPARE, number, TEXTS);
        let wanted = TextRequest { random, tokens };
        let (text, _) = self.writer.apart(&*self.tokenizer, &wanted)?;
        let outputs = self.outputs.as_ref();
        Ok(Some(Conversation {
            turns: vec![Turn {
                messages: vec![Message::text(Role::User, text)],
                output_tokens: outputs.map(|outputs| outputs.draw(&mut lengths)),
                ..Turn::default()
            }],
            exempt: true,
            ..Conversation::default()
        }))
    }

    fn rewind(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
