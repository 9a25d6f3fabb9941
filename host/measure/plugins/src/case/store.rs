//! The files of a case: in a folder, or as the sections of one file, `NAME.case`, in the format of
//! [`txtar`]. `-- FILE (crlf) --` means that the file's lines end with CR LF, `-- FILE (open) --`
//! that its last line has no end, and `-- FILE (base64) --` that its bytes are in Base64.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use base64::DecodeError;
use base64::prelude::{BASE64_STANDARD as STANDARD, Engine as _};

use model::txtar;

/// The extension of a case in one file.
pub const EXTENSION: &str = "case";

#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    /// The sections of a case in one file.
    archive: Option<Archive>,
}

#[derive(Clone, Debug, Default)]
struct Archive {
    /// The text before the first section.
    comment: String,
    sections: Vec<Section>,
}

#[derive(Clone, Debug)]
struct Section {
    name: String,
    form: Form,
    /// As it stands in the file of sections: each line ends with LF.
    text: String,
}

/// The form in which a section holds a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Plain,
    CrLf,
    Open,
    Base64,
}

/// The words behind a section's name.
const FORMS: [(Form, &str); 4] = [
    (Form::Plain, ""),
    (Form::CrLf, " (crlf)"),
    (Form::Open, " (open)"),
    (Form::Base64, " (base64)"),
];

impl Section {
    /// The file that the section stands for.
    fn contents(&self) -> Result<Vec<u8>, DecodeError> {
        Ok(match self.form {
            Form::Plain => self.text.clone().into_bytes(),
            Form::CrLf => self.text.replace('\n', "\r\n").into_bytes(),
            Form::Open => self.text.strip_suffix('\n').unwrap_or(&self.text).into(),
            Form::Base64 => STANDARD.decode(self.text.replace('\n', ""))?,
        })
    }
}

impl Store {
    pub fn open(path: &Path) -> io::Result<Self> {
        let archive = path
            .is_file()
            .then(|| std::fs::read_to_string(path))
            .transpose()?
            .map(|text| Archive::parse(&text));
        Ok(Store { path: path.to_owned(), archive })
    }

    pub fn name(&self) -> String {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let name = if self.archive.is_some() { path.file_stem() } else { path.file_name() };
        name.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The path of a file in messages; the case's own path for an empty name.
    pub fn place(&self, file: &str) -> PathBuf {
        if file.is_empty() && self.archive.is_some() {
            self.path.clone()
        } else {
            self.path.join(file)
        }
    }

    /// The folder from which the paths in a `case.toml` start.
    pub fn folder(&self) -> &Path {
        match self.archive {
            Some(_) => self.path.parent().unwrap_or(&self.path),
            None => &self.path,
        }
    }

    /// Fails with `NotFound` if the case has no such file.
    pub fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        match &self.archive {
            Some(archive) => {
                let section = archive.section(file).ok_or(ErrorKind::NotFound)?;
                section.contents().map_err(|cause| io::Error::new(ErrorKind::InvalidData, cause))
            }
            None => std::fs::read(self.path.join(file)),
        }
    }

    pub fn has(&self, file: &str) -> bool {
        match &self.archive {
            Some(archive) => archive.section(file).is_some(),
            None => self.path.join(file).is_file(),
        }
    }

    pub fn names(&self) -> Result<Vec<String>, String> {
        let mut names: Vec<String> = match &self.archive {
            Some(archive) => archive.sections.iter().map(|section| section.name.clone()).collect(),
            None => super::entries(&self.path)?
                .iter()
                .filter(|path| !super::is_hidden(path))
                .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
                .collect(),
        };
        names.sort();
        Ok(names)
    }

    /// Replaces a file, or removes it.
    pub fn write(&mut self, file: &str, text: Option<&str>) -> io::Result<()> {
        let Some(archive) = &mut self.archive else {
            let path = self.path.join(file);
            return match text {
                Some(text) => std::fs::write(path, text),
                None => std::fs::remove_file(path),
            };
        };
        archive.set(file, text)?;
        std::fs::write(&self.path, archive.text())
    }
}

impl Archive {
    fn parse(text: &str) -> Self {
        let (comment, texts) = txtar::read(text);
        let sections = texts.into_iter().map(|(heading, text)| {
            let (name, form) = named(&heading);
            Section { name: name.to_owned(), form, text }
        });
        Archive { comment, sections: sections.collect() }
    }

    fn section(&self, file: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == file)
    }

    fn set(&mut self, file: &str, text: Option<&str>) -> io::Result<()> {
        let Some(text) = text else {
            self.sections.retain(|section| section.name != file);
            return Ok(());
        };
        if text.lines().any(|line| txtar::heading(line).is_some()) {
            let what = "it has a line `-- FILE --`; make the case a folder";
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let (form, end) = if text.ends_with('\n') { (Form::Plain, "") } else { (Form::Open, "\n") };
        let written = Section { name: file.to_owned(), form, text: format!("{text}{end}") };
        match self.sections.iter_mut().find(|section| section.name == file) {
            Some(section) => *section = written,
            None => self.sections.push(written),
        }
        Ok(())
    }

    fn text(&self) -> String {
        let headings = self.sections.iter().map(|Section { name, form, .. }| {
            let word = FORMS.iter().find(|(known, _)| known == form).map_or("", |(_, word)| word);
            format!("{name}{word}")
        });
        let headings: Vec<String> = headings.collect();
        let texts = self.sections.iter().map(|section| section.text.as_str());
        txtar::write(&self.comment, headings.iter().map(String::as_str).zip(texts))
    }
}

/// The name in a heading, and the form of the section.
fn named(heading: &str) -> (&str, Form) {
    let formed = |(form, word): &(Form, &str)| Some((heading.strip_suffix(word)?, *form));
    // The first form, whose word is empty, fits all.
    FORMS.iter().rev().find_map(formed).unwrap_or((heading, Form::Plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_a_file_are_read_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hello.case");
        // As the tests of txtar have it: text before, an empty section, a line that is no heading.
        let text = "comment\n\n-- sample.json (open) --\n{}\n-- empty.txt --\n-- a.bin (base64) --\n/wA=\n-- reply.sse (crlf) --\ndata: -- x --\n\n";
        std::fs::write(&path, text).unwrap();
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.name(), "hello");
        assert_eq!(store.names().unwrap(), ["a.bin", "empty.txt", "reply.sse", "sample.json"]);
        assert_eq!(store.read("sample.json").unwrap(), b"{}");
        assert_eq!(store.read("reply.sse").unwrap(), b"data: -- x --\r\n\r\n");
        assert_eq!(store.read("a.bin").unwrap(), [255, 0]);
        assert_eq!(store.read("empty.txt").unwrap(), b"");
        assert_eq!(store.read("other").unwrap_err().kind(), ErrorKind::NotFound);
        store.write("events.json", Some("[]")).unwrap();
        store.write("empty.txt", None).unwrap();
        assert!(store.write("error.txt", Some("-- a --")).is_err());
        let written = std::fs::read_to_string(&path).unwrap();
        let expected = "comment\n\n-- sample.json (open) --\n{}\n-- a.bin (base64) --\n/wA=\n-- reply.sse (crlf) --\ndata: -- x --\n\n-- events.json (open) --\n[]\n";
        assert_eq!(written, expected);
    }
}
