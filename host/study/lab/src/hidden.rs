//! The lab file without its secrets: the content of a lab's folder and of pages, and the source of
//! trials' ids.
//!
//! `model::redact` finds secrets by name, such as the value of `HF_TOKEN`, `--api-key` or a header,
//! and by look. Different values of one name stay different, as `[redacted]` and `[redacted 2]`, so
//! a lab that varies a secret has as many trials as before.

use model::redact::{self, SHORTEST_KNOWN as SHORTEST};
use model::target::REDACTED;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Tables whose values are secrets whatever their names are.
const SECRET_TABLES: [&str; 1] = ["headers"];
/// Keys of a lab that hold text for people, names and conditions. In these, only secrets that are
/// already known are hidden.
const WORDS: [&str; 7] = ["name", "about", "exclude", "when", "objective", "scenarios", "strategy"];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PublicFile {
    /// Its text; a lab file too.
    pub text: String,
    /// True if there were any secrets.
    pub is_changed: bool,
    /// Secrets that are long enough to be looked for elsewhere.
    pub secrets: Vec<String>,
}

/// Hides the secrets of a lab file, if its syntax is valid.
pub(crate) fn hide(text: &str) -> Option<PublicFile> {
    let whole = Value::Object(json(DeTable::parse(text).ok()?.get_ref()));
    let mut shown = whole.clone();
    let mut hiding = Hiding::default();
    hiding.value(&mut shown, "", false);
    // Then hide known secrets wherever else they stand; a secret may contain another.
    hiding.0.retain(|secret| secret.text.len() >= SHORTEST);
    hiding.0.sort_by_key(|secret| std::cmp::Reverse(secret.text.len()));
    hiding.known(&mut shown);
    let is_changed = shown != whole;
    let mut secrets: Vec<String> = hiding.0.into_iter().map(|secret| secret.text).collect();
    secrets.dedup();
    Some(PublicFile { text: toml::to_string(&shown).ok()?, is_changed, secrets })
}

/// A table in the order of the file.
fn json(table: &DeTable<'_>) -> Map<String, Value> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter();
    entries.map(|(key, value)| (key.get_ref().to_string(), to_json(value))).collect()
}

fn to_json(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::Table(table) => Value::Object(json(table)),
        DeValue::Array(items) => items.iter().map(to_json).collect(),
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(yes) => (*yes).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix());
            whole.map_or_else(|_| number.as_str().into(), Value::from)
        }
        DeValue::Float(number) => {
            let number = number.as_str();
            let finite = number.parse().ok().and_then(serde_json::Number::from_f64);
            finite.map_or_else(|| number.into(), Value::Number)
        }
    }
}

/// A secret, its name in the file, and its replacement.
struct Secret {
    name: String,
    text: String,
    mark: String,
}

#[derive(Default)]
struct Hiding(Vec<Secret>);

impl Hiding {
    fn value(&mut self, value: &mut Value, name: &str, is_secret: bool) {
        match value {
            Value::String(text) if is_secret => *text = self.mark(name, text),
            Value::Number(number) if is_secret => {
                *value = self.mark(name, &number.to_string()).into();
            }
            Value::String(text) if !WORDS.contains(&name) => {
                let shown = redact::command(text);
                self.parts(text, &shown);
                *text = shown;
            }
            // Values to try, or the words of a command line.
            Value::Array(items)
                if !is_secret && !WORDS.contains(&name) && items.iter().all(Value::is_string) =>
            {
                self.words(items);
            }
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.value(item, name, is_secret));
            }
            // `api-key = { values = ["a", "b"] }`: an option of that name.
            Value::Object(table) if is_secret && !SECRET_TABLES.contains(&name) => {
                table.iter_mut().for_each(|(key, value)| self.value(value, name, key != "when"));
            }
            Value::Object(table) => {
                for (key, value) in table {
                    let is_secret = SECRET_TABLES.contains(&name) || redact::is_secret(key);
                    self.value(value, key, is_secret);
                }
            }
            _ => {}
        }
    }

    fn words(&mut self, items: &mut [Value]) {
        let before: Vec<String> =
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
        let own = std::cell::RefCell::new(&mut *self);
        let shown = redact::words(&before, &|flag, word| own.borrow_mut().mark(flag, word));
        let mut seen: Vec<(String, &String)> = Vec::new();
        for ((item, word), mut shown) in items.iter_mut().zip(&before).zip(shown) {
            if shown != *word {
                self.parts(word, &shown);
                // Different words stay different.
                let is_same =
                    |(text, source): &&(String, &String)| *text == shown && *source != word;
                let others = seen.iter().filter(is_same).count();
                seen.push((shown.clone(), word));
                if others > 0 {
                    shown = format!("{shown} {}", others + 1);
                }
            }
            *item = shown.into();
        }
    }

    /// Notes the parts of a text that were removed.
    fn parts(&mut self, text: &str, shown: &str) {
        let parts = |text: &str| -> Vec<String> {
            let ends = |c: char| c.is_whitespace() || "\"'=@:/,;{}[]".contains(c);
            text.split(ends).map(str::to_owned).collect()
        };
        let left = parts(shown);
        for part in parts(text).into_iter().filter(|part| !left.contains(part)) {
            self.0.push(Secret { name: String::new(), text: part, mark: REDACTED.to_owned() });
        }
    }

    /// Returns the text that replaces a secret; references to variables and marks stay unchanged.
    fn mark(&mut self, name: &str, secret: &str) -> String {
        let is_hidden = secret.starts_with("[redacted") && secret.ends_with(']');
        if is_hidden || secret.is_empty() || is_reference(secret) {
            return secret.to_owned();
        }
        let mut same_name = self.0.iter().filter(|known| known.name == name);
        if let Some(known) = same_name.clone().find(|known| known.text == secret) {
            return known.mark.clone();
        }
        let mark = match same_name.by_ref().count() {
            0 => REDACTED.to_owned(),
            others => format!("[redacted {}]", others + 1),
        };
        let (name, text) = (name.to_owned(), secret.to_owned());
        self.0.push(Secret { name, text, mark: mark.clone() });
        mark
    }

    fn known(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for secret in &self.0 {
                    *text = text.replace(&secret.text, &secret.mark);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.known(item)),
            Value::Object(table) => table.values_mut().for_each(|value| self.known(value)),
            _ => {}
        }
    }
}

/// True if a text consists only of references `${NAME}`.
fn is_reference(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((_, after)) = after.split_once('}') else { return false };
        if before.trim_start_matches("Bearer ").len() > 1 {
            return false;
        }
        rest = after;
    }
    rest.is_empty() && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lab;

    const FILE: &str = r##"name = "x # no comment"
about = "What each token: costs"
strategy = "matrix"
scenarios = "a"
# HF_TOKEN = "hf_commentedout99"
[set.target.headers]
x-team = "header-secret-1"
[[engines]]
name = "e"   # --api-key sk-inacomment1234
launch = ["serve", "--api-key", "word-secret-22", "--auth-token=joined-secret-3", "sh -c 'PASSWORD=inner-secret-4 run'", "--max-tokens=5"]
base-url = "http://me:url-secret-5@127.0.0.1:8000"
exclude = "admin-key == 'option-secret-7'"
env = { HF_TOKEN = "${HF_TOKEN}", DB_PASSWORD = "hunter2", OTHER = "hf_looks_like_0123" }
[engines.options]
admin-key = ["option-secret-6", "option-secret-7"]
max-num-seqs = [1, 2]
"##;

    const SECRETS: [&str; 10] = [
        "commentedout99",
        "inacomment1234",
        "header-secret-1",
        "word-secret-22",
        "joined-secret-3",
        "inner-secret-4",
        "url-secret-5",
        "option-secret-6",
        "option-secret-7",
        "hunter2",
    ];

    #[test]
    fn hides_secrets_and_stays_a_lab_file() {
        let hidden = hide(FILE).unwrap();
        for secret in SECRETS.iter().chain(&["hf_looks_like_0123"]) {
            assert!(!hidden.text.contains(secret), "{secret}: {}", hidden.text);
        }
        for kept in [
            "x # no comment",
            "What each token: costs",
            "${HF_TOKEN}",
            "--max-tokens=5",
            "max-num-seqs = [1, 2]",
            r#"admin-key = ["[redacted]", "[redacted 2]"]"#,
        ] {
            assert!(hidden.text.contains(kept), "{kept}: {}", hidden.text);
        }
        let again = hide(&hidden.text).unwrap();
        assert_eq!(again.text, hidden.text, "hidden text stays unchanged");
        assert!(hidden.secrets.iter().any(|secret| secret == "word-secret-22"));
    }

    #[test]
    fn trial_ids_do_not_depend_on_secrets() {
        let lab = Lab::parse("lab.toml", FILE).unwrap();
        let kept = Lab::parse("lab.toml", lab.kept()).unwrap();
        let ids = |lab: &Lab| -> Vec<String> {
            let trials = lab.matrix(0);
            trials.iter().map(|trial| format!("{} {}", trial.id, lab.label(trial))).collect()
        };
        assert_eq!(ids(&lab), ids(&kept));
        assert_eq!(ids(&lab).len(), 2, "{:?}", ids(&lab));
        assert!(lab.matrix(0)[0].launch.as_ref().unwrap().contains(&"word-secret-22".to_owned()));
        // A changed key is no reason to measure again.
        let turned = Lab::parse("lab.toml", &FILE.replace("hunter2", "hunter3")).unwrap();
        assert_eq!(ids(&lab), ids(&turned));
        let other = Lab::parse("lab.toml", &FILE.replace("--max-tokens=5", "--max-tokens=6"));
        assert_ne!(ids(&lab), ids(&other.unwrap()));
        for label in ids(&lab) {
            assert!(!label.contains("option-secret"), "{label}");
        }
    }

    #[test]
    fn distinguishes_short_secrets_and_references() {
        assert!(is_reference("${A}") && is_reference("Bearer ${A}") && is_reference("${A}:${B}"));
        assert!(!is_reference("abc${A}") && !is_reference("${A}abc") && !is_reference(""));
        let hidden = hide("env = { A_KEY = \"x\", B_KEY = \"y\" }\npassword = 1234\n").unwrap();
        let expected =
            "password = \"[redacted]\"\n\n[env]\nA_KEY = \"[redacted]\"\nB_KEY = \"[redacted]\"\n";
        assert_eq!(hidden.text, expected);
    }
}
