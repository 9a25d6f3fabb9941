//! {{name}}: whether an answer contains the reference of its sample, a text or one of several.

use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer, serde_json};

/// The keys that a user may write under `[scorers.config]`. The comments become its help text.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// True to ignore the case of letters.
    ignore_case: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { ignore_case: true }
    }
}

/// A reference that an answer is compared with.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Reference {
    One(String),
    AnyOf(Vec<String>),
}

/// The judge, and its counts so far.
pub struct Plugin {
    config: Config,
    exchanges: u32,
    answered: u32,
}

impl Plugin {
    fn written(&self, text: &str) -> String {
        if self.config.ignore_case { text.to_lowercase() } else { text.to_owned() }
    }
}

impl Scorer for Plugin {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Plugin {
            config,
            exchanges: 0,
            answered: 0,
        })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        self.exchanges += 1;
        self.answered += u32::from(!exchange.output.is_empty());
        let Some(reference) = &exchange.reference else { return Ok(Vec::new()) };
        let reference = serde_json::from_str(reference).map_err(|_| {
            let id = &exchange.id;
            Error::InvalidInput(format!(
                "the reference of sample {id}: expected a text or a list of texts, got {reference}"
            ))
        })?;
        let texts = match reference {
            Reference::One(text) => vec![text],
            Reference::AnyOf(texts) => texts,
        };
        let answer = self.written(&exchange.output);
        let holds = texts
            .iter()
            .any(|text| answer.contains(&self.written(text)));
        Ok(vec![score("contains", f64::from(u8::from(holds)))])
    }

    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        if self.exchanges == 0 {
            return Ok(Vec::new());
        }
        let share = f64::from(self.answered) / f64::from(self.exchanges);
        Ok(vec![score("answered", share)])
    }
}

fn score(name: &str, value: f64) -> Score {
    Score {
        name: name.to_owned(),
        value,
    }
}

runner_plugin::export_scorer!(Plugin);

#[cfg(test)]
mod tests;
