//! A server of symbol files on the loopback interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers GET requests, and counts the files it served.
pub struct Server {
    pub url: String,
    pub served: Arc<AtomicUsize>,
}

impl Server {
    /// Serves the result of `file` for a path in lower case.
    pub fn new(file: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Arc::new(AtomicUsize::new(0));
        let count = served.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &file, &count);
            }
        });
        Server { url, served }
    }
}

fn answer(mut stream: TcpStream, file: &impl Fn(&str) -> Option<Vec<u8>>, served: &AtomicUsize) {
    let mut request = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while reader.read_line(&mut request).is_ok_and(|read| read > 2) {}
    let path = request.split(' ').nth(1).unwrap_or_default().to_lowercase();
    let body = file(&path);
    let status = match body {
        Some(_) => "200 OK",
        None => "404 Not Found",
    };
    served.fetch_add(usize::from(body.is_some()), Ordering::SeqCst);
    let body = body.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&body));
    let _ = reader.read(&mut [0; 64]);
}
