//! Servers of a file, one of which accepts requests and never answers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bstr::{BString, ByteSlice};
use ftsh_machine::Time;
use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};

use super::{Agenda, CommandModels, RunningProgram};

/// Parameters of the servers.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Time to send the file.
    pub data: Duration,
    /// Time to send the small file.
    pub flag: Duration,
}

/// State of the servers over time. Each server sends to one client at a time, while the others
/// wait.
#[derive(Debug)]
pub struct Servers {
    setting: ServerSettings,
    by_name: HashMap<BString, FileServer>,
    requests: HashMap<RunningProgram, FileRequest>,
    /// Counts of the results.
    pub counts: RequestCounts,
}

#[derive(Debug, Default)]
struct FileServer {
    is_hole: bool,
    /// Waiting clients; the server sends to the first one.
    queue: VecDeque<RunningProgram>,
}

#[derive(Debug)]
struct FileRequest {
    host: BString,
    is_flag: bool,
    since: Time,
}

/// Results of all requests, each with its time in seconds.
#[derive(Clone, Debug, Default)]
pub struct RequestCounts {
    /// Files that arrived.
    pub transfers: Vec<f64>,
    /// Canceled requests for the file, with their durations in seconds.
    pub stalls: Vec<(f64, f64)>,
    /// Canceled requests for the small file, with their durations in seconds.
    pub deferrals: Vec<(f64, f64)>,
}

/// End of a request at a server.
#[derive(Clone, Debug)]
pub struct Sent(RunningProgram);

impl Servers {
    /// Creates servers by name. The servers in `holes` never answer.
    pub fn new(setting: ServerSettings, names: &[&str], holes: &[&str]) -> Self {
        let server = |name: &&str| {
            let is_hole = holes.contains(name);
            (BString::from(*name), FileServer { is_hole, queue: VecDeque::new() })
        };
        let by_name = names.iter().map(server).collect();
        Self { setting, by_name, requests: HashMap::new(), counts: RequestCounts::default() }
    }

    /// Starts sending to the first waiting client.
    fn send(&self, host: &BString, agenda: &mut Agenda<Sent>) {
        let Some(server) = self.by_name.get(host).filter(|server| !server.is_hole) else { return };
        let Some(program) = server.queue.front() else { return };
        let Some(request) = self.requests.get(program) else { return };
        let takes = if request.is_flag { self.setting.flag } else { self.setting.data };
        agenda.wake(agenda.now() + takes, Sent(*program));
    }

    /// Removes a request; the server continues with the next one.
    fn leave(&mut self, program: RunningProgram, agenda: &mut Agenda<Sent>) -> Option<FileRequest> {
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

impl CommandModels for Servers {
    type Alarm = Sent;

    fn start(
        &mut self,
        program: RunningProgram,
        call: &Call,
        agenda: &mut Agenda<Sent>,
    ) -> Option<Model> {
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
            // Status of wget for a name that cannot be resolved.
            return Some(Model::fails(4).takes(self.setting.flag));
        };
        server.queue.push_back(program);
        let is_first = server.queue.len() == 1;
        self.requests
            .insert(program, FileRequest { host: host.clone(), is_flag, since: agenda.now() });
        if is_first {
            self.send(&host, agenda);
        }
        Some(Model::hangs())
    }

    fn cut_short(&mut self, program: RunningProgram, agenda: &mut Agenda<Sent>) {
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
        // Otherwise the request was canceled, and the alarm is out of date.
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
