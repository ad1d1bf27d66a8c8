// A route of the reference, tried: its parameters and body as a form, its answer as it comes.
"use strict";

const SAMPLE_DEPTH_MAX = 8;

/** The smallest value that follows a schema, roughly: something to begin with. */
function sample(api, given, depth = 0) {
  const { schema } = resolved(api, given);
  if ("const" in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  if ("default" in schema) return schema.default;
  if (depth > SAMPLE_DEPTH_MAX) return null;
  const variants = schema.oneOf || schema.anyOf;
  if (variants && !schema.properties) return sample(api, variants[0], depth + 1);
  const type = [].concat(schema.type || [])[0] || (schema.properties ? "object" : "string");
  if (type === "object") return sampleObject(api, schema, depth);
  if (type === "array") {
    const count = Math.max(schema.minItems || 0, 1);
    const one = (place) => {
      const made = sample(api, schema.items || {}, depth + 1);
      return typeof made === "string" && place ? `${made} ${place + 1}` : made;
    };
    return Array.from({ length: count }, (_, place) => one(place));
  }
  if (type === "integer" || type === "number") return schema.minimum ?? 1;
  return type === "boolean" ? true : type === "null" ? null : "text";
}

function sampleObject(api, schema, depth) {
  const made = {};
  const either = (schema.anyOf || schema.oneOf || [])[0] || {};
  for (const name of [...(schema.required || []), ...(either.required || [])]) made[name] = sample(api, (schema.properties || {})[name] || {}, depth + 1);
  const least = Math.max(schema.minProperties || 0, schema.required ? 0 : schema.additionalProperties ? 1 : 0);
  for (let place = 1; Object.keys(made).length < least; place += 1) {
    made[`name-${place}`] = sample(api, typeof schema.additionalProperties === "object" ? schema.additionalProperties : {}, depth + 1);
  }
  return made;
}

/** Path and query of the parameters that were filled in. */
function addressed(path, inputs) {
  const query = new URLSearchParams();
  let at = path;
  for (const { one, input } of inputs) {
    if (one.in === "path") at = at.replace(`{${one.name}}`, encodeURIComponent(input.value));
    else if (one.in === "query" && input.value !== "") query.set(one.name, input.value);
  }
  return query.size ? `${at}?${query}` : at;
}

async function tried(method, path, inputs, text) {
  const headers = {};
  const key = document.getElementById("key").value.trim();
  if (key) headers.authorization = `Bearer ${key}`;
  for (const { one, input } of inputs) if (one.in === "header" && input.value !== "") headers[one.name] = input.value;
  if (text !== undefined) headers["content-type"] = "application/json";
  const began = performance.now();
  const response = await fetch(addressed(path, inputs), { method: method.toUpperCase(), headers, body: text, credentials: "omit" });
  const answer = await response.text();
  const took = Math.round(performance.now() - began);
  const shown = [...response.headers].filter(([name]) => /^(x-|retry|ratelimit|server-timing)/.test(name));
  let body = answer;
  try {
    body = JSON.stringify(JSON.parse(answer), null, 2);
  } catch {
    // Not JSON: as it is.
  }
  return [`${response.status} after ${took} ms`, ...shown.map(([name, value]) => `${name}: ${value}`), "", body].join("\n");
}

/** A closed form for one operation; it is drawn when it is first opened. */
function tryIt(api, path, method, given, parameters) {
  const place = element("div", { class: "body" });
  const whole = element("details", { class: "try" }, element("summary", {}, "Try it"), place);
  whole.addEventListener("toggle", () => {
    if (place.childNodes.length) return;
    const inputs = parameters.filter((one) => one.in !== "cookie").map((one) => ({ one, input: element("input", { autocomplete: "off", spellcheck: "false" }) }));
    for (const { one, input } of inputs) place.append(element("label", {}, `${one.name} (${one.in}${one.required ? ", required" : ""})`, input));
    const schema = given.requestBody && resolved(api, given.requestBody).schema.content?.["application/json"]?.schema;
    const text = schema ? element("textarea", { rows: "8", spellcheck: "false" }) : null;
    if (text) {
      text.value = JSON.stringify(sample(api, schema), null, 2);
      place.append(element("label", {}, "Body", text));
    }
    const answer = element("pre", { tabindex: "0", role: "status", "aria-label": "Answer" });
    const send = element("button", { type: "button" }, "Send");
    send.addEventListener("click", async () => {
      send.disabled = true;
      answer.textContent = "asking ...";
      try {
        answer.textContent = await tried(method, path, inputs, text ? text.value : undefined);
      } catch (error) {
        answer.textContent = `The server cannot be reached: ${error.message}`;
      }
      send.disabled = false;
    });
    place.append(send, answer);
  });
  return whole;
}
