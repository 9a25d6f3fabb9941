//! Judges a value by a schema, as the validation vocabulary of JSON Schema 2020-12 says. The schema
//! has been read before, so its keywords have values that they can have.

use serde_json::{Map, Value};

use crate::schema::Schema;
use crate::{compare, equal, integer, is_multiple};

/// Most applications of schemas to an answer: references may circle, alternatives multiply.
const MOST_STEPS: u32 = 200_000;

const DEEPEST: u32 = 200;

pub fn valid(schema: &Schema, value: &Value) -> Result<bool, &'static str> {
    let mut judging = Judging { schema, left: MOST_STEPS };
    judging.valid(schema.root(), value, 0).map_err(|Endless| {
        "judging it by its schema takes too many steps; expected a schema whose references do not lead in a circle"
    })
}

struct Endless;

struct Judging<'s> {
    schema: &'s Schema,
    left: u32,
}

impl Judging<'_> {
    fn valid(&mut self, schema: &Value, value: &Value, depth: u32) -> Result<bool, Endless> {
        self.left = self.left.checked_sub(1).ok_or(Endless)?;
        if depth > DEEPEST {
            return Err(Endless);
        }
        let table = match schema {
            Value::Object(table) => table,
            other => return Ok(other.as_bool().unwrap_or(false)),
        };
        for (keyword, argument) in table {
            if !self.keyword(table, keyword, argument, value, depth + 1)? {
                return Ok(false);
            }
        }
        match value {
            Value::Array(list) => self.list(table, list, depth + 1),
            Value::Object(object) => self.object(table, object, depth + 1),
            _ => Ok(true),
        }
    }

    /// Checks keywords that apply to every kind of value, and keywords of numbers and texts.
    fn keyword(
        &mut self,
        table: &Map<String, Value>,
        keyword: &str,
        argument: &Value,
        value: &Value,
        depth: u32,
    ) -> Result<bool, Endless> {
        let list = argument.as_array().map_or(&[][..], Vec::as_slice);
        Ok(match keyword {
            "type" if argument.is_array() => list.iter().any(|name| has_type(value, name)),
            "type" => has_type(value, argument),
            "enum" => list.iter().any(|one| equal(one, value)),
            "const" => equal(argument, value),
            "allOf" => self.count(list, value, depth)? == list.len(),
            "anyOf" => self.count(list, value, depth)? > 0,
            "oneOf" => self.count(list, value, depth)? == 1,
            "not" => !self.valid(argument, value, depth)?,
            "if" => {
                let branch = if self.valid(argument, value, depth)? { "then" } else { "else" };
                match table.get(branch) {
                    Some(branch) => self.valid(branch, value, depth)?,
                    None => true,
                }
            }
            "$ref" => match argument.as_str().and_then(|pointer| self.schema.target(pointer)) {
                Some(target) => self.valid(target, value, depth)?,
                None => false,
            },
            _ => match value {
                Value::Number(number) => is_number_valid(keyword, argument, number),
                Value::String(text) => self.is_text_valid(keyword, argument, text),
                _ => true,
            },
        })
    }

    /// The number of these schemas by which a value is valid.
    fn count(&mut self, schemas: &[Value], value: &Value, depth: u32) -> Result<usize, Endless> {
        let mut count = 0;
        for schema in schemas {
            count += usize::from(self.valid(schema, value, depth)?);
        }
        Ok(count)
    }

    fn is_text_valid(&self, keyword: &str, argument: &Value, text: &str) -> bool {
        match keyword {
            "minLength" => !is_above(argument, text.chars().count()),
            "maxLength" => !is_below(argument, text.chars().count()),
            "pattern" => {
                argument.as_str().is_some_and(|pattern| self.schema.matches(pattern, text))
            }
            _ => true,
        }
    }

    fn list(
        &mut self,
        table: &Map<String, Value>,
        list: &[Value],
        depth: u32,
    ) -> Result<bool, Endless> {
        let prefix =
            table.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let further = table.get("items").into_iter().cycle();
        for (schema, item) in prefix.iter().chain(further).zip(list) {
            if !self.valid(schema, item, depth)? {
                return Ok(false);
            }
        }
        if let Some(schema) = table.get("contains") {
            let mut count = 0;
            for item in list {
                count += usize::from(self.valid(schema, item, depth)?);
            }
            let least = table.get("minContains").and_then(Value::as_u64).unwrap_or(1);
            let most = table.get("maxContains");
            if (count as u64) < least || most.is_some_and(|most| is_below(most, count)) {
                return Ok(false);
            }
        }
        if table.get("uniqueItems") == Some(&Value::Bool(true)) {
            for (at, item) in list.iter().enumerate() {
                self.left = self.left.checked_sub(at as u32).ok_or(Endless)?;
                if list[..at].iter().any(|other| equal(other, item)) {
                    return Ok(false);
                }
            }
        }
        Ok(is_within(table, "minItems", "maxItems", list.len()))
    }

    fn object(
        &mut self,
        table: &Map<String, Value>,
        object: &Map<String, Value>,
        depth: u32,
    ) -> Result<bool, Endless> {
        let of = |keyword: &str| table.get(keyword).and_then(Value::as_object);
        let has_all = |names: &Value| {
            let names = names.as_array().map_or(&[][..], Vec::as_slice);
            names.iter().filter_map(Value::as_str).all(|name| object.contains_key(name))
        };
        let triggered =
            |(name, names): (&String, &Value)| !object.contains_key(name) || has_all(names);
        if !table.get("required").is_none_or(has_all)
            || !of("dependentRequired").is_none_or(|table| table.iter().all(triggered))
            || !is_within(table, "minProperties", "maxProperties", object.len())
        {
            return Ok(false);
        }
        for (name, schema) in of("dependentSchemas").into_iter().flatten() {
            if object.contains_key(name)
                && !self.valid(schema, &Value::Object(object.clone()), depth)?
            {
                return Ok(false);
            }
        }
        for (name, value) in object {
            if !self.property(table, name, value, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn property(
        &mut self,
        table: &Map<String, Value>,
        name: &str,
        value: &Value,
        depth: u32,
    ) -> Result<bool, Endless> {
        let of = |keyword: &str| table.get(keyword).and_then(Value::as_object);
        let mut is_known = false;
        if let Some(schema) = of("properties").and_then(|properties| properties.get(name)) {
            is_known = true;
            if !self.valid(schema, value, depth)? {
                return Ok(false);
            }
        }
        for (pattern, schema) in of("patternProperties").into_iter().flatten() {
            if self.schema.matches(pattern, name) {
                is_known = true;
                if !self.valid(schema, value, depth)? {
                    return Ok(false);
                }
            }
        }
        if let Some(schema) = table.get("additionalProperties")
            && !is_known
            && !self.valid(schema, value, depth)?
        {
            return Ok(false);
        }
        match table.get("propertyNames") {
            Some(schema) => self.valid(schema, &Value::String(name.to_owned()), depth),
            None => Ok(true),
        }
    }
}

fn has_type(value: &Value, name: &Value) -> bool {
    match (name.as_str(), value) {
        (Some("null"), Value::Null)
        | (Some("boolean"), Value::Bool(_))
        | (Some("number"), Value::Number(_))
        | (Some("string"), Value::String(_))
        | (Some("array"), Value::Array(_))
        | (Some("object"), Value::Object(_)) => true,
        (Some("integer"), Value::Number(number)) => integer(number).is_some(),
        _ => false,
    }
}

fn is_number_valid(keyword: &str, argument: &Value, number: &serde_json::Number) -> bool {
    let Value::Number(limit) = argument else { return true };
    match keyword {
        "minimum" => compare(number, limit).is_ge(),
        "maximum" => compare(number, limit).is_le(),
        "exclusiveMinimum" => compare(number, limit).is_gt(),
        "exclusiveMaximum" => compare(number, limit).is_lt(),
        "multipleOf" => is_multiple(number, limit),
        _ => true,
    }
}

fn is_within(table: &Map<String, Value>, least: &str, most: &str, count: usize) -> bool {
    !table.get(least).is_some_and(|least| is_above(least, count))
        && !table.get(most).is_some_and(|most| is_below(most, count))
}

fn is_above(limit: &Value, count: usize) -> bool {
    limit.as_u64().is_some_and(|limit| limit > count as u64)
}

fn is_below(limit: &Value, count: usize) -> bool {
    limit.as_u64().is_some_and(|limit| limit < count as u64)
}
