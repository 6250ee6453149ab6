//! Where a packet and a key may go, and that neither goes anywhere else.

use nf::adapters::http::reach;

use super::*;

#[test]
fn no_redirect_is_followed_and_the_key_goes_nowhere_else() {
    let other = Stub::saying(response("200 OK", "", &whole(Dialect::Openai)));
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        for place in [format!("{}/v1/chat/completions", other.url()), "/v1/elsewhere".to_owned()] {
            let stub = Stub::saying(response(status, &format!("location: {place}\r\n"), ""));
            for dialect in BOTH {
                let failure = failure(&put(&endpoint(dialect, &stub.url()), None, LIMITS));
                assert_eq!((failure.reason, failure.unavailable), ("redirect", false), "{status}");
                assert!(!failure.retryable && !failure.detail.contains(&place), "{failure:?}");
            }
            assert_eq!(stub.requests().len(), 2, "{status}: once for each dialect");
        }
    }
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn what_is_not_there_is_unavailable_and_the_network_gets_no_plain_text() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a place");
    let gone = failure(&put(&endpoint(Dialect::Openai, &format!("http://{closed}")), None, LIMITS));
    assert_eq!((gone.unavailable, gone.reason, gone.retryable), (true, "unreachable", false), "{gone:?}");
    let plain = failure(&put(&endpoint(Dialect::Openai, "http://192.0.2.7:1"), None, LIMITS));
    assert_eq!((plain.unavailable, plain.reason), (true, "insecure"), "{plain:?}");
    assert!(plain.detail.contains("https") && plain.detail.contains("insecure: true"), "{plain:?}");
    // A server that speaks no TLS gets nothing of the packet.
    let clear = Stub::saying(response("200 OK", "", "{}"));
    let url = clear.url().replace("http://", "https://");
    let tls = failure(&put(
        &endpoint(Dialect::Openai, &url),
        None,
        Limits { wall: Duration::from_secs(5), ..LIMITS },
    ));
    assert!(["unreachable", "timeout", "connection_lost"].contains(&tls.reason), "{tls:?}");
    assert_eq!(clear.requests().len(), 0);
}

#[test]
fn a_key_that_comes_back_is_kept_nowhere() {
    let echo = openai(json!({"model": KEY, "id": format!("id-{KEY}")})).to_string();
    let stub = Stub::saying(response("200 OK", &format!("x-request-id: {KEY}\r\n"), &echo));
    let outcome = put(&endpoint(Dialect::Openai, &stub.url()), None, LIMITS);
    assert!(outcome.answer.is_ok() && outcome.witness.model_served.is_none());
    let mut body = openai(json!({}));
    body["choices"][0]["message"]["content"] = format!("{{\"note\": \"{KEY}\"}}").into();
    let stub = Stub::saying(response("200 OK", "", &body.to_string()));
    assert_eq!(failure(&put(&endpoint(Dialect::Openai, &stub.url()), None, LIMITS)).reason, "leaked_key");
    let stop = AtomicBool::new(false);
    let asked = Ask { packet: PACKET, schema: None, model: None, limits: LIMITS, stop: &stop };
    for key in ["two\nlines-of-a-key", "caf\u{e9}-caf\u{e9}"] {
        let outcome = ask(&endpoint(Dialect::Anthropic, &stub.url()), Some(key), &asked);
        assert_eq!(failure(&outcome).reason, "unauthorized");
        assert!(!format!("{outcome:?}").contains(key));
    }
    assert_eq!(stub.requests().len(), 1);
}

#[test]
fn a_look_at_an_endpoint_lists_its_models_and_has_none_answer() {
    let list = json!({"data": [{"id": "model-1"}, {"id": "model-2"}, {"id": KEY}, {"no": 1}]}).to_string();
    let stub = Stub::saying(response("200 OK", "", &list));
    for dialect in BOTH {
        let reached = reach(&endpoint(dialect, &stub.url()), Some(KEY), LONG).expect("an endpoint");
        assert_eq!(reached.models, ["model-1", "model-2"]);
    }
    assert!(stub.requests().iter().all(|request| request.head.starts_with("GET /v1/models HTTP/1.1\r\n")));
    for (status, word) in [("401 No", "401"), ("404 No", "404"), ("500 No", "500"), ("200 OK", "not JSON")] {
        let stub = Stub::saying(response(status, "", KEY));
        let why = reach(&endpoint(Dialect::Openai, &stub.url()), Some(KEY), LONG).expect_err(status);
        assert!(why.contains(word) && !why.contains(KEY), "{why}");
    }
}
