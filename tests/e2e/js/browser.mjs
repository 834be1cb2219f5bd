// What the scripts for the dashboard in a real Chromium share. usage: node SCRIPT CHROMIUM URL, with what is asked for on
// standard input: after each stage a line is printed, and a line is awaited before the next.
import readline from 'node:readline';
import { chromium } from 'playwright-core';

const [executablePath, given] = process.argv.slice(2);
export const url = given;
export const origin = given.split('?')[0];

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
export const stage = async (name, found = {}) => {
  console.log(JSON.stringify({ stage: name, ...found }));
  await lines.next();
};

export const assert = (holds, what) => {
  if (!holds) throw new Error(what);
};

/** @param {(browser: import('playwright-core').Browser) => Promise<void>} run */
export async function withBrowser(run) {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    await run(browser);
  } finally {
    await browser.close();
  }
}

/** A page that notes what it should not do: say anything on the console, or ask for anything elsewhere. */
export async function newPage(browser) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const said = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && said.push(message.text()));
  page.on('pageerror', (error) => said.push(String(error)));
  const elsewhere = [];
  page.on('request', (request) => new URL(request.url()).origin === new URL(url).origin || elsewhere.push(request.url()));
  return { page, said, elsewhere };
}

export const isLive = (page) => page.waitForFunction(() => document.querySelector('#live')?.dataset.state === 'live');
export const isWide = (page) => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
