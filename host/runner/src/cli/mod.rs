//! The command line, one file per subcommand. Nothing else in the program prints:
//! results go to stdout, everything else to stderr.

pub mod agreement;
pub mod artifacts;
pub mod audit;
mod ci;
mod compare;
pub mod completions;
pub mod dashboard;
pub mod demo;
mod destination;
pub mod explain;
#[cfg_attr(not(feature = "tables"), path = "absent.rs")]
mod export;
pub mod failure;
pub mod fetch;
pub mod flags;
#[cfg_attr(not(feature = "studies"), path = "absent.rs")]
pub mod fleet;
pub mod guide;
pub mod help;
pub mod interrupt;
#[cfg_attr(not(feature = "studies"), path = "absent.rs")]
pub mod lab;
mod loads;
mod machines;
pub mod man;
mod measure;
pub mod mock;
mod needs;
mod output;
pub mod plan;
pub mod plugin;
pub mod print;
pub mod probe;
pub mod progress;
pub mod published;
#[cfg_attr(not(feature = "studies"), path = "absent.rs")]
mod record;
pub mod repeat;
pub mod report;
mod resume;
mod round;
mod rules;
pub mod run;
mod saved;
pub mod scenario;
pub mod schema;
pub mod score;
pub mod search;
pub mod sources;
#[cfg_attr(not(feature = "studies"), path = "absent.rs")]
mod store;
pub mod sweep;
pub mod templates;
#[cfg_attr(not(feature = "studies"), path = "absent.rs")]
mod trend;
mod variables;
#[cfg_attr(not(feature = "studies"), path = "absent.rs")]
pub mod verify;
mod versus;
pub mod watch;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::FalseyValueParser;
use clap::error::{ContextKind, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches};

use failure::Failure;
use model::clean;
use print::tell;

/// Benchmark LLM serving engines, with plugins for datasets, dialects and scores
///
/// Runs a scenario (a TOML file, a folder of them, or a built-in one such as
/// scenarios/lmdeploy) against an engine and prints the measurements. `runner ARGS` is
/// short for `runner run ARGS`.
#[derive(Debug, clap::Parser)]
#[command(
    name = "runner",
    version,
    args_conflicts_with_subcommands = true,
    override_usage = "runner [OPTIONS] [SCENARIO]...\n       runner <COMMAND>",
    after_help = "Examples:\n  \
        runner demo                                     measure the built-in mock engine\n  \
        runner --backend vllm --dataset-name random --num-prompts 500 --request-rate 10\n\n\
        `runner run -h` has more flags of a run, `runner --help` all of them; `runner guide` explains.",
    after_long_help = "Examples:\n  \
        runner demo                                     measure the built-in mock engine\n  \
        runner probe http://127.0.0.1:8000              identify a server, and print how to benchmark it\n  \
        runner --backend sglang scenarios/lmdeploy --dataset-path ShareGPT.json\n  \
        runner --backend vllm --dataset-name random --random-input-len 1024 \\\n         \
               --random-output-len 128 --num-prompts 500 --request-rate 10\n  \
        runner plan scenarios/quickstart.toml           show the requests, without sending them\n  \
        runner report runs/20260102-030405-quick-start  redraw a result from its records\n  \
        runner plugin new backend my-engine             start a plugin of your own\n\n\
        Command lines of vllm bench serve and SGLang's bench_serving work too: runner guide coming-from\n\n\
        Exit codes: 0 done, 1 bug, 2 command line, 3 scenario or input, 4 plugin,\n  \
        5 target not reachable or every request failed, 6 a threshold does not hold,\n  \
        7 invalid measurement (0 with --allow-invalid), 130 interrupted (the measurements are saved)"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::Args,
}

/// The parts of the machine that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Memory and time for plugins.
    Plugins,
    /// Memory and time for plugins, and a descriptor for each connection.
    Connections,
}

/// Makes the commands from rows: module, variant and needs, in groups of help.
macro_rules! commands {
    ($($group:literal { $($module:ident $variant:ident $needs:ident,)+ })+) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($($variant(Box<$module::Args>),)+)+
        }

        impl Command {
            fn needs(&self) -> Needs {
                match self {
                    $($(Command::$variant(_) => Needs::$needs,)+)+
                }
            }

            fn exec(&self) -> Result<ExitCode, Failure> {
                match self {
                    $($(Command::$variant(args) => $module::exec(args),)+)+
                }
            }
        }

        pub const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$(stringify!($module)),+])),+];
    };
}

commands! {
    "Measure" {
        run Run Connections,
        plan Plan Plugins,
        probe Probe Plugins,
        sweep Sweep Connections,
        search Search Connections,
        // Its engines would inherit a larger limit of descriptors.
        lab Lab Plugins,
        fleet Fleet Connections,
        record Record Connections,
        demo Demo Plugins,
    }
    "Compare and judge" {
        report Report Nothing,
        export Export Nothing,
        compare Compare Nothing,
        explain Explain Nothing,
        ci Ci Nothing,
        agreement Agreement Nothing,
        score Score Plugins,
        audit Audit Nothing,
        published Published Nothing,
        verify Verify Nothing,
        store Store Nothing,
        // A confirmation runs a lab.
        trend Trend Plugins,
    }
    "Author" {
        plugin Plugin Plugins,
        mock Mock Nothing,
    }
    "Look up" {
        guide Guide Nothing,
        scenario Scenario Plugins,
        schema Schema Nothing,
        fetch Fetch Nothing,
        completions Completions Nothing,
        man Man Nothing,
    }
}

impl Cli {
    /// Reads the command line and its variables. Prints help or an error and exits if need be.
    pub fn read() -> Self {
        let words = flags::familiar::spread(std::env::args_os());
        let line = words.get(1..).unwrap_or_default();
        let read = Cli::from_words(&words);
        // A word that is no command is a scenario, so a mistyped command is only found where no
        // scenario has that name.
        let is_help = |error: &clap::Error| !error.use_stderr();
        if !read.as_ref().err().is_some_and(is_help)
            && let Some(failure) = help::command(line, &Cli::command())
        {
            failure.report();
            std::process::exit(failure.exit as i32);
        }
        read.unwrap_or_else(|error| {
            let refused = error.get(ContextKind::InvalidArg).map(ToString::to_string);
            if let (ErrorKind::ValueValidation, Some(refused)) = (error.kind(), refused)
                && let Some(variable) = variables::variable_for(&Cli::command(), &refused)
            {
                tell(format_args!(
                    "note: {refused} was set by the environment variable {variable}"
                ));
            }
            // With its styles, if nothing that it repeats of the command line would style it
            // further.
            let plain = error.render().to_string();
            if clean::text(&plain) == plain {
                error.exit()
            }
            tell(plain.trim_end());
            std::process::exit(error.exit_code())
        })
    }

    /// Reads a command line. If a flag with one value is given twice, the later one counts, as
    /// scripts that append their own flags expect. A negative number is a value, which the flag
    /// refuses in its own words.
    fn from_words(words: &[OsString]) -> Result<Self, clap::Error> {
        let (mut command, matches) = match variables::read(lenient_command, words) {
            // Few starts need the layout of help, which takes longer than all the rest of a start.
            Err(help) if help.kind() == ErrorKind::DisplayHelp => variables::read(command, words)?,
            read => read?,
        };
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    pub fn exec(self) -> Result<ExitCode, Failure> {
        let this = self.resumed()?;
        let needs = this.command.as_ref().map_or(Needs::Connections, Command::needs);
        if needs == Needs::Connections {
            load::thread_group::make_room_ahead();
        }
        if needs != Needs::Nothing {
            needs::check()?;
        }
        match &this.command {
            None => run::exec(&this.run),
            Some(command) => command.exec(),
        }
    }

    /// The saved command line that `--resume` names, where `--resume` is the only instruction.
    fn resumed(self) -> Result<Self, Failure> {
        let resumes = match &self.command {
            Some(Command::Sweep(args)) => args.resumes().map(|folder| ("sweep", folder)),
            Some(Command::Search(args)) => args.resumes().map(|folder| ("search", folder)),
            Some(Command::Lab(args)) => args.resumes().map(|folder| ("lab", folder)),
            _ => None,
        };
        let Some((name, folder)) = resumes else { return Ok(self) };
        let (words, scenario) = resume::resumed(name, folder)?;
        let mut this = Cli::from_words(&words).map_err(|error| {
            let message = error.to_string();
            Failure::command_line(message.trim_start_matches("error: ").trim_end())
        })?;
        match &mut this.command {
            Some(Command::Sweep(args)) => args.keep.scenario = scenario,
            Some(Command::Search(args)) => args.keep.scenario = scenario,
            _ => {}
        }
        Ok(this)
    }
}

/// The whole command line, with its help as it is shown.
pub fn command() -> clap::Command {
    help::laid_out(lenient_command())
}

/// The whole command line, as it is read.
fn lenient_command() -> clap::Command {
    lenient(Cli::command().args_override_self(true))
}

/// A command whose flags take negative numbers, and whose switches heed `0` and `false`.
fn lenient(command: clap::Command) -> clap::Command {
    let lenient_arg = |arg: clap::Arg| match arg.get_action() {
        _ if arg.is_positional() => arg,
        ArgAction::SetTrue => arg.value_parser(FalseyValueParser::new()),
        _ => arg.allow_negative_numbers(true),
    };
    command.mut_args(lenient_arg).mut_subcommands(lenient)
}
