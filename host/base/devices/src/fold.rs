//! From samples to the figures of an interval. Pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::entry::Recording;
use crate::reading::{Device, Reading, Reason};

/// A figure is given only if samples cover this share of the interval. The rest of the interval is
/// assumed to be alike.
const COVERED: f64 = 0.9;

const MILLION: f64 = 1e6;

/// Figures of devices and their host over an interval, and their energy for a million tokens. For a
/// run, the interval is from the start of the measurement to the end of its last exchange.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Devices {
    /// The source of the readings: `nvml` or `dcgm`.
    pub source: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// The length of the interval in seconds.
    pub duration_s: f64,
    /// Each device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Figures>,
    /// The energy of all devices in joules; absent if the energy of any device is unknown.
    pub energy_j: Option<f64>,
    /// The mean power of all devices together in watts: their energy over the time.
    pub mean_power_w: Option<f64>,
    /// The largest power of all devices together in watts, of the samples.
    pub max_power_w: Option<f64>,
    /// The mean of the devices' utilisation: the share of the time in which anything ran on a
    /// device.
    pub mean_utilization: Option<f64>,
    /// The highest temperature of any device in degrees Celsius.
    pub max_temperature_c: Option<f64>,
    /// The most memory in use on all devices together in bytes, of the samples.
    pub peak_memory_bytes: Option<u64>,
    /// The largest share of the time in which heat or the power supply kept a device's clock down,
    /// of any device and reason; absent if no device reports reasons.
    pub throttled_share: Option<f64>,
    /// The energy of all devices for a million output tokens of answered requests, in joules.
    pub energy_per_million_output_tokens: Option<f64>,
    /// The same for a million input and output tokens together.
    pub energy_per_million_total_tokens: Option<f64>,
    /// The same within the steady window; absent if there is none.
    pub steady: Option<SteadyEnergy>,
    /// The processors and memory of the machine that this program runs on; absent if they were not
    /// measured.
    pub host: Option<HostEnergy>,
    /// Readings that failed, over the whole recording; absent if none did.
    pub failed_readings: Option<u64>,
    /// The error of the last failed reading.
    pub last_error: Option<String>,
}

/// The devices' energy in the steady window.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct SteadyEnergy {
    /// The energy of all devices in joules.
    pub energy_j: Option<f64>,
    /// Their mean power together in watts.
    pub mean_power_w: Option<f64>,
    /// Their energy for a million output tokens that came within the window, in joules; absent if
    /// replies were not streamed.
    pub energy_per_million_output_tokens: Option<f64>,
}

/// The energy of the processors and memory of this machine, by their own counters.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct HostEnergy {
    /// The parts that are counted, such as `package-0`.
    pub counted: Vec<String>,
    /// The energy in joules.
    pub energy_j: Option<f64>,
    /// The mean power in watts.
    pub mean_power_w: Option<f64>,
    /// The energy for a million output tokens of answered requests, in joules.
    pub energy_per_million_output_tokens: Option<f64>,
    /// The same for a million input and output tokens together.
    pub energy_per_million_total_tokens: Option<f64>,
    /// The reason why figures are absent.
    pub note: Option<String>,
}

/// Figures of a device over an interval. A quantity that it did not report, or reported too seldom,
/// is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Figures {
    /// The device.
    pub device: Device,
    /// Samples in the interval.
    pub samples: u64,
    /// The share of the interval that samples cover: the time between neighbouring samples that are
    /// not far apart.
    pub covered: f64,
    /// The energy, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The source of the energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_from: Option<EnergyFrom>,
    /// The mean power, in watts: the energy over the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_power_w: Option<f64>,
    /// The largest power that was read, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_power_w: Option<f64>,
    /// Power limit, in watts: the smallest that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// The highest temperature, in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_temperature_c: Option<f64>,
    /// The mean clock of its processors, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_sm_clock_mhz: Option<f64>,
    /// The lowest clock of its processors, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_sm_clock_mhz: Option<f64>,
    /// The mean clock of its memory, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_memory_clock_mhz: Option<f64>,
    /// The most memory that was in use, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// Size of its memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_total: Option<u64>,
    /// The mean share of the time in which anything ran on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_utilization: Option<f64>,
    /// For each reason, the share of the time in which it kept the clock down. Absent if the device
    /// reports no reasons; empty if its clock was never kept down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<BTreeMap<Reason, f64>>,
    /// Reasons why figures are absent, or not as expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The source of an energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyFrom {
    /// The difference of a counter.
    Counter,
    /// Readings of the power, joined by lines.
    Power,
}

/// A device that was throttled: facts for a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Throttled {
    /// The device's name in a sentence.
    pub device: String,
    /// The reason for it.
    pub reason: Reason,
    /// The share of the time.
    pub share: f64,
    /// True if something is wrong with the machine, as [`Reason::is_fault`] says.
    pub fault: bool,
    /// The highest temperature of the device, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_temperature_c: Option<f64>,
}

impl Devices {
    /// Each device and reason that throttled it for more than this share, the largest first.
    pub fn throttled(&self, above: f64) -> Vec<Throttled> {
        let all = self.each.iter().enumerate().flat_map(|(at, figures)| {
            figures.throttled.iter().flatten().map(move |(reason, share)| Throttled {
                device: figures.device.label(at),
                reason: *reason,
                share: *share,
                fault: reason.is_fault(),
                max_temperature_c: figures.max_temperature_c,
            })
        });
        let mut all: Vec<Throttled> = all.filter(|throttled| throttled.share > above).collect();
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all
    }

    /// Adds the energy for a million tokens of the interval: of output tokens, and of input and
    /// output tokens together. Absent where there were none.
    pub fn for_tokens(mut self, output: Option<u64>, total: Option<u64>) -> Self {
        let each = |joules: Option<f64>, tokens: Option<u64>| {
            let tokens = tokens.filter(|tokens| *tokens > 0)?;
            Some(joules? / (tokens as f64 / MILLION))
        };
        self.energy_per_million_output_tokens = each(self.energy_j, output);
        self.energy_per_million_total_tokens = each(self.energy_j, total);
        if let Some(host) = &mut self.host {
            host.energy_per_million_output_tokens = each(host.energy_j, output);
            host.energy_per_million_total_tokens = each(host.energy_j, total);
        }
        self
    }
}

impl Recording {
    /// The figures from one instant to another, both since the origin of the recording's clock.
    pub fn over(&self, from: Nanos, to: Nanos) -> Devices {
        let span = Span {
            from: from.as_secs_f64(),
            to: to.as_secs_f64().max(from.as_secs_f64()),
            every: self.every_ns.as_secs_f64(),
        };
        let facts = self.facts.as_ref();
        let devices = facts.map_or(&[][..], |facts| &*facts.devices);
        let devices: Vec<Figures> =
            devices.iter().enumerate().map(|(at, device)| self.figures(span, at, device)).collect();
        let sum = |figure: &dyn Fn(&Figures) -> Option<f64>| {
            let all: Option<Vec<f64>> = devices.iter().map(figure).collect();
            all.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>())
        };
        let energy_j = sum(&|device| device.energy_j);
        let most = |value: &dyn Fn(&Reading) -> Option<f64>| {
            let inside = self.samples.iter().filter(|sample| span.holds(sample.at_ns));
            let together = inside.filter_map(|sample| {
                let each = (0..devices.len()).map(|at| value(sample.devices.get(at)?.as_ref()?));
                each.sum::<Option<f64>>().filter(|_| !devices.is_empty())
            });
            together.reduce(f64::max)
        };
        let faults = devices.iter().filter_map(|device| {
            let throttled = device.throttled.as_ref()?;
            let faults = throttled.iter().filter(|(reason, _)| reason.is_fault());
            Some(faults.map(|(_, share)| *share).fold(0.0, f64::max))
        });
        let hottest = devices.iter().filter_map(|device| device.max_temperature_c);
        Devices {
            source: facts.map(|facts| facts.source.clone()),
            driver: facts.and_then(|facts| facts.driver.clone()),
            duration_s: span.length(),
            energy_j,
            mean_power_w: energy_j.map(|energy| energy / span.length()),
            max_power_w: most(&|reading| reading.power_w),
            // A number of bytes is exact as long as it is below eight petabytes.
            peak_memory_bytes: most(&|reading| reading.memory_used.map(|it| it as f64))
                .map(|it| it as u64),
            mean_utilization: sum(&|device| device.mean_utilization)
                .map(|sum| sum / devices.len() as f64),
            max_temperature_c: hottest.reduce(f64::max),
            throttled_share: faults.reduce(f64::max),
            each: devices,
            host: self.host_figures(span),
            failed_readings: self.error.as_ref().map(|_| self.failed),
            last_error: self.error.clone(),
            ..Devices::default()
        }
    }

    /// The mean power of all devices together in each of these intervals, in watts, from readings
    /// of the power. Absent if it is unknown in one of them.
    pub fn power_over(&self, intervals: impl Iterator<Item = (Nanos, Nanos)>) -> Option<Vec<f64>> {
        let count = self.facts.as_ref()?.devices.len();
        let points = self.samples.iter().filter_map(|sample| {
            let each = (0..count).map(|at| sample.devices.get(at)?.as_ref()?.power_w);
            let power: f64 = each.sum::<Option<f64>>().filter(|_| count > 0)?;
            Some((sample.at_ns.as_secs_f64(), power))
        });
        let line = Line::new(points.collect(), self.every_ns.as_secs_f64());
        let means =
            intervals.map(|(from, to)| line.area(from.as_secs_f64(), to.as_secs_f64()).mean());
        means.collect()
    }

    fn figures(&self, span: Span, at: usize, device: &Device) -> Figures {
        let line = |value: &dyn Fn(&Reading) -> Option<f64>| {
            let points = self.samples.iter().filter_map(|sample| {
                let reading = sample.devices.get(at)?.as_ref()?;
                Some((sample.at_ns.as_secs_f64(), value(reading)?))
            });
            Line::new(points.collect(), span.every)
        };
        let there = line(&|_| Some(0.0));
        let mut figures = Figures {
            device: device.clone(),
            samples: there.within(span.from, span.to).count() as u64,
            covered: span.covered(there.area(span.from, span.to)),
            ..Figures::default()
        };
        let power = line(&|it| it.power_w);
        figures.energy(span, &line(&|it| it.energy_j), &power);
        let least = |line: Line| line.within(span.from, span.to).reduce(f64::min);
        let most = |line: Line| line.within(span.from, span.to).reduce(f64::max);
        figures.max_power_w = most(power);
        figures.power_limit_w = least(line(&|it| it.power_limit_w));
        figures.max_temperature_c = most(line(&|it| it.temperature_c));
        let mean = |line: Line| span.mean(line.area(span.from, span.to));
        figures.mean_sm_clock_mhz = mean(line(&|it| it.sm_clock_mhz));
        figures.min_sm_clock_mhz = least(line(&|it| it.sm_clock_mhz));
        figures.mean_memory_clock_mhz = mean(line(&|it| it.memory_clock_mhz));
        figures.mean_utilization = mean(line(&|it| it.utilization));
        // A number of bytes is exact as long as it is below eight petabytes.
        figures.peak_memory =
            most(line(&|it| it.memory_used.map(|it| it as f64))).map(|it| it as u64);
        figures.memory_total =
            most(line(&|it| it.memory_total.map(|it| it as f64))).map(|it| it as u64);
        let shares = Reason::ALL.into_iter().map(|reason| {
            let has = |bits: u64| f64::from(u8::from(bits & reason.bit() != 0));
            let line = line(&|it| it.throttle.map(has));
            Some((reason, span.mean(line.steps(span.from, span.to))?))
        });
        figures.throttled = shares.collect::<Option<BTreeMap<Reason, f64>>>();
        if let Some(throttled) = &mut figures.throttled {
            throttled.retain(|_, share| *share > 0.0);
        }
        figures
    }

    fn host_figures(&self, span: Span) -> Option<HostEnergy> {
        if self.host.is_empty() {
            return None;
        }
        let points = self.samples.iter();
        let points = points.filter_map(|it| Some((it.at_ns.as_secs_f64(), it.host_j?)));
        let line = Line::new(points.collect(), span.every);
        let mut host = HostEnergy { counted: self.host.clone(), ..HostEnergy::default() };
        match span.energy(line.growth(span.from, span.to)) {
            Ok(energy) => {
                host.energy_j = Some(energy);
                host.mean_power_w = Some(energy / span.length());
            }
            Err(why) => host.note = Some(format!("the host's energy is absent: {why}")),
        }
        Some(host)
    }
}

impl Figures {
    fn energy(&mut self, span: Span, counter: &Line, power: &Line) {
        let from_counter = span.energy(counter.growth(span.from, span.to));
        let from_power = span.energy(Ok(power.area(span.from, span.to)));
        let (energy, from) = match (from_counter, from_power) {
            (Ok(energy), _) => (energy, EnergyFrom::Counter),
            (Err(why), Ok(energy)) => {
                // A device without a counter is nothing special.
                if counter.within(f64::MIN, f64::MAX).next().is_some() {
                    self.notes.push(format!("the energy is from readings of the power: {why}"));
                }
                (energy, EnergyFrom::Power)
            }
            (Err(_), Err(why)) => {
                let reads = power.within(f64::MIN, f64::MAX).next();
                let why = reads.map_or("the device does not report its power".to_owned(), |_| why);
                self.notes.push(format!("the energy is absent: {why}"));
                return;
            }
        };
        self.energy_j = Some(energy);
        self.energy_from = Some(from);
        self.mean_power_w = Some(energy / span.length());
    }
}

/// The interval, in seconds.
#[derive(Clone, Copy)]
struct Span {
    from: f64,
    to: f64,
    /// The time from one sample to the next.
    every: f64,
}

impl Span {
    fn length(self) -> f64 {
        self.to - self.from
    }

    fn holds(self, at: Nanos) -> bool {
        (self.from..=self.to).contains(&at.as_secs_f64())
    }

    fn covered(self, area: Area) -> f64 {
        if self.length() > 0.0 { area.covered_s / self.length() } else { 0.0 }
    }

    fn mean(self, area: Area) -> Option<f64> {
        area.mean().filter(|_| self.covered(area) >= COVERED)
    }

    /// The energy of the whole interval, from the part of it that is known.
    fn energy(self, area: Result<Area, &'static str>) -> Result<f64, String> {
        let area = area?;
        let covered = self.covered(area);
        match self.mean(area) {
            Some(power) => Ok(power * self.length()),
            None => Err(format!("readings cover {:.0} % of the time", (covered * 100.0).floor())),
        }
    }
}

/// A gap between two points is not bridged if it is longer than this many intervals, and longer
/// than this many seconds: the values in between are unknown.
const LONGEST_GAP: (f64, f64) = (10.0, 5.0);

/// Values at instants in seconds, the earliest first.
#[derive(Clone, Debug, Default)]
struct Line {
    points: Vec<(f64, f64)>,
    gap: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    /// The sum of value times seconds.
    pub sum: f64,
    /// The seconds that the points cover.
    pub covered_s: f64,
}

impl Area {
    /// The mean value; `None` if the points cover nothing.
    pub fn mean(self) -> Option<f64> {
        (self.covered_s > 0.0).then(|| self.sum / self.covered_s)
    }
}

impl Line {
    /// A line through points that are `every` seconds apart unless one is missing.
    pub fn new(points: Vec<(f64, f64)>, every: f64) -> Self {
        Line { points, gap: (LONGEST_GAP.0 * every).max(LONGEST_GAP.1) }
    }

    /// The area below the line, and the covered part of the interval.
    pub fn area(&self, from: f64, to: f64) -> Area {
        self.sum(from, to, |a, b, [start, end]| {
            let at = |t: f64| a.1 + (b.1 - a.1) * (t - a.0) / (b.0 - a.0);
            (at(start) + at(end)) / 2.0 * (end - start)
        })
    }

    /// The same where each value holds until the next.
    pub fn steps(&self, from: f64, to: f64) -> Area {
        self.sum(from, to, |a, _, [start, end]| a.1 * (end - start))
    }

    fn sum(
        &self,
        from: f64,
        to: f64,
        part: impl Fn((f64, f64), (f64, f64), [f64; 2]) -> f64,
    ) -> Area {
        let mut area = Area { sum: 0.0, covered_s: 0.0 };
        for two in self.points.windows(2) {
            let (a, b) = (two[0], two[1]);
            let (start, end) = (a.0.max(from), b.0.min(to));
            if end > start && b.0 - a.0 <= self.gap {
                area.sum += part(a, b, [start, end]);
                area.covered_s += end - start;
            }
        }
        area
    }

    /// The values within an interval, its ends included.
    pub fn within(&self, from: f64, to: f64) -> impl Iterator<Item = f64> + '_ {
        let inside = self.points.iter().filter(move |(at, _)| (from..=to).contains(at));
        inside.map(|(_, value)| *value)
    }

    /// The growth of a counter within an interval, as an area, from change to change: a repeated
    /// value was not read anew. Fails if the counter went back, or did not move.
    pub fn growth(&self, from: f64, to: f64) -> Result<Area, &'static str> {
        let mut changes = self.points.clone();
        changes.dedup_by(|later, earlier| later.1 == earlier.1);
        if changes.len() < 2 {
            return Err(match self.points.len() {
                0 | 1 => "the counter was read once at most",
                _ => "the counter does not move",
            });
        }
        if changes.windows(2).any(|two| two[1].1 < two[0].1) {
            return Err("the counter went back");
        }
        let (first, last) = (changes[0].0, changes[changes.len() - 1].0);
        let (start, end) = (first.max(from), last.min(to));
        if end <= start {
            return Err("the counter did not move in this time");
        }
        let at = |t: f64| {
            let after = changes.partition_point(|(at, _)| *at <= t).clamp(1, changes.len() - 1);
            let (a, b) = (changes[after - 1], changes[after]);
            a.1 + (b.1 - a.1) * (t - a.0) / (b.0 - a.0)
        };
        Ok(Area { sum: at(end) - at(start), covered_s: end - start })
    }
}
