//! Pages with and without their line breaks.

use super::*;
use crate::claim::Tool;

const PAGE: &str = r#"# Optimizing a Model

## Conclusion

| Benchmark Case | baseline | Optimized |
|----------|------|------|
| **Heavy Profile** | Total TPS: 2973.42<br>Mean TPOT(ms): 0.33 | Total TPS: 3025.11 (+1.74%)<br>Mean TPOT(ms): 0.12 |

## Experimental Setup

### Model

Qwen/Qwen3.5-9B

### Hardware

NVIDIA H100

### Engine Version

- vLLM v0.17.1

#### Benchmark Profiles

##### Heavy

```yaml
dataset_name: Random
dataset_input_tokens: 1000
dataset_output_tokens: 2000
request_rate: 1
total_requests: 200
```

## Results

#### vLLM

- Profile: `Heavy`
- Backend Parameters:

```bash
--max-model-len=32768
```

??? info "Benchmark result"
    ```
    ============ Serving Benchmark Result ============
    Successful requests:                     200
    Maximum request concurrency:             18
    Benchmark duration (s):                  214.96
    Mean Latency(s):                         17.48
    P95 TTFT (ms):                           N/A
    ==================================================
    ```

- Summary: `vLLM` Total TPS = 2973.42, `SGLang` Total TPS = 6499.41.
"#;

#[test]
fn reads_the_text_around_a_block() {
    let lines = PAGE.split('\n').map(str::trim).filter(|line| !line.is_empty());
    let one_line = lines.collect::<Vec<_>>().join(" ");
    for text in [PAGE, &one_line] {
        let (claims, quotes) = read("page.md", text).unwrap();
        let [claim] = claims.as_slice() else { panic!("{claims:?}") };
        assert_eq!(claim.tool, Tool::Gpustack);
        assert_eq!(claim.model.as_deref(), Some("Qwen/Qwen3.5-9B"));
        assert_eq!(claim.about.hardware.as_deref(), Some("NVIDIA H100"));
        assert_eq!(claim.about.engine.as_deref(), Some("vllm"));
        assert_eq!(claim.about.engine_version.as_deref(), Some("0.17.1"));
        assert_eq!(claim.about.launch_command.as_deref(), Some("--max-model-len=32768"));
        assert_eq!(claim.scenario.as_deref(), Some("Heavy"));
        assert_eq!(claim.source.caption.as_deref(), Some("Benchmark result"));
        assert_eq!(claim.source.headings, ["Optimizing a Model", "Results", "vLLM"]);
        let settings = &claim.asked;
        let expected = (Some(200), Some(1000), Some(2000));
        assert_eq!((settings.requests, settings.input_tokens, settings.output_tokens), expected);
        assert_eq!((settings.request_rate, settings.max_concurrency), (Some(1.0), Some(18)));
        assert_eq!(claim.value("ttft.p95"), None);
        let words: Vec<&str> = quotes.iter().map(|quote| quote.words.as_str()).collect();
        assert_eq!(quotes.len(), 4, "{words:?}");
        assert!(words[1].starts_with("Heavy Profile, Optimized: Total TPS: 3025.11"), "{words:?}");
        assert_eq!(quotes[1].change, Some(1.74));
        assert!(words[2].contains("`vLLM` Total TPS = 2973.42"), "{words:?}");
    }
}

#[test]
fn flags_are_found_in_pythons_words() {
    let text = "noise Namespace(backend='lmdeploy', model='Qwen/Qwen3-8B-FP8', num_prompts=2000, \
        dataset_name='random', limit={'image': 255, (1, 2): [3]}, random_input_len=1024, random_output_len=1024, \
        random_range_ratio=1.0, request_rate=inf, seed=1, max_concurrency=None)\n\
        ============ Serving Benchmark Result ============\n\
        Traffic request rate: inf\nSuccessful requests: 2000\n=================\n";
    let (claims, _) = read("log.txt", text).unwrap();
    let claim = &claims[0];
    assert_eq!(claim.tool, Tool::Lmdeploy);
    assert_eq!(claim.model.as_deref(), Some("Qwen/Qwen3-8B-FP8"));
    assert_eq!(claim.scenario.as_deref(), Some("random 1024/1024"));
    assert_eq!(claim.asked.output_tokens, Some(1024));
    assert_eq!(claim.asked.request_rate, Some(f64::INFINITY));
    assert_eq!((claim.asked.seed, claim.asked.max_concurrency), (Some(1), None));
}
