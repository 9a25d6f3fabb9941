//! Starting the other processes by ssh, where nothing else does.
//!
//! What each machine runs goes through the connection's input: variables, the fleet's token and
//! keys are in no process list.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ::fleet::place::{self, PORT, Place};
use ::fleet::token::Token;
use model::hex;

use super::super::failure::{Exit, Failure};
use super::super::print::tell;
use super::{Run, host_name};

/// Flags that are for this machine alone.
const OWN: [&str; 3] = ["--hosts", "--ssh", "--remote-runner"];
/// The time that machines may take to end once the run is over.
const LEAVE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(50);

/// Connections to the machines that were started from here.
#[derive(Default)]
pub(super) struct Started(Vec<(String, Child)>);

impl Started {
    /// Waits until they have ended, for a while.
    pub fn end(self) {
        let until = Instant::now() + LEAVE;
        for (host, mut child) in self.0 {
            let ended = loop {
                match child.try_wait() {
                    Ok(Some(_)) | Err(_) => break true,
                    Ok(None) if Instant::now() >= until => break false,
                    Ok(None) => std::thread::sleep(GLANCE),
                }
            };
            if !ended {
                tell(format_args!(
                    "note: the connection to {host} does not end, and is cut"
                ));
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// Starts a process on each machine that is named. Gives the place of this one.
pub(super) fn start(args: &Run) -> Result<(Started, Place, Token), Failure> {
    let wrong = |words: String| Failure::new(Exit::CommandLine, words);
    if args.scenarios.iter().any(|name| name == "-") {
        return Err(wrong(
            "the scenario of a fleet cannot come from stdin with --hosts: name its file".to_owned(),
        ));
    }
    let size = args.hosts.len() as u32 + 1;
    let secret = secret().map_err(|cause| {
        Failure::new(
            Exit::Input,
            format!("the system gives no random bytes: {cause}"),
        )
    })?;
    let token = Token::parse(&secret, "--hosts").map_err(|error| wrong(error.to_string()))?;
    let mut own: place::Environment = [
        ("RUNNER_FLEET_RANK", "0".to_owned()),
        ("RUNNER_FLEET_SIZE", size.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let address = std::env::var("RUNNER_FLEET_COORDINATOR").ok();
    let address = address.unwrap_or_else(|| format!("{}:{PORT}", host_name()));
    own.insert("RUNNER_FLEET_COORDINATOR".to_owned(), address.clone());
    let place = place::read(&own).map_err(|wrong| Failure::several(Exit::CommandLine, wrong.0))?;
    let words: Vec<String> = std::env::args().collect();
    let mut started = Started::default();
    for (rank, host) in (1_u32..).zip(&args.hosts) {
        if host.is_empty() || host.starts_with('-') {
            started.end();
            return Err(wrong(format!("`{host}` is no machine's name (--hosts)")));
        }
        let script = script(args, &words, &token.shown(), (rank, size), &address);
        match connect(&args.ssh, host, &script) {
            Ok(child) => started.0.push((host.clone(), child)),
            Err(cause) => {
                for (_, child) in &mut started.0 {
                    let _ = child.kill();
                }
                started.end();
                let words = format!(
                    "cannot start `{}` for {host}: {cause}; give another command with --ssh",
                    args.ssh
                );
                return Err(Failure::new(Exit::Input, words));
            }
        }
    }
    Ok((started, place, token))
}

fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Writes the commands of one machine, for its shell.
fn script(
    args: &Run,
    words: &[String],
    secret: &str,
    (rank, size): (u32, u32),
    address: &str,
) -> String {
    let mut script = String::new();
    let passed = std::env::vars().filter(|(name, _)| is_passed(name));
    let own = [
        // The agents': none of these machines can be rank 0 for another.
        ("RUNNER_FLEET_TOKEN", secret.to_owned()),
        // Their keys come from here.
        ("RUNNER_TRUST_RANK_0", "true".to_owned()),
        ("RUNNER_FLEET_RANK", rank.to_string()),
        ("RUNNER_FLEET_SIZE", size.to_string()),
        ("RUNNER_FLEET_COORDINATOR", address.to_owned()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    for (name, value) in passed.chain(own) {
        let _ = writeln!(script, "export {name}={}", quoted(&value));
    }
    let _ = write!(script, "exec {}", quoted(&args.remote_runner));
    for word in of_all(words) {
        let _ = write!(script, " {}", quoted(word));
    }
    script.push('\n');
    script
}

/// True if a variable of this process is one of the others too: what sets flags, and keys of
/// servers.
fn is_passed(name: &str) -> bool {
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
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
        } else if !OWN.iter().any(|own| {
            word.strip_prefix(own)
                .is_some_and(|rest| rest.starts_with('='))
        }) {
            kept.push(&**word);
        }
    }
    kept
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
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
        let words = [
            "runner",
            "fleet",
            "--hosts",
            "a,b",
            "chat.toml",
            "--ssh=ssh -p 2",
            "--seed",
            "it's",
        ];
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
