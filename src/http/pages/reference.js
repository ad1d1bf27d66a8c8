// Draws the OpenAPI document of this server: routes, parameters, bodies and answers, with a search.
// Text of the document becomes text of the page and nothing else.
"use strict";

const DEPTH_MAX = 6;
const METHODS = ["get", "post", "put", "delete", "patch"];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function resolved(api, schema) {
  let seen = 0;
  let name = "";
  while (schema && schema.$ref && seen++ < 16) {
    name = schema.$ref.split("/").pop();
    schema = schema.$ref.slice(2).split("/").reduce((at, key) => at && at[key], api);
  }
  return { name, schema: schema || {} };
}

function limits(schema) {
  const pairs = [["minimum", "from "], ["maximum", "to "], ["minLength", "at least "], ["maxLength", "at most "],
    ["minItems", "at least "], ["maxItems", "at most "], ["minProperties", "at least "], ["maxProperties", "at most "]];
  const parts = pairs.filter(([key]) => key in schema).map(([key, word]) => word + schema[key]);
  if (schema.enum) parts.push("one of " + schema.enum.map((value) => JSON.stringify(value)).join(", "));
  if ("const" in schema) parts.push(JSON.stringify(schema.const));
  if ("default" in schema) parts.push("default " + JSON.stringify(schema.default));
  return parts.join("; ");
}

function kind(schema) {
  if (schema.type) return [].concat(schema.type).join(" or ");
  return schema.oneOf || schema.anyOf ? "one of" : schema.properties ? "object" : "any";
}

function described(api, given, depth) {
  const { name, schema } = resolved(api, given);
  const parts = element("div", {});
  if (schema.description) parts.append(element("p", {}, schema.description));
  const fields = Object.entries(schema.properties || {});
  const required = schema.required || [];
  const inner = [...fields.map(([key, value]) => [key, value, required.includes(key)]),
    ...(schema.oneOf || schema.anyOf || []).map((value, at) => [resolved(api, value).name || "form " + (at + 1), value, false])];
  if (schema.items) inner.push(["each element", schema.items, false]);
  if (schema.additionalProperties && typeof schema.additionalProperties === "object") {
    inner.push(["each value", schema.additionalProperties, false]);
  }
  for (const [key, value, isRequired] of inner) parts.append(member(api, key, value, isRequired, depth));
  return { parts, inner: inner.length, name };
}

function member(api, key, value, isRequired, depth) {
  const { name, schema } = resolved(api, value);
  const facts = [kind(schema), name, isRequired ? "required" : "", limits(schema)].filter(Boolean).join(", ");
  const head = [element("code", {}, key), " ", element("span", { class: "dim" }, facts)];
  const inside = depth < DEPTH_MAX ? described(api, value, depth + 1) : { parts: element("div", {}), inner: 0 };
  if (inside.inner === 0) {
    return element("dl", {}, element("dt", {}, ...head), element("dd", {}, schema.description));
  }
  return element("details", {}, element("summary", {}, ...head), element("div", { class: "body" }, inside.parts));
}

function content(api, title, holder) {
  const found = element("div", {});
  for (const [media, { schema }] of Object.entries((holder && holder.content) || {})) {
    found.append(element("h2", {}, title + " ", element("code", {}, media)));
    if (schema) found.append(described(api, schema, 0).parts);
  }
  return found;
}

function answer(api, status, given) {
  const response = resolved(api, given).schema;
  const head = [element("code", {}, status), " ", response.description || ""];
  const headers = Object.entries(response.headers || {}).map(([name, value]) => {
    const header = resolved(api, value).schema;
    return element("dl", {}, element("dt", {}, element("code", {}, name)), element("dd", {}, header.description || ""));
  });
  const body = content(api, "Body", response);
  if (!headers.length && !body.childNodes.length) return element("dl", {}, element("dt", {}, ...head), element("dd", {}));
  return element("details", {}, element("summary", {}, ...head), element("div", { class: "body" }, ...headers, body));
}

function operation(api, path, method, given, shared) {
  const summary = element("summary", {}, element("span", { class: "method" }, method.toUpperCase()),
    element("code", {}, path), " ", element("span", { class: "dim" }, given.summary || ""));
  const body = element("div", { class: "body" });
  if (given.description) body.append(element("p", {}, given.description));
  const parameters = [...shared, ...(given.parameters || [])].map((one) => resolved(api, one).schema);
  if (parameters.length) body.append(element("h2", {}, "Parameters"));
  for (const one of parameters) {
    const schema = { ...resolved(api, one.schema).schema };
    schema.description = one.description || schema.description;
    body.append(member(api, `${one.name} (${one.in})`, schema, one.required, 1));
  }
  body.append(content(api, "Request", given.requestBody && resolved(api, given.requestBody).schema));
  body.append(tryIt(api, path, method, given, parameters));
  body.append(element("h2", {}, "Answers"));
  for (const [status, response] of Object.entries(given.responses || {})) body.append(answer(api, status, response));
  return element("details", { id: `${method}-${path}` }, summary, body);
}

function draw(api) {
  const routes = [];
  for (const [path, item] of Object.entries(api.paths || {})) {
    for (const method of METHODS.filter((name) => item[name])) {
      const drawn = operation(api, path, method, item[method], item.parameters || []);
      routes.push({ drawn, text: drawn.textContent.toLowerCase() });
    }
  }
  return routes;
}

function follow(routes) {
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { drawn, text } of routes) {
      drawn.hidden = !words.every((word) => text.includes(word));
      count += drawn.hidden ? 0 : 1;
    }
    found.textContent = words.length ? `${count} of ${routes.length} routes` : `${routes.length} routes`;
  };
  search.addEventListener("input", show);
  show();
}

async function main() {
  const place = document.getElementById("routes");
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`/openapi.json: ${response.status}`);
    const api = await response.json();
    document.getElementById("version").textContent = (api.info && api.info.version) || "";
    const routes = draw(api);
    place.replaceChildren(...routes.map(({ drawn }) => drawn));
    follow(routes);
    const asked = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (asked) { asked.open = true; asked.scrollIntoView(); }
  } catch (error) {
    place.replaceChildren(element("p", { role: "alert" }, `The document could not be drawn: ${error.message}`));
  }
  place.setAttribute("aria-busy", "false");
}

main();
