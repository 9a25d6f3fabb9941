//! Devices over a run, on real processes: a stand-in for NVML, and pages like DCGM's exporter's.

pub mod exporter;
mod lab;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use devices::nvml::VARIABLE;
use devices::{EnergyFrom, Reason, Recording};
use result::finding::{Id, Severity};
use result::summary::Summary;
use runs::folder::RunFolder;
use runs::telemetry;
use tempfile::TempDir;

use crate::support::library::compile;
use crate::support::process::{Exit, Mock, Process, only_run, run, runner, words};
use crate::support::results::schema;
use crate::support::server::nobody;
use crate::support::trial::Trial;
use exporter::Exporter;

const RUNS: &str = "runs";

/// Some 1.3 s: 24 answers of ten tokens for two users, each some 110 ms.
const LOAD: &str = "--num-prompts 24 --concurrency 2 --random-output-len 10";

/// The stand-in for NVML, compiled once by this program's compiler. It has two devices: the first
/// has a counter that grows by 2 J with each reading, the second has none and draws 351.5 W.
pub fn stand_in() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let source = include_str!("../host/base/devices/src/nvml/stand_in.rs");
    LIBRARY.get_or_init(|| compile(source, "libnvidia-ml.so.1"))
}

fn mock() -> Mock {
    Mock::start(&["--ttft", "20ms", "--itl", "10ms"])
}

/// A run against the mock engine with these flags.
fn command(mock: &Mock, folder: &Path, flags: &str) -> Command {
    let line = "--backend vllm --dataset-name random --random-input-len 8 --warmup-requests 1 --no-progress";
    let mut command = runner();
    command.args(words(line)).args(words(flags));
    command.args(["--base-url", &mock.url]).env(VARIABLE, stand_in()).current_dir(folder);
    command
}

fn run_folder(folder: &Path) -> PathBuf {
    only_run(&folder.join(RUNS)).unwrap()
}

fn summary(folder: &Path) -> Summary {
    let text = std::fs::read(run_folder(folder).join("summary.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn recording(folder: &Path) -> Recording {
    telemetry::read(&run_folder(folder)).unwrap().unwrap()
}

fn found(summary: &Summary, id: Id) -> Option<Severity> {
    let finding = summary.findings.iter().find(|finding| finding.id == id);
    finding.map(|finding| finding.severity)
}

#[track_caller]
fn close(found: Option<f64>, expected: f64) {
    let found = found.expect("it is there");
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} and not {expected}");
}

/// Computes the growth of a counter between two instants in seconds from its readings.
fn grown(readings: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let at = |t: f64| {
        let after = readings.iter().position(|(at, _)| *at >= t).unwrap();
        let (a, b) = (readings[after - 1], readings[after]);
        a.1 + (b.1 - a.1) * (t - a.0) / (b.0 - a.0)
    };
    at(to) - at(from)
}

/// The measured interval in seconds on the run's clock.
fn measured(summary: &Summary) -> (f64, f64) {
    let from = summary.run.measure_start.unwrap().as_secs_f64();
    (from, from + summary.throughput.duration_s.unwrap())
}

#[test]
fn nvml_over_a_run() {
    let (folder, mock) = (TempDir::new().unwrap(), mock());
    let flags = format!(
        "{LOAD} --device-metrics nvml --device-interval 20ms --cost-per-hour 7.2 --cost-currency EUR"
    );
    let ended = run(&mut command(&mock, folder.path(), &flags)).with_code(0);
    let summary = summary(folder.path());
    let devices = summary.devices.as_ref().unwrap();
    assert_eq!(devices.source.as_deref(), Some("nvml"));
    assert_eq!(devices.driver.as_deref(), Some("575.57.08"));
    let uuids: Vec<_> = devices.each.iter().map(|it| it.device.uuid.as_deref()).collect();
    assert_eq!(uuids, [Some("GPU-aaaaaaaa"), Some("GPU-bbbbbbbb")]);

    let (from, to) = measured(&summary);
    let recording = recording(folder.path());
    assert!(recording.samples.first().unwrap().at_ns.as_secs_f64() < from);
    assert!(recording.samples.last().unwrap().at_ns.as_secs_f64() > to);
    let counter: Vec<(f64, f64)> = (recording.samples.iter())
        .map(|sample| {
            let reading = sample.devices[0].unwrap();
            (sample.at_ns.as_secs_f64(), reading.energy_j.unwrap())
        })
        .collect();
    let steps = counter.windows(2).map(|two| two[1].1 - two[0].1);
    assert!(steps.clone().all(|step| step == 2.0), "{counter:?}");

    let [first, second] = devices.each.as_slice() else { panic!("{devices:?}") };
    assert_eq!(first.energy_from, Some(EnergyFrom::Counter));
    assert_eq!(second.energy_from, Some(EnergyFrom::Power));
    close(first.energy_j, grown(&counter, from, to));
    close(second.mean_power_w, 351.5);
    close(second.energy_j, 351.5 * (to - from));
    let energy = first.energy_j.unwrap() + second.energy_j.unwrap();
    close(devices.energy_j, energy);
    close(devices.max_power_w, 702.0);
    assert_eq!(devices.peak_memory_bytes, Some(142 << 30));
    close(devices.mean_utilization, 0.97);
    assert_eq!(devices.max_temperature_c, Some(61.0));
    close(devices.throttled_share, 1.0);
    close(first.throttled.as_ref().unwrap().get(&Reason::PowerCap).copied(), 1.0);
    for figures in &devices.each {
        assert_eq!(figures.power_limit_w, Some(700.0));
        close(figures.mean_sm_clock_mhz, 1_980.0);
        close(Some(figures.covered), 1.0);
    }
    let output = summary.tokens.output.total.unwrap();
    assert_eq!(output, 240);
    close(devices.energy_per_million_output_tokens, energy / 240e-6);
    let total = output + summary.tokens.input.total.unwrap();
    close(devices.energy_per_million_total_tokens, energy / total as f64 * 1e6);
    let cost = summary.cost.as_ref().unwrap();
    close(cost.total, 7.2 * (to - from) / 3_600.0);
    close(cost.per_million_output_tokens, 7.2 * (to - from) / 3_600.0 / 240e-6);
    assert_eq!(found(&summary, Id::DeviceThrottled), Some(Severity::Suspect));
    assert_eq!(found(&summary, Id::DevicePowerCapped), Some(Severity::Note));
    assert_eq!(found(&summary, Id::DeviceGaps), None);

    let whole =
        run(runner().args(["report", "--details"]).arg(run_folder(folder.path()))).with_code(0);
    for part in [
        "2 x NVIDIA H100 80GB HBM3",
        "Device energy (J):",
        "Device 1:",
        " W, 1980 MHz, 61 °C, 71.0 GiB",
        "Cost per 1M output tokens:",
        " EUR\n",
        "suspect device-throttled: the clock was kept down: device 0 for 100.0 % of the time (thermal, at up to 61 °C)",
    ] {
        assert!(whole.stdout.contains(part), "{part}: {}", whole.stdout);
    }
    let again = run(runner().arg("report").arg(run_folder(folder.path()))).with_code(0);
    assert_eq!(again.stdout, ended.stdout, "the summary is a function of the other files");
    let page = run(runner().args(["report", "--format", "html"]).arg(run_folder(folder.path())));
    let page = page.with_code(0).stdout;
    for part in ["Devices", "power of the devices (W)", "GPU"] {
        assert!(page.contains(part), "{part}");
    }
    lines_are_as_the_schema_says(folder.path());
}

/// Each line of the file agrees with `runner schema devices`.
fn lines_are_as_the_schema_says(folder: &Path) {
    let schema = schema("devices");
    let packed = std::fs::read(run_folder(folder).join(telemetry::FILE)).unwrap();
    let text = String::from_utf8(zstd::decode_all(&*packed).unwrap()).unwrap();
    assert!(text.lines().count() > 10);
    for line in text.lines() {
        let line = serde_json::from_str(line).unwrap();
        assert!(schema.is_valid(&line), "{line}");
    }
}

#[test]
fn thresholds_and_comparisons_use_the_figures() {
    let (folder, mock) = (TempDir::new().unwrap(), mock());
    let figure = "devices.energy-per-million-output-tokens";
    let flags = |devices: &str| {
        format!(
            "{LOAD} --device-metrics nvml --device-interval 20ms --devices {devices} --cost-per-hour 1"
        )
    };
    // 1.3 s at 351.5 W for 240 tokens is some 2 MJ for a million.
    for (devices, limit, code) in [("1", "1e9", 0), ("GPU-bbbb", "1000", 6)] {
        let mut command = command(&mock, folder.path(), &flags(devices));
        command.args(["--details", "--threshold", &format!("{figure} <= {limit}")]);
        run(&mut command).with_stdout(code, "NVIDIA H100");
    }
    let mut runs: Vec<PathBuf> = std::fs::read_dir(folder.path().join(RUNS))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    runs.sort();
    let metrics = format!("{figure},cost.per-million-output-tokens");
    let compared = run(runner().arg("compare").args(&runs).args(["--metric", &metrics]));
    let compared = compared.with_code(0);
    for part in [figure, "cost.per-million-output-tokens"] {
        assert!(compared.stdout.contains(part), "{compared:#?}");
    }
    for run in &runs {
        let devices = RunFolder::at(run).reported().unwrap().summary.devices.unwrap();
        assert_eq!(devices.each.len(), 1, "the other device was not chosen");
        close(devices.mean_power_w, 351.5);
    }
}

/// A sweep has columns for energy and cost if its runs have them, and may have a curve of them.
#[test]
fn sweeps_have_columns_for_energy_and_cost() {
    let mock = mock();
    let load = "--concurrencies 1,2 --num-prompts 8 --random-output-len 10";
    for (flags, has) in [
        ("", [false, false]),
        ("--cost-per-hour 7.2", [false, true]),
        (
            "--cost-per-hour 7.2 --device-metrics nvml --devices 1 --device-interval 10ms \
             --latency devices.energy-per-million-output-tokens",
            [true, true],
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let mut command = runner();
        command
            .args(["sweep", "--backend", "vllm", "--no-progress", "--random-input-len", "8"])
            .args(words(load))
            .args(words(flags))
            .args(["--base-url", &mock.url])
            .env(VARIABLE, stand_in())
            .current_dir(folder.path());
        let ended = run(&mut command).with_code(0);
        let heading = ended.stdout.lines().next().unwrap();
        let found = ["J/M out tok", "cost/M out"].map(|column| heading.contains(column));
        assert_eq!(found, has, "{ended:#?}");
    }
}

/// No request of the load is sent, and nothing is left behind.
#[test]
fn unreadable_devices_are_refused_before_any_load() {
    let nobody = format!("{}/metrics", nobody());
    let other = Exporter::start(|_| Some("up 1\n".to_owned()));
    let missing = Exporter::start(|_| None);
    let reasons: [(&str, i32, &[&str]); 4] = [
        ("nvml", 3, &["NVML cannot be loaded", "is NVIDIA's driver installed?"]),
        (&nobody, 5, &["onnection refused", "curl http://"]),
        (&other.url, 5, &["is it a page of dcgm-exporter?"]),
        (&missing.url, 5, &["HTTP 503"]),
    ];
    for (from, code, parts) in reasons {
        let (folder, mock) = (TempDir::new().unwrap(), Mock::logging(&[]));
        let mut command = command(&mock, folder.path(), LOAD);
        command.args(["--device-metrics", from]);
        command.env(VARIABLE, "/nonexistent/libnvidia-ml.so.1");
        let ended = run(&mut command).with_code(code);
        for part in parts.iter().chain(&["--device-metrics none"]) {
            assert!(ended.stderr.contains(part), "{part}: {ended:#?}");
        }
        assert_eq!(ended.stdout, "");
        let left = std::fs::read_dir(folder.path().join(RUNS));
        assert!(left.is_err() || left.unwrap().next().is_none());
        let requests = mock.end();
        assert!(requests.iter().all(|truth| truth.output_tokens.is_none()), "{requests:?}");
    }
    let (folder, mock) = (TempDir::new().unwrap(), mock());
    let ended = run(command(&mock, folder.path(), LOAD).args(["--device-metrics", "amd"]));
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    for part in ["--device-metrics", "\"none\", \"nvml\", or the URL of a page"] {
        assert!(ended.stderr.contains(part), "{ended:#?}");
    }
}

/// An interrupted run keeps its device samples until then, and so does a killed run.
#[test]
fn interrupted_and_killed_runs_keep_their_samples() {
    for signal in ["INT", "KILL"] {
        let (folder, mock) = (TempDir::new().unwrap(), mock());
        let flags = "--num-prompts 100000 --concurrency 2 --random-output-len 10 \
                     --device-metrics nvml --device-interval 10ms --devices 1";
        let mut process = Process::start(&mut command(&mock, folder.path(), flags));
        process.until("samples of a second are on disk, and records", |_| {
            let Some(run) = only_run(&folder.path().join(RUNS)) else { return false };
            let samples = telemetry::read(&run).ok().flatten();
            let samples = samples.map_or(0, |recording| recording.samples.len());
            let records = std::fs::metadata(run.join(runs::record::FILE));
            samples > 50 && records.is_ok_and(|file| file.len() > 100)
        });
        process.signal(signal);
        let ended = process.end();
        let reported = RunFolder::at(&run_folder(folder.path())).reported().unwrap();
        let devices = reported.summary.devices.unwrap();
        assert!(devices.each[0].samples > 20, "{devices:?}");
        assert_eq!(devices.max_power_w, Some(351.5));
        if signal == "INT" {
            assert_eq!(ended.code, Some(130), "{ended:#?}");
            close(devices.mean_power_w, 351.5);
            assert!(ended.stdout.contains("Mean device power (W):"), "{ended:#?}");
        }
    }
}

/// The pages of an exporter, in which power and counter change from one to the next.
#[test]
fn an_exporter_over_a_run() {
    let exporter = Exporter::start(|page| {
        let (power, energy) = (200 + 10 * (page % 7), 1_000_000 + 7_000 * page);
        Some(format!(
            "DCGM_FI_DEV_POWER_USAGE{{gpu=\"0\",UUID=\"GPU-x\",modelName=\"NVIDIA L4\",Hostname=\"n1\",DCGM_FI_DRIVER_VERSION=\"580.1\"}} {power}\n\
             DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu=\"0\",UUID=\"GPU-x\",modelName=\"NVIDIA L4\",Hostname=\"n1\"}} {energy}\n\
             DCGM_FI_DEV_FB_USED{{gpu=\"0\",UUID=\"GPU-x\",modelName=\"NVIDIA L4\",Hostname=\"n1\"}} {}\n\
             DCGM_FI_DEV_GPU_TEMP{{gpu=\"0\",UUID=\"GPU-x\",modelName=\"NVIDIA L4\",Hostname=\"n1\"}} 5",
            1_000 + page,
        ))
    });
    let (folder, mock) = (TempDir::new().unwrap(), mock());
    let flags = format!("{LOAD} --device-interval 20ms --device-metrics {}", exporter.url);
    run(&mut command(&mock, folder.path(), &flags)).with_code(0);
    let (summary, recording) = (summary(folder.path()), recording(folder.path()));
    let devices = summary.devices.as_ref().unwrap();
    assert_eq!(devices.source.as_deref(), Some("dcgm"));
    assert_eq!(devices.driver.as_deref(), Some("580.1"));
    let (from, to) = measured(&summary);
    let value = |of: &dyn Fn(&devices::Reading) -> f64| -> Vec<(f64, f64)> {
        let samples = recording.samples.iter();
        let points =
            samples.map(|sample| (sample.at_ns.as_secs_f64(), of(&sample.devices[0].unwrap())));
        points.collect()
    };
    let counter = value(&|reading| reading.energy_j.unwrap());
    // The first page is read to see which devices there are, and each further one is a sample.
    assert_eq!(counter[0].1, 1_007.0);
    assert_eq!(counter.len() as u64, exporter.pages() - 1);
    let figures = &devices.each[0];
    assert_eq!(figures.energy_from, Some(EnergyFrom::Counter));
    close(figures.energy_j, grown(&counter, from, to));
    let inside = |points: Vec<(f64, f64)>| {
        let points = points.into_iter().filter(|(at, _)| (from..=to).contains(at));
        points.map(|(_, value)| value).reduce(f64::max)
    };
    assert_eq!(figures.max_power_w, inside(value(&|reading| reading.power_w.unwrap())));
    let used = inside(value(&|reading| reading.memory_used.unwrap() as f64));
    assert_eq!(figures.peak_memory.map(|bytes| bytes as f64), used);
    // The last line of the page has no end, so its number may be half of one.
    assert_eq!(figures.max_temperature_c, None);
}

/// An exporter that stops answering leaves a gap, and no energy that looks whole.
#[test]
fn an_exporter_that_goes_away_leaves_a_gap() {
    let exporter = Exporter::start(|page| {
        let line = "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-x\"} 250\n";
        (page < 12).then(|| line.to_owned())
    });
    let (folder, mock) = (TempDir::new().unwrap(), mock());
    let flags =
        format!("{LOAD} --details --device-interval 10ms --device-metrics {}", exporter.url);
    let ended = run(&mut command(&mock, folder.path(), &flags)).with_code(0);
    let summary = summary(folder.path());
    let devices = summary.devices.as_ref().unwrap();
    assert_eq!((devices.energy_j, devices.mean_power_w), (None, None));
    assert_eq!(devices.energy_per_million_output_tokens, None);
    assert_eq!(found(&summary, Id::DeviceGaps), Some(Severity::Note));
    assert_eq!(devices.failed_readings.unwrap(), exporter.pages() - 12);
    assert_eq!(devices.last_error.as_deref(), Some("it answered with HTTP 503"));
    for part in ["note device-gaps: samples are missing: device 0", "the energy is absent"] {
        assert!(ended.stdout.contains(part), "{ended:#?}");
    }
    assert!(!ended.stdout.contains("Device energy"), "{ended:#?}");
    let again: Exit = run(runner().args(["report", "--details"]).arg(run_folder(folder.path())));
    assert_eq!(again.with_code(0).stdout, ended.stdout);
}

#[tokio::test(start_paused = true)]
async fn in_virtual_time_nothing_is_sampled() {
    let ran = Trial::new(
        "target.model = 'mock'\n\
         backend.plugin = 'backends/vllm.wasm'\n\
         dataset.plugin = 'datasets/random.wasm'\n\
         dataset.config = { input-len = 8, output-len = 4 }\n\
         load = { requests = 4 }\n\
         run.device-metrics = 'http://127.0.0.1:1/metrics'\n\
         cost.per-hour = 36\n",
    );
    let ran = ran.run().await;
    assert_eq!(ran.summary.devices, None);
    let seconds = ran.summary.throughput.duration_s.unwrap();
    close(ran.summary.cost.as_ref().unwrap().total, seconds / 100.0);
}
