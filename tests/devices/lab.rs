//! A lab that is judged by the devices' energy.

use devices::nvml::VARIABLE;
use tempfile::TempDir;

use super::stand_in;
use crate::support::port;
use crate::support::process::{run_patiently, runner};

/// Eight users over one slot or eight: with one, the second device draws 351.5 W for longer.
#[test]
fn a_lab_minimizes_energy_per_token() {
    let port = port::free();
    let folder = TempDir::new().unwrap();
    let scenario = "name = 'short'\n\
         [dataset]\nplugin = 'datasets/random.wasm'\nconfig = { input-len = 20, output-len = 11 }\n\
         [load]\nrequests = 40\nconcurrency = 8\nwarmup = 1\n";
    std::fs::write(folder.path().join("short.toml"), scenario).unwrap();
    let lab = format!(
        "name = 'energy'\nscenarios = ['short.toml']\nrepeats = 2\n\
         set = {{ run = {{ device-metrics = 'nvml', device-interval = '10ms', devices = ['1'] }}, cost.per-hour = 2 }}\n\
         [objective]\nminimize = 'devices.energy-per-million-output-tokens'\n\
         subject-to = ['devices.max-temperature-c <= 80', 'cost.per-million-output-tokens <= 1e6']\n\
         [[engines]]\nname = 'mock'\nbackend = 'vllm'\n\
         launch = ['{}', 'mock', '--port', '{{port}}', '--ttft', '2ms', '--itl', '2ms']\n\
         port = {port}\nready-timeout = '60s'\nstop-timeout = '20s'\n\
         [engines.options]\nmax-concurrency = [1, 8]\n",
        env!("CARGO_BIN_EXE_runner"),
    );
    std::fs::write(folder.path().join("lab.toml"), lab).unwrap();
    let mut command = runner();
    command
        .args(["lab", "lab.toml", "--folder", "out", "--no-progress"])
        .env(VARIABLE, stand_in())
        .current_dir(folder.path());
    let ended = run_patiently(&mut command).with_code(0);
    let better = "`max-concurrency 8` is better than the baseline";
    assert!(ended.stdout.contains(better), "{ended:#?}");
    let report = std::fs::read_to_string(folder.path().join("out/lab-report.json")).unwrap();
    assert!(report.contains("devices.energy-per-million-output-tokens"), "{report}");
}
