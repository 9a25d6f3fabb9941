//! Tests that prompts equal the reference implementations' prompts, and tests of messages about
//! mistakes.

mod goldens;
mod mistakes;
mod order;

use runner_plugin::Error;
use runner_plugin_testing::datasets::{self, rest as all};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;

use super::Qa;

fn open(config: &str, seed: u64, files: Named) -> Result<Qa, Error> {
    datasets::open(config, seed, None, files, StandIn)
}

fn of_goldens(name: &str) -> std::path::PathBuf {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/files")).join(name)
}
