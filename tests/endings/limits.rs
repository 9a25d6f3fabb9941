//! A process that gets too little memory: it says so and ends, whenever it notices.

use tempfile::TempDir;

use super::line;
use crate::support::process::{Mock, run, runner_behind};

#[test]
fn too_little_memory_ends_in_words() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let flags = "--num-prompts 20 --random-output-len 3 --request-rate 100";
    let mut refused = 0;
    // From too little for any plugin to enough for all instances, in KiB of addresses.
    for limit in [1_u64 << 20, 4 << 20, 8 << 20, 12 << 20, 16 << 20, 32 << 20] {
        let folder = TempDir::new().unwrap();
        let starved = runner_behind(&format!("ulimit -v {limit}; exec \"$@\""));
        let ended = run(&mut line(starved, &mock, folder.path(), flags));
        assert!(
            matches!(ended.code, Some(0 | 3 | 4)) && !ended.stderr.contains("panicked"),
            "{limit}: {ended:#?}"
        );
        if ended.code != Some(0) {
            refused += 1;
            assert!(ended.stderr.contains("error: "), "{limit}: {ended:#?}");
        }
    }
    assert!(refused > 0, "a GiB of addresses is too little");
}
