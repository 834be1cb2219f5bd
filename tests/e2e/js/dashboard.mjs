// The dashboard in a real Chromium. usage: node dashboard.mjs CHROMIUM URL COMMAND, with what is asked for on standard input:
// after each stage a line is printed, and a line is awaited before the next.
import readline from 'node:readline';
import { chromium } from 'playwright-core';

const [executablePath, url] = process.argv.slice(2);
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const stage = async (name, found = {}) => {
  console.log(JSON.stringify({ stage: name, ...found }));
  await lines.next();
};
const assert = (holds, what) => {
  if (!holds) throw new Error(what);
};

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const said = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && said.push(message.text()));
  page.on('pageerror', (error) => said.push(String(error)));
  const elsewhere = [];
  page.on('request', (request) => new URL(request.url()).origin === new URL(url).origin || elsewhere.push(request.url()));

  await page.goto(url);
  assert(!page.url().includes('token'), 'the token stays in the address');
  await page.waitForFunction(() => document.querySelector('#live')?.dataset.state === 'live');
  await page.waitForSelector('tbody tr');
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
  await stage('opened', { paint, rows: await page.$$eval('tbody tr', (rows) => rows.map((row) => row.textContent)) });

  await page.goto(url.split('?')[0] + '#/job/default/elastic/watched');
  await page.waitForSelector('.plot');
  const points = () => page.$$eval('.plot', (plots) => plots.map((plot) => Number(plot.dataset.points ?? 0)));
  const before = Math.max(...(await points()));
  await page.waitForFunction((least) => [...document.querySelectorAll('.plot')].some((plot) => Number(plot.dataset.points) > least), before);
  await stage('plots', { before, after: Math.max(...(await points())) });

  // Somebody has killed a worker by now.
  await page.waitForSelector('svg .mark');
  await page.waitForSelector('.causes li');
  await stage('killed', { causes: await page.$$eval('.causes li', (items) => items.map((item) => item.textContent)) });

  const widths = [];
  for (const width of [320, 360, 768]) {
    await page.setViewportSize({ width, height: 800 });
    for (const route of ['#/', '#/job/default/elastic/watched', '#/nodes', '#/events']) {
      await page.goto(url.split('?')[0] + route);
      await page.waitForTimeout(300);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
      if (wide) widths.push(`${route} at ${width}`);
    }
  }
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await background();
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await background();
  await stage('looks', { widths, light, dark, said, elsewhere });

  const stranger = await browser.newPage();
  await stranger.goto(url.split('?')[0]);
  await stranger.waitForSelector('.locked');
  await stage('locked', { text: await stranger.textContent('.locked') });
} finally {
  await browser.close();
}
