//! The files of the scenario: one named file, the files of a folder, and the sound that a row names
//! by its author's path.

use std::collections::{BTreeMap, BTreeSet};

use runner_plugin::{Error, File, Files};

/// The scenario's names of the file or folder of texts, and of a folder of sounds beside it.
pub const DATA: &str = "data";
pub const AUDIO: &str = "audio";

const SOUNDS: [&str; 9] = ["wav", "flac", "mp3", "ogg", "opus", "m4a", "mp4", "webm", "mpga"];

const LONGEST: u64 = 32 << 20;

pub struct Places {
    files: Box<dyn Files>,
    /// The files of the folders `data` and `audio`, if these are folders: their whole names.
    names: BTreeSet<String>,
    /// The first sound of each name without folder and ending.
    by_stem: BTreeMap<String, String>,
}

impl Places {
    pub fn new(files: Box<dyn Files>) -> Result<Self, Error> {
        let mut names = BTreeSet::new();
        for folder in [DATA, AUDIO] {
            let Some(list) = files.open(&format!("{folder}/")) else { continue };
            let wrong = |cause: String| Error::InvalidInput(format!("folder `{folder}`: {cause}"));
            let list = text(&*list, LONGEST).map_err(wrong)?;
            names.extend(list.lines().map(|name| format!("{folder}/{name}")));
        }
        let mut by_stem = BTreeMap::new();
        for name in names.iter().filter(|name| is_sound(name)) {
            by_stem.entry(stem(name).to_owned()).or_insert_with(|| name.clone());
        }
        Ok(Self { files, names, by_stem })
    }

    pub fn is_folder(&self) -> bool {
        self.names.range(format!("{DATA}/")..).next().is_some_and(|name| name.starts_with("data/"))
    }

    /// The files of the folder `data`.
    pub fn of_data(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter().map(String::as_str);
        names.filter(|name| name.starts_with("data/"))
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub fn open(&self, name: &str) -> Option<Box<dyn File>> {
        self.files.open(name)
    }

    /// The whole name of the sound that a row calls `written`. The search covers the folder of the
    /// row's file, the folder of sounds, and shorter and shorter ends of the path: another
    /// machine's path begins with unknown folders.
    pub fn sound(&self, row_of: &str, written: &str) -> Option<String> {
        let folder = row_of.rsplit_once('/').map_or("", |(folder, _)| folder);
        let near = joined(folder, written);
        if self.names.contains(&near) {
            return Some(near);
        }
        let plain = joined("", written);
        let mut end = plain.as_str();
        loop {
            for folder in [AUDIO, DATA] {
                let name = format!("{folder}/{end}");
                if self.names.contains(&name) {
                    return Some(name);
                }
            }
            // A file that the scenario names by itself.
            if self.files.open(end).is_some() {
                return Some(end.to_owned());
            }
            end = end.split_once('/')?.1;
        }
    }

    /// The whole name of the sound whose name without its ending is `stem`: in a folder, or in any.
    pub fn sound_of(&self, row_of: &str, stem: &str) -> Option<String> {
        let folder = row_of.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut beside = SOUNDS.iter().map(|ending| joined(folder, &format!("{stem}.{ending}")));
        let beside = beside.find(|name| self.names.contains(name));
        beside.or_else(|| self.by_stem.get(stem).cloned())
    }
}

pub fn is_sound(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| SOUNDS.contains(&&*ending))
}

/// A file's name without its folder and its ending.
pub fn stem(name: &str) -> &str {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.rsplit_once('.').map_or(base, |(stem, _)| stem)
}

/// A path below a folder, without `.` and `..`.
fn joined(folder: &str, path: &str) -> String {
    let path = path.replace('\\', "/");
    let folder = if path.starts_with('/') { "" } else { folder };
    let mut steps: Vec<&str> = Vec::new();
    for step in folder.split('/').chain(path.split('/')) {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    steps.join("/")
}

pub fn text(file: &dyn File, most: u64) -> Result<String, String> {
    String::from_utf8(bytes(file, most)?).map_err(|_| "expected UTF-8".to_owned())
}

pub fn bytes(file: &dyn File, most: u64) -> Result<Vec<u8>, String> {
    let size = file.size();
    if size > most {
        return Err(format!("it has {size} bytes; expected at most {most}"));
    }
    file.read_all(0, size)
}
