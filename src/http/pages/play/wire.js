// Asks the server, with the key where one was given. The key lives in this module's memory and nowhere
// else: it is in no storage, no link and no snippet, and it is gone when the page is.

let key = "";

export const keys = {
  has: () => key !== "",
  set: (given) => { key = given.trim(); },
};

// The header that carries the key, where there is one.
export const bearer = () => (key ? { authorization: `Bearer ${key}` } : {});

// Runs one request: { status, ok, headers, text, body, took }. `body` is null where the answer is no JSON.
// Throws an Error in plain words where there is no answer, and an AbortError where it was cancelled.
export async function send(method, { path, headers = {}, text = null }, signal = null) {
  const sent = { ...headers, ...bearer() };
  const began = performance.now();
  let response;
  let answered;
  try {
    response = await fetch(path, { method, headers: sent, body: text, signal, cache: "no-store", credentials: "omit" });
    answered = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const isKey = key !== "" && [...key].some((letter) => letter < "!" || letter > "~");
    throw new Error(isKey ? "The key has a character that no header can carry." : "The server could not be reached.");
  }
  const took = performance.now() - began;
  let body = null;
  try {
    body = JSON.parse(answered);
  } catch {
    body = null;
  }
  return { status: response.status, ok: response.ok, headers: response.headers, text: answered, body, took };
}
