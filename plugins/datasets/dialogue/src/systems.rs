//! System prompts that are drawn: one for all sessions, one for each group of them, or one for
//! each.

use runner_plugin::lengths::{Distribution, Lengths};
use runner_plugin::{Error, Tokenizer};

use crate::draw::generator;
use crate::setting::lengths;
use crate::words::{TextRequest, Writer};

/// The most system prompts that are kept for later sessions, and the most bytes of them.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 16 << 20;

/// Changes the seed, since a system prompt belongs to no session.
const APART: u64 = 0x5e55_1045;

/// Writes system prompts. Each is a function of the seed and its group's number alone.
pub struct Systems {
    seed: u64,
    lengths: Lengths,
    groups: u64,
    /// By their group, the latest last.
    kept: Vec<(u64, String)>,
}

impl Systems {
    /// The prompts by the keys `system-len` and `system-groups`, if there are any. Session N has the
    /// system prompt N modulo `groups`; with 0, each session has its own.
    pub fn new(
        seed: u64,
        given: Option<&Distribution>,
        groups: Option<u32>,
    ) -> Result<Option<Self>, Error> {
        let Some(given) = given else { return Ok(None) };
        let lengths = lengths("system-len", Some(given), 1)?;
        let groups = groups.unwrap_or(1).into();
        Ok(Some(Self { seed: seed ^ APART, lengths, groups, kept: Vec::new() }))
    }

    pub fn prompt(
        &mut self,
        session: u64,
        writer: &Writer,
        tokenizer: &dyn Tokenizer,
    ) -> Result<String, Error> {
        let group = session.checked_rem(self.groups).unwrap_or(session);
        if let Some((_, known)) = self.kept.iter().find(|(of, _)| *of == group) {
            return Ok(known.clone());
        }
        let wanted = TextRequest {
            tokens: self.lengths.draw(&mut generator(self.seed, group, 0)),
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
