//! A scenario's tables together.

use std::collections::BTreeMap;

use crate::Fate::{May, Must, Silent};
use crate::Kind;
use crate::devices::{Cost, Machines, Run};
use crate::expect::Expect;
use crate::field::Maybe;
use crate::key::{heading::RESULT, plan, unplanned};
use crate::load::Load;
use crate::plugin::{Backend, Dataset, Sandbox, Scorer};
use crate::report::{Goodput, Report, Thresholds};
use crate::request::RequestOptions;
use crate::table::table;
use crate::target::{Connection, Paired, Side, Target, Timeouts, Tokenizer};
use model::about;
use reader::Located;

table! {
    /// A run as it was described, with nothing resolved.
    pub struct Scenario {
        /// The name of the scenario.
        name: Maybe<String> => plan("name", May).otherwise("the name of its file");
        /// Its position when a folder of scenarios is run; scenarios without one come after, by
        /// name.
        order: Maybe<u64> => unplanned();
        /// The subject of the measurement, for readers of the result.
        about: About;
        target: Target;
        /// Further servers that get the same requests in a paired run.
        sides: Option<Vec<Located<Side>>>;
        paired: Paired;
        /// The model's tokenizer.
        tokenizer: Tokenizer;
        /// The backend, which speaks the server's dialect.
        backend: Backend;
        /// The source of the requests' contents.
        dataset: Dataset;
        /// The number of requests, and when they are due.
        load: Load;
        /// Options for every request.
        request: RequestOptions;
        /// The connection to the server.
        connection: Connection;
        timeouts: Timeouts;
        /// The scorers that judge the answers; if the list is empty, nothing judges them.
        scorers: Option<Vec<Located<Scorer>>>;
        /// The watch on devices during the run.
        run: Run;
        /// The cost of a million tokens.
        cost: Cost;
        /// The machines that serve, for figures of agents.
        machines: Machines;
        /// The contents of the report.
        report: Report;
        /// The figures that the run is expected to have.
        expect: Expect;
        /// SLOs that a good request meets; the flag takes METRIC:MILLISECONDS each, such as
        /// ttft:200 tpot:20 e2el:5000.
        ///
        /// Any metric of the result works if it is a time and each request has one value of it.
        /// Limits may have a unit, as in itl-max:1.5s. The flag takes every word after it, so put
        /// scenarios first.
        goodput: Goodput => plan("goodput", Must(Kind::Definition))
            .flag("goodput", "OBJECTIVE", RESULT)
            .words();
        /// Threshold for the run, such as 'ttft.p99 <= 200ms'; exit with 6 if it does not hold;
        /// repeatable.
        ///
        /// Write a figure as in the result (ttft.p99, throughput.output-tokens-per-s,
        /// requests.success-share), then <=, <, >= or >, and a limit; or 'verdict <= valid'. No
        /// threshold holds for an invalid run; the exit code is then 7.
        thresholds: Thresholds => plan("thresholds", May)
            .flag("threshold", "THRESHOLD", RESULT)
            .delimiter(';');
        /// The resource limits of plugins.
        sandbox: Sandbox;
    }
}

// `[about]`: the subject of the run, as its author states it.

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
