// A job that runs, in the dashboard.
import { assert, isLive, isWide, newPage, origin, stage, url, withBrowser } from './browser.mjs';

await withBrowser(async (browser) => {
  const { page, said, elsewhere } = await newPage(browser);
  await page.goto(url);
  assert(!page.url().includes('token'), 'the token stays in the address');
  await isLive(page);
  await page.waitForSelector('tbody tr');
  await stage('opened', { rows: await page.$$eval('tbody tr', (rows) => rows.map((row) => row.textContent)) });

  await page.goto(origin + '#/job/default/elastic/watched');
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
      await page.goto(origin + route);
      await page.waitForTimeout(300);
      if (await isWide(page)) widths.push(`${route} at ${width}`);
    }
  }
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await background();
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await background();
  await stage('looks', { widths, light, dark, said, elsewhere });

  const stranger = await browser.newPage();
  await stranger.goto(origin);
  await stranger.waitForSelector('.locked');
  await stage('locked', { text: await stranger.textContent('.locked') });
});
