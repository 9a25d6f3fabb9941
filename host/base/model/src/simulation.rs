//! The settings with which engines simulate the acceptance of drafts, and their place in a launch
//! command. An engine that simulates acceptance has the speed of the stated acceptance length, but
//! its answers are no texts of the model. `finding` and `session` decide on the consequences.

/// A setting of an engine that simulates acceptance.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// The engine's name for people.
    pub engine: &'static str,
    /// The name of the flag, the variable or the field.
    pub name: &'static str,
    /// The word that turns it on; without one, a number above 0 does.
    word: Option<&'static str>,
}

const SETTINGS: [Setting; 6] = [
    Setting { engine: "vLLM", name: "rejection_sample_method", word: Some("synthetic") },
    Setting { engine: "vLLM", name: "synthetic_acceptance_length", word: None },
    Setting { engine: "SGLang", name: "SGLANG_SIMULATE_ACC_LEN", word: None },
    Setting {
        engine: "TensorRT-LLM",
        name: "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS",
        word: None,
    },
    Setting { engine: "ATOM", name: "--spec-decode-acceptance-length", word: None },
    Setting { engine: "ATOM", name: "--spec-decode-acceptance-rate", word: None },
];

/// Finds the setting that simulates acceptance in a launch command, in any form that shells,
/// containers and JSON give it.
pub fn simulated_acceptance(command: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| {
        let mut places = command.match_indices(setting.name);
        places.any(|(at, name)| {
            let within = |c: char| c.is_alphanumeric() || c == '_';
            let is_whole = !command[..at].ends_with(within);
            is_whole && setting.is_on(&command[at + name.len()..])
        })
    })
}

impl Setting {
    /// True if the text after the name turns the setting on. A value from a variable does.
    fn is_on(&self, after: &str) -> bool {
        let separates = |c: char| c.is_whitespace() || "\"'\\:=".contains(c);
        let value = after.trim_start_matches(separates);
        let is_apart = value.len() < after.len();
        let end = value.find(|c: char| separates(c) || ",;}".contains(c));
        let value = &value[..end.unwrap_or(value.len())];
        is_apart
            && match self.word {
                Some(word) => value == word,
                None => {
                    value.starts_with('$') || value.parse().is_ok_and(|number: f64| number > 0.0)
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_as_people_write_them() {
        for (command, name) in [
            (
                r#"vllm serve m --speculative-config '{"rejection_sample_method":"synthetic","synthetic_acceptance_length":3.24}'"#,
                "rejection_sample_method",
            ),
            (
                "vllm serve m \\\n  --speculative-config='{\n    \"method\": \"eagle3\",\n    \"rejection_sample_method\": \"synthetic\"\n  }'",
                "rejection_sample_method",
            ),
            (
                r#"sh -c "vllm serve m --speculative-config {\"synthetic_acceptance_length\": 3.24}""#,
                "synthetic_acceptance_length",
            ),
            ("vllm serve m -sc.rejection_sample_method synthetic", "rejection_sample_method"),
            (
                "SGLANG_SIMULATE_ACC_LEN=3.24 SGLANG_SIMULATE_ACC_METHOD=match-expected python -m sglang.launch_server",
                "SGLANG_SIMULATE_ACC_LEN",
            ),
            ("docker run -e \"SGLANG_SIMULATE_ACC_LEN=$AL\" sglang", "SGLANG_SIMULATE_ACC_LEN"),
            ("SGLANG_SIMULATE_ACC_LEN: '3.24'", "SGLANG_SIMULATE_ACC_LEN"),
            (
                "export TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=2.5; trtllm-serve m",
                "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS",
            ),
            (
                "python -m atom.entrypoints.openai_server --spec-decode-acceptance-length 3.78",
                "--spec-decode-acceptance-length",
            ),
            ("atom --spec-decode-acceptance-rate=0.4", "--spec-decode-acceptance-rate"),
        ] {
            let found = simulated_acceptance(command);
            assert_eq!(found.map(|setting| setting.name), Some(name), "{command}");
            // Plans hold the command without its secrets.
            assert_eq!(simulated_acceptance(&crate::redact::command(command)), found, "{command}");
        }
    }

    #[test]
    fn real_speculation_has_no_such_setting() {
        for command in [
            "",
            r#"vllm serve m --speculative-config '{"method":"mtp","num_speculative_tokens":4}'"#,
            r#"vllm serve m --speculative-config '{"rejection_sample_method": "strict"}'"#,
            "SGLANG_SIMULATE_ACC_LEN=-1 python -m sglang.launch_server",
            "env -u SGLANG_SIMULATE_ACC_LEN python -m sglang.launch_server",
            "MY_SGLANG_SIMULATE_ACC_LEN=3 python -m sglang.launch_server",
            "SGLANG_SIMULATE_ACC_LENGTH=3 python -m sglang.launch_server",
            "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=0 trtllm-serve m",
            "serve --spec-decode-acceptance-length",
        ] {
            assert_eq!(simulated_acceptance(command), None, "{command}");
        }
    }
}
