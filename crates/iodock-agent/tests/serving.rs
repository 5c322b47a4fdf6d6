//! Tests `iodock-agent run`: /metrics is a current round, and no client can block the agent or increase its
//! memory without limit.

mod tree;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tree::{check_form, fifo, has, Tree};

struct Agent {
    process: Child,
    address: String,
}

impl Agent {
    fn start(tree: &Tree, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_iodock-agent"))
            .args(["run", "--listen", "127.0.0.1:0", "--root"])
            .arg(&tree.0)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent runs");
        let mut lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let first = lines.next().expect("a line").expect("text");
        std::thread::spawn(move || lines.for_each(drop));
        let address = first.strip_prefix("note: http://").and_then(|rest| rest.strip_suffix("/metrics"));
        Agent { process, address: address.expect(&first).into() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        stream
    }

    /// Sends a request, and returns head and body of the answer.
    fn ask(&self, method: &str, path: &str) -> (String, String) {
        let mut stream = self.connect();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.into(), body.into())
    }

    /// Counts the threads with this name. A thread that reads a source has the source's name. A thread may
    /// end during the counting.
    fn threads_named(&self, name: &str) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).expect("it runs");
        let of_that_name = |task: &fs::DirEntry| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|of_task| of_task.trim_end() == name)
        };
        tasks.flatten().filter(of_that_name).count()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn metrics_are_read_at_the_time_of_the_request() {
    let tree = Tree::new("serving");
    let jobs = |opens| format!("job_stats:\n- job_id: 7\n  open: {{ samples: {opens}, unit: reqs }}\n");
    tree.write("proc/fs/lustre/mdt/lfs-MDT0000/job_stats", jobs(1));
    let agent = Agent::start(&tree, &[]);
    for opens in [1, 5] {
        tree.write("proc/fs/lustre/mdt/lfs-MDT0000/job_stats", jobs(opens));
        let (head, body) = agent.ask("GET", "/metrics");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/openmetrics-text"), "{head}");
        check_form(&body);
        has(&body, &format!("iodock_mdt_job_stats_operations_total{{host=\"node7\",file_system=\"lfs\",target=\"lfs-MDT0000\",job=\"7\",known_by=\"server\",operation=\"open\"}} {opens}"));
        // The agent caches answers for a second.
        sleep(Duration::from_millis(1100));
    }
}

#[test]
fn unknown_requests_are_refused() {
    let tree = Tree::new("serving-other");
    let agent = Agent::start(&tree, &[]);
    for (method, path, status) in [
        ("POST", "/metrics", "405"),
        ("GET", "/../etc/passwd", "404"),
        ("GET", "/", "200"),
        ("HEAD", "/metrics", "200"),
    ] {
        let (head, _) = agent.ask(method, path);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {head}");
    }
    agent.connect().write_all(b"\x16\x03\x01\0\0\xff\xff\r\n\r\n").expect("sent");
    assert!(agent.ask("GET", "/metrics").0.starts_with("HTTP/1.1 200"));
}

#[test]
fn silent_connections_do_not_block_others() {
    let tree = Tree::new("serving-silent");
    let agent = Agent::start(&tree, &[]);
    let silent: Vec<TcpStream> = (0..100).map(|_| agent.connect()).collect();
    assert!(agent.ask("GET", "/metrics").0.starts_with("HTTP/1.1 200"));
    drop(silent);
}

#[test]
#[ignore = "part of `make test-all`: takes seconds"]
fn hundreds_of_slow_senders_do_not_block_others() {
    let tree = Tree::new("serving-slow");
    let agent = Agent::start(&tree, &[]);
    let begins: [&[u8]; 4] = [
        b"",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: ",
        b"POST /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\na",
    ];
    for begin in begins {
        let slow: Vec<TcpStream> = (0..400)
            .map(|_| {
                let mut stream = agent.connect();
                // Writing fails if the agent has closed the connection.
                let _ = stream.write_all(begin);
                stream
            })
            .collect();
        assert!(agent.ask("GET", "/metrics").0.starts_with("HTTP/1.1 200"));
        drop(slow);
    }
}

#[test]
fn a_hanging_source_is_not_started_again() {
    let tree = Tree::new("serving-hung");
    fifo(&tree, "proc/diskstats");
    let agent = Agent::start(&tree, &["--deadline", "0.1"]);
    for _ in 0..4 {
        let (_, body) = agent.ask("GET", "/metrics");
        has(&body, "iodock_agent_source_done{host=\"node7\",source=\"diskstats\"} 0");
        has(&body, "iodock_agent_source_done{host=\"node7\",source=\"pressure\"} 1");
        assert_eq!(agent.threads_named("diskstats"), 1);
        sleep(Duration::from_millis(1100));
    }
    // The file answers again, so the agent reads it again.
    fs::write(tree.0.join("proc/diskstats"), "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n").expect("read");
    fs::remove_file(tree.0.join("proc/diskstats")).expect("removed");
    tree.write("proc/diskstats", "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n");
    sleep(Duration::from_millis(1100));
    has(&agent.ask("GET", "/metrics").1, "iodock_agent_source_done{host=\"node7\",source=\"diskstats\"} 1");
}

#[test]
fn only_authenticated_collectors_can_pull() {
    for address in ["0.0.0.0:0", "192.0.2.1:0", "[::]:0", "localhost"] {
        let output = Command::new(env!("CARGO_BIN_EXE_iodock-agent"))
            .args(["run", "--listen", address])
            .output()
            .expect("the agent runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.starts_with("error: --listen") && said.contains("hint: "),
            "{said}"
        );
    }
}

#[test]
fn the_systemd_unit_uses_existing_options_only() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integrations/systemd/iodock-agent.service");
    let unit = fs::read_to_string(unit).expect("the unit");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let help = Command::new(env!("CARGO_BIN_EXE_iodock-agent")).arg("--help").output().expect("runs").stdout;
    let help = String::from_utf8(help).expect("text");
    let options: Vec<&str> = start.split(' ').filter(|word| word.starts_with("--")).collect();
    assert!(options.len() == 3 && options.iter().all(|option| help.contains(option)), "{options:?}");
}
