//! The audit of published results as a page: for each source page the verdicts, the broken rules
//! with their meanings, and the arithmetic of each result. The audit wrote the texts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::steps::printed;

/// Severities and verdicts, the worst first.
const VERDICTS: [&str; 3] = ["invalid", "suspect", "valid"];

/// Asks the program for the published results, and draws them.
pub fn drawn(runner: &Path) -> Result<String> {
    let published = printed(Command::new(runner).args(["published", "--format", "json"]))?;
    text(&serde_json::from_str(&published)?)
}

fn text(audit: &Value) -> Result<String> {
    let all = list(audit, "results")?;
    let mut pages: Vec<(&str, Vec<&Value>)> = Vec::new();
    for result in all {
        let url = word(&result["claim"]["source"], "url")?;
        match pages.iter_mut().find(|(known, _)| *known == url) {
            Some((_, results)) => results.push(result),
            None => pages.push((url, vec![result])),
        }
    }
    let mut text = format!(
        "The program knows {} published results of {} pages: {}.\n",
        all.len(),
        pages.len(),
        verdicts(all)?
    );
    for (url, results) in pages {
        text += &page(url, &results)?;
    }
    Ok(text)
}

fn page(url: &str, results: &[&Value]) -> Result<String> {
    let mut text = format!(
        "\n## {}\n\n<{url}>\n\n{} results: {}.\n\n",
        title(url),
        results.len(),
        verdicts(results.iter().copied())?
    );
    text += &rules(results)?;
    let mut silent = Vec::new();
    for result in results {
        let name = name(result)?;
        let findings = list(result, "findings")?;
        if findings.is_empty() {
            silent.push(format!("`{name}`"));
            continue;
        }
        let verdict = word(result, "verdict")?;
        text += &format!(
            "\n<details><summary><code>{name}</code> \
             <span class=\"verdict {verdict}\">{verdict}</span></summary>\n\n"
        );
        for finding in findings {
            text += &format!(
                "- **{}** `{}`: {}",
                word(finding, "severity")?,
                word(finding, "id")?,
                escaped(word(finding, "seen")?)
            );
            if let Some(formula) = finding["formula"].as_str() {
                text += &format!(". *Explained by:* {}", escaped(formula));
            }
            text += "\n";
        }
        text += "\n</details>\n";
    }
    if !silent.is_empty() {
        text += &format!("\nNo rule is broken in {}.\n", silent.join(", "));
    }
    Ok(text)
}

/// A list of the rules that these results break, each with its count and meaning.
fn rules(results: &[&Value]) -> Result<String> {
    let mut rules: BTreeMap<(usize, &str), (usize, &Value)> = BTreeMap::new();
    for result in results {
        for finding in list(result, "findings")? {
            let severity = word(finding, "severity")?;
            let rank = VERDICTS.iter().position(|known| *known == severity);
            let key = (rank.unwrap_or(VERDICTS.len()), word(finding, "id")?);
            rules.entry(key).or_insert((0, finding)).0 += 1;
        }
    }
    if rules.is_empty() {
        return Ok(String::new());
    }
    let mut list = String::new();
    for ((_, id), (count, finding)) in rules {
        let severity = match word(finding, "severity")? {
            "note" => "a note only",
            severity => severity,
        };
        list += &format!(
            "- **`{id}`**, {severity}, in {count}: {}. *To do:* {}.\n",
            escaped(word(finding, "why")?),
            escaped(word(finding, "advice")?)
        );
    }
    Ok(list)
}

fn verdicts<'a>(results: impl IntoIterator<Item = &'a Value>) -> Result<String> {
    let mut counts = [0; VERDICTS.len()];
    for result in results {
        let verdict = word(result, "verdict")?;
        let place = VERDICTS.iter().position(|known| *known == verdict);
        counts[place.with_context(|| format!("no verdict `{verdict}`"))?] += 1;
    }
    let [invalid, suspect, valid] = counts;
    Ok(format!("{valid} valid, {suspect} suspect, {invalid} invalid"))
}

fn name(result: &Value) -> Result<&str> {
    let file = word(&result["claim"]["source"], "file")?;
    Ok(file.trim_start_matches("published:"))
}

/// A page's heading: its address without the part that all addresses share.
fn title(url: &str) -> String {
    url.trim_start_matches("https://")
        .trim_start_matches("github.com/")
        .replace("/blob/main/", ": ")
        .trim_end_matches('/')
        .to_owned()
}

fn escaped(words: &str) -> String {
    let mut escaped = String::new();
    for letter in words.chars() {
        if matches!(letter, '\\' | '*' | '_' | '`' | '<' | '[' | ']' | '|') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    let list = value[key].as_array();
    list.with_context(|| format!("`runner published` has no list `{key}`"))
}

fn word<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    let word = value[key].as_str();
    word.with_context(|| format!("`runner published` has no text `{key}`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::text;

    #[test]
    fn each_result_has_its_rule_and_arithmetic() {
        let source =
            |name: &str| json!({ "source": { "file": name, "url": "https://a.example/b/" } });
        let audit = json!({ "results": [
            { "claim": source("published:x/one"), "verdict": "invalid", "findings": [{
                "id": "peak-impossible", "severity": "invalid", "seen": "3 * 4 is 13",
                "formula": "3 + 10", "why": "it is 12", "advice": "count again",
            }] },
            { "claim": source("published:x/two"), "verdict": "valid", "findings": [] },
        ] });
        let text = text(&audit).unwrap();
        for part in [
            "The program knows 2 published results of 1 pages: 1 valid, 0 suspect, 1 invalid.",
            "## a.example/b\n",
            "- **`peak-impossible`**, invalid, in 1: it is 12. *To do:* count again.\n",
            "<code>x/one</code> <span class=\"verdict invalid\">",
            "- **invalid** `peak-impossible`: 3 \\* 4 is 13. *Explained by:* 3 + 10\n",
            "No rule is broken in `x/two`.",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
