//! Reads options of an engine: values to try, their baselines, conditions and links.

use serde_json::Value;

use crate::condition::Condition;
use crate::file::{Dimension, Model, OptionKind};
use crate::keys;
use crate::read::{check_variable_name, suggestion, wrong};
use crate::template::{is_same, shown};
use reader::words::list;
use reader::{Config, ConfigEntry, ConfigTable, ConfigValue, Located, Place, Problem, Reader};

const MOST_VALUES: usize = 200;

/// Reads `options`, `env-options`, `linked` and `baseline`; `env` are the other variables. Also
/// gives the names of unreadable options: a condition on one is no second mistake.
pub(crate) fn read(
    t: &mut Reader<'_, '_>,
    env: &[(String, String)],
) -> (Vec<Dimension>, Vec<String>) {
    let options = t.config("options");
    let variables = t.config("env-options");
    let linked = t.config("linked");
    let baseline = t.config("baseline");
    let mut whens = Vec::new();
    let mut dimensions = Vec::new();
    let mut unread = Vec::new();
    for (table, is_env) in [(&options, false), (&variables, true)] {
        for entry in table.iter() {
            if is_env {
                check_variable_name(t, &entry.key.value, &entry.key.place);
            }
            match option(t, entry, is_env, &mut whens) {
                Some(dimension) => dimensions.push(dimension),
                None => unread.push(entry.key.value.clone()),
            }
        }
    }
    for group in linked.iter() {
        match (linked_group(t, group), &group.value.value) {
            (Some(dimension), _) => dimensions.push(dimension),
            (None, Config::Table(table)) => {
                unread.extend(table.iter().map(|entry| entry.key.value.clone()));
            }
            (None, _) => {}
        }
    }
    check_names(t, &dimensions, env);
    for (place, expr) in conditions_of(t, &dimensions, whens, &unread) {
        dimensions[place].when = Some(expr);
    }
    let all: Vec<String> = dimensions.iter().flat_map(names).map(str::to_owned).collect();
    let is_read = |entry: &&ConfigEntry| !unread.contains(&entry.key.value);
    for entry in baseline.iter().filter(is_read) {
        rebase(t, entry, &mut dimensions, &all);
    }
    rebase_linked(t, &baseline, &mut dimensions);
    (dimensions, unread)
}

fn names(dimension: &Dimension) -> impl Iterator<Item = &str> {
    dimension.options.iter().map(|option| option.name.as_str())
}

/// An option: a value, a list of values, or a table.
fn option(
    t: &Reader<'_, '_>,
    entry: &ConfigEntry,
    is_env: bool,
    whens: &mut Vec<(String, Located<String>)>,
) -> Option<Dimension> {
    let table = if is_env { "engines.env-options" } else { "engines.options" };
    let name = entry.key.value.clone();
    let path = format!("{table}.{name}");
    let mut own = OptionKind { name: name.clone(), is_env, omit: None, off: None };
    let (values, baseline) = match &entry.value.value {
        Config::Scalar(value) => (vec![value.clone()], None),
        Config::List(items) => (items.iter().map(|item| item.value.to_json()).collect(), None),
        Config::Table(config) => {
            let values = long_form(t, &path, config, &mut own, is_env)?;
            if let Some(when) = config.get("when") {
                let when = text(t, &format!("{path}.when"), &when.value);
                whens.extend(when.map(|when| (name.clone(), when)));
            }
            (values, config.get("baseline"))
        }
    };
    let values = checked_values(t, &path, values, &entry.value.place)?;
    let baseline = baseline
        .map_or(Some(0), |own| among(t, &format!("{path}.baseline"), &own.value, &values))?;
    Some(Dimension {
        name,
        options: vec![own],
        rows: values.into_iter().map(|value| vec![value]).collect(),
        baseline,
        when: None,
        place: entry.key.place.clone(),
    })
}

/// The values of an option that is a table; `own` gets the rest.
fn long_form(
    t: &Reader<'_, '_>,
    path: &str,
    config: &ConfigTable,
    own: &mut OptionKind,
    is_env: bool,
) -> Option<Vec<Value>> {
    let known: Vec<&str> = keys::OPTION.iter().map(|key| key.name).collect();
    for entry in config.iter() {
        let key = entry.key.value.as_str();
        if known.contains(&key) {
            continue;
        }
        let near = suggestion(key, known.iter().copied());
        let problem = Problem::new(format!("unknown key `{key}` in `{path}`{near}"))
            .at(entry.key.place.clone(), "not a key here");
        t.report(problem.help(format!(
            "the keys of an option are {}; a value that is a table itself stands in a list: [{{ … }}]",
            list(&known)
        )));
    }
    let Some(values) = config.get("values") else {
        let message =
            format!("`{path}`: expected a value, a list of values, or a table with `values`");
        t.report(Problem::new(message).at(config.place.clone(), "`values` is missing"));
        return None;
    };
    let Config::List(items) = &values.value.value else {
        wrong(t, format!("`{path}.values`: expected a list of values"), &values.value.place);
        return None;
    };
    let values: Vec<Value> = items.iter().map(|item| item.value.to_json()).collect();
    if let Some(omit) = config.get("omit") {
        among(t, &format!("{path}.omit"), &omit.value, &values)?;
        own.omit = Some(omit.value.value.to_json());
    }
    if let Some(off) = config.get("off") {
        if is_env {
            t.report(
                Problem::new(format!("`{path}.off`: a variable has no such key"))
                    .at(off.key.place.clone(), "here")
                    .help("`false` leaves the variable out; give it the value that turns it off, such as \"0\""),
            );
        }
        own.off = text(t, &format!("{path}.off"), &off.value).map(|off| off.value);
    }
    Some(values)
}

fn text(t: &Reader<'_, '_>, path: &str, value: &ConfigValue) -> Option<Located<String>> {
    match &value.value {
        Config::Scalar(Value::String(text)) if !text.is_empty() => {
            Some(Located::new(text.clone(), value.place.clone()))
        }
        _ => {
            wrong(t, format!("`{path}`: expected a string"), &value.place);
            None
        }
    }
}

/// Values without duplicates and not too many; a problem if there are none.
fn checked_values(
    t: &Reader<'_, '_>,
    path: &str,
    values: Vec<Value>,
    place: &Place,
) -> Option<Vec<Value>> {
    let problem = |message: String| wrong(t, message, place);
    let mut kept: Vec<Value> = Vec::new();
    for value in &values {
        if kept.iter().any(|kept| is_same(kept, value)) {
            problem(format!("`{path}`: the value {} occurs twice", shown(value)));
            return None;
        }
        kept.push(value.clone());
    }
    match kept.len() {
        0 => problem(format!("`{path}`: expected at least one value")),
        1..=MOST_VALUES => return Some(kept),
        many => problem(format!("`{path}`: expected at most {MOST_VALUES} values, found {many}")),
    }
    None
}

/// Finds the position of a value in the values to try.
fn among(t: &Reader<'_, '_>, path: &str, value: &ConfigValue, values: &[Value]) -> Option<usize> {
    let wanted = value.value.to_json();
    let found = values.iter().position(|value| is_same(value, &wanted));
    if found.is_none() {
        let known = list(&values.iter().map(shown).collect::<Vec<_>>());
        let wanted = shown(&wanted);
        let message = format!("`{path}`: expected one of the values {known}, found {wanted}");
        t.report(Problem::new(message).at(value.place.clone(), "not one of the values"));
    }
    found
}

/// Options whose values change together: lists of the same length.
fn linked_group(t: &Reader<'_, '_>, group: &ConfigEntry) -> Option<Dimension> {
    let path = format!("engines.linked.{}", group.key.value);
    let problem = |message: String| wrong(t, message, &group.key.place);
    let Config::Table(table) = &group.value.value else {
        problem(format!("`{path}`: expected a table of lists, under [{path}]"));
        return None;
    };
    let mut columns: Vec<(&str, Vec<Value>)> = Vec::new();
    for entry in table.iter() {
        let Config::List(items) = &entry.value.value else {
            let message = format!("`{path}.{}`: expected a list of values", entry.key.value);
            wrong(t, message, &entry.value.place);
            return None;
        };
        columns.push((&entry.key.value, items.iter().map(|item| item.value.to_json()).collect()));
    }
    let length = columns.first().map_or(0, |(_, values)| values.len());
    if let Some((name, values)) = columns.iter().find(|(_, values)| values.len() != length) {
        problem(format!(
            "`{path}`: expected lists of the same length; `{}` has {length} and `{name}` has {}",
            columns[0].0,
            values.len()
        ));
        return None;
    }
    if !(1..=MOST_VALUES).contains(&length) {
        problem(format!("`{path}`: expected from 1 to {MOST_VALUES} values of each option"));
        return None;
    }
    let option =
        |name: &str| OptionKind { name: name.to_owned(), is_env: false, omit: None, off: None };
    Some(Dimension {
        name: group.key.value.clone(),
        options: columns.iter().map(|(name, _)| option(name)).collect(),
        rows: (0..length)
            .map(|row| columns.iter().map(|(_, values)| values[row].clone()).collect())
            .collect(),
        baseline: 0,
        when: None,
        place: group.key.place.clone(),
    })
}

/// Checks that no option occurs twice, and that no variable is both fixed and varied.
fn check_names(t: &Reader<'_, '_>, dimensions: &[Dimension], env: &[(String, String)]) {
    let mut seen: Vec<(&str, &Place)> = Vec::new();
    for dimension in dimensions {
        for name in names(dimension) {
            if let Some((_, first)) = seen.iter().find(|(seen, _)| *seen == name) {
                let problem = Problem::new(format!("the option `{name}` occurs twice"));
                let problem = problem.at(dimension.place.clone(), "the second");
                t.report(problem.at((*first).clone(), "the first"));
            }
            if env.iter().any(|(fixed, _)| fixed == name) {
                let message =
                    format!("the variable `{name}` is both under `env` and under `env-options`");
                wrong(t, message, &dimension.place);
            }
            seen.push((name, &dimension.place));
        }
    }
}

fn rebase(t: &Reader<'_, '_>, entry: &ConfigEntry, dimensions: &mut [Dimension], all: &[String]) {
    let name = entry.key.value.as_str();
    let path = format!("engines.baseline.{name}");
    let holds = |dimension: &&mut Dimension| names(dimension).any(|own| own == name);
    let Some(dimension) = dimensions.iter_mut().find(holds) else {
        let near = suggestion(name, all.iter().map(String::as_str));
        let message = format!("`{path}`: there is no option `{name}`{near}");
        return wrong(t, message, &entry.key.place);
    };
    let place = names(dimension).position(|own| own == name).unwrap_or_default();
    let column: Vec<Value> = dimension.rows.iter().map(|row| row[place].clone()).collect();
    if let Some(row) = among(t, &path, &entry.value, &column) {
        dimension.baseline = row;
    }
}

/// The baseline of linked options is the row that has all the given values.
fn rebase_linked(t: &Reader<'_, '_>, baseline: &ConfigTable, dimensions: &mut [Dimension]) {
    for dimension in dimensions.iter_mut().filter(|dimension| dimension.options.len() > 1) {
        let given = (0..).zip(names(dimension));
        let given: Vec<(usize, &ConfigEntry)> =
            given.filter_map(|(place, name)| Some((place, baseline.get(name)?))).collect();
        let Some((_, first)) = given.first() else { continue };
        let has_all = |row: &Vec<Value>| {
            let mut all = given.iter();
            all.all(|(place, entry)| is_same(&entry.value.value.to_json(), &row[*place]))
        };
        match dimension.rows.iter().position(has_all) {
            Some(row) => dimension.baseline = row,
            None => {
                let message = format!(
                    "`engines.baseline`: no row of the linked options `{}` has these values together",
                    dimension.name
                );
                wrong(t, message, &first.key.place);
            }
        }
    }
}

/// Every text in a table, with its place.
pub(crate) fn texts(table: &ConfigTable, found: &mut Vec<(String, Place)>) {
    fn within(value: &ConfigValue, found: &mut Vec<(String, Place)>) {
        match &value.value {
            Config::Scalar(Value::String(text)) => found.push((text.clone(), value.place.clone())),
            Config::Scalar(_) => {}
            Config::List(items) => items.iter().for_each(|item| within(item, found)),
            Config::Table(table) => texts(table, found),
        }
    }
    for entry in table.iter() {
        within(&entry.value, found);
    }
}

/// Names for conditions: options, the engine and the model by name, each with one value.
pub(crate) struct Names {
    known: Vec<(String, Value)>,
    /// Names that exist but have conditions of their own.
    conditional: Vec<String>,
    /// Names of unreadable options.
    unread: Vec<String>,
}

impl Names {
    /// All options, and `engine` and `model`.
    pub(crate) fn new(
        dimensions: &[Dimension],
        models: &[Model],
        engine: &str,
        unread: &[String],
    ) -> Self {
        let mut names = Names::of_options(dimensions, unread, |_| true);
        let model = models.first().map_or("", |model| model.name.as_str());
        names.known.push(("model".to_owned(), model.into()));
        names.known.push(("engine".to_owned(), engine.into()));
        names
    }

    fn of_options(
        dimensions: &[Dimension],
        unread: &[String],
        is_known: impl Fn(&Dimension) -> bool,
    ) -> Self {
        let (mut known, mut conditional) = (Vec::new(), Vec::new());
        for dimension in dimensions {
            for (place, name) in names(dimension).enumerate() {
                if is_known(dimension) {
                    let value = dimension.rows.first().map(|row| row[place].clone());
                    known.push((name.to_owned(), value.unwrap_or_default()));
                } else {
                    conditional.push(name.to_owned())
                }
            }
        }
        Names { known, conditional, unread: unread.to_vec() }
    }

    /// Reads a condition and checks its names.
    fn read(&self, t: &Reader<'_, '_>, path: &str, text: &Located<String>) -> Option<Condition> {
        let problem =
            |message: String| Problem::new(message).at(text.place.clone(), "in this condition");
        let wrong = |error: String| {
            t.report(problem(format!("`{path}`: `{}` is not a condition: {error}", text.value)));
        };
        let condition = Condition::parse(&text.value).map_err(wrong).ok()?;
        let all: Vec<&str> = self.known.iter().map(|(name, _)| name.as_str()).collect();
        let unknown = condition.unknown(all.iter().copied());
        for name in unknown.iter().filter(|name| !self.unread.iter().any(|own| own == *name)) {
            let message = if self.conditional.iter().any(|other| other == name) {
                format!(
                    "`{path}`: `{name}` has a condition of its own, so no condition can depend on it"
                )
            } else {
                let near = suggestion(name, all.iter().copied());
                format!("`{path}`: there is no option `{name}`{near}")
            };
            t.report(problem(message).help(format!("conditions can name {}", list(&all))));
        }
        if !unknown.is_empty() {
            return None;
        }
        let values = self.known.iter().map(|(name, value)| (name.as_str(), value));
        condition.holds(values).map_err(wrong).ok()?;
        Some(condition)
    }
}

/// The conditions of options, by the position of the option.
fn conditions_of(
    t: &Reader<'_, '_>,
    dimensions: &[Dimension],
    whens: Vec<(String, Located<String>)>,
    unread: &[String],
) -> Vec<(usize, Condition)> {
    let is_conditional =
        |dimension: &Dimension| whens.iter().any(|(name, _)| *name == dimension.name);
    let names = Names::of_options(dimensions, unread, |dimension| !is_conditional(dimension));
    let mut found = Vec::new();
    for (name, when) in &whens {
        let condition = names.read(t, &format!("when of {name}"), when);
        let place = dimensions.iter().position(|dimension| dimension.name == *name);
        found.extend(place.zip(condition));
    }
    found
}

pub(crate) fn conditions(
    t: &mut Reader<'_, '_>,
    key: &'static str,
    names: &Names,
) -> Vec<Located<Condition>> {
    let texts = t.one_or_more(key).map(|list| list.value).unwrap_or_default();
    let read = texts.into_iter().filter_map(|text| {
        let condition = names.read(t, &format!("engines.{key}"), &text)?;
        Some(Located::new(condition, text.place))
    });
    read.collect()
}
