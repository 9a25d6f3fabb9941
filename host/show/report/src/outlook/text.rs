//! An outlook as text, and its facts as lines.

use std::fmt::Write;

use super::range;
use crate::plain;
use model::number::{bytes, count, percent, plural, short};
use result::summary::Tokenizer;
use runs::outlook::{Bar, End, Lengths, Outlook, Shown};

const LABELS: usize = 18;
const BAR: usize = 40;

/// The outlook as text, with a newline at its end.
pub fn text(outlook: &Outlook) -> String {
    let mut page = Page::default();
    let _ = writeln!(page.0, "{}\n", title(outlook));
    for (label, words) in facts(outlook) {
        let _ = writeln!(page.0, "{label:<LABELS$}{words}");
    }
    let histograms = [
        ("tokens of prompts", "tokens", outlook.input.tokens.as_ref()),
        ("tokens requested", "tokens", outlook.output.tokens.as_ref()),
        ("due times (s)", "s", outlook.due.as_ref().map(|due| &due.seconds)),
        ("requests per session", "requests", outlook.sessions.requests.as_ref()),
        ("delays (s)", "s", outlook.sessions.delays.as_ref()),
    ];
    for (title, unit, lengths) in histograms {
        // Where all values are equal, the line above says it.
        if let Some(lengths) = lengths.filter(|lengths| lengths.max > lengths.min) {
            page.bars(title, unit, &lengths.bars);
        }
    }
    if let Some(flight) = outlook.in_flight.as_ref().filter(|flight| flight.spans.len() > 1) {
        page.bars("most tokens in flight (s)", "s", &flight.spans);
    }
    for shown in &outlook.shown {
        page.prompt(shown);
    }
    page.0
}

pub(super) fn title(outlook: &Outlook) -> String {
    format!("What {} would send", plain(&outlook.name))
}

/// The facts as lines, each with its label.
pub(super) fn facts(outlook: &Outlook) -> Vec<(&'static str, String)> {
    let mut facts = Facts::default();
    load(&mut facts, outlook);
    sessions(&mut facts, outlook);
    lengths(&mut facts, outlook);
    cache(&mut facts, outlook);
    remarks(&mut facts, outlook);
    facts.line("digest", &format!("sha256 {}", outlook.digest));
    facts.0
}

fn load(facts: &mut Facts, outlook: &Outlook) {
    let name = plain(&outlook.model);
    let model = if outlook.model_is_placeholder {
        format!(
            "{name}, a placeholder: the scenario names no model, and no server was asked (--model)"
        )
    } else {
        name
    };
    facts.line("model", &model);
    facts.line("backend", &plain(&outlook.backend));
    facts.line("dataset", &plain(&outlook.dataset));
    facts.line("tokenizer", &tokenizer(&outlook.tokenizer));
    let many = count(outlook.requests);
    let requests = match outlook.end {
        End::Whole => many,
        End::Dataset => {
            format!("{many}: all of the dataset; the run would take more (see --num-prompts)")
        }
        End::Limit => format!("{many}: the limit of this outlook (--at-most); a run goes on"),
        End::Interrupted => format!("{many}: interrupted here; a run goes on"),
    };
    facts.line("requests", &requests);
    if outlook.warmup > 0 {
        let warmup = plural(outlook.warmup, "further request");
        facts.line("warmup", &format!("{warmup}, before the measurement"));
    }
    if let Some(faulty) = &outlook.faulty {
        let these = plural(faulty.count, "request");
        facts.line("cannot be sent", &format!("{these}; the first: {}", plain(&faulty.first)));
    }
    facts.line("arrival", &plain(&outlook.arrival));
    if let Some(users) = &outlook.users {
        let think = users.think.as_ref();
        let think = think.map(|think| format!(", thinking {think} after each answer"));
        let words = format!(
            "{}{}; due times follow from the answers",
            plural(users.count.into(), "user"),
            think.unwrap_or_default()
        );
        facts.line("users", &words);
    }
    if let Some(due) = &outlook.due {
        let words = match due.per_second {
            None => "all at once".to_owned(),
            Some(rate) => format!(
                "from {} s to {} s, {} per second{}",
                short(due.seconds.min, 4),
                short(due.seconds.max, 4),
                short(rate, 4),
                busiest(&due.seconds.bars)
            ),
        };
        facts.line("due", &words);
    }
}

/// The busiest of several spans of time, as a phrase.
fn busiest(bars: &[Bar]) -> String {
    let most = bars.iter().max_by_key(|bar| bar.count).filter(|_| bars.len() > 1);
    most.map_or(String::new(), |bar| {
        let span = format!("{} s to {} s", short(bar.from, 6), short(bar.to, 6));
        format!(", at most {} (from {span})", short(bar.count as f64 / (bar.to - bar.from), 4))
    })
}

fn tokenizer(tokenizer: &Tokenizer) -> String {
    let name = plain(&tokenizer.name);
    if tokenizer.approximate {
        format!("{name}, a substitute for the model's: counts are approximate (--tokenizer)")
    } else {
        name
    }
}

fn sessions(facts: &mut Facts, outlook: &Outlook) {
    let sessions = &outlook.sessions;
    let Some(requests) = &sessions.requests else {
        facts.line("sessions", "none: every request stands alone");
        return;
    };
    let words = format!("{}, with {} each", count(sessions.count), spread(requests));
    facts.line("sessions", &words);
    if sessions.forks > 0 || sessions.joins > 0 {
        let words = format!(
            "{} with several that depend on it (at most {}), {} that wait for several",
            plural(sessions.forks, "request"),
            count(sessions.widest),
            count(sessions.joins)
        );
        facts.line("forks and joins", &words);
    }
    if let Some(delays) = &sessions.delays {
        facts.line("delays (s)", &spread(delays));
    }
    if let Some(stand) = &sessions.stand_ins {
        let mut parts = Vec::new();
        let kinds = [
            (stand.recorded, "recorded ones"),
            (stand.made_up, "made-up ones of about the requested length"),
            (stand.empty, "empty ones, where no length is requested"),
        ];
        for (number, what) in kinds {
            if number > 0 {
                parts.push(format!("{what} ({})", count(number)));
            }
        }
        let words = format!(
            "{} {} earlier answers, unknown before the run; this plan uses {}, so lengths, cache and digest are estimates",
            plural(stand.requests, "request"),
            if stand.requests == 1 { "contains" } else { "contain" },
            parts.join(" or ")
        );
        facts.line("live answers", &words);
    }
}

fn lengths(facts: &mut Facts, outlook: &Outlook) {
    let input = &outlook.input;
    if let Some(tokens) = &input.tokens {
        facts.line("prompt tokens", &spread(tokens));
    }
    let mut counted = Vec::new();
    if input.by_dataset > 0 {
        counted.push(format!("{} by the dataset", count(input.by_dataset)));
    }
    if input.by_tokenizer > 0 {
        let template = match input.without_template {
            0 => String::new(),
            some => format!(" ({} without a chat template, which is not known)", count(some)),
        };
        counted.push(format!("{} by the tokenizer{template}", count(input.by_tokenizer)));
    }
    if input.unknown > 0 {
        counted.push(format!("{} not counted", count(input.unknown)));
    }
    facts.line("  counted", &counted.join(", "));
    let output = &outlook.output;
    if let Some(tokens) = &output.tokens {
        facts.line("output tokens", &spread(tokens));
    }
    if output.unlimited > 0 {
        let words = format!(
            "{} {} no output limit (set --output-tokens)",
            plural(output.unlimited, "request"),
            if output.unlimited == 1 { "sets" } else { "set" }
        );
        facts.line("  unlimited", &words);
    }
    facts.line("bodies", &bytes(outlook.request_bytes));
    if !outlook.classes.is_empty() {
        let mut classes: Vec<_> = outlook.classes.iter().collect();
        classes.sort_by_key(|(name, number)| (std::cmp::Reverse(**number), *name));
        let shown = classes.iter().take(12);
        let mut words: Vec<String> =
            shown.map(|(name, number)| format!("{} {}", plain(name), count(**number))).collect();
        if classes.len() > 12 {
            words.push(format!("{} more", classes.len() - 12));
        }
        facts.line("classes", &words.join(", "));
    }
}

fn cache(facts: &mut Facts, outlook: &Outlook) {
    let Some(cache) = &outlook.cache else { return };
    let least = if cache.is_bounded { "at least " } else { "" };
    let words = format!(
        "{least}{} of {} prompt tokens would be found by a cache without limits (pages of {})",
        percent(cache.share),
        count(cache.tokens),
        cache.page
    );
    facts.line("prefix cache", &words);
    let sizes = cache.sizes.iter();
    let sizes =
        sizes.map(|size| format!("{} {}", short(size.tokens as f64, 4), percent(size.share)));
    let sizes = sizes.collect::<Vec<_>>().join(", ");
    if !sizes.is_empty() {
        facts.line("  by its tokens", &format!("at best {sizes}"));
    }
    if let Some(flight) = &outlook.in_flight {
        let words = format!(
            "at most {} tokens of {} at a time, by the recorded durations",
            count(flight.most_tokens),
            plural(flight.most_requests, "request")
        );
        facts.line("in flight", &words);
    }
}

fn remarks(facts: &mut Facts, outlook: &Outlook) {
    for remark in &outlook.remarks {
        let first = remark.first.as_ref().map(|first| format!("; the first: {}", plain(first)));
        let words = format!(
            "{} {}: {}{}",
            count(remark.count),
            remark.what,
            plain(&remark.reason),
            first.unwrap_or_default()
        );
        facts.line("by the dataset", &words);
    }
}

fn spread(lengths: &Lengths) -> String {
    let value = |value: f64| short(value, 4);
    if lengths.max == lengths.min {
        return value(lengths.min);
    }
    format!(
        "{} to {}, mean {}, p50 {}, p90 {}, p99 {}",
        value(lengths.min),
        value(lengths.max),
        value(lengths.mean),
        value(lengths.p50),
        value(lengths.p90),
        value(lengths.p99)
    )
}

#[derive(Default)]
struct Facts(Vec<(&'static str, String)>);

impl Facts {
    fn line(&mut self, label: &'static str, value: &str) {
        if !value.is_empty() {
            self.0.push((label, value.to_owned()));
        }
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn bars(&mut self, title: &str, unit: &str, bars: &[Bar]) {
        let _ = writeln!(self.0, "\n{title}");
        let names: Vec<String> = bars.iter().map(|bar| range(bar, unit)).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        let most = bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
        for (name, bar) in names.iter().zip(bars) {
            let long = (bar.count as f64 / most as f64 * BAR as f64).ceil() as usize;
            let row = format!("  {name:>width$}  {:<BAR$}  {}", "#".repeat(long), count(bar.count));
            let _ = writeln!(self.0, "{row}");
        }
    }

    fn prompt(&mut self, shown: &Shown) {
        let tokens = |label: &str, tokens: Option<u64>| {
            tokens.map_or(String::new(), |tokens| format!(", {} {label}", count(tokens)))
        };
        let _ = writeln!(
            self.0,
            "\nrequest {} ({}{}{})",
            shown.index,
            plain(&shown.id),
            tokens("prompt tokens", shown.input_tokens),
            tokens("output tokens", shown.output_tokens.map(u64::from)),
        );
        for message in &shown.prompt {
            if let Some(role) = &message.role {
                let _ = writeln!(self.0, "  [{}]", plain(role));
            }
            for line in message.text.lines() {
                let _ = writeln!(self.0, "  | {}", plain(line));
            }
            if message.left_out > 0 {
                let _ = writeln!(
                    self.0,
                    "  … {} left out (--full)",
                    plural(message.left_out, "character")
                );
            }
        }
    }
}
