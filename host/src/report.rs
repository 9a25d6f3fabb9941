//! A run's result in the forms people and programs read: the text block, JSON, and a table of
//! exchanges as CSV; and the schemas of the JSON forms. Pure: a summary or exchanges in, text out.

pub mod csv;
pub mod json;
pub mod schema;
pub mod text;

#[cfg(test)]
mod tests;

/// Text from outside on one line, without control characters: what a server or a plugin says
/// must not break a row, nor reach a terminal as a command.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
