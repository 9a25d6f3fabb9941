//! Scripts of the mock engine, and bodies of requests to it.

use mock::Script;

use crate::bytes::first;
use crate::scenarios::check_message;

/// A script's text: mistakes have messages with places in it, and a correct script is played.
pub fn mock_script(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Script::parse("script.toml", text) {
        Ok(script) => script.check().expect("a script that was read can be played"),
        Err(error) => check_message(&error, text),
    }
}

/// The routes whose bodies are read, and the content type of each.
const ROUTES: [(&str, &str); 6] = [
    ("/v1/audio/transcriptions", "multipart/form-data; boundary=xx"),
    ("/inference.GRPCInferenceService/ModelStreamInfer", "application/grpc"),
    ("/v1/audio/speech", "application/json"),
    ("/v1/chat/completions", "application/json"),
    ("/v1/completions", "application/json"),
    ("/generate", "application/json"),
];

/// A body for a route that the first byte chooses: it is understood, or refused with a message.
pub fn mock_request(data: &[u8]) {
    let (choice, body) = first(data);
    let (path, content_type) = ROUTES[usize::from(choice) % ROUTES.len()];
    if let Err(message) = mock::understand(path, content_type, body) {
        assert!(!message.is_empty());
        assert!(!message.contains("is built in"), "{path} has a route");
    }
}
