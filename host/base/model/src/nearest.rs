//! Guesses a misspelled name.

/// The name nearest to the written text, if it is near enough to have been meant. Case and the
/// difference between `_` and `-` do not count.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let written = plain(written);
    // A third of the letters wrong is a slip; more is another word. Comparing is quadratic, and no
    // name of ours is that long.
    let allowed = written.chars().count().min(64) / 3;
    names
        .into_iter()
        .filter(|name| name.chars().count().abs_diff(written.chars().count()) <= allowed)
        .map(|name| (strsim::damerau_levenshtein(&written, &plain(name)), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_misspelled_name() {
        let names = ["requests", "duration", "rate", "max-in-flight"];
        let find = |written: &str| nearest(written, names);
        assert_eq!(find("reqests"), Some("requests"));
        assert_eq!(find("Max_In_Flight"), Some("max-in-flight"));
        assert_eq!(find("rte"), Some("rate"));
        assert_eq!(find("throughput"), None);
        assert_eq!(find(""), None);
        assert_eq!(find(&"r".repeat(100_000)), None);
    }
}
