//! The check of calls against the right ones. Each function is one of `ast_checker.py`, with the
//! same steps in the same order, because the result depends on the order.

use judging::{Call, shown};
use serde_json::{Map, Value};

use crate::{Type, equal, plain, plain_value};

/// A call that is right, and the declaration of its tool.
pub struct RightCall<'r> {
    name: String,
    arguments: &'r Map<String, Value>,
    required: Vec<&'r str>,
    types: Vec<(&'r str, ParameterType)>,
}

/// The type of a parameter, and of an array's items.
#[derive(Clone, Copy)]
struct ParameterType {
    own: Type,
    items: Option<Type>,
}

impl<'r> RightCall<'r> {
    pub fn new(
        answer: &'r Value,
        functions: &[&'r Value],
        underscore: bool,
    ) -> Result<Self, String> {
        let (name, arguments) = (answer.as_object())
            .and_then(|answer| answer.iter().next().filter(|_| answer.len() == 1))
            .and_then(|(name, arguments)| Some((name, arguments.as_object()?)))
            .ok_or("right calls that are each a table of one name and its arguments")?;
        let lists = arguments.values().all(Value::is_array);
        if !lists {
            return Err(format!("a list of right values for each argument of `{name}`"));
        }
        let function = (functions.iter())
            .map(|function| function.get("function").unwrap_or(function))
            .find(|function| function.get("name").and_then(Value::as_str) == Some(name))
            .ok_or_else(|| format!("a tool with the name `{name}`"))?;
        let parameters = function.get("parameters");
        let properties = (parameters.and_then(|parameters| parameters.get("properties")))
            .and_then(Value::as_object)
            .ok_or_else(|| format!("`parameters` with `properties` of the tool `{name}`"))?;
        let required = parameters.and_then(|parameters| parameters.get("required"));
        let required = match required {
            None => Vec::new(),
            Some(list) => (list.as_array())
                .and_then(|list| list.iter().map(Value::as_str).collect())
                .ok_or_else(|| format!("a list of names as `required` of the tool `{name}`"))?,
        };
        // An argument that is never right needs no type.
        let types = (properties.iter())
            .filter(|(parameter, _)| arguments.contains_key(*parameter))
            .map(|(parameter, details)| {
                Ok((parameter.as_str(), ParameterType::new(parameter, details)?))
            })
            .collect::<Result<_, String>>()?;
        Ok(RightCall {
            name: if underscore { name.replace('.', "_") } else { name.clone() },
            arguments,
            required,
            types,
        })
    }

    /// `simple_function_checker`.
    fn matches(&self, call: &Call) -> bool {
        let given = &call.arguments;
        call.name == self.name
            && self.required.iter().all(|name| given.contains_key(*name))
            && given.iter().all(|(name, value)| self.accepts(name, value))
            && has_all(given, self.arguments)
    }

    /// True if an argument is known, has the right type, and one of the right values.
    fn accepts(&self, name: &str, value: &Value) -> bool {
        let declared = self.types.iter().find(|(parameter, _)| *parameter == name);
        let (Some((_, declared)), Some(right)) = (declared, self.arguments.get(name)) else {
            return false;
        };
        let right = possible(right);
        let value = match value {
            Value::Number(number) if declared.own == Type::Float => {
                number.as_f64().map_or_else(|| value.clone(), Value::from)
            }
            other => other.clone(),
        };
        let Some(is_variable) = has_type(&value, right, declared.own, declared.items) else {
            return false;
        };
        let is_among = |right: &[Value]| right.iter().any(|right| equal(&value, right));
        match &value {
            _ if is_variable => is_among(right),
            Value::Object(value) => table_is_right(value, right),
            Value::Array(value) if declared.items == Some(Type::Table) => {
                tables_are_right(value, right)
            }
            Value::Array(value) => list_is_right(value, right),
            Value::String(value) => {
                let value = plain(value);
                right.iter().filter_map(Value::as_str).any(|right| plain(right) == value)
            }
            _ => is_among(right),
        }
    }
}

impl ParameterType {
    fn new(parameter: &str, details: &Value) -> Result<Self, String> {
        let read = |details: Option<&Value>| {
            let name = details.and_then(|details| details.get("type"));
            (name.and_then(Value::as_str).and_then(Type::declared)).ok_or_else(|| {
                let found = name.map_or_else(|| "none".to_owned(), shown);
                format!(
                    "the type of `{parameter}` and of its items to be string, integer, float, boolean, array, \
                     tuple, dict or any, found {found}"
                )
            })
        };
        let own = read(Some(details))?;
        let items = (own == Type::List).then(|| read(details.get("items"))).transpose()?;
        Ok(ParameterType { own, items })
    }
}

/// `parallel_function_checker_no_order`; with one right call, it gives the same result as the
/// checks of `simple` and `multiple`.
pub fn all_match(wanted: &[RightCall<'_>], calls: &[Call]) -> bool {
    let mut taken = vec![false; calls.len()];
    wanted.len() == calls.len()
        && wanted.iter().all(|wanted| {
            let free = (0..calls.len()).find(|at| !taken[*at] && wanted.matches(&calls[*at]));
            free.inspect(|at| taken[*at] = true).is_some()
        })
}

/// The right values of an argument; `RightCall::new` has checked that they are a list.
fn possible(right: &Value) -> &[Value] {
    right.as_array().map_or(&[], Vec::as_slice)
}

/// True if every key is there whose right values do not include `""`, which means none.
fn has_all(given: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    right.iter().all(|(key, right)| given.contains_key(key) || possible(right).iter().any(is_empty))
}

fn is_empty(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// `type_checker`: `None` if the type is wrong; otherwise true if the value is a variable in BFCL's
/// terms: of the right values' type, and not of the declared one.
fn has_type(value: &Value, right: &[Value], declared: Type, items: Option<Type>) -> Option<bool> {
    let of_right = right.iter().find(|right| !is_empty(right)).map(Type::from_value);
    let is_variable = of_right.is_some_and(|of_right| of_right != declared);
    if Type::from_value(value) == declared {
        let Some(items) = items else { return Some(is_variable) };
        let list = value.as_array().map_or(&[][..], Vec::as_slice);
        let fits = |right: &Value| match right {
            Value::Array(right) => {
                (list.iter()).all(|item| has_type(item, right, items, None).is_some())
            }
            _ => true,
        };
        return right.iter().any(fits).then_some(is_variable);
    }
    (of_right == Some(Type::from_value(value))).then_some(true)
}

/// `list_checker`. Texts are compared plainly; a text as a right list is its characters.
fn list_is_right(value: &[Value], right: &[Value]) -> bool {
    let value: Value = value.iter().map(plain_value).collect();
    right.iter().any(|right| match right {
        Value::Array(right) => equal(&value, &right.iter().map(plain_value).collect()),
        Value::String(text) => {
            equal(&value, &text.chars().map(|c| plain(&c.to_string())).collect())
        }
        _ => false,
    })
}

/// `dict_checker`.
fn table_is_right(value: &Map<String, Value>, right: &[Value]) -> bool {
    right.iter().filter_map(Value::as_object).any(|right| {
        let known = |(key, value): (&String, &Value)| {
            let value = plain_value(value);
            let right = right.get(key).and_then(Value::as_array);
            right.is_some_and(|right| right.iter().any(|right| equal(&value, &plain_value(right))))
        };
        value.iter().all(known) && has_all(value, right)
    })
}

/// `list_dict_checker`.
fn tables_are_right(value: &[Value], right: &[Value]) -> bool {
    right.iter().any(|right| match right {
        Value::Array(right) => {
            right.len() == value.len()
                && (value.iter().zip(right)).all(|(value, right)| {
                    let value = value.as_object();
                    value.is_some_and(|value| table_is_right(value, std::slice::from_ref(right)))
                })
        }
        // `""` has no tables, as an empty list has none.
        Value::String(text) => text.is_empty() && value.is_empty(),
        _ => false,
    })
}
