// A draft as the request that is sent: its text is what the page shows, byte for byte. The state's JSON is
// put in as it was typed, since reading and writing it anew would change how its numbers are spelt.

const WIDTH = 76;
const word = (value) => JSON.stringify(value);

class Members {
  constructor(pairs) {
    this.pairs = pairs.filter((pair) => pair !== null);
  }
}

function written(node, indent = "") {
  if (typeof node === "string") return node;
  const inner = `${indent}  `;
  const isList = Array.isArray(node);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  const parts = isList ? node.map((each) => written(each, inner))
    : node.pairs.map(([key, value]) => `${word(key)}: ${written(value, inner)}`);
  if (parts.length === 0) return open + close;
  const flat = open + parts.join(", ") + close;
  if (flat.length + indent.length <= WIDTH && !flat.includes("\n")) return flat;
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
}

const isNumber = (typed) => /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(typed);

// What is no number goes as it was typed: the server says what is wrong with it.
const number = (typed) => (isNumber(typed.trim()) ? typed.trim() : word(typed));
const said = (key, typed, write = word) => (typed.trim() === "" ? null : [key, write(typed)]);
const set = (key, is) => (is ? [key, "true"] : null);

function criteria(asked) {
  switch (asked.type) {
    case "noul": {
      const sides = new Members([said("true", asked.yes), said("false", asked.no)]);
      return sides.pairs.length ? ["criteria", sides] : null;
    }
    case "choice":
      return ["criteria", new Members(asked.options.map((option) => [option.key, option.note.trim() === "" ? "null" : word(option.note)]))];
    case "score":
      return ["criteria", asked.levels.map(word)];
    case "number": {
      const limits = new Members(["min", "max", "precision"].map((key) => said(key, asked[key], number)));
      return limits.pairs.length ? ["criteria", limits] : null;
    }
    default:
      return null;
  }
}

function wireQuestion(asked, takes) {
  const form = takes.forms[asked.type] || { properties: {}, required: [] };
  const has = (key) => key in form.properties;
  const words = form.required.includes("instructions") ? ["instructions", word(asked.instructions)]
    : said("instructions", asked.instructions);
  const conditions = asked.askIf.filter((one) => one.id !== "");
  return new Members([
    ["type", word(asked.type)],
    words,
    asked.type !== "noul" || form.takesCriteria ? criteria(asked) : null,
    has("samples") ? said("samples", asked.samples, (typed) => (typed === "auto" ? word(typed) : number(typed))) : null,
    has("cite") ? set("cite", asked.cite) : null,
    has("ask_if") && conditions.length
      ? ["ask_if", new Members(conditions.map((one) => [one.id, one.answers.map(word)]))] : null,
    has("depends_on") && "stage_context" in takes.fields && asked.dependsOn.length
      ? ["depends_on", asked.dependsOn.map(word)] : null,
  ]);
}

function openaiQuestion(asked) {
  const described = (key, name, note) => new Members([[key, word(name)], said("description", note)]);
  return new Members([
    ["type", word(asked.type === "noul" ? "predicate" : asked.type)],
    ["instructions", word(asked.instructions)],
    said("name", asked.id),
    asked.type === "choice" ? ["choices", asked.options.map((option) => described("value", option.key, option.note))] : null,
    asked.type === "score" ? ["levels", asked.levels.map((level) => described("label", level, ""))] : null,
  ]);
}

function stateNode(draft) {
  return draft.kind === "json" ? draft.state.trim() : word(draft.state);
}

// What is wrong with a state that is to be JSON, in words; null where nothing is.
export function stateFault(draft) {
  if (draft.kind !== "json") return null;
  try {
    JSON.parse(draft.state);
    return null;
  } catch (error) {
    return draft.state.trim() === "" ? "The state is empty, and so no JSON." : `The state is no JSON: ${error.message}`;
  }
}

function headers(draft, takes) {
  const { how } = draft;
  const found = { "content-type": "application/json" };
  if (how.lane && !takes.laneInBody) found["x-docket-priority"] = how.lane;
  if (how.timeout.trim() && !takes.timeoutInBody) found["x-docket-timeout-ms"] = how.timeout.trim();
  return found;
}

function laneAndTime(how, takes) {
  return [
    takes.laneInBody ? said("priority", how.lane) : null,
    takes.timeoutInBody ? said("timeout_ms", how.timeout, number) : null,
  ];
}

function options(draft, takes) {
  const { how } = draft;
  const has = (key) => key in takes.fields;
  const samples = (typed) => (typed === "auto" ? word(typed) : number(typed));
  // Beside a number of orders these two would be ignored.
  const adapts = !isNumber(how.samples.trim());
  const silent = draft.questions.some((asked) => asked.unasked);
  return [
    has("ask") && silent ? ["ask", draft.questions.filter((asked) => !asked.unasked).map((asked) => word(asked.id))] : null,
    has("samples") ? said("samples", how.samples, samples) : null,
    has("auto_threshold") && adapts ? said("auto_threshold", how.threshold, number) : null,
    has("auto_max") && adapts ? said("auto_max", how.most, number) : null,
    has("stage_context") ? set("stage_context", how.stageContext) : null,
    has("context") ? said("context", how.context) : null,
    takes.hasInstructions ? said("instructions", how.instructions) : null,
    has("profile") ? said("profile", how.profile) : null,
    ...laneAndTime(how, takes),
    has("diagnostics") ? set("diagnostics", how.diagnostics) : null,
    has("state_text") ? set("state_text", how.stateText) : null,
  ];
}

// The decision: { path, headers, text }.
export function decision(draft, takes) {
  const given = { path: takes.path, headers: headers(draft, takes) };
  if (takes.isOpenai) {
    const asked = draft.questions.map(openaiQuestion);
    return { ...given, text: written(new Members([["model", word("any")], ["input", word(draft.state)], ["questions", asked]])) };
  }
  const asked = new Members(draft.questions.map((each) => [each.id, wireQuestion(each, takes)]));
  return { ...given, text: written(new Members([["state", stateNode(draft)], ["questions", asked], ...options(draft, takes)])) };
}

// Reads ahead the very prefix that the decision will read.
export function prewarm(draft, takes) {
  const { how } = draft;
  const has = (key) => key in takes.ahead;
  const text = written(new Members([
    ["state", takes.isOpenai ? word(draft.state) : stateNode(draft)],
    has("context") && "context" in takes.fields ? said("context", how.context) : null,
    has("instructions") && takes.hasInstructions ? said("instructions", how.instructions) : null,
    has("profile") && "profile" in takes.fields ? said("profile", how.profile) : null,
    said("priority", how.lane),
  ]));
  return { path: takes.prewarm, headers: { "content-type": "application/json" }, text };
}
