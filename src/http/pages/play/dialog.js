// Asks for a key. What is typed goes to this page's memory and nowhere else.

import { at } from "./dom.js";
import { keys } from "./wire.js";

// Resolves to whether a key was given.
export function askForKey(message) {
  const dialog = at("key-dialog");
  const input = at("key-input");
  at("key-why").textContent = message;
  input.value = "";
  return new Promise((resolve) => {
    const controller = new AbortController();
    const on = (element, event, run) => element.addEventListener(event, run, { signal: controller.signal });
    const end = (isGiven) => {
      controller.abort();
      if (isGiven) keys.set(input.value);
      input.value = "";
      if (dialog.open) dialog.close();
      resolve(isGiven);
    };
    const use = () => { if (input.value.trim()) end(true); };
    on(at("key-form"), "submit", (event) => {
      event.preventDefault();
      use();
    });
    on(at("key-cancel"), "click", () => end(false));
    on(at("key-forget"), "click", () => end(true));
    on(dialog, "close", () => end(false));
    at("key-forget").hidden = !keys.has();
    dialog.showModal();
    input.focus();
  });
}
