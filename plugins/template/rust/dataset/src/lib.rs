//! {{name}}: a prompt from each line of a file. The scenario names the file:
//! `prompts = "FILE"` under `[dataset.files]`.

use std::io::Read;
use std::iter::Enumerate;
use std::vec::IntoIter;

use runner_plugin::{Amount, Dataset, Error, Inputs, Prompt, Reader, Sample};

/// The keys that a user may write under `[dataset.config]`. The comments become its help text.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Output tokens to request for each sample.
    output_tokens: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { output_tokens: 128 }
    }
}

/// The lines that are left, with their numbers.
pub struct Plugin {
    config: Config,
    lines: Enumerate<IntoIter<String>>,
}

impl Dataset for Plugin {
    type Config = Config;

    fn open(config: Config, _seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        let file = inputs.files.open("prompts").ok_or_else(|| {
            let missing = "name a file of prompts: `prompts = \"FILE\"` under [dataset.files]";
            Error::InvalidConfig(missing.to_owned())
        })?;
        let mut text = String::new();
        Reader::new(file.as_ref())
            .read_to_string(&mut text)
            .map_err(|cause| Error::InvalidInput(format!("the file `prompts`: {cause}")))?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        Ok(Plugin { config, lines: lines.into_iter().enumerate() })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let output_tokens = Some(self.config.output_tokens);
        let questions = self.lines.by_ref().filter(|(_, line)| !line.is_empty());
        let samples = questions.map(|(index, line)| Sample {
            output_tokens,
            ..Sample::new(format!("prompt-{:06}", index + 1), Prompt::Text(line))
        });
        Ok(samples.take(limit as usize).collect())
    }
}

runner_plugin::export_dataset!(Plugin);

#[cfg(test)]
mod tests;
