// The playground: a draft, the request that it makes, and what the server answers.

import { drawDecision, drawEstimate, drawFaults } from "./answers.js";
import { byId, element } from "./dom.js";
import { KINDS, bodyOf, dialectsOf, emptyDraft, headersOf, newQuestion, stateOf, takesOf } from "./draft.js";
import { drawQuestions, drawSettings } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { addressOf, draftOf } from "./share.js";
import { LANGUAGES, snippet } from "./snippets.js";
import { faultsOf, hasKey, send, useKey } from "./wire.js";

const PARTS = ["state", "kind", "dialect", "questions", "settings", "headers"];

let draft = emptyDraft();
let api = null;
let takes = { fields: new Set(), kinds: {} };
let language = LANGUAGES[0];
let needsKey = false;

function draw() {
  takes = takesOf(api, draft.dialect);
  byId("state").value = draft.state;
  byId("state-kind-choice").value = draft.kind;
  drawQuestions(byId("questions"), draft, takes, changed);
  drawSettings(byId("settings"), draft, takes, dialectsOf(api), changed, (name) => {
    draft.dialect = name;
    draw();
    byId("dialect").focus();
  });
  drawAdd();
  byId("resident").textContent = "";
  changed();
}

function drawAdd() {
  const kinds = Object.keys(takes.kinds);
  byId("add").replaceChildren(element("option", { value: "" }, "a question ..."),
    ...kinds.map((kind) => element("option", { value: kind }, `${KINDS[kind]} (${kind})`)));
}

/** After each change: what is wrong with the state, and the code. */
function changed() {
  let fault = "";
  try {
    stateOf(draft);
  } catch (error) {
    fault = error.message;
  }
  byId("state-kind").textContent = fault || `${[...draft.state].length} characters`;
  drawSnippet();
}

function request() {
  return { path: `/${draft.dialect}/v1/systemone`, body: bodyOf(draft, takes), headers: headersOf(draft), needsKey };
}

function drawSnippet() {
  let text;
  try {
    text = snippet(language, request());
  } catch (error) {
    text = error.message;
  }
  byId("snippet").textContent = text;
}

function say(text) {
  byId("said").textContent = text;
}

/** Shows what is told, and says that the place is no longer busy. */
function tell(...nodes) {
  byId("told").replaceChildren(...nodes.filter(Boolean));
  // Below each other, answers are out of sight.
  if (matchMedia("(max-width: 60rem)").matches) byId("answers").scrollIntoView({ block: "start" });
  byId("told").setAttribute("aria-busy", "false");
}

function refused(reply) {
  if (reply.status === 401) askForKey();
  tell(drawFaults(faultsOf(reply), reply));
}

function askForKey() {
  needsKey = true;
  byId("key-form").hidden = false;
  byId("key-said").textContent = hasKey() ? "this key is not known here" : "this server asks for one; kept in this tab's memory only";
  byId("key").focus();
  drawSnippet();
}

/** Runs `act` while its button waits; what the draft cannot be is told like a refusal. */
async function busy(button, act) {
  button.disabled = true;
  byId("told").setAttribute("aria-busy", "true");
  say("asking ...");
  try {
    await act();
  } catch (error) {
    tell(drawFaults([["", error.message]], { status: 0, headers: new Headers() }));
  }
  say("");
  byId("told").setAttribute("aria-busy", "false");
  button.disabled = false;
}

async function ask() {
  const asked = request();
  const reply = await send("POST", asked.path, asked);
  byId("body").textContent = reply.json ? JSON.stringify(reply.json, null, 2) : reply.text;
  if (reply.status !== 200 || !reply.json) return refused(reply);
  return tell(...drawDecision(reply));
}

async function estimate() {
  const asked = request();
  const reply = await send("POST", `/${draft.dialect}/v1/estimate`, asked);
  if (reply.status !== 200) return refused(reply);
  return tell(drawEstimate(reply.json));
}

async function prewarm() {
  const body = `{"state": ${stateOf(draft)}}`;
  const reply = await send("POST", "/systemone/v1/prewarm", { body, headers: headersOf(draft) });
  if (reply.status !== 200) return refused(reply);
  const { prompt_tokens: tokens, prefix, expires_at: until } = reply.json;
  const how = { exact: prefix.reused ? "was resident already" : "is resident now", pending: "will be read",
    off: "is not kept", unsupported: "cannot be kept by this engine" }[prefix.tier] || prefix.tier;
  const pinned = until ? `, pinned until ${new Date(until * 1000).toLocaleTimeString()}` : "";
  byId("resident").textContent = `${tokens} tokens: the state ${how}${pinned}`;
  return byId("told").setAttribute("aria-busy", "false");
}

function drawTabs() {
  const tabs = LANGUAGES.map((name) => element("button", { type: "button", role: "tab", "aria-selected": String(name === language),
    "aria-controls": "snippet", on: { click: () => { language = name; drawTabs(); drawSnippet(); } } }, name));
  byId("code").querySelector(".tabs").replaceChildren(...tabs);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    say(`${what} could not be copied: the browser does not allow it`);
  }
}

function share() {
  try {
    const address = addressOf(draft);
    history.replaceState(null, "", address);
    copy(address, "link");
  } catch (error) {
    say(error.message);
  }
}

function listen() {
  byId("ask").addEventListener("submit", (event) => { event.preventDefault(); busy(byId("send"), ask); });
  byId("ask").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("ask").requestSubmit(byId("send"));
  });
  byId("estimate").addEventListener("click", () => busy(byId("estimate"), estimate));
  byId("prewarm").addEventListener("click", () => busy(byId("prewarm"), prewarm));
  byId("share").addEventListener("click", share);
  byId("copy").addEventListener("click", () => copy(byId("snippet").textContent, "code"));
  byId("key-form").addEventListener("submit", (event) => event.preventDefault());
  byId("key").addEventListener("input", (event) => { useKey(event.target.value); needsKey ||= hasKey(); drawSnippet(); });
  byId("state").addEventListener("input", (event) => { draft.state = event.target.value; byId("resident").textContent = ""; changed(); });
  byId("state-kind-choice").addEventListener("change", (event) => { draft.kind = event.target.value; changed(); });
  byId("add").addEventListener("change", (event) => {
    draft.questions.push(newQuestion(event.target.value, draft.questions.map((question) => question.id)));
    event.target.value = "";
    drawQuestions(byId("questions"), draft, takes, changed);
    changed();
    byId("questions").lastElementChild.querySelector("textarea").focus();
  });
  byId("example").addEventListener("change", (event) => take(EXAMPLES[Number(event.target.value)].draft));
  window.addEventListener("hashchange", () => { const shared = draftOf(location.hash); if (shared) take(shared); });
}

function take(given) {
  draft = structuredClone(Object.fromEntries(PARTS.map((part) => [part, given[part]])));
  draw();
}

async function begin() {
  byId("example").replaceChildren(...EXAMPLES.map(({ name }, place) => element("option", { value: place }, name)));
  drawTabs();
  listen();
  const [reply, health] = await Promise.all([send("GET", "/openapi.json"), send("GET", "/health")]);
  // Who has no key is told of no details where there are keys.
  needsKey = health.status === 200 && !health.json?.details;
  byId("key-form").hidden = !needsKey;
  api = reply.json;
  byId("served").textContent = api?.info?.version ? `${api.info.version}, playground` : "playground";
  take(draftOf(location.hash) || EXAMPLES[0].draft);
  document.body.dataset.ready = "true";
}

begin();
