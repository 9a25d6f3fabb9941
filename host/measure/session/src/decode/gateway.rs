//! The overhead that a gateway states in a reply's header, whatever dialect stands behind it.

/// Header fields of gateways, each a number of milliseconds: LiteLLM's
/// (docs.litellm.ai, "Response Headers"), and Kong's time before the request went on.
const FIELDS: [&str; 2] = ["x-litellm-overhead-duration-ms", "x-kong-proxy-latency"];

/// The overhead in a reply's header, in microseconds; `None` if none is stated.
pub(super) fn overhead(headers: &[(String, String)]) -> Option<u64> {
    let named = |field: &&str| headers.iter().find(|(name, _)| name == *field);
    let (_, value) = FIELDS.iter().find_map(named)?;
    let milliseconds: f64 = value.trim().parse().ok()?;
    let stated = milliseconds.is_finite() && milliseconds >= 0.0;
    stated.then_some((milliseconds * 1e3).round() as u64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_gateway_states_milliseconds() {
        for (name, value, micros) in [
            ("x-litellm-overhead-duration-ms", "12.345", Some(12_345)),
            ("x-kong-proxy-latency", " 3 ", Some(3_000)),
            ("x-litellm-overhead-duration-ms", "None", None),
            ("x-litellm-overhead-duration-ms", "-1", None),
            ("x-litellm-overhead-duration-ms", "inf", None),
            ("x-envoy-upstream-service-time", "3", None),
        ] {
            let headers = [("date".into(), "now".into()), (name.into(), value.into())];
            assert_eq!(super::overhead(&headers), micros, "{name}: {value}");
        }
    }
}
