//! The place of a run: machine, versions and the command line without its secrets.

use std::path::Path;

use serde::{Deserialize, Serialize};

use model::redact;

/// The place of a run. A part that cannot be determined is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Environment {
    pub runner: String,
    /// Version of the plugin contract it speaks.
    pub contract: String,
    /// Operating system and architecture.
    pub platform: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Cores this process may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// Main memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u64>,
    /// The command line, with secrets removed.
    pub command_line: Vec<String>,
}

impl Environment {
    /// Gathers the facts; `descriptors` is the limit in force, `contract` the newest version.
    pub fn look(
        command_line: impl IntoIterator<Item = String>,
        descriptors: Option<u64>,
        contract: &str,
    ) -> Self {
        let read = |path: &str| std::fs::read_to_string(Path::new(path)).ok();
        let field = |text: &str, name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        Environment {
            runner: env!("CARGO_PKG_VERSION").to_owned(),
            contract: contract.to_owned(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            cpu: read("/proc/cpuinfo").and_then(|text| field(&text, "model name")),
            cores: std::thread::available_parallelism().ok().map(Into::into),
            memory_bytes: read("/proc/meminfo")
                .and_then(|text| field(&text, "MemTotal"))
                .and_then(|value| value.strip_suffix("kB")?.trim().parse::<u64>().ok())
                .map(|kibibytes| kibibytes * 1024),
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            descriptors,
            command_line: redact::command_line(command_line),
        }
    }
}
