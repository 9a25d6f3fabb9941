//! Starting the other processes by ssh, where nothing else does.
//!
//! The command of each machine goes through the connection's input: variables, the fleet's token
//! and keys are in no process list.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::clock::Clock;
use model::hex;
use model::shell::quoted;
use model::units::Nanos;

use crate::link::host_name;
use crate::place::{self, NoPlace, PORT, Place};
use crate::token::{NoToken, Token};

/// Flags that are for this machine alone.
const OWN: [&str; 3] = ["--hosts", "--ssh", "--remote-runner"];
/// The time that machines may take to end once the run is over.
const LEAVE: Nanos = Nanos(10_000_000_000);
const GLANCE: Duration = Duration::from_millis(50);

/// Processes to start on other machines.
pub struct Remote<'r> {
    /// The machines, for ranks from 1 on.
    pub hosts: &'r [String],
    /// The command that reaches a machine.
    pub ssh: &'r str,
    /// The path of the program there.
    pub program: &'r str,
    /// The command line of this process, its program first.
    pub command_line: &'r [String],
    /// The variables of this process.
    pub variables: place::Environment,
}

/// The reason why processes cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nothing to make a token of.
    #[error("the system gives no random bytes: {0}")]
    Random(std::io::Error),
    /// The token that was made is none.
    #[error(transparent)]
    Token(#[from] NoToken),
    /// The address of rank 0 is none.
    #[error(transparent)]
    Place(#[from] NoPlace),
    /// A machine has no name.
    #[error("`{0}` is no machine's name (--hosts)")]
    Host(String),
    /// The command does not run.
    #[error("cannot start `{ssh}` for {host}: {cause}; give another command with --ssh")]
    Command {
        /// The command that reaches a machine.
        ssh: String,
        /// The machine.
        host: String,
        /// The system's error.
        cause: std::io::Error,
    },
}

/// Connections to the machines that were started from here.
#[derive(Default)]
pub struct Started(Vec<(String, Child)>);

impl Started {
    /// Waits until they have ended, for a while. Gives the machines whose connections had to be
    /// cut.
    pub fn end(self) -> Vec<String> {
        let clock = Clock::start();
        let mut cut = Vec::new();
        for (host, mut child) in self.0 {
            let has_ended = loop {
                match child.try_wait() {
                    Ok(Some(_)) | Err(_) => break true,
                    Ok(None) if clock.now() >= LEAVE => break false,
                    Ok(None) => std::thread::sleep(GLANCE),
                }
            };
            if !has_ended {
                let _ = child.kill();
                let _ = child.wait();
                cut.push(host);
            }
        }
        cut
    }
}

impl Remote<'_> {
    /// Starts a process on each machine. Gives the place of this one, and the fleet's token.
    ///
    /// # Errors
    /// If a machine cannot be reached: then none is left behind.
    pub fn start(&self) -> Result<(Started, Place, Token), StartError> {
        let size = self.hosts.len() as u32 + 1;
        let secret = secret().map_err(StartError::Random)?;
        let token = Token::parse(&secret, "--hosts")?;
        let address = self.variables.get(place::COORDINATOR).cloned();
        let address = address.unwrap_or_else(|| format!("{}:{PORT}", host_name()));
        let own = [
            (place::RANK, "0".to_owned()),
            (place::SIZE, size.to_string()),
            (place::COORDINATOR, address.clone()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let place = place::read(&own.into())?;
        let is_none = |host: &&String| host.is_empty() || host.starts_with('-');
        if let Some(host) = self.hosts.iter().find(is_none) {
            return Err(StartError::Host(host.clone()));
        }
        let mut started = Started::default();
        for (rank, host) in (1_u32..).zip(self.hosts) {
            let script = self.script(&token.shown(), (rank, size), &address);
            match connect(self.ssh, host, &script) {
                Ok(child) => started.0.push((host.clone(), child)),
                Err(cause) => {
                    for (_, child) in &mut started.0 {
                        let _ = child.kill();
                    }
                    started.end();
                    return Err(StartError::Command {
                        ssh: self.ssh.to_owned(),
                        host: host.clone(),
                        cause,
                    });
                }
            }
        }
        Ok((started, place, token))
    }

    /// Writes the commands of one machine, for its shell.
    fn script(&self, secret: &str, (rank, size): (u32, u32), address: &str) -> String {
        let mut script = String::new();
        let passed = self.variables.iter().filter(|(name, _)| is_passed(name));
        let passed = passed.map(|(name, value)| (&**name, value.clone()));
        let own = [
            // The agents': none of these machines can be rank 0 for another.
            (crate::token::VARIABLE, secret.to_owned()),
            // Their keys come from here.
            ("RUNNER_TRUST_RANK_0", "true".to_owned()),
            (place::RANK, rank.to_string()),
            (place::SIZE, size.to_string()),
            (place::COORDINATOR, address.to_owned()),
        ];
        for (name, value) in passed.chain(own) {
            let _ = writeln!(script, "export {name}={}", quoted(&value));
        }
        let _ = write!(script, "exec {}", quoted(self.program));
        for word in of_all(self.command_line) {
            let _ = write!(script, " {}", quoted(word));
        }
        script.push('\n');
        script
    }
}

fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

/// True if a variable of this process is one of the others too: what sets flags, and keys of
/// servers.
fn is_passed(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let own =
        name.starts_with("RUNNER_FLEET_") || matches!(name, "RUNNER_SSH" | "RUNNER_REMOTE_RUNNER");
    plain && !own && (name.starts_with("RUNNER_") || name.ends_with("_API_KEY"))
}

/// The words of the command line that every process has, without the program's name.
fn of_all(words: &[String]) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if OWN.contains(&&**word) {
            // Its value is the next word.
            words.next();
        } else if !OWN
            .iter()
            .any(|own| word.strip_prefix(own).is_some_and(|rest| rest.starts_with('=')))
        {
            kept.push(&**word);
        }
    }
    kept
}

fn connect(ssh: &str, host: &str, script: &str) -> std::io::Result<Child> {
    let mut words = ssh.split_whitespace();
    let program = words.next().unwrap_or("ssh");
    let mut child = Command::new(program)
        .args(words)
        .args([host, "sh", "-s"])
        .stdin(Stdio::piped())
        // The result is printed here.
        .stdout(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(script.as_bytes())?;
    }
    Ok(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_have_the_same_words_but_for_how_they_are_reached() {
        let words =
            ["runner", "fleet", "--hosts", "a,b", "chat.toml", "--ssh=ssh -p 2", "--seed", "it's"];
        let words = words.map(str::to_owned);
        assert_eq!(of_all(&words), ["fleet", "chat.toml", "--seed", "it's"]);
        assert_eq!(quoted("it's"), r"'it'\''s'");
        for (name, passed) in [
            ("RUNNER_SEED", true),
            ("OPENAI_API_KEY", true),
            ("RUNNER_FLEET_TOKEN", false),
            ("RUNNER_SSH", false),
            ("PATH", false),
            ("A B_API_KEY", false),
        ] {
            assert_eq!(is_passed(name), passed, "{name}");
        }
    }
}
