//! Conditions on options: expressions of Jinja, such as `max-num-seqs >= 128 and quantization !=
//! 'none'`. A name may hold hyphens and dots, and `&&`, `||` and `!` are written too.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Environment, Error, Value};

/// The most steps that a condition may take.
const MOST_STEPS: u64 = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The expression, with identifiers in the places of names.
    expression: String,
    /// The name of each identifier.
    names: BTreeMap<String, String>,
}

impl Condition {
    /// Reads a condition. Errors: the mistake in it, as text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut condition = Condition { expression: String::new(), names: BTreeMap::new() };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (part, jinja) = match first {
                '\'' | '"' => {
                    let end = rest[1..].find(first).map_or(rest.len(), |end| end + 2);
                    (&rest[..end], rest[..end].to_owned())
                }
                _ if is_of_name(first) => {
                    let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
                    (&rest[..end], condition.word(&rest[..end]))
                }
                _ if rest.starts_with("&&") => (&rest[..2], " and ".to_owned()),
                _ if rest.starts_with("||") => (&rest[..2], " or ".to_owned()),
                _ if rest.starts_with("!=") => (&rest[..2], "!=".to_owned()),
                '!' => (&rest[..1], " not ".to_owned()),
                _ => (&rest[..first.len_utf8()], first.to_string()),
            };
            condition.expression.push_str(&jinja);
            rest = &rest[part.len()..];
        }
        Environment::empty().compile_expression(&condition.expression).map_err(message)?;
        Ok(condition)
    }

    /// A word of the expression: a name as an identifier, or a number as it is.
    fn word(&mut self, word: &str) -> String {
        let begins = word.trim_start_matches('-').chars().next();
        if !begins.is_some_and(|c| c.is_alphabetic() || c == '_') {
            return word.to_owned();
        }
        let identifier = identifier(word);
        self.names.insert(identifier.clone(), word.to_owned());
        identifier
    }

    /// The names in it that are none of these.
    pub fn unknown<'n>(&self, known: impl Iterator<Item = &'n str>) -> Vec<&str> {
        let environment = Environment::empty();
        let Ok(expression) = environment.compile_expression(&self.expression) else {
            return Vec::new();
        };
        let known: Vec<String> = known.map(identifier).collect();
        let mut names: Vec<&str> = (expression.undeclared_variables(false).iter())
            .filter(|name| !known.contains(name))
            .filter_map(|name| self.names.get(name).map(String::as_str))
            .collect();
        names.sort_unstable();
        names
    }

    /// True if it holds for these values by name. A name without a value is `undefined`. Errors:
    /// the reason why it is neither true nor false, as text.
    pub fn holds<'v>(
        &self,
        values: impl IntoIterator<Item = (&'v str, &'v serde_json::Value)>,
    ) -> Result<bool, String> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(MOST_STEPS));
        let values: BTreeMap<String, Value> = (values.into_iter())
            .map(|(name, value)| (identifier(name), Value::from(Serde(value))))
            .collect();
        let expression = environment.compile_expression(&self.expression);
        let value = expression.and_then(|expression| expression.eval(values));
        value.map(|value| value.is_true()).map_err(message)
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "-_.".contains(c)
}

fn identifier(name: &str) -> String {
    name.replace(['-', '.'], "_")
}

fn message(error: Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_hold_or_do_not() {
        let options = json!({"max-num-seqs": 256, "quant": "fp8", "share": 0.9, "eager": true});
        let holds = |text: &str| {
            let condition =
                Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let values = options.as_object().unwrap().iter();
            condition.holds(values.map(|(name, value)| (name.as_str(), value))).unwrap()
        };
        for (text, wanted) in [
            ("max-num-seqs >= 128", true),
            ("max-num-seqs==256.0", true),
            ("max-num-seqs < 256 || quant == 'fp8'", true),
            ("max-num-seqs < 256 or quant == 'fp8' and not eager", false),
            ("(max-num-seqs < 256 || quant == \"fp8\") && !(eager == false)", true),
            ("share>0.5&&share<1", true),
            ("quant != 'a-b && c'", true),
            ("quant == 8", false),
            ("none-such == 1", false),
            ("none-such is defined and none-such < 8", false),
        ] {
            assert_eq!(holds(text), wanted, "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for text in ["", "seqs = 1", "seqs == ", "seqs == 'fp8", "(seqs == 1", "seqs == 1 2"] {
            assert!(!Condition::parse(text).expect_err(text).is_empty());
        }
        let condition = Condition::parse("a-b == 'c-d' && e-f > 1").unwrap();
        assert_eq!(condition.unknown(["a-b"].into_iter()), ["e-f"]);
    }
}
