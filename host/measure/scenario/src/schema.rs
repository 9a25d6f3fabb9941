//! Compares a plugin's configuration with the JSON Schema that the plugin provides.
//!
//! Responsible for messages that point at the wrong key. It knows the part of JSON Schema
//! (draft 2020-12) that schemars derives from types. The plugin checks every other constraint, and
//! refuses an unusable configuration when it is opened.

use serde_json::{Map, Value};

use model::nearest;
use reader::words::{found, joined, list, plain, written};
use reader::{Config, ConfigTable, ConfigValue, Located, Place, Problem};

/// The maximum number of schemas to visit. The schema comes from a plugin, so it may be endless;
/// beyond this limit, the plugin has to refuse a wrong configuration.
const VISITS: usize = 100_000;
/// The depth to which schemas are followed through references, alternatives and values.
const DEPTH: usize = 64;

/// Finds a plugin's mistakes by its schema. The caller knows the table that keys are in.
pub fn check_config(schema: &Value, config: &ConfigTable) -> Vec<Problem> {
    let value = &Config::Table(config.clone());
    let subject = Subject { name: "", place: config.place.as_ref(), value };
    Check { root: schema, visits: 0 }.value(schema, subject, 0)
}

struct Check<'s> {
    root: &'s Value,
    visits: usize,
}

impl<'s> Check<'s> {
    fn may_visit(&mut self, depth: usize) -> bool {
        self.visits += 1;
        self.visits <= VISITS && depth <= DEPTH
    }

    fn value(&mut self, schema: &'s Value, subject: Subject<'_>, depth: usize) -> Vec<Problem> {
        if !self.may_visit(depth) {
            return Vec::new();
        }
        let rules = match schema {
            Value::Object(rules) => rules,
            Value::Bool(false) => {
                let problem = Problem::new(format!("`{}` cannot be set", subject.name));
                return vec![problem.at(subject.place.cloned(), "not possible")];
            }
            _ => return Vec::new(),
        };
        if !self.type_fits(rules, subject.value) {
            return vec![self.unexpected(schema, subject)];
        }
        if let Some(problem) = constant(rules, subject) {
            return vec![problem];
        }
        let mut problems = Vec::new();
        if let Some(target) = self.reference(rules) {
            problems.extend(self.value(target, subject, depth + 1));
        }
        for part in branches(rules, "allOf") {
            problems.extend(self.value(part, subject, depth + 1));
        }
        for keyword in ["anyOf", "oneOf"] {
            if rules.contains_key(keyword) {
                problems.extend(self.alternatives(schema, keyword, subject, depth));
            }
        }
        match subject.value {
            Config::Scalar(scalar) => problems.extend(range(rules, subject, scalar)),
            Config::List(items) => problems.extend(self.items(rules, subject, items, depth)),
            Config::Table(table) => {
                problems.extend(self.keys(schema, rules, subject.name, table, depth))
            }
        }
        problems
    }

    fn reference(&self, rules: &'s Rules) -> Option<&'s Value> {
        self.root.pointer(rules.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// A value must fit one of several schemas; else the most likely one's problems count.
    fn alternatives(
        &mut self,
        schema: &'s Value,
        keyword: &str,
        subject: Subject<'_>,
        depth: usize,
    ) -> Vec<Problem> {
        let mut meant: Option<(bool, Vec<Problem>)> = None;
        for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            let problems = self.value(branch, subject, depth + 1);
            if problems.is_empty() {
                return Vec::new();
            }
            let Some(tagged) = self.resembles(branch, subject.value, 0) else { continue };
            let better = meant.as_ref().is_none_or(|(was_tagged, known)| {
                (!was_tagged, known.len()) > (!tagged, problems.len())
            });
            if better {
                meant = Some((tagged, problems));
            }
        }
        if let Some((_, problems)) = meant {
            return problems;
        }
        let problem = self.unknown_tag(schema, keyword, subject);
        vec![problem.unwrap_or_else(|| self.unexpected(schema, subject))]
    }

    /// If a constant key distinguishes several tables: a table whose key has none of the constants.
    fn unknown_tag(
        &mut self,
        schema: &'s Value,
        keyword: &str,
        Subject { name, value, .. }: Subject<'_>,
    ) -> Option<Problem> {
        let Config::Table(table) = value else { return None };
        let branches = schema.get(keyword)?.as_array()?;
        let tables = branches.iter().filter_map(|branch| {
            let rules = branch.as_object()?;
            self.reference(rules).map_or(Some(rules), Value::as_object)
        });
        let tags: Vec<_> = tables
            .flat_map(properties)
            .filter_map(|(key, rules)| Some((key, rules.get("const")?)))
            .collect();
        let (tag, _) = *tags.first()?;
        let entry = table.get(tag)?;
        let allowed: Vec<_> =
            tags.into_iter().filter(|(key, _)| *key == tag).map(|(_, c)| c).collect();
        let name = format!("{name}.{}", plain(tag));
        let Located { value, place } = &entry.value;
        Some(one_of(Subject { name: &name, place: Some(place), value }, &allowed))
    }

    /// Returns true if a value that does not fit a schema was still meant for it: a table for a
    /// table, a list for a list. `Some(true)` if a constant key of the table says so.
    fn resembles(&self, schema: &'s Value, value: &Config, depth: usize) -> Option<bool> {
        let rules = schema.as_object().filter(|_| depth <= DEPTH)?;
        if let Some(target) = self.reference(rules) {
            return self.resembles(target, value, depth + 1);
        }
        if !self.type_fits(rules, value)
            || rules.contains_key("const")
            || rules.contains_key("enum")
        {
            return None;
        }
        let Config::Table(table) = value else {
            let alternative = rules.contains_key("anyOf") || rules.contains_key("oneOf");
            return (!alternative).then_some(false);
        };
        let mut tagged = false;
        for (key, rules) in properties(rules) {
            if let (Some(constant), Some(entry)) = (rules.get("const"), table.get(key)) {
                if entry.value.value.to_json() != *constant {
                    return None;
                }
                tagged = true;
            }
        }
        Some(tagged)
    }

    fn type_fits(&self, rules: &Rules, value: &Config) -> bool {
        let kind = kind(value);
        let fits = |name: &str| name == kind || (name == "number" && kind == "integer");
        match rules.get("type") {
            Some(Value::String(name)) => fits(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(fits),
            _ => true,
        }
    }

    /// A value that does not even have the right kind.
    fn unexpected(&mut self, schema: &'s Value, subject: Subject<'_>) -> Problem {
        let mut expected = Vec::new();
        let mut allowed = Vec::new();
        self.describe(schema, &mut expected, &mut allowed, 0);
        if expected.is_empty() && !allowed.is_empty() {
            return one_of(subject, &allowed);
        }
        expected.extend(allowed.iter().map(|constant| written(constant)));
        expected.dedup();
        if expected.is_empty() {
            expected.push("something else".to_owned());
        }
        let problem = wrong(subject, &joined(&expected, "or"));
        match near(subject.value, &allowed) {
            Some(near) => problem.help(format!("did you mean {near:?}?")),
            None => problem,
        }
    }

    /// Collects the kinds and constants that a schema allows, but `null`, which TOML lacks.
    fn describe(
        &mut self,
        schema: &'s Value,
        kinds: &mut Vec<String>,
        allowed: &mut Vec<&'s Value>,
        depth: usize,
    ) {
        if !self.may_visit(depth) {
            return;
        }
        let Value::Object(rules) = schema else { return };
        if let Some(target) = self.reference(rules) {
            self.describe(target, kinds, allowed, depth + 1);
        } else if let Some(constants) = constants(rules) {
            allowed.extend(constants.into_iter().filter(|constant| !constant.is_null()));
        } else if let Some(names) = rules.get("type") {
            let names = names.as_array().map_or(std::slice::from_ref(names), Vec::as_slice);
            kinds.extend(names.iter().filter_map(Value::as_str).filter_map(kind_in_words));
        } else {
            for keyword in ["anyOf", "oneOf", "allOf"] {
                for branch in branches(rules, keyword) {
                    self.describe(branch, kinds, allowed, depth + 1);
                }
            }
        }
    }

    fn items(
        &mut self,
        rules: &'s Rules,
        Subject { name, place, .. }: Subject<'_>,
        items: &[ConfigValue],
        depth: usize,
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        let bound = |keyword: &str| rules.get(keyword).and_then(Value::as_u64);
        let count = items.len() as u64;
        let expected = match (bound("minItems"), bound("maxItems")) {
            (Some(least), _) if count < least => Some(format!("a list of at least {least}")),
            (_, Some(most)) if count > most => Some(format!("a list of at most {most}")),
            _ => None,
        };
        if let Some(expected) = expected {
            let message = format!("`{name}`: expected {expected}, found {count}");
            problems.push(Problem::new(message).at(place.cloned(), format!("expected {expected}")));
        }
        let firsts: Vec<_> = branches(rules, "prefixItems").collect();
        for (index, Located { value, place }) in items.iter().enumerate() {
            if let Some(schema) = firsts.get(index).copied().or_else(|| rules.get("items")) {
                let name = format!("{name}.{index}");
                let item = Subject { name: &name, place: Some(place), value };
                problems.extend(self.value(schema, item, depth + 1));
            }
        }
        problems
    }

    fn keys(
        &mut self,
        schema: &'s Value,
        rules: &'s Rules,
        name: &str,
        table: &ConfigTable,
        depth: usize,
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        let full = |key: &str| {
            if name.is_empty() { plain(key) } else { format!("{name}.{}", plain(key)) }
        };
        let required = rules.get("required").and_then(Value::as_array).into_iter().flatten();
        for key in required.filter_map(Value::as_str).filter(|key| table.get(key).is_none()) {
            let mut problem = Problem::new(format!("`{}` is missing", full(key)));
            problem = problem.at(table.place.clone(), "it belongs here");
            let meaning = properties(rules).find(|(known, _)| *known == key);
            if let Some(text) = meaning.and_then(|(_, rules)| rules.get("description")?.as_str()) {
                problem = problem.help(format!("`{}`: {}", plain(key), plain(text)));
            }
            problems.push(problem);
        }
        let closed = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|keyword| rules.get(*keyword) == Some(&Value::Bool(false)));
        let mut known = Vec::new();
        self.all_properties(schema, &mut known, 0);
        for entry in table.iter() {
            let key = entry.key.value.as_str();
            let own = properties(rules).find(|(known, _)| *known == key).map(|(_, schema)| schema);
            // Another part of the schema may check it.
            let is_elsewhere = known.contains(&key) || rules.contains_key("patternProperties");
            if own.is_none() && !is_elsewhere && closed && self.visits <= VISITS {
                problems.push(unknown_key(&full(key), &entry.key, &known));
                continue;
            }
            let further = || rules.get("additionalProperties").filter(|_| !is_elsewhere);
            if let Some(schema) = own.or_else(further) {
                let Located { value, place } = &entry.value;
                let item = Subject { name: &full(key), place: Some(place), value };
                problems.extend(self.value(schema, item, depth + 1));
            }
        }
        problems
    }

    fn all_properties(&mut self, schema: &'s Value, known: &mut Vec<&'s str>, depth: usize) {
        if !self.may_visit(depth) {
            return;
        }
        let Value::Object(rules) = schema else { return };
        known.extend(properties(rules).map(|(key, _)| key));
        if let Some(target) = self.reference(rules) {
            self.all_properties(target, known, depth + 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in branches(rules, keyword) {
                self.all_properties(branch, known, depth + 1);
            }
        }
    }
}

fn constant(rules: &Rules, subject: Subject<'_>) -> Option<Problem> {
    let allowed = constants(rules)?;
    let value = subject.value.to_json();
    let fits = allowed.iter().any(|constant| **constant == value);
    (!fits).then(|| one_of(subject, &allowed))
}

/// A schema that is not merely `true` or `false`.
type Rules = Map<String, Value>;

#[derive(Clone, Copy)]
struct Subject<'a> {
    pub name: &'a str,
    pub place: Option<&'a Place>,
    pub value: &'a Config,
}

fn unknown_key(full: &str, key: &Located<String>, known: &[&str]) -> Problem {
    let problem = match nearest(&key.value, known.iter().copied()) {
        Some(near) => {
            Problem::new(format!("unknown key `{full}`; did you mean `{}`?", plain(near)))
        }
        None => {
            let known: Vec<_> = known.iter().take(40).map(|key| plain(key)).collect();
            Problem::new(format!("unknown key `{full}`"))
                .help(format!("the keys here are {}", list(&known)))
        }
    };
    problem.at(key.place.clone(), "not a key here")
}

fn properties(rules: &Rules) -> impl Iterator<Item = (&str, &Value)> {
    let properties = rules.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(key, schema)| (key.as_str(), schema))
}

fn branches<'s>(rules: &'s Rules, keyword: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    rules.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn constants(rules: &Rules) -> Option<Vec<&Value>> {
    let single = rules.get("const").map(|constant| vec![constant]);
    single.or_else(|| Some(rules.get("enum")?.as_array()?.iter().collect()))
}

fn range(rules: &Rules, subject: Subject<'_>, scalar: &Value) -> Option<Problem> {
    let bound = |keyword: &str| rules.get(keyword).and_then(Value::as_f64);
    if let Some(text) = scalar.as_str() {
        let length = text.chars().count() as f64;
        let least = bound("minLength").filter(|least| length < *least);
        let most = bound("maxLength").filter(|most| length > *most);
        let expected = least
            .map(|least| format!("a string of at least {least} characters"))
            .or_else(|| Some(format!("a string of at most {} characters", most?)))?;
        return Some(wrong(subject, &expected));
    }
    let number = scalar.as_f64()?;
    // The range of the type if only its format is given; usize has 32 bits in a component.
    let (lowest, highest) = match rules.get("format").and_then(Value::as_str) {
        Some("uint32" | "uint") => (Some(0.0), Some(f64::from(u32::MAX))),
        Some("int32" | "int") => (Some(f64::from(i32::MIN)), Some(f64::from(i32::MAX))),
        Some("uint64") => (Some(0.0), None),
        _ => (None, None),
    };
    type Breaks = fn(&f64, &f64) -> bool;
    let limits = [
        (bound("minimum").or(lowest), "at least", f64::lt as Breaks),
        (bound("maximum").or(highest), "at most", f64::gt),
        (bound("exclusiveMinimum"), "more than", f64::le),
        (bound("exclusiveMaximum"), "less than", f64::ge),
    ];
    let (limit, relation, _) = limits
        .into_iter()
        .find(|(limit, _, breaks)| limit.is_some_and(|limit| breaks(&number, &limit)))?;
    Some(wrong(subject, &format!("{relation} {}", limit?)))
}

fn one_of(subject: Subject<'_>, allowed: &[&Value]) -> Problem {
    let Subject { name, place, value } = subject;
    let choices: Vec<_> = allowed.iter().map(|constant| written(constant)).collect();
    let one_of = if choices.len() > 1 { "one of " } else { "" };
    let expected = format!("{one_of}{}", joined(&choices, "and"));
    let hint =
        near(value, allowed).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let message = format!("`{name}`: expected {expected}, found {}{hint}", found(value));
    Problem::new(message).at(place.cloned(), format!("expected {expected}"))
}

/// The constant that a string was probably meant to be.
fn near(value: &Config, allowed: &[&Value]) -> Option<String> {
    let Config::Scalar(Value::String(text)) = value else { return None };
    nearest(text, allowed.iter().filter_map(|constant| constant.as_str())).map(plain)
}

fn wrong(Subject { name, place, value }: Subject<'_>, expected: &str) -> Problem {
    let message = format!("`{name}`: expected {expected}, found {}", found(value));
    Problem::new(message).at(place.cloned(), format!("expected {expected}"))
}

/// JSON Schema's name for the kind of a value.
fn kind(value: &Config) -> &'static str {
    match value {
        Config::List(_) => "array",
        Config::Table(_) => "object",
        Config::Scalar(Value::String(_)) => "string",
        Config::Scalar(Value::Bool(_)) => "boolean",
        Config::Scalar(Value::Number(number)) if number.is_f64() => "number",
        Config::Scalar(Value::Number(_)) => "integer",
        Config::Scalar(_) => "null",
    }
}

fn kind_in_words(kind: &str) -> Option<String> {
    let words = match kind {
        "array" => "a list",
        "object" => "a table",
        "string" => "a string",
        "boolean" => "`true` or `false`",
        "number" => "a number",
        "integer" => "a whole number",
        _ => return None,
    };
    Some(words.to_owned())
}
