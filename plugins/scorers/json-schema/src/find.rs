//! Finds the JSON in an answer. Leaves its validity to others.

use serde_json::Value;

/// The JSON that an answer is, or the first one between lines of three backquotes.
pub fn json(answer: &str, fenced: bool) -> Option<Value> {
    serde_json::from_str(answer).ok().or_else(|| if fenced { in_a_fence(answer) } else { None })
}

fn in_a_fence(answer: &str) -> Option<Value> {
    // The start of the block whose end is not yet found.
    let mut begin = None;
    let mut at = 0;
    for line in answer.split_inclusive('\n') {
        let is_fence = line.trim().starts_with("```");
        match begin {
            None if is_fence => begin = Some(at + line.len()),
            Some(start) if is_fence => {
                if let Ok(value) = serde_json::from_str(&answer[start..at]) {
                    return Some(value);
                }
                begin = None;
            }
            _ => {}
        }
        at += line.len();
    }
    // An answer may end before its block does.
    serde_json::from_str(&answer[begin?..]).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_answers_and_fences() {
        assert_eq!(json(" {\"a\": 1}\n", true), Some(json!({"a": 1})));
        let answer = "Code:\n```python\nx = 1\n```\nand\n```json\n[1,\n2]\n```\n```\n3\n```";
        assert_eq!(json(answer, true), Some(json!([1, 2])));
        assert_eq!(json(answer, false), None);
        assert_eq!(json("```\n4\n", true), Some(json!(4)));
        assert_eq!(json("see ```4```", true), None);
        assert_eq!(json("", true), None);
    }
}
