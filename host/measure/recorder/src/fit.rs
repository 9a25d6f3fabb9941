//! A small synthetic scenario with the distributions of a recording, and the distance between two
//! workloads.
//!
//! **The model**: conversations begin at random times, with the recorded rate and variation of
//! gaps, in stages if the rate changes. A conversation has a system prompt, which other
//! conversations share, and questions; all numbers are drawn independently from histograms. If
//! hardly anything is shared and each request stands alone, classes by prompt length keep the
//! dependence of answers on prompts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::PathBuf;

use statistics::correlation::Pairs;
use statistics::{Ranked, Sorted};

use crate::row::{self, Row, RowsError};

/// Percentiles at which a histogram's bins begin and end: more at the tail, where values spread.
const EDGES: [f64; 25] = [
    0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0,
    80.0, 85.0, 90.0, 95.0, 97.0, 98.5, 99.5, 99.9, 100.0,
];
/// Classes by prompt length.
const CLASSES: usize = 5;
/// Stages of the rate, at most, and conversations in each, at least.
const STAGES: (usize, usize) = (24, 100);
/// Share of prompt tokens below which sharing is left out.
const HARDLY: f64 = 0.01;
/// System prompts up to this number are listed; more are drawn.
const LISTED: usize = 32;

/// The figures of a workload. Sub-agents are conversations too.
#[derive(Debug, Default)]
pub struct Workload {
    /// Beginnings of conversations, in seconds.
    pub starts: Vec<f64>,
    pub turns: Vec<f64>,
    /// Tokens of prompts and of answers.
    pub prompts: Vec<f64>,
    pub answers: Vec<f64>,
    /// Seconds between a reply and the next request of its conversation.
    pub pauses: Vec<f64>,
    pub pairs: Pairs,
    /// The share of prompt tokens that a prefix cache without limits finds.
    pub cached: f64,
}

impl Workload {
    pub fn add(&mut self, prompt: u64, answer: u64) {
        self.prompts.push(prompt as f64);
        self.answers.push(answer as f64);
        self.pairs.add(prompt, answer);
    }
}

/// A conversation, as far as it was read.
struct Thread {
    start: f64,
    turns: u32,
    /// Tokens of the last prompt and of its answer.
    context: u32,
    prompt: u32,
    /// The whole blocks of the first prompt, and their tokens.
    blocks: Vec<u64>,
    block: usize,
}

/// A recording's workload, with the details that the model needs.
#[derive(Default)]
pub struct Recorded {
    pub workload: Workload,
    threads: BTreeMap<(u64, u32), Thread>,
    /// Tokens of questions after the first.
    questions: Vec<f64>,
}

impl Recorded {
    pub fn read(files: &[PathBuf]) -> Result<Self, RowsError> {
        let (mut recorded, mut seen) = (Recorded::default(), HashSet::new());
        let (mut tokens, mut cached) = (0, 0);
        for path in files {
            row::each(path, |row, _| {
                tokens += u64::from(row.input_length);
                let blocks = row.whole_blocks();
                cached +=
                    row.block_size * blocks.iter().filter(|block| !seen.insert(**block)).count();
                recorded.add(&row);
                Ok(())
            })?;
        }
        let threads = recorded.threads.values();
        let workload = &mut recorded.workload;
        workload.turns = threads.clone().map(|thread| f64::from(thread.turns)).collect();
        workload.starts = threads.map(|thread| thread.start).collect();
        workload.starts.sort_unstable_by(f64::total_cmp);
        workload.cached = cached as f64 / (tokens as f64).max(1.0);
        Ok(recorded)
    }

    fn add(&mut self, row: &Row) {
        // A row without a session stands alone.
        let place = row.place().unwrap_or((u64::MAX - self.workload.prompts.len() as u64, 0));
        // A refused request asks for its answer again, so it has one token at least.
        let (prompt, answer) = (row.input_length.max(1), row.output_length.max(1));
        self.workload.add(prompt.into(), answer.into());
        if let Some(thread) = self.threads.get_mut(&place) {
            self.questions.push(f64::from(prompt.saturating_sub(thread.context).max(1)));
            self.workload.pauses.push(row.delay.unwrap_or(0.0) / 1e3);
            thread.context = prompt + answer;
            thread.turns += 1;
            return;
        }
        let thread = Thread {
            start: row.timestamp / 1e3,
            turns: 1,
            context: prompt + answer,
            prompt,
            blocks: row.whole_blocks().to_vec(),
            block: row.block_size,
        };
        self.threads.insert(place, thread);
    }

    /// The scenario; `None` of a recording without requests. `name` is the recording's.
    pub fn scenario(&self, name: &str, tokenizer: Option<&str>) -> Option<String> {
        let alone = self.questions.is_empty() && self.workload.cached < HARDLY;
        let (dataset, kind) = if alone { self.random()? } else { self.conversation()? };
        let conversations = self.threads.len();
        let mut text = format!(
            "# Fitted to {name}: {} requests in {conversations} conversations.\n\
             [backend]\nplugin = \"backends/openai.wasm\"\n\n\
             [dataset]\nplugin = \"datasets/{kind}.wasm\"\n\n{dataset}\n[load]\nwarmup = 0\n",
            self.workload.prompts.len(),
        );
        let load = load(&self.workload.starts);
        if !load.contains("stages") {
            let _ = writeln!(text, "sessions = {conversations}");
        }
        text += &load;
        if let Some(tokenizer) = tokenizer {
            let _ = write!(text, "\n[tokenizer]\npath = {}\n", toml_text(tokenizer));
        }
        Some(text)
    }

    /// Prompts that stand alone, in classes.
    fn random(&self) -> Option<(String, &'static str)> {
        let Workload { prompts, answers, .. } = &self.workload;
        let mut requests: Vec<(f64, f64)> =
            prompts.iter().copied().zip(answers.iter().copied()).collect();
        requests.sort_unstable_by(|one, other| {
            one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
        });
        let many = requests.len();
        let mut text = String::new();
        for class in 0..CLASSES.min(many) {
            let own = &requests[class * many / CLASSES..(class + 1) * many / CLASSES];
            let (prompts, answers) = own.iter().copied().unzip();
            let (Some(prompt), Some(answer)) = (drawn(prompts, 1.0), drawn(answers, 1.0)) else {
                continue;
            };
            let _ = writeln!(
                text,
                "[[dataset.config.classes]]\nname = \"part-{}\"\nweight = {}\ninput-len = {prompt}\n\
                 output-len = {answer}",
                class + 1,
                own.len()
            );
        }
        (many > 0).then_some((text, "random"))
    }

    /// Conversations with system prompts that they share.
    fn conversation(&self) -> Option<(String, &'static str)> {
        let mut used: HashMap<u64, u32> = HashMap::new();
        for block in self.threads.values().flat_map(|thread| &thread.blocks) {
            *used.entry(*block).or_default() += 1;
        }
        // Each shared beginning by its last block: its tokens, and the conversations with it.
        let mut groups: BTreeMap<Option<u64>, (usize, u64)> = BTreeMap::new();
        let system: Vec<f64> = (self.threads.values())
            .map(|thread| {
                let shared = thread.blocks.iter().take_while(|block| used[*block] > 1).count();
                let last = shared.checked_sub(1).map(|last| thread.blocks[last]);
                let group = groups.entry(last).or_insert((shared * thread.block, 0));
                group.1 += 1;
                (shared * thread.block) as f64
            })
            .collect();
        let firsts = self.threads.values().zip(&system);
        let firsts = firsts.map(|(thread, system)| (f64::from(thread.prompt) - system).max(1.0));
        let mut text = "[dataset.config]\nformat = \"synthetic\"\n".to_owned();
        let mut key = |name: &str, values: Vec<f64>, step: f64| {
            if let Some(values) = drawn(values, step) {
                let _ = writeln!(text, "{name} = {values}");
            }
        };
        key("turns", self.workload.turns.clone(), 1.0);
        key("first-input-len", firsts.collect(), 1.0);
        key("input-len", self.questions.clone(), 1.0);
        key("output-len", self.workload.answers.clone(), 1.0);
        key("think-time", self.workload.pauses.clone(), 1e-3);
        let shared = groups.keys().flatten().count();
        if shared > LISTED {
            key("system-len", system, 1.0);
            let _ = writeln!(text, "system-groups = {shared}");
        } else if shared > 0 {
            let listed = groups.values().map(|(tokens, weight)| {
                format!("    {{ tokens = {tokens}, weight = {weight} }},\n")
            });
            let _ = writeln!(text, "system-prompts = [\n{}]", listed.collect::<String>());
        }
        (!self.threads.is_empty()).then_some((text, "conversation"))
    }
}

/// The arrivals of conversations that begin at these times, in seconds and in order.
fn load(starts: &[f64]) -> String {
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let span: f64 = gaps.iter().sum();
    if span <= 0.0 {
        return "arrival = \"inf\"\n".to_owned();
    }
    let stages = STAGES.0.min(starts.len() / STAGES.1).max(1);
    let length = span / stages as f64;
    let stage = |start: f64| (((start - starts[0]) / length) as usize).min(stages - 1);
    let mut counts = vec![0.0; stages];
    starts.iter().for_each(|start| counts[stage(*start)] += 1.0);
    // Gaps in units of the mean gap of their stage, so that the rate's changes are no variation.
    let scaled = gaps.iter().zip(starts).map(|(gap, start)| gap * counts[stage(*start)] / length);
    let variation = variation(&scaled.collect::<Vec<_>>());
    let mean = starts.len() as f64 / stages as f64;
    let squares: f64 = counts.iter().map(|count| (count - mean).powi(2)).sum();
    let dispersion = squares / mean / (stages as f64 - 1.0).max(1.0);
    let chance = 2.0 / (gaps.len() as f64).sqrt();
    let arrival = if variation < 0.05 {
        "arrival = \"constant\"\n".to_owned()
    } else if (variation - 1.0).abs() < chance {
        "arrival = \"poisson\"\n".to_owned()
    } else {
        format!("arrival = \"gamma\"\nburstiness = {}\n", rounded(variation.powi(-2), 1e-4))
    };
    // Counts of equal spans have the dispersion of the gaps unless the rate changes.
    if dispersion <= 3.0 * variation.powi(2).max(1.0) {
        return format!("{arrival}rate = {}\n", rounded(gaps.len() as f64 / span, 1e-6));
    }
    let stages = counts.iter().map(|count| {
        let rate = rounded((count / length).max(1e-6), 1e-6);
        format!("\n[[load.stages]]\nrate = {rate}\nfor = \"{}s\"\n", rounded(length, 1e-3))
    });
    arrival + &stages.collect::<String>()
}

fn variation(values: &[f64]) -> f64 {
    Sorted::new(values.to_vec()).map_or(0.0, |sorted| sorted.std() / sorted.mean())
}

fn rounded(value: f64, step: f64) -> f64 {
    let many = (1.0 / step).round();
    (value * many).round() / many
}

fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Values as a number or a histogram of a scenario, rounded to `step`; `None` if there are none.
fn drawn(values: Vec<f64>, step: f64) -> Option<String> {
    let values = Sorted::new(values.iter().map(|value| rounded(*value, step)).collect())?;
    if values.min() == values.max() {
        return Some(values.min().to_string());
    }
    let many = values.count();
    let mut edges: Vec<u64> =
        EDGES.iter().map(|edge| (many as f64 * edge / 100.0).round() as u64).collect();
    // The ends of equal values, so that values that come often keep their share.
    let ends = (1..many).filter(|rank| values.at(*rank) != values.at(rank - 1));
    let ends: Vec<u64> = ends.chain([0, many]).collect();
    if ends.len() <= EDGES.len() {
        edges = ends;
    }
    edges.sort_unstable();
    edges.dedup();
    let bins = edges.windows(2).map(|pair| {
        let (min, max) = (values.at(pair[0]), values.at(pair[1] - 1));
        let range =
            if min == max { format!("value = {min}") } else { format!("min = {min}, max = {max}") };
        format!("    {{ {range}, weight = {} }},\n", pair[1] - pair[0])
    });
    let bins: String = bins.collect();
    Some(format!("{{ distribution = \"histogram\", bins = [\n{bins}] }}"))
}

#[derive(Debug)]
pub struct Compared {
    pub name: &'static str,
    pub statistic: &'static str,
    /// `None` where a workload has no such values.
    pub recorded: Option<f64>,
    pub fitted: Option<f64>,
    /// The largest difference of the two distribution functions (Kolmogorov and Smirnov).
    pub distance: Option<f64>,
}

pub fn compare(recorded: &Workload, fitted: &Workload) -> Vec<Compared> {
    let gaps = |own: &Workload| -> Vec<f64> {
        own.starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    };
    let mut rows = Vec::new();
    let gaps = [recorded, fitted].map(gaps);
    let of = |name, values: [&[f64]; 2]| distribution(name, values);
    rows.extend(of("gaps of conversations (s)", [&gaps[0], &gaps[1]]));
    rows.extend(of("requests of one", [&recorded.turns, &fitted.turns]));
    rows.extend(of("prompt tokens", [&recorded.prompts, &fitted.prompts]));
    rows.extend(of("answer tokens", [&recorded.answers, &fitted.answers]));
    rows.extend(of("pauses after answers (s)", [&recorded.pauses, &fitted.pauses]));
    let row = |name, statistic, recorded, fitted| Compared {
        name,
        statistic,
        recorded,
        fitted,
        distance: None,
    };
    let [own, other] = [recorded, fitted].map(|own| own.pairs.spearman());
    rows.push(row("prompt and answer", "rank correlation", own, other));
    let cached = [recorded, fitted].map(|own| Some(own.cached));
    rows.push(row("prefix cache", "share of prompt tokens", cached[0], cached[1]));
    rows
}

fn distribution(name: &'static str, values: [&[f64]; 2]) -> Vec<Compared> {
    let sorted = values.map(|values| Sorted::new(values.to_vec()));
    type Statistic = (&'static str, fn(&Sorted) -> f64);
    let statistics: [Statistic; 5] = [
        ("mean", Sorted::mean),
        ("deviation", Sorted::std),
        ("P50", |values| values.percentile(50.0)),
        ("P90", |values| values.percentile(90.0)),
        ("P99", |values| values.percentile(99.0)),
    ];
    let mut distance = match &sorted {
        [Some(one), Some(other)] => Some(apart(one, other)),
        _ => None,
    };
    let rows = statistics.map(|(statistic, of)| {
        let [recorded, fitted] = [&sorted[0], &sorted[1]].map(|values| values.as_ref().map(of));
        Compared { name, statistic, recorded, fitted, distance: distance.take() }
    });
    if sorted.iter().all(Option::is_none) { Vec::new() } else { rows.into() }
}

/// The largest difference of two empirical distribution functions.
fn apart(one: &Sorted, other: &Sorted) -> f64 {
    let share = |values: &Sorted, bound: f64| values.below(bound) as f64 / values.count() as f64;
    let of = |values: &Sorted| (0..values.count()).map(|rank| values.at(rank)).collect::<Vec<_>>();
    let bounds = of(one).into_iter().chain(of(other));
    // Just above each value, too: a difference may be there alone.
    let bounds = bounds.flat_map(|value| [value, value.next_up()]);
    bounds.map(|bound| (share(one, bound) - share(other, bound)).abs()).fold(0.0, f64::max)
}
