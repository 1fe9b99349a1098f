//! Who may ask. Every request passes here first.
//!
//! - `Host` must be an address of this machine (or `localhost`), never a name that somebody's
//!   domain may resolve to: that is what DNS rebinding needs.
//! - A page of another origin is refused: `Origin`, when a browser sends it, must be ours, and
//!   `Sec-Fetch-Site` must not say otherwise. Only the page itself may be reached by a link.
//! - With a token, every request must carry it.
//! - Every answer forbids scripts, styles and connections from anywhere else, framing, and
//!   guessing of types.

mod origin;
mod token;

pub use token::{Token, TokenError};

use crate::error::ApiError;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;
use std::sync::Arc;

/// What the guard knows.
#[derive(Debug)]
pub(crate) struct Guard {
    address: SocketAddr,
    token: Option<Token>,
}

impl Guard {
    pub(crate) fn new(address: SocketAddr, token: Option<Token>) -> Self {
        Self { address, token }
    }

    fn admit(&self, request: &Request) -> Result<(), Box<Response>> {
        let refuse = |error: ApiError| Err(Box::new(error.into_response()));
        let headers = request.headers();
        let host = match origin::host(headers) {
            Some(host) if origin::is_ours(&host, self.address) => host,
            _ => return refuse(ApiError::forbidden("this Host is not served here")),
        };
        let reading = request.method() == Method::GET || request.method() == Method::HEAD;
        let page = reading && !request.uri().path().starts_with("/api/");
        if !origin::same_site(headers, &host, page) {
            return refuse(ApiError::forbidden("requests from pages of other origins are refused"));
        }
        match &self.token {
            Some(token) => token.admit(request, self.address.port()),
            None => Ok(()),
        }
    }
}

/// The middleware around everything.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let api = request.uri().path().starts_with("/api/");
    let softly = api && request.headers().get("prefer").is_some_and(|value| value == SOFTLY);
    let mut response = match guard.admit(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => *refusal,
    };
    if softly && REFUSALS.contains(&response.status()) {
        *response.status_mut() = StatusCode::OK;
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if api || !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// A page that asks so gets refusals of the core with status 200: a browser writes any other
/// into its console as a failure of the page, and a refusal is an answer.
const SOFTLY: &str = "status=200";
const REFUSALS: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY, StatusCode::GATEWAY_TIMEOUT];

const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];
