//! The program as it is started again to render chat templates: with bounds on memory and time, and
//! nothing else to do.

use std::io::{self, BufReader};
use std::process::{self, ExitCode};
use std::sync::mpsc;
use std::time::Duration;

use rlimit::Resource;
use session::templates::{ARGUMENT, MEMORY, SECONDS, TOO_LONG, serve};

/// The link to the file of this program, which stays right if that file is replaced.
const OWN: &str = "/proc/self/exe";

pub fn is_renderer() -> bool {
    let mut words = std::env::args_os().skip(1);
    let is_asked = words.next().is_some_and(|word| word == ARGUMENT) && words.next().is_none();
    if !is_asked {
        let own = if std::path::Path::new(OWN).exists() {
            Some(OWN.into())
        } else {
            std::env::current_exe().ok()
        };
        // Without a way to start the program again, they are rendered here.
        own.into_iter().for_each(session::templates::render_in);
    }
    is_asked
}

pub fn exec() -> ExitCode {
    // The system refuses a larger text, and the process ends; nobody may look at its memory.
    let is_bound = [(Resource::DATA, MEMORY), (Resource::CORE, 0)]
        .into_iter()
        .all(|(resource, most)| bound(resource, most).is_ok());
    let (sender, receiver) = mpsc::channel();
    let watch = std::thread::Builder::new().spawn(move || {
        while let Ok(busy) = receiver.recv() {
            let late = Err(mpsc::RecvTimeoutError::Timeout);
            if busy && receiver.recv_timeout(Duration::from_secs(SECONDS)) == late {
                process::exit(i32::from(TOO_LONG));
            }
        }
    });
    if !is_bound || watch.is_err() {
        return ExitCode::FAILURE;
    }
    let mut busy = |busy| {
        // The other thread listens for as long as the process lives.
        let _ = sender.send(busy);
    };
    let (input, mut output) = (io::stdin().lock(), io::stdout().lock());
    match serve(&mut BufReader::new(input), &mut output, &mut busy) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Lowers a limit of the system to this value, where it is not lower.
fn bound(resource: Resource, most: u64) -> io::Result<()> {
    let (_, highest) = rlimit::getrlimit(resource)?;
    let most = most.min(highest);
    rlimit::setrlimit(resource, most, most)
}
