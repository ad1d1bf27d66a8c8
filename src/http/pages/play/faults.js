// Refusals of every dialect as one form, and drawn: which field, which value, which limit, in the server's
// own words; when to come back, and what would be let in now.

import { count, h } from "./dom.js";

const WHAT = {
  400: "The request makes no sense to the server",
  401: "A key is needed",
  403: "The key has no right to this",
  404: "There is no such thing here",
  413: "The body is too large",
  415: "The server does not take this kind of body",
  422: "Something in the request is not right",
  429: "No room now",
  500: "The server failed",
  501: "This model answers no questions",
  503: "The server cannot answer now",
  504: "Not answered in time",
};

const place = (loc) => (Array.isArray(loc) ? loc.filter((part, index) => index > 0 || part !== "body").join(" › ") : "");

// [{ place, message, code, path }] of an answer's body.
function faultsOf(body, text) {
  const detail = body && body.detail;
  if (Array.isArray(detail)) {
    return detail.map((one) => ({ place: place(one.loc), message: one.msg, code: one.type, path: one.loc }));
  }
  if (typeof detail === "string") return [{ place: "", message: detail, code: "" }];
  if (detail && typeof detail === "object") return [{ place: "", message: detail.message, code: detail.error_type }];
  const error = body && body.error;
  if (typeof error === "string") return [{ place: "", message: error, code: "" }];
  if (error && typeof error === "object") {
    return [{ place: error.param || "", message: error.message, code: error.code || error.type }];
  }
  return [{ place: "", message: text.slice(0, 500) || "The answer has no text.", code: "" }];
}

export function refusal(answer) {
  const ms = Number(answer.headers.get("retry-after-ms")) || Number(answer.headers.get("retry-after")) * 1000 || 0;
  return {
    status: answer.status,
    reason: answer.headers.get("x-docket-reason") || "",
    title: WHAT[answer.status] || "The request was refused",
    faults: faultsOf(answer.body, answer.text),
    backInMs: ms,
    lane: answer.headers.get("x-docket-downgrade"),
    requestId: answer.headers.get("x-typesafe-request-id"),
  };
}

// Ids of questions that the faults are about.
export function blamed(faults, ids) {
  const found = new Set();
  for (const { path, message } of faults) {
    if (path && path.includes("questions")) found.add(String(path[path.indexOf("questions") + 1]));
    else if (!path) ids.filter((id) => id && String(message).includes(`questions.${id}`)).forEach((id) => found.add(id));
  }
  return found;
}

export function drawn(refused) {
  const faults = refused.faults.map(({ place: where, message, code }) => h("li", {},
    where ? h("code", { class: "place" }, where) : null,
    h("span", { class: "told" }, message || "no message"),
    code && code !== refused.reason ? h("code", { class: "code" }, code) : null));
  const notes = [];
  if (refused.backInMs) notes.push(`Come back in ${count(Math.ceil(refused.backInMs / 1000), "second")}.`);
  if (refused.lane) notes.push(`In the lane ${refused.lane} it would be let in now.`);
  return h("section", { class: "fault", "aria-label": "Refusal" },
    h("h3", {}, refused.title),
    h("ul", { class: "faults" }, faults),
    notes.length ? h("p", {}, notes.join(" ")) : null,
    h("p", { class: "small" }, `HTTP ${refused.status}`, refused.reason ? [" · ", h("code", {}, refused.reason)] : null,
      refused.requestId ? [" · request ", h("code", {}, refused.requestId)] : null));
}

// A failure that is not the server's.
export function plain(title, message) {
  return h("section", { class: "fault", "aria-label": "Failure" }, h("h3", {}, title), h("p", {}, message));
}
