//! The queue before an exporter that the test holds.

use std::sync::mpsc::{self, Receiver, Sender};

use super::*;
use crate::traces::ids::TraceId;

/// Hands over what it is to send, and waits until it is told how that went.
#[derive(Debug)]
struct Held {
    sent: Mutex<Sender<Vec<SpanData>>>,
    ends: Mutex<Receiver<OTelSdkResult>>,
}

impl SpanExporter for Held {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.sent.lock().unwrap().send(batch).unwrap();
        self.ends.lock().unwrap().recv().unwrap_or(Ok(()))
    }
}

fn held() -> (Queue, Receiver<Vec<SpanData>>, Sender<OTelSdkResult>) {
    let ((sent, batches), (end, ends)) = (mpsc::channel(), mpsc::channel());
    let exporter = Held { sent: Mutex::new(sent), ends: Mutex::new(ends) };
    (Queue::over(exporter, Why::default(), Duration::from_millis(10)), batches, end)
}

fn spans(count: usize) -> Vec<Span> {
    let span = |index: usize| Span {
        name: if index == 0 { "request" } else { "step" },
        parent: (index > 0).then_some(0),
        from: Duration::from_millis(index as u64),
        until: Duration::from_millis(10),
        attributes: vec![("docket.steps", Attribute::Count(index as u64))],
        failed: index == 0,
    };
    (0..count).map(span).collect()
}

fn traced(parent: Option<(SpanId, String)>) -> Traced {
    Traced { trace: TraceId([7; 16]), span: SpanId([1; 8]), parent }
}

#[test]
fn the_first_span_is_the_callers_child_and_the_parent_of_the_others() {
    let (queue, batches, end) = held();
    let caller = (SpanId([9; 8]), "vendor=1,other=2".to_owned());
    let arrived = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    queue.send(&traced(Some(caller)), spans(3), arrived, &Ids::default());
    end.send(Ok(())).unwrap();
    let batch = batches.recv().unwrap();
    let [first, second, third] = &batch[..] else { panic!("{batch:?}") };
    assert_eq!(first.span_context.span_id().to_bytes(), [1; 8]);
    assert_eq!(first.parent_span_id.to_bytes(), [9; 8]);
    assert!(first.parent_span_is_remote && !second.parent_span_is_remote);
    assert_eq!(first.span_kind, SpanKind::Server);
    assert_eq!(first.status, Status::error(""));
    assert_eq!(first.span_context.trace_state().get("other"), Some("2"));
    for child in [second, third] {
        assert_eq!(child.parent_span_id, first.span_context.span_id());
        assert_eq!(child.span_context.trace_id().to_bytes(), [7; 16]);
        assert_eq!(child.span_kind, SpanKind::Internal);
    }
    assert_ne!(second.span_context.span_id(), third.span_context.span_id());
    assert_eq!(third.start_time, arrived + Duration::from_millis(2));
    assert_eq!(third.end_time, arrived + Duration::from_millis(10));
    assert_eq!(third.attributes, [KeyValue::new("docket.steps", 2)]);
}

#[test]
fn a_trace_state_that_is_none_is_left_out_and_a_trace_of_our_own_has_no_parent() {
    let (queue, batches, end) = held();
    let ids = Ids::default();
    queue.send(
        &traced(Some((SpanId([9; 8]), "no state".to_owned()))),
        spans(1),
        SystemTime::now(),
        &ids,
    );
    queue.send(&traced(None), spans(1), SystemTime::now(), &ids);
    end.send(Ok(())).unwrap();
    end.send(Ok(())).unwrap();
    let mut told = batches.recv().unwrap();
    if told.len() < 2 {
        told.extend(batches.recv().unwrap());
    }
    assert_eq!(told[0].span_context.trace_state(), &TraceState::NONE);
    assert_eq!(told[1].parent_span_id, opentelemetry::SpanId::INVALID);
    assert!(!told[1].parent_span_is_remote);
}

#[test]
fn beyond_the_queue_the_spans_of_a_request_are_dropped_as_a_whole() {
    let (queue, batches, end) = held();
    let ids = Ids::default();
    let send = |count| queue.send(&traced(None), spans(count), SystemTime::now(), &ids);
    let waiting = || queue.counts.waiting.load(Ordering::Relaxed);
    for _ in 0..QUEUE_SPANS_MAX / 8 {
        send(8);
    }
    assert_eq!(waiting(), QUEUE_SPANS_MAX);
    send(1);
    assert_eq!(waiting(), QUEUE_SPANS_MAX);
    assert!(queue.counts.told.lock().unwrap().is_some());
    // Once some have been sent there is room again.
    let sent = batches.recv().unwrap().len();
    end.send(Ok(())).unwrap();
    batches.recv().unwrap();
    assert_eq!(waiting(), QUEUE_SPANS_MAX - sent);
    send(1);
    assert_eq!(waiting(), QUEUE_SPANS_MAX - sent + 1);
    drop(end);
    queue.stop(Duration::from_secs(20));
    assert_eq!(waiting(), 0);
}

#[test]
fn what_a_collector_refuses_is_lost_and_told_once_a_minute() {
    let (queue, batches, end) = held();
    let ids = Ids::default();
    let refused = || Err(opentelemetry_sdk::error::OTelSdkError::InternalFailure("no".to_owned()));
    for _ in 0..2 {
        queue.send(&traced(None), spans(3), SystemTime::now(), &ids);
        end.send(refused()).unwrap();
        batches.recv().unwrap();
    }
    queue.stop(Duration::from_secs(20));
    assert_eq!(queue.counts.waiting.load(Ordering::Relaxed), 0);
    // The first batch was told at once, the second waits for its minute.
    assert_eq!(queue.counts.untold.load(Ordering::Relaxed), 3);
}

#[test]
fn a_stop_does_not_wait_for_a_collector_that_does_not_answer() {
    let (queue, batches, _end) = held();
    queue.send(&traced(None), spans(3), SystemTime::now(), &Ids::default());
    batches.recv().unwrap();
    let began = Instant::now();
    queue.stop(Duration::from_millis(50));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(queue.counts.waiting.load(Ordering::Relaxed), 3);
}
