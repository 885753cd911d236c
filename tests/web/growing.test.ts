// A run that is still being written: the page follows it, step by step, and notices its end.

import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { kPython, launch, openPage, pythonEnvironment, Scratch, Viewer } from './harness';

// A line on stdin is a step: 4 MiB more.
const kProgram = `
import sys, torch, msmemscope
msmemscope.config(output_path=sys.argv[1], report_to="none")
msmemscope.start()
kept = []
print("ready", flush=True)
for line in sys.stdin:
    kept.append(torch.ones(1 << 20))
    msmemscope.step()
    print("done", flush=True)
msmemscope.stop()
`;

const scratch = new Scratch();
let browser: Browser;
let program: ChildProcess;
beforeAll(async () => {
  const script = join(scratch.path, 'program.py');
  writeFileSync(script, kProgram);
  program = spawn(kPython, [script, join(scratch.path, 'run')], { env: pythonEnvironment(), stdio: ['pipe', 'pipe', 'ignore'] });
  await said('ready');
  browser = await launch();
});
afterAll(async () => {
  program.kill();
  await browser.close();
  scratch.remove();
});

function said(word: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const listen = (chunk: Buffer): void => {
      if (!chunk.toString().includes(word)) return;
      program.stdout?.off('data', listen);
      resolve();
    };
    program.stdout?.on('data', listen);
    program.once('exit', (status) => reject(new Error(`the program ended with ${status ?? 'a signal'}`)));
  });
}

async function step(): Promise<void> {
  const done = said('done');
  program.stdin?.write('go\n');
  await done;
}

it('shows each step a moment after it, and that the run is over', async () => {
  await step();
  await step();
  const viewer = await Viewer.start(join(scratch.path, 'run'));
  const { page, complaints } = await openPage(browser);
  await page.goto(viewer.address);
  await page.locator('.live').waitFor();
  const facts = page.locator('.run .faint');
  const shows = (text: string): Promise<unknown> =>
    page.waitForFunction((wanted) => document.querySelector('.run .faint')?.textContent.includes(wanted) ?? false, text, { timeout: 20_000 });
  await shows('2 steps');
  // Each is there before the next is made: the page follows, it is not told at the end.
  for (const steps of [3, 4, 5]) {
    await step();
    await shows(`${steps} steps`);
    // What the step allocated as well: a block a step.
    expect(await facts.textContent()).toContain(`${steps} blocks`);
  }
  program.stdin?.end();
  await page.waitForFunction(() => document.querySelector('.live') === null, undefined, { timeout: 30_000 });
  expect(complaints).toEqual([]);
  viewer.stop();
});
