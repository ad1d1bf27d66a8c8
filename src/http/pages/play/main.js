// The playground: a draft on the left, what the server made of it on the right.

import { decision, prewarm, stateFault } from "./body.js";
import { snippets } from "./code.js";
import { askForKey } from "./dialog.js";
import { at, h, select, tabs } from "./dom.js";
import { examples } from "./examples.js";
import { draft as drafted } from "./model.js";
import { options } from "./options.js";
import { builder } from "./questions.js";
import { residency } from "./residency.js";
import { results } from "./results.js";
import { read } from "./schema.js";
import { drafted as shared, fragment } from "./share.js";
import { keys, send } from "./wire.js";

const REDRAW_MS = 120;

// What the parts of the page share: the draft, what the server takes, and what follows changes of names.
const page = {
  draft: drafted(),
  server: null,
  takes: () => page.server.dialects[page.draft.dialect],
  changed,
  waiting: [],
  redraw,
};
const parts = {};
let pending = 0;
let running = null;

function redraw() {
  parts.questions.draw();
  parts.options.draw();
}

// After any change of the draft: what depends on it follows once the typing pauses.
function changed() {
  clearTimeout(pending);
  pending = setTimeout(follow, REDRAW_MS);
}

function follow() {
  clearTimeout(pending);
  const takes = page.takes();
  const fault = stateFault(page.draft);
  page.waiting.forEach((refresh) => refresh());
  at("state").setAttribute("aria-invalid", String(fault !== null));
  at("state-told").textContent = fault || "";
  parts.residency.compare(prewarm(page.draft, takes).text);
  for (const panel of at("code").querySelectorAll("pre")) panel.textContent = fault || "";
  if (fault) return;
  const texts = snippets(decision(page.draft, takes), takes, location.origin, page.server.needsKey);
  texts.forEach(([language, text]) => { at(`code-${language}`).textContent = text; });
}

function open(given) {
  page.draft = drafted(given);
  const { dialects, own } = page.server;
  if (!(page.draft.dialect in dialects)) page.draft.dialect = own;
  at("dialect").value = page.draft.dialect;
  at("state").value = page.draft.state;
  at(`kind-${page.draft.kind}`).checked = true;
  takeKinds();
  redraw();
  follow();
}

// OpenAI's decisions take text only: what is JSON goes as its text.
function takeKinds() {
  const { isOpenai } = page.takes();
  at("kind-json").disabled = isOpenai;
  if (isOpenai && page.draft.kind === "json") {
    page.draft.kind = "text";
    at("kind-text").checked = true;
  }
}

function say(text) {
  at("said").textContent = text;
}

// Asks the server; where it wants a key, asks for that and then once more. Null where none was given.
async function call(method, request, signal) {
  for (;;) {
    const answer = await send(method, request, signal);
    if (answer.status !== 401) return answer;
    const why = keys.has() ? "The server does not know this key." : "This server answers with a key only.";
    if (!await askForKey(why)) return answer;
    showKey();
    lookAround();
  }
}

// Runs one of the page's three requests, one at a time.
async function run(button, method, request, done) {
  if (running) {
    if (running.button === button) running.abort();
    return;
  }
  running = Object.assign(new AbortController(), { button });
  const words = [...button.childNodes];
  const others = ["ask", "prewarm", "estimate"].map(at).filter((other) => other !== button);
  button.replaceChildren("Cancel");
  others.forEach((other) => { other.disabled = true; });
  document.body.classList.add("busy");
  at("answers").setAttribute("aria-busy", "true");
  say("");
  try {
    done(await call(method, request, running.signal));
  } catch (error) {
    if (error.name === "AbortError") {
      say("Cancelled.");
      parts.residency.failed();
    } else {
      parts.residency.failed();
      parts.results.broken(error.message);
    }
  } finally {
    running = null;
    button.replaceChildren(...words);
    others.forEach((other) => { other.disabled = false; });
    document.body.classList.remove("busy");
    at("answers").removeAttribute("aria-busy");
  }
}

function isReady() {
  follow();
  const fault = stateFault(page.draft);
  if (fault) {
    at("state").focus();
    say(fault);
  }
  return fault === null;
}

function ask() {
  if (!running && !isReady()) return;
  const questions = structuredClone(page.draft.questions);
  run(at("ask"), "POST", decision(page.draft, page.takes()), (answer) => parts.results.show(answer, questions));
}

function readAhead() {
  if (!running && !isReady()) return;
  const takes = page.takes();
  const request = prewarm(page.draft, takes);
  if (!running) parts.residency.busy();
  run(at("prewarm"), "POST", request, (answer) => {
    if (answer.ok) parts.residency.keep(answer.body, takes, request.text);
    else {
      parts.residency.failed();
      parts.results.show(answer, page.draft.questions);
    }
  });
}

function estimate() {
  if (!running && !isReady()) return;
  const takes = page.takes();
  const request = { ...decision(page.draft, takes), path: takes.estimate };
  const text = prewarm(page.draft, takes).text;
  run(at("estimate"), "POST", request, (answer) => {
    if (answer.ok) parts.residency.estimated(answer.body, text);
    else parts.results.show(answer, page.draft.questions);
  });
}

async function share() {
  const hash = await fragment(page.draft);
  history.replaceState(null, "", hash);
  const copied = await copy(location.href);
  say(copied ? "The link is copied. It has the state and the questions in it, and no key." : "The address bar has the link.");
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

async function copyCode() {
  const shown = [...at("code").querySelectorAll("pre")].find((panel) => !panel.closest("[role=tabpanel]").hidden);
  const copied = await copy(shown.textContent);
  at("copy").textContent = copied ? "Copied" : "Select it by hand";
  setTimeout(() => { at("copy").textContent = "Copy"; }, 2000);
}

function showKey() {
  at("key").hidden = !page.server.needsKey;
  at("key").textContent = keys.has() ? "Key given" : "Give a key";
}

// What is served, as far as the server tells.
async function lookAround() {
  const told = at("server-told");
  const { body } = await send("GET", { path: "/health" }).catch(() => ({ body: null }));
  at("server").className = `server ${body && body.ready ? "ready" : "away"}`;
  if (!body) told.textContent = "not reachable";
  else if (!body.ready) told.textContent = body.reason || "not ready";
  else {
    const { details } = body;
    told.textContent = details ? `${details.served_names[0]} · ${details.model.engine} engine` : "ready";
  }
}

function listen() {
  at("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  at("ask-form").addEventListener("keydown", (event) => {
    const isAsk = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    const isLine = event.key === "Enter" && event.target.matches("input");
    if (isAsk || isLine) event.preventDefault();
    if (isAsk) ask();
  });
  at("state").addEventListener("input", (event) => {
    page.draft.state = event.target.value;
    changed();
  });
  for (const kind of ["text", "json"]) {
    at(`kind-${kind}`).addEventListener("change", () => {
      page.draft.kind = kind;
      follow();
    });
  }
  at("dialect").addEventListener("change", (event) => {
    page.draft.dialect = event.target.value;
    takeKinds();
    redraw();
    follow();
  });
  at("prewarm").addEventListener("click", readAhead);
  at("estimate").addEventListener("click", estimate);
  at("share").addEventListener("click", share);
  at("copy").addEventListener("click", copyCode);
  at("key").addEventListener("click", async () => {
    if (await askForKey("This server answers with a key only.")) lookAround();
    showKey();
  });
  addEventListener("hashchange", openShared);
}

function list() {
  const { dialects } = page.server;
  const groups = examples(dialects);
  const chooser = at("example");
  chooser.replaceChildren(h("option", { value: "" }, "a draft of your own"), ...groups.map(({ label, examples: each }) =>
    h("optgroup", { label }, each.map(([key, name]) => h("option", { value: key }, name)))));
  const all = new Map(groups.flatMap((group) => group.examples).map(([key, , given]) => [key, given]));
  chooser.addEventListener("change", () => open(all.get(chooser.value) || { dialect: page.draft.dialect }));
  at("dialect").replaceChildren(...select({}, Object.keys(dialects).map((name) => [name, name]), page.server.own).children);
  return all;
}

async function openShared() {
  try {
    const given = await shared(location.hash);
    if (!given) return false;
    open(given);
    at("example").value = "";
    return true;
  } catch (error) {
    say(`The link cannot be read: ${error.message}.`);
    return false;
  }
}

function drawCode() {
  const panels = ["curl", "Python", "JavaScript"].map((language) =>
    [language, h("div", {}, h("pre", { id: `code-${language}`, tabindex: "0", "aria-label": `The request in ${language}` }))]);
  at("code").append(tabs("Languages", panels), ...panels.map(([, panel]) => panel));
}

async function main() {
  lookAround();
  const answer = await send("GET", { path: "/openapi.json" }).catch((error) => ({ ok: false, failure: error.message }));
  parts.results = results(page);
  if (!answer.ok) {
    parts.results.broken(answer.failure || `/openapi.json was answered with ${answer.status}`);
    return;
  }
  page.server = read(answer.body);
  parts.residency = residency(call);
  parts.questions = builder(page);
  parts.options = options(page);
  drawCode();
  const all = list();
  parts.residency.idle();
  listen();
  showKey();
  if (!await openShared()) {
    at("example").value = "ticket";
    open(all.get("ticket") || {});
    at("example").value = all.has("ticket") ? "ticket" : "";
  }
  document.body.classList.add("ready");
}

main();
