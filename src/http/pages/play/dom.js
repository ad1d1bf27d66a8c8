// Elements from words: text becomes text of the page and nothing else.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

/** A labelled input; `options` makes it a choice. */
export function field(label, value, change, { options, type = "text", rows, wide, ...rest } = {}) {
  const on = { input: (event) => change(type === "checkbox" ? event.target.checked : event.target.value) };
  if (type === "checkbox") {
    const box = element("input", { type, on, ...rest });
    box.checked = Boolean(value);
    return element("label", { class: "field check" }, box, label);
  }
  const given = rows ? element("textarea", { rows, spellcheck: "false", on, ...rest })
    : options ? element("select", { on, ...rest }, options.map(([key, word]) => element("option", { value: key }, word)))
      : element("input", { type, autocomplete: "off", spellcheck: "false", on, ...rest });
  given.value = value ?? "";
  return element("label", { class: wide ? "field wide" : "field" }, element("span", {}, label), given);
}

export function percent(share) {
  if (typeof share !== "number") return "";
  const digits = share > 0.0995 || share === 0 ? 1 : 2;
  return `${(share * 100).toFixed(digits)} %`;
}

export function fixed(number, digits = 2) {
  return typeof number === "number" ? String(Number(number.toFixed(digits))) : "";
}
