//! A running `chronosym serve`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A running server; it ends with the test.
pub struct Served {
    pub child: Child,
    pub host: String,
    pub token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
pub struct Reply {
    pub status: u16,
    /// The headers, in lower case.
    pub head: String,
    pub body: String,
}

impl Served {
    /// Starts a server. `url` takes the address of the server from the line that it prints.
    pub fn start(mut command: Command, url: impl Fn(&str) -> String) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let url = url(line.trim());
        let server = url.strip_prefix("http://").unwrap();
        let (host, token) = server.split_once('/').unwrap();
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        assert_eq!(token.len(), 32);
        Served {
            host: host.to_owned(),
            token: token.to_owned(),
            child,
        }
    }

    /// Starts a server of a report.
    pub fn report(command: Command) -> Self {
        Self::start(command, |line| line.strip_suffix('/').unwrap().to_owned())
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        // If a header occurs twice, the first is used.
        let mut text = format!("{method} {path} HTTP/1.0\r\n");
        for (name, value) in headers.iter().chain(&[("Host", self.host.as_str())]) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(text.as_bytes()).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        let reply = String::from_utf8(reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// Returns a path with the token.
    pub fn own(&self, path: &str) -> String {
        format!("/{}{path}", self.token)
    }
}
