//! Problems of a scenario: each problem with its place, and all problems together. The caller
//! prints them with the scenario's text.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, SourceCode};

use crate::located::Place;

#[derive(Clone, Debug)]
pub struct Problem {
    message: String,
    help: Option<String>,
    places: Vec<(Place, String)>,
    secret: bool,
}

impl Problem {
    /// A mistake; `message` states the expected and the found value.
    pub fn new(message: impl Into<String>) -> Self {
        Problem { message: one_line(message.into()), help: None, places: Vec::new(), secret: false }
    }

    /// Points at a place. `label` is shown there; a line of text names the first place.
    pub fn at(mut self, place: impl Into<Option<Place>>, label: impl Into<String>) -> Self {
        self.places.extend(place.into().map(|place| (place, label.into())));
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(one_line(help.into()));
        self
    }

    /// The text at the place may be a secret: its place is printed, its text is not.
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Its place, if it has one; a missing thing may have none.
    pub fn place(&self) -> Option<&Place> {
        self.places.first().map(|(place, _)| place)
    }

    /// True if its place is drawn with the lines around it: not if they may hold a secret, are very
    /// long, or hold characters that a terminal obeys.
    fn is_drawn(&self) -> bool {
        !self.secret && !self.places.iter().any(|(place, _)| is_hard_to_draw(place))
    }

    /// The places in the text of the first place: only one text can be shown.
    fn shown(&self) -> impl Iterator<Item = &(Place, String)> {
        let text = self.places.iter().find_map(|(place, _)| place.source());
        self.places.iter().filter(move |(place, _)| match (text, place.source()) {
            (Some(text), Some(source)) => std::sync::Arc::ptr_eq(text, source),
            _ => false,
        })
    }
}

/// The longest message, and the longest line that is drawn with a problem in it, in bytes.
const LONGEST: usize = 1_000;

/// True if the lines around a place are very long together, or not only text.
fn is_hard_to_draw(place: &Place) -> bool {
    let (Some(source), Some(span)) = (place.source(), place.span()) else { return false };
    let text = source.inner();
    let begin = text.floor_char_boundary(span.offset());
    let end = text.ceil_char_boundary(span.offset().saturating_add(span.len()));
    // A line above and one below are drawn too.
    let above = text[..begin].rmatch_indices('\n').nth(1);
    let below = text[end..].match_indices('\n').nth(1);
    let begin = above.map_or(0, |(at, _)| at + 1);
    let end = below.map_or(text.len(), |(at, _)| end + at);
    let obeyed = |c: char| c.is_control() && !"\t\r\n".contains(c);
    end - begin > 4 * LONGEST || text[begin..end].contains(obeyed)
}

/// Text from a file or a plugin, escaped to one line, and cut where it is very long.
fn one_line(mut text: String) -> String {
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text.replace(char::is_control, " ")
}

/// Writes the expected and the found value. The diagnostic shows places and advice, except where it
/// draws no place, which would otherwise be lost.
impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place().filter(|_| !self.is_drawn()) {
            write!(out, "{place}: ")?;
        }
        out.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        if !self.is_drawn() {
            return None;
        }
        let source = self.places.iter().find_map(|(place, _)| place.source())?;
        Some(source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if !self.is_drawn() {
            return None;
        }
        let labels = self.shown().filter_map(|(place, label)| {
            let label = (!label.is_empty()).then(|| label.clone());
            Some(LabeledSpan::new_with_span(label, place.span()?))
        });
        Some(Box::new(labels))
    }
}

const MOST: usize = 100;

/// All mistakes in a scenario, in the order of its text.
///
/// Its text has a line per problem (`file:line:column: message`, then the advice). As a diagnostic,
/// it has its problems as related diagnostics, each with its own text and labels.
#[derive(Clone, Debug)]
pub struct ScenarioError {
    problems: Vec<Problem>,
}

impl ScenarioError {
    /// All of these, or the first of very many; problems without a place come last.
    pub fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| {
            let place = problem.place();
            let offset = place.and_then(Place::span).map(|span| span.offset());
            (place.is_none(), offset.is_none(), offset)
        });
        if problems.len() > MOST {
            problems.truncate(MOST);
            let words = format!("there are more mistakes; these are the first {MOST}");
            problems.push(Problem::new(words));
        }
        ScenarioError { problems }
    }

    /// `Ok` if there is no problem.
    pub fn unless_empty(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(ScenarioError::new(problems)) }
    }

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
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, parse_table};

    fn problems(text: &str) -> Vec<Problem> {
        let read = |t: &mut Reader<'_, '_>, _: &_| drop(t.integer("known"));
        let (_, problems) = parse_table("file.toml", text, &[], read);
        ScenarioError::new(problems).problems
    }

    /// Returns the printed form of a text's mistakes, as a user sees it.
    fn shown(text: &str) -> String {
        let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
        let mut shown = String::new();
        for problem in problems(text) {
            handler.render_report(&mut shown, &problem).unwrap();
        }
        shown
    }

    #[test]
    fn only_short_plain_text_is_drawn() {
        assert!(shown("unknown = 1\n").contains("unknown = 1"));
        let long = format!("known = \"{}\"\n", "x".repeat(1 << 19));
        for text in [
            long.clone(),
            format!("# {}\nunknown = 1\n", "x".repeat(1 << 19)),
            format!("{} = 1\n", "x".repeat(1 << 19)),
            format!("{}a = 1\n", "a.".repeat(1 << 18)),
            format!("[{}a]\n", "a.".repeat(1 << 18)),
            format!("x = {}\n", "[".repeat(1 << 19)),
            format!("x = {}1\n", "{a=".repeat(1 << 17)),
        ] {
            let shown = shown(&text);
            assert!(shown.contains("file.toml:"), "{:.300}", shown);
            assert!(shown.len() < 4_000, "{} bytes", shown.len());
        }
        for text in ["known = \"\x1b[2J\"\n", "# \x1b]0;x\x07\n", "a\0 = 1\n", "known = 1 \u{9b}2J"]
        {
            let shown = shown(text);
            let obeyed = |c: char| c.is_control() && c != '\n';
            assert!(shown.contains("file.toml:1:") && !shown.contains(obeyed), "{shown:?}");
        }
    }

    #[test]
    fn only_the_first_of_many_mistakes_are_reported() {
        let many: String = (0..50_000).map(|number| format!("k{number} = 1\n")).collect();
        let problems = problems(&many);
        assert_eq!(problems.len(), MOST + 1);
        assert_eq!(problems[0].message(), "unknown key `k0`");
        assert_eq!(problems[MOST].message(), "there are more mistakes; these are the first 100");
    }

    #[test]
    fn any_text_is_read_or_refused() {
        for (text, message) in [
            ("\u{feff}known = 1\r\n", None),
            ("known = 1\r\nknown = 2\r\n", Some("duplicate key")),
            ("[a]\n[a]\n", Some("duplicate key")),
            ("known = 1\0", Some("not TOML")),
            ("known = 1\rx = 2", Some("not TOML")),
        ] {
            let messages: Vec<_> = problems(text).iter().map(|p| p.message().to_owned()).collect();
            match message {
                None => assert!(messages.is_empty(), "{text:?}: {messages:?}"),
                Some(message) => assert!(messages[0].contains(message), "{text:?}: {messages:?}"),
            }
        }
        let large = "#".repeat(crate::MOST_BYTES + 1);
        let expected = "file.toml: it is larger than 1 MiB, the most that is read";
        assert_eq!(problems(&large)[0].message(), expected);
    }
}
