//! A file that a plugin has open, read by the sandbox. The list of a folder is one too.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

pub struct OpenFile {
    content: Content,
    pub(super) size: u64,
}

enum Content {
    File(File),
    Names(Vec<u8>),
}

impl OpenFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(OpenFile { content: Content::File(file), size })
    }

    /// The names of the files below a folder, `data/`: each in a line, in the order of their bytes.
    pub(super) fn list(folder: &str, files: &BTreeMap<String, PathBuf>) -> Option<Self> {
        let mut names = Vec::new();
        for (name, _) in files.range(folder.to_owned()..) {
            let Some(below) = name.strip_prefix(folder) else { break };
            names.extend_from_slice(below.as_bytes());
            names.push(b'\n');
        }
        (!names.is_empty())
            .then(|| OpenFile { size: names.len() as u64, content: Content::Names(names) })
    }

    /// Reads at most `length` bytes from `offset` on.
    pub(super) fn read_at(&self, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        let left = self.size.saturating_sub(offset);
        let length = u64::from(length).min(left);
        if length == 0 {
            // Systems refuse to seek far past the end.
            return Ok(Vec::new());
        }
        let mut file = match &self.content {
            Content::File(file) => file,
            Content::Names(names) => {
                let from = offset as usize;
                return Ok(names[from..from + length as usize].to_vec());
            }
        };
        let mut bytes = Vec::with_capacity(length as usize);
        file.seek(SeekFrom::Start(offset))?;
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_holds_only_files_of_its_folder() {
        let names = ["data", "data.txt", "data/a/1.wav", "data/b.wav", "data0", "other/c"];
        let files = names.map(|name| (name.to_owned(), PathBuf::new())).into();
        let list = OpenFile::list("data/", &files).unwrap();
        assert_eq!(list.size, 14);
        assert_eq!(list.read_at(0, 100).unwrap(), b"a/1.wav\nb.wav\n");
        assert_eq!(list.read_at(8, 2).unwrap(), b"b.");
        assert_eq!(list.read_at(14, 2).unwrap(), b"");
        assert!(OpenFile::list("none/", &files).is_none());
    }
}
