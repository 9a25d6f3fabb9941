//! Processes that a killed runner leaves, and their treatment by later starts.

use std::fs;
use std::process::{Child, Command};

use super::*;
use crate::family::Family;
use crate::marker::Marker;
use crate::{Needed, State, clean_up};

#[test]
#[cfg(target_os = "linux")]
fn the_engine_of_a_killed_runner_is_found_and_ended() {
    run(async {
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

        let markers_at = folder.path().join("markers");
        let found = clean_up(&markers_at).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].state, State::InUse { owner: owner.0.id() });
        assert!(lives(engine) && lives(worker), "their runner lives");

        owner.0.kill().unwrap();
        owner.0.wait().unwrap();
        assert!(lives(engine) && lives(worker), "nobody told them");
        assert_eq!(answers(port), Check::Ready);
        let found = clean_up(&markers_at).await.unwrap();
        assert_eq!(found.len(), 1);
        let State::Ended { needed, outside } = &found[0].state else {
            panic!("{}", found[0]);
        };
        assert_eq!(*needed, Needed::Terminate);
        assert_eq!(outside.len(), 1, "{outside:?}");
        assert_eq!(outside[0].pid, worker.pid);
        assert_eq!(
            found[0].to_string(),
            "engine `orphan` of an earlier run was ended with SIGTERM"
        );
        assert!(!lives(engine) && !lives(worker));
        assert!(crate::check_port("127.0.0.1", port).is_ok());
        assert_eq!(markers(&folder), 0);
        assert_eq!(clean_up(&markers_at).await.unwrap(), []);
    });
}

/// A process that ends with the test.
struct Ends(Child);

impl Ends {
    /// One that no engine has anything to do with.
    fn stranger() -> Self {
        use std::os::unix::process::CommandExt;
        let mut sleep = Command::new("sleep");
        Ends(sleep.arg("1000").process_group(0).spawn().unwrap())
    }

    fn id(&self) -> Id {
        Table::default().process(self.0.id()).unwrap().id
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A marker of an engine whose leader was this process, and whose runner has ended.
fn forged(leader: Option<Id>) -> Marker {
    let table = Table::default();
    let family =
        Family { launch: "forged".to_owned(), leader, pipe: None, seen: Default::default() };
    let mut marker = Marker::new(
        &table,
        "forged".to_owned(),
        shell("sleep 1000"),
        ("127.0.0.1".to_owned(), 1),
        "engine.log".into(),
        60.0,
        family,
    );
    // A process that had this identifier before this one.
    marker.owner.start -= 1;
    marker
}

async fn cleaned(folder: &TempDir, marker: &Marker) -> State {
    let markers = folder.path().join("markers");
    marker.write(&markers).unwrap();
    let mut found = clean_up(&markers).await.unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0).state
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_has_the_identifier_of_an_engine_is_not_killed() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let stranger = Ends::stranger();
        let id = stranger.id();
        let earlier = Id { start: id.start - 1, ..id };
        assert_eq!(cleaned(&folder, &forged(Some(earlier))).await, State::Gone);
        assert_eq!(cleaned(&folder, &forged(None)).await, State::Gone);
        assert_eq!(markers(&folder), 0);

        // Of another start of the system.
        let mut rebooted = forged(Some(id));
        rebooted.boot = Some("another".to_owned());
        assert_eq!(cleaned(&folder, &rebooted).await, State::Gone);
        assert_eq!(markers(&folder), 0);
        // Of another container.
        let mut contained = forged(Some(id));
        contained.namespace = Some("pid:[1]".to_owned());
        let state = cleaned(&folder, &contained).await;
        assert!(matches!(state, State::Unknown { .. }), "{state:?}");
        assert_eq!(markers(&folder), 1, "it is not ours to remove");
        assert!(lives(id));

        // The same marker with the right start is that of this process.
        let state = cleaned(&folder, &forged(Some(id))).await;
        assert!(matches!(state, State::Ended { .. }), "{state:?}");
        assert!(!lives(id));
    });
}

/// A marker as an earlier version wrote it, or as somebody else did: with a list of processes.
fn planted(folder: &TempDir, seen: Id) -> std::path::PathBuf {
    let mut marker = serde_json::to_value(forged(None)).unwrap();
    marker["family"]["seen"] = serde_json::json!([{ "pid": seen.pid, "start": seen.start }]);
    let markers = folder.path().join("markers");
    model::private::folder(&markers).unwrap();
    let path = markers.join("planted.engine");
    fs::write(&path, marker.to_string()).unwrap();
    path
}

#[test]
#[cfg(target_os = "linux")]
fn a_list_of_processes_on_the_disk_ends_none_of_them() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let victim = Ends::stranger();
        planted(&folder, victim.id());
        let found = clean_up(&folder.path().join("markers")).await.unwrap();
        assert_eq!(found[0].state, State::Gone);
        assert!(lives(victim.id()));
        // Nor does a process that was started so and no longer leads its group, such as a child of
        // somebody else's shell.
        let mut child = Command::new("sleep");
        let child = Ends(child.arg("1000").spawn().unwrap());
        assert_eq!(cleaned(&folder, &forged(Some(child.id()))).await, State::Gone);
        assert!(lives(child.id()));
    });
}

#[test]
fn markers_that_another_user_may_have_written_end_nothing() {
    use std::os::unix::fs::{PermissionsExt, chown};
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let victim = Ends::stranger();
        let markers_at = folder.path().join("markers");
        forged(Some(victim.id())).write(&markers_at).unwrap();
        let path = Marker::all(&markers_at).unwrap().remove(0);
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        // The file first: the folder is our own.
        mode(&path, 0o646);
        let found = clean_up(&markers_at).await.unwrap();
        let said = found[0].to_string();
        assert!(said.contains("cannot be read: other users may write to it (mode 646)"), "{said}");
        mode(&path, 0o600);
        for open in [0o777, 0o1777, 0o720] {
            mode(&markers_at, open);
            let refused = clean_up(&markers_at).await.unwrap_err();
            assert!(refused.to_string().contains("other users may write to it"), "{refused}");
            // Nor is an engine's marker put there.
            assert!(forged(None).write(&markers_at).is_err());
        }
        mode(&markers_at, 0o700);
        let root = rustix::process::geteuid().is_root();
        if root {
            chown(&path, Some(65_534), None).unwrap();
            let said = clean_up(&markers_at).await.unwrap()[0].to_string();
            assert!(said.contains("it belongs to user 65534, but this is user 0"), "{said}");
            chown(&markers_at, Some(65_534), None).unwrap();
            assert!(clean_up(&markers_at).await.is_err());
        }
        assert!(lives(victim.id()));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn several_leftovers_are_ended_at_once() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let markers_at = folder.path().join("markers");
        // None of them heeds SIGTERM, so each waits for as long as its marker says.
        let script = "trap '' TERM; echo > ready; while :; do sleep 1; done";
        let engines: Vec<Ends> = (0..3)
            .map(|number| {
                use std::os::unix::process::CommandExt;
                let at = folder.path().join(number.to_string());
                fs::create_dir(&at).unwrap();
                let mut command = Command::new("sh");
                let engine = command.args(["-c", script]).current_dir(&at).process_group(0);
                let engine = Ends(engine.spawn().unwrap());
                while !at.join("ready").exists() {
                    std::thread::yield_now();
                }
                engine
            })
            .collect();
        for (number, engine) in engines.iter().enumerate() {
            let mut marker = forged(Some(engine.id()));
            marker.family.launch = format!("forged{number}");
            marker.stop_timeout_s = 0.5;
            marker.write(&markers_at).unwrap();
        }
        let found = clean_up(&markers_at).await.unwrap();
        let killed = |leftover: &crate::Leftover| {
            matches!(leftover.state, State::Ended { needed: Needed::Kill, .. })
        };
        assert!(found.len() == 3 && found.iter().all(killed), "{found:?}");
        assert!(found.is_sorted_by_key(|leftover| leftover.marker.clone()));
        assert!(engines.iter().all(|engine| !lives(engine.id())));
    });
}

#[test]
fn markers_that_cannot_be_read_are_left_and_reported() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let markers_at = folder.path().join("markers");
        assert_eq!(clean_up(&markers_at).await.unwrap(), [], "there are none yet");
        fs::create_dir(&markers_at).unwrap();
        fs::write(markers_at.join("torn.engine"), "{").unwrap();
        let later = serde_json::to_string(&forged(None)).unwrap();
        let later = later.replace(r#""version":1"#, r#""version":2"#);
        fs::write(markers_at.join("later.engine"), later).unwrap();
        fs::write(markers_at.join("something.else"), "").unwrap();
        let found = clean_up(&markers_at).await.unwrap();
        let words: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), 2);
        assert!(words[0].contains("it has version 2, and this runner reads version 1"));
        assert!(words[1].contains("torn.engine: this marker of an engine cannot be read: EOF"));
        assert!(words[1].ends_with("end the engine if it runs, and remove the file"));
        assert_eq!(markers(&folder), 2);
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(clean_up(&folder.path().join("file")).await.is_err());
    });
}
