//! The process that a trial starts: its command line and its variables, with their secrets for the
//! engine and without them for files.

use crate::expand::Trial;
use crate::file::{Engine, Lab};
use crate::template;
use model::{redact, shell};

impl Trial {
    /// The command line as it is started; none for an engine that runs already.
    pub fn command(&self, engine: &Engine) -> Option<Vec<String>> {
        let finish = |word: &String| template::finished(word, |name| address(engine, name));
        Some(self.launch.as_ref()?.iter().map(finish).collect())
    }

    /// The command that prints the engine's version, with its placeholders filled in; none if the
    /// file names none.
    pub fn version_command(&self, engine: &Engine) -> Option<Vec<String>> {
        let finish = |word: &String| {
            template::finished(word, |name| {
                address(engine, name).or_else(|| self.placeholders.get(name).cloned())
            })
        };
        Some(engine.version_command.as_ref()?.iter().map(finish).collect())
    }

    /// The variables as the engine gets them; `ours` has the values of our environment. Errors: a
    /// variable of ours that is not set, by name.
    pub fn environment(
        &self,
        engine: &Engine,
        ours: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<(String, String)>, String> {
        let finish = |(name, text): &(String, String)| {
            // First the placeholders, so that a secret's braces are text.
            let text = template::finished(text, |name| address(engine, name));
            template::with_variables(&text, &ours).map(|value| (name.clone(), value))
        };
        self.env.iter().map(finish).collect()
    }

    /// The command with its variables as a shell reads it, for journals and pages: references to
    /// our variables stay references, and anything like a secret is left out. For an engine that
    /// runs already, a comment with its address.
    pub fn recorded(&self, engine: &Engine) -> String {
        let Some(words) = self.command(engine) else {
            return redact::command(&format!("# runs already at {}", engine.base_url));
        };
        let variables = self.env.iter().map(|(name, value)| {
            let value = template::finished(value, |name| address(engine, name));
            // A reference is for the shell to fill in.
            let value = if value.contains("${") {
                format!("\"{}\"", value.replace(['\\', '"', '`'], ""))
            } else {
                shell::quoted(&value)
            };
            format!("{name}={value} ")
        });
        redact::command(&(variables.collect::<String>() + &shell::line(&words)))
    }
}

impl Lab {
    /// A trial's command as journals and runs show it.
    pub fn shown_command(&self, trial: &Trial) -> String {
        let secrets = redact::Known::new(self.secrets.iter().cloned());
        secrets.redact(&trial.recorded(&self.engines[trial.engine]))
    }
}

/// The placeholders that are known at the start of an engine.
fn address(engine: &Engine, name: &str) -> Option<String> {
    match name {
        "port" => Some(engine.port.to_string()),
        "host" => Some(engine.host.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::Lab;

    #[test]
    fn secrets_go_to_the_engine_and_into_no_file() {
        let text = "name = \"x\"\nstrategy = \"matrix\"\nscenarios = \"a\"\n[[engines]]\nname = \"e\"\n\
                    launch = [\"serve\", \"--api-key\", \"sk-123456789012\", \"--port={port}\"]\n\
                    env = { HF_TOKEN = \"${HF_TOKEN}\", OTHER_TOKEN = \"abc\", URL = \"{host}:${P}\" }\n";
        let lab = Lab::parse("lab.toml", text).unwrap();
        let trial = lab.baseline(0, 0).unwrap();
        let engine = &lab.engines[0];
        let ours = |name: &str| Some(format!("{{port}}{name}"));
        let wanted =
            [("HF_TOKEN", "{port}HF_TOKEN"), ("OTHER_TOKEN", "abc"), ("URL", "127.0.0.1:{port}P")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(trial.environment(engine, ours).unwrap(), wanted);
        assert_eq!(
            trial.environment(engine, |_| None).unwrap_err(),
            "the variable HF_TOKEN is not set"
        );
        assert_eq!(
            trial.recorded(engine),
            "HF_TOKEN=\"${HF_TOKEN}\" OTHER_TOKEN=[redacted] URL=\"127.0.0.1:${P}\" serve --api-key [redacted] --port=8000"
        );
    }
}
