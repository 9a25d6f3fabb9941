//! Flags of other clients that mean more than a value of a key: each function changes a scenario as
//! its flag says.

use model::adapter::Assignment;
use reader::Located;
use scenario::Scenario;

fn located<T>(flag: &str, value: T) -> Option<Located<T>> {
    Some(Located::flag(flag, value))
}

fn config(scenario: &mut Scenario, flag: &str, key: &str, value: serde_json::Value) {
    scenario.dataset.config.set(key, Located::flag(flag, value));
}

fn unknown(value: &str, known: &str) -> String {
    format!("expected {known}, found `{value}`")
}

/// Their `--model` names the tokenizer's source; this flag gives the server's name for the model.
pub(super) fn served(scenario: &mut Scenario, flag: &str, name: &str) -> Result<(), String> {
    let target = &mut scenario.target;
    let source = target.model.replace(Located::flag(flag, name.to_owned()));
    let tokenizer = &mut scenario.tokenizer.path;
    if let (Some(source), None) = (source, &tokenizer) {
        *tokenizer = Some(Located::new(source.value.into(), source.place));
    }
    Ok(())
}

/// The model's folder, where their tokenizer is from.
pub(super) fn model_path(scenario: &mut Scenario, flag: &str, path: &str) -> Result<(), String> {
    let tokenizer = &mut scenario.tokenizer.path;
    if tokenizer.is_none() {
        *tokenizer = located(flag, path.into());
    }
    Ok(())
}

pub(super) fn label(scenario: &mut Scenario, flag: &str, label: &str) -> Result<(), String> {
    scenario.name = located(flag, label.to_owned());
    Ok(())
}

pub(super) fn tag(scenario: &mut Scenario, flag: &str, tag: &str) -> Result<(), String> {
    let tag = Located::flag(flag, tag.to_owned());
    scenario.about.notes.insert("tag".to_owned(), tag);
    Ok(())
}

pub(super) fn distribution(scenario: &mut Scenario, flag: &str, name: &str) -> Result<(), String> {
    let assignment = match name {
        "uniform" => Assignment::Random,
        "distinct" => Assignment::RoundRobin,
        "skewed" => {
            return Err("`skewed` is not supported; give every sample its adapter with a column `adapter` of --dataset-name custom".to_owned());
        }
        other => return Err(unknown(other, "`uniform` or `distinct`")),
    };
    scenario.request.adapter_assignment = located(flag, assignment);
    Ok(())
}

pub(super) fn mode(_: &mut Scenario, _: &str, name: &str) -> Result<(), String> {
    match name {
        "auto" | "hf" => Ok(()),
        other => Err(format!(
            "`{other}` is not supported: tokenizers are read from tokenizer.json; leave the flag out and give one with --tokenizer"
        )),
    }
}

pub(super) fn custom_output(
    scenario: &mut Scenario,
    flag: &str,
    value: &str,
) -> Result<(), String> {
    if value == "-1" {
        return Ok(());
    }
    let tokens: u64 = value.parse().map_err(|_| unknown(value, "a number of tokens, or -1"))?;
    config(scenario, flag, "output-len", tokens.into());
    Ok(())
}

pub(super) fn groups(scenario: &mut Scenario, _: &str, name: &str) -> Result<(), String> {
    let zipf = scenario.dataset.config.get("zipf").is_some();
    match (name, zipf) {
        ("uniform", false) | ("zipf", true) => Ok(()),
        ("uniform", true) => {
            Err("--gsp-zipf-alpha only works with `zipf`; leave one of the two out".to_owned())
        }
        ("zipf", false) => Err("`zipf` needs its exponent: --gsp-zipf-alpha NUMBER".to_owned()),
        (other, _) => Err(unknown(other, "`uniform` or `zipf`")),
    }
}

/// Sets the size of images; the other client states the height first.
pub(super) fn resolution(scenario: &mut Scenario, flag: &str, name: &str) -> Result<(), String> {
    let (width, height) = match name {
        "4k" => (3840, 2160),
        "1080p" => (1920, 1080),
        "720p" => (1280, 720),
        "360p" => (640, 360),
        random if random.starts_with("random:") => {
            return Err("random sizes are distributions here: `--set 'dataset.config.width={ distribution = \"uniform\", min = 256, max = 1024 }'`, and the same for height".to_owned());
        }
        other => {
            let numbers = other.split_once('x');
            let numbers = numbers.and_then(|(height, width)| {
                Some((width.parse::<u32>().ok()?, height.parse::<u32>().ok()?))
            });
            numbers.ok_or_else(|| {
                unknown(other, "4k, 1080p, 720p, 360p, or a height and a width such as 1080x1920")
            })?
        }
    };
    let sizes = vec![serde_json::Value::from(format!("{width}x{height}"))];
    config(scenario, flag, "sizes", sizes.into());
    Ok(())
}

pub(super) fn content(scenario: &mut Scenario, flag: &str, name: &str) -> Result<(), String> {
    let noise = match name {
        "random" => 1.0,
        "blank" => 0.0,
        other => return Err(unknown(other, "`random` or `blank`")),
    };
    config(scenario, flag, "noise", noise.into());
    Ok(())
}
