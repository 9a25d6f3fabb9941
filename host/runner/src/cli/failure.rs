//! Reports of an error: a message on stderr, and an exit code.

use std::io::IsTerminal;
use std::process::ExitCode;

use super::error::CliError;
use super::print::{StyledText, tell, tell_styled};
use crate::author::AuthorError;
use hub::HubError;
use load::transport::dial::DialError;
use mock::ScriptError;
use plugins::PluginError;
use reader::Place;
use runs::folder::FolderError;
use runs::record::RecordError;
use session::lease::NoLease;
use session::parts::RunError;
use session::preflight::PreflightError;
use session::telemetry::NoDevices;
use session::{BeginError, CheckError, Faults, NotMeasured};

/// Exit codes: part of the stable surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Bug = 1,
    /// A wrong command line.
    CommandLine = 2,
    /// A wrong scenario or input.
    Input = 3,
    /// A plugin did not load or broke its contract.
    Plugin = 4,
    /// The target is not reachable, or every request failed.
    Target = 5,
    /// The run is valid, but a threshold did not hold.
    Threshold = 6,
    /// The measurement itself is invalid, or more than half of the requests failed.
    Invalid = 7,
    /// Interrupted; the measurements so far are saved.
    Interrupted = 130,
}

/// Something that ends the program.
#[derive(Debug)]
pub struct Failure {
    exit: u8,
    messages: Messages,
}

#[derive(Debug)]
enum Messages {
    Plain(Vec<String>),
    Faults(Faults),
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit: exit as u8, messages: Messages::Plain(vec![message.into()]) }
    }

    pub fn command_line(message: impl Into<String>) -> Self {
        Failure::new(Exit::CommandLine, message)
    }

    pub fn input(message: impl Into<String>) -> Self {
        Failure::new(Exit::Input, message)
    }

    #[allow(dead_code, reason = "programs with all features lack nothing")]
    pub(super) fn not_built(name: &str) -> Self {
        Failure::command_line(format!(
            "this program is built without {name}; `cargo build --workspace --bin runner` builds one that has it"
        ))
    }

    pub fn several(exit: Exit, messages: Vec<String>) -> Self {
        Failure { exit: exit as u8, messages: Messages::Plain(messages) }
    }

    /// A panic, whose own lines are on stderr already; `further` adds to the message.
    pub fn bug(further: &str) -> Self {
        let message = "a bug in the runner ended it; report it with the lines above";
        Failure::new(Exit::Bug, format!("{message}{further}"))
    }

    pub fn message(&self) -> String {
        match &self.messages {
            Messages::Plain(messages) => messages.join("; "),
            Messages::Faults(faults) => faults.to_string(),
        }
    }

    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.exit)
    }

    pub fn number(&self) -> u8 {
        self.exit
    }

    pub fn report(&self) -> ExitCode {
        match &self.messages {
            Messages::Plain(messages) => {
                for message in messages {
                    tell(format_args!("error: {message}"));
                }
            }
            Messages::Faults(faults) => {
                for problem in &faults.scenario {
                    let drawn = |colours: bool| {
                        let mut text = String::new();
                        let drawn = handler(colours).render_report(&mut text, problem);
                        drawn.ok().map(|()| text)
                    };
                    match drawn(false) {
                        Some(plain) => {
                            tell_styled(&StyledText::drawn(&plain, || drawn(colours())));
                        }
                        None => tell(format_args!("error: {}", problem.message())),
                    }
                    // A place in a file is drawn; a place on the command line must be printed.
                    if let Some(flag @ Place::Flag(_)) = problem.place()
                        && !problem.to_string().starts_with(&flag.to_string())
                    {
                        tell(format_args!("  given by {flag}"));
                    }
                }
                for error in &faults.plugins {
                    tell(format_args!("error: {error}"));
                }
            }
        }
        self.code()
    }
}

/// True if stderr takes colours: a terminal, unless `NO_COLOR` is set.
fn colours() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

fn handler(colours: bool) -> miette::GraphicalReportHandler {
    let theme = if colours {
        miette::GraphicalTheme::unicode()
    } else {
        miette::GraphicalTheme::unicode_nocolor()
    };
    miette::GraphicalReportHandler::new_themed(theme).with_wrap_lines(false)
}

impl From<Faults> for Failure {
    fn from(faults: Faults) -> Self {
        let exit = if faults.scenario.is_empty() { Exit::Plugin } else { Exit::Input };
        Failure { exit: exit as u8, messages: Messages::Faults(faults) }
    }
}

impl From<PluginError> for Failure {
    fn from(error: PluginError) -> Self {
        let exit = match error {
            PluginError::Config { .. } | PluginError::Input { .. } | PluginError::Pin { .. } => {
                Exit::Input
            }
            _ => Exit::Plugin,
        };
        Failure::new(exit, error.to_string())
    }
}

impl From<AuthorError> for Failure {
    fn from(error: AuthorError) -> Self {
        let exit = match error {
            AuthorError::Missing(_)
            | AuthorError::Toolchain(_)
            | AuthorError::Tool { .. }
            | AuthorError::Nothing { .. }
            | AuthorError::NoPlugin { .. }
            | AuthorError::Encode { .. } => Exit::Plugin,
            AuthorError::NoTemplate { .. } => Exit::CommandLine,
            _ => Exit::Input,
        };
        Failure::new(exit, error.to_string())
    }
}

impl From<PreflightError> for Failure {
    fn from(error: PreflightError) -> Self {
        match error {
            PreflightError::Plugin(error) | PreflightError::Lease(NoLease::Plugin(error)) => {
                error.into()
            }
            PreflightError::Faults(faults) => faults.into(),
            PreflightError::NoModel { .. } | PreflightError::UnknownModel { .. } => {
                Failure::input(error.to_string())
            }
            _ => Failure::new(Exit::Target, error.to_string()),
        }
    }
}

impl From<DialError> for Failure {
    fn from(error: DialError) -> Self {
        let exit = match error {
            DialError::Unknown { .. } | DialError::UnknownHost { .. } => Exit::Target,
            DialError::Trust(_) => Exit::Input,
        };
        Failure::new(exit, error.to_string())
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Preflight(error) => error.into(),
            CheckError::Runtime(_) => Failure::new(Exit::Bug, error.to_string()),
        }
    }
}

impl From<BeginError> for Failure {
    fn from(error: BeginError) -> Self {
        match error {
            BeginError::Create(error) => CliError::NoFolder(error).into(),
            BeginError::Write(error) => error.into(),
            BeginError::Devices(NoDevices::Nvml(_)) => Failure::input(error.to_string()),
            BeginError::Devices(NoDevices::Page { .. }) => {
                Failure::new(Exit::Target, error.to_string())
            }
        }
    }
}

impl From<NotMeasured> for Failure {
    fn from(error: NotMeasured) -> Self {
        match error {
            NotMeasured::Ended(why) => why.into(),
            NotMeasured::Input { .. } => Failure::input(error.to_string()),
            NotMeasured::Folder(error) => error.into(),
        }
    }
}

/// A backend's complaint about its route, with the flags that choose one: plugins know keys alone.
pub(super) fn with_flag(message: &str) -> String {
    let route = message.split_once("set route = \"");
    match route.and_then(|(_, rest)| rest.split_once('"')) {
        Some((route, _)) => format!(
            "{message}; on the command line that is --set backend.config.route={route}, or the route's path as --endpoint"
        ),
        None => message.to_owned(),
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Plugin(error) => error.into(),
            RunError::Lease(why) => match *why {
                NoLease::Plugin(error) => error.into(),
                why => Failure::new(Exit::Target, why.to_string()),
            },
            RunError::NoSample(error) => (*error).into(),
            RunError::Aborted(_) => Failure::new(Exit::Plugin, with_flag(&error.to_string())),
            RunError::Connections { .. }
            | RunError::Flush { .. }
            | RunError::Metrics { .. }
            | RunError::WarmUp { .. } => Failure::new(Exit::Target, error.to_string()),
            RunError::Lanes(_) => Failure::input(error.to_string()),
            RunError::Record(error) => error.into(),
            RunError::Thread(_) => Failure::input(error.to_string()),
            RunError::Panicked(_) => Failure::new(Exit::Bug, error.to_string()),
            RunError::Agent(_) => Failure::new(Exit::Target, error.to_string()),
            RunError::Interrupted | RunError::Unassessed => {
                Failure::new(Exit::Interrupted, error.to_string())
            }
        }
    }
}

/// The codes of a hub: 5 where it failed, 3 where the request cannot be met.
impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        vec![error].into()
    }
}

impl From<Vec<HubError>> for Failure {
    fn from(errors: Vec<HubError>) -> Self {
        let exit = if errors.iter().all(HubError::is_of_hub) { Exit::Target } else { Exit::Input };
        let messages = errors.iter().map(ToString::to_string);
        Failure::several(exit, messages.collect())
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Failure::input(error.to_string())
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        Failure::input(error.to_string())
    }
}

impl From<super::mock::Error> for Failure {
    fn from(error: super::mock::Error) -> Self {
        let exit = error.exit_code();
        let messages = match error {
            super::mock::Error::Script(ScriptError::Wrong(error)) => {
                Messages::Faults(Faults::from_scenario(&error))
            }
            error => Messages::Plain(vec![error.to_string().trim_end().to_owned()]),
        };
        Failure { exit, messages }
    }
}
