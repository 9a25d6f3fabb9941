//! The figures of agents: jobs an hour for a user and for a device, and agents for a device and for
//! a megawatt.
//!
//! An agent is a user of a closed loop, or a lane, whose job is a session. Jobs an hour and a user
//! are 3,600 over the mean job latency in seconds; jobs an hour and a device are the sessions that
//! began and completed within the run, for its hours and devices (TensorRT-LLM's technical blog
//! 27). Agents for a megawatt are by Artificial Analysis' AA-AgentPerf, whose tiers are limits of a
//! search. This module leaves sessions to `sessions` and watts to `devices`.

use devices::Devices;

use super::facts::{Loop, Run};
use super::sessions::Sessions;

const SECONDS_PER_HOUR: f64 = 3_600.0;
const WATTS_PER_MEGAWATT: f64 = 1e6;

model::words! {
    /// The source of a number of devices or watts.
    pub enum Source {
        /// The devices were sampled.
        Measured = "measured",
        /// The scenario states it.
        Declared = "declared",
    }
}

/// The load of agents and the devices that serve it.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Agents {
    /// Agents at the same time: the users of a closed loop, or its lanes.
    pub agents: u64,
    /// Mean job latency: seconds from when a session's first request was due until its last ended.
    pub job_latency_s: Option<f64>,
    /// Jobs an hour and a user: 3,600 over the mean job latency.
    pub jobs_per_h_and_user: Option<f64>,
    /// Complete jobs an hour of the run and a device.
    pub jobs_per_h_and_device: Option<f64>,
    /// The number of devices; absent if it is not known.
    pub devices: Option<u64>,
    /// The source of the number of devices.
    pub devices_source: Option<Source>,
    /// Their power in watts: the mean over the run, or the declared one.
    pub power_w: Option<f64>,
    /// The source of the power.
    pub power_source: Option<Source>,
    /// Agents for each device.
    pub agents_per_device: Option<f64>,
    /// Agents for each megawatt.
    pub agents_per_megawatt: Option<f64>,
}

impl Agents {
    /// The figures of a closed loop of sessions; `None` for any other load. A declared number
    /// counts before a measured one: a declared power is of the whole rack.
    pub(super) fn new(
        run: &Run,
        sessions: Option<&Sessions>,
        job_latency_s: Option<f64>,
        devices: Option<&Devices>,
    ) -> Option<Self> {
        let agents = run.users.filter(|_| run.r#loop == Loop::Closed)?;
        let sessions = sessions?;
        let seen = devices.map(|devices| devices.each.len() as u64).filter(|count| *count > 0);
        let (count, devices_source) = declared_or(run.machines.devices.map(u64::from), seen);
        let power = devices.and_then(|devices| devices.mean_power_w);
        let (power_w, power_source) = declared_or(run.machines.power_w, power);
        let per_device = |amount: f64| count.map(|count| amount / count as f64);
        let all = agents as f64;
        let per_hour = sessions.sessions_per_s.map(|rate| rate * SECONDS_PER_HOUR);
        Some(Agents {
            agents,
            job_latency_s,
            jobs_per_h_and_user: job_latency_s.filter(|it| *it > 0.0).map(|s| SECONDS_PER_HOUR / s),
            jobs_per_h_and_device: per_hour.and_then(per_device),
            devices: count,
            devices_source,
            power_w,
            power_source,
            agents_per_device: per_device(all),
            agents_per_megawatt: power_w
                .filter(|watts| *watts > 0.0)
                .map(|watts| all * WATTS_PER_MEGAWATT / watts),
        })
    }
}

fn declared_or<T>(declared: Option<T>, measured: Option<T>) -> (Option<T>, Option<Source>) {
    let declared = declared.map(|it| (it, Source::Declared));
    let known = declared.or(measured.map(|it| (it, Source::Measured)));
    known.map_or((None, None), |(it, source)| (Some(it), Some(source)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::facts::Machines;

    /// AA-AgentPerf's rows of 2026-06 at 30 tokens/s: 57.5 agents a GB300 and 61,400 a megawatt,
    /// 1.4 and 2,600 for an H200, from the power that the two ratios state.
    #[test]
    fn published_ratios_come_back() {
        for (agents, devices, per_device, per_megawatt) in
            [(4_140, 72, 57.5, 61_400.0), (7, 5, 1.4, 2_600.0)]
        {
            let power_w = f64::from(agents as u32) * 1e6 / per_megawatt;
            let run = Run {
                r#loop: Loop::Closed,
                users: Some(agents),
                machines: Machines { devices: Some(devices), power_w: Some(power_w) },
                ..Run::default()
            };
            let sessions = Sessions { sessions_per_s: Some(0.5), ..Sessions::default() };
            let found = Agents::new(&run, Some(&sessions), Some(90.0), None).unwrap();
            assert_eq!(found.agents_per_device, Some(per_device));
            assert!((found.agents_per_megawatt.unwrap() - per_megawatt).abs() < 1e-6);
            assert_eq!(found.jobs_per_h_and_user, Some(40.0));
            assert_eq!(found.jobs_per_h_and_device, Some(1800.0 / f64::from(devices)));
            assert_eq!(found.power_source, Some(Source::Declared));
            let open = Run { r#loop: Loop::Open, ..run };
            assert!(Agents::new(&open, Some(&sessions), None, None).is_none());
        }
    }

    #[test]
    fn unknown_devices_have_no_figures() {
        let run = Run { r#loop: Loop::Closed, users: Some(7), ..Run::default() };
        let found = Agents::new(&run, Some(&Sessions::default()), None, None).unwrap();
        assert_eq!((found.agents, found.agents_per_device), (7, None));
        assert_eq!((found.agents_per_megawatt, found.power_source), (None, None));
    }
}
