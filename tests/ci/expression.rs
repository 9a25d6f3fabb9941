//! The expressions of GitHub Actions that our files use: names, texts, `==`, `!=`, `&&`, `||`.

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Truth(bool),
}

impl Value {
    fn holds(&self) -> bool {
        match self {
            Value::Text(text) => !text.is_empty(),
            Value::Truth(truth) => *truth,
        }
    }

    fn text(self) -> String {
        match self {
            Value::Text(text) => text,
            Value::Truth(truth) => truth.to_string(),
        }
    }
}

/// A text in which `${{ }}` are replaced. `look` knows the names.
pub fn filled(text: &str, look: &dyn Fn(&str) -> String) -> String {
    let mut parts = text.split("${{");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once("}}").expect("an expression ends");
        filled += &value(expression, look).text();
        filled += rest;
    }
    filled
}

pub fn holds(condition: &str, look: &dyn Fn(&str) -> String) -> bool {
    let inner = condition.trim().trim_start_matches("${{");
    value(inner.trim_end_matches("}}"), look).holds()
}

fn value(expression: &str, look: &dyn Fn(&str) -> String) -> Value {
    let expression = expression.trim();
    if let Some((first, rest)) = expression.split_once("||") {
        let first = value(first, look);
        return if first.holds() { first } else { value(rest, look) };
    }
    if let Some((first, rest)) = expression.split_once("&&") {
        let first = value(first, look);
        return if first.holds() { value(rest, look) } else { first };
    }
    if let Some((left, right)) = expression.split_once("==") {
        return Value::Truth(value(left, look).text() == value(right, look).text());
    }
    if let Some((left, right)) = expression.split_once("!=") {
        return Value::Truth(value(left, look).text() != value(right, look).text());
    }
    if let Some(text) = expression.strip_prefix('\'') {
        return Value::Text(text.strip_suffix('\'').expect("a text ends").to_owned());
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    assert!(expression.chars().all(is_name), "{expression}");
    Value::Text(look(expression))
}

#[test]
fn expressions_agree_with_the_system() {
    let look = |name: &str| match name {
        "inputs.sha256" => String::new(),
        "inputs.token" => "secret".to_owned(),
        other => panic!("{other}"),
    };
    let text = "${{ inputs.sha256 == '' && inputs.token || '' }}, ${{ inputs.token != '' }}";
    assert_eq!(filled(text, &look), "secret, true");
    assert!(!holds("${{ inputs.sha256 != '' }}", &look));
}
