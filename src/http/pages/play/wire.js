// Requests to the server that this page came from. The key lives in this module's memory only.

let key = "";

export function useKey(given) {
  key = given.trim();
}

export function hasKey() {
  return key !== "";
}

/** What came of a request: status, headers, JSON (null where it is none) and the time that it took. */
export async function send(method, path, { body, headers = {} } = {}) {
  const sent = { ...headers };
  if (body !== undefined) sent["content-type"] = "application/json";
  if (key) sent.authorization = `Bearer ${key}`;
  const began = performance.now();
  let response;
  try {
    response = await fetch(path, { method, body, headers: sent, credentials: "omit", cache: "no-store" });
  } catch {
    return { status: 0, headers: new Headers(), json: null, text: "", took: performance.now() - began };
  }
  const text = await response.text();
  const took = performance.now() - began;
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    // Told as text.
  }
  return { status: response.status, headers: response.headers, json, text, took };
}

/** Faults of a refusal in any dialect, as [place, message] each. */
export function faultsOf({ status, json, text }) {
  if (status === 0) return [["", "The server cannot be reached."]];
  const found = json?.detail ?? json?.error ?? json;
  if (Array.isArray(found)) {
    return found.map((fault) => [(fault.loc || []).filter((part) => part !== "body").join("."), fault.msg || JSON.stringify(fault)]);
  }
  return [[found?.param || "", found?.message || text || `status ${status}`]];
}
