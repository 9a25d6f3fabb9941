//! Unique names of samples: the rows' own names, and names made of a sample's number where a row's
//! name is repeated or missing.

use std::collections::HashSet;

use crate::fingerprint;

#[derive(Default)]
pub struct Names {
    /// Fingerprints of the rows' own names, and of their replacements.
    taken: HashSet<u64>,
    /// True if a name was made for a row without one.
    made: bool,
}

impl Names {
    /// The name of sample `number`, from 1, and whether it had to be changed. `turns` is the number
    /// of samples of a session, which are called `NAME/0`, `NAME/1` and so on, or none if the
    /// sample stands alone. `again` says that the file is read again, where every name gets the
    /// number.
    pub fn name(
        &mut self,
        own: Option<&str>,
        number: u64,
        turns: Option<usize>,
        again: bool,
    ) -> (String, bool) {
        let Some(own) = own else {
            self.made = true;
            return (self.free(generated(number), number, turns), false);
        };
        // Made names are not kept, since a file may have many: their form identifies them.
        let was_made =
            self.made && number_of(own).is_some_and(|made| made < number && own == generated(made));
        if !again && !was_made && self.is_free(own, turns) {
            self.take(own, turns);
            return (own.to_owned(), false);
        }
        let name = self.free(format!("{own}#{number}"), number, turns);
        if !again {
            self.take(&name, turns);
        }
        (name, !again)
    }

    /// Takes a name that is no row's.
    pub fn reserve(&mut self, name: &str) {
        self.take(name, None);
    }

    /// A free name. Names that end in the number differ from all names that end in other numbers.
    fn free(&self, name: String, number: u64, turns: Option<usize>) -> String {
        let mut name = name;
        while !self.is_free(&name, turns) {
            name = format!("{name}#{number}");
        }
        name
    }

    fn is_free(&self, name: &str, turns: Option<usize>) -> bool {
        let mut names = names_of(name, turns);
        names.all(|name| !self.taken.contains(&fingerprint(name)))
    }

    fn take(&mut self, name: &str, turns: Option<usize>) {
        self.taken.extend(names_of(name, turns).map(fingerprint));
    }
}

/// The names of a session's samples, after its own.
fn names_of(name: &str, turns: Option<usize>) -> impl Iterator<Item = String> {
    let turns = (0..turns.unwrap_or(0)).map(move |turn| format!("{name}/{turn}"));
    std::iter::once(name.to_owned()).chain(turns)
}

fn generated(number: u64) -> String {
    format!("custom-{number:06}")
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("custom-")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(rows: &[Option<&str>]) -> Vec<String> {
        let mut names = Names::default();
        let rows = (1..).zip(rows);
        rows.map(|(number, own)| names.name(*own, number, None, false).0).collect()
    }

    #[test]
    fn no_two_names_are_equal() {
        for (rows, expected) in [
            (vec![Some("x"), Some("x"), Some("x#2")], vec!["x", "x#2", "x#2#3"]),
            (vec![Some("x#2"), Some("x#3"), Some("x"), Some("x")], vec!["x#2", "x#3", "x", "x#4"]),
            (
                vec![Some("x#2"), Some("x"), Some("x"), Some("x#2")],
                vec!["x#2", "x", "x#3", "x#2#4"],
            ),
            (
                vec![None, Some("custom-000001"), Some("custom-000009")],
                vec!["custom-000001", "custom-000001#2", "custom-000009"],
            ),
            (vec![Some("custom-000002"), None], vec!["custom-000002", "custom-000002#2"]),
        ] {
            assert_eq!(named(&rows), expected);
        }
    }

    #[test]
    fn turns_have_names_of_their_own() {
        let mut names = Names::default();
        assert_eq!(names.name(Some("a/1"), 1, None, false).0, "a/1");
        assert_eq!(names.name(Some("a"), 2, Some(2), false).0, "a#2");
        assert_eq!(names.name(Some("a#2/0"), 3, None, false).0, "a#2/0#3");
        assert_eq!(names.name(Some("a"), 4, None, true), ("a#4".to_owned(), false));
    }
}
