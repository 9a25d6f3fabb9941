//! Misdeeds of a plugin of any kind against its own instance, which the host must survive. The
//! hostile guests share it; the misdeeds of only one kind of plugin stand in that guest.

use std::hint::black_box;
use std::ptr;

use runner_plugin::log;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

/// The message of [`Deed::Panic`].
pub const PANIC: &str = "a panic on purpose";

/// Something no plugin should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Never returns.
    Loop,
    /// Allocates endlessly.
    Memory,
    /// Recurses endlessly.
    Recursion,
    /// Reads outside its memory.
    OutOfBounds,
    /// Aborts without a message.
    Abort,
    /// Panics with [`PANIC`].
    Panic,
    /// Logs ten thousand long lines with control characters in them, and returns.
    FloodLog,
    /// Floods the log, then panics.
    FloodLogAndPanic,
}

pub fn commit(deed: Deed) {
    match deed {
        Deed::Loop => loop {
            black_box(());
        },
        Deed::Memory => {
            let mut held = Vec::new();
            loop {
                held.push(black_box(vec![1_u8; 1 << 20]));
            }
        }
        Deed::Recursion => {
            black_box(dive(0));
        }
        Deed::OutOfBounds => read_outside(),
        Deed::Abort => std::process::abort(),
        Deed::Panic => panic!("{PANIC}"),
        Deed::FloodLog => flood_log(),
        Deed::FloodLogAndPanic => {
            flood_log();
            panic!("{PANIC}");
        }
    }
}

/// The misdeed where no configuration has come yet. A test writes a deed's name into the built
/// component, over the dots' place.
pub struct PatchedDeed([u8; 40]);

impl PatchedDeed {
    /// No misdeed, until it is patched. It begins with a marker to find it by.
    pub const fn nothing(text: &[u8; 40]) -> Self {
        PatchedDeed(*text)
    }

    /// Does the misdeed that is patched in, if any.
    #[allow(unsafe_code)]
    pub fn commit(&self) {
        // SAFETY: it reads a valid reference. The read is volatile because the component may have
        // been patched: the compiler must not assume the original text.
        let text = unsafe { ptr::read_volatile(&self.0) };
        let text = String::from_utf8_lossy(&text);
        let name = text.split_once(": ").map_or("", |(_, name)| name);
        let name = name.trim_end_matches('.');
        if name != "nothing" {
            let deed: Result<Deed, Error> = Deed::deserialize(name.into_deserializer());
            commit(deed.unwrap_or_else(|error| panic!("{error}")));
        }
    }
}

/// An invalid text: bytes that are not UTF-8.
#[allow(unsafe_code)]
pub fn no_text() -> String {
    // SAFETY: none, on purpose. Nothing here looks at it as a text; it goes to the host as it is,
    // and the host must not believe it.
    unsafe { String::from_utf8_unchecked(vec![b'a', 0xff, 0xfe]) }
}

/// Sends panic messages to the log, as the SDK does; for guests that do not use it.
pub fn hook_panics() {
    std::panic::set_hook(Box::new(|panic| log::error(&panic.to_string())));
}

#[allow(unconditional_recursion)]
fn dive(depth: u64) -> u64 {
    black_box(dive(black_box(depth + 1))) + 1
}

#[allow(unsafe_code)]
fn read_outside() {
    let outside = black_box(0xffff_fff0_usize) as *const u8;
    // SAFETY: none. The sandbox ends the instance at this read, and nothing else ever calls it.
    black_box(unsafe { outside.read_volatile() });
}

fn flood_log() {
    let line = "\u{1b}[31m\u{2028}x".repeat(700);
    for _ in 0..10_000 {
        log::info(&line);
    }
}
