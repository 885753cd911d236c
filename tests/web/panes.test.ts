// Several memories at once: the layers of a device, and devices, one above the other on one time axis.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { launch, openPage, openViewer, pictureReady, Scratch, twoDevices, Viewer } from './harness';

const scratch = new Scratch();
let browser: Browser;
let viewer: Viewer;
beforeAll(async () => {
  const file = join(scratch.path, 'memscope_dump_20260101000000.csv');
  writeFileSync(file, twoDevices());
  viewer = await Viewer.start(file);
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  viewer.stop();
  scratch.remove();
});

const panes = (page: Page): Promise<string[]> => page.locator('.pane-title b').allTextContents();
const button = (page: Page): Promise<string | null> => page.locator('.memory-button').textContent();

it('offers each layer of each device with its size, nested where they nest, never summed', async () => {
  const { page, complaints } = await openPage(browser);
  await openViewer(page, viewer.address);
  await page.locator('.memory-button').click();
  const rows = await page.locator('.memory-panel tbody tr').allTextContents();
  expect(rows).toHaveLength(3);
  expect(rows[0]).toContain('npu:0 driver');
  expect(rows[0]).toContain('64 MiB');
  // Behind what it lies within.
  expect(rows[1]).toContain('npu:0 pool');
  expect(rows[1]).toContain('within npu:0 driver');
  expect(rows[1]).toContain('36 MiB');
  expect(rows[2]).toContain('npu:1 pool');
  expect(rows[2]).toContain('8 MiB');
  expect(await page.locator('.memory-panel').textContent()).not.toContain('100 MiB');
  expect(complaints).toEqual([]);
  await page.context().close();
});

it('shows several one above the other: one time, one zoom, one chosen, and a link that holds it', async () => {
  const { page, complaints } = await openPage(browser);
  await openViewer(page, viewer.address, 'pool=1');
  expect(await page.locator('.plot').count()).toBe(1);
  expect(await page.locator('.pane-title').count()).toBe(0); // alone it needs no name of its own
  await page.locator('.memory-button').click();
  await page.locator('.memory-panel input').nth(2).check();
  await page.locator('.memory-panel input').nth(0).check();
  await page.keyboard.press('Escape');
  expect(await page.locator('.memory-panel').count()).toBe(0);
  expect(await panes(page)).toEqual(['npu:0 driver', 'npu:0 pool', 'npu:1 pool']);
  expect(await page.locator('.pane-frame.chosen').getAttribute('data-pool')).toBe('1');
  expect(await button(page)).toContain('npu:0 pool');

  // A zoom in one is everybody's.
  await pictureReady(page);
  const lowest = await page.locator('.plot').nth(2).boundingBox();
  if (!lowest) throw new Error('no plot');
  await page.mouse.move(lowest.x + lowest.width * 0.5, lowest.y + lowest.height * 0.5);
  await page.mouse.wheel(0, -240);
  await page.waitForFunction(() => location.hash.includes('t='));
  const shown = await page.locator('.plot').evaluateAll((plots) => plots.map((plot) => (plot as HTMLElement).dataset['shown']));
  expect(new Set(shown).size).toBe(1);
  // All on one axis: the same edges.
  const edges = await page.locator('.plot .u-over').evaluateAll((areas) => areas.map((area) => {
    const box = area.getBoundingClientRect();
    return `${Math.round(box.left)} ${Math.round(box.right)}`;
  }));
  expect(new Set(edges).size).toBe(1);

  // A click chooses a pane, and what the tables are about with it.
  await page.locator('.pane-name', { hasText: 'npu:1 pool' }).click();
  expect(await button(page)).toContain('npu:1 pool');
  await page.locator('#tab-blocks').click();
  await page.waitForFunction(() => document.querySelector('.grid-row')?.textContent.includes('8 MiB') ?? false);
  await page.waitForFunction(() => location.hash.includes('panes=0.1.2') && location.hash.includes('pool=2'));
  const link = page.url();

  const other = await openPage(browser);
  await openViewer(other.page, link);
  expect(await panes(other.page)).toEqual(['npu:0 driver', 'npu:0 pool', 'npu:1 pool']);
  expect(await other.page.locator('.pane-frame.chosen').getAttribute('data-pool')).toBe('2');
  expect(await other.page.locator('.plot').first().getAttribute('data-shown')).toBe(shown[0]);
  await other.page.context().close();

  // The chosen one is closed: the next is chosen. The last of all cannot be closed.
  await page.locator('.pane-frame[data-pool="2"] .pane-title .icon').click();
  expect(await panes(page)).toEqual(['npu:0 driver', 'npu:0 pool']);
  await page.locator('.pane-frame[data-pool="0"] .pane-title .icon').click();
  expect(await page.locator('.plot').count()).toBe(1);
  expect(await button(page)).toContain('npu:0 pool');
  expect(complaints).toEqual([]);
  await page.context().close();
});

it('shows when a block was read and written, and how long it lay idle', async () => {
  const { page, complaints } = await openPage(browser);
  await openViewer(page, viewer.address, 'pool=1&block=1');
  const card = page.locator('.block-card');
  await card.locator('.facts').waitFor();
  const events = await card.locator('table.small').first().locator('tr').allTextContents();
  expect(events.map((text) => /^(allocated|written|read|freed)/.exec(text)?.[0])).toEqual(['allocated', 'written', 'read', 'freed']);
  expect(events[1]).toContain('aten.empty');
  expect(events[2]).toContain('aten.mm');
  const facts = await card.locator('.facts').textContent();
  expect(facts).toContain('10 ms after its allocation');
  expect(facts).toContain('20 ms before it was freed');
  expect(facts).toContain('Longest idle30 ms');
  expect(complaints).toEqual([]);
  await page.context().close();
});

it('opens a block of whichever pane was clicked', async () => {
  const { page, complaints } = await openPage(browser);
  await openViewer(page, viewer.address, 'pool=0&panes=0.1');
  const pool = page.locator('.pane-frame[data-pool="1"] .plot');
  await page.waitForFunction(() => document.querySelectorAll('.plot canvas').length === 2);
  const box = await pool.locator('.u-over').boundingBox();
  if (!box) throw new Error('no plot');
  // Until the picture is there a click finds nothing.
  await page.waitForTimeout(600);
  await page.mouse.click(box.x + box.width * 0.9, box.y + box.height - 8);
  await page.locator('.block-card .facts').waitFor();
  expect(await button(page)).toContain('npu:0 pool');
  expect(await page.locator('.block-card .facts').textContent()).toContain('1,048,576 B');
  expect(complaints).toEqual([]);
  await page.context().close();
});
