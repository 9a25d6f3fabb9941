//! The head of a Linux program: its processor, and its requirements for a start.

use anyhow::{Context, Result, bail, ensure};

use crate::target::Machine;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;

/// A binary as its head describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    pub machine: Machine,
    /// The loader that starts it. A static binary has none.
    pub interpreter: Option<String>,
    /// The libraries that it names.
    pub needed: Vec<String>,
    /// The oldest glibc that has all that it calls, such as 2.34.
    pub glibc: Option<(u32, u32)>,
}

impl Elf {
    /// Reads a binary's head.
    ///
    /// # Errors
    /// If it is no 64-bit program of Linux for a processor that packages are made for.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        ensure!(bytes.starts_with(b"\x7fELF\x02\x01"), "expected a 64-bit program of Linux (ELF)");
        let head = Head(bytes);
        let machine = match head.u16(18)? {
            62 => Machine::X86_64,
            183 => Machine::Aarch64,
            other => bail!("expected a program for x86-64 or AArch64, found processor {other}"),
        };
        let segments = head.segments()?;
        let first = |kind| segments.iter().find(|segment| segment.kind == kind);
        let mut elf = Elf { machine, interpreter: None, needed: Vec::new(), glibc: None };
        if let Some(segment) = first(PT_INTERP) {
            elf.interpreter = Some(text(head.bytes(segment.offset, segment.size)?));
        }
        if let Some(segment) = first(PT_DYNAMIC) {
            let dynamic = head.bytes(segment.offset, segment.size)?;
            elf.read_dynamic(head, &segments, Head(dynamic))?;
        }
        Ok(elf)
    }

    fn read_dynamic(&mut self, head: Head, segments: &[Segment], dynamic: Head) -> Result<()> {
        let entries: Vec<(u64, u64)> = (0..dynamic.0.len() as u64 / 16)
            .map(|at| Ok((dynamic.u64(16 * at)?, dynamic.u64(16 * at + 8)?)))
            .collect::<Result<_>>()?;
        let value = |tag| entries.iter().find(|entry| entry.0 == tag);
        let (Some((_, table)), Some((_, size))) = (value(DT_STRTAB), value(DT_STRSZ)) else {
            return Ok(());
        };
        let loaded = segments
            .iter()
            .find(|segment| segment.kind == PT_LOAD && segment.holds(*table))
            .context("its table of names is in no segment")?;
        let names = head.bytes(table - loaded.address + loaded.offset, *size)?;
        for (_, at) in entries.iter().filter(|entry| entry.0 == DT_NEEDED) {
            let at = usize::try_from(*at)?;
            self.needed.push(text(names.get(at..).context("a name is cut off")?));
        }
        // The versions that it calls functions by stand among the names.
        self.glibc = (names.split(|byte| *byte == 0))
            .filter_map(|name| {
                let version = std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_")?;
                let (major, minor) = version.split_once('.')?;
                let minor = minor.split('.').next()?;
                Some((major.parse().ok()?, minor.parse().ok()?))
            })
            .max();
        Ok(())
    }
}

/// A segment: the loader maps it into memory.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Segment {
    fn holds(&self, address: u64) -> bool {
        (self.address..self.address.saturating_add(self.size)).contains(&address)
    }
}

/// Numbers at places of bytes, little-endian.
#[derive(Clone, Copy)]
struct Head<'a>(&'a [u8]);

impl<'a> Head<'a> {
    fn bytes(self, offset: u64, size: u64) -> Result<&'a [u8]> {
        let from = usize::try_from(offset)?;
        let size = usize::try_from(size)?;
        let end = from.checked_add(size).context("the program is cut off")?;
        self.0.get(from..end).context("the program is cut off")
    }

    fn number<const SIZE: usize>(self, offset: u64) -> Result<[u8; SIZE]> {
        Ok(self.bytes(offset, SIZE as u64)?.try_into()?)
    }

    fn u16(self, offset: u64) -> Result<u16> {
        self.number(offset).map(u16::from_le_bytes)
    }

    fn u32(self, offset: u64) -> Result<u32> {
        self.number(offset).map(u32::from_le_bytes)
    }

    fn u64(self, offset: u64) -> Result<u64> {
        self.number(offset).map(u64::from_le_bytes)
    }

    fn segments(self) -> Result<Vec<Segment>> {
        let table = self.u64(32)?;
        let size = u64::from(self.u16(54)?);
        let count = u64::from(self.u16(56)?);
        (0..count)
            .map(|number| {
                let at = table.checked_add(number * size).context("the program is cut off")?;
                self.bytes(at, 56)?;
                Ok(Segment {
                    kind: self.u32(at)?,
                    offset: self.u64(at + 8)?,
                    address: self.u64(at + 16)?,
                    size: self.u64(at + 32)?,
                })
            })
            .collect()
    }
}

/// Text up to its first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Elf;
    use crate::target::Machine;

    /// The smallest head of a program, static or with a loader.
    pub(crate) fn made_up(machine: u16, interpreter: Option<&str>) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        if let Some(interpreter) = interpreter {
            bytes[56..58].copy_from_slice(&1_u16.to_le_bytes());
            let mut segment = vec![0; 56];
            segment[..4].copy_from_slice(&super::PT_INTERP.to_le_bytes());
            segment[8..16].copy_from_slice(&120_u64.to_le_bytes());
            segment[32..40].copy_from_slice(&(interpreter.len() as u64 + 1).to_le_bytes());
            bytes.extend(segment);
            bytes.extend(interpreter.as_bytes());
            bytes.push(0);
        }
        bytes
    }

    #[test]
    fn this_test_is_a_program_that_names_its_libraries() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::read(&bytes).unwrap();
        assert_eq!(elf.machine.name(), std::env::consts::ARCH);
        if cfg!(target_env = "gnu") {
            assert!(elf.interpreter.unwrap().contains("ld-linux"));
            assert!(elf.needed.contains(&"libc.so.6".to_owned()), "{:?}", elf.needed);
            assert!(elf.glibc > Some((2, 2)), "{:?}", elf.glibc);
        }
    }

    #[test]
    fn a_program_without_a_loader_is_static() {
        let elf = Elf::read(&made_up(183, None)).unwrap();
        assert_eq!((elf.machine, elf.interpreter), (Machine::Aarch64, None));
        let elf = Elf::read(&made_up(62, Some("/lib/ld.so"))).unwrap();
        assert_eq!(elf.interpreter.as_deref(), Some("/lib/ld.so"));
    }

    #[test]
    fn bytes_that_are_no_program_are_refused_wherever_they_end() {
        assert!(Elf::read(b"#!/bin/sh\n").is_err());
        assert!(Elf::read(&made_up(40, None)).is_err());
        let whole = made_up(62, Some("/lib/ld.so"));
        for end in 0..whole.len() {
            assert!(Elf::read(&whole[..end]).is_err(), "{end}");
        }
    }
}
