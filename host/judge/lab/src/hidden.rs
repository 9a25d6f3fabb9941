//! The lab file without its secrets: what a lab's folder keeps, what trials are identified by, and
//! what pages show.
//!
//! A secret is what is named as secrets are, such as the value of `HF_TOKEN`, `--api-key` or a
//! header, and what looks like one. Different values of one name stay different, as `[redacted]`
//! and `[redacted 2]`, so a lab that varies one has as many trials as before. Comments are left
//! out: they hold what was commented out.

use std::collections::BTreeMap;
use std::ops::Range;

use model::redact::{self, SHORTEST_KNOWN as SHORTEST};
use model::target::REDACTED;
use reader::toml_text;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Tables whose values are secrets whatever their names are.
const SECRET_TABLES: [&str; 1] = ["headers"];
/// Keys of a lab that hold words for people, names and conditions, in which only secrets that are
/// known by then are hidden.
const WORDS: [&str; 8] =
    ["name", "about", "exclude", "when", "objective", "scenarios", "strategy", "page"];

/// A lab file without its secrets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hidden {
    /// Its text; a lab file too.
    pub text: String,
    /// True if there were any secrets.
    pub is_changed: bool,
    /// Secrets that are long enough to be looked for elsewhere.
    pub secrets: Vec<String>,
}

/// Hides the secrets of a lab file, if its syntax is right.
pub(crate) fn hide(text: &str) -> Option<Hidden> {
    let table = DeTable::parse(text).ok()?;
    let mut hiding = Hiding::default();
    hiding.table(table.get_ref(), false);
    // Then what is known to be a secret wherever else it stands, as in a condition. One may hold
    // another.
    hiding.secrets.retain(|(secret, _)| secret.len() >= SHORTEST);
    (hiding.secrets).sort_by_key(|(secret, _)| (std::cmp::Reverse(secret.len()), secret.clone()));
    for (place, text) in &hiding.texts {
        let marked = |text: String, (secret, mark): &(String, String)| text.replace(secret, mark);
        let shown = hiding.secrets.iter().fold(text.clone(), marked);
        if shown != *text && !hiding.edits.iter().any(|(edited, _)| edited == place) {
            hiding.edits.push((place.clone(), toml_text::string(&shown)));
        }
    }
    let is_changed = !hiding.edits.is_empty();
    let mut secrets: Vec<String> = hiding.secrets.into_iter().map(|(secret, _)| secret).collect();
    secrets.dedup();
    Some(Hidden { text: edited(text, &hiding.texts, hiding.edits), is_changed, secrets })
}

#[derive(Default)]
struct Hiding {
    /// The different secrets of each name.
    named: BTreeMap<String, Vec<String>>,
    /// Each secret, with what takes its place.
    secrets: Vec<(String, String)>,
    /// Every text and quoted key, and where it stands.
    texts: Vec<(Range<usize>, String)>,
    /// Replacements: the place in the text, and its new text.
    edits: Vec<(Range<usize>, String)>,
}

impl Hiding {
    fn table(&mut self, table: &DeTable<'_>, all_secret: bool) {
        for (name, value) in table {
            self.texts.push((name.span(), String::new()));
            let name = name.get_ref().as_ref();
            let is_secret = all_secret || redact::is_secret(name);
            self.value(value, name, is_secret, SECRET_TABLES.contains(&name));
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, name: &str, is_secret: bool, below: bool) {
        let place = value.span();
        match value.get_ref() {
            DeValue::String(text) => {
                self.texts.push((place.clone(), text.to_string()));
                let shown = match is_secret {
                    true => self.mark(name, text),
                    false if WORDS.contains(&name) => return,
                    false => self.command(text),
                };
                self.edit(place, text, &shown);
            }
            DeValue::Integer(_) | DeValue::Float(_) if is_secret => {
                let text = match value.get_ref() {
                    DeValue::Integer(number) => number.as_str().to_owned(),
                    DeValue::Float(number) => number.as_str().to_owned(),
                    _ => return,
                };
                let shown = self.mark(name, &text);
                self.edit(place, &text, &shown);
            }
            DeValue::Array(items) => {
                let words: Option<Vec<&str>> =
                    items.iter().map(|item| item.get_ref().as_str()).collect();
                match words {
                    Some(words) if !is_secret && !WORDS.contains(&name) => {
                        let places = items.iter().map(Spanned::span).collect();
                        self.words(&words, places);
                    }
                    _ => (items.iter()).for_each(|item| self.value(item, name, is_secret, below)),
                }
            }
            DeValue::Table(table) => {
                // `api-key = { values = ["a", "b"] }`: an option of that name.
                match is_secret {
                    true => {
                        for (key, value) in table {
                            self.texts.push((key.span(), String::new()));
                            self.value(value, name, key.get_ref() != "when", below);
                        }
                    }
                    false => self.table(table, below),
                }
            }
            _ => {}
        }
    }

    /// A list of texts: the words of a command line, or values to try.
    fn words(&mut self, words: &[&str], places: Vec<Range<usize>>) {
        let mut secret_of: Option<&str> = None;
        let mut before: Vec<(String, String)> = Vec::new();
        for (word, place) in words.iter().zip(places) {
            self.texts.push((place.clone(), (*word).to_owned()));
            let is_flag = word.starts_with('-');
            let mut shown = match secret_of.take().filter(|_| !is_flag) {
                Some(flag) => self.mark(flag, word),
                None => self.command(word),
            };
            // Different words stay different.
            if shown != **word {
                let same = |(text, of): &&(String, String)| *text == shown && of != word;
                let others = before.iter().filter(same).count();
                before.push((shown.clone(), (*word).to_owned()));
                if others > 0 {
                    shown = format!("{shown} {}", others + 1);
                }
            }
            let named = is_flag && !word.contains('=') && redact::is_secret(word);
            secret_of = named.then_some(word);
            self.edit(place, word, &shown);
        }
    }

    /// A text without what is named or looks like a secret in it.
    fn command(&mut self, text: &str) -> String {
        let shown = redact::command(text);
        if shown != text {
            let parts = |text: &str| -> Vec<String> {
                let ends = |c: char| c.is_whitespace() || "\"'=@:/,;{}[]".contains(c);
                text.split(ends).map(str::to_owned).collect()
            };
            let left = parts(&shown);
            let gone = parts(text).into_iter().filter(|part| !left.contains(part));
            self.secrets.extend(gone.map(|part| (part, REDACTED.to_owned())));
        }
        shown
    }

    /// Returns the text that replaces the secret of that name. A reference to a variable is no
    /// secret, and what is hidden stays as it is.
    fn mark(&mut self, name: &str, secret: &str) -> String {
        let is_hidden = secret.starts_with("[redacted") && secret.ends_with(']');
        if is_hidden || secret.is_empty() || is_reference(secret) {
            return secret.to_owned();
        }
        let of_name = self.named.entry(name.to_owned()).or_default();
        let place = of_name.iter().position(|known| known == secret);
        let place = place.unwrap_or_else(|| {
            of_name.push(secret.to_owned());
            of_name.len() - 1
        });
        let mark = match place {
            0 => REDACTED.to_owned(),
            more => format!("[redacted {}]", more + 1),
        };
        self.secrets.push((secret.to_owned(), mark.clone()));
        mark
    }

    fn edit(&mut self, place: Range<usize>, text: &str, shown: &str) {
        if text != shown {
            self.edits.push((place, toml_text::string(shown)));
        }
    }
}

/// True if a text is one `${NAME}` or several, and nothing else that could be a secret.
fn is_reference(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((_, after)) = after.split_once('}') else {
            return false;
        };
        if before.trim_start_matches("Bearer ").len() > 1 {
            return false;
        }
        rest = after;
    }
    rest.is_empty() && !text.is_empty()
}

/// The text with its edits and without its comments.
fn edited(
    text: &str,
    texts: &[(Range<usize>, String)],
    mut edits: Vec<(Range<usize>, String)>,
) -> String {
    let mut quoted: Vec<&Range<usize>> = texts.iter().map(|(place, _)| place).collect();
    quoted.sort_by_key(|place| place.start);
    // A sign within quotes begins no comment.
    let mut next = 0;
    let mut quoted = quoted.into_iter().peekable();
    while next < text.len() {
        while quoted.next_if(|place| place.end <= next).is_some() {}
        let Some(at) = text[next..].find('#').map(|at| at + next) else {
            break;
        };
        while quoted.next_if(|place| place.end <= at).is_some() {}
        if let Some(place) = quoted.peek().filter(|place| place.start <= at) {
            next = place.end;
            continue;
        }
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        edits.push((at..end, String::new()));
        next = end;
    }
    edits.sort_by_key(|(place, _)| place.start);
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for (place, with) in edits {
        out.push_str(&text[done..place.start]);
        out.push_str(&with);
        done = place.end;
    }
    out.push_str(&text[done..]);
    out
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
    fn the_lab_file_stays_one_and_holds_no_secret() {
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
        assert_eq!(again.text, hidden.text, "what is hidden stays as it is");
        assert!(hidden.secrets.iter().any(|secret| secret == "word-secret-22"));
    }

    #[test]
    fn trials_are_the_same_with_their_secrets_and_without() {
        let lab = Lab::parse("lab.toml", FILE).unwrap();
        let kept = Lab::parse("lab.toml", lab.kept()).unwrap();
        let ids = |lab: &Lab| -> Vec<String> {
            let trials = lab.matrix(0);
            trials.iter().map(|trial| format!("{} {}", trial.id, lab.label(trial))).collect()
        };
        assert_eq!(ids(&lab), ids(&kept));
        assert_eq!(ids(&lab).len(), 2, "{:?}", ids(&lab));
        assert!(lab.matrix(0)[0].launch.as_ref().unwrap().contains(&"word-secret-22".to_owned()));
        // A key that is changed is no reason to measure again.
        let turned = Lab::parse("lab.toml", &FILE.replace("hunter2", "hunter3")).unwrap();
        assert_eq!(ids(&lab), ids(&turned));
        let other = Lab::parse("lab.toml", &FILE.replace("--max-tokens=5", "--max-tokens=6"));
        assert_ne!(ids(&lab), ids(&other.unwrap()));
        for label in ids(&lab) {
            assert!(!label.contains("option-secret"), "{label}");
        }
    }

    #[test]
    fn short_secrets_and_references_are_told_apart() {
        assert!(is_reference("${A}") && is_reference("Bearer ${A}") && is_reference("${A}:${B}"));
        assert!(!is_reference("abc${A}") && !is_reference("${A}abc") && !is_reference(""));
        let hidden = hide("env = { A_KEY = \"x\", B_KEY = \"y\" }\npassword = 1234\n").unwrap();
        assert_eq!(
            hidden.text,
            "env = { A_KEY = \"[redacted]\", B_KEY = \"[redacted]\" }\npassword = \"[redacted]\"\n"
        );
    }
}
