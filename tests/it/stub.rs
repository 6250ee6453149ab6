//! A server on this machine that answers as it is told: any bytes, any pace, any ending. Keeps what it was
//! sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One request as it came in.
#[derive(Debug, Clone)]
pub struct Request {
    /// Request line and headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<String> {
        let line = self
            .head
            .lines()
            .find(|line| line.split_once(':').is_some_and(|(known, _)| known.eq_ignore_ascii_case(name)))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }
}

/// The server. Its thread ends with the process.
pub struct Stub {
    /// Where it listens.
    pub place: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Stub {
    /// A server that answers every request by this.
    pub fn new(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (kept.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { place, seen }
    }

    /// A server that answers every request with these bytes.
    pub fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::new(move |_, stream| drop(stream.write_all(&bytes)))
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.place)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().expect("the requests").clone()
    }
}

fn serve(
    mut stream: TcpStream,
    kept: &Mutex<Vec<Request>>,
    answer: &(impl Fn(&Request, &mut TcpStream) + ?Sized),
) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut request = Request { head, body: bytes.split_off(end) };
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while request.body.len() < length {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => request.body.extend_from_slice(&piece[..count]),
        }
    }
    kept.lock().expect("the requests").push(request.clone());
    answer(&request, &mut stream);
}

/// A response with its length.
pub fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}
