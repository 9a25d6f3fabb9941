//! Run folders of made-up exchanges, of any number and with the spread that real ones have.

use std::path::{Path, PathBuf};

use model::exchange::{
    Class, Event, Events, Exchange, Kind, Open, Outcome, Prepared, Reply, SampleFacts, Turn, Usage,
};
use model::units::Nanos;
use runs::environment::Environment;
use runs::folder::{RunFolder, Status};
use runs::record::Recorder;

use super::trial::Trial;

const SCENARIO: &str = r#"
name = "Made up"
target.model = "Qwen/Qwen3-8B"
backend.plugin = "backends/vllm.wasm"
dataset.plugin = "datasets/random.wasm"
dataset.config = { like = "vllm", input-len = 1024, output-len = 128 }
load = { requests = 1000, arrival = "poisson", rate = 50.0, max-in-flight = 160, warmup = 0 }
goodput = { ttft = '400ms' }
[about]
engine = "vllm"
hardware = "8x H800"
launch-command = "vllm serve Qwen/Qwen3-8B --tensor-parallel-size 8"
"#;

pub struct MadeUp {
    pub requests: u64,
    pub version: &'static str,
    pub slower: f64,
    pub message: &'static str,
}

impl Default for MadeUp {
    fn default() -> Self {
        MadeUp {
            requests: 300,
            version: "0.10.1",
            slower: 1.0,
            message: "the server is overloaded",
        }
    }
}

/// Numbers between 0 and 1, the same ones every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Approximately normal: mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }

    /// With this median, and a tail to the right.
    fn skewed(&mut self, median: f64, spread: f64) -> f64 {
        median * (self.normal() * spread).exp()
    }
}

impl MadeUp {
    /// Writes the run into a folder below `parent`.
    pub fn write(&self, parent: &Path) -> PathBuf {
        let path = parent.join(format!("20260102-030405-made-up-{}", self.version));
        std::fs::create_dir_all(&path).unwrap();
        let mut plan = Trial::new(SCENARIO).resolve().plan;
        plan.name = "Made up".to_owned();
        plan.about.engine_version = Some(self.version.to_owned());
        plan.load.amount = scenario::plan::Amount::Requests(self.requests);
        let folder = RunFolder::at(&path);
        let line = ["runner", "scenarios/made-up.toml", "--seed", "1"].map(str::to_owned);
        folder.begin(&plan, &Environment::look(line, Some(1024), "0.2.0")).unwrap();
        let (sender, receiver) = crossbeam_channel::unbounded();
        let mut numbers = Numbers(7);
        let mut due = 1.0;
        for index in 0..self.requests {
            due += -numbers.next().max(1e-9).ln() / 50.0;
            sender.send(Box::new(self.exchange(index, due, &mut numbers))).unwrap();
        }
        drop(sender);
        let written = Recorder::create(&path).unwrap().run(&receiver, |_| {}).unwrap();
        folder
            .write(&Status {
                started: "2026-01-02T03:04:05Z".to_owned(),
                origin: None,
                ended: "2026-01-02T03:09:05Z".to_owned(),
                interrupted: false,
                unsent: 0,
                records: Some(written),
                series: None,
                timings: Default::default(),
                error: None,
            })
            .unwrap();
        path
    }

    fn exchange(&self, index: u64, due: f64, numbers: &mut Numbers) -> Exchange {
        let at = Nanos::from_secs_f64;
        let crowd = 0.5 + 0.5 * (index as f64 / 400.0).sin();
        let wait = (crowd - 0.8).max(0.0) * 0.4;
        let granted = due + wait;
        let sent = granted + numbers.skewed(0.000_1, 0.5);
        let input = numbers.skewed(900.0, 0.6).clamp(16.0, 8000.0) as u32;
        let output = numbers.skewed(90.0, 0.5).clamp(2.0, 400.0) as u32;
        let ttft = numbers.skewed(0.05 + f64::from(input) * 8e-5 + crowd * 0.1, 0.25) * self.slower;
        let failed = index % 97 == 96;
        let mut events = Events::default();
        let mut last = sent + ttft;
        for token in 0..if failed { 1 } else { output } {
            events.push(Event { at: at(last), kind: Kind::Text, tokens: None, bytes: 4 });
            if token + 1 < output {
                last += numbers.skewed(0.011, 0.3) * self.slower;
            }
        }
        if !failed {
            events.push(Event { at: at(last), kind: Kind::End, tokens: None, bytes: 0 });
        }
        let sample = SampleFacts {
            id: format!("s{index}"),
            input_tokens: Some(input),
            output_tokens: Some(output),
            turn: Some(Turn { session: format!("c{}", index / 3), index: (index % 3) as u32 }),
            class: Some(["chat", "code", "summary"][(index % 3) as usize].to_owned()),
            request_bytes: u64::from(input) * 4,
            request_digest: "0123456789abcdef".to_owned(),
            ..SampleFacts::default()
        };
        let open = Open {
            sent: Some(at(sent)),
            written: Some(at(sent + 0.000_05)),
            first_byte: Some(at(sent + ttft * 0.9)),
            headers: Some(at(sent + ttft * 0.9)),
            status: Some(200),
            ended: Some(at(last)),
            ..Prepared::new(index, sample).due(at(due), Some(at(granted))).open()
        };
        let (input_tokens, output_tokens) = (Some(input), Some(output));
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        let reply = Reply {
            events,
            finish: Some("length".to_owned()),
            usage: (!failed).then_some(usage),
            ..Reply::default()
        };
        let outcome = if failed {
            let message = self.message.to_owned();
            Outcome::Incomplete { class: Class::Truncated, reason: None, message }
        } else {
            Outcome::Ok
        };
        open.finish(reply, outcome)
    }
}
