//! Slow clients, silent clients and many clients, and a stop while all of them are connected.

use super::*;

const SOON: Duration = Duration::from_millis(150);

fn end_of(mut client: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest);
    rest
}

#[test]
fn a_head_that_never_ends_is_cut_off() {
    let mut stage =
        TestProxy::with(&["a.example"], &[&[PUBLIC]], ProxyBounds { head: SOON, ..ProxyBounds::default() }, None);
    let answer = end_of(stage.client(b"GET http://a.example/ HTT"));
    assert!(answer.starts_with(b"HTTP/1.1 408 "));
    let server = stage.serve(None, Vec::new());
    let client = stage.tunnel("a.example:443");
    end_of(client);
    assert!(server.join().unwrap().is_empty());
    assert_eq!(stage.stop().traffic.refused(), 2);
}

#[test]
fn a_silent_tunnel_ends() {
    let mut stage =
        TestProxy::with(&["a.example:22"], &[&[PUBLIC]], ProxyBounds { idle: SOON, ..ProxyBounds::default() }, None);
    let server = stage.serve(None, Vec::new());
    assert!(end_of(stage.tunnel("a.example:22")).is_empty());
    assert!(server.join().unwrap().is_empty());
    stage.stop();
}

#[test]
fn a_name_that_is_never_resolved_is_given_up() {
    let (gate, held) = channel();
    let bounds = ProxyBounds { dial: SOON, ..ProxyBounds::default() };
    let stage = TestProxy::with(&["a.example"], &[&[PUBLIC]], bounds, Some(held));
    assert!(stage.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 502 "));
    assert!(stage.untouched());
    drop(gate);
}

#[test]
fn clients_beyond_the_bound_wait_their_turn() {
    let mut stage = TestProxy::with(&[], &[&[PUBLIC]], ProxyBounds { connections: 2, ..ProxyBounds::default() }, None);
    let (first, _second) = (stage.client(b"G"), stage.client(b"G"));
    let mut third = stage.client(b"CONNECT b.example:443 HTTP/1.1\r\n\r\n");
    third.set_read_timeout(Some(SOON)).unwrap();
    assert!(third.read(&mut [0; 1]).is_err(), "a third connection was served");
    drop(first);
    third.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(end_of(third).starts_with(b"HTTP/1.1 403 "));
    stage.stop();
}

#[test]
fn a_stop_ends_connections_in_every_state() {
    let (gate, held): (Sender<()>, _) = channel();
    let mut stage =
        TestProxy::with(&["a.example"], &[&[PUBLIC]], ProxyBounds { connections: 4, ..ProxyBounds::default() }, None);
    let server = stage.server.try_clone().unwrap();
    let serving = thread::spawn(move || {
        let (mut one, _) = server.accept().unwrap();
        one.write_all(b"x").unwrap();
        let (two, _) = server.accept().unwrap();
        let _ = held.recv();
        drop((one, two));
    });
    let quiet = stage.client(b"");
    let halfway = stage.client(b"GET http://");
    let mut talking = stage.tunnel("a.example:443");
    talking.write_all(&client_hello::tests::hello_for("a.example", 5000)).unwrap();
    talking.read_exact(&mut [0; 1]).unwrap();
    let unnamed = stage.tunnel("a.example:443");
    let queued = stage.client(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n");
    let traffic = stage.stop();
    assert_eq!(
        (traffic.traffic.hosts["a.example"].requests, traffic.traffic.hosts["a.example"].bytes_received),
        (1, 1)
    );
    for client in [quiet, halfway, talking, unnamed, queued] {
        assert!(end_of(client).is_empty());
    }
    drop(gate);
    serving.join().unwrap();
}

#[test]
fn a_stop_does_not_wait_for_a_resolver() {
    let (gate, held) = channel();
    let mut stage = TestProxy::with(&["a.example"], &[&[PUBLIC]], ProxyBounds::default(), Some(held));
    let client = stage.client(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n");
    while stage.seen().is_empty() {
        thread::yield_now();
    }
    let proxy = stage.proxy.take().unwrap();
    proxy.stop();
    assert!(end_of(client).is_empty());
    drop(gate);
    while Arc::strong_count(&stage.dialer) > 1 {
        thread::yield_now();
    }
}

#[test]
fn dropping_a_proxy_stops_it() {
    let mut stage = TestProxy::new(&["a.example"], &[&[PUBLIC]]);
    let client = stage.client(b"GET");
    drop(stage.proxy.take());
    assert!(end_of(client).is_empty());
    assert_eq!(Arc::strong_count(&stage.dialer), 1);
}
