//! What is wrong with a scenario: each problem with its place, and all problems together.
//!
//! Made to be printed together with the scenario's text by the caller; prints nothing itself.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, SourceCode};

use crate::located::Place;

/// One mistake.
#[derive(Clone, Debug)]
pub struct Problem {
    message: String,
    help: Option<String>,
    places: Vec<(Place, String)>,
    secret: bool,
}

impl Problem {
    /// A mistake; `message` says what was expected and what was found.
    pub fn new(message: impl Into<String>) -> Self {
        Problem {
            message: one_line(message.into()),
            help: None,
            places: Vec::new(),
            secret: false,
        }
    }

    /// Points at a place. `label` is shown there; the first place is the one named in a line of text.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<Place>>, label: impl Into<String>) -> Self {
        self.places
            .extend(place.into().map(|place| (place, label.into())));
        self
    }

    /// What to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(one_line(help.into()));
        self
    }

    /// The text at the place may be a secret: its place is printed, its text is not.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// What was expected and what was found.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Its place, if it has one; a missing thing may have none.
    pub fn place(&self) -> Option<&Place> {
        self.places.first().map(|(place, _)| place)
    }

    /// The places in the text of the first place: only one text can be shown.
    fn shown(&self) -> impl Iterator<Item = &(Place, String)> {
        let text = self.places.iter().find_map(|(place, _)| place.source());
        self.places
            .iter()
            .filter(move |(place, _)| match (text, place.source()) {
                (Some(text), Some(source)) => std::sync::Arc::ptr_eq(text, source),
                _ => false,
            })
    }
}

/// Text from a file or a plugin is escaped, so that it can only appear as text on one line.
fn one_line(text: String) -> String {
    text.replace(char::is_control, " ")
}

/// What was expected and what was found. The diagnostic shows places and advice, except for a
/// secret, whose place would otherwise be lost.
impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place().filter(|_| self.secret) {
            write!(out, "{place}: ")?;
        }
        out.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        if self.secret {
            return None;
        }
        let source = self.places.iter().find_map(|(place, _)| place.source())?;
        Some(source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.secret {
            return None;
        }
        let labels = self.shown().filter_map(|(place, label)| {
            let label = (!label.is_empty()).then(|| label.clone());
            Some(LabeledSpan::new_with_span(label, place.span()?))
        });
        Some(Box::new(labels))
    }
}

/// Everything that is wrong with a scenario, in the order of its text.
///
/// It can be printed by itself, one line per problem (`file:line:column: what`, then the advice); as a
/// diagnostic, its problems are related ones, each with its own text and labels.
#[derive(Clone, Debug)]
pub struct ScenarioError {
    problems: Vec<Problem>,
}

impl ScenarioError {
    /// All of these; those without a place come last.
    pub fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| {
            let place = problem.place();
            let offset = place.and_then(Place::span).map(|span| span.offset());
            (place.is_none(), offset.is_none(), offset)
        });
        ScenarioError { problems }
    }

    /// `Ok` if nothing is wrong.
    pub fn unless_empty(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(ScenarioError::new(problems))
        }
    }

    /// Each mistake.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            if let Some(place) = problem.place() {
                write!(out, "{place}: ")?;
            }
            out.write_str(&problem.message)?;
            if let Some(help) = &problem.help {
                write!(out, "\n    {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

impl Diagnostic for ScenarioError {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(
            self.problems
                .iter()
                .map(|problem| problem as &dyn Diagnostic),
        ))
    }
}
