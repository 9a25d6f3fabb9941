//! The files that a run reads, so that another machine can make the same run from copies of them.
//!
//! What ships inside the program is not among them: the other machine has the same program.

use std::io;
use std::path::{Path, PathBuf};

use reader::Located;
use serde::{Deserialize, Serialize};

use super::{Source, ahead, tokens};
use crate::check::Checked;

/// The source, in messages, of the places of copies.
const SETTER: &str = "the files of the run";

/// The role of a file in a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The plugin that was asked for under this name.
    Plugin(String),
    /// The dataset's file of this name.
    Data(String),
    /// The times when requests are due.
    Trace,
    /// The tokenizer, in one file.
    Tokenizer,
    /// A file of the tokenizer's folder, with this path in it.
    OfTokenizer(String),
    /// The certificates to trust.
    Certificates,
}

/// A file of a run, and where it is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub role: Role,
    pub path: PathBuf,
}

impl Checked {
    /// Every file that the run reads.
    ///
    /// # Errors
    /// If the tokenizer's folder cannot be listed.
    pub fn inputs(&self) -> io::Result<Vec<Input>> {
        let mut inputs = Vec::new();
        let mut add = |role, path: &Path| {
            let input = Input { role, path: path.to_owned() };
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        };
        let scorers = self.scorers.iter().map(plugins::scorer::Scorer::plugin);
        for plugin in
            [self.parts.backend.plugin(), self.parts.dataset.plugin()].into_iter().chain(scorers)
        {
            if Path::new(&plugin.origin).is_file() {
                add(Role::Plugin(plugin.asked.clone()), Path::new(&plugin.origin));
            }
        }
        for (name, file) in &self.plan.dataset.files {
            add(Role::Data(name.clone()), &file.path);
        }
        let scenario = &self.source.scenario;
        if let Some(said) = &scenario.load.trace.file {
            add(Role::Trace, &ahead::seen(&self.source, said));
        }
        if let Some(said) = &scenario.connection.ca_cert {
            add(Role::Certificates, &ahead::seen(&self.source, said));
        }
        match &self.tokenizer_from {
            Some(folder) if folder.is_dir() => {
                for name in tokens::deciding(folder)? {
                    let path = folder.join(&name);
                    add(Role::OfTokenizer(name), &path);
                }
            }
            Some(file) => add(Role::Tokenizer, file),
            None => {}
        }
        Ok(inputs)
    }
}

impl Source {
    /// The same, reading these files in place of its own. The files of a tokenizer's folder lie in
    /// one folder, which is `tokenizer`.
    #[must_use]
    pub fn reading(mut self, inputs: &[Input], tokenizer: &Path) -> Self {
        let at = |path: &Path| Located::flag(SETTER, path.to_owned());
        for Input { role, path } in inputs {
            let scenario = &mut self.scenario;
            match role {
                Role::Plugin(asked) => {
                    let scorers = scenario.scorers.iter_mut().flatten();
                    let named = (scorers.filter_map(|scorer| scorer.value.plugin.as_mut()))
                        .chain(&mut scenario.backend.plugin)
                        .chain(&mut scenario.dataset.plugin)
                        .chain(&mut self.plugins);
                    for said in named.filter(|said| said.value == *asked) {
                        said.value = path.display().to_string();
                    }
                }
                Role::Data(name) => {
                    let files = &mut scenario.dataset.files;
                    // A file of a folder takes the folder's place.
                    if let Some((folder, _)) = name.split_once('/') {
                        files.remove(folder);
                    }
                    files.insert(name.clone(), at(path));
                }
                Role::Trace => scenario.load.trace.file = Some(at(path)),
                Role::Tokenizer => scenario.tokenizer.path = Some(at(path)),
                Role::OfTokenizer(_) => scenario.tokenizer.path = Some(at(tokenizer)),
                Role::Certificates => scenario.connection.ca_cert = Some(at(path)),
            }
        }
        self
    }
}
