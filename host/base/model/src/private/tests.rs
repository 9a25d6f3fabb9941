//! Modes and owners, on a real file system.

use std::os::unix::fs::symlink;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn new_files_and_folders_are_private() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("above/below");
    super::folder(&folder).unwrap();
    assert_eq!(mode(&folder), 0o700);
    super::folder(&folder).unwrap();
    assert!(create_folder(&folder).is_err(), "it is there");
    let path = |name: &str| folder.join(name);
    write(&path("written"), b"1").unwrap();
    drop(create(&path("created")).unwrap());
    drop(append(&path("appended")).unwrap());
    replace(&path("replaced"), b"1").unwrap();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    // A file in the place of the folder is none.
    assert!(super::folder(&path("written")).is_err());
    assert!(own_folder(&path("written")).is_err());
}

#[test]
fn overwriting_a_file_makes_it_private() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    fs::write(&path, "before").unwrap();
    set_mode(&path, 0o666);
    write(&path, b"after").unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"after".to_vec(), 0o644));
    set_mode(&path, 0o664);
    append(&path).unwrap().write_all(b"wards").unwrap();
    let found = fs::read(&path).unwrap();
    assert_eq!((found, mode(&path)), (b"afterwards".to_vec(), 0o644));
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let (path, victim) = (home.path().join("file"), home.path().join("victim"));
    fs::write(&path, "before").unwrap();
    fs::write(&victim, "mine").unwrap();
    // A link that an earlier write or somebody else left is not written through.
    symlink(&victim, part(&path)).unwrap();
    replace(&path, b"after").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"after");
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert_eq!(mode(&path), 0o600);
    assert!(!part(&path).exists());
    // Nothing can take the place of a folder.
    let taken = home.path().join("taken");
    fs::create_dir(&taken).unwrap();
    assert!(replace(&taken, b"x").is_err());
    assert!(taken.is_dir() && !part(&taken).exists());
}

#[test]
fn refuses_files_that_others_may_write() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("own");
    own_folder(&folder).unwrap();
    assert_eq!(mode(&folder), 0o700);
    let file = folder.join("file");
    write(&file, b"").unwrap();
    for open in [0o644, 0o755, 0o600] {
        set_mode(&file, open);
        assert!(open_own(&file).is_ok(), "{open:o}");
    }
    for open in [0o620, 0o602, 0o666] {
        set_mode(&file, open);
        let message = open_own(&file).unwrap_err().to_string();
        assert_eq!(message, format!("other users may write to it (mode {open:03o})"));
    }
    let message = open_own(&folder).unwrap_err().to_string();
    assert_eq!(message, "it is not a regular file");
    for open in [0o770, 0o707, 0o1777] {
        set_mode(&folder, open);
        let error = own_folder(&folder).unwrap_err();
        assert!(matches!(error, NotOwn::Stranger(_)), "{error}");
    }
    let link = home.path().join("link");
    symlink(&folder, &link).unwrap();
    assert!(own_folder(&link).is_err(), "where a link leads counts");
    set_mode(&folder, 0o700);
    own_folder(&link).unwrap();
}

/// As root alone: nobody else can give a file away.
#[test]
fn refuses_files_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (folder, file) = (home.path().join("folder"), home.path().join("file"));
    own_folder(&folder).unwrap();
    write(&file, b"").unwrap();
    let link = home.path().join("link");
    symlink(&folder, &link).unwrap();
    for path in [&file, &folder, &link] {
        std::os::unix::fs::lchown(path, Some(65_534), None).unwrap();
    }
    let message = "it belongs to user 65534, but this is user 0";
    assert_eq!(open_own(&file).unwrap_err().to_string(), message);
    assert_eq!(own_folder(&folder).unwrap_err().to_string(), message);
    std::os::unix::fs::lchown(&folder, Some(0), None).unwrap();
    assert_eq!(own_folder(&link).unwrap_err().to_string(), message, "a stranger's link");
    let error = io::Error::from(own_folder(&link).unwrap_err());
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}
