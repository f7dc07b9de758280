//! A `forall` succeeds if enough of its branches succeed, and fails once they cannot any more. Its
//! reports are true, and nothing is left of branches that did not succeed.

use ftsh_machine::effect::TaskId;
use ftsh_machine::{Effect, Event, Time};

use super::branches::{Branch, Branches, said};
use super::{Judged, Look, Oracle, Verdict};
use crate::program::{Promises, Site};

/// Reported result of a site.
struct SiteReport {
    parent: TaskId,
    variable: String,
    /// Lists of a failure: the words that failed, the others, and the number of errors.
    lists: Option<[Vec<String>; 3]>,
}

pub(super) struct Quorum {
    branches: Branches,
    reports: Vec<SiteReport>,
    judged: Judged,
}

impl Quorum {
    pub(super) fn new(promises: &Promises) -> Self {
        let branches = Branches::new(&promises.sites);
        Self { branches, reports: Vec::new(), judged: Judged::default() }
    }
}

impl Oracle for Quorum {
    fn name(&self) -> &'static str {
        "quorum"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        self.branches.effect(effect);
        if let Some((run, words)) = said(effect) {
            if !self.branches.is_over(run.task, &words) {
                return Ok(());
            }
            let lists = match words[0].as_str() {
                "done" => None,
                "failed" => {
                    let mut lists = words[2..].split(|word| word == "/").map(<[_]>::to_vec);
                    Some([(); 3].map(|()| lists.next().unwrap_or_default()))
                }
                _ => return Ok(()),
            };
            let (parent, variable) = (run.task, words[1].clone());
            self.reports.push(SiteReport { parent, variable, lists });
        }
        Ok(())
    }

    fn event(&mut self, _: Time, event: &Event) -> Verdict {
        self.branches.event(event);
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        self.branches.look(look);
        for (parent, variable) in self.branches.places() {
            if let Some((site, all)) = self.branches.of(parent, &variable)
                && is_decided(site, &all)
            {
                self.judged.count("forall is decided");
                if let Some((_, branch)) = all.iter().find(|(task, it)| it.is_busy(*task, look)) {
                    let word = &branch.word;
                    return Err(format!("`{word}` of {variable} goes on, but all is decided"));
                }
            }
        }
        for SiteReport { parent, variable, lists } in std::mem::take(&mut self.reports) {
            let Some((site, all)) = self.branches.of(parent, &variable) else { continue };
            if all.is_empty()
                && lists.as_ref().is_some_and(|lists| lists[0].is_empty() && lists[1].is_empty())
            {
                // The site has not even begun.
                continue;
            }
            let wrong = |what| format!("{variable}: {what}");
            let refused = self.branches.refused.contains(&parent);
            ended(site, &all, look, refused).map_err(wrong)?;
            match &lists {
                None => succeeded(site, &all).map_err(wrong)?,
                Some(lists) => failed(site, &all, lists, refused).map_err(wrong)?,
            }
            if site.finish_running {
                self.judged.count("finish running");
                continue;
            }
            self.judged.count(match (site.at_least, site.keep_going, lists) {
                (None, false, None) => "forall succeeds",
                (None, false, Some(_)) => "forall fails",
                (Some(_), false, None) => "quorum is reached",
                (Some(_), false, Some(_)) => "quorum is missed",
                (None, true, _) => "keep going",
                (Some(_), true, None) => "quorum is reached, keep going",
                (Some(_), true, Some(_)) => "quorum is missed, keep going",
            });
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}

type All<'a> = [(TaskId, &'a Branch)];

fn good(all: &All) -> usize {
    all.iter().filter(|(_, branch)| branch.succeeded == Some(true)).count()
}

/// Returns the number of branches that failed by themselves.
fn bad(all: &All) -> usize {
    all.iter().filter(|(_, it)| it.succeeded == Some(false) && !it.canceled).count()
}

/// True if the result is certain, so no branch needs to continue.
fn is_decided(site: &Site, all: &All) -> bool {
    match site.at_least {
        _ if site.keep_going => false,
        // Those that run finish after a failure, also of a branch whose processes are being ended.
        _ if site.finish_running => false,
        None => bad(all) > 0,
        Some(least) => good(all) >= least || site.words.len() - bad(all) < least,
    }
}

/// Checks that all branches have ended, with at most one per word, and that nothing is left of the
/// losers.
fn ended(site: &Site, all: &All, look: &Look, refused: bool) -> Verdict {
    for (place, (task, branch)) in all.iter().enumerate() {
        let word = &branch.word;
        if all[..place].iter().any(|(_, before)| before.word == *word) {
            return Err(format!("`{word}` has two branches"));
        }
        match branch.succeeded {
            None => return Err(format!("the branch of `{word}` has not ended")),
            Some(true) => {}
            Some(false) => branch.left(*task, look)?,
        }
    }
    if site.keep_going
        && !refused
        && (all.len() < site.words.len() || all.iter().any(|(_, branch)| branch.canceled))
    {
        return Err("not all ran to their end".into());
    }
    Ok(())
}

fn succeeded(site: &Site, all: &All) -> Verdict {
    let needed = site.at_least.unwrap_or(site.words.len());
    let good = good(all);
    if good < needed { Err(format!("succeeds with {good} of {needed}")) } else { Ok(()) }
}

fn failed(site: &Site, all: &All, lists: &[Vec<String>; 3], refused: bool) -> Verdict {
    let is_good = |word: &&String| {
        all.iter().any(|(_, branch)| branch.word == **word && branch.succeeded == Some(true))
    };
    let (fine, others): (Vec<_>, Vec<_>) = site.words.iter().partition(is_good);
    let [reported_failed, reported_fine, errors] = lists;
    if errors.concat() != others.len().to_string() {
        return Err(format!("{others:?} failed, but it has {errors:?} errors"));
    }
    if others.iter().ne(&reported_failed.iter().collect::<Vec<_>>())
        || fine.iter().ne(&reported_fine.iter().collect::<Vec<_>>())
    {
        return Err(format!("{others:?} failed and {fine:?} did not, but it says {lists:?}"));
    }
    let needed = site.at_least.unwrap_or(site.words.len());
    // A list that is too short fails at once.
    let is_over = bad(all) > 0 || site.words.len() < needed;
    let is_right = good(all) < needed
        && (site.keep_going || is_decided(site, all) || site.finish_running && is_over);
    if is_right || refused {
        Ok(())
    } else {
        Err(format!("fails, but {} are good and {} bad", good(all), bad(all)))
    }
}
