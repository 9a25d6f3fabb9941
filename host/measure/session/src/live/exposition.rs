//! The page for Prometheus, made from a snapshot: OpenMetrics' text format
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>). Pure.
//!
//! Every series has the label `run`, the name of the run's folder, and counts from zero. Times are
//! in seconds; an unknown value has no series. A fleet has one page, on rank 0, with sums over all
//! processes; series of one process have the labels `agent` and `host`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::snapshot::{Agent, Counts, Latency, Phase, Snapshot, Standing};
use devices::Reading;
use load::vitals::{Busy, Load};
use model::client::role;
use scenario::plan::Plan;

pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The identity of a run, in labels. It holds only facts of the plan, and therefore no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub run: String,
    labels: Vec<(&'static str, String)>,
}

impl Identity {
    pub fn new(run: &str, plan: &Plan) -> Self {
        let (target, about) = (&plan.target, &plan.about);
        let known = [
            ("name", Some(plan.name.clone())),
            ("target", Some(target.base_urls.join(","))),
            ("model", Some(target.model.clone())),
            ("backend", Some(plan.backend.name.clone())),
            ("dataset", Some(plan.dataset.plugin.name.clone())),
            ("engine", about.engine.clone()),
            ("engine_version", about.engine_version.clone()),
            ("hardware", about.hardware.clone()),
            ("runner", Some(plan.runner.clone())),
        ];
        let labels = known.into_iter();
        Identity {
            run: run.to_owned(),
            labels: labels.filter_map(|(name, value)| Some((name, value?))).collect(),
        }
    }
}

pub fn page(identity: &Identity, snapshot: Snapshot) -> String {
    let run = ("run".into(), identity.run.clone().into());
    let mut registry = Registry::with_labels([run].into_iter());
    registry.register_collector(Box::new(Figures { labels: identity.labels.clone(), snapshot }));
    let mut page = String::new();
    text::encode(&mut page, &registry)
        .unwrap_or_else(|error| unreachable!("writing to memory does not fail: {error}"));
    page
}

#[derive(Debug)]
struct Figures {
    labels: Vec<(&'static str, String)>,
    snapshot: Snapshot,
}

type Labels<'l> = [(&'l str, &'l str)];

/// Writes families one after the other.
struct Page<'e>(DescriptorEncoder<'e>);

impl Page<'_> {
    fn family(
        &mut self,
        (name, help): (&str, &str),
        kind: MetricType,
        write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        write(&mut self.0.encode_descriptor(name, help, None, kind)?)
    }

    fn counter(&mut self, names: (&str, &str), value: u64) -> fmt::Result {
        self.family(names, MetricType::Counter, |metric| count(metric, value))
    }

    fn gauge(&mut self, names: (&str, &str), value: Option<f64>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        self.family(names, MetricType::Gauge, |metric| metric.encode_gauge(&value))
    }

    fn gauges<'l>(
        &mut self,
        names: (&str, &str),
        series: impl IntoIterator<Item = (Vec<(&'l str, &'l str)>, f64)>,
    ) -> fmt::Result {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return Ok(());
        }
        self.family(names, MetricType::Gauge, |metric| {
            for (labels, value) in series {
                let labels: &Labels<'_> = &labels;
                metric.encode_family(&labels)?.encode_gauge(&value)?;
            }
            Ok(())
        })
    }

    fn histogram(&mut self, (name, help): (&str, &str), latency: &Latency) -> fmt::Result {
        let buckets: Vec<(f64, u64)> = latency.buckets.each().collect();
        let (sum, count) = (latency.buckets.sum_s(), latency.buckets.count());
        self.0
            .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}

fn count(metric: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let seen = &self.snapshot;
        let mut page = Page(encoder);
        let labels: Vec<(&str, &str)> =
            (self.labels.iter()).map(|(name, value)| (*name, value.as_str())).collect();
        page.family(
            ("runner_run", "Facts about the run, from its plan."),
            MetricType::Info,
            |metric| metric.encode_info(&labels.as_slice()),
        )?;
        page.gauges(
            ("runner_phase", "1 if the run is in this phase, else 0."),
            Phase::ALL.map(|phase| {
                let is_in = f64::from(u8::from(phase == seen.counts.phase));
                (vec![("phase", phase.name())], is_in)
            }),
        )?;
        page.gauge(
            ("runner_measuring_seconds", "Time since the measurement began."),
            seen.counts.elapsed.map(|elapsed| elapsed.as_secs_f64()),
        )?;
        requests(&mut page, seen)?;
        tokens(&mut page, seen)?;
        latencies(&mut page, seen)?;
        devices(&mut page, seen)?;
        match &seen.load {
            _ if !seen.agents.is_empty() => agents(&mut page, &seen.agents),
            Some(load) => loads(&mut page, &[(Vec::new(), load)]),
            None => Ok(()),
        }
    }
}

fn requests(page: &mut Page<'_>, seen: &Snapshot) -> fmt::Result {
    page.family(
        ("runner_requests", "Measured requests that ended, by how they ended."),
        MetricType::Counter,
        |metric| {
            let counts = &seen.counts;
            let cancelled = (counts.cancelled > 0).then_some(("cancelled", None, counts.cancelled));
            let failed = counts.failed.iter();
            let failed = failed.map(|(class, failed)| ("failed", Some(class.name()), failed.count));
            let all = [("ok", None, counts.answered)].into_iter().chain(cancelled).chain(failed);
            for (outcome, class, requests) in all {
                let labels = [("outcome", outcome)].into_iter();
                let labels: Vec<_> = labels.chain(class.map(|class| ("class", class))).collect();
                count(&mut metric.encode_family(&labels.as_slice())?, requests)?;
            }
            Ok(())
        },
    )?;
    let Counts { due, given_out, ready, in_flight, waiting, .. } = seen.counts;
    if let Some(due) = due {
        let help = "Measured requests that were due according to the plan.";
        page.counter(("runner_requests_due", help), due)?;
    }
    let help = "Measured requests that were handed to a worker for sending.";
    page.counter(("runner_requests_given_out", help), given_out)?;
    let help = "Requests that were ready before the first was sent.";
    page.gauge(("runner_requests_ready", help), Some(ready as f64))?;
    let help = "Requests whose replies have not ended.";
    page.gauge(("runner_requests_in_flight", help), Some(in_flight as f64))?;
    let help =
        "Requests that are due and waiting, mostly because of the cap on requests in flight.";
    page.gauge(("runner_requests_waiting", help), waiting.map(|waiting| waiting as f64))
}

fn tokens(page: &mut Page<'_>, seen: &Snapshot) -> fmt::Result {
    let help = "Prompt tokens of the measured requests that were answered.";
    page.counter(("runner_input_tokens", help), seen.counts.input_tokens)?;
    let help = "Output tokens of the measured requests that were answered, as far as the server reports them.";
    page.counter(("runner_output_tokens", help), seen.counts.output_tokens)?;
    let help = "Output tokens since the measurement began, including replies under way: as reported in events, or one per event.";
    page.counter(("runner_output_tokens_seen", help), seen.counts.tokens_seen)
}

fn latencies(page: &mut Page<'_>, seen: &Snapshot) -> fmt::Result {
    let all = [
        (
            "runner_time_to_first_token",
            "First output - sent, of answered requests that ended.",
            &seen.ttft,
        ),
        (
            "runner_inter_token_latency",
            "Gaps between successive output events, of answered requests that ended.",
            &seen.itl,
        ),
        (
            "runner_time_per_output_token",
            "(End - first output) / (output tokens - 1), of answered requests that ended.",
            &seen.tpot,
        ),
        ("runner_end_to_end_latency", "End - sent, of answered requests that ended.", &seen.e2e),
        ("runner_send_lag", "Send lag of all sent requests that ended.", &seen.send_lag),
    ];
    for (name, help, latency) in all {
        page.histogram((name, help), latency)?;
    }
    Ok(())
}

/// Writes the devices' last figures. A figure that a device does not give has no series.
fn devices(page: &mut Page<'_>, seen: &Snapshot) -> fmt::Result {
    let Some((facts, sample)) = &seen.devices else { return Ok(()) };
    let named: Vec<Vec<(&str, String)>> = (facts.devices.iter().enumerate())
        .map(|(place, device)| {
            let index = device.index.map_or(place.to_string(), |index| index.to_string());
            let known = [
                ("device", Some(index)),
                ("host", device.machine.clone()),
                ("name", device.name.clone()),
                ("uuid", device.uuid.clone()),
            ];
            known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
        })
        .collect();
    type Value = fn(&Reading) -> Option<f64>;
    let families: [(&str, &str, Value); 5] = [
        ("runner_device_power_watts", "What a device draws.", |reading| reading.power_w),
        ("runner_device_temperature_celsius", "The temperature of a device.", |reading| {
            reading.temperature_c
        }),
        ("runner_device_sm_clock_hertz", "The clock of a device's processors.", |reading| {
            reading.sm_clock_mhz.map(|mhz| mhz * 1e6)
        }),
        ("runner_device_memory_used_bytes", "Memory in use on a device.", |reading| {
            reading.memory_used.map(|bytes| bytes as f64)
        }),
        (
            "runner_device_utilization_ratio",
            "Share of the time just past in which anything ran on a device.",
            |reading| reading.utilization,
        ),
    ];
    for (name, help, value) in families {
        let series = named.iter().zip(&sample.devices);
        let series = series.filter_map(|(labels, reading)| {
            let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
            Some((labels.collect(), value(reading.as_ref()?)?))
        });
        page.gauges((name, help), series)?;
    }
    Ok(())
}

/// Writes the figures of each process of a fleet, and if it is heard.
fn agents(page: &mut Page<'_>, agents: &[Agent]) -> fmt::Result {
    let ranks: Vec<String> = agents.iter().map(|agent| agent.rank.to_string()).collect();
    let named: Vec<Vec<(&str, &str)>> = (agents.iter().zip(&ranks))
        .map(|(agent, rank)| {
            let host = agent.host.as_deref().map(|host| ("host", host));
            [("agent", rank.as_str())].into_iter().chain(host).collect()
        })
        .collect();
    page.gauges(
        ("runner_fleet_agents", "Processes of the fleet by standing."),
        Standing::ALL.map(|standing| {
            let so = agents.iter().filter(|agent| agent.standing == standing);
            (vec![("standing", standing.name())], so.count() as f64)
        }),
    )?;
    type Value = fn(&Agent) -> Option<f64>;
    let gauges: [(&str, &str, Value); 3] = [
        (
            "runner_agent_up",
            "1 if a process of the fleet is heard or has finished, else 0.",
            |agent| Some(f64::from(u8::from(agent.standing >= Standing::Reporting))),
        ),
        ("runner_agent_figures_age_seconds", "Age of the last figures of a process.", |agent| {
            agent.age.map(|age| age.as_secs_f64())
        }),
        (
            "runner_agent_requests_in_flight",
            "Requests of a process whose replies have not ended.",
            |agent| agent.in_flight.map(|requests| requests as f64),
        ),
    ];
    for (name, help, value) in gauges {
        let series = named.iter().zip(agents);
        let series = series.filter_map(|(labels, agent)| Some((labels.clone(), value(agent)?)));
        page.gauges((name, help), series)?;
    }
    page.family(
        ("runner_agent_requests", "Measured requests of a process that ended, by how they ended."),
        MetricType::Counter,
        |metric| {
            for (labels, agent) in named.iter().zip(agents) {
                for (outcome, requests) in [("ok", agent.answered), ("failed", agent.failed)] {
                    let labels = [labels.as_slice(), &[("outcome", outcome)]].concat();
                    count(&mut metric.encode_family(&labels.as_slice())?, requests)?;
                }
            }
            Ok(())
        },
    )?;
    let known = named.iter().zip(agents);
    let known = known.filter_map(|(labels, agent)| Some((labels.clone(), agent.load.as_ref()?)));
    loads(page, &known.collect::<Vec<_>>())
}

/// Writes the shares of their cores that the threads of one or several processes use.
fn loads(page: &mut Page<'_>, of: &[(Vec<(&str, &str)>, &Load)]) -> fmt::Result {
    let threads = |of_thread: fn(&Busy) -> f64| {
        let mut series = Vec::new();
        for (labels, load) in of {
            for thread in &load.threads {
                let name = thread.name.as_str();
                let own = [("role", role(name)), ("thread", name)];
                series.push(([labels.as_slice(), &own].concat(), of_thread(thread)));
            }
        }
        series
    };
    let help = "Share of the last second that a thread of this client was on a core.";
    page.gauges(("runner_client_cpu_ratio", help), threads(|thread| thread.cpu))?;
    let help = "Share of the last second that a thread of this client waited for a core.";
    page.gauges(("runner_client_cpu_waiting_ratio", help), threads(|thread| thread.waiting))?;
    let names =
        ("runner_decode_backlog_reports", "Reports from readers in the longest decode queue.");
    match of {
        [(labels, load)] if labels.is_empty() => page.gauge(names, Some(load.backlog as f64)),
        several => {
            let series = several.iter();
            let series = series.map(|(labels, load)| (labels.clone(), load.backlog as f64));
            page.gauges(names, series)
        }
    }
}
