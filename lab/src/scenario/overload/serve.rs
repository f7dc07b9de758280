//! The real server: an HTTP server that answers each request when a [`Work`] says so.

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

use super::{Slowness, Work};

/// The first argument that makes this program the server.
pub const SERVE: &str = "serve-overload";

/// How often the server looks whether it is done with something.
const TICK: Duration = Duration::from_millis(1);
/// How often it says how much it has to do, in ticks.
const TICKS: u32 = 20;
/// How long it waits when it can't take a connection.
const PAUSE: Duration = Duration::from_millis(5);

type Waiting = Rc<RefCell<Work<oneshot::Sender<()>>>>;

/// Serves until standard input ends, or the process that started it. The arguments are those of
/// [`Slowness`] and the length of the queue of connections. Prints the port, and then again and
/// again how many requests are in progress, and how many there were at most.
pub fn serve(arguments: &[OsString]) -> Result<()> {
    // Even while it is stopped.
    set_pdeathsig(Signal::SIGKILL).context("can't ask for a signal when the parent dies")?;
    std::thread::spawn(|| {
        // Ends with the parent, should it have died before it could be asked for a signal.
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
        let work: Waiting = Rc::new(RefCell::new(Work::new(slowness)));
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

/// Answers requests when they are done, and says how much there is to do.
async fn answer(work: &Waiting, started: Instant) -> Result<()> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in (0..TICKS).cycle() {
        ticks.tick().await;
        let mut work = work.borrow_mut();
        while let Some(client) = work.done(started.elapsed()) {
            // Nobody may wait for it any more.
            let _ = client.send(());
        }
        if tick == 0 {
            println(&format!("{} {}", work.concurrency(), work.peak))?;
        }
    }
    Ok(())
}

/// Takes connections and their requests. A request counts from when its connection is taken until
/// it is done, also when its client has hung up: work that has begun is seldom stopped.
async fn accept(listener: TcpListener, work: Waiting, started: Instant) {
    loop {
        // All that wait, before any is answered: as by a server with a thread for each.
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
            // A client that hangs up is no trouble of the server.
            let _ = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
