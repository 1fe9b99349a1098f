//! A shared secret for servers that others can reach. It comes in a link once (`/?token=…`),
//! becomes a cookie that scripts cannot read and other sites cannot send, and leaves the
//! address bar; programs send `Authorization: Bearer …`.

use crate::error::ApiError;
use answers::Kind;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// A token; what is kept is its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

/// Why a text cannot be a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("a token needs at least 16 characters")]
    TooShort,
    #[error("a token consists of letters, digits, `-` and `_`")]
    Letters,
}

impl Token {
    /// # Errors
    /// A text that is too short to be a secret, or would need quoting in a link.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        if text.len() < 16 {
            return Err(TokenError::TooShort);
        }
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            return Err(TokenError::Letters);
        }
        Ok(Self(Sha256::digest(text.as_bytes()).into()))
    }

    /// Compares hashes, so that the time taken says nothing about the token.
    fn matches(&self, text: &str) -> bool {
        <[u8; 32]>::from(Sha256::digest(text.as_bytes())) == self.0
    }

    pub(super) fn admit(&self, request: &Request, port: u16) -> Result<(), Box<Response>> {
        let cookie = format!("dosimeter_{port}");
        let headers = request.headers();
        let carried = bearer(headers).into_iter().chain(cookies(headers, &cookie));
        if carried.into_iter().any(|text| self.matches(text)) {
            return Ok(());
        }
        let linked = request
            .uri()
            .query()
            .and_then(|query| query.split('&').find_map(|part| part.strip_prefix("token=")));
        match linked {
            Some(text)
                if request.method() == Method::GET
                    && request.uri().path() == "/"
                    && self.matches(text) =>
            {
                Err(Box::new(welcome(&cookie, text)))
            }
            _ => {
                let error = ApiError::new(
                    StatusCode::UNAUTHORIZED,
                    Kind::BadInput,
                    "a token is needed: open the link that `dosimeter serve` printed, or send \
                     Authorization: Bearer",
                );
                Err(Box::new(error.into_response()))
            }
        }
    }
}

/// The token goes from the address into a cookie.
fn welcome(cookie: &str, token: &str) -> Response {
    let cookie = format!("{cookie}={token}; Path=/; HttpOnly; SameSite=Strict");
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        headers.insert(header::SET_COOKIE, value);
    }
    response
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|all| all.split(';'))
        .filter_map(move |pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_tokens_are_refused() {
        assert_eq!(Token::new("short").unwrap_err(), TokenError::TooShort);
        assert_eq!(Token::new("with spaces and; signs").unwrap_err(), TokenError::Letters);
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.matches("0123456789abcdef") && !token.matches("0123456789abcdeF"));
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
