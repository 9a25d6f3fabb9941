//! Rules of published benchmarks, as data: their goal, the length of a run, and their other demands
//! on it.
//!
//! **MLPerf Inference, scenario Server.** Requests come as a Poisson process. The result is the
//! highest rate at which 99 % of them meet the model's limits, in a run of at least 600 s. TTFT
//! begins at the scheduled arrival, each limit has a percentile of its own, and every sample of the
//! data set is issued equally often. The category Interactive has tighter limits for some models,
//! so it is a second tier here. Limits, durations and sizes of data sets come from
//! `loadgen/mlperf.conf` of mlcommons/inference at `b66003e` (round 6.1). Where
//! `inference_rules.adoc` of mlcommons/inference_policies differs, LoadGen's file counts, because
//! LoadGen judges a submission: gpt-oss-120b interactive has a TPOT of 15 ms there, and 20 ms in
//! the rules. MLPerf's own test allows a run to end when it shows with 99 % confidence that the
//! share of late requests is below 1 % ([`statistics::early_stopping`]): 459 requests if none is
//! late. It assumes independent requests and one look. The search's test at each load is stricter
//! in both, so the answer states MLPerf's judgement beside its own.
//!
//! **AA-AgentPerf** of Artificial Analysis (June 2026): the most concurrent agents for which P25 of
//! the output speed is above a floor, and TTFT stays within a limit. Its test set is private.
//!
//! **AgentX**, the agentic benchmark of InferenceX as AIPerf has it in
//! `--scenario inferencex-agentx-mvp` of 0.13 (`aiperf/common/scenario/inferencex_agentx_mvp.py`);
//! the ten further requests and the limit on failures are InferenceX's. It has no objective: it
//! replays recorded sessions at a number of sessions, and publishes the curve over that number.
//!
//! **MLPerf Agentic** of MLCommons endpoints at `ea33275`: the rules for submissions in
//! `examples/10_Agentic_Inference/README.md`, and the settings in the YAML files beside it. It has
//! no objective either. The inline accuracy and the mean number of output tokens are thresholds;
//! SWE-bench, its third gate on answers, needs containers and is not measured.

use model::nearest;
use serde::Serialize;

use crate::config::{Config, Load};
use crate::slo::{Tier, tiers};

/// The rules of a published benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Preset {
    pub name: &'static str,
    pub about: &'static str,
    pub load: Load,
    /// Its tiers, as flags would state them; none where it has no objective, and is a sweep.
    pub tiers: &'static [&'static str],
    /// Seconds that each run takes at least.
    pub seconds_least: f64,
    /// Seconds that it takes unless said otherwise; 0 where its end is another.
    pub seconds_usual: f64,
    /// Requests of each run at least: every sample of its data set is issued; absent if it states
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_least: Option<u64>,
    /// Its other rules for a run.
    pub rules: &'static [Rule],
    /// The source of its rules.
    pub source: &'static str,
}

/// A rule of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rule {
    /// Its subject, in one word for programs.
    pub name: &'static str,
    pub value: Value,
    pub about: &'static str,
    /// The settings that it demands, as `--set` takes them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub settings: &'static [&'static str],
}

/// The value that a rule requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", untagged)]
pub enum Value {
    /// True if the rule's subject must hold.
    Flag(bool),
    /// A number, in the unit that its name ends with.
    Number(u32),
    Word(&'static str),
}

const MLPERF: &str = "https://github.com/mlcommons/inference/blob/master/loadgen/mlperf.conf, \
    https://github.com/mlcommons/inference_policies/blob/master/inference_rules.adoc";
const AGENTPERF: &str = "https://artificialanalysis.ai/methodology/agentperf";
const AGENTIC: &str =
    "https://github.com/mlcommons/endpoints/tree/main/examples/10_Agentic_Inference";
const AGENTX: &str = "https://github.com/ai-dynamo/aiperf/blob/main/docs/tutorials/agentx-mvp.md";

const STREAMING: Rule =
    rule("streaming", Value::Flag(true), "replies are streamed, so that TTFT can be measured")
        .by(&["request.stream=true"]);

const MLPERF_RULES: &[Rule] = &[
    rule("arrival", Value::Word("poisson"), "requests come as a Poisson process"),
    STREAMING,
    rule("equal-issue", Value::Flag(true), "every sample of the data set is issued equally often"),
];

const AGENTX_RULES: &[Rule] = &[
    STREAMING,
    rule("ignore-eos", Value::Flag(true), "each answer has the recorded number of tokens")
        .by(&["request.ignore-eos=true"]),
    rule(
        "delays",
        Value::Word("recorded"),
        "each turn follows the end of the one before after the recorded delay, whose length nothing limits",
    ),
    rule(
        "idle-most-s",
        Value::Number(10),
        "where no request is in flight for 10 s, all waiting requests move forward together",
    )
    .by(&["load.lanes.idle-most=10s"]),
    rule(
        "salt",
        Value::Word("first-turn-prefix"),
        "the first turn of each replay begins with text of its own, so that no replay hits the cache of another",
    )
    .by(&["load.lanes.salt=session"]),
    rule(
        "start",
        Value::Word("within-a-session"),
        "sessions that are under way at the beginning start at an instant drawn from the whole recording, and their last request before it is sent with one token to fill the cache",
    ),
    rule(
        "warmup-requests",
        Value::Number(10),
        "before the measurement, each lane sends ten further requests for one token without pauses",
    ),
    rule(
        "session-header",
        Value::Word("x-dynamo-session-id"),
        "each request names its session in a header field",
    ),
    rule("cut-prompts", Value::Flag(false), "prompts are not cut short by the client"),
    rule(
        "context-overflow-most-percent",
        Value::Number(1),
        "at most 1 % of the replies may say that the context is too long",
    ),
    rule("failures-most-percent", Value::Number(10), "at most 10 % of the requests may fail"),
];

const AGENTPERF_RULES: &[Rule] = &[STREAMING];

/// The rules of MLPerf Agentic for a model, by the parts that differ.
const fn agentic(sampling: Rule, output: Rule, inline: Rule, swe_bench: Rule) -> [Rule; 14] {
    [
        STREAMING,
        rule(
            "sessions-multiple",
            Value::Number(613),
            "a run issues its 613 trajectories equally often, and is measured until the first user finishes its last one",
        ),
        rule("start", Value::Word("first-request"), "each trajectory starts with its first turn")
            .by(&["load.lanes.start-at=[0.0, 0.0]"]),
        rule(
            "salt",
            Value::Word("pass"),
            "a text before the system prompt for each pass over the data, and one after it for each trajectory",
        )
        .by(&["load.lanes.salt=pass"]),
        rule("history", Value::Word("recorded"), "each turn follows the recorded answers")
            .by(&["request.history=recorded"]),
        rule("delays", Value::Word("recorded"), "each turn waits for the recorded delay"),
        rule("after-failure", Value::Word("drop"), "a failed turn ends its trajectory")
            .by(&["request.after-failure=drop"]),
        rule(
            "session-header",
            Value::Word("x-session-id"),
            "each request names its trajectory in a header field",
        )
        .by(&["request.ids.form=named"]),
        rule("output-most", Value::Number(8192), "each answer has at most 8192 tokens")
            .by(&["request.output-tokens=8192"]),
        rule("ignore-eos", Value::Flag(false), "the model ends its answers")
            .by(&["request.ignore-eos=false"]),
        sampling,
        output,
        inline,
        swe_bench,
    ]
}

const KIMI_RULES: &[Rule] = &agentic(
    rule("sampling", Value::Word("kimi-k3"), "temperature 1, top-p 1, and nothing else")
        .by(&["request.temperature=1.0", "request.top-p=1.0"]),
    rule(
        "output-mean",
        Value::Word("390-475"),
        "the mean number of output tokens of a turn is from 390 to 475",
    )
    .by(&["thresholds.output-tokens.mean=[\">= 390\", \"<= 475\"]"]),
    rule("inline-accuracy", Value::Word("58.32"), "the inline accuracy is at least 58.32 %")
        .by(&["thresholds.score.inline-accuracy=[\">= 0.5832\"]"]),
    rule("swe-bench", Value::Word("93.5"), "SWE-bench over 200 instances is at least 93.5 %"),
);

const QWEN_RULES: &[Rule] = &agentic(
    rule(
        "sampling",
        Value::Word("qwen3.6"),
        "temperature 1, top-k 20, top-p 0.95, repetition penalty 1, presence penalty 1.5, thinking of earlier turns kept, and nothing else",
    )
    .by(&[
        "request.temperature=1.0",
        "request.top-k=20",
        "request.top-p=0.95",
        "request.repetition-penalty=1.0",
        "request.presence-penalty=1.5",
        "request.extra-body.chat_template_kwargs.preserve_thinking=true",
    ]),
    rule(
        "output-mean",
        Value::Word("355-434"),
        "the mean number of output tokens of a turn is from 355 to 434",
    )
    .by(&["thresholds.output-tokens.mean=[\">= 355\", \"<= 434\"]"]),
    rule("inline-accuracy", Value::Word("55.86"), "the inline accuracy is at least 55.86 %")
        .by(&["thresholds.score.inline-accuracy=[\">= 0.5586\"]"]),
    rule("swe-bench", Value::Word("69"), "SWE-bench over 200 instances is at least 69 %"),
);

const fn rule(name: &'static str, value: Value, about: &'static str) -> Rule {
    Rule { name, value, about, settings: &[] }
}

impl Rule {
    /// The rule with the settings that it demands.
    const fn by(self, settings: &'static [&'static str]) -> Rule {
        Rule { settings, ..self }
    }
}

const fn curve(name: &'static str, about: &'static str, rules: &'static [Rule]) -> Preset {
    Preset {
        name,
        about,
        load: Load::Sessions,
        tiers: &[],
        seconds_least: 0.0,
        seconds_usual: 0.0,
        requests_least: None,
        rules,
        source: AGENTIC,
    }
}

const fn mlperf(
    name: &'static str,
    about: &'static str,
    tiers: &'static [&'static str],
    samples: u64,
) -> Preset {
    Preset {
        name,
        about,
        load: Load::Rate,
        tiers,
        seconds_least: 600.0,
        seconds_usual: 600.0,
        requests_least: Some(samples),
        rules: MLPERF_RULES,
        source: MLPERF,
    }
}

/// The preset that `mlperf-server` alone means.
const USUAL: &str = "mlperf-server:llama2-70b";

/// Every preset.
pub const PRESETS: [Preset; 9] = [
    mlperf(
        "mlperf-server:llama2-70b",
        "MLPerf Inference, Server: Llama 2 70B on OpenOrca",
        &[
            "server: ttft.p99 <= 2000ms; tpot.p99 <= 200ms",
            "interactive: ttft.p99 <= 450ms; tpot.p99 <= 40ms",
        ],
        24_576,
    ),
    mlperf(
        "mlperf-server:llama3.1-8b",
        "MLPerf Inference, Server: Llama 3.1 8B on CNN DailyMail",
        &[
            "server: ttft.p99 <= 2000ms; tpot.p99 <= 100ms",
            "interactive: ttft.p99 <= 500ms; tpot.p99 <= 30ms",
        ],
        13_368,
    ),
    mlperf(
        "mlperf-server:deepseek-r1",
        "MLPerf Inference, Server: DeepSeek-R1 on reasoning tasks",
        &[
            "server: ttft.p99 <= 2000ms; tpot.p99 <= 80ms",
            "interactive: ttft.p99 <= 1500ms; tpot.p99 <= 15ms",
        ],
        4388,
    ),
    mlperf(
        "mlperf-server:gpt-oss-120b",
        "MLPerf Inference, Server: gpt-oss-120b on AIME, GPQA and LiveCodeBench",
        &[
            "server: ttft.p99 <= 3000ms; tpot.p99 <= 80ms",
            "interactive: ttft.p99 <= 2000ms; tpot.p99 <= 15ms",
        ],
        6396,
    ),
    mlperf(
        "mlperf-server:qwen3-vl-235b",
        "MLPerf Inference, Server: Qwen3-VL 235B on product pages",
        &["server: e2e.p99 <= 12s"],
        48_289,
    ),
    Preset {
        name: "aa-agentperf:deepseek-v3.2",
        about: "AA-AgentPerf of Artificial Analysis, DeepSeek V3.2: the most agents at each output speed (its method names no percentile of TTFT; P95 here)",
        load: Load::Sessions,
        tiers: &[
            "slow: decode-speed.p25 > 30; ttft.p95 <= 15s",
            "medium: decode-speed.p25 > 100; ttft.p95 <= 15s",
            "fast: decode-speed.p25 > 300; ttft.p95 <= 15s",
        ],
        seconds_least: 0.0,
        seconds_usual: 600.0,
        requests_least: None,
        rules: AGENTPERF_RULES,
        source: AGENTPERF,
    },
    Preset {
        seconds_least: 900.0,
        seconds_usual: 1800.0,
        source: AGENTX,
        ..curve(
            "agentx",
            "AgentX of InferenceX: recorded coding sessions with sub-agents, over the number of sessions",
            AGENTX_RULES,
        )
    },
    curve(
        "mlperf-agentic:kimi-k3",
        "MLPerf Agentic: Kimi K3 on recorded trajectories, over the number of users",
        KIMI_RULES,
    ),
    curve(
        "mlperf-agentic:qwen3.6-35b-a3b",
        "MLPerf Agentic: Qwen3.6-35B-A3B on recorded trajectories, over the number of users",
        QWEN_RULES,
    ),
];

impl Preset {
    /// A preset by its name; `mlperf-server` alone is Llama 2 70B's. Errors: that there is none,
    /// with the most similar name.
    pub fn find(name: &str) -> Result<&'static Preset, String> {
        let wanted = if name == "mlperf-server" { USUAL } else { name };
        let known = PRESETS.iter().find(|preset| preset.name == wanted);
        known.ok_or_else(|| {
            let names = PRESETS.iter().map(|preset| preset.name);
            let all: Vec<&str> = names.clone().collect();
            let near = nearest(name, names).map(|near| format!("; did you mean `{near}`?"));
            format!(
                "there is no preset `{name}`{}; there are {}",
                near.unwrap_or_default(),
                all.join(", ")
            )
        })
    }

    /// Its tiers; none where it is a sweep.
    pub fn tiers(&self) -> Vec<Tier> {
        tiers(self.tiers.iter().copied()).unwrap_or_default()
    }

    /// A search by its rules, from a first load; `None` where it is a sweep.
    pub fn config(&self, start: f64) -> Option<Config> {
        let tiers = self.tiers();
        let usual = Config::new(self.load, tiers, start);
        let requests_least = self.requests_least.unwrap_or(usual.requests_least);
        (!usual.tiers.is_empty()).then(|| Config {
            requests_least,
            requests_each: usual.requests_each.max(requests_least),
            seconds_least: self.seconds_least,
            early_stopping: self.source == MLPERF,
            ..usual
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Search, Step};

    #[test]
    fn presets_are_found_and_can_be_searched() {
        for preset in &PRESETS {
            assert_eq!(Preset::find(preset.name), Ok(preset));
            assert_eq!(preset.tiers().len(), preset.tiers.len(), "{}", preset.name);
            assert!(serde_json::to_string(preset).unwrap().contains("https://"));
            let Some(config) = preset.config(100.0) else {
                assert_eq!(preset.load, Load::Sessions);
                continue;
            };
            let Step::Probe(probe) = Search::new(config).unwrap().next() else {
                panic!("{}", preset.name);
            };
            // Ten minutes at 100 a second.
            let least = if preset.load == Load::Rate { 60_000 } else { 400 };
            assert!(probe.requests >= least, "{}: {}", preset.name, probe.requests);
        }
        let llama = Preset::find("mlperf-server").unwrap();
        let written: Vec<String> = llama.tiers().iter().map(Tier::to_string).collect();
        assert_eq!(
            written,
            [
                "server: ttft.p99 <= 2000 ms; tpot.p99 <= 200 ms",
                "interactive: ttft.p99 <= 450 ms; tpot.p99 <= 40 ms"
            ]
        );
        let error = Preset::find("agentix").unwrap_err();
        assert!(error.contains("did you mean `agentx`?"), "{error}");
    }
}
