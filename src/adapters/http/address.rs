//! The address of an endpoint, read strictly: which host it is and whether that host is this machine. Looks
//! up no name and calls nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes that an address has at most.
const MAX: usize = 1024;

/// Where an endpoint is: scheme, host, port and the path before `/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    secure: bool,
    host: String,
    port: Option<u16>,
    path: String,
}

impl Address {
    /// Reads `http(s)://HOST[:PORT][/PATH]`, with or without `/v1` at its end. A user, a password, a query
    /// and a fragment have no place in it: they are where keys leak.
    ///
    /// # Errors
    /// In words, what is wrong; never the address itself, which may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{why}; want https://HOST[:PORT][/PATH]"));
        if text.len() > MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("it has spaces, characters outside ASCII or over 1024 bytes");
        }
        let lower = text.to_ascii_lowercase();
        let (secure, skip) = match (lower.starts_with("https://"), lower.starts_with("http://")) {
            (true, _) => (true, "https://".len()),
            (_, true) => (false, "http://".len()),
            _ => return wrong("it begins with neither https:// nor http://"),
        };
        let rest = &text[skip..];
        if rest.contains('@') {
            return Err(
                "it holds a user or a password: a key stands in a variable, named by key_env".to_owned()
            );
        }
        if rest.contains(['?', '#', '\\', '%']) {
            return wrong("it holds a query, a fragment or an escape");
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((inside, after)) if inside.parse::<Ipv6Addr>().is_ok() => {
                (format!("[{}]", inside.to_ascii_lowercase()), after)
            }
            Some(_) => return wrong("its host in brackets is no IPv6 address"),
            None => {
                let (name, after) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
                (name.to_ascii_lowercase(), after)
            }
        };
        let named = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if host.is_empty() || !(host.starts_with('[') || host.bytes().all(named)) {
            return wrong("its host is no name");
        }
        let port = match port.strip_prefix(':').map(str::parse::<u16>) {
            None if port.is_empty() => None,
            Some(Ok(number)) if number > 0 => Some(number),
            _ => return wrong("its port is no number from 1 to 65535"),
        };
        if path.split('/').any(|part| part == "." || part == "..") {
            return wrong("its path holds . or ..");
        }
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path).to_owned();
        Ok(Self { secure, host, port, path })
    }

    /// Whether the host is this machine: an address of 127/8, `::1`, or `localhost`, of which the call itself
    /// still checks that it resolves to nothing else.
    pub fn is_loopback(&self) -> bool {
        if self.host == "localhost" {
            return true;
        }
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => address.octets()[0] == Ipv4Addr::LOCALHOST.octets()[0],
            Ok(IpAddr::V6(address)) => address == Ipv6Addr::LOCALHOST,
            Err(_) => false,
        }
    }

    /// Refuses to send a packet in clear text over a network.
    ///
    /// # Errors
    /// In words, with the way out.
    pub fn allowed(&self, insecure: bool) -> Result<(), String> {
        if self.secure || insecure || self.is_loopback() {
            return Ok(());
        }
        Err(format!(
            "plain http goes to this machine only, and {} is another one; use https, or set insecure: true",
            self.host
        ))
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{scheme}://{}{port}", self.host)
    }

    /// The whole address of something below `/v1`.
    pub fn below_v1(&self, tail: &str) -> String {
        format!("{}{}/v1/{tail}", self.origin(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_or_without_v1() {
        for (text, whole) in [
            ("https://api.example.org", "https://api.example.org/v1/models"),
            ("HTTPS://API.Example.org/v1/", "https://api.example.org/v1/models"),
            ("http://localhost:8080/v1", "http://localhost:8080/v1/models"),
            ("http://[::1]:8080/", "http://[::1]:8080/v1/models"),
            ("https://gate.example.org/openai/v1", "https://gate.example.org/openai/v1/models"),
            ("https://gate.example.org/some_path/", "https://gate.example.org/some_path/v1/models"),
        ] {
            assert_eq!(Address::parse(text).unwrap().below_v1("models"), whole, "{text}");
        }
    }

    #[test]
    fn what_could_hide_a_key_or_another_host_is_refused_and_not_repeated() {
        for text in [
            "",
            "api.example.org",
            "ftp://example.org",
            "file:///etc/passwd",
            "https://",
            "https:///v1",
            "https://user:word@example.org",
            "https://word@example.org/v1",
            "https://example.org/v1@127.0.0.1",
            "https://example.org?key=word",
            "https://example.org/#word",
            "https://example.org\\@127.0.0.1/",
            "https://exa mple.org",
            "https://example.org/\n",
            "https://ex%61mple.org",
            "https://example.org:0",
            "https://example.org:65536",
            "https://example.org:x",
            "https://[::1",
            "https://[127.0.0.1]",
            "https://example.org/a/../v1",
            "https://m\u{fc}nchen.de",
        ] {
            let why = Address::parse(text).expect_err(text);
            assert!(!why.contains("word@") && !why.contains("key=word"), "{text}: {why}");
        }
    }

    #[test]
    fn plain_http_goes_to_this_machine_only() {
        for (text, local) in [
            ("http://127.0.0.1:1", true),
            ("http://127.8.9.1", true),
            ("http://LocalHost:1", true),
            ("http://[::1]:1", true),
            ("http://128.0.0.1", false),
            ("http://0.0.0.0", false),
            ("http://127.1", false),
            ("http://2130706433", false),
            ("http://0x7f000001", false),
            ("http://localhost.example.org", false),
            ("http://127.0.0.1.example.org", false),
            ("http://localhost.", false),
            ("http://[::ffff:127.0.0.1]", false),
            ("http://192.168.0.5", false),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.is_loopback(), local, "{text}");
            assert_eq!(address.allowed(false).is_ok(), local, "{text}");
            assert!(address.allowed(true).is_ok(), "{text}");
        }
        assert!(Address::parse("https://192.168.0.5").unwrap().allowed(false).is_ok());
    }
}
