// What came back: answers or a refusal, times, tokens, and the response as it was.

import { spoken, views } from "./answers.js";
import { at, h, milliseconds } from "./dom.js";
import { answer as drawAnswer } from "./draw.js";
import { blamed, drawn, plain, refusal } from "./faults.js";
import { tokens, waterfall } from "./timing.js";

function indented(body, text) {
  return body === null ? text : JSON.stringify(body, null, 2);
}

function raw(answer) {
  const headers = [...answer.headers].filter(([name]) => /^(x-|server-timing|ratelimit|retry-after)/.test(name));
  const shown = [`HTTP ${answer.status}`, ...headers.map(([name, value]) => `${name}: ${value}`), "", indented(answer.body, answer.text)];
  return h("details", { class: "card raw" }, h("summary", {}, h("h2", {}, "The response")),
    h("pre", { tabindex: "0", "aria-label": "The response as it came" }, shown.join("\n")));
}

// Fields that the server took no notice of.
function ignored(answer) {
  const header = answer.headers.get("x-docket-ignored");
  if (!header) return null;
  let names = [header];
  try {
    names = JSON.parse(header);
  } catch {
    // It is shown as it came.
  }
  return h("p", { class: "note" }, "The server ignored ", names.flatMap((name, index) => [index ? ", " : "", h("code", {}, name)]), ".");
}

function stateText(body) {
  if (!body || typeof body.x_state_text !== "string") return null;
  return h("details", { class: "card raw" }, h("summary", {}, h("h2", {}, "The state as the model read it")), h("pre", { tabindex: "0" }, body.x_state_text));
}

export function results(page) {
  const holder = at("answers");

  function mark(ids) {
    for (const card of at("questions").children) card.classList.toggle("blamed", ids.has(card.dataset.question));
  }

  function put(parts, told) {
    holder.replaceChildren(...parts.filter(Boolean));
    at("spoken").textContent = told;
    // On a phone the answers are below what was asked: they come into view, and nothing else moves.
    if (holder.getBoundingClientRect().top > innerHeight * 0.8) {
      const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      holder.scrollIntoView({ behavior: isCalm ? "auto" : "smooth", block: "start" });
    }
  }

  return {
    // An answer to these questions, or a refusal of them.
    show(answer, questions) {
      const asked = questions.filter((each) => !each.unasked);
      if (!answer.ok) {
        const refused = refusal(answer);
        mark(blamed(refused.faults, page.draft.questions.map((each) => each.id)));
        const first = refused.faults[0];
        put([drawn(refused), ignored(answer), raw(answer)], `Refused: ${refused.title}. ${first.place} ${first.message}`);
        return;
      }
      mark(new Set());
      const list = views(answer.body, asked);
      const took = milliseconds(Number(answer.headers.get("x-docket-total-ms")) || answer.took);
      const title = h("header", { class: "bare" }, h("h2", {}, "Answers"), h("p", { class: "small" }, `${answer.body.model} · ${took}`));
      put([h("div", {}, title, ignored(answer), h("div", { class: "card list" }, list.map(drawAnswer))),
        waterfall(answer), tokens(answer), stateText(answer.body), raw(answer)], spoken(list));
    },
    // No answer at all.
    broken(message) {
      put([plain("No answer", message)], `No answer: ${message}`);
    },
  };
}
