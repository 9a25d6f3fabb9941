//! Rules on results side by side: the same figures twice, and prompts that differ from the rest.

use std::collections::BTreeMap;

use super::Finding;
use super::figures::{percent, shown};
use super::id::Id;
use crate::claim::Claim;
use result::finding::Severity;

/// Figures that two results of the same requests may share; as many others are no chance.
const FEW: usize = 6;

/// The most results with the same figures that are named.
const NAMED: usize = 10;

/// Prompts of one scenario differ by less than this share between nearly the same requests.
const ALIKE: f64 = 0.05;

/// The findings of each claim compared with the others, by its index.
pub(super) fn compare(claims: &[Claim]) -> Vec<(usize, Finding)> {
    let mut found = twice(claims);
    found.extend(prompts(claims));
    found
}

fn twice(claims: &[Claim]) -> Vec<(usize, Finding)> {
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, claim) in claims.iter().enumerate() {
        let measured = claim.figures.iter().filter(|(name, stated)| {
            // Counts are of the requests; a zero says nothing.
            !name.starts_with("tokens.") && !name.starts_with("requests.") && stated.value != 0.0
        });
        let words: Vec<String> =
            measured.map(|(name, stated)| format!("{name}={}", stated.value)).collect();
        if words.len() > FEW {
            alike.entry(words.join(" ")).or_default().push(index);
        }
    }
    let mut found = Vec::new();
    for group in alike.into_values().filter(|group| group.len() > 1) {
        let command = |index: usize| &claims[index].about.launch_command;
        // One measurement cannot have been of two set-ups.
        let one = group.iter().all(|index| command(*index) == command(group[0]));
        let (severity, end) = if one {
            (Severity::Note, "")
        } else {
            (Severity::Invalid, ", which was started with other settings")
        };
        for index in &group {
            let others = others(claims, &group, *index);
            let seen = format!("every figure is the same in {others}{end}");
            found.push((*index, Finding::new(Id::SameTwice, severity, seen)));
        }
    }
    found
}

/// The places of the other claims in a group; of many, the first few places.
fn others(claims: &[Claim], group: &[usize], own: usize) -> String {
    let others = group.iter().filter(|other| **other != own);
    let mut places: Vec<String> = others
        .take(NAMED)
        .map(|other| &claims[*other].source)
        .map(|source| match source.headings.last() {
            Some(heading) => format!("{} (`{heading}`)", source.place()),
            None => source.place(),
        })
        .collect();
    if group.len() - 1 > places.len() {
        places.push(format!("{} more", group.len() - 1 - places.len()));
    }
    places.join(" and ")
}

fn prompts(claims: &[Claim]) -> Vec<(usize, Finding)> {
    let mut beside: BTreeMap<(&str, &str, &str, Option<u64>), Vec<usize>> = BTreeMap::new();
    for (index, claim) in claims.iter().enumerate() {
        let Some(scenario) = &claim.scenario else { continue };
        let model = claim.model.as_deref().unwrap_or_default();
        let key = (claim.tool.name(), model, scenario.as_str(), claim.asked.requests);
        beside.entry(key).or_default().push(index);
    }
    let mut found = Vec::new();
    for group in beside.into_values() {
        let tokens = |index: &usize| claims[*index].value("tokens.input");
        let mut totals: BTreeMap<u64, usize> = BTreeMap::new();
        for total in group.iter().filter_map(tokens) {
            *totals.entry(total as u64).or_default() += 1;
        }
        // Only where the others agree to the token are these the same prompts.
        let Some((usual, times)) = totals.into_iter().max_by_key(|(_, times)| *times) else {
            continue;
        };
        if times < 2 || times * 2 <= group.len() {
            continue;
        }
        let each = |index: usize| {
            let answered = claims[index].value("requests.successful");
            Some(claims[index].value("tokens.input")? / answered.filter(|all| *all > 0.0)?)
        };
        let one = group.iter().copied().find(|index| tokens(index) == Some(usual as f64));
        let Some(theirs) = one.and_then(each) else { continue };
        for index in group {
            let Some(own) = each(index).filter(|own| (own / theirs - 1.0).abs() > ALIKE) else {
                continue;
            };
            let seen = format!(
                "prompts have {} tokens on average, but {} in {times} other results of the same scenario ({})",
                shown(own),
                shown(theirs),
                percent(own / theirs - 1.0),
            );
            found.push((index, Finding::new(Id::OtherPrompts, Severity::Invalid, seen)));
        }
    }
    found
}
