// Looks as they come: events read off a response, since an EventSource could carry no key.

import { bearer } from "/play/wire.js";

const EVENT_CHARACTERS_MAX = 1 << 20;

// Calls `show` with each look. Resolves where it ends: { status, isStream }.
export async function follow(show, signal) {
  const headers = { accept: "text/event-stream, application/json;q=0.5", ...bearer() };
  const response = await fetch("/v1/live", { headers, signal, cache: "no-store", credentials: "omit" });
  const isStream = (response.headers.get("content-type") || "").startsWith("text/event-stream");
  if (!response.ok || !isStream) {
    const text = await response.text();
    if (response.ok) show(JSON.parse(text));
    return { status: response.status, isStream: false };
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { status: response.status, isStream: true };
    held += value;
    const events = held.split("\n\n");
    held = events.pop();
    if (held.length > EVENT_CHARACTERS_MAX) throw new Error("an event without an end");
    for (const event of events) if (event.startsWith("data: ")) show(JSON.parse(event.slice(6)));
  }
}
