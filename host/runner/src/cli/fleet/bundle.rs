//! Documents that rank 0 sends to the others: the scenario's text, the files that its run reads,
//! and the time when the run began.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::fleet::files;
use ::fleet::link::Offered;
use model::hex;
use runs::folder::without_secrets;
use scenario::plan::Plan;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{Checked, Input, Role, Source};
use sha2::{Digest, Sha256};

use super::super::failure::{Exit, Failure};
use super::super::flags::Flags;
use super::super::sources::{Text, source_of};
use super::make;

/// The longest part of a plan that is sent to rank 0 as it is, in bytes.
const LONGEST_PART: usize = 200;

/// The documents that all processes get. Flags are not in it: every process is started with the
/// same command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Documents {
    /// The scenario; absent if the flags are all.
    pub scenario: Option<Text>,
    /// The time when the run began.
    pub started: String,
    /// The role of each file, by the name under which it is sent.
    pub files: BTreeMap<String, Role>,
}

/// The files of a run to be sent, with their roles.
///
/// # Errors
/// If one cannot be read.
pub(super) fn offered(run: &Checked) -> Result<(Vec<Offered>, BTreeMap<String, Role>), Failure> {
    let unreadable = |cause: String| Failure::new(Exit::Input, cause);
    let inputs = run
        .inputs()
        .map_err(|cause| unreadable(format!("cannot list the tokenizer's files: {cause}")))?;
    let (mut offered, mut roles) = (Vec::new(), BTreeMap::new());
    for (number, Input { role, path }) in inputs.into_iter().enumerate() {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{number}-{file}");
        let entry = files::entry(&name, &path).map_err(|error| unreadable(error.to_string()))?;
        offered.push(Offered { entry, path });
        roles.insert(name, role);
    }
    Ok((offered, roles))
}

/// The digest that the plans of all processes must have.
///
/// # Errors
/// If the plan cannot be written as JSON, which is a bug.
pub(super) fn digest(plan: &Plan) -> Result<String, Failure> {
    let text = serde_json::to_string(&plan.shared())
        .map_err(|cause| Failure::new(Exit::Bug, format!("cannot write the plan: {cause}")))?;
    Ok(hex(&Sha256::digest(text)))
}

/// The parts of a plan by their names, as text and without secrets, for messages about what
/// differs.
pub(super) fn parts(plan: &Plan) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    flatten("", &without_secrets(&plan.shared()), &mut parts);
    parts
}

fn flatten(name: &str, value: &Value, parts: &mut BTreeMap<String, String>) {
    let below = |key: &str| match name {
        "" => key.to_owned(),
        name => format!("{name}.{key}"),
    };
    match value {
        Value::Object(fields) => {
            (fields.iter()).for_each(|(key, value)| flatten(&below(key), value, parts))
        }
        Value::String(text) if text.len() <= LONGEST_PART => {
            parts.insert(name.to_owned(), text.clone());
        }
        value => {
            let text = value.to_string();
            let part = match text.len() <= LONGEST_PART {
                true => text,
                // Texts that are long are compared and not shown.
                false => format!("a text with the SHA-256 {}", hex(&Sha256::digest(text))),
            };
            parts.insert(name.to_owned(), part);
        }
    }
}

impl Documents {
    /// The run that these describe, reading its files where they were put, by name. `work` is a
    /// folder for their names.
    ///
    /// # Errors
    /// What is wrong with the scenario, or a file that cannot be laid out.
    pub fn source(
        self,
        flags: &Flags,
        stored: &BTreeMap<String, PathBuf>,
        work: &Path,
    ) -> Result<Source, Failure> {
        let scenario = self.scenario.map(|text| Text {
            folder: None,
            ..text
        });
        // Every process has the same flags, so rank 0 alone prints the notes on them.
        let (source, _) = source_of(scenario, flags)?;
        let tokenizer = work.join("tokenizer");
        let mut inputs = Vec::new();
        for (name, role) in self.files {
            let Some(from) = stored.get(&name) else {
                let words = format!("rank 0 did not send the file `{name}`");
                return Err(Failure::new(Exit::Bug, words));
            };
            let path = match &role {
                // A name from another machine stays within the folder.
                Role::OfTokenizer(part) if is_below(part) => tokenizer.join(part),
                _ => work.join(Path::new(&name).file_name().unwrap_or_default()),
            };
            make(path.parent().unwrap_or(work))?;
            lay(from, &path)?;
            inputs.push(Input { role, path });
        }
        Ok(source.reading(&inputs, &tokenizer))
    }
}

fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// Gives a stored file its name, without a copy where the system allows that.
fn lay(from: &Path, to: &Path) -> Result<(), Failure> {
    let laid = std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop));
    laid.map_err(|cause| {
        let words = format!("cannot write `{}`: {cause}", to.display());
        Failure::new(Exit::Input, words)
    })
}
