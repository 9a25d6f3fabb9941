//! Conditions on options: the names that they may use.

use serde_json::Value;

use super::names;
use crate::condition::Condition;
use crate::file::{Dimension, Model};
use crate::read::suggestion;
use reader::words::list;
use reader::{Located, Problem, Reader};

/// Names that conditions may use: options, and the engine and the model by name; each with one
/// of its values.
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
        let report = |message: String, help: Option<String>| {
            let problem = Problem::new(message).at(text.place.clone(), "in this condition");
            t.report(match help {
                Some(help) => problem.help(help),
                None => problem,
            });
        };
        let wrong = |error: String| {
            report(format!("`{path}`: `{}` is not a condition: {error}", text.value), None);
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
            report(message, Some(format!("conditions can name {}", list(&all))));
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
pub(super) fn conditions_of(
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

/// A key that holds conditions.
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
