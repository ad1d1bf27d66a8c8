// The same request in other languages, to be pasted.

export const LANGUAGES = ["curl", "Python (SDK)", "JavaScript"];

/** `asked`: path, body as JSON text, and headers. The key is never in it. */
export function snippet(language, { path, body, headers, needsKey }) {
  const url = location.origin + path;
  if (language === "curl") return curl(url, body, headers, needsKey);
  if (language === "JavaScript") return javascript(url, body, headers, needsKey);
  return path.startsWith("/systemone/") ? python(body, headers) : requests(url, body, headers, needsKey);
}

function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curl(url, body, headers, needsKey) {
  const words = [`curl ${shell(url)}`, "-H 'content-type: application/json'"];
  if (needsKey) words.push('-H "authorization: Bearer $DOCKET_KEY"');
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${shell(`${name}: ${value}`)}`);
  return [...words, `-d ${shell(body)}`].join(" \\\n  ");
}

function javascript(url, body, headers, needsKey) {
  const all = { "content-type": "application/json", ...headers };
  const pairs = Object.entries(all).map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  if (needsKey) pairs.push("    authorization: `Bearer ${process.env.DOCKET_KEY}`,");
  return `const response = await fetch(${JSON.stringify(url)}, {
  method: "POST",
  headers: {
${pairs.join("\n")}
  },
  body: JSON.stringify(${indented(body, 2)}),
});
console.log(await response.json());`;
}

/** JSON as Python: the values that are spelt otherwise, outside of strings. */
function pythonic(json) {
  return json.replace(/"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g,
    (found) => ({ true: "True", false: "False", null: "None" })[found] ?? found);
}

function indented(text, by) {
  return text.replaceAll("\n", `\n${" ".repeat(by)}`);
}

function python(body, headers) {
  const read = JSON.parse(body);
  const rest = Object.entries(read).filter(([name]) => name !== "state" && name !== "questions");
  const more = rest.length ? `\n        extra_body=${pythonic(JSON.stringify(Object.fromEntries(rest)))},` : "";
  const lanes = Object.keys(headers).length ? `\n        extra_headers=${JSON.stringify(headers)},` : "";
  return `import os
from typesafe_sdk import TypeSafeClient

state = ${pythonic(JSON.stringify(read.state, null, 4))}
questions = ${pythonic(JSON.stringify(read.questions, null, 4))}
with TypeSafeClient(api_key=os.environ.get("DOCKET_KEY", "none"), base_url="${location.origin}") as client:
    answer = client.system_one(
        state,
        questions,${more}${lanes}
    )
print(answer.answers)`;
}

function requests(url, body, headers, needsKey) {
  const all = { "content-type": "application/json", ...headers };
  const key = needsKey ? `\nheaders["authorization"] = f"Bearer {os.environ['DOCKET_KEY']}"` : "";
  return `import json
import os
import urllib.request

headers = ${JSON.stringify(all)}${key}
body = ${pythonic(body)}
request = urllib.request.Request(${JSON.stringify(url)}, json.dumps(body).encode(), headers)
print(json.load(urllib.request.urlopen(request)))`;
}
