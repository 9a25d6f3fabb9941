//! Knowledge of engines: the signs of each one, and the shipped backends and routes that fit it.

use serde_json::Value;

model::names! {
    pub(crate) enum Engine {
        Vllm = "vLLM",
        Sglang = "SGLang",
        Lmdeploy = "LMDeploy",
        Tgi = "TGI",
        LlamaCpp = "llama.cpp",
        Ollama = "Ollama",
        TensorRtLlm = "TensorRT-LLM",
        /// Triton, with the generate extension.
        Triton = "Triton",
        Mock = "runner mock",
        OpenAi = "OpenAI",
        Anthropic = "Anthropic",
        Gemini = "Gemini",
        Cohere = "Cohere",
        Bedrock = "Bedrock",
        Unknown = "unknown",
    }
}

/// A backend and its route, to be tried with an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Try {
    pub(super) engine: Engine,
    pub(super) backend: &'static str,
    /// The value of its key `route`; `None` for its default.
    pub(super) route: Option<&'static str>,
}

const fn pair(engine: Engine, backend: &'static str, route: Option<&'static str>) -> Try {
    Try { engine, backend, route }
}

/// The backends that are tried with each engine, the best first: its own on the default route.
pub(super) const TRIES: &[Try] = {
    use Engine::{
        Anthropic, Bedrock, Cohere, Gemini, LlamaCpp, Lmdeploy, Mock, Ollama, OpenAi, Sglang,
        TensorRtLlm, Tgi, Triton, Unknown, Vllm,
    };
    &[
        pair(Vllm, "vllm", None),
        pair(Vllm, "vllm", Some("chat")),
        pair(Vllm, "anthropic", None),
        pair(Sglang, "sglang", None),
        pair(Sglang, "sglang", Some("completions")),
        pair(Sglang, "sglang", Some("chat")),
        pair(Sglang, "anthropic", None),
        pair(Lmdeploy, "lmdeploy", None),
        pair(Lmdeploy, "lmdeploy", Some("chat")),
        pair(Lmdeploy, "lmdeploy", Some("generate")),
        pair(Tgi, "tgi", None),
        pair(Tgi, "tgi", Some("chat")),
        pair(LlamaCpp, "llamacpp", None),
        pair(LlamaCpp, "llamacpp", Some("chat")),
        pair(LlamaCpp, "openai", Some("completions")),
        pair(Ollama, "ollama", None),
        pair(Ollama, "ollama", Some("chat")),
        pair(Ollama, "openai", None),
        pair(TensorRtLlm, "tensorrt-llm", None),
        pair(TensorRtLlm, "tensorrt-llm", Some("chat")),
        pair(Triton, "tensorrt-llm", Some("generate")),
        pair(Mock, "openai", None),
        pair(Mock, "openai", Some("completions")),
        pair(Mock, "sglang", None),
        pair(OpenAi, "openai", None),
        pair(Anthropic, "anthropic", None),
        pair(Gemini, "gemini", None),
        pair(Cohere, "cohere", None),
        pair(Bedrock, "bedrock", None),
        pair(Unknown, "openai", None),
        pair(Unknown, "openai", Some("completions")),
        pair(Unknown, "anthropic", None),
    ]
};

/// The most routes that are tried with one server.
pub(super) const MOST_TRIES: usize = 4;

/// The hosts of services that are no engine on a machine of the user's: the end of the host's name.
const HOSTS: [(&str, Engine); 6] = [
    ("api.openai.com", Engine::OpenAi),
    ("api.anthropic.com", Engine::Anthropic),
    ("generativelanguage.googleapis.com", Engine::Gemini),
    ("api.cohere.com", Engine::Cohere),
    ("api.cohere.ai", Engine::Cohere),
    ("amazonaws.com", Engine::Bedrock),
];

pub(super) fn hosted(host: &str) -> Option<Engine> {
    let is_below = |name: &str| {
        let above = host.strip_suffix(name);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    };
    let (_, engine) = HOSTS.iter().find(|(name, _)| is_below(name))?;
    Some(*engine)
}

/// The names that engines give the owner of their models in `/v1/models`.
const OWNERS: [(&str, Engine); 7] = [
    ("vllm", Engine::Vllm),
    ("sglang", Engine::Sglang),
    ("lmdeploy", Engine::Lmdeploy),
    ("llamacpp", Engine::LlamaCpp),
    ("library", Engine::Ollama),
    ("tensorrt_llm", Engine::TensorRtLlm),
    ("runner-mock", Engine::Mock),
];

/// The engine that names itself as the owner of the models in an answer to `/v1/models`.
pub(super) fn owner(models: &Value) -> Option<Engine> {
    let owner = models.pointer("/data/0/owned_by")?.as_str()?;
    let (_, engine) = OWNERS.iter().find(|(name, _)| *name == owner)?;
    Some(*engine)
}

/// The engine that names itself in the header `server`.
pub(super) fn server(header: &str) -> Option<Engine> {
    let name = header.split(['/', ' ']).next().unwrap_or_default();
    (name == "llama.cpp").then_some(Engine::LlamaCpp)
}

/// The engine that an answer to `/v1/models` names, and the clues that have its version.
pub(crate) fn named(models: &[u8], header: Option<&str>) -> Option<(Engine, Vec<&'static Clue>)> {
    let models: Option<Value> = serde_json::from_slice(models).ok();
    let engine = models.as_ref().and_then(owner).or_else(|| server(header?))?;
    let clues = CLUES.iter().filter(|clue| clue.engine == engine && clue.version.is_some());
    Some((engine, clues.collect()))
}

/// Backends whose default route is one engine's own, which no other engine has.
const OF_ONE_ENGINE: [(&str, Engine); 4] = [
    ("sglang", Engine::Sglang),
    ("tgi", Engine::Tgi),
    ("llamacpp", Engine::LlamaCpp),
    ("ollama", Engine::Ollama),
];

/// The backend that fits an engine by this name, if a run uses another engine's.
pub(crate) fn fitting(engine: &str, backend: &str) -> Option<&'static str> {
    let (_, own) = OF_ONE_ENGINE.iter().find(|(name, _)| *name == backend)?;
    let is_other = |of: &Try| of.engine.name() == engine && of.engine != *own;
    let fits = TRIES.iter().filter(|of| is_other(of) && of.engine != Engine::Mock);
    fits.map(|of| of.backend).next()
}

/// A route of an engine's own, and the condition on its answer.
pub(crate) struct Clue {
    pub(super) engine: Engine,
    /// The path of a request with GET.
    pub(crate) path: &'static str,
    /// Fields of the answer, JSON pointers; all of them have to be there.
    fields: &'static [&'static str],
    /// Place of the version, if the answer has one.
    version: Option<&'static str>,
    /// True if it shows the engine alone, and not only the version of a known engine.
    pub(super) is_proof: bool,
}

const fn clue(
    (engine, path): (Engine, &'static str),
    fields: &'static [&'static str],
    version: Option<&'static str>,
    is_proof: bool,
) -> Clue {
    Clue { engine, path, fields, version, is_proof }
}

/// The clues that identify engines, in the order in which they are asked for.
pub(super) const CLUES: &[Clue] = {
    use Engine::{LlamaCpp, Mock, Ollama, Sglang, TensorRtLlm, Tgi, Triton, Vllm};
    const VERSION: Option<&str> = Some("/version");
    &[
        // Many services have such a route.
        clue((Vllm, "/version"), &["/version"], VERSION, false),
        clue((TensorRtLlm, "/version"), &["/version"], VERSION, false),
        clue((Mock, "/version"), &["/version"], VERSION, false),
        clue((Sglang, "/server_info"), &["/version", "/model_path"], VERSION, true),
        clue((Sglang, "/get_server_info"), &["/version", "/model_path"], VERSION, true),
        clue((Sglang, "/get_model_info"), &["/model_path", "/is_generation"], None, true),
        clue((Tgi, "/info"), &["/model_id", "/max_total_tokens"], VERSION, true),
        clue((LlamaCpp, "/props"), &["/default_generation_settings"], Some("/build_info"), true),
        clue((Ollama, "/api/version"), &["/version"], VERSION, true),
        clue((Triton, "/v2"), &["/name", "/version", "/extensions"], VERSION, true),
    ]
};

impl Clue {
    /// Reads the version from the answer; `None` if the answer is not this engine's.
    pub(crate) fn read(&self, answer: &Value) -> Option<Option<String>> {
        let holds = self.fields.iter().all(|field| answer.pointer(field).is_some());
        let version = self.version.and_then(|field| answer.pointer(field)?.as_str());
        holds.then(|| version.map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn foreign_backend_is_detected() {
        for (engine, backend, fits) in [
            ("vLLM", "sglang", Some("vllm")),
            ("SGLang", "sglang", None),
            ("SGLang", "vllm", None),
            ("runner mock", "sglang", None),
            ("llama.cpp", "ollama", Some("llamacpp")),
        ] {
            assert_eq!(fitting(engine, backend), fits, "{engine} {backend}");
        }
    }

    #[test]
    fn host_suffix_identifies_the_service() {
        assert_eq!(hosted("api.anthropic.com"), Some(Engine::Anthropic));
        assert_eq!(hosted("bedrock-runtime.eu-west-1.amazonaws.com"), Some(Engine::Bedrock));
        for other in
            ["anthropic.com", "api.anthropic.com.example", "notapi.openai.com", "127.0.0.1"]
        {
            assert_eq!(hosted(other), None, "{other}");
        }
    }

    /// Beginnings of real answers.
    #[test]
    fn own_routes_identify_the_engine() {
        let sglang = json!({"model_path": "m", "version": "0.5.2", "tp_size": 1});
        let sglang_model = json!({"model_path": "m", "tokenizer_path": "m", "is_generation": true});
        let tgi = json!({"model_id": "m", "max_total_tokens": 4096, "version": "3.3.6"});
        let llama = json!({"default_generation_settings": {"n_ctx": 4}, "build_info": "b6000-abc"});
        let triton = json!({"name": "triton", "version": "2.60.0", "extensions": []});
        for (engine, path, answer, version) in [
            (Engine::Vllm, "/version", json!({"version": "0.32.0"}), Some("0.32.0")),
            (Engine::Sglang, "/get_server_info", sglang, Some("0.5.2")),
            (Engine::Sglang, "/get_model_info", sglang_model, None),
            (Engine::Tgi, "/info", tgi, Some("3.3.6")),
            (Engine::LlamaCpp, "/props", llama, Some("b6000-abc")),
            (Engine::Ollama, "/api/version", json!({"version": "0.12.0"}), Some("0.12.0")),
            (Engine::Triton, "/v2", triton, Some("2.60.0")),
        ] {
            let read: Vec<_> = (CLUES.iter())
                .filter(|clue| clue.path == path && clue.is_proof != (path == "/version"))
                .filter_map(|clue| Some((clue.engine, clue.read(&answer)?)))
                .collect();
            let expected = (engine, version.map(str::to_owned));
            assert!(read.contains(&expected), "{path}: {read:?}");
            let proofs = CLUES.iter().filter(|clue| clue.is_proof && clue.path == path);
            for clue in proofs {
                assert_eq!(clue.read(&json!({"detail": "Not Found"})), None, "{path}");
            }
        }
    }

    #[test]
    fn every_engine_has_a_route_to_try() {
        for engine in Engine::ALL {
            let tries = TRIES.iter().filter(|own| own.engine == engine).count();
            assert!((1..=MOST_TRIES).contains(&tries), "{engine:?}: {tries}");
        }
    }

    #[test]
    fn model_owner_names_the_engine() {
        let models = |owner: &str| json!({"data": [{"id": "m", "owned_by": owner}]});
        assert_eq!(owner(&models("lmdeploy")), Some(Engine::Lmdeploy));
        assert_eq!(owner(&models("somebody")), None);
        assert_eq!(owner(&json!({"data": []})), None);
        assert_eq!(server("llama.cpp"), Some(Engine::LlamaCpp));
        assert_eq!(server("uvicorn"), None);
    }
}
