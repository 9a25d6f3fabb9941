//! The names that `vllm bench serve` and SGLang's client have for datasets: a shipped plugin with a
//! configuration each.

/// A name that other tools have for a dataset.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// The name, as `--dataset-name` takes it.
    pub name: &'static str,
    /// The plugin: `random` is datasets/random.wasm.
    pub plugin: &'static str,
    /// Keys of the plugin's configuration, with their values as TOML.
    pub config: &'static [(&'static str, &'static str)],
    /// True if requests are due at the times of its samples.
    pub timed: bool,
}

const fn alias_of(
    name: &'static str,
    plugin: &'static str,
    config: &'static [(&'static str, &'static str)],
) -> Alias {
    Alias { name, plugin, config, timed: false }
}

const fn timed(alias: Alias) -> Alias {
    Alias { timed: true, ..alias }
}

/// Every alias. A plugin's own name is none.
pub const ALIASES: [Alias; 14] = [
    alias_of("random-ids", "random", &[("like", "\"sglang\"")]),
    alias_of("generated-shared-prefix", "shared-prefix", &[("algorithm", "\"sglang\"")]),
    alias_of("prefix_repetition", "shared-prefix", &[("algorithm", "\"vllm\"")]),
    alias_of("image", "images", &[("noise", "1.0")]),
    alias_of("random-mm", "images", &[("noise", "1.0")]),
    alias_of("random-rerank", "rerank", &[("same-query", "true")]),
    timed(alias_of("mooncake", "trace", &[("format", "\"mooncake\"")])),
    timed(alias_of("timed_trace", "trace", &[("format", "\"vllm-timed\"")])),
    alias_of("burstgpt", "trace", &[("format", "\"burstgpt\"")]),
    alias_of("openai", "custom", &[]),
    alias_of("custom_image", "custom", &[]),
    alias_of("spec_bench", "custom", &[]),
    alias_of("speed_bench", "custom", &[]),
    alias_of("speed-bench", "custom", &[]),
];

/// Other tools' names without a plugin here, with their replacements.
#[rustfmt::skip]
pub const REFUSED: [(&str, &str); 5] = [
    ("hf", "download its files with `runner fetch dataset ORG/NAME` and give one with --dataset-name custom --dataset-path FILE"),
    ("custom_audio", "its rows have no text to compare with: add one (`text`) and use --dataset-name speech, or use --dataset-name custom with the columns that it has"),
    ("mmmu", "--dataset-name images makes images of given sizes; for the questions of MMMU write chat messages with parts of type `image_url` and use --dataset-name custom"),
    ("longbench_v2", "download its file with `runner fetch dataset ORG/NAME` and make its prompts with --dataset-name custom and `template` in [dataset.config]"),
    ("agentic-trace", "--dataset-name agent replays agents from AIPerf DAG, OpenTelemetry and trie files, and --dataset-name conversation replays conversations"),
];

pub fn alias(name: &str) -> Option<&'static Alias> {
    ALIASES.iter().find(|alias| alias.name == name)
}

pub fn file(plugin: &str) -> String {
    format!("datasets/{plugin}.wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_plugins_and_occur_once() {
        for alias in &ALIASES {
            assert!(!shipped::has_plugin(&file(alias.name)), "{alias:?}");
            assert!(shipped::has_plugin(&file(alias.plugin)), "{alias:?}");
            let same = ALIASES.iter().filter(|other| other.name == alias.name);
            assert_eq!(same.count(), 1, "{alias:?}");
            assert!(REFUSED.iter().all(|(name, _)| *name != alias.name));
        }
    }
}
