//! The machine that a binary is for, and its names in each packaging system.

use std::fmt;

use anyhow::{Result, ensure};

use crate::elf::Elf;

/// A processor that packages are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// 64-bit Intel and AMD.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Machine {
    pub const ALL: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

    /// Its name in Rust, Python and Nix.
    pub fn name(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64",
            Machine::Aarch64 => "aarch64",
        }
    }

    /// Its name in Debian and in images.
    pub fn debian(self) -> &'static str {
        match self {
            Machine::X86_64 => "amd64",
            Machine::Aarch64 => "arm64",
        }
    }

    pub fn node(self) -> &'static str {
        match self {
            Machine::X86_64 => "x64",
            Machine::Aarch64 => "arm64",
        }
    }
}

/// A processor, and the C library that a binary needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub machine: Machine,
    /// True if the binary needs no library and no loader, so that it runs on any Linux.
    pub is_static: bool,
}

impl Target {
    /// The target of a binary.
    ///
    /// # Errors
    /// If a target was named, and the binary is for another.
    pub fn of(binary: &Elf, named: Option<&str>) -> Result<Self> {
        let target = Target { machine: binary.machine, is_static: binary.interpreter.is_none() };
        if let Some(named) = named {
            let found = target.to_string();
            ensure!(named == found, "--target {named}: the binary is for {found}");
        }
        Ok(target)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let library = if self.is_static { "musl" } else { "gnu" };
        write!(f, "{}-unknown-linux-{library}", self.machine.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Target;
    use crate::elf::Elf;
    use crate::elf::tests::made_up;

    #[test]
    fn a_target_is_what_the_binary_is_for() {
        let of = |number, loader, named| {
            let elf = Elf::read(&made_up(number, loader)).unwrap();
            Target::of(&elf, named).map(|target| target.to_string())
        };
        let musl = "aarch64-unknown-linux-musl";
        assert_eq!(of(183, None, None).unwrap(), musl);
        assert_eq!(of(183, None, Some(musl)).unwrap(), musl);
        let gnu = "x86_64-unknown-linux-gnu";
        assert_eq!(of(62, Some("/lib64/ld-linux-x86-64.so.2"), None).unwrap(), gnu);
        let wrong = of(62, None, Some(gnu)).unwrap_err().to_string();
        assert_eq!(
            wrong,
            "--target x86_64-unknown-linux-gnu: the binary is for x86_64-unknown-linux-musl"
        );
    }
}
