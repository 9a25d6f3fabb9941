//! Failures of plugins. Messages from a plugin are always attributed to it.

use model::clean::{text, unsafe_to_show};

/// The longest description or error message of a plugin, in bytes; longer ones are cut.
const TEXT_BYTES: usize = 2_000;

#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// There is no such file, and no plugin of that name ships with the runner.
    #[error("plugin `{name}` not found: no such file here{searched}, and no plugin of that name ships with the runner{nearest}", name = text(.name), searched = text(.searched), nearest = text(.nearest))]
    NotFound { name: String, searched: String, nearest: String },
    #[error("plugin `{plugin}`: cannot read the file: {cause}", plugin = text(.plugin))]
    Unreadable { plugin: String, cause: std::io::Error },
    #[error("plugin `{plugin}` is a folder; {what}", plugin = text(.plugin), what = text(.what))]
    Folder { plugin: String, what: String },
    #[error("plugin `{plugin}`: a pinned digest is `{plugin}@sha256:` followed by 64 hexadecimal digits, but this digest {what}", plugin = text(.plugin), what = text(.what))]
    Pin { plugin: String, what: String },
    #[error("plugin `{plugin}` ({origin}) does not match its pinned digest: its SHA-256 is {found}, but {pinned} is pinned; restore the pinned file, or pin the new SHA-256 if you trust the new file", plugin = text(.plugin), origin = text(.origin), found = text(.found), pinned = text(.pinned))]
    OtherDigest { plugin: String, origin: String, pinned: String, found: String },
    #[error("plugin `{plugin}` is refused: {what}", plugin = text(.plugin), what = text(.what))]
    Excessive { plugin: String, what: String },
    #[error("plugin `{plugin}` {what}", plugin = text(.plugin), what = text(.what))]
    NotComponent { plugin: String, what: String },
    /// It is a component, but not a runner plugin, or one for another version of the contract.
    #[error("plugin `{plugin}` {what}", plugin = text(.plugin), what = text(.what))]
    WrongWorld { plugin: String, what: String },
    #[error("plugin `{plugin}` is a {found}, but a {expected} is expected at {place}", plugin = text(.plugin), place = text(.place))]
    WrongKind { plugin: String, found: &'static str, expected: &'static str, place: String },
    #[error("plugin `{plugin}` failed in `{call}`: {cause}", plugin = text(.plugin), cause = text(.cause))]
    Trapped { plugin: String, call: &'static str, cause: String },
    #[error("plugin `{plugin}` broke its contract in `{call}`: {what}", plugin = text(.plugin), what = text(.what))]
    Contract { plugin: String, call: &'static str, what: String },
    #[error("plugin `{plugin}` refuses its configuration: {message}", plugin = text(.plugin), message = text(.message))]
    Config { plugin: String, message: String },
    #[error("plugin `{plugin}` cannot use its input: {message}", plugin = text(.plugin), message = text(.message))]
    Input { plugin: String, message: String },
    #[error("plugin `{plugin}` does not understand the reply: {message}", plugin = text(.plugin), message = text(.message))]
    Protocol { plugin: String, message: String },
    #[error("plugin `{plugin}` says: {message}", plugin = text(.plugin), message = text(.message))]
    Other { plugin: String, message: String },
}

impl PluginError {
    /// True if the plugin itself misbehaved, rather than reported an error in its input.
    pub fn is_misbehaviour(&self) -> bool {
        matches!(self, PluginError::Trapped { .. } | PluginError::Contract { .. })
    }

    /// True if the plugin itself misbehaved, and in this call.
    pub(super) fn is_misbehaviour_in(&self, wanted: &str) -> bool {
        match self {
            PluginError::Trapped { call, .. } | PluginError::Contract { call, .. } => {
                *call == wanted
            }
            _ => false,
        }
    }

    /// The error for a component that the parser or the compiler rejects.
    pub(super) fn not_valid(plugin: &str, cause: &str) -> Self {
        PluginError::NotComponent {
            plugin: plugin.to_owned(),
            what: format!("is not a valid WebAssembly component: {cause}"),
        }
    }

    /// Adds the id of the last sample before a failure that names no place itself.
    pub(super) fn after(mut self, last: &str) -> Self {
        if let PluginError::Trapped { cause: message, .. } | PluginError::Other { message, .. } =
            &mut self
            && !last.is_empty()
        {
            message.push_str(&format!(" (after sample `{last}`)"));
        }
        self
    }

    /// Wraps an error that a plugin returned, attributed to it.
    pub(super) fn from_plugin(plugin: &str, error: super::bindings::types::Error) -> Self {
        use super::bindings::types::Error;
        let plugin = plugin.to_owned();
        let message = match &error {
            Error::InvalidConfig(message)
            | Error::InvalidInput(message)
            | Error::Protocol(message)
            | Error::Other(message) => clean_text(message),
        };
        match error {
            Error::InvalidConfig(_) => PluginError::Config { plugin, message },
            Error::InvalidInput(_) => PluginError::Input { plugin, message },
            Error::Protocol(_) => PluginError::Protocol { plugin, message },
            Error::Other(_) => PluginError::Other { plugin, message },
        }
    }
}

/// Cuts a plugin's text to the length of a message, and replaces control characters.
pub(super) fn clean_text(text: &str) -> String {
    let end = text.floor_char_boundary(text.len().min(TEXT_BYTES));
    text[..end]
        .chars()
        .map(|c| if unsafe_to_show(c) && c != '\n' { ' ' } else { c })
        .collect::<String>()
        .trim()
        .to_owned()
}
