//! `[about]`: the subject of the run, as its author states it.

use std::collections::BTreeMap;

use crate::comparability::Fate::Silent;
use crate::field::Maybe;
use crate::key::{heading::RESULT, plan};
use crate::table::table;
use model::about;
use reader::Located;

table! {
    /// `[about]`: engine, hardware and how the server was started. None of it is checked.
    pub struct About {
        /// Name of the engine under test, for the report, such as vllm.
        engine: Maybe<String> => plan("about.engine", Silent).flag("engine", "NAME", RESULT);
        /// Version of the engine, for the report.
        engine_version: Maybe<String>
            => plan("about.engine-version", Silent).flag("engine-version", "VERSION", RESULT);
        /// Hardware that the engine runs on, for the report, such as "8x H800".
        hardware: Maybe<String> => plan("about.hardware", Silent).flag("hardware", "WORDS", RESULT);
        /// Command that started the engine, for the report; leave keys out of it.
        launch_command: Maybe<String>
            => plan("about.launch-command", Silent).flag("launch-command", "COMMAND", RESULT);
        /// Anything else for the report, by names of your choice; the flag takes KEY=VALUE, and is
        /// repeatable.
        notes: BTreeMap<String, Located<String>>
            => plan("about.notes", Silent).flag("metadata", "KEY=VALUE", RESULT);
    }
}

impl About {
    /// The values, without their places.
    pub fn values(&self) -> about::About {
        let plain = |value: &Maybe<String>| value.as_ref().map(|value| value.value.clone());
        let notes = self.notes.iter();
        about::About {
            engine: plain(&self.engine),
            engine_version: plain(&self.engine_version),
            hardware: plain(&self.hardware),
            launch_command: plain(&self.launch_command),
            notes: notes.map(|(name, note)| (name.clone(), note.value.clone())).collect(),
        }
    }
}
