//! Requests as they should be and as they should not, and clients that hang.

use std::io::{Read, Write};

use ackclock_scenario::Scenario;

use super::*;

const SCENARIO: &str = "schema = 1\n[run]\nduration = \"1s\"\n[links.wire]\nrate = \"1mbit\"\n\
                        [[flows]]\nid = \"f\"\npath = [\"wire\"]\n";

fn server() -> Server {
    let scenario = Scenario::parse("test.toml", SCENARIO.as_bytes(), &[]).unwrap();
    let watch = Arc::new(Watch::new(&scenario.spec(0), None));
    Server::start(BoundListener::at("127.0.0.1:0".parse().unwrap()).unwrap(), watch).unwrap()
}

/// All that the server says to this.
fn ask(server: &Server, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The server may have answered before all is written.
    let _ = stream.write_all(request);
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&said)));
    String::from_utf8(said).unwrap()
}

fn status(said: &str) -> &str {
    said.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn metrics_are_at_their_path_alone() {
    let server = server();
    let said = ask(&server, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = said.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    assert!(body.contains("ackclock_link_capacity_bytes_per_second{") || body.contains("ackclock_run_info{"), "{body}");
    // A HEAD request gets the same without a body.
    let said = ask(&server, b"HEAD /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(said.ends_with("\r\n\r\n") && said.contains("Content-Length: ") && status(&said) == "200", "{said}");
    assert!(ask(&server, b"GET / HTTP/1.0\r\n\r\n").ends_with("metrics are at /metrics\n"));
    for (request, expected) in [
        (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405"),
        (b"GET /metrics HTTP/2\r\n\r\n", "505"),
        (b"GET /metrics\r\n\r\n", "400"),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", "400"),
        (b"GET /metrics HTTP/1.1\r\nno field\r\n\r\n", "400"),
        (b"\xff\xfe\r\n\r\n", "400"),
        (b"\r\n\r\n", "400"),
    ] {
        let said = ask(&server, request);
        assert_eq!(status(&said), expected, "{}: {said}", String::from_utf8_lossy(request));
    }
    let mut long = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
    long.resize(100_000, b'x');
    assert_eq!(status(&ask(&server, &long)), "431");
}

#[test]
fn clients_that_hang_keep_nobody_out_for_long() {
    let server = server();
    let hang = || TcpStream::connect(server.address()).unwrap();
    let hanging: Vec<_> = (0..CLIENTS - 1).map(|_| hang()).collect();
    assert_eq!(status(&ask(&server, b"GET / HTTP/1.1\r\n\r\n")), "200");
    let _one_more = hang();
    // There is room again once they have had their time: 16 reads of half a second.
    let mut refused = false;
    for _ in 0..200 {
        match status(&ask(&server, b"GET / HTTP/1.1\r\n\r\n")) {
            "200" if refused => break,
            "503" => refused = true,
            "200" => {}
            other => panic!("{other}"),
        }
        thread::sleep(Duration::from_millis(100));
    }
    assert!(refused, "more clients than there may be");
    assert_eq!(status(&ask(&server, b"GET / HTTP/1.1\r\n\r\n")), "200");
    let mut said = String::new();
    let mut first = &hanging[0];
    first.read_to_string(&mut said).unwrap();
    assert_eq!(status(&said), "408");
    // The server does not wait for clients that still hang.
    let _last = hang();
    drop(server);
}

#[test]
fn only_addresses_of_loopback_are_taken() {
    for good in ["127.0.0.1:9100", "127.1.2.3:0", "[::1]:9100", "localhost:80"] {
        assert!(good.parse::<Address>().is_ok(), "{good}");
    }
    for (bad, part) in [
        ("0.0.0.0:9100", "0.0.0.0 is not an address of the loopback interface"),
        ("192.0.2.1:9100", "loopback"),
        ("[::]:9100", "loopback"),
        ("9100", "not an address and a port"),
        ("127.0.0.1", "not an address and a port"),
        ("localhost", "not an address and a port"),
        ("127.0.0.1:99999", "not an address and a port"),
    ] {
        let error = bad.parse::<Address>().expect_err(bad);
        assert!(error.contains(part), "{bad}: {error}");
    }
}
