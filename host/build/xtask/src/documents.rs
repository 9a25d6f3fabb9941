//! The documents: their links lead somewhere, and their commands work. Each block of the README and
//! of the guide's pages that is fenced as `sh tested` is run, with the runner just built in the
//! path. A document's blocks run one after the other in an empty folder. The commands of the site's
//! own pages are run where the site is built.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};

use crate::steps;

/// The folder of the guide's pages.
const GUIDE: &str = "host/guide/src";

/// Runs the tested blocks of all documents, some documents at a time, because most commands wait.
pub fn test(root: &Path) -> Result<()> {
    let mut tested = Vec::new();
    for document in documents(root)? {
        let text = fs::read_to_string(&document)
            .with_context(|| format!("reading {}", document.display()))?;
        let name = document.strip_prefix(root).unwrap_or(&document).to_owned();
        tested.push((name, tested_blocks(&text)));
    }
    tested.retain(|(_, blocks)| !blocks.is_empty());
    if tested.is_empty() {
        bail!("no document has a block fenced as `sh tested`");
    }
    let queue = Mutex::new(tested.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<()> {
        while let Some((name, blocks)) = next() {
            let folder = root.join("target/documents").join(name.with_extension(""));
            run_blocks(root, &folder, &blocks)
                .with_context(|| format!("the commands of {} do not work", name.display()))?;
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism()?.get() + 1;
    let mistakes: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let ended = started.into_iter().map(|worker| worker.join().expect("workers never panic"));
        ended.filter_map(Result::err).map(|mistake| format!("{mistake:#}")).collect()
    });
    ensure!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    Ok(())
}

/// The documents whose commands are tested.
fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut documents = vec![root.join("README.md")];
    documents.extend(files(&root.join(GUIDE), "md")?);
    Ok(documents)
}

/// The files with an extension below a folder, in the order of their names.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        // Links are not followed: they may lead out of the tree.
        if entry.file_type()?.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|known| known == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Runs blocks one after the other in an empty folder.
fn run_blocks(root: &Path, folder: &Path, blocks: &[String]) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    run_in(root, folder, blocks)
}

/// Runs blocks in a folder with the built runner, and prints each with its output at its end.
pub fn run_in(root: &Path, folder: &Path, blocks: &[String]) -> Result<()> {
    let mut search: Vec<PathBuf> = vec![steps::built(root)];
    search.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let search = std::env::join_paths(search)?;
    let (log, jobs) = (folder.with_extension("log"), folder.with_extension("jobs"));
    for block in blocks {
        // A block's background processes end with the block, also where the block fails. A file,
        // because a pipe forks, and a forked shell has no jobs.
        let end = "trap 'jobs -p > \"$JOBS\"; xargs -r kill < \"$JOBS\" 2>/dev/null || :' EXIT";
        let output = File::create(&log)?;
        let ended = steps::run(
            Command::new("sh")
                .current_dir(folder)
                .args(["-e", "-c", &format!("{end}\n{block}")])
                .env("JOBS", &jobs)
                // A busy machine may make a run invalid.
                .env("RUNNER_ALLOW_INVALID", "1")
                .env("PATH", &search)
                .stdout(output.try_clone()?)
                .stderr(output),
        );
        eprintln!("{}\n{}", block.trim_end(), String::from_utf8_lossy(&fs::read(&log)?));
        ended?;
    }
    Ok(())
}

/// The contents of the blocks fenced as `sh tested`.
pub fn tested_blocks(markdown: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in markdown.lines() {
        match (&mut open, line.trim()) {
            (Some(_), "```") => blocks.extend(open.take()),
            (Some(block), _) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, "```sh tested") => open = Some(String::new()),
            (None, _) => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{documents, files, tested_blocks};
    use crate::links::{self, Page};

    /// Folders of documents for people; `host/guide/site` is checked where its contents are drawn.
    const FOLDERS: [&str; 8] = [
        ".github",
        "host/benches",
        "host/guide/src",
        "host/guide/gallery",
        "plugins",
        "scenarios",
        "tests",
        "wit",
    ];

    #[test]
    fn links_and_anchors_lead_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut documents = vec![
            root.join("README.md"),
            root.join("CHANGELOG.md"),
            root.join("host/ARCHITECTURE.md"),
        ];
        for folder in FOLDERS {
            documents.extend(files(&root.join(folder), "md").unwrap());
        }
        let mut pages = BTreeMap::new();
        for document in documents {
            let page = Page::from_markdown(&std::fs::read_to_string(&document).unwrap());
            pages.insert(document.strip_prefix(&root).unwrap().to_owned(), page);
        }
        let broken = links::broken(&root, &pages);
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    #[test]
    fn documents_that_run_at_the_same_time_listen_on_different_ports() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut ports: BTreeMap<String, _> = BTreeMap::new();
        for document in documents(&root).unwrap() {
            let blocks = tested_blocks(&std::fs::read_to_string(&document).unwrap()).concat();
            for port in blocks.split("--port ").skip(1) {
                let port = port.chars().take_while(char::is_ascii_digit).collect();
                let first = ports.entry(port).or_insert_with(|| document.clone());
                assert_eq!(*first, document, "both use a port");
            }
        }
        assert!(ports.len() > 20, "{ports:?}");
    }

    #[test]
    fn only_tested_blocks_are_run() {
        let text = "a\n```sh\nno\n```\n```sh tested\nrunner help\nrunner list\n```\n";
        assert_eq!(tested_blocks(text), ["runner help\nrunner list\n"]);
    }
}
