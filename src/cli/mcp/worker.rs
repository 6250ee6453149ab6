//! The threads that run calls, in the order in which they came. Writing calls that were read together are
//! decided and appended under one lock, synced once and then answered; a call that reads waits for that
//! sync first. No call is answered later than twenty seconds after it came.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::super::bar::Told;
use super::super::ctx::Context;
use super::arguments::Line;
use super::call::{Document, Runner};
use crate::error::{Error, Kind};

/// How long a call may take, from when it was read.
const PATIENCE: Duration = Duration::from_secs(18);
/// Calls that are made durable together at most.
const TOGETHER: usize = 256;
/// How long a group may hold the store's lock while it decides.
const HOLD: Duration = Duration::from_millis(100);

/// How far a call has come, for whoever waits for it.
#[derive(Default)]
pub struct Way {
    /// Bytes done, and in all; zero where that is not known.
    done: AtomicU64,
    total: AtomicU64,
}

impl Way {
    /// Bytes done and bytes in all, where there are any.
    pub fn bytes(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| (self.done.load(Ordering::Relaxed), total))
    }
}

/// A call on its way.
pub struct Job {
    line: Line,
    writes: bool,
    /// When it was read.
    came: Instant,
    /// Whether nobody wants the answer any more.
    is_cancelled: Arc<dyn Fn() -> bool + Send + Sync>,
    way: Arc<Way>,
    answer: oneshot::Sender<Document>,
}

impl Job {
    fn left(&self) -> Duration {
        PATIENCE.saturating_sub(self.came.elapsed())
    }

    /// Ends long work in time, or when nobody wants it any more.
    fn told(&self) -> Told {
        let (is_cancelled, way, came) = (self.is_cancelled.clone(), self.way.clone(), self.came);
        Arc::new(move |done, total| {
            way.done.store(done, Ordering::Relaxed);
            way.total.store(total, Ordering::Relaxed);
            if is_cancelled() {
                return Err(Error::new(Kind::Pending, "the call was cancelled"));
            }
            if came.elapsed() > PATIENCE {
                return Err(Error::new(Kind::TooLarge, "this takes longer than a call may")
                    .because(format!("{done} of {total} bytes in {} s", PATIENCE.as_secs()))
                    .fix("run the command on the command line, where it may take its time"));
            }
            Ok(())
        })
    }
}

/// Where calls are handed in.
#[derive(Clone)]
pub struct Queue {
    calls: mpsc::Sender<Job>,
    long: mpsc::Sender<Job>,
}

impl Queue {
    /// Hands a call in; the answer comes by the receiver, which is closed where the call was not run.
    pub fn hand_in(
        &self,
        line: Line,
        writes: bool,
        long: bool,
        is_cancelled: Arc<dyn Fn() -> bool + Send + Sync>,
    ) -> (Arc<Way>, oneshot::Receiver<Document>) {
        let (answer, receiver) = oneshot::channel();
        let way = Arc::new(Way::default());
        let job = Job { line, writes, came: Instant::now(), is_cancelled, way: way.clone(), answer };
        let _ = if long { &self.long } else { &self.calls }.send(job);
        (way, receiver)
    }
}

/// The threads.
pub struct Workers(Vec<JoinHandle<()>>);

impl Workers {
    /// Begins them.
    ///
    /// # Errors
    /// A thread that cannot be made.
    pub fn begin(ctx: &Context) -> std::io::Result<(Self, Queue)> {
        let (calls, queue) = mpsc::channel();
        let (long, long_queue) = mpsc::channel();
        let begin = |name: &str, queue: mpsc::Receiver<Job>| {
            let runner = Runner::new(ctx);
            thread::Builder::new().name(name.to_owned()).spawn(move || work(runner, &queue))
        };
        let threads = vec![begin("mcp-call", queue)?, begin("mcp-long", long_queue)?];
        Ok((Self(threads), Queue { calls, long }))
    }

    /// Waits until all that was handed in is done. Every [`Queue`] must be gone.
    pub fn end(self) {
        for thread in self.0 {
            let _ = thread.join();
        }
    }
}

/// Calls of one group that are run and not answered.
#[derive(Default)]
struct Held {
    documents: Vec<Document>,
    answers: Vec<oneshot::Sender<Document>>,
    since: Option<Instant>,
}

impl Held {
    /// Makes the group durable and answers it.
    fn settle(&mut self, runner: &mut Runner) {
        runner.commit(&mut self.documents);
        for (document, answer) in self.documents.drain(..).zip(self.answers.drain(..)) {
            let _ = answer.send(document);
        }
        self.since = None;
    }
}

fn work(mut runner: Runner, queue: &mpsc::Receiver<Job>) {
    while let Ok(first) = queue.recv() {
        let mut held = Held::default();
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(job) = next {
            one(&mut runner, &mut held, job);
            taken += 1;
            next = if taken < TOGETHER { queue.try_recv().ok() } else { None };
        }
        held.settle(&mut runner);
    }
}

fn one(runner: &mut Runner, held: &mut Held, job: Job) {
    // What is cancelled before it was begun is never run; its answer is not wanted.
    if (job.is_cancelled)() {
        return;
    }
    if !job.writes {
        held.settle(runner);
        let told = job.told();
        let _ = job.answer.send(runner.read(job.line, Some(told)));
        return;
    }
    let patience = u64::try_from(job.left().as_millis()).unwrap_or(u64::MAX);
    held.documents.push(runner.write(job.line, patience));
    held.answers.push(job.answer);
    let since = *held.since.get_or_insert_with(Instant::now);
    if since.elapsed() > HOLD || runner.is_over() {
        held.settle(runner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(came: Option<Instant>, cancelled: bool) -> Job {
        Job {
            line: Line::default(),
            writes: false,
            came: came.unwrap_or_else(Instant::now),
            is_cancelled: Arc::new(move || cancelled),
            way: Arc::new(Way::default()),
            answer: oneshot::channel().0,
        }
    }

    #[test]
    fn long_work_is_given_up_in_time_or_when_nobody_wants_it() {
        let going = job(None, false);
        assert_eq!(going.way.bytes(), None);
        assert_eq!(going.told()(3, 10), Ok(()));
        assert_eq!(going.way.bytes(), Some((3, 10)));
        assert!(going.left() > Duration::from_secs(10));
        let long_ago = Instant::now().checked_sub(PATIENCE + Duration::from_secs(1));
        let late = job(long_ago, false);
        assert_eq!(late.told()(3, 10).map_err(|error| error.kind), Err(Kind::TooLarge));
        assert_eq!(late.left(), Duration::ZERO);
        assert_eq!(job(None, true).told()(3, 10).map_err(|error| error.kind), Err(Kind::Pending));
    }
}
