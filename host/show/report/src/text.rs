//! The result as a block of text for both scripts and people. Labels, order, widths, rules and
//! decimals match LMDeploy's `profile_restful_api.py` (and SGLang's and vLLM's, which share the
//! ancestor). Our own lines are inserted into the sections they belong to, and our own sections
//! follow.
//!
//! A figure that was not measured has no line, and a section without figures no rule: a script that
//! looks for it fails instead of reading a zero. `Not measured:` names the missing figures. There
//! are no colours and no control characters in the block, whatever a server put into its messages.
//!
//! [`short`] draws the part that fits a screen. [`vllm`] and [`sglang`] draw these tools' blocks,
//! line for line, with their definitions.

mod block;
mod devices;
mod first_token;
mod outcomes;
mod scores;
mod sessions;
pub mod sglang;
mod short;
mod speculation;
pub mod vllm;

use crate::sure::{self, Row};
use result::figure::mirrored;
use result::metric;
use result::summary::{Loop, Run, SteadyState, Summary};

use crate::{sections, time_slices};
pub(crate) use block::Block;
use block::{MS, Scale};
pub use short::short;

/// The result as text, with a newline at its end.
pub fn text(summary: &Summary) -> String {
    let mut block = Block::titled(" Serving Benchmark Result ");
    load(&mut block, summary);
    due(&mut block, summary);
    latencies(&mut block, summary);
    speed_of_one_user(&mut block, summary);
    block.section("Latency from Due Time");
    block.distribution(summary, metric::TTFT_FROM_DUE, "TTFT from Due", MS);
    block.distribution(summary, metric::E2E_FROM_DUE, "E2E from Due", MS);
    block.section("Send Lag and Queueing");
    block.distribution(summary, metric::SEND_LAG, "Send Lag", MS);
    block.distribution(summary, metric::QUEUE, "Queueing", MS);
    block.line("Requests held back by the cap:", summary.requests.held_back);
    sound(&mut block, summary);
    block.section("Server's Own Timings");
    for (name, label) in [
        (metric::SERVER_QUEUE, "Server Queue"),
        (metric::SERVER_PREFILL, "Server Prefill"),
        (metric::SERVER_TTFT, "Server TTFT"),
        (metric::SERVER_DECODE, "Server Decode"),
        (metric::GATEWAY_OVERHEAD, "Gateway Overhead"),
    ] {
        block.distribution(summary, name, label, MS);
    }
    first_token::split(&mut block, summary);
    block.section("Goodput");
    block.rows(sections::goodput(summary));
    sessions::sessions(&mut block, summary);
    sessions::groups(&mut block, summary);
    speculation::groups(&mut block, summary);
    steady(&mut block, summary);
    slices(&mut block, summary);
    sure(&mut block, summary);
    block.section("Token Counts");
    block.rows(sections::tokens(summary));
    sessions::dataset(&mut block, summary);
    client(&mut block, summary);
    server(&mut block, summary);
    block.section("Server's Own Series");
    block.rows(sections::series(summary));
    devices::devices(&mut block, summary);
    devices::cost(&mut block, summary);
    cache(&mut block, summary);
    outcomes::failures(&mut block, summary);
    scores::scores(&mut block, summary);
    plugins(&mut block, summary);
    thresholds(&mut block, summary);
    verdict(&mut block, summary);
    block.end(&[])
}

/// The scores alone, as in the text of the whole result; empty if there are none.
pub fn scores_alone(summary: &Summary) -> String {
    let mut block = Block::default();
    scores::scores(&mut block, summary);
    block.text
}

/// The load and the throughput; the short block has the lines that people publish.
fn load(block: &mut Block, summary: &Summary) {
    let Summary { run, requests, tokens, throughput, concurrency, .. } = summary;
    let is_whole = !block.is_short;
    offered(block, run);
    outcomes::counts(block, requests);
    block.figure("Benchmark duration (s):", throughput.duration_s);
    block.line("Total input tokens:", tokens.input.total);
    block.line("Total generated tokens:", tokens.output.total);
    if is_whole {
        block.line("Total generated tokens (retokenized):", tokens.output_retokenized);
        outcomes::left_out(block, tokens);
    }
    block.figure("Request throughput (req/s):", throughput.requests_per_s);
    if let Some(goodput) = &summary.goodput {
        block.figure("Request goodput (req/s):", goodput.requests_per_s);
        let attainment = goodput.slo_attainment.filter(|_| block.is_short);
        block.figure("SLO attainment (%):", attainment.map(|share| share * 100.0));
    }
    if is_whole {
        block.figure("Input token throughput (tok/s):", throughput.input_tokens_per_s);
    }
    block.figure("Output token throughput (tok/s):", throughput.output_tokens_per_s);
    if is_whole {
        let peak = throughput.peak_output_tokens_per_s;
        block.figure("Peak output token throughput (tok/s):", peak);
    }
    block.line("Peak concurrent requests:", concurrency.peak);
    block.figure("Total token throughput (tok/s):", throughput.total_tokens_per_s);
    block.figure("Concurrency:", concurrency.mean);
}

/// The load as it was due and as it was sent.
fn due(block: &mut Block, summary: &Summary) {
    let throughput = &summary.throughput;
    block.figure("Requests due (req/s):", throughput.due_requests_per_s);
    block.figure("Requests sent (req/s):", throughput.sent_requests_per_s);
    if let Some(arrivals) = summary.arrivals
        && let (Some(due), Some(sent)) = (arrivals.due_gap_cv, arrivals.sent_gap_cv)
    {
        let both = format!("{due:.2}, {sent:.2}");
        block.line("Variation of gaps, as due, as sent:", Some(both));
    }
    let drain = throughput.drain_share.map(|share| share * 100.0);
    block.figure("Duration after the last request (%):", drain);
}

/// The engine and the load that it was offered.
fn offered(block: &mut Block, run: &Run) {
    block.line("Backend:", Some(&run.backend));
    // Python prints a float with its point, as `{:?}` does.
    let rate = run.request_rate.map(|rate| (rate * 1e4).round() / 1e4);
    let rate = rate.map_or("inf".to_owned(), |rate| format!("{rate:?}"));
    block.line("Traffic request rate:", Some(rate));
    block.line("Arrival:", Some(&run.arrival));
    block.line("Maximum request concurrency:", run.max_in_flight);
}

fn latencies(block: &mut Block, summary: &Summary) {
    block.section("End-to-End Latency");
    let is_closed = summary.run.r#loop == Loop::Closed;
    let closed = is_closed.then_some("closed loop, where slow periods get fewer requests");
    block.line("Percentiles are of a:", closed);
    outcomes::failed(block, summary);
    block.distribution(summary, metric::E2E, "E2E Latency", MS);
    if !block.is_short {
        block.distribution(summary, metric::E2E, "Latency", SECONDS);
    }
    for (title, name, label) in [
        ("Time to First Token", metric::TTFT, "TTFT"),
        ("Time per Output Token (excl. 1st token)", metric::TPOT, "TPOT"),
        ("Inter-token Latency", metric::ITL, "ITL"),
    ] {
        block.section(title);
        block.distribution(summary, name, label, MS);
    }
}

fn speed_of_one_user(block: &mut Block, summary: &Summary) {
    block.section("Speed of One User");
    let Some(speed) = summary.metric(metric::OUTPUT_SPEED) else { return };
    block.figure("Mean Output Speed (tok/s):", Some(speed.mean));
    block.figure("Median Output Speed (tok/s):", Some(speed.median));
    // The slowest users' speeds: above the median are the luckiest ones.
    for percent in mirrored(&summary.run.percentiles) {
        block.figure(&format!("P{percent} Output Speed (tok/s):"), speed.percentile(percent));
    }
}

fn slices(block: &mut Block, summary: &Summary) {
    let Some(slices) = &summary.time_slices else { return };
    block.section("Time Slices");
    block.line("Time slices:", Some(time_slices::length(slices)));
    for line in time_slices::lines(slices) {
        block.prose(line.trim_end());
    }
}

fn sound(block: &mut Block, summary: &Summary) {
    let throughput = &summary.throughput;
    block.section("Sound");
    block.distribution(summary, metric::TTFA, "TTFA", MS);
    let ratio = ("", 1.0);
    block.distribution(summary, metric::REAL_TIME_FACTOR, "Real-time Factor", ratio);
    block.figure("Sound in answers (s/s):", throughput.audio_s_per_s);
    block.distribution(summary, metric::INPUT_REAL_TIME_FACTOR, "Input Real-time Factor", ratio);
    block.figure("Sound in prompts (s/s):", throughput.input_audio_s_per_s);
}

fn client(block: &mut Block, summary: &Summary) {
    let Some(client) = &summary.client else { return };
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let most = |mean: f64, most: Option<f64>| {
        let most = most.map(|most| format!(", {}", percent(most)));
        percent(mean) + &most.unwrap_or_default()
    };
    block.section("Client");
    for (role, label) in [("read", "Reader"), ("pace", "Pacer"), ("decode", "Decoder")] {
        let busiest = client.busiest(role).map(|(_, thread)| thread);
        block.line(
            &format!("{label} CPU, mean, most in 1 s (%):"),
            busiest.map(|thread| most(thread.cpu, thread.cpu_most)),
        );
        if role == "read" {
            block.line(
                "Reader waiting, mean, most in 1 s (%):",
                busiest.map(|thread| most(thread.waiting, thread.waiting_most)),
            );
        }
    }
    block.line("Decode backlog, most (replies):", Some(client.decode_backlog));
    block.figure("Decode behind, most (ms):", Some(client.decode_behind_ms));
    if let Some(backlog) = &client.backlog {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        block.figure("Held of replies, most (MiB):", Some(mebibytes(backlog.peak_bytes)));
        let held_back = backlog.held_back.as_ref();
        block.figure("Replies not read (s):", held_back.map(|held| held.seconds));
    }
    if let Some(memory) = &client.sessions {
        let mebibytes = memory.peak_bytes as f64 / f64::from(1 << 20);
        block.figure("Held of sessions, most (MiB):", Some(mebibytes));
        block.figure("No session began (s):", memory.waited_s);
    }
    block.figure("Longest pause (ms):", Some(client.longest_pause_ms));
    if let Some(machine) = client.machine {
        block.figure("Stolen time (s):", Some(machine.stolen_s));
        let shares = format!("{}, {}", percent(machine.busy), percent(machine.own));
        block.line("Machine busy, with this client (%):", Some(shares));
    }
}

/// The counts of all targets together, and the fullest cache.
fn cache(block: &mut Block, summary: &Summary) {
    block.section("Prefix Cache");
    block.rows(sections::cache(summary));
}

fn server(block: &mut Block, summary: &Summary) {
    let Some(server) = &summary.server else { return };
    block.section("Server");
    block.rows(sections::server(server));
    sections::lost(server).for_each(|sentence| block.prose(&sentence));
}

/// The steady state: the reason why there is none, or its window and figures.
fn steady(block: &mut Block, summary: &Summary) {
    block.section("Steady State");
    match &summary.steady_state {
        None => {}
        Some(SteadyState::Absent(reason)) => block.prose(&format!("none: {reason}")),
        Some(SteadyState::Window(window)) => block.rows(sections::steady(window)),
    }
}

fn sure(block: &mut Block, summary: &Summary) {
    let rows = sure::rows(summary);
    sure_table(block, &rows);
    if !rows.is_empty() {
        block.prose(sure::NOTE);
    }
}

fn sure_table(block: &mut Block, rows: &[Row]) {
    let line = |name: &str, [value, same, new]: [&str; 3]| {
        format!("{name:<19} {value:>9}   {same:<17} {new}")
    };
    if !rows.is_empty() {
        block.section(sure::TITLE);
        block.prose(&line("", sure::COLUMNS));
    }
    for row in rows {
        block.prose(&line(&row.name, row.cells.each_ref().map(String::as_str)));
    }
    if !rows.is_empty() {
        block.prose(sure::LEGEND);
    }
}

fn plugins(block: &mut Block, summary: &Summary) {
    block.section("Plugins");
    for plugin in &summary.run.plugins {
        let digest = plugin.digest.get(..16).unwrap_or(&plugin.digest);
        block.line(
            &format!("{} {} {}:", plugin.kind.name(), plugin.name, plugin.version),
            Some(format!("sha256:{digest}…")),
        );
    }
}

fn thresholds(block: &mut Block, summary: &Summary) {
    block.section("Thresholds");
    for checked in &summary.thresholds {
        let holds = if checked.held { "held" } else { "NOT held" };
        let outcome = checked.outcome();
        let comma = if outcome.is_empty() { "" } else { ", " };
        block.line(&format!("{}:", checked.threshold), Some(format!("{holds}{comma}{outcome}")));
    }
}

/// The metrics of every block that this run does not have.
fn metrics_not_measured(summary: &Summary) -> Option<String> {
    let headline = [
        (metric::E2E, "E2E"),
        (metric::TTFT, "TTFT"),
        (metric::TPOT, "TPOT"),
        (metric::ITL, "ITL"),
    ];
    let absent: Vec<&str> = headline
        .iter()
        .filter(|(name, _)| summary.metric(name).is_none())
        .map(|(_, label)| *label)
        .collect();
    (!absent.is_empty()).then(|| absent.join(", "))
}

fn verdict(block: &mut Block, summary: &Summary) {
    block.section("Verdict");
    block.line("Not measured:", metrics_not_measured(summary));
    block.line("Verdict:", Some(summary.verdict.name()));
    for finding in &summary.findings {
        block.prose(&format!(
            "{} {}: {}",
            finding.severity.name(),
            finding.id.name(),
            finding.seen
        ));
        block.prose(&format!("  why: {}", finding.why));
        block.prose(&format!("  do:  {}", finding.advice));
    }
}

/// GPUStack's way of writing it, without a space.
const SECONDS: Scale = ("(s)", 1000.0);
