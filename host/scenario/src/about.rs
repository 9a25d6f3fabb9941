//! `[about]`: what was measured, in its author's words.

use std::collections::BTreeMap;

use serde::Serialize;

use model::about;
use reader::Reader;
use reader::{Place, Said};

/// `[about]`: engine, hardware and how the server was started. None of it is checked.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct About {
    /// The engine under test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Said<String>>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<Said<String>>,
    /// The hardware it runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Said<String>>,
    /// The command that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_command: Option<Said<String>>,
    /// Anything else worth knowing, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, Said<String>>,
}

impl About {
    pub(super) fn read(t: &mut Reader<'_, '_>) -> Self {
        About {
            engine: t.string("engine"),
            engine_version: t.string("engine-version"),
            hardware: t.string("hardware"),
            launch_command: t.string("launch-command"),
            notes: t.strings("notes", |text| Ok(text.to_owned())).collect(),
        }
    }

    pub(super) fn overlay(self, over: About) -> About {
        let mut notes = self.notes;
        notes.extend(over.notes);
        About {
            engine: over.engine.or(self.engine),
            engine_version: over.engine_version.or(self.engine_version),
            hardware: over.hardware.or(self.hardware),
            launch_command: over.launch_command.or(self.launch_command),
            notes,
        }
    }

    pub(super) fn place_of(&self, within: &[&str]) -> Option<&Place> {
        let said = match within {
            ["engine"] => &self.engine,
            ["engine-version"] => &self.engine_version,
            ["hardware"] => &self.hardware,
            ["launch-command"] => &self.launch_command,
            ["notes", name] => return Some(&self.notes.get(*name)?.place),
            _ => return None,
        };
        said.as_ref().map(|said| &said.place)
    }

    /// The values, without their places.
    pub fn said(&self) -> about::About {
        let plain = |said: &Option<Said<String>>| said.as_ref().map(|said| said.value.clone());
        let notes = self.notes.iter();
        about::About {
            engine: plain(&self.engine),
            engine_version: plain(&self.engine_version),
            hardware: plain(&self.hardware),
            launch_command: plain(&self.launch_command),
            notes: notes
                .map(|(name, said)| (name.clone(), said.value.clone()))
                .collect(),
        }
    }
}
