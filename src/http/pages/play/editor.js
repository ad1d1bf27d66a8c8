// The builder of questions, and of a request's options.

import { HEADERS, KINDS, SETTINGS } from "./draft.js";
import { element, field } from "./dom.js";

const CRITERIA = {
  noul: ["What yes and no mean (optional)", "true: asks for money back\nfalse: anything else"],
  choice: ["Options, one a line; what one means behind a colon", "billing: invoices and refunds\nshipping"],
  score: ["Levels, the lowest first, one a line", "calm\ncross\nfurious"],
  number: ["Limits (optional), one a line", "min: 0\nmax: 100\nprecision: 0.01"],
};

const EXTRAS = [
  ["samples", "Orders", { placeholder: "the request's" }],
  ["ask_if", "Asked only if", { placeholder: "team = billing, sales" }],
  ["depends_on", "After (ids)", { placeholder: "team" }],
  ["cite", "Cite passages", { type: "checkbox" }],
];

/** Draws all questions of a draft; `changed` is called when something was typed. */
export function drawQuestions(into, draft, takes, changed) {
  const cards = draft.questions.map((question, place) => card(question, place, draft, takes, changed, () => {
    drawQuestions(into, draft, takes, changed);
  }));
  into.replaceChildren(...(cards.length ? cards : [element("p", { class: "dim" }, "No question yet: add one.")]));
}

/** Lines of a text, within reason. */
function rowsOf(text, least) {
  return Math.min(Math.max((text || "").split("\n").length, least), 12);
}

function card(question, place, draft, takes, changed, again) {
  const fields = takes.kinds[question.type];
  const typed = (name) => (value) => { question[name] = value; changed(); };
  const name = `question ${place + 1}`;
  const id = element("input", { "aria-label": `Id of ${name}`, spellcheck: "false", autocomplete: "off",
    on: { input: (event) => typed("id")(event.target.value) } });
  id.value = question.id;
  const remove = element("button", { type: "button", class: "plain", "aria-label": `Remove ${name}`, on: { click: () => {
    draft.questions.splice(place, 1);
    changed();
    again();
    document.getElementById("add").focus();
  } } }, "Remove");
  const head = element("div", { class: "head" }, element("span", { class: "row" }, id,
    element("span", { class: "kind" }, KINDS[question.type] || question.type)), remove);
  const grid = element("div", { class: "grid" },
    field("Question", question.instructions, typed("instructions"), { rows: rowsOf(question.instructions, 1), wide: true }));
  const [label, placeholder] = CRITERIA[question.type] || [];
  if (label && fields?.has("criteria")) {
    grid.append(field(label, question.criteria, typed("criteria"), { rows: rowsOf(question.criteria, 2), wide: true, placeholder }));
  }
  const extras = EXTRAS.filter(([key]) => fields?.has(key));
  const more = element("details", { class: "more" }, element("summary", {}, "More"), element("div", { class: "grid" },
    extras.map(([key, word, how]) => field(word, question[key], typed(key), how))));
  more.open = extras.some(([key]) => question[key]);
  const missing = fields ? null : element("p", { class: "dim" }, `The ${draft.dialect} dialect has no such question.`);
  return element("div", { class: "question", role: "group", "aria-label": `Question ${place + 1}` }, head, missing, grid,
    extras.length ? more : null);
}

/** Draws the options: the dialect, what goes as headers, and the fields that the dialect takes. */
export function drawSettings(into, draft, takes, dialects, changed, dialectChanged) {
  const typed = (of, name) => (value) => { draft[of][name] = value; changed(); };
  const known = dialects.includes(draft.dialect) ? dialects : [draft.dialect, ...dialects];
  into.replaceChildren(
    field("Dialect", draft.dialect, dialectChanged, { options: known.map((name) => [name, name]), id: "dialect" }),
    ...HEADERS.map(([name, label, how]) => field(label, draft.headers[name], typed("headers", name), how)),
    ...SETTINGS.filter(([name]) => takes.fields.has(name)).map(([name, label, kind, how]) => field(label,
      draft.settings[name], typed("settings", name), kind === "boolean" ? { ...how, type: "checkbox" } : how)),
  );
}
