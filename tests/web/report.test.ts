// A report: one file that shows the story without a server, without a network, whatever the names.

import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { kHostileProgram, kRoot, launch, makeReport, openPage, pictureReady, python, recordDemo, Scratch } from './harness';

const kSteps = 60;
const demo = readFileSync(`${kRoot}/examples/memory_leak_demo.py`, 'utf8').split('\n');
const lineOf = (text: string): number => demo.findIndex((line) => line.includes(text)) + 1;
const kAllocates = `memory_leak_demo.py:${lineOf('leak_tensor = torch.full(')}`;
const kMost = 10_000_000;

const scratch = new Scratch();
let run: string;
let report: string;
let browser: Browser;
beforeAll(async () => {
  run = recordDemo(scratch.path, kSteps);
  report = makeReport(join(scratch.path, 'report.html'), run);
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  scratch.remove();
});

/** Offline, by file://; a request for anything but the file itself is a complaint. */
async function openReport(file: string, fragment = ''): Promise<{ page: Page; complaints: string[] }> {
  const address = pathToFileURL(file).href;
  const { page, complaints } = await openPage(browser, { own: address });
  await page.context().setOffline(true);
  await page.goto(`${address}${fragment === '' ? '' : `#${fragment}`}`);
  await page.locator('.verdict .cause').first().waitFor();
  return { page, complaints };
}

describe('a report of the demo’s run', () => {
  it('is one file below the limit, for its owner’s eyes', () => {
    const { size, mode } = statSync(report);
    expect(size).toBeLessThan(kMost);
    expect(mode & 0o777).toBe(0o600);
  });

  it('leads from the verdict to the picture, a block and its line, and fetches nothing', async () => {
    const { page, complaints } = await openReport(report);
    const verdict = page.locator('.verdict').first();
    expect(await verdict.locator('.cause').textContent()).toBe('Leak');
    expect(await verdict.locator('.headline').textContent()).toBe('+64 KiB a step');
    await pictureReady(page);
    await page.locator('.verdict-main').first().click();
    await page.locator('.chip.filter').waitFor();
    await page.waitForFunction((place) => document.querySelector('.grid-row')?.textContent.includes(place) ?? false, kAllocates);
    for (const text of await page.locator('.grid-row').allTextContents()) {
      expect(text).toContain(kAllocates);
      expect(text).toContain('never');
    }
    await page.locator('.grid-row').nth(1).click();
    const card = page.locator('.block-card');
    await card.locator('.stack li.opened .place').waitFor();
    expect(await card.locator('.stack li.opened .place').textContent()).toBe(kAllocates);
    expect(await card.locator('.source li.here code').first().textContent()).toContain('leak_tensor = torch.full((128, 128), float(loss))');
    await pictureReady(page);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('opens a block that was not recorded whole, out of its row', async () => {
    const { page, complaints } = await openReport(report, 'tab=blocks&blocks.sort=size,begin');
    await page.locator('.grid-row').first().waitFor();
    await page.locator('.grid-row').nth(3).click();
    await page.locator('.block-card .facts').waitFor();
    await page.locator('.block-card .stack li').first().waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  for (const tab of ['sites', 'composition', 'blocks', 'events', 'compare', 'pool']) {
    it(`shows ${tab}`, async () => {
      const { page, complaints } = await openReport(report, `tab=${tab}`);
      await page.locator('.grid-row, .tile, .differences tr, .pane .empty').first().waitFor();
      await pictureReady(page);
      expect(await page.locator('.pane .error').count()).toBe(0);
      expect(complaints).toEqual([]);
      await page.context().close();
    });
  }

  it('stacks only the classes that the legend has on', async () => {
    const { page } = await openReport(report);
    await pictureReady(page);
    const painted = (): Promise<number> =>
      page.evaluate(() => {
        const canvas = document.querySelector<HTMLCanvasElement>('.plot canvas');
        const data = canvas?.getContext('2d')?.getImageData(Math.floor(canvas.width * 0.9), 0, 1, canvas.height).data ?? [];
        let count = 0;
        for (let i = 0; i < data.length; i += 4) {
          const [r = 0, g = 0, b = 0] = [data[i], data[i + 1], data[i + 2]];
          if (Math.max(r, g, b) - Math.min(r, g, b) > 30) count += 1;
        }
        return count;
      });
    const before = await painted();
    await page.locator('.legend .chip.accused').first().click();
    await page.waitForFunction(() => location.hash.includes('hide='));
    await page.waitForTimeout(500);
    expect(await painted()).toBeLessThan(before * 0.8);
    await page.context().close();
  });
});

describe('a redacted report', () => {
  it('has no path, no argument, no host and no source, and still tells the story', async () => {
    const file = makeReport(join(scratch.path, 'redacted.html'), run, '--redact', 'all');
    const text = readFileSync(file, 'utf8');
    const data = text.slice(text.indexOf('id="msmemscope-report">'), text.indexOf('<script type="module">'));
    const host = execFileSync('hostname').toString().trim();
    for (const secret of [scratch.path, kRoot, '--steps', 'torch.full(', `"${host}"`]) expect(data.includes(secret), secret).toBe(false);
    const { page, complaints } = await openReport(file);
    expect(await page.locator('.verdict .headline').first().textContent()).toBe('+64 KiB a step');
    expect(await page.locator('.verdict-lines').first().textContent()).toContain(kAllocates);
    expect(await page.locator('.notices').textContent()).toContain('paths, arguments of the command, names of machines, lines of source');
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe('a report whose names are markup or 100 kB long', () => {
  it('does no harm', async () => {
    const program = join(scratch.path, 'program.py');
    writeFileSync(program, kHostileProgram);
    python(program, join(scratch.path, 'hostile'));
    const file = makeReport(join(scratch.path, 'hostile.html'), join(scratch.path, 'hostile'));
    // The answers hold no `<` at all: nothing in them can end their script.
    const text = readFileSync(file, 'utf8');
    const begin = text.indexOf('id="msmemscope-report">') + 'id="msmemscope-report">'.length;
    expect(text.slice(begin, text.indexOf('</script>', begin))).not.toContain('<');
    expect(text.slice(begin).indexOf('</script>')).toBe(text.slice(begin).indexOf('</script>\n<script type="module">'));
    for (const tab of ['sites', 'blocks', 'compare']) {
      const { page, complaints } = await openReport(file, `tab=${tab}`);
      await page.locator('.grid-row, .differences tr').first().waitFor();
      expect(await page.locator('#app img, #app script').count()).toBe(0);
      expect(await page.title()).toBe('MemScope');
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      expect(complaints).toEqual([]);
      await page.context().close();
    }
  });
});
