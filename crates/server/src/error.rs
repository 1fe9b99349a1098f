//! Why a request was not answered, as a document: `dosimeter.error/1`.

use accounting::AccountingError;
use audit::AuditError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use vocabulary::RunError;

/// A refusal with its status. `code` is what the command line would have exited with.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: u8,
    message: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: u8, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// The question is malformed (exit code 2).
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, 2, message)
    }

    /// The server does not do this for this visitor.
    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, 2, message)
    }

    pub(crate) fn not_found(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, 2, message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than the {limit} bytes that are read");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, 2, message)
    }

    pub(crate) fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            4,
            "too many questions are being worked on; ask again in a moment",
        )
    }

    pub(crate) fn too_slow(seconds: u64) -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            4,
            format!(
                "no answer within {seconds} s: this run is in a region where certifying takes \
                 long; the command line has no such limit"
            ),
        )
    }

    /// A bug: the computation panicked.
    pub(crate) fn bug() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, 1, "a bug: the computation failed")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let document = json!({
            "schema": "dosimeter.error/1",
            "error": self.message,
            "exit_code": self.code,
        });
        let mut response = (self.status, document.to_string()).into_response();
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

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        Self::bad_input(error.to_string())
    }
}

impl From<AccountingError> for ApiError {
    fn from(error: AccountingError) -> Self {
        match &error {
            AccountingError::OutsideDomain(_) | AccountingError::NotCertified(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, 5, error.to_string())
            }
            AccountingError::Unsupported(_) | AccountingError::InvalidInput(_) => {
                Self::bad_input(error.to_string())
            }
        }
    }
}

impl From<AuditError> for ApiError {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Accounting(error) => error.into(),
            other => Self::bad_input(other.to_string()),
        }
    }
}
