//! The flags that describe what was measured, for readers of the result.

use super::said;
use reader::Said;
use scenario::Scenario;

/// What was measured.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct About {
    /// Name of the engine under test, for the report, such as vllm
    #[arg(
        long,
        value_name = "NAME",
        env = "RUNNER_ENGINE",
        help_heading = "Result"
    )]
    engine: Option<String>,
    /// Version of the engine, for the report
    #[arg(
        long,
        value_name = "VERSION",
        env = "RUNNER_ENGINE_VERSION",
        help_heading = "Result"
    )]
    engine_version: Option<String>,
    /// Hardware that the engine runs on, for the report, such as "8x H800"
    #[arg(
        long,
        value_name = "WORDS",
        env = "RUNNER_HARDWARE",
        help_heading = "Result"
    )]
    hardware: Option<String>,
    /// Command that started the engine, for the report; leave keys out of it
    #[arg(
        long,
        value_name = "COMMAND",
        env = "RUNNER_LAUNCH_COMMAND",
        help_heading = "Result"
    )]
    launch_command: Option<String>,
    /// Anything else for the report, as KEY=VALUE; repeatable
    #[arg(
        long,
        value_name = "KEY=VALUE",
        env = "RUNNER_METADATA",
        help_heading = "Result"
    )]
    metadata: Vec<String>,
}

impl About {
    /// Lays the given flags over a scenario.
    ///
    /// # Errors
    /// A message that says what is wrong with a flag's value.
    pub fn lay_on(&self, scenario: &mut Scenario) -> Result<(), String> {
        let about = &mut scenario.about;
        about.engine = said("--engine", &self.engine);
        about.engine_version = said("--engine-version", &self.engine_version);
        about.hardware = said("--hardware", &self.hardware);
        about.launch_command = said("--launch-command", &self.launch_command);
        for note in &self.metadata {
            let (name, value) = note
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| format!("--metadata takes KEY=VALUE, found `{note}`"))?;
            let value = Said::flag("--metadata", value.to_owned());
            about.notes.insert(name.to_owned(), value);
        }
        Ok(())
    }
}
