//! The other languages of plugins, and their compilers. Tests without a compiler are left out.

use std::path::PathBuf;

use super::lacking::{self, Lack};

pub struct Other {
    /// Its name: the word at the end of the info of its blocks in the guide.
    pub word: &'static str,
    /// The end of the names of its projects in the guide.
    pub suffix: &'static str,
    pub variable: &'static str,
    compiler: &'static str,
    /// The lack of a machine without its compiler.
    lack: &'static Lack,
}

pub const PYTHON: Other = Other {
    word: "python",
    suffix: "-py/",
    variable: "COMPONENTIZE_PY",
    compiler: "componentize-py",
    lack: &lacking::PYTHON,
};

pub const JAVASCRIPT: Other = Other {
    word: "javascript",
    suffix: "-js/",
    variable: "COMPONENTIZE_QJS",
    compiler: "componentize-qjs",
    lack: &lacking::JAVASCRIPT,
};

pub const C: Other = Other {
    word: "c",
    suffix: "-c/",
    variable: "CLANG",
    compiler: "clang-19",
    lack: &lacking::CLANG,
};

impl Other {
    /// Its compiler, from the variable, `cargo xtask test languages` or the PATH; else left out.
    #[track_caller]
    pub fn compiler(&self) -> Option<PathBuf> {
        if let Some(named) = std::env::var_os(self.variable) {
            return Some(named.into());
        }
        let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/example-tools");
        let folders = [
            format!("{installed}/bin"),
            format!("{installed}/python/bin"),
            format!("{installed}/javascript/node_modules/.bin"),
        ];
        let search = std::env::var_os("PATH").unwrap_or_default();
        let found = (folders.map(PathBuf::from).into_iter())
            .chain(std::env::split_paths(&search))
            .map(|folder| folder.join(self.compiler))
            .find(|path| path.is_file());
        if found.is_none() {
            lacking::leave_out(self.lack);
        }
        found
    }
}
