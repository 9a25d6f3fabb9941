//! How a plugin can fail. A plugin's words are always attributed to it.

use super::instance::words;

/// Why a plugin could not be used, or a call of it failed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// No file, and no component of that name ships inside the runner.
    #[error(
        "plugin `{asked}` not found: no such file here{searched}, and no component of that name ships inside the runner{nearest}"
    )]
    NotFound {
        /// The name as the user gave it.
        asked: String,
        /// Where else was looked, as text to append.
        searched: String,
        /// A hint at the nearest shipped name, as text to append.
        nearest: String,
    },
    /// The file could not be read.
    #[error("plugin `{plugin}`: cannot read the file: {cause}")]
    Unreadable {
        /// The plugin.
        plugin: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A digest is pinned that is none.
    #[error(
        "plugin `{plugin}`: a pinned digest is written `{plugin}@sha256:` and 64 hexadecimal digits, but this one {what}"
    )]
    Pin {
        /// The plugin.
        plugin: String,
        /// What is wrong with the digest.
        what: String,
    },
    /// Its digest is another than the one pinned.
    #[error(
        "plugin `{plugin}` ({origin}) is not the one that was pinned: its SHA-256 is {found}, pinned is {pinned}; take the file that was meant, or pin this one once you trust it"
    )]
    OtherDigest {
        /// The plugin.
        plugin: String,
        /// Where it was found.
        origin: String,
        /// The digest it must have.
        pinned: String,
        /// The digest it has.
        found: String,
    },
    /// There is more of it than the sandbox takes.
    #[error("plugin `{plugin}` is refused: {what}")]
    Excessive {
        /// The plugin.
        plugin: String,
        /// What there is too much of, how much is allowed, and how to allow more.
        what: String,
    },
    /// The file is no WebAssembly component.
    #[error("plugin `{plugin}` {what}")]
    NotComponent {
        /// The plugin.
        plugin: String,
        /// What it is, and what to do.
        what: String,
    },
    /// It is a component, but not one of ours, or of another version.
    #[error("plugin `{plugin}` {what}")]
    WrongWorld {
        /// The plugin.
        plugin: String,
        /// What was found, what was expected, who should do what.
        what: String,
    },
    /// It is a plugin of another kind than the one asked for.
    #[error("plugin `{plugin}` is a {found}, but a {expected} is expected at {place}")]
    WrongKind {
        /// The plugin.
        plugin: String,
        /// Its kind.
        found: &'static str,
        /// The kind that was needed.
        expected: &'static str,
        /// Where it was asked for.
        place: String,
    },
    /// It trapped, ran too long or took too much.
    #[error("plugin `{plugin}` failed in `{call}`: {cause}")]
    Trapped {
        /// The plugin.
        plugin: String,
        /// The function that was called.
        call: &'static str,
        /// What stopped it.
        cause: String,
    },
    /// It answered with something its contract forbids.
    #[error("plugin `{plugin}` broke its contract in `{call}`: {what}")]
    Contract {
        /// The plugin.
        plugin: String,
        /// The function that was called.
        call: &'static str,
        /// What it did and what was expected.
        what: String,
    },
    /// It refused its configuration.
    #[error("plugin `{plugin}` refuses its configuration: {said}")]
    Config {
        /// The plugin.
        plugin: String,
        /// Its words.
        said: String,
    },
    /// It found a fault in an input file.
    #[error("plugin `{plugin}` cannot use its input: {said}")]
    Input {
        /// The plugin.
        plugin: String,
        /// Its words.
        said: String,
    },
    /// The server sent something it does not understand.
    #[error("plugin `{plugin}` does not understand the reply: {said}")]
    Protocol {
        /// The plugin.
        plugin: String,
        /// Its words.
        said: String,
    },
    /// It gave another reason.
    #[error("plugin `{plugin}` says: {said}")]
    Said {
        /// The plugin.
        plugin: String,
        /// Its words.
        said: String,
    },
}

impl PluginError {
    /// Whether the plugin misbehaved, rather than found fault with something it was given.
    pub fn is_misbehaviour(&self) -> bool {
        matches!(
            self,
            PluginError::Trapped { .. } | PluginError::Contract { .. }
        )
    }

    /// Wraps an error that a plugin returned, attributed to it.
    pub(super) fn said(plugin: &str, error: super::bindings::types::Error) -> Self {
        use super::bindings::types::Error;
        let plugin = plugin.to_owned();
        let said = match &error {
            Error::InvalidConfig(said)
            | Error::InvalidInput(said)
            | Error::Protocol(said)
            | Error::Other(said) => words(said),
        };
        match error {
            Error::InvalidConfig(_) => PluginError::Config { plugin, said },
            Error::InvalidInput(_) => PluginError::Input { plugin, said },
            Error::Protocol(_) => PluginError::Protocol { plugin, said },
            Error::Other(_) => PluginError::Said { plugin, said },
        }
    }
}
