//! Scripts of the mock engine.

use mock::Script;

use crate::scenarios::told;

/// A script's text: what is wrong with it is said in words with places within it, and what is right
/// can be played.
pub fn mock_script(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Script::parse("script.toml", text) {
        Ok(script) => script.check().expect("what was read can be played"),
        Err(error) => told(&error, text),
    }
}
