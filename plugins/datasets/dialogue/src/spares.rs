//! First requests of sessions that are not measured.

use std::collections::BTreeSet;

use runner_plugin::requests::prompt_fingerprint;
use runner_plugin::{ENOUGH, Error, Sample};

const MOST_SPARE: u32 = 1000;

#[derive(Default)]
pub struct Spares {
    /// Fingerprints of their prompts.
    prompts: BTreeSet<u64>,
    pub count: u64,
}

impl Spares {
    /// At most `limit` samples with new prompts and names that begin with `name`. `next` gives the
    /// root of the next session; `None` at the end.
    pub fn take(
        &mut self,
        limit: u32,
        name: &str,
        mut next: impl FnMut() -> Result<Option<Sample>, Error>,
    ) -> Result<Vec<Sample>, Error> {
        let (mut samples, mut bytes) = (Vec::new(), 0);
        for _ in 0..limit.saturating_add(MOST_SPARE) {
            if samples.len() == limit as usize || bytes >= ENOUGH {
                break;
            }
            let Some(root) = next()? else { break };
            if self.prompts.insert(prompt_fingerprint(&root)) {
                self.count += 1;
                bytes += root.bytes();
                let id = format!("{name}-{:06}", self.count);
                samples.push(Sample {
                    id,
                    recorded_answer: None,
                    turn: None,
                    arrival: None,
                    ..root
                });
            }
        }
        Ok(samples)
    }

    /// True if a sample has the prompt of a spare one.
    #[must_use]
    pub fn has(&self, sample: &Sample) -> bool {
        self.prompts.contains(&prompt_fingerprint(sample))
    }
}
