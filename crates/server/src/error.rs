//! Why a request was not answered, as a document: `dosimeter.error/1`.

use answers::{Kind, Refusal};
use audit::AuditError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A refusal with its status.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    refusal: Refusal,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, kind: Kind, message: impl Into<String>) -> Self {
        Self { status, refusal: Refusal::new(kind, message) }
    }

    /// The question is malformed (exit code 2).
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Kind::BadInput, message)
    }

    /// The server does not do this for this visitor.
    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, Kind::BadInput, message)
    }

    pub(crate) fn not_found(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, Kind::BadInput, message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than the {limit} bytes that are read");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Kind::BadInput, message)
    }

    pub(crate) fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Kind::Incomplete,
            "too many questions are being worked on; ask again in a moment",
        )
    }

    pub(crate) fn too_slow(seconds: u64) -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            Kind::Incomplete,
            format!(
                "no answer within {seconds} s: this run is in a region where certifying takes \
                 long; the command line has no such limit"
            ),
        )
    }

    /// A bug: the computation panicked.
    pub(crate) fn bug() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Bug, "a bug: the computation failed")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let document = answers::text(&self.refusal.document());
        let mut response = (self.status, document).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        // What was not read of the body must not be taken for the next request.
        if self.status == StatusCode::PAYLOAD_TOO_LARGE
            || self.status == StatusCode::REQUEST_TIMEOUT
        {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// What `answers` refuses, with the status of its kind.
impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.kind {
            Kind::BadInput | Kind::Unsupported => StatusCode::BAD_REQUEST,
            Kind::NotCertified => StatusCode::UNPROCESSABLE_ENTITY,
            Kind::Incomplete | Kind::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Bug => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, refusal }
    }
}

impl From<AuditError> for ApiError {
    fn from(error: AuditError) -> Self {
        Refusal::from(error).into()
    }
}
