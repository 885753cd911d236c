// A leak of a C library: its frames have their names a moment after the picture, and the verdict leads to them.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { kHostOptions, launch, openPage, openViewer, record, Scratch, Viewer } from './harness';

const kLibrary = `#include <stdlib.h>
#include <string.h>

static void *remember(size_t size) {
  void *block = malloc(size);
  if (block) memset(block, 1, size);
  return block;
}

int use(size_t size) { return remember(size) != NULL; }
`;
const kProgram = `
import ctypes, sys, msmemscope
library = ctypes.CDLL(sys.argv[1])
library.use.argtypes = [ctypes.c_size_t]
msmemscope.start()
for _ in range(40):
    assert library.use(512 * 1024)
    msmemscope.step()
msmemscope.stop()
`;

describe('a leak in C', () => {
  const scratch = new Scratch();
  let viewer: Viewer;
  let browser: Browser;
  beforeAll(async () => {
    const source = join(scratch.path, 'leaky.c');
    writeFileSync(source, kLibrary);
    const library = join(scratch.path, 'libleaky.so');
    execFileSync('cc', ['-g', '-O1', '-fno-inline', '-fPIC', '-shared', '-o', library, source]);
    const program = join(scratch.path, 'caller.py');
    writeFileSync(program, kProgram);
    const output = join(scratch.path, 'run');
    record([...kHostOptions, `--output-path=${output}`], program, library);
    viewer = await Viewer.start(output);
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    viewer.stop();
    scratch.remove();
  });

  it('is shown by the name and line of its function, and its blocks are found', async () => {
    const { page, complaints } = await openPage(browser);
    await openViewer(page, viewer.address);
    await expect.poll(() => page.locator('.grid-row .place', { hasText: 'leaky.c:5' }).count(), { timeout: 30_000 }).toBe(1);
    expect(await page.locator('.verdict').first().textContent()).toContain('leaky.c:5');
    await page.locator('.verdict-main').first().click();
    await page.locator('.chip.filter').waitFor();
    await page.locator('.grid-row').nth(5).click();
    const stack = page.locator('.detail .stack');
    await stack.getByText('remember', { exact: false }).first().waitFor();
    expect(await page.locator('.grid-bar .count').textContent()).toBe('38 rows');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('has its curves below the block graph, which keeps its room', async () => {
    const { page, complaints } = await openPage(browser, { width: 1024, height: 768 });
    await openViewer(page, viewer.address, 'parts=1');
    const plot = await page.locator('.plot').boundingBox();
    expect(plot?.height).toBeGreaterThanOrEqual(139);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
