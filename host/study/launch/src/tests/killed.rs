//! A killed runner, and its engine.

use std::fs;
use std::process::Child;

use super::*;

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_engine_of_a_killed_runner_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut owner = Ends(players::owner(&folder, port).spawn().unwrap());
    let ready = folder.path().join("ready");
    while !fs::read_to_string(&ready).is_ok_and(|pid| !pid.is_empty()) {
        assert_eq!(owner.0.try_wait().unwrap(), None, "it plays on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let engine = process_in(&ready);
    let worker = process_in(&folder.path().join("worker"));
    assert!(lives(engine) && lives(worker), "their runner lives");
    owner.0.kill().unwrap();
    owner.0.wait().unwrap();
    let clock = model::clock::Clock::start();
    while lives(engine) || lives(worker) {
        assert!(clock.now() < LONG.into(), "they go on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(crate::check_port("127.0.0.1", port).is_ok());
}
