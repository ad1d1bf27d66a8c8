// The request that is drafted, as curl, Python and JavaScript. A key is never in it, only where to put one.

const CLIENT = "TypeSafeClient";
const word = (value) => JSON.stringify(value);

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl({ url, headers, text, needsKey }) {
  const lines = [`curl ${url}`, ...Object.entries(headers).map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`)];
  if (needsKey) lines.push('-H "authorization: Bearer $DOCKET_KEY"');
  lines.push(`--data-binary ${shell(text)}`);
  return lines.join(" \\\n  ");
}

// JSON text as Python: strings anew, since Python has other escapes, and the three words; numbers as they are.
function python(json) {
  const tokens = /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g;
  const words = { true: "True", false: "False", null: "None" };
  return json.replace(tokens, (token) => words[token] || word(JSON.parse(token)));
}

// The members of a JSON object's text as they are written: [[key, text]].
function members(json) {
  const found = [];
  let [depth, start, inString] = [0, 0, false];
  let name = null;
  for (let at = 0; at < json.length; at += 1) {
    const letter = json[at];
    if (inString) {
      if (letter === "\\") at += 1;
      else if (letter === '"') inString = false;
      continue;
    }
    if (letter === '"') inString = true;
    else if ("{[".includes(letter)) {
      depth += 1;
      if (depth === 1) start = at + 1;
    } else if (letter === ":" && depth === 1 && name === null) {
      name = JSON.parse(json.slice(start, at));
      start = at + 1;
    }
    if ((letter === "," && depth === 1) || ("}]".includes(letter) && depth === 1)) {
      if (name !== null) found.push([name, json.slice(start, at).trim()]);
      [name, start] = [null, at + 1];
    }
    if ("}]".includes(letter)) depth -= 1;
  }
  return found;
}

const indented = (text, by) => text.replaceAll("\n", `\n${by}`);

// Questions as the client's own classes where it has them for every field, else as a dictionary.
function pythonQuestion(json, used) {
  const parts = members(json);
  const known = new Set(["type", "instructions", "criteria"]);
  const type = JSON.parse(new Map(parts).get("type"));
  const name = { noul: "Noul", choice: "Choice", score: "Score" }[type];
  if (!name || parts.some(([key]) => !known.has(key))) return python(json);
  used.add(name);
  return `${name}(${parts.filter(([key]) => key !== "type").map(([key, value]) => `${key}=${python(value)}`).join(", ")})`;
}

// The client reads answers of its own three types in the shapes of its own server; `response_model` has all.
function wholeAnswer(questions, dialect) {
  return !["systemone", "decisio"].includes(dialect) || questions.some(([, json]) => /"type": "(number|excerpt)"|"ask_if"/.test(json));
}

function officialPython({ base, headers, text, needsKey, model, dialect }) {
  const parts = members(text);
  const used = new Set([CLIENT]);
  const asked = members(new Map(parts).get("questions"));
  const isWhole = wholeAnswer(asked, dialect);
  const questions = asked
    .map(([id, json]) => `        ${word(id)}: ${indented(pythonQuestion(json, used), "    ")},`);
  const rest = parts.filter(([key]) => key !== "state" && key !== "questions");
  const extra = Object.entries(headers).filter(([name]) => name !== "content-type");
  const lines = [
    ...(needsKey ? ["import os", ""] : []),
    ...(isWhole ? ["from pydantic import BaseModel"] : []),
    `from typesafe_sdk import ${[...used].sort().join(", ")}`,
    "",
    ...(isWhole ? ["", "class Answers(BaseModel):", "    answers: dict", "", ""] : []),
    `with ${CLIENT}(base_url=${word(base)}, api_key=${needsKey ? 'os.environ["DOCKET_KEY"]' : '"none"'}) as client:`,
    "    answer = client.system_one(",
    `        state=${indented(python(new Map(parts).get("state")), "        ")},`,
    "        questions={",
    ...questions.map((line) => `    ${line}`),
    "        },",
  ];
  if (model) lines.push(`        model=${word(model)},`);
  if (isWhole) lines.push("        response_model=Answers,");
  if (rest.length) lines.push(`        extra_body={${rest.map(([key, value]) => `${word(key)}: ${python(value)}`).join(", ")}},`);
  if (extra.length) lines.push(`        extra_headers={${extra.map(([name, value]) => `${word(name)}: ${word(value)}`).join(", ")}},`);
  lines.push("    )", "", "for name, found in answer.answers.items():", "    print(name, found)");
  return lines.join("\n");
}

function openaiPython({ base, headers, text, needsKey }) {
  const parts = members(text).map(([key, value]) => `    ${key}=${indented(python(value), "    ")},`);
  const extra = Object.entries(headers).filter(([name]) => name !== "content-type");
  if (extra.length) parts.push(`    extra_headers={${extra.map(([name, value]) => `${word(name)}: ${word(value)}`).join(", ")}},`);
  return [
    ...(needsKey ? ["import os", ""] : []),
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${word(`${base}/v1`)}, api_key=${needsKey ? 'os.environ["DOCKET_KEY"]' : '"none"'})`,
    "decision = client.decisions.create(",
    ...parts,
    ")",
    "for found in decision.answers:",
    "    print(found)",
  ].join("\n");
}

function javascript({ url, headers, text, needsKey }) {
  const sent = Object.entries(headers).map(([name, value]) => `    ${word(name)}: ${word(value)},`);
  if (needsKey) sent.push("    authorization: `Bearer ${process.env.DOCKET_KEY}`,");
  // Numbers that this language cannot hold, and keys that it would put in another order, keep their text.
  const isSame = !text.includes("__proto__") && JSON.stringify(JSON.parse(text)) === squeezed(text);
  const body = isSame ? `JSON.stringify(${indented(text, "  ")})` : `String.raw\`${text.replaceAll("`", "\\u0060").replaceAll("${", "\\u0024{")}\``;
  return [
    `const response = await fetch(${word(url)}, {`,
    '  method: "POST",',
    "  headers: {",
    ...sent,
    "  },",
    `  body: ${body},`,
    "});",
    "const answer = await response.json();",
    "if (!response.ok) throw new Error(JSON.stringify(answer));",
    "console.log(answer.answers);",
  ].join("\n");
}

// JSON text without the spaces between its tokens.
function squeezed(json) {
  return json.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (token) => (token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : ""));
}

// [[language, text]] of a request { path, headers, text } to the dialect that `takes` describes.
export function snippets(request, takes, origin, needsKey) {
  const given = { ...request, url: origin + request.path, base: origin + takes.base, needsKey, model: takes.model, dialect: takes.name };
  return [
    ["curl", curl(given)],
    ["Python", takes.isOpenai ? openaiPython(given) : officialPython(given)],
    ["JavaScript", javascript(given)],
  ];
}
