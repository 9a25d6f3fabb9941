#![no_main]

use std::sync::Mutex;

/// The last panic of the `tokenizers` crate. Our code catches such panics and returns errors. An
/// uncaught panic is followed by a second, when it would leave the target.
static LAST: Mutex<String> = Mutex::new(String::new());

libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|panic| {
        let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let of_crate = |file: &str| file.contains("/tokenizers-");
        if panic.location().is_some_and(|place| of_crate(place.file())) {
            *last = format!("{panic}\n");
        } else {
            eprintln!("{last}{panic}");
        }
    })),
    |data: &[u8]| fuzz_targets::tokenizer(data)
);
