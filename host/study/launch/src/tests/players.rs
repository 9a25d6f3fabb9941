//! Parts that this test program plays in processes of its own. As tests they are ignored: they
//! never end.

use std::net::TcpListener;

use super::*;

/// The variable with the port on which an engine listens.
pub const PORT: &str = "LAUNCH_TEST_PORT";

/// The variable with the folder of an owner.
const FOLDER: &str = "LAUNCH_TEST_FOLDER";

/// The way this program is started to play a part.
pub fn command(part: &str) -> Vec<String> {
    let own = std::env::current_exe().unwrap();
    let part = format!("tests::players::{part}");
    let options = ["--ignored", "--exact", "--nocapture", "--test-threads=1"];
    [own.to_str().unwrap(), &part].into_iter().chain(options).map(str::to_owned).collect()
}

/// The command of an owner: a runner that launches an engine and then waits.
pub fn owner(folder: &TempDir, port: u16) -> std::process::Command {
    let words = command("plays_a_runner");
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]).env(FOLDER, folder.path()).env(PORT, port.to_string());
    command
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("this test is a part that another one starts")
}

#[test]
#[ignore = "a part that other tests start"]
fn engine() {
    let port: u16 = variable(PORT).parse().unwrap();
    let server = TcpListener::bind(("127.0.0.1", port)).unwrap();
    for client in server.incoming() {
        drop(client);
    }
}

/// Launches an engine that has a worker elsewhere, writes its process into the file `ready`, and
/// waits to be killed.
#[tokio::test]
#[ignore = "a part that other tests start"]
async fn plays_a_runner() {
    let port: u16 = variable(PORT).parse().unwrap();
    let folder = std::path::PathBuf::from(variable(FOLDER));
    let script = r#"(setsid sh -c 'echo $$ > worker; exec sleep 1000' &); exec "$@""#;
    let mut words = shell(script);
    words.push("sh".to_owned());
    words.extend(command("engine"));
    let mut spec = Spec::new("orphan", words, ("127.0.0.1", port), folder.join("engine.log"));
    spec.directory = Some(folder.clone());
    let worker = folder.join("worker");
    let mut engine = Engine::start(spec).unwrap();
    let check = async || match std::fs::read_to_string(&worker) {
        Ok(pid) if pid.ends_with('\n') => answers(port),
        _ => Check::NotYet("its worker does not run".to_owned()),
    };
    engine.ready(check).await.unwrap();
    std::fs::write(folder.join("ready"), engine.pid().to_string()).unwrap();
    std::future::pending::<()>().await;
}
