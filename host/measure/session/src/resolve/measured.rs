//! Files as they are named in a plan: their length and their digest. A folder is all files below
//! it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use model::hex;

/// A file's path, and its length and SHA-256.
pub(super) type Measurement = (PathBuf, io::Result<(u64, String)>);

/// The most files of a folder: each has its name and its digest in the plan.
const MOST_FILES: usize = 50_000;

/// The file of a name, or for a folder all files below it: files of `data` are named `data/PATH`.
pub(super) fn measure_all(name: &str, path: &Path) -> Vec<(String, Measurement)> {
    let failed = |error| vec![(name.to_owned(), (path.to_owned(), Err(error)))];
    match std::fs::metadata(path).map(|found| found.is_dir()) {
        Ok(true) => {}
        Ok(false) => return vec![(name.to_owned(), (path.to_owned(), measure(path)))],
        Err(error) => return failed(error),
    }
    let mut found = Vec::new();
    if let Err(error) = list(path, "", &mut found) {
        return failed(error);
    }
    if found.is_empty() {
        let what = "the folder has no files; name another one, or a file";
        return failed(io::Error::other(what));
    }
    let measured = found.into_iter().map(|below| {
        let path = path.join(&below);
        let measured = measure(&path);
        (format!("{name}/{below}"), (path, measured))
    });
    measured.collect()
}

/// Adds the files of a folder and of its subfolders, without hidden ones. A link to a file counts,
/// as the Hugging Face hub's cache has only links; a link to a folder could list files twice.
fn list(folder: &Path, below: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| {
            io::Error::other(format!("the name {name:?} in it is not UTF-8; rename that file"))
        })?;
        if name.starts_with('.') {
            continue;
        }
        if name.contains(['\n', '\r']) {
            let what = format!("the name {name:?} in it has a line break; rename that file");
            return Err(io::Error::other(what));
        }
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            list(&path, &format!("{below}{name}/"), found)?;
        } else if std::fs::metadata(&path)?.is_file() {
            found.push(format!("{below}{name}"));
        }
        if found.len() > MOST_FILES {
            let what = format!("the folder has more than {MOST_FILES} files; name one below it");
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

pub(super) fn measure(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut hash = Sha256::new();
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = io::Read::read(&mut file, &mut buffer)?;
        if read == 0 {
            return Ok((bytes, hex(&hash.finalize())));
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_lists_all_files_below() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        };
        for name in ["b.txt", "a/1.flac", "a/.hidden", ".git/x"] {
            write(name);
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("b.txt", folder.path().join("link.txt")).unwrap();
            std::os::unix::fs::symlink("a", folder.path().join("again")).unwrap();
        }
        let mut names: Vec<_> = (measure_all("data", folder.path()).into_iter())
            .map(|(name, (path, measured))| {
                assert!(path.is_file() && measured.unwrap().0 > 0, "{name}");
                name
            })
            .collect();
        names.sort();
        let wanted = ["data/a/1.flac", "data/b.txt", "data/link.txt"];
        assert_eq!(names, wanted[..if cfg!(unix) { 3 } else { 2 }]);
        let one = measure_all("data", &folder.path().join("b.txt"));
        assert!(matches!(&one[..], [(name, (_, Ok((5, _))))] if name == "data"));
    }

    #[test]
    fn unlistable_folder_states_the_cause() {
        let error_of = |path: &Path| match &measure_all("data", path)[..] {
            [(name, (_, Err(error)))] if name == "data" => error.to_string(),
            other => panic!("{other:?}"),
        };
        let folder = tempfile::tempdir().unwrap();
        assert!(error_of(folder.path()).contains("no files"));
        assert!(error_of(&folder.path().join("none")).contains("No such file"));
        #[cfg(unix)]
        {
            std::fs::write(folder.path().join("a\nb"), "").unwrap();
            assert!(error_of(folder.path()).contains(r#""a\nb" in it has a line break"#));
        }
    }
}
