//! How fast one request is answered: as the script says, with variation if the script asks for it.

use std::time::Duration;

use model::random::mix;

use super::script::{LONGEST, Script};

/// The times of one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// From the complete request, or its slot, to the first token.
    pub ttft: Duration,
    /// From each token to the next.
    pub itl: Duration,
}

impl Pace {
    /// For the request with this number: the same each time the script is played.
    pub fn of(script: &Script, number: u64) -> Self {
        let about = |time: Duration, which: u64| {
            if script.spread == 0.0 {
                return time;
            }
            let chance =
                normal(mix(script.seed).wrapping_add(number.wrapping_mul(2).wrapping_add(which)));
            let seconds = time.as_secs_f64() * (script.spread * chance).exp();
            Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64()))
        };
        Pace {
            ttft: about(script.ttft.0, 0),
            itl: about(script.itl.0, 1),
        }
    }
}

/// A normal variate from a counter, by Box and Muller's method.
fn normal(counter: u64) -> f64 {
    let uniform = |salt: u64| {
        let bits = mix(counter.wrapping_mul(2).wrapping_add(salt)) >> 11;
        (bits + 1) as f64 / (1_u64 << 53) as f64
    };
    (-2.0 * uniform(0).ln()).sqrt() * (std::f64::consts::TAU * uniform(1)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_vary_as_much_as_the_script_says() {
        let script: Script = "ttft = '100ms'\nitl = '10ms'\nspread = 0.2\nseed = 3"
            .parse()
            .unwrap();
        let paces: Vec<Pace> = (0..4000).map(|number| Pace::of(&script, number)).collect();
        for times in [
            paces
                .iter()
                .map(|pace| pace.ttft.as_secs_f64() / 0.1)
                .collect::<Vec<_>>(),
            paces
                .iter()
                .map(|pace| pace.itl.as_secs_f64() / 0.01)
                .collect(),
        ] {
            let logarithms: Vec<f64> = times.iter().map(|time| time.ln()).collect();
            let mean = logarithms.iter().sum::<f64>() / 4000.0;
            let squares: f64 = logarithms.iter().map(|x| (x - mean) * (x - mean)).sum();
            let deviation = (squares / 4000.0).sqrt();
            assert!(
                mean.abs() < 0.015 && (deviation - 0.2).abs() < 0.01,
                "{mean} {deviation}"
            );
        }
        assert_eq!(paces[7], Pace::of(&script, 7));
        let other = Script {
            seed: 4,
            ..script.clone()
        };
        assert_ne!(paces[7], Pace::of(&other, 7));
        let even = Script {
            spread: 0.0,
            ..script
        };
        assert_eq!(Pace::of(&even, 7).ttft, Duration::from_millis(100));
    }
}
