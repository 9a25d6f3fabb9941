//! Reads a schema: checks that every keyword is supported and has a possible value, and compiles
//! the patterns. Judging values is left to `valid`.

use std::collections::{BTreeSet, HashMap};

use regex_lite::{Regex, RegexBuilder};
use serde_json::{Map, Value};

const LARGEST: usize = 256 * 1024;

const DEEPEST: usize = 100;

/// The most characters of a pattern, and its most bytes once compiled.
const PATTERN: (usize, usize) = (1000, 64 * 1024);

const MOST_MISTAKES: usize = 10;

/// The form that a keyword's value must have.
enum Form {
    One,
    List,
    Table,
    Patterns,
    Pattern,
    Pointer,
    /// A value for which the test holds; the text says which these are.
    Is(&'static str, fn(&Value) -> bool),
}

fn form(keyword: &str, is_root: bool) -> Option<Form> {
    Some(match keyword {
        "additionalProperties"
        | "contains"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then" => Form::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Form::List,
        "$defs" | "definitions" | "dependentSchemas" | "properties" => Form::Table,
        "patternProperties" => Form::Patterns,
        "maxContains" | "maxItems" | "maxLength" | "maxProperties" | "minContains" | "minItems"
        | "minLength" | "minProperties" => Form::Is("an integer from 0", Value::is_u64),
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => {
            Form::Is("a number", Value::is_number)
        }
        "multipleOf" => {
            Form::Is("a number above 0", |value| value.as_f64().is_some_and(|number| number > 0.0))
        }
        "required" => Form::Is("a list of different texts", are_names),
        "dependentRequired" => Form::Is("a table of lists of different texts", |value| {
            value.as_object().is_some_and(|table| table.values().all(are_names))
        }),
        "type" => Form::Is(
            "null, boolean, integer, number, string, array or object, or a list of them",
            |value| match value {
                Value::Array(list) => are_names(value) && list.iter().all(is_type),
                name => is_type(name),
            },
        ),
        "enum" => Form::Is("a list", Value::is_array),
        "uniqueItems" => Form::Is("true or false", Value::is_boolean),
        "pattern" => Form::Pattern,
        "$ref" => Form::Pointer,
        "$id" if !is_root => return None,
        "$comment" | "$id" | "$schema" | "const" | "default" | "deprecated" | "description"
        | "examples" | "format" | "readOnly" | "title" | "writeOnly" => Form::Is("", |_| true),
        _ => return None,
    })
}

pub struct Schema {
    root: Value,
    patterns: HashMap<String, Regex>,
}

impl Schema {
    pub fn new(root: Value) -> Result<Schema, Vec<String>> {
        let size = root.to_string().len();
        if size > LARGEST {
            return Err(vec![format!("expected a schema of at most {LARGEST} bytes, got {size}")]);
        }
        let mut reading = Reading {
            root: &root,
            wrong: Vec::new(),
            patterns: HashMap::new(),
            followed: BTreeSet::new(),
            pending: vec!["#".to_owned()],
        };
        // The target of a reference must be a schema too.
        while let Some(pointer) = reading.pending.pop() {
            match lookup(&root, &pointer) {
                Some(target) => reading.schema(target, &pointer, 0),
                None => reading
                    .say(&pointer, "expected a place in this schema, as `#` or `#/$defs/NAME`"),
            }
        }
        let (wrong, patterns) = (reading.wrong, reading.patterns);
        if wrong.is_empty() { Ok(Schema { root, patterns }) } else { Err(wrong) }
    }

    pub fn root(&self) -> &Value {
        &self.root
    }

    /// Returns the schema to which a `$ref` of this schema points.
    pub fn target(&self, pointer: &str) -> Option<&Value> {
        lookup(&self.root, pointer)
    }

    pub fn matches(&self, pattern: &str, text: &str) -> bool {
        self.patterns.get(pattern).is_some_and(|pattern| pattern.is_match(text))
    }
}

fn lookup<'s>(root: &'s Value, pointer: &str) -> Option<&'s Value> {
    root.pointer(pointer.strip_prefix('#')?)
}

struct Reading<'s> {
    root: &'s Value,
    wrong: Vec<String>,
    patterns: HashMap<String, Regex>,
    followed: BTreeSet<String>,
    pending: Vec<String>,
}

impl Reading<'_> {
    fn say(&mut self, place: &str, cause: &str) {
        if self.wrong.len() < MOST_MISTAKES {
            self.wrong.push(format!("`{place}`: {cause}"));
        }
    }

    fn schema(&mut self, schema: &Value, place: &str, depth: usize) {
        let table = match schema {
            Value::Bool(_) => return,
            Value::Object(table) => table,
            _ => return self.say(place, "expected a schema: a table, true or false"),
        };
        if depth > DEEPEST {
            return self
                .say(place, &format!("expected at most {DEEPEST} schemas inside each other"));
        }
        let is_root = std::ptr::eq(schema, self.root);
        for (keyword, value) in table {
            let place = format!("{place}/{keyword}");
            match form(keyword, is_root) {
                Some(form) => self.keyword(&form, value, &place, depth),
                None => self.say(
                    &place,
                    "this keyword is not supported; the documentation lists the supported keywords",
                ),
            }
        }
    }

    fn keyword(&mut self, form: &Form, value: &Value, place: &str, depth: usize) {
        let expected = match form {
            Form::One => return self.schema(value, place, depth + 1),
            Form::List => match value.as_array().filter(|list| !list.is_empty()) {
                Some(list) => {
                    for (at, schema) in list.iter().enumerate() {
                        self.schema(schema, &format!("{place}/{at}"), depth + 1);
                    }
                    return;
                }
                None => "a list of schemas",
            },
            Form::Table | Form::Patterns => match value.as_object() {
                Some(table) => {
                    return self.table(table, matches!(form, Form::Patterns), place, depth);
                }
                None => "a table of schemas",
            },
            Form::Is(_, holds) if holds(value) => return,
            Form::Is(expected, _) => expected,
            Form::Pattern => match value.as_str() {
                Some(pattern) => return self.pattern(pattern, place),
                None => "a pattern",
            },
            Form::Pointer => match value.as_str().filter(|pointer| pointer.starts_with('#')) {
                Some(pointer) => {
                    if self.followed.insert(pointer.to_owned()) {
                        self.pending.push(pointer.to_owned());
                    }
                    return;
                }
                None => "a place in this schema, as `#` or `#/$defs/NAME`",
            },
        };
        self.say(place, &format!("expected {expected}"));
    }

    fn table(
        &mut self,
        table: &Map<String, Value>,
        keys_are_patterns: bool,
        place: &str,
        depth: usize,
    ) {
        for (key, schema) in table {
            let place = format!("{place}/{key}");
            if keys_are_patterns {
                self.pattern(key, &place);
            }
            self.schema(schema, &place, depth + 1);
        }
    }

    fn pattern(&mut self, pattern: &str, place: &str) {
        if pattern.chars().count() > PATTERN.0 {
            return self
                .say(place, &format!("expected a pattern of at most {} characters", PATTERN.0));
        }
        match RegexBuilder::new(pattern).size_limit(PATTERN.1).build() {
            Ok(compiled) => {
                self.patterns.insert(pattern.to_owned(), compiled);
            }
            Err(error) => {
                self.say(place, &format!("expected a pattern that regex-lite reads: {error}"))
            }
        }
    }
}

fn is_type(name: &Value) -> bool {
    let names = ["null", "boolean", "integer", "number", "string", "array", "object"];
    name.as_str().is_some_and(|name| names.contains(&name))
}

fn are_names(value: &Value) -> bool {
    let Some(list) = value.as_array() else { return false };
    let names: Option<BTreeSet<&str>> = list.iter().map(Value::as_str).collect();
    names.is_some_and(|names| names.len() == list.len())
}
