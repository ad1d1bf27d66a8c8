// Makes elements of the page. Text becomes text and nothing else: no markup is ever parsed.

// h("button", { class: "quiet", onclick: go, "aria-label": "Go" }, "Go"): `value`, `checked`, `disabled`,
// `hidden`, `open` and `on*` are properties, all else attributes; null, undefined and false are left out.
export function h(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (["checked", "disabled", "hidden", "open", "selected"].includes(key)) made[key] = true;
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  if ("value" in given && "value" in made) made.value = given.value;
  return made;
}

let made = 0;

// A name that no other element of the page has.
export function fresh(stem) {
  made += 1;
  return `${stem}-${made}`;
}

export function at(id) {
  return document.getElementById(id);
}

// A labelled control: the label is above it, the hint below is read out with it.
export function field(label, control, hint, kind = "") {
  const id = control.id || fresh("field");
  control.id = id;
  const told = hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (told) control.setAttribute("aria-describedby", told.id);
  return h("div", { class: `field ${kind}` }, h("label", { for: id }, label), control, told);
}

// A checkbox with its label beside it.
export function check(label, given, hint) {
  const id = fresh("check");
  const box = h("input", { type: "checkbox", ...given, id });
  const told = hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (told) box.setAttribute("aria-describedby", told.id);
  return h("div", { class: "check" }, box, h("label", { for: id }, label), told);
}

export function select(given, options, value) {
  const made = h("select", given, options.map(([key, label]) => h("option", { value: key }, label)));
  made.value = value;
  return made;
}

// A text area that is as high as its text, between its `rows` and a limit of the style.
export function area(given) {
  const made = h("textarea", { spellcheck: "false", rows: "2", ...given });
  const fit = () => {
    if (!made.offsetParent) return;
    made.style.height = "auto";
    made.style.height = `${made.scrollHeight + 2}px`;
  };
  made.addEventListener("input", fit);
  requestAnimationFrame(fit);
  return made;
}

export function percent(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "none";
  const hundred = value * 100;
  if (hundred > 0 && hundred < 0.1) return "< 0.1 %";
  if (hundred < 100 && hundred > 99.9) return "> 99.9 %";
  return `${hundred.toFixed(1)} %`;
}

export function milliseconds(value) {
  if (value >= 10000) return `${(value / 1000).toFixed(1)} s`;
  return `${value >= 100 ? Math.round(value) : value.toFixed(1)} ms`;
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

// Tabs that arrow keys move between. `panels` are [name, element]; returns the list of tabs.
export function tabs(label, panels) {
  const list = h("div", { role: "tablist", "aria-label": label, class: "tabs" });
  const show = (chosen, isFocused) => {
    panels.forEach(([, panel], index) => {
      const tab = list.children[index];
      tab.setAttribute("aria-selected", String(index === chosen));
      tab.tabIndex = index === chosen ? 0 : -1;
      panel.hidden = index !== chosen;
      if (index === chosen && isFocused) tab.focus();
    });
  };
  panels.forEach(([name, panel], index) => {
    const id = fresh("tab");
    panel.id ||= fresh("panel");
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", id);
    list.append(h("button", { type: "button", role: "tab", id, "aria-controls": panel.id, onclick: () => show(index) }, name));
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const now = [...list.children].indexOf(document.activeElement);
    if (!step || now < 0) return;
    event.preventDefault();
    show((now + step + panels.length) % panels.length, true);
  });
  show(0, false);
  return list;
}
