//! System prompts that are drawn: one for all sessions, one for each group of them, one for each,
//! or one of a list by weight.

use runner_plugin::lengths::{Choice, Distribution, Lengths};
use runner_plugin::{Error, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::draw::generator;
use crate::setting::lengths;
use crate::words::{TextRequest, Writer};

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use runner_plugin_testing::files::Named;
    use runner_plugin_testing::tokenizer::Pairs;

    use super::*;

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
}
