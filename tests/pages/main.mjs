// main.mjs BASE_OR_BINARY FOLDER: runs every test; the last line counts them.

import { playground } from "./playground.mjs";
import { snippets } from "./snippets.mjs";
import { keyedLive, live } from "./live.mjs";
import { reference } from "./reference.mjs";
import { keyed, refused } from "./refused.mjs";
import { launch, serve, stopAll } from "./support.mjs";

const [target, shots] = process.argv.slice(2);
const isBase = target.startsWith("http");
let [passed, failed] = [0, 0];

async function test(name, run) {
  const began = performance.now();
  try {
    await run();
    passed += 1;
    console.log(`ok      ${name} (${Math.round(performance.now() - began)} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.stack || error}`);
  }
}

const browser = await launch();
try {
  const open = isBase ? { base: target.replace(/\/$/, ""), stop: async () => {} } : await serve(target);
  await playground(test, browser, open.base, shots);
  await refused(test, browser, open.base, shots);
  await snippets(test, browser, open.base);
  await live(test, browser, open.base, shots);
  if (!isBase) await keyedLive(test, browser, (...args) => serve(target, ...args));
  await reference(test, browser, open.base, shots);
  if (!isBase) await keyed(test, browser, (...args) => serve(target, ...args), shots);
  await open.stop();
} catch (error) {
  failed += 1;
  console.log(`FAILED  ${error.stack || error}`);
} finally {
  await browser.close();
  stopAll();
}
console.log(`screenshots in ${shots}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
