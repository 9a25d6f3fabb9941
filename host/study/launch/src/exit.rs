//! The end of an engine, and the cause that it points to.

use rustix::process::Signal;

use crate::log::Hint;

/// Offset from a signal's number to a shell's exit code.
const SIGNALLED: i32 = 128;

/// The end of the process that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The system does not report the end.
    Unknown,
}

model::names! {
    /// The cause of an engine's death, as far as it can be seen.
    pub enum Class {
        /// It ended by itself.
        Exited = "exited",
        /// A signal from elsewhere ended it.
        Signalled = "signalled",
        /// The machine's memory, or its control group's, was not enough.
        OutOfMemory = "out-of-memory",
        /// A device's memory was not enough.
        OutOfDeviceMemory = "out-of-device-memory",
        /// Something else took its port.
        PortTaken = "port-taken",
        /// It does not take its options.
        WrongOptions = "wrong-options",
    }
}

/// An engine's death: it ended without a request to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Death {
    pub exit: Exit,
    /// The cause, as far as it can be seen.
    pub class: Class,
    /// Evidence for the class beside the exit, such as a line of the log.
    pub evidence: Option<String>,
    /// True if it died before it was ready.
    pub before_ready: bool,
    /// The last lines of its output, the oldest first.
    pub last_lines: Vec<String>,
}

impl Exit {
    /// True if it ended as after successful work.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }

    /// The signal that ended it, or a process below a shell or container that passes exit codes on.
    pub fn signal(self) -> Option<i32> {
        match self {
            Exit::Signal(signal) => Some(signal),
            Exit::Code(code) => Some(code - SIGNALLED).filter(|signal| (1..=64).contains(signal)),
            Exit::Unknown => None,
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}")?,
            Exit::Signal(signal) => write!(f, "signal {signal}")?,
            Exit::Unknown => f.write_str("an unknown exit code")?,
        }
        match self.signal().and_then(name_of) {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

impl std::fmt::Display for Death {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = if self.before_ready { "before it was ready" } else { "while it was measured" };
        write!(f, "the engine died {when}, with {}", self.exit)?;
        match &self.evidence {
            Some(evidence) => write!(f, ": {}: {evidence}", self.class),
            None => Ok(()),
        }
    }
}

/// Finds the cause of an engine's death from its exit and from the last line that names a cause.
pub(crate) fn classify(exit: Exit, hint: Option<&Hint>) -> (Class, Option<String>) {
    if let Some(hint) = hint {
        return (hint.class, Some(hint.line.clone()));
    }
    match exit {
        Exit::Code(_) if exit.signal() == Some(Signal::KILL.as_raw()) => {
            let evidence = "a process was killed, as the kernel does where memory is not enough";
            (Class::OutOfMemory, Some(evidence.to_owned()))
        }
        Exit::Signal(_) => (Class::Signalled, None),
        Exit::Code(_) if exit.signal().and_then(name_of).is_some() => (Class::Signalled, None),
        Exit::Code(_) | Exit::Unknown => (Class::Exited, None),
    }
}

/// The name of a signal that ends processes.
fn name_of(signal: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 13] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
    ];
    let found = NAMES.iter().find(|(known, _)| known.as_raw() == signal);
    found.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_exits() {
        for (exit, text) in [
            (Exit::Code(2), "exit code 2"),
            (Exit::Code(137), "exit code 137 (SIGKILL)"),
            (Exit::Code(255), "exit code 255"),
            (Exit::Signal(11), "signal 11 (SIGSEGV)"),
            (Exit::Signal(63), "signal 63"),
            (Exit::Unknown, "an unknown exit code"),
        ] {
            assert_eq!(exit.to_string(), text);
        }
    }

    #[test]
    fn finds_the_cause_of_a_death() {
        let hint = Hint { class: Class::OutOfDeviceMemory, line: "CUDA out of memory".to_owned() };
        for (exit, hint, class) in [
            (Exit::Code(1), None, Class::Exited),
            (Exit::Code(0), None, Class::Exited),
            (Exit::Signal(11), None, Class::Signalled),
            // An administrator kills too.
            (Exit::Signal(9), None, Class::Signalled),
            // A container's memory is counted elsewhere.
            (Exit::Code(137), None, Class::OutOfMemory),
            (Exit::Code(139), None, Class::Signalled),
            (Exit::Code(255), None, Class::Exited),
            (Exit::Code(1), Some(&hint), Class::OutOfDeviceMemory),
            (Exit::Unknown, None, Class::Exited),
        ] {
            let (found, evidence) = classify(exit, hint);
            assert_eq!(found, class, "{exit:?}");
            let needs_none = matches!(class, Class::Exited | Class::Signalled);
            assert_eq!(evidence.is_none(), needs_none, "{exit:?}");
        }
    }

    #[test]
    fn formats_a_death() {
        let death = Death {
            exit: Exit::Code(2),
            class: Class::WrongOptions,
            evidence: Some("unrecognized arguments: --bogus".to_owned()),
            before_ready: true,
            last_lines: Vec::new(),
        };
        let expected = "the engine died before it was ready, with exit code 2: wrong-options: unrecognized arguments: --bogus";
        assert_eq!(death.to_string(), expected);
    }
}
