//! Responses of the mock engine: status codes, headers, and the check of the key.

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, SERVER, VARY};
use hyper::{Response, StatusCode};

use super::engine::Engine;
use super::grpc;
use super::stream::ReplyBody;

pub(super) const JSON: &str = "application/json";

/// The page sent instead of a reply if the script says `html`.
const WEB_PAGE: &str = "<!DOCTYPE html>\n<html><head><title>It works!</title></head>\
                        <body><h1>It works!</h1></body></html>\n";

pub(super) fn authorized(engine: &Engine, headers: &HeaderMap) -> bool {
    let Some(key) = &engine.script.api_key else { return true };
    let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    given.and_then(|value| value.strip_prefix(b"Bearer ")) == Some(key.as_bytes())
}

pub(super) fn unauthorized() -> Response<ReplyBody> {
    ready(401, JSON, r#"{"error":"Unauthorized"}"#)
}

pub(super) fn page(status: u16) -> Response<ReplyBody> {
    ready(status, "text/html; charset=utf-8", WEB_PAGE)
}

pub(super) fn ready(
    status: u16,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<ReplyBody> {
    let content_type = HeaderValue::from_static(content_type);
    response(status, Some(content_type), ReplyBody::Ready(Some(body.into())))
}

pub(super) fn response(
    status: u16,
    content_type: Option<HeaderValue>,
    body: ReplyBody,
) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(SERVER, HeaderValue::from_static("runner-mock"));
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    headers.insert(VARY, HeaderValue::from_static("Origin"));
    response
}

pub(super) fn failed_call(code: u32, message: &str) -> Response<ReplyBody> {
    let content_type = HeaderValue::from_static(grpc::CONTENT_TYPE);
    let mut reply = response(200, Some(content_type), ReplyBody::Ready(None));
    reply.headers_mut().extend(grpc::status(code, message));
    reply
}
