//! Cost of reading event streams: the processor time of the reading thread, compared with a bare
//! reader's for the same streams. Nothing is decoded or recorded. The reader is on the first core
//! and the engine on the second.
//!
//! `cargo bench -p load --bench reading`. Variables: `ROUNDS` (5; their medians are printed),
//! `STREAMS` (1,024), `EVENTS` of each stream (512), and `PAUSE_MS`, the engine's pause between two
//! events of a stream (none).

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
mod engine;
mod reader;

use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use engine::Engine;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

#[derive(Clone, Copy)]
struct Load {
    streams: usize,
    events: u64,
    pause: Duration,
}

/// Processor seconds of a thread.
#[derive(Clone, Copy, Debug)]
struct Cost {
    user: f64,
    system: f64,
}

impl Cost {
    fn all(self) -> f64 {
        self.user + self.system
    }
}

type Read = fn(SocketAddr, usize) -> io::Result<u64>;

const READERS: [(&str, Read); 3] = [
    ("bare reader", reader::bare),
    ("load, a task a socket", |address, streams| reader::load(address, streams, false)),
    ("load, the poll loop", |address, streams| reader::load(address, streams, true)),
];

fn main() -> io::Result<()> {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let load = Load {
        streams: number("STREAMS", 1024) as usize,
        events: number("EVENTS", 512),
        pause: Duration::from_millis(number("PAUSE_MS", 0)),
    };
    allow_files(load.streams)?;
    let mut costs: [Vec<Cost>; 3] = Default::default();
    for round in 1..=number("ROUNDS", 5) {
        // In turn, so that whatever else the machine does falls on all of them.
        for ((name, read), costs) in READERS.iter().zip(&mut costs) {
            let cost = measure(load, *read)?;
            println!("{round}: {name}: {cost:.3?}");
            costs.push(cost);
        }
    }
    let events = load.streams as u64 * load.events;
    println!("{events} events of {} streams, medians:", load.streams);
    let bare = median(&costs[0], Cost::all);
    for ((name, _), costs) in READERS.iter().zip(&costs) {
        let all = median(costs, Cost::all);
        println!(
            "{name:24} user {:.2} s, system {:.2} s, both {all:.2} s: {:.2} of the bare reader",
            median(costs, |cost| cost.user),
            median(costs, |cost| cost.system),
            all / bare,
        );
    }
    Ok(())
}

/// Measures the processor time of a thread that reads all streams of an engine.
fn measure(load: Load, read: Read) -> io::Result<Cost> {
    let engine = Engine::bind(load)?;
    let address = engine.address()?;
    let serves = std::thread::spawn(move || {
        pin("1");
        engine.serve()
    });
    let reads = std::thread::spawn(move || {
        pin("0");
        let before = spent()?;
        let events = read(address, load.streams)?;
        let after = spent()?;
        if events != load.streams as u64 * load.events {
            return Err(io::Error::other(format!("{events} events came")));
        }
        Ok(Cost { user: after.user - before.user, system: after.system - before.system })
    });
    let cost = reads.join().expect("the reader panicked")?;
    serves.join().expect("the engine panicked")?;
    Ok(cost)
}

/// Has the calling thread stay on a core. Without the program for it, the figures are less steady.
fn pin(core: &str) {
    let thread = nix::unistd::gettid().to_string();
    let pinned = Command::new("taskset").args(["-pc", core, &thread]).output();
    if !pinned.is_ok_and(|pinned| pinned.status.success()) {
        eprintln!("a thread could not be pinned to core {core}");
    }
}

fn spent() -> io::Result<Cost> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(Cost { user: seconds(usage.user_time()), system: seconds(usage.system_time()) })
}

/// Both ends of every stream are here.
fn allow_files(streams: usize) -> io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let wanted = 2 * streams as u64 + 64;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard)?;
    }
    Ok(())
}

fn median(costs: &[Cost], of: impl Fn(Cost) -> f64) -> f64 {
    let mut values: Vec<f64> = costs.iter().map(|cost| of(*cost)).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
