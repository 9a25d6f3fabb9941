//! The flags that say what the run is of, for who reads its result.

use super::said;
use reader::Said;
use scenario::Scenario;

/// What the run is of.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct About {
    /// The engine under test, for the report: vllm
    #[arg(
        long,
        value_name = "NAME",
        env = "RUNNER_ENGINE",
        help_heading = "Result"
    )]
    engine: Option<String>,
    /// Its version, for the report
    #[arg(
        long,
        value_name = "VERSION",
        env = "RUNNER_ENGINE_VERSION",
        help_heading = "Result"
    )]
    engine_version: Option<String>,
    /// What it runs on, for the report: "8x H800"
    #[arg(
        long,
        value_name = "WORDS",
        env = "RUNNER_HARDWARE",
        help_heading = "Result"
    )]
    hardware: Option<String>,
    /// The command that started the engine, for the report; leave keys out of it
    #[arg(
        long,
        value_name = "COMMAND",
        env = "RUNNER_LAUNCH_COMMAND",
        help_heading = "Result"
    )]
    launch_command: Option<String>,
    /// Whatever else the report should say, KEY=VALUE; repeatable
    #[arg(
        long,
        value_name = "KEY=VALUE",
        env = "RUNNER_METADATA",
        help_heading = "Result"
    )]
    metadata: Vec<String>,
}

impl About {
    /// Lays the flags that are given over a scenario.
    ///
    /// # Errors
    /// What is wrong with a flag's value, in words.
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
