// A program whose names are markup, or are 100 kB long, does the page no harm.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { kHostileProgram, launch, openPage, openViewer, python, Scratch, Viewer } from './harness';

const scratch = new Scratch();
let viewer: Viewer;
let browser: Browser;
beforeAll(async () => {
  const program = join(scratch.path, 'program.py');
  writeFileSync(program, kHostileProgram);
  python(program, join(scratch.path, 'run'));
  viewer = await Viewer.start(join(scratch.path, 'run'));
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  viewer.stop();
  scratch.remove();
});

it('markup in names stays text in every tab, and long names are cut', async () => {
  for (const tab of ['sites', 'composition', 'blocks', 'events', 'compare']) {
    const { page, complaints } = await openPage(browser);
    await openViewer(page, viewer.address, `tab=${tab}`);
    await page.locator('.grid-row, .tile, .differences tr').first().waitFor();
    if (tab === 'blocks') {
      await page.locator('.grid-row').first().click();
      await page.locator('.block-card .facts').waitFor();
    }
    expect(await page.locator('#app img, #app script').count()).toBe(0);
    expect(await page.title()).toBe('MemScope');
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    const longest = await page.evaluate(() => Math.max(...[...document.querySelectorAll('#app *')].map((e) => (e.children.length === 0 ? (e.textContent.length) : 0))));
    expect(longest).toBeLessThan(1000);
    expect(complaints).toEqual([]);
    await page.context().close();
  }
});
