//! The streams: lines in, lines out, a thread for each. A line has a limit, and what is too long is read past
//! without being kept. Ends when the input ends and all is answered, or when nobody reads the output.

use std::io::BufRead;
use std::sync::{Arc, mpsc};
use std::thread;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::sync::mpsc as pipe;

use super::super::output;
use super::flow::{Admitted, Flow, Room};
use super::message::{Era, Incoming, Parsed};

/// Bytes that a line may have: room for the longest reply, escaped.
const LINE_LIMIT: usize = 16 * 1024 * 1024;
/// Messages that wait between the reader and the protocol.
const WAITING: usize = 64;
/// Bytes that are written at once.
const AT_ONCE: usize = 256 * 1024;

/// What is to be written.
struct Out {
    text: String,
    /// The request that it answers.
    id: Option<String>,
    /// The batch that it belongs to, where no request is open for it.
    batch: Option<u64>,
}

/// The two streams as rmcp wants them.
pub struct Lines {
    incoming: pipe::Receiver<Option<ClientJsonRpcMessage>>,
    outgoing: mpsc::Sender<Out>,
}

/// Begins to read and write.
///
/// # Errors
/// A thread that cannot be made.
pub fn begin() -> std::io::Result<Lines> {
    let flow = Arc::new(Flow::default());
    let (into, incoming) = pipe::channel(WAITING);
    let (outgoing, queue) = mpsc::channel();
    let reader =
        Reader { flow: flow.clone(), into: into.clone(), refusals: outgoing.clone(), era: Era::default() };
    thread::Builder::new().name("mcp-read".to_owned()).spawn(move || reader.read(std::io::stdin().lock()))?;
    thread::Builder::new().name("mcp-write".to_owned()).spawn(move || write(&queue, &flow, &into))?;
    Ok(Lines { incoming, outgoing })
}

impl Transport<RoleServer> for Lines {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(key(&response.id)),
            JsonRpcMessage::Error(error) => error.id.as_ref().map(key),
            _ => None,
        };
        let sent = serde_json::to_string(&item).map_err(std::io::Error::from).and_then(|text| {
            let closed = |_| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
            self.outgoing.send(Out { text, id, batch: None }).map_err(closed)
        });
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.incoming.recv().await.flatten()
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// An id as text: a number and a text of the same digits are two.
fn key(id: &RequestId) -> String {
    serde_json::to_string(id).unwrap_or_default()
}

struct Reader {
    flow: Arc<Flow>,
    into: pipe::Sender<Option<ClientJsonRpcMessage>>,
    refusals: mpsc::Sender<Out>,
    era: Era,
}

/// What was read.
#[derive(Debug, PartialEq)]
enum Read {
    Line,
    TooLong,
    End,
}

/// Reads a line into a buffer that never grows beyond a limit; the last one may lack its end.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>, limit: usize) -> Read {
    line.clear();
    let mut too_long = false;
    loop {
        let available = match from.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => &[],
        };
        let end = available.iter().position(|byte| *byte == b'\n');
        let take = end.map_or(available.len(), |end| end + 1);
        too_long |= line.len() + take > limit;
        if too_long {
            // Its room is given back at once.
            *line = Vec::new();
        } else {
            line.extend_from_slice(&available[..take]);
        }
        let is_over = available.is_empty();
        from.consume(take);
        match (too_long, end.is_some(), is_over) {
            (true, true, _) | (true, _, true) => return Read::TooLong,
            (false, true, _) => return Read::Line,
            (false, _, true) => return if line.is_empty() { Read::End } else { Read::Line },
            _ => {}
        }
    }
}

impl Reader {
    fn read(mut self, mut from: impl BufRead) {
        let mut line = Vec::new();
        loop {
            let going = match next_line(&mut from, &mut line, LINE_LIMIT) {
                Read::End => break,
                Read::TooLong => {
                    let message = format!("Invalid request: a line has at most {LINE_LIMIT} bytes");
                    self.refuse(None, ErrorData::new(ErrorCode::INVALID_REQUEST, message, None), None);
                    true
                }
                Read::Line => {
                    let bytes = line.trim_ascii();
                    bytes.is_empty() || self.take(bytes)
                }
            };
            if !going {
                break;
            }
            if line.capacity() > AT_ONCE {
                line = Vec::new();
            }
        }
        self.flow.wait_idle();
        let _ = self.into.blocking_send(None);
    }

    /// Takes a line on its way; false where nobody is there any more.
    fn take(&mut self, line: &[u8]) -> bool {
        match self.era.parse(line) {
            Parsed::One(incoming) => self.pass(incoming, line.len(), None),
            Parsed::Many(items) => {
                let answered =
                    |item: &&Incoming| matches!(item, Incoming::Request(..) | Incoming::Refused(..));
                let batch = Some(self.flow.begin_batch(items.iter().filter(answered).count()));
                let bytes = line.len() / items.len().max(1);
                items.into_iter().all(|item| self.pass(item, bytes, batch))
            }
        }
    }

    fn pass(&self, incoming: Incoming, bytes: usize, batch: Option<u64>) -> bool {
        let message = match incoming {
            Incoming::Nothing => return true,
            Incoming::Refused(id, error) => return self.refuse(id, error, batch),
            Incoming::Notification(message) => message,
            Incoming::Cancelled(id, message) => {
                if let Some(text) = self.flow.forget(&key(&id)) {
                    let _ = self.refusals.send(Out { text, id: None, batch: None });
                }
                message
            }
            Incoming::Request(id, message) => match self.flow.admit(&key(&id), bytes, batch) {
                Admitted::Yes => message,
                Admitted::Closed => return false,
                Admitted::Twice => {
                    let message = "Invalid request: a request with this id is open, or was cancelled";
                    return self.refuse(
                        None,
                        ErrorData::new(ErrorCode::INVALID_REQUEST, message, None),
                        batch,
                    );
                }
            },
        };
        self.into.blocking_send(Some(*message)).is_ok()
    }

    fn refuse(&self, id: Option<RequestId>, error: ErrorData, batch: Option<u64>) -> bool {
        let text = serde_json::to_string(&ServerJsonRpcMessage::error(error, id)).unwrap_or_default();
        self.refusals.send(Out { text, id: None, batch }).is_ok()
    }
}

/// Writes what there is, many answers at once where they are there.
fn write(queue: &mpsc::Receiver<Out>, flow: &Flow, into: &pipe::Sender<Option<ClientJsonRpcMessage>>) {
    while let Ok(first) = queue.recv() {
        let (mut lines, mut room) = (String::new(), Room::default());
        let mut next = Some(first);
        while let Some(Out { text, id, batch }) = next {
            let (line, taken) = flow.answer(id.as_deref(), batch, text);
            if let Some(line) = line {
                lines.push_str(&line);
                lines.push('\n');
            }
            room = room.and(taken);
            next = if lines.len() < AT_ONCE { queue.try_recv().ok() } else { None };
        }
        if !lines.is_empty() && !output::protocol(&lines) {
            flow.close();
            let _ = into.blocking_send(None);
            return;
        }
        flow.release(&room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_read_past_and_not_kept() {
        let text = format!("one\n{}\ntwo\r\n\nlast", "x".repeat(100));
        let mut from = std::io::BufReader::with_capacity(7, text.as_bytes());
        let mut line = Vec::new();
        let mut seen = Vec::new();
        loop {
            let read = next_line(&mut from, &mut line, 20);
            assert!(line.capacity() <= 40, "{}", line.capacity());
            match read {
                Read::End => break,
                Read::TooLong => seen.push("too long".to_owned()),
                Read::Line => seen.push(String::from_utf8_lossy(&line).into_owned()),
            }
        }
        assert_eq!(seen, ["one\n", "too long", "two\r\n", "\n", "last"]);
        let mut from = std::io::BufReader::with_capacity(7, &b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"[..]);
        assert_eq!(next_line(&mut from, &mut line, 20), Read::TooLong);
        assert_eq!(next_line(&mut from, &mut line, 20), Read::End);
    }
}
