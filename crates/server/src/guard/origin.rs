//! Where a request comes from, and whom it believes to be talking to.

use axum::http::{HeaderMap, header};
use std::net::{IpAddr, SocketAddr};

/// The one `Host` header, if there is one and it is text.
pub(super) fn host(headers: &HeaderMap) -> Option<String> {
    let mut all = headers.get_all(header::HOST).iter();
    let host = all.next()?.to_str().ok()?;
    all.next().is_none().then(|| host.to_ascii_lowercase())
}

/// Whether a host is this server: an address in digits (which no foreign domain can be) or
/// `localhost`, with our port. On loopback only loopback addresses.
pub(super) fn is_ours(host: &str, address: SocketAddr) -> bool {
    let name = match host.strip_suffix(&format!(":{}", address.port())) {
        Some(name) => name,
        None if address.port() == 80 => host,
        None => return false,
    };
    if name == "localhost" {
        return true;
    }
    let digits = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip: Option<IpAddr> = match digits {
        Some(inside) => inside.parse().ok().filter(IpAddr::is_ipv6),
        None => name.parse().ok().filter(IpAddr::is_ipv4),
    };
    ip.is_some_and(|ip| ip.is_loopback() || !address.ip().is_loopback())
}

/// Whether a browser, if it is one, says that the request comes from our own page. A link from
/// elsewhere may lead to the page itself.
pub(super) fn same_site(headers: &HeaderMap, host: &str, page: bool) -> bool {
    let own = format!("http://{host}");
    for origin in headers.get_all(header::ORIGIN) {
        if origin.to_str().ok() != Some(own.as_str()) {
            return false;
        }
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("sec-fetch-site") {
        None | Some("same-origin" | "none") => true,
        Some(_) => page && text("sec-fetch-mode") == Some("navigate"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_addresses_of_this_machine_are_hosts() {
        let loopback: SocketAddr = "127.0.0.1:8710".parse().unwrap();
        for ours in ["127.0.0.1:8710", "localhost:8710", "[::1]:8710", "127.0.0.2:8710"] {
            assert!(is_ours(ours, loopback), "{ours}");
        }
        for foreign in [
            "evil.example:8710",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:8710",
            "192.168.0.7:8710",
            "127.0.0.1.nip.io:8710",
            "[127.0.0.1]:8710",
            "::1:8710",
            "",
            ":8710",
        ] {
            assert!(!is_ours(foreign, loopback), "{foreign}");
        }
        let open: SocketAddr = "0.0.0.0:8710".parse().unwrap();
        assert!(is_ours("192.168.0.7:8710", open));
        assert!(!is_ours("intranet.example:8710", open));
    }

    #[test]
    fn other_origins_are_told_by_either_header() {
        let with = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            headers
        };
        let host = "127.0.0.1:8710";
        assert!(same_site(&with(&[]), host, false), "a program, not a browser");
        assert!(same_site(&with(&[("origin", "http://127.0.0.1:8710")]), host, false));
        for foreign in
            ["http://evil.example", "null", "https://127.0.0.1:8710", "http://127.0.0.1:1"]
        {
            let headers = {
                let mut headers = HeaderMap::new();
                headers.insert("origin", HeaderValue::from_str(foreign).unwrap());
                headers
            };
            assert!(!same_site(&headers, host, true), "{foreign}");
        }
        let link = with(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]);
        assert!(same_site(&link, host, true) && !same_site(&link, host, false));
        let image = with(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]);
        assert!(!same_site(&image, host, true));
    }
}
