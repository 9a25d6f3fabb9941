//! Reports of an error: a message on stderr, and an exit code.

use std::fmt::Display;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use super::print::{StyledText, tell, tell_styled};
use crate::author::AuthorError;
use hub::HubError;
use load::transport::dial::DialError;
use mock::ScriptError;
use plugins::PluginError;
use reader::{Place, ScenarioError};
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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Something that ends the program.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    messages: Messages,
}

#[derive(Debug)]
enum Messages {
    Plain(Vec<String>),
    Faults(Faults),
}

impl Failure {
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Failure::several(exit, [message])
    }

    pub fn command_line(message: impl Display) -> Self {
        Failure::new(Exit::CommandLine, message)
    }

    pub fn input(message: impl Display) -> Self {
        Failure::new(Exit::Input, message)
    }

    pub fn several(exit: Exit, messages: impl IntoIterator<Item = impl Display>) -> Self {
        let messages = messages.into_iter().map(|message| message.to_string()).collect();
        Failure { exit, messages: Messages::Plain(messages) }
    }

    /// Fails if there is a message.
    pub fn of_any(
        exit: Exit,
        messages: impl IntoIterator<Item = impl Display>,
    ) -> Result<(), Self> {
        let mut messages = messages.into_iter().peekable();
        if messages.peek().is_none() { Ok(()) } else { Err(Failure::several(exit, messages)) }
    }

    /// Fails if the scenario has a mistake.
    pub fn of_faults(faults: Faults) -> Result<(), Self> {
        if faults.scenario.is_empty() { Ok(()) } else { Err(faults.into()) }
    }

    /// An operation that fails only through a bug or the system.
    pub(super) fn cannot<E: Display>(to: &'static str) -> impl Fn(E) -> Self {
        move |cause| Failure::new(Exit::Bug, format!("cannot {to}: {cause:#}"))
    }

    /// A file that cannot be read; `noun` stands before its path, with a space, where it is needed.
    pub(super) fn read<'p, E: Display>(noun: &'p str, path: &'p Path) -> impl Fn(E) -> Self {
        move |cause| Failure::input(format!("cannot read {noun}`{}`: {cause}", path.display()))
    }

    pub(super) fn write<'p, E: Display>(path: &'p Path, advice: &'p str) -> impl Fn(E) -> Self {
        move |cause| Failure::input(format!("cannot write `{}`: {cause}{advice}", path.display()))
    }

    #[allow(dead_code, reason = "programs with all features lack nothing")]
    pub(super) fn not_built(name: &str) -> Self {
        Failure::command_line(format!(
            "this program is built without {name}; `cargo build --workspace --bin runner` builds one that has it"
        ))
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
        self.exit.into()
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
        Failure { exit, messages: Messages::Faults(faults) }
    }
}

/// Makes errors into failures. An error that only passes on a named cause is the failure of that
/// cause. Each kind has an exit code; the code after `=>` is for all kinds that are not named.
macro_rules! exits {
    ($($Error:ident $(($($Cause:ident),+))? $(=> $usual:ident)? { $($kind:pat => $exit:ident,)* })+) => {
        $(impl From<$Error> for $crate::cli::failure::Failure {
            fn from(error: $Error) -> Self {
                use $crate::cli::failure::{Exit, Failure};
                match error {
                    $($($Error::$Cause(cause) => cause.into(),)+)?
                    $(error @ $kind => Failure::new(Exit::$exit, error),)*
                    $(error => Failure::new(Exit::$usual, error),)?
                }
            }
        })+
    };
}
pub(super) use exits;

exits! {
    PluginError => Plugin {
        PluginError::Config { .. } | PluginError::Input { .. } | PluginError::Pin { .. } => Input,
    }
    AuthorError => Input {
        AuthorError::Missing(_)
        | AuthorError::Toolchain(_)
        | AuthorError::Tool { .. }
        | AuthorError::Nothing { .. }
        | AuthorError::NoPlugin { .. }
        | AuthorError::Encode { .. } => Plugin,
        AuthorError::NoTemplate { .. } => CommandLine,
    }
    DialError {
        DialError::Unknown { .. } | DialError::UnknownHost { .. } => Target,
        DialError::Trust(_) => Input,
    }
    RecordError => Input {}
    FolderError => Input {}
    NoLease(Plugin) => Target {}
    PreflightError(Plugin, Faults, Lease) => Target {
        PreflightError::NoModel { .. } | PreflightError::UnknownModel { .. } => Input,
    }
    CheckError(Preflight) { CheckError::Runtime(_) => Bug, }
    NotMeasured(Ended, Folder) { NotMeasured::Input { .. } => Input, }
}

impl From<BeginError> for Failure {
    fn from(error: BeginError) -> Self {
        match error {
            BeginError::Create(error) => {
                Failure::input(format!("{error}; give a writable folder with --output-dir"))
            }
            BeginError::Write(error) => error.into(),
            BeginError::Devices(NoDevices::Nvml(_)) => Failure::input(error),
            BeginError::Devices(NoDevices::Page { .. }) => Failure::new(Exit::Target, error),
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
            RunError::Lease(why) => (*why).into(),
            RunError::NoSample(error) => (*error).into(),
            RunError::Record(error) => error.into(),
            RunError::Aborted(_) => Failure::new(Exit::Plugin, with_flag(&error.to_string())),
            RunError::Connections { .. }
            | RunError::Flush { .. }
            | RunError::Metrics { .. }
            | RunError::WarmUp { .. }
            | RunError::Agent(_) => Failure::new(Exit::Target, error),
            RunError::Thread(_) | RunError::Lanes(_) => Failure::input(error),
            RunError::Panicked(_) => Failure::new(Exit::Bug, error),
            RunError::Interrupted | RunError::Unassessed => Failure::new(Exit::Interrupted, error),
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
        Failure::several(exit, errors)
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Faults::from_scenario(&error).into()
    }
}

impl From<ScriptError> for Failure {
    fn from(error: ScriptError) -> Self {
        match error {
            ScriptError::Wrong(error) => error.into(),
            error => Failure::input(error.to_string().trim_end()),
        }
    }
}
