//! Checks of a dataset: its sequence is drawn in steps of several sizes, in fresh instances.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::dice::Dice;
use super::given::Draw;
use super::{Observations, format, sessions};
use crate::PluginError;
use crate::backend::Sample;
use crate::dataset::{Amount, Dataset, Remark};
use model::hex;

/// The number of samples that the digest covers.
const DIGESTED: usize = 1000;
const SHOWN: usize = 3;
/// Samples to request at once, at first: unusual, so that a plugin's blocks begin within a call.
const STEP: usize = 37;

struct DrawnSamples {
    spare: Vec<Sample>,
    samples: Vec<Sample>,
    /// The number of requested and returned samples, including samples of unmeasured sessions.
    given: usize,
    remarks: Vec<Remark>,
}

fn lines(samples: &[Sample]) -> String {
    samples.iter().map(|sample| format::sample(sample).to_string() + "\n").collect()
}

pub fn draw(plugin: &Dataset, draw: &Draw, seen: &mut Observations) {
    let most = match draw.amount {
        Amount::Samples(count) => DIGESTED.min(usize::try_from(count).unwrap_or(DIGESTED)),
        Amount::Sessions(_) | Amount::Unknown => DIGESTED,
    };
    let first = match drawn(plugin, draw, most, seen, &mut || STEP) {
        Ok(drawn) => drawn,
        Err(error) => return seen.ended("drawing samples", &error),
    };
    let (spare, lines_of_all) = (lines(&first.spare), lines(&first.samples));
    let dice = &mut Dice::new(0);
    let mut random = || 1 + dice.below(STEP);
    let steps: [(&str, &mut dyn FnMut() -> usize); 4] = [
        ("in the same steps", &mut || STEP),
        ("one by one", &mut || 1),
        ("all at once", &mut || DIGESTED),
        ("in steps of random sizes", &mut random),
    ];
    for (how, step) in steps {
        let doing = format!("drawing samples again, {how}, in a fresh instance");
        match drawn(plugin, draw, most, seen, step) {
            Ok(drawn) => {
                let what = || format!("{doing}, gives different samples");
                if !seen.same(what, &spare, &lines(&drawn.spare))
                    || !seen.same(what, &lines_of_all, &lines(&drawn.samples))
                {
                    return;
                }
                let what = || format!("{doing}, gives different remarks");
                let [before, after] =
                    [&first.remarks, &drawn.remarks].map(|of| format::remarks(of));
                // Whoever has given more may have read more.
                if drawn.given == first.given && !seen.same(what, &before, &after) {
                    return;
                }
            }
            Err(error) => return seen.misbehaved(&doing, &error),
        }
    }
    check(&first, seen);
    if draw.spare == 0 && seen.failures.is_empty() {
        spared(plugin, draw, most, seen);
    }
    let shown = |samples: &[Sample]| -> Vec<Value> {
        samples.iter().take(SHOWN).map(format::sample).collect()
    };
    let shown = json!({ "spare": shown(&first.spare), "samples": shown(&first.samples) });
    seen.found("samples.json", format!("{shown:#}\n"));
    let digest = hex(&Sha256::digest(lines_of_all.trim_end_matches('\n')));
    let digest = format!("{digest}  {} samples\n", first.samples.len());
    seen.found("digest.txt", digest);
    if !first.remarks.is_empty() {
        seen.found("remarks.json", format::remarks(&first.remarks));
    }
}

fn drawn(
    plugin: &Dataset,
    draw: &Draw,
    most: usize,
    seen: &mut Observations,
    step: &mut dyn FnMut() -> usize,
) -> Result<DrawnSamples, PluginError> {
    seen.checks.draws += 1;
    let mut sequence = plugin.open(draw.seed, draw.amount)?;
    let spare = match draw.spare {
        0 => Vec::new(),
        spare => sequence.spare(spare)?,
    };
    let mut samples: Vec<Sample> = Vec::new();
    let mut needless = None;
    while samples.len() < most && needless.is_none() {
        let limit = (most - samples.len()).min(step().max(1));
        let more = sequence.next(u32::try_from(limit).unwrap_or(u32::MAX))?;
        if more.is_empty() {
            break;
        }
        samples.extend(more);
        needless = beyond(&samples, draw.amount);
    }
    let given = samples.len();
    samples.truncate(needless.unwrap_or(given));
    let remarks = sequence.remarks()?;
    Ok(DrawnSamples { spare, samples, given, remarks })
}

/// Draws with a spare sample too, where a case asks for none: most runs do.
fn spared(plugin: &Dataset, draw: &Draw, most: usize, seen: &mut Observations) {
    let spare = &Draw {
        spare: 1,
        files: draw.files.clone(),
        tokenizer: Arc::clone(&draw.tokenizer),
        ..*draw
    };
    match drawn(plugin, spare, most, seen, &mut || STEP) {
        Ok(drawn) => check(&drawn, seen),
        Err(error) => seen.misbehaved("drawing a spare sample and then the others", &error),
    }
}

/// The position of the first sample that belongs to no session that is measured.
fn beyond(samples: &[Sample], amount: Amount) -> Option<usize> {
    let Amount::Sessions(sessions) = amount else { return None };
    let roots = samples.iter().enumerate();
    let mut roots = roots.filter(|(_, sample)| sample.after.is_empty());
    let (position, _) = roots.nth(usize::try_from(sessions).unwrap_or(usize::MAX))?;
    Some(position)
}

/// Checks the rules for every dataset.
fn check(drawn: &DrawnSamples, seen: &mut Observations) {
    let mut ids = BTreeSet::new();
    for sample in drawn.spare.iter().chain(&drawn.samples) {
        if !ids.insert(&sample.id) {
            seen.breach(format!(
                "two samples have the id `{}`; ids must be unique within a run",
                sample.id
            ));
            break;
        }
    }
    if let Some(what) = sessions::fault(&drawn.samples) {
        seen.breach(if drawn.spare.is_empty() { what } else { format!(
                "after `spare`: {what}; of a session whose first sample was a spare one, `next` must not return the rest"
            ) });
    }
    if let Some(sample) = drawn.spare.iter().find(|one| !one.after.is_empty()) {
        seen.breach(format!(
            "the spare sample `{}` depends on others; spare samples stand alone",
            sample.id
        ));
    }
    let measured: BTreeSet<String> =
        drawn.samples.iter().map(|sample| format::prompt(&sample.prompt).to_string()).collect();
    for sample in &drawn.spare {
        if measured.contains(&format::prompt(&sample.prompt).to_string()) {
            seen.breach(format!(
                "the prompt of the spare sample `{}` is also measured; `spare` must not return a prompt that `next` returns",
                sample.id
            ));
            break;
        }
    }
}
