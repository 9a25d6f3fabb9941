//! Calling a scorer: one instance over all exchanges of a run, in order; or one for each program.

mod programs;

use wasmtime::Store;
use wasmtime::component::{Linker, ResourceAny};

use super::awaited::exported;
use super::bindings::scorer_world::exports::runner::plugin::scorer as wit;
use super::bindings::scorer_world::{ScorerPlugin, ScorerPluginPre};
use super::bindings::{log, tokenizer, types};
use super::error::{PluginError, clean_text};
use super::instance::{CallResult, Configured, OpenInstance, Reopen, World, by_bindings};
use super::sandbox::{Guest, GuestData};
use model::plugin::{Kind, Limits};
use programs::{Declaration, Programs};

pub use super::bindings::types::Turn;
pub use wit::{Count, CountSource, Exchange, Score};

pub type Scorer = Configured<ScorerPlugin>;

/// An open scorer. A trap ends the instance; the next call gets a fresh one.
pub struct Judge {
    opened: OpenInstance<ScorerPlugin>,
    /// For a scorer that runs answers as programs: its declaration, and the programs so far.
    runs: Option<(Declaration, Programs)>,
}

/// Runs answers as programs, each in an instance of its own.
pub struct RunsAnswers {
    from: Scorer,
    declared: Declaration,
}

/// The scores of each answer of an exchange that was run as a program.
pub struct ProgramScores(Vec<Vec<(String, f64)>>);

impl World for ScorerPlugin {
    const KIND: Kind = Kind::Scorer;

    by_bindings!(ScorerPluginPre<Guest>);

    fn limit_ms(limits: &Limits) -> u64 {
        limits.scorer_call_ms
    }

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        types::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
        log::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
        tokenizer::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
    }
}

impl Reopen for ScorerPlugin {
    fn open(&self, store: &mut Store<Guest>, from: &Configured<Self>) -> CallResult<ResourceAny> {
        let interface = self.runner_plugin_scorer().judge();
        exported!(store, "scorer", "[static]judge.open", interface, call_open(&from.config))
    }
}

impl Configured<ScorerPlugin> {
    /// A fresh instance, opened with the configuration.
    pub fn open(&self) -> Result<Judge, PluginError> {
        let mut opened = OpenInstance::new(self)?;
        let schema = opened.described()?.config_schema;
        let declared = Declaration::from_schema(&schema).map_err(|what| PluginError::Contract {
            plugin: self.plugin.name.clone(),
            call: "describe",
            what,
        })?;
        let runs = declared.map(|declared| (declared, Programs::default()));
        if runs.is_some() {
            // Answers are run in instances of their own.
            opened.renew();
        }
        Ok(Judge { opened, runs })
    }
}

impl Judge {
    /// Scores of one exchange: of answers that run as programs, the mean over all answers.
    pub fn score(&mut self, exchange: &Exchange) -> Result<Vec<(String, f64)>, PluginError> {
        match self.runs_answers() {
            Some(runs) => {
                let ran = runs.run(exchange)?;
                Ok(self.count(&exchange.id, &ran))
            }
            None => scored(&mut self.opened, exchange),
        }
    }

    /// The plugin as the user named it.
    pub fn name(&self) -> &str {
        &self.opened.from.plugin.name
    }

    /// The runner of answers as programs, if the scorer runs them, for any thread and any order.
    pub fn runs_answers(&self) -> Option<RunsAnswers> {
        self.runs.as_ref().map(|(declared, _)| RunsAnswers {
            from: self.opened.from.clone(),
            declared: declared.clone(),
        })
    }

    /// Counts the results of a sample's programs for pass@k. Returns the scores of the exchange.
    pub fn count(&mut self, sample: &str, ran: &ProgramScores) -> Vec<(String, f64)> {
        if let Some((declared, programs)) = &mut self.runs {
            for scores in &ran.0 {
                programs.add(declared, sample, scores);
            }
        }
        programs::mean(&ran.0)
    }

    /// Scores of the run as a whole; for answers that run as programs, pass@k by sample.
    pub fn finish(&mut self) -> Result<Vec<(String, f64)>, PluginError> {
        if let Some((declared, programs)) = &self.runs {
            return Ok(programs.pass_at_k(declared));
        }
        let scores = self.opened.call("finish", |world, store, judge| {
            let interface = world.runner_plugin_scorer().judge();
            exported!(store, "scorer", "[method]judge.finish", interface, call_finish(judge))
        })?;
        checked(&self.opened.from, "finish", scores)
    }
}

impl RunsAnswers {
    /// Judges each answer of an exchange in an instance that nothing else uses. Fails if the plugin
    /// returns an error; whatever else goes wrong is the program's doing, and its score.
    pub fn run(&self, exchange: &Exchange) -> Result<ProgramScores, PluginError> {
        let answers = std::iter::once(&exchange.output).chain(&exchange.choices);
        let scores = answers.map(|output| {
            let alone =
                Exchange { output: output.clone(), choices: Vec::new(), ..exchange.clone() };
            match scored(&mut OpenInstance::new(&self.from)?, &alone) {
                Ok(scores) => Ok(self.declared.finished(scores)),
                Err(error) if error.is_misbehaviour_in("score") => Ok(self.declared.killed()),
                Err(error) => Err(error),
            }
        });
        scores.collect::<Result<_, _>>().map(ProgramScores)
    }
}

fn scored(
    opened: &mut OpenInstance<ScorerPlugin>,
    exchange: &Exchange,
) -> Result<Vec<(String, f64)>, PluginError> {
    let scores = opened.call("score", |world, store, judge| {
        let interface = world.runner_plugin_scorer().judge();
        exported!(store, "scorer", "[method]judge.score", interface, call_score(judge, exchange))
    })?;
    checked(&opened.from, "score", scores)
}

fn checked(
    scorer: &Scorer,
    call: &'static str,
    scores: Result<Vec<Score>, types::Error>,
) -> Result<Vec<(String, f64)>, PluginError> {
    let plugin = &scorer.plugin.name;
    scores
        .map_err(|error| PluginError::from_plugin(plugin, error))?
        .into_iter()
        .map(|score| {
            if score.value.is_finite() && !score.name.is_empty() {
                return Ok((clean_text(&score.name), score.value));
            }
            Err(PluginError::Contract {
                plugin: plugin.clone(),
                call,
                what: format!(
                    "the score `{}` is {}; scores have a name and a finite value",
                    clean_text(&score.name),
                    score.value
                ),
            })
        })
        .collect()
}
