//! Heads that are accepted, heads that are refused, and arbitrary bytes.

use super::*;
use glovebox_record::network::HostError;
use proptest::prelude::*;

fn read(head: &str) -> Result<ProxyRequest, RefusedRequest> {
    parse(head.replace('\n', "\r\n").as_bytes())
}

fn sent(head: &str) -> (String, u64) {
    match read(head).unwrap().kind {
        RequestKind::Single { head, body_bytes } => (String::from_utf8(head).unwrap(), body_bytes),
        RequestKind::Tunnel => panic!("a tunnel"),
    }
}

#[test]
fn a_tunnel_names_host_and_port() {
    let request = read("CONNECT API.example.com:443 HTTP/1.1\nHost: api.example.com:443\nUser-Agent: x\n\n").unwrap();
    assert_eq!((request.host.as_str(), request.port, request.kind), ("api.example.com", 443, RequestKind::Tunnel));
    assert!(read("CONNECT a.b:22 HTTP/1.0\n\n").is_ok());
    assert!(read("CONNECT a.b:443 HTTP/1.1\nHost: a.b\n\n").is_ok());
}

#[test]
fn a_single_request_is_written_anew() {
    let (head, body) = sent(
        "POST HTTP://A.example/x?y=1 HTTP/1.1\nHost: a.example:80\nConnection: keep-alive, X-Secret\nX-Secret: s\n\
         Proxy-Authorization: p\nUpgrade: h2c\nContent-Length: 3\nAccept:  */* \n\n",
    );
    let expected = "POST /x?y=1 HTTP/1.1\nHost: a.example\nConnection: close\nContent-Length: 3\naccept: */*\n\n";
    assert_eq!((head, body), (expected.replace('\n', "\r\n"), 3));
    assert!(sent("GET http://a.b HTTP/1.1\nHost: a.b\n\n").0.starts_with("GET / HTTP/1.1\r\nHost: a.b\r\n"));
    assert!(sent("GET http://a.b?q HTTP/1.1\nHost: a.b\n\n").0.starts_with("GET /?q HTTP/1.1\r\n"));
    assert!(sent("GET http://a.b:8080/ HTTP/1.1\nHost: a.b:8080\n\n").0.contains("Host: a.b:8080\r\n"));
}

#[test]
fn a_listed_content_length_is_not_lost() {
    let (head, body) = sent("POST http://a.b/ HTTP/1.1\nHost: a.b\nConnection: content-length\nContent-Length: 9\n\n");
    assert!(body == 9 && head.contains("Content-Length: 9\r\n"));
}

#[test]
fn addresses_in_any_spelling_are_refused() {
    for target in
        ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "127.0.0.1.", "0177.0.0.1", "[::ffff:1.1.1.1]"]
    {
        let refused = Err(RefusedRequest::Target(HostError::Literal));
        assert_eq!(read(&format!("CONNECT {target}:443 HTTP/1.1\n\n")), refused, "{target}");
        assert_eq!(read(&format!("GET http://{target}/ HTTP/1.1\nHost: {target}\n\n")), refused, "{target}");
    }
    for target in ["a.b.", "localhost", "a@b.c", "a%2eb.c", "a_b.c"] {
        assert_eq!(
            read(&format!("CONNECT {target}:443 HTTP/1.1\n\n")),
            Err(RefusedRequest::Target(HostError::Syntax)),
            "{target}"
        );
    }
}

#[test]
fn a_host_field_equals_the_target() {
    let other =
        |head: &str| assert_eq!(read(head), Err(RefusedRequest::OtherHost(Host::parse("a.b").unwrap())), "{head}");
    other("GET http://a.b/ HTTP/1.1\nHost: c.d\n\n");
    other("GET http://a.b/ HTTP/1.1\nHost: a.b:81\n\n");
    other("GET http://a.b/ HTTP/1.1\nHost:\n\n");
    other("GET http://a.b/ HTTP/1.1\nHost: x@a.b\n\n");
    other("GET http://a.b/ HTTP/1.1\nHost: a.b, c.d\n\n");
    other("CONNECT a.b:443 HTTP/1.1\nHost: c.d:443\n\n");
}

#[test]
fn what_smugglers_use_is_refused() {
    for head in [
        "GET http://a.b/ HTTP/1.1\n\n",
        "GET http://a.b/ HTTP/1.1\nHost: a.b\nHost: a.b\n\n",
        "GET http://a.b/ HTTP/1.1\nHost: a.b\nHost: c.d\n\n",
        "GET http://a.b/ HTTP/1.1\nHost: a.b\n folded\n\n",
        "GET http://a.b/ HTTP/1.1\nHost : a.b\n\n",
        "GET http://a.b/ HTTP/1.1\nHost: a.b\rX: y\n\n",
        "GET http://a.b/ HTTP/1.1\nHost: a.b\0\n\n",
        "POST http://a.b/ HTTP/1.1\nHost: a.b\nContent-Length: 1\nContent-Length: 1\n\n",
        "POST http://a.b/ HTTP/1.1\nHost: a.b\nContent-Length: 1, 1\n\n",
        "POST http://a.b/ HTTP/1.1\nHost: a.b\nContent-Length: +1\n\n",
        "POST http://a.b/ HTTP/1.1\nHost: a.b\nContent-Length: -1\n\n",
        "POST http://a.b/ HTTP/1.1\nHost: a.b\nContent-Length: 99999999999999999999\n\n",
        "POST http://a.b/ HTTP/1.1\nHost: a.b\nTransfer-Encoding: chunked\n\n",
        "CONNECT a.b:443 HTTP/1.1\nContent-Length: 5\n\n",
        "CONNECT a.b HTTP/1.1\n\n",
        "CONNECT a.b:0 HTTP/1.1\n\n",
        "CONNECT a.b:99999 HTTP/1.1\n\n",
        "CONNECT http://a.b:443 HTTP/1.1\n\n",
        "GET / HTTP/1.1\nHost: a.b\n\n",
        "GET https://a.b/ HTTP/1.1\nHost: a.b\n\n",
        "GET ftp://a.b/ HTTP/1.1\nHost: a.b\n\n",
        "GET http://a.b/#x HTTP/1.1\nHost: a.b\n\n",
        "GET http://c.d@a.b/ HTTP/1.1\nHost: a.b\n\n",
        "GET http://a.b\\@c.d/ HTTP/1.1\nHost: a.b\n\n",
        "GET  http://a.b/ HTTP/1.1\nHost: a.b\n\n",
        "get http://a.b/ HTTP/1.1\nHost: a.b\n\n",
        "GET http://a.b/ HTTP/2.0\nHost: a.b\n\n",
        "GET http://a.b/\n\n",
        "PRI * HTTP/2.0\n\n",
        "\n\n",
        "",
    ] {
        assert!(read(head).is_err(), "{head:?}");
    }
    let many = format!("GET http://a.b/ HTTP/1.1\nHost: a.b\n{}\n", "x: y\n".repeat(FIELDS_MAX));
    assert_eq!(read(&many), Err(RefusedRequest::TooLarge(HEAD_BYTES_MAX)));
    let long = format!("GET http://a.b/{} HTTP/1.1\nHost: a.b\n\n", "x".repeat(HEAD_BYTES_MAX));
    assert_eq!(read(&long), Err(RefusedRequest::TooLarge(HEAD_BYTES_MAX)));
    for bare in [
        "GET http://a.b/ HTTP/1.1\nHost: a.b\n\n",
        "GET http://a.b/ HTTP/1.1\nHost: a.b\r\n\r\n",
        "GET http://a.b/ HTTP/1.1\r\nHost: a.b\nX: y\r\n\r\n",
        "\r\nGET http://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n",
    ] {
        assert!(parse(bare.as_bytes()).is_err(), "{bare:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let _ = parse(&bytes);
        let mut ended = bytes.clone();
        ended.extend_from_slice(b"\r\n\r\n");
        let _ = parse(&ended[..end_of_head(&ended).unwrap()]);
    }

    /// An accepted request is forwarded as one head, for the host that was checked.
    #[test]
    fn what_is_sent_on_has_one_host_and_one_end(
        target in "(http://)?[a-c.:@/?#\\[\\]]{0,12}",
        fields in proptest::collection::vec("(Host|X|Connection|Content-Length)[ :]{1,2}[a-c.0-9,\r\n\t]{0,8}", 0..6),
    ) {
        let head = format!("GET {target} HTTP/1.1\r\n{}\r\n\r\n", fields.join("\r\n"));
        let Ok(request) = parse(head.as_bytes()) else { return Ok(()) };
        let RequestKind::Single { head, .. } = request.kind else { panic!("GET is no tunnel") };
        prop_assert_eq!(end_of_head(&head), Some(head.len()));
        let text = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let hosts: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("host: ")).collect();
        prop_assert_eq!(hosts.len(), 1);
        prop_assert_eq!(hosts[0].split(':').next(), Some(request.host.as_str()));
    }
}
