//! The real server: an HTTP server that answers each request when [`ServerWork`] marks it as done.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, body};
use hyper_util::rt::TokioIo;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local, unconstrained};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{ServerWork, Slowness};

/// First argument that makes this program the server.
pub const SERVE: &str = "serve-overload";

/// Interval between checks for finished requests.
const TICK: Duration = Duration::from_millis(1);
/// Number of checks between reports of the load.
const TICKS: u32 = 20;
/// Pause after a failure to accept a connection.
const PAUSE: Duration = Duration::from_millis(5);

type Waiting = Rc<RefCell<ServerWork<oneshot::Sender<()>>>>;

/// Serves until standard input ends or the parent exits. The arguments are those of [`Slowness`]
/// and the length of the queue of connections. Prints the port, and then repeatedly the number of
/// requests in progress and its maximum so far.
pub fn serve(arguments: &[OsString]) -> Result<()> {
    // Also while the server is stopped.
    set_pdeathsig(Signal::SIGKILL).context("can't ask for a signal when the parent dies")?;
    std::thread::spawn(|| {
        // The parent may have ended before the signal was requested.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let numbers: Vec<f64> = arguments.iter().filter_map(|it| it.to_str()?.parse().ok()).collect();
    let [base, limit, factor, divisor, backlog] = numbers[..] else {
        bail!("{SERVE} is for the laboratory itself");
    };
    let base = Duration::try_from_secs_f64(base)?;
    let slowness = Slowness { base, limit, factor, divisor };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(backlog as u32)?;
        println(&listener.local_addr()?.port().to_string())?;
        let work: Waiting = Rc::new(RefCell::new(ServerWork::new(slowness)));
        let started = Instant::now();
        spawn_local(accept(listener, Rc::clone(&work), started));
        answer(&work, started).await
    })
}

fn println(line: &str) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Answers finished requests and reports the load.
async fn answer(work: &Waiting, started: Instant) -> Result<()> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in (0..TICKS).cycle() {
        ticks.tick().await;
        let mut work = work.borrow_mut();
        while let Some(client) = work.done(started.elapsed()) {
            // The client may have given up.
            let _ = client.send(());
        }
        if tick == 0 {
            println(&format!("{} {}", work.concurrency(), work.peak))?;
        }
    }
    Ok(())
}

/// Accepts connections and their requests. A request counts from the acceptance until it is done,
/// even if its client has hung up, because work in progress is seldom stopped.
async fn accept(listener: TcpListener, work: Waiting, started: Instant) {
    loop {
        // All waiting connections are accepted before any answer, as in a server with a thread for
        // each.
        let Ok((stream, _)) = unconstrained(listener.accept()).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (done, answer) = oneshot::channel();
        work.borrow_mut().begin(started.elapsed(), done);
        let answer = RefCell::new(Some(answer));
        spawn_local(async move {
            let service = service_fn(|_: Request<body::Incoming>| {
                let answer = answer.take();
                async move {
                    if let Some(answer) = answer {
                        let _ = answer.await;
                    }
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"OK\n"))))
                }
            });
            // A client that hangs up is no error of the server.
            let _ = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
