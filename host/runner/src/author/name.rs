//! A plugin's name: its rules, and its spelling where a language requires another one.

/// Maximum length of a name; it becomes the name of files and crates.
const LONGEST: usize = 64;

/// A checked name: lower-case words and numbers joined by `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    pub fn kebab(&self) -> &str {
        &self.0
    }

    /// With `_` for `-`, as identifiers want it.
    pub(crate) fn snake(&self) -> String {
        self.0.replace('-', "_")
    }
}

impl std::str::FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let fits = text.len() <= LONGEST
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.split('-').all(word);
        if fits {
            Ok(Name(text.to_owned()))
        } else {
            Err(format!(
                "expected lower-case words of letters and digits joined by `-`, starting with a letter, \
                 such as {}, at most {LONGEST} long",
                suggestion(text)
            ))
        }
    }
}

fn suggestion(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut last_lower = false;
    for letter in text.chars() {
        let begins = words.is_empty() || !letter.is_ascii_alphanumeric();
        if begins || (letter.is_ascii_uppercase() && last_lower) {
            words.push(String::new());
        }
        last_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if let (true, Some(word)) = (letter.is_ascii_alphanumeric(), words.last_mut()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    let mut name = words.join("-");
    name.truncate(LONGEST);
    if name.starts_with(|first: char| first.is_ascii_lowercase()) {
        format!("`{}`", name.trim_end_matches('-'))
    } else {
        "`my-engine`".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn words_with_dashes_are_names() {
        for text in ["a", "vllm", "my-engine", "engine-2", "x1-2y"] {
            assert_eq!(text.parse::<Name>().unwrap().kebab(), text);
        }
        assert_eq!("my-engine-2".parse::<Name>().unwrap().snake(), "my_engine_2");
    }

    #[test]
    fn suggests_a_valid_name() {
        let error = |text: &str| text.parse::<Name>().unwrap_err();
        for (text, nearest) in [
            ("My_Engine", "`my-engine`"),
            ("myEngine", "`my-engine`"),
            ("my engine", "`my-engine`"),
            ("-engine-", "`engine`"),
            ("a--b", "`a-b`"),
            ("../up", "`up`"),
            ("9", "`my-engine`"),
            ("", "`my-engine`"),
            ("ä", "`my-engine`"),
        ] {
            assert!(error(text).contains(nearest), "{text}: {}", error(text));
        }
        let long = "a".repeat(65);
        assert!(error(&long).contains("at most 64"));
    }
}
