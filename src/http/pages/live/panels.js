// Draws a look: what waits, what runs, what is held, what was answered and what was refused.

import { at, count, h, milliseconds } from "/play/dom.js";
import { bytes, seconds, table, whole } from "/live/draw.js";
import { holding, running, whose } from "/live/inside.js";

const LOOKS_MAX = 120;
const LANES = ["urgent", "normal", "batch", "idle"];

function facts(holder, pairs) {
  holder.replaceChildren(...pairs.map(([name, value, isBad]) => h("div", { class: isBad ? "weak" : false }, h("dt", {}, name), h("dd", {}, value))));
}

function strip(holder, values, kinds = []) {
  const most = Math.max(1, ...values);
  holder.replaceChildren(...values.map((value, index) => {
    const bar = h("span", { class: `tick ${kinds[index] || ""}` });
    bar.style.setProperty("--share", `${(value / most) * 100}%`);
    return bar;
  }));
}

function stacked(holder, keys, parts, most) {
  holder.replaceChildren(...parts.map(([name, value]) => {
    const part = h("span", { class: `part ${name}` });
    part.style.setProperty("--share", `${most > 0 ? (value / most) * 100 : 0}%`);
    return part;
  }));
  keys.replaceChildren(...parts.map(([name, value]) => h("li", {}, h("span", { class: `key ${name}`, "aria-hidden": "true" }), `${name} `, h("strong", {}, bytes(value)))));
}

// What came in between two looks, each second.
function rates(last, now) {
  const of = ({ queue, engine }) => [queue.reads.done, queue.reads.admitted, engine.computed_tokens, engine.cached_tokens];
  if (!last) return [0, 0, 0, 0];
  const took = Math.max(0.05, (now.at - last.at) / 1000);
  const [before, after] = [of(last.given), of(now.given)];
  return after.map((value, index) => Math.max(0, value - before[index]) / took);
}

function figures(given, [done, , computed, cached]) {
  const { residency, queue, latency } = given;
  const p99 = Math.max(...LANES.map((lane) => latency[lane].p99_ms ?? 0));
  const waiting = Object.values(queue.reads_waiting).reduce((sum, reads) => sum + reads, 0);
  const used = residency.budget_bytes ? `${Math.round((residency.used_bytes / residency.budget_bytes) * 100)} %` : "none";
  const found = [
    ["reads a second", whole(done)], ["reads waiting", whole(waiting)], ["tokens a second", whole(computed)],
    ["of the tokens cached", computed + cached > 0 ? `${Math.round((cached / (computed + cached)) * 100)} %` : "none"],
    ["of the memory held", used], ["slowest lane’s p99", p99 ? milliseconds(p99) : "none"],
  ];
  at("figures").replaceChildren(h("dl", {}, found.map(([name, value]) => h("div", {}, h("dd", {}, value), h("dt", {}, name)))));
}

function waiting({ queue, limits, waiting: who }) {
  const rows = LANES.map((lane) => {
    const found = queue.lanes[lane];
    const limit = found.predicted_wait_max_s;
    const reads = found.reads_waiting + found.entering_reads;
    return [lane, whole(reads), whole(found.tokens_waiting), seconds(found.oldest_wait_s),
      `${seconds(found.predicted_wait_s)}${limit === null ? "" : ` of ${seconds(limit)}`}`, `${Math.round(found.share * 100)} %`, reads > 0 ? whose(who && who[lane]) : "nobody"];
  });
  at("waiting").replaceChildren(table("Waiting reads by lane", ["lane", "reads", "tokens", "oldest", "a newcomer’s wait", "engine’s time", "whose"], rows));
  const { states } = queue;
  at("waiting-told").textContent = `at most ${whole(limits.reads)} reads · states: ${states.resident} resident, ${states.prefilling} read now, ${states.paused + states.wanted} to be read`;
}

const STEPS = { read: "reads", chunk: "states", mixed: "both", idle: "idle" };

function engine({ engine: found, steps }) {
  const { step } = found;
  at("engine-told").textContent = `step ${whole(found.steps)} · ${whole(found.tokens_per_second)} tokens a second`;
  at("step").textContent = step
    ? `Running for ${seconds(step.running_s)}: ${count(step.tokens, "token")}, ${count(step.reads, "read")}, ${count(step.chunks, "chunk")} of states.`
    : "No step is running.";
  strip(at("steps"), steps.map((each) => each.tokens), steps.map((each) => (each.ok ? each.kind : "failed")));
  const counted = Object.entries(STEPS).map(([kind, name]) => [kind, name, steps.filter((each) => each.kind === kind).length]);
  at("steps-keys").replaceChildren(...counted.map(([kind, name, number]) => h("li", {}, h("span", { class: `key ${kind}`, "aria-hidden": "true" }), `${name} `, h("strong", {}, String(number)))));
}

function residency({ residency: found }) {
  const other = Math.max(0, found.used_bytes - found.pinned_bytes - found.protected_bytes);
  const free = Math.max(0, found.budget_bytes - found.used_bytes - found.reserved_bytes);
  stacked(at("bytes"), at("bytes-keys"), [["pinned", found.pinned_bytes], ["protected", found.protected_bytes], ["other", other],
    ["reserved", found.reserved_bytes], ["free", free]], found.budget_bytes);
  at("residency-told").textContent = `${bytes(found.used_bytes)} of ${bytes(found.budget_bytes)}`;
  facts(at("residency-facts"), [["segments", whole(found.segments)], ["leases", whole(found.leases)], ["evictions", whole(found.evictions)],
    ["prewarms waiting", whole(found.prewarms_waiting)], ["beyond the budget", bytes(found.overflow_bytes), found.overflow_bytes > 0]]);
}

function latency({ latency: found }) {
  const ms = (value) => (value === null ? "none" : milliseconds(value));
  const rows = LANES.map((lane) => [lane, whole(found[lane].answered), ms(found[lane].p50_ms), ms(found[lane].p90_ms), ms(found[lane].p99_ms)]);
  at("latency").replaceChildren(table("Latency by lane", ["lane", "answers", "p50", "p90", "p99"], rows));
}

function admission({ queue }) {
  facts(at("reads"), Object.entries(queue.reads).map(([name, number]) => [name, whole(number), name === "failed" && number > 0]));
  const refused = Object.entries(queue.refusals).filter(([, number]) => number > 0);
  facts(at("refusals"), refused.length ? refused.map(([reason, number]) => [reason, whole(number), true]) : [["nothing", ""]]);
}

function tenants({ tenants: found }) {
  const names = [...new Set([...found.most_reads, ...found.most_bytes].map((each) => each.tenant))];
  const of = (list, name, key) => (list.find((each) => each.tenant === name) || { [key]: 0 })[key];
  const rows = names.map((name) => [name, whole(of(found.most_reads, name, "reads")), bytes(of(found.most_bytes, name, "bytes"))]);
  at("tenants").replaceChildren(rows.length ? table("Tenants", ["tenant", "reads open", "kept"], rows) : h("p", { class: "small" }, "Nobody has anything open or kept."));
}

// Draws looks, one after the other.
export function panels() {
  const waited = [];
  let last = null;
  return (given) => {
    if (!given.queue) return;
    const now = { at: performance.now(), given };
    figures(given, rates(last, now));
    last = now;
    waiting(given);
    waited.push(Object.values(given.queue.reads_waiting).reduce((sum, reads) => sum + reads, 0));
    if (waited.length > LOOKS_MAX) waited.shift();
    strip(at("history"), waited);
    engine(given);
    running(given.running);
    residency(given);
    holding(given.resident, given.residency);
    latency(given);
    admission(given);
    tenants(given);
    facts(at("registrations"), Object.entries(given.state_boundary).map(([name, number]) => [name, whole(number), name === "failed" && number > 0]));
  };
}
