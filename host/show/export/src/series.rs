//! The table of a run's values over time: a row for each value of each series. The series of a run
//! depend on its measurements, so a series is a row's word and not a column.

use super::batch::Batch;
use super::schema::{Head, Type};
use super::{ExportError, Run};
use devices::{Reading, Recording};
use model::units::Nanos;
use report::view::{Course, grain};

pub(crate) fn heads() -> Vec<Head> {
    vec![
        Head::run(),
        Head::text(
            "series",
            "output-tokens, in-flight, waiting, failed and power of the whole run, a server's own series, or a quantity of a device",
        ),
        Head::text("device", "the device; absent for the whole run"),
        Head::new("start_ns", Type::Whole, "ns", "beginning of the value's span"),
        Head::new(
            "end_ns",
            Type::Whole,
            "ns",
            "end of the span; its beginning if the value is of an instant",
        ),
        Head::new("value", Type::Number, "", "the value, in the row's unit"),
        Head::text("unit", "its unit; absent of a share"),
    ]
}

struct Point<'a> {
    series: &'a str,
    device: Option<&'a str>,
    span: (Nanos, Nanos),
    value: f64,
    unit: &'static str,
}

fn put(run: &Run<'_>, point: &Point<'_>, batch: &mut Batch<'_>) -> Result<(), ExportError> {
    batch.text(Some(&run.label));
    batch.text(Some(point.series));
    batch.text(point.device);
    batch.instant(Some(point.span.0));
    batch.instant(Some(point.span.1));
    batch.number(Some(point.value));
    batch.text(Some(point.unit).filter(|unit| !unit.is_empty()));
    batch.end()
}

pub(crate) fn write(run: &Run<'_>, batch: &mut Batch<'_>) -> Result<(), ExportError> {
    let summary = &run.reported.summary;
    let grain = grain(summary.throughput.duration_s.unwrap_or(0.0));
    let course = Course::read(&run.facts, summary, grain, run.folder.read()?)?;
    let origin = summary.run.measure_start.unwrap_or_default();
    let failed = course.failed.iter().map(|count| *count as f64).collect();
    let of_run = [
        ("output-tokens", course.tokens_per_s.as_ref(), "tok/s"),
        ("in-flight", Some(&course.in_flight), "requests"),
        ("waiting", course.waiting.as_ref(), "requests"),
        ("failed", Some(&failed), "requests"),
        ("power", course.power_w.as_ref(), "W"),
    ];
    let of_run = of_run.into_iter().map(|(series, values, unit)| {
        let values = values.into_iter().flatten().copied().map(Some).collect::<Vec<_>>();
        (series.to_owned(), unit, values)
    });
    let of_server = course.server.0.iter().map(|line| {
        (format!("server-{}", line.name.name()), line.name.unit(), line.values.clone())
    });
    for (series, unit, values) in of_run.chain(of_server) {
        for (place, value) in values.into_iter().enumerate() {
            let Some(value) = value else { continue };
            let (from, to) = course.span(place);
            let span = (origin + Nanos::from_secs_f64(from), origin + Nanos::from_secs_f64(to));
            put(run, &Point { series: &series, device: None, span, value, unit }, batch)?;
        }
    }
    match &run.facts.devices {
        Some(recording) => write_devices(run, recording, batch),
        None => Ok(()),
    }
}

/// A quantity of a device: its series, its unit, and how it is read.
type Quantity = (&'static str, &'static str, fn(&Reading) -> Option<f64>);

const QUANTITIES: [Quantity; 9] = [
    ("device-power", "W", |it| it.power_w),
    ("device-power-limit", "W", |it| it.power_limit_w),
    ("device-energy", "J", |it| it.energy_j),
    ("device-temperature", "°C", |it| it.temperature_c),
    ("device-sm-clock", "MHz", |it| it.sm_clock_mhz),
    ("device-memory-clock", "MHz", |it| it.memory_clock_mhz),
    ("device-memory-used", "B", |it| it.memory_used.map(|n| n as f64)),
    ("device-memory-total", "B", |it| it.memory_total.map(|n| n as f64)),
    ("device-utilization", "", |it| it.utilization),
];

/// Writes the readings of devices as they were taken, also before and after the measurement.
fn write_devices(
    run: &Run<'_>,
    recording: &Recording,
    batch: &mut Batch<'_>,
) -> Result<(), ExportError> {
    let known = recording.facts.iter().flat_map(|facts| &facts.devices);
    let labels = known.enumerate().map(|(place, device)| device.label(place));
    let labels: Vec<String> = labels.collect();
    for sample in &recording.samples {
        let span = (sample.at_ns, sample.at_ns);
        for (label, reading) in labels.iter().zip(&sample.devices) {
            let Some(reading) = reading else { continue };
            for (series, unit, read) in QUANTITIES {
                if let Some(value) = read(reading) {
                    let device = Some(label.as_str());
                    let point = Point { series, device, span, value, unit };
                    put(run, &point, batch)?;
                }
            }
        }
        if let Some(value) = sample.host_j {
            let point = Point { series: "host-energy", device: None, span, value, unit: "J" };
            put(run, &point, batch)?;
        }
    }
    Ok(())
}
