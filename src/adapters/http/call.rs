//! One request and its response over a connection of its own: within its limits, to the host that was named
//! and no other, and ended at once when it is wanted no longer.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ureq::http::{HeaderMap, HeaderValue};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error, http::Uri};

use crate::adapters::ask::Limits;

/// How often the limits and the wish to stop are looked at.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a call that was ended may take to notice.
const GRACE: Duration = Duration::from_secs(1);

/// What is sent.
pub struct Call {
    /// The whole address.
    pub url: String,
    /// Headers; values that must be kept secret are marked so.
    pub headers: Vec<(&'static str, HeaderValue)>,
    /// The body of a POST; a GET has none.
    pub body: Option<Vec<u8>>,
    /// Whether the host must turn out to be this machine.
    pub loopback: bool,
    /// How long and how much. Idle time counts from the first byte on: an endpoint says nothing before its
    /// answer is whole, however long that takes.
    pub limits: Limits,
}

/// What came back.
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, whole.
    pub body: Vec<u8>,
}

/// Why nothing whole came back.
#[derive(Debug)]
pub enum Broken {
    /// It was wanted no longer.
    Stopped,
    /// It took too long.
    Wall,
    /// It began and then said nothing more.
    Idle,
    /// It is longer than it may be.
    TooLarge,
    /// The client failed.
    Client(Error),
}

/// Makes the call. Whatever ends it, the connection is closed.
pub fn make(call: Call, stop: &AtomicBool) -> Result<Response, Broken> {
    let begun = Instant::now();
    let (wall, idle) = (call.limits.wall, call.limits.idle);
    let agent = agent(&call);
    let progress = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = mpsc::channel();
    let (own, seen) = (agent.clone(), progress.clone());
    std::thread::spawn(move || {
        let response = exchange(&own, call, &seen);
        // Who asked may be gone.
        let _ = sender.send(response);
    });
    let ended = watch(&receiver, stop, &progress, begun + wall, idle);
    ended.unwrap_or_else(|broken| {
        agent.shutdown();
        let _ = receiver.recv_timeout(GRACE);
        Err(broken)
    })
}

type Ended = Result<Response, Broken>;

/// Waits for the end, and gives up where there is a reason to.
fn watch(
    receiver: &Receiver<Ended>,
    stop: &AtomicBool,
    progress: &AtomicU64,
    until: Instant,
    idle: Duration,
) -> Result<Ended, Broken> {
    let (mut read, mut since) = (0, Instant::now());
    loop {
        match receiver.recv_timeout(PAUSE) {
            Ok(ended) => return Ok(ended),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Broken::Client(Error::ConnectionFailed)),
        }
        let now = progress.load(Ordering::Relaxed);
        if now != read {
            (read, since) = (now, Instant::now());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Broken::Stopped);
        }
        if Instant::now() >= until {
            return Err(Broken::Wall);
        }
        if read > 0 && since.elapsed() >= idle {
            return Err(Broken::Idle);
        }
    }
}

fn agent(call: &Call) -> Agent {
    // No proxy of the environment, no redirect, no error for a status: each status has its own meaning here.
    let config = Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("nf/", env!("CARGO_PKG_VERSION")))
        .accept("application/json")
        .accept_encoding("identity")
        .max_idle_connections(0)
        .timeout_global(Some(call.limits.wall))
        .build();
    Agent::with_parts(
        config,
        DefaultConnector::new(),
        Places { loopback: call.loopback, inner: DefaultResolver::default() },
    )
}

fn exchange(agent: &Agent, call: Call, progress: &AtomicU64) -> Ended {
    let limit = call.limits.bytes.min(super::MAX_RESPONSE);
    let sent = match &call.body {
        Some(body) => {
            let post = agent.post(&call.url);
            call.headers.iter().fold(post, |post, (name, value)| post.header(*name, value)).send(&body[..])
        }
        None => {
            let get = agent.get(&call.url);
            call.headers.iter().fold(get, |get, (name, value)| get.header(*name, value)).call()
        }
    };
    let response = sent.map_err(Broken::Client)?;
    progress.fetch_add(1, Ordering::Relaxed);
    let (parts, body) = response.into_parts();
    if body.content_length().is_some_and(|length| length > limit) {
        return Err(Broken::TooLarge);
    }
    let mut reader = body.into_with_config().limit(limit + 1).reader();
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 16 * 1024]);
    loop {
        match reader.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Broken::Client(error.into())),
        }
        progress.fetch_add(1, Ordering::Relaxed);
        if bytes.len() as u64 > limit {
            return Err(Broken::TooLarge);
        }
    }
    Ok(Response { status: parts.status.as_u16(), headers: parts.headers, body: bytes })
}

/// Looks names up, and refuses one that was taken for this machine and is not.
#[derive(Debug)]
struct Places {
    loopback: bool,
    inner: DefaultResolver,
}

/// What a name that leads away from this machine is refused with.
pub const LEADS_AWAY: &str = "localhost leads to another machine";

impl Resolver for Places {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        if self.loopback && !found.iter().all(|place| place.ip().is_loopback()) {
            return Err(Error::Other(LEADS_AWAY.into()));
        }
        Ok(found)
    }
}
