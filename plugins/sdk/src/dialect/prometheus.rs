//! Figures that servers publish in the Prometheus text format
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use exposition::{Line, lines};

use crate::{Reading, ServerMetric};

/// The figures with these names, mapped to the names of the contract. A server with several
/// processes or models reports one for each; the sum counts, or for ratios the largest.
pub fn readings(body: &[u8], names: &[(&str, ServerMetric)]) -> Vec<Reading> {
    let text = String::from_utf8_lossy(body);
    let mut readings: Vec<Reading> = Vec::new();
    for Line { name, value, .. } in lines(&text) {
        let known = names.iter().find(|(known, _)| *known == name);
        let Some((_, metric)) = known else { continue };
        let reading = readings.iter_mut().find(|reading| reading.metric == *metric);
        match (reading, metric) {
            (None, _) => readings.push(Reading { metric: *metric, value }),
            (Some(reading), ServerMetric::KvCacheUsage) => {
                reading.value = reading.value.max(value);
            }
            (Some(reading), _) => reading.value += value,
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_added_up_by_name_and_shares_are_not() {
        let text = r#"# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="a}\"{b"} 10.0
vllm:prompt_tokens_total{engine="1",model_name="c"} 2.5e1 1700000000000
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.125
vllm:num_requests_running 3
vllm:num_requests_waiting NaN
vllm:unterminated{a="b 4
"#;
        let names = [
            ("vllm:prompt_tokens_total", ServerMetric::InputTokens),
            ("vllm:kv_cache_usage_perc", ServerMetric::KvCacheUsage),
            ("vllm:num_requests_running", ServerMetric::RunningRequests),
            ("vllm:num_requests_waiting", ServerMetric::WaitingRequests),
            ("vllm:unterminated", ServerMetric::Preemptions),
        ];
        let reading = |metric, value| Reading { metric, value };
        assert_eq!(
            readings(text.as_bytes(), &names),
            [
                reading(ServerMetric::InputTokens, 35.0),
                reading(ServerMetric::KvCacheUsage, 0.25),
                reading(ServerMetric::RunningRequests, 3.0),
            ]
        );
        assert_eq!(readings(b"\xff{", &names), []);
    }
}
