// What the page costs on a large input: time to the first picture, frames while it is moved, heap.
//
//   MSMEMSCOPE_INPUT=/path/to/a/trace npm run frames        (in web/)
//
// Prints one line a measure and, last, all of them as one line of JSON; asserts nothing.
//
// The first picture is counted from the start of the command, in a browser that is open: the command
// starts, a tab is opened, its page loaded, the block graph is on screen. Starting a browser is not in
// it, nor is what a new window costs Chromium: the window was opened before. Cold is without an
// index; warm is the time after, when the first viewer had two seconds to keep what it made.

import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { it } from 'vitest';

import { launch, openPage, pictureReady, Scratch, Viewer } from './harness';

const input = process.env['MSMEMSCOPE_INPUT'];

interface Frames {
  count: number;
  p50: number;
  p95: number;
  worst: number;
}

/** Frame times while `move` is called once a frame with 0 … 1. */
async function frames(page: Page, kind: 'pan' | 'zoom'): Promise<Frames> {
  const times = await page.evaluate(async (what) => {
    const plot = document.querySelector<HTMLElement>('.plot');
    if (!plot) throw new Error('no plot');
    const box = plot.getBoundingClientRect();
    const clientX = box.left + box.width * 0.6;
    const clientY = box.top + box.height * 0.5;
    const wheel = (deltaX: number, deltaY: number): void => {
      plot.dispatchEvent(new WheelEvent('wheel', { deltaX, deltaY, clientX, clientY, bubbles: true, cancelable: true }));
    };
    const gaps: number[] = [];
    await new Promise<void>((resolve) => {
      let last = performance.now();
      let n = 0;
      const frame = (now: number): void => {
        gaps.push(now - last);
        last = now;
        if (what === 'pan') wheel(n % 120 < 60 ? 12 : -12, 0);
        else wheel(0, n % 120 < 60 ? -30 : 30);
        n += 1;
        if (n < 240) requestAnimationFrame(frame);
        else resolve();
      };
      requestAnimationFrame(frame);
    });
    return gaps.slice(2);
  }, kind);
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.min(Math.floor(times.length * share), times.length - 1)] ?? 0;
  return { count: times.length, p50: at(0.5), p95: at(0.95), worst: at(1) };
}

interface Opening {
  /** ms: all of it, the command until it serves, the tab, the page from its navigation on. */
  all: number;
  server: number;
  tab: number;
  page: number;
}

const kWarmTurns = 5;
const openingText = (o: Opening): string =>
  `${(o.all / 1000).toFixed(2)} s   (server ${o.server.toFixed(0)} ms, tab ${o.tab.toFixed(0)} ms, page ${o.page.toFixed(0)} ms)`;

const say = (name: string, value: string): void => void process.stdout.write(`${name.padEnd(28)} ${value}\n`);
const framesText = (f: Frames): string => `p50 ${f.p50.toFixed(1)} ms   p95 ${f.p95.toFixed(1)} ms   worst ${f.worst.toFixed(1)} ms   of ${f.count}`;

it.skipIf(!input)('frames', async () => {
  const scratch = new Scratch();
  process.env['XDG_CACHE_HOME'] = join(scratch.path, 'cache');
  const browser = await launch();
  const results: Record<string, unknown> = {};
  try {
    const window = await openPage(browser, { width: 1920, height: 1080 });
    await window.page.waitForTimeout(1500);
    const warm: Opening[] = [];
    for (const turn of ['cold', ...Array<string>(kWarmTurns).fill('warm')]) {
      const begin = performance.now();
      const viewer = await Viewer.startCached(input ?? '');
      const up = performance.now();
      const page = await window.page.context().newPage();
      const tab = performance.now();
      await page.goto(viewer.address, { waitUntil: 'commit' });
      await pictureReady(page);
      const all = performance.now() - begin;
      // The page's own clock begins with its navigation.
      const own = await page.evaluate(() => performance.getEntriesByName('memscope.picture')[0]?.startTime ?? NaN);
      const opening = { all, server: up - begin, tab: tab - up, page: own };
      if (turn === 'cold') {
        say('first picture, cold', openingText(opening));
        results['cold'] = opening;
        await page.waitForTimeout(2000);
      } else {
        warm.push(opening);
      }
      if (warm.length === kWarmTurns) {
        warm.sort((a, b) => a.all - b.all);
        const middle = warm[Math.floor(kWarmTurns / 2)] ?? opening;
        say('first picture, warm', `${openingText(middle)}; of ${kWarmTurns}: ${warm.map((one) => (one.all / 1000).toFixed(2)).join(' ')}`);
        results['warm'] = middle;
        results['warm_all'] = warm.map((one) => one.all);
        await page.waitForTimeout(2000);
        const zoomIn = page.locator('.toolbar .buttons button').nth(3);
        await zoomIn.click();
        await zoomIn.click();
        await page.waitForTimeout(1500);
        const pan = await frames(page, 'pan');
        const zoom = await frames(page, 'zoom');
        say('frames while panning', framesText(pan));
        say('frames while zooming', framesText(zoom));
        const heap = await page.evaluate(() => (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize);
        say('JS heap', `${(heap / 2 ** 20).toFixed(0)} MiB`);
        Object.assign(results, { pan, zoom, heap });
        const slow = await page.evaluate(() =>
          performance.getEntriesByType('resource')
            .filter((entry) => entry.name.includes('/api/'))
            .map((entry) => ({ name: entry.name.replace(/.*\/api\//, '').slice(0, 110), time: entry.duration }))
            .sort((a, b) => b.time - a.time).slice(0, 5));
        for (const entry of slow) say('slowest queries', `${entry.time.toFixed(0)} ms  ${entry.name}`);
      }
      await page.close();
      viewer.stop();
    }
    process.stdout.write(`${JSON.stringify(results)}\n`);
  } finally {
    await browser.close();
    scratch.remove();
  }
}, 300_000);
