// What a person has written, and the request that it makes.

export const KINDS = {
  noul: "yes or no", choice: "one of several", score: "a level", number: "a number", excerpt: "a passage",
};

/** Fields of a request that have an input: name, label, and how it is read. */
export const SETTINGS = [
  ["samples", "Orders (samples)", "samples", { placeholder: "auto, or 1, 2, ..." }],
  ["auto_threshold", "More orders above this entropy", "number", { placeholder: "0.1" }],
  ["auto_max", "Most orders", "number", { placeholder: "4" }],
  ["stage_context", "Questions see the answers they wait for", "boolean", {}],
  ["context", "Context ahead of the state", "text", { rows: 2, wide: true }],
  ["profile", "Profile", "text", {}],
  ["ask", "Ask only (ids, with commas)", "ids", {}],
];

/** Those that go as headers, so that every dialect takes them. */
export const HEADERS = [
  ["x-docket-priority", "Lane", { options: [["", "the server's"], ["urgent", "urgent"], ["normal", "normal"],
    ["batch", "batch"], ["idle", "idle"]] }],
  ["x-docket-timeout-ms", "Time limit, ms", { inputmode: "numeric", placeholder: "the server's" }],
  ["x-docket-salt", "Salt", { placeholder: "none" }],
];

export function emptyDraft() {
  return { dialect: "systemone", state: "", kind: "text", questions: [], settings: {}, headers: {} };
}

export function newQuestion(type, taken) {
  let number = 1;
  while (taken.includes(`${type}-${number}`)) number += 1;
  return { id: `${type}-${number}`, type, instructions: "", criteria: type === "choice" ? "yes\nno" : type === "score" ? "low\nhigh" : "" };
}

/** An object as JSON, in the order given: an object of this language would put names such as "2" first. */
function objectText(pairs, indent = "") {
  const parts = pairs.map(([name, text]) => `${JSON.stringify(name)}: ${text}`);
  if (!indent || !parts.length) return `{${parts.join(", ")}}`;
  return `{\n${parts.map((part) => indent + part).join(",\n")}\n${indent.slice(2)}}`;
}

/** The JSON of a request; throws an `Error` whose message names the place. */
export function bodyOf(draft, takes) {
  const taken = new Set();
  const questions = draft.questions.map((question) => {
    if (taken.has(question.id)) throw new Error(`two questions are called ${JSON.stringify(question.id)}`);
    taken.add(question.id);
    return [question.id, questionOf(question, takes.kinds[question.type] || new Set())];
  });
  const pairs = [["state", stateOf(draft)], ["questions", objectText(questions, "    ")]];
  if (takes.fields.has("diagnostics")) pairs.push(["diagnostics", "true"]);
  for (const [name, label, kind] of SETTINGS) {
    const value = takes.fields.has(name) ? valueOf(draft.settings[name], kind, label) : undefined;
    if (value !== undefined) pairs.push([name, JSON.stringify(value)]);
  }
  return objectText(pairs, "  ");
}

export function headersOf(draft) {
  const sent = Object.entries(draft.headers).filter(([, value]) => String(value ?? "").trim() !== "");
  return Object.fromEntries(sent.map(([name, value]) => [name, String(value).trim()]));
}

/** The state as JSON; JSON that was typed stays as it is, spelling of numbers and all. */
export function stateOf(draft) {
  if (draft.kind === "text") return JSON.stringify(draft.state);
  try {
    JSON.parse(draft.state);
  } catch (error) {
    throw new Error(`the state is no JSON: ${error.message}`);
  }
  return draft.state.trim();
}

function questionOf(question, takes) {
  const made = [["type", JSON.stringify(question.type)]];
  if (question.instructions.trim()) made.push(["instructions", JSON.stringify(question.instructions)]);
  const criteria = criteriaOf(question);
  if (criteria !== undefined && takes.has("criteria")) made.push(["criteria", criteria]);
  const at = (label) => `${question.id}: ${label}`;
  const also = { samples: valueOf(question.samples, "samples", at("samples")), cite: question.cite || undefined,
    ask_if: conditionsOf(question.ask_if, at("asked if")), depends_on: valueOf(question.depends_on, "ids", at("after")) };
  for (const [name, value] of Object.entries(also)) {
    if (value !== undefined && takes.has(name)) made.push([name, name === "ask_if" ? value : JSON.stringify(value)]);
  }
  return objectText(made);
}

function lines(text) {
  return (text || "").split("\n").map((line) => line.trim()).filter(Boolean);
}

/** Criteria, as JSON, of how they are written: a line an option (`key: what it means`), a level, or a limit. */
export function criteriaOf({ id, type, criteria }) {
  const found = lines(criteria);
  const pairs = found.map((line) => {
    const at = line.indexOf(":");
    return at < 0 ? [line, null] : [line.slice(0, at).trim(), line.slice(at + 1).trim() || null];
  });
  const texts = () => objectText(pairs.map(([key, value]) => [key, JSON.stringify(value)]));
  switch (type) {
    case "choice": return texts();
    case "score": return JSON.stringify(found);
    case "noul": return pairs.length ? texts() : undefined;
    case "number": return pairs.length
      ? objectText(pairs.map(([name, value]) => [name, String(numberOf(value, `${id}: ${name}`))])) : undefined;
    default: return undefined;
  }
}

function numberOf(text, label) {
  const number = Number(text);
  if (text === null || String(text).trim() === "" || !Number.isFinite(number)) throw new Error(`${label}: ${JSON.stringify(text)} is no number`);
  return number;
}

/** `team = billing, sales; urgent = yes` as the API has it, in JSON. */
export function conditionsOf(text, label) {
  const parts = (text || "").split(";").map((part) => part.trim()).filter(Boolean);
  if (!parts.length) return undefined;
  return objectText(parts.map((part) => {
    const at = part.indexOf("=");
    if (at < 1) throw new Error(`${label}: ${JSON.stringify(part)} is not as in: team = billing, sales`);
    return [part.slice(0, at).trim(), JSON.stringify(ids(part.slice(at + 1)))];
  }));
}

function ids(text) {
  return text.split(",").map((id) => id.trim()).filter(Boolean);
}

function valueOf(given, kind, label) {
  if (kind === "boolean") return given === true ? true : undefined;
  const text = String(given ?? "").trim();
  if (!text) return undefined;
  if (kind === "text") return String(given);
  if (kind === "ids") return ids(text);
  return kind === "samples" && text === "auto" ? text : numberOf(text, label);
}

/** What a dialect takes, by the server's own document. */
export function takesOf(api, dialect) {
  const seen = (schema) => {
    let at = schema || {};
    for (let depth = 0; at.$ref && depth < 8; depth += 1) {
      at = at.$ref.slice(2).split("/").reduce((inside, key) => inside && inside[key], api) || {};
    }
    return at;
  };
  const route = api?.paths?.[`/${dialect}/v1/systemone`]?.post;
  const schema = seen(route?.requestBody?.content?.["application/json"]?.schema);
  const question = seen(seen(schema.properties?.questions).additionalProperties);
  const kinds = {};
  for (const given of question.oneOf || question.anyOf || [question]) {
    const { properties = {} } = seen(given);
    const type = seen(properties.type).const;
    if (type in KINDS) kinds[type] = new Set(Object.keys(properties));
  }
  return { fields: new Set(Object.keys(schema.properties || {})), kinds };
}

/** Dialects of the document whose decisions have the questions of this page. */
export function dialectsOf(api) {
  const names = Object.keys(api?.paths || {}).map((path) => /^\/(\w+)\/v1\/systemone$/.exec(path)?.[1]).filter(Boolean);
  return names.filter((name) => Object.keys(takesOf(api, name).kinds).length);
}
