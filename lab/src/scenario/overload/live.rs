//! The overload with a real server in its own process, and with clients on 127.0.0.1.

use std::cell::RefCell;
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use ftsh_syntax::backoff::Backoff;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::course::{OverloadCourse, Second};
use super::serve::SERVE;
use super::{OverloadSettings, Slowness};
use crate::common::{ClientCrowd, Random};

/// Shortest time that exceeds the noise of the system.
const SHORTEST: Duration = Duration::from_millis(1);
/// Maximum number of clients, limited by the number of ports.
const MOST_CLIENTS: usize = 10_000;
/// Number of open files besides connections.
const OTHERS: u64 = 100;

/// Runs a crowd through an overload, `scale` times as fast as the settings. Times of the course are
/// those of the settings.
pub fn run(
    setting: &OverloadSettings,
    crowd: &ClientCrowd,
    scale: f64,
    random: Random,
) -> Result<OverloadCourse> {
    let real = |time: Duration| time.div_f64(scale);
    if real(setting.slowness.base) < SHORTEST {
        bail!("--scale: the server would take less than a millisecond");
    }
    if setting.clients > MOST_CLIENTS {
        bail!("--live: there can be {MOST_CLIENTS} clients at most");
    }
    allow_files(setting)?;
    let base = real(setting.slowness.base);
    let server = LiveServer::start(Slowness { base, ..setting.slowness }, setting.backlog)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let shared = Rc::new(SharedState {
        address: server.address,
        scale,
        think: setting.think,
        timeout: setting.timeout,
        started: RefCell::new(Instant::now()),
        course: RefCell::new(setting.course()),
    });
    local.block_on(&runtime, go(setting, crowd, &server, &shared, random))?;
    // Ends the clients, which share the course.
    drop(local);
    if !server.is_understood.load(Ordering::Relaxed) {
        bail!("the server printed a line that is not its state");
    }
    let mut course = shared.course.borrow().clone();
    course.peak = server.peak.load(Ordering::Relaxed);
    course.events = course.seconds.iter().map(|second| second.requests).sum();
    Ok(course)
}

/// Raises the limit on open files as needed and possible.
fn allow_files(setting: &OverloadSettings) -> Result<()> {
    // The server needs most of them, for waiting connections and all clients.
    let needed = setting.clients as u64 + u64::from(setting.backlog) + OTHERS;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        bail!(
            "--live needs {needed} open files and the system allows {hard}: see `ulimit -Hn`, or \
             take fewer --clients or a shorter --backlog"
        );
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard).context("can't raise the limit on open files")
}

/// Process of the server, which ends with this process even after a SIGKILL.
struct LiveServer {
    child: Child,
    address: SocketAddr,
    concurrency: Arc<AtomicUsize>,
    peak: Arc<AtomicUsize>,
    /// False once the server has printed a line that is not its state.
    is_understood: Arc<AtomicBool>,
}

impl LiveServer {
    fn start(slowness: Slowness, backlog: u32) -> Result<Self> {
        let program = std::env::current_exe().context("can't find this program")?;
        let Slowness { base, limit, factor, divisor } = slowness;
        let arguments = [base.as_secs_f64(), limit, factor, divisor, f64::from(backlog)];
        let child = Command::new(program)
            .arg(SERVE)
            .args(arguments.map(|argument| argument.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("can't start the server")?;
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            concurrency: Arc::default(),
            peak: Arc::default(),
            is_understood: Arc::new(true.into()),
        };
        let output =
            server.child.stdout.take().ok_or_else(|| anyhow!("the server has no output"))?;
        let mut lines = BufReader::new(output).lines();
        let port = lines.next().and_then(Result::ok).and_then(|line| line.parse().ok());
        server.address.set_port(port.ok_or_else(|| anyhow!("the server didn't start"))?);
        let (concurrency, peak) = (Arc::clone(&server.concurrency), Arc::clone(&server.peak));
        let is_understood = Arc::clone(&server.is_understood);
        // The thread ends with the output of the server.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Some((now, most)) = parse(&line) else {
                    is_understood.store(false, Ordering::Relaxed);
                    return;
                };
                concurrency.store(now, Ordering::Relaxed);
                peak.store(most, Ordering::Relaxed);
            }
        });
        Ok(server)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        kill(pid, signal).with_context(|| format!("can't send {signal} to the server"))
    }
}

/// Parses a line of the server: the number of requests in progress, and the largest number so far.
fn parse(line: &str) -> Option<(usize, usize)> {
    let (now, most) = line.split_once(' ')?;
    Some((now.parse().ok()?, most.parse().ok()?))
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        // SIGKILL ends a stopped server as well. A failure means that the server has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// State shared by the clients.
struct SharedState {
    address: SocketAddr,
    scale: f64,
    think: Duration,
    timeout: Duration,
    started: RefCell<Instant>,
    course: RefCell<OverloadCourse>,
}

impl SharedState {
    /// Returns the time since the start, on the clock of the settings.
    fn now(&self) -> Duration {
        self.started.borrow().elapsed().mul_f64(self.scale)
    }

    /// Converts a length of time to real time.
    fn real(&self, time: Duration) -> Duration {
        // Tokio cannot wait for centuries.
        time.div_f64(self.scale).min(Duration::from_secs(86_400 * 365))
    }
}

async fn go(
    setting: &OverloadSettings,
    crowd: &ClientCrowd,
    server: &LiveServer,
    shared: &Rc<SharedState>,
    mut random: Random,
) -> Result<()> {
    *shared.started.borrow_mut() = Instant::now();
    for client in 0..setting.clients {
        let backoff = Backoff::new(crowd.policy(client).clone());
        let random = Random::seed_from_u64(random.random());
        tokio::task::spawn_local(live(Rc::clone(shared), client, backoff, random));
    }
    let until = |time: Duration| {
        let at = *shared.started.borrow() + shared.real(time);
        sleep_until(at)
    };
    let watch = watch(setting, crowd, server, shared);
    let events = async {
        until(setting.before).await;
        server.signal(Signal::SIGSTOP)?;
        until(setting.resumed()).await;
        server.signal(Signal::SIGCONT)?;
        until(setting.end()).await;
        anyhow::Ok(())
    };
    tokio::select! {
        result = events => result,
        never = watch => never,
    }
}

/// Simulates a client, which alternates between idle times and requests until an answer.
async fn live(shared: Rc<SharedState>, client: usize, backoff: Backoff, mut random: Random) {
    loop {
        let part: f64 = Exp1.sample(&mut random);
        sleep(shared.real(shared.think.mul_f64(part))).await;
        let mut trouble: Option<(Backoff, Duration)> = None;
        loop {
            let begun = shared.now();
            shared.course.borrow_mut().second(begun).requests += 1;
            let answer = timeout(shared.real(shared.timeout), ask(shared.address)).await;
            let now = shared.now();
            if let Ok(Ok(())) = answer {
                shared.course.borrow_mut().answered(client, now);
                break;
            }
            shared.course.borrow_mut().second(now).timeouts += 1;
            let (delays, since) = trouble.get_or_insert_with(|| (backoff.clone(), now));
            let delay = delays.next_delay(now.saturating_sub(*since), &mut random);
            sleep(shared.real(delay)).await;
        }
    }
}

/// Sends a request on a new connection.
async fn ask(address: SocketAddr) -> Result<()> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/").header(header::HOST, "127.0.0.1").body(Empty::<Bytes>::new())?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        if !response.status().is_success() {
            bail!("the server said {}", response.status());
        }
        response.into_body().collect().await?;
        Ok(())
    };
    let both = together(exchange, connection);
    both.await
}

/// Runs both to the end or to the first failure.
async fn together(
    exchange: impl Future<Output = Result<()>>,
    connection: impl Future<Output = hyper::Result<()>>,
) -> Result<()> {
    tokio::try_join!(exchange, async { connection.await.map_err(anyhow::Error::from) })?;
    Ok(())
}

/// Samples the server each second of the settings, and reports progress each real second.
async fn watch(
    setting: &OverloadSettings,
    crowd: &ClientCrowd,
    server: &LiveServer,
    shared: &SharedState,
) -> Result<()> {
    let started = *shared.started.borrow();
    let (mut reported, mut seen) = (0, 0);
    for second in 0_u64.. {
        let end = Duration::from_secs(second + 1);
        sleep_until(started + shared.real(end)).await;
        let concurrency = server.concurrency.load(Ordering::Relaxed);
        let mut course = shared.course.borrow_mut();
        course.second(Duration::from_secs(second)).concurrency = concurrency;
        let elapsed = started.elapsed().as_secs();
        if elapsed > reported {
            reported = elapsed;
            let now = (second + 1).min(course.seconds.len() as u64) as usize;
            let news = &course.seconds[seen.min(now)..now];
            report_progress(setting, crowd, end, news, concurrency);
            seen = now;
        }
    }
    Ok(())
}

fn report_progress(
    setting: &OverloadSettings,
    crowd: &ClientCrowd,
    now: Duration,
    news: &[Second],
    concurrency: usize,
) {
    let rate =
        |of: fn(&Second) -> u64| news.iter().map(of).sum::<u64>() as f64 / news.len().max(1) as f64;
    let is_stopped = (setting.before..setting.resumed()).contains(&now);
    let server = if is_stopped { "stopped".to_owned() } else { format!("works on {concurrency}") };
    let policies: Vec<_> = crowd.0.iter().map(|policy| policy.kind.name()).collect();
    // No other way is left to report an error.
    let _ = writeln!(
        std::io::stderr(),
        "{:>4} s of {}: {:>4.0} answers/s, {:>4.0} timeouts/s, server {server} ({})",
        now.as_secs(),
        setting.end().as_secs(),
        rate(|second| second.answers),
        rate(|second| second.timeouts),
        policies.join(" + "),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_state_counts_as_no_number() {
        assert_eq!(parse("3 17"), Some((3, 17)));
        for line in ["", "3", "3 ", " 17", "x 17", "3 x", "3 17 5", "-1 17"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
