//! The subject of a result: engine, hardware, and the start of the server, as the author states
//! them or else the server. They are never read as figures.

use std::collections::BTreeMap;

/// The subject of a result. A key that nobody stated is absent.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct About {
    /// The engine under test: `vllm`.
    pub engine: Option<String>,
    /// Its version: `0.10.1`.
    pub engine_version: Option<String>,
    /// Hardware that it ran on: `8x H800`.
    pub hardware: Option<String>,
    /// The command that started it.
    pub launch_command: Option<String>,
    /// Whatever else is worth knowing, by names of the author's choice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
}

impl About {
    /// Adds the engine that a server names, and its version, where the author stated none. A
    /// version is added only if the author's engine is the server's, whatever its spelling.
    pub fn complete(&mut self, engine: &str, version: Option<&str>) {
        let own = self.engine.get_or_insert_with(|| engine.to_owned());
        if is_same_engine(own, engine) && self.engine_version.is_none() {
            self.engine_version = version.map(str::to_owned);
        }
    }

    /// True if it has no key.
    pub fn is_empty(&self) -> bool {
        *self == About::default()
    }
}

/// True if two names are spellings of one engine's: `llama.cpp` and `llamacpp`.
pub fn is_same_engine(a: &str, b: &str) -> bool {
    let letters = |name: &str| -> String {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase()).collect()
    };
    letters(a) == letters(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authors_engine_overrides_the_servers() {
        let stated = |engine: Option<&str>, version: Option<&str>| About {
            engine: engine.map(str::to_owned),
            engine_version: version.map(str::to_owned),
            ..About::default()
        };
        for (mut about, expected) in [
            (stated(None, None), (Some("llama.cpp"), Some("b42"))),
            (stated(Some("llamacpp"), None), (Some("llamacpp"), Some("b42"))),
            (stated(Some("a fork"), None), (Some("a fork"), None)),
            (stated(None, Some("1")), (Some("llama.cpp"), Some("1"))),
        ] {
            about.complete("llama.cpp", Some("b42"));
            assert_eq!(about, stated(expected.0, expected.1));
        }
    }
}
