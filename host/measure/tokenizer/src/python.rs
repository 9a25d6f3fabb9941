//! JSON as Python's `json.dumps` writes it. Models were trained on its spaces, through
//! transformers' `tojson`, and other tools write their result files with it.
//!
//! This module owns the notation: separators, escapes, and floats as `repr` writes them. The set of
//! values is left to others; serde's values come through [`Serde`](minijinja::value::Serde).

use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{ErrorKind, Value};

/// The depth to which values may nest.
const DEPTH: usize = 128;
/// Most spaces of an indentation.
const INDENT: usize = 64;

pub struct Style {
    indent: Option<String>,
    /// Between items, and between a key and its value.
    separators: [String; 2],
    ascii: bool,
    sorted: bool,
}

impl Default for Style {
    /// The notation of `json.dumps` without arguments.
    fn default() -> Self {
        Style {
            indent: None,
            separators: [", ".to_owned(), ": ".to_owned()],
            ascii: true,
            sorted: false,
        }
    }
}

impl Style {
    /// The style of a filter's arguments, with the defaults of `json.dumps` except `ensure_ascii`.
    pub(super) fn from_kwargs(options: &Kwargs) -> Result<Self, minijinja::Error> {
        let indent = options.get::<Option<Value>>("indent")?;
        let indent = match indent.filter(|indent| !indent.is_none()) {
            None => None,
            Some(indent) => match (indent.as_str(), indent.as_usize()) {
                (Some(text), _) if text.len() <= INDENT => Some(text.to_owned()),
                (None, Some(spaces)) if spaces <= INDENT => Some(" ".repeat(spaces)),
                _ => {
                    return Err(wrong(format!("tojson: `indent` is not a number up to {INDENT}")));
                }
            },
        };
        let items = if indent.is_some() { "," } else { ", " };
        let mut separators = [items.to_owned(), ": ".to_owned()];
        let given = options.get::<Option<Value>>("separators")?;
        if let Some(given) = given.filter(|given| !given.is_none()) {
            for (at, separator) in separators.iter_mut().enumerate() {
                *separator = given.get_item(&Value::from(at))?.to_string();
            }
        }
        let switch = |key| options.get::<Option<bool>>(key).map(|on| on.unwrap_or(false));
        Ok(Style {
            indent,
            separators,
            ascii: switch("ensure_ascii")?,
            sorted: switch("sort_keys")?,
        })
    }
}

/// A value's JSON, up to a size.
pub fn text(value: &Value, style: &Style, most: usize) -> Result<String, String> {
    let mut writer = Writer { style, most, text: String::new() };
    writer.value(value, 0)?;
    Ok(writer.text)
}

struct Writer<'s> {
    style: &'s Style,
    most: usize,
    text: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > DEPTH {
            return Err(format!("tojson: values nest deeper than {DEPTH}"));
        }
        if self.text.len() > self.most {
            return Err(format!("tojson: more than {} MiB", self.most >> 20));
        }
        match value.kind() {
            ValueKind::None => self.text.push_str("null"),
            ValueKind::Bool => self.text.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.text.push_str(&number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter().map_err(|cause| cause.to_string())?;
                self.all(['[', ']'], items, depth, |writer, item| writer.value(&item, depth + 1))?;
            }
            ValueKind::Map => {
                let keys = value.try_iter().map_err(|cause| cause.to_string())?;
                let mut keys: Vec<Value> = keys.collect();
                if self.style.sorted {
                    keys.sort();
                }
                self.all(['{', '}'], keys.into_iter(), depth, |writer, key| {
                    writer.key(&key)?;
                    writer.text.push_str(&writer.style.separators[1]);
                    let item = value.get_item(&key).map_err(|cause| cause.to_string())?;
                    writer.value(&item, depth + 1)
                })?;
            }
            other => return Err(format!("tojson: a value of the kind `{other}` is no JSON")),
        }
        Ok(())
    }

    fn key(&mut self, key: &Value) -> Result<(), String> {
        match key.kind() {
            ValueKind::String => self.string(key.as_str().unwrap_or_default()),
            ValueKind::None => self.text.push_str("\"null\""),
            ValueKind::Bool if key.is_true() => self.text.push_str("\"true\""),
            ValueKind::Bool => self.text.push_str("\"false\""),
            ValueKind::Number => {
                let number = number(key);
                self.string(&number);
            }
            other => return Err(format!("tojson: a key of the kind `{other}` is no JSON")),
        }
        Ok(())
    }

    fn all<T>(
        &mut self,
        [open, close]: [char; 2],
        items: impl Iterator<Item = T>,
        depth: usize,
        mut each: impl FnMut(&mut Self, T) -> Result<(), String>,
    ) -> Result<(), String> {
        self.text.push(open);
        let mut any = false;
        for item in items {
            if any {
                self.text.push_str(&self.style.separators[0]);
            }
            any = true;
            self.line(depth + 1);
            each(self, item)?;
        }
        if any {
            self.line(depth);
        }
        self.text.push(close);
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.style.indent {
            self.text.push('\n');
            for _ in 0..depth {
                self.text.push_str(indent);
            }
        }
    }

    fn string(&mut self, string: &str) {
        self.text.push('"');
        for c in string.chars() {
            match c {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                '\u{8}' => self.text.push_str("\\b"),
                '\u{c}' => self.text.push_str("\\f"),
                ..' ' => self.escape(c as u16),
                '\u{7f}'.. if self.style.ascii => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        self.escape(*unit);
                    }
                }
                _ => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    fn escape(&mut self, unit: u16) {
        let _ = write!(self.text, "\\u{unit:04x}");
    }
}

pub(super) fn wrong(cause: String) -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, cause)
}

/// A number as Python's JSON has it.
fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        _ if value.is_integer() => value.to_string(),
        Ok(float) if float.is_nan() => "NaN".to_owned(),
        Ok(f64::INFINITY) => "Infinity".to_owned(),
        Ok(f64::NEG_INFINITY) => "-Infinity".to_owned(),
        _ => float(value),
    }
}

/// A number with a fraction as Python prints it: the shortest digits that mean it, with an exponent
/// where it is very small or large.
pub(super) fn float(value: &Value) -> String {
    let Ok(float) = f64::try_from(value.clone()) else { return value.to_string() };
    if !float.is_finite() {
        return float.to_string().to_lowercase();
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return match float.to_string() {
            whole if !whole.contains('.') => whole + ".0",
            fraction => fraction,
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use minijinja::value::Serde;

    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (float, text) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e100, "1.25e+100"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(number(&Value::from(float)), text);
        }
        assert_eq!(number(&Value::from(-3)), "-3");
    }

    #[test]
    fn values_of_serde_are_written_as_json_dumps_writes_them() {
        let value = Value::from_pairs([
            ("é", Value::from("a\n\"ü\" 😀")),
            ("rate", Value::from(f64::INFINITY)),
            ("peak", Value::from(1.0)),
            ("more", Value::from(1)),
            ("peak", Value::from(303.0)),
            ("list", Value::from(Serde([Some(1), None]))),
            ("of", Value::from(Serde(BTreeMap::from([("a", 1), ("b", 2)])))),
        ]);
        // json.dumps({"é": "a\n\"ü\" 😀", "rate": math.inf, "peak": 303.0, "more": 1, "list": [1,
        // None], "of": {"a": 1, "b": 2}})
        let expected = r#"{"\u00e9": "a\n\"\u00fc\" \ud83d\ude00", "rate": Infinity, "peak": 303.0, "more": 1, "list": [1, null], "of": {"a": 1, "b": 2}}"#;
        assert_eq!(text(&value, &Style::default(), usize::MAX).unwrap(), expected);
    }
}
