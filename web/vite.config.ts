import { defineConfig, type ProxyOptions } from 'vite';

// `npm run dev` shows the sources with the answers of a running viewer:
//   msmemscope view RUN --no-browser     prints an address
//   MSMEMSCOPE_VIEW=that-address npm run dev
const view = process.env['MSMEMSCOPE_VIEW'];
const proxy: Record<string, ProxyOptions> | undefined = view
  ? {
      '/api': {
        target: view,
        changeOrigin: true,
        configure: (server) => server.on('proxyReq', (request) => request.removeHeader('origin')),
      },
    }
  : undefined;

export default defineConfig({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    // No inlined data: URLs for scripts: the server's Content-Security-Policy forbids them.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: 'es' },
  ...(proxy ? { server: { host: '127.0.0.1', proxy } } : {}),
});
