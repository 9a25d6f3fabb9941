//! The marks of the text that a model wrote, `{% generation %}` and `{% endgeneration %}`:
//! transformers' own extension of Jinja, which changes nothing in the text.

/// The template with blocks for these marks, which leave contents and white space alone.
pub(super) fn without_marks(template: &str) -> String {
    let mut plain = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        plain.push_str(before);
        let inner = tag["{%".len()..].trim_start_matches(['-', '+']);
        let word = inner.trim_start();
        let named = [("endgeneration", "endif"), ("generation", "if true")].into_iter().find(
            |(name, _)| {
                let behind = word.strip_prefix(name).map(str::trim_start);
                behind.is_some_and(|behind| behind.trim_start_matches(['-', '+']).starts_with("%}"))
            },
        );
        let start = tag.len() - word.len();
        match named {
            Some((name, block)) => {
                plain.push_str(&tag[..start]);
                plain.push_str(block);
                rest = &word[name.len()..];
            }
            None => {
                plain.push_str(&tag[..start]);
                rest = word;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marks_are_replaced() {
        let template =
            "a{%- generation -%} b {% set generation = 1 %}{{ generation }}{%endgeneration%}{%-";
        let expected = "a{%- if true -%} b {% set generation = 1 %}{{ generation }}{%endif%}{%-";
        assert_eq!(without_marks(template), expected);
    }
}
