//! Too few threads, file descriptors, memory: every limit, from one at which nothing works to a
//! harmless one.

use std::path::{Path, PathBuf};

use model::units::Nanos;
use runs::series::{FILE, Log};
use series::{Entry, Head, Kind, Sample, Series};
use tempfile::TempDir;

use super::check::{Ending, at_once, check, no_panic, nothing_stays_behind};
use crate::endings::{RUNS, line};
use crate::support::lacking;
use crate::support::process::{Exit, Mock, only_run, run, runner, runner_behind};

const LOAD: &str = "--num-prompts 5 --random-output-len 4";

/// Whatever the limit, the run either ends as any other, or names the missing resource. Returns
/// true if it ended well.
fn ends_in_words(about: &str, place: &Path, ended: &Exit) -> bool {
    // The standard library's own words. Its note names the variable for backtraces, and a new
    // thread without memory for its second stack is the only panic.
    let times = |words: &str| ended.stderr.matches(words).count();
    let without_stack = times("failed to allocate an alternative stack");
    let aborted = ended.code.is_none() && times("memory allocation of") + without_stack > 0;
    if aborted {
        assert_eq!(times("panicked"), without_stack, "{about}: {ended:#?}");
    } else {
        no_panic(about, ended);
    }
    if ended.code == Some(0) {
        let after = check(about, place, ended, Ending::Finished, None);
        assert_eq!(after.exchanges.len(), 5, "{about}");
        return after.summary.requests.failed == 0;
    }
    nothing_stays_behind(about, place);
    let is_refused =
        ended.code.is_some_and(|code| (1..=5).contains(&code)) && ended.stderr.contains("error: ");
    // The system's loader comes before the program.
    let not_loaded = ended.code == Some(127);
    assert!(aborted || is_refused || not_loaded, "{about}: {ended:#?}");
    if let Some(folder) =
        only_run(&place.join(RUNS)).filter(|folder| folder.join("status.json").exists())
    {
        let report = run(runner().arg("report").arg(folder)).with_code(0);
        assert!(report.stderr.contains("ended early"), "{about}: {report:#?}");
    }
    false
}

/// Goes through the limits, and makes sure that the least one fails and the largest does not.
fn every_limit(what: &str, limits: &[u64], shell: impl Fn(u64) -> String + Sync) {
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    let ended_well = std::sync::Mutex::new(Vec::new());
    at_once(limits, 2, |limit| {
        let place = TempDir::new().unwrap();
        let mut command = runner_behind(&format!("{} && exec \"$@\"", shell(*limit)));
        // The standard library waits for itself where an allocation fails while it writes a
        // backtrace.
        command.env("RUST_BACKTRACE", "0");
        let ended = run(&mut line(command, &mock, place.path(), LOAD));
        let about = format!("{what} limited to {limit}");
        let well = ends_in_words(&about, place.path(), &ended);
        ended_well.lock().unwrap().push((*limit, well));
    });
    let mut ended_well = ended_well.into_inner().unwrap();
    ended_well.sort_unstable();
    assert!(!ended_well.first().unwrap().1, "{what}: {ended_well:?}");
    assert!(ended_well.last().unwrap().1, "{what}: {ended_well:?}");
}

#[test]
fn too_few_descriptors_are_reported() {
    let limits: Vec<u64> = (4..32).chain([64]).collect();
    every_limit("descriptors", &limits, |limit| format!("ulimit -n {limit}"));
}

#[test]
fn too_little_memory_is_reported() {
    // With less than the program's own size the system ends it before it begins. How large it is
    // depends on the build.
    let program = std::fs::metadata(runner().get_program()).unwrap().len() >> 20;
    let mib = [32, 200, 600, 1_400, 3_000, 6_200, 8_800, 12_600].map(|more| program + more);
    let mib = [&mib[..], &[1 << 20]].concat();
    every_limit("MiB of address space", &mib, |mib| format!("ulimit -v {}", mib << 10));
}

/// A run's folder from a stranger, whose server had the most series and pages that a file may have.
#[test]
fn series_of_strangers_fit_into_memory() {
    const PAGES: u64 = 36_000;
    let mock = Mock::start(&["--ttft", "5ms", "--itl", "1ms"]);
    let place = TempDir::new().unwrap();
    run(&mut line(runner(), &mock, place.path(), LOAD)).with_code(0);
    let folder = only_run(&place.path().join(RUNS)).unwrap();
    std::fs::remove_file(folder.join("summary.json")).unwrap();
    let _ = std::fs::remove_file(folder.join(FILE));
    let mut log = Log::create(&folder).unwrap();
    log.write(&[Entry::Head(Head { targets: vec![mock.url.clone()], every_ns: Nanos(1_000_000) })]);
    let (mut values, mut introduced) = (Vec::new(), Vec::new());
    for id in 0..series::entry::MOST_SERIES as u32 {
        let (name, kind) = match id % 2 {
            0 => ("vllm:num_requests_running", Kind::Gauge),
            _ => ("vllm:prompt_tokens_total", Kind::Counter),
        };
        let labels = [("request".to_owned(), id.to_string())].into();
        introduced.push(Entry::Series(Series { id, target: 0, name: name.into(), kind, labels }));
        values.push((id, 1.0));
    }
    log.write(&introduced);
    for page in 1..=PAGES {
        let values = std::mem::take(&mut values);
        log.write(&[Entry::Sample(Sample {
            at_ns: Nanos(page * 1_000_000),
            values,
            ..<_>::default()
        })]);
    }
    log.finish().unwrap();
    let program = std::fs::metadata(runner().get_program()).unwrap().len() >> 10;
    let limit = program + (1 << 20);
    let mut command = runner_behind(&format!("ulimit -v {limit} && exec \"$@\""));
    let report = run(command.arg("report").arg(&folder).args(["--format", "json"])).with_code(0);
    let summary = report.json();
    let series = &summary["server-series"];
    assert_eq!(series["series"], series::entry::MOST_SERIES, "{series}");
    assert_eq!(series["figures"]["running"]["max"], 25_000.0, "{series}");
    assert_eq!(series["figures"]["input-tokens"]["total"], 0.0, "{series}");
}

/// A group of processes whose number is limited, as a container's is. Removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new(name: &str, most: u64) -> Option<Self> {
        let parents = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
        let parent =
            parents.into_iter().find(|parent| Path::new(parent).join("cgroup.procs").exists())?;
        let group = Group(Path::new(parent).join(format!("{name}-{}-{most}", std::process::id())));
        std::fs::create_dir(&group.0).ok()?;
        std::fs::write(group.0.join("pids.max"), most.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn too_few_threads_are_reported() {
    let limits: Vec<u64> = (1..30).chain([100]).collect();
    let groups: Option<Vec<Group>> =
        limits.iter().map(|most| Group::new("runner-test", *most)).collect();
    let Some(groups) = groups else {
        lacking::leave_out(&lacking::GROUPS);
        return;
    };
    every_limit("threads", &limits, |limit| {
        let at = limits.iter().position(|other| *other == limit).unwrap();
        format!("echo $$ > {}/cgroup.procs", groups[at].0.display())
    });
}
