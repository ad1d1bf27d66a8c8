// What each dialect takes, read from this server's /openapi.json, so that the page shows the fields that
// would be accepted and no other.

function resolved(api, given) {
  let schema = given || {};
  for (let seen = 0; schema.$ref && seen < 16; seen += 1) {
    schema = schema.$ref.slice(2).split("/").reduce((found, key) => found && found[key], api) || {};
  }
  return schema;
}

function bodyOf(api, path) {
  const post = api.paths[path] && api.paths[path].post;
  const content = post && resolved(api, post.requestBody).content;
  return content ? content["application/json"].schema : null;
}

const isA = (schema, type) => [].concat(schema.type || []).includes(type);

// The forms of a question by our own names of their types.
function forms(api, given) {
  const holder = resolved(api, given);
  const each = resolved(api, holder.items || holder.additionalProperties);
  const found = {};
  for (const one of each.oneOf || each.anyOf || []) {
    const form = resolved(api, one);
    const properties = Object.fromEntries(Object.entries(form.properties || {}).map(([key, value]) => [key, resolved(api, value)]));
    const name = properties.type && properties.type.const;
    if (!name) continue;
    const required = form.required || [];
    // A dialect may have the field for other kinds' sake, and take nothing in it.
    const takesCriteria = properties.criteria !== undefined && properties.criteria.type !== "null";
    found[name === "predicate" ? "noul" : name] = { properties, required, takesCriteria, range: range(api, properties) };
  }
  return found;
}

// How many options or levels there may be: [least, most], or null.
function range(api, properties) {
  const given = properties.criteria || properties.choices || properties.levels;
  if (!given) return null;
  const known = given.anyOf ? resolved(api, given.anyOf[0]) : given;
  const [least, most] = [known.minProperties ?? known.minItems, known.maxProperties ?? known.maxItems];
  return most ? [least || 1, most] : null;
}

function dialect(api, name) {
  const isOpenai = name === "openai";
  const path = isOpenai ? "/openai/v1/decisions" : `/${name}/v1/systemone`;
  const given = bodyOf(api, path);
  const body = resolved(api, given);
  const isOwn = !isOpenai && (bodyOf(api, "/v1/systemone") || {}).$ref === given.$ref;
  const prefix = isOwn ? "" : `/${name}`;
  const fields = Object.fromEntries(Object.entries(body.properties || {}).map(([key, value]) => [key, resolved(api, value)]));
  const asked = fields.questions || {};
  const ahead = resolved(api, bodyOf(api, `${prefix}/v1/prewarm`) || {});
  return {
    name,
    isOpenai,
    base: isOpenai ? "/openai" : prefix,
    path: isOpenai ? path : `${prefix}/v1/systemone`,
    prewarm: `${prefix}/v1/prewarm`,
    estimate: `${prefix}/v1/estimate`,
    fields,
    ahead: ahead.properties || {},
    forms: forms(api, asked),
    questionsMax: asked.maxProperties || asked.maxItems || 64,
    // A lane and a time limit are said in the body where it has them in these words, else in headers.
    laneInBody: "priority" in fields && !isA(fields.priority, "integer"),
    timeoutInBody: "timeout_ms" in fields,
    hasInstructions: isA(fields.instructions || {}, "string"),
    // Where only served names are taken: the one that the official client is to ask for.
    model: ((fields.model || {}).enum || []).find((each) => each) || null,
    isServers: isOwn,
  };
}

export function read(api) {
  const names = Object.keys(api.paths || {})
    .map((path) => (/^\/([a-z]+)\/v1\/systemone$/.exec(path) || [])[1])
    .filter(Boolean);
  const dialects = Object.fromEntries(names.map((name) => [name, dialect(api, name)]));
  const own = names.find((name) => dialects[name].isServers) || names[0];
  const needsKey = !(api.security || [{}]).some((way) => Object.keys(way).length === 0);
  return { dialects, own, needsKey };
}
