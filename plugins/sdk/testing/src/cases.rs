//! Golden cases of a dataset. A case is a folder:
//!
//! | file | content |
//! | --- | --- |
//! | `config.json` | the plugin's configuration |
//! | `case.json` | the rest of what it is opened with: see [`Case`] |
//! | `samples.json` | what it gives at first, to be read by people |
//! | `digest.txt` | SHA-256 over the first thousand samples, one line of JSON each |
//!
//! With `BLESS=1` in the environment the last two are written instead of compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs};

use runner_plugin::{Dataset, Error, Inputs, Message, Part, Prompt, Role, Sample, Tokenizer};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::files::Named;
use crate::tokenizer::{Pairs, StandIn};

/// What a dataset is opened with, beside its configuration.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// The run's seed.
    pub seed: u64,
    /// How many samples the run measures; absent where that is not known beforehand.
    pub count: Option<u64>,
    /// How many samples to ask for that are not measured.
    #[serde(default)]
    pub spare: u32,
    /// Files by name, relative to the case's folder.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Which tokenizer.
    pub tokenizer: Which,
}

/// The tokenizers of this crate.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// [`StandIn`].
    StandIn,
    /// [`Pairs`].
    Pairs,
}

/// How many samples the digest covers.
const DIGESTED: usize = 1000;

/// How many samples are written out.
const SHOWN: usize = 3;

/// Runs every case below `folder`.
///
/// # Panics
/// Where a case does not give what it must.
pub fn run<D: Dataset>(folder: &Path) {
    let mut folders: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.join("case.json").is_file())
        .collect();
    folders.sort();
    assert!(!folders.is_empty(), "no case in {}", folder.display());
    for folder in folders {
        run_one::<D>(&folder);
    }
}

fn run_one<D: Dataset>(folder: &Path) {
    let name = folder.display();
    let case: Case = serde_json::from_str(&read(&folder.join("case.json")))
        .unwrap_or_else(|error| panic!("{name}/case.json: {error}"));
    let (spare, samples) =
        draw::<D>(folder, &case).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    check(&name.to_string(), &spare, &samples);

    let lines: Vec<String> = samples
        .iter()
        .map(|sample| as_json(sample).to_string())
        .collect();
    let digest = Sha256::digest(lines.join("\n"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let digest = format!("{digest}  {} samples\n", samples.len());
    let shown = |samples: &[Sample]| samples.iter().take(SHOWN).map(as_json).collect::<Vec<_>>();
    let shown = json!({ "spare": shown(&spare), "samples": shown(&samples) });
    let shown = format!("{:#}\n", shown);
    for (file, content) in [("samples.json", shown), ("digest.txt", digest)] {
        let path = folder.join(file);
        if env::var_os("BLESS").is_some() {
            fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        } else {
            assert_eq!(
                read(&path),
                content,
                "{}; BLESS=1 rewrites it",
                path.display()
            );
        }
    }
}

fn draw<D: Dataset>(folder: &Path, case: &Case) -> Result<(Vec<Sample>, Vec<Sample>), Error> {
    let config = runner_plugin::parse(&read(&folder.join("config.json")))?;
    let files = case
        .files
        .iter()
        .fold(Named::default(), |files, (name, path)| {
            files.with_path(name, folder.join(path))
        });
    let tokenizer: Box<dyn Tokenizer> = match case.tokenizer {
        Which::StandIn => Box::new(StandIn),
        Which::Pairs => Box::new(Pairs),
    };
    let mut dataset = D::open(
        config,
        case.seed,
        case.count,
        Inputs {
            files: Box::new(files),
            tokenizer,
        },
    )?;
    let spare = if case.spare > 0 {
        dataset.spare(case.spare)?
    } else {
        Vec::new()
    };
    let most = case
        .count
        .map_or(DIGESTED, |count| DIGESTED.min(count as usize));
    let mut samples = Vec::new();
    while samples.len() < most {
        // An odd number, so that blocks of the plugin's own begin within a call.
        let more = dataset.next((most - samples.len()).min(37) as u32)?;
        if more.is_empty() {
            break;
        }
        samples.extend(more);
    }
    Ok((spare, samples))
}

/// What holds for every dataset.
fn check(name: &str, spare: &[Sample], samples: &[Sample]) {
    let mut ids = BTreeSet::new();
    for sample in spare.iter().chain(samples) {
        assert!(
            ids.insert(&sample.id),
            "{name}: the id {} is given twice",
            sample.id
        );
    }
    let measured: BTreeSet<String> = samples
        .iter()
        .map(|sample| prompt(sample).to_string())
        .collect();
    for sample in spare {
        assert!(
            !measured.contains(&prompt(sample).to_string()),
            "{name}: the prompt of {} is measured too",
            sample.id
        );
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn prompt(sample: &Sample) -> Value {
    match &sample.prompt {
        Prompt::Text(text) => json!({ "text": text }),
        Prompt::Tokens(ids) => json!({ "tokens": ids }),
        Prompt::Messages(messages) => {
            let role = |role| match role {
                Role::System => "system",
                Role::Developer => "developer",
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
            };
            let messages: Vec<_> = messages
                .iter()
                .map(|message| json!({ "role": role(message.role), "content": content(message) }))
                .collect();
            json!({ "messages": messages })
        }
    }
}

/// The text of a message; the datasets that ship give no other parts.
fn content(message: &Message) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Image(_) | Part::Audio(_) => panic!("a part that is no text"),
    };
    message.parts.iter().map(text).collect()
}

/// A sample as JSON, absent fields left out.
#[must_use]
pub fn as_json(sample: &Sample) -> Value {
    let mut json = json!({ "id": sample.id, "prompt": prompt(sample) });
    if let Some(tokens) = sample.input_tokens {
        json["input-tokens"] = tokens.into();
    }
    if let Some(tokens) = sample.output_tokens {
        json["output-tokens"] = tokens.into();
    }
    if let Some(reference) = &sample.reference {
        json["reference"] = serde_json::from_str(reference)
            .unwrap_or_else(|error| panic!("{}: its reference is no JSON: {error}", sample.id));
    }
    json
}
