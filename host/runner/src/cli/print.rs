//! The edge where text leaves the program: results go to stdout, everything else to stderr. Names,
//! messages and files come from servers, plugins and pages, so all printed text is cleaned of
//! control characters. Styles are our own, and are put around text that is clean already
//! ([`StyledText`]).
//!
//! Reports that go to files as well are cleaned where they are drawn, and so go through
//! [`super::destination`]. Progress and the dashboard draw over a terminal by themselves, and clean
//! their text.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use super::failure::Failure;
use model::clean;
use serde::Serialize;

/// Writes a line to stderr. It is no error if nobody reads stderr any more.
pub fn tell(message: impl Display) {
    let message = message.to_string();
    let _ = writeln!(std::io::stderr().lock(), "{}", clean::text(&message));
}

pub fn tell_styled(words: &StyledText) {
    let _ = writeln!(std::io::stderr().lock(), "{}", words.0.trim_end());
}

/// Writes a result to stdout. A reader that has gone away is no error.
pub fn write_stdout(text: &str) -> Result<(), Failure> {
    wrote(std::io::stdout().write_all(clean::text(text).as_bytes())).map(drop)
}

/// Writes a result to stdout, with which a command ends well.
pub fn finish(text: &str) -> Result<ExitCode, Failure> {
    write_stdout(text).map(|()| ExitCode::SUCCESS)
}

pub fn json(document: &impl Serialize) -> Result<String, Failure> {
    report::json::json(document).map_err(Failure::cannot("write JSON"))
}

pub fn write_styled(text: &StyledText) -> Result<(), Failure> {
    wrote(std::io::stdout().write_all(text.0.as_bytes())).map(drop)
}

/// Judges the writing of a part of a result to stdout. Returns true if its reader is still there.
pub fn wrote(written: std::io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(cause) => Err(Failure::input(format!("cannot write the result to stdout: {cause}"))),
    }
}

/// A colour of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Red = 31,
    Green = 32,
    Cyan = 36,
}

/// Text with our own styles. Added text is cleaned first.
#[derive(Clone, Debug, Default)]
pub struct StyledText(String);

impl StyledText {
    pub fn plain(&mut self, text: &str) -> &mut Self {
        self.0.push_str(&clean::text(text));
        self
    }

    /// Adds text in a colour, if stdout is a terminal and `NO_COLOR` is not set.
    pub fn painted(&mut self, text: &str, colour: Colour) -> &mut Self {
        let painted = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        if painted {
            let text = clean::text(text);
            self.0.push_str(&format!("\u{1b}[{}m{text}\u{1b}[0m", colour as u8));
            self
        } else {
            self.plain(text)
        }
    }

    /// Chooses a library's styled text, if its plain form needs no cleaning.
    pub fn drawn(plain: &str, styled: impl FnOnce() -> Option<String>) -> StyledText {
        let clean = clean::text(plain);
        match (clean == plain).then(styled).flatten() {
            Some(styled) => StyledText(styled),
            None => StyledText(clean.into_owned()),
        }
    }
}

/// The rows of a table. Each column is as wide as its widest cell; the last column is not padded.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            line += &format!(" {cell:<width$} ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleans_foreign_styles() {
        let mut text = StyledText::default();
        text.plain("a\u{1b}[2J\n").painted("b\u{9b}c", Colour::Red);
        assert_eq!(text.0, "a\\u{1b}[2J\nb\\u{9b}c");
        let styled = || Some("\u{1b}[1mbold\u{1b}[0m".to_owned());
        assert_eq!(StyledText::drawn("bold", styled).0, "\u{1b}[1mbold\u{1b}[0m");
        assert_eq!(StyledText::drawn("bo\u{7}ld", styled).0, "bo\\u{7}ld");
    }
}
