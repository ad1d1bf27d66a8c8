//! What decisions can rely on, through the four actors over an engine in virtual time.

#[path = "support/fake.rs"]
mod fake;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use actors::{
        Config, EngineError, EngineState, Handle, Lane, Prefix, PrewarmSpec, ReadError,
        ReadOutcome, ReadSpec, Register, RejectReason, TenantId, start,
    };
    use tokio::time::{Instant, sleep};

    use crate::fake::{
        DEATH, FakeEngine, Fault, NAN, PANIC, POISON, accounted, expected, faulty, meta, prefix,
        spec,
    };

    fn config() -> Config {
        let mut config = Config::default();
        config.cache.kv_bytes = 100_000;
        config
    }

    async fn started(change: impl FnOnce(&mut Config)) -> (Handle, Arc<FakeEngine>) {
        let mut config = config();
        change(&mut config);
        let engine = Arc::new(FakeEngine::new());
        (start(Arc::clone(&engine), config).await.unwrap(), engine)
    }

    /// Lets messages that are under way arrive.
    async fn settle() {
        sleep(Duration::from_millis(1)).await;
    }

    type Outcomes = Vec<Result<ReadOutcome, ReadError>>;

    /// One decision of one stage, responded to.
    async fn decide(handle: &Handle, prefix: &Prefix, reads: Vec<ReadSpec>) -> Outcomes {
        let mut decision = handle.open(meta(prefix, Lane::Normal, reads.len())).unwrap();
        let outcomes = decision.read(reads).await.unwrap();
        decision.responded();
        settle().await;
        outcomes
    }

    async fn decide_one(handle: &Handle, prefix: &Prefix, read: ReadSpec) -> ReadOutcome {
        decide(handle, prefix, vec![read]).await.remove(0).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lone_question_runs_in_one_step() {
        let (handle, engine) = started(|_| ()).await;
        let (prefix, read) = (prefix(1, 1, 300), spec(1, 20));
        let outcome = decide_one(&handle, &prefix, read.clone()).await;
        assert_eq!(outcome.row, expected(&prefix, &read));
        assert_eq!((outcome.computed_tokens, outcome.cached_tokens), (340, 0));
        assert_eq!(handle.step_log().len(), 1);
        assert_eq!(engine.tokens.load(Ordering::SeqCst), 340);
        assert_eq!(outcome.timing.queue_wait, Duration::ZERO);
        assert_eq!(outcome.timing.engine_time, engine.step_cost + engine.token_cost * 340);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_state_runs_in_chunks_that_end_at_pages() {
        let (handle, _) = started(|_| ()).await;
        let (prefix, read) = (prefix(1, 1, 1_000), spec(1, 20));
        let outcome = decide_one(&handle, &prefix, read.clone()).await;
        assert_eq!(outcome.row, expected(&prefix, &read));
        let log = handle.step_log();
        assert!(log.len() > 2);
        for step in &log[..log.len() - 1] {
            let last = step.chunks.last().unwrap();
            assert_eq!((20 + last.from + last.tokens) % 64, 0);
            assert!(step.tokens <= 192);
        }
        assert_eq!(log.last().unwrap().rows.len(), 1, "the row joins the completing step");
        assert!(outcome.timing.state_wait > Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn rows_of_two_decisions_share_one_step() {
        let (handle, _) = started(|_| ()).await;
        let (one, two) = (prefix(1, 1, 100), prefix(1, 2, 90));
        let mut decisions: Vec<_> = [&one, &one, &two]
            .into_iter()
            .map(|prefix| handle.open(meta(prefix, Lane::Normal, 1)).unwrap())
            .collect();
        let ids: Vec<_> = decisions.iter().map(actors::DecisionHandle::id).collect();
        let [a, b, c] = &mut decisions[..] else { panic!("three decisions") };
        let (reads_a, reads_b, reads_c) = (vec![spec(1, 20)], vec![spec(2, 20)], vec![spec(3, 20)]);
        let (a, b, c) = tokio::join!(a.read(reads_a), b.read(reads_b), c.read(reads_c));
        for outcomes in [&a, &b, &c] {
            assert!(outcomes.as_ref().unwrap()[0].is_ok());
        }
        let log = handle.step_log();
        let shared = log.iter().any(|step| {
            let decisions: Vec<_> = step.rows.iter().map(|row| row[0].decision).collect();
            ids.iter().filter(|id| decisions.contains(id)).count() >= 2
        });
        assert!(shared, "{log:?}");
        let state_tokens: u32 =
            log.iter().flat_map(|step| &step.chunks).map(|chunk| chunk.tokens).sum();
        assert_eq!(state_tokens, 20 + 100 + 90, "head and states are computed once");
    }

    #[tokio::test(start_paused = true)]
    async fn fifty_requests_on_one_cold_state_compute_it_once() {
        let (handle, _) = started(|_| ()).await;
        let prefix = prefix(1, 1, 1_000);
        let tasks: Vec<_> = (0..50)
            .map(|name| {
                let (handle, prefix) = (handle.clone(), prefix.clone());
                tokio::spawn(async move { decide_one(&handle, &prefix, spec(name, 10)).await })
            })
            .collect();
        let mut computed = 0;
        for task in tasks {
            let outcome = task.await.unwrap();
            computed += outcome.computed_tokens;
            assert_eq!(outcome.computed_tokens + outcome.cached_tokens, 1_030);
        }
        assert_eq!(computed, 20 + 1_000 + 50 * 10);
        let totals = handle.snapshot().load.totals;
        assert_eq!(totals.computed_tokens, u64::from(computed));
        assert_eq!(handle.snapshot().residency.duplicate_tokens, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_question_hits_only_when_registered() {
        for (when, computed) in [(Register::After, 20), (Register::Off, 320)] {
            let (handle, _) = started(|config| config.registration.when = when).await;
            let prefix = prefix(1, 1, 300);
            decide_one(&handle, &prefix, spec(1, 20)).await;
            let second = decide_one(&handle, &prefix, spec(2, 20)).await;
            assert_eq!(second.computed_tokens, computed, "{when:?}");
            assert_eq!(second.row, expected(&prefix, &spec(2, 20)));
            let counters = handle.snapshot().registration;
            assert!(counters.balance());
            assert_eq!(counters.registered, if when == Register::After { 2 } else { 0 });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_goes_away_registers_nothing() {
        let (handle, _) = started(|_| ()).await;
        let prefix = prefix(1, 1, 300);
        let mut decision = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
        decision.read(vec![spec(1, 20)]).await.unwrap();
        drop(decision);
        settle().await;
        assert_eq!(handle.snapshot().registration.submitted, 0);
        let residency = handle.snapshot().residency;
        assert_eq!((residency.segments, residency.leased), (1, 0), "only the head stays");
    }

    #[tokio::test(start_paused = true)]
    async fn the_state_stays_leased_between_stages() {
        let (handle, _) = started(|config| config.registration.when = Register::Off).await;
        let prefix = prefix(1, 1, 300);
        let mut decision = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
        decision.read(vec![spec(1, 20)]).await.unwrap();
        sleep(Duration::from_secs(5)).await;
        let outcomes = decision.read(vec![spec(2, 20), spec(3, 21)]).await.unwrap();
        let computed: Vec<_> =
            outcomes.iter().map(|outcome| outcome.as_ref().unwrap().computed_tokens).collect();
        assert_eq!(computed, [20, 21]);
    }

    #[tokio::test(start_paused = true)]
    async fn equal_reads_share_a_row() {
        let (handle, engine) = started(|_| ()).await;
        let prefix = prefix(1, 1, 100);
        let outcomes = decide(&handle, &prefix, vec![spec(1, 20); 3]).await;
        for outcome in &outcomes {
            assert_eq!(outcome.as_ref().unwrap().row, expected(&prefix, &spec(1, 20)));
        }
        assert_eq!(engine.tokens.load(Ordering::SeqCst), 140);
        let computed: u32 = outcomes.iter().map(|one| one.as_ref().unwrap().computed_tokens).sum();
        assert_eq!(computed, 140);
        assert_eq!(handle.step_log()[0].rows[0].len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn case_15_cancelled_reads_are_not_computed() {
        let (handle, engine) = started(|_| ()).await;
        let mut waiting = Vec::new();
        for name in 0..1_000 {
            let (handle, prefix) = (handle.clone(), prefix(1, name, 50));
            waiting
                .push(tokio::spawn(async move { decide_one(&handle, &prefix, spec(1, 10)).await }));
        }
        settle().await;
        for task in &waiting {
            task.abort();
        }
        settle().await;
        let before = engine.tokens.load(Ordering::SeqCst);
        let fresh = decide_one(&handle, &prefix(1, 5_000, 50), spec(1, 10)).await;
        assert!(fresh.timing.queue_wait <= Duration::from_millis(400), "{fresh:?}");
        assert!(engine.tokens.load(Ordering::SeqCst) - before <= 512 + 80);
        let load = handle.snapshot().load;
        assert_eq!((load.waiting(), load.reads_in_flight, load.decisions_open), (0, 0, 0));
        assert_eq!(load.totals.admitted, load.totals.ended());
    }

    #[tokio::test(start_paused = true)]
    async fn case_16_cancel_keeps_a_shared_read() {
        let (handle, _) = started(|_| ()).await;
        let prefix = prefix(1, 1, 1_000);
        let spawn = || {
            let (handle, prefix) = (handle.clone(), prefix.clone());
            tokio::spawn(async move { decide_one(&handle, &prefix, spec(1, 20)).await })
        };
        let (first, second) = (spawn(), spawn());
        sleep(Duration::from_millis(200)).await;
        first.abort();
        let outcome = second.await.unwrap();
        assert_eq!(outcome.row, expected(&prefix, &spec(1, 20)));
        let state_tokens: u32 = handle
            .step_log()
            .iter()
            .flat_map(|step| step.chunks.clone())
            .map(|chunk| chunk.tokens)
            .sum();
        assert_eq!(state_tokens, 1_020, "the prefill went on for the one that is left");
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_the_read_keeps_the_decision() {
        let (handle, _) = started(|_| ()).await;
        let prefix = prefix(1, 1, 1_000);
        let mut decision = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
        let dropped =
            tokio::time::timeout(Duration::from_millis(50), decision.read(vec![spec(1, 20)])).await;
        assert!(dropped.is_err());
        settle().await;
        assert_eq!(handle.snapshot().load.totals.cancelled, 1);
        let outcomes = decision.read(vec![spec(2, 20)]).await.unwrap();
        assert_eq!(outcomes[0].as_ref().unwrap().row, expected(&prefix, &spec(2, 20)));
    }

    #[tokio::test(start_paused = true)]
    async fn case_32_one_bad_row_fails_alone() {
        for (bad, error) in
            [(POISON, EngineError::Forward("poison".to_owned())), (NAN, EngineError::NonFinite)]
        {
            let (handle, _) = started(|_| ()).await;
            let prefix = prefix(1, 1, 100);
            let mut reads: Vec<_> = (0..100).map(|name| spec(name, 5)).collect();
            reads.insert(50, faulty(bad));
            let outcomes = decide(&handle, &prefix, reads).await;
            for (index, outcome) in outcomes.iter().enumerate() {
                if index == 50 {
                    assert_eq!(outcome, &Err(ReadError::Engine(error.clone())));
                } else {
                    assert!(outcome.is_ok(), "{index}: {outcome:?}");
                }
            }
            assert_eq!(handle.snapshot().load.engine, EngineState::Ready);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn case_28_a_cache_of_zero_still_answers() {
        for kv_bytes in [0, 1, 200] {
            let (handle, _) = started(|config| config.cache.kv_bytes = kv_bytes).await;
            let tasks: Vec<_> = (0..6)
                .map(|name| {
                    let (handle, prefix) = (handle.clone(), prefix(1, name / 2, 700));
                    tokio::spawn(async move {
                        let outcome = decide_one(&handle, &prefix, spec(name, 20)).await;
                        assert_eq!(outcome.row, expected(&prefix, &spec(name, 20)));
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            let residency = handle.snapshot().residency;
            assert!(residency.used <= kv_bytes);
            assert_eq!((residency.overflow, residency.leased), (0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn twice_the_budget_of_states_evicts_the_oldest() {
        let (handle, _) = started(|config| config.cache.kv_bytes = 2_000).await;
        for name in 0..20 {
            decide_one(&handle, &prefix(1, name, 200), spec(1, 20)).await;
            let residency = handle.snapshot().residency;
            assert!(residency.used + residency.reserved <= 2_000);
            assert_eq!(residency.overflow, 0);
        }
        assert!(handle.snapshot().residency.evictions > 10);
        let newest = decide_one(&handle, &prefix(1, 19, 200), spec(2, 20)).await;
        assert_eq!(newest.computed_tokens, 20, "the newest is still there");
        let oldest = decide_one(&handle, &prefix(1, 0, 200), spec(2, 20)).await;
        assert_eq!(oldest.computed_tokens, 220, "the head is never computed again");
    }

    #[tokio::test(start_paused = true)]
    async fn an_urgent_read_overtakes_a_long_prefill() {
        let (handle, _) = started(|_| ()).await;
        let long = {
            let (handle, prefix) = (handle.clone(), prefix(1, 1, 3_000));
            tokio::spawn(async move {
                let mut decision = handle.open(meta(&prefix, Lane::Batch, 1)).unwrap();
                decision.read(vec![spec(1, 20)]).await.unwrap().remove(0).unwrap()
            })
        };
        sleep(Duration::from_millis(200)).await;
        let prefix = prefix(1, 2, 50);
        let mut decision = handle.open(meta(&prefix, Lane::Urgent, 1)).unwrap();
        let urgent = decision.read(vec![spec(2, 20)]).await.unwrap().remove(0).unwrap();
        assert!(accounted(&urgent) < Duration::from_millis(600), "{urgent:?}");
        let long = long.await.unwrap();
        assert_eq!(long.computed_tokens, 3_040, "its progress is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn an_expired_read_says_how_long_it_waited() {
        let (handle, _) = started(|_| ()).await;
        let first = {
            let (handle, prefix) = (handle.clone(), prefix(1, 1, 3_000));
            tokio::spawn(async move { decide_one(&handle, &prefix, spec(1, 20)).await })
        };
        settle().await;
        let mut late = meta(&prefix(1, 2, 2_000), Lane::Normal, 1);
        late.deadline = Some(Instant::now() + Duration::from_millis(300));
        let mut decision = handle.open(late).unwrap();
        let outcome = decision.read(vec![spec(1, 20)]).await.unwrap().remove(0);
        let Err(ReadError::Expired { waited }) = outcome else { panic!("{outcome:?}") };
        assert!(waited >= Duration::from_millis(300) && waited <= Duration::from_millis(700));
        let again = decision.read(vec![spec(2, 20)]).await.unwrap().remove(0);
        assert!(matches!(again, Err(ReadError::Expired { .. })));
        assert_eq!(first.await.unwrap().computed_tokens, 3_040);
    }

    #[tokio::test(start_paused = true)]
    async fn the_times_of_a_read_add_up() {
        let (handle, _) = started(|_| ()).await;
        let begin = Instant::now();
        let tasks: Vec<_> = (0..30)
            .map(|name| {
                let (handle, prefix) = (handle.clone(), prefix(1, name % 5, 100 * (name % 9)));
                tokio::spawn(async move {
                    sleep(Duration::from_millis(u64::from(name) * 37)).await;
                    let at = Instant::now();
                    let mut decision = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
                    let outcome = decision.read(vec![spec(name, 20)]).await.unwrap().remove(0);
                    (at.elapsed(), outcome.unwrap())
                })
            })
            .collect();
        for task in tasks {
            let (elapsed, outcome) = task.await.unwrap();
            let difference = elapsed.abs_diff(accounted(&outcome));
            assert!(difference < Duration::from_millis(1), "{elapsed:?} {outcome:?}");
        }
        assert!(begin.elapsed() > Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_answers_everything() {
        let (handle, _) = started(|config| {
            config.scheduler.drain_timeout = Duration::from_secs(2);
        })
        .await;
        let tasks: Vec<_> = (0..55)
            .map(|name| {
                let (handle, prefix) = (handle.clone(), prefix(1, name, 400));
                tokio::spawn(async move { decide(&handle, &prefix, vec![spec(1, 20)]).await })
            })
            .collect();
        settle().await;
        let report = handle.drain().await;
        assert!(report.elapsed <= Duration::from_millis(2_500), "{report:?}");
        let (mut done, mut failed) = (0, 0);
        for task in tasks {
            match task.await.unwrap().remove(0) {
                Ok(_) => done += 1,
                Err(error) => {
                    assert_eq!(error, ReadError::Draining);
                    failed += 1;
                }
            }
        }
        assert_eq!((done, failed), (report.finished, report.failed));
        assert!(done > 0 && failed > 0, "{report:?}");
        let refused = handle.open(meta(&prefix(1, 1, 10), Lane::Normal, 1));
        assert_eq!(refused.unwrap_err(), ReadError::Rejected(RejectReason::Draining));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_drain_is_immediate() {
        let (handle, _) = started(|_| ()).await;
        decide_one(&handle, &prefix(1, 1, 100), spec(1, 20)).await;
        let report = handle.drain().await;
        assert_eq!((report.finished, report.failed, report.elapsed), (0, 0, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_engine_fails_what_waits_and_refuses_what_comes() {
        let (handle, _) = started(|_| ()).await;
        let waits = {
            let (handle, prefix) = (handle.clone(), prefix(1, 2, 2_000));
            tokio::spawn(async move { decide(&handle, &prefix, vec![spec(1, 20)]).await })
        };
        let outcomes = decide(&handle, &prefix(1, 1, 100), vec![faulty(DEATH)]).await;
        assert!(matches!(outcomes[0], Err(ReadError::Engine(EngineError::Dead(_)))));
        let waited = waits.await.unwrap().remove(0);
        assert!(matches!(waited, Err(ReadError::Engine(EngineError::Dead(_)))));
        let refused = handle.open(meta(&prefix(1, 1, 10), Lane::Normal, 1)).unwrap_err();
        assert!(matches!(refused, ReadError::Rejected(RejectReason::EngineDead(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_completion_is_death() {
        let (handle, engine) = started(|_| ()).await;
        engine.faults.lock().unwrap().push_back(Some(Fault::Drop));
        let outcomes = decide(&handle, &prefix(1, 1, 100), vec![spec(1, 20)]).await;
        assert!(matches!(outcomes[0], Err(ReadError::Engine(EngineError::Dead(_)))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_step_is_tried_again() {
        let (handle, engine) = started(|_| ()).await;
        let error = EngineError::OutOfMemory("no room".to_owned());
        engine.faults.lock().unwrap().push_back(Some(Fault::Fail(error)));
        let prefix = prefix(1, 1, 100);
        let outcome = decide_one(&handle, &prefix, spec(1, 20)).await;
        assert_eq!(outcome.row, expected(&prefix, &spec(1, 20)));
        assert_eq!(outcome.computed_tokens, 140);
        assert_eq!(handle.snapshot().load.totals.step_failures, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_restarts_the_actors_with_an_empty_table() {
        let (handle, _) = started(|config| config.registration.when = Register::Off).await;
        let known = prefix(1, 1, 100);
        decide_one(&handle, &known, spec(1, 20)).await;
        let waits = {
            let (handle, prefix) = (handle.clone(), prefix(1, 2, 2_000));
            tokio::spawn(async move { decide(&handle, &prefix, vec![spec(1, 20)]).await })
        };
        settle().await;
        let mut open = handle.open(meta(&known, Lane::Urgent, 1)).unwrap();
        let outcomes = open.read(vec![faulty(PANIC)]).await.unwrap();
        assert_eq!(outcomes, [Err(ReadError::Unavailable)]);
        assert_eq!(waits.await.unwrap(), [Err(ReadError::Unavailable)]);
        settle().await;
        assert_eq!(handle.snapshot().load.epoch, 1);
        let stale = open.read(vec![spec(1, 20)]).await.unwrap();
        assert_eq!(stale, [Err(ReadError::Unavailable)], "it was opened before the restart");
        let fresh = decide_one(&handle, &known, spec(2, 20)).await;
        assert_eq!(fresh.computed_tokens, 140, "nothing of the old epoch is used");
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_panics_are_death() {
        let (handle, _) = started(|_| ()).await;
        for _ in 0..4 {
            let outcomes = decide(&handle, &prefix(1, 1, 10), vec![faulty(PANIC)]).await;
            assert_eq!(outcomes, [Err(ReadError::Unavailable)]);
        }
        assert!(matches!(handle.snapshot().load.engine, EngineState::Dead(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_prompt_beyond_the_context_is_refused_with_both_lengths() {
        let (handle, _) = started(|_| ()).await;
        let refused = handle.open(meta(&prefix(1, 1, 4_040), Lane::Normal, 1)).unwrap_err();
        let reason = RejectReason::TooLong { tokens: 4_100, tokens_max: 4_096 };
        assert_eq!(refused, ReadError::Rejected(reason));
        let mut decision = handle.open(meta(&prefix(1, 1, 4_036), Lane::Normal, 1)).unwrap();
        let refused = decision.read(vec![spec(1, 10), spec(2, 41)]).await.unwrap_err();
        let reason = RejectReason::TooLong { tokens: 4_097, tokens_max: 4_096 };
        assert_eq!(refused, ReadError::Rejected(reason));
        assert_eq!(handle.snapshot().load.totals.admitted, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_suffix_longer_than_a_step_still_runs() {
        let (handle, _) = started(|_| ()).await;
        let (prefix, long) = (prefix(1, 1, 300), spec(1, 900));
        let outcomes = decide(&handle, &prefix, vec![long.clone(), spec(2, 20)]).await;
        assert_eq!(outcomes[0].as_ref().unwrap().row, expected(&prefix, &long));
        assert!(outcomes[1].is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_refuses_at_once() {
        let (handle, _) = started(|config| config.scheduler.reads_max = 100).await;
        let prefix = prefix(1, 1, 1_000);
        let mut open = Vec::new();
        let mut refused = 0;
        for _ in 0..30 {
            match handle.open(meta(&prefix, Lane::Normal, 10)) {
                Ok(decision) => open.push(decision),
                Err(ReadError::Rejected(reason)) => {
                    assert!(reason.retry_after().is_some());
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!((open.len(), refused), (10, 20));
        drop(open);
        settle().await;
        assert!(handle.open(meta(&prefix, Lane::Normal, 500)).is_ok(), "nothing waits any more");
    }

    fn prewarm(prefix: &Prefix, wait: bool) -> PrewarmSpec {
        PrewarmSpec {
            tenant: TenantId(Arc::from("t")),
            prefix: prefix.clone(),
            lane: Lane::Batch,
            ttl: None,
            wait,
            deadline: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_prewarmed_state_costs_a_question_only_its_own_tokens() {
        let (handle, _) = started(|config| config.registration.when = Register::Off).await;
        let prefix = prefix(1, 1, 700);
        let outcome = handle.prewarm(prewarm(&prefix, true)).await.unwrap();
        assert_eq!((outcome.prompt_tokens, outcome.reused), (720, 0));
        assert!(outcome.stored && outcome.pinned && !outcome.pending);
        settle().await;
        assert_eq!(decide_one(&handle, &prefix, spec(1, 20)).await.computed_tokens, 20);
        let again = handle.prewarm(prewarm(&prefix, true)).await.unwrap();
        assert_eq!((again.reused, again.stored), (720, true));
        assert_eq!(handle.snapshot().load.totals.want_tokens, 720);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_joins_a_prewarm_that_runs() {
        let (handle, _) = started(|_| ()).await;
        let prefix = prefix(1, 1, 2_000);
        let pending = handle.prewarm(prewarm(&prefix, false)).await.unwrap();
        assert!(pending.pending && !pending.stored);
        sleep(Duration::from_millis(200)).await;
        let outcome = decide_one(&handle, &prefix, spec(1, 20)).await;
        assert_eq!(outcome.row, expected(&prefix, &spec(1, 20)));
        assert_eq!(handle.snapshot().load.totals.computed_tokens, 2_040);
        assert!(handle.snapshot().residency.pinned > 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pin_ends_with_its_time_to_live() {
        let (handle, _) = started(|_| ()).await;
        let prefix = prefix(1, 1, 200);
        handle.prewarm(prewarm(&prefix, true)).await.unwrap();
        sleep(Duration::from_secs(290)).await;
        decide_one(&handle, &prefix, spec(1, 20)).await;
        sleep(Duration::from_secs(290)).await;
        assert!(handle.snapshot().residency.pinned > 0, "a hit makes it young again");
        sleep(Duration::from_secs(20)).await;
        assert_eq!(handle.snapshot().residency.pinned, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_prewarm_that_cannot_be_held_costs_nothing() {
        let (handle, engine) = started(|config| config.cache.kv_bytes = 0).await;
        let outcome = handle.prewarm(prewarm(&prefix(1, 1, 200), true)).await.unwrap();
        assert!(!outcome.stored && !outcome.pending);
        assert_eq!(engine.tokens.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn case_20_a_tenant_never_hits_the_state_of_another() {
        let (handle, _) = started(|_| ()).await;
        let (ours, theirs) = (prefix(1, 1, 300), prefix(2, 1, 300));
        handle.prewarm(prewarm(&ours, true)).await.unwrap();
        settle().await;
        let cold = decide_one(&handle, &theirs, spec(1, 20)).await;
        assert_eq!(cold.computed_tokens, 320);
        assert_eq!(decide_one(&handle, &ours, spec(1, 20)).await.computed_tokens, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_keeps_nothing_computes_every_prompt() {
        let engine = FakeEngine::new().with_caps(|caps| caps.keeps_segments = false);
        let handle = start(Arc::new(engine), config()).await.unwrap();
        let prefix = prefix(1, 1, 300);
        for name in 0..2 {
            let outcome = decide_one(&handle, &prefix, spec(name, 20)).await;
            assert_eq!((outcome.computed_tokens, outcome.cached_tokens), (340, 0));
        }
        assert_eq!(handle.snapshot().residency.segments, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn steps_never_overlap() {
        let (handle, engine) = started(|_| ()).await;
        let tasks: Vec<_> = (0..40)
            .map(|name| {
                let (handle, prefix) = (handle.clone(), prefix(1, name % 7, 300));
                tokio::spawn(async move { decide_one(&handle, &prefix, spec(name, 30)).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(engine.overlaps.load(Ordering::SeqCst), 0);
        let log = handle.step_log();
        assert!(log.windows(2).all(|pair| pair[0].step < pair[1].step));
        assert!(log.iter().all(|step| step.tokens <= 512 && step.rows.len() <= 64));
    }
}
