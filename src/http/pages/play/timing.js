// What an answer waited for, as a waterfall, and which of its tokens were found and which computed.

import { count, h, milliseconds } from "./dom.js";

const STEPS = [
  ["queue", "queue", "admitted, until work on it starts"],
  ["state", "state", "until its state is resident"],
  ["engine-wait", "engine wait", "ready, until its step starts"],
  ["engine", "engine", "the forward pass that reads it"],
  ["other", "readout", "parsing, tokens, reading out, encoding"],
];

// { name: ms } of a Server-Timing header.
function timings(header) {
  const pairs = (header || "").split(",").map((part) => /^\s*([\w-]+)\s*;.*?dur=([\d.]+)/.exec(part));
  return Object.fromEntries(pairs.filter(Boolean).map(([, name, ms]) => [name, Number(ms)]));
}

function row([name, why, ms, from], whole) {
  const piece = h("span", { class: "piece" });
  piece.style.setProperty("--from", `${(from / whole) * 100}%`);
  piece.style.setProperty("--share", `${(ms / whole) * 100}%`);
  return h("li", { class: `step ${name.replace(" ", "-")}` },
    h("span", { class: "name", title: why }, name),
    h("span", { class: "track", "aria-hidden": "true" }, piece),
    h("span", { class: "value" }, milliseconds(ms)));
}

export function waterfall(answer) {
  const given = timings(answer.headers.get("server-timing"));
  if (given.total === undefined) return null;
  let from = 0;
  const rows = STEPS.filter(([key]) => key in given).map(([key, name, why]) => {
    const found = [name, why, given[key], from];
    from += given[key];
    return found;
  });
  const outside = Math.max(0, answer.took - given.total);
  const whole = Math.max(from + outside, 0.1);
  rows.push(["network", "between the server and this page", outside, from]);
  const lane = answer.headers.get("x-docket-lane");
  const behind = answer.headers.get("x-docket-wait-behind");
  const facts = [`${milliseconds(given.total)} in the server`, lane ? `lane ${lane}` : "", behind ? `waited behind a ${behind}` : ""];
  return h("section", { class: "card", "aria-labelledby": "timing-title" },
    h("h2", { id: "timing-title" }, "Timing"),
    h("p", { class: "small" }, facts.filter(Boolean).join(" · ")),
    h("ol", { class: "waterfall", "aria-label": "Times in order" }, rows.map((each) => row(each, whole))));
}

function share(name, tokens, whole) {
  const part = h("span", { class: `part ${name}` });
  part.style.setProperty("--share", `${(tokens / whole) * 100}%`);
  return part;
}

export function tokens(answer) {
  const cached = Number(answer.headers.get("x-docket-cached-tokens") ?? NaN);
  const computed = Number(answer.headers.get("x-docket-computed-tokens") ?? NaN);
  if (Number.isNaN(cached) || Number.isNaN(computed)) return null;
  const whole = Math.max(1, cached + computed);
  const usage = (answer.body && answer.body.usage) || {};
  const line = (name, tokens, what) => h("li", {}, h("span", { class: `key ${name}`, "aria-hidden": "true" }),
    h("strong", { "data-tokens": name }, tokens.toLocaleString("en")), ` ${name}`, h("span", { class: "small" }, ` ${what}`));
  return h("section", { class: "card", "aria-labelledby": "tokens-title" },
    h("h2", { id: "tokens-title" }, "Tokens"),
    h("div", { class: "shares", "aria-hidden": "true" }, share("cached", cached, whole), share("computed", computed, whole)),
    h("ul", { class: "keys" }, line("cached", cached, "found resident"), line("computed", computed, "run for this request")),
    usage.input_tokens === undefined ? null
      : h("p", { class: "small" }, `The usage says ${count(usage.input_tokens, "input token")}; nothing is generated.`));
}
