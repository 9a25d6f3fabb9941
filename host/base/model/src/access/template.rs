//! Texts with placeholders in braces, which a backend writes for additions to requests.

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<P> {
    /// Text that stands for itself.
    Text(String),
    /// A placeholder.
    Value(P),
}

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template<P>(Vec<Piece<P>>);

/// An error: a text in braces is no placeholder.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no placeholder; expected {expected}")]
pub struct UnknownPlaceholder {
    found: String,
    expected: String,
}

impl<P: Copy + PartialEq> Template<P> {
    /// Reads a text in which braces stand for these placeholders and nothing else. Fails if another
    /// text stands in braces.
    pub fn parse(text: &str, known: &[(&str, P)]) -> Result<Self, UnknownPlaceholder> {
        Template::read(text, known, |name, is_closed| {
            let all: Vec<String> = known.iter().map(|(word, _)| format!("`{{{word}}}`")).collect();
            let shown: String = name.chars().take(64).collect();
            let end = if is_closed { "}" } else { "" };
            Err(UnknownPlaceholder {
                found: format!("{{{}{end}", shown.escape_debug()),
                expected: all.join(", "),
            })
        })
    }

    /// Reads a text in which other braces stand for themselves, such as the braces of JSON.
    pub fn within(text: &str, known: &[(&str, P)]) -> Self {
        let Ok(template) =
            Template::read(text, known, |_, _| Ok::<_, std::convert::Infallible>(()));
        template
    }

    /// Reads a text; `unknown` decides about a brace without a placeholder, by the text behind it.
    fn read<E>(
        text: &str,
        known: &[(&str, P)],
        unknown: impl Fn(&str, bool) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            plain.push_str(before);
            let (name, behind) = after.split_once('}').unwrap_or((after, ""));
            let is_closed = name.len() < after.len();
            match known.iter().find(|(word, _)| is_closed && *word == name) {
                Some((_, placeholder)) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Value(*placeholder));
                    rest = behind;
                }
                None => {
                    unknown(name, is_closed)?;
                    plain.push('{');
                    rest = after;
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Template(pieces))
    }

    /// Returns its parts, in order.
    pub fn pieces(&self) -> &[Piece<P>] {
        &self.0
    }

    /// True if it has this placeholder.
    pub fn has(&self, placeholder: P) -> bool {
        self.0.contains(&Piece::Value(placeholder))
    }

    /// Returns the text with these values in place of the placeholders.
    pub fn with<S: AsRef<str>>(&self, value: impl Fn(P) -> S) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Value(placeholder) => text.push_str(value(*placeholder).as_ref()),
            }
        }
        text
    }
}
