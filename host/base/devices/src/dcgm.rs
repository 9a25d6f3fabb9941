//! NVIDIA's devices as DCGM's exporter publishes them (<https://github.com/NVIDIA/dcgm-exporter>),
//! on this machine or another.
//!
//! The exporter reads its devices every 30 seconds unless it is started with another
//! `--collect-interval`, so a page repeats the values of the page before. The energy counter is
//! still exact between two such readings.

use crate::reading::{Choice, Device, Facts, Reading, Source};
use exposition::{Line, lines};

/// `DCGM_FP64_BLANK`: unknown values begin here, `DCGM_INT64_BLANK` among them.
const BLANK: f64 = 140_737_488_355_328.0;

/// `DCGM_INT32_BLANK` and the unknown values after it.
const BLANK_SHORT: std::ops::RangeInclusive<f64> = 2_147_483_632.0..=2_147_483_647.0;

const MEBIBYTE: f64 = 1_048_576.0;

/// No page has more devices.
const MOST: usize = 1_024;

/// The fields of DCGM that are read (`dcgm_fields.h`), without [`PREFIX`]: power in watts, energy in
/// millijoules, temperature in degrees Celsius, clocks in MHz, memory in MiB, utilisation in
/// percent, throttling as bits.
const FIELDS: [&str; 14] = [
    "POWER_USAGE",
    "ENFORCED_POWER_LIMIT",
    "TOTAL_ENERGY_CONSUMPTION",
    "GPU_TEMP",
    "SM_CLOCK",
    "MEM_CLOCK",
    "FB_USED",
    "FB_FREE",
    "FB_RESERVED",
    "FB_TOTAL",
    "GPU_UTIL",
    THROTTLE[0],
    THROTTLE[1],
    THROTTLE[2],
];

const PREFIX: &str = "DCGM_FI_DEV_";

/// The field was renamed, and configurations exist with each name.
const THROTTLE: [&str; 3] =
    ["CLOCKS_EVENT_REASONS", "CLOCK_THROTTLE_REASONS", "CLOCK_THROTTLE_REASON"];

/// The readings of one device on a DCGM page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub driver: Option<String>,
    pub devices: Vec<(Device, Reading)>,
}

/// Reads a page of the exporter. Lines of other fields are passed over, and so are values that DCGM
/// does not know.
///
/// A shared device has a line for each container, and a partitioned device a line for each
/// instance. Power, clocks and temperatures in these lines are the device's; only the memory of
/// instances is added up.
pub fn parse(page: &str) -> Page {
    let mut read = Page::default();
    let mut values: Vec<(Device, Values)> = Vec::new();
    for line in lines(page) {
        let name = line.name.strip_prefix(PREFIX);
        let Some(field) = FIELDS.into_iter().find(|field| Some(*field) == name) else { continue };
        if line.value < 0.0 || line.value >= BLANK || BLANK_SHORT.contains(&line.value) {
            continue;
        }
        if read.driver.is_none() {
            let driver = line.label("DCGM_FI_DRIVER_VERSION");
            read.driver = driver.map(|driver| model::clean::line(driver).into_owned());
        }
        let device = device(&line);
        let at = match values.iter().position(|(known, _)| *known == device) {
            Some(at) => at,
            None if values.len() == MOST => continue,
            None => {
                values.push((device, Values::default()));
                values.len() - 1
            }
        };
        values[at].1.take(field, &line);
    }
    let readings = values.into_iter().map(|(device, values)| (device, values.reading()));
    read.devices = readings.collect();
    read
}

fn device(line: &Line<'_>) -> Device {
    let text = |label: Option<&str>| label.map(|label| model::clean::line(label).into_owned());
    Device {
        index: line.label("gpu").and_then(|index| index.parse().ok()),
        name: text(line.label("modelName")),
        uuid: text(line.label("UUID").or_else(|| line.label("uuid"))),
        machine: text(line.label("Hostname").or_else(|| line.label("hostname"))),
    }
}

/// The values of a device: of each field the largest, by instance.
#[derive(Default)]
struct Values(Vec<(&'static str, Option<String>, f64)>);

impl Values {
    fn take(&mut self, field: &'static str, line: &Line<'_>) {
        /// More instances than any device has.
        const MOST_VALUES: usize = 256;
        let instance = line.label("GPU_I_ID");
        let is_full = self.0.len() >= MOST_VALUES;
        let mut known = self.0.iter_mut();
        match known.find(|(of, at, _)| *of == field && at.as_deref() == instance) {
            Some((_, _, value)) => *value = value.max(line.value),
            None if is_full => {}
            None => self.0.push((field, instance.map(str::to_owned), line.value)),
        }
    }

    fn reading(&self) -> Reading {
        let of = |field: &'static str| {
            self.0.iter().filter(move |(of, ..)| *of == field).map(|(_, at, value)| (at, *value))
        };
        let largest = |field| of(field).map(|(_, value)| value).reduce(f64::max);
        // Where the whole device is on the page beside its instances, it counts.
        let memory = |field| {
            let whole = of(field).find(|(instance, _)| instance.is_none());
            let whole = whole.map(|(_, value)| value);
            whole.or_else(|| of(field).map(|(_, value)| value).reduce(|a, b| a + b))
        };
        let used = memory("FB_USED");
        let total = memory("FB_TOTAL").or_else(|| {
            let known = used? + memory("FB_FREE")?;
            Some(known + memory("FB_RESERVED").unwrap_or(0.0))
        });
        let bytes = |mebibytes: f64| (mebibytes * MEBIBYTE) as u64;
        let throttle = THROTTLE.into_iter().filter_map(largest).reduce(f64::max);
        Reading {
            power_w: largest("POWER_USAGE"),
            power_limit_w: largest("ENFORCED_POWER_LIMIT"),
            energy_j: largest("TOTAL_ENERGY_CONSUMPTION").map(|it| it / 1e3),
            temperature_c: largest("GPU_TEMP"),
            sm_clock_mhz: largest("SM_CLOCK"),
            memory_clock_mhz: largest("MEM_CLOCK"),
            memory_used: used.map(bytes),
            memory_total: total.map(bytes),
            utilization: largest("GPU_UTIL").map(|it| it / 100.0),
            throttle: throttle.map(|it| it as u64),
        }
    }
}

/// Fetches a page of the exporter. The text of an error is the reason for its absence.
pub type Fetch = Box<dyn FnMut() -> Result<String, String> + Send>;

pub struct Exporter {
    fetch: Fetch,
    choice: Choice,
    facts: Facts,
}

impl Exporter {
    /// Fetches a first page, which names the devices. Fails without a page or a chosen device.
    pub fn open(mut fetch: Fetch, choice: &Choice) -> Result<Self, String> {
        let page = parse(&fetch()?);
        let count = page.devices.len();
        let devices = page.devices.into_iter().map(|(device, _)| device);
        let facts = Facts {
            source: "dcgm".to_owned(),
            driver: page.driver,
            devices: devices.filter(|device| choice.has(device)).collect(),
        };
        if facts.devices.is_empty() {
            return Err(match count {
                0 => "the page has no field of DCGM, such as DCGM_FI_DEV_POWER_USAGE; is it a page of dcgm-exporter?".to_owned(),
                _ => format!("the page has {count} devices, and none of them is chosen"),
            });
        }
        Ok(Exporter { fetch, choice: choice.clone(), facts })
    }
}

impl Source for Exporter {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&mut self) -> Result<Vec<Option<Reading>>, String> {
        let page = parse(&(self.fetch)()?);
        let mut readings = vec![None; self.facts.devices.len()];
        for (device, reading) in page.devices {
            match self.facts.devices.iter().position(|known| *known == device) {
                Some(at) => readings[at] = Some(reading),
                None if self.choice.has(&device) && readings.len() < MOST => {
                    self.facts.devices.push(device);
                    readings.push(Some(reading));
                }
                None => {}
            }
        }
        if readings.iter().all(Option::is_none) {
            Err("the page has none of the devices that it had".to_owned())
        } else {
            Ok(readings)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As dcgm-exporter 4 writes it, for two devices.
    const PAGE: &str = r#"# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA L4",Hostname="n1",DCGM_FI_DRIVER_VERSION="580.105.08"} 1590
DCGM_FI_DEV_SM_CLOCK{gpu="1",UUID="GPU-b",pci_bus_id="00000000:08:00.0",device="nvidia1",modelName="NVIDIA L4",Hostname="n1",DCGM_FI_DRIVER_VERSION="580.105.08"} 210
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 71.365000
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",modelName="NVIDIA L4",Hostname="n1"} 140737488355328
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 4742776
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="1",UUID="GPU-b",modelName="NVIDIA L4",Hostname="n1"} 9223372036854775792
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 66
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b",modelName="NVIDIA L4",Hostname="n1"} 2147483632
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 20000
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 2500
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 534
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 100
DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 4
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a",modelName="NVIDIA L4",Hostname="n1"} 0
"#;

    #[test]
    fn a_page_of_the_exporter() {
        let page = parse(PAGE);
        assert_eq!(page.driver.as_deref(), Some("580.105.08"));
        let device = |index, uuid: &str| Device {
            index: Some(index),
            name: Some("NVIDIA L4".to_owned()),
            uuid: Some(uuid.to_owned()),
            machine: Some("n1".to_owned()),
        };
        let first = Reading {
            power_w: Some(71.365),
            power_limit_w: None,
            energy_j: Some(4_742.776),
            temperature_c: Some(66.0),
            sm_clock_mhz: Some(1_590.0),
            memory_clock_mhz: None,
            memory_used: Some(20_000 << 20),
            memory_total: Some(23_034 << 20),
            utilization: Some(1.0),
            throttle: Some(4),
        };
        let second = Reading { sm_clock_mhz: Some(210.0), ..Reading::default() };
        assert_eq!(page.devices, [(device(0, "GPU-a"), first), (device(1, "GPU-b"), second)]);
        for other in ["", "# only a comment\n", "vllm:requests 3\n", "\u{0}{{{\"=\n"] {
            assert_eq!(parse(other), Page::default());
        }
    }

    #[test]
    fn shared_and_partitioned_devices_are_counted_once() {
        let page = parse(
            r#"DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",pod="x"} 100
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",pod="y"} 100
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",pod="x"} 5
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",pod="y"} 5
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",GPU_I_ID="3"} 200
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",GPU_I_ID="4"} 200
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",GPU_I_ID="3"} 7
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",GPU_I_ID="4"} 8
"#,
        );
        let readings = page.devices.iter().map(|(_, reading)| reading);
        let found: Vec<_> =
            readings.map(|reading| (reading.power_w, reading.memory_used)).collect();
        assert_eq!(found, [(Some(100.0), Some(5 << 20)), (Some(200.0), Some(15 << 20))]);
    }

    #[test]
    fn devices_keep_their_places_from_page_to_page() {
        let gone = "DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-b\",modelName=\"NVIDIA L4\",Hostname=\"n1\"} 9\n";
        let new = "DCGM_FI_DEV_POWER_USAGE{gpu=\"2\",UUID=\"GPU-c\"} 3\n";
        let mut pages = vec![
            Err("connection refused".to_owned()),
            Ok(String::new()),
            Ok(format!("{new}{gone}")),
            Ok(PAGE.to_owned()),
            Ok(PAGE.to_owned()),
        ];
        let fetch: Fetch = Box::new(move || pages.pop().unwrap());
        let mut exporter = Exporter::open(fetch, &Choice::All).unwrap();
        let power = |readings: Vec<Option<Reading>>| -> Vec<Option<f64>> {
            let readings = readings.into_iter();
            readings.map(|reading| reading?.power_w).collect()
        };
        assert_eq!(power(exporter.read().unwrap()), [Some(71.365), None]);
        assert_eq!(power(exporter.read().unwrap()), [None, Some(9.0), Some(3.0)]);
        assert_eq!(exporter.facts().devices.len(), 3);
        assert!(exporter.read().unwrap_err().contains("none of the devices"));
        assert_eq!(exporter.read().unwrap_err(), "connection refused");

        let open = |page: &'static str, choice: &str| {
            let fetch: Fetch = Box::new(move || Ok(page.to_owned()));
            Exporter::open(fetch, &Choice::parse(choice))
        };
        assert_eq!(open(PAGE, "1").unwrap().facts().devices.len(), 1);
        let error = open(PAGE, "7").err().unwrap();
        assert_eq!(error, "the page has 2 devices, and none of them is chosen");
        let error = open("up 1\n", "0").err().unwrap();
        assert!(error.contains("is it a page of dcgm-exporter?"), "{error}");
    }
}
