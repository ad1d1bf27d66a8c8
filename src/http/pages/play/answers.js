// Answers as bars, what they cost, and where the time went.

import { element, fixed, percent } from "./dom.js";

const SHOWN_MAX = 40;
const STAGES = [["queue", "queue"], ["state", "state"], ["engine-wait", "engine wait"], ["engine", "engine"], ["other", "readout, other"]];

/** A decision's answer, of any dialect that answers as System One does. */
export function drawDecision({ json, headers, took }) {
  // gmlx answers null where a question was skipped, and says why elsewhere.
  const skipped = (id) => ({ type: "skipped", ...json.diagnostics?.skipped?.[id] });
  const answers = Object.entries(json.answers || {}).map(([id, answer]) => drawAnswer(id, answer ?? skipped(id)));
  return [...answers, drawTimes(headers, took), drawCost(json, headers)];
}

function drawAnswer(id, answer) {
  const told = { noul: drawNoul, choice: drawShares, score: drawScore, number: drawNumber, excerpt: drawExcerpt,
    skipped: drawSkipped }[answer.type] || drawOther;
  const { said, parts = [], facts = [] } = told(answer);
  const more = answer.x_diagnostics || {};
  const also = [
    typeof answer.confidence === "number" && `confidence ${percent(answer.confidence)}`, ...facts,
    typeof more.label_mass === "number" && `label mass ${percent(more.label_mass)}`,
    typeof more.order_consistency === "number" && `order consistency ${percent(more.order_consistency)}`,
    more.orders && `${more.orders} ${more.orders === 1 ? "order" : "orders"}`,
    typeof more.entropy === "number" && `entropy ${fixed(more.entropy)} nats`,
  ].filter(Boolean);
  return element("article", { class: "answer", "data-id": id, "data-type": answer.type },
    element("div", { class: "head" }, element("h3", {}, id), element("span", { class: "said" }, said)), parts,
    drawCitations(answer.x_citations), also.length ? element("ul", { class: "facts" }, also.map((fact) => element("li", {}, fact))) : null);
}

/** Bars; `rows` are [label, share], and the greatest of them is marked. */
function bars(rows) {
  const most = Math.max(...rows.map(([, share]) => share));
  const shown = rows.length > SHOWN_MAX ? [...rows].sort((a, b) => b[1] - a[1]).slice(0, SHOWN_MAX) : rows;
  const list = element("dl", { class: "bars" });
  for (const [label, share] of shown) {
    const fill = element("div", { class: share === most ? "fill top" : "fill" });
    // Set by script: the page's policy has no styles in markup.
    fill.style.width = `${Math.min(Math.max(share * 100, 0), 100)}%`;
    list.append(element("dt", {}, label), element("dd", { "aria-hidden": "true" }, element("div", { class: "track" }, fill)),
      element("dd", { class: "share" }, percent(share)));
  }
  return [list, rows.length > shown.length ? element("p", { class: "dim" }, `and ${rows.length - shown.length} less probable ones`) : null];
}

function drawNoul({ noul }) {
  return { said: noul >= 0.5 ? "yes" : "no", parts: bars([["yes", noul], ["no", 1 - noul]]) };
}

function drawShares({ choice, probabilities }) {
  return { said: choice, parts: bars(Object.entries(probabilities || {})) };
}

function drawScore({ score, probabilities, legend }) {
  const named = (level) => (legend?.[level] ? `${level} ${textOf(legend[level])}` : level);
  return { said: fixed(score), parts: bars(Object.entries(probabilities || {}).map(([level, share]) => [named(level), share])) };
}

function drawNumber({ value, not_stated: absent, candidates = [] }) {
  const rows = candidates.map((one) => [String(one.value), one.probability]);
  if (typeof absent === "number") rows.push(["not stated", absent]);
  const context = candidates.find((one) => one.value === value)?.context;
  return { said: value === null ? "not stated" : String(value), parts: [rows.length ? bars(rows) : [],
    context ? element("blockquote", {}, context) : null].flat() };
}

function drawExcerpt({ text, probability, not_stated: absent, start, end }) {
  const facts = [typeof start === "number" && `characters ${start} to ${end}`, `not stated ${percent(absent)}`].filter(Boolean);
  const rows = text === null ? [] : bars([["this passage", probability], ["not stated", absent ?? 0]]);
  return { said: text === null ? "not stated" : "", parts: [text === null ? null : element("blockquote", {}, text), rows].flat(), facts };
}

function drawSkipped({ because, was, wanted }) {
  const wish = (wanted || []).join(" or ");
  return { said: "not asked", parts: [element("p", { class: "dim" }, `${because} is ${was ?? "not answered"}, not ${wish}`)].filter(() => because) };
}

function drawOther(answer) {
  return { said: "", parts: [element("pre", {}, JSON.stringify(answer, null, 2))] };
}

function drawCitations(cited) {
  if (!Array.isArray(cited)) return null;
  return cited.map((one) => element("blockquote", {}, element("mark", {}, one.text), ` ${percent(one.probability)}`));
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Milliseconds by the names of `Server-Timing`. */
export function timesOf(headers) {
  const entries = (headers.get("server-timing") || "").split(",").map((entry) => /^\s*([\w-]+);dur=([\d.]+)/.exec(entry));
  return Object.fromEntries(entries.filter(Boolean).map(([, name, ms]) => [name, Number(ms)]));
}

function drawTimes(headers, took) {
  const times = timesOf(headers);
  if (!("total" in times)) return null;
  const water = element("div", { class: "water", "aria-hidden": "true" });
  const legend = element("ul", { class: "facts legend" });
  for (const [name, label] of STAGES) {
    const ms = times[name] || 0;
    const colour = name === "engine-wait" ? "queue" : name;
    const part = element("span", { class: colour });
    part.style.flexGrow = String(ms);
    water.append(part);
    legend.append(element("li", {}, element("i", { class: colour, "aria-hidden": "true" }), `${label} ${fixed(ms, 1)} ms`));
  }
  legend.append(element("li", {}, `in all ${fixed(times.total, 1)} ms, ${fixed(took, 0)} ms with the way here`));
  return element("section", { class: "answer times", "aria-label": "Where the time went" }, element("h3", {}, "Time"), water, legend);
}

function drawCost(json, headers) {
  const number = (name) => headers.get(`x-docket-${name}-tokens`);
  const facts = [
    json.usage && `${json.usage.input_tokens} tokens of input`, number("computed") && `${number("computed")} computed`,
    number("cached") && `${number("cached")} found resident`, headers.get("x-docket-lane") && `lane ${headers.get("x-docket-lane")}`,
    headers.get("x-docket-wait-behind") && `waited behind a ${headers.get("x-docket-wait-behind")}`,
    headers.get("x-docket-ignored") && `ignored: ${headers.get("x-docket-ignored")}`, json.model && `model ${json.model}`,
  ].filter(Boolean);
  return element("section", { class: "answer cost", "aria-label": "What it cost" }, element("h3", {}, "Cost"),
    element("ul", { class: "facts" }, facts.map((fact) => element("li", {}, fact))));
}

/** Why there is no answer. */
export function drawFaults(faults, { status, headers }) {
  const reason = headers.get("x-docket-reason");
  const wait = headers.get("retry-after");
  const lane = headers.get("x-docket-downgrade");
  const head = [status ? `${status}` : "No answer", reason && ` (${reason})`].filter(Boolean).join("");
  return element("div", { class: "fault", role: "alert" }, element("p", {}, element("strong", {}, head)),
    faults.map(([place, message]) => element("p", {}, place ? [element("code", {}, place), ": "] : null, message)),
    wait ? element("p", {}, `It may be asked again in ${wait} s.`) : null,
    lane ? element("p", {}, `In the ${lane} lane it would be let in now.`) : null);
}

export function drawEstimate(json) {
  const facts = [
    json.admitted ? "it would be let in" : `it would be refused: ${json.status} ${json.reason}`,
    `${json.reads} reads`, `${json.computed_tokens} tokens to compute`, `${json.cached_tokens} of ${json.prefix_tokens} tokens of the state resident`,
    `waits ${fixed(json.wait_ms, 0)} ms`, typeof json.engine_ms === "number" && `engine ${fixed(json.engine_ms, 0)} ms`,
    `longest prompt ${json.longest_prompt_tokens} of ${json.context_tokens} tokens`,
  ].filter(Boolean);
  return element("div", { class: "answer estimate" }, element("h3", {}, "Estimate"),
    element("ul", { class: "facts" }, facts.map((fact) => element("li", {}, fact))));
}
