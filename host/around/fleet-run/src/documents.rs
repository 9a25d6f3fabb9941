//! Documents that rank 0 sends to the others: the scenario's text, the files that its run reads,
//! and the time when the run began.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fleet::files;
use fleet::link::Offered;
use model::hex;
use runs::folder::without_secrets;
use scenario::plan::Plan;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{Checked, Input, Role, Source};
use sha2::{Digest, Sha256};

use crate::error::{FleetError, make, unable};

/// The longest part of a plan that is sent to rank 0 as it is, in bytes.
const LONGEST_PART: usize = 200;

/// A scenario as it travels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScenarioText {
    /// Its name in messages.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The documents that all processes get. Flags are not in it: every process is started with the
/// same command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Documents {
    /// The scenario; absent if the flags are all.
    pub scenario: Option<ScenarioText>,
    /// The time when the run began.
    pub started: String,
    /// The role of each file, by the name under which it is sent.
    pub files: BTreeMap<String, Role>,
}

/// The files of a run to be sent, with their roles.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn offered(run: &Checked) -> Result<(Vec<Offered>, BTreeMap<String, Role>), FleetError> {
    let inputs = run.inputs();
    let inputs = inputs.map_err(unable("list the tokenizer's files"))?;
    let (mut offered, mut roles) = (Vec::new(), BTreeMap::new());
    for (number, Input { role, path }) in inputs.into_iter().enumerate() {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{number}-{file}");
        let entry = files::entry(&name, &path)?;
        offered.push(Offered { entry, path });
        roles.insert(name, role);
    }
    Ok((offered, roles))
}

/// The digest that the plans of all processes must have.
///
/// # Errors
/// If the plan cannot be written as JSON, which is a bug.
pub(crate) fn digest(plan: &Plan) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(&plan.shared())?;
    Ok(hex(&Sha256::digest(text)))
}

/// The parts of a plan by their names, as text and without secrets, for messages about what
/// differs.
pub(crate) fn parts(plan: &Plan) -> BTreeMap<String, String> {
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

/// Gives the files that rank 0 sent their names in `work`, by the names under which they were
/// sent, and has a run read them.
///
/// # Errors
/// If a file is missing or cannot be laid out.
pub(crate) fn reading(
    source: Source,
    roles: BTreeMap<String, Role>,
    stored: &BTreeMap<String, PathBuf>,
    work: &Path,
) -> Result<Source, FleetError> {
    let tokenizer = work.join("tokenizer");
    let mut inputs = Vec::new();
    for (name, role) in roles {
        let Some(from) = stored.get(&name) else {
            return Err(FleetError::NotSent(name));
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

fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// Gives a stored file its name, without a copy where the system allows that.
fn lay(from: &Path, to: &Path) -> Result<(), FleetError> {
    let laid = std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop));
    laid.map_err(unable(format!("write `{}`", to.display())))
}
