//! Lines of Prometheus' text format
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), with their labels.
//!
//! This crate owns the reading of lines, for plugins and for the host. Its callers know the
//! figures' names, and the counters among them.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

use std::borrow::Cow;

/// A line that holds a sample.
#[derive(Debug, PartialEq)]
pub struct Line<'t> {
    /// The name of the metric.
    pub name: &'t str,
    /// Its labels by name, without escapes, in the order of the line.
    pub labels: Vec<(&'t str, Cow<'t, str>)>,
    /// Its value, which is finite.
    pub value: f64,
}

impl<'t> Line<'t> {
    /// The value of a label, if it has one.
    pub fn label(&self, name: &str) -> Option<&str> {
        let (_, value) = self.labels.iter().find(|(label, _)| *label == name)?;
        (!value.is_empty()).then_some(&**value)
    }

    /// Reads a line; none if it holds no sample.
    fn parse(line: &'t str) -> Option<Self> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let name_end = line.find(|c: char| c == '{' || c.is_whitespace())?;
        let (name, rest) = line.split_at(name_end);
        let (labels, rest) = match rest.trim_start().strip_prefix('{') {
            Some(labels) => labels_of(labels)?,
            None => (Vec::new(), rest),
        };
        let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
        value.is_finite().then_some(Line { name, labels, value })
    }
}

/// The lines of a page that hold samples.
pub fn lines(page: &str) -> impl Iterator<Item = Line<'_>> {
    page.lines().filter_map(Line::parse)
}

#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn labels_of(text: &str) -> Option<(Vec<(&str, Cow<'_, str>)>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once('=')?;
        let quoted = after.trim_start().strip_prefix('"')?;
        let end = end_of(quoted)?;
        labels.push((name.trim(), unescaped(&quoted[..end])));
        rest = quoted[end + 1..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
}

/// The place where the quote is that ends a value.
fn end_of(quoted: &str) -> Option<usize> {
    let mut escaped = false;
    quoted
        .char_indices()
        .find(|(_, c)| match c {
            _ if escaped => {
                escaped = false;
                false
            }
            '\\' => {
                escaped = true;
                false
            }
            c => *c == '"',
        })
        .map(|(at, _)| at)
}

/// A value without its escapes: a backslash, a quote, a line break.
fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => match letters.next() {
                Some('n') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => {}
            },
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_labels() {
        let page = r#"# HELP a Something
a 1
b{} 2.5e1 1700000000000
c{x="1",y="a}\"{\\\n",} -3
d { x = "1" , y = "2" } 4
e NaN
f +Inf
g{x="1 5
h{x} 6
i{x="1"}
 "#;
        let found: Vec<(&str, Vec<String>, f64)> = lines(page)
            .map(|line| {
                let labels = line.labels.iter();
                let labels = labels.map(|(name, value)| format!("{name}={value}"));
                (line.name, labels.collect(), line.value)
            })
            .collect();
        let text = |labels: &[&str]| labels.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                ("a", text(&[]), 1.0),
                ("b", text(&[]), 25.0),
                ("c", text(&["x=1", "y=a}\"{\\\n"]), -3.0),
                ("d", text(&["x=1", "y=2"]), 4.0),
            ]
        );
    }
}
