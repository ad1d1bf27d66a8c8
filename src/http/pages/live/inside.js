// What waits, runs and is held, one by one. The server makes it while somebody looks, so that the first look
// may be without.

import { at, count, h } from "/play/dom.js";
import { bytes, seconds, table, whole } from "/live/draw.js";

const NAMES_MAX = 3;
const PARTS_SHOWN = 8;
const RUNS_SHOWN = 20;
const WARM_S = 10;
const COOL_S = 60;

const named = (tenant) => tenant || "all";

// The tenants of whom most waits in a lane.
export function whose(found) {
  if (!found || found.tenants === 0) return "nobody";
  const most = found.most.slice(0, NAMES_MAX).map(({ tenant, reads }) => `${tenant} ${whole(reads)}`);
  const rest = found.tenants - most.length;
  return [...most, ...(rest > 0 ? [`${whole(rest)} more`] : [])].join(", ");
}

// Which states are in the running step, and on whose account.
export function running(found) {
  const parts = found ? found.parts : [];
  const rows = parts.slice(0, PARTS_SHOWN).map((part) => [part.state, part.tenant || "left", part.lane || "left", whole(part.rows),
    whole(part.reads), whole(part.row_tokens), whole(part.state_tokens)]);
  const rest = parts.length - rows.length + (found ? found.parts_left_out : 0);
  const heads = ["state", "whose", "lane", "rows", "reads", "their tokens", "state’s tokens"];
  at("parts").replaceChildren(...(rows.length ? [table("States of the running step", heads, rows)] : []),
    ...(rest > 0 ? [h("p", { class: "small" }, `and ${count(rest, "state")} more`)] : []));
}

function kind(run) {
  if (run.pins > 0) return "pinned";
  if (run.leases > 0) return "leased";
  return run.protected ? "protected" : "other";
}

function warmth({ leases, idle_s: idle }) {
  if (leases > 0 || idle === null || idle < WARM_S) return "";
  return idle < COOL_S ? "warm" : "cool";
}

const until = (run) => {
  if (run.pins === 0) return "none";
  return run.pinned_s === null ? whole(run.pins) : `${whole(run.pins)}, ${seconds(run.pinned_s)}`;
};

// Keys and values, as wide as their bytes.
export function holding(found, { used_bytes: used }) {
  if (!found) return;
  const { runs } = found;
  const cells = runs.map((run) => {
    const cell = h("span", { class: `cell ${kind(run)} ${warmth(run)}` });
    cell.style.setProperty("--bytes", String(run.bytes));
    cell.style.setProperty("--share", `${used > 0 ? (run.bytes / used) * 100 : 0}%`);
    return cell;
  });
  at("map").replaceChildren(...cells);
  const rest = found.runs_left_out > 0 ? `, and ${whole(found.runs_left_out)} more of ${bytes(found.bytes_left_out)}` : "";
  at("map-told").textContent = runs.length ? `${count(runs.length, "run")} of blocks${rest}` : "nothing";
  if (!at("map-rows").open) return;
  const rows = runs.slice(0, RUNS_SHOWN).map((run) => [run.state, named(run.tenant), bytes(run.bytes), `${whole(run.start)} to ${whole(run.start + run.tokens)}`,
    whole(run.leases), until(run), whole(run.hits), seconds(run.age_s), seconds(run.idle_s)]);
  at("runs").replaceChildren(table("The largest runs", ["run", "whose", "bytes", "tokens", "leases", "pins", "hits", "age", "unused for"], rows));
}
