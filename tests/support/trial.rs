//! A trial: a scenario's text, settings that flags would lay over it, and a mock engine's script,
//! run as a whole on virtual time. Everything between the scenario and the report is the real
//! thing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mock::{Engine, Truth};
use model::exchange::{Class, Exchange, Outcome, Phase};
use model::units::Nanos;
use reader::Located;
use report::text;
use result::summary::{Distribution, RunFacts, Summary};
use runs::environment::Environment;
use runs::folder::RunFolder;
use scenario::Scenario;
use scenario::plan::{Plan, Slice};
use session::gate::Gate;
use session::live::Live;
use session::live::Snapshot;
use session::parts::RunError;
use session::{
    CheckedRun, Ending, MeasuredRun, PausedClock, Record, ResolvedRun, Source, Variables, resolve,
};
use tempfile::TempDir;

use super::memory::{Away, Memory};
use super::raw::Raw;

#[derive(Clone, Default)]
pub struct Trial {
    scenario: String,
    over: Vec<String>,
    plugins: Vec<String>,
    dataset_file: Option<PathBuf>,
    api_key: Option<String>,
    slice: Option<Slice>,
    gate: Option<Gate>,
    script: String,
    raw: Option<Arc<Raw>>,
    away: Option<(u32, Away)>,
    apart: bool,
    looks: Option<Duration>,
}

pub struct RunResult {
    /// The plan, with the model's name in it.
    pub plan: Plan,
    pub ended: Result<(), RunError>,
    /// All exchanges as they were read back from the folder, ordered by phase and index.
    pub exchanges: Vec<Exchange>,
    /// Facts beside them from which the summary was made.
    pub facts: RunFacts,
    pub summary: Summary,
    /// The block of text that is printed.
    pub text: String,
    pub truths: Vec<Truth>,
    pub connections: usize,
    /// Connections that were open at the same time at most.
    pub peak_connections: usize,
    /// The state of the run, for display.
    pub live: Arc<Live>,
    /// The snapshots taken while it went on, if any were.
    pub looks: Vec<Snapshot>,
    folder: RunFolder,
    /// Holds the run's folder; it is deleted with this.
    _output: TempDir,
}

impl Trial {
    pub fn new(scenario: &str) -> Self {
        Trial { scenario: scenario.to_owned(), ..Trial::default() }
    }

    /// Lays more scenario text over it, as flags do.
    pub fn with(mut self, over: &str) -> Self {
        self.over.push(over.to_owned());
        self
    }

    /// Names a plugin as `--plugin` does.
    pub fn plugin(mut self, name: &str) -> Self {
        self.plugins.push(name.to_owned());
        self
    }

    /// Names the dataset's file as `--dataset-path` does.
    pub fn dataset_file(mut self, path: &Path) -> Self {
        self.dataset_file = Some(path.to_owned());
        self
    }

    /// Sets the key that a variable would hold.
    pub fn api_key(mut self, key: &str) -> Self {
        self.api_key = Some(key.to_owned());
        self
    }

    /// Runs only a part of the plan.
    pub fn slice(mut self, index: u32, of: u32) -> Self {
        self.slice = Some(Slice { index, of });
        self
    }

    /// Has the run wait there for others.
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Adds to the mock engine's script. Without any, tokens come after 120 ms and every 20 ms.
    pub fn against(mut self, script: &str) -> Self {
        self.script.push_str(script);
        self.script.push('\n');
        self
    }

    pub fn against_raw(mut self, raw: &Arc<Raw>) -> Self {
        self.raw = Some(Arc::clone(raw));
        self
    }

    /// With a target that cannot be connected to.
    pub fn without(mut self, target: u32, away: Away) -> Self {
        self.away = Some((target, away));
        self
    }

    /// With connections that differ in the instant at which their opening began.
    pub fn telling_connections_apart(mut self) -> Self {
        self.apart = true;
        self
    }

    /// Takes snapshots at this interval while it goes on.
    pub fn looked_at(mut self, every: Duration) -> Self {
        self.looks = Some(every);
        self
    }

    /// The whole scenario, resolved. It must name a model, so that no server has to be asked.
    pub fn resolve(&self) -> CheckedRun {
        let unchecked = self.resolved().unchecked();
        unchecked.unwrap_or_else(|_| panic!("no model is named:\n{}", self.scenario))
    }

    fn resolved(&self) -> ResolvedRun {
        let parse = |name: &str, text: &str| {
            Scenario::parse(name, text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
        };
        let mut scenario = parse("scenario.toml", &self.scenario);
        for over in &self.over {
            scenario = scenario.overlay(parse("flags", over));
        }
        if let Some(path) = &self.dataset_file {
            let located = Located::flag("--dataset-path", path.clone());
            scenario.dataset.files.insert("data".to_owned(), located);
        }
        let source = Source {
            scenario,
            name: "trial".to_owned(),
            plugins: self
                .plugins
                .iter()
                .map(|name| Located::flag("--plugin", name.clone()))
                .collect(),
            shipped: shipped::PLUGINS,
            variables: Variables::Given(
                (self.api_key.iter())
                    .map(|key| ("OPENAI_API_KEY".to_owned(), key.clone()))
                    .collect(),
            ),
            slice: self.slice,
            ..Source::default()
        };
        resolve(&source).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    /// Makes the run, on the calling task's runtime, whose clock must be paused. The run must end
    /// well.
    pub async fn run(&self) -> RunResult {
        let ran = self.run_to_any_end().await;
        ran.ended.as_ref().unwrap();
        ran
    }

    pub fn run_to_any_end(&self) -> impl Future<Output = RunResult> {
        // Without optimisation a run takes hundreds of KiB, and a test may make several at once.
        Box::pin(self.made())
    }

    async fn made(&self) -> RunResult {
        let resolved = self.resolved();
        let speed = if self.script.contains("ttft") || self.script.contains("[batching]") {
            ""
        } else {
            SPEED
        };
        let script = format!("{speed}{}", self.script);
        let script = (script.parse()).unwrap_or_else(|error| panic!("{error}\n{script}"));
        let engine = Engine::with_truth(script).unwrap();
        let memory = self.raw.as_ref().map_or_else(|| Memory::to(&engine), Memory::to_raw);
        let memory =
            (memory.speaking(resolved.draft.connection.http)).without(self.away).apart(self.apart);
        let checked = match resolved.unchecked() {
            Ok(checked) => checked,
            Err(resolved) => resolved.check(&memory, |_| {}).await.unwrap(),
        };
        let output = tempfile::tempdir().unwrap();
        let record = Record {
            output: output.path().to_owned(),
            started: jiff::Timestamp::UNIX_EPOCH,
            environment: Environment::look(std::iter::empty(), None, "0.2.0"),
            repeat: None,
        };
        let mut run = checked.begin(record, PausedClock).unwrap();
        if let Some(gate) = &self.gate {
            run = run.behind(gate.clone());
        }
        let live = Arc::clone(run.live());
        let mut looks = Vec::new();
        let onlooker = async {
            while let Some(every) = self.looks {
                tokio::time::sleep(every).await;
                looks.push(live.snapshot());
            }
            std::future::pending::<Never>().await
        };
        let loaded = tokio::select! {
            loaded = run.load(&memory) => loaded,
            never = onlooker => match never {},
        };
        let kept = loaded.keep(&Ending { at: "virtual".to_owned(), interrupted: false });
        let measured = kept.assess().unwrap().summarise().unwrap();
        assert_eq!(measured.unjudged, None);
        let MeasuredRun { plan, folder, ended, facts, summary, kept, .. } = measured;
        kept.unwrap();
        RunResult {
            text: text::text(&summary),
            truths: engine.truths(),
            connections: memory.opened(),
            peak_connections: memory.peak(),
            live,
            looks,
            plan,
            ended,
            exchanges: folder.exchanges().unwrap(),
            facts,
            summary,
            folder,
            _output: output,
        }
    }
}

/// There is none of these: waiting for one never ends.
enum Never {}

/// The speed of the mock engine by default.
const SPEED: &str = "ttft = '120ms'\nitl = '20ms'\n";

impl RunResult {
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn start(&self) -> Nanos {
        self.summary.run.measure_start.unwrap()
    }

    /// The measured exchanges in the order of their samples.
    pub fn measured(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.phase == Phase::Measure)
    }

    pub fn warmup(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.phase == Phase::Warmup)
    }

    pub fn metric(&self, name: &str) -> &Distribution {
        self.summary
            .metric(name)
            .unwrap_or_else(|| panic!("no `{name}` was measured\n{}", self.text))
    }

    /// A metric that has the same value everywhere, and its number of samples.
    pub fn everywhere(&self, name: &str) -> (f64, u64) {
        let metric = self.metric(name);
        assert_eq!(metric.min, metric.max, "`{name}`\n{}", self.text);
        assert_eq!(metric.mean, metric.min, "`{name}`");
        (metric.mean, metric.count)
    }

    /// Milliseconds from the start of the measurement to an instant of each measured exchange.
    pub fn since_start(&self, at: impl Fn(&Exchange) -> Option<Nanos>) -> Vec<f64> {
        let start = self.start();
        self.measured().map(|exchange| at(exchange).unwrap().since(start).as_millis_f64()).collect()
    }

    /// Failures of the measured exchanges by index; the others are successes.
    pub fn failures(&self) -> Vec<(u64, Class)> {
        self.measured()
            .filter_map(|exchange| match &exchange.outcome {
                Outcome::Ok => None,
                Outcome::Incomplete { class, .. } => Some((exchange.index, *class)),
            })
            .collect()
    }
}
