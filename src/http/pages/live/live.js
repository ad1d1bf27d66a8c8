// The live view: one look after the other, drawn as it comes.

import { askForKey } from "/play/dialog.js";
import { at } from "/play/dom.js";
import { keys } from "/play/wire.js";
import { follow } from "/live/feed.js";
import { panels } from "/live/panels.js";

const AGAIN_MS = 2000;
const POLL_MS = 3000;

let stop = null;
let isPaused = false;

function told(state, text) {
  at("server").className = `server ${state}`;
  at("server-told").textContent = text;
}

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

function look(show, given) {
  show(given);
  told(given.ready ? "ready" : "away", given.ready ? "live" : given.reason || "not ready");
  document.body.classList.add("ready");
}

// Follows until it is stopped; what ends is begun again.
async function run(show, signal) {
  while (!signal.aborted) {
    let wait = AGAIN_MS;
    try {
      const end = await follow((given) => look(show, given), signal);
      if (end.status === 401 || end.status === 403) {
        const why = end.status === 403 ? "This is for keys of operators." : keys.has() ? "The server does not know this key." : "This server answers with a key only.";
        told("away", why);
        if (!await askForKey(why)) {
          halt();
          return;
        }
        wait = 0;
      } else if (end.status === 200) wait = end.isStream ? AGAIN_MS : POLL_MS;
      else told("away", `answered with ${end.status}`);
    } catch (error) {
      if (signal.aborted) return;
      told("away", "not reachable");
    }
    await pause(wait);
  }
}

function start(show) {
  stop = new AbortController();
  isPaused = false;
  at("pause").setAttribute("aria-pressed", "false");
  at("pause").textContent = "Pause";
  run(show, stop.signal);
}

function halt() {
  if (stop) stop.abort();
  isPaused = true;
  at("pause").setAttribute("aria-pressed", "true");
  at("pause").textContent = "Go on";
}

const show = panels();
at("pause").addEventListener("click", () => {
  if (isPaused) start(show);
  else {
    halt();
    told("", "paused");
  }
});
start(show);
