//! Who may ask: hosts, origins, tokens, headers.

mod support;

use server::{ServeError, Settings, Token, bind};
use support::Server;

#[test]
fn beyond_loopback_a_token_is_needed_before_anything_listens() {
    let mut settings = Settings::loopback(0);
    settings.address = "0.0.0.0:0".parse().unwrap();
    assert!(matches!(bind(settings.clone()), Err(ServeError::NoToken(_))));
    settings.token = Some(Token::new("0123456789abcdef").unwrap());
    assert!(bind(settings).is_ok());
}

#[test]
fn a_name_that_somebody_elses_domain_may_resolve_to_is_no_host() {
    let server = Server::plain();
    let port = server.address.port();
    for host in [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "localhost.evil.example:{port}",
        "192.168.1.7:{port}",
        "",
    ] {
        let host = host.replace("{port}", &port.to_string());
        for path in ["/", "/app.js", "/api/version"] {
            let answer = server.request("GET", path, &[("Host", &host)], b"");
            assert!(matches!(answer.status, 400 | 403), "{host:?} {path}: {}", answer.status);
            assert!(!String::from_utf8_lossy(&answer.body).contains("<html"), "{host:?}");
        }
    }
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        assert_eq!(server.request("GET", "/", &[("Host", &host)], b"").status, 200);
    }
    // Two hosts, and none.
    let two = format!("GET / HTTP/1.1\r\nHost: {0}\r\nHost: {0}\r\n\r\n", server.host());
    assert_ne!(server.raw(two.as_bytes()).status, 200);
    assert_ne!(server.raw(b"GET / HTTP/1.1\r\n\r\n").status, 200);
}

#[test]
fn pages_of_other_origins_are_refused() {
    let server = Server::plain();
    let body = br#"{"run":{"noise_multiplier":1,"sample_rate":0.01,"steps":10}}"#;
    let ask =
        |headers: &[(&str, &str)]| server.request("POST", "/api/account", headers, body).status;
    let json = ("Content-Type", "application/json");
    let own = format!("http://{}", server.host());
    assert_eq!(ask(&[json, ("Origin", &own), ("Sec-Fetch-Site", "same-origin")]), 200);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"] {
        assert_eq!(ask(&[json, ("Origin", origin)]), 403, "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        assert_eq!(ask(&[json, ("Sec-Fetch-Site", site)]), 403, "{site}");
    }
    // What a form or a beacon can send without asking first is no question.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        assert_eq!(ask(&[("Content-Type", kind)]), 415, "{kind}");
    }
    // The question whether one may is answered with no.
    let preflight = server.request(
        "OPTIONS",
        "/api/account",
        &[("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")],
        b"",
    );
    assert_eq!(preflight.status, 403);
    assert_eq!(preflight.header("access-control-allow-origin"), None);
}

#[test]
fn every_answer_forbids_foreign_scripts_and_frames() {
    let server = Server::plain();
    for path in ["/", "/app.js", "/app.css", "/icon.svg", "/api/version", "/nothing"] {
        let answer = server.request("GET", path, &[], b"");
        let policy = answer.header("content-security-policy").expect(path).to_owned();
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"));
        assert!(policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(answer.header("access-control-allow-origin").is_none());
    }
    let page = server.request("GET", "/", &[], b"");
    let text = String::from_utf8(page.body).unwrap();
    assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains(" on"));
    for script in text.match_indices("<script") {
        assert!(
            text[script.0..].starts_with("<script type=\"module\" src=\"/"),
            "an inline script"
        );
    }
}

#[test]
fn a_token_guards_everything_and_leaves_the_address() {
    let secret = "correct-horse-battery";
    let server = Server::start(|settings| settings.token = Some(Token::new(secret).unwrap()));
    for path in [
        "/",
        "/app.js",
        "/api/version",
        "/?token=wrong-horse-battery",
        "/api/version?token=correct-horse-battery",
    ] {
        let answer = server.request("GET", path, &[], b"");
        assert_eq!(answer.status, 401, "{path}");
        assert!(!String::from_utf8_lossy(&answer.body).contains(secret));
    }
    let welcome = server.request("GET", &format!("/?token={secret}"), &[], b"");
    assert_eq!((welcome.status, welcome.header("location")), (303, Some("/")));
    let cookie = welcome.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(server.request("GET", "/", &[("Cookie", pair)], b"").status, 200);
    assert_eq!(server.request("GET", "/", &[("Cookie", "dosimeter_1=x")], b"").status, 401);
    let bearer = format!("Bearer {secret}");
    assert_eq!(
        server.request("GET", "/api/version", &[("Authorization", &bearer)], b"").status,
        200
    );
    // A cookie does not help a foreign page.
    let headers = [("Cookie", pair), ("Origin", "http://evil.example")];
    assert_eq!(server.request("GET", "/api/version", &headers, b"").status, 403);
}

#[test]
fn nothing_outside_is_reached_by_a_path() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    let server = Server::of_folder(folder.path().to_owned());
    for path in [
        "/secret.txt",
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/api/experiments/../secret.txt",
        "/api/experiments/%2e%2e%2fsecret.txt",
        "/api/experiments/secret.txt",
        "//etc/passwd",
        "/api/experiments/..%5c..%5csecret.txt",
    ] {
        let answer = server.request("GET", path, &[], b"");
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
        assert!(!String::from_utf8_lossy(&answer.body).contains("secret\n"));
    }
    assert_eq!(server.request("DELETE", "/", &[], b"").status, 405);
}
