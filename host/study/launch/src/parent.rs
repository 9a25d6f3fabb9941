//! Processes that end with their parent, even if a signal kills it: a pipe ends with the process
//! that holds its other end. A death signal of the system would come with the end of a thread.

use std::fs::File;
use std::io::{self, PipeWriter, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// The variable with the number of the pipe that a parent holds open.
pub const PIPE: &str = "RUNNER_PARENT_PIPE";

/// The time between two interrupts.
const AGAIN: Duration = Duration::from_secs(20);

/// Interrupts this process, again and again, once the parent that gave it a pipe has ended.
pub fn end_with_parent() -> io::Result<()> {
    let Some(number) = std::env::var_os(PIPE) else { return Ok(()) };
    let number = number.to_str().and_then(|number| number.parse::<u32>().ok());
    let number = number.ok_or(io::ErrorKind::InvalidInput)?;
    let mut pipe = File::open(format!("/dev/fd/{number}"))?;
    std::thread::Builder::new().name("parent".to_owned()).spawn(move || {
        let _ = io::copy(&mut pipe, &mut io::sink());
        loop {
            let _ = kill_process(getpid(), Signal::INT);
            std::thread::sleep(AGAIN);
        }
    })?;
    Ok(())
}

/// The watch: gets the number of a group, waits for the end of the pipe, and ends the group and all
/// processes with the mark in their environment. A program such as a container's client passes
/// SIGTERM on, but not SIGKILL.
const WATCH: &str = r#"
read -r group
read -r _
marked() { [ -z "$0" ] || grep -lsF -e "$0" /proc/[0-9]*/environ | tr -dc '0-9\n'; }
send() {
    left=
    for process in ${group:+"-$group"} $(marked); do kill -s "$1" -- "$process" && left=1; done
}
waited=0
[ "$1" -eq 0 ] || send TERM
while [ "$waited" -lt "$1" ]; do
    send 0
    [ "$left" ] || exit
    sleep 1
    waited=$((waited + 1))
done
send KILL
"#;

/// Ends other programs when this process has ended: a shell that waits for the end of a pipe.
pub(crate) struct Watch {
    shell: Child,
    pipe: PipeWriter,
}

impl Watch {
    /// Watches over the processes with this variable in their environment, written as `NAME=value`;
    /// over none if that is empty. `patience` is the time between SIGTERM and SIGKILL; without it
    /// SIGKILL comes at once. Fails if there is no shell.
    pub fn begin(mark: &str, patience: Duration) -> io::Result<Self> {
        let (reads, pipe) = io::pipe()?;
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCH, mark, &patience.as_secs().to_string()]);
        shell.stdin(reads).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Watch { shell: shell.spawn()?, pipe })
    }

    /// Also watches over the group of a child.
    pub fn over(&mut self, group: u32) {
        let _ = writeln!(self.pipe, "{group}");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
