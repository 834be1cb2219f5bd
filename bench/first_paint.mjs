// How long a browser that has seen nothing of it takes to show the dashboard's first jobs, and a page with a word on it.
// usage: node first_paint.mjs CHROMIUM URL ROUNDS; prints both, in milliseconds, once for each round.
import { chromium } from 'playwright-core';

const [executablePath, url, rounds] = process.argv.slice(2);

/** Of a new profile each time. From the beginning of the navigation, redirects and all. */
async function measure(browser, address, paint) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      const job = document.querySelector('.jobs tbody .name');
      if (!job) return;
      observer.disconnect();
      job.setAttribute('elementtiming', 'job'); // before the frame in which it is painted
    }).observe(document, { childList: true, subtree: true });
    new PerformanceObserver((list) => { window.jobPainted = list.getEntries()[0].renderTime; }).observe({ type: 'element' });
  });
  await page.goto(address);
  const ms = await (await page.waitForFunction(paint)).jsonValue();
  await context.close();
  return ms;
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const blank = 'data:text/html,<p>blank';
const first = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
try {
  await measure(browser, blank, first); // the first page of a browser waits for the browser
  for (let i = 0; i < Number(rounds); i++) {
    const rows = await measure(browser, url, () => window.jobPainted);
    console.log(rows, await measure(browser, blank, first));
  }
} finally {
  await browser.close();
}
