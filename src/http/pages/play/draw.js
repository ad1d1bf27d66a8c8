// Draws answers: what was answered first, then the distribution behind it, then how it was read.

import { fresh, h, percent } from "./dom.js";

const BARS_MAX = 8;

function bar({ label, note, context, value, isChosen, level }) {
  const fill = h("span", { class: "fill" });
  fill.style.setProperty("--share", `${Math.max(0, Math.min(1, value || 0)) * 100}%`);
  const name = level === undefined ? label : [h("span", { class: "level" }, String(level)), ` ${label}`];
  return h("li", { class: isChosen ? "bar chosen" : "bar" },
    h("span", { class: "name", title: note || false }, name, context ? h("span", { class: "context" }, context) : null),
    h("span", { class: "track", "aria-hidden": "true" }, fill),
    h("span", { class: "value" }, percent(value)));
}

function bars(view) {
  const list = h("ul", { class: "bars", id: fresh("bars"), "aria-label": `Probabilities of ${view.id}` }, view.bars.slice(0, BARS_MAX).map(bar));
  const rest = view.bars.slice(BARS_MAX);
  if (!rest.length) return [list];
  const more = h("button", { type: "button", class: "link", "aria-controls": list.id, onclick: () => {
    list.append(...rest.map(bar));
    more.remove();
  } }, `Show ${rest.length} more`);
  return [list, more];
}

function scale({ value, most }) {
  const mark = h("span", { class: "mark" });
  mark.style.setProperty("--share", `${Math.max(0, Math.min(1, value / most)) * 100}%`);
  return h("div", { class: "scale", "aria-hidden": "true" }, mark);
}

const offsets = (part) => (part.start === undefined ? null : h("span", { class: "small" }, ` characters ${part.start} to ${part.end}`));

function passages(view) {
  return view.passages.map((part) => h("blockquote", {}, part.text, offsets(part)));
}

function citations(view) {
  if (!view.citations.length) return null;
  const items = view.citations.map((cited) => h("li", {}, h("q", {}, cited.text),
    h("span", { class: "small" }, ` ${percent(cited.probability)} ·`), offsets(cited)));
  return h("div", { class: "cited" }, h("h4", {}, "Rests on"), h("ul", {}, items));
}

function facts(view) {
  const given = view.diagnostics;
  const found = [];
  const add = (name, value, why, isBad = false) => found.push([name, value, why, isBad]);
  if (view.confidence !== null) add("confidence", view.confidence.toFixed(2), "0: no better than a guess; 1: certain");
  if (given.label_mass !== undefined) {
    add("label mass", percent(given.label_mass), "The probability of all labels together over the whole vocabulary", given.label_mass < 0.5);
  }
  if (given.order_consistency !== undefined && given.orders > 1) {
    add("order consistency", percent(given.order_consistency), "Of the orders that were read: how many have the same top answer as their average", given.order_consistency < 1);
  }
  if (given.orders !== undefined) add("orders read", String(given.orders), "Orders of the options that were read and averaged");
  if (given.entropy !== undefined) add("entropy", `${given.entropy.toFixed(2)} nats`, "0: all on one answer");
  if (given.argmax_is_label === false) add("most probable token", "no label", "The model would rather have said something else", true);
  if (!found.length) return null;
  return h("dl", { class: "facts" }, found.map(([name, value, why, isBad]) => h("div", { class: isBad ? "weak" : false, title: why },
    h("dt", {}, name), h("dd", {}, value))));
}

function headline(view) {
  if (view.headline === null || view.headline === undefined) return null;
  const sure = view.scale || view.probability === undefined ? null : h("span", { class: "sure" }, percent(view.probability));
  return h("p", { class: view.isNone ? "headline none" : "headline" }, view.headline,
    view.of ? h("span", { class: "sure" }, view.of) : sure);
}

export function answer(view) {
  const words = view.asked.instructions.trim();
  const head = [h("h3", {}, view.id), h("span", { class: "kind" }, view.type)];
  const body = view.skipped ? [h("p", { class: "skipped" }, view.skipped)]
    : [headline(view), ...passages(view), view.scale ? scale(view.scale) : null, ...bars(view), citations(view), facts(view)];
  return h("article", { class: "answer", "data-question": view.id },
    h("header", {}, head), words ? h("p", { class: "words" }, words) : null, body);
}
