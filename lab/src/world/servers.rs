//! Servers of a file, one of which takes requests and never answers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bstr::{BString, ByteSlice};
use ftsh_machine::Time;
use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};

use super::{Agenda, Commands, Program};

/// What is known of the servers.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How long sending the file takes.
    pub data: Duration,
    /// How long sending the small file takes.
    pub flag: Duration,
}

/// The servers in the course of time. Each sends to one client at a time, while the others wait.
#[derive(Debug)]
pub struct Servers {
    setting: Setting,
    by_name: HashMap<BString, Server>,
    requests: HashMap<Program, Request>,
    /// What came of it.
    pub counts: Counts,
}

#[derive(Debug, Default)]
struct Server {
    is_hole: bool,
    /// Who waits; the first is being sent to.
    queue: VecDeque<Program>,
}

#[derive(Debug)]
struct Request {
    host: BString,
    is_flag: bool,
    since: Time,
}

/// What came of all requests, each with the time in seconds when it came.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Files that arrived.
    pub transfers: Vec<f64>,
    /// Requests for the file that were cut short, and how many seconds each had taken.
    pub stalls: Vec<(f64, f64)>,
    /// Requests for the small file that were cut short, and how many seconds each had taken.
    pub deferrals: Vec<(f64, f64)>,
}

/// A server is done with a request.
#[derive(Clone, Debug)]
pub struct Sent(Program);

impl Servers {
    /// Servers by name; those of `holes` never answer.
    pub fn new(setting: Setting, names: &[&str], holes: &[&str]) -> Self {
        let server = |name: &&str| {
            let is_hole = holes.contains(name);
            (BString::from(*name), Server { is_hole, queue: VecDeque::new() })
        };
        let by_name = names.iter().map(server).collect();
        Self { setting, by_name, requests: HashMap::new(), counts: Counts::default() }
    }

    /// A server turns to the first who waits.
    fn send(&self, host: &BString, agenda: &mut Agenda<Sent>) {
        let Some(server) = self.by_name.get(host).filter(|server| !server.is_hole) else { return };
        let Some(program) = server.queue.front() else { return };
        let Some(request) = self.requests.get(program) else { return };
        let takes = if request.is_flag { self.setting.flag } else { self.setting.data };
        agenda.wake(agenda.now() + takes, Sent(*program));
    }

    /// Takes a request away; the server goes on with the next.
    fn leave(&mut self, program: Program, agenda: &mut Agenda<Sent>) -> Option<Request> {
        let request = self.requests.remove(&program)?;
        let server = self.by_name.get_mut(&request.host)?;
        let was_first = server.queue.front() == Some(&program);
        server.queue.retain(|it| *it != program);
        if was_first {
            self.send(&request.host, agenda);
        }
        Some(request)
    }
}

impl Commands for Servers {
    type Alarm = Sent;

    fn start(&mut self, program: Program, call: &Call, agenda: &mut Agenda<Sent>) -> Option<Model> {
        let [name, url] = call.words else { return None };
        if *name != "wget" {
            return None;
        }
        let (host, file) = url.strip_prefix(b"http://")?.split_once_str("/")?;
        let is_flag = match file {
            b"data" => false,
            b"flag" => true,
            _ => return None,
        };
        let host = BString::from(host);
        let Some(server) = self.by_name.get_mut(&host) else {
            // wget's status for a name that can't be resolved.
            return Some(Model::fails(4).takes(self.setting.flag));
        };
        server.queue.push_back(program);
        let is_first = server.queue.len() == 1;
        self.requests.insert(program, Request { host: host.clone(), is_flag, since: agenda.now() });
        if is_first {
            self.send(&host, agenda);
        }
        Some(Model::hangs())
    }

    fn cut_short(&mut self, program: Program, agenda: &mut Agenda<Sent>) {
        let now = agenda.now();
        if let Some(request) = self.leave(program, agenda) {
            let cut = (now.elapsed().as_secs_f64(), (now - request.since).as_secs_f64());
            if request.is_flag {
                self.counts.deferrals.push(cut);
            } else {
                self.counts.stalls.push(cut);
            }
        }
    }

    fn alarm(&mut self, Sent(program): Sent, agenda: &mut Agenda<Sent>) {
        let is_first = self.requests.get(&program).is_some_and(|request| {
            let server = self.by_name.get(&request.host);
            server.is_some_and(|server| server.queue.front() == Some(&program))
        });
        // Otherwise it was cut short, and this is about what no longer is.
        if !is_first {
            return;
        }
        if let Some(request) = self.leave(program, agenda) {
            if !request.is_flag {
                self.counts.transfers.push(agenda.now().elapsed().as_secs_f64());
            }
            agenda.end(program, CommandStatus::Exited(0));
        }
    }
}
