// A thousand jobs in the dashboard: all are there, one is found, and the last is scrolled to.
import { isLive, isWide, newPage, stage, url, withBrowser } from './browser.mjs';

await withBrowser(async (browser) => {
  const { page, said, elsewhere } = await newPage(browser);
  const rows = page.locator('.jobs tbody tr');
  const hasRows = (count) => page.waitForFunction((wanted) => document.querySelectorAll('.jobs tbody tr').length === wanted, count);

  await page.goto(url);
  await isLive(page);
  await page.waitForFunction(() => document.querySelectorAll('.jobs tbody tr').length > 500);
  const counts = await page.$$eval('.chips a', (chips) => Object.fromEntries(chips.map((chip) => [chip.dataset.key, Number(chip.querySelector('b').textContent)])));
  await stage('opened', { rows: await rows.count(), counts });

  await page.fill('input[type=search]', 'JOB-0712');
  await hasRows(1);
  await stage('searched', { rows: await page.$$eval('.jobs tbody a', (links) => links.map((link) => link.lastChild.textContent)) });

  await page.fill('input[type=search]', '');
  await page.click('.chips a.failed');
  await hasRows(counts.failed);
  await stage('filtered', { rows: await rows.count() });

  await page.click('.chips a.all');
  await hasRows(counts.all);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await rows.last().scrollIntoViewIfNeeded();
  // Rows far from the screen are laid out when they come near: then the page is as long as it is.
  await page.waitForFunction(() => {
    const box = document.querySelector('.jobs tbody tr:last-child').getBoundingClientRect();
    return box.top < innerHeight && box.height > 10;
  });
  const last = await rows.last().evaluate((row) => {
    const box = row.getBoundingClientRect();
    const seen = document.elementFromPoint(box.left + 20, box.top + box.height / 2);
    return { text: row.querySelector('a').lastChild.textContent, visible: row.contains(seen) };
  });
  const at = await page.evaluate(() => scrollY);
  await stage('scrolled', { last, at });

  await rows.last().locator('a').click();
  await page.waitForSelector('.head h1');
  const heading = await page.textContent('.head h1');
  await page.goBack();
  await hasRows(counts.all);
  await stage('job', { heading, back: await page.evaluate(() => scrollY) });

  // Somebody deletes a job now.
  await hasRows(counts.all - 1);
  await stage('deleted', { rows: await rows.count() });

  await page.setViewportSize({ width: 360, height: 740 });
  await page.evaluate(() => scrollTo(0, 20000));
  await page.waitForTimeout(300);
  await stage('phone', { wide: await isWide(page), said, elsewhere });
});
