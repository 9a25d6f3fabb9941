//! Processes that end with their parent, also where a signal kills it: a pipe ends with the process
//! that holds its other end. A death signal of the system would come with the end of a thread.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// The variable with the number of the pipe that a parent holds open.
pub const PIPE: &str = "RUNNER_PARENT_PIPE";

/// The time between two interrupts.
const AGAIN: Duration = Duration::from_secs(20);

/// Has this process interrupted when the parent that gave it a pipe has ended, and again as long as
/// it goes on.
///
/// # Errors
/// If there is no such pipe.
pub fn end_with_parent() -> io::Result<()> {
    let Some(number) = std::env::var_os(PIPE) else {
        return Ok(());
    };
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

/// Kills a group of other programs when this process has ended: a shell that waits for the end of a
/// pipe.
pub(crate) struct Watch {
    shell: Child,
    _pipe: PipeWriter,
}

impl Watch {
    /// Watches over the group of a child.
    ///
    /// # Errors
    /// If there is no shell.
    pub fn over(group: u32) -> io::Result<Self> {
        let (reads, writes) = io::pipe()?;
        let mut shell = Command::new("sh");
        shell.args(["-c", "read -r _; kill -s KILL -- \"-$0\"", &group.to_string()]);
        shell.stdin(reads).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Watch { shell: shell.spawn()?, _pipe: writes })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
