//! Refused requests: for them, no name is looked up, no host is dialled and nothing is sent.

use super::*;

#[test]
fn an_unlisted_host_is_refused_with_the_grant_and_never_looked_up() {
    let mut stage = TestProxy::new(&["api.example.com"], &[&[PUBLIC]]);
    let answer = stage.ask("CONNECT evil.example:443 HTTP/1.1\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("add `\"evil.example\"` to the list of"),
        "{answer}"
    );
    let answer = stage.ask("GET http://api.example.com:8080/ HTTP/1.1\r\nHost: api.example.com:8080\r\n\r\n");
    assert!(answer.contains("add `\"api.example.com:8080\"` to the list of"), "{answer}");
    assert!(!answer.contains("[\""), "no list that lacks what is allowed: {answer}");
    let bare = stage.ask("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert!(bare.starts_with("HTTP/1.1 403 "), "{bare}");
    assert!(stage.seen().is_empty() && stage.untouched());
    let traffic = stage.stop();
    assert_eq!(
        (traffic.traffic.refused(), traffic.traffic.hosts["evil.example"].refused, traffic.refusals.len()),
        (3, 1, 3)
    );
}

#[test]
fn addresses_and_other_spellings_are_refused() {
    let mut stage = TestProxy::new(&["api.example.com"], &[&[PUBLIC]]);
    for target in ["127.0.0.1", "2130706433", "0x7f000001", "0177.1", "[::1]", "169.254.169.254", "127.0.0.1."] {
        let answer = stage.ask(&format!("CONNECT {target}:443 HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("IP address"), "{target}: {answer}");
    }
    let answer = stage.ask("CONNECT api.example.com.:443 HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(stage.seen().is_empty() && stage.untouched());
    assert_eq!(stage.stop().traffic.others.refused, 8);
}

#[test]
fn a_name_that_points_inside_is_refused() {
    for inside in
        ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.1.1", "::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]
    {
        for answers in [vec![inside], vec![PUBLIC, inside]] {
            let mut stage = TestProxy::new(&["a.example"], &[&answers]);
            let answer = stage.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("no stage may reach"), "{inside}: {answer}");
            assert_eq!(stage.seen(), ["a.example"], "nothing was dialled");
            assert!(stage.untouched());
            stage.stop();
        }
    }
}

#[test]
fn a_name_is_resolved_once_and_that_answer_is_dialled() {
    let mut stage = TestProxy::new(&["a.example"], &[&[PUBLIC], &["127.0.0.1"]]);
    let server = stage.serve(None, Vec::new());
    let mut client = stage.tunnel("a.example:443");
    client.write_all(&client_hello::tests::hello_for("a.example", 5000)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    server.join().unwrap();
    assert_eq!(stage.seen(), ["a.example", &format!("{PUBLIC}:443")]);
    let answer = stage.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n");
    assert!(answer.contains("loopback"), "the next connection meets the rebound name: {answer}");
    assert_eq!(stage.seen().len(), 3);
    stage.stop();
}

#[test]
fn a_tunnel_to_the_port_of_tls_carries_tls_for_that_name() {
    let hellos = [
        client_hello::tests::hello_for("b.example", 5000),
        client_hello::tests::hello_for("a.example.evil", 5000),
        client_hello::tests::hello_for("127.0.0.1", 5000),
        b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_vec(),
        vec![22, 3, 1, 0, 2, 1, 0xff],
    ];
    for first in hellos {
        let mut stage = TestProxy::new(&["a.example", "b.example"], &[&[PUBLIC]]);
        let server = stage.serve(None, Vec::new());
        let mut client = stage.tunnel("a.example:443");
        client.write_all(&first).unwrap();
        // The last request is not complete, but it is already too long.
        if first.len() == 7 {
            client.write_all(&[0; 17]).unwrap();
        }
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer == [21, 3, 3, 0, 2, 2, 112], "{answer:?}");
        assert!(server.join().unwrap().is_empty(), "bytes reached the server before the name was known");
        let traffic = stage.stop();
        assert_eq!((traffic.traffic.hosts["a.example"].requests, traffic.traffic.hosts["a.example"].refused), (0, 1));
        assert!(traffic.refusals[0].reason.contains("must begin with TLS for that host"), "{:?}", traffic.refusals);
    }
}

#[test]
fn a_host_field_is_the_target_and_ports_keep_their_protocol() {
    let mut stage = TestProxy::new(&["a.example", "b.example"], &[&[PUBLIC]]);
    for (request, status) in [
        ("GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", 403),
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n", 403),
        ("CONNECT a.example:80 HTTP/1.1\r\n\r\n", 403),
        ("GET http://a.example:443/ HTTP/1.1\r\nHost: a.example:443\r\n\r\n", 403),
        ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
        ("\x05\x01\x00\r\n\r\n", 400),
    ] {
        let answer = stage.ask(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    let long = stage.ask(&format!("GET http://a.example/ HTTP/1.1\r\nX: {}", "x".repeat(20_000)));
    assert!(long.starts_with("HTTP/1.1 431 "), "{long}");
    assert!(stage.seen().is_empty() && stage.untouched());
    stage.stop();
}
