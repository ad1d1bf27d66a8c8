// What is being drafted: a state, its questions, and how they are asked. Everything that comes from
// outside (a link, an example) passes `draft`, which takes known fields of the right type and no other.

export const TYPES = {
  noul: "yes or no",
  choice: "one of several options",
  score: "a level on a scale",
  number: "a number that the state says",
  excerpt: "a passage of the state",
};
export const LANES = ["urgent", "normal", "batch", "idle"];

const QUESTIONS_MAX = 64;
const OPTIONS_MAX = 255;

const text = (value, otherwise = "") => (typeof value === "string" ? value : otherwise);
const list = (value, most) => (Array.isArray(value) ? value.slice(0, most) : []);
const record = (value) => (value && typeof value === "object" ? value : {});

export function question(given = {}) {
  const from = record(given);
  const pair = (option) => ({ key: text(record(option).key), note: text(record(option).note) });
  const condition = (one) => ({ id: text(record(one).id), answers: list(record(one).answers, OPTIONS_MAX).map((each) => text(each)) });
  return {
    id: text(from.id),
    type: Object.hasOwn(TYPES, from.type) ? from.type : "noul",
    instructions: text(from.instructions),
    yes: text(from.yes),
    no: text(from.no),
    options: list(from.options, OPTIONS_MAX).map(pair),
    levels: list(from.levels, OPTIONS_MAX).map((level) => text(level)),
    min: text(from.min),
    max: text(from.max),
    precision: text(from.precision),
    samples: text(from.samples),
    cite: from.cite === true,
    askIf: list(from.askIf, QUESTIONS_MAX).map(condition),
    dependsOn: list(from.dependsOn, QUESTIONS_MAX).map((id) => text(id)),
    unasked: from.unasked === true,
  };
}

export function draft(given = {}) {
  const from = record(given);
  const how = record(from.how);
  return {
    dialect: text(from.dialect),
    kind: from.kind === "json" ? "json" : "text",
    state: text(from.state),
    questions: list(from.questions, QUESTIONS_MAX).map(question),
    how: {
      samples: text(how.samples),
      threshold: text(how.threshold),
      most: text(how.most),
      lane: LANES.includes(how.lane) ? how.lane : "",
      timeout: text(how.timeout),
      context: text(how.context),
      instructions: text(how.instructions),
      profile: text(how.profile),
      diagnostics: how.diagnostics !== false,
      stateText: how.stateText === true,
      stageContext: how.stageContext === true,
    },
  };
}

// Without what is as it would be anyway, so that links are short.
export function compact(value, bare = null) {
  if (Array.isArray(value)) return value.map((each) => compact(each));
  if (!value || typeof value !== "object") return value;
  const plain = bare || {};
  const kept = Object.entries(value).filter(([key, each]) => {
    if (key in plain && plain[key] === each) return false;
    if (Array.isArray(each)) return each.length > 0;
    return each !== "" && each !== false;
  });
  return Object.fromEntries(kept.map(([key, each]) => [key, compact(each, key === "how" ? { diagnostics: true } : null)]));
}

// A name for a new question that no other one has.
export function freeId(questions, stem = "question") {
  const taken = new Set(questions.map((each) => each.id));
  for (let number = 1; ; number += 1) {
    const name = `${stem}_${number}`;
    if (!taken.has(name)) return name;
  }
}

// By which names the answers of a question are known in conditions; none for numbers and excerpts.
export function answerNames(asked) {
  if (asked.type === "noul") return ["yes", "no"];
  const named = { choice: asked.options.map((option) => option.key), score: asked.levels }[asked.type] || [];
  return [...new Set(named.filter((name) => name !== ""))];
}

// Conditions follow the names that they are about, as these are typed.
export function renameQuestion(given, old, now) {
  if (old === "" || now === "") return;
  for (const asked of given.questions) {
    for (const one of asked.askIf) if (one.id === old) one.id = now;
    asked.dependsOn = asked.dependsOn.map((id) => (id === old ? now : id));
  }
}

export function renameAnswer(given, id, old, now) {
  if (old === "" || now === "") return;
  const about = given.questions.flatMap((asked) => asked.askIf).filter((one) => one.id === id);
  for (const one of about) one.answers = one.answers.map((name) => (name === old ? now : name));
}
