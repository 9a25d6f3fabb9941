//! The engine's own record of a run, and the error of a result against it.

use serde_json::Value;

/// The engine's own times: mean, median and P99 in milliseconds.
struct Truth {
    ttft: [f64; 3],
    gaps: [f64; 3],
}

/// Mean, median and P99 of TTFT and of gaps in a result, minus the engine's own, in ms.
pub fn difference(result: &Value, requests: &[Value]) -> [f64; 6] {
    let truth = Truth::new(requests);
    let of = |metric: &str, figure: &str| {
        let metric = &result["metrics"][metric];
        let value = metric.get(figure).or(metric["percentiles"].get(figure));
        value.and_then(Value::as_f64).unwrap_or(f64::NAN)
    };
    let minus = |metric: &str, [mean, median, p99]: [f64; 3]| {
        [("mean", mean), ("median", median), ("p99", p99)]
            .map(|(figure, truth)| of(metric, figure) - truth)
    };
    let [[a, b, c], [d, e, f]] = [minus("ttft", truth.ttft), minus("itl", truth.gaps)];
    [a, b, c, d, e, f]
}

impl Truth {
    fn new(requests: &[Value]) -> Self {
        let (mut ttft, mut gaps) = (Vec::new(), Vec::new());
        for request in requests {
            let received = request["received"].as_f64().unwrap_or(f64::NAN);
            let pieces = request["chunks"].as_array().into_iter().flatten();
            let at: Vec<f64> = pieces
                .filter(|piece| piece["tokens"].as_u64() > Some(0))
                .filter_map(|piece| piece["at"].as_f64())
                .collect();
            ttft.extend(at.first().map(|first| (first - received) / 1e6));
            gaps.extend(at.windows(2).map(|pair| (pair[1] - pair[0]) / 1e6));
        }
        Truth { ttft: statistics(ttft), gaps: statistics(gaps) }
    }
}

fn statistics(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    [mean, at(0.5), at(0.99)]
}
