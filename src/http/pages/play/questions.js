// The builder of questions: a card for each, with what its type and the dialect take.

import { conditions, dependencies } from "./stages.js";
import { area, at, check, count, field, h, select } from "./dom.js";
import { TYPES, freeId, question, renameAnswer, renameQuestion } from "./model.js";

// Whose seldom set fields are shown, while the page is open.
const opened = new WeakSet();

const BLANK = {
  choice: { options: [{ key: "", note: "" }, { key: "", note: "" }] },
  score: { levels: ["", "", ""] },
};

// `page` is what the builder works on: { draft, takes(), changed() }.
export function builder(page) {
  const list = at("questions");
  const adders = at("adders");

  function draw() {
    page.waiting = [];
    list.replaceChildren(...page.draft.questions.map((asked, index) => card(page, asked, index, draw)));
    const { forms, questionsMax } = page.takes();
    const isFull = page.draft.questions.length >= questionsMax;
    const types = Object.keys(TYPES).filter((type) => type in forms);
    adders.replaceChildren(...types.map((type) => h("button", {
      type: "button", class: "add", disabled: isFull, title: TYPES[type], onclick: () => add(type),
    }, `+ ${type}`)));
    at("questions-count").textContent = `${count(page.draft.questions.length, "question")}, at most ${questionsMax}`;
  }

  function add(type) {
    const id = freeId(page.draft.questions);
    page.draft.questions.push(question({ id, type, ...BLANK[type] }));
    draw();
    page.changed();
    list.lastElementChild.querySelector("textarea").focus();
  }

  return { draw };
}

function card(page, asked, index, redraw) {
  const takes = page.takes();
  const form = takes.forms[asked.type];
  const type = select({ "aria-label": `Type of question ${index + 1}`, class: "type", onchange: (event) => {
    asked.type = event.target.value;
    const blank = BLANK[asked.type] || {};
    for (const [key, value] of Object.entries(blank)) if (!asked[key].length) asked[key] = structuredClone(value);
    redraw();
    page.changed();
    at("questions").children[index].querySelector("select").focus();
  } }, types(takes, asked.type), asked.type);
  const id = h("input", { class: "id", "aria-label": `Id of question ${index + 1}`, value: asked.id, autocomplete: "off", spellcheck: "false",
    oninput: (event) => {
      renameQuestion(page.draft, asked.id, event.target.value);
      asked.id = event.target.value;
      event.target.closest(".question").dataset.question = asked.id;
      page.changed();
    } });
  const remove = h("button", { type: "button", class: "icon", "aria-label": `Remove question ${index + 1}`, title: "Remove", onclick: () => {
    page.draft.questions.splice(index, 1);
    redraw();
    page.changed();
    (at("questions").children[Math.max(0, index - 1)]?.querySelector("input") || at("adders").firstElementChild).focus();
  } }, "×");
  const head = h("header", {}, id, type, remove);
  if (!form) {
    return h("li", { class: "card question" }, head, h("p", { class: "weak" }, `The ${takes.name} dialect has no questions of the type ${asked.type}.`));
  }
  return h("li", { class: asked.unasked ? "card question unasked" : "card question", "data-question": asked.id },
    head, instructions(page, asked), criteria(page, asked, form), more(page, asked, form, redraw));
}

// The types that the dialect has, and the one that the question is of.
function types(takes, now) {
  const known = Object.keys(TYPES).filter((type) => type in takes.forms || type === now);
  return known.map((type) => [type, type]);
}

function typed(page, asked, key) {
  return (event) => {
    asked[key] = event.target.value;
    page.changed();
  };
}

function instructions(page, asked) {
  const placeholder = { noul: "Is a refund due?", choice: "Which team should answer?", score: "How urgent is it?",
    number: "What is the total?", excerpt: "Which sentence says what to do?" }[asked.type];
  return field("Question", area({ rows: "1", value: asked.instructions, placeholder, oninput: typed(page, asked, "instructions") }));
}

function criteria(page, asked, form) {
  switch (asked.type) {
    case "noul":
      return !form.takesCriteria ? null : h("div", { class: "pair" },
        field("Yes means", h("input", { value: asked.yes, placeholder: "optional", oninput: typed(page, asked, "yes") })),
        field("No means", h("input", { value: asked.no, placeholder: "optional", oninput: typed(page, asked, "no") })));
    case "choice":
      return rows(page, asked, asked.options, { one: "option", range: form.range, blank: () => ({ key: "", note: "" }), draw: option });
    case "score":
      return rows(page, asked, asked.levels, { one: "level", range: form.range, blank: () => "", draw: level });
    case "number":
      return h("div", { class: "three" }, [["min", "Least"], ["max", "Greatest"], ["precision", "Step"]].map(([key, label]) =>
        field(label, h("input", { value: asked[key], inputmode: "decimal", placeholder: "any", oninput: typed(page, asked, key) }))));
    default:
      return null;
  }
}

function option(page, asked, index) {
  const list = asked.options;
  const write = (key) => (event) => {
    if (key === "key") renameAnswer(page.draft, asked.id, list[index].key, event.target.value);
    list[index][key] = event.target.value;
    page.changed();
  };
  return [
    h("input", { class: "key", "aria-label": `Option ${index + 1}`, placeholder: "option", value: list[index].key, oninput: write("key") }),
    h("input", { class: "when", "aria-label": `When to choose option ${index + 1}`, placeholder: "when to choose it (optional)", value: list[index].note, oninput: write("note") }),
  ];
}

function level(page, asked, index) {
  const list = asked.levels;
  return [
    h("span", { class: "level", "aria-hidden": "true" }, String(index)),
    h("input", { "aria-label": `Level ${index}${index === 0 ? ", the lowest" : ""}`, placeholder: index === 0 ? "the lowest level" : "a level", value: list[index], oninput: (event) => {
      renameAnswer(page.draft, asked.id, list[index], event.target.value);
      list[index] = event.target.value;
      page.changed();
    } }),
  ];
}

// Options or levels, with buttons that add and remove them.
function rows(page, asked, list, { one, range, blank, draw }) {
  const holder = h("ul", { class: `rows ${one}s` });
  const again = (focused) => {
    fill();
    page.changed();
    const inputs = holder.querySelectorAll("li");
    (inputs[Math.min(focused, inputs.length - 1)]?.querySelector("input") || add).focus();
  };
  const add = h("button", { type: "button", class: "link", onclick: () => {
    list.push(blank());
    again(list.length - 1);
  } }, `Add ${one === "option" ? "an option" : "a level"}`);
  const fill = () => {
    holder.replaceChildren(...list.map((_, index) => h("li", {}, draw(page, asked, index),
      h("button", { type: "button", class: "icon", "aria-label": `Remove ${one} ${index + 1}`, title: "Remove", onclick: () => {
        list.splice(index, 1);
        again(index);
      } }, "×"))));
    add.disabled = range !== null && list.length >= range[1];
  };
  fill();
  const limits = range ? h("span", { class: "hint" }, `${range[0]} to ${range[1]}`) : null;
  return h("div", { class: "field" }, h("span", { class: "label" }, one === "option" ? "Options" : "Levels, lowest first"), holder, h("p", { class: "below" }, add, limits));
}

// What is set seldom: under a line that says what is set.
function more(page, asked, form, redraw) {
  const has = (key) => key in form.properties;
  const takes = page.takes();
  const parts = [];
  if (has("samples")) {
    parts.push(field("Orders to read", h("input", { value: asked.samples, placeholder: "as the request says", autocomplete: "off", oninput: typed(page, asked, "samples") }),
      "A number from 1, or auto: orders of the options that are read and averaged."));
  }
  if (has("cite")) {
    parts.push(check("Cite", { checked: asked.cite, onchange: (event) => set("cite", event.target.checked) }, "the passages that the answer rests on"));
  }
  if (has("ask_if")) parts.push(conditions(page, asked, () => summarise()));
  if (has("depends_on") && page.draft.how.stageContext && "stage_context" in takes.fields) {
    parts.push(dependencies(page, asked, () => summarise()));
  }
  if ("ask" in takes.fields) {
    parts.push(check("Leave out", { checked: asked.unasked, onchange: (event) => {
      set("unasked", event.target.checked);
      redraw();
    } }, "it stays here, and is not asked"));
  }
  if (!parts.length) return null;
  const told = h("span", { class: "told" });
  const set = (key, value) => {
    asked[key] = value;
    page.changed();
    summarise();
  };
  const summarise = () => { told.textContent = summary(asked, has); };
  summarise();
  const made = h("details", { class: "more", open: opened.has(asked), ontoggle: () => {
    if (made.open) opened.add(asked);
    else opened.delete(asked);
  } }, h("summary", {}, "More", told), h("div", { class: "inside" }, parts));
  made.addEventListener("input", summarise);
  return made;
}

function summary(asked, has) {
  const parts = [
    has("samples") && asked.samples.trim() ? `orders ${asked.samples.trim()}` : "",
    has("cite") && asked.cite ? "cites" : "",
    has("ask_if") && asked.askIf.length ? `asked if ${asked.askIf.map((one) => `${one.id || "…"} is ${one.answers.join(" or ") || "…"}`).join(", ")}` : "",
    has("depends_on") && asked.dependsOn.length ? `after ${asked.dependsOn.join(", ")}` : "",
    asked.unasked ? "left out" : "",
  ].filter(Boolean);
  return parts.length ? ` ${parts.join(" · ")}` : "";
}
