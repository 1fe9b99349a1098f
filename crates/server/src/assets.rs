//! The page's files, built from `web/` and part of the program.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

const PAGE: &str = include_str!("../../../web/dist/index.html");
const SCRIPT: &str = include_str!("../../../web/dist/app.js");
const STYLE: &str = include_str!("../../../web/dist/app.css");
const ICON: &str = include_str!("../../../web/dist/icon.svg");

pub(crate) async fn page() -> Response {
    file("text/html; charset=utf-8", PAGE)
}

pub(crate) async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

pub(crate) async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

pub(crate) async fn icon() -> Response {
    file("image/svg+xml", ICON)
}

/// Asked for again with every load, so that a new version is never mixed with an old one.
fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}
