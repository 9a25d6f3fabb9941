//! Rules on this client's processor time: did its threads get enough of it, all the time?

use super::client::LAG_SHARE;
use super::{Finding, Id, Severity};
use crate::metric;
use crate::summary::{Agent, Summary};
use model::client::{Client, Thread, role};

/// Share of a second on a core beyond which a thread has no capacity left.
const SATURATED: f64 = 0.9;

/// Share of a second spent waiting for a core beyond which a thread's work is late.
const CROWDED: f64 = 0.25;

/// A pause this long is a reason to doubt the requests it affected, in milliseconds.
const LONG_PAUSE_MS: f64 = 100.0;

/// Share of the time beyond which pauses show in a 99th percentile.
const IN_P99: f64 = 0.01;

/// Shares of stolen core time beyond which it is reported, and beyond which it affects figures.
const STOLEN: [f64; 2] = [0.01, 0.05];

/// Delay in milliseconds beyond which decoding does not keep up.
const BEHIND_MS: f64 = 1000.0;

/// Share of the cores' time beyond which a machine has no capacity left.
const FULL: f64 = 0.9;

/// The sender or reader, which affect timestamps, with the largest figure beyond a limit.
fn beyond(client: &Client, of: impl Fn(&Thread) -> Option<f64>, limit: f64) -> Option<(&str, f64)> {
    let punctual = client.threads.iter().filter(|(name, _)| ["read", "pace"].contains(&role(name)));
    punctual
        .filter_map(|(name, thread)| Some((name.as_str(), of(thread)?)))
        .filter(|(_, share)| *share > limit)
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
}

pub(super) fn saturated(summary: &Summary) -> Option<Finding> {
    let client = summary.client.as_ref()?;
    let mut seen = Vec::new();
    if let Some((name, share)) = beyond(client, |thread| thread.cpu_most, SATURATED) {
        let saturated_s = client.threads[name].saturated_s;
        seen.push(format!(
            "thread `{name}` was on a core for up to {:.0} % of a second, and for more than {:.0} % in {saturated_s:.1} s",
            share * 100.0,
            SATURATED * 100.0
        ));
    }
    if let Some((name, share)) = beyond(client, |thread| thread.waiting_most, CROWDED) {
        seen.push(format!(
            "thread `{name}` waited for a core for up to {:.0} % of a second",
            share * 100.0
        ));
    }
    (!seen.is_empty()).then(|| Id::ClientSaturated.suspect(
        seen.join("; "),
        "a thread that sends or reads was at its limit or had to wait for a core: requests left late and replies were read late, and that shows up as latency of the server",
        "give this client more cores or a machine of its own, or split the load across several machines",
    ))
}

pub(super) fn plugin_overruns(summary: &Summary) -> Option<Finding> {
    let client = summary.client.as_ref()?;
    let seen: Vec<String> = (client.plugin_overruns.iter())
        .map(|(plugin, overruns)| {
            format!(
                "plugin `{plugin}` ran longer than allowed in {} {}, {:.1} s in all",
                overruns.calls,
                if overruns.calls == 1 { "call" } else { "calls" },
                overruns.seconds
            )
        })
        .collect();
    (!seen.is_empty()).then(|| Id::PluginOverruns.suspect(
        seen.join("; "),
        "a plugin that runs on takes a core from the threads that send and read, and holds up the requests that it serves: latencies that were measured meanwhile may be too long",
        "fix the plugin's endless loop, or raise its time under [sandbox] if it needs more; then measure again",
    ))
}

/// The process with the longest pause: of a fleet, by its rank.
fn who(summary: &Summary, longest: f64) -> String {
    let agents = summary.fleet.iter().flat_map(|fleet| &fleet.agents);
    let mut paused = agents.filter(|agent| {
        agent.client.as_ref().is_some_and(|client| client.longest_pause_ms >= longest)
    });
    (paused.next()).map_or_else(|| "this process".to_owned(), Agent::name)
}

pub(super) fn paused(summary: &Summary) -> Option<Finding> {
    let client = summary.client.as_ref()?;
    let longest = client.longest_pause_ms;
    let first = summary.metric(metric::TTFT).and_then(|ttft| ttft.percentile(99.0));
    let shows = first.is_some_and(|first| longest > LAG_SHARE * first)
        && client.paused_s > IN_P99 * client.watched_s;
    if longest <= LONG_PAUSE_MS && !shows {
        return None;
    }
    let beside = first.map(|first| format!(" (P99 TTFT {first:.2} ms)"));
    Some(Id::ClientPaused.suspect(
        format!(
            "{} was paused for up to {longest:.0} ms{}, {:.2} s in all",
            who(summary, longest),
            beside.unwrap_or_default(),
            client.paused_s
        ),
        "requests due and bytes that arrived during a pause were sent or read together after the pause",
        "check whether this machine or its container is suspended, throttled or short of memory; give it more resources, or a machine of its own",
    ))
}

pub(super) fn stolen(summary: &Summary) -> Option<Finding> {
    let machine = summary.client.as_ref()?.machine?;
    let [reported, shows] = STOLEN;
    (machine.stolen > reported).then(|| Id::StolenTime.doubted(
        machine.stolen > shows,
        format!(
            "a hypervisor took {:.2} s from this machine's cores ({:.1} % of their time)",
            machine.stolen_s,
            machine.stolen * 100.0
        ),
        "during stolen time nothing is sent or read, and no clock of this machine shows which requests it affected",
        "measure from a machine with dedicated cores",
    ))
}

/// Shares of throttled time beyond which it is reported, and beyond which it affects figures.
const THROTTLED: [f64; 2] = [0.001, 0.01];

pub(super) fn throttled(summary: &Summary) -> Option<Finding> {
    let client = summary.client.as_ref()?;
    let seconds = client.throttled_s?;
    let share = seconds / client.watched_s.max(f64::MIN_POSITIVE);
    let [reported, shows] = THROTTLED;
    (share > reported).then(|| Id::Throttled.doubted(
        share > shows,
        format!(
            "a CPU quota kept this process from running for {seconds:.2} s ({:.1} % of the time)",
            share * 100.0
        ),
        "nothing was sent or read during that time, so requests that were due and replies that arrived then carry a later time than the true one",
        "raise or remove the CPU quota of this client's container (`cpu.max`, `resources.limits.cpu`)",
    ))
}

/// A step of the clock beyond which timestamps may be wrong by as much, in milliseconds.
const STEP_MS: f64 = 1.0;

pub(super) fn clock_step(summary: &Summary) -> Option<Finding> {
    let step = summary.client.as_ref()?.clock_step_ms?;
    (step > STEP_MS).then(|| Id::ClockStep.suspect(
        format!("the system clock was stepped by {step:.1} ms during the measurement"),
        "the kernel uses that clock for receive timestamps, so times around the step may be wrong by that much",
        "have the clock slewed instead of stepped (chrony and ntpd can), or use --timestamps user, which does not depend on it",
    ))
}

pub(super) fn decode_behind(summary: &Summary) -> Option<Finding> {
    let client = summary.client.as_ref()?;
    (client.decode_behind_ms > BEHIND_MS).then(|| Id::DecodeBehind.note(
        format!(
            "replies were decoded up to {:.1} s after they were read; up to {} replies were waiting",
            client.decode_behind_ms / 1000.0,
            client.decode_backlog
        ),
        "latency is correct, because times are taken before decoding; but what waits uses memory, and timeouts between tokens are detected late",
        "give this machine more processor time, or split the load across several machines",
    ))
}

pub(super) fn held_back(summary: &Summary) -> Option<Finding> {
    let client = summary.client.as_ref()?;
    let backlog = client.backlog.as_ref()?;
    let held = backlog.held_back.as_ref()?;
    let first = held.from_to_s.first().map_or(0.0, |(from, _)| *from);
    // Without the kernel's timestamps, bytes that are read late have come late.
    let from =
        (held.throttled_from_s).or(summary.metric(metric::READ_LAG).is_none().then_some(first));
    let cpu = |role| (client.busiest(role)).map_or(0.0, |(_, thread)| thread.cpu);
    let behind = if cpu("record") > cpu("decode") { "recording" } else { "decoding" };
    let waits = format!(
        "{behind} could not keep up with the engine: from {first:.1} s of the measurement on, replies were not read {}, {:.1} s in all, because {} MiB of them were waiting",
        if held.periods == 1 { "once".to_owned() } else { format!("{} times", held.periods) },
        held.seconds,
        backlog.bound_bytes >> 20,
    );
    let advice = "give this machine more cores, split the load across several machines, or have the engine send less: several tokens per event, and only new text instead of all of it in every event";
    let (severity, seen, why) = match (from, held.late_s) {
        (Some(from), _) => (
            Severity::Invalid,
            format!("{waits}; from {from:.1} s on, the engine had to wait for this client"),
            "latencies, rates and throughput from then on are this client's, not the engine's",
        ),
        (None, Some(late)) => (
            Severity::Suspect,
            format!(
                "{waits}; the times of bytes that arrived meanwhile may be up to {late:.2} s late"
            ),
            "the system stored the bytes that arrived meanwhile, so the engine did not wait; but bytes that are read together get the time of their last packet, so their tokens seem to arrive together",
        ),
        (None, None) => (
            Severity::Note,
            waits,
            "almost no bytes arrived meanwhile, so the engine did not wait, and times are correct",
        ),
    };
    Some(Id::HeldBack.finding(severity, seen, why, advice))
}

pub(super) fn sessions_waited(summary: &Summary) -> Option<Finding> {
    let memory = summary.client.as_ref()?.sessions?;
    let waited = memory.waited_s?;
    Some(Id::SessionsWaited.suspect(
        format!(
            "for {waited:.1} s no session began, because running sessions held {} MiB",
            memory.bound_bytes >> 20
        ),
        "sessions that were due then began late, so the engine had less load than planned",
        "raise load.session-memory if this machine has more memory, offer fewer sessions at a time, or split the load across several machines",
    ))
}

pub(super) fn shared_machine(summary: &Summary) -> Option<Finding> {
    let machine = summary.client.as_ref()?.machine?;
    let others = machine.busy - machine.own;
    (machine.busy > FULL && others > machine.own).then(|| {
        Id::SharedMachine.note(
        format!(
            "the cores of the client's machine were busy {:.0} % of the time, {:.0} % with other processes",
            machine.busy * 100.0,
            others * 100.0
        ),
        "this client and other processes, perhaps the engine, take processor time from each other",
        "measure from another machine, or pin client and engine to separate cores",
    )
    })
}
