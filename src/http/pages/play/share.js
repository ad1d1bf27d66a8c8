// A draft as the fragment of an address, which browsers do not send to any server: compressed, in base64.

import { compact, draft } from "./model.js";

const MARK = "#ask=";
const CHARACTERS_MAX = 1 << 20;
const BYTES_MAX = 4 << 20;

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

function base64(bytes) {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function bytesOf(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}

// What is unpacked may not be larger than any honest draft, however short it came.
async function unpacked(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  let held = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts).text();
    held += value.length;
    if (held > BYTES_MAX) throw new Error("it is too long");
    parts.push(value);
  }
}

export async function fragment(given) {
  const bytes = new TextEncoder().encode(JSON.stringify(compact(given)));
  return MARK + base64(await through(bytes, new CompressionStream("deflate-raw")));
}

// The draft in a fragment; null where it has none. Throws where it has one that cannot be read.
export async function drafted(hash) {
  if (!hash.startsWith(MARK)) return null;
  if (hash.length > CHARACTERS_MAX) throw new Error("it is too long");
  return draft(JSON.parse(await unpacked(bytesOf(hash.slice(MARK.length)))));
}
