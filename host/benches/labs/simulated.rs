//! Labs of engines with known truth: drawn figures, no engine and no time.
//!
//! A start's throughput is the truth of its trial, times the round's effect on all trials, times
//! chance. A P99 of TTFT is drawn beside it for constraints.

use std::collections::BTreeMap;

use lab::journal::{Event, Finished, Outcome};
use lab::measured::{Measured, Number};
use lab::strategy::{Kind, Study};
use lab::{Lab, Next, Results, RunKey, Scenario, Start, digest, findings, next, study};
use result::finding::Verdict;

pub const STRATEGIES: [&str; 2] = ["matrix", "one-at-a-time"];

/// Three options with three, two and two values.
pub const OPTIONS: &str =
    "seqs = [64, 128, 256]\nmode = [\"plain\", \"fast\"]\ntokens = [2048, 8192]\n";

/// One option with two values, the smallest lab.
pub const ONE_OPTION: &str = "mode = [\"plain\", \"fast\"]\n";

/// A case: a lab and the truth about it.
#[derive(Clone, Copy)]
pub struct Case {
    pub strategy: &'static str,
    pub options: &'static str,
    /// The gain of the fast mode, as a share.
    pub fast: f64,
    /// The standard deviation from start to start, as a share.
    pub starts: f64,
    /// The noise of the fast mode, as a multiple of the others'.
    pub unsteady: f64,
    /// The standard deviation of a round's effect on all trials, as a share.
    pub rounds: f64,
    /// The mean P99 of TTFT of every trial (ms) and its relative deviation; the limit is 1000 ms.
    pub p99: Option<(f64, f64)>,
}

impl Case {
    /// Equal options with a deviation of 1 %, three rounds, and no constraint on latency.
    pub fn equal(strategy: &'static str) -> Self {
        Case {
            strategy,
            options: OPTIONS,
            fast: 0.0,
            starts: 0.01,
            unsteady: 1.0,
            rounds: 0.0,
            p99: None,
        }
    }

    fn text(&self) -> String {
        let subject = if self.p99.is_some() { "subject-to = [\"ttft.p99 < 1s\"]\n" } else { "" };
        format!(
            "name = \"A lab\"\nstrategy = \"{}\"\nscenarios = \"chat.toml\"\n[objective]\n\
             maximize = \"throughput.output-tokens-per-s\"\n{subject}\
             [[engines]]\nname = \"a\"\nlaunch = [\"a\"]\n[engines.options]\n{}",
            self.strategy, self.options
        )
    }

    /// Runs `many` labs of this case to their ends.
    pub fn labs(&self, many: u64) -> impl Iterator<Item = SimulatedLab> + '_ {
        let lab = Lab::parse("lab.toml", &self.text());
        let lab = lab.unwrap_or_else(|error| panic!("{error}"));
        (0..many).map(move |seed| self.lab(&lab, seed))
    }

    fn lab(&self, lab: &Lab, seed: u64) -> SimulatedLab {
        let scenarios = scenarios();
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d);
        let mut effects: BTreeMap<u32, f64> = BTreeMap::new();
        let mut results = Results::default();
        while let Next::Run(starts) = next(lab, &scenarios, &results) {
            // All requests at once: no trial fails, so nothing between the runs changes it.
            for start in &starts {
                let effect =
                    *effects.entry(start.round).or_insert_with(|| self.rounds * random.normal());
                for run in &start.runs {
                    results.add(&self.finished(start, run, effect, &mut random));
                }
            }
        }
        let study = study(lab, 0, &scenarios, &results);
        SimulatedLab { lab: lab.clone(), results, study }
    }

    fn finished(&self, start: &Start, run: &RunKey, effect: f64, random: &mut Random) -> Event {
        let is_fast =
            start.trial.settings.iter().any(|(name, value)| name == "mode" && value == "fast");
        let (truth, varies) = if is_fast {
            (self.fast.ln_1p(), self.starts * self.unsteady)
        } else {
            (0.0, self.starts)
        };
        let tokens = 1000.0 * (truth + effect + varies * random.normal()).exp();
        let mut figures = BTreeMap::from([
            ("throughput.output-tokens-per-s".to_owned(), Number(tokens)),
            ("requests.success-share".to_owned(), Number(1.0)),
        ]);
        if let Some((mean, deviation)) = self.p99 {
            let p99 = mean * (1.0 + deviation * random.normal());
            figures.insert("ttft.p99".to_owned(), Number(p99));
        }
        Event::Finished(Finished {
            run: run.clone(),
            folder: String::new(),
            seconds: 60.0,
            outcome: Outcome::Measured(Measured {
                verdict: Verdict::Valid,
                figures,
                with_failures: BTreeMap::new(),
                findings: Vec::new(),
            }),
        })
    }
}

fn scenarios() -> [Scenario; 1] {
    [Scenario {
        name: "chat".to_owned(),
        content: digest(["chat"]),
        seconds: Some(60.0),
        load: None,
    }]
}

/// A lab that ended.
pub struct SimulatedLab {
    lab: Lab,
    results: Results,
    pub study: Study,
}

impl SimulatedLab {
    /// The p-value of its drift.
    pub fn drift(&self) -> Option<f64> {
        let report = findings::lab_report(&self.lab, &scenarios(), &self.results);
        Some(report.studies[0].drift?.probability)
    }

    /// True if it recommends another trial than the baseline.
    pub fn recommends(&self) -> bool {
        let kind = self.study.decision.as_ref().map(|decision| decision.kind);
        matches!(kind, Some(Kind::Better | Kind::BestOfRest))
    }

    /// The stated gain and the ends of its interval (percent), if the fast mode is recommended.
    pub fn fast(&self) -> Option<(f64, [f64; 2])> {
        let decision = self.study.decision.as_ref()?;
        let chosen = decision.chosen.as_ref().filter(|_| self.recommends())?;
        let is_fast = |(name, value): &(String, _)| name == "mode" && *value == "fast";
        chosen.settings.iter().any(is_fast).then_some(())?;
        let gain = decision.row.as_ref()?.gain?;
        Some((gain.percent, gain.interval?))
    }
}

/// Random numbers: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number that is normally distributed, as Box and Muller draw it.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
