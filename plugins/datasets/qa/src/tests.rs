//! Tests that prompts equal the reference implementations' prompts, and tests of messages about
//! mistakes.

mod goldens;
mod mistakes;
mod order;

use runner_plugin::{Amount, Dataset, Error, Inputs, Sample};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;

use super::Qa;

fn open(config: &str, seed: u64, files: Named) -> Result<Qa, Error> {
    let inputs = Inputs { files: Box::new(files), tokenizer: Box::new(StandIn) };
    Qa::open(runner_plugin::parse(config)?, seed, Amount::Unknown, inputs)
}

fn all(dataset: &mut Qa, limit: u32) -> Vec<Sample> {
    let mut samples = Vec::new();
    loop {
        let more = dataset.next(limit).expect("samples");
        if more.is_empty() {
            return samples;
        }
        assert!(more.len() <= limit as usize);
        samples.extend(more);
    }
}

/// A file of the goldens.
fn of_goldens(name: &str) -> std::path::PathBuf {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/files")).join(name)
}
