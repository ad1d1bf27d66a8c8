// paint.mjs BASE [ROUNDS]: how long each page takes until something is seen, and until it is of use, each time in
// a browser context without a cache. Prints figures; judges nothing.

import { launch, visit } from "./support.mjs";

const PAGES = ["/", "/live", "/docs"];
const [base, rounds = "7"] = process.argv.slice(2);

function middle(values) {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];
}

const spread = (values) => `${Math.round(middle(values))} (${Math.round(Math.min(...values))} to ${Math.round(Math.max(...values))})`;

async function looked(browser, path) {
  const began = performance.now();
  return visit(browser, base.replace(/\/$/, ""), { path, isPlay: false }, async (page) => {
    await page.waitForSelector(path === "/docs" ? "details" : "body.ready");
    const use = performance.now() - began;
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    return { use, paint };
  });
}

const browser = await launch();
try {
  const found = new Map(PAGES.map((path) => [path, []]));
  for (let round = 0; round <= Number(rounds); round += 1) {
    for (const path of PAGES) {
      const times = await looked(browser, path);
      // The first round warms the browser itself.
      if (round > 0) found.get(path).push(times);
    }
  }
  console.log("| page | first paint, ms | ready, ms |\n|---|--:|--:|");
  for (const [path, times] of found) console.log(`| \`${path}\` | ${spread(times.map((each) => each.paint))} | ${spread(times.map((each) => each.use))} |`);
} finally {
  await browser.close();
}
