//! Validity of the time limit that commands inherit.
//!
//! A command passes its environment on, including `FTSH_DEADLINE`. A daemon keeps the variable long
//! after its attempt has succeeded. Each limit therefore comes with a grant, which ends with the
//! attempt. A grant is a place in an unnamed file that holds the scope's number while the scope is
//! open. The tag in the environment names the place. An unreadable grant counts as ended: the shell
//! that created the grant kills the command at the limit anyway, and the variable only allows an
//! orderly end before.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;

use bstr::BString;

use super::scope_tag::{ScopeTag, Tagger, entries};
use ftsh_machine::effect::ScopeId;
use ftsh_machine::time::Deadline;
use ftsh_sys as sys;

/// Maximum number of grants in a tag: those with the earliest limits.
const MAX_GRANTS: usize = 8;

/// Size of a grant in the file, in bytes.
const SIZE: u64 = 8;

/// Grants of this shell, one for each open scope with a limit.
#[derive(Default)]
pub(crate) struct LimitGrants {
    /// File with the grants, created for the first grant; an error if it cannot be created.
    file: Option<io::Result<File>>,
    granted: HashMap<ScopeId, Grant>,
    /// Free places in the file.
    free: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Grant {
    place: u64,
    limit: Deadline,
}

impl LimitGrants {
    /// Environment variable with a time limit, in the form of [`super::passed_deadline`].
    pub(crate) const VARIABLE: &str = "FTSH_DEADLINE";

    /// Grants a limit to the commands of a scope.
    fn add(&mut self, key: &Tagger, scope: ScopeId, limit: Deadline) {
        if let Some(given) = self.granted.get_mut(&scope) {
            given.limit = limit;
            return;
        }
        let next = self.granted.len() as u64;
        let place = self.free.pop().unwrap_or(next);
        match self.file.get_or_insert_with(|| new_file(key)) {
            Ok(file) if file.write_all_at(&number(scope), place * SIZE).is_ok() => {
                self.granted.insert(scope, Grant { place, limit });
            }
            _ => self.free.push(place),
        }
    }

    /// Returns the tag notes of a command's limit and of the limits around it, each as
    /// `;MOMENT=PID.FD.PLACE.SCOPE`. `around` is the command's scope followed by the enclosing
    /// scopes, innermost first.
    pub(crate) fn note(
        &mut self,
        tagger: &Tagger,
        pid: i32,
        limit: Deadline,
        around: &[ScopeId],
        moment: impl Fn(Deadline) -> BString,
    ) -> String {
        let Some(&scope) = around.first() else { return String::new() };
        self.add(tagger, scope, limit);
        let Some(Ok(file)) = &self.file else { return String::new() };
        let mut governing: Vec<(ScopeId, Grant)> = Vec::new();
        for (id, given) in around.iter().filter_map(|id| Some((*id, *self.granted.get(id)?))) {
            // A limit may apply to several scopes, and stays valid until the outermost scope
            // closes.
            governing.retain(|(_, inner)| inner.limit != given.limit);
            // A `finally` group continues past the limits around it.
            if given.limit < limit {
                continue;
            }
            if governing.len() < MAX_GRANTS {
                governing.push((id, given));
            }
        }
        let fd = file.as_raw_fd();
        let describe = |(scope, given): &(ScopeId, Grant)| {
            format!(";{}={pid}.{fd}.{}.{}", moment(given.limit), given.place, scope.0)
        };
        governing.iter().map(describe).collect()
    }

    /// Ends the grant of a scope.
    pub(crate) fn end(&mut self, scope: ScopeId) {
        if let Some(given) = self.granted.remove(&scope) {
            if let Some(Ok(file)) = &self.file {
                // The memory is already allocated, so the write cannot fail for lack of space.
                let _ = file.write_all_at(&[0; SIZE as usize], given.place * SIZE);
            }
            self.free.push(given.place);
        }
    }
}

fn number(scope: ScopeId) -> [u8; SIZE as usize] {
    (scope.0 + 1).to_ne_bytes()
}

/// Returns the name of the file of grants, as `/proc` shows it.
fn file_name(run: &str) -> String {
    format!("ftsh-leases-{run}")
}

fn new_file(key: &Tagger) -> io::Result<File> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    let fd = memfd_create(file_name(key.name()).as_str(), MFdFlags::MFD_CLOEXEC)?;
    Ok(sys::move_up(fd)?.into())
}

/// Grant as described by a tag note.
#[derive(Debug, PartialEq, Eq)]
struct LimitGrant<'a> {
    /// Time limit, as in the environment variable.
    moment: &'a str,
    /// Name of the run that granted the limit.
    run: &'a str,
    /// Process id of the interpreter of that run.
    pid: u32,
    /// Descriptor of the file in that interpreter.
    fd: u32,
    place: u64,
    scope: ScopeId,
}

impl<'a> LimitGrant<'a> {
    fn parse(run: &'a str, text: &'a str) -> Option<Self> {
        let (moment, place) = text.split_once('=')?;
        let mut numbers = place.split('.');
        let (pid, fd) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let (place, scope) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some(Self { moment, run, pid, fd, place, scope: ScopeId(scope) })
    }
}

/// True if the scope of a grant is still open. False if the file cannot be read.
fn is_open(limit_grants: &LimitGrant) -> bool {
    let path = format!("/proc/{}/fd/{}", limit_grants.pid, limit_grants.fd);
    // The link is checked before the file is opened: the process id may belong to another process
    // now.
    let name = format!("/memfd:{} (deleted)", file_name(limit_grants.run));
    let mut found = [0; SIZE as usize];
    fs::read_link(&path).is_ok_and(|link| link.as_os_str() == name.as_str())
        && File::open(&path)
            .and_then(|file| {
                file.read_exact_at(&mut found, limit_grants.place.saturating_mul(SIZE))
            })
            .is_ok_and(|()| found == number(limit_grants.scope))
}

/// Returns the inherited limit, if a limit is still valid.
fn inherited() -> Option<OsString> {
    let inherited = std::env::var_os(LimitGrants::VARIABLE)?;
    let scope_tag = std::env::var_os(ScopeTag::VARIABLE).unwrap_or_default();
    governing(inherited.as_bytes(), scope_tag.as_bytes(), is_open).map(OsString::from_vec)
}

/// Returns the earliest limit with a valid grant, or the inherited limit itself if no note mentions
/// it: then another program set the variable.
fn governing(
    inherited: &[u8],
    scope_tag: &[u8],
    holds: impl Fn(&LimitGrant) -> bool,
) -> Option<Vec<u8>> {
    let grants = entries(scope_tag).flat_map(|entry| {
        entry.notes.split(';').filter_map(move |note| LimitGrant::parse(entry.run, note))
    });
    let grants: Vec<LimitGrant> = grants.collect();
    if grants.iter().all(|limit_grants| limit_grants.moment.as_bytes() != inherited) {
        return Some(inherited.to_vec());
    }
    let seconds = |limit_grants: &&LimitGrant| {
        let since_1970 = limit_grants.moment.split('@').next();
        since_1970.and_then(|it| it.parse().ok()).unwrap_or(f64::INFINITY)
    };
    let next = grants
        .iter()
        .filter(|limit_grants| holds(limit_grants))
        .min_by(|one, other| seconds(one).total_cmp(&seconds(other)));
    next.map(|limit_grants| limit_grants.moment.into())
}

/// Removes an inherited limit whose attempt has ended from the environment. Has no effect once the
/// process has several threads.
pub fn remove_expired_limit() {
    if std::env::var_os(LimitGrants::VARIABLE).is_some() {
        sys::set_variable(LimitGrants::VARIABLE, inherited());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &[u8] = b"5-aa.3;90.000000=6.12.0.1;20.000000=6.12.1.3,7-bb.0;19.5=8.11.0.0";

    fn of(inherited: &str, holds: impl Fn(&LimitGrant) -> bool) -> Option<String> {
        governing(inherited.as_bytes(), MARK, holds)
            .map(|limit| String::from_utf8_lossy(&limit).into())
    }

    #[test]
    fn a_limit_is_valid_until_its_grant_ends() {
        assert_eq!(of("19.5", |_| true).as_deref(), Some("19.5"));
        assert_eq!(
            of("19.5", |limit_grants| limit_grants.run == "5-aa").as_deref(),
            Some("20.000000")
        );
        assert_eq!(
            of("19.5", |limit_grants| limit_grants.scope == ScopeId(1)).as_deref(),
            Some("90.000000")
        );
        assert_eq!(of("19.5", |_| false), None);
        assert_eq!(of("20.000000", |_| false), None);
    }

    #[test]
    fn a_limit_of_another_program_is_always_valid() {
        assert_eq!(of("12", |_| false).as_deref(), Some("12"));
        assert_eq!(of("12", |_| true).as_deref(), Some("12"));
        assert_eq!(governing(b"12", b"", |_| true), Some(b"12".into()));
    }

    #[test]
    fn malformed_notes_are_no_grants() {
        for text in
            ["", "t", "1=", "1=2.3.4", "1=2.3.4.x", "1=-2.3.4.5", "1=2.3.4.99999999999999999999"]
        {
            assert_eq!(LimitGrant::parse("1-a", text), None, "{text}");
        }
        let limit_grants =
            LimitGrant::parse("1-a", "2.5=3.4.18446744073709551615.6").expect("a grant");
        assert!(!is_open(&limit_grants));
    }

    #[test]
    fn a_grant_ends_with_its_scope_and_its_place_is_reused() {
        let key = Tagger::new().expect("random numbers");
        let mut grants = LimitGrants::default();
        let one = |grants: &LimitGrants, scope| {
            let file = grants.file.as_ref()?.as_ref().ok()?;
            let given = grants.granted.get(&scope)?;
            let place = format!("{}.{}.{}", file.as_raw_fd(), given.place, scope.0);
            Some(format!("1.5={}.{place}", std::process::id()))
        };
        let (first, second) = (ScopeId(4), ScopeId(5));
        grants.add(&key, first, Deadline::at(ftsh_machine::Time::START));
        grants.add(&key, second, Deadline::at(ftsh_machine::Time::START));
        let texts = [first, second].map(|scope| one(&grants, scope).expect("a grant"));
        let holds = |text: &str| is_open(&LimitGrant::parse(key.name(), text).expect("a grant"));
        assert_eq!(texts.each_ref().map(|text| holds(text)), [true, true]);
        grants.end(first);
        assert_eq!(texts.each_ref().map(|text| holds(text)), [false, true]);
        grants.add(&key, ScopeId(6), Deadline::at(ftsh_machine::Time::START));
        assert_eq!(grants.granted[&ScopeId(6)].place, 0);
        assert_eq!(texts.each_ref().map(|text| holds(text)), [false, true]);
        drop(grants);
        assert!(!holds(&texts[1]));
    }
}
