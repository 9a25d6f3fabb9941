//! Files of several texts in the format [txtar](https://pkg.go.dev/golang.org/x/tools/txtar): a
//! comment, then a line `-- NAME --` before each text.

/// The name in a line that begins a text.
pub fn heading(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_prefix("-- ")?.strip_suffix(" --")?;
    Some(name).filter(|name| !name.trim().is_empty())
}

/// Reads the comment, and the names and texts in order.
pub fn read(text: &str) -> (String, Vec<(String, String)>) {
    let (mut comment, mut texts) = (String::new(), Vec::<(String, String)>::new());
    for line in text.split_inclusive('\n') {
        match (heading(line), texts.last_mut()) {
            (Some(name), _) => texts.push((name.to_owned(), String::new())),
            (None, Some((_, text))) => text.push_str(line),
            (None, None) => comment.push_str(line),
        }
    }
    (comment, texts)
}

/// Writes them.
pub fn write<'t>(comment: &str, texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> String {
    let texts = texts.into_iter().map(|(name, text)| format!("-- {name} --\n{text}"));
    comment.to_owned() + &texts.collect::<String>()
}
