//! Prewarm over the real parts: states are tokenised as a decision's would be, so that what is read
//! ahead is exactly the prefix that a decision on them reads.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actors::{Lane, Prefix, PrewarmOutcome, PrewarmSpec, ReadError, RejectReason, Tier};
use futures_util::TryFutureExt as _;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::Serving;
use crate::decide::Asker;
use crate::dialect::FAULTS_MAX;
use crate::error::{DecideError, Problem, Step};
use crate::json::Json;
use crate::prompt::{StatePrefix, Told};
use crate::question::Manner;
use crate::question::answer::Cost;
use crate::service::{Arrival, Caller, Prefixes, Prewarm, Prewarmed, Service as _, States, Warmed};

/// What all states of a request have in common.
struct Wish {
    asker: Asker,
    manner: Manner,
    profile: Option<String>,
    context: Option<String>,
    template: Vec<(String, Json)>,
    lane: Lane,
    deadline: Instant,
    deadline_is_asked: bool,
    ttl: Option<Duration>,
    wait: bool,
}

impl Serving {
    /// Makes the states of a request resident, several side by side: what they share is read once.
    pub(super) async fn prewarmed(
        &self,
        caller: Caller,
        request: Prewarm,
        arrival: Arrival,
    ) -> Result<Prewarmed, DecideError> {
        let asker = self.asker(&caller, arrival);
        let wish = Wish {
            lane: request.lane.unwrap_or(Lane::Batch),
            deadline: self.decider.deadline(asker.since, request.timeout),
            deadline_is_asked: request.timeout.is_some(),
            ttl: request.ttl,
            wait: request.wait,
            manner: request.manner,
            profile: request.profile,
            context: request.context,
            template: request.template,
            asker,
        };
        let model = self.served_name().to_owned();
        let state = match request.states {
            States::One(state) => state,
            States::Many(states) => {
                let (prefixes, cost) = self.warm_all(&wish, states).await?;
                return Ok(Prewarmed { model, prefixes, cost, state_key: None });
            }
        };
        let (warmed, cost, prefix) = self.warm(&wish, state).await?;
        let state_key = Some(self.secret.key(&[&prefix.id]));
        Ok(Prewarmed { model, prefixes: Prefixes::One(warmed), cost, state_key })
    }

    async fn warm_all(
        &self,
        wish: &Wish,
        states: Vec<Json>,
    ) -> Result<(Prefixes, Cost), DecideError> {
        let warmed = join_all(states.into_iter().map(|state| self.warm(wish, state))).await;
        let mut cost = nothing(wish.lane);
        let mut prefixes = Vec::with_capacity(warmed.len());
        for (index, warmed) in warmed.into_iter().enumerate() {
            prefixes.push(match warmed {
                Ok((warmed, own, prefix)) => {
                    add(&mut cost, &own);
                    Ok(self.still(wish, warmed, &prefix.prefix))
                }
                Err(error) => Err(of_state(index, error)),
            });
        }
        match refusal_of_all(&prefixes) {
            Some(error) => Err(error),
            None => Ok((Prefixes::Many(prefixes), cost)),
        }
    }

    /// What a state is once all of its list are read: a later one may have driven it out.
    fn still(&self, wish: &Wish, warmed: Warmed, prefix: &Prefix) -> Warmed {
        if !wish.wait || warmed.tier != Tier::Exact || self.decider.actors().is_resident(prefix) {
            return warmed;
        }
        Warmed { reused: false, stored: false, tier: Tier::Off, ..warmed }
    }

    async fn warm(
        &self,
        wish: &Wish,
        state: Json,
    ) -> Result<(Warmed, Cost, StatePrefix), DecideError> {
        let (since, deadline) = (wish.asker.since, wish.deadline);
        let profile = wish.profile.as_deref();
        let prompter = &self.decider.prompters().with(wish.manner, profile, &wish.template)?;
        let told = Told { context: wish.context.clone(), ..Told::of(state) };
        let prefix = self.decider.prefix(prompter, told, wish.asker.salt);
        let prefix = self.decider.in_time(since, deadline, prefix).await?;
        let began = Instant::now();
        let warm = self.decider.actors().prewarm(PrewarmSpec {
            tenant: wish.asker.tenant.clone(),
            prefix: prefix.prefix.clone(),
            lane: wish.lane,
            ttl: wish.ttl,
            wait: wish.wait,
            deadline: Some(deadline),
            deadline_is_asked: wish.deadline_is_asked,
        });
        let warm = warm.map_err(DecideError::from);
        let outcome = self.decider.in_time(since, deadline, warm).await?;
        let cost = Cost {
            input_tokens: u64::from(prefix.state_tokens),
            prompt_tokens: u64::from(outcome.prompt_tokens),
            computed_tokens: u64::from(outcome.computed),
            cached_tokens: u64::from(cached(&outcome)),
            queue_wait: outcome.queue_wait,
            state_wait: began.elapsed().saturating_sub(outcome.queue_wait),
            state_tokenisations: u32::from(prefix.tokenised),
            ..nothing(wish.lane)
        };
        Ok((warmed(&outcome), cost, prefix))
    }
}

/// Tokens that were there, or that others had computed meanwhile.
fn cached(outcome: &PrewarmOutcome) -> u32 {
    let others = outcome.prompt_tokens.saturating_sub(outcome.computed);
    if outcome.stored { others } else { outcome.reused }
}

fn warmed(outcome: &PrewarmOutcome) -> Warmed {
    // What runs beyond the budget at this moment is there, but does not stay.
    let is_reused = outcome.stored && outcome.reused == outcome.prompt_tokens;
    let left = outcome.expires_at.map(|at| at.saturating_duration_since(Instant::now()));
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let is_held = outcome.pinned || outcome.pending;
    Warmed {
        prompt_tokens: u64::from(outcome.prompt_tokens),
        reused: is_reused,
        stored: outcome.stored && !is_reused,
        tier: outcome.tier,
        expires_at: left.map(|left| (since_1970 + left).as_secs()),
        handle: is_held.then(|| outcome.pin.to_string()),
    }
}

/// The cost of no work.
fn nothing(lane: Lane) -> Cost {
    Cost {
        lane,
        input_tokens: 0,
        prompt_tokens: 0,
        computed_tokens: 0,
        cached_tokens: 0,
        prepare: Duration::ZERO,
        queue_wait: Duration::ZERO,
        state_wait: Duration::ZERO,
        state_time: Duration::ZERO,
        engine_wait: Duration::ZERO,
        engine_time: Duration::ZERO,
        steps_time: Duration::ZERO,
        behind_registration: false,
        state_tokenisations: 0,
        rows: Vec::new(),
        prefix_tokens: 0,
        runs: 0,
    }
}

/// Tokens add up; times are those of the state that took longest.
fn add(sum: &mut Cost, own: &Cost) {
    sum.input_tokens += own.input_tokens;
    sum.prompt_tokens += own.prompt_tokens;
    sum.computed_tokens += own.computed_tokens;
    sum.cached_tokens += own.cached_tokens;
    sum.state_tokenisations += own.state_tokenisations;
    if own.queue_wait + own.state_wait > sum.queue_wait + sum.state_wait {
        (sum.queue_wait, sum.state_wait) = (own.queue_wait, own.state_wait);
    }
}

/// The error of one of several states, which says of which.
fn of_state(index: usize, error: DecideError) -> DecideError {
    let of_reason = |reason: &RejectReason| {
        let path = vec!["state".into()];
        Problem::new(path, reason.as_str(), reason.to_string())
    };
    let problems = match error {
        DecideError::Invalid(problems) => problems,
        DecideError::Read(ReadError::Rejected(
            reason @ (RejectReason::TooLong { .. } | RejectReason::Oversize { .. }),
        )) => vec![of_reason(&reason)],
        other @ (DecideError::Read(_)
        | DecideError::Unsupported(_)
        | DecideError::Capability(_)
        | DecideError::Template(_)
        | DecideError::UnknownModel { .. }
        | DecideError::UnknownProfile { .. }
        | DecideError::NoReadStrategy(_)
        | DecideError::RegistrationsFull(_)
        | DecideError::Internal { .. }) => return other,
    };
    let renamed = |problem: Problem| {
        let start = [Step::from("states"), Step::from(index)];
        let path = start.into_iter().chain(problem.path.into_iter().skip(1)).collect();
        Problem { path, ..problem }
    };
    DecideError::Invalid(problems.into_iter().map(renamed).collect())
}

/// What a request ends with of whose states none was read: all their faults, or why the first was
/// refused. `None` where one was read, or where some are at fault and others were only refused for
/// now: then each says for itself.
fn refusal_of_all(prefixes: &[Result<Warmed, DecideError>]) -> Option<DecideError> {
    let mut problems = Vec::new();
    let mut others = Vec::new();
    for prefix in prefixes {
        match prefix {
            Ok(_) => return None,
            Err(DecideError::Invalid(found)) => problems.extend(found.iter().cloned()),
            Err(error) => others.push(error),
        }
    }
    if others.is_empty() {
        problems.truncate(FAULTS_MAX);
        return Some(DecideError::Invalid(problems));
    }
    others.first().filter(|_| problems.is_empty()).map(|error| (*error).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn too_long() -> DecideError {
        ReadError::Rejected(RejectReason::TooLong { tokens: 9, tokens_max: 8 }).into()
    }

    #[test]
    fn the_fault_of_a_state_says_which_it_is() {
        let DecideError::Invalid(problems) = of_state(3, too_long()) else { panic!("no fault") };
        assert_eq!(problems[0].path, [Step::from("states"), Step::from(3)]);
        let path = vec!["state".into()];
        let found = Problem::new(path, "too_long", "x".to_owned());
        let DecideError::Invalid(problems) = of_state(1, DecideError::Invalid(vec![found])) else {
            panic!("no fault")
        };
        assert_eq!(problems[0].path, [Step::from("states"), Step::from(1)]);
        assert_eq!(of_state(0, ReadError::Draining.into()), ReadError::Draining.into());
    }

    #[test]
    fn a_request_is_refused_where_none_of_its_states_was_read() {
        let draining = || Err(ReadError::Draining.into());
        let at_fault = |index| Err(of_state(index, too_long()));
        let read = Ok(Warmed {
            prompt_tokens: 1,
            reused: true,
            stored: false,
            tier: Tier::Exact,
            expires_at: None,
            handle: None,
        });
        assert_eq!(refusal_of_all(&[read, draining()]), None);
        assert_eq!(refusal_of_all(&[draining(), at_fault(1)]), None, "each says for itself");
        assert_eq!(refusal_of_all(&[draining(), draining()]), Some(ReadError::Draining.into()));
        let all: Vec<_> = (0..FAULTS_MAX + 5).map(at_fault).collect();
        let Some(DecideError::Invalid(problems)) = refusal_of_all(&all) else { panic!("no fault") };
        assert_eq!(problems.len(), FAULTS_MAX);
        assert_eq!(problems[1].path, [Step::from("states"), Step::from(1)]);
    }
}
