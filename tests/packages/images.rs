//! The image, run by a container runtime: as its own user, on a root that nobody can write to.

use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::Path;

use package::Kind;
use package::sums::sha256;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{bare, made, measures, measuring};
use crate::support::lacking::{self, RUNC};
use crate::support::process::{Mock, only_run, run};

struct Layout(TempDir);

impl Layout {
    fn unpacked(archive: &Path) -> Self {
        let folder = TempDir::new().unwrap();
        let mut unpack = bare("tar");
        unpack.arg("-xf").arg(archive).arg("-C").arg(folder.path());
        run(&mut unpack).with_code(0);
        Layout(folder)
    }

    /// The bytes that a descriptor names, whose digest and size are right.
    fn blob(&self, descriptor: &Value) -> Vec<u8> {
        let digest = descriptor["digest"].as_str().unwrap();
        let digest = digest.strip_prefix("sha256:").unwrap();
        let bytes = fs::read(self.0.path().join("blobs/sha256").join(digest)).unwrap();
        assert_eq!(sha256(&bytes), digest);
        assert_eq!(descriptor["size"], bytes.len());
        bytes
    }

    /// The document that a descriptor names.
    fn document(&self, descriptor: &Value) -> Value {
        serde_json::from_slice(&self.blob(descriptor)).unwrap()
    }
}

#[test]
fn an_image_runs_as_its_own_user_on_a_root_that_is_read_only() {
    let (_folder, packages) = made(Kind::Image);
    let layout = Layout::unpacked(&packages[0]);
    let index = File::open(layout.0.path().join("index.json")).unwrap();
    let index: Value = serde_json::from_reader(index).unwrap();
    let manifest = layout.document(&index["manifests"][0]);
    let config = layout.document(&manifest["config"]);
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    let mut layer = Vec::new();
    let packed = layout.blob(&manifest["layers"][0]);
    let mut unpacked = flate2::read::GzDecoder::new(Cursor::new(packed));
    unpacked.read_to_end(&mut layer).unwrap();
    let digest = format!("sha256:{}", sha256(&layer));
    assert_eq!(config["rootfs"]["diff_ids"], json!([digest]));
    let config = &config["config"];
    for label in ["title", "version", "licenses", "created"] {
        let label = format!("org.opencontainers.image.{label}");
        assert!(config["Labels"][&label].is_string(), "{label}");
    }
    if !lacking::has("runc", &RUNC) || !lacking::may_mount() {
        return;
    }
    let bundle = TempDir::new().unwrap();
    let root = bundle.path().join("rootfs");
    fs::create_dir(&root).unwrap();
    fs::write(bundle.path().join("layer.tar"), layer).unwrap();
    let mut unpack = bare("tar");
    unpack.args(["--same-owner", "-xf", "../layer.tar"]).current_dir(&root);
    run(&mut unpack).with_code(0);
    assert!(root.join("etc/ssl/certs/ca-certificates.crt").exists());
    let work = bundle.path().join("work");
    fs::create_dir(&work).unwrap();
    std::os::unix::fs::chown(&work, Some(65_532), Some(65_532)).unwrap();
    let mock = Mock::start(&[]);
    let contained = contained(config, &work, &measuring(&mock, "runs"));
    fs::write(bundle.path().join("config.json"), contained.to_string()).unwrap();
    let mut runc = bare("runc");
    runc.arg("--root").arg(bundle.path().join("state"));
    runc.args(["run", "--bundle"]).arg(bundle.path());
    measures(runc.arg(format!("runner-tests-{}", std::process::id())));
    assert!(only_run(&work.join("runs")).is_some());
}

/// The description of a container of an image, as container engines make it with `--read-only`,
/// `--network=host` and a folder of this machine at `/work`.
fn contained(image: &Value, work: &Path, arguments: &[String]) -> Value {
    let words = |value: &Value| -> Vec<String> {
        let words = value.as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut environment = words(&image["Env"]);
    environment.push("RUNNER_ALLOW_INVALID=1".to_owned());
    let user: Vec<u32> = (image["User"].as_str().unwrap().split(':'))
        .map(|number| number.parse().unwrap())
        .collect();
    let command = [words(&image["Entrypoint"]), arguments.to_vec()].concat();
    json!({
        "ociVersion": "1.0.0",
        "process": {
            "user": { "uid": user[0], "gid": user[1] },
            "args": command,
            "env": environment,
            "cwd": image["WorkingDir"],
            "noNewPrivileges": true,
        },
        "root": { "path": "rootfs", "readonly": true },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"] },
            { "destination": "/work", "type": "bind", "source": work, "options": ["bind", "rw"] },
        ],
        "linux": {
            "namespaces": [{ "type": "pid" }, { "type": "ipc" }, { "type": "uts" }, { "type": "mount" }],
        },
    })
}
