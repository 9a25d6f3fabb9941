//! The process that was started: its end is noticed at once, and its identifier stays its own until
//! the rest of its group has ended too.

use std::io;
use std::process::Command;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::watch;

use crate::exit::Exit;
use crate::process::raw;

/// A child of this process that leads a group.
pub(crate) struct Leader {
    pid: u32,
    exit: watch::Receiver<Option<Exit>>,
    reaped: bool,
}

impl Leader {
    /// Starts a command in a group of its own. Fails if the system does not run it.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.spawn()?;
        let (tell, exit) = watch::channel(None);
        let mut leader = Leader { pid: child.id(), exit, reaped: false };
        let pid = leader.pid;
        let thread = std::thread::Builder::new().name("engine-exit".to_owned());
        let waits = thread.spawn(move || {
            // It stays a process, so no other one gets its identifier before a signal to its group.
            tell.send_replace(Some(wait(pid, WaitIdOptions::NOWAIT)));
        });
        if let Err(error) = waits {
            leader.signal_group(Signal::KILL);
            wait(pid, WaitIdOptions::empty());
            leader.reaped = true;
            return Err(error);
        }
        Ok(leader)
    }

    /// Its identifier, which is also its group's.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// True if it has ended, even if its exit is not known yet.
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG | WaitIdOptions::EXITED;
        let ended = raw(self.pid).map(|pid| waitid(WaitId::Pid(pid), options));
        self.exit().is_some() || matches!(ended, Some(Ok(Some(_))))
    }

    pub async fn ended(&self) -> Exit {
        ended(self.exit.clone()).await
    }

    /// Waits for its exit, without a runtime: it has ended, and the exit is on its way.
    pub fn wait(&self) {
        while self.exit().is_none() && self.exit.has_changed().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn watch(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    /// True if its identifier, and so its group's, is certainly its own.
    pub fn holds_group(&self) -> bool {
        !self.reaped
    }

    /// Sends a signal to its group. Does nothing once its identifier may be another's.
    pub fn signal_group(&self, signal: Signal) {
        if let Some(pid) = raw(self.pid).filter(|_| !self.reaped) {
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Gives the identifier back to the system. Does nothing before its end.
    pub fn reap(&mut self) {
        if self.exit().is_some() && !self.reaped {
            wait(self.pid, WaitIdOptions::NOHANG);
            self.reaped = true;
        }
    }
}

/// Waits for the end of the process of this channel.
pub(crate) async fn ended(mut exit: watch::Receiver<Option<Exit>>) -> Exit {
    match exit.wait_for(Option::is_some).await {
        Ok(exit) => exit.unwrap_or(Exit::Unknown),
        // The waiting thread has panicked.
        Err(_) => Exit::Unknown,
    }
}

fn wait(pid: u32, options: WaitIdOptions) -> Exit {
    let Some(pid) = raw(pid) else { return Exit::Unknown };
    loop {
        match waitid(WaitId::Pid(pid), options | WaitIdOptions::EXITED) {
            Err(Errno::INTR) => {}
            Ok(Some(status)) => {
                let code = status.exit_status().map(Exit::Code);
                let signal = status.terminating_signal().map(Exit::Signal);
                return code.or(signal).unwrap_or(Exit::Unknown);
            }
            Ok(None) | Err(_) => return Exit::Unknown,
        }
    }
}
