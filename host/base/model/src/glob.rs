//! Patterns of names, in which `*` stands for any text.

/// True if a name fits a pattern. It takes time in proportion to the name for each part of the
/// pattern, whatever the two are.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, name, does) in [
            ("a.json", "a.json", true),
            ("a.json", "a.jsonl", false),
            ("*.json", "a.json", true),
            ("*.json", "a.jsonl", false),
            ("a*b*.json", "axxbyy.json", true),
            ("a*b*.json", "axx.json", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "ba", false),
            ("a*a", "a", false),
            ("*ab*ab", "ab", false),
            ("*ab*ab", "abab", true),
            ("**", "a", true),
        ] {
            assert_eq!(fits(pattern, name), does, "{pattern} {name}");
        }
        // Each star may not double the time.
        let stars = "a*".repeat(64) + "b";
        assert!(!fits(&stars, &"a".repeat(10_000)));
    }
}
