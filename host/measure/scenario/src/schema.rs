//! Compares a plugin's configuration with the JSON Schema that the plugin provides.
//!
//! Responsible for messages that point at the wrong key. It knows the part of JSON Schema
//! (draft 2020-12) that schemars derives from types. The plugin checks every other constraint, and
//! refuses an unusable configuration when it is opened.

use serde_json::Value;

use rules::{
    Rules, branches, constants, kind, kind_in_words, near, one_of, properties, range, unknown_key,
    wrong,
};

use reader::Problem;
use reader::words::{joined, plain, written};
use reader::{Config, ConfigTable, ConfigValue};
use reader::{Located, Place};

mod rules;

/// The maximum number of schemas to visit. The schema comes from a plugin, so it may be endless;
/// beyond this limit, the plugin has to refuse a wrong configuration.
const VISITS: usize = 100_000;
/// The depth to which schemas are followed through references, alternatives and values.
const DEPTH: usize = 64;

/// Finds the mistakes in a plugin's configuration according to the plugin's schema. Keys are named
/// as within the table; the caller knows which table that is.
pub fn check_config(schema: &Value, config: &ConfigTable) -> Vec<Problem> {
    let mut check = Check { root: schema, visits: 0 };
    let place = config.place.clone();
    check.value(schema, "", &place, &Config::Table(config.clone()), 0)
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

    fn value(
        &mut self,
        schema: &'s Value,
        name: &str,
        place: &Option<Place>,
        value: &Config,
        depth: usize,
    ) -> Vec<Problem> {
        if !self.may_visit(depth) {
            return Vec::new();
        }
        let rules = match schema {
            Value::Object(rules) => rules,
            Value::Bool(false) => {
                let problem = Problem::new(format!("`{name}` cannot be set"));
                return vec![problem.at(place.clone(), "not possible")];
            }
            _ => return Vec::new(),
        };
        if !self.type_fits(rules, value) {
            return vec![self.unexpected(schema, name, place, value)];
        }
        if let Some(problem) = self.constant(rules, name, place, value) {
            return vec![problem];
        }
        let mut problems = Vec::new();
        if let Some(target) = self.reference(rules) {
            problems.extend(self.value(target, name, place, value, depth + 1));
        }
        for part in branches(rules, "allOf") {
            problems.extend(self.value(part, name, place, value, depth + 1));
        }
        for keyword in ["anyOf", "oneOf"] {
            if rules.contains_key(keyword) {
                problems.extend(self.alternatives(schema, keyword, name, place, value, depth));
            }
        }
        match value {
            Config::Scalar(scalar) => problems.extend(range(rules, name, place, scalar)),
            Config::List(items) => problems.extend(self.items(rules, name, place, items, depth)),
            Config::Table(table) => problems.extend(self.keys(schema, rules, name, table, depth)),
        }
        problems
    }

    fn reference(&self, rules: &'s Rules) -> Option<&'s Value> {
        self.root.pointer(rules.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// A value must fit one of several schemas. If none fits, the problems of the most likely
    /// schema are reported.
    fn alternatives(
        &mut self,
        schema: &'s Value,
        keyword: &str,
        name: &str,
        place: &Option<Place>,
        value: &Config,
        depth: usize,
    ) -> Vec<Problem> {
        let mut meant: Option<(bool, Vec<Problem>)> = None;
        for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            let problems = self.value(branch, name, place, value, depth + 1);
            if problems.is_empty() {
                return Vec::new();
            }
            let Some(tagged) = self.resembles(branch, value, 0) else {
                continue;
            };
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
        let problem = self.unknown_tag(schema, keyword, name, value);
        vec![problem.unwrap_or_else(|| self.unexpected(schema, name, place, value))]
    }

    /// If a constant key distinguishes several tables: a table whose key has none of the constants.
    fn unknown_tag(
        &mut self,
        schema: &'s Value,
        keyword: &str,
        name: &str,
        value: &Config,
    ) -> Option<Problem> {
        let Config::Table(table) = value else {
            return None;
        };
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
        Some(one_of(&name, &Some(entry.value.place.clone()), &entry.value.value, &allowed))
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

    fn constant(
        &self,
        rules: &'s Rules,
        name: &str,
        place: &Option<Place>,
        value: &Config,
    ) -> Option<Problem> {
        let allowed = constants(rules)?;
        let value_json = value.to_json();
        let fits = allowed.iter().any(|constant| **constant == value_json);
        (!fits).then(|| one_of(name, place, value, &allowed))
    }

    /// A value that does not even have the right kind.
    fn unexpected(
        &mut self,
        schema: &'s Value,
        name: &str,
        place: &Option<Place>,
        value: &Config,
    ) -> Problem {
        let mut expected = Vec::new();
        let mut allowed = Vec::new();
        self.describe(schema, &mut expected, &mut allowed, 0);
        if expected.is_empty() && !allowed.is_empty() {
            return one_of(name, place, value, &allowed);
        }
        expected.extend(allowed.iter().map(|constant| written(constant)));
        expected.dedup();
        if expected.is_empty() {
            expected.push("something else".to_owned());
        }
        let problem = wrong(name, place, &joined(&expected, "or"), value);
        match near(value, &allowed) {
            Some(near) => problem.help(format!("did you mean {near:?}?")),
            None => problem,
        }
    }

    /// Collects the values that a schema allows: kinds and constants. TOML has no `null`, so it is
    /// left out.
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
        name: &str,
        place: &Option<Place>,
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
            problems.push(Problem::new(message).at(place.clone(), format!("expected {expected}")));
        }
        let firsts: Vec<_> = branches(rules, "prefixItems").collect();
        for (index, Located { value, place }) in items.iter().enumerate() {
            if let Some(schema) = firsts.get(index).copied().or_else(|| rules.get("items")) {
                let name = format!("{name}.{index}");
                problems.extend(self.value(schema, &name, &Some(place.clone()), value, depth + 1));
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
            let place = Some(entry.value.place.clone());
            if let Some((_, schema)) = properties(rules).find(|(known, _)| *known == key) {
                problems.extend(self.value(
                    schema,
                    &full(key),
                    &place,
                    &entry.value.value,
                    depth + 1,
                ));
            } else if known.contains(&key) || rules.contains_key("patternProperties") {
                // Another part of the schema checks it.
            } else if closed && self.visits <= VISITS {
                problems.push(unknown_key(&full(key), &entry.key, &known));
            } else if let Some(schema) = rules.get("additionalProperties") {
                problems.extend(self.value(
                    schema,
                    &full(key),
                    &place,
                    &entry.value.value,
                    depth + 1,
                ));
            }
        }
        problems
    }

    /// Every key that a schema knows, in any of its parts.
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
