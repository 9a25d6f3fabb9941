//! Files in order, and the containers that hold them: tar, gzip and ZIP, written so that the same
//! files give the same bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result};
use libdeflater::{CompressionLvl, Compressor};
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter};

use crate::date::Date;

/// Effort of compression, from 0 to 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(pub i32);

impl Level {
    /// As hard as can be: a package is made once, and downloaded often.
    pub const HARDEST: Level = Level(12);

    fn compressor(self) -> Result<Compressor> {
        let level = CompressionLvl::new(self.0);
        let level = level.ok().context("levels are from 0 to 12")?;
        Ok(Compressor::new(level))
    }
}

impl Default for Level {
    fn default() -> Self {
        Level::HARDEST
    }
}

/// A file or a folder.
#[derive(Clone, Debug)]
struct Entry<'a> {
    /// Permissions.
    mode: u32,
    /// The number of the user and the group that own it.
    owner: u64,
    /// The content; a folder has none.
    bytes: Option<Cow<'a, [u8]>>,
}

/// Files and folders by path, in the order of their paths.
#[derive(Clone, Debug, Default)]
pub struct Tree<'a> {
    entries: BTreeMap<String, Entry<'a>>,
}

impl<'a> Tree<'a> {
    pub fn new() -> Self {
        Tree::default()
    }

    /// Adds a file that everybody may read.
    pub fn file(&mut self, path: impl Into<String>, bytes: impl Into<Cow<'a, [u8]>>) {
        self.add(path.into(), 0o644, 0, Some(bytes.into()));
    }

    /// Adds a file that everybody may execute.
    pub fn program(&mut self, path: impl Into<String>, bytes: impl Into<Cow<'a, [u8]>>) {
        self.add(path.into(), 0o755, 0, Some(bytes.into()));
    }

    /// Adds a folder of this user.
    pub fn folder(&mut self, path: impl Into<String>, mode: u32, owner: u64) {
        self.add(path.into(), mode, owner, None);
    }

    fn add(&mut self, path: String, mode: u32, owner: u64, bytes: Option<Cow<'a, [u8]>>) {
        let entry = Entry { mode, owner, bytes };
        self.entries.insert(path, entry);
    }

    /// Adds the folders that its files lie in, each of root, for containers that list folders.
    pub fn with_folders(mut self) -> Self {
        let paths: Vec<String> = self.entries.keys().cloned().collect();
        for path in paths {
            for (at, _) in path.match_indices('/') {
                let folder = self.entries.entry(path[..at].to_owned());
                folder.or_insert(Entry { mode: 0o755, owner: 0, bytes: None });
            }
        }
        self
    }

    /// Its files, with their content, in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().filter_map(|(path, entry)| {
            let bytes = entry.bytes.as_ref()?;
            Some((path.as_str(), bytes.as_ref()))
        })
    }

    /// The number of its folders.
    pub fn folders(&self) -> usize {
        let entries = self.entries.values();
        entries.filter(|entry| entry.bytes.is_none()).count()
    }

    /// Writes it as tar.
    ///
    /// # Errors
    /// If a path is too long, or the output cannot be written.
    pub fn tar<W: Write>(&self, date: Date, output: W) -> Result<W> {
        let mut tar = tar::Builder::new(output);
        for (path, entry) in &self.entries {
            let mut header = tar::Header::new_ustar();
            header.set_mode(entry.mode);
            header.set_uid(entry.owner);
            header.set_gid(entry.owner);
            if entry.owner == 0 {
                header.set_username("root")?;
                header.set_groupname("root")?;
            }
            header.set_mtime(u64::try_from(date.seconds())?);
            match &entry.bytes {
                Some(bytes) => {
                    header.set_size(bytes.len() as u64);
                    tar.append_data(&mut header, path, bytes.as_ref())?;
                }
                None => {
                    header.set_entry_type(tar::EntryType::Directory);
                    header.set_size(0);
                    tar.append_data(&mut header, format!("{path}/"), std::io::empty())?;
                }
            }
        }
        Ok(tar.into_inner()?)
    }

    /// Writes it as tar, compressed with gzip.
    ///
    /// # Errors
    /// As for [`Tree::tar`].
    pub fn tar_gz(&self, date: Date, level: Level) -> Result<Vec<u8>> {
        gzip(&self.tar(date, Vec::new())?, level)
    }

    /// Writes its files as ZIP.
    ///
    /// # Errors
    /// If a file cannot be added.
    pub fn zip(&self, date: Date, level: Level) -> Result<Vec<u8>> {
        let mut zip = ZipArchiveWriter::new(Vec::new());
        for (path, entry) in &self.entries {
            let Some(bytes) = &entry.bytes else { continue };
            let (mut file, config) = zip
                .new_file(path.as_str())
                .compression_method(CompressionMethod::DEFLATE)
                .last_modified(UtcDateTime::from_unix(date.seconds()))
                // With the bits that say it is a file, which some installers look for.
                .unix_permissions(0o100_000 | entry.mode)
                .start()?;
            // It sees the uncompressed bytes, for their checksum.
            let mut seen = config.wrap(std::io::sink());
            seen.write_all(bytes)?;
            let (_, sum) = seen.finish()?;
            file.write_all(&deflate(bytes, level)?)?;
            file.finish(sum)?;
        }
        Ok(zip.finish()?)
    }
}

/// Compresses as ZIP has it.
fn deflate(bytes: &[u8], level: Level) -> Result<Vec<u8>> {
    let mut compressor = level.compressor()?;
    let mut output = vec![0; compressor.deflate_compress_bound(bytes.len())];
    let size = compressor.deflate_compress(bytes, &mut output)?;
    output.truncate(size);
    Ok(output)
}

/// Compresses with gzip, without a name and a date.
///
/// # Errors
/// If there is no such level.
pub fn gzip(bytes: &[u8], level: Level) -> Result<Vec<u8>> {
    let mut compressor = level.compressor()?;
    let mut output = vec![0; compressor.gzip_compress_bound(bytes.len())];
    let size = compressor.gzip_compress(bytes, &mut output)?;
    output.truncate(size);
    Ok(output)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::{Level, Tree};
    use crate::date::Date;

    fn date() -> Date {
        Date::read("1767323045").unwrap()
    }

    /// A tree whose files were added in this order.
    fn added(order: &[usize]) -> Tree<'static> {
        let mut tree = Tree::new();
        for number in order {
            match number {
                0 => tree.program("usr/bin/runner", b"program".as_slice()),
                1 => tree.file("usr/share/doc/LICENSE", b"text".as_slice()),
                _ => tree.folder("work", 0o755, 65_532),
            }
        }
        tree.with_folders()
    }

    #[test]
    fn the_order_of_adding_makes_no_difference() {
        let (one, other) = (added(&[0, 1, 2]), added(&[2, 1, 0]));
        let level = Level(6);
        let packed = one.tar_gz(date(), level).unwrap();
        assert_eq!(packed, other.tar_gz(date(), level).unwrap());
        let zipped = one.zip(date(), level).unwrap();
        assert_eq!(zipped, other.zip(date(), level).unwrap());
        let later = Date::read("1767323047").unwrap();
        assert_ne!(packed, one.tar_gz(later, level).unwrap());
    }

    #[test]
    fn entries_of_tar_have_root_the_date_and_folders_before_what_is_in_them() {
        let packed = added(&[0, 1, 2]).tar_gz(date(), Level(1)).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(packed.as_slice()));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            assert_eq!(header.mtime().unwrap(), 1_767_323_045);
            let owner = (header.uid().unwrap(), header.gid().unwrap());
            let mode = header.mode().unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            let path = entry.path().unwrap().display().to_string();
            seen.push((path, mode, owner, content));
        }
        let row = |path: &str, mode, owner: u64, content: &str| {
            (path.to_owned(), mode, (owner, owner), content.to_owned())
        };
        let expected = [
            row("usr/", 0o755, 0, ""),
            row("usr/bin/", 0o755, 0, ""),
            row("usr/bin/runner", 0o755, 0, "program"),
            row("usr/share/", 0o755, 0, ""),
            row("usr/share/doc/", 0o755, 0, ""),
            row("usr/share/doc/LICENSE", 0o644, 0, "text"),
            row("work/", 0o755, 65_532, ""),
        ];
        assert_eq!(seen, expected);
    }
}
