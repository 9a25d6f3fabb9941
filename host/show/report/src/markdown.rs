//! A page of runs in Markdown, as engine projects publish them: doubts first, a table of contents,
//! a summary, a comparison of the runs of each model, then a section for each engine and model with
//! the server's launch command, the runner's command and the text block, and finally how the runs
//! were made.
//!
//! The layout is the template `markdown/page.md`. `page` and `made` gather its content; this module
//! renders it. All text is escaped unless it was made safe here: text from a server, a plugin or a
//! file name must not become a heading, a link, a cell or HTML.

pub(crate) mod escape;
mod made;
mod page;
pub(crate) mod slug;

#[cfg(test)]
mod tests;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior};

use page::Page;
use runs::Reported;

const TEMPLATE: &str = include_str!("markdown/page.md");

/// A run for a page.
pub struct Shown {
    /// The facts that the page has about it.
    pub reported: Reported,
    /// Its block of text, in whatever style.
    pub block: String,
}

/// The page of these runs, in their order.
///
/// # Errors
/// Only if the template is wrong.
pub fn page(runs: &[Shown]) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let mut syntax = SyntaxConfig::builder();
    syntax
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true);
    environment.set_syntax(syntax.build()?);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(escaped);
    environment.add_template("page", TEMPLATE)?;
    environment
        .get_template("page")?
        .render(Serde(Page::of(runs)))
}

/// Writes a value into the page, escaped unless it is safe.
fn escaped(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() => out.write_str(&escape::inline(text)).map_err(Error::from),
        _ => minijinja::escape_formatter(out, state, value),
    }
}
