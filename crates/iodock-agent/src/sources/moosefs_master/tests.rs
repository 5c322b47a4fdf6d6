use super::*;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

const REAL: &[u8] = include_bytes!("../../../tests/fixtures/moosefs-3.0.117.sessions");
const SHORT: Duration = Duration::from_millis(300);

/// Runs `answer` as a master. Returns the agent's result and how long it took.
fn asked(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> (io::Result<Vec<u8>>, Duration) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr().expect("an address").port());
    let master = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut question = [0; sessions::QUESTION.len()];
        stream.read_exact(&mut question).expect("a question");
        assert_eq!(question, sessions::QUESTION);
        answer(&mut stream);
    });
    let begin = Instant::now();
    let said = ask(address, SHORT);
    let took = begin.elapsed();
    master.join().expect("no mistake");
    (said, took)
}

fn packet(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("short");
    [&kind.to_be_bytes()[..], &length.to_be_bytes(), body].concat()
}

#[test]
fn an_answer_in_several_pieces_is_read() {
    let (said, _) = asked(|stream| {
        stream.write_all(&packet(0, b"")).expect("written");
        for piece in packet(509, REAL).chunks(100) {
            stream.write_all(piece).expect("written");
        }
    });
    assert_eq!(said.expect("an answer"), REAL);
}

#[test]
fn a_silent_or_closed_connection_ends_within_the_time_limit() {
    let (said, took) = asked(|_| thread::sleep(2 * SHORT));
    assert_eq!(said.expect_err("no answer").kind(), ErrorKind::TimedOut);
    assert!(took < 4 * SHORT, "{took:?}");
    let (said, took) = asked(|stream| {
        for byte in packet(509, REAL).into_iter().take(8) {
            thread::sleep(SHORT / 4);
            // The client may have disconnected, so an error is ignored.
            let _ = stream.write_all(&[byte]);
        }
    });
    assert_eq!(said.expect_err("no answer").kind(), ErrorKind::TimedOut);
    assert!(took < 4 * SHORT, "{took:?}");
}

#[test]
fn an_invalid_answer_is_refused() {
    let (said, _) = asked(|stream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("written"));
    assert_eq!(said.expect_err("no answer").kind(), ErrorKind::InvalidData);
    let (said, _) = asked(|stream| stream.write_all(&packet(509, REAL)[..99]).expect("written"));
    assert_eq!(said.expect_err("cut").kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn the_process_of_a_connection_is_found_in_the_kernels_tables() {
    let line = b"  10: 01004D0A:24CD 01004D0A:A9DA 01 00000000:00000000 00:00000000 00000000     0        0 1949746 1";
    let (address, state) = socket(line).expect("a socket");
    assert_eq!((address.to_string().as_str(), state), ("10.77.0.1:9421", CONNECTED));
    let head =
        b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
    for line in [&head[..], b"", b"1: 01004D0A 0:0 01", b"1: +1004D0A:24CD 0:0 01", b"1: 0:1FFFF 0:0 01"] {
        assert_eq!(socket(line), None, "{}", line.escape_ascii());
    }
}

#[test]
fn only_the_newest_session_of_a_mount_point_counts() {
    let found = sessions::sessions(REAL).expect("an answer");
    let mut old = found[0].clone();
    (old.number, old.is_connected) = (99, false);
    let mut new = found[0].clone();
    new.number = 7;
    let mounts = by_mount(vec![old, found[0].clone(), new, found[1].clone()]);
    assert_eq!(mounts.len(), 2);
    assert_eq!(mounts["10.77.0.1:/tmp/mfs/mnt/a"].number, 7);
}
