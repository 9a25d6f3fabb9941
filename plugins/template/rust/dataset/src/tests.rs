//! Unit tests, which run natively and so are quicker than cases: `cargo test`.

use runner_plugin::{Amount, Dataset, Error, Inputs};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;

use super::{Config, Plugin};

fn opened(files: Named) -> Result<Plugin, Error> {
    let inputs = Inputs { files: Box::new(files), tokenizer: Box::new(StandIn) };
    Plugin::open(Config::default(), 0, Amount::Unknown, inputs)
}

#[test]
fn prompts_are_called_by_their_lines() {
    let mut plugin =
        opened(Named::default().with_bytes("prompts", "one\n\nthree\n")).expect("an opened file");
    let samples = plugin.next(5).expect("samples");
    let ids: Vec<&str> = samples.iter().map(|sample| sample.id.as_str()).collect();
    assert_eq!(ids, ["prompt-000001", "prompt-000003"]);
    assert!(plugin.next(5).expect("samples").is_empty());
}

#[test]
fn a_missing_file_is_named() {
    let refused = opened(Named::default()).err();
    assert!(matches!(refused, Some(Error::InvalidConfig(_))));
}
