// Numbers, bytes, times and tables as the live view says them.

import { h, milliseconds } from "/play/dom.js";

export const whole = (number) => Math.round(number).toLocaleString("en");
export const seconds = (s) => (s === null || s === undefined ? "none" : s === 0 ? "0" : s < 1 ? milliseconds(s * 1000) : `${Number(s.toFixed(s < 10 ? 1 : 0))} s`);

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [number, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

// A table with a name for each row.
export function table(caption, heads, rows) {
  return h("table", {}, h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells.map((cell) => h("td", {}, cell))))));
}
