// Pictures of every view for docs/images: two widths, both themes, both languages, on the demo's run.
// `npm run screenshots` in web/; needs pngquant to keep them small.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { it } from 'vitest';

import { kRoot, launch, type Look, openPage, openViewer, recordDemo, Scratch, twoDevices, Viewer } from './harness';

const kImages = join(kRoot, 'docs/images');
const kLooks: readonly Required<Pick<Look, 'width' | 'height' | 'theme' | 'language'>>[] = [
  { width: 1440, height: 900, theme: 'light', language: 'en' },
  { width: 1440, height: 900, theme: 'dark', language: 'zh' },
  { width: 1024, height: 768, theme: 'dark', language: 'en' },
  { width: 1024, height: 768, theme: 'light', language: 'zh' },
];

interface View {
  name: string;
  fragment: string;
  /** Of the dump of two devices. */
  devices?: boolean;
  act?: (page: Page) => Promise<void>;
}

const clickVerdict = async (page: Page): Promise<void> => {
  await page.locator('.verdict-main').first().click();
  await page.locator('.chip.filter').waitFor();
  await page.locator('.grid-row').first().waitFor();
};

const kViews: readonly View[] = [
  { name: 'opening', fragment: '' },
  {
    name: 'block', fragment: '',
    act: async (page) => {
      await clickVerdict(page);
      await page.locator('.grid-row').nth(3).click();
      await page.locator('.block-card .source').first().waitFor();
    },
  },
  {
    name: 'steps', fragment: 'order=alloc',
    act: async (page) => {
      await page.locator('#goto').fill('step 40');
      await page.locator('#goto').press('Enter');
      await page.keyboard.press('-');
      const plot = await page.locator('.plot').boundingBox();
      if (plot) await page.mouse.move(plot.x + plot.width * 0.45, plot.y + plot.height - 60);
    },
  },
  { name: 'composition', fragment: 'tab=composition' },
  { name: 'treemap', fragment: 'tab=composition&shape=treemap&by=stack' },
  { name: 'events', fragment: 'tab=events' },
  { name: 'compare', fragment: 'tab=compare' },
  { name: 'pool', fragment: 'tab=pool' },
  {
    name: 'memory', fragment: 'pool=1&panes=0.1.2&tab=blocks', devices: true,
    act: async (page) => {
      await page.locator('.memory-button').click();
      await page.locator('.memory-panel').waitFor();
    },
  },
];

it('pictures of every view', async () => {
  const scratch = new Scratch();
  mkdirSync(kImages, { recursive: true });
  const viewer = await Viewer.start(recordDemo(scratch.path, 200));
  // Several memories are the dump's of panes.test.ts: the demo has one.
  const dump = join(scratch.path, 'memscope_dump_20260101000000.csv');
  writeFileSync(dump, twoDevices());
  const devices = await Viewer.start(dump);
  const browser = await launch();
  try {
    for (const look of kLooks) {
      for (const view of kViews) {
        const { page } = await openPage(browser, look);
        await openViewer(page, (view.devices ? devices : viewer).address, view.fragment);
        await view.act?.(page);
        await page.waitForTimeout(900);
        const path = join(kImages, `view-${view.name}-${look.width}-${look.theme}-${look.language}.png`);
        await page.screenshot({ path });
        execFileSync('pngquant', ['--force', '--ext', '.png', '--speed', '1', '128', path]);
        await page.context().close();
      }
    }
  } finally {
    await browser.close();
    viewer.stop();
    devices.stop();
    scratch.remove();
  }
}, 300_000);
