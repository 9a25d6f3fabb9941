//! Manifests for Kubernetes and batch scripts for Slurm, which start a fleet.
//!
//! This module owns their form and the rules for what is put into them. The caller describes the
//! fleet with [`Pods`] or [`Batch`]; every value is checked before it is written, all mistakes at
//! once. Secrets are named and never written. [`crate::place`] reads the environment that the
//! processes then get.

mod kubernetes;
mod slurm;
#[cfg(test)]
mod tests;
mod yaml;

use crate::place::MOST;

pub use kubernetes::kubernetes;
pub use slurm::slurm;

/// The longest name of a fleet: a pod's host name adds a job's name and a number to it, and has 63
/// characters at most.
const LONGEST_NAME: usize = 50;

/// A fleet of pods.
#[derive(Clone, Debug)]
pub struct Pods {
    /// The name of everything that is made.
    pub name: String,
    /// The namespace; absent for that of `kubectl`'s context.
    pub namespace: Option<String>,
    /// An image that has `runner` in its path.
    pub image: String,
    /// The number of pods.
    pub size: u32,
    /// The port of the coordinator, which is the pod with index 0.
    pub port: u16,
    /// The place where the scenario is.
    pub scenario: Scenario,
    /// Further words of the command.
    pub arguments: Vec<String>,
    /// Cores of each pod, such as `8` or `500m`.
    pub cpu: String,
    /// Memory of each pod, such as `16Gi`.
    pub memory: String,
    /// The place where the run's token is.
    pub token: SecretKey,
    /// Further variables from secrets, such as an API key.
    pub variables: Vec<(String, SecretKey)>,
    /// A claim for the results, which many pods can mount (`ReadWriteMany`). Without one they are
    /// gone with the pod of the coordinator, but for what it prints.
    pub results: Option<String>,
    /// Make a JobSet, which has its own service, and not a Job and a Service.
    pub jobset: bool,
}

/// The place where pods find the scenario.
#[derive(Clone, Debug)]
pub enum Scenario {
    /// A path in the image.
    Path(String),
    /// A key of a ConfigMap.
    ConfigMap {
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
}

/// A key of a Secret.
#[derive(Clone, Debug)]
pub struct SecretKey {
    /// The Secret's name.
    pub name: String,
    /// The key.
    pub key: String,
}

/// A fleet of a batch job.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The job's name.
    pub name: String,
    /// The number of nodes, with one process each.
    pub size: u32,
    /// Cores of each process.
    pub cpus: u32,
    /// Memory of each node, such as `16G`; absent for the cluster's default.
    pub memory: Option<String>,
    /// The job's time limit, such as `00:30:00`.
    pub time: String,
    /// The partition; absent for the cluster's default.
    pub partition: Option<String>,
    /// The account; absent for the user's default.
    pub account: Option<String>,
    /// An image for the processes, where the cluster has the plugin pyxis.
    pub image: Option<String>,
    /// The coordinator's port.
    pub port: u16,
    /// The scenario's path, which all nodes can read.
    pub scenario: String,
    /// Further words of the command.
    pub arguments: Vec<String>,
    /// A file with the token, which all nodes can read; absent to make a token for each job.
    pub token_file: Option<String>,
    /// The folder for the results.
    pub results: String,
}

/// Everything that is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no manifest can be made:\n  {}", .0.join("\n  "))]
pub struct Unusable(pub Vec<String>);

/// Collects what is wrong with values.
#[derive(Default)]
struct Check(Vec<String>);

impl Check {
    fn wrong(&mut self, what: &str, value: &str, expected: &str) {
        let shown: String = value.chars().take(60).collect();
        self.0.push(format!("{what} is `{shown}`; expected {expected}"));
    }

    fn name(&mut self, what: &str, value: &str) {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let good = value.len() <= LONGEST_NAME
            && value.bytes().all(inner)
            && value.starts_with(|first: char| first.is_ascii_lowercase())
            && !value.ends_with('-');
        if !good {
            let expected = format!(
                "at most {LONGEST_NAME} lower-case letters, digits and `-`, with a letter first and no `-` last"
            );
            self.wrong(what, value, &expected);
        }
    }

    /// The name of an object that is there already: a DNS subdomain.
    fn object(&mut self, what: &str, value: &str) {
        let label = |label: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            !label.is_empty()
                && label.bytes().all(|byte| inner(byte) || byte == b'-')
                && label.starts_with(|first: char| first.is_ascii_alphanumeric())
                && !label.ends_with('-')
        };
        if value.len() > 253 || !value.split('.').all(label) {
            self.wrong(what, value, "the name of an object of Kubernetes");
        }
    }

    fn key(&mut self, what: &str, value: &str) {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if value.is_empty() || value.len() > 253 || !value.bytes().all(inner) {
            self.wrong(what, value, "letters, digits, `-`, `.` and `_`");
        }
    }

    fn secret(&mut self, what: &str, secret: &SecretKey) {
        self.object(&format!("{what}, its Secret,"), &secret.name);
        self.key(&format!("{what}, its key,"), &secret.key);
    }

    /// A number with a unit, as Kubernetes has them.
    fn quantity(&mut self, what: &str, value: &str, example: &str) {
        let unit = value.trim_start_matches(|digit: char| digit.is_ascii_digit() || digit == '.');
        let number = &value[..value.len() - unit.len()];
        let units = ["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"];
        let positive = number.parse::<f64>().is_ok_and(|number| number > 0.0);
        if !positive || !units.contains(&unit) {
            self.wrong(what, value, &format!("a quantity such as `{example}`"));
        }
    }

    /// One word of printable characters.
    fn word(&mut self, what: &str, value: &str, expected: &str) {
        let good = |character: char| !character.is_whitespace() && !character.is_control();
        if value.is_empty() || !value.chars().all(good) {
            self.wrong(what, value, expected);
        }
    }

    /// Words of a line that begins with `#SBATCH`, which no shell reads.
    fn option(&mut self, what: &str, value: &str, expected: &str) {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/@+,".contains(&byte);
        if value.is_empty() || !value.bytes().all(good) {
            self.wrong(what, value, expected);
        }
    }

    fn text(&mut self, what: &str, value: &str) {
        if value.is_empty() || value.chars().any(char::is_control) {
            self.wrong(what, value, "text on one line");
        }
    }

    fn variable(&mut self, value: &str) {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let begins = value.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        if !begins || !value.bytes().all(inner) {
            self.wrong("a variable", value, "a name such as `OPENAI_API_KEY`");
        }
        if value.starts_with("RUNNER_FLEET_") {
            self.wrong("a variable", value, "none of those that the manifest sets itself");
        }
    }

    fn size(&mut self, size: u32, port: u16) {
        if size == 0 || size > MOST {
            self.wrong("the size", &size.to_string(), &format!("1 to {MOST}"));
        }
        if port == 0 {
            self.wrong("the port", "0", "1 to 65535");
        }
    }

    fn end(self) -> Result<(), Unusable> {
        if self.0.is_empty() { Ok(()) } else { Err(Unusable(self.0)) }
    }
}
