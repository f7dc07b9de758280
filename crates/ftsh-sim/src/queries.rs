//! Answers to the queries of a machine in a modelled world.

use std::time::Duration;

use bstr::{BString, ByteSlice};

use super::descriptors::{DescriptorTarget, Descriptors, Missing};
use super::model;
use super::shell::Shell;
use ftsh_machine::Time;
use ftsh_machine::effect::{IoId, Query};
use ftsh_machine::event::FreeResources;
use ftsh_machine::event::Reply;
use ftsh_syntax::ast::FileTest;

/// Start of all worlds, since 1970.
const EPOCH: Duration = Duration::from_secs(1_700_000_000);

impl Shell {
    /// Answers a query at `now`, with the available memory and the load of the machine.
    pub(super) fn answer(
        &mut self,
        directory: Option<&BString>,
        query: &Query,
        now: Time,
        (free, load): (u64, f64),
    ) -> Result<Reply, Missing> {
        let absolute = |path: &BString| -> BString {
            match directory {
                Some(directory) if !path.starts_with(b"/") => format!("{directory}/{path}").into(),
                _ => path.clone(),
            }
        };
        let file = |path: &BString| self.descriptors.files.get(&absolute(path));
        match query {
            Query::Test(FileTest::Directory, _) => Ok(Reply::Truth(false)),
            Query::Test(_, path) => Ok(Reply::Truth(file(path).is_some())),
            Query::Buffer(buffer) => Ok(Reply::Text(self.descriptors.buffer(*buffer))),
            Query::Glob(pattern) | Query::Files(pattern) => {
                let mut names: Vec<BString> = self.descriptors.files.keys().cloned().collect();
                names.retain(|name| model::matches(pattern, name));
                names.sort();
                Ok(Reply::Words(names))
            }
            Query::Clock => Ok(Reply::clock(EPOCH + now.elapsed())),
            Query::LocalTime(wanted) => {
                let now = EPOCH + now.elapsed();
                let at = wanted.at.unwrap_or((now.as_secs() as i64, now.subsec_nanos()));
                Ok(Reply::Text(universal_time(&wanted.pattern, at).into()))
            }
            Query::FreeResources => {
                Ok(Reply::Resources(FreeResources { memory: Some(free), load: Some(load) }))
            }
            Query::OwnDirectory => Ok(Reply::Text("/".into())),
            Query::PhysicalDirectory => {
                Ok(Reply::Text(directory.cloned().unwrap_or_else(|| "/".into())))
            }
            Query::Directory(path) if *path == "." => Ok(Reply::Text("/".into())),
            Query::Directory(path) if file(path).is_some() => Err(Missing::Directory(path.clone())),
            Query::Directory(path) if path.starts_with(b"/") => Ok(Reply::Text(path.clone())),
            // Without a directory, the shell is in `/`.
            Query::Directory(path) => {
                let around = directory.map(|it| it.as_bstr()).filter(|it| *it != "/");
                let around = around.unwrap_or_default();
                Ok(Reply::Text(format!("{around}/{path}").into()))
            }
            Query::Home(user) => Ok(Reply::Text(format!("/home/{user}").into())),
            Query::File(path) => match file(path) {
                Some(content) => Ok(Reply::Text(content.clone())),
                None => Err(Missing::File(path.clone())),
            },
            // Redirections open files by these names, too.
            Query::BranchFiles { names, .. } => {
                let is = |name: &BString, file: &BString| {
                    let rest = file.strip_prefix(&name[..]);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
                };
                let is_missing =
                    |name: &&BString| !self.descriptors.files.keys().any(|file| is(name, file));
                match names.iter().find(is_missing) {
                    Some(name) => Err(Missing::File(name.clone())),
                    None => Ok(Reply::Truth(true)),
                }
            }
            Query::Filled(buffers) => {
                let mut buffers = buffers.clone();
                buffers.retain(|buffer| self.descriptors.is_filled(*buffer));
                Ok(Reply::Buffers(buffers))
            }
            Query::Tail(buffers, most) => Ok(Reply::Text(self.descriptors.tail(buffers, *most))),
            Query::Scratch(scratch) => Ok(Reply::Text(self.descriptors.drafts.scratch(*scratch))),
            Query::Input(io, number) => self.descriptors.read_all(*io, *number).map(Reply::Text),
            Query::InputWord(io, end) => self.descriptors.read_word(*io, end).map(Reply::Text),
            Query::InputPart(io) => self.descriptors.read_all(*io, 0).map(Reply::Text),
            Query::RecordedWords(words) => {
                let path = absolute(&words.path);
                Ok(Reply::Text(self.descriptors.record(path, words)))
            }
            Query::Durations(of) => Ok(Reply::Durations(self.durations.answer(of, directory))),
            Query::TakeBack(io) => {
                self.descriptors.cut(*io);
                Ok(Reply::Truth(true))
            }
            Query::InputEnded(io) => Ok(Reply::Truth(self.descriptors.input_ended(*io))),
            // Answered by the caller.
            Query::Filter(_) | Query::Leftovers(_) => Ok(Reply::Words(Vec::new())),
        }
    }
}

impl Descriptors {
    /// Empties the file or the buffer that descriptor 1 of a table leads to.
    fn cut(&mut self, io: IoId) {
        let content = match self.table(io).get(&1) {
            Some(DescriptorTarget::File(path)) => self.files.get_mut(path),
            Some(DescriptorTarget::Buffer(buffer)) => self.buffers.get_mut(buffer),
            Some(DescriptorTarget::StagedFile(draft)) => self.drafts.content(*draft),
            _ => None,
        };
        if let Some(content) = content {
            content.clear();
        }
    }
}

/// Returns a moment in universal time by a pattern; empty if that is impossible.
fn universal_time(pattern: &[u8], (seconds, nanos): (i64, u32)) -> String {
    let moment = jiff::Timestamp::new(seconds, nanos.min(999_999_999) as i32);
    let moment = moment.map(|moment| moment.to_zoned(jiff::tz::TimeZone::UTC));
    moment.and_then(|it| jiff::fmt::strtime::format(pattern, &it)).unwrap_or_default()
}
