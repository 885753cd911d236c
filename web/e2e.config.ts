import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const web = fileURLToPath(new URL('.', import.meta.url)).replace(/\/$/, '');

// Browser tests, which lie in tests/web: `npm run e2e`. `npm run screenshots` and `npm run frames` run those
// files the same way.
export default defineConfig({
  root: fileURLToPath(new URL('../tests/web', import.meta.url)),
  cacheDir: `${web}/node_modules/.vite-e2e`,
  resolve: {
    alias: {
      'playwright-core': `${web}/node_modules/playwright-core/index.mjs`,
      vitest: `${web}/node_modules/vitest/dist/index.js`,
    },
  },
  test: {
    include: [process.env['MSMEMSCOPE_WEB_RUN'] ?? '*.test.ts'],
    environment: 'node',
    testTimeout: 60_000,
    hookTimeout: 120_000,
    fileParallelism: false,
  },
});
