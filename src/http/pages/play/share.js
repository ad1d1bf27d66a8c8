// A draft in the fragment of the address, which browsers do not send. Never the key.

import { emptyDraft } from "./draft.js";

const MARK = "#d=";
const CHARS_MAX = 64 * 1024;

export function addressOf(draft) {
  const bytes = new TextEncoder().encode(JSON.stringify(draft));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const fragment = MARK + text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (fragment.length > CHARS_MAX) throw new Error(`the link would have ${fragment.length} characters, at most ${CHARS_MAX} are made`);
  return `${location.origin}${location.pathname}${fragment}`;
}

/** The draft of an address; null where it has none, or one that cannot be read. */
export function draftOf(hash) {
  if (!hash.startsWith(MARK) || hash.length > CHARS_MAX) return null;
  try {
    const text = atob(hash.slice(MARK.length).replaceAll("-", "+").replaceAll("_", "/"));
    const found = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (char) => char.charCodeAt(0))));
    return sound(found);
  } catch {
    return null;
  }
}

/** Only what a draft has, and of the kinds that it has: a link may come from anybody. */
function sound(found) {
  const word = (value) => (typeof value === "string" ? value : "");
  const flat = (value) => Object.fromEntries(Object.entries(value && typeof value === "object" ? value : {})
    .filter(([, one]) => ["string", "number", "boolean"].includes(typeof one)));
  const questions = Array.isArray(found.questions) ? found.questions : [];
  return { ...emptyDraft(), dialect: word(found.dialect) || "systemone", state: word(found.state),
    kind: found.kind === "json" ? "json" : "text", settings: flat(found.settings), headers: flat(found.headers),
    questions: questions.map((given) => {
      const one = flat(given);
      return { ...one, id: word(one.id), type: word(one.type), instructions: word(one.instructions), criteria: word(one.criteria) };
    }) };
}
