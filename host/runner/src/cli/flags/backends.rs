//! The names that `vllm bench serve` and SGLang's client have for backends, and the routes that
//! `--endpoint` chooses.
//!
//! Such a name is a shipped plugin with a route of its configuration. This module owns both
//! tables; [`settle`](super::settle) owns their changes to a scenario.

/// A name that other tools have for a backend.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// The name, as `--backend` takes it.
    pub name: &'static str,
    /// The plugin: `openai` is backends/openai.wasm.
    pub plugin: &'static str,
    /// The value of `route` in the plugin's configuration.
    pub route: Option<&'static str>,
    pub output: Output,
}

/// The kind of output of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// It continues the prompt.
    Answers,
    /// It makes vectors of the prompt's texts.
    Vectors,
    /// It ranks the prompt's texts.
    Orders,
    /// It transcribes the prompt's sound.
    Transcripts,
}

const fn answers(name: &'static str, plugin: &'static str, route: &'static str) -> Alias {
    Alias { name, plugin, route: Some(route), output: Output::Answers }
}

const fn transcripts(name: &'static str, plugin: &'static str) -> Alias {
    Alias { output: Output::Transcripts, ..answers(name, plugin, TRANSCRIPTIONS) }
}

const fn pooling(name: &'static str, plugin: &'static str, output: Output) -> Alias {
    Alias { name, plugin, route: None, output }
}

/// The value of `route` for the text of a sound.
const TRANSCRIPTIONS: &str = "transcriptions";

/// Every alias. A plugin's own name is none: it means the plugin with its usual route.
pub const ALIASES: [Alias; 16] = [
    transcripts("openai-audio", "openai"),
    answers("openai-chat", "openai", "chat"),
    answers("openai-completions", "openai", "completions"),
    answers("openai-responses", "openai", "responses"),
    pooling("openai-embeddings", "openai", Output::Vectors),
    pooling("infinity-embeddings", "openai", Output::Vectors),
    answers("vllm-chat", "vllm", "chat"),
    pooling("vllm-embedding", "vllm", Output::Vectors),
    pooling("vllm-pooling", "vllm", Output::Vectors),
    pooling("vllm-rerank", "vllm", Output::Orders),
    answers("sglang-native", "sglang", "generate"),
    answers("sglang-oai", "sglang", "completions"),
    answers("sglang-oai-chat", "sglang", "chat"),
    pooling("sglang-embedding", "sglang", Output::Vectors),
    answers("lmdeploy-chat", "lmdeploy", "chat"),
    answers("trt", "tensorrt-llm", "generate"),
];

/// Other tools' names without a plugin here, with their replacements.
#[rustfmt::skip]
pub const REFUSED: [(&str, &str); 6] = [
    ("openai-embeddings-chat", "vectors of chat messages are not measured; vectors of texts are: --backend openai-embeddings"),
    ("openai-embeddings-clip", "vectors of images are not measured; vectors of texts are: --backend openai-embeddings"),
    ("openai-embeddings-vlm2vec", "vectors of images are not measured; vectors of texts are: --backend openai-embeddings"),
    ("infinity-embeddings-clip", "vectors of images are not measured; vectors of texts are: --backend infinity-embeddings"),
    ("gserver", "gRPC is not spoken; benchmark SGLang's HTTP server: --backend sglang"),
    ("truss", "describe its route with a plugin of your own (`runner plugin new backend truss`)"),
];

/// A path of a backend, and the key of its configuration that chooses it.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub plugin: &'static str,
    /// The path; `MODEL` stands for any one segment.
    pub path: &'static str,
    /// The value of `route` for it; absent where the dataset's prompts choose it.
    pub route: Option<&'static str>,
    pub output: Output,
    /// True if the path before it is the plugin's `prefix`, and no part of the base URL.
    pub bare: bool,
}

const fn route(plugin: &'static str, path: &'static str, route: &'static str) -> Route {
    Route { plugin, path, route: Some(route), output: Output::Answers, bare: false }
}

const fn transcribes(plugin: &'static str, path: &'static str) -> Route {
    Route { output: Output::Transcripts, ..route(plugin, path, TRANSCRIPTIONS) }
}

const fn bare(route: Route) -> Route {
    Route { bare: true, ..route }
}

const fn pools(plugin: &'static str, path: &'static str, output: Output) -> Route {
    Route { plugin, path, route: None, output, bare: false }
}

/// The routes of the shipped backends, the usual one first.
pub static ROUTES: [Route; 42] = [
    route("openai", "/v1/chat/completions", "chat"),
    route("openai", "/v1/completions", "completions"),
    route("openai", "/v1/responses", "responses"),
    transcribes("openai", "/v1/audio/transcriptions"),
    pools("openai", "/v1/embeddings", Output::Vectors),
    pools("openai", "/v1/rerank", Output::Orders),
    bare(route("openai", "/chat/completions", "chat")),
    bare(route("openai", "/completions", "completions")),
    bare(route("openai", "/responses", "responses")),
    bare(transcribes("openai", "/audio/transcriptions")),
    bare(pools("openai", "/embeddings", Output::Vectors)),
    bare(pools("openai", "/rerank", Output::Orders)),
    route("vllm", "/v1/completions", "completions"),
    route("vllm", "/v1/chat/completions", "chat"),
    route("vllm", "/v1/responses", "responses"),
    transcribes("vllm", "/v1/audio/transcriptions"),
    pools("vllm", "/v1/embeddings", Output::Vectors),
    pools("vllm", "/v1/rerank", Output::Orders),
    route("sglang", "/generate", "generate"),
    route("sglang", "/v1/completions", "completions"),
    route("sglang", "/v1/chat/completions", "chat"),
    pools("sglang", "/v1/embeddings", Output::Vectors),
    pools("sglang", "/v1/rerank", Output::Orders),
    route("lmdeploy", "/v1/completions", "completions"),
    route("lmdeploy", "/v1/chat/completions", "chat"),
    route("lmdeploy", "/generate", "generate"),
    route("tgi", "/generate_stream", "generate"),
    route("tgi", "/generate", "generate"),
    route("tgi", "/v1/chat/completions", "chat"),
    route("llamacpp", "/completion", "completion"),
    route("llamacpp", "/v1/chat/completions", "chat"),
    pools("llamacpp", "/v1/embeddings", Output::Vectors),
    route("ollama", "/api/generate", "generate"),
    route("ollama", "/api/chat", "chat"),
    route("tensorrt-llm", "/v1/completions", "completions"),
    route("tensorrt-llm", "/v1/chat/completions", "chat"),
    route("tensorrt-llm", "/v2/models/MODEL/generate_stream", "generate"),
    route("tensorrt-llm", "/v2/models/MODEL/generate", "generate"),
    pools("cohere", "/v2/embed", Output::Vectors),
    pools("cohere", "/v2/rerank", Output::Orders),
    // The only routes for answers of their backends, which need no key.
    pools("cohere", "/v2/chat", Output::Answers),
    pools("anthropic", "/v1/messages", Output::Answers),
];

/// The ports of this machine at which the shipped backends' engines listen by default.
const PORTS: [(&str, u16); 8] = [
    ("openai", 8000),
    ("vllm", 8000),
    ("sglang", 30000),
    ("lmdeploy", 23333),
    ("tgi", 8080),
    ("llamacpp", 8080),
    ("ollama", 11434),
    ("tensorrt-llm", 8000),
];

/// The backend and route that `--endpoint` chooses.
#[derive(Debug, PartialEq, Eq)]
pub struct RouteChoice {
    /// The value of `route` in the plugin's configuration.
    pub route: Option<&'static str>,
    pub output: Output,
    /// The text before the backend's own path.
    pub before: String,
    /// True if this text is `prefix` in the plugin's configuration.
    pub bare: bool,
    pub model: Option<String>,
}

pub fn alias(name: &str) -> Option<&'static Alias> {
    ALIASES.iter().find(|alias| alias.name == name)
}

pub fn shipped_aliases() -> impl Iterator<Item = &'static Alias> {
    let ships = |alias: &&Alias| shipped::has_plugin(&file(alias.plugin));
    ALIASES.iter().filter(ships)
}

pub fn file(plugin: &str) -> String {
    format!("backends/{plugin}.wasm")
}

/// Returns `route` of a shipped backend for conversations, where it has several routes.
pub fn chat_route(plugin: &str) -> Option<&'static str> {
    first(plugin, |route| route.route == Some("chat"))
}

/// Returns `route` of a shipped backend for the text of sounds, where it has one.
pub fn transcription_route(plugin: &str) -> Option<&'static str> {
    first(plugin, |route| route.output == Output::Transcripts)
}

fn first(plugin: &str, fits: fn(&Route) -> bool) -> Option<&'static str> {
    ROUTES.iter().find(|route| route.plugin == plugin && fits(route))?.route
}

pub fn port(plugin: &str) -> Option<u16> {
    PORTS.iter().find_map(|(known, port)| (*known == plugin).then_some(*port))
}

/// Finds the route of a backend that a path on the server belongs to, or names its routes.
pub fn route_of(plugin: &str, endpoint: &str) -> Result<RouteChoice, String> {
    let endpoint = format!("/{}", endpoint.trim_matches('/'));
    let own: Vec<&Route> = ROUTES.iter().filter(|route| route.plugin == plugin).collect();
    if own.is_empty() {
        return Err(format!(
            "the routes of `{plugin}` are not known here; choose one by its configuration, as in --set backend.config.route=chat"
        ));
    }
    let matching = own.iter().filter_map(|route| {
        let (before, model) = ends_with(&endpoint, route.path)?;
        Some((route, before, model))
    });
    let longest = matching.max_by_key(|(route, ..)| route.path.len());
    let Some((route, before, model)) = longest else {
        let paths = own.iter().filter(|route| !route.bare);
        let paths: Vec<&str> = paths.map(|route| route.path).collect();
        return Err(format!(
            "the backend `{plugin}` has no route `{endpoint}`; it has {}",
            paths.join(", ")
        ));
    };
    Ok(RouteChoice {
        route: route.route,
        output: route.output,
        before: before.to_owned(),
        bare: route.bare,
        model: model.map(str::to_owned),
    })
}

/// The text before a path at the end of an endpoint, and the segment in the place of `MODEL`.
fn ends_with<'e>(endpoint: &'e str, path: &str) -> Option<(&'e str, Option<&'e str>)> {
    let Some((first, last)) = path.split_once("MODEL") else {
        return Some((endpoint.strip_suffix(path)?, None));
    };
    let rest = endpoint.strip_suffix(last)?;
    let (before, model) = rest.rsplit_once('/')?;
    let before = before.strip_suffix(first.trim_end_matches('/'))?;
    (!model.is_empty()).then_some((before, Some(model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_chooses_its_route_and_keeps_its_prefix() {
        for (plugin, endpoint, route, before, bare) in [
            ("vllm", "/v1/completions", Some("completions"), "", false),
            ("vllm", "/tenant/v1/chat/completions/", Some("chat"), "/tenant", false),
            ("sglang", "generate", Some("generate"), "", false),
            ("openai", "/api/v3/chat/completions", Some("chat"), "/api/v3", true),
            ("openai", "/api/v1/completions", Some("completions"), "/api", false),
            ("vllm", "/v1/embeddings", None, "", false),
        ] {
            let choice = route_of(plugin, endpoint).unwrap_or_else(|words| panic!("{words}"));
            let found = (choice.route, &*choice.before, choice.bare);
            assert_eq!(found, (route, before, bare), "{plugin} {endpoint}");
        }
        let triton = route_of("tensorrt-llm", "/v2/models/ensemble/generate_stream");
        let triton = triton.unwrap_or_else(|words| panic!("{words}"));
        assert_eq!(triton.model.as_deref(), Some("ensemble"));
        assert_eq!((triton.route, &*triton.before), (Some("generate"), ""));
    }

    #[test]
    fn conversations_have_a_route_where_there_are_several() {
        for (plugin, route) in
            [("vllm", Some("chat")), ("ollama", Some("chat")), ("anthropic", None)]
        {
            assert_eq!(chat_route(plugin), route, "{plugin}");
        }
    }

    #[test]
    fn refuses_an_unknown_path_and_lists_the_routes() {
        let refused = route_of("lmdeploy", "/v1/messages").unwrap_err();
        assert_eq!(
            refused,
            "the backend `lmdeploy` has no route `/v1/messages`; it has /v1/completions, /v1/chat/completions, /generate"
        );
        assert!(route_of("mine", "/v1/messages").is_err());
        assert!(route_of("tensorrt-llm", "/v2/models//generate").is_err());
    }

    #[test]
    fn names_are_no_plugins_and_occur_once() {
        for alias in &ALIASES {
            assert!(!shipped::has_plugin(&file(alias.name)), "{alias:?}");
            let same = ALIASES.iter().filter(|other| other.name == alias.name);
            assert_eq!(same.count(), 1, "{alias:?}");
            let routes = ROUTES.iter().filter(|route| route.plugin == alias.plugin);
            let known = routes.clone().any(|route| route.route == alias.route);
            assert!(known, "{alias:?}");
        }
    }
}
