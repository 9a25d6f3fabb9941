//! Engines that are real processes: shells, and this test program in the role of an engine.

mod killed;
mod lives;
mod players;
mod stops;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Id, Table};
use crate::{Check, Engine, Memory, Spec, Value};

/// Longer than anything takes; a test that waits this long fails.
const LONG: Duration = Duration::from_secs(120);

/// A free port. Another test may get it before the engine does, so each has a range of its own.
fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    // Below the ports that the system gives to clients.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 100).unwrap() * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// An engine in a folder of its own.
fn spec(folder: &TempDir, command: Vec<String>) -> Spec {
    let log = folder.path().join("engine.log");
    let spec = Spec::new("e", command, ("127.0.0.1", free_port()), log);
    Spec { ready_timeout: LONG, stop_timeout: LONG, settle_timeout: LONG, ..spec }
}

/// This program as an engine that listens on the port of the specification. `before` is a script
/// that ends with its command, such as `exec "$@"`.
fn listening(folder: &TempDir, before: &str) -> Spec {
    let mut spec = spec(folder, shell(before));
    spec.command.push("sh".to_owned());
    spec.command.extend(players::command("engine"));
    let port = Value::Plain(spec.port.to_string());
    spec.environment.push((players::PORT.to_owned(), port));
    spec
}

/// Checks that a server answers on a port.
fn answers(port: u16) -> Check {
    match TcpStream::connect(("127.0.0.1", port)) {
        Ok(_) => Check::Ready,
        Err(error) => Check::NotYet(error.to_string()),
    }
}

/// An engine that runs a script in its folder.
fn scripted(folder: &TempDir, script: &str) -> Spec {
    Spec { directory: Some(folder.path().to_owned()), ..spec(folder, shell(script)) }
}

/// An engine that is ready when its folder has the file `ready`.
async fn ready(spec: Spec) -> Engine {
    let file = spec.directory.as_ref().unwrap().join("ready");
    let mut engine = Engine::start(spec).unwrap();
    let check = async || {
        if file.exists() { Check::Ready } else { Check::NotYet("the file is missing".to_owned()) }
    };
    engine.ready(check).await.unwrap();
    engine
}

/// The process whose identifier a file holds.
fn process_in(file: &Path) -> Id {
    let pid = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    Table::default().process(pid).unwrap().id
}

fn lives(process: Id) -> bool {
    Table::default().lives(process)
}

async fn no_device() -> Memory {
    Memory::Unknown
}
